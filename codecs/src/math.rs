//! Element-wise functions and norms of the neural codecs, on slices in place.
//!
//! Every function is a polynomial without branches, so that the compiler turns its loop into vector
//! instructions; the standard library's are scalar and several times slower. Accuracy is stated by the tests
//! at the foot of the file, against the same function in `f64`. A row is one time step, `channels` values.

use crate::vector::{self, Vector, Work};
use std::f32::consts::{FRAC_1_PI, FRAC_1_SQRT_2, LN_2, LOG2_E};

/// Adding and subtracting 1.5 * 2^23 rounds a small float to the nearest integer and leaves that integer in its low bits.
const ROUNDER: f32 = 12_582_912.0;

/// `ln 2` and pi split in two, so that `x - n * c` keeps its low bits: the second part is what `f32` cannot hold.
const LN_2_LOW: f32 = -1.904_654_3e-9;
const PI_HIGH: f32 = std::f32::consts::PI;
const PI_LOW: f32 = -8.742_278e-8;

/// `e^x`; below -87 it is 0, so that no denormal number slows what follows, and above 88 it stays at 1.6e38.
#[inline]
pub fn exp(x: f32) -> f32 {
    let vanishes = x < -87.0;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x.mul_add(LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2, x));
    // Taylor series up to r^7 / 7! on |r| <= ln(2) / 2: the first term left out is below 1e-8.
    let p = r.mul_add(1.0 / 5040.0, 1.0 / 720.0);
    let p = p.mul_add(r, 1.0 / 120.0);
    let p = p.mul_add(r, 1.0 / 24.0);
    let p = p.mul_add(r, 1.0 / 6.0);
    let p = p.mul_add(r, 0.5);
    let p = (p * r).mul_add(r, r) + 1.0;
    let power = f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23));
    if vanishes { 0.0 } else { power }
}

/// `1 / (1 + e^-x)`.
#[inline]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `x * sigmoid(x)`, also called swish.
#[inline]
pub fn silu(x: f32) -> f32 {
    x * sigmoid(x)
}

/// Hyperbolic tangent.
#[inline]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let far = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
    // Near zero the formula above cancels; there the odd minimax polynomial of Cephes holds to 2^-24.
    let s = a * a;
    let p = s.mul_add(-5.704_988_7e-3, 2.063_909e-2);
    let p = p.mul_add(s, -5.373_971_6e-2);
    let p = p.mul_add(s, 1.333_144_2e-1);
    let p = p.mul_add(s, -3.333_328e-1);
    let near = (p * s).mul_add(a, a);
    let magnitude = if a < 0.625 { near } else { far };
    magnitude.copysign(x)
}

/// `x * Phi(x)` with the normal distribution function itself, not its tanh approximation.
#[inline]
pub fn gelu(x: f32) -> f32 {
    // erfc(z) = t (a1 + t (a2 + ...)) e^(-z^2), t = 1 / (1 + p z): Abramowitz and Stegun 7.1.26, |error| < 1.5e-7.
    let z = x.abs() * FRAC_1_SQRT_2;
    let t = 1.0 / z.mul_add(0.327_591_1, 1.0);
    let p = t.mul_add(1.061_405_4, -1.453_152_1);
    let p = p.mul_add(t, 1.421_413_8);
    let p = p.mul_add(t, -0.284_496_72);
    let p = p.mul_add(t, 0.254_829_6);
    let tail = 0.5 * p * t * exp(-z * z);
    x.max(0.0) - x.abs() * tail
}

/// `sin(x)^2`, for |x| up to 10,000: beyond that the range reduction loses digits.
#[inline]
pub fn sin_squared(x: f32) -> f32 {
    // The square has period pi, so the sign of the sine never matters.
    let n = x.mul_add(FRAC_1_PI, ROUNDER) - ROUNDER;
    let r = n.mul_add(-PI_LOW, n.mul_add(-PI_HIGH, x));
    // Taylor series up to r^11 / 11! on |r| <= pi / 2: the first term left out is below 6e-8.
    let s = r * r;
    let p = s.mul_add(-1.0 / 39_916_800.0, 1.0 / 362_880.0);
    let p = p.mul_add(s, -1.0 / 5040.0);
    let p = p.mul_add(s, 1.0 / 120.0);
    let p = p.mul_add(s, -1.0 / 6.0);
    let sine = (p * s).mul_add(r, r);
    sine * sine
}

/// `x`, below 0 `e^x - 1`, of every value.
pub fn elu(values: &mut [f32]) {
    map(values, |x| if x > 0.0 { x } else { exp(x) - 1.0 });
}

/// An activation between two linear layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// [`gelu`].
    Gelu,
    /// [`silu`].
    Silu,
}

impl Activation {
    /// Applies the function to every value.
    pub fn apply(self, values: &mut [f32]) {
        match self {
            Self::Gelu => map(values, gelu),
            Self::Silu => map(values, silu),
        }
    }
}

/// [`tanh`] of every value.
pub fn tanh_all(values: &mut [f32]) {
    map(values, tanh);
}

/// Gated linear unit: each row's first half times the [`sigmoid`] of its second, `[time, 2 n]` to `[time, n]`.
pub fn glu(rows: &[f32], width: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(rows.len() / 2);
    for row in rows.chunks_exact(2 * width) {
        let (value, gate) = row.split_at(width);
        out.extend(value.iter().zip(gate).map(|(v, &g)| v * sigmoid(g)));
    }
    out
}

/// Turns one row of scores into weights that sum to 1.
pub fn softmax(row: &mut [f32]) {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    map(row, |x| exp(x - max));
    let scale = 1.0 / sum(row, |x| x);
    map(row, |x| x * scale);
}

/// `f` of every value, with the widest vectors that the processor has.
fn map(values: &mut [f32], f: impl Fn(f32) -> f32) {
    vector::widest(Map(values, f));
}

struct Map<'a, F>(&'a mut [f32], F);

impl<F: Fn(f32) -> f32> Work for Map<'_, F> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        for v in self.0 {
            *v = (self.1)(*v);
        }
    }
}

/// Sum of `f` over a row in eight lanes: the order is fixed, and the compiler may keep it in one register.
#[inline]
fn sum(row: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = row.as_chunks::<8>();
    let mut lanes = [0.0_f32; 8];
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += f(x);
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|&x| f(x)).sum::<f32>()
}

/// The activation `x + sin(a x)^2 / (a + 1e-9)`, with one `a` for each channel.
#[derive(Clone, Debug)]
pub struct Snake {
    alpha: Vec<f32>,
    inverse: Vec<f32>,
}

impl Snake {
    /// With `alpha` for each channel; any sign.
    pub fn new(alpha: Vec<f32>) -> Self {
        let inverse = alpha.iter().map(|a| 1.0 / (a + 1e-9)).collect();
        Self { alpha, inverse }
    }

    /// Applies the function to rows of `channels` values, in place.
    pub fn apply(&self, rows: &mut [f32]) {
        vector::widest(Snaking(self, rows));
    }
}

struct Snaking<'a>(&'a Snake, &'a mut [f32]);

impl Work for Snaking<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let Snake { alpha, inverse } = self.0;
        for row in self.1.chunks_exact_mut(alpha.len()) {
            for ((x, a), i) in row.iter_mut().zip(alpha).zip(inverse) {
                *x = sin_squared(a * *x).mul_add(*i, *x);
            }
        }
    }
}

/// A norm over the channels of each row, with a learned scale.
#[derive(Clone, Debug)]
pub enum Norm {
    /// `(x - mean) / sqrt(variance + eps) * weight + bias`.
    Layer {
        /// Scale of each channel.
        weight: Vec<f32>,
        /// Shift of each channel.
        bias: Vec<f32>,
        /// Added to the variance.
        eps: f32,
    },
    /// `x / sqrt(mean(x^2) + eps) * weight`.
    Rms {
        /// Scale of each channel.
        weight: Vec<f32>,
        /// Added to the mean square.
        eps: f32,
    },
}

impl Norm {
    /// Values in a row.
    pub fn channels(&self) -> usize {
        match self {
            Self::Layer { weight, .. } | Self::Rms { weight, .. } => weight.len(),
        }
    }

    /// Normalises rows of [`Norm::channels`] values, in place.
    pub fn apply(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.channels()) {
            self.apply_row(row);
        }
    }

    fn apply_row(&self, row: &mut [f32]) {
        let count = row.len() as f32;
        match self {
            Self::Layer { weight, bias, eps } => {
                let mean = sum(row, |x| x) / count;
                let variance = sum(row, |x| (x - mean) * (x - mean)) / count;
                let scale = 1.0 / (variance + eps).sqrt();
                for ((x, w), b) in row.iter_mut().zip(weight).zip(bias) {
                    *x = ((*x - mean) * scale).mul_add(*w, *b);
                }
            }
            Self::Rms { weight, eps } => {
                let scale = 1.0 / (sum(row, |x| x * x) / count + eps).sqrt();
                for (x, w) in row.iter_mut().zip(weight) {
                    *x *= scale * w;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four units in the last place: rounding of about ten chained operations.
    const RELATIVE: f64 = 5e-7;
    /// Functions that end in a sum or a fitted polynomial of that accuracy, for results near 1.
    const ABSOLUTE: f64 = 5e-7;

    fn sweep(from: f32, to: f32) -> impl Iterator<Item = f32> {
        const STEPS: u16 = 40_001;
        (0..STEPS).map(move |i| from + (to - from) * f32::from(i) / f32::from(STEPS - 1))
    }

    /// Abramowitz and Stegun's fit is only good to 1.5e-7, so the judge is a Taylor series in `f64`.
    fn erf(x: f64) -> f64 {
        let (mut term, mut total) = (x, x);
        for n in 1..200 {
            let n = f64::from(n);
            term *= -x * x / n;
            total += term / (2.0 * n + 1.0);
        }
        total * std::f64::consts::FRAC_2_SQRT_PI
    }

    fn assert_near(what: &str, x: f32, got: f32, expected: f64, relative: f64, absolute: f64) {
        let error = (f64::from(got) - expected).abs();
        assert!(
            error <= relative * expected.abs() + absolute,
            "{what}({x}) = {got}, expected {expected}, off by {error:e}"
        );
    }

    #[test]
    fn exp_family_is_accurate_to_the_last_places() {
        for x in sweep(-86.9, 87.9) {
            let wide = f64::from(x);
            assert_near("exp", x, exp(x), wide.exp(), RELATIVE, 0.0);
        }
        for x in sweep(-30.0, 30.0) {
            let wide = f64::from(x);
            let sigma = 1.0 / (1.0 + (-wide).exp());
            assert_near("sigmoid", x, sigmoid(x), sigma, RELATIVE, 0.0);
            assert_near("silu", x, silu(x), wide * sigma, RELATIVE, 0.0);
            assert_near("tanh", x, tanh(x), wide.tanh(), RELATIVE, 0.0);
        }
        for x in sweep(-0.7, 0.7) {
            assert_near("tanh", x, tanh(x), f64::from(x).tanh(), RELATIVE, 0.0);
        }
    }

    #[test]
    fn elu_is_smooth_at_zero_and_flat_far_below() {
        let mut values: Vec<f32> = sweep(-20.0, 20.0).collect();
        elu(&mut values);
        for (x, y) in sweep(-20.0, 20.0).zip(values) {
            let wide = f64::from(x);
            let expected = if x > 0.0 { wide } else { wide.exp_m1() };
            assert_near("elu", x, y, expected, 0.0, ABSOLUTE);
        }
    }

    #[test]
    fn gelu_is_the_erf_form() {
        for x in sweep(-5.0, 5.0) {
            let wide = f64::from(x);
            let expected = 0.5 * wide * (1.0 + erf(wide * std::f64::consts::FRAC_1_SQRT_2));
            assert_near("gelu", x, gelu(x), expected, RELATIVE, ABSOLUTE);
        }
        assert_eq!((gelu(40.0), gelu(-40.0), gelu(0.0)), (40.0, 0.0, 0.0));
    }

    #[test]
    fn sine_square_holds_over_its_stated_range() {
        for x in sweep(-30.0, 30.0).chain(sweep(-10_000.0, 10_000.0)) {
            let expected = f64::from(x).sin().powi(2);
            // n pi in two parts is off by n times what is left of pi: 3,200 * 1e-14, far below.
            assert_near("sin_squared", x, sin_squared(x), expected, RELATIVE, ABSOLUTE);
        }
    }

    #[test]
    fn extreme_values_neither_overflow_nor_hide_a_nan() {
        for x in [f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(exp(x).is_finite() && sigmoid(x).is_finite() && tanh(x).abs() == 1.0);
        }
        for f in [exp, sigmoid, silu, tanh, gelu, sin_squared] {
            assert!(f(f32::NAN).is_nan());
        }
    }

    #[test]
    fn snake_follows_its_formula_for_any_sign_of_alpha() {
        let alpha = vec![0.7, -1.3, 2.0];
        let snake = Snake::new(alpha.clone());
        let mut rows: Vec<f32> = sweep(-6.0, 6.0).take(39_999).collect();
        let before = rows.clone();
        snake.apply(&mut rows);
        for (i, (&x, &y)) in before.iter().zip(&rows).enumerate() {
            let (wide, a) = (f64::from(x), f64::from(alpha[i % 3]));
            let expected = wide + (a * wide).sin().powi(2) / (a + 1e-9);
            assert_near("snake", x, y, expected, RELATIVE, 2.0 * ABSOLUTE);
        }
    }

    #[test]
    fn softmax_sums_to_one_and_ignores_a_common_shift() {
        let scores = [1.0, 3.0, -2.0, 0.5, 0.0, 0.25, -1.0, 2.0, 1.5];
        let mut plain = scores;
        let mut shifted = scores.map(|s| s + 50.0);
        softmax(&mut plain);
        softmax(&mut shifted);
        let total: f64 = scores.iter().map(|&s| f64::from(s).exp()).sum();
        for ((&s, &p), &q) in scores.iter().zip(&plain).zip(&shifted) {
            assert_near("softmax", s, p, f64::from(s).exp() / total, 2.0 * RELATIVE, 0.0);
            assert!((p - q).abs() < 1e-6);
        }
    }

    #[test]
    fn norms_match_their_formulas_on_each_row() {
        let rows: Vec<f32> = (0..22_u8).map(|i| (f32::from(i) * 1.7).sin() * 3.0 + 1.0).collect();
        let weight: Vec<f32> = (0..11_u8).map(|i| 0.5 + 0.1 * f32::from(i)).collect();
        let bias: Vec<f32> = (0..11_u8).map(|i| 0.2 * f32::from(i) - 1.0).collect();
        let layer = Norm::Layer { weight: weight.clone(), bias: bias.clone(), eps: 1e-5 };
        let rms = Norm::Rms { weight: weight.clone(), eps: 1e-5 };
        let (mut by_layer, mut by_rms) = (rows.clone(), rows.clone());
        layer.apply(&mut by_layer);
        rms.apply(&mut by_rms);
        for (r, row) in rows.chunks_exact(11).enumerate() {
            let wide: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
            let mean = wide.iter().sum::<f64>() / 11.0;
            let variance = wide.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 11.0;
            let square = wide.iter().map(|x| x * x).sum::<f64>() / 11.0;
            for c in 0..11 {
                let (w, b) = (f64::from(weight[c]), f64::from(bias[c]));
                let expected = (wide[c] - mean) / (variance + 1e-5).sqrt() * w + b;
                assert_near("layer norm", row[c], by_layer[r * 11 + c], expected, 1e-6, 1e-6);
                let expected = wide[c] / (square + 1e-5).sqrt() * w;
                assert_near("rms norm", row[c], by_rms[r * 11 + c], expected, 1e-6, 1e-6);
            }
        }
    }

    #[test]
    fn glu_gates_the_first_half_by_the_second() {
        let out = glu(&[1.0, 2.0, 0.0, 100.0, 3.0, 4.0, -100.0, 0.0], 2);
        assert_eq!(out[0], 0.5);
        assert_eq!(out[1], 2.0);
        assert!(out[2].abs() < 1e-30);
        assert_eq!(out[3], 2.0);
    }
}
