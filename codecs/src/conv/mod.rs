//! Layers of the neural codecs on time-major activations: linear, convolution, depthwise and transposed
//! convolution, feed-forward block. One call uses one thread.
//!
//! Every layer has `forward` for a whole sound. A causal one also has `step` for a piece of it: `state()` gives
//! the state of a fresh stream, whose size never changes, and pieces of any lengths give what the whole gives.
//! One that looks ahead streams through a [`Look`], which holds what it still has to see; several streams are [`Sounds`].
//! Layers know shapes, never rates or names of models.
//!
//! ```text
//! Filter          values from a file, weight norm folded        [out, in, kernel]
//!   -> Conv1d | Conv2d | ConvTranspose1d | Linear | DepthwiseConv1d      packed for the product
//! ```

mod depthwise;
mod feed_forward;
mod filter;
mod look;
mod matmul;
mod plain;
mod plane;
mod sounds;
mod transposed;

pub use depthwise::DepthwiseConv1d;
pub use feed_forward::FeedForward;
pub use filter::Filter;
pub use look::{Edge, Look, Sides};
pub use plain::{Conv1d, ConvShape, Linear};
pub use plane::{Conv2d, PlaneShape};
pub use sounds::Sounds;
pub use transposed::{ConvTranspose1d, TransposedShape};

use crate::frames::Frames;

/// What a causal layer keeps between two pieces of a stream: its last input rows, a fixed number of them.
///
/// A copy is a snapshot of the stream at that layer.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvState {
    rows: Frames,
}

impl ConvState {
    fn fresh(context: usize, channels: usize) -> Self {
        Self { rows: Frames::zeros(context, channels) }
    }

    /// Number of values kept.
    pub fn values(&self) -> usize {
        self.rows.data().len()
    }

    /// Puts the kept rows before `input`, and keeps the last rows of the result instead.
    fn extend(&mut self, input: &Frames) -> Frames {
        assert_eq!(self.rows.channels(), input.channels(), "state of another layer; this is a bug");
        let context = self.rows.time();
        let mut data = Vec::with_capacity(self.rows.data().len() + input.data().len());
        data.extend_from_slice(self.rows.data());
        data.extend_from_slice(input.data());
        let joined = Frames::new(data, input.channels());
        self.rows = joined.slice(joined.time() - context..joined.time());
        joined
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::Frames;

    /// Values in -1..1 from a small generator; the same seed gives the same values.
    pub(crate) fn noise(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (f64::from(state) / f64::from(u32::MAX) * 2.0 - 1.0) as f32
        };
        (0..count).map(|_| next()).collect()
    }

    pub(crate) fn frames(time: usize, channels: usize, seed: u32) -> Frames {
        Frames::new(noise(time * channels, seed), channels)
    }

    /// Single precision over the few thousand terms of a sum in these tests.
    pub(crate) const TOLERANCE: f32 = 1e-5;

    pub(crate) fn assert_close(what: &str, got: &Frames, expected: &Frames) {
        assert_eq!(got.channels(), expected.channels(), "{what}: channels");
        assert_eq!(got.time(), expected.time(), "{what}: time");
        for (i, (g, e)) in got.data().iter().zip(expected.data()).enumerate() {
            assert!((g - e).abs() <= TOLERANCE * (1.0 + e.abs()), "{what}: value {i}: {g} != {e}");
        }
    }

    /// Cuts `input` into uneven pieces, runs `step` on each, and joins the results.
    pub(crate) fn in_pieces(input: &Frames, mut step: impl FnMut(&Frames) -> Frames) -> Frames {
        let (mut data, mut at) = (Vec::new(), 0);
        for size in [1, 2, 0, 5, 1, 3].into_iter().cycle() {
            let end = (at + size).min(input.time());
            let out = step(&input.slice(at..end));
            let channels = out.channels();
            data.extend(out.into_data());
            at = end;
            if at == input.time() {
                return Frames::new(data, channels);
            }
        }
        unreachable!("the pieces cover the input")
    }
}
