//! The filter bank: 16 kHz samples to normalised log-mel frames, joined in pairs.

use std::f64::consts::PI;

use realfft::RealFftPlanner;

use crate::frames::Frames;

const RATE: f64 = 16_000.0;
const WINDOW: usize = 400;
const HOP: usize = 160;
const FFT: usize = 512;
const FILTERS: usize = 80;
const LOWEST_HERTZ: f64 = 20.0;
const HIGHEST_HERTZ: f64 = 8_000.0;
const PRE_EMPHASIS: f64 = 0.97;
/// Exponent on the Hann window.
const WINDOW_POWER: f64 = 0.85;
/// Full scale of the 16-bit samples that the model was trained on.
const FULL_SCALE: f64 = 32_768.0;
/// What a filter gives at least before the logarithm: the spacing of `f32` at 1.
const FLOOR: f64 = 1.192_092_9e-7;
const VARIANCE_EPS: f64 = 1e-7;
/// Value of the frame that fills up an odd number of frames.
const PADDING: f32 = 1.0;

/// Values of a pair of frames.
pub(super) const PAIR_WIDTH: usize = 2 * FILTERS;

/// Input of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// Pairs of frames, `[steps, 160]`, the earlier frame first, at 50 Hz.
    pub pairs: Frames,
    /// Steps that count. With an odd number of frames the last step is half padding and is masked as a whole.
    pub valid: usize,
}

/// Features of a clip at 16 kHz, full scale 1.0: `F = (n - 400) / 160 + 1` frames, none below 400 samples, joined to
/// `ceil(F / 2)` steps. In double precision, as the logarithm of near silence is sensitive.
pub fn log_mel_pairs(samples: &[f32]) -> Features {
    let frames = match samples.len().checked_sub(WINDOW) {
        Some(rest) => rest / HOP + 1,
        None => 0,
    };
    let mut mel = log_mel(samples, frames);
    normalise(&mut mel, frames);
    let mut pairs: Vec<f32> = mel.iter().map(|&v| v as f32).collect();
    pairs.resize(frames.div_ceil(2) * PAIR_WIDTH, PADDING);
    Features { pairs: Frames::new(pairs, PAIR_WIDTH), valid: frames / 2 }
}

/// `[frames, 80]`.
fn log_mel(samples: &[f32], frames: usize) -> Vec<f64> {
    let window = window();
    let bank = filter_bank();
    let fft = RealFftPlanner::<f64>::new().plan_fft_forward(FFT);
    let (mut time, mut spectrum) = (fft.make_input_vec(), fft.make_output_vec());
    let mut scratch = fft.make_scratch_vec();
    let mut mel = Vec::with_capacity(frames * FILTERS);
    for frame in samples.windows(WINDOW).step_by(HOP).take(frames) {
        time.fill(0.0);
        shape_frame(frame, &window, &mut time[..WINDOW]);
        fft.process_with_scratch(&mut time, &mut spectrum, &mut scratch)
            .expect("all three buffers were made for this length; this is a bug");
        for filter in &bank {
            let energy: f64 = spectrum.iter().zip(filter).map(|(s, w)| s.norm_sqr() * w).sum();
            mel.push(energy.max(FLOOR).ln());
        }
    }
    mel
}

/// Scale, offset removal, pre-emphasis within the frame, window.
fn shape_frame(frame: &[f32], window: &[f64], out: &mut [f64]) {
    let mean = frame.iter().map(|&x| f64::from(x)).sum::<f64>() / WINDOW as f64;
    let value = |i: usize| (f64::from(frame[i]) - mean) * FULL_SCALE;
    for (i, (y, w)) in out.iter_mut().zip(window).enumerate() {
        *y = (value(i) - PRE_EMPHASIS * value(i.saturating_sub(1))) * w;
    }
}

fn window() -> Vec<f64> {
    (0..WINDOW)
        .map(|i| {
            let hann = 0.5 - 0.5 * (2.0 * PI * i as f64 / (WINDOW - 1) as f64).cos();
            hann.powf(WINDOW_POWER)
        })
        .collect()
}

/// Triangles that are linear on the mel scale, peak 1: `[80][257]`.
fn filter_bank() -> Vec<Vec<f64>> {
    let mel = |hertz: f64| 1127.0 * (1.0 + hertz / 700.0).ln();
    let (low, high) = (mel(LOWEST_HERTZ), mel(HIGHEST_HERTZ));
    let edge = |i: usize| low + (high - low) * i as f64 / (FILTERS + 1) as f64;
    let bins: Vec<f64> = (0..=FFT / 2).map(|k| mel(k as f64 * RATE / FFT as f64)).collect();
    (0..FILTERS)
        .map(|i| {
            let (left, peak, right) = (edge(i), edge(i + 1), edge(i + 2));
            bins.iter()
                .map(|&m| ((m - left) / (peak - left)).min((right - m) / (right - peak)).max(0.0))
                .collect()
        })
        .collect()
}

/// Each filter's values over time to mean 0 and variance 1.
fn normalise(mel: &mut [f64], frames: usize) {
    for filter in 0..FILTERS.min(mel.len()) {
        let values = || mel[filter..].iter().step_by(FILTERS);
        let mean = values().sum::<f64>() / frames as f64;
        let squares: f64 = values().map(|v| (v - mean).powi(2)).sum();
        // One frame has no variance of its own; the divisor only must not be zero.
        let variance = squares / (frames - 1).max(1) as f64;
        let scale = 1.0 / (variance + VARIANCE_EPS).sqrt();
        for v in mel[filter..].iter_mut().step_by(FILTERS) {
            *v = (*v - mean) * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_frame_is_filled_up_and_masked() {
        for (samples, steps, valid) in
            [(399, 0, 0), (400, 1, 0), (560, 1, 1), (720, 2, 1), (16_000, 49, 49)]
        {
            let features = log_mel_pairs(&vec![0.1; samples]);
            assert_eq!((features.pairs.time(), features.valid), (steps, valid), "{samples}");
            if steps > valid {
                assert_eq!(features.pairs.data()[features.pairs.data().len() - FILTERS], PADDING);
            }
        }
    }

    #[test]
    fn silence_gives_finite_zeros() {
        let features = log_mel_pairs(&[0.0; 1_000]);
        assert!(features.pairs.data()[..features.valid * PAIR_WIDTH].iter().all(|&v| v == 0.0));
    }

    #[test]
    fn a_filter_peaks_at_one_between_its_neighbours() {
        let bank = filter_bank();
        assert_eq!((bank.len(), bank[0].len()), (80, 257));
        for filter in &bank[20..] {
            let peak = filter.iter().copied().fold(0.0, f64::max);
            assert!(peak > 0.5 && peak <= 1.0, "{peak}");
        }
        // Inside the range the triangles of neighbours add up to one everywhere.
        let total: f64 = bank.iter().map(|f| f[100]).sum();
        assert!((total - 1.0).abs() < 1e-12, "{total}");
    }
}
