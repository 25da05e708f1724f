//! The running engine with the nano voice: threads, channels, networks and codec together.

#![expect(clippy::unwrap_used, reason = "a step that fails is what the test reports")]

use std::path::PathBuf;
use std::time::Duration;

use codecs::nano::Nano;
use codecs::weights::Weights;
use engine::bundle::Bundle;
use engine::{Event, Events, Handle, Options, Request, Summary};

/// Empty contexts after which an engine without work is at rest: many more than a busy machine was seen to need.
const STEPS_TO_REST: usize = 1000;
/// Longest wait for an event; a hang is a failure, slowness on a busy machine is not.
const PATIENCE: Duration = Duration::from_secs(120);
/// The engine's sound against the codec's own decode of the golden codes. Both run the same code on windows of different
/// length, so only the order of a few sums differs.
const SAME_SOUND: f32 = 1e-4;

fn project(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn nano(threads: usize) -> Handle {
    let bundle = Bundle::open(&project("voices/nano")).unwrap();
    let options = Options { threads, ..Options::default() };
    Handle::start(&[bundle.into()], &options, &mut |_| {}).unwrap()
}

/// All sound of a context, and how it ended.
fn listen(events: &Events) -> (Vec<f32>, Summary) {
    let mut sound = Vec::new();
    loop {
        match events.recv_timeout(PATIENCE).unwrap().expect("a last event comes") {
            Event::Audio { start, samples } => {
                assert_eq!(start, sound.len() as u64, "audio is contiguous");
                sound.extend(samples);
            }
            Event::Done(summary) => return (sound, summary),
            Event::Cancelled(_) | Event::Failed(_) => panic!("the context did not complete"),
            Event::Chunk { .. }
            | Event::Aligned { .. }
            | Event::ChunkEnd { .. }
            | Event::Notice(_)
            | Event::Flushed { .. }
            | Event::Segment { .. }
            | Event::Text { .. }
            | Event::SegmentEnd(_) => {}
        }
    }
}

fn speak(engine: &Handle, request: Request) -> Vec<f32> {
    listen(&engine.open(request).unwrap().1).0
}

/// Waits until every context's memory is back.
fn assert_comes_to_rest(engine: &Handle) {
    // The statistics are those of the last step, so an empty context makes one more; it may still be counted itself. Who left
    // without a word is found gone when there is something to tell.
    for _ in 0..STEPS_TO_REST {
        let (_, events) = engine.open(Request::whole("")).unwrap();
        listen(&events);
        let stats = engine.stats();
        if stats.kv_blocks_in_use == 0 && stats.contexts <= 1 {
            return;
        }
    }
    let stats = engine.stats();
    panic!("{} contexts and {} blocks are left", stats.contexts, stats.kv_blocks_in_use);
}

#[test]
fn greedy_speech_is_that_of_the_reference_implementation() {
    let engine = nano(2);
    let golden = Weights::open(&project("tests/fixtures/nano/golden.safetensors")).unwrap();
    let codec = Nano::load(&project("voices/nano/codec"), 1.5).unwrap();
    let texts = [
        ("t0", "Hello there, how can I help you today?"),
        ("t1", "Your order has shipped and should arrive on Thursday."),
    ];
    for (name, text) in texts {
        let codes = golden.ints(&format!("{name}.codes")).unwrap();
        let frames = codes.len() / 4;
        let rows: Vec<Vec<u16>> =
            codes.chunks(frames).map(|row| row.iter().map(|&c| c as u16).collect()).collect();
        let expected = codec.decode(&rows, 7).unwrap();
        let request = Request {
            seed: 7,
            temperature: Some(0.0),
            guidance: Some(1.0),
            segments: engine::Segments::Chunk,
            // Nothing is cut before the chunk is complete: the golden stages saw the whole row.
            first_frames: 75,
            ..Request::whole(text)
        };
        let sound = speak(&engine, request);
        assert_eq!(sound.len(), expected.len());
        let difference = sound.iter().zip(&expected).map(|(a, b)| (a - b).abs());
        assert!(difference.fold(0.0, f32::max) < SAME_SOUND);
    }
}

const TALE: &str =
    "The bakery opens at seven. Fresh bread is ready a little later, and the coffee is always hot.";

fn told(seed: u64) -> Request {
    Request { seed, segments: engine::Segments::Frames, first_frames: 10, ..Request::whole(TALE) }
}

#[test]
fn the_same_seed_sounds_the_same_alone_in_a_crowd_and_on_two_threads() {
    let engine = nano(1);
    let alone = speak(&engine, told(3));
    let opened: Vec<_> = (0..16).map(|i| engine.open(told(i % 4)).unwrap().1).collect();
    let crowd: Vec<Vec<f32>> = opened.iter().map(|events| listen(events).0).collect();
    assert!(alone.len() > 3 * 24_000);
    assert!(crowd[3] == alone && crowd[7] == alone && crowd[11] == alone);
    assert!(crowd[2] != alone);
    assert!(speak(&nano(2), told(3)) == alone);
    assert_comes_to_rest(&engine);
}

#[test]
fn a_cancelled_context_says_nothing_more_and_its_memory_is_free() {
    let engine = nano(2);
    for turn in 0..60usize {
        let opened: Vec<_> =
            (0..4).map(|i| engine.open(told((turn * 4 + i) as u64)).unwrap()).collect();
        for (at, (id, events)) in opened.iter().enumerate() {
            // Cut off at different points: at once, after some events, by leaving.
            for _ in 0..(turn + at) % 4 {
                events.recv_timeout(PATIENCE).unwrap();
            }
            if at == 3 {
                continue;
            }
            engine.cancel(*id).unwrap();
            let mut last = None;
            while let Some(event) = events.recv_timeout(PATIENCE).unwrap() {
                last = Some(event);
            }
            assert!(matches!(last, Some(Event::Cancelled(_) | Event::Done(_))));
        }
    }
    assert_comes_to_rest(&engine);
}

#[test]
fn text_is_spoken_while_it_is_still_being_written() {
    let engine = nano(1);
    let (id, events) = engine.open(Request::live()).unwrap();
    engine.push(id, "Good morning, this is the first sentence of a longer story. ").unwrap();
    let first = loop {
        if let Event::Audio { samples, .. } = events.recv_timeout(PATIENCE).unwrap().unwrap() {
            break samples.len();
        }
    };
    assert!(first > 0, "sound comes before the text has ended");
    engine.push(id, "And here is the second one.").unwrap();
    engine.end(id).unwrap();
    let mut samples = first;
    let summary = loop {
        match events.recv_timeout(PATIENCE).unwrap().unwrap() {
            Event::Audio { samples: more, .. } => samples += more.len(),
            Event::Done(summary) => break summary,
            _ => {}
        }
    };
    assert_eq!(summary.samples, samples as u64);
    assert_eq!(summary.text_chars, 87);
}

#[test]
fn what_the_bundle_does_not_have_is_refused_by_name() {
    let engine = nano(1);
    let ask = |change: &dyn Fn(&mut Request)| {
        let mut request = Request::whole("Hello.");
        change(&mut request);
        engine.open(request).err().expect("this request must be refused").to_string()
    };
    for (refusal, says) in [
        (ask(&|r| r.voice = Some("nobody".into())), "voice \"nobody\""),
        (ask(&|r| r.language = Some("klingon".into())), "language \"klingon\""),
        (ask(&|r| r.style = Some("sung".into())), "style \"sung\""),
        (ask(&|r| r.temperature = Some(-1.0)), "temperature"),
        (ask(&|r| r.guidance = Some(f32::NAN)), "guidance"),
        (ask(&|r| r.first_frames = 7), "first_frames"),
    ] {
        assert!(refusal.contains(says), "{refusal}");
    }
}
