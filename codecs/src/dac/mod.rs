//! The Descript Audio Codec as the transformers library stores it, at 16 kHz with 320 samples a frame or any other rates.
//!
//! Latents rise in four stages from frames to samples. Every layer looks to both sides; a stream gives each sample out as soon
//! as nothing that is still to come can change it, ten frames behind at these rates, and bit for bit what the whole gives.
//!
//! `Synthesis` and `Analysis` are the parts that X-Codec has too.

mod analysis;
mod config;
mod synthesis;
mod unit;

pub(crate) use analysis::{Analysis, AnalysisShape};
pub use config::Config;
pub(crate) use config::{check_rates, check_sizes};
pub use synthesis::SynthesisState;
pub(crate) use synthesis::{Finish, Synthesis, SynthesisShape};
pub(crate) use unit::{DILATIONS, Unit, load_conv, load_snake};

use crate::codebook::{Codebook, CodebookSearch, CodebookShape};
use crate::codes::{self, CodeError};
use crate::frames::Frames;
use crate::weights::{LoadError, Weights};

/// Codes to samples, and samples to codes.
pub struct Dac {
    codebooks: Vec<(CodebookSearch, Codebook)>,
    entries: usize,
    latent: usize,
    frame_samples: usize,
    analysis: Analysis,
    synthesis: Synthesis,
}

impl Dac {
    /// Reads the weights.
    ///
    /// # Errors
    /// A tensor is missing or malformed.
    pub fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let (entries, latent) = (config.codebook_size, config.hidden_size);
        let shape = CodebookShape { entries, width: config.codebook_dim, latent };
        let codebook = |i: usize| {
            let name = format!("quantizer.quantizers.{i}");
            let search = CodebookSearch::load(weights, &name, shape)?;
            Ok((search, Codebook::load(weights, &name, shape)?))
        };
        Ok(Self {
            codebooks: (0..config.n_codebooks).map(codebook).collect::<Result<_, LoadError>>()?,
            entries,
            latent,
            frame_samples: config.frame_samples(),
            analysis: Analysis::load(weights, "encoder", &config.analysis())?,
            synthesis: Synthesis::load(weights, "decoder", &config.synthesis())?,
        })
    }

    /// A stream at its beginning.
    pub fn state(&self) -> SynthesisState {
        self.synthesis.state()
    }

    /// The next codes of a stream, `[codebooks][frames]`, the last ones where `ended`: samples within -1 and 1. The state has
    /// not changed when they cannot be decoded.
    ///
    /// # Errors
    /// Rows that are too few or too many or of unequal lengths, or a code that is not in its codebook.
    pub fn step(
        &self,
        state: &mut SynthesisState,
        codes: &[&[u16]],
        ended: bool,
    ) -> Result<Vec<f32>, CodeError> {
        let latent = self.latent(codes)?;
        Ok(self.synthesis.step(state, &latent, ended))
    }

    /// Decodes a whole sound, `[codebooks][frames]`: a few samples less than its frames, since no stage's end is padded.
    ///
    /// # Errors
    /// As [`Dac::step`].
    pub fn decode(&self, codes: &[&[u16]]) -> Result<Vec<f32>, CodeError> {
        Ok(self.synthesis.whole(&self.latent(codes)?))
    }

    /// Encodes a sound at the codec's rate to `[codebooks][frames]`; its last frame is filled up with silence.
    pub fn encode(&self, samples: &[f32]) -> Vec<Vec<u16>> {
        let mut samples = samples.to_vec();
        samples.resize(samples.len().next_multiple_of(self.frame_samples), 0.0);
        let mut residual = self.analysis.forward(&Frames::new(samples, 1));
        let mut rows = Vec::with_capacity(self.codebooks.len());
        for (row, (search, codebook)) in self.codebooks.iter().enumerate() {
            let codes = search.search(&residual);
            let vectors = codebook.lookup(&codes, row).expect("found codes exist; this is a bug");
            residual.subtract(&vectors);
            rows.push(codes);
        }
        rows
    }

    fn latent(&self, codes: &[&[u16]]) -> Result<Frames, CodeError> {
        let frames = codes::check(codes, &vec![self.entries; self.codebooks.len()])?;
        let mut sum = Frames::zeros(frames, self.latent);
        for (row, (codes, (_, codebook))) in codes.iter().zip(&self.codebooks).enumerate() {
            sum.add(&codebook.lookup(codes, row)?);
        }
        Ok(sum)
    }
}
