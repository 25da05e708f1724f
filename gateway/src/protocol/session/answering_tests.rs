use std::time::Duration;

use engine::answer::{Modality, Part, Request, Role};
use engine::{Event, Segment, Summary, Usage};
use serde_json::{Value, json};

use super::rig::{Rig, Seen};
use crate::protocol::{Input, Limits, Output};

fn asked(extra: Value) -> Value {
    let mut open = json!({"type": "context.open", "ctx": "a", "model": "bag",
        "messages": [{"role": "user", "content": "How are you?"}]});
    for (name, value) in extra.as_object().unwrap() {
        open[name] = value.clone();
    }
    open
}

fn heard(id: &str) -> Value {
    let part = json!({"type": "input_audio", "input_audio": {"id": id}});
    json!([{"role": "user", "content": [part]}])
}

fn requests(rig: &Rig) -> Vec<&Request> {
    let requests = rig.outputs.iter().filter_map(|output| match output {
        Output::Answer { request, .. } => Some(&**request),
        _ => None,
    });
    requests.collect()
}

fn text(rig: &mut Rig, delta: &str) {
    rig.engine(1, Event::Text { delta: delta.to_owned() });
}

/// So many samples of 24 kHz as a frame.
fn frame(handle: u32, seq: u32, samples: usize) -> Input {
    let mut bytes = vec![2, 0, 0, 1];
    bytes.extend(handle.to_be_bytes());
    bytes.extend(seq.to_be_bytes());
    bytes.extend([0; 8]);
    bytes.resize(20 + 2 * samples, 0);
    Input::Binary(bytes.into())
}

#[test]
fn an_answer_is_text_and_sound_whose_words_are_those_of_the_text() {
    let mut rig = Rig::started();
    rig.send(asked(json!({"seed": 7, "sampling": {"temperature": 0.5}})));
    let request = requests(&rig)[0];
    assert_eq!((request.model.as_deref(), request.seed), (Some("bag"), 7));
    assert_eq!(request.modalities, [Modality::Text, Modality::Audio]);
    assert_eq!(request.text.temperature, Some(0.5));
    assert_eq!(request.messages[0].role, Role::User);
    assert_eq!(request.messages[0].parts, [Part::Text("How are you?".into())]);
    rig.engine(1, Event::Segment { modality: Modality::Text });
    text(&mut rig, "I am ");
    text(&mut rig, "well.");
    rig.engine(1, Event::SegmentEnd(Segment::Text("I am well.".into())));
    rig.engine(1, Event::Segment { modality: Modality::Audio });
    rig.speak(1, 0, 50, true);
    rig.engine(1, Event::SegmentEnd(Segment::Audio { frames: 50, lost: 0 }));
    let usage = Usage { prompt_tokens: 4, text_tokens: 3, audio_frames: 50, ..Usage::default() };
    let summary = Summary { samples: 24_000, usage: Some(usage), ..Summary::default() };
    rig.engine(1, Event::Done(summary));
    rig.sleep(Duration::from_secs(3));
    let deltas: Vec<&Value> = rig.texts("text.delta").iter().map(|e| &e["text"]).collect();
    assert_eq!(deltas, [&json!("I am "), &json!("well.")]);
    assert_eq!(rig.texts("text.delta")[1]["seq"], 1);
    assert_eq!(rig.texts("text.done")[0]["text"], "I am well.");
    let commit = rig.texts("commit")[0];
    let words = commit["words"].as_array().unwrap();
    assert_eq!(
        words.iter().map(|w| (&w[0], &w[1])).collect::<Vec<_>>(),
        [(&json!(0), &json!(1)), (&json!(2), &json!(4)), (&json!(5), &json!(10))]
    );
    let done = rig.texts("context.done")[0];
    assert_eq!((&done["text_chars"], &done["usage"]["audio_ms"]), (&json!(10), &json!(1_000)));
    assert_eq!(done["usage"]["text_tokens"], 3);
    assert_eq!(done["finish"], "stop");
    let place = |what: &dyn Fn(&Seen) -> bool| rig.seen.iter().position(what).unwrap();
    let told =
        |kind: &'static str| move |seen: &Seen| matches!(seen, Seen::Text(v) if v["type"] == kind);
    let first_sound = place(&|seen| matches!(seen, Seen::Audio { .. }));
    assert!(place(&told("context.opened")) < place(&told("text.delta")));
    assert!(place(&told("text.done")) < first_sound, "it was written before it was said");
}

#[test]
fn an_interruption_tells_which_words_of_the_models_own_were_heard() {
    let mut rig = Rig::started();
    rig.send(asked(json!({})));
    text(&mut rig, "One two three four.");
    rig.engine(1, Event::Segment { modality: Modality::Audio });
    rig.speak(1, 0, 100, false);
    rig.engine(1, Event::SegmentEnd(Segment::Audio { frames: 100, lost: 0 }));
    rig.send(json!({"type": "cancel", "ctx": "a", "played": 24_000}));
    let heard = &rig.texts("context.cancelled")[0]["heard"];
    assert_eq!(heard["text"], "One two");
    text(&mut rig, " More.");
    assert_eq!(rig.texts("text.delta").len(), 1, "nothing follows");
}

/// What the engine was told of recordings: their places, and how many samples came or that they ended.
fn sounds(rig: &Rig) -> Vec<(usize, Option<usize>)> {
    let sounds = rig.outputs.iter().filter_map(|output| match output {
        Output::Sound { recording, samples, .. } => Some((*recording, Some(samples.len()))),
        Output::SoundEnd { recording, .. } => Some((*recording, None)),
        _ => None,
    });
    sounds.collect()
}

#[test]
fn the_model_listens_while_a_recording_comes() {
    let mut rig = Rig::started();
    rig.send(asked(json!({"messages": heard("u1")})));
    assert_eq!(rig.texts("context.opened").len(), 1);
    assert_eq!(requests(&rig)[0].messages[0].parts, [Part::Live(Vec::new())]);
    rig.send(json!({"type": "audio.begin", "ctx": "a", "id": "u1"}));
    rig.input(frame(1, 0, 480));
    assert_eq!(sounds(&rig), [(0, Some(480))], "before it ends");
    rig.input(frame(1, 0, 480));
    rig.input(frame(1, 1, 240));
    rig.send(json!({"type": "audio.end", "ctx": "a", "id": "u1"}));
    let expected = [(0, Some(480)), (0, Some(240)), (0, None)];
    assert_eq!(sounds(&rig), expected, "what came twice counts once");
    assert_eq!((rig.errors(), requests(&rig).len()), (vec![], 1));
    rig.send(json!({"type": "audio.begin", "ctx": "a", "id": "u1"}));
    assert_eq!(rig.errors(), ["ctx_ended"], "it takes nothing more");
}

#[test]
fn what_a_conversion_keeps_back_comes_with_the_end() {
    let mut rig = Rig::started();
    rig.send(asked(json!({"messages": heard("u1")})));
    let begin = json!({"type": "audio.begin", "ctx": "a", "id": "u1", "sample_rate": 16_000});
    rig.send(begin);
    rig.input(frame(1, 0, 1_600));
    rig.send(json!({"type": "audio.end", "ctx": "a", "id": "u1"}));
    let sounds = sounds(&rig);
    let all: usize = sounds.iter().filter_map(|(_, samples)| *samples).sum();
    assert_eq!((all, sounds.len(), sounds.last()), (2_400, 3, Some(&(0, None))));
}

#[test]
fn recordings_of_a_message_may_come_in_any_order_and_in_several_places() {
    let part = |id: &str| json!({"type": "input_audio", "input_audio": {"id": id}});
    let messages = json!([{"role": "user", "content": [part("x"), part("y"), part("x")]}]);
    let mut rig = Rig::started();
    rig.send(asked(json!({"messages": messages})));
    for (id, seq) in [("y", 0), ("x", 1)] {
        rig.send(json!({"type": "audio.begin", "ctx": "a", "id": id}));
        rig.input(frame(1, seq, 10 * (seq as usize + 1)));
        rig.send(json!({"type": "audio.end", "ctx": "a", "id": id}));
    }
    let y = [(1, Some(10)), (1, None)];
    let x = [(0, Some(20)), (2, Some(20)), (0, None), (2, None)];
    assert_eq!(sounds(&rig), [&y[..], &x[..]].concat());
}

/// So many samples of 24 kHz as a file in a message.
fn file(samples: usize) -> Value {
    use base64::Engine as _;
    let format = codecs::wav::SampleFormat::I16;
    let mut bytes = codecs::wav::header(24_000, format, &[], Some(samples as u64));
    bytes.resize(bytes.len() + 2 * samples, 0);
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    json!({"type": "input_audio", "input_audio": {"data": data, "format": "wav"}})
}

#[test]
fn a_file_in_a_message_is_read_and_may_stand_beside_a_recording_that_comes() {
    let mut rig = Rig::started();
    rig.send(asked(json!({"messages": [{"role": "user", "content": [file(480)]}]})));
    let [Part::Audio(samples)] = &requests(&rig)[0].messages[0].parts[..] else { panic!() };
    assert_eq!((samples.len(), rig.texts("context.opened").len()), (480, 1));
    let live = json!({"type": "input_audio", "input_audio": {"id": "u1"}});
    let both = json!([{"role": "user", "content": [file(240), live]}]);
    rig.send(asked(json!({"ctx": "b", "messages": both})));
    let parts = &requests(&rig)[1].messages[0].parts;
    assert!(matches!(&parts[..], [Part::Audio(_), Part::Live(_)]), "{parts:?}");
    rig.send(json!({"type": "audio.begin", "ctx": "b", "id": "u1"}));
    rig.send(json!({"type": "audio.end", "ctx": "b", "id": "u1"}));
    assert_eq!((sounds(&rig), rig.errors()), (vec![(0, None)], vec![]));
}

#[test]
fn files_and_recordings_share_the_limit_of_a_context() {
    let limits = Limits { max_recording: Duration::from_millis(100), ..Limits::default() };
    let mut rig = Rig::started_within(limits, json!({}));
    rig.send(asked(json!({"messages": [{"role": "user", "content": [file(2_401)]}]})));
    let told = rig.texts("error")[0]["message"].as_str().unwrap().to_owned();
    assert!(told.contains("more than 0.1 s of sound (limits.max_recording_s)"), "{told}");
    let live = json!({"type": "input_audio", "input_audio": {"id": "u1"}});
    let both = json!([{"role": "user", "content": [file(2_000), live]}]);
    // The id is still unused.
    rig.send(asked(json!({"messages": both})));
    let handle = rig.texts("context.opened")[0]["handle"].as_u64().unwrap() as u32;
    rig.send(json!({"type": "audio.begin", "ctx": "a", "id": "u1"}));
    rig.input(frame(handle, 0, 400));
    assert!(rig.texts("context.cancelled").is_empty());
    rig.input(frame(handle, 1, 1));
    let told = rig.texts("error")[1]["message"].as_str().unwrap().to_owned();
    assert!(told.contains("limits.max_recording_s"), "{told}");
    assert_eq!(rig.texts("context.cancelled").len(), 1);
}

#[test]
fn what_is_not_to_be_had_is_refused_and_the_id_stays_unused() {
    let mut rig = Rig::started();
    let file = json!([{"role": "user", "content":
        [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]}]);
    for (extra, says) in [
        (json!({"messages": []}), "messages"),
        (json!({"messages": "Hi"}), "a list"),
        (json!({"messages": file}), "messages[0].content: "),
        (json!({"model": "toy"}), "model"),
        (json!({"model": "none"}), "model"),
        (json!({"modalities": ["video"]}), "modalities"),
        (json!({"voice": "ann"}), "voice"),
    ] {
        rig.send(asked(extra));
        let error = rig.texts("error").pop().unwrap().clone();
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    }
    rig.send(json!({"type": "context.open", "ctx": "b", "model": "bag"}));
    assert!(rig.texts("error").last().unwrap()["message"].as_str().unwrap().contains("messages"));
    rig.send(asked(json!({})));
    assert_eq!(rig.texts("context.opened").len(), 1);
}

#[test]
fn sound_that_nobody_waits_for_is_told_so() {
    let mut rig = Rig::started();
    rig.input(frame(1, 0, 10));
    assert_eq!(rig.errors(), ["bad_message"]);
    rig.send(asked(json!({"messages": heard("u1")})));
    for (message, code) in [
        (json!({"type": "audio.begin", "ctx": "b", "id": "u1"}), "ctx_unknown"),
        (json!({"type": "audio.begin", "ctx": "a", "id": "u2"}), "bad_option"),
        (json!({"type": "audio.begin", "ctx": "a", "id": "u1", "codec": "mp3"}), "bad_option"),
        (json!({"type": "audio.begin", "ctx": "a", "id": "u1", "sample_rate": 7}), "bad_option"),
        (json!({"type": "audio.end", "ctx": "a", "id": "u1"}), "bad_option"),
        (json!({"type": "text", "ctx": "a", "seq": 0, "text": "Hi."}), "ctx_ended"),
        (json!({"type": "flush", "ctx": "a"}), "ctx_ended"),
    ] {
        rig.send(message.clone());
        assert_eq!(rig.errors().pop(), Some(code), "{message}");
    }
    rig.send(json!({"type": "audio.begin", "ctx": "a", "id": "u1"}));
    rig.send(json!({"type": "audio.begin", "ctx": "a", "id": "u1"}));
    assert_eq!(rig.errors().pop(), Some("bad_option"), "one at a time");
    rig.input(frame(1, 5, 10));
    assert_eq!(rig.errors().pop(), Some("seq_gap"));
    assert!(rig.texts("context.cancelled").is_empty());
}

#[test]
fn too_much_sound_ends_the_context_with_the_limits_name() {
    let mut rig = Rig::started();
    rig.send(asked(json!({"messages": heard("u1")})));
    rig.send(json!({"type": "audio.begin", "ctx": "a", "id": "u1", "codec": "mulaw", "sample_rate": 8_000}));
    // 301 s of 8 kHz, in frames of 43 s.
    for seq in 0..7 {
        rig.input(frame(1, seq, 172_000));
    }
    let error = rig.texts("error")[0];
    assert!(error["message"].as_str().unwrap().contains("limits.max_recording_s"), "{error}");
    assert_eq!(rig.texts("context.cancelled")[0]["reason"], "error");
    assert!(matches!(rig.outputs.last(), Some(Output::Cancel(1))));
}

#[test]
fn an_answer_that_waits_can_be_cancelled_forgotten_and_drained() {
    let mut rig = Rig::started_with(json!({"context_idle_ms": 2_000}));
    rig.send(asked(json!({"messages": heard("u1")})));
    rig.send(json!({"type": "cancel", "ctx": "a"}));
    assert_eq!(rig.texts("context.cancelled")[0]["reason"], "client");
    rig.send(asked(json!({"ctx": "b", "messages": heard("u1")})));
    rig.sleep(Duration::from_secs(3));
    assert_eq!(rig.errors(), ["ctx_idle"]);
    rig.send(asked(json!({"ctx": "c", "messages": heard("u1")})));
    rig.send(json!({"type": "session.end", "drain": true}));
    assert_eq!(rig.texts("context.cancelled").len(), 3, "it would never end");
    assert_eq!(rig.close_code(), Some(1_000));
}

#[test]
fn a_refusal_of_the_engine_leaves_the_id_unused_and_one_of_sound_ends_the_context() {
    let mut rig = Rig::started();
    rig.refuse = Some(engine::Error::Busy { commands: 1 });
    rig.send(asked(json!({"messages": heard("u1")})));
    assert_eq!((rig.errors(), rig.texts("context.cancelled").len()), (vec!["overloaded"], 0));
    rig.refuse = None;
    rig.send(asked(json!({"messages": heard("u1")})));
    rig.send(json!({"type": "audio.begin", "ctx": "a", "id": "u1"}));
    let error = engine::Error::Sound { recording: 0, reason: "longer than 2 s".into() };
    rig.input(Input::SoundRefused { context: 2, error });
    assert_eq!(rig.errors().pop(), Some("bad_option"));
    assert_eq!(rig.texts("context.cancelled")[0]["reason"], "error");
    rig.input(frame(2, 0, 10));
    assert_eq!(rig.errors().len(), 2, "what was on its way is only late");
}
