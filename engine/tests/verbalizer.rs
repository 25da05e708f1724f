//! A voice whose texts a model puts into words, through the engine. The model's weights are random, so the rules speak in the end.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use engine::bundle::{self, Bundle};
use engine::{Event, Events, Handle, Options, Request, inspect};
use serde_json::{Value, json};
use tempfile::TempDir;

/// More than find a place at once.
const CROWD: usize = 24;

fn repository(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path).canonicalize().unwrap()
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// The nano voice with a model beside it.
fn nano() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = repository("voices/nano");
    for entry in std::fs::read_dir(&root).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "dovecote.json" {
            symlink(entry.path(), dir.path().join(entry.file_name())).unwrap();
        }
    }
    let mut manifest = read(&root.join("dovecote.json"));
    manifest["verbalizer"] = json!({"path": "words", "instruction": "Say: ", "context_tokens": 200, "timeout_ms": 60000});
    std::fs::write(dir.path().join("dovecote.json"), manifest.to_string()).unwrap();
    let words = dir.path().join("words");
    std::fs::create_dir(&words).unwrap();
    let model = repository("tests/fixtures/speechlm_tiny/bagpiper");
    let mut config = read(&model.join("config.json"))["text_config"].clone();
    config["model_type"] = "qwen3".into();
    std::fs::write(words.join("config.json"), config.to_string()).unwrap();
    symlink(model.join("model.safetensors"), words.join("model.safetensors")).unwrap();
    symlink(repository("tests/fixtures/bundles/tokenizer.json"), words.join("tokenizer.json"))
        .unwrap();
    dir
}

fn start(root: &Path) -> Handle {
    let options = Options { threads: 1, ..Options::default() };
    Handle::start(&[bundle::open(root).unwrap()], &options, &mut |_| ()).unwrap()
}

/// The sound of a context, and its last event.
fn hear(events: &Events) -> (Vec<f32>, Event) {
    let (mut sound, mut last) = (Vec::new(), None);
    while let Some(event) = events.recv() {
        match event {
            Event::Audio { samples, .. } => sound.extend(samples),
            other => last = Some(other),
        }
    }
    (sound, last.unwrap())
}

#[test]
fn what_the_model_cannot_say_is_spoken_by_the_rules() {
    let dir = nano();
    let say = |root: &Path| {
        let handle = start(root);
        let (_, events) = handle.open(Request::file("It costs $5.")).unwrap();
        hear(&events)
    };
    let (sound, last) = say(dir.path());
    assert!(matches!(last, Event::Done(_)), "{last:?}");
    assert!(!sound.is_empty() && sound == say(&repository("voices/nano")).0);
}

#[test]
fn a_context_that_waits_for_its_words_can_be_cancelled_like_any_other() {
    let dir = nano();
    let handle = start(dir.path());
    let open = |text: String| handle.open(Request::whole(text)).unwrap();
    let crowd: Vec<_> = (0..CROWD).map(|i| open(format!("It costs ${i}."))).collect();
    for (id, _) in &crowd {
        handle.cancel(*id).unwrap();
    }
    for (_, events) in &crowd {
        let (sound, last) = hear(events);
        assert!(matches!(last, Event::Cancelled(_)) && sound.is_empty(), "{last:?}");
    }
    let (_, events) = open("It costs $5.".to_owned());
    assert!(matches!(hear(&events).1, Event::Done(_)));
    // What still waits when the engine goes down is told so.
    let (_, events) = open("It costs $6.".to_owned());
    drop(handle);
    assert!(matches!(hear(&events).1, Event::Cancelled(_) | Event::Done(_)));
}

#[test]
fn a_model_that_is_not_there_is_told_by_its_file() {
    let dir = nano();
    std::fs::remove_file(dir.path().join("words/tokenizer.json")).unwrap();
    let bundle = Bundle::open(dir.path()).unwrap();
    let text = inspect(&bundle, &mut |_| ()).unwrap_err().to_string();
    assert!(text.contains("words/tokenizer.json"), "{text}");
}
