//! The network of a stage: Qwen3's layers between one table of ids and the audio head.

use codecs::weights::{LoadError, Weights};

use super::config::StageConfig;
use super::embedding::{EMBEDDING, Embedding};
use super::fast::{Ends, Fast, check_width};
use super::tensors::HeadTensors;
use crate::batch::Batch;
use crate::kernels::math::{add, mish_biased};
use crate::kernels::matrix::{Matrix, Store};

pub use super::fast::Options;

/// One stage's network on the CPU.
pub type Qwen3 = Fast<StageEnds>;

/// Embedding and audio head: `fc2 mish(fc1 x + b1) + b2`.
pub struct StageEnds {
    embedding: Embedding,
    fc1: Matrix,
    fc1_bias: Vec<f32>,
    fc2: Matrix,
    fc2_bias: Vec<f32>,
}

impl Qwen3 {
    /// Reads and packs the weights. `loaded` is called with the number of parameters that each piece brought.
    ///
    /// # Errors
    /// A tensor or a size that does not hold, by file and name.
    pub fn load(
        weights: &Weights,
        config: &StageConfig,
        options: &Options<'_>,
        loaded: &mut dyn FnMut(usize),
    ) -> Result<Self, LoadError> {
        let ends = StageEnds::load(weights, config, options, loaded)?;
        let (backbone, alignment) = (&config.backbone, config.alignment);
        Self::from_ends(config.stage, ends, weights, backbone, alignment, options, loaded)
    }
}

impl StageEnds {
    fn load(
        weights: &Weights,
        config: &StageConfig,
        options: &Options<'_>,
        loaded: &mut dyn FnMut(usize),
    ) -> Result<Self, LoadError> {
        let (backbone, inner) = (&config.backbone, config.head_hidden);
        for (field, width) in [("hidden_size", backbone.hidden), ("audio_head_hidden", inner)] {
            check_width(&backbone.file, field, width)?;
        }
        let shape = [backbone.vocabulary, backbone.hidden];
        let embedding = Embedding::read(weights, EMBEDDING, shape, options.kept_ids)?;
        loaded(embedding.len());
        let head = HeadTensors::read(weights, config)?;
        loaded(head.len());
        Ok(Self {
            embedding,
            fc1: Matrix::pack(&head.fc1, backbone.hidden, options.precision),
            fc1_bias: head.fc1_bias,
            fc2: Matrix::pack(&head.fc2, inner, options.precision),
            fc2_bias: head.fc2_bias,
        })
    }
}

impl Ends for StageEnds {
    fn vocabulary(&self) -> usize {
        self.embedding.vocabulary()
    }

    fn knows(&self, id: u32) -> bool {
        self.embedding.knows(id)
    }

    fn embed(&self, batch: &Batch, token: usize, x: &mut Vec<f32>) {
        self.embedding.append(batch.ids[token], x);
    }

    fn outputs(&self, _narrow: bool) -> usize {
        self.fc2_bias.len()
    }

    fn head(&self, normed: &[f32], _narrow: &[bool], inner: &mut Vec<f32>, logits: &mut [f32]) {
        let wanted = normed.len() / self.fc1.inputs();
        inner.resize(wanted * self.fc1.outputs(), 0.0);
        self.fc1.apply(normed, inner, Store::Set);
        for row in inner.chunks_exact_mut(self.fc1.outputs()) {
            mish_biased(row, &self.fc1_bias);
        }
        self.fc2.apply(inner, logits, Store::Set);
        for row in logits.chunks_exact_mut(self.fc2_bias.len()) {
            add(row, &self.fc2_bias);
        }
    }
}

#[cfg(test)]
mod tests;
