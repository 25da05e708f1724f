//! Two models that speak texts in one engine: voices are theirs, and a voice that is named finds its model.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use engine::bundle::{self, Opened};
use engine::{Error, Event, Events, Handle, Manner, Options, Request, VoiceError, VoiceSource};
use serde_json::{Value, json};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path).canonicalize().unwrap()
}

/// The bundled voice by another name, with one voice, `eve`.
fn other() -> (tempfile::TempDir, Opened) {
    let (nano, folder) = (repository("voices/nano"), tempfile::tempdir().unwrap());
    for entry in fs::read_dir(&nano).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "dovecote.json" {
            symlink(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
    }
    let manifest = fs::read(nano.join("dovecote.json")).unwrap();
    let mut manifest: Value = serde_json::from_slice(&manifest).unwrap();
    manifest["name"] = "other".into();
    manifest["voices"] = json!([{"name": "eve", "language": "english"}]);
    manifest["default_voice"] = "eve".into();
    fs::write(folder.path().join("dovecote.json"), manifest.to_string()).unwrap();
    let opened = bundle::open(folder.path()).unwrap();
    (folder, opened)
}

fn sound(events: &Events) -> Vec<f32> {
    let mut sound = Vec::new();
    loop {
        match events.recv().unwrap() {
            Event::Audio { samples, .. } => sound.extend(samples.into_samples()),
            Event::Done(_) => return sound,
            Event::Failed(failure) => panic!("{failure}"),
            _ => {}
        }
    }
}

#[test]
fn a_voice_belongs_to_its_model_and_is_found_there() {
    let (_folder, other) = other();
    let nano = bundle::open(&repository("voices/nano")).unwrap();
    let bundles = [nano, other];
    let engine = Handle::start(&bundles, &Options::default(), &mut |_| ()).unwrap();
    let ask = |model: Option<&str>, voice: Option<&str>| {
        let (model, voice) = (model.map(str::to_owned), voice.map(str::to_owned));
        engine.open(Request { model, voice, ..Request::file("Hello there.") })
    };
    let speak = |model, voice| sound(&ask(model, voice).unwrap().1);
    let row = |row: u16| (0..60).map(|f| (17 * f + row) % 1_000).collect::<Vec<u16>>();
    let codes = VoiceSource::Codes((0..4).map(row).collect());
    let made = engine.make_voice(Some("other"), codes.clone()).unwrap();
    assert_eq!((made.model.as_str(), made.read_frames[0]), ("other", 60));
    engine.add_voice("ann", made.clone()).unwrap();
    assert_eq!(engine.add_voice("ann", made), Err(VoiceError::Taken { name: "ann".into() }));
    let usual = speak(None, None);
    assert_ne!(speak(None, Some("ann")), usual, "the model that has the voice speaks");
    assert_eq!(speak(None, Some("ann")), speak(Some("other"), Some("ann")));
    assert_eq!(speak(None, Some("eve")), speak(Some("other"), None));
    let refused = ask(Some("nano"), Some("ann")).err().unwrap();
    assert!(matches!(refused, Error::Option { field: "voice", .. }), "{refused}");
    // A context of a voice is restyled by the model of the voice.
    let (id, events) =
        engine.open(Request { voice: Some("ann".to_owned()), ..Request::live() }).unwrap();
    let manner = Manner {
        voice: Some("ann".to_owned()),
        style: Some("agentic".to_owned()),
        ..Manner::default()
    };
    engine.restyle(id, &manner).unwrap();
    engine.push(id, "Hello.").unwrap();
    engine.end(id).unwrap();
    assert!(!sound(&events).is_empty());

    assert!(!engine.remove_voice("nano", "ann") && engine.remove_voice("other", "ann"));
    assert!(ask(None, Some("ann")).is_err());
    // Without a name the first model that can is meant; none here hears.
    assert_eq!(engine.make_voice(None, codes.clone()).unwrap().model, "nano");
    let recording = VoiceSource::Recording(vec![0.1; 24_000]);
    assert_eq!(engine.make_voice(None, recording), Err(VoiceError::Deaf));
    let known = vec!["nano".to_owned(), "other".to_owned()];
    let unknown = VoiceError::Model { model: "third".to_owned(), known };
    assert_eq!(engine.make_voice(Some("third"), codes), Err(unknown));
}
