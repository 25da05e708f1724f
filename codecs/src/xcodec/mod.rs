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

use crate::codebook::{Residual, ResidualEntries};
use crate::codes::{CodeError, Piece};
use crate::conv::{Filter, Linear};
use crate::dac::{Synthesis, SynthesisState};
use crate::weights::{LoadError, Weights};

/// Codes to samples at 16 kHz.
pub struct Decoder {
    codebooks: ResidualEntries,
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
            codebooks: ResidualEntries::load(weights, &residual(config))?,
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
        Ok(self.step_each(vec![Piece { state, codes, ended }])?.remove(0))
    }

    /// [`Decoder::step`] of several streams: the samples of each, the same as alone, in less time.
    ///
    /// # Errors
    /// As [`Decoder::step`]; no stream has changed then.
    pub fn step_each(
        &self,
        pieces: Vec<Piece<'_, SynthesisState>>,
    ) -> Result<Vec<Vec<f32>>, CodeError> {
        let latents = self.codebooks.sum_each(&pieces)?.through(&self.narrow);
        let mut states: Vec<_> = pieces.into_iter().map(|piece| piece.state).collect();
        Ok(self.synthesis.step(&mut states, &latents))
    }

    /// Decodes a whole sound, `[codebooks][frames]` to 320 samples a frame at the release's rates.
    ///
    /// # Errors
    /// As [`Decoder::step`].
    pub fn decode(&self, codes: &[&[u16]]) -> Result<Vec<f32>, CodeError> {
        Ok(self.synthesis.whole(&self.narrow.forward(&self.codebooks.sum(codes)?)))
    }
}

fn residual(config: &Config) -> Residual {
    let name = |q: usize| format!("quantizer.quantizers.{q}.codebook.embed");
    Residual {
        names: (0..config.codebooks()).map(name).collect(),
        shape: [config.codebook_size, config.codebook_dim],
    }
}
