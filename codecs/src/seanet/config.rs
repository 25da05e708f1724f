//! Sizes of the codec, from the `codec` and `codec_conf` of an ESPnet configuration, as JSON.

use std::path::Path;

use serde::Deserialize;

use crate::dac::{check_rates, check_sizes};
use crate::weights::{LoadError, read_json};

/// What the configuration says of the generator; other fields are not looked at.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// Samples a second.
    #[serde(skip)]
    pub sampling_rate: usize,
    /// Values of a frame's latent.
    pub hidden_dim: usize,
    codebook_dim: usize,
    encdec_channels: usize,
    /// Width of the outermost layers; doubled at every rate.
    pub encdec_n_filters: usize,
    /// Residual blocks of a stage.
    pub encdec_n_residual_layers: usize,
    /// Strides of the decoder, first to last.
    pub encdec_ratios: Vec<usize>,
    encdec_activation: String,
    encdec_norm: String,
    /// Taps of the first layer.
    pub encdec_kernel_size: usize,
    /// Taps of the residual blocks.
    pub encdec_residual_kernel_size: usize,
    /// Taps of the last layer.
    pub encdec_last_kernel_size: usize,
    /// From one residual block of a stage to the next their taps move apart by this factor.
    pub encdec_dilation_base: usize,
    encdec_causal: bool,
    encdec_pad_mode: String,
    encdec_true_skip: bool,
    /// How much narrower the residual blocks are inside.
    pub encdec_compress: usize,
    /// Layers of the LSTM.
    pub encdec_lstm: usize,
    decoder_final_activation: Option<String>,
    /// Codebooks.
    pub quantizer_n_q: usize,
    /// Entries of a codebook.
    pub quantizer_bins: usize,
}

#[derive(Deserialize)]
struct Whole {
    codec: String,
    codec_conf: Codec,
}

#[derive(Deserialize)]
struct Codec {
    sampling_rate: usize,
    generator_params: Config,
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// A field is missing or out of range, or names a variant that is not computed here.
    pub fn read(file: &Path) -> Result<Self, LoadError> {
        let whole: Whole = read_json(file)?;
        let wrong = |field: &str, reason: String| LoadError::field(file, field, reason);
        if whole.codec != "dac" {
            return Err(wrong("codec", format!("is {:?}, only \"dac\" is supported", whole.codec)));
        }
        let sampling_rate = whole.codec_conf.sampling_rate;
        let config = Self { sampling_rate, ..whole.codec_conf.generator_params };
        config.check().map_err(|(field, reason)| {
            wrong(&format!("codec_conf.generator_params.{field}"), reason)
        })?;
        Ok(config)
    }

    /// Samples of a frame.
    pub fn frame_samples(&self) -> usize {
        self.encdec_ratios.iter().product()
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        check_sizes(&[
            ("sampling_rate", self.sampling_rate),
            ("hidden_dim", self.hidden_dim),
            ("encdec_n_filters", self.encdec_n_filters),
            ("encdec_n_residual_layers", self.encdec_n_residual_layers),
            ("encdec_kernel_size", self.encdec_kernel_size),
            ("encdec_residual_kernel_size", self.encdec_residual_kernel_size),
            ("encdec_last_kernel_size", self.encdec_last_kernel_size),
            ("encdec_dilation_base", self.encdec_dilation_base),
            ("encdec_compress", self.encdec_compress),
            ("encdec_lstm", self.encdec_lstm),
            ("quantizer_n_q", self.quantizer_n_q),
            ("quantizer_bins", self.quantizer_bins),
        ])?;
        check_rates("encdec_ratios", &self.encdec_ratios, None)?;
        if self.encdec_n_residual_layers > 8 || self.encdec_dilation_base > 16 {
            let reason =
                "at most 8 residual layers, whose taps move apart by at most 16".to_owned();
            return Err(("encdec_n_residual_layers", reason));
        }
        let variants = [
            ("codebook_dim", self.codebook_dim == self.hidden_dim),
            ("encdec_channels", self.encdec_channels == 1),
            ("encdec_activation", self.encdec_activation == "Snake"),
            ("encdec_norm", self.encdec_norm == "weight_norm"),
            ("encdec_causal", !self.encdec_causal),
            ("encdec_pad_mode", self.encdec_pad_mode == "reflect"),
            ("encdec_true_skip", !self.encdec_true_skip),
            ("decoder_final_activation", self.decoder_final_activation.is_none()),
        ];
        match variants.iter().find(|(_, known)| !known) {
            Some((field, _)) => Err((field, "this variant is not supported".to_owned())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_is_not_computed_here_is_refused_by_field() {
        let fixture =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/dac_tiny/espnet/config.json");
        let whole: Value = read_json(Path::new(fixture)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        let cases: [(&str, Value, &str); 6] = [
            ("encdec_causal", json!(true), "encdec_causal`: this variant"),
            ("encdec_pad_mode", json!("constant"), "encdec_pad_mode`: this variant"),
            ("codebook_dim", json!(8), "codebook_dim`: this variant"),
            ("encdec_lstm", json!(0), "must be 1 to"),
            ("encdec_ratios", json!([1]), "strides of 2 to 16"),
            ("encdec_n_residual_layers", json!(9), "at most 8"),
        ];
        for (field, value, says) in cases {
            let mut changed = whole.clone();
            changed["codec_conf"]["generator_params"][field] = value;
            std::fs::write(&file, changed.to_string()).unwrap();
            let text = Config::read(&file).unwrap_err().to_string();
            assert!(text.contains("config.json") && text.contains(says), "{text}");
        }
        let mut changed = whole;
        changed["codec"] = json!("soundstream");
        std::fs::write(&file, changed.to_string()).unwrap();
        assert!(Config::read(&file).unwrap_err().to_string().contains("only \"dac\""));
    }
}
