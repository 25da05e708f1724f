//! The one product behind every layer: rows taken from time-major activations times a matrix of weights.
//!
//! A convolution is a product whose rows overlap: output step `t` needs `taps` runs of `width` values, and in
//! time-major data those runs already lie in memory at fixed distances. [`Walk`] states the distances, so no
//! patch matrix is ever built. It knows nothing of padding; a layer pads before it walks.

/// Where the values that one output row needs lie: value `c` of tap `k` of row `t` is at
/// `t * row_stride + k * tap_stride + c`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    pub(super) rows: usize,
    pub(super) row_stride: usize,
    pub(super) taps: usize,
    pub(super) tap_stride: usize,
    pub(super) width: usize,
}

impl Walk {
    /// Number of input values that the walk spans.
    fn span(&self) -> usize {
        match self.rows {
            0 => 0,
            rows => (rows - 1) * self.row_stride + (self.taps - 1) * self.tap_stride + self.width,
        }
    }
}

/// Columns of one panel of weights: two registers' worth for the product's kernel.
///
/// Read row by row, a wide matrix touches another page at every step, and with the few rows of a streamed piece
/// nothing makes up for that: 15 rows through 2,048 x 8,192 weights run 3.5 times as fast in panels.
const PANEL_COLUMNS: usize = 48;

/// Values of a matrix that needs no panels, as it stays in the second-level cache.
const SMALL_VALUES: usize = 1 << 16;

/// Weights `[depth, columns]` in the order the product reads them; `depth = taps * width`.
///
/// They lie in panels of `panel` columns, one after the other, each `[depth, panel]` and the last perhaps narrower.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    depth: usize,
    columns: usize,
    panel: usize,
    data: Vec<f32>,
}

impl Matrix {
    /// From the value of each place.
    pub(super) fn from_fn(
        depth: usize,
        columns: usize,
        value: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let panel = if depth * columns <= SMALL_VALUES { columns } else { PANEL_COLUMNS };
        let mut data = Vec::with_capacity(depth * columns);
        for start in (0..columns).step_by(panel.max(1)) {
            let end = (start + panel).min(columns);
            for d in 0..depth {
                data.extend((start..end).map(|c| value(d, c)));
            }
        }
        Self { depth, columns, panel, data }
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Adds the product of the rows of `walk` and the weights to `out`, `[walk.rows, columns]`.
    pub(super) fn add_product(&self, input: &[f32], walk: Walk, out: &mut [f32]) {
        assert_eq!(walk.taps * walk.width, self.depth, "rows of another width; this is a bug");
        assert!(walk.span() <= input.len(), "the walk leaves its input; this is a bug");
        assert_eq!(walk.rows * self.columns, out.len(), "output of another size; this is a bug");
        if walk.rows == 0 {
            return;
        }
        if walk.tap_stride == walk.width {
            self.add_part(input, walk.row_stride, 0..self.depth, out);
        } else {
            for tap in 0..walk.taps {
                let depth = tap * walk.width..(tap + 1) * walk.width;
                self.add_part(&input[tap * walk.tap_stride..], walk.row_stride, depth, out);
            }
        }
    }

    /// Adds the product of a part of the depth, panel by panel.
    fn add_part(
        &self,
        input: &[f32],
        row_stride: usize,
        depth: std::ops::Range<usize>,
        out: &mut [f32],
    ) {
        for start in (0..self.columns).step_by(self.panel) {
            let width = self.panel.min(self.columns - start);
            let panel = &self.data[start * self.depth..];
            let weights = &panel[depth.start * width..depth.end * width];
            add_panel(input, row_stride, weights, width, &mut out[start..], self.columns);
        }
    }
}

/// Adds rows of `input` times `weights`, `[depth, width]`, to the first `width` values of every row of `out`; rows begin
/// `row_stride` and `columns` apart.
#[expect(unsafe_code, reason = "the matrix product of the gemm crate takes raw pointers")]
fn add_panel(
    input: &[f32],
    row_stride: usize,
    weights: &[f32],
    width: usize,
    out: &mut [f32],
    columns: usize,
) {
    let (rows, depth) = (out.len().div_ceil(columns), weights.len() / width);
    assert!((rows - 1) * row_stride + depth <= input.len(), "this is a bug");
    assert!((rows - 1) * columns + width <= out.len(), "this is a bug");
    // SAFETY: the three matrices lie within their slices: `input` and `out` by the assertions above, `weights`
    // because its length is depth * width. `out` is borrowed mutably, so it overlaps neither; rows of `input` may
    // overlap one another, which is harmless as they are only read.
    unsafe {
        gemm::gemm(
            /* m */ rows,
            /* n */ width,
            /* k */ depth,
            out.as_mut_ptr(),
            /* dst_cs */ 1,
            /* dst_rs */ columns as isize,
            /* read_dst */ true,
            input.as_ptr(),
            /* lhs_cs */ 1,
            /* lhs_rs */ row_stride as isize,
            weights.as_ptr(),
            /* rhs_cs */ 1,
            /* rhs_rs */ width as isize,
            /* alpha */ 1.0_f32,
            /* beta */ 1.0_f32,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::testing::noise;

    /// Single precision over a few hundred terms.
    const TOLERANCE: f64 = 1e-4;

    #[test]
    fn panels_give_the_plain_product_for_whole_and_split_walks() {
        // Above and below the size of a small matrix; a last panel of another width; one tap and three apart.
        for (width, columns, taps) in [(5, 7, 3), (300, 230, 1), (110, 250, 3)] {
            let depth = taps * width;
            let weights = noise(depth * columns, 1);
            let matrix = Matrix::from_fn(depth, columns, |d, c| weights[d * columns + c]);
            for tap_stride in [width, width + 3] {
                let walk = Walk { rows: 4, row_stride: 2 * width, taps, tap_stride, width };
                let input = noise(walk.span(), 2);
                let mut out = vec![1.0; 4 * columns];
                matrix.add_product(&input, walk, &mut out);
                for (i, &got) in out.iter().enumerate() {
                    let (row, column) = (i / columns, i % columns);
                    let terms = (0..depth).map(|d| {
                        let at = row * walk.row_stride + d / width * tap_stride + d % width;
                        f64::from(input[at]) * f64::from(weights[d * columns + column])
                    });
                    let expected = 1.0 + terms.sum::<f64>();
                    assert!((f64::from(got) - expected).abs() < TOLERANCE, "{got} != {expected}");
                }
            }
        }
    }
}
