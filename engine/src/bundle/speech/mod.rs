//! A speech language model on disk, and in memory. A bundle of family `speechlm`:
//!
//! ```text
//! dovecote.json  tokenizer.json  model/  config.json, model.safetensors, its index or one torch checkpoint
//!                                codec/  config.json, model.safetensors
//!                                [audio/]  what hears
//! ```
//! Opening reads configurations and headers; loading builds the networks.

mod convert;
mod load;
mod manifest;
mod survey;
mod text;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codecs::streaming;
use codecs::units::CENTRES;
use codecs::weights::{LoadError, Weights};

pub use convert::{Convert, ConvertError, Converted, Copied, convert};
pub use load::{Inspected, LoadOptions, Speech};
pub use manifest::{
    AudioInput, CodecEntry, FAMILY, Kind, SpeechManifest, SpeechSampling, Task, VoiceEntry,
};
pub use survey::{Survey, survey};
pub use text::{TextError, TextIds};

use super::voices;
use crate::layout::StreamIds;
use crate::models::backbone::Block;
use crate::models::speech::{Family, SpeechConfig, open_model};

/// A bundle whose parts fit each other.
#[derive(Debug, Clone)]
pub struct SpeechBundle {
    /// Its folder.
    pub root: PathBuf,
    /// What it says of itself.
    pub manifest: SpeechManifest,
    /// Sizes, symbols and streams of the model.
    pub config: SpeechConfig,
    /// Its tokenizer.
    pub text: Arc<TextIds>,
    /// Rates and sizes of its codec; none: it only writes.
    pub codec: Option<streaming::Shape>,
    /// Its voices, in the manifest's order.
    pub voices: Vec<SpeechVoice>,
}

/// A named voice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeechVoice {
    /// What requests call it.
    pub name: String,
    /// Its codes, `[streams][frames]`.
    pub codes: Arc<[Vec<u16>]>,
}

impl SpeechBundle {
    /// Reads a bundle.
    ///
    /// # Errors
    /// The first part that is missing, damaged, or at odds with another, by file and field.
    pub fn open(root: &Path) -> Result<Self, LoadError> {
        let file = root.join(super::MANIFEST);
        let manifest = SpeechManifest::read(&file)?;
        let (config, _) = open_model(&root.join(&manifest.model))?;
        check_kind(&file, manifest.kind, &config)?;
        check_tasks(&file, &manifest, &config)?;
        let ids = config.family.text();
        let text = Arc::new(TextIds::read(&root.join(&manifest.tokenizer), ids)?);
        let codec =
            manifest.codec.as_ref().map(|entry| open_codec(root, entry, &manifest, &config));
        let codec = codec.transpose()?;
        if let Some(input) = &manifest.audio_input {
            check_input(root, &file, input)?;
            if let AudioInput::Units { centers, .. } = input {
                let streams = config.family.streams();
                check_codes(root, &file, centers, streams, codec.as_ref())?;
            }
        }
        let voices = open_voices(root, &manifest, &config)?;
        Ok(Self { root: root.to_path_buf(), manifest, config, text, codec, voices })
    }

    /// The streams that the codec reads.
    pub fn sounding(&self) -> Range<usize> {
        sounding(&self.manifest, &self.config)
    }

    /// Folder of the model.
    pub fn model_folder(&self) -> PathBuf {
        self.root.join(&self.manifest.model)
    }

    /// A voice by its name.
    pub fn voice(&self, name: &str) -> Option<&SpeechVoice> {
        self.voices.iter().find(|v| v.name == name)
    }
}

fn sounding(manifest: &SpeechManifest, config: &SpeechConfig) -> Range<usize> {
    manifest.kind.silent_streams()..config.streams()
}

/// Which model a configuration is of, if it is one that speaks.
fn kind_of(config: &SpeechConfig) -> Option<Kind> {
    match (&config.family, config.backbone.block) {
        (Family::Bagpiper(_), _) => Some(Kind::Bagpiper),
        (Family::OpusLm(_), Block::Llama) => Some(Kind::OpusLmDialogue),
        (Family::OpusLm(_), _) => Some(Kind::OpusLm),
        (Family::Text, _) => None,
    }
}

fn check_kind(file: &Path, kind: Kind, config: &SpeechConfig) -> Result<(), LoadError> {
    let found = kind_of(config);
    if found == Some(kind) {
        return Ok(());
    }
    let found = found.map_or("a model of text alone", Kind::name);
    let reason = format!("is {kind}, but {} is {found}", config.backbone.file.display());
    Err(LoadError::field(file, "kind", reason))
}

/// The symbols of tasks are symbols: they stand before all text and all codes.
fn check_tasks(
    file: &Path,
    manifest: &SpeechManifest,
    config: &SpeechConfig,
) -> Result<(), LoadError> {
    let streams = config.family.streams().iter().map(|s| s.head().start);
    let end = streams.chain([config.family.text().start]).min().unwrap_or(0);
    match manifest.tasks.iter().find(|(_, id)| **id == 0 || **id >= end) {
        Some((task, id)) => {
            let reason = format!("{id} is not a symbol: those are 1 to {}", end - 1);
            Err(LoadError::field(file, format!("tasks.{}", task.name()), reason))
        }
        None => Ok(()),
    }
}

/// The codec has a codebook for each stream that sounds, with at least as many entries.
fn open_codec(
    root: &Path,
    entry: &CodecEntry,
    manifest: &SpeechManifest,
    config: &SpeechConfig,
) -> Result<streaming::Shape, LoadError> {
    let folder = root.join(&entry.path);
    let file = folder.join("config.json");
    let shape = streaming::Shape::read(entry.kind, &file)?;
    Weights::open(&folder)?;
    let streams = &config.family.streams()[sounding(manifest, config)];
    if shape.rows != streams.len() {
        let reason = format!("{} codebooks, the model says {}", shape.rows, streams.len());
        return Err(LoadError::malformed(&file, reason));
    }
    let codes = streams.iter().map(|s| s.codes.len()).max().unwrap_or(0);
    if shape.entries < codes {
        let reason =
            format!("{} entries in a codebook, the model says {codes} codes", shape.entries);
        return Err(LoadError::malformed(&file, reason));
    }
    Ok(shape)
}

/// What hears is there; it is read when something is to be heard.
fn check_input(root: &Path, file: &Path, input: &AudioInput) -> Result<(), LoadError> {
    let parts: &[(&str, &String)] = match input {
        AudioInput::Qwen3Omni { path, .. } => &[("path", path)],
        AudioInput::Units { features, centers, .. } => {
            &[("features", features), ("centers", centers)]
        }
    };
    match parts.iter().find(|(_, path)| !root.join(path).exists()) {
        Some((field, path)) => {
            let reason = format!("`{path}` is not in the bundle");
            Err(LoadError::field(file, format!("audio_input.{field}"), reason))
        }
        None => Ok(()),
    }
}

/// What is made of a recording can be said by the model: a unit or a code beyond its stream would be refused only when one is
/// heard.
fn check_codes(
    root: &Path,
    file: &Path,
    centers: &str,
    streams: &[StreamIds],
    codec: Option<&streaming::Shape>,
) -> Result<(), LoadError> {
    let wrong = |reason: String| Err(LoadError::field(file, "audio_input", reason));
    let (Some(codec), [first, others @ ..]) = (codec, streams) else {
        return wrong("codes of recordings need `codec`".to_owned());
    };
    let units = Weights::open(&root.join(centers))?;
    let found = units.shape(CENTRES).and_then(|shape| shape.first()).copied().unwrap_or(0);
    if !(1..=first.codes.len()).contains(&found) {
        let reason = format!("`{centers}` has {found} units, stream 0 {}", first.codes.len());
        return wrong(reason);
    }
    let codes = others.iter().map(|s| s.codes.len()).min().unwrap_or(0);
    if codec.entries > codes {
        let reason = format!("the codec makes {} codes, the model reads {codes}", codec.entries);
        return wrong(reason);
    }
    Ok(())
}

fn open_voices(
    root: &Path,
    manifest: &SpeechManifest,
    config: &SpeechConfig,
) -> Result<Vec<SpeechVoice>, LoadError> {
    let open = |entry: &VoiceEntry| {
        let file = root.join(&entry.prompt);
        let wrong = |reason: String| LoadError::malformed(&file, reason);
        let rows = voices::read_rows(&file)?;
        let rows = rows.ok_or_else(|| wrong("is neither .json nor .safetensors".to_owned()))?;
        check_rows(&rows, config.family.streams()).map_err(wrong)?;
        Ok(SpeechVoice { name: entry.name.clone(), codes: rows.into() })
    };
    manifest.voices.iter().map(open).collect()
}

/// One row of codes for each stream, of equal lengths, each code one that the stream has.
pub(crate) fn check_rows(rows: &[Vec<u16>], streams: &[StreamIds]) -> Result<(), String> {
    if rows.len() != streams.len() {
        return Err(format!(
            "{} rows of codes, the model has {} streams",
            rows.len(),
            streams.len()
        ));
    }
    let frames = rows[0].len();
    if frames == 0 {
        return Err("no frame of codes".to_owned());
    }
    for (row, (codes, stream)) in rows.iter().zip(streams).enumerate() {
        if codes.len() != frames {
            return Err(format!("row {row} has {} codes, row 0 has {frames}", codes.len()));
        }
        let entries = stream.codes.len();
        if let Some(frame) = codes.iter().position(|&c| usize::from(c) >= entries) {
            return Err(format!("row {row}, frame {frame}: code {} of {entries}", codes[frame]));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
