//! What is in a sound: which tone, how faithful, where it is silent.

use std::f64::consts::TAU;

/// How much of a tone of amplitude 1 is in the sound.
pub(super) fn share(sound: &[f32], rate: u32, hz: f64) -> f64 {
    let step = TAU * hz / f64::from(rate);
    let part = |f: fn(f64) -> f64| {
        let sum = sound.iter().enumerate().map(|(i, &s)| f64::from(s) * f(step * i as f64));
        2.0 * sum.sum::<f64>() / sound.len().max(1) as f64
    };
    part(f64::sin).hypot(part(f64::cos))
}

/// The frequency near `around` that is heard most, to a tenth of a hertz, by the sound in the middle.
pub(super) fn loudest_near(sound: &[f32], rate: u32, around: f64) -> f64 {
    let second = rate as usize;
    let start = sound.len().saturating_sub(second) / 2;
    let middle = &sound[start..(start + second).min(sound.len())];
    let candidates = (-100..=100).map(|tenth| around + f64::from(tenth) / 10.0);
    let louder = |a: &f64, b: &f64| share(middle, rate, *a).total_cmp(&share(middle, rate, *b));
    candidates.max_by(louder).unwrap_or(around)
}

/// The largest difference of the sound from a tone of the best amplitude and phase, in dB below full scale. The tone is
/// fitted once, so a slip of its phase anywhere shows.
pub(super) fn error_from_tone_db(sound: &[f32], rate: u32, hz: f64) -> f64 {
    let step = TAU * hz / f64::from(rate);
    let (mut a, mut b) = (0.0, 0.0);
    for (i, &sample) in sound.iter().enumerate() {
        a += f64::from(sample) * (step * i as f64).sin();
        b += f64::from(sample) * (step * i as f64).cos();
    }
    let scale = 2.0 / sound.len().max(1) as f64;
    let (a, b) = (a * scale, b * scale);
    let difference = sound.iter().enumerate().map(|(i, &sample)| {
        let (sin, cos) = (step * i as f64).sin_cos();
        (f64::from(sample) - a * sin - b * cos).abs()
    });
    20.0 * difference.fold(0.0, f64::max).max(1e-9).log10()
}

/// Length of the longest run of samples that are all but zero.
pub(super) fn longest_silence(sound: &[f32], below: f32) -> usize {
    let (mut longest, mut run) = (0, 0);
    for &sample in sound {
        run = if sample.abs() <= below { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 24_000;

    fn tone(hz: f64, samples: usize) -> Vec<f32> {
        let sample = |i: usize| (0.5 * (TAU * hz * i as f64 / f64::from(RATE)).sin()) as f32;
        (0..samples).map(sample).collect()
    }

    #[test]
    fn a_tone_is_found_by_its_frequency() {
        let sound = tone(440.3, 48_000);
        assert!((loudest_near(&sound, RATE, 440.0) - 440.3).abs() < 0.11);
        assert!(share(&sound, RATE, 440.3) > 0.49 && share(&sound, RATE, 465.3) < 0.01);
    }

    #[test]
    fn a_click_and_a_slip_are_heard() {
        let mut sound = tone(1_000.0, 24_000);
        assert!(error_from_tone_db(&sound, RATE, 1_000.0) < -90.0);
        sound[12_000] += 0.1;
        assert!(error_from_tone_db(&sound, RATE, 1_000.0) > -25.0);
        let mut slipped = tone(1_000.0, 12_000);
        slipped.extend(&tone(1_000.0, 12_007)[7..]);
        assert!(error_from_tone_db(&slipped, RATE, 1_000.0) > -25.0);
    }

    #[test]
    fn the_longest_silence_is_told() {
        let sound = [0.5, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 0.2];
        assert_eq!(longest_silence(&sound, 0.0), 3);
    }
}
