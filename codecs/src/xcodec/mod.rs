//! X-Codec: eight codebooks at 50 frames a second over 16 kHz, which code what a HuBERT hears and what a DAC encoder sees.
//!
//! ```text
//! encode   samples -> HuBERT, mean of its states -> convolutions -+
//!          samples -> DAC encoder --------------------------------+-> linear -> codebooks
//! decode   codebooks -> linear -> DAC decoder, whole rates, no tanh: samples may lie beyond -1 and 1
//! ```
//! A stream of codes decodes ten frames behind, bit for bit to what the whole gives. Encoding sees the whole clip at once.

mod config;
mod encoder;
mod hubert;

pub use config::Config;
pub use encoder::Encoder;

use crate::codebook::ResidualCodebooks;
use crate::codes::CodeError;
use crate::conv::{Filter, Linear};
use crate::dac::{Synthesis, SynthesisState};
use crate::weights::{LoadError, Weights};

/// Codes to samples at 16 kHz.
pub struct Decoder {
    codebooks: ResidualCodebooks,
    narrow: Linear,
    synthesis: Synthesis,
}

impl Decoder {
    /// Reads the weights.
    ///
    /// # Errors
    /// A tensor is missing or malformed.
    pub fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let (wide, latent) = (config.codebook_dim, config.acoustic().hidden_size);
        Ok(Self {
            codebooks: load_codebooks(weights, config)?,
            narrow: Linear::new(&Filter::matrix(weights, "fc2", [latent, wide], true)?),
            synthesis: Synthesis::load(weights, "acoustic_decoder", &config.synthesis())?,
        })
    }

    /// A stream at its beginning.
    pub fn state(&self) -> SynthesisState {
        self.synthesis.state()
    }

    /// The next codes of a stream, `[codebooks][frames]`, the last ones where `ended`: the samples that are certain now. The
    /// state has not changed when they cannot be decoded.
    ///
    /// # Errors
    /// Rows that are too few or too many or of unequal lengths, or a code that is not in its codebook.
    pub fn step(
        &self,
        state: &mut SynthesisState,
        codes: &[&[u16]],
        ended: bool,
    ) -> Result<Vec<f32>, CodeError> {
        let latent = self.narrow.forward(&self.codebooks.sum(codes)?);
        Ok(self.synthesis.step(state, &latent, ended))
    }

    /// Decodes a whole sound, `[codebooks][frames]` to 320 samples a frame at the release's rates.
    ///
    /// # Errors
    /// As [`Decoder::step`].
    pub fn decode(&self, codes: &[&[u16]]) -> Result<Vec<f32>, CodeError> {
        Ok(self.synthesis.whole(&self.narrow.forward(&self.codebooks.sum(codes)?)))
    }
}

fn load_codebooks(weights: &Weights, config: &Config) -> Result<ResidualCodebooks, LoadError> {
    let shape = [config.codebook_size, config.codebook_dim];
    let name = |q: usize| format!("quantizer.quantizers.{q}.codebook.embed");
    ResidualCodebooks::load(weights, config.codebooks(), shape, name)
}
