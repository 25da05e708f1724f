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

use crate::codebook::{Codebook, CodebookSearch};
use crate::codes::{self, CodeError, Piece};
use crate::conv::Sounds;
use crate::frames::Frames;
use crate::weights::{LoadError, Weights};

/// Codes to samples.
pub struct Decoder {
    codebooks: Vec<Codebook>,
    entries: usize,
    latent: usize,
    synthesis: Synthesis,
}

impl Decoder {
    /// Reads the weights.
    ///
    /// # Errors
    /// A tensor is missing or malformed.
    pub fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let load = |name: String| Codebook::load(weights, &name, config.codebook());
        Ok(Self {
            codebooks: config.codebook_names().map(load).collect::<Result<_, _>>()?,
            entries: config.codebook_size,
            latent: config.hidden_size,
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
        let mut latents = Sounds::none(self.latent);
        for piece in &pieces {
            let latent = self.latent(piece.codes)?;
            latents.add(piece.ended, |rows| rows.extend(&latent));
        }
        let mut states: Vec<_> = pieces.into_iter().map(|piece| piece.state).collect();
        Ok(self.synthesis.step(&mut states, &latents))
    }

    /// Decodes a whole sound, `[codebooks][frames]`: a few samples less than its frames, since no stage's end is padded.
    ///
    /// # Errors
    /// As [`Decoder::step`].
    pub fn decode(&self, codes: &[&[u16]]) -> Result<Vec<f32>, CodeError> {
        Ok(self.synthesis.whole(&self.latent(codes)?))
    }

    fn latent(&self, codes: &[&[u16]]) -> Result<Frames, CodeError> {
        let frames = codes::check(codes, &vec![self.entries; self.codebooks.len()])?;
        let mut sum = Frames::zeros(frames, self.latent);
        for (row, (codes, codebook)) in codes.iter().zip(&self.codebooks).enumerate() {
            sum.add(&codebook.lookup(codes, row)?);
        }
        Ok(sum)
    }
}

/// Samples to codes.
pub struct Encoder {
    codebooks: Vec<(CodebookSearch, Codebook)>,
    frame_samples: usize,
    analysis: Analysis,
}

impl Encoder {
    /// Reads the weights.
    ///
    /// # Errors
    /// A tensor is missing or malformed.
    pub fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let load = |name: String| {
            let search = CodebookSearch::load(weights, &name, config.codebook())?;
            Ok::<_, LoadError>((search, Codebook::load(weights, &name, config.codebook())?))
        };
        Ok(Self {
            codebooks: config.codebook_names().map(load).collect::<Result<_, _>>()?,
            frame_samples: config.frame_samples(),
            analysis: Analysis::load(weights, "encoder", &config.analysis())?,
        })
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
}
