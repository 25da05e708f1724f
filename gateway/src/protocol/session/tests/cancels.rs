//! Barge-ins: what is told of them, and that nothing follows.

use super::*;

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
