//! Two functions that the synthesis needs by the thousand, without branches so that loops over them vectorise.

use std::f32::consts::{LN_2, SQRT_2, TAU};

/// `sin(2 pi x)` for x in -0.5..=0.5.
#[inline]
pub(super) fn sin_turns(x: f32) -> f32 {
    // The sine is symmetric about a quarter turn.
    let x = if x.abs() > 0.25 { 0.5_f32.copysign(x) - x } else { x };
    let r = x * TAU;
    let s = r * r;
    // Taylor series up to r^11 / 11! on |r| <= pi / 2: the first term left out is below 6e-8.
    let p = s.mul_add(-1.0 / 39_916_800.0, 1.0 / 362_880.0);
    let p = p.mul_add(s, -1.0 / 5040.0);
    let p = p.mul_add(s, 1.0 / 120.0);
    let p = p.mul_add(s, -1.0 / 6.0);
    (p * s).mul_add(r, r)
}

/// Natural logarithm of a positive normal number.
#[inline]
pub(super) fn ln(x: f32) -> f32 {
    // x = 2^exponent * (1 + f) with 1 + f between sqrt(1/2) and sqrt(2).
    let bits = x.to_bits().wrapping_sub((0.5 * SQRT_2).to_bits());
    let exponent = (bits as i32 >> 23) as f32;
    let mantissa = f32::from_bits((bits & 0x007f_ffff) + (0.5 * SQRT_2).to_bits());
    // ln(1 + f) = 2 atanh(t), t = f / (2 + f): odd series in |t| < 0.172, the first term left out is below 1e-9.
    let f = mantissa - 1.0;
    let t = f / (2.0 + f);
    let s = t * t;
    let p = s.mul_add(2.0 / 9.0, 2.0 / 7.0);
    let p = p.mul_add(s, 2.0 / 5.0);
    let p = p.mul_add(s, 2.0 / 3.0);
    let p = (p * s).mul_add(t, 2.0 * t);
    exponent.mul_add(LN_2, p)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two units in the last place of 1.
    const TOLERANCE: f64 = 2.4e-7;

    #[test]
    fn sine_holds_over_a_turn() {
        for i in -5_000_i16..=5_000 {
            let x = f32::from(i) / 10_000.0;
            let expected = (f64::from(x) * std::f64::consts::TAU).sin();
            assert!((f64::from(sin_turns(x)) - expected).abs() < TOLERANCE, "{x}");
        }
        assert_eq!((sin_turns(0.0), sin_turns(0.5)), (0.0, 0.0));
    }

    #[test]
    fn logarithm_holds_over_what_24_bits_can_say() {
        for i in (0..24).flat_map(|e| (1..2_000_u32).map(move |m| (m * 8_388) >> e)).skip(1) {
            let x = i.max(1) as f32 * 2.0_f32.powi(-24);
            let expected = f64::from(x).ln();
            let error = (f64::from(ln(x)) - expected).abs();
            assert!(error < TOLERANCE * expected.abs().max(1.0), "{x}: off by {error:e}");
        }
        assert_eq!(ln(1.0), 0.0);
    }
}
