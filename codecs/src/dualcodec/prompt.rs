//! A recorded voice to the codes that prompt a speech model.

use super::{Config, Encoder};
use crate::frames::Frames;
use crate::w2vbert::{Statistics, W2vBert, to_16_khz};
use crate::weights::{LoadError, Weights};

/// A longer recording is cut to its first 60 s.
pub const MAX_PROMPT_SAMPLES: usize = 60 * RATE;

const RATE: usize = 24_000;
/// Up to 30 s are encoded in one call: attention over the clip grows with its square.
const WHOLE_SAMPLES: usize = 30 * RATE;
/// Longer ones in strides of 20 s, each with up to 8 s of the recording before and after it.
const STRIDE_SAMPLES: usize = 20 * RATE;
const PAD_SAMPLES: usize = 8 * RATE;

/// Why a recording cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// Not one code fits.
    #[error("recording of {samples} samples is too short: not one whole frame of codes")]
    TooShort {
        /// Samples given.
        samples: usize,
    },
    /// A sample is not a number.
    #[error("sample {index} of the recording is not a finite number")]
    NotFinite {
        /// The first such sample.
        index: usize,
    },
}

/// Encodes voice prompts: resampling, w2v-BERT, DualCodec.
///
/// Holds no state of any sound. At the release's sizes it is about 1.9 GB of weights, of which w2v-BERT is 1.65, and a
/// call needs up to 0.2 GB more, whatever the length of the recording.
pub struct PromptEncoder {
    semantic: W2vBert,
    statistics: Statistics,
    encoder: Encoder,
    tap: usize,
    pool: usize,
    frame_samples: usize,
}

impl PromptEncoder {
    /// Joins the parts.
    ///
    /// # Errors
    /// The codec, the semantic model and its statistics are not of one width, or the model has too few layers loaded.
    pub fn new(
        config: &Config,
        weights: &Weights,
        semantic: W2vBert,
        statistics: Statistics,
        acoustic_rows: usize,
    ) -> Result<Self, LoadError> {
        let mismatch = |reason: String| LoadError::malformed(weights.file(), reason);
        let width = config.semantic_input_dim;
        if semantic.hidden() != width || statistics.channels() != width {
            return Err(mismatch(format!(
                "codec takes features of {width} values, the semantic model makes {}, its statistics have {}",
                semantic.hidden(),
                statistics.channels()
            )));
        }
        if semantic.layers() != config.w2v_output_idx {
            return Err(mismatch(format!(
                "codec takes hidden state {}, the semantic model is loaded up to {}",
                config.w2v_output_idx,
                semantic.layers()
            )));
        }
        Ok(Self {
            semantic,
            statistics,
            encoder: Encoder::load(weights, config, acoustic_rows)?,
            tap: config.w2v_output_idx,
            pool: config.semantic_downsample_factor,
            frame_samples: config.frame_samples(),
        })
    }

    /// Encodes a recording: mono samples at 24 kHz, of which the first [`MAX_PROMPT_SAMPLES`] count, to `[rows][frames]`.
    /// One whole call gives a frame less than the recording has: 12 for 1 s, 374 for 30 s.
    ///
    /// # Errors
    /// The recording is too short for one code, or a sample is not finite.
    pub fn encode(&self, samples: &[f32]) -> Result<Vec<Vec<u16>>, PromptError> {
        let samples = &samples[..samples.len().min(MAX_PROMPT_SAMPLES)];
        if let Some(index) = samples.iter().position(|s| !s.is_finite()) {
            return Err(PromptError::NotFinite { index });
        }
        let rows = if samples.len() <= WHOLE_SAMPLES {
            self.encode_piece(samples)
        } else {
            self.encode_in_strides(samples)
        };
        match rows.first() {
            Some(row) if !row.is_empty() => Ok(rows),
            _ => Err(PromptError::TooShort { samples: samples.len() }),
        }
    }

    /// Normalised features at the code rate, `[frames, hidden]`: what the semantic row is searched from.
    pub fn features(&self, samples: &[f32]) -> Frames {
        let mut hidden = self.semantic.hidden_state(&to_16_khz(samples), self.tap);
        self.statistics.normalise(&mut hidden);
        hidden.mean_of_every(self.pool)
    }

    fn encode_piece(&self, samples: &[f32]) -> Vec<Vec<u16>> {
        self.encoder.encode(samples, &self.features(samples))
    }

    fn encode_in_strides(&self, samples: &[f32]) -> Vec<Vec<u16>> {
        let mut rows = vec![Vec::new(); self.encoder.rows()];
        for start in (0..samples.len()).step_by(STRIDE_SAMPLES) {
            let stride = Stride::at(start, samples.len());
            let piece = self.encode_piece(&samples[stride.samples.clone()]);
            let skip = stride.left / self.frame_samples;
            let keep = STRIDE_SAMPLES / self.frame_samples;
            for (row, codes) in rows.iter_mut().zip(piece) {
                row.extend(codes.into_iter().skip(skip).take(keep));
            }
        }
        rows
    }
}

/// One stride of a long recording, with its context.
#[derive(Debug, PartialEq)]
struct Stride {
    /// What is encoded.
    samples: std::ops::Range<usize>,
    /// Samples of context before the stride.
    left: usize,
}

impl Stride {
    fn at(start: usize, total: usize) -> Self {
        let left = start.min(PAD_SAMPLES);
        let end = (start + STRIDE_SAMPLES + PAD_SAMPLES).min(total);
        Self { samples: start - left..end, left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_have_real_context_on_both_sides_where_there_is_any() {
        let second = |s: usize| s * RATE;
        let at = |start, total| Stride::at(second(start), second(total));
        assert_eq!(at(0, 60), Stride { samples: 0..second(28), left: 0 });
        assert_eq!(at(20, 60), Stride { samples: second(12)..second(48), left: second(8) });
        assert_eq!(at(40, 60), Stride { samples: second(32)..second(60), left: second(8) });
        assert_eq!(at(20, 31), Stride { samples: second(12)..second(31), left: second(8) });
    }
}
