//! Sixteen `f32` side by side, and the stored numbers that are widened to them.
//!
//! On x86-64 with AVX2, which the build asks for, a value is two vector registers; anywhere else it is an array, with the
//! same bits in every result: both round each multiply-add once. At the optimisation level of the tests the compiler
//! keeps the sums of a matrix product in single numbers (measured: thirty times slower), so the vectors are spelled out.

pub mod array;
#[cfg(all(target_arch = "x86_64", target_feature = "avx2"))]
pub mod vector;

#[cfg(not(all(target_arch = "x86_64", target_feature = "avx2")))]
pub use array::{F32x16, prefetch};
#[cfg(all(target_arch = "x86_64", target_feature = "avx2"))]
pub use vector::{F32x16, prefetch};

use super::tile::LANES;

/// A number as it is stored, 16 of which are widened at once.
pub trait Stored: Copy + Send + Sync + 'static {
    /// Zero.
    const ZERO: Self;

    /// Their values; for integers without the scale.
    fn widen(numbers: &[Self; LANES]) -> F32x16;
}

/// A stored number that any value can be turned into.
pub trait Narrow: Stored {
    /// The nearest stored numbers, ties to even.
    fn narrow(values: &[f32; LANES]) -> [Self; LANES];
}

/// 16 bits: 8 of exponent, as in an `f32`, 7 of mantissa.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(u16);

/// 16 bits: 5 of exponent, 10 of mantissa. Beyond 65,504 lies infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(u16);

impl Narrow for f32 {
    #[inline(always)]
    fn narrow(values: &[f32; LANES]) -> [f32; LANES] {
        *values
    }
}

impl Narrow for Bf16 {
    fn narrow(values: &[f32; LANES]) -> [Self; LANES] {
        values.map(|v| Self(half::bf16::from_f32(v).to_bits()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(values: [f32; LANES]) -> [u32; LANES] {
        values.map(f32::to_bits)
    }

    #[test]
    fn both_forms_give_the_same_bits() {
        let a: [f32; LANES] = std::array::from_fn(|i| 1.0 + i as f32 / 3.0);
        let b: [f32; LANES] = std::array::from_fn(|i| -1.0 + i as f32 / 7.0);
        let fast = f32::widen(&a).mul_add(f32::widen(&b), F32x16::splat(0.1)).to_array();
        let plain = array::F32x16(a).mul_add(array::F32x16(b), array::F32x16::splat(0.1));
        assert_eq!(bits(fast), bits(plain.to_array()));
        assert_eq!(bits(F32x16::zero().to_array()), bits(array::F32x16::zero().to_array()));
    }

    #[test]
    fn widening_keeps_every_value_in_its_place() {
        let values: [f32; LANES] = std::array::from_fn(|i| 0.3 * i as f32 - 2.0);
        let narrow = Bf16::narrow(&values);
        assert_eq!(bits(Bf16::widen(&narrow).to_array()), bits(array::of_bf16(&narrow)));
        assert!((Bf16::widen(&narrow).to_array()[15] - 2.5).abs() < 0.01);
        let narrow = F16::narrow(&values);
        assert_eq!(narrow, array::to_f16(&values));
        assert_eq!(bits(F16::widen(&narrow).to_array()), bits(array::of_f16(&narrow)));
        assert!((F16::widen(&narrow).to_array()[15] - 2.5).abs() < 0.001);
        for first in [-128_i8, -8, 112] {
            let whole: [i8; LANES] = std::array::from_fn(|i| first + i as i8);
            assert_eq!(i8::widen(&whole).to_array(), whole.map(f32::from));
        }
    }

    #[test]
    fn half_precision_keeps_what_is_not_finite() {
        let mut values = [70_000.0; LANES];
        values[1] = f32::NAN;
        let wide = F16::widen(&F16::narrow(&values)).to_array();
        assert!(wide[0].is_infinite() && wide[1].is_nan());
    }
}
