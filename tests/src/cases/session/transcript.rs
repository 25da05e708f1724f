//! Everything that went over one connection, in order and with its time.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

/// Bytes of the header of a binary audio frame.
const HEADER: usize = 20;

/// Something that was sent or came.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// A JSON message of the client.
    Sent(Value),
    /// A JSON message of the server.
    Event(Value),
    /// Sound.
    Audio(Audio),
    /// The server pings.
    Ping,
    /// The client pings.
    Pinged,
    /// The server answers a ping.
    Pong,
    /// A close frame, with its code (1005: none) and its reason.
    Close { code: u16, reason: Vec<u8> },
    /// The end of the stream.
    Gone,
    /// A frame that this protocol does not have.
    Odd(String),
}

/// One binary frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Audio {
    /// Whose it is, by the handle that was told for it; empty: nobody's.
    pub(super) ctx: String,
    /// Which of a client's turns, where names are used again; numbers and positions begin again in each.
    pub(super) turn: usize,
    pub(super) seq: u32,
    pub(super) pos: u64,
    pub(super) payload: Vec<u8>,
}

/// With its time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    pub(super) at: Duration,
    pub(super) what: What,
}

/// The record of one connection.
#[derive(Debug)]
pub(super) struct Transcript {
    seen: Mutex<(Vec<Seen>, BTreeMap<u32, String>)>,
    grown: watch::Sender<usize>,
}

impl Seen {
    /// The type of a server's message.
    pub(super) fn event(&self) -> Option<(&str, &Value)> {
        match &self.what {
            What::Event(event) => Some((event["type"].as_str().unwrap_or_default(), event)),
            _ => None,
        }
    }

    /// Whether it is a message of this type, of this context if one is named.
    pub(super) fn is_event(&self, kind: &str, ctx: Option<&str>) -> bool {
        let of = |event: &Value| ctx.is_none_or(|ctx| event["ctx"] == ctx);
        self.event().is_some_and(|(k, event)| k == kind && of(event))
    }

    /// Sound of a context.
    pub(super) fn audio_of(&self, ctx: &str) -> Option<&Audio> {
        match &self.what {
            What::Audio(audio) if audio.ctx == ctx => Some(audio),
            _ => None,
        }
    }
}

impl Default for Transcript {
    fn default() -> Self {
        Self { seen: Mutex::default(), grown: watch::Sender::new(0) }
    }
}

impl Transcript {
    fn lock(&self) -> MutexGuard<'_, (Vec<Seen>, BTreeMap<u32, String>)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds something.
    pub(super) fn add(&self, at: Duration, what: What) {
        let mut record = self.lock();
        if let What::Event(event) = &what
            && let (Some(ctx), Some(handle)) = (event["ctx"].as_str(), event["handle"].as_u64())
        {
            record.1.insert(handle as u32, ctx.to_owned());
        }
        record.0.push(Seen { at, what });
        let length = record.0.len();
        drop(record);
        self.grown.send_replace(length);
    }

    /// Adds a binary frame of the server.
    pub(super) fn add_binary(&self, at: Duration, bytes: &[u8]) {
        let Some((header, payload)) = bytes.split_at_checked(HEADER) else {
            return self.add(at, What::Odd(format!("a binary frame of {} bytes", bytes.len())));
        };
        let number = |range: std::ops::Range<usize>| {
            header[range].iter().fold(0_u64, |n, &byte| n << 8 | u64::from(byte))
        };
        let (kind, flags, count) = (header[0], header[1], number(2..4));
        if kind != 1 || count != 1 || flags & 0x10 != 0 {
            return self.add(at, What::Odd(format!("a frame of kind {kind}, {count} packets")));
        }
        let ctx = self.lock().1.get(&(number(4..8) as u32)).cloned().unwrap_or_default();
        let (seq, pos) = (number(8..12) as u32, number(12..20));
        self.add(at, What::Audio(Audio { ctx, turn: 0, seq, pos, payload: payload.to_vec() }));
    }

    /// All so far.
    pub(super) fn all(&self) -> Vec<Seen> {
        self.lock().0.clone()
    }

    /// Looks at all so far.
    pub(super) fn with<T>(&self, look: impl FnOnce(&[Seen]) -> T) -> T {
        look(&self.lock().0)
    }

    /// Waits until `found` finds something.
    pub(super) async fn until<T>(&self, mut found: impl FnMut(&[Seen]) -> Option<T>) -> T {
        let mut grown = self.grown.subscribe();
        loop {
            grown.borrow_and_update();
            if let Some(found) = self.with(&mut found) {
                return found;
            }
            // The sender lives as long as this record.
            let _ = grown.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sound_belongs_to_the_context_that_was_told_its_handle() {
        let transcript = Transcript::default();
        let opened = json!({"type": "context.opened", "ctx": "A", "handle": 7});
        transcript.add(Duration::ZERO, What::Event(opened));
        let mut frame = vec![1, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 0, 9, 9];
        transcript.add_binary(Duration::ZERO, &frame);
        frame[7] = 8;
        transcript.add_binary(Duration::ZERO, &frame);
        frame[0] = 2;
        transcript.add_binary(Duration::ZERO, &frame);
        let all = transcript.all();
        let audio = all[1].audio_of("A").unwrap();
        assert_eq!((audio.seq, audio.pos, &*audio.payload), (3, 256, &[9, 9][..]));
        assert!(all[2].audio_of("").is_some());
        assert!(matches!(all[3].what, What::Odd(_)));
    }
}
