//! The client's messages against the server's own: each must read what the other writes.

use super::command::Command;
use super::event::{Message, Numbered};
use super::*;
use crate::protocol::event::{self as wire, ClientEvent, ServerEvent};

fn read_by_server(command: &Command<'_>) -> ClientEvent {
    wire::parse(&command.to_json()).unwrap()
}

#[test]
fn the_server_reads_every_command() {
    let options = SessionOptions {
        audio: Some(AudioOptions { frame_ms: Some(40), ..Default::default() }),
        defaults: ContextOptions { voice: Some("v".into()), ..Default::default() },
        flow: Some(Flow { max_ahead_ms: 4_000 }),
        idle_timeout_ms: Some(2_000),
        ..Default::default()
    };
    let ClientEvent::Start(start) = read_by_server(&Command::Start(&options)) else { panic!() };
    assert_eq!(start.audio.frame_ms, Some(40));
    assert_eq!(start.defaults.voice.as_deref(), Some("v"));
    assert_eq!(start.flow.max_ahead_ms, Some(4_000));
    assert_eq!(start.idle_timeout_ms, Some(2_000));

    let opening = Opening {
        options: ContextOptions { seed: Some(7), ..Default::default() },
        replaces: vec!["a".into()],
        priority: Some(9),
        ..Default::default()
    };
    let open = Command::Open { ctx: "b", opening: &opening };
    let ClientEvent::Open(open) = read_by_server(&open) else { panic!() };
    assert_eq!((open.ctx.as_str(), open.priority, open.options.seed), ("b", Some(9), Some(7)));
    assert!(open.replaces.is_some());

    let text = Command::Text { ctx: "b", seq: 3, text: "\"quoted\" 😀\n" };
    let ClientEvent::Text(text) = read_by_server(&text) else { panic!() };
    assert_eq!((text.seq, text.text.as_str(), text.end), (3, "\"quoted\" 😀\n", false));

    let cancel = Command::Cancel { ctx: "b", played: Some(5), at: CancelAt::Now };
    let ClientEvent::Cancel(cancel) = read_by_server(&cancel) else { panic!() };
    assert_eq!((cancel.ctx.as_str(), cancel.played), ("b", Some(5)));

    let messages = serde_json::json!([{"role": "user", "content": "Hi."}]);
    let opening = Opening {
        messages: Some(messages.clone()),
        modalities: vec!["text".into()],
        ..Default::default()
    };
    let open = Command::Open { ctx: "c", opening: &opening };
    let ClientEvent::Open(open) = read_by_server(&open) else { panic!() };
    assert_eq!((open.messages, open.modalities), (Some(messages), Some(vec!["text".into()])));
    let codec = crate::protocol::Codec::Mulaw;
    let begin = Command::AudioBegin { ctx: "c", id: "u", codec, sample_rate: 8_000 };
    let ClientEvent::AudioBegin(begin) = read_by_server(&begin) else { panic!() };
    assert_eq!((begin.codec.as_deref(), begin.sample_rate), (Some("mulaw"), Some(8_000)));
    let end = Command::AudioEnd { ctx: "c", id: "u" };
    assert!(matches!(read_by_server(&end), ClientEvent::AudioEnd(_)));

    let flush = Command::Flush { ctx: "b", id: "f" };
    assert!(matches!(read_by_server(&flush), ClientEvent::Flush(_)));
    assert!(matches!(read_by_server(&Command::End { ctx: "b" }), ClientEvent::End(_)));
    let played = Command::Played { ctx: "b", pos: 960 };
    assert!(matches!(read_by_server(&played), ClientEvent::Played(_)));
    assert!(matches!(read_by_server(&Command::Ping { t: 1 }), ClientEvent::Ping(_)));
    let end = Command::EndSession { drain: true };
    assert!(matches!(read_by_server(&end), ClientEvent::EndSession(_)));
}

fn read_by_client(event: &ServerEvent) -> Message {
    let Numbered { n, message } = parse(&event.to_json(7)).unwrap();
    assert_eq!(n, 7);
    message
}

#[test]
fn the_client_reads_what_the_server_writes() {
    let parked = ServerEvent::Parked { ctx: "a".into(), ahead_ms: 6_000 };
    let Message::Parked(ahead) = read_by_client(&parked) else { panic!() };
    assert_eq!(ahead, Ahead { ctx: "a".into(), ahead_ms: 6_000 });
    let delta = ServerEvent::TextDelta { ctx: "a".into(), seq: 3, text: "Hi".into() };
    let Message::TextDelta(delta) = read_by_client(&delta) else { panic!() };
    assert_eq!(delta, TextDelta { ctx: "a".into(), seq: 3, text: "Hi".into() });
    let error = wire::ErrorEvent::new(crate::error::Code::EngineFailed, "it broke").of("a");
    let Message::Error(error) = read_by_client(&ServerEvent::Error(Box::new(error))) else {
        panic!()
    };
    assert_eq!((error.code.as_str(), error.ctx.as_deref()), ("engine_failed", Some("a")));
    let pong = ServerEvent::Pong { t: serde_json::Value::Null, server_time: 1 };
    assert!(matches!(read_by_client(&pong), Message::Pong));
}

#[test]
fn what_a_later_server_adds_is_passed_over() {
    let later = parse(r#"{"type":"context.sang","n":3,"ctx":["a"]}"#).unwrap();
    assert!(later.message.into_event().is_none());
    assert!(parse("{}").is_err() && parse("[1]").is_err());
}
