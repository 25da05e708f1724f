//! What is refused, parked or let go.

use super::*;

#[test]
fn flushes_and_marks_that_wait_are_limited() {
    let mut rig = Rig::started();
    rig.send(open("a"));
    rig.send(text("a", 0, "hello"));
    for i in 0..65 {
        rig.send(json!({"type": "mark", "ctx": "a", "id": i.to_string()}));
        rig.send(json!({"type": "flush", "ctx": "a"}));
    }
    assert_eq!(rig.errors(), ["text_overflow", "text_overflow"]);
    assert!(rig.texts("error").iter().all(|e| e["message"].as_str().unwrap().contains("64")));
}

#[test]
fn misuse_of_contexts_is_told_by_code() {
    let mut rig = Rig::started();
    rig.send(text("a", 0, "hello"));
    rig.send(open("a"));
    rig.send(open("a"));
    rig.send(json!({"type": "end", "ctx": "a"}));
    rig.send(text("a", 0, "hello"));
    rig.send(json!({"type": "flush", "ctx": "a"}));
    rig.send(json!({"type": "end", "ctx": "x"}));
    rig.send(json!({"type": "played", "ctx": "x", "pos": 1}));
    rig.send(json!({"type": "played", "ctx": "a", "pos": 1}));
    let expected = [
        "ctx_unknown",
        "ctx_exists",
        "ctx_ended",
        "ctx_ended",
        "ctx_unknown",
        "ctx_unknown",
        "played_beyond_sent",
    ];
    assert_eq!(rig.errors(), expected);
    assert!(rig.texts("error").iter().all(|e| e["fatal"] == false));
}

#[test]
fn options_that_are_not_to_be_had_are_refused_by_name() {
    let mut rig = Rig::started();
    let cases = [
        (json!({"voice": "bob"}), "unknown_voice", "ann"),
        (json!({"model": "gpt"}), "unknown_model", "toy"),
        (json!({"language": "klingon"}), "unknown_language", "english"),
        (json!({"style": "angry"}), "unknown_style", "agentic"),
        (json!({"priority": 10}), "bad_option", "0 to 9"),
        (json!({"after": "x"}), "ctx_unknown", "after"),
    ];
    for (options, code, part) in cases {
        let mut message = open("a");
        message.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        rig.send(message);
        let last = rig.texts("error").last().copied().unwrap().clone();
        assert_eq!(last["code"], code, "{options}");
        assert!(last["message"].as_str().unwrap().contains(part), "{last}");
    }
    rig.send(json!({"type": "context.open", "ctx": "a", "language": "EN-gb", "speed": 2}));
    assert_eq!(rig.texts("context.opened")[0]["ignored"], json!(["speed"]));
}

#[test]
fn a_full_engine_refuses_a_context_and_says_when_to_try_again() {
    let mut rig = Rig::started();
    rig.refuse = Some(engine::Error::Busy { commands: 1 });
    rig.send(open("a"));
    let error = rig.texts("error")[0];
    assert_eq!((&error["code"], &error["retry_after_ms"]), (&json!("overloaded"), &json!(100)));
    rig.refuse = None;
    rig.send(open("a"));
    assert_eq!(rig.texts("context.opened").len(), 1);
}

#[test]
fn limits_of_contexts_and_text_are_reached_and_told() {
    let limits =
        Limits { max_contexts: 1, max_text_chars: 30, max_pending_chars: 20, ..Limits::default() };
    let mut rig = Rig::new(limits);
    rig.send(json!({"type": "session.start"}));
    rig.send(open("a"));
    rig.send(open("b"));
    rig.send(text("a", 0, "sixteen letters."));
    rig.send(text("a", 1, "five more"));
    rig.engine(1, chunk(0..16));
    rig.send(text("a", 1, "five more"));
    rig.send(text("a", 2, "too much"));
    assert_eq!(rig.errors(), ["too_many_contexts", "text_overflow", "text_too_long"]);
    assert_eq!(rig.texts("pressure")[0]["pending_chars"], 16);
    rig.send(json!({"type": "context.open", "ctx": "b", "replaces": ["a"]}));
    rig.sleep(Duration::from_millis(10));
    assert_eq!(rig.texts("context.opened").len(), 2, "the place of a replaced one is free");
}

#[test]
fn a_context_without_text_is_let_go() {
    let mut rig = Rig::new(Limits::default());
    rig.send(json!({"type": "session.start", "context_idle_ms": 5_000}));
    rig.send(open("a"));
    rig.sleep(Duration::from_secs(4));
    rig.send(text("a", 0, "hello"));
    rig.sleep(Duration::from_millis(4_999));
    assert!(rig.errors().is_empty());
    rig.sleep(Duration::from_millis(20));
    assert_eq!(rig.errors(), ["ctx_idle"]);
    assert_eq!(rig.texts("context.cancelled")[0]["reason"], "idle");
    assert_eq!(rig.close_code(), None);
}

#[test]
fn a_context_far_ahead_parks_until_its_listener_catches_up() {
    let mut rig = Rig::new(Limits::default());
    let (audio, flow) = (json!({"codec": "pcm_s16le"}), json!({"max_ahead_ms": 3_000}));
    rig.send(json!({"type": "session.start", "audio": audio, "flow": flow}));
    rig.send(open("a"));
    rig.speak(1, 0, 500, false);
    let audio = |rig: &Rig| rig.seen.iter().filter(|s| matches!(s, Seen::Audio { .. })).count();
    assert_eq!((audio(&rig), rig.texts("context.parked").len()), (150, 1));
    rig.sleep(Duration::from_millis(1_100));
    assert_eq!(rig.texts("context.resumed").len(), 2);
    rig.send(json!({"type": "played", "ctx": "a", "pos": 72_000}));
    assert!(audio(&rig) >= 300, "{}", audio(&rig));
    assert!(rig.outputs.iter().any(|o| matches!(o, Output::Played { samples: 72_000, .. })));
}

#[test]
fn a_slow_wire_stops_the_reading_of_sound_and_of_messages() {
    let mut rig = Rig::started();
    rig.send(open("a"));
    rig.is_writable = false;
    assert!(rig.session.wants_audio(1) && rig.session.wants_messages());
    for i in 0..1_500 {
        rig.speak(1, i * 48_000, 100, false); // 800 bytes each
    }
    assert!(!rig.session.wants_audio(1));
    for _ in 0..300 {
        rig.send(json!({"type": "ping", "t": 1}));
    }
    assert!(!rig.session.wants_messages());
}

#[test]
fn the_limits_of_a_key_hold_across_its_sessions() {
    let quota = Quota { max_contexts: Some(1), chars_per_minute: Some(60), ..Quota::default() };
    let allowance = Arc::new(Allowance::new(quota));
    let mut rigs = [Rig::started(), Rig::started()];
    for rig in &mut rigs {
        rig.session.setup.allowance = SessionAllowance::new(allowance.clone(), Duration::ZERO);
    }
    let [ours, theirs] = &mut rigs;
    ours.send(json!({"type": "context.open", "ctx": "a"}));
    theirs.send(json!({"type": "context.open", "ctx": "a"}));
    assert_eq!(theirs.errors(), ["too_many_contexts"]);
    // A barge-in takes the place of what it replaces.
    ours.send(json!({"type": "context.open", "ctx": "b", "replaces": ["a"]}));
    // The answer to the cancel may wait a moment, and what comes behind it with it.
    ours.sleep(Duration::from_secs(1));
    ours.send(json!({"type": "text", "ctx": "b", "seq": 0, "text": "a".repeat(50)}));
    ours.send(json!({"type": "text", "ctx": "b", "seq": 1, "text": "a".repeat(20)}));
    assert_eq!(ours.errors(), ["overloaded"]);
    assert_eq!(ours.texts("error")[0]["retry_after_ms"], 10_000);
    // What was refused was not taken: the same can be sent again.
    ours.sleep(Duration::from_secs(10));
    ours.send(json!({"type": "text", "ctx": "b", "seq": 1, "text": "a".repeat(20)}));
    ours.send(json!({"type": "cancel", "ctx": "b"}));
    assert_eq!(ours.errors().len(), 1);
    theirs.send(json!({"type": "context.open", "ctx": "a"}));
    assert_eq!((theirs.errors().len(), theirs.texts("context.opened").len()), (1, 1));
}
