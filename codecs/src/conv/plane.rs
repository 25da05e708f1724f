//! Convolution over time and a second axis, such as the bands of a spectrum.

use super::Filter;
use super::matmul::{Matrix, Taps};
use super::plain::add_bias;
use crate::frames::Frames;

/// How a convolution walks a plane; the same along both axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneShape {
    /// Places of the input along the second axis.
    pub rows: usize,
    /// Taps along each axis.
    pub kernel: usize,
    /// Input places from one output place to the next.
    pub stride: usize,
    /// Zeros on every side.
    pub pad: usize,
}

impl PlaneShape {
    /// Output places of `places` input places, along either axis; none where the padded input is shorter than the kernel.
    pub fn steps(&self, places: usize) -> usize {
        (places + 2 * self.pad + self.stride).saturating_sub(self.kernel) / self.stride
    }
}

/// A convolution over a plane. A time step holds the values of its places one after the other, `[rows, in]`.
#[derive(Clone, Debug)]
pub struct Conv2d {
    matrix: Matrix,
    bias: Vec<f32>,
    inputs: usize,
    shape: PlaneShape,
}

impl Conv2d {
    /// From a filter `[out, in, kernel * kernel]`: for each tap of the second axis those of time.
    ///
    /// # Panics
    /// When the kernels of filter and shape differ: a caller's bug.
    pub fn new(filter: &Filter, shape: PlaneShape) -> Self {
        let [out, inputs, taps] = filter.shape;
        let kernel = shape.kernel;
        assert_eq!(taps, kernel * kernel, "kernel of filter and shape differ; this is a bug");
        // The taps of one time step lie side by side, those of the next one a whole step further.
        let width = kernel * inputs;
        let runs = Taps { taps: kernel, width, tap_stride: (shape.rows + 2 * shape.pad) * inputs };
        let matrix = Matrix::from_fn(runs, out, |at, o| {
            let (time, row, i) = (at / width, at % width / inputs, at % inputs);
            filter.values[(o * inputs + i) * taps + row * kernel + time]
        });
        Self { matrix, bias: filter.bias.clone(), inputs, shape }
    }

    /// Values of a place that comes out.
    pub fn outputs(&self) -> usize {
        self.matrix.columns()
    }

    /// Places of a time step that goes in.
    pub fn rows_in(&self) -> usize {
        self.shape.rows
    }

    /// Places of a time step that comes out.
    pub fn rows_out(&self) -> usize {
        self.shape.steps(self.shape.rows)
    }

    /// The whole plane: `[time, rows * in]` to `[steps, rows_out * out]`.
    ///
    /// # Panics
    /// When a time step of the input has another width: a caller's bug.
    pub fn forward(&self, input: &Frames) -> Frames {
        let PlaneShape { rows, stride, pad, .. } = self.shape;
        assert_eq!(input.channels(), rows * self.inputs, "input of another width; this is a bug");
        let step = (rows + 2 * pad) * self.inputs;
        let mut padded = Vec::with_capacity((input.time() + 2 * pad) * step);
        padded.resize(pad * step, 0.0);
        for row in input.rows() {
            padded.resize(padded.len() + pad * self.inputs, 0.0);
            padded.extend_from_slice(row);
            padded.resize(padded.len() + pad * self.inputs, 0.0);
        }
        padded.resize(padded.len() + pad * step, 0.0);
        let mut out =
            Frames::zeros(self.shape.steps(input.time()), self.rows_out() * self.outputs());
        add_bias(&self.bias, out.data_mut());
        let places = self.rows_out();
        let mut starts = (0..out.time())
            .flat_map(|t| (0..places).map(move |place| stride * (t * step + place * self.inputs)));
        self.matrix.add_product(&padded, &mut starts, out.data_mut());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::testing::{assert_close, frames, noise};

    /// The formula, value by value.
    fn plain(filter: &Filter, shape: PlaneShape, input: &Frames) -> Frames {
        let [outputs, inputs, _] = filter.shape;
        let (steps, rows) = (shape.steps(input.time()), shape.steps(shape.rows));
        let mut out = Frames::zeros(steps, rows * outputs);
        let value = |t: usize, row: usize, i: usize| {
            let inside = |at: usize, most: usize| at.checked_sub(shape.pad).filter(|&at| at < most);
            let (t, row) = (inside(t, input.time())?, inside(row, shape.rows)?);
            Some(input.data()[t * input.channels() + row * inputs + i])
        };
        for (t, step) in out.rows_mut().enumerate() {
            for (at, y) in step.iter_mut().enumerate() {
                let (row, o) = (at / outputs, at % outputs);
                *y = filter.bias.get(o).copied().unwrap_or(0.0);
                for (tap_row, tap_time) in
                    (0..shape.kernel).flat_map(|r| (0..shape.kernel).map(move |t| (r, t)))
                {
                    for i in 0..inputs {
                        let tap = tap_row * shape.kernel + tap_time;
                        let weight =
                            filter.values[(o * inputs + i) * shape.kernel * shape.kernel + tap];
                        let (t, row) = (t * shape.stride + tap_time, row * shape.stride + tap_row);
                        *y += weight * value(t, row, i).unwrap_or(0.0);
                    }
                }
            }
        }
        out
    }

    #[test]
    fn every_shape_follows_the_formula() {
        for (inputs, outputs, shape) in [
            (1, 5, PlaneShape { rows: 8, kernel: 3, stride: 2, pad: 1 }),
            (3, 17, PlaneShape { rows: 7, kernel: 3, stride: 2, pad: 1 }),
            (2, 4, PlaneShape { rows: 5, kernel: 3, stride: 1, pad: 0 }),
            (2, 1, PlaneShape { rows: 6, kernel: 1, stride: 3, pad: 2 }),
        ] {
            let values = noise(outputs * inputs * shape.kernel * shape.kernel, 3);
            let filter = Filter {
                shape: [outputs, inputs, shape.kernel * shape.kernel],
                values,
                bias: noise(outputs, 4),
            };
            let conv = Conv2d::new(&filter, shape);
            for time in [1, 2, 5, 8] {
                let input = frames(time, shape.rows * inputs, 5);
                assert_close("plane", &conv.forward(&input), &plain(&filter, shape, &input));
            }
        }
    }

    #[test]
    fn nothing_in_is_nothing_out() {
        let shape = PlaneShape { rows: 4, kernel: 3, stride: 2, pad: 1 };
        let filter = Filter { shape: [2, 1, 9], values: noise(18, 1), bias: noise(2, 2) };
        assert_eq!(Conv2d::new(&filter, shape).forward(&Frames::zeros(0, 4)).time(), 0);
    }
}
