//! Depthwise convolution: each channel has its own filter and sees no other.

use super::{ConvState, Filter};
use crate::frames::Frames;

/// A depthwise convolution of stride 1, `[time, channels]` to `[left + time + right - kernel + 1, channels]`.
#[derive(Clone, Debug)]
pub struct DepthwiseConv1d {
    /// `[kernel, channels]`, so that one tap is one run of channels.
    taps: Vec<f32>,
    bias: Vec<f32>,
    channels: usize,
    left: usize,
    right: usize,
}

impl DepthwiseConv1d {
    /// From a filter `[channels, 1, kernel]` with `left` zeros before the input and `right` after.
    ///
    /// # Panics
    /// When the filter's second axis is not 1: a caller's bug.
    pub fn new(filter: &Filter, left: usize, right: usize) -> Self {
        let [channels, group, kernel] = filter.shape;
        assert_eq!(group, 1, "a depthwise filter has one input channel; this is a bug");
        let taps = (0..kernel * channels)
            .map(|i| filter.values[(i % channels) * kernel + i / channels])
            .collect();
        let bias = if filter.bias.is_empty() { vec![0.0; channels] } else { filter.bias.clone() };
        Self { taps, bias, channels, left, right }
    }

    /// From a filter `[channels, 1, kernel]`, with no look to the right.
    pub fn causal(filter: &Filter) -> Self {
        Self::new(filter, filter.shape[2] - 1, 0)
    }

    /// The whole sound.
    pub fn forward(&self, input: &Frames) -> Frames {
        self.convolve(&input.padded(self.left, self.right))
    }

    /// State of a fresh stream: `kernel - 1` rows of zeros.
    ///
    /// # Panics
    /// When the layer is not causal: a caller's bug.
    pub fn state(&self) -> ConvState {
        assert!(
            self.right == 0 && self.left + 1 == self.kernel(),
            "only a causal layer streams; this is a bug"
        );
        ConvState::fresh(self.left, self.channels)
    }

    /// The next piece of a stream, `[time, channels]` to the same shape.
    pub fn step(&self, state: &mut ConvState, input: &Frames) -> Frames {
        self.convolve(&state.extend(input))
    }

    fn kernel(&self) -> usize {
        self.taps.len() / self.channels
    }

    fn convolve(&self, padded: &Frames) -> Frames {
        assert_eq!(padded.channels(), self.channels, "input of another width; this is a bug");
        let steps = (padded.time() + 1).saturating_sub(self.kernel());
        let mut out = Vec::with_capacity(steps * self.channels);
        for step in 0..steps {
            out.extend_from_slice(&self.bias);
            let row = &mut out[step * self.channels..];
            let window = &padded.data()[step * self.channels..];
            for (tap, x) in
                self.taps.chunks_exact(self.channels).zip(window.chunks_exact(self.channels))
            {
                for ((y, w), x) in row.iter_mut().zip(tap).zip(x) {
                    *y = w.mul_add(*x, *y);
                }
            }
        }
        Frames::new(out, self.channels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::testing::{assert_close, frames, in_pieces, noise};

    fn filter(channels: usize, kernel: usize, bias: bool) -> Filter {
        Filter {
            shape: [channels, 1, kernel],
            values: noise(channels * kernel, 3),
            bias: if bias { noise(channels, 4) } else { Vec::new() },
        }
    }

    #[test]
    fn every_padding_equals_the_plain_loop() {
        for (channels, kernel, left, right, bias) in
            [(5, 7, 6, 0, true), (5, 7, 3, 3, false), (16, 31, 30, 0, false), (3, 2, 0, 0, true)]
        {
            let filter = filter(channels, kernel, bias);
            let input = frames(40, channels, 7);
            let padded = input.padded(left, right);
            let mut expected = Vec::new();
            for t in 0..padded.time() + 1 - kernel {
                for c in 0..channels {
                    let sum: f64 = (0..kernel)
                        .map(|k| {
                            f64::from(padded.data()[(t + k) * channels + c])
                                * f64::from(filter.values[c * kernel + k])
                        })
                        .sum();
                    let bias = f64::from(filter.bias.get(c).copied().unwrap_or(0.0));
                    expected.push((sum + bias) as f32);
                }
            }
            let got = DepthwiseConv1d::new(&filter, left, right).forward(&input);
            assert_close("depthwise", &got, &Frames::new(expected, channels));
        }
    }

    #[test]
    fn causal_pieces_equal_the_whole() {
        let layer = DepthwiseConv1d::causal(&filter(9, 7, true));
        let input = frames(37, 9, 2);
        let mut state = layer.state();
        let pieces = in_pieces(&input, |piece| {
            let out = layer.step(&mut state, piece);
            assert_eq!(state.values(), 6 * 9);
            out
        });
        assert_close("pieces", &pieces, &layer.forward(&input));
    }
}
