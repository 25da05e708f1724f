//! What the engine tells about a context, and the outbox it is told through.
//!
//! The engine never waits for a reader: an outbox takes whatever was made, and the engine makes no more for a context whose
//! outbox holds more than its limit (it is parked). So an outbox never holds more than the limit plus one commit.
//!
//! ```text
//! Chunk Aligned Audio Aligned Audio .. Flushed Audio .. Done        the ordinary way
//! Audio Cancelled                                         nothing follows
//! Segment Text Text .. SegmentEnd Segment Audio Audio .. SegmentEnd Done       an answer
//! ```

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::meter::Watch;
use crate::phase::Modality;
use crate::text::Notice;
use crate::{Error, Pcm, Speech};

/// Something that happened to a context. The last event is exactly one of `Done`, `Cancelled`, `Failed`.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Sound that is final, clipped.
    Audio {
        /// Position of the first sample on the context's timeline.
        start: u64,
        /// The samples, right behind those of the event before.
        samples: Pcm,
    },
    /// A chunk of text was given to the model.
    Chunk {
        /// The spoken text of the chunk.
        text: String,
        /// Its range in the client's raw text, in code points.
        raw: Range<usize>,
    },
    /// The codes of a chunk are complete, so its end on the timeline is known. Comes before the sound that reaches it.
    ChunkEnd {
        /// The chunk, for a context that is to go on from it.
        said: Arc<Speech>,
        /// Its range in the client's raw text, in code points.
        raw: Range<usize>,
        /// Samples from the start of the context to the end of the chunk.
        end: u64,
    },
    /// It is known when some characters end. Comes before the sound in which the first of them does; no other character
    /// ends in the sound before that. Only from bundles whose network shows what it looks at.
    Aligned {
        /// In the order of the text, ascending in both.
        ends: Vec<CharEnd>,
    },
    /// Something of the text has no effect.
    Notice(Notice),
    /// Everything before a flush has been sent.
    Flushed {
        /// Samples sent so far.
        samples: u64,
    },
    /// An answer goes on with a segment of text or of sound.
    Segment {
        /// What it holds.
        modality: Modality,
    },
    /// More of a segment of text. Whole code points: put together they are the text of the segment.
    Text {
        /// What comes behind the text so far.
        delta: String,
    },
    /// A segment is complete, and all of it has been told.
    SegmentEnd(Segment),
    /// The context is complete.
    Done(Summary),
    /// The context was cancelled: nothing of it follows, its memory is free.
    Cancelled(Summary),
    /// The context could not go on.
    Failed(Failure),
}

/// When a character has been spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CharEnd {
    /// Code points of the client's raw text up to the end of the character.
    pub raw_to: usize,
    /// Samples from the start of the context.
    pub sample: u64,
}

/// A segment of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Text, all of it.
    Text(String),
    /// Sound.
    Audio {
        /// Frames of codes.
        frames: usize,
        /// Frames that were begun and not finished, so that they are not heard: the model ended before.
        lost: usize,
    },
}

/// What an answer took and gave. A guidance companion is not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt that are no sound: text, and the symbols around it.
    pub prompt_tokens: usize,
    /// Tokens of the prompt that are sound.
    pub prompt_audio_tokens: usize,
    /// Tokens of text that were written.
    pub text_tokens: usize,
    /// Frames of sound that were said.
    pub audio_frames: usize,
    /// Why it ended.
    pub finish: Finish,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Finish {
    /// The model ended it, or one of the strings did at which it was to stop.
    #[default]
    Stop,
    /// A limit of the request ended one of its segments.
    Length,
}

/// What a context came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Samples released to the outbox.
    pub samples: u64,
    /// Code points of raw text that were accepted.
    pub text_chars: usize,
    /// Key/value blocks that the context held when it ended.
    pub kv_blocks: usize,
    /// Whether a guard used up its tries, so that the best attempt was spoken.
    pub guard_exhausted: bool,
    /// Whether a chunk was spoken that ran into its frame budget instead of ending by itself.
    pub truncated_by_budget: bool,
    /// From the first cut of its text until its first token ran.
    pub queued: Duration,
    /// What an answer took and gave; `None` of a text that was only spoken.
    pub usage: Option<Usage>,
}

/// Why a context failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A network returned values that are not finite, or the device refused.
    #[error("the model failed: {0}")]
    Model(String),
    /// Every attempt at a chunk came out empty or silent.
    #[error("chunk {chunk} stayed empty or silent after {tries} tries")]
    NoSpeech {
        /// Which chunk of the context, 0 based.
        chunk: usize,
        /// How many attempts were made.
        tries: u32,
    },
    /// The codec could not decode.
    #[error("the codec failed: {0}")]
    Codec(String),
    /// A recording in the request cannot be heard, or not with all that stands beside it: another could.
    #[error("cannot hear a recording: {0}")]
    Hearing(String),
}

struct State {
    /// Each with when it came.
    events: VecDeque<(Duration, Event)>,
    /// How long the event taken last had waited.
    waited: Duration,
    buffered_samples: u64,
    closed: bool,
    reader_gone: bool,
    waker: Option<Waker>,
    watch: Option<Watch>,
    /// When all was there of what was asked.
    asked: Duration,
}

impl State {
    fn put(&mut self, event: Event, now: Duration) {
        if let Some(watch) = &mut self.watch {
            watch.heed(&event, now.saturating_sub(self.asked));
        }
        self.events.push_back((now, event));
    }
}

struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    held_blocks: AtomicUsize,
    on_drain: Box<dyn Fn() + Send + Sync>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A reader that panicked leaves a whole queue behind: every critical section below is a few plain moves.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engine's end: events go in, never blocking.
#[derive(Clone)]
pub(crate) struct Outbox {
    shared: Arc<Shared>,
}

/// The reader's end. Dropping it cancels the context.
pub struct Events {
    shared: Arc<Shared>,
}

/// A connected pair. `clock` never runs backwards; `on_drain` is called, on the reader's thread, whenever the reader has taken audio or has gone.
pub(crate) fn outbox(
    clock: impl Fn() -> Duration + Send + Sync + 'static,
    on_drain: impl Fn() + Send + Sync + 'static,
) -> (Outbox, Events) {
    let state = State {
        events: VecDeque::new(),
        waited: Duration::ZERO,
        buffered_samples: 0,
        closed: false,
        reader_gone: false,
        waker: None,
        watch: None,
        asked: Duration::ZERO,
    };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        arrived: Condvar::new(),
        clock: Box::new(clock),
        held_blocks: AtomicUsize::new(0),
        on_drain: Box::new(on_drain),
    });
    (Outbox { shared: shared.clone() }, Events { shared })
}

impl Outbox {
    /// From now on what goes out is counted.
    pub(crate) fn watch(&self, watch: Watch) {
        self.shared.lock().watch = Some(watch);
    }

    /// All is there now of what was asked: from here it is counted how long an answer takes.
    pub(crate) fn asked(&self) {
        self.shared.lock().asked = (self.shared.clock)();
    }

    /// Adds an event; events after the last one, or for a reader that has gone, are dropped.
    pub(crate) fn send(&self, event: Event) {
        let mut state = self.shared.lock();
        if state.closed || state.reader_gone {
            return;
        }
        if let Event::Audio { samples, .. } = &event {
            state.buffered_samples += samples.len() as u64;
        }
        state.closed = matches!(event, Event::Done(_) | Event::Cancelled(_) | Event::Failed(_));
        state.put(event, (self.shared.clock)());
        self.wake(state);
    }

    /// Ends the context now: what was not read yet is dropped, and `event` is the only thing left to read.
    pub(crate) fn cut_off(&self, event: Event) {
        let mut state = self.shared.lock();
        if state.closed {
            return;
        }
        state.events.clear();
        state.buffered_samples = 0;
        state.put(event, (self.shared.clock)());
        state.closed = true;
        self.wake(state);
    }

    /// The context did not begin after all: it is not counted.
    pub(crate) fn unwatch(&self) {
        self.shared.lock().watch.take().into_iter().for_each(Watch::disown);
    }

    /// Samples sent but not read.
    pub(crate) fn buffered_samples(&self) -> u64 {
        self.shared.lock().buffered_samples
    }

    /// Notes how many key/value blocks the context holds.
    pub(crate) fn hold(&self, blocks: usize) {
        self.shared.held_blocks.store(blocks, Ordering::Relaxed);
    }

    /// Whether nobody will read any more.
    pub(crate) fn reader_gone(&self) -> bool {
        self.shared.lock().reader_gone
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let waker = state.waker.take();
        drop(state);
        self.shared.arrived.notify_one();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Events {
    /// The next event; waits for it. `None` after the last one.
    pub fn recv(&self) -> Option<Event> {
        let mut state = self.shared.lock();
        loop {
            if let Some(event) = state.events.pop_front() {
                return Some(self.taken(state, event));
            }
            if state.closed {
                return None;
            }
            state = self.shared.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next event, waiting at most `limit` for it.
    ///
    /// # Errors
    /// [`Error::Timeout`] when nothing came in time.
    pub fn recv_timeout(&self, limit: Duration) -> Result<Option<Event>, Error> {
        let state = self.shared.lock();
        let (mut state, timeout) = self
            .shared
            .arrived
            .wait_timeout_while(state, limit, |s| s.events.is_empty() && !s.closed)
            .unwrap_or_else(PoisonError::into_inner);
        match state.events.pop_front() {
            Some(event) => Ok(Some(self.taken(state, event))),
            None if timeout.timed_out() => Err(Error::Timeout),
            None => Ok(None),
        }
    }

    /// How long the event taken last had waited to be taken.
    pub fn waited(&self) -> Duration {
        self.shared.lock().waited
    }

    /// The next event for an async reader: `Ready(None)` after the last one.
    pub fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut state = self.shared.lock();
        match state.events.pop_front() {
            Some(event) => Poll::Ready(Some(self.taken(state, event))),
            None if state.closed => Poll::Ready(None),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Key/value blocks that the context held when the last step ended; they are free before the next step once the
    /// context is cancelled.
    pub fn held_blocks(&self) -> usize {
        self.shared.held_blocks.load(Ordering::Relaxed)
    }

    fn taken(&self, mut state: MutexGuard<'_, State>, (came, event): (Duration, Event)) -> Event {
        state.waited = (self.shared.clock)().saturating_sub(came);
        if let Event::Audio { samples, .. } = &event {
            state.buffered_samples -= samples.len() as u64;
            drop(state);
            (self.shared.on_drain)();
        }
        event
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.reader_gone = true;
        state.events.clear();
        state.buffered_samples = 0;
        drop(state);
        (self.shared.on_drain)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audio(start: u64, n: usize) -> Event {
        Event::Audio { start, samples: vec![0.0; n].into() }
    }

    #[test]
    fn nothing_follows_the_last_event() {
        let (tx, rx) = outbox(|| Duration::ZERO, || {});
        tx.send(audio(0, 10));
        tx.send(Event::Done(Summary::default()));
        tx.send(audio(10, 10));
        assert_eq!(rx.recv(), Some(audio(0, 10)));
        assert_eq!(rx.recv(), Some(Event::Done(Summary::default())));
        assert_eq!(rx.recv(), None);
    }

    #[test]
    fn a_cut_off_drops_what_was_not_read() {
        let (tx, rx) = outbox(|| Duration::ZERO, || {});
        tx.send(audio(0, 10));
        tx.cut_off(Event::Cancelled(Summary::default()));
        tx.send(audio(10, 10));
        assert_eq!(tx.buffered_samples(), 0);
        assert_eq!(rx.recv(), Some(Event::Cancelled(Summary::default())));
        assert_eq!(rx.recv(), None);
    }

    #[test]
    fn reading_audio_and_leaving_are_told_to_the_engine() {
        let drained = Arc::new(AtomicUsize::new(0));
        let count = drained.clone();
        let (tx, rx) = outbox(
            || Duration::ZERO,
            move || {
                count.fetch_add(1, Ordering::SeqCst);
            },
        );
        tx.send(audio(0, 10));
        assert_eq!(tx.buffered_samples(), 10);
        rx.recv();
        assert_eq!((tx.buffered_samples(), drained.load(Ordering::SeqCst)), (0, 1));
        drop(rx);
        assert!(tx.reader_gone());
        assert_eq!(drained.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn an_event_knows_how_long_it_had_waited() {
        let now = Arc::new(AtomicUsize::new(3));
        let clock = now.clone();
        let clock = move || Duration::from_secs(clock.load(Ordering::SeqCst) as u64);
        let (tx, rx) = outbox(clock, || {});
        tx.send(audio(0, 1));
        now.store(10, Ordering::SeqCst);
        tx.send(audio(1, 1));
        rx.recv();
        assert_eq!(rx.waited(), Duration::from_secs(7));
        rx.recv();
        assert_eq!(rx.waited(), Duration::ZERO);
    }

    #[test]
    fn an_answer_is_timed_from_when_all_was_asked() {
        let now = Arc::new(AtomicUsize::new(0));
        let clock = now.clone();
        let clock = move || Duration::from_secs(clock.load(Ordering::SeqCst) as u64);
        let (tx, _rx) = outbox(clock, || {});
        let meter = Arc::<crate::meter::Meter>::default();
        tx.watch(meter.begin());
        now.store(9, Ordering::SeqCst);
        tx.asked();
        now.store(11, Ordering::SeqCst);
        tx.send(Event::Text { delta: "a".into() });
        let timed = meter.stats("m").first_text_seconds;
        assert_eq!((timed.count(), timed.sum()), (1, 2.0));
    }

    #[test]
    fn an_async_reader_is_woken() {
        struct Flag(AtomicUsize);
        impl std::task::Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let flag = Arc::new(Flag(AtomicUsize::new(0)));
        let waker = Waker::from(flag.clone());
        let mut cx = Context::from_waker(&waker);
        let (tx, rx) = outbox(|| Duration::ZERO, || {});
        assert!(rx.poll_recv(&mut cx).is_pending());
        tx.send(audio(0, 1));
        assert_eq!(flag.0.load(Ordering::SeqCst), 1);
        assert_eq!(rx.poll_recv(&mut cx), Poll::Ready(Some(audio(0, 1))));
    }
}
