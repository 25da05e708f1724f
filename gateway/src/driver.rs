//! One task for each connection: carries inputs to the session and obeys what it says. Makes no decisions.
//!
//! ```text
//! socket ----messages---> Session ---frames---> socket     a frame is taken only when the socket has room
//! engine --events, PCM--> Session --commands--> engine     sound is encoded here, a tenth of a second at a time
//! clock  -----ticks-----> Session
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use engine::{ContextId, Event, Events, Failure, Request};
use tokio::sync::watch;

use crate::audio::{ENGINE_RATE, PacketMaker};
use crate::protocol::{Format, Handle, Input, Output, Session};
use crate::transport::ws::Socket;

/// Sound that is encoded before the task looks at its socket again: 100 ms, about half a millisecond of Opus.
const PIECE_SAMPLES: usize = ENGINE_RATE as usize / 10;
/// Frames that are sent before the task looks at its inputs again.
const FRAMES_A_TURN: usize = 32;
/// How soon the engine is asked again after its command queue was full.
const BUSY_RETRY: Duration = Duration::from_millis(2);
/// What waits when nothing does: long, for the sleep is always armed.
const FOREVER: Duration = Duration::from_secs(3_600);
/// How long the last words may take to get out of the door.
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

/// Serves a connection until it is over. `drain` becomes a time limit when the server goes down.
pub(crate) async fn drive(
    session: Session,
    mut socket: Socket,
    engine: Arc<engine::Handle>,
    clock: Clock,
    mut drain: watch::Receiver<Option<Duration>>,
) {
    let streams = BTreeMap::new();
    let mut driver = Driver {
        session,
        engine,
        clock,
        streams,
        turn: 0,
        backlog: VecDeque::new(),
        hung_up: false,
    };
    let mut sleep = pin!(tokio::time::sleep(FOREVER));
    let mut is_draining = false;
    loop {
        driver.obey();
        if driver.hung_up {
            break;
        }
        sleep.as_mut().reset(tokio::time::Instant::now() + driver.wait());
        let input = tokio::select! {
            biased;
            input = poll_fn(|cx| driver.poll(&mut socket, cx)) => input,
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
        driver.session.handle_input(now, input);
    }
    // What still plays has nobody to play to: dropping the streams stops it.
    drop(driver);
    let _ = tokio::time::timeout(GOODBYE, socket.close()).await;
}

async fn limit_of(drain: &mut watch::Receiver<Option<Duration>>) -> Duration {
    let limit = drain.wait_for(Option::is_some).await.ok().and_then(|limit| *limit);
    match limit {
        Some(limit) => limit,
        // Whoever could say so has gone.
        None => std::future::pending().await,
    }
}

struct Driver {
    session: Session,
    engine: Arc<engine::Handle>,
    clock: Clock,
    streams: BTreeMap<Handle, Stream>,
    /// Whose sound was encoded last.
    turn: Handle,
    /// What the engine had no room for. While there is anything, the client is not read.
    backlog: VecDeque<Output>,
    hung_up: bool,
}

impl Driver {
    /// Obeys the session, as far as the engine takes it.
    fn obey(&mut self) {
        while let Some(output) = self.backlog.pop_front().or_else(|| self.session.poll_output()) {
            match output {
                Output::Open { context, request, format } => self.open(context, *request, &format),
                Output::Cancel(context) => self.cancel(context),
                Output::Hangup => self.hung_up = true,
                output => {
                    if let Err(engine::Error::Busy { .. }) = self.tell(&output) {
                        self.backlog.push_front(output);
                        return;
                    }
                    // An engine that has stopped says so in the events of its contexts.
                }
            }
        }
    }

    fn open(&mut self, context: Handle, request: Request, format: &Format) {
        let answer = self.engine.open(request).map(|(id, events)| {
            self.streams.insert(context, Stream::new(id, events, format));
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
            Output::Played { context, samples } => {
                self.with(*context, |e, id| e.played(id, *samples))
            }
            Output::Open { .. } | Output::Cancel(_) | Output::Hangup => Ok(()),
        }
    }

    fn with(
        &self,
        context: Handle,
        send: impl FnOnce(&engine::Handle, ContextId) -> Result<(), engine::Error>,
    ) -> Result<(), engine::Error> {
        match self.streams.get(&context) {
            Some(stream) => send(&self.engine, stream.id),
            // It ended while the message was on its way.
            None => Ok(()),
        }
    }

    fn cancel(&mut self, context: Handle) {
        let Some(stream) = self.streams.get_mut(&context) else { return };
        stream.cancel();
        if self.engine.cancel(stream.id).is_err() {
            // The engine finds out by itself that nobody reads any more; only what was freed stays unknown.
            self.streams.remove(&context);
        }
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
    fn poll(&mut self, socket: &mut Socket, cx: &mut Context<'_>) -> Poll<Input> {
        if self.send(socket, cx).is_err() {
            return Poll::Ready(Input::Gone);
        }
        if self.backlog.is_empty()
            && self.session.wants_messages()
            && let Poll::Ready(input) = socket.poll_input(cx)
        {
            return Poll::Ready(input);
        }
        self.poll_streams(cx)
    }

    fn send(&mut self, socket: &mut Socket, cx: &mut Context<'_>) -> Result<(), axum::Error> {
        for _ in 0..FRAMES_A_TURN {
            let Poll::Ready(ready) = socket.poll_ready(cx) else { return Ok(()) };
            ready?;
            let Some(frame) = self.session.poll_frame(self.clock.now()) else {
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
            let Poll::Ready(news) = stream.poll(cx) else { continue };
            if stream.is_over {
                self.streams.remove(&handle);
            }
            self.turn = handle;
            return Poll::Ready(news.into_input(handle));
        }
        Poll::Pending
    }
}

/// What a stream gives.
enum News {
    Packets { packets: Vec<crate::protocol::Packet>, generated: u64 },
    Event(Event),
}

impl News {
    fn into_input(self, context: Handle) -> Input {
        match self {
            Self::Packets { packets, generated } => Input::Packets { context, packets, generated },
            Self::Event(event) => Input::Engine { context, event },
        }
    }
}

/// The engine's side of one context, with its encoder.
struct Stream {
    id: ContextId,
    events: Events,
    /// None for a context that was cancelled.
    maker: Option<PacketMaker>,
    /// Sound that waits to be encoded, and how much of it was.
    sound: (Vec<f32>, usize),
    /// The engine's last event, when packets had to go before it.
    last: Option<Event>,
    is_over: bool,
}

impl Stream {
    fn new(id: ContextId, events: Events, format: &Format) -> Self {
        let maker = PacketMaker::new(format);
        // Told in the place of the first event: the session knows what to do with a context that fails.
        let last = maker.as_ref().err().map(|e| Event::Failed(Failure::Codec(e.to_string())));
        Self { id, events, maker: maker.ok(), sound: (Vec::new(), 0), last, is_over: false }
    }

    /// Nothing but the engine's last event is wanted any more.
    fn cancel(&mut self) {
        (self.maker, self.sound) = (None, (Vec::new(), 0));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<News> {
        loop {
            if let Some(packets) = self.encode() {
                return Poll::Ready(packets);
            }
            if let Some(event) = self.last.take() {
                return Poll::Ready(self.end(event));
            }
            let event = match self.events.poll_recv(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(event)) => event,
                Poll::Ready(None) => Event::Failed(Failure::Model("the engine stopped".to_owned())),
            };
            match event {
                Event::Audio { samples, .. } if self.maker.is_some() => self.sound = (samples, 0),
                Event::Done(_) => {
                    self.last = Some(event);
                    if let Some(packets) = self.finish() {
                        return Poll::Ready(packets);
                    }
                }
                Event::Cancelled(_) | Event::Failed(_) => return Poll::Ready(self.end(event)),
                Event::Chunk { .. }
                | Event::Aligned { .. }
                | Event::ChunkEnd { .. }
                | Event::Flushed { .. }
                    if self.maker.is_some() =>
                {
                    return Poll::Ready(News::Event(event));
                }
                // Of a context that was cancelled.
                _ => {}
            }
        }
    }

    /// Encodes the next piece of the sound that is here.
    fn encode(&mut self) -> Option<News> {
        let (samples, at) = &mut self.sound;
        let rest = &samples[*at..];
        let piece = &rest[..rest.len().min(PIECE_SAMPLES)];
        let maker = self.maker.as_mut().filter(|_| !piece.is_empty())?;
        let packets = maker.push(piece);
        *at += piece.len();
        match packets {
            Ok(packets) => Some(News::Packets { packets, generated: maker.samples_in() }),
            Err(error) => Some(self.end(Event::Failed(Failure::Codec(error.to_string())))),
        }
    }

    /// The packets behind the last sample.
    fn finish(&mut self) -> Option<News> {
        let maker = self.maker.take()?;
        let generated = maker.samples_in();
        match maker.finish() {
            Ok(packets) if packets.is_empty() => None,
            Ok(packets) => Some(News::Packets { packets, generated }),
            Err(error) => Some(self.end(Event::Failed(Failure::Codec(error.to_string())))),
        }
    }

    fn end(&mut self, event: Event) -> News {
        self.is_over = true;
        News::Event(event)
    }
}
