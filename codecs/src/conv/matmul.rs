//! The one product behind every layer: rows taken from time-major activations times a matrix of weights.
//!
//! A convolution is a product whose rows overlap: each output step needs `taps` runs of `width` values, and in
//! time-major data those runs already lie in memory at fixed distances. [`Taps`] states the distances, so no
//! patch matrix is ever built. Rows may begin anywhere, so that those of several sounds, or of a picture, make one
//! product. The weights are packed once, when the layer is made, in the order in which they are read; a general matrix
//! product packs them at every call, which a stream of short pieces cannot afford. It knows nothing of padding; a layer
//! pads its input.
//!
//! ```text
//! weights [depth, columns]          panel 0   panel 1   ..          16 columns each, all rows of one after the other
//!   row 0    w w w w .. w w w w  -> wwww..    wwww..
//!   row 1    w w w w .. w w w w     wwww..    wwww..
//! ```

use crate::vector::{self, LANES, Vector, Work};

/// Weight rows worked on at a time: two panels of them fill two thirds of a first-level cache of 48 KiB.
const DEPTH: usize = 256;
/// Output rows worked on before the next weights are read: with [`DEPTH`] inputs each, half a second-level cache. A multiple
/// of the rows of either form of a vector.
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
struct Lanes([f32; LANES]);

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
                    Lanes(std::array::from_fn(|lane| match start + lane {
                        column if column < columns => value(row, column),
                        _ => 0.0,
                    }))
                }));
            }
        }
        Self { taps, groups, columns, weights }
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// The weights of a column, row by row.
    pub(super) fn column(&self, column: usize) -> impl Iterator<Item = f32> {
        let (panels, panel, lane) = (self.columns.div_ceil(LANES), column / LANES, column % LANES);
        let mut rest = self.weights.as_slice();
        self.groups.iter().flat_map(move |runs| {
            let depth = depth_of(runs);
            let (group, others) = rest.split_at(panels * depth);
            rest = others;
            group[panel * depth..(panel + 1) * depth].iter().map(move |row| row.0[lane])
        })
    }

    /// Adds the product to `out`, `[rows, columns]`; `starts` tells for each row where its input begins.
    /// A row's sums are made in one fixed order, so its result does not depend on the rows beside it.
    pub(super) fn add_product(
        &self,
        input: &[f32],
        starts: &mut dyn Iterator<Item = usize>,
        out: &mut [f32],
    ) {
        assert!(out.len().is_multiple_of(self.columns), "output is not whole rows; this is a bug");
        vector::widest(Product { matrix: self, input, starts, out });
    }
}

/// A product to be made with vectors of any form.
struct Product<'a> {
    matrix: &'a Matrix,
    input: &'a [f32],
    /// Not generic: the blocks of all sizes would be compiled again for each kind.
    starts: &'a mut dyn Iterator<Item = usize>,
    out: &'a mut [f32],
}

impl Work for Product<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let Matrix { taps, groups, columns, weights } = self.matrix;
        let (panels, span) = (columns.div_ceil(LANES), taps.span());
        let mut starts = [0; BLOCK_ROWS];
        for out in self.out.chunks_mut(BLOCK_ROWS * columns) {
            let starts = &mut starts[..out.len() / columns];
            for start in &mut *starts {
                *start = self.starts.next().expect("a start for each row; this is a bug");
                assert!(*start + span <= self.input.len(), "the input is too short; this is a bug");
            }
            let mut weights = weights.as_slice();
            for runs in groups {
                let depth = depth_of(runs);
                let (group, rest) = weights.split_at(panels * depth);
                for (i, panels) in group.chunks(V::PANELS * depth).enumerate() {
                    let part = Part { input: self.input, runs, panels, depth };
                    let first = i * V::PANELS * LANES;
                    match panels.len() / depth {
                        2 => part.add_to::<V, 2>(starts, out, *columns, first),
                        _ => part.add_to::<V, 1>(starts, out, *columns, first),
                    }
                }
                weights = rest;
            }
        }
    }
}

/// Some weight rows of neighbouring panels, and the input values that meet them.
struct Part<'a> {
    input: &'a [f32],
    runs: &'a [Run],
    panels: &'a [Lanes],
    depth: usize,
}

impl Part<'_> {
    /// Adds to the columns of the panels, from `first` on, in rows of `columns` values.
    #[inline(always)]
    fn add_to<V: Vector, const P: usize>(
        &self,
        mut starts: &[usize],
        mut out: &mut [f32],
        columns: usize,
        first: usize,
    ) {
        while !starts.is_empty() {
            // Parts as equal as can be: a part of one or two rows would leave most of the registers idle.
            let count = starts.len().div_ceil(starts.len().div_ceil(V::ROWS));
            let (these, left) = starts.split_at(count);
            let (rows, rest) = out.split_at_mut(count * columns);
            match count {
                12 => self.add_rows::<V, 12, P>(these, rows, columns, first),
                11 => self.add_rows::<V, 11, P>(these, rows, columns, first),
                10 => self.add_rows::<V, 10, P>(these, rows, columns, first),
                9 => self.add_rows::<V, 9, P>(these, rows, columns, first),
                8 => self.add_rows::<V, 8, P>(these, rows, columns, first),
                7 => self.add_rows::<V, 7, P>(these, rows, columns, first),
                6 => self.add_rows::<V, 6, P>(these, rows, columns, first),
                5 => self.add_rows::<V, 5, P>(these, rows, columns, first),
                4 => self.add_rows::<V, 4, P>(these, rows, columns, first),
                3 => self.add_rows::<V, 3, P>(these, rows, columns, first),
                2 => self.add_rows::<V, 2, P>(these, rows, columns, first),
                _ => self.add_rows::<V, 1, P>(these, rows, columns, first),
            }
            (starts, out) = (left, rest);
        }
    }

    #[inline(always)]
    fn add_rows<V: Vector, const R: usize, const P: usize>(
        &self,
        starts: &[usize],
        out: &mut [f32],
        columns: usize,
        first: usize,
    ) {
        // Known when this is compiled: no code is made for blocks that the registers do not hold.
        assert!(R <= V::ROWS && P <= V::PANELS, "more sums than registers; this is a bug");
        let sums = self.sums::<V, R, P>(starts);
        for (sums, row) in sums.iter().zip(out.chunks_exact_mut(columns)) {
            for (sums, out) in sums.iter().zip(row[first..].chunks_mut(LANES)) {
                let sums = sums.values();
                match out.as_mut_array::<LANES>() {
                    Some(out) => out.iter_mut().zip(sums).for_each(|(y, sum)| *y += sum),
                    None => out.iter_mut().zip(sums).for_each(|(y, sum)| *y += sum),
                }
            }
        }
    }

    /// The innermost loop: the sums stay in registers, each weight row that is loaded serves `R` rows, and each input value
    /// `P` panels.
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "sums stay in registers where all indices are known to the compiler"
    )]
    fn sums<V: Vector, const R: usize, const P: usize>(&self, starts: &[usize]) -> [[V; P]; R] {
        let mut sums = [[V::zero(); P]; R];
        let mut before = 0;
        for run in self.runs {
            // Eight weight rows at a time, so that the bounds of the rows are checked once for all eight.
            let (mut inputs, mut last_inputs) = ([&[][..]; R], [&[][..]; R]);
            for r in 0..R {
                let values = &self.input[starts[r] + run.offset..][..run.length];
                (inputs[r], last_inputs[r]) = values.as_chunks::<8>();
            }
            let (mut weights, mut last_weights) = ([&[][..]; P], [&[][..]; P]);
            for p in 0..P {
                let rows = &self.panels[p * self.depth + before..][..run.length];
                (weights[p], last_weights[p]) = rows.as_chunks::<8>();
            }
            for i in 0..run.length / 8 {
                for d in 0..8 {
                    add_row(&mut sums, |p| &weights[p][i][d], |r| inputs[r][i][d]);
                }
            }
            for d in 0..run.length % 8 {
                add_row(&mut sums, |p| &last_weights[p][d], |r| last_inputs[r][d]);
            }
            before += run.length;
        }
        sums
    }
}

#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "as for Part::sums")]
fn add_row<'w, V: Vector, const R: usize, const P: usize>(
    sums: &mut [[V; P]; R],
    weights: impl Fn(usize) -> &'w Lanes,
    x: impl Fn(usize) -> f32,
) {
    let mut row = [V::zero(); P];
    for p in 0..P {
        row[p] = V::load(&weights(p).0);
    }
    for r in 0..R {
        let x = x(r);
        for p in 0..P {
            sums[r][p] = sums[r][p].add_product(x, row[p]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::testing::noise;
    use crate::vector::Plain;

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
            for column in 0..columns {
                let expected = weights.iter().copied().skip(column).step_by(columns);
                assert!(matrix.column(column).eq(expected));
            }
            for rows in [0, 1, 5, 6, 7, 13, BLOCK_ROWS + 8] {
                let row_stride = 3;
                let input = noise(rows * row_stride + taps.span(), 2);
                let mut out = vec![1.0; rows * columns];
                matrix.add_product(&input, &mut (0..).step_by(row_stride), &mut out);
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
        let input = noise(31 * width, 2);
        let mut together = vec![0.0; 31 * columns];
        matrix.add_product(&input, &mut (0..).step_by(width), &mut together);
        for (row, expected) in together.chunks_exact(columns).enumerate() {
            let mut alone = vec![0.0; columns];
            matrix.add_product(&input, &mut std::iter::once(row * width), &mut alone);
            assert_eq!(alone, expected);
        }
    }

    #[test]
    fn rows_may_begin_anywhere_and_every_form_of_a_vector_gives_the_same_bits() {
        let taps = Taps { taps: 3, width: 100, tap_stride: 120 };
        let weights = noise(taps.depth() * 50, 1);
        let matrix = Matrix::from_fn(taps, 50, |r, c| weights[r * 50 + c]);
        let input = noise(1_000, 2);
        let starts = || (0..29).map(|row| row * 97 % 640);
        let (mut widest, mut plain) = (vec![0.5; 29 * 50], vec![0.5; 29 * 50]);
        matrix.add_product(&input, &mut starts(), &mut widest);
        Product { matrix: &matrix, input: &input, starts: &mut starts(), out: &mut plain }
            .run::<Plain>();
        assert_eq!(widest, plain);
        let mut alone = vec![0.5; 50];
        matrix.add_product(&input, &mut std::iter::once(28 * 97 % 640), &mut alone);
        assert_eq!(alone, widest[28 * 50..]);
    }
}
