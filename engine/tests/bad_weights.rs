//! A stage folder that does not hold: every fault is an error that names the file and the tensor or field.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::path::Path;

use codecs::weights::LoadError;
use common::root;
use engine::batch::{Batch, BatchRow};
use engine::kernels::matrix::Precision;
use engine::models::config::open_stage;
use engine::models::qwen3::{Options, Qwen3};
use engine::models::reference::Reference;
use engine::runner::{ForwardError, StageModel};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// A tensor as it is written: type, shape, bytes.
type Stored = (Dtype, Vec<usize>, Vec<u8>);

/// A copy of nano's smallest stage.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in ["config.json", "model.safetensors"] {
            let from = root().join("voices/nano/cb3").join(file);
            std::fs::copy(from, folder.path().join(file)).unwrap();
        }
        Self(folder)
    }

    fn weights(&self) -> std::path::PathBuf {
        self.0.path().join("model.safetensors")
    }

    /// Writes the file anew with one tensor changed, or left out.
    fn change(&self, tensor: &str, change: impl FnOnce(Stored) -> Option<Stored>) {
        let bytes = std::fs::read(self.weights()).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let own = |v: &TensorView<'_>| (v.dtype(), v.shape().to_vec(), v.data().to_vec());
        let mut all: Vec<(String, Stored)> =
            file.tensors().iter().map(|(n, v)| (n.clone(), own(v))).collect();
        let at = all.iter().position(|(n, _)| n == tensor).unwrap();
        let (name, stored) = all.remove(at);
        all.extend(change(stored).map(|s| (name, s)));
        let views = all.iter().map(|(name, (dtype, shape, data))| {
            (name.as_str(), TensorView::new(*dtype, shape.clone(), data).unwrap())
        });
        std::fs::write(self.weights(), safetensors::serialize(views, None).unwrap()).unwrap();
    }

    fn error(&self) -> String {
        load_fast(self.0.path()).err().unwrap().to_string()
    }
}

fn load_fast(folder: &Path) -> Result<Qwen3, LoadError> {
    let (config, weights) = open_stage(folder)?;
    let options = Options { precision: Precision::Int8, kept_ids: None, pool: None };
    Qwen3::load(&weights, &config, &options, &mut |_| ())
}

fn load_reference(folder: &Path) -> Result<Reference, LoadError> {
    let (config, weights) = open_stage(folder)?;
    Reference::load(&weights, &config)
}

/// Puts a value that is not a number at the end.
fn spoil((dtype, shape, mut data): Stored) -> Option<Stored> {
    let nan = match dtype {
        Dtype::F16 => 0x7e00_u16.to_le_bytes().to_vec(),
        _ => f32::NAN.to_le_bytes().to_vec(),
    };
    let start = data.len() - nan.len();
    data[start..].copy_from_slice(&nan);
    Some((dtype, shape, data))
}

fn flatten((dtype, shape, data): Stored) -> Option<Stored> {
    Some((dtype, vec![shape.iter().product()], data))
}

fn to_integers((_, shape, data): Stored) -> Option<Stored> {
    let bytes = shape.iter().product();
    Some((Dtype::I8, shape, data[..bytes].to_vec()))
}

#[test]
fn a_whole_folder_loads() {
    let folder = Folder::new();
    load_fast(folder.0.path()).unwrap();
    load_reference(folder.0.path()).unwrap();
}

#[test]
fn every_tensor_is_needed_and_checked() {
    type Change = fn(Stored) -> Option<Stored>;
    let changes: [(Change, &str); 4] = [
        (|_| None, "missing"),
        (spoil, "not a finite number"),
        (to_integers, "type I8"),
        (flatten, "expected ["),
    ];
    let bytes = std::fs::read(Folder::new().weights()).unwrap();
    let names: Vec<String> =
        SafeTensors::deserialize(&bytes).unwrap().names().into_iter().map(String::from).collect();
    assert_eq!(names.len(), 28);
    for (change, says) in changes {
        for name in &names {
            let folder = Folder::new();
            let vector = folder_shape(&bytes, name).len() == 1;
            if says == "expected [" && vector {
                // A vector flattened is itself; its length is checked like any shape.
                folder.change(name, |(d, s, b)| Some((d, vec![s[0], 1], b)));
            } else {
                folder.change(name, change);
            }
            let text = folder.error();
            assert!(text.contains("model.safetensors") || says == "missing", "{text}");
            let says = if name == "audio_head.fc2.weight" && says.starts_with("expected") {
                "expected two axes"
            } else {
                says
            };
            assert!(text.contains(&format!("`{name}`")) && text.contains(says), "{text}");
        }
    }
}

fn folder_shape(bytes: &[u8], name: &str) -> Vec<usize> {
    SafeTensors::deserialize(bytes).unwrap().tensor(name).unwrap().shape().to_vec()
}

#[test]
fn a_head_of_another_size_contradicts_the_configuration() {
    let folder = Folder::new();
    folder.change("audio_head.fc2.weight", |(dtype, _, data)| {
        Some((dtype, vec![1023, 384], data[..1023 * 384 * 2].to_vec()))
    });
    let text = folder.error();
    assert!(text.contains("config.json") && text.contains("`acoustic_vocab_size`"), "{text}");
}

#[test]
fn the_reference_says_the_same() {
    let folder = Folder::new();
    folder.change("model.layers.1.mlp.up_proj.weight", spoil);
    let plain = load_reference(folder.0.path()).err().unwrap().to_string();
    assert_eq!(plain, folder.error());
}

#[test]
fn numbers_that_overflow_are_noticed_by_row() {
    let folder = Folder::new();
    folder.change("model.norm.weight", |(dtype, shape, data)| {
        Some((dtype, shape, f32::MAX.to_le_bytes().repeat(data.len() / 4)))
    });
    let row = |tokens, block, logits| BatchRow {
        tokens,
        blocks: vec![block],
        logits,
        ..BatchRow::default()
    };
    let rows = vec![row(0..1, 0, false), row(1..2, 1, true)];
    let batch = Batch { ids: vec![1, 2], positions: vec![0, 0], rows, ..Batch::default() };
    let models: [&mut dyn StageModel; 2] =
        [&mut load_fast(folder.0.path()).unwrap(), &mut load_reference(folder.0.path()).unwrap()];
    for model in models {
        model.reserve(2);
        let mut logits = Vec::new();
        let error = model.forward(&batch, &mut logits).unwrap_err();
        assert!(matches!(error, ForwardError::BrokenNumbers { stage: 3, row: 1 }), "{error}");
        assert!(logits.is_empty());
    }
}

#[test]
fn a_truncated_file_is_told() {
    let folder = Folder::new();
    let bytes = std::fs::read(folder.weights()).unwrap();
    for length in [0, 7, 1000, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(folder.weights(), &bytes[..length]).unwrap();
        let text = folder.error();
        assert!(text.contains("model.safetensors"), "{length} bytes: {text}");
    }
}

#[test]
fn a_configuration_that_is_absent_or_lacks_a_field_is_told() {
    let folder = Folder::new();
    let file = folder.0.path().join("config.json");
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, whole.replace("\"audio_head_hidden\"", "\"other\"")).unwrap();
    let text = folder.error();
    assert!(text.contains("config.json") && text.contains("`audio_head_hidden`"), "{text}");
    std::fs::write(&file, &whole[..100]).unwrap();
    assert!(folder.error().contains("config.json"));
    std::fs::remove_file(&file).unwrap();
    assert!(folder.error().contains("config.json"));
}
