//! Samples to codes.

use super::layers::{Block, Conv, Shape, load_snake};
use super::lstm::Lstm;
use super::{Config, PREFIX, residual};
use crate::codebook::ResidualSearch;
use crate::conv::Sounds;
use crate::frames::Frames;
use crate::math::Snake;
use crate::weights::{LoadError, Weights};

/// Encodes whole clips.
pub struct Encoder {
    first: Conv,
    stages: Vec<Stage>,
    lstm: Lstm,
    last_snake: Snake,
    last: Conv,
    codebooks: ResidualSearch,
}

struct Stage {
    blocks: Vec<Block>,
    snake: Snake,
    fall: Conv,
}

impl Encoder {
    /// Reads the weights.
    ///
    /// # Errors
    /// A tensor is missing or malformed.
    pub fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let model = format!("{PREFIX}.encoder.model");
        let mut width = config.encdec_n_filters;
        let first = Shape::plain(1, width, config.encdec_kernel_size);
        let first = Conv::load(weights, &format!("{model}.0"), first)?;
        let (mut stages, mut next) = (Vec::new(), 1);
        for &rate in config.encdec_ratios.iter().rev() {
            stages.push(Stage::load(weights, &model, next, width, rate, config)?);
            width *= 2;
            next += config.encdec_n_residual_layers + 2;
        }
        let last = Shape::plain(width, config.hidden_dim, config.encdec_last_kernel_size);
        Ok(Self {
            first,
            stages,
            lstm: Lstm::load(weights, &format!("{model}.{next}"), width, config.encdec_lstm)?,
            last_snake: load_snake(weights, &format!("{model}.{}", next + 1), width)?,
            last: Conv::load(weights, &format!("{model}.{}", next + 2), last)?,
            codebooks: ResidualSearch::load(weights, &residual(config))?,
        })
    }

    /// Encodes a clip at the codec's rate to `[codebooks][frames]`; a frame that is begun counts.
    pub fn encode(&self, samples: &[f32]) -> Vec<Vec<u16>> {
        self.codebooks.encode(self.latent(samples))
    }

    /// What the codebooks code, `[frames, latent]`.
    pub fn latent(&self, samples: &[f32]) -> Frames {
        let mut x = self.first.forward(Frames::new(samples.to_vec(), 1));
        for stage in &self.stages {
            for block in &stage.blocks {
                x = block.forward(x);
            }
            stage.snake.apply(x.data_mut());
            x = stage.fall.forward(x);
        }
        x = self.lstm.step(&mut [&mut self.lstm.state()], &Sounds::one(x, true)).into_rows();
        self.last_snake.apply(x.data_mut());
        self.last.forward(x)
    }
}

impl Stage {
    /// The layers `MODEL.FIRST` and those after it.
    fn load(
        weights: &Weights,
        model: &str,
        first: usize,
        width: usize,
        rate: usize,
        config: &Config,
    ) -> Result<Self, LoadError> {
        let behind = first + config.encdec_n_residual_layers;
        let fall = Shape { stride: rate, ..Shape::plain(width, 2 * width, 2 * rate) };
        Ok(Self {
            blocks: Block::load_stage(weights, model, first, width, config)?,
            snake: load_snake(weights, &format!("{model}.{behind}"), width)?,
            fall: Conv::load(weights, &format!("{model}.{}", behind + 1), fall)?,
        })
    }
}
