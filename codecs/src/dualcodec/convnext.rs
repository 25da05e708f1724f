//! Causal ConvNeXt blocks: a depthwise convolution, then a feed-forward block, around one residual.

use crate::conv::{DepthwiseConv1d, FeedForward, Filter, Linear};
use crate::frames::Frames;
use crate::math::{Activation, Norm};
use crate::weights::{LoadError, Weights};

const KERNEL: usize = 7;
const NORM_EPS: f32 = 1e-6;

/// One block: `x + down(gelu(up(norm(depthwise(x)))))`.
pub(super) struct ConvNextBlock {
    depthwise: DepthwiseConv1d,
    feed_forward: FeedForward,
}

impl ConvNextBlock {
    /// Reads the tensors under `name`.
    pub(super) fn load(
        weights: &Weights,
        name: &str,
        width: usize,
        hidden: usize,
    ) -> Result<Self, LoadError> {
        let part = |part: &str| format!("{name}.{part}");
        let depthwise = Filter::plain(weights, &part("dwconv"), [width, 1, KERNEL], width)?;
        let linear = |layer: &str, shape| {
            Ok::<_, LoadError>(Linear::new(&Filter::matrix(weights, &part(layer), shape, true)?))
        };
        Ok(Self {
            depthwise: DepthwiseConv1d::causal(&depthwise),
            feed_forward: FeedForward {
                norm: Norm::Layer {
                    weight: weights.f32(&part("norm.weight"), &[width])?,
                    bias: weights.f32(&part("norm.bias"), &[width])?,
                    eps: NORM_EPS,
                },
                up: linear("pwconv1", [hidden, width])?,
                activation: Activation::Gelu,
                down: linear("pwconv2", [width, hidden])?,
            },
        })
    }

    /// The block on a whole sound, in place: `[frames, width]`.
    pub(super) fn apply(&self, x: &mut Frames) {
        let mixed = self.depthwise.forward(x);
        self.feed_forward.add_to(&mixed, x);
    }
}
