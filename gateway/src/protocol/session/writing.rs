//! What is said into a context: text, and what surrounds it.

use std::time::Duration;

use super::{FLUSHES_MAX, MARKS_MAX, Session};
use crate::error::Code;
use crate::protocol::catalogue::Names;
use crate::protocol::context::Phase as ContextPhase;
use crate::protocol::event::{ErrorEvent, Flush, Mark, ServerEvent, TextDelta, Update};
use crate::protocol::note::Note;
use crate::protocol::timer::Timer;
use crate::protocol::{Handle, Output, millis};

impl Session {
    /// The live context that a message names; says what is wrong if it names another.
    pub(super) fn find(
        &mut self,
        id: &str,
        about: &'static str,
        seq: Option<u64>,
    ) -> Option<Handle> {
        let handle = self.names.get(id).copied();
        let error = match handle {
            Some(handle) if self.live.contains_key(&handle) => return Some(handle),
            Some(_) => ErrorEvent::new(Code::CtxEnded, "the context is over"),
            None => ErrorEvent::new(Code::CtxUnknown, "no such context"),
        };
        self.error(error.of(id).about(about, seq));
        None
    }

    /// Something that is said into a context is not taken.
    fn refuse(&mut self, handle: Handle, error: ErrorEvent, now: Duration) {
        self.error(error);
        if self.setup.is_foreign {
            self.cancel_live(handle, "error", now);
        }
    }

    pub(super) fn text(&mut self, delta: &TextDelta, now: Duration) {
        let seq = Some(delta.seq);
        let Some(handle) = self.find(&delta.ctx, "text", seq) else { return };
        let limits = &self.setup.limits;
        let context = self.live.get_mut(&handle).expect("just found; this is a bug");
        // Sent again, after a doubt whether it had arrived.
        if delta.seq < context.next_seq {
            return;
        }
        let chars = delta.text.chars().count();
        let (all, pending) = (context.text_chars + chars, context.pending_chars() + chars);
        let refused = if context.answering.is_some() {
            Some((Code::CtxEnded, "a context that answers takes no text".to_owned()))
        } else if context.record.phase != ContextPhase::Open {
            Some((Code::CtxEnded, "the context was ended".to_owned()))
        } else if delta.seq > context.next_seq {
            Some((Code::SeqGap, format!("seq {} was expected", context.next_seq)))
        } else if all > limits.max_text_chars {
            Some((
                Code::TextTooLong,
                format!("a context has at most {} characters", limits.max_text_chars),
            ))
        } else if pending > limits.max_pending_chars {
            let limit = limits.max_pending_chars;
            Some((Code::TextOverflow, format!("at most {limit} characters wait to be spoken")))
        } else {
            None
        };
        if let Some((code, message)) = refused {
            let error = ErrorEvent::new(code, message).of(&delta.ctx).about("text", seq);
            return self.refuse(handle, error, now);
        }
        if let Err(over) = self.setup.allowance.chars(chars, now) {
            let mut error = ErrorEvent::new(Code::Overloaded, over.to_string());
            error.retry_after_ms = Some(millis(over.retry_after));
            return self.refuse(handle, error.of(&delta.ctx).about("text", seq), now);
        }
        context.push_text(&delta.text, now);
        self.notes.push(Note::Text { chars });
        if !delta.text.is_empty() {
            self.outputs.push_back(Output::Speak { context: handle, text: delta.text.clone() });
        }
        let limit = limits.max_pending_chars;
        if pending * 5 >= limit * 4 && !context.pressed {
            context.pressed = true;
            self.say(ServerEvent::Pressure {
                ctx: delta.ctx.clone(),
                pending_chars: pending,
                limit,
            });
        }
        if let Some(settled) = &self.settled {
            self.timers.set(Timer::ContextIdle(handle), now + settled.context_idle);
        }
        if delta.end {
            self.end_live(handle);
        }
    }

    pub(super) fn flush(&mut self, flush: Flush, now: Duration) {
        let Some(handle) = self.find(&flush.ctx, "flush", None) else { return };
        let context = self.live.get_mut(&handle).expect("just found; this is a bug");
        let refused = if context.record.phase != ContextPhase::Open || context.answering.is_some() {
            Some(ErrorEvent::new(Code::CtxEnded, "the context takes no text"))
        } else if context.flushes() >= FLUSHES_MAX {
            let message = format!("at most {FLUSHES_MAX} flushes wait");
            Some(ErrorEvent::new(Code::TextOverflow, message))
        } else {
            None
        };
        if let Some(error) = refused {
            return self.refuse(handle, error.of(&flush.ctx).about("flush", None), now);
        }
        context.flush(flush.id);
        self.outputs.push_back(Output::Flush(handle));
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        let Some(handle) = self.find(&mark.ctx, "mark", None) else { return };
        let context = self.live.get_mut(&handle).expect("just found; this is a bug");
        if context.marks() < MARKS_MAX {
            return context.mark(mark.id);
        }
        let message = format!("at most {MARKS_MAX} marks wait");
        let error = ErrorEvent::new(Code::TextOverflow, message);
        self.error(error.of(&mark.ctx).about("mark", None));
    }

    /// What comes is spoken in another style; what is being spoken is not.
    pub(super) fn update(&mut self, update: Update) {
        let Some(handle) = self.find(&update.ctx, "context.update", None) else { return };
        if self.live.get(&handle).is_some_and(|context| context.answering.is_some()) {
            let fields = [("style", update.style.is_some()), ("speed", update.speed.is_some())];
            let ignored = fields.into_iter().filter(|(_, is_asked)| *is_asked);
            let ignored = ignored.map(|(field, _)| field).collect();
            return self.say(ServerEvent::Updated { ctx: update.ctx, ignored });
        }
        if let Some(style) = update.style {
            let names = Names { style: Some(&style), ..Names::default() };
            if let Err(error) = self.setup.catalogue.check(&names) {
                return self.error(error.of(&update.ctx).about("context.update", None));
            }
            let context = self.live.get_mut(&handle).expect("just found; this is a bug");
            context.manner.style = Some(style);
            let manner = context.manner.clone();
            self.outputs.push_back(Output::Restyle { context: handle, manner });
        }
        if update.speed.is_some_and(|speed| speed != 1.0) {
            let ignored = vec!["speed"];
            self.say(ServerEvent::Updated { ctx: update.ctx, ignored });
        }
    }

    /// No more text. Said again it says nothing new, also when the context is over by now.
    pub(super) fn end_context(&mut self, id: &str) {
        match self.names.get(id) {
            Some(&handle) => self.end_live(handle),
            None => {
                let error = ErrorEvent::new(Code::CtxUnknown, "no such context");
                self.error(error.of(id).about("end", None));
            }
        }
    }

    pub(super) fn end_live(&mut self, handle: Handle) {
        let Some(context) = self.live.get_mut(&handle) else { return };
        // An answer ends by itself, once it has begun.
        if context.record.phase != ContextPhase::Open || context.answering.is_some() {
            return;
        }
        context.record.phase = ContextPhase::Ended;
        self.timers.clear(Timer::ContextIdle(handle));
        self.outputs.push_back(Output::End(handle));
    }
}
