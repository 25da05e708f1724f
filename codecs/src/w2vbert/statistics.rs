//! Mean and variance of the tapped hidden state, by which DualCodec normalises it.

use std::path::Path;

use crate::frames::Frames;
use crate::weights::{LoadError, Weights};

/// Per channel: what is subtracted, and what the rest is multiplied by.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    mean: Vec<f32>,
    scale: Vec<f32>,
}

impl Statistics {
    /// Reads `mean` and `var`, `channels` values each, from any file that [`Weights`] opens: the release has a torch pickle.
    ///
    /// # Errors
    /// The file is unreadable or is neither, one of the two is missing or of another size, or a variance is not above 0.
    pub fn read(file: &Path, channels: usize) -> Result<Self, LoadError> {
        let weights = Weights::open(file)?;
        let (mean, variance) =
            (weights.f32("mean", &[channels])?, weights.f32("var", &[channels])?);
        match variance.iter().position(|&v| v <= 0.0) {
            Some(at) => {
                let reason = format!("value {at} is {}, must be above 0", variance[at]);
                Err(LoadError::tensor(file, "var", reason))
            }
            None => Ok(Self { mean, scale: variance.iter().map(|v| 1.0 / v.sqrt()).collect() }),
        }
    }

    /// Values in a row.
    pub fn channels(&self) -> usize {
        self.mean.len()
    }

    /// `(h - mean) / sqrt(variance)`, in place.
    pub fn normalise(&self, hidden: &mut Frames) {
        for row in hidden.rows_mut() {
            for ((x, mean), scale) in row.iter_mut().zip(&self.mean).zip(&self.scale) {
                *x = (*x - mean) * scale;
            }
        }
    }
}
