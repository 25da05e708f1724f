//! The native protocol `dovecote.v1` as a pure state machine: no socket, no engine, no clock, no randomness.
//!
//! ```text
//!  client's message --+                              +-- Output  what the engine is to do
//!  engine's event   --+--> Session::handle_input --> +-- Frame   what goes on the wire, when the wire has room
//!  the clock        --+                              +-- poll_timeout  when to come back with Input::Tick
//! ```
//!
//! The contract with the driver: obey every [`Output`] before the next input; take frames with [`Session::poll_frame`]
//! only when the wire can take one, for what was not taken can still be dropped by a barge-in; read a context's sound
//! only while [`Session::wants_audio`] says so, and the client's messages only while [`Session::wants_messages`] does.
//! Time is a duration since the session began, and never runs backwards.

mod alignment;
mod catalogue;
mod context;
pub(crate) mod event;
mod format;
mod incoming;
mod note;
mod pacer;
mod reading;
mod ring;
mod session;
mod timer;

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub(crate) use alignment::{Alignment, Timed};
pub(crate) use catalogue::Names;
pub use catalogue::{Catalogue, Hears, Model, Voice};
pub(crate) use context::{packets, payload};
pub(crate) use event::mend_surrogates;
pub(crate) use format::Asked;
pub use format::{Clock, Codec, Format, OPUS_PRE_SKIP};
pub use note::{Gap, Note, Sound};
pub use reading::Reading;
pub(crate) use ring::Sound as SoundFrame;
pub(crate) use session::{Refused, Said, text_options};
pub use session::{Session, Setup};

use crate::config::seconds;

/// Name of the protocol, as a WebSocket subprotocol.
pub const SUBPROTOCOL: &str = "dovecote.v1";

/// Names a context in the binary frames of its session; counts from 1 and is never reused.
pub type Handle = u32;

/// What happens to a session.
#[derive(Debug)]
pub enum Input {
    /// A text frame of the client.
    Message(String),
    /// A binary frame of the client.
    Binary(Bytes),
    /// The client's answer to a ping.
    Pong,
    /// A message above the limit was begun; it was not read.
    TooBig,
    /// A text frame that is not UTF-8.
    NotUtf8,
    /// A message was begun and did not end within this time; nothing more is read.
    TooSlow(Duration),
    /// The client may speak no longer, and why.
    Unauthorized(&'static str),
    /// The client closed.
    Gone,
    /// The socket is gone without a word: reset, or not to be written to.
    Lost,
    /// The client says no more, but may still listen.
    HalfClosed,
    /// The answer to [`Output::Resume`], when the session is not there or cannot go on.
    ResumeRefused,
    /// The engine's answer to [`Output::Open`] and [`Output::Answer`].
    Opened {
        /// Which context.
        context: Handle,
        /// Whether it is open.
        answer: Result<(), engine::Error>,
    },
    /// The answer to [`Output::Read`].
    Read {
        /// Which context.
        context: Handle,
        /// Its messages, or why they are not to be had.
        messages: Result<Vec<engine::answer::Message>, String>,
    },
    /// The engine does not take what [`Output::Sound`] or [`Output::SoundEnd`] told it.
    SoundRefused {
        /// Which context.
        context: Handle,
        /// Why not.
        error: engine::Error,
    },
    /// The answer to [`Output::Cancel`].
    Freed {
        /// Which context.
        context: Handle,
        /// What it held: blocks that are free before the next step.
        kv_blocks: usize,
    },
    /// Something the engine tells about a context. Sound comes as packets instead.
    Engine {
        /// Which context.
        context: Handle,
        /// What it tells.
        event: engine::Event,
    },
    /// Sound of a context, ready to send.
    Packets {
        /// Which context.
        context: Handle,
        /// The packets, right behind those before.
        packets: Vec<Packet>,
        /// Samples at 24 kHz that the engine has given for this context so far.
        generated: u64,
    },
    /// The server goes down, and may take this long about it.
    Drain(Duration),
    /// A deadline of [`Session::poll_timeout`] has come.
    Tick,
}

/// What the engine and the socket's owner are to do, in this order, at once.
#[derive(Debug)]
pub enum Output {
    /// Open a context, and answer with [`Input::Opened`] before anything else.
    Open {
        /// What it will be called.
        context: Handle,
        /// What it is to be.
        request: Box<engine::Request>,
        /// What its packets are to be.
        format: Format,
    },
    /// Open a context that answers, and answer with [`Input::Opened`] before anything else.
    Answer {
        /// What it will be called.
        context: Handle,
        /// What it is asked.
        request: Box<engine::answer::Request>,
        /// What its packets are to be.
        format: Format,
    },
    /// Read messages with files of sound, and answer with [`Input::Read`] when that is done; other inputs may come before, and
    /// none need come when the context was cancelled meanwhile.
    Read {
        /// Which context.
        context: Handle,
        /// The messages.
        reading: Box<Reading>,
    },
    /// More of a live recording.
    Sound {
        /// Which context.
        context: Handle,
        /// Its place among the live recordings of the request.
        recording: usize,
        /// Samples at 24 kHz.
        samples: Vec<f32>,
    },
    /// A live recording has ended.
    SoundEnd {
        /// Which context.
        context: Handle,
        /// Its place among the live recordings of the request.
        recording: usize,
    },
    /// More text.
    Speak {
        /// Which context.
        context: Handle,
        /// The text.
        text: String,
    },
    /// Speak what there is.
    Flush(Handle),
    /// No more text.
    End(Handle),
    /// Speak in another manner, from the next chunk on.
    Restyle {
        /// Which context.
        context: Handle,
        /// The new manner.
        manner: engine::Manner,
    },
    /// Stop now, and answer with [`Input::Freed`]. Nothing of the context is wanted any more.
    Cancel(Handle),
    /// The listener has heard so much.
    Played {
        /// Which context.
        context: Handle,
        /// Samples at 24 kHz.
        samples: u64,
    },
    /// From now on somebody may come back for this session by its id and token.
    Keep,
    /// The client wants another session: hand its socket over to that one, or answer with [`Input::ResumeRefused`].
    Resume(Box<Resume>),
    /// Drop the socket without further words, for nobody is there; the session stays, unless [`Output::Hangup`] follows.
    Detach,
    /// Drop the socket without further words: the session is over.
    Hangup,
}

/// What a client says that comes back.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
pub struct Resume {
    /// The session it wants.
    pub session_id: String,
    /// What `session.ready` gave it.
    pub token: String,
    /// The last message it got.
    #[serde(default)]
    pub last_n: u64,
    /// The last packet it got, of each context that it got any of.
    #[serde(default)]
    pub last: std::collections::BTreeMap<String, u32>,
}

/// One message on its way to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A JSON object.
    Text(String),
    /// Sound, with its header.
    Audio(Bytes),
    /// "Are you there?"
    Ping,
    /// The end.
    Close {
        /// WebSocket close code.
        code: u16,
        /// In a word.
        reason: &'static str,
    },
}

/// One packet of sound in the session's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// What goes on the wire behind the header.
    pub bytes: Bytes,
    /// Its length on the media clock.
    pub duration: u64,
    /// Nothing but silence, told in a byte or two.
    pub silent: bool,
    /// The last packet of its context.
    pub last: bool,
}

/// What a session may cost, and how long it may wait: `[limits]` of the settings file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Contexts that are open or not yet sent to their end.
    pub max_contexts: usize,
    /// Contexts of a client of another vendor's protocol that take no more text and are not yet sent to their end; those
    /// that take text have `max_contexts` for themselves.
    pub max_draining_contexts: usize,
    /// Contexts over the whole life of a session: their ids are remembered, so that none is used twice.
    pub max_context_ids: usize,
    /// Characters of one context.
    pub max_text_chars: usize,
    /// Characters of one context that no chunk has taken yet.
    pub max_pending_chars: usize,
    /// Bytes of one message of the client.
    pub max_message_bytes: usize,
    /// Sound that waits for the socket, in bytes, all contexts together.
    pub max_egress_bytes: usize,
    /// What a session that outlives its socket may keep of what it sent, in bytes.
    pub max_resume_bytes: usize,
    /// Sound that a client may send for one context.
    #[serde(rename = "max_recording_s", with = "seconds")]
    pub max_recording: Duration,
    /// How long a context that is over can still be asked about.
    #[serde(rename = "retain_s", with = "seconds")]
    pub retain: Duration,
    /// How long the first message may take.
    #[serde(rename = "start_s", with = "seconds")]
    pub start: Duration,
    /// How long the client may take nothing while something waits for it.
    #[serde(rename = "stall_s", with = "seconds")]
    pub stall: Duration,
    /// Between two pings, and for the answer to one.
    #[serde(rename = "ping_s", with = "seconds")]
    pub ping: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_contexts: 64,
            max_draining_contexts: 256,
            max_context_ids: 65_536,
            max_text_chars: 100_000,
            max_pending_chars: 8_000,
            max_message_bytes: 65_536,
            max_egress_bytes: 1 << 20,
            max_resume_bytes: 4 << 20,
            max_recording: Duration::from_secs(300),
            retain: Duration::from_secs(60),
            start: Duration::from_secs(5),
            stall: Duration::from_secs(10),
            ping: Duration::from_secs(20),
        }
    }
}

/// Milliseconds, as the wire has them.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
