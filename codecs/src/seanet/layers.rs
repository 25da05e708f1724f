//! Layers that mirror a sound at its ends.

use super::Config;
use crate::conv::{Conv1d, ConvShape, Edge, Filter, Look, Sides, Sounds};
use crate::frames::Frames;
use crate::math::Snake;
use crate::weights::{LoadError, Weights};

/// A convolution that gives a step for each stride, the last one begun included.
pub(super) struct Conv {
    conv: Conv1d,
    stride: usize,
    sides: Sides,
}

/// Sizes of a convolution.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) kernel: usize,
    pub(super) stride: usize,
    pub(super) dilation: usize,
}

impl Shape {
    pub(super) fn plain(inputs: usize, outputs: usize, kernel: usize) -> Self {
        Self { inputs, outputs, kernel, stride: 1, dilation: 1 }
    }
}

impl Conv {
    pub(super) fn load(weights: &Weights, name: &str, shape: Shape) -> Result<Self, LoadError> {
        let Shape { inputs, outputs, kernel, stride, dilation } = shape;
        let name = format!("{name}.conv.conv");
        let filter = Filter::load(weights, &name, [outputs, inputs, kernel], outputs)?;
        let around = ((kernel - 1) * dilation + 1).saturating_sub(stride);
        let right = around / 2;
        let shape = ConvShape { kernel, stride, dilation, left: 0, right: 0 };
        let sides = Sides { left: around - right, right, edge: Edge::Mirror };
        Ok(Self { conv: Conv1d::new(&filter, shape), stride, sides })
    }

    pub(super) fn look(&self) -> Look {
        Look::fresh(self.conv.inputs())
    }

    /// The next steps of each sound, of stride 1.
    pub(super) fn step<'a>(
        &self,
        looks: impl Iterator<Item = &'a mut Look>,
        pieces: &Sounds,
    ) -> Sounds {
        self.conv.forward_each(&Look::next_each(looks, pieces, self.sides))
    }

    /// A whole sound, of any stride. What lacks to the last stride is mirrored too.
    pub(super) fn forward(&self, x: Frames) -> Frames {
        let lacking = x.time().next_multiple_of(self.stride) - x.time();
        let sides = Sides { right: self.sides.right + lacking, ..self.sides };
        let looks = [&mut self.look()];
        let seen = Look::next_each(looks.into_iter(), &Sounds::one(x, true), sides);
        self.conv.forward(seen.rows())
    }
}

/// `shortcut(x) + conv1(snake(conv(snake(x))))`; the shortcut is a convolution of one tap.
pub(super) struct Block {
    before: Snake,
    spread: Conv,
    between: Snake,
    mix: Conv,
    shortcut: Conv,
}

impl Block {
    /// Reads the residual blocks of one stage, `NAME.FIRST` and those after it.
    pub(super) fn load_stage(
        weights: &Weights,
        name: &str,
        first: usize,
        width: usize,
        config: &Config,
    ) -> Result<Vec<Self>, LoadError> {
        let block = |i: usize| {
            let dilation = config.encdec_dilation_base.pow(i as u32);
            Self::load(weights, &format!("{name}.{}", first + i), width, dilation, config)
        };
        (0..config.encdec_n_residual_layers).map(block).collect()
    }

    fn load(
        weights: &Weights,
        name: &str,
        width: usize,
        dilation: usize,
        config: &Config,
    ) -> Result<Self, LoadError> {
        let inner = width / config.encdec_compress;
        let kernel = config.encdec_residual_kernel_size;
        let spread = Shape { dilation, ..Shape::plain(width, inner, kernel) };
        Ok(Self {
            before: load_snake(weights, &format!("{name}.block.0"), width)?,
            spread: Conv::load(weights, &format!("{name}.block.1"), spread)?,
            between: load_snake(weights, &format!("{name}.block.2"), inner)?,
            mix: Conv::load(weights, &format!("{name}.block.3"), Shape::plain(inner, width, 1))?,
            shortcut: Conv::load(
                weights,
                &format!("{name}.shortcut"),
                Shape::plain(width, width, 1),
            )?,
        })
    }

    pub(super) fn look(&self) -> Look {
        self.spread.look()
    }

    /// The next steps of each sound.
    pub(super) fn step<'a>(
        &self,
        looks: impl Iterator<Item = &'a mut Look>,
        pieces: &Sounds,
    ) -> Sounds {
        let sides = self.spread.sides;
        let mut seen = Look::next_each(looks, pieces, sides);
        let own = seen.inner(sides.left, sides.right);
        self.before.apply(seen.rows_mut().data_mut());
        let mut inner = self.spread.conv.forward_each(&seen);
        self.between.apply(inner.rows_mut().data_mut());
        let mut out = self.shortcut.conv.forward_each(&own);
        self.mix.conv.add_to(inner.rows(), out.rows_mut());
        out
    }

    /// A whole sound.
    pub(super) fn forward(&self, x: Frames) -> Frames {
        self.step([&mut self.look()].into_iter(), &Sounds::one(x, true)).into_rows()
    }
}

/// Reads the one factor that all channels share. Older checkpoints were trained with 1, and have no tensor for it.
pub(super) fn load_snake(
    weights: &Weights,
    name: &str,
    channels: usize,
) -> Result<Snake, LoadError> {
    let name = format!("{name}.alpha");
    let alpha = match weights.shape(&name) {
        Some(_) => weights.f32(&name, &[1, 1, 1])?[0],
        None => 1.0,
    };
    Ok(Snake::new(vec![alpha; channels]))
}
