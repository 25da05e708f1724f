//! Weights for benches: how fast a network is does not depend on what it says.

use std::borrow::Cow;
use std::path::Path;

use safetensors::tensor::{Dtype, View};

/// Tensors of small values, the same at every call; `f32` or `bf16`. They are made while they are written, one at a time.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_noise(
    file: &Path,
    tensors: &[(String, Vec<usize>)],
    dtype: Dtype,
) -> anyhow::Result<()> {
    let noise = tensors.iter().enumerate().map(|(seed, (name, shape))| {
        (name, Noise { seed: seed as u32, shape: shape.clone(), dtype })
    });
    Ok(safetensors::serialize_to_file(noise, None, file)?)
}

struct Noise {
    seed: u32,
    shape: Vec<usize>,
    dtype: Dtype,
}

impl View for Noise {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let mut state = self.seed;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * 0.08
        });
        let noise = noise.take(self.shape.iter().product());
        Cow::Owned(match self.dtype {
            Dtype::BF16 => noise.flat_map(|v| half::bf16::from_f32(v).to_le_bytes()).collect(),
            _ => noise.flat_map(f32::to_le_bytes).collect(),
        })
    }

    fn data_len(&self) -> usize {
        let bytes = if self.dtype == Dtype::BF16 { 2 } else { 4 };
        self.shape.iter().product::<usize>() * bytes
    }
}
