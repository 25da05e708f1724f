//! A session: takes inputs, keeps the contexts, and decides the order of everything that goes out.
//!
//! Two queues lead to the wire. What is told of the session and of cancels goes first; what belongs to the sound of a
//! context waits in the context, so that a barge-in can drop it, and contexts take turns.
//!
//! ```text
//! control  ready  opened t1  error ...      cancelled t1 (waits a moment for what the engine freed)  opened t2
//! t1       P P P commit P P ... done        -- dropped --
//! t2                                        P P P ...       not before "opened t2" is on the wire
//! ```

mod closing;
mod contexts;
mod messages;
mod options;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod text_rules;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::catalogue::Catalogue;
use super::context::{Context, Next, Phase as ContextPhase};
use super::event::{Cancelled, ErrorEvent, Opened, Options, ServerEvent};
use super::format::Format;
use super::timer::{Timer, Timers};
use super::{Frame, Handle, Input, Limits, Output};
use crate::auth::Purse;
use crate::error::Code;

/// Answers that wait for the wire; with more, the client is not read.
const CONTROL_MAX: usize = 256;
/// Sound of one context that may always wait, whatever the others have waiting: a second of PCM.
const CONTEXT_EGRESS_BYTES: usize = 48_000;
/// Flushes of a context that were not answered.
const FLUSHES_MAX: usize = 64;

/// What a session is given when it begins.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What it may cost.
    pub limits: Limits,
    /// What can be asked for.
    pub catalogue: Arc<Catalogue>,
    /// Its name.
    pub session_id: String,
    /// What a client proves with that it is the same; nobody can guess it.
    pub token: String,
    /// Milliseconds of Unix time when it began.
    pub unix_ms: u64,
    /// What its key may still use.
    pub purse: Purse,
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// `session.start` has not come.
    Waiting,
    Running,
    /// Ends when its contexts have: the client or the server wants it so.
    Draining(Drain),
    /// The close is on its way; nothing is listened to.
    Closing,
    /// Over.
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drain {
    Client,
    Server,
}

/// What `session.start` settled.
#[derive(Debug, Clone)]
struct Settled {
    format: Format,
    defaults: Options,
    max_ahead: Duration,
    idle: Duration,
    context_idle: Duration,
}

/// What waits for the wire and belongs to no context's sound.
#[derive(Debug)]
enum Control {
    Event(ServerEvent),
    Opened(Handle, Opened),
    Cancelled { handle: Handle, answer: Box<Cancelled>, since: Duration, until: Option<Duration> },
    Ping,
    Close { code: u16, reason: &'static str },
}

/// The state of one session.
pub struct Session {
    setup: Setup,
    phase: Phase,
    settled: Option<Settled>,
    /// Contexts without a terminal event on the wire.
    live: BTreeMap<Handle, Context>,
    /// Contexts that are over and can still be asked about.
    over: BTreeMap<Handle, Context>,
    /// All ids ever used.
    names: HashMap<String, Handle>,
    next_handle: Handle,
    outputs: VecDeque<Output>,
    control: VecDeque<Control>,
    /// Number of the next text message.
    n: u64,
    bad_in_row: u32,
    /// Whose turn it was last.
    turn: Handle,
    timers: Timers,
}

impl Session {
    /// A session that waits for `session.start`.
    pub fn new(setup: Setup, now: Duration) -> Self {
        let mut timers = Timers::default();
        timers.set(Timer::Start, now + setup.limits.start);
        timers.set(Timer::Ping, now + setup.limits.ping);
        Self {
            setup,
            phase: Phase::Waiting,
            settled: None,
            live: BTreeMap::new(),
            over: BTreeMap::new(),
            names: HashMap::new(),
            next_handle: 1,
            outputs: VecDeque::new(),
            control: VecDeque::new(),
            n: 1,
            bad_in_row: 0,
            turn: 0,
            timers,
        }
    }

    /// Something happens.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        match input {
            Input::Gone => return self.gone(),
            Input::Tick => self.tick(now),
            Input::Engine { context, event } => self.engine(context, event, now),
            _ if self.is_closing() => {}
            Input::Message(message) => self.message(&message, now),
            Input::Binary => self.bad("binary frames are not expected".to_owned(), now),
            Input::Pong => {
                self.timers.clear(Timer::Pong);
                self.timers.set(Timer::Ping, now + self.setup.limits.ping);
            }
            Input::TooBig => {
                let limit = self.setup.limits.max_message_bytes;
                self.fatal(
                    Code::MessageTooBig,
                    format!("a message has at most {limit} bytes"),
                    now,
                );
            }
            Input::NotUtf8 => self.close(1007, "not UTF-8", now),
            Input::TooSlow(limit) => {
                let limit = limit.as_secs_f64();
                let message = format!("a message took longer than {limit} s (server.message_s)");
                self.fatal(Code::IdleTimeout, message, now);
            }
            Input::Unauthorized(reason) => self.fatal(Code::Unauthorized, reason.to_owned(), now),
            Input::Opened { context, answer } => self.opened(context, answer),
            Input::Packets { context, packets, generated } => {
                if let Some(context) = self.live.get_mut(&context) {
                    context.push_packets(packets, generated);
                }
            }
            Input::Drain(limit) => self.drain(limit, now),
        }
        self.finish_drain(now);
        if !self.is_closing() && !self.timers.is_set(Timer::Stall) && self.has_queued() {
            self.timers.set(Timer::Stall, now + self.setup.limits.stall);
        }
    }

    /// What the engine is to do next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Tick`] at the latest.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// What goes on the wire next; only to be called when it can be put there.
    pub fn poll_frame(&mut self, now: Duration) -> Option<Frame> {
        let frame = self.control_frame(now).or_else(|| self.context_frame(now));
        if frame.is_some() {
            self.timers.set(Timer::Stall, now + self.setup.limits.stall);
            self.finish_drain(now);
        } else {
            self.timers.clear(Timer::Stall);
        }
        frame
    }

    /// Whether the client's next message may be read.
    pub fn wants_messages(&self) -> bool {
        self.control.len() < CONTROL_MAX
    }

    /// Whether more sound of a context may be read. Always, while that context has little waiting.
    pub fn wants_audio(&self, handle: Handle) -> bool {
        let Some(context) = self.live.get(&handle) else { return true };
        context.queued_bytes() < CONTEXT_EGRESS_BYTES
            || self.live.values().map(Context::queued_bytes).sum::<usize>()
                < self.setup.limits.max_egress_bytes
    }

    /// Whether nothing more will happen: the socket can go.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing | Phase::Closed)
    }

    fn has_queued(&self) -> bool {
        !self.control.is_empty() || self.live.values().any(Context::has_queued)
    }

    fn control_frame(&mut self, now: Duration) -> Option<Frame> {
        if let Some(&Control::Cancelled { until: Some(until), .. }) = self.control.front()
            && now < until
        {
            self.timers.set(Timer::Freed, until);
            return None;
        }
        let event = match self.control.pop_front()? {
            Control::Event(event) => event,
            Control::Cancelled { answer, .. } => ServerEvent::Cancelled(answer),
            Control::Opened(handle, opened) => {
                if let Some(context) = self.live.get_mut(&handle) {
                    context.announced = true;
                }
                ServerEvent::Opened(opened)
            }
            Control::Ping => return Some(Frame::Ping),
            Control::Close { code, reason } => {
                self.phase = Phase::Closed;
                return Some(Frame::Close { code, reason });
            }
        };
        Some(self.text_frame(&event))
    }

    /// The contexts take turns, a message each.
    fn context_frame(&mut self, now: Duration) -> Option<Frame> {
        let behind = self.live.range(self.turn + 1..).map(|(&h, _)| h);
        let order: Vec<Handle> =
            behind.chain(self.live.range(..=self.turn).map(|(&h, _)| h)).collect();
        for handle in order {
            let Some(context) = self.live.get_mut(&handle) else { continue };
            let next = context.next(now);
            let is_over = context.phase == ContextPhase::Done;
            let frame = match next {
                Next::Nothing => continue,
                Next::Held(at) => {
                    match at {
                        Some(at) => self.timers.set(Timer::Pace(handle), at),
                        None => self.timers.clear(Timer::Pace(handle)),
                    }
                    continue;
                }
                Next::Audio(bytes) => Frame::Audio(bytes),
                Next::Event(event) => self.text_frame(&event),
            };
            self.turn = handle;
            if is_over {
                self.retire(handle, now);
            }
            return Some(frame);
        }
        None
    }

    fn text_frame(&mut self, event: &ServerEvent) -> Frame {
        let json = event.to_json(self.n);
        self.n += 1;
        Frame::Text(json)
    }

    fn say(&mut self, event: ServerEvent) {
        self.control.push_back(Control::Event(event));
    }

    fn error(&mut self, error: ErrorEvent) {
        self.say(ServerEvent::Error(Box::new(error)));
    }

    /// The idle clock starts again.
    fn touch(&mut self, at: Duration) {
        if let Some(settled) = &self.settled {
            self.timers.set(Timer::Idle, at + settled.idle);
        }
    }
}
