//! The one product behind every layer: rows taken from time-major activations times a matrix of weights.
//!
//! A convolution is a product whose rows overlap: each output step needs `taps` runs of `width` values, and in
//! time-major data those runs already lie in memory at fixed distances. [`Taps`] states the distances, so no
//! patch matrix is ever built. The weights are packed once, when the layer is made, in the order in which they are
//! read; a general matrix product packs them at every call, which a stream of short pieces cannot afford. It
//! knows nothing of padding; a layer pads its input.
//!
//! ```text
//! weights [depth, columns]          panel 0   panel 1   ..          16 columns each, all rows of one after the other
//!   row 0    w w w w .. w w w w  -> wwww..    wwww..
//!   row 1    w w w w .. w w w w     wwww..    wwww..
//! ```

use super::vector::{self, Vector};

/// Columns of a panel: two vector registers.
const LANES: usize = 2 * vector::WIDTH;
/// Rows worked on together: with two registers each, twelve of the sixteen registers hold sums.
const ROWS: usize = 6;
/// Weight rows worked on at a time: 16 KiB of a panel, half a first-level cache.
const DEPTH: usize = 256;
/// Output rows worked on before the next weights are read: with [`DEPTH`] inputs each, half a second-level cache.
const BLOCK_ROWS: usize = 504;

/// Where the input values of one output row lie: `taps` runs of `width` values, `tap_stride` from start to start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taps {
    pub(super) taps: usize,
    pub(super) width: usize,
    pub(super) tap_stride: usize,
}

impl Taps {
    /// One run: the input of a linear layer.
    pub(super) fn one(width: usize) -> Self {
        Self { taps: 1, width, tap_stride: width }
    }

    fn depth(&self) -> usize {
        self.taps * self.width
    }

    fn span(&self) -> usize {
        (self.taps - 1) * self.tap_stride + self.width
    }

    /// The runs of a row, cut and grouped so that no group needs more than [`DEPTH`] weight rows.
    fn groups(&self) -> Vec<Vec<Run>> {
        // Taps that follow one another without a gap are one run.
        let (taps, width) = match self.tap_stride == self.width {
            true => (1, self.taps * self.width),
            false => (self.taps, self.width),
        };
        let (mut groups, mut depth) = (vec![Vec::new()], 0);
        for tap in 0..taps {
            for start in (0..width).step_by(DEPTH) {
                let length = (width - start).min(DEPTH);
                if depth + length > DEPTH {
                    groups.push(Vec::new());
                    depth = 0;
                }
                depth += length;
                let run = Run { offset: tap * self.tap_stride + start, length };
                groups.last_mut().expect("begins with one; this is a bug").push(run);
            }
        }
        groups
    }
}

/// Neighbouring input values that meet neighbouring weight rows.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// From the first value of the output row.
    offset: usize,
    length: usize,
}

fn depth_of(group: &[Run]) -> usize {
    group.iter().map(|run| run.length).sum()
}

/// One weight row of a panel, aligned so that no register load crosses a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Lanes([[f32; vector::WIDTH]; 2]);

/// Weights `[depth, columns]`, packed: group by group, panel by panel, row by row.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    taps: Taps,
    groups: Vec<Vec<Run>>,
    columns: usize,
    weights: Vec<Lanes>,
}

impl Matrix {
    /// From the weight of each row and column; row `k * width + c` meets value `c` of tap `k`.
    pub(super) fn from_fn(taps: Taps, columns: usize, value: impl Fn(usize, usize) -> f32) -> Self {
        let groups = taps.groups();
        let mut weights = Vec::with_capacity(columns.div_ceil(LANES) * taps.depth());
        let mut first = 0;
        for group in &groups {
            let rows = first..first + depth_of(group);
            first = rows.end;
            for start in (0..columns).step_by(LANES) {
                weights.extend(rows.clone().map(|row| {
                    let lane = |lane| match start + lane {
                        column if column < columns => value(row, column),
                        _ => 0.0,
                    };
                    Lanes(std::array::from_fn(|half| {
                        std::array::from_fn(|i| lane(half * vector::WIDTH + i))
                    }))
                }));
            }
        }
        Self { taps, groups, columns, weights }
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Adds the product to `out`, `[rows, columns]`; the input of row `t` begins at `t * row_stride`.
    /// A row's sums are made in one fixed order, so its result does not depend on the rows beside it.
    pub(super) fn add_product(&self, input: &[f32], row_stride: usize, out: &mut [f32]) {
        let rows = out.len() / self.columns;
        assert_eq!(rows * self.columns, out.len(), "output is not whole rows; this is a bug");
        let span = rows.saturating_sub(1) * row_stride + self.taps.span();
        assert!(rows == 0 || span <= input.len(), "the input is too short; this is a bug");
        let panels = self.columns.div_ceil(LANES);
        for (i, out) in out.chunks_mut(BLOCK_ROWS * self.columns).enumerate() {
            let input = &input[i * BLOCK_ROWS * row_stride..];
            let mut weights = self.weights.as_slice();
            for runs in &self.groups {
                let depth = depth_of(runs);
                let (group, rest) = weights.split_at(panels * depth);
                for (p, weights) in group.chunks_exact(depth).enumerate() {
                    let part = Part { input, row_stride, runs, weights };
                    part.add_to(out, self.columns, p * LANES);
                }
                weights = rest;
            }
        }
    }
}

/// Some rows of the input, some weight rows of one panel.
struct Part<'a> {
    input: &'a [f32],
    row_stride: usize,
    runs: &'a [Run],
    weights: &'a [Lanes],
}

impl Part<'_> {
    /// Adds to the columns of the panel, from `first` on, in rows of `columns` values.
    fn add_to(&self, out: &mut [f32], columns: usize, first: usize) {
        let (mut row, total) = (0, out.len() / columns);
        while row < total {
            // Parts as equal as can be: a part of one or two rows would leave most of the registers idle.
            let left = total - row;
            let count = left.div_ceil(left.div_ceil(ROWS));
            let rows = &mut out[row * columns..(row + count) * columns];
            match count {
                6 => self.add_rows::<6>(row, rows, columns, first),
                5 => self.add_rows::<5>(row, rows, columns, first),
                4 => self.add_rows::<4>(row, rows, columns, first),
                3 => self.add_rows::<3>(row, rows, columns, first),
                2 => self.add_rows::<2>(row, rows, columns, first),
                _ => self.add_rows::<1>(row, rows, columns, first),
            }
            row += count;
        }
    }

    fn add_rows<const R: usize>(&self, row: usize, out: &mut [f32], columns: usize, first: usize) {
        let sums = self.sums::<R>(row);
        for (sums, out) in sums.iter().zip(out.chunks_exact_mut(columns)) {
            let sums = sums.map(Vector::values);
            for (y, sum) in out[first..].iter_mut().zip(sums.as_flattened()) {
                *y += sum;
            }
        }
    }

    /// The innermost loop: the sums stay in registers, and each weight row that is loaded serves `R` rows.
    fn sums<const R: usize>(&self, row: usize) -> [[Vector; 2]; R] {
        let mut sums = [[Vector::zero(); 2]; R];
        let mut weights = self.weights;
        for run in self.runs {
            let (here, rest) = weights.split_at(run.length);
            let inputs: [&[f32]; R] = std::array::from_fn(|r| {
                &self.input[(row + r) * self.row_stride + run.offset..][..run.length]
            });
            // Eight weight rows at a time, so that the bounds of the rows are checked once for all eight.
            let (whole, last) = here.as_chunks::<8>();
            let chunks = inputs.map(|x| x.as_chunks::<8>().0);
            for (i, weights) in whole.iter().enumerate() {
                let x: [&[f32; 8]; R] = std::array::from_fn(|r| &chunks[r][i]);
                for (d, weights) in weights.iter().enumerate() {
                    add_row(&mut sums, weights, x.map(|x| x[d]));
                }
            }
            for (i, weights) in last.iter().enumerate() {
                add_row(&mut sums, weights, inputs.map(|x| x[whole.len() * 8 + i]));
            }
            weights = rest;
        }
        sums
    }
}

#[inline(always)]
fn add_row<const R: usize>(sums: &mut [[Vector; 2]; R], weights: &Lanes, x: [f32; R]) {
    let [low, high] = &weights.0;
    let (low, high) = (Vector::load(low), Vector::load(high));
    for (sums, x) in sums.iter_mut().zip(x) {
        sums[0] = sums[0].add_product(x, low);
        sums[1] = sums[1].add_product(x, high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::testing::noise;

    /// Single precision over sums of up to a thousand products of values below 1.
    const TOLERANCE: f64 = 1e-4;

    #[test]
    fn every_split_of_rows_depth_and_columns_equals_the_plain_loop() {
        for (taps, width, gap, columns) in
            [(1, 1, 0, 1), (1, 700, 0, 40), (3, 300, 0, 17), (7, 48, 24, 16), (4, 257, 3, 33)]
        {
            let taps = Taps { taps, width, tap_stride: width + gap };
            let weights = noise(taps.depth() * columns, 1);
            let matrix = Matrix::from_fn(taps, columns, |r, c| weights[r * columns + c]);
            for rows in [0, 1, 5, 6, 7, 13, BLOCK_ROWS + 8] {
                let row_stride = 3;
                let input = noise(rows * row_stride + taps.span(), 2);
                let mut out = vec![1.0; rows * columns];
                matrix.add_product(&input, row_stride, &mut out);
                for (i, &got) in out.iter().enumerate() {
                    let (row, column) = (i / columns, i % columns);
                    let mut expected = 1.0;
                    for d in 0..taps.depth() {
                        let (tap, value) = (d / width, d % width);
                        let at = row * row_stride + tap * taps.tap_stride + value;
                        expected += f64::from(input[at]) * f64::from(weights[d * columns + column]);
                    }
                    let error = (f64::from(got) - expected).abs();
                    assert!(error < TOLERANCE, "{taps:?}, {rows} rows, value {i}: off by {error}");
                }
            }
        }
    }

    #[test]
    fn a_row_comes_out_bit_for_bit_the_same_beside_any_others() {
        let (width, columns) = (300, 20);
        let weights = noise(width * columns, 1);
        let matrix = Matrix::from_fn(Taps::one(width), columns, |r, c| weights[r * columns + c]);
        let input = noise(17 * width, 2);
        let mut together = vec![0.0; 17 * columns];
        matrix.add_product(&input, width, &mut together);
        for (row, expected) in together.chunks_exact(columns).enumerate() {
            let mut alone = vec![0.0; columns];
            matrix.add_product(&input[row * width..(row + 1) * width], width, &mut alone);
            assert_eq!(alone, expected);
        }
    }
}
