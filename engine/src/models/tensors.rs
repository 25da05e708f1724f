//! Names and shapes of a network's tensors, read as `f32`. Knows no arithmetic.

use codecs::weights::{LoadError, Weights};

use super::backbone::{Backbone, Block};
use super::config::StageConfig;

/// Last matrix of the audio head.
pub(crate) const FC2_WEIGHT: &str = "audio_head.fc2.weight";

/// One transformer layer. Matrices are `[outputs, inputs]`, row-major, as they are stored; norms are there where the block
/// has them.
pub(crate) struct LayerTensors {
    /// In front of attention.
    pub(crate) input_norm: Option<Vec<f32>>,
    pub(crate) q: Vec<f32>,
    pub(crate) k: Vec<f32>,
    pub(crate) v: Vec<f32>,
    /// As wide as a head, or as all of them.
    pub(crate) q_norm: Option<Vec<f32>>,
    pub(crate) k_norm: Option<Vec<f32>>,
    pub(crate) o: Vec<f32>,
    /// Behind attention.
    pub(crate) attended_norm: Option<Vec<f32>>,
    /// In front of the feed-forward block.
    pub(crate) ffn_norm: Option<Vec<f32>>,
    pub(crate) gate: Vec<f32>,
    pub(crate) up: Vec<f32>,
    pub(crate) down: Vec<f32>,
    /// Behind the feed-forward block.
    pub(crate) fed_norm: Option<Vec<f32>>,
}

/// The audio head.
pub(crate) struct HeadTensors {
    pub(crate) fc1: Vec<f32>,
    pub(crate) fc1_bias: Vec<f32>,
    pub(crate) fc2: Vec<f32>,
    pub(crate) fc2_bias: Vec<f32>,
}

/// Gives the tensor of a name and a shape.
pub(crate) type Get<'a> = dyn Fn(&str, &[usize]) -> Result<Vec<f32>, LoadError> + 'a;

impl LayerTensors {
    /// Reads layer `index`.
    ///
    /// # Errors
    /// A tensor that is missing, misshapen, of a wrong type or not finite, by its name.
    pub(crate) fn read(
        weights: &Weights,
        backbone: &Backbone,
        index: usize,
    ) -> Result<Self, LoadError> {
        Self::get(backbone, index, &|name, shape| weights.f32(name, shape))
    }

    /// Gets each tensor of layer `index` by its name and shape.
    ///
    /// # Errors
    /// The first that `get` gives.
    pub(crate) fn get(backbone: &Backbone, index: usize, get: &Get<'_>) -> Result<Self, LoadError> {
        let get = |name: &str, shape: &[usize]| {
            get(&format!("{}model.layers.{index}.{name}.weight", backbone.prefix), shape)
        };
        let norm = |blocks: &[Block], name: &str, width: usize| {
            blocks.contains(&backbone.block).then(|| get(name, &[width])).transpose()
        };
        let Backbone { hidden, ffn, head_dim, .. } = *backbone;
        let (q_width, kv_width) = (backbone.q_width(), backbone.kv_width());
        let (front, behind) = (&[Block::Qwen3, Block::Llama][..], &[Block::Olmo2][..]);
        let whole = backbone.block == Block::Olmo2;
        let (q_norm, k_norm) = if whole { (q_width, kv_width) } else { (head_dim, head_dim) };
        let normed = &[Block::Qwen3, Block::Olmo2];
        // OLMo-2 has the name of the second norm in front for its first norm behind.
        Ok(Self {
            input_norm: norm(front, "input_layernorm", hidden)?,
            q: get("self_attn.q_proj", &[q_width, hidden])?,
            k: get("self_attn.k_proj", &[kv_width, hidden])?,
            v: get("self_attn.v_proj", &[kv_width, hidden])?,
            q_norm: norm(normed, "self_attn.q_norm", q_norm)?,
            k_norm: norm(normed, "self_attn.k_norm", k_norm)?,
            o: get("self_attn.o_proj", &[hidden, q_width])?,
            attended_norm: norm(behind, "post_attention_layernorm", hidden)?,
            ffn_norm: norm(front, "post_attention_layernorm", hidden)?,
            gate: get("mlp.gate_proj", &[ffn, hidden])?,
            up: get("mlp.up_proj", &[ffn, hidden])?,
            down: get("mlp.down_proj", &[hidden, ffn])?,
            fed_norm: norm(behind, "post_feedforward_layernorm", hidden)?,
        })
    }

    /// Numbers held.
    pub(crate) fn len(&self) -> usize {
        let front = [&self.input_norm, &self.q_norm, &self.k_norm, &self.ffn_norm];
        let vectors = front.into_iter().chain([&self.attended_norm, &self.fed_norm]).flatten();
        let matrices = [&self.q, &self.k, &self.v, &self.o, &self.gate, &self.up, &self.down];
        vectors.chain(matrices).map(Vec::len).sum()
    }
}

/// Reads the norm behind the last layer.
///
/// # Errors
/// As [`LayerTensors::read`].
pub(crate) fn final_norm(weights: &Weights, backbone: &Backbone) -> Result<Vec<f32>, LoadError> {
    weights.f32(&final_norm_name(backbone), &[backbone.hidden])
}

/// Where the norm behind the last layer is.
pub(crate) fn final_norm_name(backbone: &Backbone) -> String {
    format!("{}model.norm.weight", backbone.prefix)
}

impl HeadTensors {
    /// Reads the head.
    ///
    /// # Errors
    /// As [`LayerTensors::read`].
    pub(crate) fn read(weights: &Weights, config: &StageConfig) -> Result<Self, LoadError> {
        let (hidden, inner, outputs) = (config.backbone.hidden, config.head_hidden, config.outputs);
        Ok(Self {
            fc1: weights.f32("audio_head.fc1.weight", &[inner, hidden])?,
            fc1_bias: weights.f32("audio_head.fc1.bias", &[inner])?,
            fc2: weights.f32(FC2_WEIGHT, &[outputs, inner])?,
            fc2_bias: weights.f32("audio_head.fc2.bias", &[outputs])?,
        })
    }

    /// Numbers held.
    pub(crate) fn len(&self) -> usize {
        let all = [&self.fc1, &self.fc1_bias, &self.fc2, &self.fc2_bias];
        all.into_iter().map(Vec::len).sum()
    }
}
