//! One task for each connection: carries inputs to the session and obeys what it says. Makes no decisions.
//!
//! ```text
//! socket ----messages---> Session ---frames---> socket     a frame is taken only when the socket has room
//! engine --events, PCM--> Session --commands--> engine     sound is encoded here, a tenth of a second at a time
//! clock  -----ticks-----> Session
//! ```
//!
//! The session may outlive its socket, and get another one from a task that was asked for it.

mod stream;

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use engine::answer::Message;
use engine::{ContextId, Events, Request};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::audio::Prepared;
use crate::foreign::Interpreter;
use crate::metrics::SessionMeter;
use crate::protocol::{Format, Frame, Handle, Input, Output, Resume, Session};
use crate::server::Server;
use crate::sessions::{Kept, Resumption, Sessions};
use crate::transport::ws::{End, Socket};
use stream::{News, Stream};

/// Frames that are sent before the task looks at its inputs again.
const FRAMES_A_TURN: usize = 32;
/// How soon the engine is asked again after its command queue was full.
const BUSY_RETRY: Duration = Duration::from_millis(2);
/// What waits when nothing does: long, for the sleep is always armed.
const FOREVER: Duration = Duration::from_secs(3_600);
/// How long the last words may take to be written.
const GOODBYE: Duration = Duration::from_secs(1);

/// Time since a connection began.
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the driver owns the loop that reads the clock")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Serves a connection until it is over. `drain` becomes a time limit when the server goes down. The future lives as long as
/// the session, and holds each thing that is handed on several times over: what is large comes in a box.
pub(crate) async fn drive(
    (session, interpreter): (Box<Session>, Interpreter),
    socket: Box<Socket>,
    server: &Server,
    clock: Clock,
    mut drain: watch::Receiver<Option<Duration>>,
    meter: SessionMeter,
) {
    let streams = BTreeMap::new();
    let mut driver = Driver {
        session,
        interpreter,
        engine: &server.engine,
        prepared: server.prepared.as_ref(),
        clock,
        streams,
        readings: BTreeMap::new(),
        turn: 0,
        has_encoded: false,
        backlog: VecDeque::new(),
        meter,
        sessions: &server.sessions,
        socket: Some(socket),
        away: None,
        kept: None,
        hung_up: false,
    };
    let mut sleep = pin!(tokio::time::sleep(FOREVER));
    let mut is_draining = false;
    loop {
        if let Some(resume) = driver.obey() {
            if !driver.leave(resume).await {
                return;
            }
            continue;
        }
        if driver.hung_up {
            break;
        }
        sleep.as_mut().reset(tokio::time::Instant::now() + driver.wait());
        let input = tokio::select! {
            biased;
            happened = poll_fn(|cx| driver.poll(cx)) => match happened {
                Happened::Input(input) => input,
                Happened::Resumption(resumption) => {
                    driver.take_in(*resumption);
                    continue;
                }
            },
            limit = limit_of(&mut drain), if !is_draining => {
                is_draining = true;
                Input::Drain(limit)
            }
            () = &mut sleep => Input::Tick,
        };
        let now = driver.clock.now();
        // A client that never pauses must not stop the clock.
        if driver.session.poll_timeout().is_some_and(|at| at <= now) {
            driver.session.handle_input(now, Input::Tick);
        }
        driver.interpreter.hear(&mut driver.session, now, input);
    }
    let socket = driver.socket.take();
    // What still plays has nobody to play to: dropping the streams stops it.
    drop(driver);
    if let Some(socket) = socket {
        let _ = tokio::time::timeout(GOODBYE, socket.close()).await;
    }
}

async fn limit_of(drain: &mut watch::Receiver<Option<Duration>>) -> Duration {
    let limit = drain.wait_for(Option::is_some).await.ok().and_then(|limit| *limit);
    match limit {
        Some(limit) => limit,
        // Whoever could say so has gone.
        None => std::future::pending().await,
    }
}

/// What a driver waits for, beside the clock.
enum Happened {
    Input(Input),
    Resumption(Box<Resumption>),
}

struct Driver<'a> {
    session: Box<Session>,
    /// What the client is spoken to through.
    interpreter: Interpreter,
    engine: &'a engine::Handle,
    /// Packets that were encoded beforehand, where there is nothing to hear.
    prepared: Option<&'a Prepared>,
    clock: Clock,
    streams: BTreeMap<Handle, Box<Stream>>,
    /// Messages that are being read, on threads where that may take a while.
    readings: BTreeMap<Handle, JoinHandle<Result<Vec<Message>, String>>>,
    /// Whose sound was encoded last.
    turn: Handle,
    /// Sound was encoded since the task last gave way.
    has_encoded: bool,
    /// What the engine had no room for. While there is anything, the client is not read.
    backlog: VecDeque<Output>,
    meter: SessionMeter,
    sessions: &'a Sessions,
    /// None while the client is away.
    socket: Option<Box<Socket>>,
    /// Until when the client may be away: what ended its session on a socket ends it without one.
    away: Option<End>,
    /// Where the client finds the session again.
    kept: Option<Kept<'a>>,
    hung_up: bool,
}

impl<'a> Driver<'a> {
    /// Obeys the session, as far as the engine takes it. Returns what the client wants that belongs to another session.
    fn obey(&mut self) -> Option<Box<Resume>> {
        self.work_off();
        while let Some(output) = self.session.poll_output() {
            match output {
                // These overtake what the engine has no room for: that belongs to other contexts, or to one that is over.
                Output::Open { context, request, format } => self.open(context, *request, &format),
                Output::Answer { context, request, format } => {
                    let voice = request.voice.clone();
                    let answer = self.engine.answer(*request);
                    self.opened(context, voice.as_deref(), answer, &format);
                }
                Output::Read { context, reading } => {
                    let read = tokio::task::spawn_blocking(move || reading.read());
                    self.readings.insert(context, read);
                }
                Output::Cancel(context) => self.cancel(context),
                Output::Hangup => self.hung_up = true,
                Output::Detach => {
                    self.away = self.socket.take().and_then(|socket| socket.abandon())
                }
                Output::Keep => {
                    let (id, token) = self.session.names();
                    self.kept = Some(self.sessions.keep(id, token));
                }
                Output::Resume(resume) => return Some(resume),
                // What the engine has no room for keeps its place before the rest.
                output => {
                    if !self.backlog.is_empty() || self.is_busy_for(&output) {
                        self.backlog.push_back(output);
                    }
                }
            }
        }
        None
    }

    /// Hands the client over to the session that it wants. Returns whether this one goes on, for that is not to be had.
    async fn leave(&mut self, resume: Box<Resume>) -> bool {
        let Some(socket) = self.socket.take() else { return false };
        match self.sessions.hand_over(socket, resume).await {
            Ok(()) => false,
            Err(socket) => {
                self.socket = Some(socket);
                self.session.handle_input(self.clock.now(), Input::ResumeRefused);
                true
            }
        }
    }

    /// Goes on over the connection of a client that comes back, if the session can.
    fn take_in(&mut self, resumption: Resumption) {
        let Resumption { socket, resume, refused } = resumption;
        if !self.session.resume(&resume, self.clock.now()) {
            // A client that is gone itself needs nothing back.
            let _ = refused.send(socket);
            return;
        }
        self.away = None;
        if let Some(old) = self.socket.replace(socket) {
            tokio::spawn(say_goodbye(old, self.session.farewell()));
        }
    }

    /// Tells the engine what it has room for.
    fn work_off(&mut self) {
        while let Some(output) = self.backlog.pop_front() {
            if self.is_busy_for(&output) {
                return self.backlog.push_front(output);
            }
        }
    }

    /// Tells the engine something, and the session what of it the engine refuses. Returns whether it has no room for that.
    fn is_busy_for(&mut self, output: &Output) -> bool {
        match (self.tell(output), output) {
            (Err(engine::Error::Busy { .. } | engine::Error::Unheard { .. }), _) => return true,
            (
                Err(error @ engine::Error::Sound { .. }),
                &(Output::Sound { context, .. } | Output::SoundEnd { context, .. }),
            ) => {
                let refused = Input::SoundRefused { context, error };
                self.session.handle_input(self.clock.now(), refused);
            }
            // An engine that has stopped, or a context that is over, says so in the events.
            _ => {}
        }
        false
    }

    fn open(&mut self, context: Handle, request: Request, format: &Format) {
        let voice = request.voice.clone();
        let answer = self.engine.open(request);
        self.opened(context, voice.as_deref(), answer, format);
    }

    /// Tells the session what the engine says of a new context.
    fn opened(
        &mut self,
        context: Handle,
        voice: Option<&str>,
        answer: Result<(ContextId, Events), engine::Error>,
        format: &Format,
    ) {
        let answer = answer.map(|(id, events)| {
            self.meter.voice(voice);
            let stream = Stream::new(id, events, format, self.prepared);
            self.streams.insert(context, Box::new(stream));
        });
        self.session.handle_input(self.clock.now(), Input::Opened { context, answer });
    }

    /// Tells the engine about a context.
    fn tell(&self, output: &Output) -> Result<(), engine::Error> {
        match output {
            Output::Speak { context, text } => {
                self.with(*context, |e, id| e.push(id, text.as_str()))
            }
            Output::Flush(context) => self.with(*context, engine::Handle::flush),
            Output::End(context) => self.with(*context, engine::Handle::end),
            Output::Restyle { context, manner } => {
                self.with(*context, |e, id| e.restyle(id, manner))
            }
            Output::Sound { context, recording, samples } => {
                self.with(*context, |e, id| e.push_audio(id, *recording, samples))
            }
            Output::SoundEnd { context, recording } => {
                self.with(*context, |e, id| e.end_audio(id, *recording))
            }
            Output::Played { context, samples } => {
                self.with(*context, |e, id| e.played(id, *samples))
            }
            Output::Open { .. }
            | Output::Answer { .. }
            | Output::Read { .. }
            | Output::Cancel(_)
            | Output::Keep
            | Output::Resume(_)
            | Output::Detach
            | Output::Hangup => Ok(()),
        }
    }

    fn with(
        &self,
        context: Handle,
        send: impl FnOnce(&engine::Handle, ContextId) -> Result<(), engine::Error>,
    ) -> Result<(), engine::Error> {
        match self.streams.get(&context) {
            Some(stream) => send(self.engine, stream.id()),
            // It ended while the message was on its way.
            None => Ok(()),
        }
    }

    fn cancel(&mut self, context: Handle) {
        self.meter.forget(context);
        self.readings.remove(&context);
        // Dropping the events cancels, before the next step.
        let kv_blocks = self.streams.remove(&context).map_or(0, |s| s.held_blocks());
        self.session.handle_input(self.clock.now(), Input::Freed { context, kv_blocks });
    }

    /// How long nothing needs to be done, unless something happens.
    fn wait(&self) -> Duration {
        if !self.backlog.is_empty() {
            return BUSY_RETRY;
        }
        let until = self.session.poll_timeout();
        until.map_or(FOREVER, |at| at.saturating_sub(self.clock.now()))
    }

    /// Sends what can be sent, then waits for something to happen.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Happened> {
        // Also while no socket takes anything.
        self.count();
        if self.send(cx).is_err() {
            return Poll::Ready(Happened::Input(Input::Lost));
        }
        if let Some(away) = &mut self.away
            && let Poll::Ready(reason) = away.as_mut().poll(cx)
        {
            self.away = None;
            return Poll::Ready(Happened::Input(Input::Unauthorized(reason)));
        }
        if let Some(kept) = &mut self.kept
            && let Poll::Ready(Some(resumption)) = kept.resumptions.poll_recv(cx)
        {
            return Poll::Ready(Happened::Resumption(Box::new(resumption)));
        }
        if self.backlog.is_empty()
            && self.session.wants_messages()
            && let Some(socket) = &mut self.socket
            && let Poll::Ready(input) = socket.poll_input(cx)
        {
            return Poll::Ready(Happened::Input(input));
        }
        if let Poll::Ready(read) = self.poll_readings(cx) {
            return Poll::Ready(Happened::Input(read));
        }
        if mem::take(&mut self.has_encoded) {
            // Other sessions' messages go first: a barge-in must not wait until everybody's sound is encoded.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.poll_streams(cx).map(Happened::Input)
    }

    /// Messages that are read.
    fn poll_readings(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        for (&context, reading) in &mut self.readings {
            if let Poll::Ready(read) = pin!(reading).poll(cx) {
                self.readings.remove(&context);
                let messages = read.expect("reading does not panic; this is a bug");
                return Poll::Ready(Input::Read { context, messages });
            }
        }
        Poll::Pending
    }

    fn send(&mut self, cx: &mut Context<'_>) -> Result<(), axum::Error> {
        let Some(socket) = &mut self.socket else { return Ok(()) };
        for _ in 0..FRAMES_A_TURN {
            let Poll::Ready(ready) = socket.poll_ready(cx) else { return Ok(()) };
            ready?;
            let now = self.clock.now();
            let frame = self.interpreter.poll_frame(&mut self.session, now);
            for note in self.session.take_notes() {
                self.meter.note(&note, now);
            }
            let Some(frame) = frame else {
                if let Poll::Ready(flushed) = socket.poll_flush(cx) {
                    flushed?;
                }
                return Ok(());
            };
            socket.send(frame)?;
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Counts what has happened.
    fn count(&mut self) {
        let now = self.clock.now();
        for note in self.session.take_notes() {
            self.meter.note(&note, now);
        }
    }

    /// The contexts take turns at being encoded.
    fn poll_streams(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        let behind = self.streams.range(self.turn + 1..).map(|(&h, _)| h);
        let order: Vec<Handle> =
            behind.chain(self.streams.range(..=self.turn).map(|(&h, _)| h)).collect();
        for handle in order {
            let Some(stream) = self.streams.get_mut(&handle) else { continue };
            if !self.session.wants_audio(handle) {
                continue;
            }
            let now = self.clock.now();
            let Poll::Ready(news) = stream.poll(cx) else { continue };
            if let News::Packets { packets, waited, .. } = &news {
                let since = waited.map(|waited| now.saturating_sub(waited));
                self.meter.packets(handle, packets.len(), since);
                self.has_encoded = true;
            }
            if stream.is_over() {
                self.streams.remove(&handle);
            }
            self.turn = handle;
            return Poll::Ready(news.into_input(handle));
        }
        Poll::Pending
    }
}

/// Tells a client that its session has moved, and closes.
async fn say_goodbye(mut socket: Box<Socket>, frames: [Frame; 2]) {
    let goodbye = async {
        for frame in frames {
            poll_fn(|cx| socket.poll_ready(cx)).await?;
            socket.send(frame)?;
        }
        socket.close().await;
        Ok::<(), axum::Error>(())
    };
    // A client that does not listen any more will find out by itself.
    let _ = tokio::time::timeout(GOODBYE, goodbye).await;
}
