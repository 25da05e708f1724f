//! Sizes of an audio tower.

use std::path::Path;

use crate::weights::{LoadError, read_json};

/// Far above any tower, low enough that products of sizes cannot overflow.
const MAX_SIZE: usize = 1 << 16;
/// Convolutions before the layers; each halves time and bands, rounded up.
pub(super) const HALVINGS: u32 = 3;

/// Sizes of a tower, by the names of its `config.json`.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
pub struct Config {
    /// Bands of the spectrum.
    pub num_mel_bins: usize,
    /// Transformer layers.
    pub encoder_layers: usize,
    /// Attention heads.
    pub encoder_attention_heads: usize,
    /// Hidden width of a feed-forward block.
    pub encoder_ffn_dim: usize,
    /// Width of a token inside the tower.
    pub d_model: usize,
    /// Width of a row that comes out.
    pub output_dim: usize,
    /// Channels of the convolutions.
    pub downsample_hidden_size: usize,
    /// Half a chunk, in frames of the spectrum.
    pub n_window: usize,
    /// An attention window, in frames of the spectrum; whole chunks of it count.
    pub n_window_infer: usize,
    /// Activation between layers; only `gelu` is supported.
    pub activation_function: String,
    /// Whether tokens are scaled before the layers; only `false` is supported.
    #[serde(default)]
    pub scale_embedding: bool,
}

impl Config {
    /// Sizes of the public Qwen3-Omni tower.
    pub fn release() -> Self {
        Self {
            num_mel_bins: 128,
            encoder_layers: 32,
            encoder_attention_heads: 20,
            encoder_ffn_dim: 5120,
            d_model: 1280,
            output_dim: 2048,
            downsample_hidden_size: 480,
            n_window: 50,
            n_window_infer: 800,
            activation_function: "gelu".to_owned(),
            scale_embedding: false,
        }
    }

    /// Reads a configuration file; fields that are not of interest are passed over.
    ///
    /// # Errors
    /// The file is unreadable, a field is missing, or a value is not supported.
    pub fn read(file: &Path) -> Result<Self, LoadError> {
        let config: Self = read_json(file)?;
        config.check_in(file)?;
        Ok(config)
    }

    pub(super) fn check_in(&self, file: &Path) -> Result<(), LoadError> {
        let sizes = [
            ("num_mel_bins", self.num_mel_bins),
            ("encoder_layers", self.encoder_layers),
            ("encoder_attention_heads", self.encoder_attention_heads),
            ("encoder_ffn_dim", self.encoder_ffn_dim),
            ("d_model", self.d_model),
            ("output_dim", self.output_dim),
            ("downsample_hidden_size", self.downsample_hidden_size),
            ("n_window", self.n_window),
            ("n_window_infer", self.n_window_infer),
        ];
        for (field, size) in sizes {
            if !(1..=MAX_SIZE).contains(&size) {
                let reason = format!("is {size}, must be 1 to {MAX_SIZE}");
                return Err(LoadError::field(file, field, reason));
            }
        }
        let heads = self.encoder_attention_heads;
        let rules = [
            (
                "encoder_attention_heads",
                self.d_model.is_multiple_of(heads),
                "does not divide d_model",
            ),
            // Positions are pairs of a sine and a cosine, and the distance of two rates has to exist.
            (
                "d_model",
                self.d_model >= 4 && self.d_model.is_multiple_of(2),
                "must be even and 4 or more",
            ),
            (
                "n_window_infer",
                self.n_window_infer >= self.chunk_frames(),
                "is less than a chunk, 2 n_window",
            ),
            ("activation_function", self.activation_function == "gelu", "only gelu is supported"),
            ("scale_embedding", !self.scale_embedding, "only false is supported"),
        ];
        match rules.into_iter().find(|(_, holds, _)| !holds) {
            Some((field, _, reason)) => Err(LoadError::field(file, field, reason)),
            None => Ok(()),
        }
    }

    /// Frames of a chunk: what the convolutions and the positions see at once.
    pub(super) fn chunk_frames(&self) -> usize {
        2 * self.n_window
    }

    /// Chunks of an attention window.
    pub(super) fn window_chunks(&self) -> usize {
        self.n_window_infer / self.chunk_frames()
    }
}

/// What the convolutions make of a length along either axis.
pub(super) fn halved(length: usize) -> usize {
    length.div_ceil(1 << HALVINGS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_thrice_rounds_up_each_time() {
        for length in 0_usize..300 {
            let each = length.div_ceil(2).div_ceil(2).div_ceil(2);
            assert_eq!(halved(length), each, "{length}");
        }
        assert_eq!((halved(100), halved(200), halved(128)), (13, 25, 16));
    }

    #[test]
    fn a_value_that_is_not_supported_is_told_by_field() {
        let file = Path::new("config.json");
        assert!(Config::release().check_in(file).is_ok());
        type Change = (&'static str, fn(&mut Config));
        let changes: [Change; 6] = [
            ("encoder_attention_heads", |c| c.encoder_attention_heads = 3),
            ("encoder_layers", |c| c.encoder_layers = 0),
            ("n_window_infer", |c| c.n_window_infer = 99),
            ("d_model", |c| (c.d_model, c.encoder_attention_heads) = (2, 1)),
            ("activation_function", |c| c.activation_function = "relu".to_owned()),
            ("scale_embedding", |c| c.scale_embedding = true),
        ];
        for (field, change) in changes {
            let mut config = Config::release();
            change(&mut config);
            let error = config.check_in(file).unwrap_err().to_string();
            assert!(error.contains("config.json") && error.contains(field), "{error}");
        }
    }
}
