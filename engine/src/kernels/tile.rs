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

/// Columns of a panel, and rows of a tile.
pub const LANES: usize = 16;

/// 16 inputs (first axis) by 16 outputs.
pub type Tile<W> = [[W; LANES]; LANES];

/// Sums of `M` rows over `P` panels.
pub(crate) type Sums<const M: usize, const P: usize> = [[[f32; LANES]; P]; M];

/// A stored number that is widened to `f32` as it is read.
pub trait Stored: Copy + Send + Sync {
    /// Its value; for integers without the scale.
    fn widen(self) -> f32;
}

impl Stored for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
}

/// Upper half of the bits of an `f32`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bf16(u16);

impl Bf16 {
    /// Nearest value, ties to even.
    pub fn nearest(value: f32) -> Self {
        Self(half::bf16::from_f32(value).to_bits())
    }
}

impl Stored for Bf16 {
    // `half` looks for NaN first, which keeps the compiler from using vectors; weights are finite.
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

impl Stored for i8 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from(self)
    }
}

/// Adds 16 terms to each sum.
#[inline(always)]
pub(crate) fn multiply<W: Stored, const M: usize, const P: usize>(
    sums: &mut Sums<M, P>,
    inputs: [&[f32; LANES]; M],
    tiles: [&Tile<W>; P],
) {
    for k in 0..LANES {
        for p in 0..P {
            let weights = tiles[p][k].map(W::widen);
            for m in 0..M {
                let input = inputs[m][k];
                for n in 0..LANES {
                    sums[m][p][n] = input.mul_add(weights[n], sums[m][p][n]);
                }
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
    let mut sums = [[[0.0; LANES]; P]; M];
    for at in 0..panels[0].len() {
        multiply(&mut sums, rows.map(|r| &r[at]), panels.map(|p| &p[at]));
    }
    sums
}
