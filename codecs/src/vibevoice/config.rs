//! The tokenizer's `config.json`: widths and ratios are read, everything this code takes for granted is checked.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::weights::{LoadError, read_json};
use crate::window::LATENT_SAMPLES;

/// Sizes of one tokenizer.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Values of one latent.
    pub latent_width: usize,
    /// Added to the mean square in every RMS norm.
    pub norm_eps: f32,
    /// The encoder, from 24 kHz down.
    pub encoder: Side,
    /// The decoder, from latents up.
    pub decoder: Side,
}

/// Sizes of one half; lists run in the order in which the sound passes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// Channels of each stage.
    pub widths: Vec<usize>,
    /// Rate change before each stage but the first.
    pub ratios: Vec<usize>,
    /// Blocks of each stage.
    pub depths: Vec<usize>,
}

impl Config {
    /// Reads a tokenizer's configuration, or finds it in that of a whole VibeVoice model.
    ///
    /// # Errors
    /// A file that cannot be read, a field that is missing or of another type, and any choice of architecture
    /// that this code does not implement.
    pub fn read(file: &Path) -> Result<Self, LoadError> {
        let mut value: Value = read_json(file)?;
        let nested = value.get_mut("acoustic_tokenizer_config").map(Value::take);
        let raw: Raw = serde_json::from_value(nested.unwrap_or(value))
            .map_err(|e| LoadError::malformed(file, e.to_string()))?;
        raw.check_choices(file)?;
        raw.sizes(file)
    }
}

#[derive(Deserialize)]
struct Raw {
    channels: usize,
    causal: bool,
    vae_dim: usize,
    mixer_layer: String,
    conv_norm: String,
    pad_mode: String,
    disable_last_norm: bool,
    layernorm: String,
    layernorm_eps: f32,
    layernorm_elementwise_affine: bool,
    conv_bias: bool,
    encoder_n_filters: usize,
    encoder_ratios: Vec<usize>,
    encoder_depths: String,
    decoder_n_filters: usize,
    decoder_ratios: Option<Vec<usize>>,
    decoder_depths: Option<String>,
}

impl Raw {
    fn check_choices(&self, file: &Path) -> Result<(), LoadError> {
        let words = [
            ("mixer_layer", &self.mixer_layer, "depthwise_conv"),
            ("conv_norm", &self.conv_norm, "none"),
            ("pad_mode", &self.pad_mode, "constant"),
            ("layernorm", &self.layernorm, "RMSNorm"),
        ];
        for (field, found, expected) in words {
            if found != expected {
                let reason = format!("is \"{found}\", only \"{expected}\" is supported");
                return Err(LoadError::field(file, field, reason));
            }
        }
        let flags = [
            ("causal", self.causal),
            ("disable_last_norm", self.disable_last_norm),
            ("layernorm_elementwise_affine", self.layernorm_elementwise_affine),
            ("conv_bias", self.conv_bias),
        ];
        if let Some((field, _)) = flags.iter().find(|(_, on)| !on) {
            return Err(LoadError::field(file, *field, "is false, only true is supported"));
        }
        if self.channels != 1 {
            let reason = format!("is {}, only mono is supported", self.channels);
            return Err(LoadError::field(file, "channels", reason));
        }
        Ok(())
    }

    fn sizes(self, file: &Path) -> Result<Config, LoadError> {
        let decoder_ratios = self.decoder_ratios.as_ref().unwrap_or(&self.encoder_ratios);
        check_ratios(file, "encoder_ratios", &self.encoder_ratios)?;
        check_ratios(file, "decoder_ratios", decoder_ratios)?;
        let encoder_depths =
            depths(file, "encoder_depths", &self.encoder_depths, &self.encoder_ratios)?;
        let decoder_depths = match &self.decoder_depths {
            Some(text) => depths(file, "decoder_depths", text, decoder_ratios)?,
            None if encoder_depths.len() == decoder_ratios.len() + 1 => {
                encoder_depths.iter().rev().copied().collect()
            }
            None => {
                let reason = "is null, but the encoder's depths do not fit decoder_ratios";
                return Err(LoadError::field(file, "decoder_depths", reason));
            }
        };
        let sizes = [
            ("vae_dim", self.vae_dim),
            ("encoder_n_filters", self.encoder_n_filters),
            ("decoder_n_filters", self.decoder_n_filters),
        ];
        if let Some((field, size)) = sizes.iter().find(|(_, s)| !(1..=MAX_WIDTH).contains(s)) {
            let reason = format!("is {size}, expected 1 to {MAX_WIDTH}");
            return Err(LoadError::field(file, *field, reason));
        }
        // The file lists ratios as the decoder meets them; the encoder meets them back to front.
        let encoder = Side {
            widths: widths(self.encoder_n_filters, encoder_depths.len()),
            ratios: self.encoder_ratios.iter().rev().copied().collect(),
            depths: encoder_depths,
        };
        let mut decoder_widths = widths(self.decoder_n_filters, decoder_depths.len());
        decoder_widths.reverse();
        let decoder =
            Side { widths: decoder_widths, ratios: decoder_ratios.clone(), depths: decoder_depths };
        Ok(Config { latent_width: self.vae_dim, norm_eps: self.layernorm_eps, encoder, decoder })
    }
}

/// Widths double at each stage, so a limit on the first keeps a damaged file from asking for absurd memory.
const MAX_WIDTH: usize = 4096;

fn widths(first: usize, stages: usize) -> Vec<usize> {
    (0..stages).map(|i| first << i).collect()
}

/// The window plan counts on 3,200 samples a latent, however they are divided among the stages.
fn check_ratios(file: &Path, field: &str, ratios: &[usize]) -> Result<(), LoadError> {
    let product = ratios.iter().try_fold(1usize, |a, &r| a.checked_mul(r));
    if product != Some(LATENT_SAMPLES) || ratios.contains(&1) {
        let reason = format!("{ratios:?} multiply to {product:?}, expected {LATENT_SAMPLES}");
        return Err(LoadError::field(file, field, reason));
    }
    Ok(())
}

/// "3-3-8": blocks of each stage, one stage more than ratios.
fn depths(file: &Path, field: &str, text: &str, ratios: &[usize]) -> Result<Vec<usize>, LoadError> {
    let stages = ratios.len() + 1;
    let parsed: Result<Vec<usize>, _> = text.split('-').map(str::parse).collect();
    parsed.ok().filter(|d| d.len() == stages).ok_or_else(|| {
        let reason = format!("is \"{text}\", expected {stages} numbers joined by \"-\"");
        LoadError::field(file, field, reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn release() -> Value {
        json!({
            "channels": 1, "causal": true, "vae_dim": 64, "mixer_layer": "depthwise_conv",
            "conv_norm": "none", "pad_mode": "constant", "disable_last_norm": true,
            "layernorm": "RMSNorm", "layernorm_eps": 1e-5, "layernorm_elementwise_affine": true,
            "conv_bias": true, "encoder_n_filters": 32, "encoder_ratios": [8, 5, 5, 4, 2, 2],
            "encoder_depths": "3-3-3-3-3-3-8", "decoder_n_filters": 32,
            "decoder_ratios": [8, 5, 5, 4, 2, 2], "decoder_depths": null
        })
    }

    fn read(value: &Value) -> Result<Config, LoadError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.json");
        std::fs::write(&file, value.to_string()).unwrap();
        Config::read(&file)
    }

    #[test]
    fn the_decoder_mirrors_the_encoder() {
        let config = read(&release()).unwrap();
        assert_eq!(config.encoder.widths, [32, 64, 128, 256, 512, 1024, 2048]);
        assert_eq!(config.encoder.ratios, [2, 2, 4, 5, 5, 8]);
        assert_eq!(config.encoder.depths, [3, 3, 3, 3, 3, 3, 8]);
        assert_eq!(config.decoder.widths, [2048, 1024, 512, 256, 128, 64, 32]);
        assert_eq!(config.decoder.ratios, [8, 5, 5, 4, 2, 2]);
        assert_eq!(config.decoder.depths, [8, 3, 3, 3, 3, 3, 3]);
        let whole_model = json!({ "hidden_size": 1536, "acoustic_tokenizer_config": release() });
        assert_eq!(read(&whole_model).unwrap(), config);
    }

    #[test]
    fn an_architecture_we_do_not_have_is_named() {
        for (field, value) in [
            ("mixer_layer", json!("conv")),
            ("causal", json!(false)),
            ("channels", json!(2)),
            ("encoder_depths", json!("3-3")),
            ("decoder_depths", json!("3-3-3-3-3-3-x")),
            ("encoder_ratios", json!([8, 5, 5, 4, 2])),
            ("decoder_ratios", json!([8, 5, 5, 4, 4])),
            ("vae_dim", json!(0)),
            ("encoder_n_filters", json!(1_000_000)),
        ] {
            let mut config = release();
            config[field] = value;
            let text = read(&config).unwrap_err().to_string();
            assert!(text.contains("config.json") && text.contains(field), "{text}");
        }
    }

    #[test]
    fn a_missing_field_is_named() {
        let mut config = release();
        config.as_object_mut().unwrap().remove("vae_dim");
        let text = read(&config).unwrap_err().to_string();
        assert!(text.contains("config.json") && text.contains("vae_dim"), "{text}");
    }
}
