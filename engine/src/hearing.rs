//! What speech language models hear with: recordings to parts of prompts. The `engine-hearing` thread makes them, so that a
//! long recording stops no step.
//!
//! ```text
//! samples at 24 kHz -> 16 kHz -> audio tower, adaptor -> rows in the place of embeddings      Bagpiper
//!                             -> units of features, codec -> rows of codes                     OpusLM
//! request --checked, waits--> heard --Command::Open--> the step thread, as any other
//! ```
//! An answer that waits to be heard can be cancelled like any other; what was heard for it is thrown away then.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codecs::qwen3_omni::{self, MelSettings, Tail};
use codecs::resample::Resampler;
use codecs::seanet;
use codecs::units::{Extractor, Units};
use codecs::weights::{LoadError, Weights};

use crate::answer::{Part, Request, Settings, Speaker};
use crate::bundle::speech::{AudioInput, SpeechBundle};
use crate::engine::Opening;
use crate::event::{Event, Failure, Outbox, Summary};
use crate::meter::Queued;
use crate::models::speech::{Heard, open_model};
use crate::voices::SharedEar;
use crate::worker::Command;
use crate::{ContextId, Error};

/// Rate of the recordings that are taken, in Hz.
const RATE: u32 = 24_000;

/// Why a recording cannot be heard.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum HearingError {
    /// Longer than the bundle allows.
    #[error("longer than {seconds_max} s (audio_input.max_seconds)")]
    TooLong { seconds_max: f64 },
    /// Too short for anything to be made of it.
    #[error("{samples} samples are too short to be heard")]
    TooShort { samples: usize },
    /// A sample is infinite or not a number.
    #[error("sample {index} is not a finite number")]
    NotFinite { index: usize },
    /// It becomes rows of numbers, of which no voice can be made.
    #[error("this model does not hear in codes")]
    NoCodes,
    /// What hears cannot be loaded.
    #[error("cannot load what hears: {0}")]
    Load(String),
}

/// What can be said of a recording before it is heard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    seconds_max: f64,
}

impl Limits {
    /// Checks a recording at 24 kHz.
    ///
    /// # Errors
    /// It is too long, or has samples that are no numbers.
    pub(crate) fn check(self, samples: &[f32]) -> Result<(), HearingError> {
        let seconds_max = self.seconds_max;
        if samples.len() as f64 > seconds_max * f64::from(RATE) {
            return Err(HearingError::TooLong { seconds_max });
        }
        match samples.iter().position(|s| !s.is_finite()) {
            Some(index) => Err(HearingError::NotFinite { index }),
            None => Ok(()),
        }
    }
}

/// What a model hears with; its networks are loaded when the first recording comes.
pub(crate) struct Ear {
    files: Files,
    limits: Limits,
    ready: Option<Ready>,
}

enum Files {
    Tower { folder: PathBuf, model: PathBuf, mel: MelSettings, heard: Arc<Heard> },
    Units { features: PathBuf, layer: usize, centers: PathBuf, codec: PathBuf },
}

enum Ready {
    Tower(Box<qwen3_omni::Hearing>, Arc<Heard>),
    Units(Box<Coded>),
}

/// What makes codes.
struct Coded {
    extractor: Extractor,
    units: Units,
    codec: seanet::Encoder,
}

impl Ear {
    /// What a bundle hears with, if anything; `heard` keeps the rows of its network's clips.
    pub(crate) fn of(bundle: &SpeechBundle, heard: Arc<Heard>) -> Option<Self> {
        let path = |part: &String| bundle.root.join(part);
        let (files, seconds_max) = match bundle.manifest.audio_input.as_ref()? {
            AudioInput::Qwen3Omni { path: folder, normalize, max_seconds } => {
                // As in training: what is brought to one level is followed by silence. Servers that leave out the one leave
                // out the other.
                let tail = if *normalize { Tail::Silence } else { Tail::Mirror };
                let mel = MelSettings { normalise: *normalize, tail };
                let (folder, model) = (path(folder), bundle.model_folder());
                (Files::Tower { folder, model, mel, heard }, *max_seconds)
            }
            AudioInput::Units { features, layer, centers, max_seconds } => {
                let codec = path(&bundle.manifest.codec.as_ref()?.path);
                let (features, centers) = (path(features), path(centers));
                (Files::Units { features, layer: *layer, centers, codec }, *max_seconds)
            }
        };
        let limits = Limits { seconds_max: f64::from(seconds_max) };
        Some(Self { files, limits, ready: None })
    }

    /// Longest recording, in samples at 24 kHz.
    pub(crate) fn samples_max(&self) -> usize {
        (self.limits.seconds_max * f64::from(RATE)) as usize
    }

    /// What can be said of a recording beforehand.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Loads the networks, if they are not.
    ///
    /// # Errors
    /// The first part that is missing or damaged, by file and field or tensor.
    pub(crate) fn load(&mut self) -> Result<(), LoadError> {
        self.ready().map(drop)
    }

    fn ready(&mut self) -> Result<&Ready, LoadError> {
        let ready = match self.ready.take() {
            Some(ready) => ready,
            None => self.files.load()?,
        };
        Ok(self.ready.insert(ready))
    }

    /// Makes codes of a recording at 24 kHz, `[streams][frames]`.
    pub(crate) fn codes(&mut self, samples: &[f32]) -> Result<Vec<Vec<u16>>, HearingError> {
        match self.hear(samples)? {
            Part::Codes(codes) => Ok(codes.to_vec()),
            _ => Err(HearingError::NoCodes),
        }
    }

    /// Whether what it hears becomes codes.
    pub(crate) fn makes_codes(&self) -> bool {
        matches!(self.files, Files::Units { .. })
    }

    /// Makes a part of a prompt of a recording at 24 kHz.
    pub(crate) fn hear(&mut self, samples: &[f32]) -> Result<Part, HearingError> {
        self.limits.check(samples)?;
        let ready = self.ready().map_err(|e| HearingError::Load(e.to_string()))?;
        let too_short = HearingError::TooShort { samples: samples.len() };
        ready.part(&lowered(samples)).ok_or(too_short)
    }
}

impl Files {
    fn load(&self) -> Result<Ready, LoadError> {
        match self {
            Self::Tower { folder, model, mel, heard } => {
                let config = qwen3_omni::Config::read(&folder.join("config.json"))?;
                let (tower, (_, model)) = (Weights::open(folder)?, open_model(model)?);
                let (tower, model) = ((&tower, &config), (&model, heard.width()));
                // The limit was held before the rate was converted, which may round up.
                let hearing = qwen3_omni::Hearing::load(tower, model, *mel, f64::INFINITY)?;
                Ok(Ready::Tower(Box::new(hearing), heard.clone()))
            }
            Self::Units { features, layer, centers, codec } => {
                let extractor = Extractor::open(features, *layer)?;
                let units = Units::load(&Weights::open(centers)?, extractor.width())?;
                let config = seanet::Config::read(&codec.join("config.json"))?;
                let codec = seanet::Encoder::load(&Weights::open(codec)?, &config)?;
                Ok(Ready::Units(Box::new(Coded { extractor, units, codec })))
            }
        }
    }
}

impl Ready {
    /// What a clip at 16 kHz is in a prompt; nothing where it is too short.
    fn part(&self, samples: &[f32]) -> Option<Part> {
        match self {
            Self::Tower(hearing, heard) => {
                let rows = hearing.encode(samples).ok()?.into_data();
                Some(Part::Heard(Arc::new(heard.add(rows))))
            }
            Self::Units(coded) => {
                let features = coded.extractor.features(samples);
                let mut rows = vec![coded.units.nearest(&features)];
                rows.extend(coded.codec.encode(samples));
                // Both have 50 frames a second; what one has at its end and the other has not is left out.
                let frames = rows.iter().map(Vec::len).min().filter(|&frames| frames > 0)?;
                rows.iter_mut().for_each(|row| row.truncate(frames));
                Some(Part::Codes(rows.into()))
            }
        }
    }
}

/// To the rate that models hear.
fn lowered(samples: &[f32]) -> Vec<f32> {
    let resampler = Resampler::new(RATE, qwen3_omni::RATE);
    let mut resampler = resampler.expect("both rates are the resampler's own; this is a bug");
    let mut out = Vec::new();
    resampler.push(samples, &mut out);
    resampler.finish(&mut out);
    out
}

/// An answer whose recordings are still to be heard.
pub(crate) struct HearingJob {
    pub(crate) id: ContextId,
    pub(crate) speaker: Arc<Speaker>,
    /// Its place among the models that answer.
    pub(crate) model: usize,
    pub(crate) request: Request,
    /// Counted as long as it waits.
    pub(crate) _queued: Queued,
}

/// The answers that wait, with where their events go.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<BTreeMap<ContextId, Outbox>>);

impl Waiting {
    /// One more waits.
    pub(crate) fn add(&self, id: ContextId, outbox: Outbox) {
        self.lock().insert(id, outbox);
    }

    /// It waits no longer, and nobody is told.
    pub(crate) fn forget(&self, id: ContextId) {
        self.lock().remove(&id);
    }

    /// Stops one that waits. Returns whether it did.
    pub(crate) fn cancel(&self, id: ContextId) -> bool {
        let stopped = self.lock().remove(&id);
        stopped.is_some_and(|outbox| {
            outbox.cut_off(Event::Cancelled(Summary::default()));
            true
        })
    }

    /// Stops all.
    pub(crate) fn cancel_all(&self) {
        let stopped = std::mem::take(&mut *self.lock());
        stopped.values().for_each(|outbox| outbox.cut_off(Event::Cancelled(Summary::default())));
    }

    /// Whether somebody still waits for it.
    pub(crate) fn wants(&self, id: ContextId) -> bool {
        let mut waiting = self.lock();
        waiting.retain(|_, outbox| !outbox.reader_gone());
        waiting.contains_key(&id)
    }

    /// Ends the wait of one, if it was not cancelled. The lock is held meanwhile, so that a cancel comes before or after.
    pub(crate) fn end(&self, id: ContextId, then: impl FnOnce(Outbox)) {
        let mut waiting = self.lock();
        if let Some(outbox) = waiting.remove(&id) {
            then(outbox);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ContextId, Outbox>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hearing thread: ears of all models that answer, in their order.
pub(crate) struct Side {
    pub(crate) ears: Vec<Option<SharedEar>>,
    pub(crate) waiting: Arc<Waiting>,
    pub(crate) commands: SyncSender<Command>,
}

impl Side {
    /// Runs until nobody can ask any more.
    pub(crate) fn run(self, todo: &Receiver<HearingJob>) {
        while let Ok(HearingJob { id, speaker, model, request, _queued }) = todo.recv() {
            if !self.waiting.wants(id) {
                continue;
            }
            match self.hear(&speaker, model, request) {
                Ok(settings) => self.waiting.end(id, |outbox| {
                    let stream = settings.stream();
                    let opening = Opening::Answer(Box::new(settings));
                    // An engine that goes down has cut the outbox off, or the reader sees that it has no end.
                    let _ = self.commands.send(Command::Open { id, opening, stream, outbox });
                }),
                Err(failure) => self.waiting.end(id, |outbox| {
                    outbox.cut_off(Event::Failed(Failure::Hearing(failure)));
                }),
            }
        }
    }

    /// Hears the recordings of a request, and checks it as one without them.
    fn hear(
        &self,
        speaker: &Arc<Speaker>,
        model: usize,
        mut request: Request,
    ) -> Result<Settings, String> {
        let ear = self.ears.get(model).and_then(Option::as_ref);
        let ear = ear.ok_or("this model does not hear")?;
        // What an ear has loaded is whole, whoever panicked.
        let mut ear = ear.lock().unwrap_or_else(PoisonError::into_inner);
        for part in request.messages.iter_mut().flat_map(|message| &mut message.parts) {
            if let Part::Audio(samples) = part {
                *part = ear.hear(samples).map_err(|e| e.to_string())?;
            }
        }
        speaker.resolve(request).map_err(|e: Error| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::answer::{Home, Modality};
    use crate::bundle::Opened;
    use crate::bundle::speech::LoadOptions;
    use crate::event::{Events, outbox};
    use crate::kernels::matrix::Precision;
    use crate::{Handle, Options};

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
    }

    /// A bundle of the fixtures that hears with the given parts, each a link from a name in the bundle to a file.
    fn bundle(
        name: &str,
        input: Value,
        parts: &[(&str, &str)],
    ) -> (tempfile::TempDir, SpeechBundle) {
        let folder = tempfile::tempdir().unwrap();
        let source = fixture(&format!("bundles/{name}"));
        for part in ["codec", "model", "tokenizer.json"] {
            let from = source.join(part).canonicalize().unwrap();
            std::os::unix::fs::symlink(from, folder.path().join(part)).unwrap();
        }
        for (part, from) in parts {
            let part = folder.path().join(part);
            std::fs::create_dir_all(part.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(fixture(from).canonicalize().unwrap(), part).unwrap();
        }
        let mut manifest: Value =
            codecs::weights::read_json(&source.join("dovecote.json")).unwrap();
        manifest["audio_input"] = input;
        std::fs::write(folder.path().join("dovecote.json"), manifest.to_string()).unwrap();
        let bundle = SpeechBundle::open(folder.path()).unwrap();
        (folder, bundle)
    }

    fn tower() -> (tempfile::TempDir, SpeechBundle) {
        let input = json!({"kind": "qwen3-omni", "max_seconds": 2.0});
        bundle("bagpiper", input, &[("audio", "qwen3_omni_audio_tiny")])
    }

    /// The ear of a bundle, and the rows that its network knows.
    fn ear(bundle: &SpeechBundle) -> (Ear, Arc<Heard>) {
        let options = LoadOptions { precision: Precision::F32, pool: None };
        let heard = bundle.load(&options, &mut |_| ()).unwrap().network.heard();
        (Ear::of(bundle, heard.clone()).unwrap(), heard)
    }

    fn tone(samples: u16) -> Vec<f32> {
        (0..samples).map(|i| (f32::from(i) * 0.04).sin() * 0.3).collect()
    }

    #[test]
    fn a_recording_becomes_rows_that_are_there_as_long_as_the_part() {
        let (_folder, bundle) = tower();
        let (mut ear, heard) = ear(&bundle);
        let part = ear.hear(&tone(24_000)).unwrap();
        let Part::Heard(clip) = &part else { panic!("{part:?}") };
        // 100 frames of spectrum are a chunk, of 13 tokens.
        assert_eq!((clip.ids().len(), heard.clips()), (13, 1));
        drop(part);
        assert_eq!(heard.clips(), 0);
    }

    #[test]
    fn a_recording_becomes_units_and_codes_of_equal_length() {
        let bundle = SpeechBundle::open(&fixture("bundles/opuslm-hearing")).unwrap();
        let (mut ear, _) = ear(&bundle);
        let part = ear.hear(&tone(24_000)).unwrap();
        let Part::Codes(rows) = &part else { panic!("{part:?}") };
        // Features end with their last whole window, codes with the last sample.
        assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [49; 9]);
        let differ = |row: &Vec<u16>| row.iter().any(|code| *code != row[0]);
        assert!(rows.iter().all(differ), "one code says nothing of a tone: {rows:?}");
        assert_eq!(ear.hear(&tone(100)), Err(HearingError::TooShort { samples: 100 }));
    }

    #[test]
    fn what_cannot_be_heard_is_told_and_nothing_is_kept_of_it() {
        let (folder, bundle) = tower();
        let (mut ear, heard) = ear(&bundle);
        let long = ear.hear(&tone(48_001)).unwrap_err().to_string();
        assert_eq!(long, "longer than 2 s (audio_input.max_seconds)");
        assert_eq!(ear.hear(&[0.0, f32::NAN]), Err(HearingError::NotFinite { index: 1 }));
        assert_eq!(ear.hear(&[]), Err(HearingError::TooShort { samples: 0 }));
        assert_eq!(heard.clips(), 0);
        std::fs::remove_file(folder.path().join("audio")).unwrap();
        let mut fresh = Ear::of(&bundle, heard).unwrap();
        let lost = fresh.hear(&tone(100)).unwrap_err().to_string();
        assert!(lost.contains("cannot load what hears") && lost.contains("config.json"), "{lost}");
    }

    /// The thread's side with one model that hears, and what it would tell the step thread.
    struct Rig {
        side: Side,
        speaker: Arc<Speaker>,
        commands: Receiver<Command>,
        _folder: tempfile::TempDir,
    }

    impl Rig {
        fn new() -> Self {
            let (_folder, bundle) = tower();
            let options = LoadOptions { precision: Precision::F32, pool: None };
            let speech = bundle.load(&options, &mut |_| ()).unwrap();
            let (_, speaker) = Speaker::of(speech, Home { stage: 0, blocks: 99 });
            let (to_step, commands) = sync_channel(9);
            let ear = Ear::of(&bundle, speaker.heard.clone());
            let ears = vec![ear.map(|ear| Arc::new(Mutex::new(ear)))];
            let side = Side { ears, waiting: Arc::default(), commands: to_step };
            Self { side, speaker: Arc::new(speaker), commands, _folder }
        }

        /// An answer that waits for a recording to be heard.
        fn ask(&self, id: u64, samples: Vec<f32>) -> (HearingJob, Events) {
            let (outbox, events) = outbox(|| Duration::ZERO, || ());
            self.side.waiting.add(ContextId(id), outbox);
            let mut request = Request::new("", &[Modality::Text]);
            request.messages[0].parts = vec![Part::Audio(samples.into())];
            let speaker = self.speaker.clone();
            let _queued = speaker.meter.hearing();
            (HearingJob { id: ContextId(id), speaker, model: 0, request, _queued }, events)
        }

        /// Lets the thread's loop do these jobs. Returns which contexts it would open.
        fn run(self, jobs: Vec<HearingJob>) -> Vec<ContextId> {
            let (todo, inbox) = sync_channel(jobs.len());
            jobs.into_iter().for_each(|job| todo.send(job).unwrap());
            drop(todo);
            self.side.run(&inbox);
            let opened = |command| match command {
                Command::Open { id, .. } => id,
                _ => panic!("only contexts are opened"),
            };
            self.commands.iter().map(opened).collect()
        }
    }

    fn last(events: &Events) -> Option<Event> {
        events.recv_timeout(Duration::ZERO).ok().flatten()
    }

    #[test]
    fn contexts_open_in_order_once_their_recordings_are_heard() {
        let rig = Rig::new();
        let (jobs, events): (Vec<_>, Vec<_>) = (1..4).map(|id| rig.ask(id, tone(2_400))).unzip();
        assert_eq!(rig.run(jobs), [1, 2, 3].map(ContextId));
        assert!(events.iter().all(|events| last(events).is_none()), "nothing is said of it yet");
    }

    #[test]
    fn a_recording_that_cannot_be_heard_fails_its_answer_alone() {
        let rig = Rig::new();
        let (short, events) = rig.ask(1, Vec::new());
        let (good, _open) = rig.ask(2, tone(2_400));
        assert_eq!(rig.run(vec![short, good]), [ContextId(2)]);
        let Some(Event::Failed(failure)) = last(&events) else { panic!() };
        let expected = "cannot hear a recording: 0 samples are too short to be heard";
        assert_eq!(failure.to_string(), expected);
    }

    #[test]
    fn an_answer_that_is_cancelled_or_has_no_reader_is_not_heard() {
        let rig = Rig::new();
        let heard = rig.speaker.heard.clone();
        let (cancelled, events) = rig.ask(1, tone(2_400));
        let (unread, reader) = rig.ask(2, tone(2_400));
        drop(reader);
        assert!(rig.side.waiting.cancel(ContextId(1)) && !rig.side.waiting.cancel(ContextId(1)));
        assert_eq!(rig.run(vec![cancelled, unread]), []);
        assert!(matches!(last(&events), Some(Event::Cancelled(_))));
        assert_eq!(heard.clips(), 0);
    }

    /// All events of an answer, which must come to an end.
    fn read(events: &Events) -> Vec<Event> {
        std::iter::from_fn(|| events.recv()).collect()
    }

    #[test]
    fn a_running_engine_answers_to_a_recording_and_refuses_what_it_cannot_hear() {
        let (_folder, bundle) = tower();
        let deaf = SpeechBundle::open(&fixture("bundles/opuslm")).unwrap();
        let bundles = [Opened::Speech(Box::new(bundle)), Opened::Speech(Box::new(deaf))];
        let options = Options { precision: Precision::F32, threads: 1, ..Options::default() };
        let engine = Handle::start(&bundles, &options, &mut |_| ()).unwrap();
        let ask = |model: &str, samples: Vec<f32>| {
            let mut request = Request::new("What is said?", &[Modality::Text]);
            request.messages[0].parts.push(Part::Audio(samples.into()));
            engine.answer(Request { model: Some(model.into()), ..request })
        };
        let (_, events) = ask("bagpiper-tiny", tone(24_000)).unwrap();
        let told = read(&events);
        let Some(Event::Done(Summary { usage: Some(usage), .. })) = told.last() else {
            panic!("{told:?}")
        };
        assert_eq!(usage.prompt_audio_tokens, 13);
        for (model, samples, says) in [
            ("bagpiper-tiny", tone(48_001), "longer than 2 s (audio_input.max_seconds)"),
            ("bagpiper-tiny", vec![f32::INFINITY], "sample 0 is not a finite number"),
            ("opuslm-tiny", tone(100), "this model does not hear"),
        ] {
            let refused = ask(model, samples).err().unwrap().to_string();
            assert!(refused.contains(says), "{refused}");
        }
        // More wait than may, unless the thread is quick.
        let asked: Vec<_> = (0..20).map(|_| ask("bagpiper-tiny", tone(24_000))).collect();
        assert!(asked.iter().all(|asked| matches!(asked, Ok(_) | Err(Error::Busy { .. }))));
        drop(engine);
        for (_, events) in asked.iter().flatten() {
            let told = read(events);
            assert!(matches!(told.last(), None | Some(Event::Cancelled(_) | Event::Done(_))));
        }
    }
}
