//! Names and shapes of a network's tensors, read as `f32`. Knows no arithmetic.

use codecs::weights::{LoadError, Weights};

use super::backbone::{Backbone, Block};
use super::config::StageConfig;

/// Last matrix of the audio head.
pub(crate) const FC2_WEIGHT: &str = "audio_head.fc2.weight";

/// One transformer layer. Matrices are `[outputs, inputs]`, row-major, as they are stored; norms are there where the block
/// has them.
pub(crate) struct LayerTensors<M = Vec<f32>> {
    /// In front of attention.
    pub(crate) input_norm: Option<Vec<f32>>,
    pub(crate) q: M,
    pub(crate) k: M,
    pub(crate) v: M,
    /// As wide as a head, or as all of them.
    pub(crate) q_norm: Option<Vec<f32>>,
    pub(crate) k_norm: Option<Vec<f32>>,
    pub(crate) o: M,
    /// Behind attention.
    pub(crate) attended_norm: Option<Vec<f32>>,
    /// In front of the feed-forward block.
    pub(crate) ffn_norm: Option<Vec<f32>>,
    pub(crate) gate: M,
    pub(crate) up: M,
    pub(crate) down: M,
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
pub(crate) type Get<'a, T = Vec<f32>> = dyn Fn(&str, &[usize]) -> Result<T, LoadError> + 'a;

/// Rows of a matrix that are held as `f32` together: a few megabytes, and whole panels.
const BLOCK_ROWS: usize = 512;

/// A matrix that is still on disk, `[outputs, inputs]`: as `f32` those of one layer may be near a gigabyte.
pub(crate) struct Stored<'w> {
    weights: &'w Weights,
    name: String,
    shape: [usize; 2],
}

impl Stored<'_> {
    /// Its outputs.
    pub(crate) fn rows(&self) -> usize {
        self.shape[0]
    }

    /// Numbers in it.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Reads it, some rows at a time.
    ///
    /// # Errors
    /// As [`LayerTensors::read`].
    pub(crate) fn each(&self, mut take: impl FnMut(Vec<f32>)) -> Result<(), LoadError> {
        for start in (0..self.rows()).step_by(BLOCK_ROWS) {
            let rows = start..self.rows().min(start + BLOCK_ROWS);
            take(self.weights.f32_range(&self.name, &self.shape, rows)?);
        }
        Ok(())
    }
}

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
        let read = |name: &str, shape: &[usize]| weights.f32(name, shape);
        Self::get(backbone, index, &read, &read)
    }
}

impl<'w> LayerTensors<Stored<'w>> {
    /// Reads the vectors of layer `index`, and finds its matrices.
    ///
    /// # Errors
    /// As [`LayerTensors::read`], of the vectors.
    pub(crate) fn find(
        weights: &'w Weights,
        backbone: &Backbone,
        index: usize,
    ) -> Result<Self, LoadError> {
        let read = |name: &str, shape: &[usize]| weights.f32(name, shape);
        let find = |name: &str, shape: &[usize]| {
            let shape = [shape[0], shape[1]];
            Ok(Stored { weights, name: name.to_owned(), shape })
        };
        Self::get(backbone, index, &read, &find)
    }

    /// Numbers in all of them.
    pub(crate) fn len(&self) -> usize {
        let matrices = [&self.q, &self.k, &self.v, &self.o, &self.gate, &self.up, &self.down];
        self.vectors() + matrices.into_iter().map(Stored::len).sum::<usize>()
    }
}

impl<M> LayerTensors<M> {
    /// Gets each vector and matrix of layer `index` by its name and shape.
    ///
    /// # Errors
    /// The first that one of them gives.
    pub(crate) fn get(
        backbone: &Backbone,
        index: usize,
        vector: &Get<'_>,
        matrix: &Get<'_, M>,
    ) -> Result<Self, LoadError> {
        let name = |name: &str| format!("{}model.layers.{index}.{name}.weight", backbone.prefix);
        let get = |of: &str, shape: &[usize]| matrix(&name(of), shape);
        let norm = |blocks: &[Block], of: &str, width: usize| {
            blocks.contains(&backbone.block).then(|| vector(&name(of), &[width])).transpose()
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

    /// Numbers in the vectors.
    fn vectors(&self) -> usize {
        let front = [&self.input_norm, &self.q_norm, &self.k_norm, &self.ffn_norm];
        let vectors = front.into_iter().chain([&self.attended_norm, &self.fed_norm]).flatten();
        vectors.map(Vec::len).sum()
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
