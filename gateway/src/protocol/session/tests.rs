use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::{Event, Failure, Manner, Speech};
use serde_json::{Value, json};

use super::rig::{Rig, Seen};
use crate::auth::{Allowance, Purse};
use crate::config::Quota;
use crate::protocol::{Input, Limits, Output};

fn open(ctx: &str) -> Value {
    json!({"type": "context.open", "ctx": ctx})
}

fn text(ctx: &str, seq: u64, text: &str) -> Value {
    json!({"type": "text", "ctx": ctx, "seq": seq, "text": text})
}

fn cancel(ctx: &str) -> Value {
    json!({"type": "cancel", "ctx": ctx})
}

fn chunk(range: std::ops::Range<usize>) -> Event {
    Event::Chunk { text: String::new(), raw: range }
}

/// The end of a chunk; what was said has its range as text.
fn chunk_end(raw: std::ops::Range<usize>, end: u64) -> Event {
    let said = Speech { text: format!("{raw:?}"), codes: vec![1, 2] };
    Event::ChunkEnd { said: said.into(), raw, end }
}

/// A context with 21 characters in one chunk, two seconds long, all of it generated.
fn speaking() -> Rig {
    let mut rig = Rig::started();
    rig.send(open("a"));
    rig.send(text("a", 0, "The train is on time."));
    rig.engine(1, chunk(0..21));
    rig.speak(1, 0, 100, false);
    rig.engine(1, chunk_end(0..21, 48_000));
    rig
}

#[test]
fn a_context_is_opened_spoken_and_done() {
    let mut rig = speaking();
    rig.send(json!({"type": "end", "ctx": "a"}));
    rig.speak(1, 48_000, 1, true);
    rig.done(1, 48_480);
    let ready = rig.texts("session.ready")[0];
    assert_eq!((&ready["n"], &ready["audio"]["pre_skip"]), (&json!(1), &json!(0)));
    assert_eq!(rig.texts("context.opened")[0]["handle"], 1);
    let commits: Vec<_> = rig.texts("commit").iter().map(|c| [&c["from"], &c["to"]]).collect();
    assert_eq!(commits, [[&json!(0), &json!(48_000)], [&json!(48_000), &json!(48_480)]]);
    assert_eq!(rig.texts("commit")[0]["text"], json!({"from": 0, "to": 21}));
    assert_eq!(rig.texts("commit")[1]["text"], json!({"from": 21, "to": 21}));
    let done = rig.texts("context.done")[0];
    assert_eq!((&done["samples"], &done["seq_last"]), (&json!(48_480), &json!(100)));
    let n: Vec<u64> = rig
        .seen
        .iter()
        .filter_map(|s| if let Seen::Text(t) = s { t["n"].as_u64() } else { None })
        .collect();
    assert_eq!(n, (1..=n.len() as u64).collect::<Vec<_>>());
}

#[test]
fn text_is_taken_in_order_and_once() {
    let mut rig = Rig::started();
    rig.send(open("a"));
    rig.send(text("a", 0, "one "));
    rig.send(text("a", 0, "one "));
    rig.send(text("a", 2, "three"));
    rig.send(text("a", 1, "two "));
    let spoken: Vec<&str> = rig
        .outputs
        .iter()
        .filter_map(|o| if let Output::Speak { text, .. } = o { Some(&**text) } else { None })
        .collect();
    assert_eq!(spoken, ["one ", "two "]);
    assert_eq!(rig.errors(), ["seq_gap"]);
    assert_eq!(rig.texts("error")[0]["ref"], json!({"type": "text", "seq": 2}));
}

#[test]
fn a_barge_in_tells_what_was_heard_and_nothing_follows_it() {
    let mut rig = speaking();
    rig.held = 5;
    rig.send(json!({"type": "cancel", "ctx": "a", "played": 20_000}));
    let answer = rig.texts("context.cancelled")[0].clone();
    assert_eq!(answer["heard"]["text"], "The train");
    assert_eq!(answer["heard"]["last_word_index"], 1);
    assert_eq!((&answer["played"], &answer["exact"]), (&json!(20_000), &json!(true)));
    assert_eq!((&answer["freed"]["kv_blocks"], &answer["late"]), (&json!(5), &json!(false)));
    let before = rig.seen.len();
    rig.speak(1, 48_000, 10, true);
    rig.done(1, 52_800);
    assert_eq!(rig.seen.len(), before);
    rig.send(cancel("a"));
    let again = rig.texts("context.cancelled")[1].clone();
    assert_eq!((&again["late"], &again["heard"]), (&json!(true), &answer["heard"]));
    assert_eq!(again["freed"], answer["freed"]);
}

#[test]
fn a_cancel_drops_what_the_wire_has_not_taken() {
    let mut rig = Rig::started();
    rig.send(open("a"));
    rig.is_writable = false;
    rig.speak(1, 0, 50, false);
    rig.send(cancel("a"));
    rig.is_writable = true;
    rig.pump();
    assert!(!rig.seen.iter().any(|s| matches!(s, Seen::Audio { .. })));
    let answer = rig.texts("context.cancelled")[0];
    assert_eq!([&answer["generated"], &answer["sent"], &answer["dropped_ms"]], [24_000, 0, 1_000]);
}

#[test]
fn without_reports_the_clock_says_what_was_heard() {
    let mut rig = speaking();
    rig.sleep(Duration::from_millis(500));
    rig.send(cancel("a"));
    rig.sleep(Duration::from_millis(10));
    assert_eq!(rig.texts("context.cancelled")[0]["played"], 12_000);
}

#[test]
fn a_late_cancel_says_what_was_heard_of_a_context_that_is_done() {
    let mut rig = speaking();
    rig.send(json!({"type": "end", "ctx": "a"}));
    rig.speak(1, 48_000, 1, true);
    rig.done(1, 48_480);
    rig.send(json!({"type": "played", "ctx": "a", "pos": 48_480}));
    rig.send(cancel("a"));
    let answer = rig.texts("context.cancelled")[0];
    assert_eq!((&answer["late"], &answer["exact"]), (&json!(true), &json!(true)));
    assert_eq!(answer["heard"]["text"], "The train is on time.");
    assert_eq!((&answer["dropped_ms"], &answer["freed"]["kv_blocks"]), (&json!(0), &json!(0)));
    rig.sleep(Duration::from_secs(61));
    rig.send(cancel("a"));
    assert_eq!(rig.texts("context.cancelled")[1]["reason"], "unknown");
}

#[test]
fn a_turn_that_replaces_others_opens_behind_their_answers() {
    let mut rig = speaking();
    rig.send(json!({"type": "context.open", "ctx": "b", "replaces": ["a", "never"]}));
    rig.speak(2, 0, 3, false);
    let order: Vec<String> = rig.seen[rig.seen.len() - 6..]
        .iter()
        .map(|s| match s {
            Seen::Text(t) => {
                format!("{} {}", t["type"].as_str().unwrap(), t["ctx"].as_str().unwrap())
            }
            other => format!("{other:?}").split(' ').next().unwrap().to_owned(),
        })
        .collect();
    let expected = ["context.cancelled a", "context.cancelled never", "context.opened b"];
    assert_eq!(order[..3], expected);
    assert_eq!(order[3..], ["Audio", "Audio", "Audio"]);
    assert_eq!(rig.texts("context.cancelled")[0]["reason"], "replaced");
}

#[test]
fn a_turn_after_another_sounds_when_that_one_is_over() {
    let mut rig = speaking();
    rig.send(json!({"type": "context.open", "ctx": "b", "after": "a"}));
    rig.speak(2, 0, 1, false);
    rig.speak(2, 480, 1, true);
    rig.done(2, 960);
    let sounds =
        |rig: &Rig| rig.seen.iter().filter(|s| matches!(s, Seen::Audio { handle: 2, .. })).count();
    assert_eq!(sounds(&rig), 0);
    let held = Output::Played { context: 2, samples: 0 };
    assert!(rig.outputs.iter().any(|o| format!("{o:?}") == format!("{held:?}")));
    rig.send(cancel("a"));
    assert_eq!((sounds(&rig), rig.texts("context.done").len()), (2, 1));
    rig.send(json!({"type": "context.open", "ctx": "c", "after": "a"}));
    rig.speak(3, 0, 1, false);
    assert!(matches!(rig.seen.last(), Some(Seen::Audio { handle: 3, .. })), "it is over");
}

#[test]
fn the_style_changes_for_what_comes_and_speed_does_not() {
    let mut rig = Rig::started();
    rig.send(json!({"type": "context.open", "ctx": "a", "voice": "ann"}));
    rig.send(json!({"type": "context.update", "ctx": "a", "style": "agentic", "speed": 1.5}));
    let Some(Output::Restyle { context: 1, manner }) = rig.outputs.last() else { panic!() };
    let (voice, style) = (Some("ann".to_owned()), Some("agentic".to_owned()));
    assert_eq!(*manner, Manner { voice, style, ..Manner::default() });
    assert_eq!(rig.texts("context.updated")[0]["ignored"], json!(["speed"]));
    rig.send(json!({"type": "context.update", "ctx": "a", "style": "angry"}));
    rig.send(json!({"type": "context.update", "ctx": "b", "style": "agentic"}));
    assert_eq!(rig.errors(), ["unknown_style", "ctx_unknown"]);
}

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
fn commits_tell_the_times_that_were_asked_for() {
    let fields = |timestamps: &str| {
        let mut rig = Rig::started_with(json!({"timestamps": timestamps}));
        rig.send(open("a"));
        rig.speak(1, 0, 100, false);
        let commit = rig.texts("commit")[0].clone();
        ["words", "chars", "align"].map(|field| commit.get(field).is_some())
    };
    assert_eq!(fields("none"), [false, false, false]);
    assert_eq!(fields("word"), [true, false, true]);
    assert_eq!(fields("char"), [false, true, true]);
}

/// A context that speaks two sentences, a tenth of a second a character; of which half a second is on the wire.
fn two_sentences() -> Rig {
    let mut rig = Rig::started();
    rig.send(open("a"));
    rig.send(text("a", 0, "One two three. Four five six. "));
    rig.engine(1, chunk(0..30));
    rig.engine(1, chunk_end(0..30, 72_000));
    rig.speak(1, 0, 25, false);
    rig
}

/// Answers to cancels: the context's end on the wire, what was heard, and whether it was late.
fn answers(rig: &Rig) -> Vec<(u64, String, bool)> {
    let answer = |a: &&Value| {
        let heard = a["heard"]["text"].as_str().unwrap().to_owned();
        (a["sent"].as_u64().unwrap(), heard, a["late"].as_bool().unwrap())
    };
    rig.texts("context.cancelled").iter().map(answer).collect()
}

#[test]
fn a_polite_cancel_lets_the_word_or_the_sentence_be_heard_to_its_end() {
    // At 0.45 s the second word is being said; it ends at 0.7 s, its sentence at 1.4 s.
    for (at, sent, heard) in [("word", 16_800, "One two"), ("sentence", 33_600, "One two three.")] {
        let mut rig = two_sentences();
        rig.send(json!({"type": "cancel", "ctx": "a", "played": 10_800, "at": at}));
        assert_eq!(answers(&rig), [], "{at}");
        assert!(rig.outputs.iter().any(|o| matches!(o, Output::End(1))), "no more text is taken");
        rig.speak(1, 12_000, 125, false);
        assert_eq!(answers(&rig), [(sent, heard.to_owned(), false)]);
        assert_eq!(rig.texts("context.cancelled")[0]["heard"]["partial_word"], false);
    }
}

#[test]
fn a_polite_cancel_of_what_was_sent_is_answered_at_once() {
    let mut rig = two_sentences();
    rig.speak(1, 12_000, 125, false);
    rig.send(json!({"type": "cancel", "ctx": "a", "played": 10_800, "at": "word"}));
    let answer = rig.texts("context.cancelled")[0];
    assert_eq!((&answer["sent"], &answer["played"]), (&json!(72_000), &json!(16_800)));
    assert_eq!(answer["heard"]["text"], "One two");
}

#[test]
fn every_cancel_of_a_context_that_yields_politely_is_answered() {
    let mut rig = two_sentences();
    let polite = json!({"type": "cancel", "ctx": "a", "played": 10_800, "at": "sentence"});
    rig.send(polite.clone());
    rig.send(polite);
    assert_eq!(answers(&rig), []);
    rig.send(cancel("a"));
    let heard = || "One two".to_owned();
    let expected = [(12_000, heard(), false), (12_000, heard(), true), (12_000, heard(), true)];
    assert_eq!(answers(&rig).iter().map(|a| a.2).collect::<Vec<_>>(), expected.map(|a| a.2));
    rig.send(json!({"type": "cancel", "ctx": "a", "at": "end"}));
    assert_eq!(rig.errors(), ["bad_option"]);
}

#[test]
fn a_polite_cancel_of_a_context_that_ends_first_is_answered_at_its_end() {
    let mut rig = two_sentences();
    rig.send(json!({"type": "cancel", "ctx": "a", "played": 10_800, "at": "sentence"}));
    rig.speak(1, 12_000, 1, true);
    rig.done(1, 12_480);
    assert_eq!(answers(&rig).len(), 1);
    assert!(rig.texts("context.done").is_empty());
}

#[test]
fn a_commit_tells_the_words_that_end_in_it() {
    let mut rig = Rig::started();
    rig.send(open("a"));
    rig.send(text("a", 0, "One two three. Four five six. "));
    rig.engine(1, chunk(0..30));
    rig.engine(1, chunk_end(0..30, 72_000));
    rig.speak(1, 0, 150, true);
    rig.done(1, 72_000);
    let commits = rig.texts("commit");
    let words = json!([
        [0, 3, 0, 7_200],
        [4, 7, 9_600, 16_800],
        [8, 14, 19_200, 33_600],
        [15, 19, 36_000, 45_600]
    ]);
    assert_eq!((&commits[0]["words"], &commits[0]["text"]["to"]), (&words, &json!(19)));
    let words = json!([[20, 24, 48_000, 57_600], [25, 29, 60_000, 69_600]]);
    assert_eq!(
        (&commits[1]["words"], &commits[1]["text"]),
        (&words, &json!({"from": 19, "to": 30}))
    );
    assert_eq!(commits[0]["align"], "estimated");
}

#[test]
fn a_turn_goes_on_from_what_was_said_or_heard_before() {
    let from_a = |from: &str, cancel: bool| {
        let mut rig = two_sentences();
        rig.engine(1, chunk(30..40));
        rig.engine(1, chunk_end(30..40, 96_000));
        rig.speak(1, 12_000, 175, false);
        rig.send(json!({"type": "played", "ctx": "a", "pos": 80_000}));
        let replaces = if cancel { json!(["a"]) } else { json!([]) };
        let turn = json!({"type": "context.open", "ctx": "b", "prosody_from": from});
        let mut turn = turn.as_object().unwrap().clone();
        turn.insert("replaces".into(), replaces);
        rig.send(turn.into());
        let Some(Output::Open { request, .. }) = rig.outputs.last() else { panic!() };
        request.prefix.as_ref().map(|said| said.text.clone())
    };
    assert_eq!(from_a("a", false).as_deref(), Some("30..40"), "the last that was said");
    assert_eq!(from_a("a", true).as_deref(), Some("0..30"), "the last that was heard whole");
    assert_eq!(from_a("never", false), None);
}

#[test]
fn what_decides_the_draws_reaches_the_engine() {
    let mut rig = Rig::started();
    let sampling = json!({"top_p": 0.5, "top_k": 9, "frequency_penalty": 0.1, "acoustic_top_k": 3});
    let prefix = json!({"text": "Hello.", "codes": [1, 2, 3]});
    rig.send(json!({
        "type": "context.open", "ctx": "a", "sampling": sampling, "initial_ms": 1_000,
        "prompt_max_frames": 50, "prefix": prefix
    }));
    let Some(Output::Open { request, .. }) = rig.outputs.last() else { panic!() };
    assert_eq!(
        (request.top_p, request.top_k, request.acoustic_top_k),
        (Some(0.5), Some(9), Some(3))
    );
    assert_eq!((request.frequency_penalty, request.first_frames), (Some(0.1), 15));
    assert_eq!(request.prompt_max_frames, Some(50));
    let said = Speech { text: "Hello.".into(), codes: vec![1, 2, 3] };
    assert_eq!(request.prefix.as_deref(), Some(&said));
    assert!(rig.texts("context.opened")[0].get("ignored").is_none());
}

#[test]
fn a_refused_turn_cancels_nothing() {
    let mut rig = speaking();
    rig.send(json!({"type": "context.open", "ctx": "b", "replaces": "*", "voice": "nobody"}));
    assert_eq!(rig.errors(), ["unknown_voice"]);
    assert!(rig.texts("context.cancelled").is_empty());
    rig.send(open("b"));
    assert_eq!(rig.texts("context.opened").len(), 2, "its id stays unused");
}

#[test]
fn a_star_cancels_all_that_may_still_be_heard() {
    let mut rig = speaking();
    rig.send(open("b"));
    rig.send(json!({"type": "end", "ctx": "b"}));
    rig.speak(2, 0, 10, true);
    rig.done(2, 4_800); // done, with 200 ms to play
    rig.send(open("c"));
    rig.send(json!({"type": "end", "ctx": "c"}));
    rig.done(3, 0); // nothing to say
    rig.send(cancel("*"));
    rig.sleep(Duration::from_millis(10));
    let answered: Vec<_> = rig.texts("context.cancelled").iter().map(|c| &c["ctx"]).collect();
    assert_eq!(answered, ["a", "b"]);
}

#[test]
fn flushes_are_answered_behind_their_sound_and_by_name() {
    let mut rig = speaking();
    rig.send(json!({"type": "flush", "ctx": "a", "id": "f1"}));
    rig.engine(1, Event::Flushed { samples: 48_000 });
    let answer = rig.texts("flushed")[0];
    let expected = [json!("f1"), json!(48_000), json!(21)];
    assert_eq!(
        [&answer["id"], &answer["pos"], &answer["text_offset"]],
        [&expected[0], &expected[1], &expected[2]]
    );
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
fn an_end_that_is_said_again_changes_nothing() {
    let mut rig = Rig::started();
    rig.send(open("a"));
    rig.send(text("a", 0, "Bye."));
    rig.send(json!({"type": "end", "ctx": "a"}));
    rig.send(json!({"type": "end", "ctx": "a"}));
    rig.speak(1, 0, 5, true);
    rig.done(1, 2_400);
    rig.send(json!({"type": "end", "ctx": "a"}));
    assert_eq!(rig.outputs.iter().filter(|o| matches!(o, Output::End(1))).count(), 1);
    assert_eq!((rig.errors(), rig.texts("context.done").len()), (vec![], 1));
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
fn a_context_that_fails_fails_alone() {
    let mut rig = Rig::started();
    rig.send(open("a"));
    rig.send(open("b"));
    rig.engine(1, Event::Failed(Failure::Model("nan".into())));
    assert_eq!(rig.errors(), ["engine_failed"]);
    let answer = rig.texts("context.cancelled")[0];
    assert_eq!((&answer["ctx"], &answer["reason"]), (&json!("a"), &json!("error")));
    rig.send(text("b", 0, "still here"));
    assert_eq!((rig.errors().len(), rig.close_code()), (1, None));
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
fn sixteen_unreadable_messages_in_a_row_end_a_session() {
    let mut rig = Rig::started();
    for _ in 0..15 {
        rig.input(Input::Message("{".into()));
    }
    rig.send(json!({"type": "ping", "t": 1}));
    for _ in 0..15 {
        rig.input(Input::Binary(Bytes::new()));
        rig.send(json!({"type": "context.sing"}));
    }
    assert_eq!(rig.close_code(), None);
    rig.input(Input::Message("[]".into()));
    assert_eq!(rig.close_code(), Some(4400));
    assert_eq!(rig.texts("error").last().unwrap()["fatal"], true);
}

#[test]
fn a_bad_start_is_told_and_ends_the_session() {
    for (start, code) in [
        (json!({"audio": {"codec": "mp3"}}), "unsupported_audio"),
        (json!({"defaults": {"voice": "bob"}}), "unknown_voice"),
        (json!({"idle_timeout_ms": 1}), "bad_option"),
        (json!({"flow": {"release": "never"}}), "bad_option"),
        (json!({"timestamps": "phoneme"}), "bad_option"),
    ] {
        let mut rig = Rig::new(Limits::default());
        let mut message = json!({"type": "session.start"});
        message.as_object_mut().unwrap().extend(start.as_object().unwrap().clone());
        rig.send(message);
        assert_eq!((rig.errors(), rig.close_code()), (vec![code], Some(4400)), "{start}");
    }
}

#[test]
fn a_silent_client_is_let_go() {
    let mut rig = Rig::new(Limits::default());
    rig.sleep(Duration::from_secs(5));
    assert_eq!((rig.errors(), rig.close_code()), (vec!["start_timeout"], Some(4408)));

    let mut rig = Rig::new(Limits::default());
    rig.send(json!({"type": "session.start", "idle_timeout_ms": 10_000}));
    rig.send(open("a"));
    rig.sleep(Duration::from_secs(15));
    assert!(rig.errors().is_empty(), "an open context keeps the session");
    rig.send(cancel("a"));
    rig.sleep(Duration::from_millis(9_990));
    assert!(rig.errors().is_empty());
    rig.sleep(Duration::from_millis(10));
    assert_eq!((rig.errors(), rig.close_code()), (vec!["idle_timeout"], Some(4408)));
}

#[test]
fn a_client_that_takes_nothing_is_let_go() {
    let mut rig = Rig::started();
    rig.is_writable = false;
    rig.send(json!({"type": "ping", "t": 1}));
    rig.sleep(Duration::from_millis(9_999));
    rig.is_writable = true;
    rig.pump();
    assert!(rig.errors().is_empty());
    rig.is_writable = false;
    rig.send(json!({"type": "ping", "t": 1}));
    rig.sleep(Duration::from_secs(10));
    rig.is_writable = true;
    rig.pump();
    assert_eq!((rig.errors(), rig.close_code()), (vec!["slow_consumer"], Some(4408)));
}

#[test]
fn a_client_that_answers_no_ping_is_gone() {
    let mut rig = Rig::started();
    rig.sleep(Duration::from_secs(20));
    assert_eq!(rig.seen.last(), Some(&Seen::Ping));
    rig.is_alive = false;
    rig.sleep(Duration::from_secs(39));
    assert!(!rig.session.is_closed());
    rig.sleep(Duration::from_secs(1));
    assert!(rig.session.is_closed());
    assert!(matches!(rig.outputs[..], [Output::Detach, Output::Hangup]));
}

#[test]
fn a_client_that_takes_not_even_the_close_is_given_up() {
    let mut rig = Rig::started();
    rig.is_writable = false;
    rig.send(json!({"type": "ping", "t": 1}));
    rig.sleep(Duration::from_secs(13));
    assert!(rig.session.is_closed() && rig.close_code().is_none());
    assert!(matches!(rig.outputs[..], [Output::Detach, Output::Hangup]));
}

#[test]
fn a_message_above_the_limit_ends_the_session() {
    let mut rig = Rig::started();
    rig.input(Input::TooBig);
    assert_eq!((rig.errors(), rig.close_code()), (vec!["message_too_big"], Some(1009)));
    let mut rig = Rig::started();
    rig.input(Input::NotUtf8);
    assert_eq!(rig.close_code(), Some(1007));
}

#[test]
fn the_end_of_a_session_cancels_or_drains() {
    let mut rig = speaking();
    rig.send(json!({"type": "session.end"}));
    assert_eq!(rig.texts("context.cancelled")[0]["reason"], "session_end");
    assert_eq!((rig.texts("session.closing").len(), rig.close_code()), (1, Some(1000)));

    let mut rig = speaking();
    rig.send(json!({"type": "session.end", "drain": true}));
    assert!(rig.outputs.iter().any(|o| matches!(o, Output::End(1))));
    rig.send(open("b"));
    assert_eq!((rig.errors(), rig.close_code()), (vec!["overloaded"], None));
    rig.done(1, 48_000);
    assert_eq!((rig.texts("context.done").len(), rig.close_code()), (1, Some(1000)));
}

#[test]
fn a_server_that_goes_down_lets_contexts_finish() {
    let mut rig = Rig::started();
    rig.input(Input::Drain(Duration::from_secs(30)));
    assert_eq!(rig.texts("session.closing")[0]["in_ms"], 30_000);
    assert_eq!((rig.errors(), rig.close_code()), (vec!["shutting_down"], Some(1012)));

    let mut rig = speaking();
    rig.input(Input::Drain(Duration::from_secs(30)));
    rig.send(text("a", 1, " More."));
    assert_eq!((rig.errors().len(), rig.close_code()), (0, None));
    rig.sleep(Duration::from_secs(31));
    assert_eq!(rig.texts("context.cancelled")[0]["reason"], "shutting_down");
    assert_eq!(rig.close_code(), Some(1012));
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
fn a_lost_client_stops_everything() {
    let mut rig = speaking();
    rig.input(Input::Gone);
    assert!(matches!(rig.outputs[..], [.., Output::Cancel(1), Output::Hangup]));
    assert!(rig.session.is_closed() && rig.session.poll_timeout().is_none());
}

#[test]
fn the_limits_of_a_key_hold_across_its_sessions() {
    let quota = Quota { max_contexts: Some(1), chars_per_minute: Some(60), ..Quota::default() };
    let allowance = Arc::new(Allowance::new(quota));
    let mut rigs = [Rig::started(), Rig::started()];
    for rig in &mut rigs {
        rig.session.setup.purse = Purse::new(allowance.clone(), Duration::ZERO);
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

#[test]
fn what_of_a_text_has_no_effect_is_told() {
    let mut rig = Rig::started();
    rig.send(open("a"));
    rig.send(text("a", 0, "Say <phoneme ph=\"x\">tomato</phoneme>."));
    rig.engine(1, Event::Notice(engine::text::Notice { what: "phoneme".into(), from: 4, to: 20 }));
    let notice = rig.texts("context.notice")[0];
    let text = json!({"from": 4, "to": 20});
    assert_eq!(
        (&notice["ctx"], &notice["what"], &notice["text"]),
        (&json!("a"), &json!("phoneme"), &text)
    );
}

#[test]
fn words_of_a_context_take_the_place_of_those_of_its_session() {
    let mut rig = Rig::started();
    let mut lexicon = json!({"nginx": "engine x"});
    let said = |rig: &mut Rig, ctx: &str, lexicon: &Value| {
        rig.send(json!({"type": "context.open", "ctx": ctx, "text": {"lexicon": lexicon}}));
        rig.outputs.iter().rev().find_map(|output| match output {
            Output::Open { request, .. } => {
                Some(engine::text::sanitize("nginx a1", &request.options))
            }
            _ => None,
        })
    };
    assert_eq!(said(&mut rig, "a", &lexicon).as_deref(), Some("engine x A one."));
    lexicon = json!([{"pattern": "a(\\d)", "spoken": "number $1"}]);
    assert_eq!(said(&mut rig, "b", &lexicon).as_deref(), Some("nginx number one."));
    rig.send(json!({"type": "context.open", "ctx": "c", "text": {"lexicon": [{"pattern": "(", "spoken": ""}]}}));
    let error = rig.texts("error")[0];
    assert_eq!((&error["code"], &error["ctx"]), (&json!("bad_option"), &json!("c")));
    assert!(
        error["message"].as_str().unwrap().starts_with("text.lexicon: entry 0, \"(\""),
        "{error}"
    );
}
