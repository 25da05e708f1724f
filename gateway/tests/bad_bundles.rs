//! Bundles that cannot work: each is told by file and field or tensor, with exit code 2, and nothing panics.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod common;

use std::path::Path;

use common::{dovecote, repository, run, stderr};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use tempfile::TempDir;

/// A folder like `from`, of links: what a test replaces is its own.
fn linked(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            linked(&entry.path(), &to)
        } else {
            std::os::unix::fs::symlink(entry.path(), to).unwrap()
        }
    }
}

fn replace(file: &Path, bytes: impl AsRef<[u8]>) {
    std::fs::remove_file(file).unwrap();
    std::fs::write(file, bytes).unwrap();
}

fn without_field(file: &Path, field: &str) {
    let mut value: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    value.as_object_mut().unwrap().remove(field).unwrap();
    replace(file, value.to_string());
}

/// A tensor as it is written: type, shape, bytes.
type Stored = (Dtype, Vec<usize>, Vec<u8>);

/// Writes a file anew with one tensor changed.
fn change(file: &Path, tensor: &str, change: impl FnOnce(&mut Stored)) {
    let bytes = std::fs::read(file).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let own = |v: &TensorView<'_>| (v.dtype(), v.shape().to_vec(), v.data().to_vec());
    let mut all: Vec<(String, Stored)> =
        tensors.tensors().iter().map(|(name, view)| (name.clone(), own(view))).collect();
    change(&mut all.iter_mut().find(|(name, _)| name == tensor).unwrap().1);
    let views = all.iter().map(|(name, (dtype, shape, data))| {
        (name.as_str(), TensorView::new(*dtype, shape.clone(), data).unwrap())
    });
    replace(file, safetensors::serialize(views, None).unwrap());
}

type Damage = fn(&Path);

const NORM: &str = "model.norm.weight";

const DAMAGES: [(&str, Damage, &[&str]); 11] = [
    (
        "truncated weights",
        |root| {
            let file = root.join("cb1/model.safetensors");
            let bytes = std::fs::read(&file).unwrap();
            replace(&file, &bytes[..bytes.len() / 2]);
        },
        &["cb1/model.safetensors"],
    ),
    (
        "wrong shape",
        |root| change(&root.join("cb2/model.safetensors"), NORM, |t| t.1.push(1)),
        &["cb2/model.safetensors", NORM],
    ),
    (
        "weights that are not numbers",
        |root| {
            change(&root.join("cb0/model.safetensors"), NORM, |(dtype, _, data)| match dtype {
                Dtype::F16 => data[..2].copy_from_slice(&0x7e00_u16.to_le_bytes()),
                Dtype::BF16 => data[..2].copy_from_slice(&0x7fc0_u16.to_le_bytes()),
                _ => data[..4].copy_from_slice(&f32::NAN.to_le_bytes()),
            });
        },
        &["cb0/model.safetensors", NORM, "finite"],
    ),
    (
        "wrong type",
        |root| {
            change(&root.join("cb3/model.safetensors"), NORM, |(dtype, shape, data)| {
                *dtype = Dtype::I8;
                data.truncate(shape.iter().product());
            });
        },
        &["cb3/model.safetensors", NORM, "I8"],
    ),
    (
        "missing tokenizer",
        |root| std::fs::remove_file(root.join("cb2/tokenizer.json")).unwrap(),
        &["cb2/tokenizer.json"],
    ),
    (
        "missing field of a stage",
        |root| without_field(&root.join("cb0/config.json"), "hidden_size"),
        &["cb0/config.json", "hidden_size"],
    ),
    (
        "missing field of the codec",
        |root| without_field(&root.join("codec/config.json"), "n_codebooks"),
        &["codec/config.json", "n_codebooks"],
    ),
    (
        "missing field of the bundle",
        |root| without_field(&root.join("dovecote.json"), "license"),
        &["dovecote.json", "license"],
    ),
    (
        "a bundle that is not JSON",
        |root| replace(&root.join("dovecote.json"), "{"),
        &["dovecote.json"],
    ),
    (
        "missing codec",
        |root| std::fs::remove_file(root.join("codec/model.safetensors")).unwrap(),
        &["codec/model.safetensors"],
    ),
    (
        "missing voice",
        |root| {
            let file = root.join("dovecote.json");
            let mut value: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            value["voices"][0]["prompt"] = "gone.safetensors".into();
            replace(&file, value.to_string());
        },
        &["gone.safetensors"],
    ),
];

#[test]
fn every_damage_is_told_by_file_and_field() {
    for (name, damage, says) in DAMAGES {
        let bundle = TempDir::new().unwrap();
        linked(&repository("voices/nano"), bundle.path());
        damage(bundle.path());
        let root = bundle.path().to_str().unwrap();
        for arguments in [&["check", root][..], &["say", "Hello.", "--bundle", root]] {
            let output = run(dovecote(bundle.path()).args(arguments));
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{name}: {arguments:?}: {text}");
            assert!(says.iter().all(|s| text.contains(s)), "{name}: {arguments:?}: {text}");
            assert!(!text.contains("panicked"), "{name}: {arguments:?}: {text}");
            assert!(!bundle.path().join("out.wav").exists(), "{name}: a file of nothing");
        }
    }
}

#[test]
fn a_whole_bundle_passes_and_its_sizes_are_told() {
    let folder = TempDir::new().unwrap();
    let output = run(dovecote(folder.path()).args(["check", "--json"]));
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["stages"].as_array().unwrap().len(), 4);
    for stage in report["stages"].as_array().unwrap() {
        let rows = |key: &str| stage[key].as_u64().unwrap();
        assert!(rows("kept_embedding_rows") < rows("embedding_rows"), "{stage}");
        assert!(rows("layers") > 0 && rows("parameters") > 100_000, "{stage}");
    }
    assert_eq!((&report["codec"], &report["voices"][0]), (&"nano".into(), &"nano".into()));
    assert!(report["window_kv_bytes"].as_u64().unwrap() > 0);
    assert!(stderr(&output).contains(report["license"].as_str().unwrap()));
    let text = run(dovecote(folder.path()).arg("check")).stdout;
    assert!(String::from_utf8(text).unwrap().contains("cb3: "));
}

#[test]
fn a_folder_without_a_bundle_is_told() {
    let folder = TempDir::new().unwrap();
    let output = run(dovecote(folder.path()).args(["check", "nowhere"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("nowhere/dovecote.json"), "{}", stderr(&output));
}
