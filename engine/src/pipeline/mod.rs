//! What a context does next: text to chunks, chunks to C0, segments of C0 to C1..C3, complete columns to the codec.
//! The only place that knows the order cb0 -> cb1 -> cb2 -> cb3 -> audio. Pure: networks, clocks and channels are elsewhere.
//!
//! ```text
//! text   [ chunk 0 ......... ][ chunk 1 .. (cut when chunk 0 is complete)
//! cb0    [ 10 ][ 20   ][ 25     ] stop [ ..          one group at a time, each chunk reads the one before
//! cb1-3        [ 10 ]   [ 30  ]     segments at 10, 30, 55, 105, ..: known codes are forced, new ones are said
//! codec           [ 5 out ] [ 20 out ]               what the window plan lets go
//! ```

mod alignment;
mod chunk;
mod draw;
mod hand_over;
mod job;
mod playout;
mod settings;
mod stages;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use codecs::window::Plan;

use crate::ContextId;
use crate::event::{Event, Failure, Summary};
use crate::scheduler::Scheduler;
use crate::sequence::{Group, GroupId};
use crate::text::{self, Need, Notice, Passage};
use alignment::Alignment;
use chunk::{Chunk, Place};
pub(crate) use job::{AudioJob, Env, Said};
pub use playout::{Playout, SAMPLE_RATE, sounding};
pub(crate) use playout::{Standing, Urgency};
pub use settings::Segments;
pub(crate) use settings::Settings;

/// Chunks of one context between their cut and their last code: enough to keep the acoustic stages in full batches, and a bound
/// on what a long text holds.
const CHUNKS_AT_ONCE: usize = 8;

/// Where the text of a context comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// All of it was there at once and is cut by the literal splitter.
    Whole {
        /// The chunks that have not started.
        chunks: VecDeque<text::Chunk>,
        /// Code points of the raw text.
        raw_chars: usize,
        /// What of the text has no effect, until it is told.
        notices: Vec<Notice>,
    },
    /// It arrives while it is spoken.
    Live(Box<Passage>),
}

/// The chunk before, as the next one reads it.
#[derive(Debug)]
struct Before {
    text: String,
    codes: Vec<u16>,
}

/// One context from its first text to its last sample.
pub(crate) struct Context {
    id: ContextId,
    settings: Settings,
    source: Source,
    chunks: VecDeque<Chunk>,
    before: Option<Before>,
    next_index: usize,
    /// Mirror of the codec's plan: what will be released is known before it is decoded.
    plan: Plan,
    /// Sample at which the codec's current passage began.
    passage_start: u64,
    /// C0 frames of the current passage in complete chunks.
    passage_frames: usize,
    playout: Playout,
    flushes: usize,
    guard_exhausted: bool,
    truncated_by_budget: bool,
    /// Since when the first chunk waits for its first tokens to run.
    queued_at: Option<Duration>,
    /// How long it has waited.
    queued: Duration,
    finished: bool,
}

impl Context {
    pub(crate) fn new(id: ContextId, settings: Settings, source: Source) -> Self {
        let plan =
            Plan::new(settings.window.clone()).expect("checked when the request was resolved");
        let before = settings.prefix.as_ref();
        let before =
            before.map(|said| Before { text: said.text.clone(), codes: said.codes.clone() });
        Self {
            id,
            settings,
            source,
            chunks: VecDeque::new(),
            before,
            next_index: 0,
            plan,
            passage_start: 0,
            passage_frames: 0,
            playout: Playout::default(),
            flushes: 0,
            guard_exhausted: false,
            truncated_by_budget: false,
            queued_at: None,
            queued: Duration::ZERO,
            finished: false,
        }
    }

    /// More text of a live context.
    pub(crate) fn push(&mut self, delta: &str, now: Duration) {
        if let Source::Live(passage) = &mut self.source {
            passage.push(delta, now);
        }
    }

    /// Everything so far is to be spoken without waiting for more; answered by [`Event::Flushed`].
    pub(crate) fn flush(&mut self, now: Duration) {
        if let Source::Live(passage) = &mut self.source {
            passage.flush(now);
        }
        self.flushes += 1;
    }

    /// No more text will come.
    pub(crate) fn end(&mut self, now: Duration) {
        if let Source::Live(passage) = &mut self.source {
            passage.end(now);
        }
    }

    /// The listener has heard so many samples.
    pub(crate) fn played(&mut self, position: u64, now: Duration) {
        self.playout.played(position, now);
    }

    /// What is cut from now on is spoken in another manner.
    pub(crate) fn restyle(&mut self, control: Arc<[Vec<u32>]>) {
        self.settings.control = control;
    }

    /// Whether the last job has been made.
    pub(crate) fn finished(&self) -> bool {
        self.finished
    }

    /// The context's place in the order of work, smaller first; `None` when it is far enough ahead of its listener.
    pub(crate) fn urgency(&self, now: Duration) -> Option<Urgency> {
        self.settings.standing.urgency(&self.playout, now)
    }

    /// Whether the listener has as much sound in hand as the context may run ahead.
    pub(crate) fn parked(&self, now: Duration) -> bool {
        self.settings.standing.parked(&self.playout, now)
    }

    /// Told when tokens of the context have run. Returns how long its first chunk had waited for that, once.
    pub(crate) fn ran(&mut self, now: Duration) -> Option<Duration> {
        self.queued = now.saturating_sub(self.queued_at.take()?);
        Some(self.queued)
    }

    /// When time alone gives the context something to do that it did not have now.
    pub(crate) fn due_after(&self, now: Duration) -> Option<Duration> {
        self.due_at().into_iter().flatten().filter(|&at| at > now).min()
    }

    /// Every moment that may give it something to do; some have passed.
    fn due_at(&self) -> [Option<Duration>; 5] {
        let dry_at = self.playout.dry_at();
        let unpark = self.settings.standing.unparked_at(&self.playout);
        let pause = (self.idle() && self.withheld()).then(|| self.pause_at());
        let [mut urgent, mut relaxed, mut late] = [None; 3];
        if let Source::Live(passage) = &self.source
            && self.semantic().is_none()
        {
            urgent = dry_at.map(|_| self.urgent_at());
            relaxed = passage.next_deadline(Need::Relaxed);
            late = passage.next_deadline(Need::Urgent).map(|at| at.max(self.urgent_at()));
        }
        [unpark, pause, urgent, relaxed, late.filter(|&at| at < Duration::MAX)]
    }

    /// Key/value blocks that it holds.
    pub(crate) fn held_blocks(&self, scheduler: &Scheduler) -> usize {
        let groups = self
            .chunks
            .iter()
            .flat_map(|c| c.semantic.into_iter().chain(c.refine.map(|r| r.group)));
        groups.filter_map(|id| scheduler.group(id)).map(Group::blocks).sum()
    }

    /// Ends the context: its groups are removed and their blocks are free when this returns.
    pub(crate) fn stop(&mut self, scheduler: &mut Scheduler) -> Summary {
        let mut summary = self.summary();
        for chunk in &mut self.chunks {
            let groups =
                chunk.semantic.take().into_iter().chain(chunk.refine.take().map(|r| r.group));
            summary.kv_blocks += groups.map(|g| scheduler.remove(g)).sum::<usize>();
        }
        summary
    }

    /// The last job of a context that cannot go on.
    pub(crate) fn failed(&self, failure: Failure) -> AudioJob {
        AudioJob { last: Some(Err(failure)), ..AudioJob::of(self.id, &self.playout) }
    }

    /// What the context has come to.
    pub(crate) fn summary(&self) -> Summary {
        Summary {
            samples: self.plan.released_samples(),
            text_chars: match &self.source {
                Source::Whole { raw_chars, .. } => *raw_chars,
                Source::Live(passage) => passage.stats().raw_chars,
            },
            kv_blocks: 0,
            guard_exhausted: self.guard_exhausted,
            truncated_by_budget: self.truncated_by_budget,
            queued: self.queued,
            usage: None,
        }
    }

    /// Starts whatever can start: the next chunk, segments, what goes to the codec, pauses and the end.
    pub(crate) fn advance(&mut self, env: &mut Env<'_>) {
        if self.finished {
            return;
        }
        let room = self.chunks.len() < CHUNKS_AT_ONCE;
        if room && !self.parked(env.now) && self.semantic().is_none() {
            self.start_chunk(env);
        }
        for at in 0..self.refinable() {
            if let Some((stage, frames)) = self.chunks[at].due() {
                self.start_refine(at, stage, frames, env);
            }
        }
        self.hand_over(env);
        if self.idle() {
            self.settle_down(env);
        }
    }

    /// The group of CB0, if a chunk is being said.
    fn semantic(&self) -> Option<GroupId> {
        self.chunks.back().and_then(|c| c.semantic)
    }

    /// How many chunks are refined at once. A listener needs them in order, and in order they hold the least memory; without
    /// one, more at once are quicker.
    fn refinable(&self) -> usize {
        match self.settings.segments {
            Segments::Frames => self.chunks.len().min(1),
            Segments::Chunk => self.chunks.len(),
        }
    }

    /// Whether no chunk is at work.
    fn idle(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Whether the codec keeps frames back.
    fn withheld(&self) -> bool {
        self.plan.known_frames() > self.plan.emitted_frames()
    }

    /// When what is kept back must go out, should no more text come.
    fn pause_at(&self) -> Duration {
        self.playout
            .dry_at()
            .map_or(Duration::ZERO, |dry| dry.saturating_sub(self.settings.pause_lead))
    }

    /// From when on a chunk is wanted even where the text has no good place to cut.
    fn urgent_at(&self) -> Duration {
        self.playout
            .dry_at()
            .map_or(Duration::MAX, |dry| dry.saturating_sub(self.settings.cut_lead))
    }

    fn start_chunk(&mut self, env: &mut Env<'_>) {
        let need = if env.now < self.urgent_at() { Need::Relaxed } else { Need::Urgent };
        let next = match &mut self.source {
            Source::Whole { chunks, .. } => chunks.pop_front(),
            Source::Live(passage) => passage.cut(env.now, need),
        };
        self.tell_notices(env);
        let Some(mut text) = next else { return };
        // Behind something that was said there is no first chunk.
        text.first &= self.settings.prefix.is_none();
        let told = Event::Chunk { text: text.text.clone(), raw: text.raw.clone() };
        let grammar = self.settings.grammar.clone();
        let acoustic_rows = grammar.stages.len() - 1;
        let place = Place {
            index: self.next_index,
            base: self.passage_frames,
            control: self.settings.control.clone(),
        };
        let mut chunk = Chunk::new(place, text, acoustic_rows);
        chunk.alignment = Alignment::new(&chunk.text, |c| grammar.stages[0].reads(c));
        if self.next_index == 0 {
            self.queued_at = Some(env.now);
        }
        self.next_index += 1;
        if let Some(code) = self.settings.forced_first_code.filter(|_| chunk.index == 0) {
            chunk.codes.push(code);
            chunk.forced = 1;
        }
        self.chunks.push_back(chunk);
        self.tell(told, env);
        self.start_semantic(env);
    }

    /// Tells what of the text that came has no effect.
    fn tell_notices(&mut self, env: &mut Env<'_>) {
        let notices = match &mut self.source {
            Source::Whole { notices, .. } => std::mem::take(notices),
            Source::Live(passage) => passage.take_notices(),
        };
        for notice in notices {
            self.tell(Event::Notice(notice), env);
        }
    }
}
