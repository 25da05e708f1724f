//! Bundles that load, and bundles that do not: every fault is an error that names file and field, never a panic.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::path::{Path, PathBuf};

use codecs::weights::LoadError;
use engine::batch::{Batch, BatchRow};
use engine::bundle::{Bundle, Codec, Manifest, Prompt, VoicePrompt};
use engine::kernels::matrix::Precision;
use engine::models::config::open_stage;
use engine::models::qwen3::{Options, Qwen3};
use engine::runner::StageModel;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::{Value, json};
use tempfile::TempDir;

fn repository(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path).canonicalize().unwrap()
}

/// A folder like `from`, of links: what a test replaces is its own.
fn linked(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() {
            linked(&from, &to)
        } else {
            std::os::unix::fs::symlink(from, to).unwrap()
        }
    }
}

fn nano() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    linked(&repository("voices/nano"), dir.path());
    dir
}

fn replace(file: &Path, bytes: impl AsRef<[u8]>) {
    if file.exists() {
        std::fs::remove_file(file).unwrap();
    }
    std::fs::write(file, bytes).unwrap();
}

fn edit(file: &Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    change(&mut value);
    replace(file, value.to_string());
}

/// All that `dovecote check` looks at of the stages: the bundle, and every tensor that is read.
fn load(root: &Path) -> Result<Bundle, LoadError> {
    let bundle = Bundle::open(root)?;
    for stage in &bundle.stages {
        let (config, weights) = open_stage(&stage.folder)?;
        let options = Options { precision: Precision::F32, kept_ids: None, pool: None };
        Qwen3::load(&weights, &config, &options, &mut |_| ())?;
    }
    Ok(bundle)
}

#[test]
fn nano_loads() {
    let bundle = load(&repository("voices/nano")).unwrap();
    assert_eq!(bundle.manifest.name, "nano");
    assert_eq!(bundle.stages.len(), 4);
    assert_eq!(bundle.stages[2].config.stage, 2);
    assert_eq!(bundle.codec, Codec::Nano { folder: bundle.root.join("codec") });
    assert_eq!(bundle.voice("nano").unwrap().prompt, VoicePrompt::Codes(Prompt::default()));
    assert!(bundle.voice("other").is_none());
    let rules = bundle.prompt_rules();
    assert_eq!((rules.semantic_codes, rules.acoustic_codes), (2048, 1024));
}

#[test]
fn embedding_keeps_first_bytes_markers_controls_and_codes() {
    let bundle = Bundle::open(&repository("voices/nano")).unwrap();
    let kept = bundle.kept_ids().unwrap();
    for (stage, kept) in bundle.stages.iter().zip(kept) {
        // Bytes that can begin a character: ASCII, and the leads of two, three and four bytes.
        let mut expected: Vec<u32> = (0..=0x7F).chain(0xC2..=0xF4).collect();
        expected.extend([256, 257, 258]);
        expected.extend((stage.config.stage > 0).then_some(259));
        // Markers; english, " : " and three styles; no other language.
        expected.extend([260, 261, 262, 269, 270, 271, 272]);
        expected.extend(273..stage.config.backbone.vocabulary as u32);
        assert_eq!(kept, expected);
    }
}

#[test]
fn network_says_the_same_without_the_rows_that_are_never_read() {
    let bundle = Bundle::open(&repository("voices/nano")).unwrap();
    let kept = bundle.kept_ids().unwrap();
    let (config, weights) = open_stage(&bundle.stages[1].folder).unwrap();
    let ids: Vec<u32> = [257, 262, 269, 271, 258, 10, 72, 105, 46, 10, 256].into();
    let says = |kept_ids| {
        let options = Options { precision: Precision::F32, kept_ids, pool: None };
        let mut model = Qwen3::load(&weights, &config, &options, &mut |_| ()).unwrap();
        model.reserve(1);
        let positions = (1..=ids.len() as i32).collect();
        let row =
            BatchRow { tokens: 0..ids.len(), blocks: vec![0], logits: true, ..BatchRow::default() };
        let batch = Batch { ids: ids.clone(), positions, rows: vec![row], ..Batch::default() };
        let mut logits = Vec::new();
        model.forward(&batch, &mut logits).unwrap();
        logits
    };
    assert_eq!(says(Some(&kept[1])), says(None));
}

#[test]
fn voice_with_a_code_file_is_read() {
    let dir = nano();
    let rows = vec![vec![1, 2, 3]; 4];
    replace(&dir.path().join("me.json"), json!(rows).to_string());
    edit(&dir.path().join("dovecote.json"), |m| m["voices"][0]["prompt"] = "me.json".into());
    let bundle = Bundle::open(dir.path()).unwrap();
    let VoicePrompt::Codes(prompt) = &bundle.voices[0].prompt else { panic!("a code file") };
    assert_eq!(prompt.cut(1), [[1, 2, 3], [1, 2, 3]]);
}

/// Changes a tensor's bytes or its header in place, sizes unchanged.
fn patch(file: &Path, name: &str, change: impl FnOnce(&mut [u8])) {
    let mut bytes = std::fs::read(file).unwrap();
    let (header, meta) = SafeTensors::read_metadata(&bytes).unwrap();
    let (start, end) = meta.info(name).unwrap().data_offsets;
    change(&mut bytes[8 + header + start..8 + header + end]);
    replace(file, bytes);
}

/// Tells another type of the same size for a tensor.
fn retype(file: &Path, name: &str, from: &str, to: &str) {
    let mut bytes = std::fs::read(file).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let text = String::from_utf8(bytes[8..header].to_vec()).unwrap();
    let (before, after) = text.split_once(&format!("\"{name}\":")).unwrap();
    let text = format!("{before}\"{name}\":{}", after.replacen(from, to, 1));
    bytes[8..header].copy_from_slice(text.as_bytes());
    replace(file, bytes);
}

type Damage = fn(&Path);

/// Each damage to nano gives an error that says all of this.
fn refuses(cases: &[(&str, Damage, &[&str])]) {
    for (name, damage, says) in cases {
        let dir = nano();
        damage(dir.path());
        let text = load(dir.path()).map(|_| ()).unwrap_err().to_string();
        for part in *says {
            assert!(text.contains(part), "{name}: {text}\nexpected {part}");
        }
    }
}

#[test]
fn damaged_stages_are_refused_by_file_and_field() {
    refuses(&[
        (
            "truncated weights",
            |d| {
                let bytes = std::fs::read(d.join("cb1/model.safetensors")).unwrap();
                replace(&d.join("cb1/model.safetensors"), &bytes[..bytes.len() / 2]);
            },
            &["cb1/model.safetensors", "not a whole safetensors file"],
        ),
        (
            "weights that are none",
            |d| replace(&d.join("cb1/model.safetensors"), "hello"),
            &["cb1/model.safetensors", "not a whole safetensors file"],
        ),
        (
            "NaN in the weights",
            |d| {
                patch(&d.join("cb3/model.safetensors"), "model.norm.weight", |b| {
                    b[4..8].copy_from_slice(&f32::NAN.to_le_bytes());
                });
            },
            &["cb3/model.safetensors", "`model.norm.weight`", "value 1 is NaN"],
        ),
        (
            "integers for weights",
            |d| {
                retype(&d.join("cb2/model.safetensors"), "model.norm.weight", "\"F32\"", "\"I32\"");
            },
            &["cb2/model.safetensors", "`model.norm.weight`", "type I32"],
        ),
        (
            "another shape",
            |d| edit(&d.join("cb2/config.json"), |c| c["hidden_size"] = 64.into()),
            &["cb2/model.safetensors", "shape is"],
        ),
        (
            "missing field",
            |d| {
                edit(&d.join("cb0/config.json"), |c| {
                    c.as_object_mut().unwrap().remove("audio_token_start_id");
                })
            },
            &["cb0/config.json", "`audio_token_start_id`", "missing"],
        ),
        (
            "stages exchanged",
            |d| {
                std::fs::rename(d.join("cb1"), d.join("x")).unwrap();
                std::fs::rename(d.join("cb2"), d.join("cb1")).unwrap();
                std::fs::rename(d.join("x"), d.join("cb2")).unwrap();
            },
            &["cb1/config.json", "`target_codebook`", "is 2"],
        ),
    ]);
}

#[test]
fn damaged_tokenizers_codecs_and_voices_are_refused_by_file_and_field() {
    refuses(&[
        (
            "missing tokenizer",
            |d| std::fs::remove_file(d.join("cb3/tokenizer.json")).unwrap(),
            &["cb3/tokenizer.json", "cannot read"],
        ),
        (
            "broken tokenizer",
            |d| replace(&d.join("cb3/tokenizer.json"), "{}"),
            &["cb3/tokenizer.json"],
        ),
        (
            "tokenizer of another model",
            |d| {
                edit(&d.join("cb1/tokenizer.json"), |t| {
                    t["added_tokens"][3]["content"] = "<|x|>".into();
                    t["model"]["vocab"].as_object_mut().unwrap().shift_remove("<|end_of_speech|>");
                })
            },
            &["cb1/tokenizer.json", "`added_tokens`", "<|end_of_speech|>"],
        ),
        (
            "missing codec",
            |d| std::fs::remove_file(d.join("codec/model.safetensors")).unwrap(),
            &["codec/model.safetensors", "cannot read"],
        ),
        (
            "codec with other rows",
            |d| edit(&d.join("codec/config.json"), |c| c["n_codebooks"] = 3.into()),
            &["codec/config.json", "`n_codebooks`", "is 3, the stages have 4"],
        ),
        (
            "codec with other codes",
            |d| edit(&d.join("codec/config.json"), |c| c["acoustic_vocab_size"] = 1.into()),
            &["codec/config.json", "`acoustic_vocab_size`", "is 1"],
        ),
        (
            "silence beyond the codebook",
            |d| {
                edit(&d.join("dovecote.json"), |m| {
                    m["silence"]["ordinary_codes"] = json!([5, 2048]);
                })
            },
            &["dovecote.json", "`silence.ordinary_codes`", "code 2048"],
        ),
        (
            "voice that is not there",
            |d| edit(&d.join("dovecote.json"), |m| m["voices"][0]["prompt"] = "gone.json".into()),
            &["gone.json", "cannot read"],
        ),
        (
            "recording for a bundle that cannot hear",
            |d| {
                replace(&d.join("me.wav"), "RIFF");
                edit(&d.join("dovecote.json"), |m| m["voices"][0]["prompt"] = "me.wav".into());
            },
            &["dovecote.json", "`voices.0.prompt`", "recording"],
        ),
        (
            "manifest that is no JSON",
            |d| replace(&d.join("dovecote.json"), "{\"format\": 1,"),
            &["dovecote.json"],
        ),
    ]);
}

#[test]
fn folder_without_manifest_and_stages_says_that_the_manifest_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let text = Bundle::open(dir.path()).unwrap_err().to_string();
    assert!(text.contains("dovecote.json"), "{text}");
}

const SEMANTIC: usize = 16_384;
const ACOUSTIC: usize = 4_096;

fn write_tensors(file: &Path, tensors: &[(&str, Vec<usize>)]) {
    let longest = tensors.iter().map(|(_, s)| s.iter().product::<usize>() * 4).max().unwrap();
    let zeros = vec![0; longest];
    let view = |shape: &Vec<usize>| {
        let bytes = &zeros[..shape.iter().product::<usize>() * 4];
        TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()
    };
    let views: Vec<_> = tensors.iter().map(|(name, shape)| (*name, view(shape))).collect();
    std::fs::write(file, safetensors::serialize(views, None).unwrap()).unwrap();
}

/// The public release in small: its layout and its codebooks, with nano's tokenizer and the head's last matrix alone.
fn bare() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for stage in 0..4 {
        let nano = repository(&format!("voices/nano/cb{stage}"));
        let folder = dir.path().join(format!("cb{stage}"));
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(nano.join("tokenizer.json"), folder.join("tokenizer.json"))
            .unwrap();
        std::fs::copy(nano.join("config.json"), folder.join("config.json")).unwrap();
        edit(&folder.join("config.json"), |c| {
            let fields = c.as_object_mut().unwrap();
            fields.remove("semantic_vocab_size");
            fields.remove("acoustic_vocab_size");
            fields["vocab_size"] = (273 + SEMANTIC + stage * ACOUSTIC).into();
        });
        let outputs = if stage == 0 { SEMANTIC + 2 } else { ACOUSTIC };
        let head = ("audio_head.fc2.weight", vec![outputs, 1]);
        write_tensors(&folder.join("model.safetensors"), &[head]);
    }
    let codec = dir.path().join("dualcodec");
    std::fs::create_dir(&codec).unwrap();
    let row = |i: usize| format!("dac.quantizer.quantizers.{i}.codebook.weight");
    write_tensors(
        &codec.join("dualcodec_12hz_16384_4096.safetensors"),
        &[
            ("semantic_vq.quantizers.0.codebook.weight", vec![SEMANTIC, 1]),
            (&row(0), vec![ACOUSTIC, 1]),
            (&row(1), vec![ACOUSTIC, 1]),
            (&row(2), vec![ACOUSTIC, 1]),
        ],
    );
    linked(&repository("tests/fixtures/vibevoice_tiny"), &dir.path().join("vibevoice"));
    dir
}

#[test]
fn bare_release_layout_loads_with_the_release_defaults() {
    let dir = bare();
    let bundle = Bundle::open(dir.path()).unwrap();
    assert_eq!(bundle.manifest, Manifest::release());
    let rules = bundle.prompt_rules();
    assert_eq!((rules.semantic_codes, rules.acoustic_codes), (SEMANTIC, ACOUSTIC));
    let codec = Codec::DualCodecVibeVoice {
        dualcodec: dir.path().join("dualcodec/dualcodec_12hz_16384_4096.safetensors"),
        dualcodec_config: None,
        vibevoice: dir.path().join("vibevoice"),
        encoder: None,
    };
    assert_eq!(bundle.codec, codec);
    assert_eq!(bundle.voices.len(), 1);
}

#[test]
fn release_with_its_ears_can_have_recordings_for_voices() {
    let dir = bare();
    std::fs::create_dir(dir.path().join("w2v-bert-2.0")).unwrap();
    let statistics = dir.path().join("dualcodec/w2vbert2_mean_var_stats_emilia.pt");
    std::fs::write(&statistics, "").unwrap();
    std::fs::write(dir.path().join("me.wav"), "RIFF").unwrap();
    let manifest = json!({
        "format": 1, "name": "m", "family": "tontaube", "license": "l",
        "codec": {"kind": "dualcodec+vibevoice"}, "languages": ["english"], "styles": ["agentic"],
        "sampling": {"temperature": 0.8}, "voices": [{"name": "me", "prompt": "me.wav"}],
    });
    std::fs::write(dir.path().join("dovecote.json"), manifest.to_string()).unwrap();
    let bundle = Bundle::open(dir.path()).unwrap();
    assert_eq!(bundle.voices[0].prompt, VoicePrompt::Audio(dir.path().join("me.wav")));
    let Codec::DualCodecVibeVoice { encoder: Some(encoder), .. } = &bundle.codec else {
        panic!("it has an encoder")
    };
    assert_eq!(encoder.statistics, statistics);
}

#[test]
fn bare_release_without_its_codec_names_the_file_it_looked_for() {
    let dir = bare();
    std::fs::remove_file(dir.path().join("dualcodec/dualcodec_12hz_16384_4096.safetensors"))
        .unwrap();
    let text = Bundle::open(dir.path()).unwrap_err().to_string();
    assert!(text.contains("dualcodec/dualcodec_12hz_16384_4096.safetensors"), "{text}");
}
