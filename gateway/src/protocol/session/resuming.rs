//! A session that outlives its socket: what happens when the socket is lost, and when the client comes back on another one.
//!
//! ```text
//! attached --lost--> detached --resume_window--> gone
//!     ^                  |
//!     `---- resumed -----'        a second socket for a session that has one takes it over
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Phase, Session};
use crate::error::Code;
use crate::protocol::context::{Phase as ContextPhase, behind_gap};
use crate::protocol::event::{ErrorEvent, ServerEvent};
use crate::protocol::ring::Again;
use crate::protocol::timer::Timer;
use crate::protocol::{Frame, Output, Resume};

/// Close code of a socket whose session was taken over.
const REPLACED: u16 = 4409;

impl Session {
    /// The socket is lost: the session waits for its client if that was asked for.
    pub(super) fn lost(&mut self, now: Duration) {
        let window = self.settled.as_ref().map_or(Duration::ZERO, |s| s.resume_window);
        let is_kept = matches!(self.phase, Phase::Running) && !window.is_zero();
        if !is_kept {
            return self.gone();
        }
        if std::mem::take(&mut self.is_attached) {
            for timer in [Timer::Ping, Timer::Pong, Timer::Stall] {
                self.timers.clear(timer);
            }
            self.resend.clear();
            self.timers.set(Timer::Resume, now + window);
            self.outputs.push_back(Output::Detach);
        }
    }

    /// Nobody answers: what the socket has not sent need not be kept for anybody.
    pub(super) fn unanswered(&mut self, now: Duration) {
        self.lost(now);
        if self.phase == Phase::Closed {
            self.outputs.push_front(Output::Detach);
        }
    }

    /// The client says no more, but still listens: what has ended comes to its end, the rest is stopped.
    pub(super) fn half_closed(&mut self, now: Duration) {
        let Some(settled) = &self.settled else { return self.gone() };
        // Whoever wants to come back leaves by the door; this one was cut off.
        if !settled.resume_window.is_zero() {
            return self.lost(now);
        }
        let open =
            self.live.iter().filter(|(_, context)| context.record.phase == ContextPhase::Open);
        for handle in open.map(|(&handle, _)| handle).collect::<Vec<_>>() {
            self.cancel_live(handle, "session_end", now);
        }
        // It cannot answer a ping; one that is really gone takes nothing, or does not acknowledge it.
        self.timers.clear(Timer::Ping);
        self.timers.clear(Timer::Pong);
        self.begin_client_drain(now);
    }

    /// Goes on with a client that was away, or that has come in by a second door. What it missed goes out first. Returns
    /// whether it can; if not, nothing has changed.
    pub fn resume(&mut self, resume: &Resume, now: Duration) -> bool {
        let Some(ring) = self.ring.as_ref().filter(|_| self.phase == Phase::Running) else {
            return false;
        };
        let handle_of = |name: &String| self.names.get(name).copied();
        let last: BTreeMap<_, _> =
            resume.last.iter().filter_map(|(name, seq)| Some((handle_of(name)?, *seq))).collect();
        let missed = ring.since(resume.last_n, |handle| last.get(&handle).copied());
        let Some(missed) = missed.filter(|_| resume.last_n < self.n) else { return false };
        for (&handle, context) in &mut self.live {
            let got = last.get(&handle).map_or(0, |last| last.saturating_add(1));
            // What is kept reaches to the end of what was sent.
            context.owes_gap = !ring.keeps(handle) && got < context.packets();
        }
        let ready = ServerEvent::Ready(Box::new(self.ready(true)));
        // Not a message of its own in the order of the session: it says where the client stands in that.
        let ready = Frame::Text(ready.to_json(resume.last_n));
        self.resend = std::iter::once(ready).chain(missed.into_iter().map(frame)).collect();
        self.is_attached = true;
        self.bad_in_row = 0;
        self.timers.clear(Timer::Resume);
        self.timers.clear(Timer::Pong);
        self.timers.clear(Timer::Stall);
        self.timers.set(Timer::Ping, now + self.setup.limits.ping);
        self.touch(now);
        true
    }

    /// What a socket is told whose session goes on without it.
    pub fn farewell(&self) -> [Frame; 2] {
        let error = ErrorEvent::new(Code::Replaced, "the session goes on over another socket");
        let error = ServerEvent::Error(Box::new(error)).to_json(self.n);
        [Frame::Text(error), Frame::Close { code: REPLACED, reason: Code::Replaced.name() }]
    }

    /// The session that the client wanted back is not there: it gets a new one.
    pub(super) fn resume_refused(&mut self, now: Duration) {
        let Some(start) = self.wants_back.take() else { return };
        self.begin(*start, now);
        if self.phase == Phase::Running {
            let message = "that session is not kept here; a new one has begun";
            self.error(ErrorEvent::new(Code::ResumeUnknown, message));
        }
    }
}

fn frame(again: Again) -> Frame {
    match again {
        Again::Text(json) => Frame::Text(json),
        Again::Sound { sound, gap: false } => Frame::Audio(sound.bytes),
        Again::Sound { sound, gap: true } => Frame::Audio(behind_gap(&sound.bytes)),
    }
}
