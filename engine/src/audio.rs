//! The codec's side of the engine: codes in, PCM into the contexts' outboxes. Owns the state of every stream.
//!
//! Jobs of one context are done in order; among contexts the one whose listener runs dry first goes first. Where a codec decodes
//! streams together, one job of each that waits goes with it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::event::{Event, Failure, Outbox, Summary};
use crate::pipeline::AudioJob;
use crate::sound::{Input, Pieces, Stream};
use crate::stats::Stats;
use crate::worker::Command;
use crate::{ContextId, Pcm};

/// Streams that are decoded together at most: the most urgent listener waits for all of them, and with more there is little to
/// gain, since the weights are read once for eight already.
const TOGETHER_MAX: usize = 8;

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

    /// Does the most urgent job, and with it those that can be decoded together with it. Returns what the step thread is to know
    /// of the contexts whose last ones they were.
    pub(crate) fn work(&mut self) -> Vec<Command> {
        let chosen = self.chosen();
        let mut taken = Vec::with_capacity(chosen.len());
        for (&id, voice) in self.voices.iter_mut().filter(|(id, _)| chosen.contains(id)) {
            let mut job = voice.jobs.pop_front().expect("just seen; this is a bug");
            voice.hear(&mut job);
            taken.push((id, voice, job));
        }
        let coded = taken.iter_mut().filter(|(_, _, job)| !job.rows.is_empty());
        let inputs = coded.map(|(_, voice, job)| Input {
            stream: &mut voice.stream,
            rows: job.rows.iter().map(Vec::as_slice).collect(),
            end: job.end,
        });
        let mut decoded = Stream::push_each(inputs.collect()).into_iter();
        let mut spoken = Vec::new();
        for (id, voice, job) in taken {
            let before = voice.sent;
            let made = match job.rows.is_empty() {
                true => Ok(Pieces::none()),
                false => decoded.next().expect("sound of each job; this is a bug"),
            };
            let last = match made {
                Ok(pieces) => {
                    pieces.each(|samples| voice.release(samples));
                    job.last
                }
                Err(error) => Some(Err(Failure::Codec(error.to_string()))),
            };
            self.samples += voice.sent - before;
            if let Some(last) = last {
                spoken.push((id, last.is_ok()));
                voice.end(last);
            }
        }
        for (id, _) in &spoken {
            self.voices.remove(id);
        }
        spoken.into_iter().map(|(id, whole)| Command::Spoken { id, whole }).collect()
    }

    /// The context with the most urgent job, and those whose jobs join it, the most urgent of them.
    fn chosen(&self) -> Vec<ContextId> {
        let waiting = self.voices.iter();
        let waiting =
            waiting.filter_map(|(&id, v)| Some((v.jobs.front()?.deadline, id, &v.stream)));
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_unstable_by_key(|&(deadline, id, _)| (deadline, id));
        let Some(&(_, _, urgent)) = waiting.first() else { return Vec::new() };
        let joining = waiting[1..].iter().filter(|(_, _, stream)| stream.joins(urgent));
        let all = waiting[..1].iter().chain(joining);
        all.map(|&(_, id, _)| id).take(TOGETHER_MAX).collect()
    }
}

impl Voice {
    /// Takes in what a job says beside its codes.
    fn hear(&mut self, job: &mut AudioJob) {
        self.stream.tell(job.context, job.marks.iter().map(|(_, event)| event));
        self.marks.extend(job.marks.drain(..));
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
            let none = spoken.is_empty();
            for command in spoken {
                // May wait: the step thread never waits for this one, and a lost answer would keep the context's place for
                // ever.
                let _ = self.back.send(command);
            }
            if none {
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use codecs::streaming::{Codec, Kind};
    use codecs::window::End;

    use super::*;
    use crate::event::{Events, outbox};

    const FRAMES: usize = 14;

    fn codec(kind: Kind, folder: &str) -> Arc<Codec> {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
        Arc::new(Codec::open(kind, &fixtures.join(folder)).unwrap())
    }

    /// Eight rows of codes that each context has for itself.
    fn codes(context: u64) -> Vec<Vec<u16>> {
        let code = |row: usize, frame: usize| ((row * 31 + frame * 7) as u16 + context as u16) % 64;
        (0..8).map(|row| (0..FRAMES).map(|frame| code(row, frame)).collect()).collect()
    }

    fn open(audio: &mut Audio, context: u64, codec: &Arc<Codec>, deadline_ms: u64) -> Events {
        let (outbox, events) = outbox(|| Duration::ZERO, || ());
        let stream = Stream::Streaming(codec.clone(), Box::new(codec.stream()));
        let context_id = ContextId(context);
        audio.take(AudioCommand::Open { context: context_id, stream, outbox });
        audio.take(AudioCommand::Job(AudioJob {
            context: context_id,
            rows: codes(context),
            samples: 0,
            end: End::Passage,
            deadline: Duration::from_millis(deadline_ms),
            marks: Vec::new(),
            last: None,
        }));
        events
    }

    fn heard(events: &Events) -> Vec<f32> {
        let next = || events.recv_timeout(Duration::ZERO).ok().flatten();
        let sound = std::iter::from_fn(next).filter_map(|event| match event {
            Event::Audio { samples, .. } => Some(samples.into_samples()),
            _ => None,
        });
        sound.flatten().collect()
    }

    /// Contexts that have a job waiting.
    fn waiting(audio: &Audio) -> Vec<u64> {
        let voices = audio.voices.iter().filter(|(_, voice)| !voice.jobs.is_empty());
        voices.map(|(id, _)| id.0).collect()
    }

    #[test]
    fn the_most_urgent_streams_of_one_codec_are_decoded_together_to_what_each_is_alone() {
        let (ours, other) = (codec(Kind::XCodec, "xcodec_tiny"), codec(Kind::Dac, "dac_tiny"));
        let count = TOGETHER_MAX as u64 + 2;
        let mut audio = Audio::default();
        // The later one is opened, the earlier its listener runs dry.
        let mut events: Vec<Events> =
            (0..count).map(|id| open(&mut audio, id, &ours, 100 - id)).collect();
        events.push(open(&mut audio, count, &other, 97));
        audio.work();
        assert_eq!(waiting(&audio), [0, 1, count]);
        // Next is the one that runs dry first, with nobody beside it.
        audio.work();
        assert_eq!(waiting(&audio), [0, 1]);
        audio.work();
        assert_eq!(audio.waiting(), 0);
        for (id, events) in events.iter().enumerate() {
            let codec = if id as u64 == count { &other } else { &ours };
            let codes = codes(id as u64);
            let rows: Vec<&[u16]> = codes.iter().map(Vec::as_slice).collect();
            let mut alone = codec.push(&mut codec.stream(), &rows, true).unwrap();
            alone.iter_mut().for_each(|sample| *sample = sample.clamp(-1.0, 1.0));
            assert_eq!(heard(events), alone, "context {id}");
        }
    }
}
