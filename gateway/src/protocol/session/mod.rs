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
mod messages;
mod options;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use engine::Event;

use super::catalogue::Catalogue;
use super::context::{Context, Next, Phase as ContextPhase};
use super::event::{Cancelled, ErrorEvent, Freed, Opened, Options, ServerEvent};
use super::format::Format;
use super::timer::{Timer, Timers};
use super::{Frame, Handle, Input, Limits, Output, millis};
use crate::error::{Code, refusal};

/// A cancel is answered after this long even if the engine has not yet said what the context held: an answer within
/// 20 ms was promised, and nothing of the context follows in any case.
const FREED_WAIT: Duration = Duration::from_millis(10);
/// Answers that wait for the wire; with more, the client is not read.
const CONTROL_MAX: usize = 256;
/// Sound of one context that may always wait, whatever the others have waiting: a second of PCM.
const CONTEXT_EGRESS_BYTES: usize = 48_000;
/// Contexts that are over and can still be asked about; the oldest are forgotten earlier than promised.
const RETAINED_MAX: usize = 256;
/// Flushes of a context that were not answered.
const FLUSHES_MAX: usize = 64;
/// When to try again after the engine's command queue was full.
const BUSY_RETRY_MS: u64 = 100;

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

    fn opened(&mut self, handle: Handle, answer: Result<(), engine::Error>) {
        let Some(context) = self.live.get(&handle) else { return };
        if let Err(refused) = answer {
            let code = refusal(&refused);
            let mut error = ErrorEvent::new(code, refused.to_string())
                .of(&context.name)
                .about("context.open", None);
            error.retry_after_ms = (code == Code::Overloaded).then_some(BUSY_RETRY_MS);
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

    fn engine(&mut self, handle: Handle, event: Event, now: Duration) {
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
    fn cancel_live(&mut self, handle: Handle, reason: &'static str, now: Duration) {
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
    fn retire(&mut self, handle: Handle, now: Duration) {
        if let Some(context) = self.live.remove(&handle) {
            self.keep(context, now);
        }
    }

    /// Keeps what a late cancel will ask for.
    fn keep(&mut self, context: Context, now: Duration) {
        let handle = context.handle;
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

    /// The idle clock starts again.
    fn touch(&mut self, at: Duration) {
        if let Some(settled) = &self.settled {
            self.timers.set(Timer::Idle, at + settled.idle);
        }
    }
}
