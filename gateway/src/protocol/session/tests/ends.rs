//! How a session ends, by whoever.

use super::*;

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
fn a_lost_client_stops_everything() {
    let mut rig = speaking();
    rig.input(Input::Gone);
    assert!(matches!(rig.outputs[..], [.., Output::Cancel(1), Output::Hangup]));
    assert!(rig.session.is_closed() && rig.session.poll_timeout().is_none());
}
