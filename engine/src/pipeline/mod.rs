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
mod playout;
mod settings;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use codecs::window::{End, FRAME_SAMPLES, Plan, Window as Release};

use crate::event::{Event, Failure, Summary};
use crate::guards::Trouble;
use crate::layout::{Layout, Spoken, Symbol, Window};
use crate::scheduler::Scheduler;
use crate::sequence::{Group, GroupId, Sequence};
use crate::stats::GuardHits;
use crate::text::{self, Need, Passage};
use crate::{ContextId, Speech};
use alignment::Alignment;
use chunk::{Chunk, Ending, Place, Refine};
pub use playout::{Playout, SAMPLE_RATE, sounding};
pub(crate) use playout::{Standing, Urgency};
pub use settings::Segments;
pub(crate) use settings::Settings;

/// Chunks of one context between their cut and their last code: enough to keep the acoustic stages in full batches, and a bound
/// on what a long text holds.
const CHUNKS_AT_ONCE: usize = 8;

/// New columns of codes for the codec, and what to tell once they are sound.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AudioJob {
    /// Whose.
    pub(crate) context: ContextId,
    /// Rows of equal length, which may be 0; none where there is nothing for the codec.
    pub(crate) rows: Vec<Vec<u16>>,
    /// Samples that the columns sound in the end.
    pub(crate) samples: u64,
    /// What ends with them.
    pub(crate) end: End,
    /// When the listener runs dry: the audio thread's order. Zero before the first sound.
    pub(crate) deadline: Duration,
    /// Events, each with the sample of the context's timeline that it waits for.
    pub(crate) marks: Vec<(u64, Event)>,
    /// How the context ended, with its last job.
    pub(crate) last: Option<Result<Summary, Failure>>,
}

impl AudioJob {
    /// One of a context with nothing in it.
    pub(crate) fn of(context: ContextId, playout: &Playout) -> Self {
        Self {
            context,
            rows: Vec::new(),
            samples: 0,
            end: End::No,
            deadline: playout.dry_at().unwrap_or_default(),
            marks: Vec::new(),
            last: None,
        }
    }
}

/// What a context works with while it is advanced.
pub(crate) struct Env<'a> {
    pub(crate) now: Duration,
    pub(crate) scheduler: &'a mut Scheduler,
    pub(crate) jobs: &'a mut VecDeque<AudioJob>,
    pub(crate) hits: &'a mut GuardHits,
}

/// What a group's step brought.
pub(crate) struct Said<'a> {
    /// A row for each member.
    pub(crate) logits: &'a mut [f32],
    /// What the watched tokens were attended to with; empty where the network does not tell.
    pub(crate) attention: &'a [f32],
}

/// Where the text of a context comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// All of it was there at once and is cut by the literal splitter.
    Whole {
        /// The chunks that have not started.
        chunks: VecDeque<text::Chunk>,
        /// Code points of the raw text.
        raw_chars: usize,
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

    /// Takes what the networks said to a group that completed its step.
    ///
    /// # Errors
    /// Broken numbers, or a chunk that stayed empty.
    pub(crate) fn on_logits(
        &mut self,
        group: GroupId,
        said: Said<'_>,
        env: &mut Env<'_>,
    ) -> Result<(), Failure> {
        let chunk = self.chunks.iter().position(|c| c.semantic == Some(group));
        if let Some(at) = chunk {
            return self.on_semantic(at, group, said, env);
        }
        let refined = self.chunks.iter().position(|c| c.refine.is_some_and(|r| r.group == group));
        let at = refined.expect("a group belongs to a chunk of its context; this is a bug");
        self.on_acoustic(at, group, said.logits, env)
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

    /// Tells what of a live text that came has no effect.
    fn tell_notices(&mut self, env: &mut Env<'_>) {
        let Source::Live(passage) = &mut self.source else { return };
        for notice in passage.take_notices() {
            self.tell(Event::Notice(notice), env);
        }
    }

    /// Opens CB0's group for the newest chunk: a first attempt, or another one behind what is frozen.
    fn start_semantic(&mut self, env: &mut Env<'_>) {
        let grammar = self.settings.grammar.clone();
        let stage = &grammar.stages[0];
        let chunk = self.chunks.back_mut().expect("called for a chunk; this is a bug");
        let control = &chunk.control[0];
        let text = stage.read(&chunk.text.input(&text::Tail::Open));
        let lookahead = stage.read(chunk.text.lookahead());
        let before = self.before.as_ref().map(|b| (stage.read(&b.text), &b.codes));
        let before_rows = before.as_ref().map(|(_, codes)| [codes.as_slice()]);
        let prompt = self.settings.prompt.cut(0);
        let window = Window {
            prompt: &prompt,
            control,
            before: before
                .as_ref()
                .zip(before_rows.as_ref())
                .map(|((text, _), rows)| Spoken { text, rows }),
            text: &text,
            tail: chunk.tail(&lookahead),
            rows: &[&chunk.codes],
        };
        let layout = Layout::of(&stage.vocabulary, &window);
        let watched = layout.text.clone();
        let mut members = vec![Sequence { watched, ..sequence(layout) }];
        if self.settings.guidance.is_some() {
            members.push(sequence(Layout::null(&stage.vocabulary, control, &chunk.codes)));
        }
        chunk.semantic = Some(env.scheduler.add(self.id, grammar.first_stage, members));
    }

    fn start_refine(&mut self, at: usize, stage: usize, frames: usize, env: &mut Env<'_>) {
        let grammar = self.settings.grammar.clone();
        let first_stage = grammar.first_stage;
        let grammar = &grammar.stages[stage];
        let chunk = &mut self.chunks[at];
        let text = grammar.read(&chunk.text.input(&text::Tail::Open));
        let c0 = &chunk.codes[..frames];
        let rows: Vec<&[u16]> =
            std::iter::once(c0).chain(chunk.acoustic[..stage].iter().map(Vec::as_slice)).collect();
        let prompt = self.settings.prompt.cut(stage);
        let window = Window {
            prompt: &prompt,
            control: &chunk.control[stage],
            before: None,
            text: &text,
            tail: chunk.tail(&[]),
            rows: &rows,
        };
        let members = vec![sequence(Layout::of(&grammar.vocabulary, &window))];
        let group = env.scheduler.add(self.id, first_stage + stage, members);
        chunk.refine = Some(Refine { group, stage, frames });
    }

    fn on_semantic(
        &mut self,
        at: usize,
        group: GroupId,
        said: Said<'_>,
        env: &mut Env<'_>,
    ) -> Result<(), Failure> {
        let grammar = self.settings.grammar.clone();
        let vocabulary = &grammar.stages[0].vocabulary;
        let chunk = &mut self.chunks[at];
        let row = self.settings.merge(said.logits, vocabulary.outputs());
        let index = draw::semantic(&self.settings, chunk, row)?;
        let Symbol::Code(code) = vocabulary.symbol(index) else {
            return self.end_attempt(at, Ending::Stopped, env);
        };
        chunk.alignment.look(chunk.codes.len(), said.attention);
        chunk.codes.push(code);
        if let Some(trouble) = self.settings.guards.running(&chunk.codes) {
            let from = match trouble {
                Trouble::Loops { from, .. } => {
                    env.hits.repetition += 1;
                    from
                }
                Trouble::Silent { from } => {
                    env.hits.silence += 1;
                    from
                }
            };
            chunk.codes.truncate(from.max(chunk.frozen()));
            return self.end_attempt(at, Ending::Guard, env);
        }
        if self.settings.next_cut(chunk) == Some(chunk.codes.len()) {
            if !self.settings.guards.opening(&chunk.codes)
                && chunk.attempt + 1 < self.settings.tries
            {
                env.hits.silence += 1;
                return self.end_attempt(at, Ending::Guard, env);
            }
            chunk.cut();
        }
        if chunk.codes.len() >= self.settings.frame_budget(chunk) {
            env.hits.budget += 1;
            return self.end_attempt(at, Ending::Budget, env);
        }
        let id = vocabulary.code(0, code);
        env.scheduler.append(group, id);
        Ok(())
    }

    /// CB0 has stopped, by itself or because a guard stopped it: the chunk is complete, or is said again.
    fn end_attempt(&mut self, at: usize, ending: Ending, env: &mut Env<'_>) -> Result<(), Failure> {
        let chunk = &mut self.chunks[at];
        if let Some(group) = chunk.semantic.take() {
            env.scheduler.remove(group);
        }
        let verdict = self.settings.judge(chunk, ending == Ending::Stopped);
        if !verdict.accepted() && chunk.attempt + 1 < self.settings.tries {
            env.hits.retries += 1;
            chunk.turn_down(verdict, ending);
            self.start_semantic(env);
            return Ok(());
        }
        if !verdict.accepted() {
            env.hits.exhausted += 1;
            self.guard_exhausted = true;
            let Some(ending) = chunk.settle(verdict, ending) else {
                return Err(Failure::NoSpeech { chunk: chunk.index, tries: self.settings.tries });
            };
            self.truncated_by_budget |= ending == Ending::Budget;
        }
        chunk.complete = true;
        chunk.cut();
        self.passage_frames = chunk.base + chunk.codes.len();
        self.before =
            Some(Before { text: chunk.text.input(&text::Tail::Open), codes: chunk.codes.clone() });
        Ok(())
    }

    fn on_acoustic(
        &mut self,
        at: usize,
        group: GroupId,
        logits: &mut [f32],
        env: &mut Env<'_>,
    ) -> Result<(), Failure> {
        let chunk = &mut self.chunks[at];
        let refine = chunk.refine.expect("found by its group; this is a bug");
        let vocabulary = &self.settings.grammar.stages[refine.stage].vocabulary;
        let index = draw::acoustic(&self.settings, chunk, refine.stage, logits)?;
        let Symbol::Code(code) = vocabulary.symbol(index) else {
            unreachable!("acoustic stages say codes only; this is a bug")
        };
        let row = &mut chunk.acoustic[refine.stage - 1];
        row.push(code);
        if row.len() < refine.frames {
            let id = vocabulary.code(refine.stage, code);
            env.scheduler.append(group, id);
        } else {
            chunk.refine = None;
            env.scheduler.remove(group);
        }
        Ok(())
    }

    /// Gives the codec every column that is complete, chunk after chunk.
    fn hand_over(&mut self, env: &mut Env<'_>) {
        while let Some(chunk) = self.chunks.front_mut() {
            let new = chunk.handed..chunk.refined();
            chunk.handed = new.end;
            let spoken = chunk.spoken();
            if new.is_empty() && !spoken {
                return;
            }
            let rows = std::iter::once(&chunk.codes)
                .chain(&chunk.acoustic)
                .map(|row| row[new.clone()].to_vec())
                .collect();
            let releases = self.send(rows, if spoken { End::Chunk } else { End::No }, env);
            let mut marks = self.align(&releases, spoken);
            if !spoken {
                self.jobs_tail(env).marks.append(&mut marks);
                return;
            }
            let chunk = self.chunks.pop_front().expect("just seen; this is a bug");
            let end = self.sample(chunk.base + chunk.codes.len());
            let said = Arc::new(Speech { text: chunk.text.text, codes: chunk.codes });
            marks.push((end, Event::ChunkEnd { said, raw: chunk.text.raw, end }));
            if chunk.text.flushed && self.flushes > 0 && !self.chunks.is_empty() {
                // Speech goes on behind the flush, so nothing is let go early: the flush is answered in passing.
                self.flushes -= 1;
                marks.push((end, Event::Flushed { samples: end }));
            }
            self.jobs_tail(env).marks.append(&mut marks);
        }
    }

    /// Which characters of the oldest chunk end in what goes out, with the sample that the event must come before. Told step
    /// by step of the codec's grid, by the codes that a step needs, however many there are by now: the answer must not depend
    /// on how busy the engine is.
    fn align(&mut self, releases: &[Release], spoken: bool) -> Vec<(u64, Event)> {
        let start = self.sample(self.chunks.front().map_or(0, |chunk| chunk.base));
        let Some(chunk) = self.chunks.front_mut() else { return Vec::new() };
        let mut ends = Vec::new();
        let grid = self.settings.window.grid_frames;
        for release in releases {
            let mut out = release.emit.start;
            while out < release.emit.end {
                out = ((out / grid + 1) * grid).min(release.emit.end);
                let Some(out) = out.checked_sub(chunk.base) else { continue };
                let frames = (out + self.settings.window.withheld_frames).min(chunk.codes.len());
                let until = (out * FRAME_SAMPLES) as u64;
                ends.extend(chunk.alignment.ends(frames, start, until));
            }
        }
        if spoken {
            ends.extend(chunk.alignment.rest(chunk.codes.len(), start));
        }
        let first = ends.first().map(|end| end.sample);
        first.map(|sample| (sample, Event::Aligned { ends })).into_iter().collect()
    }

    /// Where a frame of the codec's current passage begins on the context's timeline.
    fn sample(&self, frame: usize) -> u64 {
        self.passage_start + (frame * FRAME_SAMPLES) as u64
    }

    /// Nothing is at work, and nothing could be cut that is. The end, a flush, or a listener about to run dry lets go what the
    /// codec keeps back: what was spoken never waits for more text.
    fn settle_down(&mut self, env: &mut Env<'_>) {
        let drained = match &self.source {
            Source::Whole { chunks, .. } => chunks.is_empty(),
            Source::Live(passage) => passage.is_drained(),
        };
        if drained {
            self.close(env);
            self.finished = true;
            self.jobs_tail(env).last = Some(Ok(self.summary()));
            return;
        }
        let dry = self.withheld() && env.now >= self.pause_at();
        if !self.parked(env.now) && (self.flushes > 0 || dry) {
            self.close(env);
        }
    }

    /// Closes the codec's passage: everything goes out, what follows starts anew, and flushes are answered.
    fn close(&mut self, env: &mut Env<'_>) {
        let rows = vec![Vec::new(); self.settings.grammar.stages.len()];
        self.send(rows, End::Passage, env);
        let samples = self.plan.released_samples();
        let job = self.jobs_tail(env);
        for _ in 0..std::mem::take(&mut self.flushes) {
            job.marks.push((samples, Event::Flushed { samples }));
        }
        self.passage_start = samples;
        self.passage_frames = 0;
    }

    fn jobs_tail<'e>(&self, env: &'e mut Env<'_>) -> &'e mut AudioJob {
        env.jobs.back_mut().expect("a job was just added; this is a bug")
    }

    fn tell(&mut self, event: Event, env: &mut Env<'_>) {
        let rows = vec![Vec::new(); self.settings.grammar.stages.len()];
        self.send(rows, End::No, env);
        self.jobs_tail(env).marks.push((0, event));
    }

    /// Gives the codec a job. Returns what it will let go.
    fn send(&mut self, rows: Vec<Vec<u16>>, end: End, env: &mut Env<'_>) -> Vec<Release> {
        let deadline = self.playout.dry_at().unwrap_or_default();
        let releases = self.plan.grow(rows[0].len(), end);
        let released = releases.iter().map(|r| r.samples() as u64).sum();
        self.playout.released(released, env.now);
        let (context, marks) = (self.id, Vec::new());
        let samples = (rows[0].len() * FRAME_SAMPLES) as u64;
        env.jobs.push_back(AudioJob { context, rows, samples, end, deadline, marks, last: None });
        releases
    }
}

fn sequence(layout: Layout) -> Sequence {
    Sequence::new(layout.ids, layout.positions, layout.next_position)
}
