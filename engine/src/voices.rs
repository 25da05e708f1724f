//! The voices of a running engine: those of its bundle, those that are added while it runs, and what makes them.
//!
//! ```text
//! recording --engine-voice--> rows of codes --checked--> Prompt --add--> the list --request--> a context's own Arc
//! ```
//!
//! A context keeps the prompt that it was opened with, so a voice can go while it speaks. Nothing here knows who may do what.

use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, PoisonError, RwLock};

use codecs::dualcodec::{PromptEncoder, PromptError};
use codecs::w2vbert::{self, Statistics, W2vBert};
use codecs::weights::{LoadError, Weights};

use crate::bundle::{self, Bundle, Prompt, PromptRules};
use crate::start::dualcodec_config;
use crate::text::ids::Language;

/// Most voices of an engine. Each is a few kilobytes of codes; what it costs is the key/value memory that prompts share.
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

/// Why a voice cannot be made or added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VoiceError {
    /// The codes do not suit the bundle.
    #[error("the codes do not suit: {0}")]
    Codes(String),
    /// There is nothing to be heard.
    #[error("the recording is silent")]
    Silent,
    /// The recording cannot be encoded.
    #[error("cannot encode the recording: {0}")]
    Recording(#[from] PromptError),
    /// The bundle only speaks.
    #[error("this bundle has nothing that encodes recordings: give codes")]
    Deaf,
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
    /// No bundle of the engine has voices.
    #[error("no model here has voices")]
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

/// The voices that can be asked for now.
pub(crate) struct Voices {
    list: RwLock<Vec<LoadedVoice>>,
}

impl Voices {
    pub(crate) fn new(list: Vec<LoadedVoice>) -> Self {
        Self { list: RwLock::new(list) }
    }

    /// A voice by its name.
    ///
    /// # Errors
    /// The names that there are.
    pub(crate) fn find(&self, name: &str) -> Result<LoadedVoice, Vec<String>> {
        // A writer that panicked left a whole list behind: it does one push or one removal.
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        let found = list.iter().find(|v| v.name == name);
        found.cloned().ok_or_else(|| list.iter().map(|v| v.name.clone()).collect())
    }

    pub(crate) fn add(&self, voice: LoadedVoice) -> Result<(), VoiceError> {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        if list.iter().any(|v| v.name == voice.name) {
            return Err(VoiceError::Taken { name: voice.name });
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
        list.retain(|v| v.name != name);
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
        // What is not a number is told by the encoder, by its place.
        if !samples.iter().any(|s| !s.is_finite() || s.abs() >= SILENT_PEAK) {
            return Err(VoiceError::Silent);
        }
        let encoder = self.load().map_err(|e| VoiceError::Encoder(e.to_string()))?;
        let rows = encoder.encode(samples)?;
        Prompt::from_rows(rows, &self.rules).map_err(VoiceError::Codes)
    }
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

/// A recording for the voice thread, and where its codes go.
pub(crate) struct VoiceJob {
    pub(crate) samples: Vec<f32>,
    pub(crate) answer: SyncSender<Result<Prompt, VoiceError>>,
}

/// The voice thread's loop, until nobody can ask any more.
pub(crate) fn run(mut hearing: Hearing, todo: &Receiver<VoiceJob>) {
    while let Ok(VoiceJob { samples, answer }) = todo.recv() {
        // Whoever asked may have gone.
        let _ = answer.send(hearing.encode(&samples));
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
