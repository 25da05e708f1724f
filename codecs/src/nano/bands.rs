//! From a few band magnitudes to the magnitude of every spectral bin.

use crate::math::exp;

/// Largest natural-log magnitude: a network may err, but no bin shall be louder than this.
const LOG_MAGNITUDE_MAX: f32 = 7.0;

/// Bands evenly spaced on the mel scale from 0 Hz to half the sample rate, both ends included.
pub(super) struct Bands {
    /// First bin at or above each band's centre.
    first_bins: Vec<usize>,
    /// Place of each bin between the band below (0) and the band above (1).
    places: Vec<f32>,
}

impl Bands {
    /// `bands` over `bins`, the last bin at `max_hz`.
    pub(super) fn new(bands: usize, bins: usize, max_hz: f64) -> Self {
        let mel = |hz: f64| 2595.0 * (1.0 + hz / 700.0).log10();
        let hz = |mel: f64| 700.0 * (10.0_f64.powf(mel / 2595.0) - 1.0);
        let step = mel(max_hz) / (bands - 1) as f64;
        // In bins. The ends are exact, whatever the logarithms round to.
        let last_bin = (bins - 1) as f64;
        let mut centres: Vec<f64> =
            (0..bands).map(|band| hz(band as f64 * step) / max_hz * last_bin).collect();
        centres[bands - 1] = last_bin;
        let first_bins: Vec<usize> = centres.iter().map(|c| c.ceil() as usize).collect();
        let mut places = Vec::with_capacity(bins);
        for pair in centres.windows(2) {
            let bins_between = places.len()..pair[1].ceil() as usize;
            places
                .extend(bins_between.map(|b| ((b as f64 - pair[0]) / (pair[1] - pair[0])) as f32));
        }
        places.push(1.0);
        Self { first_bins, places }
    }

    /// Magnitude of each bin: log magnitudes interpolated in frequency, capped, then the exponential.
    pub(super) fn magnitudes(&self, log_magnitudes: &[f32], out: &mut [f32]) {
        for (pair, bins) in log_magnitudes.windows(2).zip(self.first_bins.windows(2)) {
            let (low, rise) = (pair[0], pair[1] - pair[0]);
            // The last band's centre is the last bin, which belongs to the stretch below it.
            let end = if bins[1] + 1 == out.len() { out.len() } else { bins[1] };
            let stretch = bins[0]..end;
            for (value, place) in out[stretch.clone()].iter_mut().zip(&self.places[stretch]) {
                *value = rise.mul_add(*place, low);
            }
        }
        for value in out {
            *value = exp(value.min(LOG_MAGNITUDE_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_over_frequency_stays_a_line() {
        let bands = Bands::new(20, 601, 12_000.0);
        let step = 2595.0 * (1.0_f64 + 12_000.0 / 700.0).log10() / 19.0;
        let centre = |k: i32| 700.0 * (10.0_f64.powf(f64::from(k) * step / 2595.0) - 1.0);
        let values: Vec<f32> = (0..20).map(|k| (centre(k) / 4_000.0 - 1.5) as f32).collect();
        let mut out = vec![0.0; 601];
        bands.magnitudes(&values, &mut out);
        for (bin, got) in out.into_iter().enumerate() {
            let expected = (bin as f64 * 20.0 / 4_000.0 - 1.5).exp();
            assert!((f64::from(got) / expected - 1.0).abs() < 2e-6, "bin {bin}"); // a few roundings
        }
    }

    #[test]
    fn loudness_is_capped() {
        let mut out = vec![0.0; 601];
        Bands::new(32, 601, 12_000.0).magnitudes(&[50.0; 32], &mut out);
        assert!(out.iter().all(|m| (m / 7.0_f32.exp() - 1.0).abs() < 1e-6));
    }
}
