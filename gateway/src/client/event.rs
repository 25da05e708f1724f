//! What a server says, as far as a client needs it. What is not known is passed over, as the protocol asks for.

use serde::Deserialize;

use super::frame::AudioFrame;

/// Something that came from the server.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A context is open.
    Opened(Opened),
    /// Sound.
    Audio(AudioFrame),
    /// A model has written more.
    TextDelta(TextDelta),
    /// A model has written a text to its end.
    TextDone(TextDone),
    /// Sound and text up to a position are final.
    Commit(Commit),
    /// All sound before a `flush` was sent.
    Flushed(Reached),
    /// All sound before a `mark` was sent.
    Mark(Reached),
    /// A context waits for its listener.
    Parked(Ahead),
    /// A context goes on.
    Resumed(Ahead),
    /// A context came to its end.
    Done(Done),
    /// A context was stopped; no sound of it follows.
    Cancelled(Cancelled),
    /// Text piles up.
    Pressure(Pressure),
    /// The server complains.
    Error(ServerError),
    /// The server is about to close the session.
    Closing(Closing),
    /// The answer to a `ping`.
    Pong,
    /// The server has closed the connection; nothing follows.
    Closed(Closed),
}

/// `session.ready`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct Ready {
    pub session_id: String,
    pub token: String,
    #[serde(default)]
    pub resumed: bool,
    #[serde(default)]
    pub resume_window_ms: u64,
    /// Text that a resumed session has taken, by context.
    #[serde(default)]
    pub next_text_seq: std::collections::BTreeMap<String, u64>,
    pub audio: Audio,
    pub limits: Limits,
}

/// The session's sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Audio {
    /// How it is written.
    pub codec: crate::protocol::Codec,
    /// Rate of the media clock, in Hz.
    pub sample_rate: u32,
    /// Length of a packet, in milliseconds.
    pub frame_ms: u32,
    /// Samples of a decoder's output before the first real one.
    pub pre_skip: u16,
}

/// What a client must keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct Limits {
    pub max_contexts: usize,
    pub max_text_chars: usize,
    pub max_pending_chars: usize,
    pub max_message_bytes: usize,
    pub max_ahead_ms: u64,
    pub retain_ms: u64,
    pub idle_timeout_ms: u64,
}

/// `context.opened`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct Opened {
    pub ctx: String,
    pub handle: u32,
    pub clock: u32,
    pub pre_skip: u16,
    #[serde(default)]
    pub queue_ms: u64,
    #[serde(default)]
    pub ignored: Vec<String>,
}

/// `commit`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct Commit {
    pub ctx: String,
    pub index: u32,
    pub from: u64,
    pub to: u64,
    pub text: TextRange,
    /// First and last code point, first and last position of each word that ends here.
    #[serde(default)]
    pub words: Vec<[u64; 4]>,
    #[serde(default)]
    pub r#final: bool,
}

/// `text.delta`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct TextDelta {
    pub ctx: String,
    pub seq: u64,
    pub text: String,
}

/// `text.done`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct TextDone {
    pub ctx: String,
    pub text: String,
}

/// Code points of a context's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct TextRange {
    pub from: usize,
    pub to: usize,
}

/// `flushed` or `mark`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct Reached {
    pub ctx: String,
    #[serde(default)]
    pub id: Option<String>,
    pub pos: u64,
    pub text_offset: usize,
}

/// `context.parked` or `context.resumed`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct Ahead {
    pub ctx: String,
    pub ahead_ms: u64,
}

/// `context.done`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct Done {
    pub ctx: String,
    pub samples: u64,
    pub seq_last: i64,
    pub text_chars: usize,
    #[serde(default)]
    pub flags: Vec<String>,
    /// Why an answer ended: `stop` or `length`.
    #[serde(default)]
    pub finish: Option<String>,
    pub timing: Timing,
}

/// How long a context took.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct Timing {
    pub queue_ms: u64,
    pub first_audio_ms: Option<u64>,
    pub rtf: Option<f64>,
}

/// `context.cancelled`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct Cancelled {
    pub ctx: String,
    pub late: bool,
    pub reason: String,
    pub generated: u64,
    pub sent: u64,
    pub played: u64,
    pub exact: bool,
    pub heard: Heard,
    pub dropped_ms: u64,
    pub freed: Freed,
}

/// What a listener has heard of a context.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct Heard {
    pub text_to: usize,
    pub text: String,
    pub last_word_index: i64,
    pub partial_word: bool,
}

/// What a cancel gave back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct Freed {
    pub kv_blocks: usize,
    pub ms: u64,
}

/// `pressure`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct Pressure {
    pub ctx: String,
    pub pending_chars: usize,
    pub limit: usize,
}

/// `error`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct ServerError {
    pub code: String,
    pub message: String,
    #[serde(default)]
    pub ctx: Option<String>,
    #[serde(default)]
    pub fatal: bool,
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
}

/// `session.closing`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/protocol.md says what each field means")]
pub struct Closing {
    pub reason: String,
    pub in_ms: u64,
}

/// The end of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// WebSocket close code; none when the connection just ended.
    pub code: Option<u16>,
    /// In a word.
    pub reason: String,
}

/// A text message of the server, with its number in the session.
#[derive(Debug, Deserialize)]
pub(super) struct Numbered {
    #[serde(default)]
    pub(super) n: u64,
    #[serde(flatten)]
    pub(super) message: Message,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Message {
    #[serde(rename = "session.ready")]
    Ready(Box<Ready>),
    #[serde(rename = "context.opened")]
    Opened(Opened),
    #[serde(rename = "commit")]
    Commit(Commit),
    #[serde(rename = "text.delta")]
    TextDelta(TextDelta),
    #[serde(rename = "text.done")]
    TextDone(TextDone),
    #[serde(rename = "flushed")]
    Flushed(Reached),
    #[serde(rename = "mark")]
    Mark(Reached),
    #[serde(rename = "context.parked")]
    Parked(Ahead),
    #[serde(rename = "context.resumed")]
    Resumed(Ahead),
    #[serde(rename = "context.done")]
    Done(Done),
    #[serde(rename = "context.cancelled")]
    Cancelled(Cancelled),
    #[serde(rename = "pressure")]
    Pressure(Pressure),
    #[serde(rename = "error")]
    Error(ServerError),
    #[serde(rename = "session.closing")]
    Closing(Closing),
    #[serde(rename = "pong")]
    Pong,
    /// Of a later version.
    #[serde(other)]
    Unknown,
}

impl Message {
    /// As an event; nothing for what is of no meaning to a running session.
    pub(super) fn into_event(self) -> Option<Event> {
        Some(match self {
            Self::Opened(event) => Event::Opened(event),
            Self::Commit(event) => Event::Commit(event),
            Self::TextDelta(event) => Event::TextDelta(event),
            Self::TextDone(event) => Event::TextDone(event),
            Self::Flushed(event) => Event::Flushed(event),
            Self::Mark(event) => Event::Mark(event),
            Self::Parked(event) => Event::Parked(event),
            Self::Resumed(event) => Event::Resumed(event),
            Self::Done(event) => Event::Done(event),
            Self::Cancelled(event) => Event::Cancelled(event),
            Self::Pressure(event) => Event::Pressure(event),
            Self::Error(event) => Event::Error(event),
            Self::Closing(event) => Event::Closing(event),
            Self::Pong => Event::Pong,
            Self::Ready(_) | Self::Unknown => return None,
        })
    }
}
