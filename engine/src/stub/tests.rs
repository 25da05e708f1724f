//! The stub as a whole: real threads, scheduler and pipeline over scripted networks and tones.

use std::path::Path;
use std::time::Duration;

use codecs::reconstruct::Codec;

use super::*;
use crate::Pcm;
use crate::bundle::Bundle;
use crate::event::{Event, Events, Failure, Summary};
use crate::request::{Request, Text};
use crate::text::LiveSettings;

/// Longest wait for an event; a hang is a failure, slowness on a busy machine is not.
const PATIENCE: Duration = Duration::from_secs(60);
/// A tone whose correlation with the sound is below this share of a full one is not in it.
const HEARD: f64 = 0.5;

fn script(json: &str) -> Script {
    let mut script: serde_json::Value = serde_json::from_str(json).unwrap();
    script["rtf"] = 0.0.into();
    serde_json::from_value(script).unwrap()
}

#[derive(Default)]
struct Heard {
    sound: Vec<f32>,
    pieces: Vec<usize>,
    ends: Vec<u64>,
    last: Option<Result<Summary, Failure>>,
}

fn listen(events: &Events) -> Heard {
    let mut heard = Heard::default();
    while heard.last.is_none() {
        match events.recv_timeout(PATIENCE).unwrap().expect("a last event comes") {
            Event::Audio { start, samples } => {
                assert_eq!(start, heard.sound.len() as u64, "audio is contiguous");
                heard.pieces.push(samples.len());
                heard.sound.extend(samples);
            }
            Event::ChunkEnd { end, .. } => heard.ends.push(end),
            Event::Done(summary) => heard.last = Some(Ok(summary)),
            Event::Failed(failure) => heard.last = Some(Err(failure)),
            Event::Cancelled(_) => panic!("nobody cancelled"),
            Event::Chunk { .. }
            | Event::Aligned { .. }
            | Event::Notice(_)
            | Event::Flushed { .. } => {}
            Event::Segment { .. } | Event::Text { .. } | Event::SegmentEnd(_) => {
                panic!("the stub only speaks")
            }
        }
    }
    heard
}

fn start(script: Script) -> Result<(Handle, Control), ScriptError> {
    super::start(script, Timbre::Tones(None))
}

fn say(script: Script, texts: &[&str]) -> (Heard, ContextReport) {
    let (engine, control) = start(script).unwrap();
    let (id, events) = engine.open(Request::live()).unwrap();
    for text in texts {
        engine.push(id, *text).unwrap();
        engine.flush(id).unwrap();
    }
    engine.end(id).unwrap();
    (listen(&events), control.contexts().pop().unwrap())
}

/// How much of a tone of full loudness is in the sound.
fn share(sound: &[f32], hz: f64) -> f64 {
    let step = std::f64::consts::TAU * hz / 24_000.0;
    let part = |f: fn(f64) -> f64| {
        let sum = sound.iter().enumerate().map(|(i, &s)| f64::from(s) * f(step * i as f64));
        sum.sum::<f64>() / sound.len() as f64
    };
    part(f64::sin).hypot(part(f64::cos)) / (0.25 / 2.0)
}

#[test]
fn a_context_is_as_long_as_its_text_and_sounds_like_itself() {
    let (engine, control) = start(script("{}")).unwrap();
    // Words, since digits are read out.
    let texts = ["zero", "one", "two", "three", "four"]
        .map(|number| format!("This is speaker number {number}. ").repeat(9));
    let live = |text: &String| {
        let request = Request { seed: 77, ..Request::live() };
        let (id, events) = engine.open(request).unwrap();
        engine.push(id, text.as_str()).unwrap();
        engine.end(id).unwrap();
        events
    };
    let all: Vec<Events> = texts.iter().map(live).collect();
    for (number, events) in all.iter().enumerate() {
        let heard = listen(events);
        let report = &control.contexts()[number];
        assert_eq!((report.number, report.seed), (number as u64, 77));
        assert_eq!(report.samples, heard.sound.len() as u64);
        let spoken: Vec<&str> = report.chunks.iter().map(|c| c.text.trim()).collect();
        assert_eq!(spoken.join(" "), texts[number].trim());
        let frames: usize = spoken.iter().map(|text| text.chars().count().div_ceil(4)).sum();
        assert_eq!(heard.sound.len(), frames * 1920);
        let mut start = 0;
        for (chunk, &end) in report.chunks.iter().zip(&heard.ends) {
            assert_eq!(chunk.samples, end - start);
            let sound = &heard.sound[start as usize..end as usize];
            assert!(share(sound, chunk.chunk_hz) > HEARD);
            assert!(share(sound, report.context_hz) > HEARD);
            assert!(share(sound, report.context_hz + 25.0) < HEARD);
            start = end;
        }
    }
}

#[test]
fn scripted_lengths_are_exact_and_ends_lie_where_the_sound_does() {
    let (heard, _) = say(script(r#"{"samples": 24037}"#), &["Hi."]);
    assert_eq!((heard.sound.len(), &*heard.ends), (24_037, &[24_037][..]));
    let chunks = script(r#"{"chunk_samples": [24100, 24007, 24333], "tone_hz": 440}"#);
    let (heard, report) = say(chunks, &["One here. ", "Two here. ", "Three here."]);
    assert_eq!(heard.sound.len(), 72_440);
    assert_eq!(heard.ends, [24_100, 48_107, 72_440]);
    assert_eq!(
        report.chunks.iter().map(|c| c.samples).collect::<Vec<_>>(),
        [24_100, 24_007, 24_333]
    );
    assert!(share(&heard.sound, 440.0) > HEARD, "one tone without a break");
    assert!(matches!(heard.last, Some(Ok(Summary { samples: 72_440, .. }))));
}

#[test]
fn sound_goes_out_in_the_pieces_that_are_told() {
    let (heard, report) = say(script(r#"{"emit_samples": [2031, 849, 1, 2]}"#), &["Odd."]);
    assert_eq!(heard.pieces, [2031, 849, 1, 2]);
    assert_eq!(report.pieces, heard.pieces);
    let (heard, _) = say(script(r#"{"ms": 250, "piece_ms": [80, 37]}"#), &["Odd."]);
    assert_eq!(heard.pieces, [1920, 888, 1920, 888, 384]);
    let (heard, _) =
        say(script(r#"{"pattern": ["tone 500", "silence 1500", "tone 500"]}"#), &["A."]);
    assert_eq!(heard.sound.len(), 60_000);
    assert!(heard.sound[12_000..48_000].iter().all(|&s| s == 0.0));
    assert!(share(&heard.sound[48_000..], 400.0) > HEARD);
}

#[test]
fn faults_are_those_of_a_model() {
    let (heard, report) = say(
        script(r#"{"fail_chunk": 1, "fail_after_frames": 10}"#),
        &["One. ", "Two breaks here. ", "Three."],
    );
    assert!(matches!(heard.last, Some(Err(Failure::Model(_)))), "{:?}", heard.last);
    assert_eq!(report.chunks.len(), 2);
    for fault in [r#"{"never_eos": true}"#, r#"{"loop_codes": "abcabcabc", "until": "budget"}"#] {
        let (heard, report) = say(script(fault), &["Four short words here."]);
        assert!(matches!(heard.last, Some(Ok(Summary { guard_exhausted: true, .. }))), "{fault}");
        assert!(report.chunks[0].frames <= 63, "{report:?}");
    }
}

#[test]
fn guidance_and_whole_texts_are_served() {
    let (engine, control) = start(script("{}")).unwrap();
    let request =
        Request { guidance: Some(1.6), ..Request::whole("One whole text. And on it goes.") };
    let heard = listen(&engine.open(request).unwrap().1);
    assert!(matches!(heard.last, Some(Ok(_))));
    let request = Request { text: Text::Live(LiveSettings::default()), ..Request::whole("") };
    let (id, events) = engine.open(request).unwrap();
    engine.end(id).unwrap();
    assert!(listen(&events).sound.is_empty());
    assert_eq!(control.contexts()[1].chunks, []);
    assert_eq!(engine.stats().kv_blocks_in_use, 0);
}

#[test]
fn a_script_may_be_for_one_seed_only() {
    let (engine, control) = start(script("{}")).unwrap();
    control.set_script(Some(5), script(r#"{"samples": 5000}"#)).unwrap();
    let say = |seed| {
        let request = Request { seed, ..Request::whole("Hi.") };
        listen(&engine.open(request).unwrap().1).sound.len()
    };
    assert_eq!([4, 5, 5].map(say), [1_920, 5_000, 1_920]);
    assert!(control.set_script(None, script(r#"{"piece_ms": 0}"#)).is_err());
}

#[test]
fn what_nobody_listens_to_is_silence_of_the_same_length() {
    let scripts = ["{}", r#"{"samples": 24037, "piece_ms": [80, 37]}"#];
    for script in scripts.map(script) {
        let (engine, control) = super::start(script.clone(), Timbre::Silence).unwrap();
        assert!(!engine.is_heard());
        let (_, events) = engine.open(Request::whole("Nobody listens.")).unwrap();
        let (mut lengths, mut ended) = (Vec::new(), false);
        while let Some(event) = events.recv_timeout(PATIENCE).unwrap() {
            match event {
                Event::Audio { samples: Pcm::Silence(length), .. } => lengths.push(length),
                Event::Audio { samples, .. } => panic!("{} samples", samples.len()),
                Event::Done(_) => ended = true,
                _ => {}
            }
        }
        let (tones, control_tones) = self::start(script).unwrap();
        let heard = listen(&tones.open(Request::whole("Nobody listens.")).unwrap().1);
        assert_eq!((lengths, ended), (heard.pieces, true));
        assert_eq!(control.contexts()[0].chunks, control_tones.contexts()[0].chunks);
    }
}

#[test]
fn a_script_may_ask_for_the_codec_of_a_bundle() {
    let real = || script(r#"{"real_codec": true, "frames": 60}"#);
    let refused = start(real()).err().unwrap().to_string();
    assert!(refused.starts_with("real_codec"), "{refused}");
    let nano = || {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../voices/nano");
        Bundle::open(Path::new(folder)).map_err(|e| e.to_string())
    };
    let timbre = Timbre::Tones(Some(Box::new(nano)));
    let (engine, control) = super::start(script("{}"), timbre).unwrap();
    control.set_script(None, real()).unwrap();
    let heard = listen(&engine.open(Request { seed: 3, ..Request::whole("Hiss.") }).unwrap().1);
    let report = &control.contexts()[0];
    assert_eq!(report.chunks[0].samples, 60 * 1_920);
    let rows: Vec<&[u16]> = report.codes.iter().map(Vec::as_slice).collect();
    assert_eq!((rows.len(), rows[0].len()), (4, 60));
    let family = crate::start::load_family(&nano().unwrap()).unwrap();
    let whole = Codec::new(family, None).unwrap().offline(&rows, 3).unwrap();
    assert_eq!(heard.sound.len(), whole.len());
    assert!(heard.sound.iter().any(|s| s.abs() > 1e-3), "it is no silence");
}
