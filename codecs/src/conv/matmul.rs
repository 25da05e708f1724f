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

/// Weights `[depth, columns]` in the order the product reads them; `depth = taps * width`.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    depth: usize,
    columns: usize,
    data: Vec<f32>,
}

impl Matrix {
    /// From the value of each place.
    pub(super) fn from_fn(
        depth: usize,
        columns: usize,
        value: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let mut data = Vec::with_capacity(depth * columns);
        for d in 0..depth {
            data.extend((0..columns).map(|c| value(d, c)));
        }
        Self { depth, columns, data }
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

    #[expect(unsafe_code, reason = "the matrix product of the gemm crate takes raw pointers")]
    fn add_part(
        &self,
        input: &[f32],
        row_stride: usize,
        depth: std::ops::Range<usize>,
        out: &mut [f32],
    ) {
        let (rows, columns) = (out.len() / self.columns, self.columns);
        assert!((rows - 1) * row_stride + depth.len() <= input.len(), "this is a bug");
        let weights = &self.data[depth.start * columns..depth.end * columns];
        // SAFETY: the three matrices lie within their slices: `input` by the assertion above, `weights` and `out`
        // because they are sliced to depth * columns and rows * columns. `out` is borrowed mutably, so it overlaps
        // neither; rows of `input` may overlap one another, which is harmless as they are only read.
        unsafe {
            gemm::gemm(
                /* m */ rows,
                /* n */ columns,
                /* k */ depth.len(),
                out.as_mut_ptr(),
                /* dst_cs */ 1,
                /* dst_rs */ columns as isize,
                /* read_dst */ true,
                input.as_ptr(),
                /* lhs_cs */ 1,
                /* lhs_rs */ row_stride as isize,
                weights.as_ptr(),
                /* rhs_cs */ 1,
                /* rhs_rs */ columns as isize,
                /* alpha */ 1.0_f32,
                /* beta */ 1.0_f32,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    }
}
