//! A model that hears in codes, in a running engine: what is said is written down and answered, and a voice is spoken with.
//! Weights are random, so only that it depends on what was heard can be told.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::path::Path;
use std::sync::LazyLock;

use engine::answer::{Message, Modality, Part, Request, Role, Task};
use engine::bundle;
use engine::{Event, Events, Handle, Options, Usage};

static ENGINE: LazyLock<Handle> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/bundles");
    let bundle = bundle::open(&folder.join("opuslm-hearing")).unwrap();
    Handle::start(&[bundle], &Options::default(), &mut |_| ()).unwrap()
});

/// A second at 24 kHz.
fn tone(step: f32) -> Part {
    let sample = |i: u16| (f32::from(i) * step).sin() * (f32::from(i) * 0.000_9).cos() * 0.4;
    Part::Audio((0..24_000).map(sample).collect::<Vec<f32>>().into())
}

/// What a context said, up to its good end.
#[derive(Debug, PartialEq)]
struct Said {
    text: String,
    sound: Vec<f32>,
    usage: Usage,
}

fn read(events: &Events) -> Said {
    let (mut text, mut sound) = (String::new(), Vec::new());
    loop {
        match events.recv().unwrap() {
            Event::Text { delta } => text += &delta,
            Event::Audio { samples, .. } => sound.extend(samples.into_samples()),
            Event::Done(summary) => return Said { text, sound, usage: summary.usage.unwrap() },
            Event::Failed(failure) => panic!("{failure}"),
            _ => {}
        }
    }
}

fn ask(request: Request) -> Said {
    read(&ENGINE.answer(request).unwrap().1)
}

#[test]
fn a_recording_is_written_down_by_what_is_heard_in_it() {
    let transcribed = |step: f32| {
        let messages = vec![Message { role: Role::User, parts: vec![tone(step)] }];
        ask(Request { task: Task::Transcribe, messages, ..Request::new("", &[]) })
    };
    let (low, high) = (transcribed(0.03), transcribed(0.2));
    // Features end with their last whole window.
    assert_eq!(low.usage.prompt_audio_tokens, 49);
    assert!(low.sound.is_empty() && low.usage.text_tokens > 0);
    assert_eq!(low, transcribed(0.03));
    assert_ne!(low.text, high.text, "what is heard decides what is written");
}

#[test]
fn a_dialogue_about_a_recording_is_written_and_spoken() {
    let answered = |step: f32| {
        let mut request = Request::new("And you?", &[Modality::Text, Modality::Audio]);
        let before = [
            Message { role: Role::User, parts: vec![tone(step)] },
            Message { role: Role::Assistant, parts: vec![Part::Text("Fine.".to_owned())] },
        ];
        request.messages.splice(0..0, before);
        ask(Request { voice: Some("ann".to_owned()), ..request })
    };
    let (low, high) = (answered(0.03), answered(0.2));
    // The voice has twelve frames.
    assert_eq!(low.usage.prompt_audio_tokens, 12 + 49);
    assert!(low.usage.text_tokens > 0);
    // Fifty frames a second.
    assert_eq!(low.sound.len(), low.usage.audio_frames * 480);
    assert_eq!(low, answered(0.03));
    assert_ne!(low.text, high.text);
}

#[test]
fn a_text_is_spoken_in_a_voice() {
    let spoken = |voice: Option<&str>| {
        let voice = voice.map(str::to_owned);
        ask(Request { task: Task::Speak, voice, seed: 3, ..Request::new("hello", &[]) })
    };
    let (own, ann) = (spoken(None), spoken(Some("ann")));
    assert!(own.text.is_empty() && !own.sound.is_empty());
    assert_eq!(ann, spoken(Some("ann")));
    assert_ne!(own.sound, ann.sound);
    assert_eq!((own.usage.prompt_audio_tokens, ann.usage.prompt_audio_tokens), (0, 12));
    let voice = Some("nobody".to_owned());
    let request = Request { task: Task::Speak, voice, ..Request::new("hello", &[]) };
    let refused = ENGINE.answer(request).err().unwrap().to_string();
    assert!(refused.contains("voices: ann"), "{refused}");
}
