//! What happens in a session that is worth counting, told beside the wire. Knows no text and no name that a client chose.

use std::time::Duration;

use super::Handle;
use super::event::ServerEvent;
use crate::error::Code;

/// Something worth counting.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// A context is open.
    Opened,
    /// Text was accepted.
    Text {
        /// Its length in code points.
        chars: usize,
    },
    /// Sound goes to the socket.
    Sound(Sound),
    /// All sound of a context was sent.
    Done {
        /// What an answer took and gave.
        usage: Option<engine::Usage>,
        /// Sound of it.
        sound: Duration,
    },
    /// A context was cancelled.
    Cancelled {
        /// Why.
        reason: &'static str,
        /// Whether all of its sound had been sent before.
        late: bool,
        /// From the cancel to its answer.
        answered_after: Duration,
    },
    /// A context is held: it is too far ahead of its listener.
    Parked,
    /// A client was told that its text piles up.
    Pressed,
    /// A client was told of an error.
    Error(Code),
    /// The session closes, with this WebSocket close code.
    Closed(u16),
}

/// Packets that go to the socket together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sound {
    /// Whose.
    pub context: Handle,
    /// How many.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: usize,
    /// How long they sound.
    pub duration: Duration,
    /// Whether they are the context's last.
    pub is_last: bool,
    /// From the context's first text to these, when they are its first.
    pub first_after: Option<Duration>,
    /// How long the listener was dry before these, by the clock.
    pub gap: Option<Gap>,
    /// Whether they had waited on purpose: their context was held.
    pub was_held: bool,
}

/// A listener who ran dry in the middle of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// For how long.
    pub length: Duration,
    /// Whether there was text all the time: then the sound was late, else the text.
    pub had_text: bool,
}

impl Note {
    /// What is worth counting of a message, other than the answer to a cancel.
    pub(super) fn of(event: &ServerEvent) -> Option<Self> {
        Some(match event {
            ServerEvent::Opened(_) => Self::Opened,
            ServerEvent::Done(done) => Self::Done {
                usage: done.counted,
                sound: Duration::from_millis(done.usage.audio_ms),
            },
            ServerEvent::Parked { .. } => Self::Parked,
            ServerEvent::Pressure { .. } => Self::Pressed,
            ServerEvent::Error(error) => Self::Error(error.code),
            _ => return None,
        })
    }
}
