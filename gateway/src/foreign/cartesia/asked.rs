//! Cartesia's request, which is the same over every transport, and what formats it may name.

use serde::Deserialize;

use super::super::pcm_format;
use crate::protocol::Format;

/// A message as it comes. What is not here has no meaning for the models.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) context_id: Option<String>,
    pub(super) model_id: Option<String>,
    pub(super) transcript: Option<String>,
    pub(super) voice: Option<Voice>,
    pub(super) output_format: Option<OutputFormat>,
    pub(super) language: Option<String>,
    pub(super) r#continue: Option<bool>,
    pub(super) flush: Option<bool>,
    pub(super) cancel: Option<bool>,
    pub(super) max_buffer_delay_ms: Option<f64>,
    pub(super) add_timestamps: Option<bool>,
    pub(super) generation_config: Option<GenerationConfig>,
    pub(super) pronunciation_dict_id: Option<String>,
}

/// `voice`: its id, alone or in an object; or numbers that describe one.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "NameOfVoice")]
pub(super) struct Voice {
    id: Option<String>,
    is_embedding: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum NameOfVoice {
    Id(String),
    Object { mode: Option<String>, id: Option<String> },
}

impl From<NameOfVoice> for Voice {
    fn from(name: NameOfVoice) -> Self {
        match name {
            NameOfVoice::Id(id) => Self { id: Some(id), is_embedding: false },
            NameOfVoice::Object { mode, id } => {
                Self { is_embedding: mode.as_deref() == Some("embedding"), id }
            }
        }
    }
}

/// `output_format`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputFormat {
    pub(super) container: Option<String>,
    pub(super) encoding: Option<String>,
    pub(super) sample_rate: Option<u32>,
    /// Of MP3.
    pub(super) bit_rate: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GenerationConfig {
    pub(super) speed: Option<f32>,
}

impl Message {
    /// The list of words that it asks for.
    pub(super) fn dictionaries(&self) -> Option<Vec<String>> {
        let id = self.pronunciation_dict_id.as_ref().filter(|id| !id.is_empty());
        id.map(|id| vec![id.clone()])
    }

    /// The voice's name.
    ///
    /// # Errors
    /// It has none, but an embedding.
    pub(super) fn voice(&self) -> Result<Option<&str>, String> {
        match &self.voice {
            Some(voice) if voice.is_embedding => {
                let why =
                    "an embedding is no voice here; POST /v1/voices adds one, which has an id";
                Err(format!("voice.mode \"embedding\": {why}"))
            }
            voice => Ok(voice.as_ref().and_then(|voice| voice.id.as_deref())),
        }
    }

    /// Whether it has nothing to say but that there is no more.
    pub(super) fn only_ends(&self) -> bool {
        let says = self.transcript.as_deref().is_some_and(|text| !text.trim().is_empty());
        !says && self.r#continue != Some(true)
    }
}

/// The format of a message.
///
/// # Errors
/// A sentence that names the field and what is allowed.
pub(super) fn format(asked: Option<&OutputFormat>) -> Result<Format, String> {
    let Some(asked) = asked else { return pcm_format(None, None) };
    match asked.container.as_deref() {
        None | Some("raw") => samples(asked),
        Some(other) => Err(format!("output_format.container {other:?} is not raw")),
    }
}

/// The samples of a format, whatever they are put into.
///
/// # Errors
/// As [`format`].
pub(super) fn samples(asked: &OutputFormat) -> Result<Format, String> {
    let codec = match asked.encoding.as_deref() {
        None => None,
        Some(name @ ("pcm_s16le" | "pcm_f32le")) => Some(name),
        Some("pcm_mulaw") => Some("mulaw"),
        Some("pcm_alaw") => Some("alaw"),
        Some(other) => {
            let known = "pcm_s16le, pcm_f32le, pcm_mulaw, pcm_alaw";
            return Err(format!("output_format.encoding {other:?} is not one of {known}"));
        }
    };
    let format = pcm_format(codec, asked.sample_rate);
    format.map_err(|reason| reason.replace("audio.", "output_format."))
}
