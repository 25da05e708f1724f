//! A weight matrix packed once for many products, with `f32`, `bf16` or `int8` numbers.
//!
//! ```text
//! weight [outputs, inputs]  ->  panel 0: outputs 0..16    panel 1: outputs 16..32   ..
//!                               tile, tile, .. (16 inputs each)
//! ```
//! Products are taken in `f32`; narrow numbers are widened in registers. Outputs that do not fill the last panel are
//! padded with zeros, which are never written out.

mod product;

use super::simd::{Bf16, Narrow};
use super::tile::{LANES, Tile};
use product::{Call, Rows};

pub(crate) use product::{MOST_ROWS, even_runs};

/// How the numbers of a matrix are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 32 bits, as loaded.
    F32,
    /// 16 bits: half the memory, 8 bits of mantissa.
    Bf16,
    /// 8 bits with a scale for each output and 64 inputs.
    Int8,
}

/// What a product does with the values that are already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// Replaces them.
    Set,
    /// Is added to them.
    Add,
}

/// Tiles that share one scale: 64 inputs. Measured on nano cb0, mean RMSE of the logits with one scale for all inputs of
/// an output, 64, 32, 16: 0.056, 0.048, 0.044, 0.038; below 64 the step gets slower by 5 % and more.
const GROUP_TILES: usize = 4;
const INT8_HIGHEST: f32 = 127.0;

/// A packed matrix.
pub struct Matrix {
    outputs: usize,
    inputs: usize,
    numbers: Numbers,
}

enum Numbers {
    F32(Vec<Tile<f32>>),
    Bf16(Vec<Tile<Bf16>>),
    Int8 { tiles: Vec<Tile<i8>>, scales: Vec<[f32; LANES]> },
}

impl Matrix {
    /// Packs `weight`, `[outputs, inputs]` row-major.
    ///
    /// # Panics
    /// If `inputs` is not a multiple of [`LANES`], or the length is not the product.
    pub fn pack(weight: &[f32], inputs: usize, precision: Precision) -> Self {
        let mut matrix = Self::empty(inputs, precision);
        matrix.reserve(weight.len() / inputs);
        matrix.extend(weight);
        matrix
    }

    /// Makes room for exactly so many further outputs: what grows by itself holds up to twice what it needs, and for a moment three
    /// times.
    pub fn reserve(&mut self, outputs: usize) {
        let (panels, blocks) = (outputs.div_ceil(LANES), self.inputs / LANES);
        match &mut self.numbers {
            Numbers::F32(tiles) => tiles.reserve_exact(panels * blocks),
            Numbers::Bf16(tiles) => tiles.reserve_exact(panels * blocks),
            Numbers::Int8 { tiles, scales } => {
                tiles.reserve_exact(panels * blocks);
                scales.reserve_exact(panels * blocks.div_ceil(GROUP_TILES));
            }
        }
    }

    /// A matrix without outputs.
    ///
    /// # Panics
    /// If `inputs` is not a multiple of [`LANES`].
    pub fn empty(inputs: usize, precision: Precision) -> Self {
        assert!(inputs.is_multiple_of(LANES) && inputs > 0, "inputs come in tiles; this is a bug");
        let numbers = match precision {
            Precision::F32 => Numbers::F32(Vec::new()),
            Precision::Bf16 => Numbers::Bf16(Vec::new()),
            Precision::Int8 => Numbers::Int8 { tiles: Vec::new(), scales: Vec::new() },
        };
        Self { outputs: 0, inputs, numbers }
    }

    /// Packs further outputs behind those that are there, panel by panel: no second copy of all of them is held.
    ///
    /// # Panics
    /// If the length is not whole rows, or the outputs before do not fill their last panel.
    pub fn extend(&mut self, weight: &[f32]) {
        let inputs = self.inputs;
        assert!(weight.len().is_multiple_of(inputs), "a matrix has two axes; this is a bug");
        assert!(self.outputs.is_multiple_of(LANES), "only the last panel is cut; this is a bug");
        let blocks = inputs / LANES;
        let mut panel = vec![[[0.0; LANES]; LANES]; blocks];
        for rows in weight.chunks(LANES * inputs) {
            tile_panel(rows, inputs, &mut panel);
            match &mut self.numbers {
                Numbers::F32(tiles) => tiles.extend_from_slice(&panel),
                Numbers::Bf16(tiles) => {
                    tiles.extend(panel.iter().map(|t| t.map(|row| Bf16::narrow(&row))));
                }
                Numbers::Int8 { tiles, scales } => quantize(&panel, tiles, scales),
            }
            self.outputs += rows.len() / inputs;
        }
    }

    /// Length of an output row.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Length of an input row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// `y = x W^T` or `y += x W^T` for every row: `x` is `[rows, inputs]`, `y` is `[rows, outputs]`.
    ///
    /// # Panics
    /// If the lengths do not fit one another.
    pub fn apply(&self, x: &[f32], y: &mut [f32], store: Store) {
        assert_eq!(x.len() % self.inputs, 0, "whole input rows; this is a bug");
        assert_eq!(
            x.len() / self.inputs * self.outputs,
            y.len(),
            "one output row each; this is a bug"
        );
        self.run(x, y, Rows::All(x.len() / self.inputs), store);
    }

    /// `y = x W^T` for some rows of `x`, each written to a place of its own in `y`.
    ///
    /// # Panics
    /// If a row is not in `x`, or a place has not room for it in `y`.
    pub fn apply_at(&self, x: &[f32], y: &mut [f32], places: &[Place]) {
        self.run(x, y, Rows::Placed(places), Store::Set);
    }

    fn run(&self, x: &[f32], y: &mut [f32], rows: Rows<'_>, store: Store) {
        let (x, _) = x.as_chunks::<LANES>();
        let (outputs, blocks) = (self.outputs, self.inputs / LANES);
        let mut call = Call { x, y, rows, outputs, blocks, store };
        match &self.numbers {
            Numbers::F32(tiles) => call.panels(tiles, &[]),
            Numbers::Bf16(tiles) => call.panels(tiles, &[]),
            Numbers::Int8 { tiles, scales } => call.panels(tiles, scales),
        }
    }
}

/// A row of a product's input, and where its output begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which row of the input.
    pub row: usize,
    /// Where in the output, in values.
    pub start: usize,
}

/// Lays up to [`LANES`] outputs out as one panel; those that are missing are zero.
fn tile_panel(rows: &[f32], inputs: usize, panel: &mut [Tile<f32>]) {
    panel.fill([[0.0; LANES]; LANES]);
    for (output, row) in rows.chunks_exact(inputs).enumerate() {
        for (input, value) in row.iter().enumerate() {
            panel[input / LANES][input % LANES][output] = *value;
        }
    }
}

/// Appends a panel's tiles with their scales.
fn quantize(panel: &[Tile<f32>], tiles: &mut Vec<Tile<i8>>, scales: &mut Vec<[f32; LANES]>) {
    for group in panel.chunks(GROUP_TILES) {
        let mut highest = [0.0_f32; LANES];
        for row in group.iter().flatten() {
            for (h, v) in highest.iter_mut().zip(row) {
                *h = h.max(v.abs());
            }
        }
        let step = highest.map(|h| if h > 0.0 { h / INT8_HIGHEST } else { 1.0 });
        tiles.extend(group.iter().map(|tile| {
            tile.map(|row| std::array::from_fn(|n| (row[n] / step[n]).round_ties_even() as i8))
        }));
        scales.push(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values in -1..1 that look random and need no generator.
    fn noise(len: usize, seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        (0..len)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            })
            .collect()
    }

    fn exact(weight: &[f32], x: &[f32], inputs: usize) -> Vec<f64> {
        let dot = |row: &[f32], w: &[f32]| {
            row.iter().zip(w).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        x.chunks_exact(inputs)
            .flat_map(|row| weight.chunks_exact(inputs).map(move |w| dot(row, w)))
            .collect()
    }

    #[test]
    fn product_matches_a_double_precision_one_within_the_storage_error() {
        let (outputs, inputs, rows) = (50, 96, 7);
        let weight = noise(outputs * inputs, 1);
        let x = noise(rows * inputs, 2);
        let expected = exact(&weight, &x, inputs);
        // 96 terms of size 1 whose weights are off by 2^-24, 2^-9 or 1/254 of their own size, in random directions.
        for (precision, limit) in
            [(Precision::F32, 2e-5), (Precision::Bf16, 3e-2), (Precision::Int8, 6e-2)]
        {
            let matrix = Matrix::pack(&weight, inputs, precision);
            let mut y = vec![f32::NAN; rows * outputs];
            matrix.apply(&x, &mut y, Store::Set);
            let worst = y.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs());
            let worst = worst.fold(0.0, f64::max);
            assert!(worst < limit, "{precision:?}: {worst}");
        }
    }

    #[test]
    fn a_row_is_the_same_in_every_company() {
        let (outputs, inputs) = (83, 160);
        let weight = noise(outputs * inputs, 3);
        let x = noise(40 * inputs, 4);
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            let matrix = Matrix::pack(&weight, inputs, precision);
            let mut alone = vec![0.0; 40 * outputs];
            for (row, out) in x.chunks_exact(inputs).zip(alone.chunks_exact_mut(outputs)) {
                matrix.apply(row, out, Store::Set);
            }
            for rows in 1..=40 {
                let mut y = vec![0.0; rows * outputs];
                matrix.apply(&x[..rows * inputs], &mut y, Store::Set);
                let same = y.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{precision:?}, {rows} rows");
            }
        }
    }

    #[test]
    fn add_keeps_what_was_there() {
        let weight = noise(16 * 16, 5);
        let x = noise(16, 6);
        let matrix = Matrix::pack(&weight, 16, Precision::F32);
        let mut set = vec![0.0; 16];
        matrix.apply(&x, &mut set, Store::Set);
        let mut added = vec![2.0; 16];
        matrix.apply(&x, &mut added, Store::Add);
        assert!(set.iter().zip(&added).all(|(s, a)| *a == 2.0 + s));
    }

    #[test]
    fn rows_go_to_their_places_with_the_same_bits_and_nowhere_else() {
        let (outputs, inputs) = (35, 32);
        let (weight, x) = (noise(outputs * inputs, 10), noise(9 * inputs, 11));
        let matrix = Matrix::pack(&weight, inputs, Precision::Bf16);
        let mut all = vec![0.0; 9 * outputs];
        matrix.apply(&x, &mut all, Store::Set);
        for count in 0..=8 {
            let place = |i: usize| Place { row: (i * 4 + 2) % 9, start: 1 + i * (outputs + 3) };
            let places: Vec<Place> = (0..count).map(place).collect();
            let mut y = vec![9.0; 1 + count * (outputs + 3)];
            matrix.apply_at(&x, &mut y, &places);
            assert_eq!(y[0], 9.0);
            for (place, y) in places.iter().zip(y[1..].chunks_exact(outputs + 3)) {
                assert_eq!(y[..outputs], all[place.row * outputs..][..outputs]);
                assert_eq!(y[outputs..], [9.0; 3]);
            }
        }
    }

    #[test]
    fn pieces_of_a_matrix_are_the_whole() {
        let (outputs, inputs) = (83, 96);
        let (weight, x) = (noise(outputs * inputs, 8), noise(5 * inputs, 9));
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            let says = |matrix: &Matrix| {
                let mut y = vec![0.0; 5 * outputs];
                matrix.apply(&x, &mut y, Store::Set);
                y
            };
            let whole = says(&Matrix::pack(&weight, inputs, precision));
            let mut pieces = Matrix::empty(inputs, precision);
            for rows in weight.chunks(2 * LANES * inputs) {
                pieces.extend(rows);
            }
            assert_eq!((pieces.outputs(), says(&pieces)), (outputs, whole));
        }
    }

    #[test]
    fn a_column_of_zeros_stays_zero_in_int8() {
        let matrix = Matrix::pack(&[0.0; 32], 16, Precision::Int8);
        let mut y = vec![1.0; 2];
        matrix.apply(&noise(16, 7), &mut y, Store::Set);
        assert_eq!(y, [0.0, 0.0]);
    }

    #[test]
    fn runs_are_even_and_cover_all() {
        let runs: Vec<_> = even_runs(32, 6).collect();
        assert_eq!(runs, [(0, 5), (5, 5), (10, 6), (16, 5), (21, 5), (26, 6)]);
        assert_eq!(even_runs(8, 6).collect::<Vec<_>>(), [(0, 4), (4, 4)]);
        assert_eq!(even_runs(0, 6).count(), 0);
    }
}
