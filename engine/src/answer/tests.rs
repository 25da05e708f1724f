//! Answers through the whole engine: tiny models of both families, with their codecs, on invented time.

mod aborts;
mod crowd;
mod faults;
mod golden;
mod hearing;
mod limits;
mod live;
mod random;
mod sway;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::ContextId;
use crate::audio::{Audio, AudioCommand};
use crate::batch::{Batch, BatchRow};
use crate::bundle::speech::{LoadOptions, SpeechBundle};
use crate::engine::{Engine, Opening, Step};
use crate::event::{Event, Events, Failure, Segment, Summary, outbox};
use crate::hearing::Ear;
use crate::kernels::matrix::Precision;
use crate::models::speech::SpeechConfig;
use crate::runner::StageModel;
use crate::scheduler::Budget;
use crate::streams::Outputs;

/// Blocks of each stage: more than any test needs at once.
const ROOMY: usize = 1200;
const BUDGET: Budget = Budget { prefill_tokens: 256, sequences: 64, share_prefixes: true };
const BUNDLES: [&str; 2] = ["bagpiper", "opuslm"];
const BAGPIPER: usize = 0;
const OPUSLM: usize = 1;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
}

/// Where rows of the logits of a model have what.
fn outputs(model: usize) -> Outputs {
    let file = fixture("bundles").join(BUNDLES[model]).join("model/config.json");
    SpeechConfig::read(&file).unwrap().outputs()
}

/// Rows of a batch that ask for logits, each with its own.
fn with_logits<'a>(
    batch: &'a Batch,
    outputs: &Outputs,
    mut logits: &'a mut [f32],
) -> Vec<(&'a BatchRow, &'a mut [f32])> {
    let rows = batch.rows.iter().filter(|row| row.logits);
    rows.map(|row| (row, logits.split_off_mut(..outputs.len(row.narrow)).unwrap())).collect()
}

/// What was heard of an answer.
#[derive(Debug, Default, Clone, PartialEq)]
struct Heard {
    /// Frames for the codec, one code of each of its streams.
    frames: Vec<Vec<u16>>,
    text: String,
    segments: Vec<Segment>,
    outcome: Option<Result<Summary, Failure>>,
}

/// Both models in one engine, with the audio side, driven step by step.
struct Rig {
    engine: Engine,
    speakers: Vec<Arc<Speaker>>,
    audio: Audio,
    heard: BTreeMap<ContextId, Heard>,
    /// Ends of the outboxes; what comes out of them is what a reader gets.
    events: BTreeMap<ContextId, Events>,
    steps: u64,
    /// Time that a step takes.
    step_ms: u64,
    /// Whose reader is too slow.
    held_up: BTreeSet<ContextId>,
}

impl Rig {
    fn new(blocks: usize, budget: Budget) -> Self {
        Self::with(blocks, budget, |_, network| network)
    }

    /// An engine whose networks are changed on the way in.
    fn with(
        blocks: usize,
        budget: Budget,
        change: impl Fn(usize, Box<dyn StageModel>) -> Box<dyn StageModel>,
    ) -> Self {
        let (mut networks, mut speakers) = (Vec::new(), Vec::new());
        for (stage, name) in BUNDLES.into_iter().enumerate() {
            let bundle = SpeechBundle::open(&fixture("bundles").join(name)).unwrap();
            let options = LoadOptions { precision: Precision::F32, pool: None };
            let speech = bundle.load(&options, &mut |_| ()).unwrap();
            let (network, mut speaker) = Speaker::of(speech, Home { stage, blocks });
            if let Some(ear) = Ear::of(&bundle, speaker.heard.clone()) {
                speaker.hears(ear.limits());
            }
            networks.push(change(stage, Box::new(network)));
            speakers.push(Arc::new(speaker));
        }
        Self {
            engine: Engine::new(networks, &[blocks; 2], budget, None),
            speakers,
            audio: Audio::default(),
            heard: BTreeMap::new(),
            events: BTreeMap::new(),
            steps: 0,
            step_ms: 1,
            held_up: BTreeSet::new(),
        }
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.steps * self.step_ms)
    }

    fn resolve(&self, model: usize, request: Request) -> Settings {
        self.speakers[model].resolve(request).unwrap()
    }

    fn open(&mut self, id: ContextId, mut settings: Settings) {
        settings.standing.opened_at = self.now();
        let (outbox, events) = outbox(|| Duration::ZERO, || ());
        self.audio.take(AudioCommand::Open { context: id, stream: settings.stream(), outbox });
        self.events.insert(id, events);
        self.heard.insert(id, Heard::default());
        self.engine.open(id, Opening::Answer(Box::new(settings)));
    }

    /// Cancels as the step thread does. Returns what the context came to.
    fn cancel(&mut self, id: ContextId) -> Option<Summary> {
        let summary = self.engine.cancel(id);
        self.audio.take(AudioCommand::Close(id));
        summary
    }

    /// One step, and all the sound of it.
    fn step(&mut self) -> Step {
        let step = self.engine.step(self.now(), |id| self.held_up.contains(&id));
        self.steps += 1;
        while let Some(job) = self.engine.next_job() {
            let heard = self.heard.get_mut(&job.context).unwrap();
            assert!(heard.outcome.is_none(), "nothing follows the last job");
            let frames = job.rows.first().map_or(0, Vec::len);
            heard.frames.extend((0..frames).map(|at| job.rows.iter().map(|r| r[at]).collect()));
            for (_, event) in &job.marks {
                match event {
                    Event::Text { delta } => heard.text += delta,
                    Event::SegmentEnd(segment) => heard.segments.push(segment.clone()),
                    _ => {}
                }
            }
            // How long it waited is all that its neighbours may change.
            let unhurried = |summary| Summary { queued: Duration::ZERO, ..summary };
            heard.outcome = job.last.clone().map(|outcome| outcome.map(unhurried));
            self.audio.take(AudioCommand::Job(job));
        }
        while self.audio.waiting() > 0 {
            self.audio.work();
        }
        step
    }

    /// Steps until every context is over; `disturb` may interfere before each step.
    fn run_with(&mut self, mut disturb: impl FnMut(&mut Self, u64)) {
        for count in 0.. {
            disturb(self, count);
            if self.engine.contexts() == 0 {
                break;
            }
            let step = self.step();
            assert_eq!(self.engine.scheduler().check_integrity(), Ok(()));
            assert!(count < 20_000, "{} contexts do not come to an end", self.engine.contexts());
            assert!(step.tokens > 0, "contexts wait for nothing at step {count}");
        }
        self.assert_idle();
    }

    fn run(&mut self) {
        self.run_with(|_, _| ());
    }

    /// Blocks, groups and codec states are all given back.
    fn assert_idle(&self) {
        assert!(self.engine.blocks().iter().all(|b| b.in_use == 0), "blocks are held by nobody");
        assert!(self.engine.scheduler().is_empty(), "groups belong to nobody");
        assert_eq!(self.audio.streams(), 0, "codec states are held by nobody");
    }

    /// One answer alone; the engine has nothing else to do.
    fn alone(&mut self, settings: Settings) -> Heard {
        let id = ContextId(self.steps + 1_000_000);
        self.open(id, settings);
        self.run();
        self.heard.remove(&id).unwrap()
    }

    /// All that a reader got of an answer, in order.
    fn read(&mut self, id: ContextId) -> Vec<Event> {
        let events = self.events.remove(&id).unwrap();
        let next = || events.recv_timeout(Duration::ZERO).ok().flatten();
        std::iter::from_fn(next).collect()
    }
}

/// A request whose draws are all free.
fn request(order: &[Modality], seed: u64) -> Request {
    let free = Draw { temperature: Some(1.0), ..Draw::default() };
    Request { text: free, audio: free, seed, ..Request::new("hello there", order) }
}

fn spoken(events: &[Event]) -> Vec<f32> {
    let sound = events.iter().filter_map(|event| match event {
        Event::Audio { samples, .. } => Some(samples.clone().into_samples()),
        _ => None,
    });
    sound.flatten().collect()
}
