//! The codec's side of the engine: codes in, PCM into the contexts' outboxes. Owns the state of every stream.
//!
//! Jobs of one context are done in order; among contexts the one whose listener runs dry first goes first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, SyncSender};

use crate::ContextId;
use crate::event::{Event, Failure, Outbox, Summary};
use crate::pipeline::AudioJob;
use crate::sound::{Sound, Stream};
use crate::worker::Command;

/// What the engine asks of the audio side.
pub(crate) enum AudioCommand {
    /// A context begins.
    Open { context: ContextId, seed: u64, first_frames: usize, outbox: Outbox },
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

/// All streams with the codec that serves them.
pub(crate) struct Audio {
    sound: Sound,
    voices: BTreeMap<ContextId, Voice>,
}

impl Audio {
    pub(crate) fn new(sound: Sound) -> Self {
        Self { sound, voices: BTreeMap::new() }
    }

    /// Takes note of a command; work is done by [`Audio::work`].
    pub(crate) fn take(&mut self, command: AudioCommand) {
        match command {
            AudioCommand::Open { context, seed, first_frames, outbox } => {
                let stream = self.sound.stream(context, first_frames, seed);
                let stream = stream.expect("the plan was checked when the request was resolved");
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

    /// Jobs that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.voices.values().map(|v| v.jobs.len()).sum()
    }

    /// Does the most urgent job. Returns the context if that was its last one.
    pub(crate) fn work(&mut self) -> Option<ContextId> {
        let urgent = self
            .voices
            .iter()
            .filter_map(|(&id, voice)| Some((voice.jobs.front()?.deadline, id)))
            .min();
        let (_, id) = urgent?;
        let voice = self.voices.get_mut(&id).expect("just found; this is a bug");
        let job = voice.jobs.pop_front().expect("just seen; this is a bug");
        let last = voice.carry_out(&self.sound, job)?;
        voice.end(last);
        self.voices.remove(&id);
        Some(id)
    }
}

impl Voice {
    /// Decodes, releases, tells. Returns how the context ended, if it did.
    fn carry_out(&mut self, sound: &Sound, job: AudioJob) -> Option<Result<Summary, Failure>> {
        sound.tell(job.context, job.marks.iter().map(|(_, event)| event));
        self.marks.extend(job.marks);
        if !job.rows.is_empty() {
            let rows: Vec<&[u16]> = job.rows.iter().map(Vec::as_slice).collect();
            match sound.push(&mut self.stream, &rows, job.end) {
                Ok(pieces) => pieces.each(|samples| self.release(samples)),
                Err(error) => return Some(Err(Failure::Codec(error.to_string()))),
            }
        }
        job.last
    }

    /// Sends samples and the marks that lie in them: what the samples mean before them, what they complete behind them.
    fn release(&mut self, samples: Vec<f32>) {
        let start = self.sent;
        self.sent += samples.len() as u64;
        let sent = self.sent;
        let stream = &self.stream;
        let place = |at: u64| stream.position(at);
        let explains = |event: &Event| !matches!(event, Event::Flushed { .. });
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
        Event::ChunkEnd { raw, end } => Event::ChunkEnd { raw, end: place(end) },
        Event::Flushed { samples } => Event::Flushed { samples: place(samples) },
        other => other,
    }
}

/// The audio thread: takes all commands that are there, then does the most urgent job, until nobody can send any more.
pub(crate) fn run(mut audio: Audio, todo: &Receiver<AudioCommand>, back: &SyncSender<Command>) {
    loop {
        if audio.waiting() == 0 {
            let Ok(command) = todo.recv() else { return };
            audio.take(command);
        }
        while let Ok(command) = todo.try_recv() {
            audio.take(command);
        }
        if let Some(spoken) = audio.work() {
            // May wait: the step thread never waits for this one, and a lost answer would keep the context's place for ever.
            let _ = back.send(Command::Spoken(spoken));
        } else {
            // Spares the step thread a wait; with a full queue it is awake anyway.
            let _ = back.try_send(Command::Room);
        }
    }
}
