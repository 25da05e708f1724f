//! What the engine tells of the contexts, and what is kept of those that are over.

use std::time::Duration;

use engine::Event;

use super::Session;
use super::answering::learn;
use crate::error::Code;
use crate::protocol::Handle;
use crate::protocol::context::Context;
use crate::protocol::event::{ErrorEvent, ServerEvent, TextRange};
use crate::protocol::timer::Timer;

/// Contexts that are over and can still be asked about; the oldest are forgotten earlier than promised.
const RETAINED_MAX: usize = 256;
/// How far a listener who has reported nothing may be behind the clock.
const LISTENER_LAG_MAX: Duration = Duration::from_secs(10);

impl Session {
    pub(super) fn engine(&mut self, handle: Handle, event: Event, now: Duration) {
        let Some(context) = self.live.get_mut(&handle) else {
            return;
        };
        match event {
            // Comes as packets.
            Event::Audio { .. } => {}
            Event::Segment { .. } | Event::Text { .. } | Event::SegmentEnd(_) => {
                learn(context, event, now);
            }
            Event::Chunk { raw, .. } => {
                context.record.alignment.chunk(raw);
                context.settle_marks();
                let limit = self.setup.limits.max_pending_chars;
                context.pressed &= context.pending_chars() * 5 >= limit * 4;
            }
            Event::Aligned { ends } => context.record.alignment.aligned(&ends),
            Event::ChunkEnd { said, raw, end } => {
                context.record.alignment.chunk_end(&raw, end);
                context.record.remember(said, end, now);
                context.settle_marks();
            }
            Event::Notice(notice) => {
                let (from, to) = (notice.from as usize, notice.to as usize);
                let (ctx, text) = (context.record.name.clone(), TextRange { from, to });
                self.say(ServerEvent::Notice { ctx, what: notice.what, text });
            }
            Event::Flushed { samples } => context.flushed(samples),
            Event::Done(summary) => context.complete(summary),
            Event::Failed(failure) => {
                context.engine_over = true;
                let error = ErrorEvent::new(Code::EngineFailed, failure.to_string())
                    .of(&context.record.name);
                self.error(error);
                self.cancel_live(handle, "error", now);
            }
            // Nobody here asked for it: the engine goes down.
            Event::Cancelled(_) => {
                context.engine_over = true;
                let error = ErrorEvent::new(Code::EngineFailed, "the engine stopped")
                    .of(&context.record.name);
                self.error(error);
                self.cancel_live(handle, "error", now);
            }
        }
    }

    /// A context whose last sound is on the wire.
    pub(super) fn retire(&mut self, handle: Handle, now: Duration) {
        if let Some(context) = self.live.remove(&handle) {
            self.note_end(handle);
            self.keep(*context, now);
        }
    }

    /// The message that goes out next ends a context.
    pub(super) fn note_end(&mut self, handle: Handle) {
        if let Some(ring) = &mut self.ring {
            ring.ended(handle, self.n);
        }
    }

    /// A context is not asked about any more.
    pub(super) fn forget(&mut self, handle: Handle) {
        let record = self.over.remove(&handle);
        if let Some(record) = record.filter(|_| self.setup.is_foreign) {
            // Who gives the names never gives one twice.
            self.names.remove(&record.name);
        }
        self.timers.clear(Timer::Forget(handle));
        if let Some(ring) = &mut self.ring {
            ring.forget(handle);
        }
    }

    /// Keeps what a late cancel will ask for.
    pub(super) fn keep(&mut self, context: Context, now: Duration) {
        let record = context.into_record();
        let handle = record.handle;
        self.timers.clear(Timer::ContextIdle(handle));
        self.timers.clear(Timer::Pace(handle));
        self.timers.set(Timer::Forget(handle), now + self.setup.limits.retain);
        let playing_until = record.pacer.dry_at().map_or(now, |at| at.max(now));
        self.touch(playing_until);
        // Meanwhile more of the others was heard.
        let surely = now.saturating_sub(LISTENER_LAG_MAX);
        self.over.values_mut().for_each(|record| record.forget_heard(surely));
        self.over.insert(handle, Box::new(record));
        while self.over.len() > RETAINED_MAX {
            if let Some((&oldest, _)) = self.over.first_key_value() {
                self.forget(oldest);
            }
        }
    }
}
