//! The innermost product: a few rows of 16 inputs times a few tiles of 16 by 16 weights.
//!
//! Matrices are packed once into panels of 16 columns, each a run of tiles; keys and values are stored as the same tiles,
//! so one kernel serves projections, scores and the mixing of values.
//!
//! ```text
//! input row   [ k0 .. k15 ]
//! tile        k0:  [ n0 .. n15 ]      acc[n] = fma(input[k], tile[k][n], acc[n]),  k ascending
//!             ..
//!             k15: [ n0 .. n15 ]
//! ```

use super::simd::{F32x16, Stored};

/// Columns of a panel, and rows of a tile.
pub const LANES: usize = 16;

/// 16 inputs (first axis) by 16 outputs.
pub type Tile<W> = [[W; LANES]; LANES];

/// Sums of `M` rows over `P` panels.
pub(crate) type Sums<const M: usize, const P: usize> = [[F32x16; P]; M];

/// Adds 16 terms to each sum.
#[inline(always)]
pub(crate) fn multiply<W: Stored, const M: usize, const P: usize>(
    sums: &mut Sums<M, P>,
    inputs: [&[f32; LANES]; M],
    tiles: [&Tile<W>; P],
) {
    for k in 0..LANES {
        for p in 0..P {
            let weights = W::widen(&tiles[p][k]);
            for m in 0..M {
                sums[m][p] = F32x16::splat(inputs[m][k]).mul_add(weights, sums[m][p]);
            }
        }
    }
}

/// Products of whole rows with whole panels: `rows[m]` and `panels[p]` have one length.
#[inline(always)]
pub(crate) fn product<W: Stored, const M: usize, const P: usize>(
    rows: [&[[f32; LANES]]; M],
    panels: [&[Tile<W>]; P],
) -> Sums<M, P> {
    product_beside(rows, panels, |_| ())
}

/// The same; `beside` is called with the number of each tile in its panel.
#[inline(always)]
pub(crate) fn product_beside<W: Stored, const M: usize, const P: usize>(
    rows: [&[[f32; LANES]]; M],
    panels: [&[Tile<W>]; P],
    beside: impl Fn(usize),
) -> Sums<M, P> {
    let mut sums = [[F32x16::zero(); P]; M];
    for at in 0..panels[0].len() {
        beside(at);
        multiply(&mut sums, rows.map(|r| &r[at]), panels.map(|p| &p[at]));
    }
    sums
}
