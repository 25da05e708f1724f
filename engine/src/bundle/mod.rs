//! A model on disk: what a bundle holds, checked part against part. Reads configurations and headers, builds no network.
//!
//! ```text
//! nano/               dovecote.json  cb0 cb1 cb2 cb3  codec
//! the public release                 cb0 cb1 cb2 cb3  dualcodec vibevoice [w2v-bert-2.0]
//! ```
//! What a speech language model is made of is told in [`speech`].

pub(crate) mod control;
mod manifest;
mod object;
mod reach;
pub mod speech;
mod voices;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codecs::weights::{LoadError, Weights, read_json};
use serde::Deserialize;
use tokenizers::Tokenizer;

pub use manifest::{
    CodecEntry, Manifest, STAGES, SamplingDefaults, Silence, Trailing, Verbalizer, VoiceEntry,
};
pub use voices::{Prompt, PromptRules, Voice, VoicePrompt};

use crate::models::config::{StageConfig, open_stage};
use crate::text::ids::CharacterIds;
use speech::SpeechBundle;

/// What a bundle says of itself stands in this file.
pub(crate) const MANIFEST: &str = "dovecote.json";
pub(crate) const TOKENIZER: &str = "tokenizer.json";

/// What a folder holds.
#[derive(Debug, Clone)]
pub enum Opened {
    /// A voice of family `tontaube`.
    Voice(Box<Bundle>),
    /// A speech language model.
    Speech(Box<SpeechBundle>),
}

impl Opened {
    /// Name of the model.
    pub fn name(&self) -> &str {
        match self {
            Self::Voice(bundle) => &bundle.manifest.name,
            Self::Speech(bundle) => &bundle.manifest.name,
        }
    }

    /// The line that is shown wherever the bundle is loaded.
    pub fn license(&self) -> &str {
        match self {
            Self::Voice(bundle) => &bundle.manifest.license,
            Self::Speech(bundle) => &bundle.manifest.license,
        }
    }
}

impl From<Bundle> for Opened {
    fn from(bundle: Bundle) -> Self {
        Self::Voice(Box::new(bundle))
    }
}

impl From<SpeechBundle> for Opened {
    fn from(bundle: SpeechBundle) -> Self {
        Self::Speech(Box::new(bundle))
    }
}

/// Reads a bundle of any family.
///
/// # Errors
/// As [`Bundle::open`].
pub fn open(root: &Path) -> Result<Opened, LoadError> {
    #[derive(Deserialize)]
    struct Named {
        family: Option<String>,
    }
    let file = root.join(MANIFEST);
    let named = file.exists().then(|| read_json::<Named>(&file)).transpose()?;
    if named.and_then(|n| n.family).as_deref() == Some(speech::FAMILY) {
        return Ok(Opened::Speech(Box::new(SpeechBundle::open(root)?)));
    }
    Ok(Opened::Voice(Box::new(Bundle::open(root)?)))
}

/// A voice whose parts fit each other.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// Its folder.
    pub root: PathBuf,
    /// What it says of itself, or what holds for the public release.
    pub manifest: Manifest,
    /// The stages, cb0 first.
    pub stages: Vec<Stage>,
    /// The codec's files.
    pub codec: Codec,
    /// The voices, in the manifest's order.
    pub voices: Vec<Voice>,
}

/// One stage on disk.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Its folder.
    pub folder: PathBuf,
    /// Sizes and ids.
    pub config: StageConfig,
    /// Its tokenizer; stages with equal files share one.
    pub tokenizer: Arc<Tokenizer>,
}

/// Where a codec lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Codec {
    /// The codec of the nano voice.
    Nano {
        /// Holds `config.json` and `model.safetensors`.
        folder: PathBuf,
    },
    /// DualCodec, then the acoustic tokenizer of VibeVoice.
    DualCodecVibeVoice {
        /// Weights of DualCodec.
        dualcodec: PathBuf,
        /// Its sizes; none: those of the public 12 Hz release.
        dualcodec_config: Option<PathBuf>,
        /// Folder of VibeVoice's tokenizer, or of the whole model.
        vibevoice: PathBuf,
        /// What makes codes from audio; none: the bundle only speaks.
        encoder: Option<Encoder>,
    },
}

/// What DualCodec hears with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoder {
    /// Folder of w2v-BERT.
    pub w2v_bert: PathBuf,
    /// Mean and variance of its features.
    pub statistics: PathBuf,
}

impl Bundle {
    /// Reads a bundle, or a folder of the public release.
    ///
    /// # Errors
    /// The first part that is missing, damaged, or at odds with another, by file and field.
    pub fn open(root: &Path) -> Result<Self, LoadError> {
        let file = root.join(MANIFEST);
        let manifest = if !file.exists() && root.join("cb0").is_dir() {
            Manifest::release()
        } else {
            Manifest::read(&file)?
        };
        let stages = open_stages(root, &manifest)?;
        let codebooks = check_stages(&stages)?;
        let codec = open_codec(root, &manifest.codec)?;
        check_codec(&codec, &codebooks)?;
        check_codes(&file, &manifest, &codebooks)?;
        let rules = PromptRules { frames: manifest.prompt_frames.clone(), ..codebooks };
        let voices = open_voices(root, &file, &manifest, &codec, &rules)?;
        Ok(Self { root: root.to_path_buf(), manifest, stages, codec, voices })
    }

    /// What a voice's rows of codes must keep to.
    pub fn prompt_rules(&self) -> PromptRules {
        PromptRules {
            semantic_codes: self.stages[0].config.semantic_codes,
            acoustic_codes: self.stages[1].config.acoustic_codes,
            frames: self.manifest.prompt_frames.clone(),
        }
    }

    /// For each stage the ids that it can ever read, in rising order: embedding rows of others need not be loaded.
    ///
    /// # Errors
    /// A tokenizer that cannot encode a character or a control block.
    pub fn kept_ids(&self) -> Result<Vec<Vec<u32>>, LoadError> {
        let mut texts: Vec<(&Arc<Tokenizer>, BTreeSet<u32>)> = Vec::new();
        let mut kept = Vec::with_capacity(STAGES);
        for stage in &self.stages {
            let known = texts.iter().position(|(t, _)| Arc::ptr_eq(t, &stage.tokenizer));
            let known = match known {
                Some(known) => known,
                None => {
                    texts.push((&stage.tokenizer, self.text_ids(stage)?));
                    texts.len() - 1
                }
            };
            kept.push(reach::stage_ids(&texts[known].1, &stage.config));
        }
        Ok(kept)
    }

    /// Ids of characters and control blocks.
    fn text_ids(&self, stage: &Stage) -> Result<BTreeSet<u32>, LoadError> {
        let file = stage.folder.join(TOKENIZER);
        let wrong = |reason: String| LoadError::malformed(&file, reason);
        let mut ids = reach::character_ids(&stage.tokenizer).map_err(|e| wrong(e.to_string()))?;
        let table = CharacterIds::of(stage.tokenizer.clone()).map_err(|e| wrong(e.to_string()))?;
        let mut control = Vec::new();
        for &language in &self.manifest.languages {
            for &style in &self.manifest.styles {
                table.control(language, style, &mut control).map_err(|e| wrong(e.to_string()))?;
            }
        }
        ids.extend(control);
        Ok(ids)
    }

    /// A voice by its name.
    pub fn voice(&self, name: &str) -> Option<&Voice> {
        self.voices.iter().find(|v| v.name == name)
    }
}

fn open_stages(root: &Path, manifest: &Manifest) -> Result<Vec<Stage>, LoadError> {
    let mut stages: Vec<Stage> = Vec::with_capacity(STAGES);
    let mut last: Vec<u8> = Vec::new();
    for (index, name) in manifest.stages.iter().enumerate() {
        let folder = root.join(name);
        let (config, _) = open_stage(&folder)?;
        if config.stage != index {
            let reason = format!("is {}, the folder is that of stage {index}", config.stage);
            return Err(LoadError::field(&config.backbone.file, "target_codebook", reason));
        }
        let file = folder.join(TOKENIZER);
        let bytes = read_bytes(&file)?;
        // They are megabytes each, and the same in every stage of the public release.
        let tokenizer = match stages.last() {
            Some(before) if bytes == last => before.tokenizer.clone(),
            _ => {
                let parsed = Tokenizer::from_bytes(&bytes);
                Arc::new(parsed.map_err(|e| LoadError::malformed(&file, e.to_string()))?)
            }
        };
        check_tokenizer(&file, &tokenizer, &config)?;
        last = bytes;
        stages.push(Stage { folder, config, tokenizer });
    }
    Ok(stages)
}

/// The markers are known by their names; a tokenizer that gives them other ids belongs to another model.
fn check_tokenizer(
    file: &Path,
    tokenizer: &Tokenizer,
    config: &StageConfig,
) -> Result<(), LoadError> {
    for (token, expected, field) in [
        ("<|endoftext|>", config.pad, "pad_token_id"),
        ("<|end_of_speech|>", config.end_of_speech, "eos_token_id"),
        ("<|text_split|>", config.text_split, "text_marker_token_id"),
        ("<|audio_split|>", config.audio_split, "audio_marker_token_id"),
        ("<|dc_0_0|>", config.audio_start, "audio_token_start_id"),
    ] {
        match tokenizer.token_to_id(token) {
            Some(id) if id == expected => {}
            Some(id) => {
                let reason = format!("`{token}` is {id}, `{field}` of config.json is {expected}");
                return Err(LoadError::field(file, "added_tokens", reason));
            }
            None => {
                return Err(LoadError::field(
                    file,
                    "added_tokens",
                    format!("`{token}` is missing"),
                ));
            }
        }
    }
    for token in ["<|im_start|>", "<|im_end|>"] {
        if tokenizer.token_to_id(token).is_none() {
            return Err(LoadError::field(file, "added_tokens", format!("`{token}` is missing")));
        }
    }
    Ok(())
}

/// All stages speak of the same codebooks. A cb0 that does not say how large the acoustic ones are need not.
fn check_stages(stages: &[Stage]) -> Result<PromptRules, LoadError> {
    let (semantic_codes, acoustic_codes) =
        (stages[0].config.semantic_codes, stages[1].config.acoustic_codes);
    for Stage { config, .. } in stages {
        let wrong = |field: &str, found: usize, expected: usize| {
            let reason = format!("{found} codes, other stages have {expected}");
            Err(LoadError::field(&config.backbone.file, field, reason))
        };
        if config.semantic_codes != semantic_codes {
            return wrong("semantic_vocab_size", config.semantic_codes, semantic_codes);
        }
        let silent = config.stage == 0 && config.acoustic_codes == 0;
        if config.acoustic_codes != acoustic_codes && !silent {
            return wrong("acoustic_vocab_size", config.acoustic_codes, acoustic_codes);
        }
    }
    Ok(PromptRules { semantic_codes, acoustic_codes, frames: Vec::new() })
}

fn open_codec(root: &Path, entry: &CodecEntry) -> Result<Codec, LoadError> {
    match entry {
        CodecEntry::Nano { path } => {
            let folder = root.join(path);
            Weights::open(&folder)?;
            Ok(Codec::Nano { folder })
        }
        CodecEntry::DualCodecVibeVoice { dualcodec, vibevoice, w2v_bert } => {
            let (folder, vibevoice) = (root.join(dualcodec), root.join(vibevoice));
            let names = ["dualcodec_12hz_16384_4096.safetensors", "model.safetensors"];
            let dualcodec = first_of(&folder, &names).unwrap_or_else(|| folder.join(names[0]));
            Weights::open(&dualcodec)?;
            Weights::open(&vibevoice)?;
            let statistics = ["w2vbert2_mean_var_stats_emilia.pt", "w2vbert_mean_var_stats.pt"];
            let w2v_bert = Some(root.join(w2v_bert)).filter(|f| f.is_dir());
            let encoder = w2v_bert.zip(first_of(&folder, &statistics));
            Ok(Codec::DualCodecVibeVoice {
                dualcodec,
                dualcodec_config: first_of(&folder, &["config.json"]),
                vibevoice,
                encoder: encoder.map(|(w2v_bert, statistics)| Encoder { w2v_bert, statistics }),
            })
        }
    }
}

pub(crate) fn read_bytes(file: &Path) -> Result<Vec<u8>, LoadError> {
    std::fs::read(file).map_err(|source| LoadError::Io { file: file.to_path_buf(), source })
}

fn first_of(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    names.iter().map(|name| folder.join(name)).find(|file| file.is_file())
}

/// The codec has a codebook for each row that the stages make, with as many entries.
fn check_codec(codec: &Codec, codebooks: &PromptRules) -> Result<(), LoadError> {
    let expected = |row| if row == 0 { codebooks.semantic_codes } else { codebooks.acoustic_codes };
    match codec {
        Codec::Nano { folder } => {
            let file = folder.join("config.json");
            let config: NanoCodec = read_json(&file)?;
            for (field, found, expected) in [
                ("n_codebooks", config.n_codebooks, STAGES),
                ("semantic_vocab_size", config.semantic_vocab_size, expected(0)),
                ("acoustic_vocab_size", config.acoustic_vocab_size, expected(1)),
            ] {
                if found != expected {
                    let reason = format!("is {found}, the stages have {expected}");
                    return Err(LoadError::field(&file, field, reason));
                }
            }
        }
        Codec::DualCodecVibeVoice { dualcodec, .. } => {
            let weights = Weights::open(dualcodec)?;
            for row in 0..STAGES {
                let name = match row {
                    0 => "semantic_vq.quantizers.0.codebook.weight".to_owned(),
                    row => format!("dac.quantizer.quantizers.{}.codebook.weight", row - 1),
                };
                let found = weights.shape(&name).and_then(|s| s.first()).copied();
                if found != Some(expected(row)) {
                    let found = found.map_or("missing".to_owned(), |n| format!("{n} entries"));
                    let reason = format!("{found}, the stages have {}", expected(row));
                    return Err(LoadError::tensor(dualcodec, name, reason));
                }
            }
        }
    }
    Ok(())
}

/// The fields of the nano codec that concern the stages.
#[derive(Deserialize)]
struct NanoCodec {
    n_codebooks: usize,
    semantic_vocab_size: usize,
    acoustic_vocab_size: usize,
}

/// Every code that the manifest names is in its codebook.
fn check_codes(file: &Path, manifest: &Manifest, codebooks: &PromptRules) -> Result<(), LoadError> {
    let semantic =
        |field: &str, codes: &[u16]| check_code(file, field, codes, codebooks.semantic_codes);
    semantic("silence.collapse_codes", &manifest.silence.collapse_codes)?;
    semantic("silence.ordinary_codes", &manifest.silence.ordinary_codes)?;
    semantic("silence.forced_first_code", manifest.forced_first_code.as_slice())?;
    let Some(trailing) = &manifest.trailing else { return Ok(()) };
    semantic("silence.trailing", &trailing.codes[..1])?;
    check_code(file, "silence.trailing", &trailing.codes[1..], codebooks.acoustic_codes)
}

fn check_code(file: &Path, field: &str, codes: &[u16], entries: usize) -> Result<(), LoadError> {
    match codes.iter().find(|c| usize::from(**c) >= entries) {
        Some(code) => {
            Err(LoadError::field(file, field, format!("code {code}, the codebook has {entries}")))
        }
        None => Ok(()),
    }
}

fn open_voices(
    root: &Path,
    file: &Path,
    manifest: &Manifest,
    codec: &Codec,
    rules: &PromptRules,
) -> Result<Vec<Voice>, LoadError> {
    let hears = matches!(codec, Codec::DualCodecVibeVoice { encoder: Some(_), .. });
    let open = |(i, entry): (usize, &VoiceEntry)| {
        let prompt = match &entry.prompt {
            None => VoicePrompt::Codes(Prompt::default()),
            Some(path) => voices::read(&root.join(path), rules)?,
        };
        if matches!(prompt, VoicePrompt::Audio(_)) && !hears {
            let reason = "is a recording, but the bundle has nothing to encode it with";
            return Err(LoadError::field(file, format!("voices.{i}.prompt"), reason));
        }
        Ok(Voice { name: entry.name.clone(), language: entry.language, prompt })
    };
    manifest.voices.iter().enumerate().map(open).collect()
}
