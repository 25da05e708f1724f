//! Barge-ins, and the reports of play-out that they are measured by.

use std::time::Duration;

use super::options::choose;
use super::{Control, Session};
use crate::error::Code;
use crate::protocol::context::{At, Phase as ContextPhase, unknown};
use crate::protocol::event::{Cancel, Cancelled, ErrorEvent, Freed, Played};
use crate::protocol::{Handle, Output, millis};

/// What a client may say of where a cancel stops.
const PLACES: [(&str, At); 3] = [("now", At::Now), ("word", At::Word), ("sentence", At::Sentence)];

impl Session {
    pub(super) fn cancel(&mut self, cancel: &Cancel, now: Duration) {
        let at = match choose("at", cancel.at.as_deref(), &PLACES) {
            Ok(at) => at,
            Err(error) => return self.error(error.of(&cancel.ctx).about("cancel", None)),
        };
        if cancel.ctx == "*" {
            for id in self.unheard(now) {
                self.cancel_at(&id, at, now);
            }
            return;
        }
        if let Some(pos) = cancel.played {
            self.report(&cancel.ctx, pos);
        }
        self.cancel_at(&cancel.ctx, at, now);
    }

    /// Cancels at once, or when what is being heard was said to its end.
    fn cancel_at(&mut self, id: &str, at: At, now: Duration) {
        let handle = self.names.get(id).copied().unwrap_or_default();
        if let Some(context) = self.live.get_mut(&handle) {
            if context.record.stop_at(at, now) {
                self.end_live(handle);
                return;
            }
        } else if let Some(record) = self.over.get_mut(&handle) {
            record.stop_at(at, now);
        }
        self.cancel_one(id, "client", now);
    }

    /// A cancel has waited long enough.
    pub(super) fn stopped(&mut self, handle: Handle, now: Duration) {
        if let Some(context) = self.live.get_mut(&handle) {
            // This one is answered as the first, the others as late.
            context.record.forget_cancel();
        }
        self.cancel_live(handle, "client", now);
    }

    /// Every cancel has one answer, whatever it names.
    pub(super) fn cancel_one(&mut self, id: &str, reason: &'static str, now: Duration) {
        let handle = self.names.get(id).copied().unwrap_or_default();
        if self.live.contains_key(&handle) {
            return self.cancel_live(handle, reason, now);
        }
        let answer = match self.over.get_mut(&handle) {
            Some(record) => record.cancel(reason, now).clone(),
            None => unknown(id.to_owned()),
        };
        let answer = Box::new(answer);
        self.control.push_back(Control::Cancelled {
            handle,
            answer,
            since: now,
            owes_freed: false,
        });
    }

    pub(super) fn played(&mut self, played: &Played) {
        if !self.names.contains_key(&played.ctx) {
            let error = ErrorEvent::new(Code::CtxUnknown, "no such context");
            return self.error(error.of(&played.ctx).about("played", None));
        }
        self.report(&played.ctx, played.pos);
    }

    /// Takes note of what was heard. A report that comes after a cancel is late, not wrong.
    fn report(&mut self, id: &str, pos: u64) {
        let Some(&handle) = self.names.get(id) else { return };
        let (record, is_speaking) = match self.live.get_mut(&handle) {
            Some(context) => (&mut context.record, !context.engine_over),
            None => match self.over.get_mut(&handle) {
                Some(record) => (&mut **record, false),
                None => return,
            },
        };
        if matches!(record.phase, ContextPhase::Cancelled(_)) {
            return;
        }
        if let Some(ring) = &mut self.ring {
            ring.played(handle, pos);
        }
        if record.pacer.report(pos) {
            let message = format!("{pos} was played, {} was sent", record.pacer.sent());
            self.error(ErrorEvent::new(Code::PlayedBeyondSent, message).of(id));
        } else if is_speaking {
            let samples = record.pacer.clock().samples(pos);
            self.outputs.push_back(Output::Played { context: handle, samples });
        }
    }

    /// Stops a live context; its answer is put in line.
    pub(super) fn cancel_live(&mut self, handle: Handle, reason: &'static str, now: Duration) {
        let Some(mut context) = self.live.remove(&handle) else { return };
        let waiting = context.record.take_waiting_cancels();
        let answer = Box::new(context.cancel(reason, now).clone());
        let owes_freed = !context.engine_over;
        let again = Box::new(Cancelled { late: true, ..(*answer).clone() });
        if owes_freed {
            self.outputs.push_back(Output::Cancel(handle));
        }
        self.control.push_back(Control::Cancelled { handle, answer, since: now, owes_freed });
        for _ in 0..waiting {
            let answer = again.clone();
            self.control.push_back(Control::Cancelled { handle, answer, since: now, owes_freed });
        }
        self.keep(*context, now);
    }

    /// What a context that was just cancelled held: its answer has waited for this.
    pub(super) fn freed(&mut self, handle: Handle, kv_blocks: usize, now: Duration) {
        for control in &mut self.control {
            if let Control::Cancelled { handle: of, answer, since, owes_freed } = control
                && *of == handle
                && std::mem::take(owes_freed)
            {
                answer.freed = Freed { kv_blocks, ms: millis(now - *since) };
                if let Some(record) = self.over.get_mut(&handle) {
                    record.freed(answer.freed);
                }
            }
        }
    }
}
