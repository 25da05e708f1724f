//! The codec's side of the engine: codes in, PCM into the contexts' outboxes. Owns the state of every stream.
//!
//! Jobs of one context are done in order; among contexts the one whose listener runs dry first goes first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::event::{Event, Failure, Outbox, Summary};
use crate::pipeline::AudioJob;
use crate::sound::Stream;
use crate::stats::Stats;
use crate::worker::Command;
use crate::{ContextId, Pcm};

/// What the engine asks of the audio side.
pub(crate) enum AudioCommand {
    /// A context begins.
    Open { context: ContextId, stream: Stream, outbox: Outbox },
    /// More codes.
    Job(AudioJob),
    /// The context was cancelled: its state goes, its outbox is closed already.
    Close(ContextId),
}

struct Voice {
    stream: Stream,
    outbox: Outbox,
    sent: u64,
    marks: VecDeque<(u64, Event)>,
    jobs: VecDeque<AudioJob>,
}

/// All streams, each with the codec that serves it.
#[derive(Default)]
pub(crate) struct Audio {
    voices: BTreeMap<ContextId, Voice>,
    /// Samples released since the start.
    samples: u64,
}

impl Audio {
    /// Takes note of a command; work is done by [`Audio::work`].
    pub(crate) fn take(&mut self, command: AudioCommand) {
        match command {
            AudioCommand::Open { context, stream, outbox } => {
                let (marks, jobs) = (VecDeque::new(), VecDeque::new());
                self.voices.insert(context, Voice { stream, outbox, sent: 0, marks, jobs });
            }
            AudioCommand::Job(job) => {
                // A job may still be under way when its context is cancelled.
                if let Some(voice) = self.voices.get_mut(&job.context) {
                    voice.jobs.push_back(job);
                }
            }
            AudioCommand::Close(context) => {
                self.voices.remove(&context);
            }
        }
    }

    /// Contexts that have a codec's state.
    #[cfg(test)]
    pub(crate) fn streams(&self) -> usize {
        self.voices.len()
    }

    /// Jobs that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.voices.values().map(|v| v.jobs.len()).sum()
    }

    /// Does the most urgent job. Returns what the step thread is to know if that was the last one of its context.
    pub(crate) fn work(&mut self) -> Option<Command> {
        let urgent = self
            .voices
            .iter()
            .filter_map(|(&id, voice)| Some((voice.jobs.front()?.deadline, id)))
            .min();
        let (_, id) = urgent?;
        let voice = self.voices.get_mut(&id).expect("just found; this is a bug");
        let job = voice.jobs.pop_front().expect("just seen; this is a bug");
        let before = voice.sent;
        let last = voice.carry_out(job);
        self.samples += voice.sent - before;
        let last = last?;
        let spoken = Command::Spoken { id, whole: last.is_ok() };
        voice.end(last);
        self.voices.remove(&id);
        Some(spoken)
    }
}

impl Voice {
    /// Decodes, releases, tells. Returns how the context ended, if it did.
    fn carry_out(&mut self, job: AudioJob) -> Option<Result<Summary, Failure>> {
        self.stream.tell(job.context, job.marks.iter().map(|(_, event)| event));
        self.marks.extend(job.marks);
        if job.rows.is_empty() {
            self.release(Pcm::default());
            return job.last;
        }
        let rows: Vec<&[u16]> = job.rows.iter().map(Vec::as_slice).collect();
        match self.stream.push(&rows, job.end) {
            Ok(pieces) => pieces.each(|samples| self.release(samples)),
            Err(error) => return Some(Err(Failure::Codec(error.to_string()))),
        }
        job.last
    }

    /// Sends samples and the marks that lie in them: what the samples mean before them, what they complete behind them.
    fn release(&mut self, samples: Pcm) {
        let start = self.sent;
        self.sent += samples.len() as u64;
        let sent = self.sent;
        let stream = &self.stream;
        let place = |at: u64| stream.position(at);
        let explains =
            |event: &Event| !matches!(event, Event::Flushed { .. } | Event::SegmentEnd(_));
        while let Some((_, event)) =
            self.marks.pop_front_if(|(at, event)| place(*at) <= sent && explains(event))
        {
            self.outbox.send(placed(event, place));
        }
        if !samples.is_empty() {
            self.outbox.send(Event::Audio { start, samples });
        }
        while let Some((_, event)) = self.marks.pop_front_if(|(at, _)| place(*at) <= sent) {
            self.outbox.send(placed(event, place));
        }
    }

    fn end(&mut self, last: Result<Summary, Failure>) {
        for (_, event) in self.marks.drain(..) {
            self.outbox.send(placed(event, |at| self.stream.position(at)));
        }
        self.outbox.send(match last {
            Ok(summary) => Event::Done(Summary { samples: self.sent, ..summary }),
            Err(failure) => Event::Failed(failure),
        });
    }
}

/// An event of the plan with the samples that were really given.
fn placed(event: Event, place: impl Fn(u64) -> u64) -> Event {
    match event {
        Event::ChunkEnd { said, raw, end } => Event::ChunkEnd { said, raw, end: place(end) },
        Event::Flushed { samples } => Event::Flushed { samples: place(samples) },
        Event::Aligned { mut ends } => {
            ends.iter_mut().for_each(|end| end.sample = place(end.sample));
            Event::Aligned { ends }
        }
        other => other,
    }
}

/// The audio thread's ends of its channels, and where it shows what it does.
pub(crate) struct Side {
    pub(crate) todo: Receiver<AudioCommand>,
    pub(crate) back: SyncSender<Command>,
    pub(crate) stats: Arc<Mutex<Stats>>,
}

impl Side {
    /// Takes all commands that are there, then does the most urgent job, until nobody can send any more.
    pub(crate) fn run(self, mut audio: Audio, clock: impl Fn() -> Duration) {
        loop {
            if audio.waiting() == 0 {
                let Ok(command) = self.todo.recv() else { return };
                audio.take(command);
            }
            while let Ok(command) = self.todo.try_recv() {
                audio.take(command);
            }
            let works = audio.waiting() > 0;
            let started = clock();
            let spoken = audio.work();
            self.publish(&audio, works.then(|| clock().saturating_sub(started)));
            if let Some(spoken) = spoken {
                // May wait: the step thread never waits for this one, and a lost answer would keep the context's place for
                // ever.
                let _ = self.back.send(spoken);
            } else {
                // Spares the step thread a wait; with a full queue it is awake anyway.
                let _ = self.back.try_send(Command::Room);
            }
        }
    }

    /// Shows what there is, and how long a job took if one was done.
    fn publish(&self, audio: &Audio, took: Option<Duration>) {
        let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(took) = took {
            stats.audio.job_seconds.observe(took.as_secs_f64());
        }
        stats.audio.jobs_waiting = audio.waiting() as u64;
        stats.audio.samples = audio.samples;
    }
}
