//! The bundles among the fixtures load, and what is wrong with one is told by file and field.

use serde_json::{Value, json};

use super::*;
use crate::batch::{Batch, BatchRow};
use crate::delay::Ending;
use crate::kernels::matrix::Precision;
use crate::phase::{Modality, Phase, Plan};
use crate::runner::StageModel;
use crate::start::Progress;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
}

fn options() -> LoadOptions {
    LoadOptions { precision: Precision::F32, pool: None }
}

/// A copy of a bundle whose parts a test may replace: the folders are links.
fn copy(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(fixture(&format!("bundles/{name}"))).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path().canonicalize().unwrap(), dir.path().join(entry.file_name()));
        if from.is_dir() {
            std::os::unix::fs::symlink(from, to).unwrap();
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
    dir
}

fn edit(dir: &tempfile::TempDir, change: impl FnOnce(&mut Value)) {
    let file = dir.path().join("dovecote.json");
    let mut manifest: Value = codecs::weights::read_json(&file).unwrap();
    change(&mut manifest);
    std::fs::write(file, manifest.to_string()).unwrap();
}

#[test]
fn both_kinds_load_and_run() {
    for (name, streams, sounding) in [("bagpiper", 8, 0..8), ("opuslm", 9, 1..9)] {
        let bundle = SpeechBundle::open(&fixture(&format!("bundles/{name}"))).unwrap();
        let mut last = Progress { loaded: 0, total: 1 };
        let mut speech = bundle.load(&options(), &mut |p| last = p).unwrap();
        assert_eq!(last.loaded, last.total, "{name}");
        assert_eq!((speech.model.streams.len(), speech.sounding.clone()), (streams, sounding));
        assert_eq!(speech.model.outputs.heads.len(), streams);
        speech.network.reserve(1);
        let ids = speech.text.encode("say this").unwrap();
        let beside = vec![0; ids.len() * (streams - 1)];
        let tokens = 0..ids.len();
        let positions = (0..ids.len() as i32).collect();
        let row = BatchRow { tokens, blocks: vec![0], logits: true, ..BatchRow::default() };
        let mut logits = Vec::new();
        let batch = Batch { ids, beside, positions, rows: vec![row] };
        speech.network.forward(&batch, &mut logits).unwrap();
        assert_eq!(logits.len(), speech.model.outputs.len(false));
        let codec = speech.codec.unwrap();
        let silent: Vec<&[u16]> = vec![&[0; 4]; speech.sounding.len()];
        assert!(!codec.push(&mut codec.stream(), &silent, true).unwrap().is_empty());
    }
}

#[test]
fn an_inspection_tells_sizes_and_what_is_not_read() {
    let bundle = SpeechBundle::open(&fixture("bundles/bagpiper")).unwrap();
    let found = bundle.inspect(&mut |_| ()).unwrap();
    assert_eq!((found.layers, found.streams, found.context_tokens), (2, 8, 4096));
    // Keys and values of two heads of 32 numbers in two layers.
    assert_eq!(found.token_bytes, 2 * 2 * 64 * 4);
    let unused = [("adaptor.continuous_audio".to_owned(), 2), ("vocab_weight".to_owned(), 1)];
    assert_eq!(found.unused, unused);
}

#[test]
fn a_family_has_the_machine_of_its_kind() {
    for (name, ending) in [("bagpiper", Ending::Padded), ("opuslm", Ending::Flushed)] {
        let bundle = SpeechBundle::open(&fixture(&format!("bundles/{name}"))).unwrap();
        let family = &bundle.config.family;
        assert_eq!(family.ending(), ending);
        let plan = Plan {
            order: vec![Modality::Text],
            max_text: 1,
            min_rows: 1,
            max_rows: 99,
            max_tokens: usize::MAX,
        };
        let phase = family.machine(plan).unwrap().phase();
        assert!(matches!(phase, Phase::Select | Phase::Text), "{phase:?}");
    }
    let order = vec![Modality::Text];
    let plan = Plan { order, max_text: 1, min_rows: 1, max_rows: 99, max_tokens: usize::MAX };
    assert!(Family::Text.machine(plan).is_err());
}

#[test]
fn text_goes_to_ids_of_the_model_and_back() {
    let bundle = SpeechBundle::open(&fixture("bundles/opuslm")).unwrap();
    let text = "The dove flies home for 20 \u{20ac}.\n";
    let ids = bundle.text.encode(text).unwrap();
    assert!(ids.iter().all(|id| bundle.text.range().contains(id)), "{ids:?}");
    assert_eq!(bundle.text.decode(&ids).unwrap(), text);
    // Symbols and codes are no text.
    let among: Vec<u32> = [&[5, 300], &ids[..], &[35]].concat();
    assert_eq!(bundle.text.decode(&among).unwrap(), text);
    // A control word of the tokenizer is text like any other.
    let ids = bundle.text.encode("<|endoftext|>").unwrap();
    assert!(ids.len() > 1);
    assert_eq!(bundle.text.decode(&ids).unwrap(), "<|endoftext|>");
}

#[test]
fn a_bundle_without_a_codec_only_writes() {
    let dir = copy("bagpiper");
    edit(&dir, |m| m["codec"] = Value::Null);
    let speech = SpeechBundle::open(dir.path()).unwrap().load(&options(), &mut |_| ()).unwrap();
    assert!(speech.codec.is_none());
}

#[test]
fn voices_are_rows_of_codes_that_the_streams_have() {
    let dir = copy("opuslm");
    edit(&dir, |m| m["voices"] = json!([{"name": "a", "prompt": "a.json"}]));
    let write = |rows: &[Vec<u16>]| {
        std::fs::write(dir.path().join("a.json"), json!(rows).to_string()).unwrap();
        SpeechBundle::open(dir.path())
    };
    let good = vec![vec![31, 0, 5]; 9];
    assert_eq!(write(&good).unwrap().voice("a").unwrap().codes[..], good);
    let mut beyond = good.clone();
    beyond[1][2] = 32;
    let mut uneven = good.clone();
    uneven[3].pop();
    for (rows, says) in [
        (&good[..8], "8 rows of codes, the model has 9 streams"),
        (&beyond, "row 1, frame 2: code 32 of 32"),
        (&uneven, "row 3 has 2 codes, row 0 has 3"),
        (&vec![Vec::new(); 9], "no frame of codes"),
    ] {
        let text = write(rows).unwrap_err().to_string();
        assert!(text.contains("a.json") && text.contains(says), "{text}");
    }
}

#[test]
fn parts_that_do_not_fit_are_refused_by_file_and_field() {
    type Damage = fn(&tempfile::TempDir);
    let cases: [(&str, Damage, &[&str]); 7] = [
        (
            "another kind",
            |d| edit(d, |m| m["kind"] = "opuslm-dialogue".into()),
            &["dovecote.json", "`kind`: is opuslm-dialogue, but", "is opuslm"],
        ),
        (
            "a task among the codes",
            |d| edit(d, |m| m["tasks"]["speech"] = 256.into()),
            &["`tasks.speech`: 256 is not a symbol: those are 1 to 255"],
        ),
        (
            "no tokenizer",
            |d| std::fs::remove_file(d.path().join("tokenizer.json")).unwrap(),
            &["tokenizer.json", "cannot read"],
        ),
        (
            "no weights of the codec",
            |d| edit(d, |m| m["codec"] = json!({"path": "model"})),
            &["model/config.json"],
        ),
        (
            "nothing to hear with",
            |d| edit(d, |m| m["audio_input"] = json!({"kind": "qwen3-omni", "path": "ears"})),
            &["`audio_input.path`: `ears` is not in the bundle"],
        ),
        (
            "a voice that is a recording",
            |d| edit(d, |m| m["voices"] = json!([{"name": "a", "prompt": "a.wav"}])),
            &["a.wav", "neither .json nor .safetensors"],
        ),
        (
            "a tokenizer with too many ids",
            |d| {
                let from = fixture("../../voices/nano/cb0/tokenizer.json");
                std::fs::copy(from, d.path().join("tokenizer.json")).unwrap();
            },
            &["tokenizer.json", "the model has 128 for text"],
        ),
    ];
    for (name, damage, says) in cases {
        let dir = copy("opuslm");
        damage(&dir);
        let text = SpeechBundle::open(dir.path()).unwrap_err().to_string();
        for part in says {
            assert!(text.contains(part), "{name}: {text}\nexpected {part}");
        }
    }
}

#[test]
fn a_codec_of_other_codebooks_is_refused() {
    let dir = copy("bagpiper");
    let codec = dir.path().join("codec");
    let mut config: Value = codecs::weights::read_json(&codec.join("config.json")).unwrap();
    let weights = codec.join("model.safetensors").canonicalize().unwrap();
    std::fs::remove_file(&codec).unwrap();
    std::fs::create_dir(&codec).unwrap();
    std::os::unix::fs::symlink(weights, codec.join("model.safetensors")).unwrap();
    for (field, value, says) in [
        ("target_bandwidths", json!([1.2]), "4 codebooks, the model says 8"),
        ("codebook_size", json!(16), "entries in a codebook, the model says 32"),
    ] {
        let before = config[field].clone();
        config[field] = value;
        if field == "codebook_size" {
            // As many codebooks of fewer bits.
            config["target_bandwidths"] = json!([1.6]);
        }
        std::fs::write(codec.join("config.json"), config.to_string()).unwrap();
        let text = SpeechBundle::open(dir.path()).unwrap_err().to_string();
        assert!(text.contains("config.json") && text.contains(says), "{text}");
        config[field] = before;
    }
}
