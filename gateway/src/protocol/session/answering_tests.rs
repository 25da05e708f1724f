use std::time::Duration;

use engine::answer::{Modality, Part, Request, Role};
use engine::{Event, Segment, Summary, Usage};
use serde_json::{Value, json};

use super::rig::{Rig, Seen};
use crate::protocol::{Input, Output};

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

#[test]
fn a_recording_is_heard_before_the_model_is_asked() {
    let mut rig = Rig::started();
    rig.send(asked(json!({"messages": heard("u1")})));
    assert_eq!(rig.texts("context.opened").len(), 1, "its handle is needed for the frames");
    assert!(requests(&rig).is_empty());
    rig.send(json!({"type": "audio.begin", "ctx": "a", "id": "u1"}));
    rig.input(frame(1, 0, 480));
    rig.input(frame(1, 0, 480));
    rig.input(frame(1, 1, 480));
    rig.send(json!({"type": "audio.end", "ctx": "a", "id": "u1"}));
    let [Part::Audio(samples)] = &requests(&rig)[0].messages[0].parts[..] else { panic!() };
    assert_eq!(samples.len(), 960, "what came twice counts once");
    assert_eq!((rig.errors(), rig.texts("context.opened").len()), (vec![], 1));
}

#[test]
fn recordings_of_a_message_may_come_in_any_order_and_all_must() {
    let part = |id: &str| json!({"type": "input_audio", "input_audio": {"id": id}});
    let messages = json!([{"role": "user", "content": [part("x"), part("y"), part("x")]}]);
    let mut rig = Rig::started();
    rig.send(asked(json!({"messages": messages})));
    for (id, seq) in [("y", 0), ("x", 1)] {
        assert!(requests(&rig).is_empty());
        rig.send(json!({"type": "audio.begin", "ctx": "a", "id": id}));
        rig.input(frame(1, seq, 10 * (seq as usize + 1)));
        rig.send(json!({"type": "audio.end", "ctx": "a", "id": id}));
    }
    let lengths = requests(&rig)[0].messages[0].parts.iter().map(|part| match part {
        Part::Audio(samples) => samples.len(),
        _ => 0,
    });
    assert_eq!(lengths.collect::<Vec<_>>(), [20, 10, 20]);
}

#[test]
fn what_is_not_to_be_had_is_refused_and_the_id_stays_unused() {
    let mut rig = Rig::started();
    let file = json!([{"role": "user", "content":
        [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]}]);
    for (extra, says) in [
        (json!({"messages": []}), "messages"),
        (json!({"messages": "Hi"}), "a list"),
        (json!({"messages": file}), "audio.begin"),
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
    assert!(requests(&rig).is_empty());
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
fn a_refusal_behind_a_recording_ends_the_context() {
    let mut rig = Rig::started();
    rig.send(asked(json!({"messages": heard("u1")})));
    rig.send(json!({"type": "audio.begin", "ctx": "a", "id": "u1"}));
    rig.refuse = Some(engine::Error::Busy { commands: 1 });
    rig.send(json!({"type": "audio.end", "ctx": "a", "id": "u1"}));
    assert_eq!(rig.errors(), ["overloaded"]);
    assert_eq!(rig.texts("context.cancelled")[0]["reason"], "error");
}
