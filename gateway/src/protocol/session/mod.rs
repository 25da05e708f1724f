//! A session: takes inputs, keeps the contexts, and decides the order of everything that goes out.
//!
//! Two queues lead to the wire. What is told of the session and of cancels goes first; what belongs to the sound of a
//! context waits in the context, so that a barge-in can drop it, and contexts take turns.
//!
//! ```text
//! control  ready  opened t1  error ...      cancelled t1  opened t2
//! t1       P P P commit P P ... done        -- dropped --
//! t2                                        P P P ...       not before "opened t2" is on the wire
//! ```

mod answering;
#[cfg(test)]
mod answering_tests;
mod cancelling;
mod closing;
mod contexts;
mod messages;
mod opening;
mod options;
#[cfg(test)]
mod resume_tests;
mod resuming;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod text_rules;
mod writing;

pub(crate) use text_rules::{Refused, text_options};

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::catalogue::Catalogue;
use super::context::{Context, Delivery, Next, Phase as ContextPhase, Record};
use super::event::{Cancelled, ClientEvent, ErrorEvent, Opened, Options, ServerEvent, Start};
use super::note::Note;
use super::ring::{Ring, Sound};
use super::timer::{Timer, Timers};
use super::{Frame, Handle, Input, Limits, Output, Packet};
use crate::auth::SessionAllowance;
use crate::error::Code;

/// Answers that wait for the wire; with more, the client is not read.
const CONTROL_MAX: usize = 256;
/// Sound of one context that may always wait, whatever the others have waiting: a second of PCM.
const CONTEXT_EGRESS_BYTES: usize = 48_000;
/// Flushes of a context that were not answered.
const FLUSHES_MAX: usize = 64;
/// Marks of a context that were not answered.
const MARKS_MAX: usize = 64;

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
    pub allowance: SessionAllowance,
    /// Whether the engine could supply one more listener when it began.
    pub has_room: bool,
    /// Whether its client speaks another vendor's protocol, and so knows of no refusal that leaves a context open: what is
    /// refused of one ends it. Contexts that take no more text have places of their own.
    pub is_foreign: bool,
}

/// What a session says, before it is put into the words of a protocol.
#[derive(Debug)]
pub(crate) enum Said {
    Event(ServerEvent),
    Sound(Sound),
    /// The same in every protocol, or put into words before.
    Frame(Frame),
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
    delivery: Delivery,
    defaults: Options,
    idle: Duration,
    context_idle: Duration,
    resume_window: Duration,
}

/// What waits for the wire and belongs to no context's sound.
#[derive(Debug)]
enum Control {
    Event(ServerEvent),
    Opened(Handle, Opened),
    /// `owes_freed`: it waits for what the engine held.
    Cancelled {
        handle: Handle,
        answer: Box<Cancelled>,
        since: Duration,
        owes_freed: bool,
    },
    /// What was put into words already.
    Frame(Frame),
    Close {
        code: u16,
        reason: &'static str,
    },
}

/// The state of one session.
pub struct Session {
    setup: Setup,
    phase: Phase,
    settled: Option<Settled>,
    /// Contexts without a terminal event on the wire.
    live: BTreeMap<Handle, Box<Context>>,
    /// Contexts that are over and can still be asked about.
    over: BTreeMap<Handle, Box<Record>>,
    /// Whether there is a socket.
    is_attached: bool,
    /// What a client that came back has missed; goes before everything else.
    resend: VecDeque<Frame>,
    /// What was sent, if the session outlives its socket.
    ring: Option<Ring>,
    /// The start of a client that wants another session, until that is found or not.
    wants_back: Option<Box<Start>>,
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
    /// What the driver has not counted yet.
    notes: Vec<Note>,
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
            is_attached: true,
            resend: VecDeque::new(),
            ring: None,
            wants_back: None,
            names: HashMap::new(),
            next_handle: 1,
            outputs: VecDeque::new(),
            control: VecDeque::new(),
            n: 1,
            bad_in_row: 0,
            turn: 0,
            timers,
            notes: Vec::new(),
        }
    }

    /// What it is called, and what proves that a client may have it.
    pub fn names(&self) -> (&str, &str) {
        (&self.setup.session_id, &self.setup.token)
    }

    /// Something happens.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        match input {
            Input::Gone => return self.gone(),
            Input::Lost => self.lost(now),
            // Nobody will answer the close.
            Input::HalfClosed if self.is_closing() => return self.gone(),
            Input::Tick => self.tick(now),
            // Nobody is there to be told, and nobody may come back.
            Input::Unauthorized(_) if !self.is_attached => return self.gone(),
            Input::Engine { context, event } => self.engine(context, event, now),
            _ if self.is_closing() => {}
            Input::Message(message) => self.message(&message, now),
            Input::Binary(bytes) => self.binary(&bytes, now),
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
            Input::Opened { context, answer } => self.opened(context, answer, now),
            Input::Read { context, messages } => self.read(context, messages, now),
            Input::SoundRefused { context, error } => self.sound_refused(context, &error, now),
            Input::Packets { context, packets, generated } => {
                self.packets(context, packets, generated, now);
            }
            Input::Freed { context, kv_blocks } => self.freed(context, kv_blocks, now),
            Input::HalfClosed => self.half_closed(now),
            Input::ResumeRefused => self.resume_refused(now),
            Input::Drain(limit) => self.drain(limit, now),
        }
        self.settle(now);
    }

    /// The client says something, or something that cannot be read, in whatever words.
    pub(crate) fn handle_event(&mut self, now: Duration, event: Result<ClientEvent, String>) {
        if self.is_closing() {
            return;
        }
        self.touch(now);
        match event {
            Ok(event) => self.event(event, now),
            Err(reason) => self.bad(reason, now),
        }
        self.settle(now);
    }

    /// Puts words into line that are not the session's own.
    pub(crate) fn reply(&mut self, frame: Frame) {
        if !self.is_closing() {
            self.control.push_back(Control::Frame(frame));
        }
    }

    /// What every input may bring about.
    fn settle(&mut self, now: Duration) {
        self.finish_drain(now);
        let may_stall = self.is_attached && !self.is_closing() && self.has_queued();
        if may_stall && !self.timers.is_set(Timer::Stall) {
            self.timers.set(Timer::Stall, now + self.setup.limits.stall);
        }
    }

    /// What the engine is to do next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// What happened since the last call that is worth counting; to be called after every frame.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// When to come back with [`Input::Tick`] at the latest.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// What goes on the wire next; only to be called when it can be put there.
    pub fn poll_frame(&mut self, now: Duration) -> Option<Frame> {
        Some(match self.poll_said(now)? {
            Said::Event(event) => self.text_frame(&event),
            Said::Sound(sound) => self.sound_frame(sound),
            Said::Frame(frame) => frame,
        })
    }

    /// As [`Session::poll_frame`], for who puts it into other words.
    pub(crate) fn poll_said(&mut self, now: Duration) -> Option<Said> {
        let again = self.resend.pop_front().map(Said::Frame);
        let said = again.or_else(|| self.next_control(now)).or_else(|| self.next_of_contexts(now));
        if said.is_some() {
            self.timers.set(Timer::Stall, now + self.setup.limits.stall);
            self.finish_drain(now);
        } else {
            self.timers.clear(Timer::Stall);
        }
        said
    }

    /// Whether the client's next message may be read.
    pub fn wants_messages(&self) -> bool {
        self.control.len() < CONTROL_MAX && self.wants_back.is_none()
    }

    /// Whether more sound of a context may be read. Always, while that context has little waiting.
    pub fn wants_audio(&self, handle: Handle) -> bool {
        let Some(context) = self.live.get(&handle) else { return true };
        context.queued_bytes() < CONTEXT_EGRESS_BYTES
            || context.lacks_commit()
            || self.live.values().map(|context| context.queued_bytes()).sum::<usize>()
                < self.setup.limits.max_egress_bytes
    }

    /// Whether nothing more will happen: the socket can go.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    pub(crate) fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing | Phase::Closed)
    }

    fn has_queued(&self) -> bool {
        !self.resend.is_empty()
            || !self.control.is_empty()
            || self.live.values().any(|context| context.has_queued())
    }

    fn next_control(&mut self, now: Duration) -> Option<Said> {
        let event = match self.control.pop_front()? {
            Control::Event(event) => event,
            Control::Cancelled { handle, answer, since, .. } => {
                self.notes.push(Note::Cancelled {
                    reason: answer.reason,
                    late: answer.late,
                    answered_after: now.saturating_sub(since),
                });
                self.note_end(handle);
                ServerEvent::Cancelled(answer)
            }
            Control::Opened(handle, opened) => {
                if let Some(context) = self.live.get_mut(&handle) {
                    context.announced = true;
                }
                ServerEvent::Opened(opened)
            }
            Control::Frame(frame) => return Some(Said::Frame(frame)),
            Control::Close { code, reason } => {
                self.phase = Phase::Closed;
                self.notes.push(Note::Closed(code));
                return Some(Said::Frame(Frame::Close { code, reason }));
            }
        };
        Some(self.tell(event))
    }

    /// The contexts take turns, a message each.
    fn next_of_contexts(&mut self, now: Duration) -> Option<Said> {
        let behind = self.live.range(self.turn + 1..).map(|(&h, _)| h);
        let order: Vec<Handle> =
            behind.chain(self.live.range(..=self.turn).map(|(&h, _)| h)).collect();
        for handle in order {
            if self.waits_for_another(handle) {
                continue;
            }
            let Some(context) = self.live.get_mut(&handle) else { continue };
            let before = context.record.pacer.clone();
            let next = context.next(now);
            let is_over = context.record.phase == ContextPhase::Done;
            let said = match next {
                Next::Nothing => continue,
                Next::Held(at) => {
                    match at {
                        Some(at) => self.timers.set(Timer::Pace(handle), at),
                        None => self.timers.clear(Timer::Pace(handle)),
                    }
                    continue;
                }
                Next::Sound(sound) => {
                    self.notes.push(Note::Sound(context.sound_sent(&before, &sound, now)));
                    Said::Sound(sound)
                }
                Next::Event(event) => self.tell(event),
                Next::Stopped => {
                    self.stopped(handle, now);
                    return self.next_control(now);
                }
            };
            self.turn = handle;
            if is_over {
                self.retire(handle, now);
            }
            return Some(said);
        }
        None
    }

    /// Whether the sound of a context must not begin, since the one before it has not ended on the wire.
    fn waits_for_another(&mut self, handle: Handle) -> bool {
        let after = self.live.get(&handle).and_then(|context| context.after);
        let waits = after.is_some_and(|other| self.live.contains_key(&other));
        if let Some(context) = self.live.get_mut(&handle) {
            if waits {
                context.hold();
                return true;
            }
            context.after = None;
        }
        false
    }

    /// Sound has come.
    fn packets(&mut self, handle: Handle, packets: Vec<Packet>, generated: u64, now: Duration) {
        let Some(context) = self.live.get_mut(&handle) else { return };
        context.push_packets(packets, generated, now);
        if context.after.is_some() && !context.engine_over {
            // Nobody hears it yet, so that the engine's clock must not take it that somebody does.
            self.outputs.push_back(Output::Played { context: handle, samples: 0 });
        }
    }

    fn sound_frame(&mut self, sound: Sound) -> Frame {
        let bytes = sound.bytes.clone();
        if let Some((ring, settled)) = self.ring.as_mut().zip(self.settled.as_ref()) {
            ring.sound(sound, settled.delivery.format.sample_rate);
        }
        Frame::Audio(bytes)
    }

    /// Takes note of something that goes out next.
    fn tell(&mut self, event: ServerEvent) -> Said {
        self.notes.extend(Note::of(&event));
        Said::Event(event)
    }

    fn text_frame(&mut self, event: &ServerEvent) -> Frame {
        let json = event.to_json(self.n);
        if let Some(ring) = &mut self.ring {
            ring.message(self.n, json.clone());
        }
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
