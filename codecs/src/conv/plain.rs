//! Linear layer and plain convolution.

use super::matmul::{Matrix, Taps};
use super::{ConvState, Filter, Sounds};
use crate::frames::Frames;

/// A linear layer on each row: `y = W x + b`.
#[derive(Clone, Debug)]
pub struct Linear {
    matrix: Matrix,
    bias: Vec<f32>,
    inputs: usize,
}

impl Linear {
    /// From a filter `[out, in, 1]`.
    ///
    /// # Panics
    /// When the filter has more than one tap: a caller's bug.
    pub fn new(filter: &Filter) -> Self {
        let [out, inputs, taps] = filter.shape;
        assert_eq!(taps, 1, "a linear layer has one tap; this is a bug");
        let matrix = Matrix::from_fn(Taps::one(inputs), out, |i, o| filter.values[o * inputs + i]);
        Self { matrix, bias: filter.bias.clone(), inputs }
    }

    /// Values in an input row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Values in an output row.
    pub fn outputs(&self) -> usize {
        self.matrix.columns()
    }

    /// The weights of an output, one for each input.
    pub(crate) fn weights_of(&self, output: usize) -> impl Iterator<Item = f32> {
        self.matrix.column(output)
    }

    /// The layer on every row: `[time, in]` to `[time, out]`.
    pub fn forward(&self, input: &Frames) -> Frames {
        let mut out = Frames::zeros(input.time(), self.outputs());
        self.add_rows(input.data(), out.data_mut());
        out
    }

    /// Adds the layer's result on rows `[time, in]` to rows `[time, out]`.
    ///
    /// # Panics
    /// When the two do not hold the same number of rows: a caller's bug.
    pub fn add_rows(&self, input: &[f32], out: &mut [f32]) {
        assert_eq!(
            input.len() / self.inputs,
            out.len() / self.outputs(),
            "input and output of other lengths; this is a bug"
        );
        add_bias(&self.bias, out);
        self.matrix.add_product(input, &mut (0..).step_by(self.inputs), out);
    }
}

pub(super) fn add_bias(bias: &[f32], out: &mut [f32]) {
    if !bias.is_empty() {
        for row in out.chunks_exact_mut(bias.len()) {
            for (y, b) in row.iter_mut().zip(bias) {
                *y += b;
            }
        }
    }
}

/// How a convolution walks its input; all counts are time steps of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// Taps of the filter.
    pub kernel: usize,
    /// Input steps from one output step to the next.
    pub stride: usize,
    /// Input steps from one tap to the next.
    pub dilation: usize,
    /// Zeros before the input.
    pub left: usize,
    /// Zeros after the input.
    pub right: usize,
}

impl ConvShape {
    /// As many zeros on both sides as keep the length (odd kernel, stride 1).
    pub fn centred(kernel: usize, dilation: usize) -> Self {
        let side = (kernel - 1) * dilation / 2;
        Self { kernel, stride: 1, dilation, left: side, right: side }
    }

    /// No look to the right: output step `i` sees the input up to `(i + 1) * stride - 1`.
    pub fn causal(kernel: usize, stride: usize, dilation: usize) -> Self {
        let left = ((kernel - 1) * dilation + 1).saturating_sub(stride);
        Self { kernel, stride, dilation, left, right: 0 }
    }

    /// Output steps of `time` input steps.
    pub fn steps(&self, time: usize) -> usize {
        self.steps_padded(self.left + time + self.right)
    }

    fn steps_padded(&self, time: usize) -> usize {
        (time + self.stride).saturating_sub(self.reach()) / self.stride
    }

    fn reach(&self) -> usize {
        (self.kernel - 1) * self.dilation + 1
    }

    fn is_causal(&self) -> bool {
        *self == Self::causal(self.kernel, self.stride, self.dilation)
    }
}

/// A convolution over time, `[time, in]` to `[steps, out]`.
#[derive(Clone, Debug)]
pub struct Conv1d {
    matrix: Matrix,
    bias: Vec<f32>,
    inputs: usize,
    shape: ConvShape,
}

impl Conv1d {
    /// From a filter `[out, in, kernel]`; the kernel of `shape` must be the filter's.
    ///
    /// # Panics
    /// When the kernels differ: a caller's bug.
    pub fn new(filter: &Filter, shape: ConvShape) -> Self {
        let [out, inputs, kernel] = filter.shape;
        assert_eq!(kernel, shape.kernel, "kernel of filter and shape differ; this is a bug");
        Self::from_fn(filter.bias.clone(), inputs, out, shape, |tap, i, o| {
            filter.values[(o * inputs + i) * kernel + tap]
        })
    }

    /// From the weight of each tap, input and output.
    pub(super) fn from_fn(
        bias: Vec<f32>,
        inputs: usize,
        outputs: usize,
        shape: ConvShape,
        weight: impl Fn(usize, usize, usize) -> f32,
    ) -> Self {
        let taps = Taps { taps: shape.kernel, width: inputs, tap_stride: shape.dilation * inputs };
        let matrix = Matrix::from_fn(taps, outputs, |row, o| weight(row / inputs, row % inputs, o));
        Self { matrix, bias, inputs, shape }
    }

    /// Values in an input row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Values in an output row.
    pub fn outputs(&self) -> usize {
        self.matrix.columns()
    }

    /// The whole sound: `[time, in]` to `[(left + time + right - reach) / stride + 1, out]`, where `reach` is
    /// `(kernel - 1) * dilation + 1`; nothing when the padded input is shorter than that.
    pub fn forward(&self, input: &Frames) -> Frames {
        self.forward_padded(input, self.shape.left, self.shape.right)
    }

    /// [`Conv1d::forward`] with other counts of zeros, for layers whose padding depends on the length.
    pub fn forward_padded(&self, input: &Frames, left: usize, right: usize) -> Frames {
        if left + right == 0 {
            return self.convolve(input);
        }
        self.convolve(&input.padded(left, right))
    }

    /// Adds what [`Conv1d::forward`] gives to `out`: a residual connection without a second matrix.
    ///
    /// # Panics
    /// When `out` has another shape than the result: a caller's bug.
    pub fn add_to(&self, input: &Frames, out: &mut Frames) {
        if self.shape.left + self.shape.right == 0 {
            return self.add_convolved(input, out);
        }
        self.add_convolved(&input.padded(self.shape.left, self.shape.right), out);
    }

    /// State of a fresh stream: [`ConvShape::causal`]'s zeros.
    ///
    /// # Panics
    /// When the layer is not causal: a caller's bug.
    pub fn state(&self) -> ConvState {
        assert!(self.shape.is_causal(), "only a causal layer streams; this is a bug");
        ConvState::fresh(self.shape.left, self.inputs)
    }

    /// The next piece of a stream: `[time, in]` to `[time / stride, out]`.
    ///
    /// # Panics
    /// When `input` is not a multiple of the stride: a caller's bug.
    pub fn step(&self, state: &mut ConvState, input: &Frames) -> Frames {
        assert!(
            input.time().is_multiple_of(self.shape.stride),
            "a piece must be whole strides; this is a bug"
        );
        self.convolve(&state.extend(input))
    }

    /// The layer on what it sees of each sound, nothing padded: `reach - 1` steps less of each where the stride is 1.
    ///
    /// # Panics
    /// When the sounds have another width: a caller's bug.
    pub fn forward_each(&self, seen: &Sounds) -> Sounds {
        assert_eq!(seen.channels(), self.inputs, "input of another width; this is a bug");
        let (mut places, mut first) = (Vec::new(), 0);
        for (rows, ended) in seen.each() {
            let time = rows.len() / self.inputs;
            places.push((first, self.shape.steps_padded(time), ended));
            first += time;
        }
        let steps = places.iter().map(|(_, steps, _)| steps).sum();
        let mut out = Frames::zeros(steps, self.outputs());
        add_bias(&self.bias, out.data_mut());
        let mut starts = places.iter().flat_map(|&(first, steps, _)| {
            (0..steps).map(move |step| (first + step * self.shape.stride) * self.inputs)
        });
        self.matrix.add_product(seen.rows().data(), &mut starts, out.data_mut());
        Sounds::of(out, places.into_iter().map(|(_, steps, ended)| (steps, ended)))
    }

    fn convolve(&self, padded: &Frames) -> Frames {
        let mut out = Frames::zeros(self.shape.steps_padded(padded.time()), self.outputs());
        self.add_convolved(padded, &mut out);
        out
    }

    fn add_convolved(&self, padded: &Frames, out: &mut Frames) {
        assert_eq!(padded.channels(), self.inputs, "input of another width; this is a bug");
        assert_eq!(
            out.time(),
            self.shape.steps_padded(padded.time()),
            "output of another length; this is a bug"
        );
        add_bias(&self.bias, out.data_mut());
        let mut starts = (0..).step_by(self.shape.stride * self.inputs);
        self.matrix.add_product(padded.data(), &mut starts, out.data_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::testing::{assert_close, frames, in_pieces, noise};

    fn filter(out: usize, inputs: usize, kernel: usize, seed: u32) -> Filter {
        let scale = 1.0 / (inputs * kernel) as f32;
        Filter {
            shape: [out, inputs, kernel],
            values: noise(out * inputs * kernel, seed).iter().map(|v| v * scale.sqrt()).collect(),
            bias: noise(out, seed + 1),
        }
    }

    fn naive(filter: &Filter, shape: ConvShape, input: &Frames) -> Frames {
        let [out, inputs, kernel] = filter.shape;
        let padded = input.padded(shape.left, shape.right);
        let reach = (kernel - 1) * shape.dilation + 1;
        let mut values = Vec::new();
        let mut start = 0;
        while start + reach <= padded.time() {
            for o in 0..out {
                let mut total = f64::from(filter.bias.get(o).copied().unwrap_or(0.0));
                for k in 0..kernel {
                    for i in 0..inputs {
                        let x = padded.data()[(start + k * shape.dilation) * inputs + i];
                        let w = filter.values[(o * inputs + i) * kernel + k];
                        total += f64::from(x) * f64::from(w);
                    }
                }
                values.push(total as f32);
            }
            start += shape.stride;
        }
        Frames::new(values, out)
    }

    #[test]
    fn every_stride_dilation_and_padding_equals_the_plain_loop() {
        let mut seed = 1;
        for (kernel, stride, dilation) in
            [(7, 1, 1), (7, 1, 3), (7, 1, 9), (4, 2, 1), (16, 8, 1), (1, 1, 1), (3, 2, 2)]
        {
            for (left, right) in [(0, 0), (3, 3), (6, 0), (1, 2)] {
                for (inputs, out, time) in [(1, 5, 70), (17, 9, 64), (48, 33, 57)] {
                    let shape = ConvShape { kernel, stride, dilation, left, right };
                    let filter = filter(out, inputs, kernel, seed);
                    let input = frames(time, inputs, seed + 2);
                    let got = Conv1d::new(&filter, shape).forward(&input);
                    assert_close(&format!("{shape:?}"), &got, &naive(&filter, shape, &input));
                    seed += 3;
                }
            }
        }
    }

    #[test]
    fn an_input_shorter_than_the_kernel_gives_nothing() {
        let conv = Conv1d::new(
            &filter(2, 3, 4, 1),
            ConvShape { kernel: 4, stride: 2, dilation: 1, left: 0, right: 0 },
        );
        for time in 0..4 {
            assert_eq!(conv.forward(&frames(time, 3, 2)).time(), 0);
        }
        assert_eq!(conv.forward(&frames(4, 3, 2)).time(), 1);
    }

    #[test]
    fn causal_pieces_equal_the_whole_and_the_state_never_grows() {
        for (kernel, dilation) in [(7, 1), (3, 4), (1, 1)] {
            let shape = ConvShape::causal(kernel, 1, dilation);
            let conv = Conv1d::new(&filter(6, 4, kernel, 9), shape);
            let input = frames(41, 4, 5);
            let mut state = conv.state();
            let pieces = in_pieces(&input, |piece| {
                let out = conv.step(&mut state, piece);
                assert_eq!(state.values(), (kernel - 1) * dilation * 4);
                out
            });
            assert_close("pieces", &pieces, &conv.forward(&input));
        }
    }

    #[test]
    fn causal_strided_pieces_equal_the_whole() {
        let conv = Conv1d::new(&filter(6, 4, 8, 3), ConvShape::causal(8, 4, 1));
        let input = frames(40, 4, 5);
        let mut state = conv.state();
        let mut data = Vec::new();
        for range in [0..4, 4..16, 16..40] {
            data.extend(conv.step(&mut state, &input.slice(range)).into_data());
        }
        assert_close("pieces", &Frames::new(data, 6), &conv.forward(&input));
    }

    #[test]
    fn adding_to_a_residual_equals_forward_and_sum() {
        let conv = Conv1d::new(&filter(5, 5, 7, 3), ConvShape::centred(7, 3));
        let input = frames(30, 5, 5);
        let mut sum = conv.forward(&input);
        sum.add(&input);
        let mut residual = input.clone();
        conv.add_to(&input, &mut residual);
        assert_close("residual", &residual, &sum);
    }

    #[test]
    fn linear_is_a_convolution_of_one_tap() {
        let filter = filter(19, 23, 1, 4);
        let input = frames(11, 23, 8);
        let expected = Conv1d::new(&filter, ConvShape::centred(1, 1)).forward(&input);
        assert_close("linear", &Linear::new(&filter).forward(&input), &expected);
    }
}
