//! Latents to samples, whole or piece by piece.

use super::unit::{Unit, load_conv, load_snake};
use crate::conv::{
    Conv1d, ConvShape, ConvTranspose1d, Edge, Filter, Look, Sides, Sounds, TransposedShape,
};
use crate::frames::Frames;
use crate::math::{Snake, tanh_all};
use crate::weights::{LoadError, Weights};

/// Taps of the first and the last layer.
const KERNEL: usize = 7;
const SIDES: Sides = Sides { left: KERNEL / 2, right: KERNEL / 2, edge: Edge::Zero };
/// Frames of a whole sound that go through all layers together: what a piece makes stays in the cache.
const PIECE_FRAMES: usize = 16;

/// Sizes of the graph.
pub(crate) struct SynthesisShape<'a> {
    /// Values of a frame's latent.
    pub(crate) latent: usize,
    /// Width of the first layer; halved at every rate.
    pub(crate) width: usize,
    /// Steps that come of one, stage by stage.
    pub(crate) rates: &'a [usize],
    /// Whether an odd rate gives whole steps; else its stage gives one less in the end.
    pub(crate) whole_rates: bool,
    /// What becomes of the samples.
    pub(crate) finish: Finish,
}

/// What becomes of the samples in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// They are squeezed between -1 and 1.
    Tanh,
    /// They stay as they are, and may lie beyond.
    Plain,
}

/// The graph's weights.
pub(crate) struct Synthesis {
    latent: usize,
    first: Conv1d,
    stages: Vec<Stage>,
    last_snake: Snake,
    last: Conv1d,
    finish: Finish,
}

struct Stage {
    snake: Snake,
    rise: ConvTranspose1d,
    units: [Unit; 3],
}

/// A stream's place in every layer. A copy is a snapshot of the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct SynthesisState {
    first: Look,
    stages: Vec<(Look, [Look; 3])>,
    last: Look,
}

impl SynthesisState {
    /// Number of values kept.
    pub fn values(&self) -> usize {
        let stage = |(rise, units): &(Look, [Look; 3])| {
            rise.values() + units.iter().map(Look::values).sum::<usize>()
        };
        self.first.values() + self.stages.iter().map(stage).sum::<usize>() + self.last.values()
    }
}

impl Synthesis {
    pub(crate) fn load(
        weights: &Weights,
        name: &str,
        shape: &SynthesisShape<'_>,
    ) -> Result<Self, LoadError> {
        let valid = ConvShape { kernel: KERNEL, stride: 1, dilation: 1, left: 0, right: 0 };
        let mut width = shape.width;
        let first = load_conv(weights, &format!("{name}.conv1"), [width, shape.latent], valid)?;
        let mut stages = Vec::with_capacity(shape.rates.len());
        for (i, &rate) in shape.rates.iter().enumerate() {
            let stage = format!("{name}.block.{i}");
            stages.push(Stage::load(weights, &stage, width, rate, shape.whole_rates)?);
            width /= 2;
        }
        Ok(Self {
            latent: shape.latent,
            first,
            stages,
            last_snake: load_snake(weights, &format!("{name}.snake1"), width)?,
            last: load_conv(weights, &format!("{name}.conv2"), [1, width], valid)?,
            finish: shape.finish,
        })
    }

    pub(crate) fn state(&self) -> SynthesisState {
        let stage = |s: &Stage| {
            let (inner, outer) = (s.rise.inputs(), s.rise.outputs());
            (Look::fresh(inner), [(); 3].map(|()| Look::fresh(outer)))
        };
        SynthesisState {
            first: Look::fresh(self.latent),
            stages: self.stages.iter().map(stage).collect(),
            last: Look::fresh(self.last.inputs()),
        }
    }

    /// The next latents of each stream, `[frames, latent]`, to the samples that are certain now.
    pub(crate) fn step(
        &self,
        states: &mut [&mut SynthesisState],
        latents: &Sounds,
    ) -> Vec<Vec<f32>> {
        let looks = states.iter_mut().map(|state| &mut state.first);
        let mut x = self.first.forward_each(&Look::next_each(looks, latents, SIDES));
        for (i, stage) in self.stages.iter().enumerate() {
            stage.snake.apply(x.rows_mut().data_mut());
            x = stage.rise.rise_each(states.iter_mut().map(|state| &mut state.stages[i].0), &x);
            for (j, unit) in stage.units.iter().enumerate() {
                x = unit.step(states.iter_mut().map(|state| &mut state.stages[i].1[j]), &x);
            }
        }
        let looks = states.iter_mut().map(|state| &mut state.last);
        let mut seen = Look::next_each(looks, &x, SIDES);
        self.last_snake.apply(seen.rows_mut().data_mut());
        let mut samples = self.last.forward_each(&seen);
        if self.finish == Finish::Tanh {
            tanh_all(samples.rows_mut().data_mut());
        }
        samples.each().map(|(samples, _)| samples.to_vec()).collect()
    }

    pub(crate) fn whole(&self, latent: &Frames) -> Vec<f32> {
        let (mut state, mut samples) = (self.state(), Vec::new());
        for start in (0..latent.time()).step_by(PIECE_FRAMES) {
            let end = (start + PIECE_FRAMES).min(latent.time());
            let piece = Sounds::one(latent.slice(start..end), end == latent.time());
            samples.extend(self.step(&mut [&mut state], &piece).remove(0));
        }
        samples
    }
}

impl Stage {
    fn load(
        weights: &Weights,
        name: &str,
        inputs: usize,
        rate: usize,
        whole_rates: bool,
    ) -> Result<Self, LoadError> {
        let (kernel, outputs, left) = (2 * rate, inputs / 2, rate.div_ceil(2));
        let right = if whole_rates { rate / 2 } else { left };
        let shape = [inputs, outputs, kernel];
        let filter = Filter::load(weights, &format!("{name}.conv_t1"), shape, outputs)?;
        let shape = TransposedShape { kernel, stride: rate, left, right };
        Ok(Self {
            snake: load_snake(weights, &format!("{name}.snake1"), inputs)?,
            rise: ConvTranspose1d::new(&filter, shape),
            units: Unit::load_three(weights, name, outputs)?,
        })
    }
}
