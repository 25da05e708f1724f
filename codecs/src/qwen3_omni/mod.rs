//! What a speech language model hears: the log-mel spectrum and the audio tower of Qwen3-Omni, and the layer that brings its
//! rows to the width of the language model.
//!
//! ```text
//! 16 kHz samples -> log-mel [frames, bands], 100 a second -> chunks of a second, three convolutions -> tokens, 13 a second
//!   -> transformer layers within windows of eight seconds -> rows [tokens, output] -> adaptor -> rows [tokens, hidden]
//! ```
//! Times are those of the release; all sizes come from the configuration. Windows do not see each other, so a clip can be
//! encoded while it is heard, a window behind. What the spectrum looks at in the whole clip is then taken from what has been
//! heard: see [`LiveClip`].

mod config;
mod layer;
mod live;
mod mel;
#[cfg(test)]
mod tests;
mod tower;

pub use config::Config;
pub use live::LiveClip;
pub use mel::{LogMel, MelSettings, Tail};
pub use tower::{Tower, TowerStream};

use crate::conv::{Filter, Linear};
use crate::frames::Frames;
use crate::limited::TooLong;
use crate::weights::{LoadError, Weights};

/// Rate of the samples that go in, in Hz.
pub const RATE: u32 = 16_000;

/// Why a clip cannot be encoded.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum HearingError {
    /// Longer than the model was made for.
    #[error("the clip is too long for the model: {0}")]
    TooLong(#[from] TooLong),
    /// No sample at all.
    #[error("the clip has no samples")]
    Empty,
    /// A sample is infinite or not a number.
    #[error("sample {index} of the clip is not a finite number")]
    NotFinite {
        /// Its place.
        index: usize,
    },
}

/// Name of the adaptor among the tensors of a language model.
const ADAPTOR: &str = "adaptor.continuous_audio";

/// Clips to rows that stand in a prompt in the place of embeddings.
pub struct Hearing {
    mel: LogMel,
    tower: Tower,
    adaptor: Linear,
    seconds_max: f64,
}

impl Hearing {
    /// Reads a tower of the given sizes, and from the tensors of the language model the adaptor to rows of its width. Clips may
    /// be `seconds_max` long.
    ///
    /// # Errors
    /// A size is not supported, or a tensor is missing or malformed.
    pub fn load(
        tower: (&Weights, &Config),
        model: (&Weights, usize),
        mel: MelSettings,
        seconds_max: f64,
    ) -> Result<Self, LoadError> {
        let ((tower, config), (model, hidden)) = (tower, model);
        Ok(Self {
            mel: LogMel::new(config.num_mel_bins, mel),
            tower: Tower::load(tower, config)?,
            adaptor: load_adaptor(model, [hidden, config.output_dim])?,
            seconds_max,
        })
    }

    /// Width of a row.
    pub fn hidden(&self) -> usize {
        self.adaptor.outputs()
    }

    /// Rows of a clip of so many samples at [`RATE`].
    pub fn rows(&self, samples: usize) -> usize {
        self.tower.tokens(self.mel.frames(samples))
    }

    /// Encodes a clip at [`RATE`], `[rows, hidden]`.
    ///
    /// # Errors
    /// See [`HearingError`].
    pub fn encode(&self, samples: &[f32]) -> Result<Frames, HearingError> {
        if samples.len() as f64 > self.seconds_max * f64::from(RATE) {
            return Err(TooLong { seconds_max: self.seconds_max }.into());
        }
        if let Some(index) = samples.iter().position(|s| !s.is_finite()) {
            return Err(HearingError::NotFinite { index });
        }
        match samples.is_empty() {
            true => Err(HearingError::Empty),
            false => Ok(self.adaptor.forward(&self.tower.forward(&self.mel.spectrum(samples)))),
        }
    }
}

fn load_adaptor(weights: &Weights, shape: [usize; 2]) -> Result<Linear, LoadError> {
    Ok(Linear::new(&Filter::matrix(weights, ADAPTOR, shape, true)?))
}
