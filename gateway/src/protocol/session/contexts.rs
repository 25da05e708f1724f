//! What the engine tells of the contexts, and how contexts end.

use std::time::Duration;

use engine::Event;

use super::{Control, Session};
use crate::error::{Code, refusal};
use crate::protocol::context::Context;
use crate::protocol::event::{ErrorEvent, Freed, Opened};
use crate::protocol::timer::Timer;
use crate::protocol::{Handle, Output, millis};

/// A cancel is answered after this long even if the engine has not yet said what the context held: an answer within
/// 20 ms was promised, and nothing of the context follows in any case.
const FREED_WAIT: Duration = Duration::from_millis(10);
/// Contexts that are over and can still be asked about; the oldest are forgotten earlier than promised.
const RETAINED_MAX: usize = 256;
/// When to try again after the engine's command queue was full.
const BUSY_RETRY_MS: u64 = 100;

impl Session {
    pub(super) fn opened(&mut self, handle: Handle, answer: Result<(), engine::Error>) {
        let Some(context) = self.live.get(&handle) else { return };
        if let Err(refused) = answer {
            let code = refusal(&refused);
            let mut error = ErrorEvent::new(code, refused.to_string())
                .of(&context.name)
                .about("context.open", None);
            error.retry_after_ms = match &refused {
                engine::Error::Overloaded { retry_after, .. } => {
                    Some(u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX))
                }
                _ => (code == Code::Overloaded).then_some(BUSY_RETRY_MS),
            };
            // The id stays unused, so the client can ask for something else under the same name.
            let context = self.live.remove(&handle).expect("just found; this is a bug");
            self.names.remove(&context.name);
            self.timers.clear(Timer::ContextIdle(handle));
            return self.error(error);
        }
        let format = self
            .settled
            .as_ref()
            .map(|s| s.format)
            .expect("contexts open in a session that has started");
        let opened = Opened {
            ctx: context.name.clone(),
            handle,
            codec: format.codec,
            clock: format.sample_rate,
            pre_skip: format.clock().pre_skip,
            queue_ms: 0,
            ignored: context.ignored.clone(),
        };
        self.control.push_back(Control::Opened(handle, opened));
    }

    pub(super) fn engine(&mut self, handle: Handle, event: Event, now: Duration) {
        let Some(context) = self.live.get_mut(&handle) else {
            return self.after_cancel(handle, &event, now);
        };
        match event {
            // Comes as packets.
            Event::Audio { .. } => {}
            Event::Chunk { raw, .. } => {
                context.alignment.chunk(raw);
                let limit = self.setup.limits.max_pending_chars;
                context.pressed &= context.pending_chars() * 5 >= limit * 4;
            }
            Event::Aligned { ends } => context.alignment.aligned(&ends),
            Event::ChunkEnd { raw, end } => context.alignment.chunk_end(&raw, end),
            Event::Flushed { samples } => context.flushed(samples),
            Event::Done(summary) => context.complete(summary),
            Event::Failed(failure) => {
                context.engine_over = true;
                let error =
                    ErrorEvent::new(Code::EngineFailed, failure.to_string()).of(&context.name);
                self.error(error);
                self.cancel_live(handle, "error", now);
            }
            // Nobody here asked for it: the engine goes down.
            Event::Cancelled(_) => {
                context.engine_over = true;
                let error =
                    ErrorEvent::new(Code::EngineFailed, "the engine stopped").of(&context.name);
                self.error(error);
                self.cancel_live(handle, "error", now);
            }
        }
    }

    /// The engine's last word on a cancelled context: the answer to the client has waited for it.
    fn after_cancel(&mut self, handle: Handle, event: &Event, now: Duration) {
        let kv_blocks = match event {
            Event::Cancelled(summary) => summary.kv_blocks,
            Event::Done(_) | Event::Failed(_) => 0,
            _ => return,
        };
        for control in &mut self.control {
            if let Control::Cancelled { handle: of, answer, since, until } = control
                && *of == handle
                && until.take().is_some()
            {
                answer.freed = Freed { kv_blocks, ms: millis(now - *since) };
                if let Some(context) = self.over.get_mut(&handle) {
                    context.freed(answer.freed);
                }
            }
        }
    }

    /// Stops a live context; its answer is put in line.
    pub(super) fn cancel_live(&mut self, handle: Handle, reason: &'static str, now: Duration) {
        let Some(mut context) = self.live.remove(&handle) else { return };
        let answer = Box::new(context.cancel(reason, now).clone());
        let until = (!context.engine_over).then_some(now + FREED_WAIT);
        if !context.engine_over {
            self.outputs.push_back(Output::Cancel(handle));
        }
        self.control.push_back(Control::Cancelled { handle, answer, since: now, until });
        self.keep(context, now);
    }

    /// A context whose last sound is on the wire.
    pub(super) fn retire(&mut self, handle: Handle, now: Duration) {
        if let Some(context) = self.live.remove(&handle) {
            self.keep(context, now);
        }
    }

    /// Keeps what a late cancel will ask for.
    fn keep(&mut self, mut context: Context, now: Duration) {
        let handle = context.handle;
        context.key_place = None;
        self.timers.clear(Timer::ContextIdle(handle));
        self.timers.clear(Timer::Pace(handle));
        self.timers.set(Timer::Forget(handle), now + self.setup.limits.retain);
        let playing_until = context.pacer.dry_at().map_or(now, |at| at.max(now));
        self.touch(playing_until);
        self.over.insert(handle, context);
        while self.over.len() > RETAINED_MAX {
            if let Some((oldest, _)) = self.over.pop_first() {
                self.timers.clear(Timer::Forget(oldest));
            }
        }
    }
}
