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

/// A folder with the golden model, of which some tensors are changed.
fn changed(
    model: &str,
    change: impl Fn(&str, Vec<usize>) -> Option<(String, Vec<usize>)>,
) -> tempfile::TempDir {
    let folder = folder(model, &[]);
    let bytes = std::fs::read(fixture(model).join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let views = file.tensors().into_iter().filter_map(|(name, view)| {
        let (name, shape) = change(&name, view.shape().to_vec())?;
        let bytes = &view.data()[..shape.iter().product::<usize>() * 4];
        let view = safetensors::tensor::TensorView::new(view.dtype(), shape, bytes).unwrap();
        Some((name, view))
    });
    let bytes = safetensors::serialize(views, None).unwrap();
    std::fs::write(folder.path().join("model.safetensors"), bytes).unwrap();
    folder
}

#[test]
fn everything_that_is_wrong_with_a_checkpoint_is_told_at_once() {
    let folder = changed("speechlm_tiny/bagpiper", |name, mut shape| {
        match name {
            "model.layers.1.mlp.up_proj.weight" | "lm_head.weight" => return None,
            "model.norm.weight" => shape = vec![60],
            "model.layers.0.self_attn.q_norm.weight" => {
                return Some(("model.layers.0.self_attn.qnorm.weight".to_owned(), shape));
            }
            _ => {}
        }
        Some((name.to_owned(), shape))
    });
    let text = open_model(folder.path()).err().unwrap().to_string();
    for part in [
        "model.safetensors: missing: lm_head.weight, model.layers.0.self_attn.q_norm.weight, model.layers.1.mlp.up_proj.weight",
        "; of another shape: model.norm.weight is [60], not [64]",
        "; the model has no such tensor: model.layers.0.self_attn.qnorm.weight",
    ] {
        assert!(text.contains(part), "{text}\nexpected {part}");
    }
    let folder = changed("speechlm_tiny/opuslm", |name, shape| {
        (!name.contains("mlp")).then(|| (name.to_owned(), shape))
    });
    let text = open_model(folder.path()).err().unwrap().to_string();
    assert!(
        text.contains("missing: corelm.decoders.model.layers.0.mlp.down_proj.weight"),
        "{text}"
    );
    // As many vectors of streams as there are streams, or more.
    let folder = changed("speechlm_tiny/opuslm", |name, shape| {
        let shape = if name == "corelm.head_emb.weight" { vec![8, 64] } else { shape };
        Some((name.to_owned(), shape))
    });
    let text = open_model(folder.path()).err().unwrap().to_string();
    assert!(text.contains("corelm.head_emb.weight is [8, 64], not [9, 64]"), "{text}");
}

#[test]
fn what_is_not_read_of_a_checkpoint_is_known() {
    let (config, weights) = open_model(&fixture("speechlm_tiny/bagpiper")).unwrap();
    let audit = Audit::new(&weights, &config);
    assert_eq!(
        audit.unused,
        ["adaptor.continuous_audio.bias", "adaptor.continuous_audio.weight", "vocab_weight"]
    );
    let groups = [("adaptor.continuous_audio".to_owned(), 2), ("vocab_weight".to_owned(), 1)];
    assert_eq!(audit.unused_groups(), groups);
    assert_eq!(audit.needed.len() + audit.unused.len(), weights.names().count());
    let long = Audit { missing: (0..20).map(|i| format!("t{i}")).collect(), ..Audit::default() };
    let text = long.check(&weights).unwrap_err().to_string();
    assert!(text.ends_with("t6, t7 and 12 more"), "{text}");
}
