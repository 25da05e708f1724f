//! The messages of the wire, both ways, and their JSON.
//!
//! ```text
//! {"type":"text","ctx":"t1","seq":0,"text":"Hello "}     -> ClientEvent::Text
//! ServerEvent::Flushed, the 7th message of the session   -> {"type":"flushed","ctx":"t1","pos":960,...,"n":7}
//! ```
//!
//! Fields that are not known are ignored. It must never know what a message means.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::alignment::Heard;
use super::catalogue::{Model, Voice};
use super::format::{Asked, Codec};
use crate::error::{Code, Severity};

/// What a client says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClientEvent {
    Start(Box<Start>),
    Open(Box<Open>),
    Text(TextDelta),
    Flush(Flush),
    End(End),
    Cancel(Cancel),
    Played(Played),
    Ping(Ping),
    EndSession(EndSession),
}

/// `session.start`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Start {
    pub(crate) resume: Option<serde::de::IgnoredAny>,
    pub(crate) audio: Asked,
    pub(crate) defaults: Options,
    pub(crate) flow: Flow,
    pub(crate) idle_timeout_ms: Option<u64>,
    pub(crate) context_idle_ms: Option<u64>,
}

/// `session.start.flow`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Flow {
    pub(crate) max_ahead_ms: Option<u64>,
    pub(crate) release: Option<String>,
}

/// How a context is to sound; what is left out is the session's default, then the bundle's.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Options {
    pub(crate) model: Option<String>,
    pub(crate) voice: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) style: Option<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) cfg: Option<f32>,
    pub(crate) sampling: Sampling,
    pub(crate) text: TextRules,
    pub(crate) speed: Option<f32>,
    pub(crate) initial_ms: Option<u64>,
    pub(crate) prompt_max_frames: Option<serde::de::IgnoredAny>,
    pub(crate) prefix: Option<serde::de::IgnoredAny>,
}

/// How codes are drawn.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Sampling {
    pub(crate) temperature: Option<f32>,
    pub(crate) acoustic_temperature: Option<f32>,
    pub(crate) top_p: Option<f32>,
    pub(crate) top_k: Option<u32>,
    pub(crate) frequency_penalty: Option<f32>,
    pub(crate) acoustic_top_k: Option<u32>,
}

/// What is done to text before it is spoken.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct TextRules {
    pub(crate) markdown: Option<bool>,
    pub(crate) emoji: Option<bool>,
    pub(crate) verbalize: Option<serde::de::IgnoredAny>,
    pub(crate) ssml: Option<serde::de::IgnoredAny>,
    pub(crate) locale: Option<serde::de::IgnoredAny>,
    pub(crate) lexicon: Option<serde::de::IgnoredAny>,
}

/// `context.open`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Open {
    pub(crate) ctx: String,
    pub(crate) replaces: Option<Replaces>,
    pub(crate) priority: Option<u8>,
    pub(crate) after: Option<String>,
    pub(crate) prosody_from: Option<String>,
    pub(crate) messages: Option<serde::de::IgnoredAny>,
    #[serde(flatten)]
    pub(crate) options: Options,
}

/// Which contexts a new one takes the place of.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Replaces {
    /// `"*"`, all; any other single name is that context.
    One(String),
    /// These.
    Many(Vec<String>),
}

/// `text`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct TextDelta {
    pub(crate) ctx: String,
    pub(crate) seq: u64,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) end: bool,
}

/// `flush`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Flush {
    pub(crate) ctx: String,
    pub(crate) id: Option<String>,
}

/// `end`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct End {
    pub(crate) ctx: String,
}

/// `cancel`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Cancel {
    pub(crate) ctx: String,
    pub(crate) played: Option<u64>,
    pub(crate) at: Option<String>,
}

/// `played`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Played {
    pub(crate) ctx: String,
    pub(crate) pos: u64,
}

/// `ping`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Ping {
    #[serde(default)]
    pub(crate) t: serde_json::Value,
}

/// `session.end`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct EndSession {
    #[serde(default)]
    pub(crate) drain: bool,
}

/// Why a message could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseError {
    /// Not a JSON object, or a field of a wrong type.
    #[error("{0}")]
    Malformed(String),
    /// A `type` that this version does not have.
    #[error("type {0:?} is not known")]
    UnknownType(String),
}

/// Reads a client's message.
///
/// # Errors
/// [`ParseError`]; an unknown type is told apart, for it is not a client's mistake.
pub(crate) fn parse(message: &str) -> Result<ClientEvent, ParseError> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        r#type: Cow<'a, str>,
    }
    fn body<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, ParseError> {
        serde_json::from_str(json).map_err(|e| ParseError::Malformed(e.to_string()))
    }
    let json = &*mend_surrogates(message);
    Ok(match &*body::<Head<'_>>(json)?.r#type {
        "session.start" => ClientEvent::Start(body(json)?),
        "context.open" => ClientEvent::Open(body(json)?),
        "text" => ClientEvent::Text(body(json)?),
        "flush" => ClientEvent::Flush(body(json)?),
        "end" => ClientEvent::End(body(json)?),
        "cancel" => ClientEvent::Cancel(body(json)?),
        "played" => ClientEvent::Played(body(json)?),
        "ping" => ClientEvent::Ping(body(json)?),
        "session.end" => ClientEvent::EndSession(body(json)?),
        other => return Err(ParseError::UnknownType(other.chars().take(64).collect())),
    })
}

/// A client that cuts its text between two UTF-16 units writes half a pair as an escape, which is no character: it
/// becomes U+FFFD, and the rest of the message is as it was.
fn mend_surrogates(json: &str) -> Cow<'_, str> {
    let unit = |at: usize| -> Option<u16> {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut mended, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = json[at..].find('\\') {
        at += found;
        let pair = matches!(unit(at), Some(0xd800..=0xdbff))
            && matches!(unit(at + 6), Some(0xdc00..=0xdfff));
        match unit(at) {
            Some(_) if pair => at += 12,
            Some(0xd800..=0xdfff) => {
                mended.push_str(&json[copied..at]);
                mended.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            // An escaped backslash does not begin another escape. What follows may be several bytes long.
            _ => at += 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    mended.push_str(&json[copied..]);
    Cow::Owned(mended)
}

/// What the server says.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub(crate) enum ServerEvent {
    #[serde(rename = "session.ready")]
    Ready(Box<Ready>),
    #[serde(rename = "context.opened")]
    Opened(Opened),
    #[serde(rename = "commit")]
    Commit(Commit),
    #[serde(rename = "flushed")]
    Flushed {
        ctx: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        pos: u64,
        text_offset: usize,
    },
    #[serde(rename = "context.parked")]
    Parked { ctx: String, ahead_ms: u64 },
    #[serde(rename = "context.resumed")]
    Resumed { ctx: String, ahead_ms: u64 },
    #[serde(rename = "context.done")]
    Done(Box<Done>),
    #[serde(rename = "context.cancelled")]
    Cancelled(Box<Cancelled>),
    #[serde(rename = "pressure")]
    Pressure { ctx: String, pending_chars: usize, limit: usize },
    #[serde(rename = "error")]
    Error(Box<ErrorEvent>),
    #[serde(rename = "session.closing")]
    Closing { reason: &'static str, in_ms: u64 },
    #[serde(rename = "pong")]
    Pong { t: serde_json::Value, server_time: u64 },
}

impl ServerEvent {
    /// Its JSON as the `n`th message of a session.
    pub(crate) fn to_json(&self, n: u64) -> String {
        #[derive(Serialize)]
        struct Numbered<'a> {
            #[serde(flatten)]
            event: &'a ServerEvent,
            n: u64,
        }
        serde_json::to_string(&Numbered { event: self, n })
            .expect("maps with string keys have a JSON; this is a bug")
    }
}

/// `session.ready`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Ready {
    pub(crate) session_id: String,
    pub(crate) token: String,
    pub(crate) resumed: bool,
    pub(crate) resume_window_ms: u64,
    pub(crate) synthetic: bool,
    pub(crate) server: Server,
    pub(crate) models: Vec<Model>,
    pub(crate) voices: Vec<Voice>,
    pub(crate) audio: Audio,
    pub(crate) limits: WireLimits,
}

/// Who serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// The session's sound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Audio {
    pub(crate) codec: Codec,
    pub(crate) sample_rate: u32,
    pub(crate) frame_ms: u32,
    pub(crate) pre_skip: u16,
}

/// What a client must keep to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct WireLimits {
    pub(crate) max_contexts: usize,
    pub(crate) max_text_chars: usize,
    pub(crate) max_pending_chars: usize,
    pub(crate) max_message_bytes: usize,
    pub(crate) max_ahead_ms: u64,
    pub(crate) retain_ms: u64,
    pub(crate) idle_timeout_ms: u64,
}

/// `context.opened`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Opened {
    pub(crate) ctx: String,
    pub(crate) handle: u32,
    pub(crate) codec: Codec,
    pub(crate) clock: u32,
    pub(crate) pre_skip: u16,
    pub(crate) queue_ms: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored: Vec<&'static str>,
}

/// `commit`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Commit {
    pub(crate) ctx: String,
    pub(crate) index: u32,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) text: TextRange,
    pub(crate) words: Vec<[u64; 4]>,
    pub(crate) align: &'static str,
    pub(crate) r#final: bool,
}

/// Code points of a context's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct TextRange {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// `context.done`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Done {
    pub(crate) ctx: String,
    pub(crate) samples: u64,
    pub(crate) seq_last: i64,
    pub(crate) text_chars: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) flags: Vec<&'static str>,
    pub(crate) usage: Usage,
    pub(crate) timing: Timing,
}

/// What a context came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Usage {
    pub(crate) audio_ms: u64,
    pub(crate) chars: usize,
}

/// How long a context took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Timing {
    pub(crate) queue_ms: u64,
    pub(crate) first_audio_ms: Option<u64>,
    pub(crate) rtf: Option<f64>,
}

/// `context.cancelled`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Cancelled {
    pub(crate) ctx: String,
    pub(crate) late: bool,
    pub(crate) reason: &'static str,
    pub(crate) generated: u64,
    pub(crate) sent: u64,
    pub(crate) played: u64,
    pub(crate) exact: bool,
    pub(crate) heard: Heard,
    pub(crate) dropped_ms: u64,
    pub(crate) freed: Freed,
}

/// What a cancel gave back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Freed {
    pub(crate) kv_blocks: usize,
    pub(crate) ms: u64,
}

/// `error`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ErrorEvent {
    pub(crate) code: Code,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ctx: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) r#ref: Option<Reference>,
    pub(crate) fatal: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_ms: Option<u64>,
}

/// The message that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Reference {
    pub(crate) r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seq: Option<u64>,
}

impl ErrorEvent {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            ctx: None,
            r#ref: None,
            fatal: matches!(code.severity(), Severity::Session(_)),
            retry_after_ms: None,
        }
    }

    pub(crate) fn of(self, ctx: &str) -> Self {
        Self { ctx: Some(ctx.to_owned()), ..self }
    }

    pub(crate) fn about(self, r#type: &'static str, seq: Option<u64>) -> Self {
        Self { r#ref: Some(Reference { r#type, seq }), ..self }
    }
}

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
