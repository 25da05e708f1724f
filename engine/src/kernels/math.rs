//! Elementwise functions and row reductions, written so that the compiler turns them into vector code.
//!
//! Numbers that are not finite stay so: a broken value must reach the logits, where it is noticed.

use super::tile::LANES;

/// Below this the true value is a denormal number; [`exp`] gives 0.
const EXP_LOWEST: f32 = -87.33;
/// Above this the true value exceeds the largest `f32`; [`exp`] stops there.
const EXP_HIGHEST: f32 = 88.37;
/// Adding and subtracting it rounds to a whole number: 1.5 * 2^23 leaves no bit for a fraction.
const ROUNDER: f32 = 12_582_912.0;
/// Upper part of ln 2 with so few bits that its product with an exponent is exact, and the rest of it.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// From here on tanh(softplus(x)) rounds to 1.
const MISH_LINEAR: f32 = 20.0;

/// e to the power of `x`, within 2 units in the last place.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let clamped = if x > EXP_HIGHEST { EXP_HIGHEST } else { x };
    let shifted = clamped.mul_add(std::f32::consts::LOG2_E, ROUNDER);
    let exponent = shifted - ROUNDER;
    let r = exponent.mul_add(-LN2_LOW, exponent.mul_add(-LN2_HIGH, clamped));
    // Taylor terms of e^r, |r| <= ln(2)/2, up to r^7 / 7!: the first one left out is below 6e-9.
    let mut p = 1.0 / 5040.0;
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = r.mul_add(p, c);
    }
    let two_to_exponent = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
    if x < EXP_LOWEST { 0.0 } else { p * two_to_exponent }
}

/// `gate[i] = silu(gate[i]) * up[i]`, the gated unit of the feed-forward block.
pub fn silu_times(gate: &mut [f32], up: &[f32]) {
    for (g, u) in gate.iter_mut().zip(up) {
        *g = *g / (1.0 + exp(-*g)) * u;
    }
}

/// `x = mish(x + bias)`: x * tanh(ln(1 + e^x)).
///
/// With n = e^x (e^x + 2) the tangent is n / (n + 2), which needs one exponential and loses no digits.
pub fn mish_biased(row: &mut [f32], bias: &[f32]) {
    for (value, b) in row.iter_mut().zip(bias) {
        let x = *value + b;
        let e = exp(if x > MISH_LINEAR { MISH_LINEAR } else { x });
        let n = e * (e + 2.0);
        *value = x * (n / (n + 2.0));
    }
}

/// `row[i] += bias[i]`.
pub fn add(row: &mut [f32], bias: &[f32]) {
    for (value, b) in row.iter_mut().zip(bias) {
        *value += b;
    }
}

/// Whether all of them are finite numbers.
pub fn all_finite(values: &[f32]) -> bool {
    // The largest magnitude as an integer: unlike a search for the first fault this loop is vectorised.
    let magnitude = |v: &f32| v.to_bits() & !(1 << 31);
    values.iter().map(magnitude).fold(0, u32::max) < f32::INFINITY.to_bits()
}

/// `out = x / rms(x) * weight`, rms with `eps` under the root.
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let scale = rms_scale(x, eps);
    for ((o, v), w) in out.iter_mut().zip(x).zip(weight) {
        *o = v * scale * w;
    }
}

/// [`rms_norm`] in place.
pub fn rms_norm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    let scale = rms_scale(x, eps);
    for (v, w) in x.iter_mut().zip(weight) {
        *v = *v * scale * w;
    }
}

fn rms_scale(x: &[f32], eps: f32) -> f32 {
    let (whole, rest) = x.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in whole {
        for (lane, v) in lanes.iter_mut().zip(chunk) {
            *lane = v.mul_add(*v, *lane);
        }
    }
    for (lane, v) in lanes.iter_mut().zip(rest) {
        *lane = v.mul_add(*v, *lane);
    }
    1.0 / (sum_lanes(lanes) / x.len() as f32 + eps).sqrt()
}

/// Rotates the halves of one head: pairs `(i, i + half)` by the angle whose cosine and sine are given.
pub fn rotate(head: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (low, high) = head.split_at_mut(head.len() / 2);
    for (((a, b), c), s) in low.iter_mut().zip(high).zip(cos).zip(sin) {
        (*a, *b) = (*a * c - *b * s, *b * c + *a * s);
    }
}

/// Turns scores into weights that are not yet divided by their sum, which is returned.
/// A score of minus infinity becomes exactly 0.
pub fn softmax_unscaled(scores: &mut [[f32; LANES]]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in scores.iter() {
        for (lane, &v) in lanes.iter_mut().zip(chunk) {
            *lane = if v > *lane { v } else { *lane };
        }
    }
    let highest = lanes.into_iter().fold(f32::NEG_INFINITY, f32::max);
    let mut sums = [0.0; LANES];
    for chunk in scores.iter_mut() {
        for (sum, v) in sums.iter_mut().zip(chunk) {
            *v = exp(*v - highest);
            *sum += *v;
        }
    }
    sum_lanes(sums)
}

/// Halves the lanes until one is left: a fixed order.
fn sum_lanes(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few roundings of the polynomial; the exact value is taken in f64.
    const EXP_RELATIVE: f64 = 2.5e-7;

    #[test]
    fn one_number_that_is_not_finite_is_found_wherever_it_is() {
        let mut values = [f32::MAX, f32::MIN, 0.0, -0.0, f32::MIN_POSITIVE].repeat(9);
        assert!(all_finite(&values) && all_finite(&[]));
        for broken in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for at in 0..values.len() {
                let whole = std::mem::replace(&mut values[at], broken);
                assert!(!all_finite(&values), "{broken} at {at}");
                values[at] = whole;
            }
        }
    }

    fn sweep(low: f32, high: f32) -> impl Iterator<Item = f32> {
        (0..=200_000).map(move |i| low + (high - low) * (i as f32 / 200_000.0))
    }

    #[test]
    fn exp_is_close_to_the_true_value() {
        for x in sweep(-87.3, 88.3) {
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < EXP_RELATIVE, "exp({x}): {error:e}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(f32::INFINITY) > 2e38);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn activations_match_their_definitions() {
        for x in sweep(-30.0, 30.0) {
            let d = f64::from(x);
            let mut silu = [x];
            silu_times(&mut silu, &[2.0]);
            let exact = 2.0 * d / (1.0 + (-d).exp());
            assert!((f64::from(silu[0]) - exact).abs() < 1e-6 * (1.0 + d.abs()), "silu({x})");
            let mut mish = [x - 1.0];
            mish_biased(&mut mish, &[1.0]);
            let at = f64::from((x - 1.0) + 1.0);
            let exact = at * at.exp().ln_1p().tanh();
            assert!((f64::from(mish[0]) - exact).abs() < 1e-6 * (1.0 + d.abs()), "mish({x})");
        }
    }

    #[test]
    fn broken_numbers_stay_broken() {
        let mut silu = [f32::NAN];
        silu_times(&mut silu, &[1.0]);
        let mut mish = [f32::NAN];
        mish_biased(&mut mish, &[1.0]);
        let mut scores = [[0.0; LANES]];
        scores[0][3] = f32::NAN;
        let sum = softmax_unscaled(&mut scores);
        let mut norm = [1.0, f32::NAN];
        rms_norm_in_place(&mut norm, &[1.0, 1.0], 1e-6);
        assert!(silu[0].is_nan() && mish[0].is_nan() && sum.is_nan() && norm[0].is_nan());
    }

    #[test]
    fn a_value_does_not_depend_on_its_place_in_the_slice() {
        let values: Vec<f32> = sweep(-9.0, 9.0).step_by(4999).collect();
        let ones = vec![1.0; values.len()];
        let mut together = values.clone();
        silu_times(&mut together, &ones);
        for (i, v) in values.iter().enumerate() {
            let mut alone = [*v];
            silu_times(&mut alone, &[1.0]);
            assert_eq!(alone[0].to_bits(), together[i].to_bits());
        }
    }

    #[test]
    fn masked_scores_weigh_nothing() {
        let mut long = [[f32::NEG_INFINITY; LANES]; 3];
        long[0] = std::array::from_fn(|i| i as f32);
        let mut short = [long[0]];
        let sums = (softmax_unscaled(&mut long), softmax_unscaled(&mut short));
        assert_eq!(sums.0.to_bits(), sums.1.to_bits());
        assert_eq!(long[0], short[0]);
        assert_eq!(long[1], [0.0; LANES]);
        assert_eq!(short[0][15], 1.0);
    }

    #[test]
    fn rotation_by_a_right_angle_swaps_the_halves() {
        let mut head = [1.0, 2.0, 3.0, 4.0];
        rotate(&mut head, &[0.0, 0.0], &[1.0, 1.0]);
        assert_eq!(head, [-3.0, -4.0, 1.0, 2.0]);
    }

    #[test]
    fn rms_norm_of_a_hand_worked_row() {
        // mean square of 3 and 4 is 12.5
        let mut out = [0.0; 2];
        rms_norm(&[3.0, 4.0], &[1.0, 10.0], 0.0, &mut out);
        let rms = 12.5_f32.sqrt();
        assert!((out[0] - 3.0 / rms).abs() < 1e-6 && (out[1] - 40.0 / rms).abs() < 1e-5);
    }
}
