use std::time::Duration;

use serde_json::{Value, json};

use super::rig::{Rig, Seen};
use crate::protocol::{Frame, Input, Limits, Output, Resume};

const FLAG_GAP: u8 = 0x04;

/// A session that may be resumed, with a context that has sound on the wire.
fn kept() -> Rig {
    let mut rig = Rig::started_with(json!({"resume_window_ms": 10_000}));
    rig.send(json!({"type": "context.open", "ctx": "a"}));
    rig.send(json!({"type": "text", "ctx": "a", "seq": 0, "text": "The train is on time."}));
    rig.speak(1, 0, 100, false);
    rig
}

fn is_audio(seen: &Seen) -> bool {
    matches!(seen, Seen::Audio { .. })
}

#[test]
fn a_client_that_comes_back_gets_what_it_missed_and_then_what_is_new() {
    let mut rig = kept();
    let all = rig.seen.clone();
    // The last ten packets and the commit never arrived.
    rig.seen.truncate(rig.seen.len() - 11);
    let known = rig.seen.len();
    rig.input(Input::Lost);
    assert!(matches!(rig.outputs.last(), Some(Output::Detach)));
    rig.speak(1, 48_000, 1, false);
    assert_eq!(rig.seen.len(), known, "there is nobody to send it to");
    assert!(rig.resume());
    let Seen::Text(ready) = &rig.seen[known] else { panic!() };
    assert_eq!((&ready["type"], &ready["resumed"]), (&json!("session.ready"), &json!(true)));
    assert_eq!(ready["next_text_seq"], json!({"a": 1}));
    assert_eq!(rig.seen[known + 1..known + 12], all[known..]);
    assert!(matches!(rig.seen.last(), Some(Seen::Audio { seq: 100, pos: 48_000, flags: 0, .. })));
    rig.sleep(Duration::from_secs(11));
    assert!(!rig.session.is_closed(), "it has its client back");
}

#[test]
fn a_client_that_does_not_come_back_is_given_up() {
    let mut rig = kept();
    rig.input(Input::Lost);
    rig.sleep(Duration::from_millis(9_999));
    assert!(!rig.session.is_closed());
    rig.sleep(Duration::from_millis(1));
    assert!(rig.session.is_closed() && rig.session.poll_timeout().is_none());
    assert!(matches!(rig.outputs[..], [.., Output::Cancel(1), Output::Hangup]));
    assert!(!rig.resume());
}

#[test]
fn a_session_that_was_not_to_be_kept_ends_with_its_socket() {
    let mut rig = Rig::started();
    rig.send(json!({"type": "context.open", "ctx": "a"}));
    rig.input(Input::Lost);
    assert!(matches!(rig.outputs[..], [.., Output::Cancel(1), Output::Hangup]));
    let mut rig = kept();
    rig.input(Input::Gone);
    assert!(rig.session.is_closed(), "whoever closes does not come back");
}

#[test]
fn a_missed_pong_is_a_lost_socket() {
    let mut rig = kept();
    rig.is_alive = false;
    rig.sleep(Duration::from_secs(40));
    assert!(!rig.is_attached && !rig.session.is_closed());
}

#[test]
fn a_second_socket_takes_the_session_over() {
    let mut rig = kept();
    assert!(rig.resume());
    let [Frame::Text(error), Frame::Close { code: 4409, reason: "replaced" }] =
        rig.session.farewell()
    else {
        panic!()
    };
    let error: Value = serde_json::from_str(&error).unwrap();
    assert_eq!((&error["code"], &error["fatal"]), (&json!("replaced"), &json!(true)));
    rig.speak(1, 48_000, 1, false);
    assert!(matches!(rig.seen.last(), Some(Seen::Audio { seq: 100, .. })));
}

#[test]
fn a_session_that_is_not_found_is_a_new_one() {
    let mut rig = Rig::new(Limits::default());
    let last = json!({"a": 7});
    let resume = json!({"session_id": "old", "token": "x", "last_n": 3, "last": last});
    rig.send(json!({"type": "session.start", "resume": resume, "resume_window_ms": 9_000}));
    let Some(Output::Resume(asked)) = rig.outputs.last() else { panic!() };
    let last = [("a".to_owned(), 7)].into();
    let expected = Resume { session_id: "old".into(), token: "x".into(), last_n: 3, last };
    assert_eq!(**asked, expected);
    assert!(!rig.session.wants_messages(), "they may be for the other session");
    rig.input(Input::ResumeRefused);
    let ready = rig.texts("session.ready")[0];
    assert_eq!((&ready["resumed"], &ready["resume_window_ms"]), (&json!(false), &json!(9_000)));
    assert_eq!((rig.errors(), rig.close_code()), (vec!["resume_unknown"], None));
    assert!(matches!(rig.outputs.last(), Some(Output::Keep)));
}

#[test]
fn what_is_no_longer_kept_is_told_as_a_gap() {
    let mut rig = kept();
    rig.seen.retain(|seen| !is_audio(seen));
    rig.send(json!({"type": "played", "ctx": "a", "pos": 48_000}));
    rig.input(Input::Lost);
    assert!(rig.resume());
    assert!(!rig.seen.iter().any(is_audio), "it was played");
    rig.speak(1, 48_000, 2, false);
    let flags: Vec<u8> = rig
        .seen
        .iter()
        .filter_map(|s| if let Seen::Audio { flags, .. } = s { Some(*flags) } else { None })
        .collect();
    assert_eq!(flags, [FLAG_GAP, 0]);
}

#[test]
fn a_context_whose_end_was_seen_is_not_heard_again() {
    let mut rig = kept();
    rig.send(json!({"type": "cancel", "ctx": "a"}));
    let all = rig.seen.clone();
    let resume = Resume { last: [].into(), ..rig.place() };
    rig.input(Input::Lost);
    assert!(rig.session.resume(&resume, rig.now));
    rig.is_attached = true;
    rig.pump();
    assert_eq!(rig.seen.len(), all.len() + 1, "only that it is resumed");
    // Whoever has not seen the end gets all that came before it.
    rig.seen.truncate(all.len() - 20);
    rig.input(Input::Lost);
    assert!(rig.resume());
    assert_eq!(rig.seen[all.len() - 19..], all[all.len() - 20..]);
}

#[test]
fn nonsense_about_what_was_seen_is_refused() {
    let mut rig = kept();
    rig.input(Input::Lost);
    let resume = Resume { last_n: 1_000, ..rig.place() };
    assert!(!rig.session.resume(&resume, rig.now));
    assert!(rig.resume(), "nothing has changed by that");
}

#[test]
fn a_window_beyond_the_limit_is_refused() {
    let mut rig = Rig::new(Limits::default());
    rig.send(json!({"type": "session.start", "resume_window_ms": 15_001}));
    assert_eq!((rig.errors(), rig.close_code()), (vec!["bad_option"], Some(4400)));
}

#[test]
fn nobody_is_awaited_by_a_server_that_goes_down() {
    let mut rig = kept();
    rig.input(Input::Lost);
    rig.input(Input::Drain(Duration::from_secs(30)));
    assert!(rig.session.is_closed());
}

#[test]
fn a_client_that_only_listens_hears_what_has_ended() {
    let mut rig = Rig::started();
    for ctx in ["a", "b"] {
        let text = json!({"type": "text", "ctx": ctx, "seq": 0, "text": "Hi.", "end": ctx == "a"});
        rig.send(json!({"type": "context.open", "ctx": ctx}));
        rig.send(text);
    }
    rig.input(Input::HalfClosed);
    assert_eq!(rig.texts("context.cancelled")[0]["ctx"], "b");
    assert_eq!(rig.close_code(), None);
    rig.is_alive = false;
    rig.sleep(Duration::from_secs(60));
    assert!(!rig.session.is_closed(), "it cannot answer pings");
    rig.speak(1, 0, 1, true);
    rig.done(1, 480);
    assert_eq!((rig.texts("context.done").len(), rig.close_code()), (1, Some(1000)));
}
