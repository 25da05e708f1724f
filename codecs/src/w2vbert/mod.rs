//! w2v-BERT-2.0 up to a given hidden state: the semantic features that DualCodec encodes a voice prompt from.
//!
//! Attention is bidirectional over the whole clip, so a clip is one call and its length is the caller's to bound. This
//! module knows nothing of codes.
//!
//! ```text
//! 16 kHz samples -> log-mel pairs [steps, 160] at 50 Hz -> projection -> conformer layers -> hidden state [steps, hidden]
//! ```

mod conformer;
mod downsample;
mod features;
mod statistics;

use std::path::Path;

pub use downsample::to_16_khz;
pub use features::{Features, log_mel_pairs};
pub use statistics::Statistics;

use crate::conv::{Filter, Linear};
use crate::frames::Frames;
use crate::math::Norm;
use crate::weights::{LoadError, Weights, read_json};
use conformer::Layer;

/// Sizes of a w2v-BERT model. [`Config::release`] gives those of the public 2.0 model.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
pub struct Config {
    /// Width of the hidden states.
    pub hidden_size: usize,
    /// Layers in the file.
    pub num_hidden_layers: usize,
    /// Attention heads.
    pub num_attention_heads: usize,
    /// Hidden width of a feed-forward block.
    pub intermediate_size: usize,
    /// Values of an input step; two frames of the filter bank.
    pub feature_projection_input_dim: usize,
    /// Distance to the left beyond which all keys share one position.
    pub left_max_position_embeddings: usize,
    /// The same to the right.
    pub right_max_position_embeddings: usize,
    /// Taps of the depthwise convolution.
    pub conv_depthwise_kernel_size: usize,
    /// Added to the variance of every norm.
    pub layer_norm_eps: f32,
    /// Activation of the feed-forward blocks; only `swish` is supported.
    pub hidden_act: String,
    /// How positions enter; only `relative_key` is supported.
    pub position_embeddings_type: String,
}

impl Config {
    /// Sizes of the public 2.0 model.
    pub fn release() -> Self {
        Self {
            hidden_size: 1024,
            num_hidden_layers: 24,
            num_attention_heads: 16,
            intermediate_size: 4096,
            feature_projection_input_dim: 160,
            left_max_position_embeddings: 64,
            right_max_position_embeddings: 8,
            conv_depthwise_kernel_size: 31,
            layer_norm_eps: 1e-5,
            hidden_act: "swish".to_owned(),
            position_embeddings_type: "relative_key".to_owned(),
        }
    }

    /// Reads a configuration file; every field must be there.
    ///
    /// # Errors
    /// The file is unreadable, a field is missing, or a value is not supported.
    pub fn read(file: &Path) -> Result<Self, LoadError> {
        let config: Self = read_json(file)?;
        config.check_in(file)?;
        Ok(config)
    }

    fn check_in(&self, file: &Path) -> Result<(), LoadError> {
        /// Far above any model, low enough that products of sizes cannot overflow.
        const MAX_SIZE: usize = 1 << 16;
        let sizes = [
            ("hidden_size", self.hidden_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("intermediate_size", self.intermediate_size),
            ("conv_depthwise_kernel_size", self.conv_depthwise_kernel_size),
        ];
        for (field, size) in sizes {
            if !(1..=MAX_SIZE).contains(&size) {
                let reason = format!("is {size}, must be 1 to {MAX_SIZE}");
                return Err(LoadError::field(file, field, reason));
            }
        }
        let positions = self.left_max_position_embeddings.max(self.right_max_position_embeddings);
        let rules = [
            ("left_max_position_embeddings", positions <= MAX_SIZE, "is too large"),
            (
                "num_attention_heads",
                self.hidden_size.is_multiple_of(self.num_attention_heads),
                "does not divide hidden_size",
            ),
            (
                "feature_projection_input_dim",
                self.feature_projection_input_dim == features::PAIR_WIDTH,
                "must be 160, two frames of 80 filters",
            ),
            ("hidden_act", self.hidden_act == "swish", "only swish is supported"),
            (
                "position_embeddings_type",
                self.position_embeddings_type == "relative_key",
                "only relative_key is supported",
            ),
        ];
        match rules.into_iter().find(|(_, holds, _)| !holds) {
            Some((field, _, reason)) => Err(LoadError::field(file, field, reason)),
            None => Ok(()),
        }
    }
}

/// The model up to one hidden state.
///
/// Holds no state of any sound. Memory while a clip is encoded: about ten values a step and channel, and one matrix of
/// 96 rows by the number of steps for attention; 30 s at the release's sizes need under 100 MB.
pub struct W2vBert {
    norm: Norm,
    project: Linear,
    layers: Vec<Layer>,
    hidden: usize,
}

impl W2vBert {
    /// Loads the projection and the first `layers` layers; the others are not read.
    ///
    /// # Errors
    /// The sizes are not supported, there are fewer layers, or a tensor is missing or malformed.
    pub fn load(weights: &Weights, config: &Config, layers: usize) -> Result<Self, LoadError> {
        config.check_in(weights.file())?;
        if layers > config.num_hidden_layers {
            let reason =
                format!("is {}, hidden state {layers} is needed", config.num_hidden_layers);
            return Err(LoadError::field(weights.file(), "num_hidden_layers", reason));
        }
        let (input, hidden) = (config.feature_projection_input_dim, config.hidden_size);
        let name = "feature_projection";
        let norm = load_norm(weights, &format!("{name}.layer_norm"), input, config.layer_norm_eps)?;
        let filter = Filter::matrix(weights, &format!("{name}.projection"), [hidden, input], true)?;
        let layers = (0..layers)
            .map(|i| Layer::load(weights, &format!("encoder.layers.{i}"), config))
            .collect::<Result<_, _>>()?;
        Ok(Self { norm, project: Linear::new(&filter), layers, hidden })
    }

    /// Width of a hidden state.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// Layers that were loaded, which is the index of the last hidden state.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Hidden state of a clip at 16 kHz, `[steps, hidden]` at 50 Hz: 0 is the projection, `i` the output of layer `i - 1`.
    pub fn hidden_state(&self, samples: &[f32], index: usize) -> Frames {
        self.hidden_state_of(&log_mel_pairs(samples), index)
    }

    /// [`W2vBert::hidden_state`] of a clip whose features are there already.
    ///
    /// # Panics
    /// When the hidden state is beyond the layers that were loaded: a caller's bug.
    pub fn hidden_state_of(&self, features: &Features, index: usize) -> Frames {
        assert!(index <= self.layers.len(), "hidden state {index} was not loaded; this is a bug");
        let mut normed = features.pairs.clone();
        self.norm.apply(normed.data_mut());
        let mut h = self.project.forward(&normed);
        clear_masked(&mut h, features.valid);
        for layer in &self.layers[..index] {
            layer.apply(&mut h, features.valid);
        }
        h
    }
}

/// Sets the rows from `valid` on to zero.
fn clear_masked(rows: &mut Frames, valid: usize) {
    let start = valid * rows.channels();
    rows.data_mut()[start..].fill(0.0);
}

fn load_norm(weights: &Weights, name: &str, channels: usize, eps: f32) -> Result<Norm, LoadError> {
    Ok(Norm::Layer {
        weight: weights.f32(&format!("{name}.weight"), &[channels])?,
        bias: weights.f32(&format!("{name}.bias"), &[channels])?,
        eps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_not_supported_is_told_by_field() {
        let file = Path::new("config.json");
        assert!(Config::release().check_in(file).is_ok());
        let broken = |change: fn(&mut Config)| {
            let mut config = Config::release();
            change(&mut config);
            config.check_in(file).unwrap_err().to_string()
        };
        for (text, field) in [
            (broken(|c| c.num_attention_heads = 3), "num_attention_heads"),
            (broken(|c| c.hidden_size = 0), "hidden_size"),
            (broken(|c| c.feature_projection_input_dim = 80), "feature_projection_input_dim"),
            (broken(|c| c.hidden_act = "gelu".to_owned()), "hidden_act"),
            (broken(|c| c.position_embeddings_type.clear()), "position_embeddings_type"),
        ] {
            assert!(text.contains("config.json") && text.contains(field), "{text}");
        }
    }
}
