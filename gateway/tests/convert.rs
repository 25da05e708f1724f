//! `dovecote convert` and `dovecote check` of speech language models, as a user calls them.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod common;

use common::{dovecote, repository, run, stderr};
use serde_json::Value;

fn fixture(name: &str) -> String {
    repository("tests/fixtures").join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_checkpoint_becomes_a_bundle_that_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (model, codec, tokenizer) = (
        fixture("speechlm_tiny/bagpiper"),
        fixture("xcodec_tiny"),
        fixture("bundles/tokenizer.json"),
    );
    let arguments = [
        "convert",
        &model,
        "made",
        "--name",
        "piper",
        "--license",
        "none",
        "--codec",
        &codec,
        "--tokenizer",
        &tokenizer,
        "--bf16",
    ];
    let output = run(dovecote(folder.path()).args(arguments));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("made: bagpiper, ") && text.contains("left out: vocab_weight"),
        "{text}"
    );
    let output = run(dovecote(folder.path()).args(["check", "made", "--json"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["model"], &found["kind"]), (&"piper".into(), &"bagpiper".into()));
    assert_eq!((&found["streams"], &found["codec"]["codebooks"]), (&8.into(), &8.into()));
    let again = run(dovecote(folder.path()).args(arguments));
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("made is not empty"), "{}", stderr(&again));
}

#[test]
fn a_check_says_what_a_bundle_can_do_and_what_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(dovecote(folder.path()).args(["check", &fixture("bundles/opuslm")]));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    for part in [
        "opuslm: 2 layers, ",
        "9 streams",
        "codec: seanet, 8 codebooks, 50 frames a second at 16000 Hz, 7 frames behind",
        "hears with: nothing",
        "tasks: text_lm, transcribe",
        "not read: criterion.weight (1 tensors)",
    ] {
        assert!(text.contains(part), "{text}\nexpected {part}");
    }
    assert!(stderr(&output).contains("opuslm-tiny: Apache-2.0"), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_converted_is_told_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let convert = |source: &str, more: &[&str]| {
        let fixed = ["convert", source, "made", "--name", "m", "--license", "l"];
        let output = run(dovecote(folder.path()).args(fixed).args(more));
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let text = convert("nowhere", &[]);
    assert!(text.contains("nowhere/config.json"), "{text}");
    let source = fixture("speechlm_tiny/opuslm");
    let text = convert(&source, &["--codec", ".", "--codec-kind", "mimi"]);
    assert!(text.contains("--codec-kind: `mimi` is none of xcodec, dac, seanet"), "{text}");
}

#[test]
fn a_dry_run_tells_what_would_become_of_every_tensor_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let source = fixture("speechlm_tiny/bagpiper");
    let fixed = ["convert", &source, "made", "--name", "m", "--license", "l", "--dry-run"];
    let output = run(dovecote(folder.path()).args(fixed));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let told = |fate: &str| text.lines().filter(|line| line.starts_with(fate)).count();
    let bytes = std::fs::read(format!("{source}/model.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap().len();
    assert_eq!(told("left out: vocab_weight"), 1, "{text}");
    assert_eq!(told("model: adaptor."), 2, "{text}");
    assert_eq!(told("model: ") + told("left out: "), tensors, "{text}");
    assert!(!folder.path().join("made").exists());
}

#[test]
fn several_bundles_are_checked_each_and_together() {
    let folder = tempfile::tempdir().unwrap();
    let check = |bundles: &[&str], more: &[&str]| {
        let bundles = bundles.iter().map(|name| fixture(&format!("bundles/{name}")));
        let output = run(dovecote(folder.path()).arg("check").args(bundles).args(more));
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        (output.status.code(), text, stderr(&output))
    };
    let (code, text, told) = check(&["bagpiper", "opuslm-hearing"], &[]);
    assert_eq!(code, Some(0), "{told}");
    for part in ["bagpiper-tiny (", "opuslm-hearing (", "hears with: units", "together: weights "] {
        assert!(text.contains(part), "{text}\nexpected {part}");
    }
    // What is wrong with one hides nothing of the others.
    let (code, text, told) = check(&["nowhere", "opuslm", "opuslm"], &["--json"]);
    assert_eq!(code, Some(2));
    let found: Value = serde_json::from_str(&text).unwrap();
    let missing = found["bundles"][0]["error"].as_str().unwrap();
    assert!(missing.contains("nowhere/dovecote.json") && told.contains(missing), "{told}");
    assert_eq!(found["bundles"][1]["model"], "opuslm-tiny");
    let twice = found["together"]["error"].as_str().unwrap();
    assert!(twice.contains("two models are named \"opuslm-tiny\""), "{twice}");
    assert!(told.contains("2 of what was checked"), "{told}");
    let (code, _, told) = check(&["bagpiper", "opuslm"], &["--kv-bytes", "1000"]);
    assert_eq!(code, Some(2));
    assert!(told.contains("kv_bytes is 1000, the bundles need at least"), "{told}");
}
