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
        let gain = weights.f32(&format!("{name}.weight_g"), &[shape[0], 1, 1])?;
        let name_v = format!("{name}.weight_v");
        let mut values = weights.f32(&name_v, &shape)?;
        for (i, (part, g)) in values.chunks_exact_mut(shape[1] * shape[2]).zip(gain).enumerate() {
            // In f64: the norm of thousands of values would lose digits that every product then inherits.
            let norm = part.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
            if norm == 0.0 {
                let reason = format!("part {i} is all zero, weight norm divides by its length");
                return Err(LoadError::tensor(weights.file(), name_v, reason));
            }
            let scale = f64::from(g) / norm;
            for v in part {
                *v = (f64::from(*v) * scale) as f32;
            }
        }
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

    #[test]
    fn scaling_covers_values_and_bias() {
        let filter =
            Filter { shape: [2, 1, 2], values: vec![1.0, 2.0, 3.0, 4.0], bias: vec![1.0, 1.0] };
        let scaled = filter.scaled(&[2.0, -1.0]);
        assert_eq!(scaled.values, [2.0, 4.0, -3.0, -4.0]);
        assert_eq!(scaled.bias, [2.0, -1.0]);
    }
}
