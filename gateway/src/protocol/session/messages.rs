//! What each message of the client does.

use std::time::Duration;

use super::options::{ignored, merge, request, settle};
use super::{Control, Drain, FLUSHES_MAX, Phase, Session};
use crate::error::Code;
use crate::protocol::context::{Context, Phase as ContextPhase, unknown};
use crate::protocol::event::{
    Audio, Cancel, ClientEvent, EndSession, ErrorEvent, Flush, Open, ParseError, Played, Ready,
    Replaces, Server, ServerEvent, Start, TextDelta, WireLimits, parse,
};
use crate::protocol::timer::Timer;
use crate::protocol::{Handle, Output, millis};

/// So many messages in a row that cannot be read end a session.
const BAD_IN_ROW: u32 = 16;

impl Session {
    pub(super) fn message(&mut self, message: &str, now: Duration) {
        self.touch(now);
        let event = match parse(message) {
            Ok(event) => event,
            // A newer client is not a broken one: this never counts.
            Err(ParseError::UnknownType(name)) => {
                let message = format!("type {name:?} is not known");
                return self.error(ErrorEvent::new(Code::BadMessage, message));
            }
            Err(ParseError::Malformed(reason)) => return self.bad(reason, now),
        };
        match (event, self.phase) {
            (ClientEvent::Start(start), Phase::Waiting) => self.start(*start, now),
            (ClientEvent::Start(_), _) => self.bad("the session has started".to_owned(), now),
            (_, Phase::Waiting) => self.bad("session.start comes first".to_owned(), now),
            (event, _) => {
                self.bad_in_row = 0;
                self.obey(event, now);
            }
        }
    }

    fn obey(&mut self, event: ClientEvent, now: Duration) {
        match event {
            ClientEvent::Start(_) => {}
            ClientEvent::Open(open) => self.open(*open, now),
            ClientEvent::Text(delta) => self.text(&delta, now),
            ClientEvent::Flush(flush) => self.flush(flush),
            ClientEvent::End(end) => self.end_context(&end.ctx),
            ClientEvent::Cancel(cancel) => self.cancel(&cancel, now),
            ClientEvent::Played(played) => self.played(&played),
            ClientEvent::Ping(ping) => {
                let server_time = self.setup.unix_ms + millis(now);
                self.say(ServerEvent::Pong { t: ping.t, server_time });
            }
            ClientEvent::EndSession(EndSession { drain: false }) => self.end("client", now),
            ClientEvent::EndSession(EndSession { drain: true }) => {
                for handle in self.live.keys().copied().collect::<Vec<_>>() {
                    self.end_live(handle);
                }
                self.phase = Phase::Draining(Drain::Client);
            }
        }
    }

    /// A message that cannot be read; too many in a row are somebody who speaks another language.
    pub(super) fn bad(&mut self, reason: String, now: Duration) {
        self.bad_in_row += 1;
        if self.bad_in_row >= BAD_IN_ROW {
            return self.fatal(Code::BadMessage, reason, now);
        }
        self.error(ErrorEvent::new(Code::BadMessage, reason));
    }

    fn start(&mut self, start: Start, now: Duration) {
        let resume = start.resume.is_some();
        let settled = match settle(start, &self.setup.catalogue) {
            Ok(settled) => settled,
            Err(error) => {
                self.error(error.about("session.start", None));
                return self.close(4400, "bad session.start", now);
            }
        };
        self.bad_in_row = 0;
        self.phase = Phase::Running;
        self.timers.clear(Timer::Start);
        let limits = &self.setup.limits;
        let ready = Ready {
            session_id: self.setup.session_id.clone(),
            token: self.setup.token.clone(),
            resumed: false,
            resume_window_ms: 0,
            synthetic: true,
            server: Server { name: "dovecote", version: env!("CARGO_PKG_VERSION") },
            models: self.setup.catalogue.models.clone(),
            voices: self.setup.catalogue.voices.clone(),
            audio: Audio {
                codec: settled.format.codec,
                sample_rate: settled.format.sample_rate,
                frame_ms: settled.format.frame.ms(),
                pre_skip: settled.format.clock().pre_skip,
            },
            limits: WireLimits {
                max_contexts: limits.max_contexts,
                max_text_chars: limits.max_text_chars,
                max_pending_chars: limits.max_pending_chars,
                max_message_bytes: limits.max_message_bytes,
                max_ahead_ms: millis(settled.max_ahead),
                retain_ms: millis(limits.retain),
                idle_timeout_ms: millis(settled.idle),
            },
        };
        self.settled = Some(settled);
        self.touch(now);
        self.say(ServerEvent::Ready(Box::new(ready)));
        if resume {
            let message = "this server keeps no sessions; a new one has begun";
            self.error(ErrorEvent::new(Code::ResumeUnknown, message));
        }
    }

    fn open(&mut self, open: Open, now: Duration) {
        let refuse = |error: ErrorEvent| error.of(&open.ctx).about("context.open", None);
        let settled = self.settled.clone().expect("only a session that has started opens contexts");
        if self.names.contains_key(&open.ctx) {
            let error =
                ErrorEvent::new(Code::CtxExists, "a context's id is used once in a session");
            return self.error(refuse(error));
        }
        if matches!(self.phase, Phase::Draining(_)) {
            let error = ErrorEvent::new(Code::Overloaded, "the session is ending");
            return self.error(refuse(error));
        }
        let options = match merge(&open, &settled, &self.setup.catalogue) {
            Ok(options) => options,
            Err(error) => return self.error(refuse(*error)),
        };
        let replaced = self.replaced(open.replaces.as_ref(), now);
        let gone = replaced.iter().filter(|id| self.is_live(id)).count();
        let limits = &self.setup.limits;
        if self.live.len() - gone >= limits.max_contexts
            || self.names.len() >= limits.max_context_ids
        {
            let message = format!("{} contexts at a time", limits.max_contexts);
            return self.error(refuse(ErrorEvent::new(Code::TooManyContexts, message)));
        }
        let key_place = match self.setup.purse.context(gone) {
            Ok(place) => place,
            Err(over) => {
                let error = ErrorEvent::new(Code::TooManyContexts, over.to_string());
                return self.error(refuse(error));
            }
        };
        // Only now is it sure that a new turn begins.
        for id in replaced {
            self.cancel_one(&id, "replaced", now);
        }
        let handle = self.next_handle;
        self.next_handle += 1;
        self.names.insert(open.ctx.clone(), handle);
        let mut context = Context::new(open.ctx, handle, settled.format, settled.max_ahead);
        context.ignored = ignored(&options);
        context.key_place = Some(key_place);
        self.live.insert(handle, context);
        self.timers.set(Timer::ContextIdle(handle), now + settled.context_idle);
        let request = Box::new(request(&options, &settled, open.priority));
        self.outputs.push_back(Output::Open { context: handle, request, format: settled.format });
    }

    fn replaced(&self, replaces: Option<&Replaces>, now: Duration) -> Vec<String> {
        match replaces {
            None => Vec::new(),
            Some(Replaces::One(all)) if all == "*" => self.unheard(now),
            Some(Replaces::One(id)) => vec![id.clone()],
            Some(Replaces::Many(ids)) => {
                let mut unique = Vec::new();
                for id in ids {
                    if !unique.contains(id) {
                        unique.push(id.clone());
                    }
                }
                unique
            }
        }
    }

    fn is_live(&self, id: &str) -> bool {
        self.names.get(id).is_some_and(|handle| self.live.contains_key(handle))
    }

    /// All contexts that somebody may still hear.
    fn unheard(&self, now: Duration) -> Vec<String> {
        let playing = |c: &&Context| c.phase == ContextPhase::Done && !c.pacer.played_out(now);
        let over = self.over.values().filter(playing);
        self.live.values().chain(over).map(|c| c.name.clone()).collect()
    }

    /// The live context that a message names; says what is wrong if it names another.
    fn find(&mut self, id: &str, about: &'static str, seq: Option<u64>) -> Option<Handle> {
        let handle = self.names.get(id).copied();
        let error = match handle {
            Some(handle) if self.live.contains_key(&handle) => return Some(handle),
            Some(_) => ErrorEvent::new(Code::CtxEnded, "the context is over"),
            None => ErrorEvent::new(Code::CtxUnknown, "no such context"),
        };
        self.error(error.of(id).about(about, seq));
        None
    }

    fn text(&mut self, delta: &TextDelta, now: Duration) {
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
        let refused = if context.phase != ContextPhase::Open {
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
            return self.error(ErrorEvent::new(code, message).of(&delta.ctx).about("text", seq));
        }
        if let Err(over) = self.setup.purse.chars(chars, now) {
            let mut error = ErrorEvent::new(Code::Overloaded, over.to_string());
            error.retry_after_ms = Some(millis(over.retry_after));
            return self.error(error.of(&delta.ctx).about("text", seq));
        }
        context.push_text(&delta.text, now);
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

    fn flush(&mut self, flush: Flush) {
        let Some(handle) = self.find(&flush.ctx, "flush", None) else { return };
        let context = self.live.get_mut(&handle).expect("just found; this is a bug");
        let refused = if context.phase != ContextPhase::Open {
            Some(ErrorEvent::new(Code::CtxEnded, "the context was ended"))
        } else if context.flushes() >= FLUSHES_MAX {
            let message = format!("at most {FLUSHES_MAX} flushes wait");
            Some(ErrorEvent::new(Code::TextOverflow, message))
        } else {
            None
        };
        if let Some(error) = refused {
            return self.error(error.of(&flush.ctx).about("flush", None));
        }
        context.flush(flush.id);
        self.outputs.push_back(Output::Flush(handle));
    }

    fn end_context(&mut self, id: &str) {
        let Some(handle) = self.find(id, "end", None) else { return };
        if !self.end_live(handle) {
            let error = ErrorEvent::new(Code::CtxEnded, "the context was ended before");
            self.error(error.of(id).about("end", None));
        }
    }

    /// Returns whether it had not ended before.
    fn end_live(&mut self, handle: Handle) -> bool {
        let Some(context) = self.live.get_mut(&handle) else { return false };
        if context.phase != ContextPhase::Open {
            return false;
        }
        context.phase = ContextPhase::Ended;
        self.timers.clear(Timer::ContextIdle(handle));
        self.outputs.push_back(Output::End(handle));
        true
    }

    fn cancel(&mut self, cancel: &Cancel, now: Duration) {
        if cancel.at.as_deref().is_some_and(|at| at != "now") {
            let error = ErrorEvent::new(Code::BadOption, "at: only \"now\" is available");
            return self.error(error.of(&cancel.ctx).about("cancel", None));
        }
        if cancel.ctx == "*" {
            for id in self.unheard(now) {
                self.cancel_one(&id, "client", now);
            }
            return;
        }
        if let Some(pos) = cancel.played {
            self.report(&cancel.ctx, pos);
        }
        self.cancel_one(&cancel.ctx, "client", now);
    }

    /// Every cancel has one answer, whatever it names.
    fn cancel_one(&mut self, id: &str, reason: &'static str, now: Duration) {
        let handle = self.names.get(id).copied().unwrap_or_default();
        if self.live.contains_key(&handle) {
            return self.cancel_live(handle, reason, now);
        }
        let answer = match self.over.get_mut(&handle) {
            Some(context) => context.cancel(reason, now).clone(),
            None => unknown(id.to_owned()),
        };
        let answer = Box::new(answer);
        self.control.push_back(Control::Cancelled { handle, answer, since: now, until: None });
    }

    fn played(&mut self, played: &Played) {
        if !self.names.contains_key(&played.ctx) {
            let error = ErrorEvent::new(Code::CtxUnknown, "no such context");
            return self.error(error.of(&played.ctx).about("played", None));
        }
        self.report(&played.ctx, played.pos);
    }

    /// Takes note of what was heard. A report that comes after a cancel is late, not wrong.
    fn report(&mut self, id: &str, pos: u64) {
        let Some(&handle) = self.names.get(id) else { return };
        let format = self.settled.as_ref().map(|s| s.format);
        let clock = format.expect("contexts open in a session that has started").clock();
        let is_live = self.live.contains_key(&handle);
        let Some(context) = self.live.get_mut(&handle).or_else(|| self.over.get_mut(&handle))
        else {
            return;
        };
        if matches!(context.phase, ContextPhase::Cancelled(_)) {
            return;
        }
        if context.pacer.report(pos) {
            let message = format!("{pos} was played, {} was sent", context.pacer.sent());
            self.error(ErrorEvent::new(Code::PlayedBeyondSent, message).of(id));
        } else if is_live && !context.engine_over {
            let samples = clock.samples(pos);
            self.outputs.push_back(Output::Played { context: handle, samples });
        }
    }
}
