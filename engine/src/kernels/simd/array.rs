//! The portable form: plain arrays, from which a compiler may or may not make vectors.

use super::{Bf16, F16};
use crate::kernels::tile::LANES;

/// Has the cache fetch a value that will be read soon, where there is a way to say so.
pub fn prefetch<T>(_value: &T) {}

/// Sixteen numbers.
#[derive(Clone, Copy)]
pub struct F32x16(pub(super) [f32; LANES]);

impl F32x16 {
    /// All zero.
    pub fn zero() -> Self {
        Self([0.0; LANES])
    }

    /// Sixteen times the same.
    pub fn splat(value: f32) -> Self {
        Self([value; LANES])
    }

    /// `self * factor + sum`, rounded once.
    #[inline(always)]
    pub fn mul_add(self, factor: Self, sum: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i].mul_add(factor.0[i], sum.0[i])))
    }

    /// The numbers in order.
    pub fn to_array(self) -> [f32; LANES] {
        self.0
    }
}

/// Values of `bf16` numbers.
pub fn of_bf16(numbers: &[Bf16; LANES]) -> [f32; LANES] {
    numbers.map(|v| half::bf16::from_bits(v.0).to_f32())
}

/// Values of `f16` numbers.
pub fn of_f16(numbers: &[F16; LANES]) -> [f32; LANES] {
    numbers.map(|v| half::f16::from_bits(v.0).to_f32())
}

/// The nearest `f16` numbers, ties to even.
pub fn to_f16(values: &[f32; LANES]) -> [F16; LANES] {
    values.map(|v| F16(half::f16::from_f32(v).to_bits()))
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "avx2")))]
mod stored {
    use super::{Bf16, F16, F32x16, LANES, of_bf16, of_f16, to_f16};
    use crate::kernels::simd::{Narrow, Stored};

    impl Stored for f32 {
        const ZERO: Self = 0.0;

        fn widen(numbers: &[Self; LANES]) -> F32x16 {
            F32x16(*numbers)
        }
    }

    impl Stored for Bf16 {
        const ZERO: Self = Self(0);

        fn widen(numbers: &[Self; LANES]) -> F32x16 {
            F32x16(of_bf16(numbers))
        }
    }

    impl Stored for F16 {
        const ZERO: Self = Self(0);

        fn widen(numbers: &[Self; LANES]) -> F32x16 {
            F32x16(of_f16(numbers))
        }
    }

    impl Narrow for F16 {
        fn narrow(values: &[f32; LANES]) -> [Self; LANES] {
            to_f16(values)
        }
    }

    impl Stored for i8 {
        const ZERO: Self = 0;

        fn widen(numbers: &[Self; LANES]) -> F32x16 {
            F32x16(numbers.map(f32::from))
        }
    }
}
