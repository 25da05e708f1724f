//! What each message of the client does.

use std::time::Duration;

use super::options::settle;
use super::{Phase, Session};
use crate::error::Code;
use crate::protocol::event::{
    Audio, ClientEvent, EndSession, ErrorEvent, ParseError, Ready, Server, ServerEvent, Start,
    WireLimits, parse,
};
use crate::protocol::ring::Ring;
use crate::protocol::timer::Timer;
use crate::protocol::{Output, millis};

/// So many messages in a row that cannot be read end a session.
const BAD_IN_ROW: u32 = 16;
/// When a client may come back that the engine has no room for: turns of agents last some seconds, so one is soon over.
const FULL_RETRY_MS: u64 = 1_000;

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
        self.event(event, now);
    }

    /// Something that the client says and that can be read.
    pub(super) fn event(&mut self, event: ClientEvent, now: Duration) {
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
            ClientEvent::Flush(flush) => self.flush(flush, now),
            ClientEvent::Mark(mark) => self.mark(mark),
            ClientEvent::End(end) => self.end_context(&end.ctx),
            ClientEvent::AudioBegin(begin) => self.audio_begin(&begin, now),
            ClientEvent::AudioEnd(end) => self.audio_end(&end, now),
            ClientEvent::Cancel(cancel) => self.cancel(&cancel, now),
            ClientEvent::Played(played) => self.played(&played),
            ClientEvent::Update(update) => self.update(update),
            ClientEvent::Ping(ping) => {
                let server_time = self.setup.unix_ms + millis(now);
                self.say(ServerEvent::Pong { t: ping.t, server_time });
            }
            ClientEvent::EndSession(EndSession { drain: false }) => self.end("client", now),
            ClientEvent::EndSession(EndSession { drain: true }) => self.begin_client_drain(now),
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

    /// The first message. A client that wants its session back waits for the answer to that.
    fn start(&mut self, mut start: Start, now: Duration) {
        self.timers.clear(Timer::Start);
        match start.resume.take() {
            None => self.begin(start, now),
            Some(resume) => {
                self.wants_back = Some(Box::new(start));
                self.outputs.push_back(Output::Resume(Box::new(resume)));
            }
        }
    }

    /// Begins a new session.
    pub(super) fn begin(&mut self, start: Start, now: Duration) {
        let settled = match settle(start, &self.setup.catalogue) {
            Ok(settled) => settled,
            Err(error) => return self.refuse_start(*error, (4400, "bad session.start"), now),
        };
        // Other vendors' protocols know of no refusal but a context's.
        if !self.setup.has_room && !self.setup.is_foreign {
            let message = "one more listener could not be kept supplied";
            let error = ErrorEvent {
                retry_after_ms: Some(FULL_RETRY_MS),
                ..ErrorEvent::new(Code::Overloaded, message)
            };
            return self.refuse_start(error, (4429, Code::Overloaded.name()), now);
        }
        self.bad_in_row = 0;
        self.phase = Phase::Running;
        if !settled.resume_window.is_zero() {
            self.ring = Some(Ring::new(self.setup.limits.max_resume_bytes));
            self.outputs.push_back(Output::Keep);
        }
        self.settled = Some(settled);
        self.touch(now);
        self.say(ServerEvent::Ready(Box::new(self.ready(false))));
    }

    /// The session does not begin.
    fn refuse_start(&mut self, error: ErrorEvent, close: (u16, &'static str), now: Duration) {
        self.error(ErrorEvent { fatal: true, ..error.about("session.start", None) });
        self.close(close.0, close.1, now);
    }

    /// What a client needs to know of the session.
    pub(super) fn ready(&self, resumed: bool) -> Ready {
        let settled = self.settled.as_ref().expect("only a session that has started is ready");
        let (limits, format) = (&self.setup.limits, settled.delivery.format);
        let live = self.live.values().filter(|context| context.answering.is_none());
        let next = live.map(|context| (context.record.name.clone(), context.next_seq));
        Ready {
            session_id: self.setup.session_id.clone(),
            token: self.setup.token.clone(),
            resumed,
            resume_window_ms: millis(settled.resume_window),
            next_text_seq: resumed.then(|| next.collect()),
            synthetic: true,
            server: Server { name: "dovecote", version: env!("CARGO_PKG_VERSION") },
            models: self.setup.catalogue.models.clone(),
            voices: self.setup.catalogue.voices.clone(),
            audio: Audio {
                codec: format.codec,
                sample_rate: format.sample_rate,
                frame_ms: format.frame.ms(),
                pre_skip: format.clock().pre_skip,
            },
            limits: WireLimits {
                max_contexts: limits.max_contexts,
                max_text_chars: limits.max_text_chars,
                max_pending_chars: limits.max_pending_chars,
                max_message_bytes: limits.max_message_bytes,
                max_ahead_ms: millis(settled.delivery.max_ahead),
                retain_ms: millis(limits.retain),
                idle_timeout_ms: millis(settled.idle),
            },
        }
    }
}
