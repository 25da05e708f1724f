//! The VibeVoice acoustic tokenizer: 24 kHz sound to 7.5 latents a second and back. Causal throughout.
//!
//! It knows one sound or one stream at a time; which latents are worth decoding is decided elsewhere.
//!
//! ```text
//! samples [L] -> Encoder -> [ceil(L / 3200), width]     zeros after the end fill the last latent
//! [T, width]  -> Decoder -> samples [3200 T]            not clipped; whole, or in pieces with a DecoderState
//! ```

mod block;
mod config;
mod decoder;
mod encoder;

pub use config::{Config, Side};
pub use decoder::{Decoder, DecoderState};
pub use encoder::Encoder;

use std::path::Path;

use crate::weights::{LoadError, Weights};

/// Taps of the first and the last convolution of both halves.
const EDGE_KERNEL: usize = 7;

/// Where the tokenizer's tensors lie in the file of a whole VibeVoice model.
const MODEL_PREFIX: &str = "model.acoustic_tokenizer.";

/// Taps of a convolution that changes the rate.
fn resample_kernel(stride: usize) -> usize {
    2 * stride
}

/// Both halves of the tokenizer.
pub struct Tokenizer {
    /// Sound to latents.
    pub encoder: Encoder,
    /// Latents to sound.
    pub decoder: Decoder,
}

impl Tokenizer {
    /// Opens a folder with `config.json` and `model.safetensors` (or its shards): the tokenizer alone, or a whole
    /// VibeVoice model that holds it.
    ///
    /// # Errors
    /// A file, a field or a tensor is missing or malformed.
    pub fn open(folder: &Path) -> Result<Self, LoadError> {
        let config = Config::read(&folder.join("config.json"))?;
        let weights = Weights::open(folder)?;
        let whole_model = weights.names().any(|name| name.starts_with(MODEL_PREFIX));
        let prefix = if whole_model { MODEL_PREFIX } else { "" };
        Self::load(&weights.with_prefix(prefix), &config)
    }

    /// Reads both halves from tensors without a prefix.
    ///
    /// # Errors
    /// A tensor is missing or malformed.
    pub fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        Ok(Self {
            encoder: Encoder::load(weights, config)?,
            decoder: Decoder::load(weights, config)?,
        })
    }
}

#[cfg(test)]
mod testing {
    use super::{Path, Tokenizer, Weights};
    use crate::frames::Frames;

    /// The random weights amplify: values reach several units, and each layer sums in another order than the reference.
    const TOLERANCE: f32 = 5e-5;

    fn folder() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/vibevoice_tiny"))
    }

    pub(super) fn tokenizer() -> Tokenizer {
        Tokenizer::open(folder()).unwrap()
    }

    pub(super) fn golden(name: &str, shape: &[usize]) -> Vec<f32> {
        Weights::open(&folder().join("golden.safetensors")).unwrap().f32(name, shape).unwrap()
    }

    /// Compares with the tensor `name`, `[1, channels, time]`.
    pub(super) fn assert_golden(name: &str, got: &Frames) {
        let expected = golden(name, &[1, got.channels(), got.time()]);
        for (i, (g, e)) in got.to_channels_first().iter().zip(&expected).enumerate() {
            assert!((g - e).abs() <= TOLERANCE, "{name}: value {i}: {g}, expected {e}");
        }
    }
}
