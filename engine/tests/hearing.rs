//! A model that hears in codes, in a running engine: what is said is written down and answered, and a voice is spoken with.
//! Weights are random, so only that it depends on what was heard can be told.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::path::Path;
use std::sync::LazyLock;

use engine::answer::{Message, Modality, Part, Request, Role, Task};
use engine::bundle;
use engine::{Event, Events, Handle, Options, Usage, VoiceError, VoiceSource};

static ENGINE: LazyLock<Handle> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/bundles");
    let bundle = bundle::open(&folder.join("opuslm-hearing")).unwrap();
    Handle::start(&[bundle], &Options::default(), &mut |_| ()).unwrap()
});

/// Frames of a voice that the model reads.
const VOICE_FRAMES: usize = 500;

/// Sound at 24 kHz.
fn sound(step: f32, seconds: f32) -> Vec<f32> {
    let sample = |i: u32| (i as f32 * step).sin() * (i as f32 * 0.000_9).cos() * 0.4;
    (0..(seconds * 24_000.0) as u32).map(sample).collect()
}

/// A second of it.
fn tone(step: f32) -> Part {
    Part::Audio(sound(step, 1.0).into())
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

/// Features and codec look at the whole of a recording.
#[test]
fn a_recording_that_comes_in_is_heard_at_its_end_as_if_it_had_been_there() {
    let transcribe = |part: Part| {
        let messages = vec![Message { role: Role::User, parts: vec![part] }];
        Request { task: Task::Transcribe, messages, ..Request::new("", &[]) }
    };
    let talk = |part: Part| {
        let mut request = Request::new("And you?", &[Modality::Text]);
        request.messages.insert(0, Message { role: Role::User, parts: vec![part] });
        request
    };
    for asked in [transcribe, talk] as [fn(Part) -> Request; 2] {
        let expected = ask(asked(tone(0.03)));
        let (id, events) = ENGINE.answer(asked(Part::Live(Vec::new()))).unwrap();
        for piece in sound(0.03, 1.0).chunks(5_000) {
            ENGINE.push_audio(id, 0, piece).unwrap();
        }
        ENGINE.end_audio(id, 0).unwrap();
        assert_eq!(read(&events), expected);
    }
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

#[test]
fn a_voice_is_made_of_ten_seconds_of_a_recording_at_most() {
    let make = |seconds: f32| ENGINE.make_voice(None, VoiceSource::Recording(sound(0.03, seconds)));
    let (short, long) = (make(1.0).unwrap(), make(11.0).unwrap());
    // Features end with their last whole window.
    assert_eq!((short.read_frames.as_slice(), short.rows.len()), (&[49][..], 9));
    assert_eq!(long.read_frames, [VOICE_FRAMES]);
    assert_eq!((long.seconds_max, long.frames_per_second), (10.0, 50.0));
    // Beyond what the ear takes at once, too: the rest is not heard.
    assert_eq!(make(30.0).unwrap().rows, long.rows);
    assert_eq!(
        ENGINE.make_voice(None, VoiceSource::Recording(vec![0.0; 24_000])),
        Err(VoiceError::Silent)
    );
    let unheard = make(0.005).unwrap_err();
    assert!(matches!(unheard, VoiceError::Unheard(_)), "{unheard}");

    ENGINE.add_voice("made", long.clone()).unwrap();
    let spoken = |voice: &str| {
        let voice = Some(voice.to_owned());
        ask(Request { task: Task::Speak, voice, seed: 3, ..Request::new("hello", &[]) })
    };
    let made = spoken("made");
    assert_eq!(made.usage.prompt_audio_tokens, VOICE_FRAMES);
    // The same codes, given as such, are the same voice.
    let again = ENGINE.make_voice(Some("opuslm-hearing"), VoiceSource::Codes(long.rows)).unwrap();
    ENGINE.add_voice("again", again).unwrap();
    assert_eq!(spoken("again"), made);
    let unlike = ENGINE.make_voice(None, VoiceSource::Codes(vec![vec![31; 3]; 8])).unwrap_err();
    assert!(unlike.to_string().contains("8 rows of codes, the model has 9 streams"), "{unlike}");
    assert!(ENGINE.remove_voice("opuslm-hearing", "made"));
    let voice = Some("made".to_owned());
    let gone = Request { task: Task::Speak, voice, ..Request::new("hello", &[]) };
    assert!(ENGINE.answer(gone).is_err());
}
