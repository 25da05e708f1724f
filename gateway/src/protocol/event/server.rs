//! What the server says, and how it is written.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{Code, Severity};
use crate::protocol::alignment::{Align, Heard};
use crate::protocol::catalogue::{Model, Voice};
use crate::protocol::format::Codec;

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
    #[serde(rename = "text.delta")]
    TextDelta { ctx: String, seq: u64, text: String },
    #[serde(rename = "text.done")]
    TextDone { ctx: String, text: String },
    #[serde(rename = "flushed")]
    Flushed {
        ctx: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        pos: u64,
        text_offset: usize,
    },
    #[serde(rename = "mark")]
    Mark { ctx: String, id: String, pos: u64, text_offset: usize },
    #[serde(rename = "context.updated")]
    Updated { ctx: String, ignored: Vec<&'static str> },
    #[serde(rename = "context.notice")]
    Notice { ctx: String, what: String, text: TextRange },
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_text_seq: Option<BTreeMap<String, u64>>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) words: Option<Vec<[u64; 4]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chars: Option<Vec<[u64; 4]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) align: Option<Align>,
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
    /// Why an answer ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) finish: Option<&'static str>,
    pub(crate) usage: Usage,
    /// What stands in `usage` and `finish` of an answer, for who counts it.
    #[serde(skip)]
    pub(crate) counted: Option<engine::Usage>,
    pub(crate) timing: Timing,
}

/// What a context came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Usage {
    pub(crate) audio_ms: u64,
    pub(crate) chars: usize,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<Tokens>,
}

/// What an answer took and gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Tokens {
    pub(crate) prompt_tokens: usize,
    pub(crate) prompt_audio_tokens: usize,
    pub(crate) text_tokens: usize,
    pub(crate) audio_frames: usize,
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
