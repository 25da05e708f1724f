//! A bundle that hears: the bundled voice's stages with a narrow codec of random weights, whose codebooks are stretched until
//! they fit. What it says is noise; what it makes of a recording has the right shape.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::repository;

const SEMANTIC_CODES: usize = 2_048;
const ACOUSTIC_CODES: usize = 1_024;

/// Writes the bundle; `voices` are entries of its manifest, whose files are still to be put there.
pub(crate) fn bundle(voices: &Value) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (nano, codec) = (repository("voices/nano"), repository("tests/fixtures/dualcodec_tiny"));
    for stage in ["cb0", "cb1", "cb2", "cb3"] {
        symlink(nano.join(stage), root.join(stage)).unwrap();
    }
    symlink(repository("tests/fixtures/vibevoice_tiny"), root.join("vibevoice")).unwrap();
    let ears = root.join("w2v-bert-2.0");
    fs::create_dir(&ears).unwrap();
    symlink(codec.join("w2vbert_config.json"), ears.join("config.json")).unwrap();
    symlink(codec.join("w2vbert.safetensors"), ears.join("model.safetensors")).unwrap();
    let dualcodec = root.join("dualcodec");
    fs::create_dir(&dualcodec).unwrap();
    let statistics = "w2vbert_mean_var_stats.pt";
    symlink(codec.join(statistics), dualcodec.join(statistics)).unwrap();
    stretch(&codec.join("model.safetensors"), &dualcodec.join("model.safetensors"));
    let mut config = read(&codec.join("config.json"));
    config["semantic_codebook_size"] = SEMANTIC_CODES.into();
    config["codebook_size"] = ACOUSTIC_CODES.into();
    fs::write(dualcodec.join("config.json"), config.to_string()).unwrap();
    let manifest = json!({
        "format": 1, "name": "hearing", "family": "tontaube", "license": "none",
        "codec": {"kind": "dualcodec+vibevoice"}, "languages": ["english"], "styles": ["agentic"],
        "sampling": {"temperature": 0.8}, "voices": voices,
    });
    fs::write(root.join("dovecote.json"), manifest.to_string()).unwrap();
    folder
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// Repeats the entries of every codebook until there are enough.
fn stretch(from: &Path, to: &Path) {
    let bytes = fs::read(from).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap().tensors();
    let stretched = |(name, tensor): &(String, TensorView<'_>)| {
        let (mut shape, data) = (tensor.shape().to_vec(), tensor.data());
        if !name.ends_with("codebook.weight") {
            return (shape, data.to_vec());
        }
        let codes = if name.starts_with("semantic") { SEMANTIC_CODES } else { ACOUSTIC_CODES };
        let data = data.repeat(codes / shape[0]);
        shape[0] = codes;
        (shape, data)
    };
    let parts: Vec<(Vec<usize>, Vec<u8>)> = tensors.iter().map(stretched).collect();
    let views = tensors.iter().zip(&parts).map(|((name, tensor), (shape, data))| {
        (name, TensorView::new(tensor.dtype(), shape.clone(), data).unwrap())
    });
    fs::write(to, safetensors::serialize(views, None).unwrap()).unwrap();
}
