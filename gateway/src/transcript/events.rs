//! The events of a transcription that streams.
//!
//! ```text
//! data: {"type":"transcript.text.delta","delta":"Good mor"}
//! data: {"type":"transcript.text.done","text":"Good morning.","usage":{"type":"tokens",..}}
//! ```

use bytes::Bytes;
use serde_json::json;

use super::Usage;
use crate::foreign::whole::server_sent;

/// The next piece of the text.
pub fn delta(text: &str) -> Bytes {
    server_sent(None, &json!({"type": "transcript.text.delta", "delta": text}))
}

/// All of the text, at its end.
pub fn done(text: &str, usage: Usage) -> Bytes {
    let event = json!({"type": "transcript.text.done", "text": text, "usage": usage.json()});
    server_sent(None, &event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_the_text() {
        assert_eq!(
            delta("a\n\n\"b\""),
            r#"data: {"type":"transcript.text.delta","delta":"a\n\n\"b\""}
"#
            .to_owned()
                + "\n"
        );
    }

    #[test]
    fn the_last_event_has_the_whole_text_and_its_usage() {
        let event = done("Ende.", Usage { text_tokens: 0, audio_tokens: 46, output_tokens: 2 });
        let event = std::str::from_utf8(&event).unwrap();
        let json = event.strip_prefix("data: ").and_then(|e| e.strip_suffix("\n\n")).unwrap();
        let event: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(
            (&event["type"], &event["text"]),
            (&"transcript.text.done".into(), &"Ende.".into())
        );
        assert_eq!(event["usage"]["total_tokens"], 48);
    }
}
