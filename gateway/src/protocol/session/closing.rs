//! Deadlines, drains and ends: everything that happens to a session without a message of the client.

use std::time::Duration;

use super::{Control, Drain, Phase, Session};
use crate::error::{Code, Severity};
use crate::protocol::event::{ErrorEvent, ServerEvent};
use crate::protocol::note::Note;
use crate::protocol::timer::Timer;
use crate::protocol::{Frame, Handle, Output, millis};

/// How long a client may take to answer a close.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

impl Session {
    pub(super) fn tick(&mut self, now: Duration) {
        while let Some(timer) = self.timers.take_due(now) {
            let limits = &self.setup.limits;
            match timer {
                Timer::Start => {
                    let limit = limits.start.as_secs();
                    let message = format!("session.start did not come within {limit} s");
                    self.fatal(Code::StartTimeout, message, now);
                }
                Timer::Idle => self.idle(now),
                Timer::Ping => {
                    self.timers.set(Timer::Pong, now + limits.ping);
                    self.control.push_back(Control::Frame(Frame::Ping));
                }
                Timer::Stall => {
                    let limit = limits.stall.as_secs();
                    let message = format!("nothing was taken for {limit} s");
                    self.fatal(Code::SlowConsumer, message, now);
                }
                Timer::Drain => self.shut_down(now),
                Timer::Pong => self.unanswered(now),
                // Not even the close was taken.
                Timer::Close if self.phase == Phase::Closing => self.unanswered(now),
                Timer::Close | Timer::Resume => self.gone(),
                Timer::ContextIdle(handle) => self.context_idle(handle, now),
                Timer::Forget(handle) => self.forget(handle),
                // The driver asks for frames after every input.
                Timer::Pace(_) => {}
            }
        }
    }

    fn idle(&mut self, now: Duration) {
        if self.live.is_empty() {
            self.fatal(Code::IdleTimeout, "no message, and nothing to say".to_owned(), now);
        } else {
            self.touch(now);
        }
    }

    fn context_idle(&mut self, handle: Handle, now: Duration) {
        let Some(context) = self.live.get(&handle) else { return };
        let error =
            ErrorEvent::new(Code::CtxIdle, "no new text for too long").of(&context.record.name);
        self.error(error);
        self.cancel_live(handle, "idle", now);
    }

    /// The server goes down: what is open may finish, nothing new begins.
    pub(super) fn drain(&mut self, limit: Duration, now: Duration) {
        if !self.is_attached {
            // Nobody can come back to a server that lets nobody in.
            return self.gone();
        }
        self.say(ServerEvent::Closing { reason: "shutting_down", in_ms: millis(limit) });
        self.phase = Phase::Draining(Drain::Server);
        self.timers.set(Timer::Drain, now + limit);
    }

    /// What is open may finish, by the client's wish.
    pub(super) fn begin_client_drain(&mut self, now: Duration) {
        for handle in self.live.keys().copied().collect::<Vec<_>>() {
            match self.is_waiting(handle) {
                // What it waits for will not come.
                true => self.cancel_live(handle, "session_end", now),
                false => self.end_live(handle),
            }
        }
        self.phase = Phase::Draining(Drain::Client);
    }

    /// Ends a drain when nothing is left of it.
    pub(super) fn finish_drain(&mut self, now: Duration) {
        match self.phase {
            Phase::Draining(Drain::Client) if self.live.is_empty() => self.end("client", now),
            Phase::Draining(Drain::Server) if self.live.is_empty() => self.shut_down(now),
            _ => {}
        }
    }

    fn shut_down(&mut self, now: Duration) {
        self.cancel_all("shutting_down", now);
        self.fatal(Code::ShuttingDown, "the server goes down".to_owned(), now);
    }

    /// Ends the session as the client wished.
    pub(super) fn end(&mut self, reason: &'static str, now: Duration) {
        self.cancel_all("session_end", now);
        self.say(ServerEvent::Closing { reason, in_ms: 0 });
        self.close(1000, reason, now);
    }

    /// Tells an error that ends the session, and ends it.
    pub(super) fn fatal(&mut self, code: Code, message: String, now: Duration) {
        let close = match code.severity() {
            Severity::Session(close) => close,
            Severity::Note | Severity::Context => 4400,
        };
        if self.is_closing() {
            return;
        }
        self.cancel_all("error", now);
        self.error(ErrorEvent { fatal: true, ..ErrorEvent::new(code, message) });
        self.close(close, code.name(), now);
    }

    /// Closes, after everything that is in line already.
    pub(super) fn close(&mut self, code: u16, reason: &'static str, now: Duration) {
        if self.is_closing() {
            return;
        }
        self.cancel_all("error", now);
        self.control.push_back(Control::Close { code, reason });
        self.phase = Phase::Closing;
        self.timers.keep_only(&[]);
        self.timers.set(Timer::Close, now + CLOSE_WAIT);
    }

    /// The close was said in other words, and is the last thing that the client hears.
    pub(crate) fn closed(&mut self, code: u16, now: Duration) {
        self.cancel_all("error", now);
        self.control.clear();
        self.notes.push(Note::Closed(code));
        self.phase = Phase::Closed;
        self.timers.keep_only(&[]);
        self.timers.set(Timer::Close, now + CLOSE_WAIT);
    }

    pub(super) fn cancel_all(&mut self, reason: &'static str, now: Duration) {
        for handle in self.live.keys().copied().collect::<Vec<_>>() {
            self.cancel_live(handle, reason, now);
        }
    }

    /// There is nobody to talk to any more.
    pub(super) fn gone(&mut self) {
        let left = self.live.iter().filter(|(_, context)| !context.engine_over);
        self.outputs.extend(left.map(|(&handle, _)| Output::Cancel(handle)));
        self.live.clear();
        self.over.clear();
        self.control.clear();
        self.resend.clear();
        self.ring = None;
        self.phase = Phase::Closed;
        self.timers.keep_only(&[]);
        self.outputs.push_back(Output::Hangup);
    }
}
