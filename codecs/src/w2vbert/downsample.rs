//! 24 kHz to 16 kHz with the filter that the model's features were made with.
//!
//! Not a general resampler: codes of a prompt are compared value by value with another implementation, so this one
//! filter is part of the model.

use std::f64::consts::PI;

/// Input samples that a phase looks to either side.
const HALF_WIDTH: usize = 10;
/// Two outputs for every three inputs.
const PHASES: usize = 2;
const STRIDE: usize = 3;
const TAPS: usize = 2 * HALF_WIDTH + STRIDE;
/// Zero crossings of the windowed sinc on each side.
const ZERO_CROSSINGS: f64 = 6.0;
/// Cut-off over half the output rate, times the phases.
const BASE: f64 = 0.99 * PHASES as f64;

/// Resamples from 24 to 16 kHz: `n` samples to `ceil(2 n / 3)`.
pub fn to_16_khz(samples: &[f32]) -> Vec<f32> {
    let filters: [[f64; TAPS]; PHASES] = std::array::from_fn(filter);
    let mut padded = vec![0.0; HALF_WIDTH];
    padded.extend_from_slice(samples);
    padded.resize(padded.len() + HALF_WIDTH + STRIDE, 0.0);
    let mut out = Vec::with_capacity(samples.len() * PHASES / STRIDE + PHASES);
    for window in padded.windows(TAPS).step_by(STRIDE) {
        for taps in &filters {
            let sum: f64 = taps.iter().zip(window).map(|(t, &x)| t * f64::from(x)).sum();
            out.push(sum as f32);
        }
    }
    out.truncate((samples.len() * PHASES).div_ceil(STRIDE));
    out
}

/// Hann-windowed sinc of one phase.
fn filter(phase: usize) -> [f64; TAPS] {
    std::array::from_fn(|tap| {
        let input = (tap as f64 - HALF_WIDTH as f64) / STRIDE as f64;
        let u = (input - phase as f64 / PHASES as f64) * BASE;
        let u = u.clamp(-ZERO_CROSSINGS, ZERO_CROSSINGS);
        let sinc = if u == 0.0 { 1.0 } else { (PI * u).sin() / (PI * u) };
        sinc * (PI * u / (2.0 * ZERO_CROSSINGS)).cos().powi(2) * BASE / STRIDE as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_round_up() {
        for (given, expected) in
            [(0, 0), (1, 1), (2, 2), (3, 2), (24_000, 16_000), (24_001, 16_001)]
        {
            assert_eq!(to_16_khz(&vec![0.1; given]).len(), expected, "{given}");
        }
    }

    #[test]
    fn a_tone_below_the_cut_off_keeps_its_level_and_one_above_goes() {
        let tone = |hertz: f64| -> Vec<f32> {
            (0..24_000).map(|n| (2.0 * PI * hertz * f64::from(n) / 24_000.0).sin() as f32).collect()
        };
        let level = |samples: Vec<f32>| {
            let inner = &samples[100..samples.len() - 100];
            (inner.iter().map(|x| x * x).sum::<f32>() / inner.len() as f32).sqrt()
        };
        let kept = level(to_16_khz(&tone(1000.0)));
        assert!((kept - std::f32::consts::FRAC_1_SQRT_2).abs() < 1e-3, "{kept}");
        let gone = level(to_16_khz(&tone(11_000.0)));
        assert!(gone < 5e-3, "{gone}");
    }
}
