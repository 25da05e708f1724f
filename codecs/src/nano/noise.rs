//! Standard normal deviates from a counter: the same key gives the same numbers, in any order, on any thread.
//!
//! A generator with a running state would make a frame's noise depend on what was decoded before it; here a window
//! that is decoded again, or in other pieces, hears the same noise.

use super::elementary::{ln, sin_turns};

/// Odd, so that steps by it visit all 64-bit numbers: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Names the noise of one context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoiseKey(u64);

impl NoiseKey {
    pub(super) fn new(seed: u64) -> Self {
        Self(mix(seed.wrapping_add(STEP)))
    }

    /// The complex deviates of one spectrum: real and imaginary parts independent, mean 0, variance 1.
    pub(super) fn fill(self, frame: u64, real: &mut [f32], imaginary: &mut [f32]) {
        let frame_key = mix(self.0 ^ frame.wrapping_mul(STEP));
        let mut counter = frame_key;
        for (re, im) in real.iter_mut().zip(imaginary.iter_mut()) {
            let bits = mix(counter);
            counter = counter.wrapping_add(STEP);
            // 24 bits each, as many as a float holds: one in (0, 1], one in [-0.5, 0.5).
            *re = ((bits >> 40) as u32 + 1) as f32 * 2.0_f32.powi(-24);
            *im = (bits as u32 >> 8) as f32 * 2.0_f32.powi(-24) - 0.5;
        }
        // Box and Muller: a Rayleigh radius and a uniform angle.
        for (re, im) in real.iter_mut().zip(imaginary) {
            let radius = (-2.0 * ln(*re)).sqrt();
            let angle = *im;
            let quarter_later = if angle < 0.25 { angle + 0.25 } else { angle - 0.75 };
            *re = radius * sin_turns(quarter_later);
            *im = radius * sin_turns(angle);
        }
    }
}

/// The finaliser of SplitMix64: every input bit reaches every output bit.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINS: usize = 601;

    fn fill(seed: u64, frame: u64) -> (Vec<f32>, Vec<f32>) {
        let (mut re, mut im) = (vec![0.0; BINS], vec![0.0; BINS]);
        NoiseKey::new(seed).fill(frame, &mut re, &mut im);
        (re, im)
    }

    #[test]
    fn deviates_have_the_moments_of_the_normal_distribution() {
        let mut all = Vec::new();
        for frame in 0..1_000 {
            let (re, im) = fill(3, frame);
            all.extend(re.into_iter().chain(im).map(f64::from));
        }
        let n = all.len() as f64;
        let moment = |k: i32| all.iter().map(|z| z.powi(k)).sum::<f64>() / n;
        // Six standard errors of each moment, 1.2 million deviates.
        for (k, expected, variance) in
            [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)]
        {
            let tolerance = 6.0 * f64::sqrt(variance / n);
            assert!((moment(k) - expected).abs() < tolerance, "moment {k} is {}", moment(k));
        }
        let within = all.iter().filter(|z| z.abs() < 1.959_964).count() as f64 / n;
        assert!((within - 0.95).abs() < 1.2e-3, "{within} within 1.96");
        assert!(all.iter().all(|z| z.is_finite()));
    }

    #[test]
    fn neighbours_are_independent() {
        let correlation = |a: &[f32], b: &[f32]| {
            a.iter().zip(b).map(|(x, y)| f64::from(x * y)).sum::<f64>() / a.len() as f64
        };
        let (mut parts, mut bins, mut frames, mut seeds) = (0.0, 0.0, 0.0, 0.0);
        const FRAMES: u64 = 500;
        for frame in 0..FRAMES {
            let (re, im) = fill(9, frame);
            parts += correlation(&re, &im);
            bins += correlation(&re[1..], &re);
            frames += correlation(&re, &fill(9, frame + 1).0);
            seeds += correlation(&re, &fill(10, frame).0);
        }
        // Five standard errors of a mean of 300,000 products.
        let tolerance = 5.0 / (FRAMES as f64 * BINS as f64).sqrt();
        for (what, sum) in [("parts", parts), ("bins", bins), ("frames", frames), ("seeds", seeds)]
        {
            let mean = sum / FRAMES as f64;
            assert!(mean.abs() < tolerance, "{what}: {mean}");
        }
    }

    #[test]
    fn the_key_alone_decides() {
        assert_eq!(fill(1, 2), fill(1, 2));
        assert_ne!(fill(1, 2), fill(1, 3));
        assert_ne!(fill(1, 2), fill(2, 2));
    }
}
