//! The residual unit that the encoders and decoders of every DAC are made of.

use crate::conv::{Conv1d, ConvShape, Edge, Filter, Look, Sides, Sounds};
use crate::frames::Frames;
use crate::math::Snake;
use crate::weights::{LoadError, Weights};

/// Steps between the seven taps in the three units of a stage.
pub(crate) const DILATIONS: [usize; 3] = [1, 3, 9];
const KERNEL: usize = 7;

/// `x + conv1(snake(conv7(snake(x))))`.
pub(crate) struct Unit {
    before: Snake,
    spread: Conv1d,
    between: Snake,
    mix: Conv1d,
    /// Steps that the seven taps see beyond their own, on either side.
    reach: usize,
}

impl Unit {
    /// Reads the three units of the stage under `name`.
    pub(super) fn load_three(
        weights: &Weights,
        name: &str,
        channels: usize,
    ) -> Result<[Self; 3], LoadError> {
        let load = |i: usize| {
            let unit = format!("{name}.res_unit{}", i + 1);
            let layers = ["snake1", "conv1", "snake2", "conv2"].map(|l| format!("{unit}.{l}"));
            Self::load(weights, &layers, channels, DILATIONS[i])
        };
        Ok([load(0)?, load(1)?, load(2)?])
    }

    /// Reads a unit whose four layers have these names.
    pub(crate) fn load(
        weights: &Weights,
        [before, spread, between, mix]: &[String; 4],
        channels: usize,
        dilation: usize,
    ) -> Result<Self, LoadError> {
        let conv = |name, kernel, dilation| {
            let shape = ConvShape { kernel, stride: 1, dilation, left: 0, right: 0 };
            load_conv(weights, name, [channels, channels], shape)
        };
        Ok(Self {
            before: load_snake(weights, before, channels)?,
            spread: conv(spread, KERNEL, dilation)?,
            between: load_snake(weights, between, channels)?,
            mix: conv(mix, 1, 1)?,
            reach: (KERNEL - 1) / 2 * dilation,
        })
    }

    pub(crate) fn reach(&self) -> usize {
        self.reach
    }

    /// The next steps of each sound.
    pub(super) fn step<'a>(
        &self,
        looks: impl Iterator<Item = &'a mut Look>,
        pieces: &Sounds,
    ) -> Sounds {
        let sides = Sides { left: self.reach, right: self.reach, edge: Edge::Zero };
        self.within_each(Look::next_each(looks, pieces, sides))
    }

    /// The unit at all steps of `seen` but the first and last [`Unit::reach`] ones, which it only looks at. They are zeros
    /// beyond the ends of a sound, and stay so: a snake of 0 is 0.
    pub(crate) fn within(&self, seen: Frames) -> Frames {
        self.within_each(Sounds::one(seen, true)).into_rows()
    }

    /// [`Unit::within`] of each sound.
    fn within_each(&self, mut seen: Sounds) -> Sounds {
        let mut out = seen.inner(self.reach, self.reach);
        self.before.apply(seen.rows_mut().data_mut());
        let mut spread = self.spread.forward_each(&seen);
        self.between.apply(spread.rows_mut().data_mut());
        self.mix.add_to(spread.rows(), out.rows_mut());
        out
    }
}

/// Reads the snake whose tensor is `NAME.alpha`.
pub(crate) fn load_snake(
    weights: &Weights,
    name: &str,
    channels: usize,
) -> Result<Snake, LoadError> {
    Ok(Snake::new(weights.f32(&format!("{name}.alpha"), &[1, channels, 1])?))
}

/// Reads the convolution under `name`, with or without weight norm.
pub(crate) fn load_conv(
    weights: &Weights,
    name: &str,
    [out, inputs]: [usize; 2],
    shape: ConvShape,
) -> Result<Conv1d, LoadError> {
    let filter = Filter::load(weights, name, [out, inputs, shape.kernel], out)?;
    Ok(Conv1d::new(&filter, shape))
}
