//! The residual unit that encoder and decoder are made of.

use crate::conv::{Conv1d, ConvShape, Edge, Filter, Look, Sides};
use crate::frames::Frames;
use crate::math::Snake;
use crate::weights::{LoadError, Weights};

/// Steps between the seven taps in the three units of a stage.
const DILATIONS: [usize; 3] = [1, 3, 9];
const KERNEL: usize = 7;

/// `x + conv1(snake(conv7(snake(x))))`.
pub(super) struct Unit {
    before: Snake,
    spread: Conv1d,
    between: Snake,
    mix: Conv1d,
    sides: Sides,
}

impl Unit {
    /// Reads the three units of the stage under `name`.
    pub(super) fn load_three(
        weights: &Weights,
        name: &str,
        channels: usize,
    ) -> Result<[Self; 3], LoadError> {
        let load = |i: usize| {
            Self::load(weights, &format!("{name}.res_unit{}", i + 1), channels, DILATIONS[i])
        };
        Ok([load(0)?, load(1)?, load(2)?])
    }

    fn load(
        weights: &Weights,
        name: &str,
        channels: usize,
        dilation: usize,
    ) -> Result<Self, LoadError> {
        let side = (KERNEL - 1) / 2 * dilation;
        let snake = |part: &str| load_snake(weights, &format!("{name}.{part}"), channels);
        let conv = |part: &str, kernel, dilation| {
            let shape = ConvShape { kernel, stride: 1, dilation, left: 0, right: 0 };
            load_conv(weights, &format!("{name}.{part}"), [channels, channels], shape)
        };
        Ok(Self {
            before: snake("snake1")?,
            spread: conv("conv1", KERNEL, dilation)?,
            between: snake("snake2")?,
            mix: conv("conv2", 1, 1)?,
            sides: Sides { left: side, right: side, edge: Edge::Zero },
        })
    }

    /// The next piece of a stream.
    pub(super) fn step(&self, look: &mut Look, piece: &Frames, ended: bool) -> Frames {
        let mut seen = look.next(piece, self.sides, ended);
        let mut out = seen.slice(self.sides.left..seen.time() - self.sides.right);
        // Silence beyond the ends stays silence: a snake of 0 is 0.
        self.before.apply(seen.data_mut());
        let mut spread = self.spread.forward(&seen);
        self.between.apply(spread.data_mut());
        self.mix.add_to(&spread, &mut out);
        out
    }
}

/// Reads the snake whose tensor is `NAME.alpha`.
pub(super) fn load_snake(
    weights: &Weights,
    name: &str,
    channels: usize,
) -> Result<Snake, LoadError> {
    Ok(Snake::new(weights.f32(&format!("{name}.alpha"), &[1, channels, 1])?))
}

/// Reads the convolution under `name`.
pub(super) fn load_conv(
    weights: &Weights,
    name: &str,
    [out, inputs]: [usize; 2],
    shape: ConvShape,
) -> Result<Conv1d, LoadError> {
    let filter = Filter::load(weights, name, [out, inputs, shape.kernel], out)?;
    Ok(Conv1d::new(&filter, shape))
}
