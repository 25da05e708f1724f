//! Transposed convolution: each input step spreads over `kernel` output steps, `stride` apart.

use std::ops::Range;

use super::{Conv1d, ConvShape, ConvState, Filter, Sounds};
use crate::frames::Frames;

/// How a transposed convolution spreads its input; counts are time steps of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransposedShape {
    /// Taps of the filter.
    pub kernel: usize,
    /// Output steps from one input step to the next.
    pub stride: usize,
    /// Steps cut from the start of the full result.
    pub left: usize,
    /// Steps cut from its end.
    pub right: usize,
}

impl TransposedShape {
    /// Cut so that `n` input steps give exactly `n * stride` and none looks to the right.
    pub fn causal(kernel: usize, stride: usize) -> Self {
        Self { kernel, stride, left: 0, right: kernel.saturating_sub(stride) }
    }
}

/// See [`ConvTranspose1d::needed`].
pub(super) struct Needed {
    /// Steps of the input; those before the first and behind the last one are zeros.
    pub(super) inputs: Range<isize>,
    /// Steps of what comes out.
    pub(super) outputs: Range<usize>,
}

/// A transposed convolution, `[time, in]` to `[(time - 1) * stride + kernel - left - right, out]`.
///
/// The `stride` output steps that begin at input step `t` depend on the last `ceil(kernel / stride)` inputs only, so
/// the layer is a plain convolution of that many taps whose output rows hold `stride` steps each, side by side.
#[derive(Clone, Debug)]
pub struct ConvTranspose1d {
    conv: Conv1d,
    outputs: usize,
    shape: TransposedShape,
}

impl ConvTranspose1d {
    /// From a filter `[in, out, kernel]`; the kernel of `shape` must be the filter's.
    ///
    /// # Panics
    /// When the kernels differ: a caller's bug.
    pub fn new(filter: &Filter, shape: TransposedShape) -> Self {
        let [inputs, outputs, kernel] = filter.shape;
        let stride = shape.stride;
        assert_eq!(kernel, shape.kernel, "kernel of filter and shape differ; this is a bug");
        let taps = kernel.div_ceil(stride);
        let plain = ConvShape::causal(taps, 1, 1);
        let bias = filter.bias.repeat(stride);
        let conv = Conv1d::from_fn(bias, inputs, stride * outputs, plain, |tap, i, column| {
            let (phase, o) = (column / outputs, column % outputs);
            // The last tap is the newest input, whose spreading starts at this very row.
            let k = (taps - 1 - tap) * stride + phase;
            if k < kernel { filter.values[(i * outputs + o) * kernel + k] } else { 0.0 }
        });
        Self { conv, outputs, shape }
    }

    /// Values in an input row.
    pub fn inputs(&self) -> usize {
        self.conv.inputs()
    }

    /// Values in an output row.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Output steps of `time` input steps; none when more is cut than there is.
    pub fn steps(&self, time: usize) -> usize {
        let TransposedShape { kernel, stride, left, right } = self.shape;
        match time {
            0 => 0,
            time => ((time - 1) * stride + kernel).saturating_sub(left + right),
        }
    }

    /// The whole sound.
    pub fn forward(&self, input: &Frames) -> Frames {
        self.forward_range(input, 0..self.steps(input.time()))
    }

    /// Some steps of what [`ConvTranspose1d::forward`] gives.
    pub fn forward_range(&self, input: &Frames, range: Range<usize>) -> Frames {
        self.forward_range_of(range, |start, end| input.window(start, end))
    }

    /// [`ConvTranspose1d::forward_range`] of an input that `window` makes where it is needed: it gets the first and
    /// the last step (not included) and returns them, zeros where the input has none.
    pub fn forward_range_of(
        &self,
        range: Range<usize>,
        window: impl FnOnce(isize, isize) -> Frames,
    ) -> Frames {
        let Needed { inputs, outputs } = self.needed(range);
        let mut data =
            self.conv.forward_padded(&window(inputs.start, inputs.end), 0, 0).into_data();
        data.truncate(outputs.end * self.outputs);
        data.drain(..outputs.start * self.outputs);
        Frames::new(data, self.outputs)
    }

    /// State of a fresh stream: the last `ceil(kernel / stride) - 1` inputs, zeros.
    ///
    /// # Panics
    /// When the layer is not causal: a caller's bug.
    pub fn state(&self) -> ConvState {
        let causal = TransposedShape::causal(self.shape.kernel, self.shape.stride);
        assert_eq!(self.shape, causal, "only a causal layer streams; this is a bug");
        ConvState::fresh(self.context(), self.inputs())
    }

    /// The next piece of a stream: `[time, in]` to `[time * stride, out]`.
    pub fn step(&self, state: &mut ConvState, input: &Frames) -> Frames {
        Frames::new(self.conv.step(state, input).into_data(), self.outputs)
    }

    /// What output steps are made of, and where they lie in what the convolution makes of it.
    pub(super) fn needed(&self, range: Range<usize>) -> Needed {
        let stride = self.shape.stride;
        if range.is_empty() {
            return Needed { inputs: 0..0, outputs: 0..0 };
        }
        let (start, end) = (range.start + self.shape.left, range.end + self.shape.left);
        let (first, last) = (start / stride, end.div_ceil(stride));
        Needed {
            inputs: first as isize - self.context() as isize..last as isize,
            outputs: start - first * stride..end - first * stride,
        }
    }

    /// The kept output steps of each sound, of what they are made of.
    pub(super) fn only(&self, needed: &Sounds, kept: &[Range<usize>]) -> Sounds {
        let made = self.conv.forward_each(needed);
        let mut out = Sounds::none(self.outputs);
        for ((rows, ended), kept) in made.each().zip(kept) {
            let values = kept.start * self.outputs..kept.end * self.outputs;
            out.add(ended, |all| all.extend_rows(&rows[values]));
        }
        out
    }

    /// Output steps that no further input changes once `time` are there.
    pub(super) fn settled(&self, time: usize) -> usize {
        (time * self.shape.stride).saturating_sub(self.shape.left).min(self.steps(time))
    }

    /// The first input that the output steps from `step` on depend on.
    pub(super) fn first_input(&self, step: usize) -> usize {
        ((step + self.shape.left) / self.shape.stride).saturating_sub(self.context())
    }

    /// Earlier inputs that an output step may depend on.
    fn context(&self) -> usize {
        self.shape.kernel.div_ceil(self.shape.stride) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::testing::{assert_close, frames, in_pieces, noise};

    fn filter(inputs: usize, out: usize, kernel: usize, seed: u32) -> Filter {
        Filter {
            shape: [inputs, out, kernel],
            values: noise(out * inputs * kernel, seed),
            bias: noise(out, seed + 1),
        }
    }

    fn naive(filter: &Filter, shape: TransposedShape, input: &Frames) -> Frames {
        let [inputs, out, kernel] = filter.shape;
        let full = (input.time() - 1) * shape.stride + kernel;
        let mut values: Vec<f64> =
            (0..full * out).map(|i| f64::from(filter.bias[i % out])).collect();
        for t in 0..input.time() {
            for i in 0..inputs {
                for o in 0..out {
                    for k in 0..kernel {
                        let w = filter.values[(i * out + o) * kernel + k];
                        values[(t * shape.stride + k) * out + o] +=
                            f64::from(w) * f64::from(input.data()[t * inputs + i]);
                    }
                }
            }
        }
        let kept = &values[shape.left * out..(full - shape.right) * out];
        Frames::new(kept.iter().map(|&v| v as f32).collect(), out)
    }

    #[test]
    fn every_kernel_stride_and_cut_equals_the_plain_loop() {
        let mut seed = 1;
        for (kernel, stride, left, right) in
            [(4, 2, 1, 1), (16, 8, 4, 4), (10, 5, 3, 3), (10, 5, 0, 5), (7, 3, 0, 0), (3, 4, 0, 0)]
        {
            for time in [1, 2, 9] {
                let shape = TransposedShape { kernel, stride, left, right };
                let filter = filter(6, 5, kernel, seed);
                let input = frames(time, 6, seed + 2);
                let expected = naive(&filter, shape, &input);
                let layer = ConvTranspose1d::new(&filter, shape);
                let got = layer.forward(&input);
                assert_close(&format!("{shape:?}"), &got, &expected);
                let middle = expected.time() / 3..expected.time() * 2 / 3;
                let part = layer.forward_range(&input, middle.clone());
                assert_close("part", &part, &expected.slice(middle));
                seed += 3;
            }
        }
    }

    #[test]
    fn causal_pieces_equal_the_whole_with_one_input_of_state() {
        for (kernel, stride) in [(16, 8), (10, 5), (4, 2)] {
            let shape = TransposedShape::causal(kernel, stride);
            let layer = ConvTranspose1d::new(&filter(7, 3, kernel, 4), shape);
            let input = frames(23, 7, 6);
            let mut state = layer.state();
            let pieces = in_pieces(&input, |piece| {
                let out = layer.step(&mut state, piece);
                assert_eq!(state.values(), 7);
                out
            });
            assert_eq!(pieces.time(), 23 * stride);
            assert_close("pieces", &pieces, &layer.forward(&input));
        }
    }

    #[test]
    fn cutting_more_than_there_is_leaves_nothing() {
        let shape = TransposedShape { kernel: 4, stride: 2, left: 5, right: 1 };
        let layer = ConvTranspose1d::new(&filter(2, 3, 4, 1), shape);
        assert_eq!(layer.forward(&frames(1, 2, 1)).time(), 0);
        assert_eq!(layer.forward(&frames(0, 2, 1)).time(), 0);
    }
}
