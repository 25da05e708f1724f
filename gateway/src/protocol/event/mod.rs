//! The messages of the wire, both ways, and their JSON.
//!
//! ```text
//! {"type":"text","ctx":"t1","seq":0,"text":"Hello "}     -> ClientEvent::Text
//! ServerEvent::Flushed, the 7th message of the session   -> {"type":"flushed","ctx":"t1","pos":960,...,"n":7}
//! ```
//!
//! Fields that are not known are ignored. It must never know what a message means; `docs/protocol.md` says it.

mod client;
mod server;

pub(crate) use client::*;
pub(crate) use server::*;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_not_known_are_ignored() {
        let event = parse(r#"{"type":"end","ctx":"a","new":{"x":[1]}}"#);
        assert_eq!(event, Ok(ClientEvent::End(End { ctx: "a".into() })));
    }

    #[test]
    fn what_is_not_json_or_has_wrong_types_is_malformed() {
        for message in [
            "",
            "hello",
            "[]",
            "{}",
            r#"{"type":7}"#,
            r#"{"type":"text","ctx":"a","seq":-1,"text":""}"#,
            r#"{"type":"text","ctx":"a","seq":0,"text":null}"#,
            r#"{"type":"context.open","ctx":["a"]}"#,
            r#"{"type":"session.start","audio":{"frame_ms":"20"}}"#,
        ] {
            assert!(matches!(parse(message), Err(ParseError::Malformed(_))), "{message}");
        }
    }

    #[test]
    fn an_unknown_type_is_told_apart() {
        let unknown = parse(r#"{"type":"context.sing","ctx":3}"#);
        assert_eq!(unknown, Err(ParseError::UnknownType("context.sing".into())));
    }

    #[test]
    fn half_a_pair_becomes_a_replacement_character() {
        let text = |json: &str| {
            let message = format!(r#"{{"type":"text","ctx":"a","seq":0,"text":"{json}"}}"#);
            match parse(&message) {
                Ok(ClientEvent::Text(delta)) => delta.text,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(text(r"a\ud83d b"), "a\u{fffd} b");
        assert_eq!(text(r"\ude00\ud83d"), "\u{fffd}\u{fffd}");
        assert_eq!(text(r"\ud83d\ud83d\ude00"), "\u{fffd}😀");
        assert_eq!(text(r"\\ud83d"), r"\ud83d");
        assert_eq!(text(r"\\\ud83d"), "\\\u{fffd}");
        assert_eq!(text(r"\u00e9é"), "éé");
    }

    #[test]
    fn overrides_stand_beside_the_id() {
        let Ok(ClientEvent::Open(open)) = parse(
            r#"{"type":"context.open","ctx":"a","voice":"v","sampling":{"temperature":0.3},"replaces":"*"}"#,
        ) else {
            panic!()
        };
        assert_eq!(open.options.voice.as_deref(), Some("v"));
        assert_eq!(open.options.sampling.temperature, Some(0.3));
        assert_eq!(open.replaces, Some(Replaces::One("*".into())));
    }

    #[test]
    fn a_message_has_its_type_first_and_its_number_last() {
        let event = ServerEvent::Closing { reason: "client", in_ms: 0 };
        let json = r#"{"type":"session.closing","reason":"client","in_ms":0,"n":7}"#;
        assert_eq!(event.to_json(7), json);
    }
}
