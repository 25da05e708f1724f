//! The form for x86-64 with AVX2, FMA and F16C: two registers of eight numbers.

#![expect(unsafe_code, reason = "vector intrinsics; the module cannot exist without the features")]

use std::arch::x86_64::{
    __m128i, __m256, _MM_FROUND_TO_NEAREST_INT, _MM_HINT_T1, _mm_loadl_epi64, _mm_loadu_si128,
    _mm_prefetch, _mm_storeu_si128, _mm256_castsi256_ps, _mm256_cvtepi8_epi32, _mm256_cvtepi32_ps,
    _mm256_cvtepu16_epi32, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_fmadd_ps, _mm256_loadu_ps,
    _mm256_set1_ps, _mm256_setzero_ps, _mm256_slli_epi32, _mm256_storeu_ps,
};

use super::{Bf16, F16, Narrow, Stored};
use crate::kernels::tile::LANES;

#[cfg(not(all(target_feature = "fma", target_feature = "f16c")))]
compile_error!("AVX2 without FMA and F16C: build with -C target-cpu=x86-64-v3");

/// Numbers in one register.
const HALF: usize = LANES / 2;

/// Has the cache fetch a value that will be read soon.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    // SAFETY: a prefetch changes no state that a program can see, whatever the address; SSE belongs to every x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(value).cast()) }
}

/// Sixteen numbers.
#[derive(Clone, Copy)]
pub struct F32x16(__m256, __m256);

impl F32x16 {
    /// All zero.
    #[inline(always)]
    pub fn zero() -> Self {
        // SAFETY: AVX is enabled for the whole build, or this module would not exist.
        let v = unsafe { _mm256_setzero_ps() };
        Self(v, v)
    }

    /// Sixteen times the same.
    #[inline(always)]
    pub fn splat(value: f32) -> Self {
        // SAFETY: as in `zero`.
        let v = unsafe { _mm256_set1_ps(value) };
        Self(v, v)
    }

    /// `self * factor + sum`, rounded once.
    #[inline(always)]
    pub fn mul_add(self, factor: Self, sum: Self) -> Self {
        // SAFETY: FMA is enabled for the whole build, or this module would not compile.
        let fma = |a, b, c| unsafe { _mm256_fmadd_ps(a, b, c) };
        Self(fma(self.0, factor.0, sum.0), fma(self.1, factor.1, sum.1))
    }

    /// The numbers in order.
    #[inline(always)]
    pub fn to_array(self) -> [f32; LANES] {
        let mut out = [0.0; LANES];
        // SAFETY: `out` has room for both halves; the stores need no alignment; features as in `zero`.
        unsafe {
            _mm256_storeu_ps(out.as_mut_ptr(), self.0);
            _mm256_storeu_ps(out.as_mut_ptr().add(HALF), self.1);
        }
        out
    }
}

impl Stored for f32 {
    const ZERO: Self = 0.0;

    #[inline(always)]
    fn widen(numbers: &[Self; LANES]) -> F32x16 {
        let at = numbers.as_ptr();
        // SAFETY: each load is half of the array and needs no alignment; features as in `F32x16::zero`.
        unsafe { F32x16(_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(HALF))) }
    }
}

impl Stored for Bf16 {
    const ZERO: Self = Self(0);

    #[inline(always)]
    fn widen(numbers: &[Self; LANES]) -> F32x16 {
        let [low, high] = halves(numbers);
        // SAFETY: AVX2 is enabled for the whole build, or this module would not exist.
        let value = |bits| unsafe {
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(bits)))
        };
        F32x16(value(low), value(high))
    }
}

impl Stored for F16 {
    const ZERO: Self = Self(0);

    #[inline(always)]
    fn widen(numbers: &[Self; LANES]) -> F32x16 {
        let [low, high] = halves(numbers);
        // SAFETY: F16C is enabled for the whole build, or this module would not compile.
        let value = |bits| unsafe { _mm256_cvtph_ps(bits) };
        F32x16(value(low), value(high))
    }
}

impl Narrow for F16 {
    #[inline(always)]
    fn narrow(values: &[f32; LANES]) -> [Self; LANES] {
        let F32x16(low, high) = f32::widen(values);
        let mut out = [Self::ZERO; LANES];
        let at = out.as_mut_ptr();
        // SAFETY: `F16` is a transparent `u16`, so each store of 16 bytes fills half of `out`; it needs no alignment;
        // F16C is enabled for the whole build, or this module would not compile.
        unsafe {
            let half = |v| _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v);
            _mm_storeu_si128(at.cast(), half(low));
            _mm_storeu_si128(at.add(HALF).cast(), half(high));
        }
        out
    }
}

/// Numbers of 16 bits, eight by eight.
#[inline(always)]
fn halves<T: Stored>(numbers: &[T; LANES]) -> [__m128i; 2] {
    const { assert!(size_of::<T>() == 2) };
    let at = numbers.as_ptr();
    // SAFETY: by the assertion each load of 16 bytes is half of the array; the loads need no alignment; `Stored` types
    // have no padding; SSE2 belongs to every x86-64.
    unsafe { [_mm_loadu_si128(at.cast()), _mm_loadu_si128(at.add(HALF).cast())] }
}

impl Stored for i8 {
    const ZERO: Self = 0;

    #[inline(always)]
    fn widen(numbers: &[Self; LANES]) -> F32x16 {
        let at = numbers.as_ptr();
        // SAFETY: each load of 8 bytes is half of the array and needs no alignment; AVX2 as for `Bf16`.
        let value = |at: *const i8| unsafe {
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(at.cast())))
        };
        // SAFETY: half of the array's length lies within it.
        F32x16(value(at), value(unsafe { at.add(HALF) }))
    }
}
