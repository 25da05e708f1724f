//! Bundles of both families in one running engine, from outside.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::path::Path;
use std::time::Duration;

use engine::answer::{self, Modality, Task};
use engine::bundle::{self, Opened};
use engine::{Error, Event, Events, Handle, Options, Progress, Request, StartError, Summary};

const TURN: &[Modality] = &[Modality::Text, Modality::Audio];

fn open(path: &str) -> Opened {
    bundle::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

fn bundles() -> [Opened; 3] {
    ["voices/nano", "tests/fixtures/bundles/bagpiper", "tests/fixtures/bundles/opuslm"].map(open)
}

fn start(bundles: &[Opened]) -> Handle {
    Handle::start(bundles, &Options::default(), &mut |_| ()).unwrap()
}

/// Text and sound up to the end, which must be a good one.
fn read(events: &Events) -> (String, Vec<f32>, Summary) {
    let (mut text, mut sound) = (String::new(), Vec::new());
    loop {
        match events.recv().unwrap() {
            Event::Text { delta } => text += &delta,
            Event::Audio { samples, .. } => sound.extend(samples.into_samples()),
            Event::Done(summary) => return (text, sound, summary),
            Event::Failed(failure) => panic!("{failure}"),
            _ => {}
        }
    }
}

#[test]
fn voices_and_answers_of_three_bundles_are_heard_from_one_engine() {
    let mut told: Vec<Progress> = Vec::new();
    let engine = Handle::start(&bundles(), &Options::default(), &mut |p| told.push(p)).unwrap();
    assert!(told.is_sorted_by_key(|p| p.loaded));
    assert!(told.last().is_some_and(|p| p.loaded == p.total), "{:?}", told.last());
    let names: Vec<(String, String)> =
        engine.stats().parts.into_iter().map(|p| (p.model, p.name)).collect();
    assert_eq!(names.len(), 6);
    assert_eq!(names[0].1, "cb0");
    assert_eq!(names[4], ("bagpiper-tiny".to_owned(), "lm".to_owned()));
    let spoken = || engine.open(Request::file("Hello there.")).unwrap().1;
    let speak = || {
        let model = Some("opuslm-tiny".to_owned());
        let request = answer::Request::new("hello", &[Modality::Audio]);
        engine.answer(answer::Request { model, task: Task::Speak, ..request }).unwrap().1
    };
    let answered = || engine.answer(answer::Request::new("hello", TURN)).unwrap().1;
    // Together, and then one after the other: nobody's neighbours are heard.
    let together = [spoken(), speak(), answered()].map(|events| read(&events));
    let alone = [read(&spoken()), read(&speak()), read(&answered())];
    for ((text, sound, summary), (same_text, same_sound, _)) in together.iter().zip(&alone) {
        assert!(!sound.is_empty());
        assert_eq!(summary.samples, sound.len() as u64);
        assert!((text, sound) == (same_text, same_sound));
    }
    let [(.., voice), (.., speech), (text, _, answer)] = together;
    assert!(voice.usage.is_none() && !text.is_empty());
    let speech = speech.usage.unwrap();
    assert_eq!(speech.text_tokens, 0);
    // Fifty frames a second.
    assert_eq!(speech.audio_frames, alone[1].1.len() / 480);
    assert!(answer.usage.unwrap().text_tokens > 0);
}

#[test]
fn an_answer_is_cancelled_with_all_that_it_holds() {
    let engine = start(&bundles()[1..]);
    // Forty seconds that are made no faster than they are heard.
    let request = answer::Request {
        min_audio_frames: Some(100),
        max_ahead: Some(Duration::ZERO),
        ..answer::Request::new("hello", &[Modality::Audio; 20])
    };
    let (id, events) = engine.answer(request).unwrap();
    while !matches!(events.recv().unwrap(), Event::Audio { .. }) {}
    engine.cancel(id).unwrap();
    let rest: Vec<Event> = std::iter::from_fn(|| events.recv()).collect();
    let Some(Event::Cancelled(summary)) = rest.last() else { panic!("{rest:?}") };
    assert!(summary.usage.is_some_and(|usage| usage.audio_frames > 0));
    assert!(summary.kv_blocks > 0);
    // Its memory is free before anything else is done.
    let (_, next) = engine.answer(answer::Request::new("hello", &[Modality::Text])).unwrap();
    read(&next);
}

#[test]
fn answers_are_counted_for_their_model_and_a_companion_is_not() {
    let engine = start(&bundles()[1..]);
    let guided = answer::Request { guidance: Some(3.0), ..answer::Request::new("hello", TURN) };
    let (_, _, summary) = read(&engine.answer(guided).unwrap().1);
    let usage = summary.usage.unwrap();
    let stats = engine.stats();
    let [bagpiper, opuslm] = &stats.answers[..] else { panic!("{:?}", stats.answers) };
    assert_eq!((bagpiper.endings.opened, bagpiper.endings.done), (1, 1));
    assert_eq!(bagpiper.text_tokens, usage.text_tokens as u64);
    assert_eq!(bagpiper.audio_frames, usage.audio_frames as u64);
    assert_eq!(bagpiper.prompt_tokens, usage.prompt_tokens as u64);
    let firsts = [&bagpiper.first_text_seconds, &bagpiper.first_audio_seconds];
    assert_eq!(firsts.map(|histogram| histogram.count()), [1, 1]);
    assert_eq!((opuslm.endings.opened, opuslm.model.as_str()), (0, "opuslm-tiny"));
}

#[test]
fn models_are_asked_for_by_their_names() {
    let engine = start(&bundles()[1..]);
    let allowed = |outcome: Result<_, Error>| match outcome {
        Err(Error::Option { field: "model", allowed, .. }) => allowed,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is not refused"),
    };
    let model = Some("nobody".to_owned());
    let request = answer::Request { model, ..answer::Request::new("hello", TURN) };
    assert!(allowed(engine.answer(request)).ends_with("bagpiper-tiny, opuslm-tiny"));
    assert!(allowed(engine.open(Request::file("Hello."))).contains("there are no models"));
}

#[test]
fn bundles_that_cannot_run_together_are_refused() {
    let refused = |bundles: &[Opened], options: &Options| {
        Handle::start(bundles, options, &mut |_| ()).err().unwrap()
    };
    let [nano, bagpiper, opuslm] = bundles();
    assert!(matches!(refused(&[], &Options::default()), StartError::NoBundle));
    let twice = [bagpiper.clone(), opuslm.clone(), bagpiper];
    let error = refused(&twice, &Options::default()).to_string();
    assert!(error.contains("two models are named \"bagpiper-tiny\""), "{error}");
    let options = Options { kv_bytes: Some(1000), ..Options::default() };
    let error = refused(&[nano, opuslm], &options).to_string();
    assert!(error.contains("kv_bytes is 1000, the bundles need at least"), "{error}");
}
