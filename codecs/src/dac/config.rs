//! Sizes of the codec, from its `config.json`.

use std::path::Path;

use serde::Deserialize;

use super::analysis::AnalysisShape;
use super::synthesis::{Finish, SynthesisShape};
use crate::codebook::CodebookShape;
use crate::weights::{LoadError, read_json};

/// What the configuration says; other fields are not looked at.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// Width of the encoder's first layer; doubled at every rate.
    pub encoder_hidden_size: usize,
    /// Strides of the encoder.
    pub downsampling_ratios: Vec<usize>,
    /// Width of the decoder's first layer; halved at every rate.
    pub decoder_hidden_size: usize,
    /// Strides of the decoder.
    pub upsampling_ratios: Vec<usize>,
    /// Values of a frame's latent.
    pub hidden_size: usize,
    /// Codebooks.
    pub n_codebooks: usize,
    /// Entries of a codebook.
    pub codebook_size: usize,
    /// Values of an entry.
    pub codebook_dim: usize,
    /// Samples a second.
    pub sampling_rate: usize,
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// A field is missing, out of range, or at odds with another.
    pub fn read(file: &Path) -> Result<Self, LoadError> {
        let config: Self = read_json(file)?;
        config.check().map_err(|(field, reason)| LoadError::field(file, field, reason))?;
        Ok(config)
    }

    /// Samples of a frame.
    pub fn frame_samples(&self) -> usize {
        self.upsampling_ratios.iter().product()
    }

    pub(super) fn codebook(&self) -> CodebookShape {
        let (entries, width) = (self.codebook_size, self.codebook_dim);
        CodebookShape { entries, width, latent: self.hidden_size }
    }

    pub(super) fn codebook_names(&self) -> impl Iterator<Item = String> {
        (0..self.n_codebooks).map(|i| format!("quantizer.quantizers.{i}"))
    }

    pub(super) fn analysis(&self) -> AnalysisShape<'_> {
        let (width, latent) = (self.encoder_hidden_size, self.hidden_size);
        AnalysisShape { width, rates: &self.downsampling_ratios, latent }
    }

    pub(super) fn synthesis(&self) -> SynthesisShape<'_> {
        SynthesisShape {
            latent: self.hidden_size,
            width: self.decoder_hidden_size,
            rates: &self.upsampling_ratios,
            whole_rates: false,
            finish: Finish::Tanh,
        }
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        check_sizes(&[
            ("encoder_hidden_size", self.encoder_hidden_size),
            ("decoder_hidden_size", self.decoder_hidden_size),
            ("hidden_size", self.hidden_size),
            ("n_codebooks", self.n_codebooks),
            ("codebook_size", self.codebook_size),
            ("codebook_dim", self.codebook_dim),
            ("sampling_rate", self.sampling_rate),
        ])?;
        check_rates("downsampling_ratios", &self.downsampling_ratios, None)?;
        check_rates("upsampling_ratios", &self.upsampling_ratios, Some(self.decoder_hidden_size))?;
        if self.downsampling_ratios.iter().product::<usize>() != self.frame_samples() {
            let reason = "product differs from that of upsampling_ratios".to_owned();
            return Err(("downsampling_ratios", reason));
        }
        Ok(())
    }
}

/// Sizes that are none, or far above any model, where products of them could overflow.
pub(crate) fn check_sizes(sizes: &[(&'static str, usize)]) -> Result<(), (&'static str, String)> {
    const MAX_SIZE: usize = 1 << 16;
    match sizes.iter().find(|(_, size)| !(1..=MAX_SIZE).contains(size)) {
        Some((field, size)) => Err((field, format!("is {size}, must be 1 to {MAX_SIZE}"))),
        None => Ok(()),
    }
}

/// Strides that no codec has, or a width that cannot be halved at each of them.
pub(crate) fn check_rates(
    field: &'static str,
    rates: &[usize],
    halved: Option<usize>,
) -> Result<(), (&'static str, String)> {
    if rates.is_empty() || rates.len() > 8 || rates.iter().any(|r| !(2..=16).contains(r)) {
        return Err((field, "must be 1 to 8 strides of 2 to 16".to_owned()));
    }
    match halved {
        Some(width) if !width.is_multiple_of(1 << rates.len()) => {
            Err((field, format!("{width} cannot be halved at each of {} strides", rates.len())))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contradiction_is_told_by_field() {
        let fixture =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/dac_tiny/config.json");
        let whole: serde_json::Value = read_json(Path::new(fixture)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        let cases: [(&str, serde_json::Value, &str); 5] = [
            ("n_codebooks", 0.into(), "must be 1 to"),
            ("upsampling_ratios", serde_json::json!([]), "1 to 8 strides"),
            ("upsampling_ratios", serde_json::json!([8, 5, 4]), "differs"),
            ("decoder_hidden_size", 24.into(), "halved"),
            ("codebook_dim", serde_json::Value::Null, "invalid type"),
        ];
        for (field, value, says) in cases {
            let mut changed = whole.clone();
            changed[field] = value;
            std::fs::write(&file, changed.to_string()).unwrap();
            let text = Config::read(&file).unwrap_err().to_string();
            assert!(text.contains("config.json") && text.contains(says), "{text}");
        }
    }
}
