//! The block that both halves of the tokenizer are made of: a depthwise convolution over time, then a
//! feed-forward layer on each step, each behind a norm and added to its input.

use crate::conv::{ConvState, DepthwiseConv1d, FeedForward, Filter, Linear};
use crate::frames::Frames;
use crate::math::{Activation, Norm};
use crate::weights::{LoadError, Weights};

/// Taps of the depthwise convolution.
const MIXER_KERNEL: usize = 7;

/// Rows mixed at a time, so that the scratch of the fastest stages does not grow with the length of the sound.
const TILE_ROWS: usize = 512;

pub(super) struct Block {
    norm: Norm,
    mixer: DepthwiseConv1d,
    feed_forward: FeedForward,
}

impl Block {
    /// Reads the tensors under `name`, and folds the two layer scales into the layers before them.
    pub(super) fn load(
        weights: &Weights,
        name: &str,
        width: usize,
        eps: f32,
    ) -> Result<Self, LoadError> {
        let vector = |member: &str| weights.f32(&format!("{name}.{member}"), &[width]);
        let shape = [width, 1, MIXER_KERNEL];
        let mixer = Filter::plain(weights, &format!("{name}.mixer.conv.conv.conv"), shape, width)?;
        let matrix = |member: &str, shape| {
            Filter::matrix(weights, &format!("{name}.ffn.{member}"), shape, true)
        };
        let up = matrix("linear1", [4 * width, width])?;
        let down = matrix("linear2", [width, 4 * width])?;
        Ok(Self {
            norm: Norm::Rms { weight: vector("norm.weight")?, eps },
            mixer: DepthwiseConv1d::causal(&mixer.scaled(&vector("gamma")?)),
            feed_forward: FeedForward {
                norm: Norm::Rms { weight: vector("ffn_norm.weight")?, eps },
                up: Linear::new(&up),
                activation: Activation::Gelu,
                down: Linear::new(&down.scaled(&vector("ffn_gamma")?)),
            },
        })
    }

    /// State of a fresh stream: the mixer's last normed inputs.
    pub(super) fn state(&self) -> ConvState {
        self.mixer.state()
    }

    /// The next piece of a stream, in place.
    pub(super) fn step(&self, state: &mut ConvState, x: &mut Frames) {
        let channels = x.channels();
        for rows in x.data_mut().chunks_mut(TILE_ROWS * channels) {
            let mut normed = rows.to_vec();
            self.norm.apply(&mut normed);
            let mixed = self.mixer.step(state, &Frames::new(normed, channels));
            for (x, y) in rows.iter_mut().zip(mixed.data()) {
                *x += y;
            }
        }
        self.feed_forward.add_to_input(x);
    }
}

/// The blocks `NAME.0`, `NAME.1`, ... of one stage.
pub(super) fn load_stage(
    weights: &Weights,
    name: &str,
    depth: usize,
    width: usize,
    eps: f32,
) -> Result<Vec<Block>, LoadError> {
    (0..depth).map(|j| Block::load(weights, &format!("{name}.{j}"), width, eps)).collect()
}
