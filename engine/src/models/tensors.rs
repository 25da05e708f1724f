//! Names and shapes of a stage's tensors, read as `f32`. Knows no arithmetic.

use codecs::weights::{LoadError, Weights};

use super::config::StageConfig;

/// Last matrix of the audio head.
pub(crate) const FC2_WEIGHT: &str = "audio_head.fc2.weight";

/// One transformer layer. Matrices are `[outputs, inputs]`, row-major, as they are stored.
pub(crate) struct LayerTensors {
    pub(crate) input_norm: Vec<f32>,
    pub(crate) q: Vec<f32>,
    pub(crate) k: Vec<f32>,
    pub(crate) v: Vec<f32>,
    pub(crate) q_norm: Vec<f32>,
    pub(crate) k_norm: Vec<f32>,
    pub(crate) o: Vec<f32>,
    pub(crate) post_norm: Vec<f32>,
    pub(crate) gate: Vec<f32>,
    pub(crate) up: Vec<f32>,
    pub(crate) down: Vec<f32>,
}

/// What follows the layers: the final norm and the audio head.
pub(crate) struct HeadTensors {
    pub(crate) norm: Vec<f32>,
    pub(crate) fc1: Vec<f32>,
    pub(crate) fc1_bias: Vec<f32>,
    pub(crate) fc2: Vec<f32>,
    pub(crate) fc2_bias: Vec<f32>,
}

impl LayerTensors {
    /// Reads layer `index`.
    ///
    /// # Errors
    /// A tensor that is missing, misshapen, of a wrong type or not finite, by its name.
    pub(crate) fn read(
        weights: &Weights,
        config: &StageConfig,
        index: usize,
    ) -> Result<Self, LoadError> {
        let get = |name: &str, shape: &[usize]| {
            weights.f32(&format!("model.layers.{index}.{name}.weight"), shape)
        };
        let (hidden, ffn, width) = (config.hidden, config.ffn, config.head_dim);
        let (q_width, kv_width) = (config.heads * width, config.kv_heads * width);
        Ok(Self {
            input_norm: get("input_layernorm", &[hidden])?,
            q: get("self_attn.q_proj", &[q_width, hidden])?,
            k: get("self_attn.k_proj", &[kv_width, hidden])?,
            v: get("self_attn.v_proj", &[kv_width, hidden])?,
            q_norm: get("self_attn.q_norm", &[width])?,
            k_norm: get("self_attn.k_norm", &[width])?,
            o: get("self_attn.o_proj", &[hidden, q_width])?,
            post_norm: get("post_attention_layernorm", &[hidden])?,
            gate: get("mlp.gate_proj", &[ffn, hidden])?,
            up: get("mlp.up_proj", &[ffn, hidden])?,
            down: get("mlp.down_proj", &[hidden, ffn])?,
        })
    }

    /// Numbers held.
    pub(crate) fn len(&self) -> usize {
        let vectors = [&self.input_norm, &self.q_norm, &self.k_norm, &self.post_norm];
        let matrices = [&self.q, &self.k, &self.v, &self.o, &self.gate, &self.up, &self.down];
        vectors.into_iter().chain(matrices).map(Vec::len).sum()
    }
}

impl HeadTensors {
    /// Reads the final norm and the head.
    ///
    /// # Errors
    /// As [`LayerTensors::read`].
    pub(crate) fn read(weights: &Weights, config: &StageConfig) -> Result<Self, LoadError> {
        let (hidden, inner, outputs) = (config.hidden, config.head_hidden, config.outputs);
        Ok(Self {
            norm: weights.f32("model.norm.weight", &[hidden])?,
            fc1: weights.f32("audio_head.fc1.weight", &[inner, hidden])?,
            fc1_bias: weights.f32("audio_head.fc1.bias", &[inner])?,
            fc2: weights.f32(FC2_WEIGHT, &[outputs, inner])?,
            fc2_bias: weights.f32("audio_head.fc2.bias", &[outputs])?,
        })
    }

    /// Numbers held.
    pub(crate) fn len(&self) -> usize {
        let all = [&self.norm, &self.fc1, &self.fc1_bias, &self.fc2, &self.fc2_bias];
        all.into_iter().map(Vec::len).sum()
    }
}
