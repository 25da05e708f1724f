//! Torch checkpoints written byte for byte as torch writes them, from the tensors of the golden models.

use std::path::Path;

use safetensors::SafeTensors;

use super::*;

/// A zip archive of stored entries, without checksums.
fn archive(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let (mut out, mut central) = (Vec::new(), Vec::new());
    for (name, data) in entries {
        let offset = out.len() as u32;
        let mut fields = vec![0; 10]; // method, time, date, checksum
        fields.extend([(data.len() as u32).to_le_bytes(); 2].concat());
        fields.extend((name.len() as u16).to_le_bytes());
        fields.extend([0; 2]); // extra
        out.extend(b"PK\x03\x04\0\0\0\0");
        out.extend(&fields);
        out.extend(name.as_bytes());
        out.extend(data);
        central.extend(b"PK\x01\x02\0\0\0\0\0\0");
        central.extend(&fields);
        central.extend([0; 10]); // comment, disk, attributes
        central.extend(offset.to_le_bytes());
        central.extend(name.as_bytes());
    }
    let (start, size) = (out.len() as u32, central.len() as u32);
    out.extend(central);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([(entries.len() as u16).to_le_bytes(); 2].concat());
    out.extend(size.to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0; 2]);
    out
}

fn text(p: &mut Vec<u8>, text: &str) {
    p.push(b'X');
    p.extend((text.len() as u32).to_le_bytes());
    p.extend(text.as_bytes());
}

fn sizes(p: &mut Vec<u8>, sizes: &[usize]) {
    p.push(b'(');
    for size in sizes {
        p.push(b'J');
        p.extend((*size as u32).to_le_bytes());
    }
    p.push(b't');
}

/// A checkpoint of all tensors of a safetensors file, in the dictionary `module` of a training run if wanted.
fn checkpoint(from: &Path, trained: bool) -> Vec<u8> {
    let bytes = std::fs::read(from).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let (mut p, mut entries) = (b"\x80\x02}(".to_vec(), Vec::new());
    if trained {
        text(&mut p, "epoch");
        p.extend(b"K\x03");
        text(&mut p, "module");
        p.extend(b"}(");
    }
    for (key, (name, view)) in file.tensors().into_iter().enumerate() {
        text(&mut p, &name);
        p.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((");
        text(&mut p, "storage");
        p.extend(b"ctorch\nFloatStorage\n");
        text(&mut p, &key.to_string());
        text(&mut p, "cpu");
        p.extend(b"K\0tQK\0");
        let shape = view.shape();
        sizes(&mut p, shape);
        let strides: Vec<usize> =
            (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect();
        sizes(&mut p, &strides);
        p.extend(b"\x89ccollections\nOrderedDict\n)RtR");
        entries.push((format!("archive/data/{key}"), view.data().to_vec()));
    }
    p.extend(if trained { &b"uu."[..] } else { b"u." });
    entries.push(("archive/data.pkl".to_owned(), p));
    archive(&entries)
}

fn folder(model: &str, files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(fixture(model).join("config.json"), folder.path().join("config.json")).unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

#[test]
fn a_checkpoint_says_what_the_same_tensors_say_elsewhere() {
    for (model, trained) in [("speechlm_tiny/bagpiper", true), ("speechlm_tiny/opuslm", false)] {
        let bytes = checkpoint(&fixture(model).join("model.safetensors"), trained);
        let folder = folder(model, &[("model.pth", bytes)]);
        let (config, weights) = open_model(folder.path()).unwrap();
        let options = Options { precision: Precision::F32, kept_ids: None, pool: None };
        let mut opened = SpeechLm::load(&weights, &config, &options, &mut |_| ()).unwrap();
        opened.reserve(BLOCKS as usize);
        let rows = ids(&open(&format!("{model}/step.safetensors")), "rows");
        let logits = feed(&mut opened, &rows, config.streams(), 0, 0);
        let expected =
            feed(&mut load(model, Precision::F32, |_| ()), &rows, config.streams(), 0, 0);
        assert_eq!(logits, expected, "{model}");
    }
}

#[test]
fn folders_without_weights_with_several_or_with_strange_ones_are_refused() {
    let model = "speechlm_tiny/opuslm";
    let refuse = |files: &[(&str, Vec<u8>)]| {
        let folder = folder(model, files);
        open_model(folder.path()).err().unwrap().to_string()
    };
    let text = refuse(&[]);
    assert!(text.contains("neither safetensors nor a torch checkpoint"), "{text}");
    let text = refuse(&[("a.pt", Vec::new()), ("b.bin", Vec::new())]);
    assert!(text.contains("holds 2 torch checkpoints"), "{text}");
    let other = checkpoint(&fixture("llama_tiny/model.safetensors"), false);
    let text = refuse(&[("a.pth", other)]);
    assert!(text.contains("a.pth") && text.contains("no such tensor"), "{text}");
}
