//! The step thread: commands in, steps, jobs out. Every command is obeyed before the next step, so a cancelled context never
//! runs again and its blocks are free before anything else asks for some.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::audio::AudioCommand;
use crate::engine::{Engine, Opening, Step};
use crate::event::{Event, Failure, Outbox, Summary};
use crate::load::{Lane, Load};
use crate::pipeline::Context;
use crate::sound::Stream;
use crate::stats::{Endings, Stats};
use crate::{ContextId, answer};

/// An outbox that holds more is not filled further: 30 s, more than any listener's buffer.
const OUTBOX_SAMPLES: u64 = 30 * 24_000;
/// The step thread looks up at least so often, should a wake-up have found the command queue full.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What the step thread is told.
pub(crate) enum Command {
    /// A context begins.
    Open { id: ContextId, opening: Opening, stream: Stream, outbox: Outbox },
    /// More text.
    Text { id: ContextId, delta: String },
    /// Speak what there is.
    Flush(ContextId),
    /// What is cut from now on is spoken with these control blocks.
    Restyle { id: ContextId, control: Arc<[Vec<u32>]> },
    /// No more text.
    End(ContextId),
    /// More is known of what a context is to answer, or it cannot be heard.
    Heard { id: ContextId, heard: Result<Box<answer::Settings>, Failure> },
    /// So many samples were heard.
    Played { id: ContextId, position: u64 },
    /// Stop it now.
    Cancel(ContextId),
    /// A reader took audio, or has gone.
    Drained(ContextId),
    /// The audio thread has sent a context's last event: it was spoken to its end, or failed.
    Spoken { id: ContextId, whole: bool },
    /// The audio thread has room again.
    Room,
    /// The engine goes down.
    Stop,
}

/// The step thread's state.
pub(crate) struct Worker {
    engine: Engine,
    inbox: Receiver<Command>,
    jobs: SyncSender<AudioCommand>,
    /// What goes to the audio thread next; empty unless its queue is full, and no step runs until it is empty again.
    outgoing: VecDeque<AudioCommand>,
    readers: BTreeMap<ContextId, Reader>,
    stats: Arc<Mutex<Stats>>,
    load: Load,
    /// What the codes sound that the last step completed, by how they were made.
    samples: BTreeMap<Lane, u64>,
    /// How contexts began and ended: those that did not end are the readers.
    endings: Endings,
}

/// Who hears of a context, and how it ended if all its codes are made.
struct Reader {
    outbox: Outbox,
    complete: Option<Summary>,
    listens: bool,
    lane: Lane,
}

impl Worker {
    pub(crate) fn new(
        engine: Engine,
        inbox: Receiver<Command>,
        jobs: SyncSender<AudioCommand>,
        stats: Arc<Mutex<Stats>>,
    ) -> Self {
        let (outgoing, readers) = (VecDeque::new(), BTreeMap::new());
        Self {
            engine,
            inbox,
            jobs,
            outgoing,
            readers,
            stats,
            load: Load::default(),
            samples: BTreeMap::new(),
            endings: Endings::default(),
        }
    }

    /// Runs until it is told to stop or nobody holds the engine any more; then all that are still open are cancelled.
    pub(crate) fn run(mut self, clock: impl Fn() -> Duration) {
        self.serve(clock);
        for id in self.readers.keys().copied().collect::<Vec<_>>() {
            self.cancel(id);
        }
    }

    fn serve(&mut self, clock: impl Fn() -> Duration) {
        loop {
            loop {
                match self.inbox.try_recv() {
                    Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return,
                    Ok(command) => self.obey(command, clock()),
                    Err(TryRecvError::Empty) => break,
                }
            }
            self.let_go();
            let now = clock();
            let step = if self.send_jobs() { self.step(now) } else { Step::default() };
            let sent = self.send_jobs();
            self.publish(&step, now, clock());
            if step.tokens > 0 && sent {
                continue;
            }
            let until = step.wake_at.map_or(LOOK_UP, |at| at.saturating_sub(clock()));
            match self.inbox.recv_timeout(until.min(LOOK_UP)) {
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(command) => self.obey(command, clock()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn obey(&mut self, command: Command, now: Duration) {
        match command {
            Command::Open { id, mut opening, stream, outbox } => {
                opening.opened_at(now);
                self.endings.opened += 1;
                let (listens, lane) = (opening.listens(), opening.lane());
                let reader = Reader { outbox: outbox.clone(), complete: None, listens, lane };
                self.readers.insert(id, reader);
                self.outgoing.push_back(AudioCommand::Open { context: id, stream, outbox });
                self.engine.open(id, opening);
            }
            Command::Text { id, delta } => self.with(id, |c| c.push(&delta, now)),
            Command::Flush(id) => self.with(id, |c| c.flush(now)),
            Command::Restyle { id, control } => self.with(id, |c| c.restyle(control)),
            Command::End(id) => self.with(id, |c| c.end(now)),
            Command::Heard { id, heard } => match heard {
                Ok(settings) => {
                    if let Some(reader) = self.readers.get(&id).filter(|_| !settings.growing) {
                        reader.outbox.asked();
                    }
                    self.engine.heard(id, *settings, now);
                }
                Err(failure) => self.engine.fail(id, failure),
            },
            Command::Played { id, position } => self.engine.played(id, position, now),
            Command::Cancel(id) => self.cancel(id),
            Command::Drained(id) => {
                if self.readers.get(&id).is_some_and(|r| r.outbox.reader_gone()) {
                    self.cancel(id);
                }
            }
            Command::Spoken { id, whole } => {
                // Without a reader it was cancelled meanwhile, and is counted as that.
                if self.readers.remove(&id).is_some() {
                    let endings = &mut self.endings;
                    *if whole { &mut endings.done } else { &mut endings.failed } += 1;
                }
            }
            Command::Room | Command::Stop => {}
        }
    }

    /// Does something to a context that speaks a text, if it is not complete.
    fn with(&mut self, id: ContextId, change: impl FnOnce(&mut Context)) {
        if let Some(context) = self.engine.voice(id) {
            change(context);
        }
    }

    /// Frees all that a context holds; nothing of it is sent after this.
    fn cancel(&mut self, id: ContextId) {
        let stopped = self.engine.cancel(id);
        let Some(reader) = self.readers.remove(&id) else { return };
        self.endings.cancelled += 1;
        let summary = stopped.or(reader.complete).unwrap_or_default();
        reader.outbox.cut_off(Event::Cancelled(summary));
        self.outgoing.retain(|c| !matches!(c, AudioCommand::Job(job) if job.context == id));
        self.outgoing.push_back(AudioCommand::Close(id));
    }

    /// A reader's word that it has gone may have found the command queue full.
    fn let_go(&mut self) {
        let gone = self.readers.iter().filter(|(_, reader)| reader.outbox.reader_gone());
        for id in gone.map(|(&id, _)| id).collect::<Vec<_>>() {
            self.cancel(id);
        }
    }

    fn step(&mut self, now: Duration) -> Step {
        let readers = &self.readers;
        let held_up =
            |id| readers.get(&id).is_some_and(|r| r.outbox.buffered_samples() > OUTBOX_SAMPLES);
        let step = self.engine.step(now, held_up);
        while let Some(job) = self.engine.next_job() {
            if let Some(reader) = self.readers.get_mut(&job.context) {
                *self.samples.entry(reader.lane).or_insert(0) += job.samples;
                if let Some(Ok(summary)) = &job.last {
                    reader.complete = Some(summary.clone());
                }
            }
            self.outgoing.push_back(AudioCommand::Job(job));
        }
        step
    }

    /// Sends what the audio thread has room for. Returns whether that was all.
    fn send_jobs(&mut self) -> bool {
        while let Some(command) = self.outgoing.pop_front() {
            match self.jobs.try_send(command) {
                Ok(()) => {}
                Err(TrySendError::Full(command)) => {
                    self.outgoing.push_front(command);
                    return false;
                }
                // The audio thread ends only with the process or after this thread.
                Err(TrySendError::Disconnected(_)) => return true,
            }
        }
        true
    }

    /// Shows what a step did, and what there is after it.
    fn publish(&mut self, step: &Step, started: Duration, ended: Duration) {
        let tokens = step.tokens;
        for (&id, reader) in &self.readers {
            reader.outbox.hold(self.engine.held_blocks(id));
        }
        let took = ended.saturating_sub(started);
        if tokens > 0 {
            for (&lane, &share) in &step.shares {
                let samples = self.samples.remove(&lane).unwrap_or(0);
                self.load.ran(lane, took.mul_f64(share), samples);
            }
        }
        let mut listeners: BTreeMap<Lane, u64> = BTreeMap::new();
        for reader in self.readers.values().filter(|reader| reader.listens) {
            *listeners.entry(reader.lane).or_insert(0) += 1;
        }
        let (blocks, parked) = (self.engine.blocks(), self.engine.parked(ended));
        let (scheduler, tally) = (self.engine.scheduler(), self.engine.tally());
        let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens > 0 {
            stats.steps += 1;
            stats.tokens += tokens as u64;
            stats.busy += took;
            stats.step_seconds.observe(took.as_secs_f64());
        }
        for (stage, (shown, blocks)) in stats.stages.iter_mut().zip(&blocks).enumerate() {
            shown.blocks_in_use = blocks.in_use as u64;
            shown.blocks_cached = blocks.cached as u64;
            shown.blocks_total = blocks.total as u64;
            shown.pairs = scheduler.pairs(stage) as u64;
            shown.tokens = scheduler.tokens(stage);
            shown.batch = tally.batches[stage];
        }
        stats.contexts = self.readers.len() as u64;
        stats.listeners = listeners.values().sum();
        stats.costs = self.load.costs(&listeners);
        stats.parked = parked as u64;
        stats.waiting = scheduler.waiting() as u64;
        stats.cost_per_second = self.load.mean();
        stats.kv_blocks_in_use = stats.stages.iter().map(|s| s.blocks_in_use).sum();
        stats.kv_blocks_total = stats.stages.iter().map(|s| s.blocks_total).sum();
        stats.preemptions = scheduler.preemptions();
        stats.prefill_tokens = stats.stages.iter().map(|s| s.tokens.prefill).sum();
        stats.prefix_tokens = stats.stages.iter().map(|s| s.tokens.prefix).sum();
        stats.guards = tally.guards;
        stats.queue_seconds = tally.queue_seconds;
        stats.endings = self.endings;
    }
}
