//! Notices a message that was begun and does not end: a client that sends a byte now and then holds a place for nothing.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use super::wire::Meter;

/// Bytes of a client's frame beside its payload, for payloads of control frames: header and mask.
const CONTROL_OVERHEAD: u64 = 6;

/// Watches how long a message takes from its first byte to its last.
pub(crate) struct Patience {
    meter: Meter,
    limit: Duration,
    /// Bytes that belong to messages which are complete.
    settled: u64,
    late: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    /// Nothing is under way on the socket now.
    pub(crate) fn new(meter: Meter, limit: Duration) -> Self {
        let settled = meter.bytes();
        Self { meter, limit, settled, late: None }
    }

    /// A message of text or bytes is complete.
    pub(crate) fn complete(&mut self) {
        self.settled = self.meter.bytes();
        self.late = None;
    }

    /// A control frame is complete. It may stand between the fragments of a message, so only its own bytes are settled.
    pub(crate) fn control(&mut self, payload_bytes: usize) {
        let bytes = CONTROL_OVERHEAD + payload_bytes as u64;
        self.settled = (self.settled + bytes).min(self.meter.bytes());
        if self.settled == self.meter.bytes() {
            self.late = None;
        }
    }

    /// To be asked when nothing complete is there. Ready when the limit is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        if self.settled == self.meter.bytes() {
            return Poll::Pending;
        }
        let limit = self.limit;
        let late = self.late.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        late.as_mut().poll(cx).map(|()| limit)
    }
}
