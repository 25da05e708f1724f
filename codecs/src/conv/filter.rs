//! Filter values as model files hold them, before a layer packs them.

use crate::weights::{LoadError, Weights};

/// Values of a convolution, `[first, second, kernel]` as in the file, and a bias of `bias.len()` outputs.
///
/// A plain filter is `[out, in, kernel]`, a transposed one `[in, out, kernel]`, a depthwise one `[channels, 1, kernel]`.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Shape of [`Filter::values`].
    pub shape: [usize; 3],
    /// The values, row-major.
    pub values: Vec<f32>,
    /// Added to each output channel; empty when the layer has none.
    pub bias: Vec<f32>,
}

impl Filter {
    /// Reads `NAME.weight` of the given shape and, with `bias` outputs > 0, `NAME.bias`.
    ///
    /// # Errors
    /// A tensor is missing or malformed.
    pub fn plain(
        weights: &Weights,
        name: &str,
        shape: [usize; 3],
        bias: usize,
    ) -> Result<Self, LoadError> {
        let values = weights.f32(&format!("{name}.weight"), &shape)?;
        Ok(Self { shape, values, bias: read_bias(weights, name, bias)? })
    }

    /// Reads `NAME.weight`, a matrix `[out, in]`, and, if `bias`, `NAME.bias`.
    ///
    /// # Errors
    /// A tensor is missing or malformed.
    pub fn matrix(
        weights: &Weights,
        name: &str,
        [out, input]: [usize; 2],
        bias: bool,
    ) -> Result<Self, LoadError> {
        let values = weights.f32(&format!("{name}.weight"), &[out, input])?;
        let bias = read_bias(weights, name, if bias { out } else { 0 })?;
        Ok(Self { shape: [out, input, 1], values, bias })
    }

    /// Reads `NAME.weight`, `[out, in, kernel, kernel]`, and `NAME.bias`, as a filter `[out, in, kernel * kernel]`.
    ///
    /// # Errors
    /// A tensor is missing or malformed.
    pub fn plane(
        weights: &Weights,
        name: &str,
        [out, input, kernel]: [usize; 3],
    ) -> Result<Self, LoadError> {
        let values = weights.f32(&format!("{name}.weight"), &[out, input, kernel, kernel])?;
        let bias = read_bias(weights, name, out)?;
        Ok(Self { shape: [out, input, kernel * kernel], values, bias })
    }

    /// Reads `NAME.weight_g`, `NAME.weight_v` and `NAME.bias`, and folds the weight norm: `v * g / |v|`, the norm
    /// over all axes but the first, for plain and transposed filters alike.
    ///
    /// # Errors
    /// A tensor is missing or malformed, or a part of `weight_v` has no length to divide by.
    pub fn weight_norm(
        weights: &Weights,
        name: &str,
        shape: [usize; 3],
        bias: usize,
    ) -> Result<Self, LoadError> {
        let (gain, value) = (format!("{name}.weight_g"), format!("{name}.weight_v"));
        Self::normed(weights, name, shape, bias, [gain, value])
    }

    /// Reads a filter of the given shape as the file has it: [`Filter::weight_norm`]'s tensors, the same under their newer names
    /// `NAME.parametrizations.weight.original0` and `1`, or, where neither is there, [`Filter::plain`]'s.
    ///
    /// # Errors
    /// As [`Filter::weight_norm`].
    pub fn load(
        weights: &Weights,
        name: &str,
        shape: [usize; 3],
        bias: usize,
    ) -> Result<Self, LoadError> {
        if weights.shape(&format!("{name}.weight_v")).is_some() {
            return Self::weight_norm(weights, name, shape, bias);
        }
        let newer = [0, 1].map(|i| format!("{name}.parametrizations.weight.original{i}"));
        if weights.shape(&newer[1]).is_some() {
            return Self::normed(weights, name, shape, bias, newer);
        }
        Self::plain(weights, name, shape, bias)
    }

    /// As [`Filter::load`], of a filter whose weight norm keeps a length for each tap, over both other axes.
    ///
    /// # Errors
    /// As [`Filter::weight_norm`].
    pub fn norm_of_taps(
        weights: &Weights,
        name: &str,
        shape: [usize; 3],
        bias: usize,
    ) -> Result<Self, LoadError> {
        let older = ["g", "v"].map(|part| format!("{name}.weight_{part}"));
        let newer = [0, 1].map(|i| format!("{name}.parametrizations.weight.original{i}"));
        for [gain, value] in [older, newer] {
            if weights.shape(&value).is_some() {
                let gain = weights.f32(&gain, &[1, 1, shape[2]])?;
                let mut values = weights.f32(&value, &shape)?;
                fold(&mut values, &gain, |at| at % shape[2])
                    .map_err(|tap| no_length(weights, &value, tap))?;
                return Ok(Self { shape, values, bias: read_bias(weights, name, bias)? });
            }
        }
        Self::plain(weights, name, shape, bias)
    }

    fn normed(
        weights: &Weights,
        name: &str,
        shape: [usize; 3],
        bias: usize,
        [gain, value]: [String; 2],
    ) -> Result<Self, LoadError> {
        let gain = weights.f32(&gain, &[shape[0], 1, 1])?;
        let mut values = weights.f32(&value, &shape)?;
        fold(&mut values, &gain, |at| at / (shape[1] * shape[2]))
            .map_err(|part| no_length(weights, &value, part))?;
        Ok(Self { shape, values, bias: read_bias(weights, name, bias)? })
    }

    /// Multiplies the outputs of a plain or depthwise filter by one factor for each, bias included: a layer scale that
    /// follows the layer costs nothing when it is folded here.
    ///
    /// # Panics
    /// When the number of factors is not the first axis: a caller's bug.
    #[must_use]
    pub fn scaled(mut self, factors: &[f32]) -> Self {
        assert_eq!(factors.len(), self.shape[0], "one factor for each output; this is a bug");
        let part = self.shape[1] * self.shape[2];
        for (values, factor) in self.values.chunks_exact_mut(part).zip(factors) {
            values.iter_mut().for_each(|v| *v *= factor);
        }
        for (b, factor) in self.bias.iter_mut().zip(factors) {
            *b *= factor;
        }
        self
    }
}

/// `v g / |v|`, where `part` tells which length a value counts for; the part that has none is the error.
fn fold(values: &mut [f32], gain: &[f32], part: impl Fn(usize) -> usize) -> Result<(), usize> {
    // In f64: the norm of thousands of values would lose digits that every product then inherits.
    let mut squares = vec![0.0_f64; gain.len()];
    for (at, v) in values.iter().enumerate() {
        squares[part(at)] += f64::from(*v) * f64::from(*v);
    }
    if let Some(empty) = squares.iter().position(|&s| s == 0.0) {
        return Err(empty);
    }
    let scale: Vec<f64> = squares.iter().zip(gain).map(|(s, &g)| f64::from(g) / s.sqrt()).collect();
    for (at, v) in values.iter_mut().enumerate() {
        *v = (f64::from(*v) * scale[part(at)]) as f32;
    }
    Ok(())
}

fn no_length(weights: &Weights, name: &str, part: usize) -> LoadError {
    let reason = format!("part {part} is all zero, weight norm divides by its length");
    LoadError::tensor(weights.file(), name, reason)
}

fn read_bias(weights: &Weights, name: &str, outputs: usize) -> Result<Vec<f32>, LoadError> {
    match outputs {
        0 => Ok(Vec::new()),
        n => weights.f32(&format!("{name}.bias"), &[n]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::{Dtype, tensor::TensorView};

    fn weights(tensors: &[(&str, Vec<usize>, Vec<f32>)]) -> (tempfile::TempDir, Weights) {
        let bytes: Vec<Vec<u8>> = tensors
            .iter()
            .map(|(_, _, values)| values.iter().flat_map(|v| v.to_le_bytes()).collect())
            .collect();
        let views = tensors.iter().zip(&bytes).map(|((name, shape, _), b)| {
            (*name, TensorView::new(Dtype::F32, shape.clone(), b).unwrap())
        });
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("m.safetensors");
        std::fs::write(&file, safetensors::serialize(views, None).unwrap()).unwrap();
        let weights = Weights::open(&file).unwrap();
        (dir, weights)
    }

    #[test]
    fn weight_norm_takes_its_length_over_all_but_the_first_axis() {
        let (_dir, weights) = weights(&[
            ("c.weight_g", vec![2, 1, 1], vec![10.0, 1.0]),
            ("c.weight_v", vec![2, 1, 2], vec![3.0, 4.0, 0.0, 2.0]),
            ("c.bias", vec![2], vec![0.5, -0.5]),
        ]);
        let filter = Filter::weight_norm(&weights, "c", [2, 1, 2], 2).unwrap();
        assert_eq!(filter.values, [6.0, 8.0, 0.0, 1.0]);
        assert_eq!(filter.bias, [0.5, -0.5]);
    }

    #[test]
    fn a_part_without_length_is_told_by_name() {
        let (_dir, weights) = weights(&[
            ("c.weight_g", vec![2, 1, 1], vec![10.0, 1.0]),
            ("c.weight_v", vec![2, 1, 2], vec![3.0, 4.0, 0.0, 0.0]),
        ]);
        let text = Filter::weight_norm(&weights, "c", [2, 1, 2], 0).unwrap_err().to_string();
        assert!(text.contains("c.weight_v") && text.contains("part 1"), "{text}");
    }

    /// Each value is one product and one division away from the reference's.
    const TOLERANCE: f32 = 1e-6;

    #[test]
    fn folded_filters_are_those_of_the_reference() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/fixtures/xcodec_tiny/weight_norm.safetensors"
        );
        let golden = Weights::open(std::path::Path::new(file)).unwrap();
        for name in ["conv", "conv_transpose", "hubert_pos_conv"] {
            let read = |part: &str| {
                let name = format!("{name}.{part}");
                let shape: [usize; 3] = golden.shape(&name).unwrap().try_into().unwrap();
                (golden.f32(&name, &shape).unwrap(), shape)
            };
            let ((gain, gain_shape), (value, shape)) = (read("original0"), read("original1"));
            let (_dir, weights) = weights(&[
                ("c.parametrizations.weight.original0", gain_shape.to_vec(), gain),
                ("c.parametrizations.weight.original1", shape.to_vec(), value),
            ]);
            let load = if name.starts_with("hubert") { Filter::norm_of_taps } else { Filter::load };
            let filter = load(&weights, "c", shape, 0).unwrap();
            for (got, expected) in filter.values.iter().zip(read("weight").0) {
                assert!((got - expected).abs() < TOLERANCE, "{name}: {got}, expected {expected}");
            }
        }
    }

    #[test]
    fn a_filter_that_is_folded_already_is_read_as_it_is() {
        let (_dir, weights) = weights(&[("c.weight", vec![1, 1, 2], vec![3.0, 4.0])]);
        for load in [Filter::load, Filter::norm_of_taps] {
            assert_eq!(load(&weights, "c", [1, 1, 2], 0).unwrap().values, [3.0, 4.0]);
        }
        let text = Filter::load(&weights, "d", [1, 1, 2], 0).unwrap_err().to_string();
        assert!(text.contains("`d.weight`") && text.contains("missing"), "{text}");
    }

    #[test]
    fn scaling_covers_values_and_bias() {
        let filter =
            Filter { shape: [2, 1, 2], values: vec![1.0, 2.0, 3.0, 4.0], bias: vec![1.0, 1.0] };
        let scaled = filter.scaled(&[2.0, -1.0]);
        assert_eq!(scaled.values, [2.0, 4.0, -3.0, -4.0]);
        assert_eq!(scaled.bias, [2.0, -1.0]);
    }
}
