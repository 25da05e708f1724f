mod cancels;
mod ends;
mod limits;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::{Event, Failure, Manner, Speech};
use serde_json::{Value, json};

use super::rig::{Rig, Seen};
use crate::auth::{Allowance, SessionAllowance};
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
