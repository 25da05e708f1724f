//! Samples to latents.

use super::unit::{Unit, load_conv, load_snake};
use crate::conv::{Conv1d, ConvShape};
use crate::frames::Frames;
use crate::math::Snake;
use crate::weights::{LoadError, Weights};

/// Sizes of the graph.
pub(crate) struct AnalysisShape<'a> {
    /// Width of the first layer; doubled at every rate.
    pub(crate) width: usize,
    /// Steps that become one, stage by stage.
    pub(crate) rates: &'a [usize],
    /// Values of a frame's latent.
    pub(crate) latent: usize,
}

/// The graph's weights.
pub(crate) struct Analysis {
    first: Conv1d,
    stages: Vec<Stage>,
    last_snake: Snake,
    last: Conv1d,
}

struct Stage {
    units: [Unit; 3],
    snake: Snake,
    fall: Conv1d,
    shape: ConvShape,
}

impl Analysis {
    pub(crate) fn load(
        weights: &Weights,
        name: &str,
        shape: &AnalysisShape<'_>,
    ) -> Result<Self, LoadError> {
        let mut width = shape.width;
        let first = format!("{name}.conv1");
        let first = load_conv(weights, &first, [width, 1], ConvShape::centred(7, 1))?;
        let mut stages = Vec::with_capacity(shape.rates.len());
        for (i, &rate) in shape.rates.iter().enumerate() {
            stages.push(Stage::load(weights, &format!("{name}.block.{i}"), width, rate)?);
            width *= 2;
        }
        let last = format!("{name}.conv2");
        Ok(Self {
            first,
            stages,
            last_snake: load_snake(weights, &format!("{name}.snake1"), width)?,
            last: load_conv(weights, &last, [shape.latent, width], ConvShape::centred(3, 1))?,
        })
    }

    /// Frames that come of so many samples.
    pub(crate) fn frames(&self, samples: usize) -> usize {
        self.stages.iter().fold(samples, |steps, stage| stage.shape.steps(steps))
    }

    /// A whole sound, `[samples, 1]` to `[frames, latent]`.
    pub(crate) fn forward(&self, samples: &Frames) -> Frames {
        let mut x = self.first.forward(samples);
        for stage in &self.stages {
            for unit in &stage.units {
                x = unit.within(x.padded(unit.reach(), unit.reach()));
            }
            stage.snake.apply(x.data_mut());
            x = stage.fall.forward(&x);
        }
        self.last_snake.apply(x.data_mut());
        self.last.forward(&x)
    }
}

impl Stage {
    fn load(weights: &Weights, name: &str, width: usize, rate: usize) -> Result<Self, LoadError> {
        let side = rate.div_ceil(2);
        let shape =
            ConvShape { kernel: 2 * rate, stride: rate, dilation: 1, left: side, right: side };
        let fall = format!("{name}.conv1");
        Ok(Self {
            units: Unit::load_three(weights, name, width)?,
            snake: load_snake(weights, &format!("{name}.snake1"), width)?,
            fall: load_conv(weights, &fall, [2 * width, width], shape)?,
            shape,
        })
    }
}
