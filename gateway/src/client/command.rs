//! What a client says.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

/// How a session is to be. What is left out is the server's default.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field of session.start means")]
pub struct SessionOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<AudioOptions>,
    pub defaults: ContextOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<Timestamps>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_window_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_idle_ms: Option<u64>,
}

/// Who the client is, for the server's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ClientName {
    pub name: String,
    pub version: String,
}

/// The session to go on with; [`super::Session::resume`] gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resume {
    /// As told by `session.ready`.
    pub session_id: String,
    /// As told by `session.ready`.
    pub token: String,
    /// Number of the last message that came.
    pub last_n: u64,
    /// Number of the last packet that came, of each context.
    pub last: BTreeMap<String, u32>,
    /// Whose frames carry which handle: the server does not say it again.
    #[serde(skip)]
    pub(super) names: HashMap<u32, String>,
}

/// The session's sound.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field of audio means")]
pub struct AudioOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codec: Option<crate::protocol::Codec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bitrate: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack: Option<u32>,
}

/// How finely the times of the text are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Timestamps {
    None,
    Word,
    Char,
}

/// How far the server may run ahead of the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// In milliseconds of sound.
    pub max_ahead_ms: u64,
}

/// How a context is to sound. What is left out is the session's default, then the bundle's.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field of defaults means")]
pub struct ContextOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cfg: Option<f32>,
}

/// How a context begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Opening {
    /// How it is to sound.
    #[serde(flatten)]
    pub options: ContextOptions,
    /// Contexts that it interrupts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<String>,
    /// The context that is heard out before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The context whose tone it carries on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prosody_from: Option<String>,
    /// 0 to 9, the most urgent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// A conversation that is to be answered, as OpenAI writes it: a list of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<serde_json::Value>,
    /// `text` and `audio`, or one of them; empty: both.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modalities: Vec<String>,
}

/// Where a context that is cancelled stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CancelAt {
    /// At once.
    #[default]
    Now,
    /// Behind the word that is being heard.
    Word,
    /// Behind the sentence that is being heard.
    Sentence,
}

/// A message of the client.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub(super) enum Command<'a> {
    #[serde(rename = "session.start")]
    Start(&'a SessionOptions),
    #[serde(rename = "context.open")]
    Open {
        ctx: &'a str,
        #[serde(flatten)]
        opening: &'a Opening,
    },
    #[serde(rename = "text")]
    Text { ctx: &'a str, seq: u64, text: &'a str },
    #[serde(rename = "flush")]
    Flush { ctx: &'a str, id: &'a str },
    #[serde(rename = "mark")]
    Mark { ctx: &'a str, id: &'a str },
    #[serde(rename = "end")]
    End { ctx: &'a str },
    #[serde(rename = "audio.begin")]
    AudioBegin { ctx: &'a str, id: &'a str, codec: crate::protocol::Codec, sample_rate: u32 },
    #[serde(rename = "audio.end")]
    AudioEnd { ctx: &'a str, id: &'a str },
    #[serde(rename = "cancel")]
    Cancel {
        ctx: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        played: Option<u64>,
        at: CancelAt,
    },
    #[serde(rename = "played")]
    Played { ctx: &'a str, pos: u64 },
    #[serde(rename = "ping")]
    Ping { t: u64 },
    #[serde(rename = "session.end")]
    EndSession { drain: bool },
}

impl Command<'_> {
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("maps with string keys have a JSON; this is a bug")
    }
}
