//! The voices of a running engine: those of its bundle, those that are added while it runs, and what makes them.
//!
//! ```text
//! recording --engine-voice--> rows of codes --checked--> NewVoice --add--> the list --request--> a context's own Arc
//! ```
//!
//! A context keeps the prompt that it was opened with, so a voice can go while it speaks. Nothing here knows who may do what.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use codecs::dualcodec::{PromptEncoder, PromptError};
use codecs::w2vbert::{self, Statistics, W2vBert};
use codecs::weights::{LoadError, Weights};

use crate::bundle::speech::SpeechVoice;
use crate::bundle::{self, Bundle, Prompt, PromptRules};
use crate::hearing::Ear;
use crate::start::dualcodec_config;
use crate::text::ids::Language;

/// Most voices of a model. Each is a few kilobytes of codes; what it costs is the key/value memory that prompts share.
const VOICES_MAX: usize = 1_024;
/// A recording that is nowhere louder is silence: 60 dB below full scale.
const SILENT_PEAK: f32 = 1e-3;

/// What a voice is made from.
#[derive(Debug, Clone, PartialEq)]
pub enum VoiceSource {
    /// Rows of codes, the semantic one first, of equal length.
    Codes(Vec<Vec<u16>>),
    /// A recording: mono samples at 24 kHz, of which the first 60 s count.
    Recording(Vec<f32>),
}

/// A voice that was made for a model and is not there yet.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVoice {
    /// Name of the model.
    pub model: String,
    /// Its codes, `[rows][frames]`, as far as any stage of the model reads them.
    pub rows: Vec<Vec<u16>>,
    /// Leading frames that each stage of the model reads; a speech language model is one stage.
    pub read_frames: Vec<usize>,
    /// The most of a recording that counts, in seconds.
    pub seconds_max: f64,
    /// Frames of codes in a second.
    pub frames_per_second: f64,
}

/// Why a voice cannot be made or added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VoiceError {
    /// The codes do not suit the bundle.
    #[error("the codes do not suit: {0}")]
    Codes(String),
    /// There is no such model, or it speaks with its own voice only.
    #[error("{model:?} is no model that takes voices: {}", known.join(", "))]
    Model {
        /// What was asked for.
        model: String,
        /// The models that take voices.
        known: Vec<String>,
    },
    /// There is nothing to be heard.
    #[error("the recording is silent")]
    Silent,
    /// The recording cannot be encoded.
    #[error("cannot encode the recording: {0}")]
    Recording(#[from] PromptError),
    /// The bundle only speaks.
    #[error("this model has nothing that encodes recordings: give codes")]
    Deaf,
    /// A speech language model makes nothing of the recording.
    #[error("cannot hear the recording: {0}")]
    Unheard(String),
    /// The encoder of the bundle cannot be loaded.
    #[error("cannot load the encoder: {0}")]
    Encoder(String),
    /// Other recordings are being encoded.
    #[error("{jobs} recordings wait to be encoded")]
    Busy {
        /// How many may wait.
        jobs: usize,
    },
    /// There is a voice of that name.
    #[error("there is a voice named {name:?}")]
    Taken {
        /// The name.
        name: String,
    },
    /// There is no room for another.
    #[error("there are {voices_max} voices, which is the most there may be")]
    Full {
        /// The limit.
        voices_max: usize,
    },
    /// No model of the engine takes voices.
    #[error("no model here takes voices")]
    NoVoices,
    /// The engine has gone down.
    #[error("the engine has stopped")]
    Stopped,
}

/// A voice that can be asked for.
#[derive(Debug, Clone)]
pub(crate) struct LoadedVoice {
    pub(crate) name: String,
    pub(crate) language: Language,
    pub(crate) prompt: Arc<Prompt>,
}

/// What is asked for by a name.
pub(crate) trait Named: Clone {
    fn name(&self) -> &str;
}

impl Named for LoadedVoice {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for SpeechVoice {
    fn name(&self) -> &str {
        &self.name
    }
}

/// The voices of a model that can be asked for now.
pub(crate) struct Voices<V> {
    list: RwLock<Vec<V>>,
}

impl<V: Named> Voices<V> {
    pub(crate) fn new(list: Vec<V>) -> Self {
        Self { list: RwLock::new(list) }
    }

    /// Whether there is such a voice.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.list.read().unwrap_or_else(PoisonError::into_inner).iter().any(|v| v.name() == name)
    }

    /// A voice by its name.
    ///
    /// # Errors
    /// The names that there are.
    pub(crate) fn find(&self, name: &str) -> Result<V, Vec<String>> {
        // A writer that panicked left a whole list behind: it does one push or one removal.
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        let found = list.iter().find(|v| v.name() == name);
        found.cloned().ok_or_else(|| list.iter().map(|v| v.name().to_owned()).collect())
    }

    /// # Errors
    /// [`VoiceError::Taken`], [`VoiceError::Full`].
    pub(crate) fn add(&self, voice: V) -> Result<(), VoiceError> {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        if list.iter().any(|v| v.name() == voice.name()) {
            return Err(VoiceError::Taken { name: voice.name().to_owned() });
        }
        if list.len() >= VOICES_MAX {
            return Err(VoiceError::Full { voices_max: VOICES_MAX });
        }
        list.push(voice);
        Ok(())
    }

    /// Whether there was such a voice.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        let before = list.len();
        list.retain(|v| v.name() != name);
        list.len() < before
    }
}

/// Makes codes of recordings, with networks that are loaded when the first one comes: they take gigabytes at the size of the
/// release, and most servers never need them.
pub(crate) struct Hearing {
    files: Files,
    rules: PromptRules,
    encoder: Option<PromptEncoder>,
}

struct Files {
    dualcodec: std::path::PathBuf,
    dualcodec_config: Option<std::path::PathBuf>,
    encoder: bundle::Encoder,
    acoustic_rows: usize,
}

impl Hearing {
    /// What a bundle hears with, if anything.
    pub(crate) fn of(bundle: &Bundle) -> Option<Self> {
        let bundle::Codec::DualCodecVibeVoice { dualcodec, dualcodec_config, encoder, .. } =
            &bundle.codec
        else {
            return None;
        };
        let files = Files {
            dualcodec: dualcodec.clone(),
            dualcodec_config: dualcodec_config.clone(),
            encoder: encoder.clone()?,
            acoustic_rows: bundle.stages.len() - 1,
        };
        Some(Self { files, rules: bundle.prompt_rules(), encoder: None })
    }

    /// Loads the networks, if they are not.
    pub(crate) fn load(&mut self) -> Result<&PromptEncoder, LoadError> {
        let encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => self.files.load()?,
        };
        Ok(self.encoder.insert(encoder))
    }

    /// Makes a prompt of a recording: mono samples at 24 kHz.
    pub(crate) fn encode(&mut self, samples: &[f32]) -> Result<Prompt, VoiceError> {
        let rows = self.rows(samples)?;
        Prompt::from_rows(rows, &self.rules).map_err(VoiceError::Codes)
    }

    fn rows(&mut self, samples: &[f32]) -> Result<Vec<Vec<u16>>, VoiceError> {
        check_loud(samples)?;
        let encoder = self.load().map_err(|e| VoiceError::Encoder(e.to_string()))?;
        Ok(encoder.encode(samples)?)
    }
}

/// What is not a number is told by the encoder, by its place.
fn check_loud(samples: &[f32]) -> Result<(), VoiceError> {
    if samples.iter().any(|s| !s.is_finite() || s.abs() >= SILENT_PEAK) {
        return Ok(());
    }
    Err(VoiceError::Silent)
}

impl Files {
    fn load(&self) -> Result<PromptEncoder, LoadError> {
        let Self { dualcodec, dualcodec_config, encoder, acoustic_rows } = self;
        let codec = self::dualcodec_config(dualcodec_config.as_deref())?;
        let config = w2vbert::Config::read(&encoder.w2v_bert.join("config.json"))?;
        let weights = Weights::open(&encoder.w2v_bert)?;
        let semantic = W2vBert::load(&weights, &config, codec.w2v_output_idx)?;
        let statistics = Statistics::read(&encoder.statistics, codec.semantic_input_dim)?;
        let weights = Weights::open(dualcodec)?;
        PromptEncoder::new(&codec, &weights, semantic, statistics, *acoustic_rows)
    }
}

/// What makes the codes of a model's voices.
pub(crate) enum Maker {
    /// Of a model that speaks a text.
    Prompts(Box<Hearing>),
    /// Of a speech language model: what it hears with, too.
    Ear {
        ear: SharedEar,
        /// Samples at 24 kHz of which anything is made.
        samples_max: usize,
    },
}

/// An ear that makes voices and hears what is to be answered: one of them at a time.
pub(crate) type SharedEar = Arc<Mutex<Ear>>;

impl Maker {
    fn rows(&mut self, samples: &[f32]) -> Result<Vec<Vec<u16>>, VoiceError> {
        match self {
            Self::Prompts(hearing) => hearing.rows(samples),
            Self::Ear { ear, samples_max } => {
                let samples = &samples[..samples.len().min(*samples_max)];
                check_loud(samples)?;
                // What an ear has loaded is whole, whoever panicked.
                let mut ear = ear.lock().unwrap_or_else(PoisonError::into_inner);
                ear.codes(samples).map_err(|e| VoiceError::Unheard(e.to_string()))
            }
        }
    }
}

/// A recording for the voice thread, and where its codes go.
pub(crate) struct VoiceJob {
    /// Name of the model.
    pub(crate) model: String,
    pub(crate) samples: Vec<f32>,
    pub(crate) answer: SyncSender<Result<Vec<Vec<u16>>, VoiceError>>,
}

/// The voice thread's loop, until nobody can ask any more; makers go by the names of their models.
pub(crate) fn run(mut makers: BTreeMap<String, Maker>, todo: &Receiver<VoiceJob>) {
    while let Ok(VoiceJob { model, samples, answer }) = todo.recv() {
        let made = makers.get_mut(&model).ok_or(VoiceError::Deaf);
        // Whoever asked may have gone.
        let _ = answer.send(made.and_then(|maker| maker.rows(&samples)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voice(name: &str) -> LoadedVoice {
        LoadedVoice { name: name.into(), language: Language::English, prompt: Arc::default() }
    }

    #[test]
    fn voices_come_and_go_and_a_name_is_there_once() {
        let voices = Voices::new(vec![voice("ann")]);
        assert_eq!(voices.add(voice("bob")), Ok(()));
        assert_eq!(voices.add(voice("bob")), Err(VoiceError::Taken { name: "bob".into() }));
        assert_eq!(voices.find("bob").unwrap().name, "bob");
        assert!(voices.remove("bob") && !voices.remove("bob"));
        assert_eq!(voices.find("bob").unwrap_err(), ["ann"]);
    }

    #[test]
    fn there_are_no_more_voices_than_the_limit() {
        let voices = Voices::new(Vec::new());
        for i in 0..VOICES_MAX {
            assert_eq!(voices.add(voice(&i.to_string())), Ok(()));
        }
        let refused = voices.add(voice("one more"));
        assert_eq!(refused, Err(VoiceError::Full { voices_max: VOICES_MAX }));
        assert!(refused.unwrap_err().to_string().contains("1024"));
    }
}
