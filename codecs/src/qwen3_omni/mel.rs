//! Log-mel spectrum as Whisper's feature extractor makes it.
//!
//! ```text
//! samples -> mirrored ends -> Hann windows of 25 ms every 10 ms -> power -> triangles on Slaney's mel scale
//!   -> log10, at most 80 dB below the loudest value of the clip -> about -1 to 1.5
//! ```
//! In double precision, as the logarithm of near silence is sensitive.

use std::f64::consts::PI;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

use super::RATE;
use crate::frames::Frames;

/// Samples of a frame.
pub(super) const WINDOW: usize = 400;
/// Samples from one frame to the next.
pub(super) const HOP: usize = 160;
const HIGHEST_HERTZ: f64 = 8_000.0;
/// What a band gives at least before the logarithm.
const FLOOR: f64 = 1e-10;
/// How far below the loudest value of the clip a value may lie, as a power of ten.
const RANGE: f64 = 8.0;
const VARIANCE_EPS: f64 = 1e-7;
/// Length of silence that [`Tail::Silence`] fills up, in samples: 30 s.
const FILLED: usize = 30 * RATE as usize;

/// How a model was trained to see a clip. Both look at the whole of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MelSettings {
    /// Brings the clip to mean 0 and variance 1 before anything else.
    pub normalise: bool,
    /// What stands behind the clip.
    pub tail: Tail,
}

/// What stands behind a clip where its last windows reach beyond it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tail {
    /// Silence up to a whole hop, then the clip's mirror image.
    #[default]
    Mirror,
    /// Silence up to 30 s.
    Silence,
}

/// Samples at [`RATE`] to a spectrum.
pub struct LogMel {
    settings: MelSettings,
    window: Vec<f64>,
    bank: Vec<Band>,
    fft: Arc<dyn RealToComplex<f64>>,
}

/// A triangle: its weights from the first frequency that it covers.
struct Band {
    first: usize,
    weights: Vec<f64>,
}

impl LogMel {
    /// With so many bands.
    pub fn new(bands: usize, settings: MelSettings) -> Self {
        let hann = |n: usize| 0.5 - 0.5 * (2.0 * PI * n as f64 / WINDOW as f64).cos();
        Self {
            settings,
            window: (0..WINDOW).map(hann).collect(),
            bank: bank(bands),
            fft: RealFftPlanner::new().plan_fft_forward(WINDOW),
        }
    }

    /// Frames of a clip of so many samples: hops that are begun.
    pub fn frames(&self, samples: usize) -> usize {
        samples.div_ceil(HOP)
    }

    /// Spectrum of a clip, `[frames, bands]`.
    pub fn spectrum(&self, samples: &[f32]) -> Frames {
        let clip = Clip::new(samples, self.settings);
        let (frames, bands) = (self.frames(samples.len()), self.bank.len());
        let mut time = self.fft.make_input_vec();
        let mut spectrum = self.fft.make_output_vec();
        let mut scratch = self.fft.make_scratch_vec();
        let mut logs = Vec::with_capacity(frames * bands);
        for t in 0..clip.frames_heard() {
            let from = (t * HOP) as isize - (WINDOW / 2) as isize;
            for ((x, w), i) in time.iter_mut().zip(&self.window).zip(from..) {
                *x = clip.at(i) * w;
            }
            self.fft
                .process_with_scratch(&mut time, &mut spectrum, &mut scratch)
                .expect("all three buffers were made for this length; this is a bug");
            logs.extend(self.bank.iter().map(|band| band.energy(&spectrum).max(FLOOR).log10()));
        }
        let floor = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max) - RANGE;
        logs.truncate(frames * bands);
        Frames::new(logs.iter().map(|&v| ((v.max(floor) + 4.0) / 4.0) as f32).collect(), bands)
    }
}

impl Band {
    fn energy(&self, spectrum: &[Complex<f64>]) -> f64 {
        let values = spectrum[self.first..].iter().zip(&self.weights);
        values.map(|(s, w)| s.norm_sqr() * w).sum()
    }
}

/// A clip that can be read beyond its ends.
struct Clip {
    samples: Vec<f64>,
    /// Where the mirror image begins.
    end: usize,
}

impl Clip {
    fn new(samples: &[f32], settings: MelSettings) -> Self {
        let mut samples: Vec<f64> = samples.iter().map(|&s| f64::from(s)).collect();
        if settings.normalise {
            normalise(&mut samples);
        }
        let whole = samples.len().next_multiple_of(HOP);
        let end = match settings.tail {
            Tail::Mirror => whole,
            Tail::Silence => whole.max(FILLED),
        };
        Self { samples, end }
    }

    /// Frames that hear any of the clip, those of the silence behind it included: the loudest value is looked for in all.
    fn frames_heard(&self) -> usize {
        match self.samples.len() {
            0 => 0,
            n => (n + WINDOW / 2).div_ceil(HOP).min(self.end / HOP),
        }
    }

    /// The sample at any place. A clip shorter than half a window has no whole mirror image: what lacks is silence.
    fn at(&self, i: isize) -> f64 {
        let last = self.end as isize - 1;
        let mirrored = if i > last { 2 * last - i } else { i.abs() };
        usize::try_from(mirrored).ok().and_then(|i| self.samples.get(i)).copied().unwrap_or(0.0)
    }
}

/// To mean 0 and variance 1.
fn normalise(samples: &mut [f64]) {
    let count = samples.len().max(1) as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let variance = samples.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / count;
    let scale = 1.0 / (variance + VARIANCE_EPS).sqrt();
    samples.iter_mut().for_each(|s| *s = (*s - mean) * scale);
}

/// Triangles even on the mel scale, each of area 1 over its frequencies in Hz.
fn bank(bands: usize) -> Vec<Band> {
    let highest = mel(HIGHEST_HERTZ);
    let edge = |i: usize| hertz(highest * i as f64 / (bands + 1) as f64);
    let spacing = f64::from(RATE) / WINDOW as f64;
    let band = |i: usize| {
        let (left, peak, right) = (edge(i), edge(i + 1), edge(i + 2));
        let weight = |k: usize| {
            let f = k as f64 * spacing;
            let height = ((f - left) / (peak - left)).min((right - f) / (right - peak)).max(0.0);
            height * 2.0 / (right - left)
        };
        let weights: Vec<f64> = (0..=WINDOW / 2).map(weight).collect();
        let first = weights.iter().position(|&w| w > 0.0).unwrap_or(0);
        let end = weights.iter().rposition(|&w| w > 0.0).map_or(0, |last| last + 1);
        Band { first, weights: weights[first..end.max(first)].to_vec() }
    };
    (0..bands).map(band).collect()
}

/// Slaney's scale: linear up to 1 kHz, which is 15, logarithmic above.
fn mel(hertz: f64) -> f64 {
    match hertz < 1_000.0 {
        true => hertz * 3.0 / 200.0,
        false => 15.0 + 27.0 * (hertz / 1_000.0).ln() / 6.4_f64.ln(),
    }
}

fn hertz(mel: f64) -> f64 {
    match mel < 15.0 {
        true => mel * 200.0 / 3.0,
        false => 1_000.0 * ((mel - 15.0) * 6.4_f64.ln() / 27.0).exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::Weights;

    /// What values of about 1 may differ by: the reference takes the logarithm of an `f32`.
    const TOLERANCE: f32 = 1e-3;

    fn golden() -> Weights {
        let file = "/../tests/fixtures/qwen3_omni_audio_tiny/mel.safetensors";
        Weights::open(std::path::Path::new(&[env!("CARGO_MANIFEST_DIR"), file].concat())).unwrap()
    }

    #[test]
    fn every_setting_gives_the_golden_spectrum() {
        let golden = golden();
        let samples = golden.f32("waveform", &[15_030]).unwrap();
        for (name, normalise, tail) in [
            ("mel_hop_padded", false, Tail::Mirror),
            ("mel_30s", false, Tail::Silence),
            ("mel_30s_normalized", true, Tail::Silence),
        ] {
            let mel = LogMel::new(128, MelSettings { normalise, tail }).spectrum(&samples);
            assert_eq!((mel.time(), mel.channels()), (94, 128));
            let expected = golden.f32(name, &[128, 94]).unwrap();
            for (i, (got, expected)) in mel.to_channels_first().iter().zip(&expected).enumerate() {
                assert!((got - expected).abs() < TOLERANCE, "{name} {i}: {got}, not {expected}");
            }
        }
    }

    #[test]
    fn the_bank_is_the_golden_one() {
        /// Rounding of the reference's `f32`.
        const ROUNDING: f64 = 1e-8;
        let expected = golden().f32("mel_filters", &[201, 128]).unwrap();
        for (i, band) in bank(128).iter().enumerate() {
            for k in 0_usize..201 {
                let own = k.checked_sub(band.first).and_then(|at| band.weights.get(at));
                let expected = f64::from(expected[k * 128 + i]);
                assert!((own.unwrap_or(&0.0) - expected).abs() < ROUNDING, "band {i} at {k}");
            }
        }
    }

    #[test]
    fn clips_of_any_length_have_their_frames() {
        for tail in [Tail::Mirror, Tail::Silence] {
            for normalise in [false, true] {
                let mel = LogMel::new(8, MelSettings { normalise, tail });
                for samples in [0, 1, 159, 160, 161, 200, 201, 399, 480_000, 480_001] {
                    let spectrum = mel.spectrum(&vec![0.1; samples]);
                    assert_eq!(spectrum.time(), samples.div_ceil(160), "{samples}");
                    assert!(spectrum.data().iter().all(|v| v.is_finite()), "{samples}");
                }
            }
        }
    }

    #[test]
    fn silence_lies_at_the_floor() {
        let mel = LogMel::new(8, MelSettings::default());
        assert!(mel.spectrum(&[0.0; 800]).data().iter().all(|&v| v == -1.5));
    }
}
