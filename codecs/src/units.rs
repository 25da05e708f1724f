//! Units of speech: for each feature vector of a clip the nearest of many centres, and the models that make such features.
//!
//! ```text
//! 16 kHz samples -> features of one layer [steps, width], 50 a second -> nearest centre -> unit [steps]
//! ```

use std::path::Path;

use crate::codebook::NearestCodebook;
use crate::frames::Frames;
use crate::w2vbert::{self, W2vBert};
use crate::weights::{LoadError, Weights, read_json};

/// Name of the tensor with the centres, `[units, width]`.
pub const CENTRES: &str = "centers";

/// Centres that k-means has found.
pub struct Units {
    centres: NearestCodebook,
}

impl Units {
    /// Reads the tensor `centers`, `[units, width]`.
    ///
    /// # Errors
    /// The tensor is missing or malformed, of another width, or has more than 65,536 rows.
    pub fn load(weights: &Weights, width: usize) -> Result<Self, LoadError> {
        /// Units are 16-bit numbers.
        const UNITS_MAX: usize = 1 << 16;
        let units = weights.shape(CENTRES).and_then(|shape| shape.first()).copied().unwrap_or(0);
        if units > UNITS_MAX {
            let reason = format!("has {units} rows, at most {UNITS_MAX} are supported");
            return Err(LoadError::tensor(weights.file(), CENTRES, reason));
        }
        Ok(Self { centres: NearestCodebook::load(weights, CENTRES, [units, width])? })
    }

    /// Number of units.
    pub fn count(&self) -> usize {
        self.centres.entries()
    }

    /// The unit of each row, `[steps, width]`; the lowest one on ties.
    pub fn nearest(&self, features: &Frames) -> Vec<u16> {
        self.centres.nearest(features)
    }
}

/// A model whose hidden states are features.
pub enum Extractor {
    /// w2v-BERT, the state of one layer.
    W2vBert {
        /// With at least that many layers.
        model: W2vBert,
        /// Index of the hidden state.
        layer: usize,
    },
}

/// What the configuration of a model calls it.
#[derive(serde::Deserialize)]
struct Named {
    model_type: Option<String>,
}

impl Extractor {
    /// Reads the model in a folder, `config.json` and weights, up to the layer whose state is used.
    ///
    /// # Errors
    /// The model is one that this program does not have, or a part is missing or malformed.
    pub fn open(folder: &Path, layer: usize) -> Result<Self, LoadError> {
        let file = folder.join("config.json");
        let named: Named = read_json(&file)?;
        match named.model_type.as_deref() {
            None | Some("wav2vec2-bert") => {
                let config = w2vbert::Config::read(&file)?;
                let model = W2vBert::load(&Weights::open(folder)?, &config, layer)?;
                Ok(Self::W2vBert { model, layer })
            }
            Some(other) => {
                let reason =
                    format!("features of {other} are not supported, only of wav2vec2-bert");
                Err(LoadError::field(&file, "model_type", reason))
            }
        }
    }

    /// Values of a feature vector.
    pub fn width(&self) -> usize {
        match self {
            Self::W2vBert { model, .. } => model.hidden(),
        }
    }

    /// Features of a clip at 16 kHz, `[steps, width]` at 50 Hz.
    pub fn features(&self, samples: &[f32]) -> Frames {
        match self {
            Self::W2vBert { model, layer } => model.hidden_state(samples, *layer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::testing::noise;
    use safetensors::{Dtype, tensor::TensorView};

    const COUNT: usize = 40;

    fn folder() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/dualcodec_tiny"))
    }

    fn weights(centres: &[f32], shape: [usize; 2]) -> (tempfile::TempDir, Weights) {
        let bytes: Vec<u8> = centres.iter().flat_map(|v| v.to_le_bytes()).collect();
        let view = TensorView::new(Dtype::F32, shape.to_vec(), &bytes).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("units.safetensors");
        std::fs::write(&file, safetensors::serialize([("centers", view)], None).unwrap()).unwrap();
        let weights = Weights::open(&file).unwrap();
        (folder, weights)
    }

    /// The fixture's model as a folder, whose configuration says that it is of some type.
    fn extractor(model_type: &str, layer: usize) -> Result<Extractor, LoadError> {
        let made = tempfile::tempdir().unwrap();
        let config = folder().join("w2vbert_config.json");
        let mut config: serde_json::Value = read_json(&config).unwrap();
        config["model_type"] = model_type.into();
        std::fs::write(made.path().join("config.json"), config.to_string()).unwrap();
        let weights = made.path().join("model.safetensors");
        std::fs::copy(folder().join("w2vbert.safetensors"), weights).unwrap();
        Extractor::open(made.path(), layer)
    }

    #[test]
    fn the_unit_of_a_step_is_the_centre_at_the_least_distance() {
        let extractor = extractor("wav2vec2-bert", 1).unwrap();
        let samples: Vec<f32> =
            (0..16_000_u16).map(|i| (f32::from(i) * 0.05).sin() * 0.3).collect();
        let features = extractor.features(&samples);
        assert_eq!((features.time(), features.channels()), (49, extractor.width()));
        // Centres on the features themselves, moved a little, so that several units occur.
        let width = extractor.width();
        let mut centres = noise(COUNT * width, 3);
        for (centre, row) in centres.chunks_exact_mut(width).zip(features.rows()) {
            centre.iter_mut().zip(row).for_each(|(c, r)| *c = r + 0.2 * *c);
        }
        let (_folder, weights) = weights(&centres, [COUNT, width]);
        let units = Units::load(&weights, width).unwrap();
        let distance = |row: &[f32], centre: &[f32]| -> f64 {
            row.iter().zip(centre).map(|(r, c)| (f64::from(*r) - f64::from(*c)).powi(2)).sum()
        };
        let expected: Vec<u16> = features
            .rows()
            .map(|row| {
                let all = centres.chunks_exact(width).map(|c| distance(row, c));
                let nearest = all.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
                nearest.0 as u16
            })
            .collect();
        assert_eq!(units.nearest(&features), expected);
        assert!(expected.windows(2).any(|w| w[0] != w[1]), "one unit alone proves nothing");
        assert_eq!(units.count(), COUNT);
    }

    #[test]
    fn a_model_that_this_program_does_not_have_is_told_by_name() {
        let error = extractor("xeus", 1).err().unwrap().to_string();
        let says = "`model_type`: features of xeus are not supported";
        assert!(error.contains("config.json") && error.contains(says), "{error}");
    }

    #[test]
    fn centres_that_do_not_fit_are_told_by_name() {
        let (_folder, weights) = weights(&[0.5; 12], [4, 3]);
        let error = Units::load(&weights, 5).err().unwrap().to_string();
        assert!(error.contains("`centers`") && error.contains("expected [4, 5]"), "{error}");
        let error = extractor("wav2vec2-bert", 99).err().unwrap().to_string();
        assert!(error.contains("num_hidden_layers"), "{error}");
    }
}
