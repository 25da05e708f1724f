//! Recordings that come in while they are made.

use super::*;
use crate::answer::{Message, Role, Settings};
use crate::models::speech::Clip;

/// Samples at 24 kHz of a window of the tiny tower, with what it looks ahead and what the conversion of the rate keeps back.
const WINDOW: usize = 24_000 * 8 + 1_200;
/// Rows of a window.
const WINDOW_ROWS: usize = 104;

/// A bundle that hears for so long, live or not.
fn listening(live: bool) -> (tempfile::TempDir, SpeechBundle) {
    let input = json!({"kind": "qwen3-omni", "max_seconds": 20.0, "live": live});
    bundle("bagpiper", input, &[("audio", "qwen3_omni_audio_tiny")])
}

fn long_tone(samples: usize) -> Vec<f32> {
    (0..samples).map(|i| (i as f32 * 0.04).sin() * 0.3).collect()
}

/// Texts with a live recording behind each.
fn asked(texts: &[&str]) -> Request {
    let parts = |text: &&str| [Part::Text((*text).to_owned()), Part::Live(Vec::new())];
    let parts = texts.iter().flat_map(parts).collect();
    let messages = vec![Message { role: Role::User, parts }];
    Request { messages, max_text_tokens: Some(5), ..Request::new("", &[Modality::Text]) }
}

/// Lets the ear hear a recording in pieces. Returns its clips.
fn heard(ear: &mut Ear, samples: &[f32], piece: usize) -> Vec<Arc<Clip>> {
    let (mut listener, mut part) = (ear.listen().unwrap(), Part::Live(Vec::new()));
    for piece in samples.chunks(piece) {
        ear.hear_more(&mut listener, &mut part, piece, false).unwrap();
    }
    assert!(ear.hear_more(&mut listener, &mut part, &[], true).unwrap());
    match part {
        Part::Heard(clips) => clips,
        other => panic!("{other:?}"),
    }
}

fn rows(clips: &[Arc<Clip>]) -> Vec<usize> {
    clips.iter().map(|clip| clip.ids().len()).collect()
}

#[test]
fn windows_are_heard_before_the_end_where_the_bundle_says_so() {
    let samples = long_tone(WINDOW + 24_000);
    for (live, expected) in [(true, vec![WINDOW_ROWS, 14]), (false, vec![WINDOW_ROWS + 14])] {
        let (_folder, bundle) = listening(live);
        let (mut ear, known) = ear(&bundle);
        assert_eq!(rows(&heard(&mut ear, &samples, 7_001)), expected, "live: {live}");
        assert_eq!(known.clips(), 0, "rows go with their clips");
    }
}

impl Rig {
    /// A context with live recordings, of a bundle that hears 2 s.
    fn enter(&self, id: u64, texts: &[&str]) -> Result<Lease, Error> {
        let progress = Progress::new(self.speaker.clone(), 0, asked(texts));
        let limits = Limits { seconds_max: 2.0, in_codes: false };
        let (inbox, now) = (&self.side.inbox, Duration::ZERO);
        inbox.enter(ContextId(id), (limits, texts.len()), Some(Box::new(progress)), now)
    }

    /// Lets the thread hear what came. Returns what it tells the step thread.
    fn tells(self) -> Vec<(ContextId, Result<Box<Settings>, String>)> {
        self.side.inbox.close();
        self.side.run(|| Duration::ZERO);
        let told = |command| match command {
            Command::Heard { id, heard } => (id, heard.map_err(|e| e.to_string())),
            _ => panic!("no context is opened"),
        };
        self.commands.iter().map(told).collect()
    }
}

fn refused(result: Result<(), Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn what_cannot_come_is_told_and_counts_as_not_sent() {
    let rig = Rig::new();
    let inbox = rig.side.inbox.clone();
    let (id, zero) = (ContextId(1), Duration::ZERO);
    let push = |recording, samples: &[f32]| inbox.push(id, recording, samples, zero);
    assert_eq!(push(0, &[0.0]), Err(Error::Silent));
    let lease = rig.enter(1, &["a", "b"]).unwrap();
    push(0, &tone(24_000)).unwrap();
    let bad = [
        (2, vec![0.0], "recording 2: the request has no such live recording"),
        (0, vec![0.0, f32::NAN], "recording 0: sample 24001 is not a finite number"),
        (0, tone(24_001), "recording 0: longer than 2 s (audio_input.max_seconds)"),
    ];
    for (recording, samples, says) in bad {
        assert_eq!(refused(push(recording, &samples)), says);
    }
    push(0, &tone(24_000)).unwrap();
    inbox.end(id, 0, zero).unwrap();
    assert_eq!(refused(inbox.end(id, 0, zero)), "recording 0: it has ended");
    assert_eq!(refused(push(0, &[0.0])), "recording 0: it has ended");
    // Two seconds wait.
    push(1, &tone(23_999)).unwrap();
    let full = refused(push(1, &[0.0, 0.0]));
    assert_eq!(full, "3 s of sound wait to be heard, as much as may (hearing.max_unheard_s)");
    assert_eq!(inbox.held(), (1, 71_999));
    drop(lease);
    assert_eq!(inbox.held(), (0, 0));
    assert_eq!(push(1, &[0.0]), Err(Error::Silent));
}

#[test]
fn as_many_recordings_come_in_as_may_and_one_that_ends_makes_room() {
    let rig = Rig::new();
    let first = rig.enter(1, &["a", "b", "c"]).unwrap();
    let full = rig.enter(2, &["a", "b"]).err().unwrap();
    assert_eq!(full.to_string(), "4 recordings come in, as many as may at once (hearing.max_live)");
    rig.side.inbox.end(ContextId(1), 2, Duration::ZERO).unwrap();
    let second = rig.enter(2, &["a", "b"]).unwrap();
    drop(first);
    assert!(rig.enter(3, &["a", "b"]).is_ok());
    drop(second);
    assert_eq!(rig.side.inbox.held(), (0, 0));
}

#[test]
fn the_request_is_known_further_with_every_recording_that_ends() {
    let rig = Rig::new();
    let (inbox, id, zero) = (rig.side.inbox.clone(), ContextId(1), Duration::ZERO);
    let streams = 8;
    let before = rig.speaker.resolve(asked(&["a", "bc"])).unwrap();
    assert!(before.growing);
    let _lease = rig.enter(1, &["a", "bc"]).unwrap();
    // The later one may come first; it is known when the one before it is.
    inbox.push(id, 1, &tone(24_000), zero).unwrap();
    inbox.end(id, 1, zero).unwrap();
    inbox.push(id, 0, &tone(12_000), zero).unwrap();
    inbox.end(id, 0, zero).unwrap();
    let told = rig.tells();
    assert!(told.iter().all(|(of, heard)| *of == id && heard.is_ok()));
    let settings: Vec<&Settings> = told.iter().map(|(_, s)| &**s.as_ref().unwrap()).collect();
    assert!(!settings.last().unwrap().growing);
    let mut known = before.rows();
    for settings in settings {
        assert!(settings.rows().starts_with(&known), "what is known stays");
        known = settings.rows();
    }
    // Half a second and a second of sound are 7 and 13 rows.
    let heard = known.iter().step_by(streams).filter(|id| Heard::names(**id)).count();
    assert_eq!(heard, 20);
}

#[test]
fn a_recording_that_is_too_short_fails_its_answer_and_nothing_more_is_taken_for_it() {
    let rig = Rig::new();
    let inbox = rig.side.inbox.clone();
    let _lease = rig.enter(1, &["a"]).unwrap();
    inbox.end(ContextId(1), 0, Duration::ZERO).unwrap();
    let told = rig.tells();
    let [(ContextId(1), Err(failure))] = &told[..] else { panic!("{}", told.len()) };
    assert_eq!(failure, "cannot hear a recording: 0 samples are too short to be heard");
    assert_eq!(inbox.held(), (0, 0));
}

#[test]
fn a_context_that_nothing_comes_for_is_given_up_by_name_of_the_limit() {
    let rig = Rig::new();
    let (inbox, commands) = (rig.side.inbox.clone(), rig.commands);
    let _lease = {
        let progress = Box::new(Progress::new(rig.speaker.clone(), 0, asked(&["a"])));
        let limits = Limits { seconds_max: 2.0, in_codes: false };
        inbox.enter(ContextId(1), (limits, 1), Some(progress), Duration::ZERO).unwrap()
    };
    // The thread looks at its clock when it looks for something to do; the second time the inbox is closed.
    let (closing, seen) = (inbox.clone(), std::cell::Cell::new(0));
    rig.side.run(|| {
        seen.set(seen.get() + 1);
        if seen.get() == 2 {
            closing.close();
        }
        LIMITS.idle
    });
    let Some(Command::Heard { heard: Err(failure), .. }) = commands.iter().next() else { panic!() };
    assert_eq!(
        failure.to_string(),
        "cannot hear a recording: nothing came for 9 s (hearing.idle_s)"
    );
    assert_eq!((inbox.held(), seen.get()), ((0, 0), 2));
}

#[test]
fn a_context_that_is_over_is_heard_no_more() {
    let rig = Rig::new();
    let known = rig.speaker.heard.clone();
    let (inbox, zero) = (rig.side.inbox.clone(), Duration::ZERO);
    let lease = rig.enter(1, &["a"]).unwrap();
    inbox.push(ContextId(1), 0, &tone(24_000), zero).unwrap();
    drop(lease);
    assert!(rig.tells().is_empty());
    assert_eq!(known.clips(), 0);
}

/// An engine with the bundle of [`listening`], and a pure question to it.
fn running(live: bool) -> (tempfile::TempDir, Handle) {
    let (folder, bundle) = listening(live);
    let options = Options {
        precision: Precision::F32,
        threads: 1,
        live_idle: Duration::from_secs(60),
        ..Options::default()
    };
    let bundles = [Opened::Speech(Box::new(bundle))];
    (folder, Handle::start(&bundles, &options, &mut |_| ()).unwrap())
}

/// Text, and the summary, of an answer.
fn answer(events: &Events) -> (String, Summary) {
    let mut text = String::new();
    for event in read(events) {
        match event {
            Event::Text { delta } => text += &delta,
            Event::Done(summary) => return (text, Summary { queued: Duration::ZERO, ..summary }),
            Event::Segment { .. } | Event::SegmentEnd(_) => {}
            other => panic!("{other:?}"),
        }
    }
    panic!("it has no end")
}

#[test]
fn a_running_engine_answers_the_same_to_sound_that_comes_and_to_sound_that_is_there() {
    for live in [true, false] {
        let (_folder, engine) = running(live);
        let samples = long_tone(40_000);
        let mut whole = asked(&["What is said?"]);
        whole.messages[0].parts[1] = Part::Audio(samples.clone().into());
        let expected = answer(&engine.answer(whole).unwrap().1);
        let (id, events) = engine.answer(asked(&["What is said?"])).unwrap();
        for piece in samples.chunks(3_333) {
            engine.push_audio(id, 0, piece).unwrap();
        }
        engine.end_audio(id, 0).unwrap();
        assert_eq!(answer(&events), expected, "live: {live}");
        assert!(engine.end_audio(id, 0).is_err());
        // A recording that is there before one that comes.
        let mut both = asked(&["First.", "Second."]);
        both.messages[0].parts[1] = Part::Audio(samples.clone().into());
        let (id, events) = engine.answer(both).unwrap();
        engine.push_audio(id, 0, &samples).unwrap();
        engine.end_audio(id, 0).unwrap();
        let heard = answer(&events).1.usage.unwrap().prompt_audio_tokens;
        assert_eq!(heard, 2 * expected.1.usage.unwrap().prompt_audio_tokens);
    }
}

#[test]
fn a_cancel_and_a_reader_that_goes_end_a_context_that_listens() {
    let (_folder, engine) = running(true);
    let (id, events) = engine.answer(asked(&["Hear me."])).unwrap();
    engine.push_audio(id, 0, &long_tone(24_000)).unwrap();
    engine.cancel(id).unwrap();
    assert!(matches!(read(&events)[..], [Event::Cancelled(_)]));
    let (gone, events) = engine.answer(asked(&["Hear me."])).unwrap();
    drop(events);
    // Each is over before the next command is obeyed, so this one finds the engine empty of them.
    let (last, events) = engine.answer(asked(&["Hear me."])).unwrap();
    engine.push_audio(last, 0, &long_tone(24_000)).unwrap();
    engine.end_audio(last, 0).unwrap();
    answer(&events);
    for id in [id, gone] {
        assert_eq!(engine.push_audio(id, 0, &[0.0]), Err(Error::Silent));
    }
}
