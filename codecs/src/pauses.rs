//! Cuts a long recording where nobody speaks, into pieces that a model can hear at once.

use std::ops::Range;

/// Steps a second at which loudness is looked at.
const STEPS_PER_SECOND: usize = 50;
/// Steps that a pause is: a fifth of a second, longer than the silence inside a word.
const PAUSE_STEPS: usize = 10;
/// What is nowhere louder is silence: 60 dB below full scale.
const SILENT_PEAK: f32 = 1e-3;

/// Whether nobody speaks in the samples, and nothing else is heard in them.
pub fn is_silent(samples: &[f32]) -> bool {
    samples.iter().all(|sample| sample.abs() < SILENT_PEAK)
}

/// Ranges that cover the samples, none longer than `seconds_max`. Each ends in the quietest fifth of a second of its second
/// half, where more comes after it; of the quietest moment, where pieces are too short for pauses.
///
/// # Panics
/// When pieces or the rate are below 40 ms and 50 Hz: a caller's bug, as models hear for seconds.
pub fn cut(samples: &[f32], rate: u32, seconds_max: f64) -> Vec<Range<usize>> {
    let step = rate as usize / STEPS_PER_SECOND;
    let most = (seconds_max * f64::from(rate)) as usize / step.max(1);
    assert!(step > 0 && most >= 2, "pieces of less than two steps; this is a bug");
    let loudness: Vec<f64> = samples.chunks(step).map(energy).collect();
    let (mut pieces, mut start) = (Vec::new(), 0);
    while loudness.len() - start > most {
        let end = quietest(&loudness[start..start + most]) + start;
        pieces.push(start * step..end * step);
        start = end;
    }
    if start * step < samples.len() {
        pieces.push(start * step..samples.len());
    }
    pieces
}

fn energy(samples: &[f32]) -> f64 {
    samples.iter().map(|s| f64::from(*s) * f64::from(*s)).sum()
}

/// The middle of the quietest pause of the second half; of several the last.
fn quietest(loudness: &[f64]) -> usize {
    let pause = PAUSE_STEPS.min(loudness.len() / 2);
    let first = loudness.len() / 2 - pause / 2;
    let pauses = loudness[first..].windows(pause).map(|w| w.iter().sum::<f64>());
    let mut best = (f64::INFINITY, 0);
    for (at, loud) in pauses.enumerate() {
        if loud <= best.0 {
            best = (loud, at);
        }
    }
    first + best.1 + pause / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RATE: u32 = 8_000;

    /// Noise with silence at the given seconds.
    fn speech(seconds: usize, silent: &[Range<f64>]) -> Vec<f32> {
        let noise = |i: usize| ((i * 7_919) % 101) as f32 / 101.0 - 0.5;
        let silent = |i: usize| silent.iter().any(|s| s.contains(&(i as f64 / f64::from(RATE))));
        (0..seconds * RATE as usize).map(|i| if silent(i) { 0.0 } else { noise(i) }).collect()
    }

    #[test]
    fn pieces_end_in_pauses_and_not_before_their_half() {
        let samples = speech(20, &[2.0..2.5, 7.0..7.4, 13.0..14.0]);
        let ends: Vec<f64> =
            cut(&samples, RATE, 10.0).iter().map(|r| r.end as f64 / f64::from(RATE)).collect();
        assert_eq!(ends.len(), 3);
        // A tenth of a second of silence is left on either side at least.
        assert!((7.1..=7.3).contains(&ends[0]), "{ends:?}");
        assert!((13.1..=13.9).contains(&ends[1]), "{ends:?}");
        assert_eq!(ends[2], 20.0);
    }

    #[test]
    fn only_what_nobody_could_hear_is_silent() {
        assert!(is_silent(&[]) && is_silent(&[0.0, 9e-4, -9e-4]));
        assert!(!is_silent(&[0.0, -2e-3]));
    }

    #[test]
    fn a_recording_that_fits_is_one_piece() {
        assert_eq!(cut(&speech(3, &[]), RATE, 3.0), vec![Range { start: 0, end: 24_000 }]);
        assert_eq!(cut(&[], RATE, 3.0), []);
    }

    proptest! {
        #[test]
        fn pieces_cover_everything_and_none_is_too_long(
            samples in 0_usize..90_000, tenths in 1_u32..40, pause in 0_usize..10,
        ) {
            let pause = pause as f64;
            let sound = &speech(12, &[pause..pause + 0.3])[..samples];
            let seconds_max = f64::from(tenths) / 10.0;
            let pieces = cut(sound, RATE, seconds_max);
            let mut at = 0;
            for piece in pieces {
                prop_assert_eq!(piece.start, at);
                prop_assert!(!piece.is_empty());
                prop_assert!(piece.len() as f64 <= seconds_max * f64::from(RATE));
                at = piece.end;
            }
            prop_assert_eq!(at, samples);
        }
    }
}
