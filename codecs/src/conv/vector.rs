//! Eight values at once: what the innermost loop of the product needs, and nothing more.
//!
//! The compiler turns plain loops over slices into vector instructions on its own, but not a block of sums that must
//! stay in registers; so these operations are spelled out. Where the build has no such instructions they are loops.

pub(super) use chosen::Vector;

/// Values of a [`Vector`].
pub(super) const WIDTH: usize = 8;

#[cfg(all(target_arch = "x86_64", target_feature = "avx", target_feature = "fma"))]
mod chosen {
    #![expect(unsafe_code, reason = "vector instructions of one processor family")]

    use super::WIDTH;
    use std::arch::x86_64::{
        __m256, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps,
        _mm256_storeu_ps,
    };

    // SAFETY, for every block below: the instructions belong to AVX and FMA, and this module is compiled only for a
    // target that has both. The two that take a pointer get that of an array of exactly eight values, of any alignment.

    /// Eight values.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Vector(__m256);

    impl Vector {
        #[inline(always)]
        pub(in super::super) fn zero() -> Self {
            // SAFETY: see the top of the module.
            Self(unsafe { _mm256_setzero_ps() })
        }

        #[inline(always)]
        pub(in super::super) fn load(values: &[f32; WIDTH]) -> Self {
            // SAFETY: see the top of the module.
            Self(unsafe { _mm256_loadu_ps(values.as_ptr()) })
        }

        #[inline(always)]
        pub(in super::super) fn values(self) -> [f32; WIDTH] {
            let mut values = [0.0; WIDTH];
            // SAFETY: see the top of the module.
            unsafe { _mm256_storeu_ps(values.as_mut_ptr(), self.0) };
            values
        }

        /// `self + x * weights`, rounded once.
        #[inline(always)]
        pub(in super::super) fn add_product(self, x: f32, weights: Self) -> Self {
            // SAFETY: see the top of the module.
            Self(unsafe { _mm256_fmadd_ps(_mm256_set1_ps(x), weights.0, self.0) })
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "avx", target_feature = "fma")))]
mod chosen {
    use super::WIDTH;

    /// Eight values.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Vector([f32; WIDTH]);

    impl Vector {
        #[inline(always)]
        pub(in super::super) fn zero() -> Self {
            Self([0.0; WIDTH])
        }

        #[inline(always)]
        pub(in super::super) fn load(values: &[f32; WIDTH]) -> Self {
            Self(*values)
        }

        #[inline(always)]
        pub(in super::super) fn values(self) -> [f32; WIDTH] {
            self.0
        }

        /// `self + x * weights`, rounded once.
        #[inline(always)]
        pub(in super::super) fn add_product(self, x: f32, weights: Self) -> Self {
            Self(std::array::from_fn(|i| x.mul_add(weights.0[i], self.0[i])))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Vector, WIDTH};

    #[test]
    fn a_product_is_added_to_each_value() {
        let weights: [f32; WIDTH] = std::array::from_fn(|i| i as f32);
        let sum = Vector::zero().add_product(2.0, Vector::load(&weights));
        let sum = sum.add_product(-0.5, Vector::load(&[1.0; WIDTH]));
        assert_eq!(sum.values(), weights.map(|w| 2.0 * w - 0.5));
    }
}
