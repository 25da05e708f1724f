//! DualCodec at 12.5 Hz: eight rows of codes and a 24 kHz waveform, one into the other.
//!
//! Row 0 is semantic, the others refine the residual; a decoder may be given any first few of them. Nothing here
//! is causal except the ConvNeXt blocks, so a caller that streams decodes windows with context on both sides (a code
//! reaches 27 frames to the left and to the right, and 24 more to its right through the causal blocks). This module
//! knows nothing of windows, of what is committed, or of who speaks.
//!
//! ```text
//! codes [rows][frames] -> semantic lookup -> ConvNeXt --+
//!                      -> acoustic lookups (summed) ----+-> DAC decoder -> samples
//! samples -> 16 kHz -> w2v-BERT -> ConvNeXt -> search -> row 0
//!         -> DAC encoder -> minus the semantic part -> search, subtract, search, .. -> rows 1..
//! ```

mod convnext;
mod dac;
mod decoder;
mod encoder;
mod prompt;

use std::path::Path;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use prompt::{MAX_PROMPT_SAMPLES, PromptEncoder, PromptError};

use crate::weights::{LoadError, read_json};

/// Sizes of a DualCodec model. [`Config::release`] gives those of the public 12 Hz model, whose files hold no configuration.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Config {
    /// Width of the latent between codes and DAC.
    pub latent_dim: usize,
    /// Width of the semantic features (the w2v-BERT hidden state).
    pub semantic_input_dim: usize,
    /// Hidden width of a ConvNeXt block.
    pub convnext_intermediate_dim: usize,
    /// Index of the w2v-BERT hidden state that is the semantic input.
    pub w2v_output_idx: usize,
    /// Width of the DAC encoder's first layer; it doubles at every rate.
    pub encoder_dim: usize,
    /// Strides of the DAC encoder.
    pub encoder_rates: Vec<usize>,
    /// Width of the DAC decoder's first layer; it halves at every rate.
    pub decoder_dim: usize,
    /// Strides of the DAC decoder.
    pub decoder_rates: Vec<usize>,
    /// Acoustic rows in the file.
    pub n_codebooks: usize,
    /// Entries of an acoustic codebook.
    pub codebook_size: usize,
    /// Entries of the semantic codebook.
    pub semantic_codebook_size: usize,
    /// Width of an acoustic codebook entry.
    pub codebook_dim: usize,
    /// Width of a semantic codebook entry.
    pub semantic_codebook_dim: usize,
    /// Width of the ConvNeXt blocks.
    pub convnext_dim: usize,
    /// ConvNeXt blocks on each side.
    pub convnext_layers: usize,
    /// Whether the ConvNeXt blocks are causal; only `true` is supported.
    pub is_causal: bool,
    /// Semantic features that are averaged into one code frame.
    pub semantic_downsample_factor: usize,
    /// Samples of the waveform in a second; only 24,000 is supported.
    pub sample_rate: usize,
}

impl Config {
    /// Sizes of the public 12 Hz release.
    pub fn release() -> Self {
        Self {
            latent_dim: 1024,
            semantic_input_dim: 1024,
            convnext_intermediate_dim: 2048,
            w2v_output_idx: 17,
            encoder_dim: 32,
            encoder_rates: vec![4, 5, 6, 8, 2],
            decoder_dim: 1536,
            decoder_rates: vec![2, 8, 6, 5, 4],
            n_codebooks: 7,
            codebook_size: 4096,
            semantic_codebook_size: 16384,
            codebook_dim: 8,
            semantic_codebook_dim: 8,
            convnext_dim: 768,
            convnext_layers: 4,
            is_causal: true,
            semantic_downsample_factor: 4,
            sample_rate: 24_000,
        }
    }

    /// Reads a configuration file; every field must be there.
    ///
    /// # Errors
    /// The file is unreadable, a field is missing, or fields contradict each other.
    pub fn read(file: &Path) -> Result<Self, LoadError> {
        let config: Self = read_json(file)?;
        config.check_in(file)?;
        Ok(config)
    }

    /// Samples of one code frame.
    pub fn frame_samples(&self) -> usize {
        self.decoder_rates.iter().product()
    }

    /// The check behind every way in; `file` is what the error names.
    fn check_in(&self, file: &Path) -> Result<(), LoadError> {
        self.check().map_err(|(field, reason)| LoadError::field(file, field, reason))
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        /// Far above any model, low enough that products of sizes cannot overflow.
        const MAX_SIZE: usize = 1 << 16;
        let sizes = [
            ("latent_dim", self.latent_dim),
            ("semantic_input_dim", self.semantic_input_dim),
            ("convnext_intermediate_dim", self.convnext_intermediate_dim),
            ("encoder_dim", self.encoder_dim),
            ("decoder_dim", self.decoder_dim),
            ("n_codebooks", self.n_codebooks),
            ("codebook_size", self.codebook_size),
            ("semantic_codebook_size", self.semantic_codebook_size),
            ("codebook_dim", self.codebook_dim),
            ("semantic_codebook_dim", self.semantic_codebook_dim),
            ("convnext_dim", self.convnext_dim),
            ("semantic_downsample_factor", self.semantic_downsample_factor),
        ];
        for (field, size) in sizes {
            if !(1..=MAX_SIZE).contains(&size) {
                return Err((field, format!("is {size}, must be 1 to {MAX_SIZE}")));
            }
        }
        for (field, rates) in
            [("encoder_rates", &self.encoder_rates), ("decoder_rates", &self.decoder_rates)]
        {
            if rates.is_empty() || rates.len() > 8 || rates.iter().any(|r| !(2..=16).contains(r)) {
                return Err((field, "must be 1 to 8 strides of 2 to 16".to_owned()));
            }
        }
        let depth = self.decoder_rates.len();
        if self.encoder_rates.iter().product::<usize>() != self.frame_samples() {
            return Err(("encoder_rates", "product differs from that of decoder_rates".to_owned()));
        }
        if !self.decoder_dim.is_multiple_of(1 << depth) {
            return Err(("decoder_dim", format!("must be divisible by 2 {depth} times")));
        }
        if self.encoder_dim << self.encoder_rates.len() != self.latent_dim {
            return Err(("latent_dim", "is not encoder_dim doubled at every rate".to_owned()));
        }
        if !self.is_causal {
            return Err(("is_causal", "only causal ConvNeXt blocks are supported".to_owned()));
        }
        if self.sample_rate != 24_000 {
            return Err(("sample_rate", "only 24000 is supported".to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_sizes_satisfy_their_own_check() {
        assert_eq!(Config::release().check(), Ok(()));
        assert_eq!(Config::release().frame_samples(), 1920);
    }

    #[test]
    fn a_contradiction_is_told_by_field() {
        let broken = |change: fn(&mut Config)| {
            let mut config = Config::release();
            change(&mut config);
            config.check().unwrap_err().0
        };
        assert_eq!(broken(|c| c.latent_dim = 1000), "latent_dim");
        assert_eq!(broken(|c| c.codebook_dim = 0), "codebook_dim");
        assert_eq!(broken(|c| c.encoder_rates[0] = 3), "encoder_rates");
        assert_eq!(broken(|c| c.decoder_rates.clear()), "decoder_rates");
        assert_eq!(broken(|c| c.decoder_dim = 1000), "decoder_dim");
        assert_eq!(broken(|c| c.is_causal = false), "is_causal");
        assert_eq!(broken(|c| c.sample_rate = 16_000), "sample_rate");
    }

    #[test]
    fn a_missing_field_is_told_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.json");
        std::fs::write(&file, r#"{"latent_dim": 64}"#).unwrap();
        let text = Config::read(&file).unwrap_err().to_string();
        assert!(text.contains("config.json") && text.contains("semantic_input_dim"), "{text}");
    }
}
