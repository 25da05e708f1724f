//! The pointwise block that codecs and conformers share: norm, wide linear layer, activation, narrow linear layer.

use super::Linear;
use crate::frames::Frames;
use crate::math::{Activation, Norm};

/// Rows worked on at a time, where the weights stay in a cache: the wide rows stay in the second-level one, and memory does not
/// grow with the length of the sound. With fewer rows the product would not reuse its weights enough.
const TILE_ROWS: usize = 96;
/// The same where the weights come from memory for each tile.
const WIDE_TILE_ROWS: usize = 512;
/// Weights of a layer that no second-level cache holds: 4 MiB.
const WIDE_WEIGHTS: usize = 1 << 20;

/// `down(activation(up(norm(x))))`, row by row. A factor after it belongs into `down` ([`super::Filter::scaled`]).
#[derive(Clone, Debug)]
pub struct FeedForward {
    /// Applied to a copy of the input.
    pub norm: Norm,
    /// From `channels` to the hidden width.
    pub up: Linear,
    /// Between the two layers.
    pub activation: Activation,
    /// From the hidden width to `channels`.
    pub down: Linear,
}

impl FeedForward {
    /// Adds the block's result on `x` to `x`.
    pub fn add_to_input(&self, x: &mut Frames) {
        let mut tile = Tile::default();
        let tile_rows = self.tile_rows(x.time());
        for rows in x.data_mut().chunks_mut(tile_rows * self.norm.channels()) {
            tile.normed.clear();
            tile.normed.extend_from_slice(rows);
            self.add_tile(&mut tile, rows);
        }
    }

    /// Adds the block's result on `input` to `out`, `[time, channels]` both.
    ///
    /// # Panics
    /// When the shapes differ: a caller's bug.
    pub fn add_to(&self, input: &Frames, out: &mut Frames) {
        assert_eq!(input.time(), out.time(), "input and output of other lengths; this is a bug");
        let mut tile = Tile::default();
        let tile_rows = self.tile_rows(input.time());
        let tiles = input.data().chunks(tile_rows * self.norm.channels());
        for (input, out) in tiles.zip(out.data_mut().chunks_mut(tile_rows * self.down.outputs())) {
            tile.normed.clear();
            tile.normed.extend_from_slice(input);
            self.add_tile(&mut tile, out);
        }
    }

    /// Rows of a tile, of so many in all: tiles as equal as can be, since one of few rows reads all weights for little.
    fn tile_rows(&self, rows: usize) -> usize {
        let wide = self.up.inputs() * self.up.outputs() > WIDE_WEIGHTS;
        let most = if wide { WIDE_TILE_ROWS } else { TILE_ROWS };
        rows.div_ceil(rows.div_ceil(most).max(1)).max(1)
    }

    fn add_tile(&self, tile: &mut Tile, out: &mut [f32]) {
        self.norm.apply(&mut tile.normed);
        let rows = tile.normed.len() / self.up.inputs();
        tile.hidden.clear();
        tile.hidden.resize(rows * self.up.outputs(), 0.0);
        self.up.add_rows(&tile.normed, &mut tile.hidden);
        self.activation.apply(&mut tile.hidden);
        self.down.add_rows(&tile.hidden, out);
    }
}

/// Scratch of one call, reused from tile to tile.
#[derive(Default)]
struct Tile {
    normed: Vec<f32>,
    hidden: Vec<f32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::Filter;
    use crate::conv::testing::{assert_close, frames, noise};

    fn linear(out: usize, inputs: usize, seed: u32) -> Linear {
        let values = noise(out * inputs, seed).iter().map(|v| v * 0.3).collect();
        Linear::new(&Filter { shape: [out, inputs, 1], values, bias: noise(out, seed + 1) })
    }

    #[test]
    fn tiles_equal_the_block_on_all_rows_at_once() {
        let block = FeedForward {
            norm: Norm::Rms { weight: noise(12, 1), eps: 1e-5 },
            up: linear(40, 12, 2),
            activation: Activation::Gelu,
            down: linear(12, 40, 4),
        };
        for time in [0, 1, TILE_ROWS, 2 * TILE_ROWS + 5] {
            let x = frames(time, 12, 6);
            let mut normed = x.clone();
            block.norm.apply(normed.data_mut());
            let mut hidden = block.up.forward(&normed);
            block.activation.apply(hidden.data_mut());
            let mut expected = block.down.forward(&hidden);
            expected.add(&x);

            let mut in_place = x.clone();
            block.add_to_input(&mut in_place);
            assert_close("in place", &in_place, &expected);
            let mut apart = x.clone();
            block.add_to(&x, &mut apart);
            assert_close("apart", &apart, &expected);
        }
    }
}
