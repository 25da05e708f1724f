//! Ears of fixtures, the thread's loop, and a running engine.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

mod live;

use super::*;
use crate::answer::{Home, Modality, Part, Request, Speaker};
use crate::bundle::Opened;
use crate::bundle::speech::{LoadOptions, SpeechBundle};
use crate::event::{Event, Events, Summary, outbox};
use crate::kernels::matrix::Precision;
use crate::models::speech::Heard;
use crate::worker::Command;
use crate::{ContextId, Error, Handle, Options};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
}

/// A bundle of the fixtures that hears with the given parts, each a link from a name in the bundle to a file.
fn bundle(name: &str, input: Value, parts: &[(&str, &str)]) -> (tempfile::TempDir, SpeechBundle) {
    let folder = tempfile::tempdir().unwrap();
    let source = fixture(&format!("bundles/{name}"));
    for part in ["codec", "model", "tokenizer.json"] {
        let from = source.join(part).canonicalize().unwrap();
        std::os::unix::fs::symlink(from, folder.path().join(part)).unwrap();
    }
    for (part, from) in parts {
        let part = folder.path().join(part);
        std::fs::create_dir_all(part.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(fixture(from).canonicalize().unwrap(), part).unwrap();
    }
    let mut manifest: Value = codecs::weights::read_json(&source.join("dovecote.json")).unwrap();
    manifest["audio_input"] = input;
    std::fs::write(folder.path().join("dovecote.json"), manifest.to_string()).unwrap();
    let bundle = SpeechBundle::open(folder.path()).unwrap();
    (folder, bundle)
}

fn tower() -> (tempfile::TempDir, SpeechBundle) {
    let input = json!({"kind": "qwen3-omni", "max_seconds": 2.0});
    bundle("bagpiper", input, &[("audio", "qwen3_omni_audio_tiny")])
}

/// The ear of a bundle, and the rows that its network knows.
fn ear(bundle: &SpeechBundle) -> (Ear, Arc<Heard>) {
    let options = LoadOptions { precision: Precision::F32, pool: None };
    let heard = bundle.load(&options, &mut |_| ()).unwrap().network.heard();
    (Ear::of(bundle, heard.clone()).unwrap(), heard)
}

fn tone(samples: u16) -> Vec<f32> {
    (0..samples).map(|i| (f32::from(i) * 0.04).sin() * 0.3).collect()
}

#[test]
fn a_recording_becomes_rows_that_are_there_as_long_as_the_part() {
    let (_folder, bundle) = tower();
    let (mut ear, heard) = ear(&bundle);
    let part = ear.hear(&tone(24_000)).unwrap();
    let Part::Heard(clips) = &part else { panic!("{part:?}") };
    // 100 frames of spectrum are a chunk, of 13 tokens.
    assert_eq!((clips[0].ids().len(), clips.len(), heard.clips()), (13, 1, 1));
    drop(part);
    assert_eq!(heard.clips(), 0);
}

#[test]
fn a_recording_becomes_units_and_codes_of_equal_length() {
    let bundle = SpeechBundle::open(&fixture("bundles/opuslm-hearing")).unwrap();
    let (mut ear, _) = ear(&bundle);
    let part = ear.hear(&tone(24_000)).unwrap();
    let Part::Codes(rows) = &part else { panic!("{part:?}") };
    // Features end with their last whole window, codes with the last sample.
    assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [49; 9]);
    let differ = |row: &Vec<u16>| row.iter().any(|code| *code != row[0]);
    assert!(rows.iter().all(differ), "one code says nothing of a tone: {rows:?}");
    assert_eq!(ear.hear(&tone(100)), Err(HearingError::TooShort { samples: 100 }));
}

#[test]
fn what_cannot_be_heard_is_told_and_nothing_is_kept_of_it() {
    let (folder, bundle) = tower();
    let (mut ear, heard) = ear(&bundle);
    let long = ear.hear(&tone(48_001)).unwrap_err().to_string();
    assert_eq!(long, "longer than 2 s (audio_input.max_seconds)");
    assert_eq!(ear.hear(&[0.0, f32::NAN]), Err(HearingError::NotFinite { index: 1 }));
    assert_eq!(ear.hear(&[]), Err(HearingError::TooShort { samples: 0 }));
    assert_eq!(heard.clips(), 0);
    std::fs::remove_file(folder.path().join("audio")).unwrap();
    let mut fresh = Ear::of(&bundle, heard).unwrap();
    let lost = fresh.hear(&tone(100)).unwrap_err().to_string();
    assert!(lost.contains("cannot load what hears") && lost.contains("config.json"), "{lost}");
}

const LIMITS: LiveLimits =
    LiveLimits { recordings: 4, idle: Duration::from_secs(9), unheard: Duration::from_secs(3) };

/// The thread's side with one model that hears, and what it would tell the step thread.
struct Rig {
    side: Side,
    speaker: Arc<Speaker>,
    commands: Receiver<Command>,
    _folder: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let (_folder, bundle) = tower();
        let options = LoadOptions { precision: Precision::F32, pool: None };
        let speech = bundle.load(&options, &mut |_| ()).unwrap();
        let (_, mut speaker) = Speaker::of(speech, Home { stage: 0, blocks: 99 });
        let (to_step, commands) = sync_channel(9);
        let ear = Ear::of(&bundle, speaker.heard.clone()).unwrap();
        speaker.hears(ear.limits());
        let ears = vec![Some(Arc::new(Mutex::new(ear)))];
        let (inbox, waiting) = (Inbox::new(LIMITS), Arc::default());
        let side = Side { ears, inbox, waiting, commands: to_step };
        Self { side, speaker: Arc::new(speaker), commands, _folder }
    }

    /// An answer that waits for a recording to be heard.
    fn ask(&self, id: u64, samples: Vec<f32>) -> (HearingJob, Events) {
        let (outbox, events) = outbox(|| Duration::ZERO, || ());
        self.side.waiting.add(ContextId(id), outbox);
        let mut request = Request::new("", &[Modality::Text]);
        request.messages[0].parts = vec![Part::Audio(samples.into())];
        let speaker = self.speaker.clone();
        let (id, _queued) = (ContextId(id), speaker.meter.hearing());
        (HearingJob { id, speaker, model: 0, request, _queued, lease: None }, events)
    }

    /// Lets the thread's loop do these jobs. Returns which contexts it would open.
    fn run(self, jobs: Vec<HearingJob>) -> Vec<ContextId> {
        let inbox = self.side.inbox.clone();
        jobs.into_iter().for_each(|job| inbox.submit(job).unwrap());
        inbox.close();
        self.side.run(|| Duration::ZERO);
        let opened = |command| match command {
            Command::Open { id, .. } => id,
            _ => panic!("only contexts are opened"),
        };
        self.commands.iter().map(opened).collect()
    }
}

fn last(events: &Events) -> Option<Event> {
    events.recv_timeout(Duration::ZERO).ok().flatten()
}

#[test]
fn contexts_open_in_order_once_their_recordings_are_heard() {
    let rig = Rig::new();
    let (jobs, events): (Vec<_>, Vec<_>) = (1..4).map(|id| rig.ask(id, tone(2_400))).unzip();
    assert_eq!(rig.run(jobs), [1, 2, 3].map(ContextId));
    assert!(events.iter().all(|events| last(events).is_none()), "nothing is said of it yet");
}

#[test]
fn a_recording_that_cannot_be_heard_fails_its_answer_alone() {
    let rig = Rig::new();
    let (short, events) = rig.ask(1, Vec::new());
    let (good, _open) = rig.ask(2, tone(2_400));
    assert_eq!(rig.run(vec![short, good]), [ContextId(2)]);
    let Some(Event::Failed(failure)) = last(&events) else { panic!() };
    let expected = "cannot hear a recording: 0 samples are too short to be heard";
    assert_eq!(failure.to_string(), expected);
}

#[test]
fn an_answer_that_is_cancelled_or_has_no_reader_is_not_heard() {
    let rig = Rig::new();
    let heard = rig.speaker.heard.clone();
    let (cancelled, events) = rig.ask(1, tone(2_400));
    let (unread, reader) = rig.ask(2, tone(2_400));
    drop(reader);
    assert!(rig.side.waiting.cancel(ContextId(1)) && !rig.side.waiting.cancel(ContextId(1)));
    assert_eq!(rig.run(vec![cancelled, unread]), []);
    assert!(matches!(last(&events), Some(Event::Cancelled(_))));
    assert_eq!(heard.clips(), 0);
}

/// All events of an answer, which must come to an end.
fn read(events: &Events) -> Vec<Event> {
    std::iter::from_fn(|| events.recv()).collect()
}

#[test]
fn a_running_engine_answers_to_a_recording_and_refuses_what_it_cannot_hear() {
    let (_folder, bundle) = tower();
    let deaf = SpeechBundle::open(&fixture("bundles/opuslm")).unwrap();
    let bundles = [Opened::Speech(Box::new(bundle)), Opened::Speech(Box::new(deaf))];
    let options = Options { precision: Precision::F32, threads: 1, ..Options::default() };
    let engine = Handle::start(&bundles, &options, &mut |_| ()).unwrap();
    let ask = |model: &str, samples: Vec<f32>| {
        let mut request = Request::new("What is said?", &[Modality::Text]);
        request.messages[0].parts.push(Part::Audio(samples.into()));
        engine.answer(Request { model: Some(model.into()), ..request })
    };
    let (_, events) = ask("bagpiper-tiny", tone(24_000)).unwrap();
    let told = read(&events);
    let Some(Event::Done(Summary { usage: Some(usage), .. })) = told.last() else {
        panic!("{told:?}")
    };
    assert_eq!(usage.prompt_audio_tokens, 13);
    for (model, samples, says) in [
        ("bagpiper-tiny", tone(48_001), "longer than 2 s (audio_input.max_seconds)"),
        ("bagpiper-tiny", vec![f32::INFINITY], "sample 0 is not a finite number"),
        ("opuslm-tiny", tone(100), "this model does not hear"),
    ] {
        let refused = ask(model, samples).err().unwrap().to_string();
        assert!(refused.contains(says), "{refused}");
    }
    // More wait than may, unless the thread is quick.
    let asked: Vec<_> = (0..20).map(|_| ask("bagpiper-tiny", tone(24_000))).collect();
    assert!(asked.iter().all(|asked| matches!(asked, Ok(_) | Err(Error::Busy { .. }))));
    drop(engine);
    for (_, events) in asked.iter().flatten() {
        let told = read(events);
        assert!(matches!(told.last(), None | Some(Event::Cancelled(_) | Event::Done(_))));
    }
}
