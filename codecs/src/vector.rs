//! Sixteen values at once: what the innermost loop of a product needs, and nothing more.
//!
//! The compiler turns plain loops over slices into vector instructions on its own, of the width that [`widest`] allows it, but
//! not a block of sums that must stay in registers; so these operations are spelled out, once for each width. All forms give the same
//! bits: each value has a sum of its own, and every product is added to it with one rounding. [`widest`] chooses.
//!
//! | form | where | registers |
//! |---|---|---|
//! | `Wide` | x86-64 whose processor has AVX-512, asked when the program runs | one for sixteen values, 32 in all |
//! | `Pair` | x86-64 with AVX and FMA, which the build asks for | two, 16 in all |
//! | `Plain` | anywhere else | what the compiler makes of an array |

/// Values of a vector.
pub(crate) const LANES: usize = 16;

/// Sixteen values, and how many of them stay in registers.
pub(crate) trait Vector: Copy {
    /// Rows of sums that are kept at once, each of [`Vector::PANELS`] vectors.
    const ROWS: usize;
    /// Vectors of a row that are kept at once: 1 or 2.
    const PANELS: usize;

    fn zero() -> Self;

    fn load(values: &[f32; LANES]) -> Self;

    fn values(self) -> [f32; LANES];

    /// `self + x * weights`, rounded once.
    fn add_product(self, x: f32, weights: Self) -> Self;
}

/// What is to be done with vectors of any form.
pub(crate) trait Work {
    /// Does it. Must be inlined with all that it calls, or the compiler has no wide registers for it.
    fn run<V: Vector>(self);
}

#[cfg(all(target_arch = "x86_64", target_feature = "avx", target_feature = "fma"))]
pub(crate) use chosen::widest;

#[cfg(not(all(target_arch = "x86_64", target_feature = "avx", target_feature = "fma")))]
pub(crate) fn widest(work: impl Work) {
    work.run::<Plain>();
}

#[cfg(all(target_arch = "x86_64", target_feature = "avx", target_feature = "fma"))]
mod chosen {
    #![expect(unsafe_code, reason = "vector instructions of one processor family")]

    use super::{LANES, Vector, Work};
    use std::arch::x86_64::{
        __m256, __m512, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps,
        _mm256_storeu_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps,
        _mm512_storeu_ps,
    };

    /// Does work with the widest vectors that the processor has.
    pub(crate) fn widest(work: impl Work) {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the feature that the function is compiled for.
            unsafe { widely(work) }
        } else {
            work.run::<Pair>();
        }
    }

    #[target_feature(enable = "avx512f")]
    fn widely(work: impl Work) {
        work.run::<Wide>();
    }

    // SAFETY, for every block of `Pair`: the instructions belong to AVX and FMA, and this module is compiled only for a
    // target that has both. Loads and stores get pointers into an array of sixteen values, of any alignment.

    /// Two registers of eight values.
    #[derive(Clone, Copy)]
    pub(crate) struct Pair([__m256; 2]);

    impl Vector for Pair {
        // Twelve of the sixteen registers hold sums.
        const ROWS: usize = 6;
        const PANELS: usize = 1;

        #[inline(always)]
        fn zero() -> Self {
            // SAFETY: see above.
            let zero = unsafe { _mm256_setzero_ps() };
            Self([zero, zero])
        }

        #[inline(always)]
        fn load(values: &[f32; LANES]) -> Self {
            let at = values.as_ptr();
            // SAFETY: see above.
            unsafe { Self([_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(LANES / 2))]) }
        }

        #[inline(always)]
        fn values(self) -> [f32; LANES] {
            let mut values = [0.0; LANES];
            let at = values.as_mut_ptr();
            // SAFETY: see above.
            unsafe {
                _mm256_storeu_ps(at, self.0[0]);
                _mm256_storeu_ps(at.add(LANES / 2), self.0[1]);
            }
            values
        }

        #[inline(always)]
        fn add_product(self, x: f32, weights: Self) -> Self {
            // SAFETY: see above.
            unsafe {
                let x = _mm256_set1_ps(x);
                let [low, high] = self.0;
                Self([
                    _mm256_fmadd_ps(x, weights.0[0], low),
                    _mm256_fmadd_ps(x, weights.0[1], high),
                ])
            }
        }
    }

    // SAFETY, for every block of `Wide`: the instructions belong to AVX-512F. Only `widely` makes work run with this form, and
    // its callers have asked the processor. Loads and stores as above.

    /// One register of sixteen values.
    #[derive(Clone, Copy)]
    pub(crate) struct Wide(__m512);

    impl Vector for Wide {
        // 24 of the 32 registers hold sums.
        const ROWS: usize = 12;
        const PANELS: usize = 2;

        #[inline(always)]
        fn zero() -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_setzero_ps() })
        }

        #[inline(always)]
        fn load(values: &[f32; LANES]) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_loadu_ps(values.as_ptr()) })
        }

        #[inline(always)]
        fn values(self) -> [f32; LANES] {
            let mut values = [0.0; LANES];
            // SAFETY: see above.
            unsafe { _mm512_storeu_ps(values.as_mut_ptr(), self.0) };
            values
        }

        #[inline(always)]
        fn add_product(self, x: f32, weights: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_fmadd_ps(_mm512_set1_ps(x), weights.0, self.0) })
        }
    }
}

/// Sixteen values in an array.
#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "avx", target_feature = "fma"))))]
#[derive(Clone, Copy)]
pub(crate) struct Plain([f32; LANES]);

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "avx", target_feature = "fma"))))]
impl Vector for Plain {
    const ROWS: usize = 6;
    const PANELS: usize = 1;

    #[inline(always)]
    fn zero() -> Self {
        Self([0.0; LANES])
    }

    #[inline(always)]
    fn load(values: &[f32; LANES]) -> Self {
        Self(*values)
    }

    #[inline(always)]
    fn values(self) -> [f32; LANES] {
        self.0
    }

    #[inline(always)]
    fn add_product(self, x: f32, weights: Self) -> Self {
        Self(std::array::from_fn(|i| x.mul_add(weights.0[i], self.0[i])))
    }
}
