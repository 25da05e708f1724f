//! `dovecote.json`: what a bundle says of itself. Reads it strictly and states every default; opens nothing it names.
//!
//! ```text
//! {"format": 1, "name": "nano", "family": "tontaube", "license": "...",
//!  "stages": ["cb0", "cb1", "cb2", "cb3"], "codec": {"kind": "nano", "path": "codec"},
//!  "languages": ["english"], "styles": ["agentic"], "voices": [{"name": "nano", "prompt": "nano.safetensors"}], ...}
//! ```

mod read;

pub(super) use read::{at_least, check_format, inside};

use std::ops::RangeInclusive;

use serde::Deserialize;

use crate::sampler::Sampling;
use crate::text::ids::{Language, Style};
use crate::text::{CHUNK_CHARS, Conventions, LOOKAHEAD_CHARS};

/// Stages of this family, and rows of codes.
pub const STAGES: usize = 4;
const PROMPT_FRAMES: [usize; STAGES] = [750, 300, 150, 100];
const MIN_CODES: usize = 13;
const MAX_CODES: usize = 400;
const TRIES: u32 = 5;
const PACE: (f32, f32) = (6.0, 24.0);
const ACOUSTIC_TOP_P: f32 = 0.95;

/// What a bundle says of itself, with all defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Name of the model.
    pub name: String,
    /// Folders of the stages, relative to the bundle.
    pub stages: Vec<String>,
    /// The codec and its folders, relative to the bundle.
    pub codec: CodecEntry,
    /// Languages of the control block.
    pub languages: Vec<Language>,
    /// The one taken when a request names none: the first, unless `default_language` says otherwise.
    pub default_language: Language,
    /// Styles of the control block.
    pub styles: Vec<Style>,
    /// The one taken when a request names none: the first, unless `default_style` says otherwise.
    pub default_style: Style,
    /// Sampling defaults.
    pub sampling: SamplingDefaults,
    /// Whether the first stage was trained without its condition, so that guidance means something. Default: no.
    pub null_trained: bool,
    /// How text has to be written to be read right.
    pub spoken: Conventions,
    /// Codes of silence.
    pub silence: Silence,
    /// First code of a passage. Default: the model chooses.
    pub forced_first_code: Option<u16>,
    /// Frames appended to a passage so that its end is not cut. Default: none.
    pub trailing: Option<Trailing>,
    /// The pace of the voices, slowest to fastest. Default: 6 to 24.
    pub characters_per_second: RangeInclusive<f32>,
    /// Factor on the codec's output. Default: 1.
    pub output_gain: f32,
    /// Frames of a voice prompt that each stage reads. Default: 750, 300, 150, 100.
    pub prompt_frames: Vec<usize>,
    /// Most characters of a chunk. Default: 350.
    pub chunk_characters: usize,
    /// Most characters of the next chunk that are shown with one. Default: 50.
    pub lookahead_characters: usize,
    /// Voices. Default: one without a prompt, named `default`.
    pub voices: Vec<VoiceEntry>,
    /// The one taken when a request names none: the first, unless `default_voice` says otherwise.
    pub default_voice: String,
    /// The licence, in a line that is shown wherever the bundle is loaded.
    pub license: String,
    /// What a user should know of the model's limits. Default: nothing.
    pub notes: Vec<String>,
    /// A language model that writes text as it is spoken. Default: none.
    pub verbalizer: Option<Verbalizer>,
}

/// Which codec turns codes into sound, and where it lies in the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodecEntry {
    /// The codec of the nano voice.
    Nano {
        /// Default: `codec`.
        path: String,
    },
    /// DualCodec, whose sound goes through the acoustic tokenizer of VibeVoice.
    DualCodecVibeVoice {
        /// Default: `dualcodec`.
        dualcodec: String,
        /// Default: `vibevoice`.
        vibevoice: String,
        /// Only needed to make voices from audio. Default: `w2v-bert-2.0`.
        w2v_bert: String,
    },
}

/// How a bundle's codes are chosen when a request says nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingDefaults {
    /// Semantic codes. Defaults beside the temperature, which must be there: top-p 0.95, top-k 50, no penalty.
    pub semantic: Sampling,
    /// Acoustic codes. Default: greedy; with a temperature top-p 0.95, top-k off.
    pub acoustic: Sampling,
    /// Guidance weight. Default: no guidance.
    pub cfg: Option<f32>,
    /// Fewest codes of a chunk. Default: 13.
    pub min_codes: usize,
    /// Most codes of a chunk. Default: 400.
    pub max_codes: usize,
    /// Added to the logit of end of speech. Default: 0.
    pub end_bias: f32,
    /// Attempts at a chunk. Default: 5.
    pub tries: u32,
}

/// Codes of silence, and how they are discouraged. Default: none known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Silence {
    /// Codes into which speech collapses.
    pub collapse_codes: Vec<u16>,
    /// Their bias. Default: 0.
    pub collapse_bias: f32,
    /// Added to it with each further attempt. Default: 0.
    pub retry_bias: f32,
    /// Codes of ordinary pauses.
    pub ordinary_codes: Vec<u16>,
    /// Their bias. Default: 0.
    pub ordinary_bias: f32,
}

/// Frames of silence behind a passage.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trailing {
    /// One code of each row.
    pub codes: Vec<u16>,
    /// How many frames of them.
    pub frames: usize,
}

/// A named voice, before its prompt is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoiceEntry {
    /// What requests call it.
    pub name: String,
    /// The language it speaks when a request names none. Default: that of the bundle.
    pub language: Language,
    /// File of its prompt, relative to the bundle: codes (`.safetensors`, `.json`) or audio. Default: no prompt.
    pub prompt: Option<String>,
}

/// The language model that writes text as it is spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verbalizer {
    /// Its folder, relative to the bundle.
    pub path: String,
    /// The text that tells it what to do; it is not among its weights.
    pub instruction: String,
    /// What stands between the text and its answer. Default: an empty thought.
    pub closing: String,
    /// Tokens of instruction, text and answer together, at most. Default: 480.
    pub context_tokens: usize,
    /// How long the answers to a text are waited for, in milliseconds; then the rules speak it. Default: 2000.
    pub timeout_ms: u64,
}

impl Manifest {
    /// What holds for the public TontaubeV1 release, which has no manifest.
    pub fn release() -> Self {
        let semantic =
            Sampling { temperature: 0.8, top_k: 50, top_p: 0.95, frequency_penalty: 0.0 };
        Self {
            name: "TontaubeV1".to_owned(),
            stages: (0..STAGES).map(|i| format!("cb{i}")).collect(),
            codec: CodecEntry::DualCodecVibeVoice {
                dualcodec: "dualcodec".to_owned(),
                vibevoice: "vibevoice".to_owned(),
                w2v_bert: "w2v-bert-2.0".to_owned(),
            },
            languages: vec![
                Language::English,
                Language::German,
                Language::Spanish,
                Language::French,
                Language::Italian,
                Language::Dutch,
                Language::Portuguese,
            ],
            default_language: Language::English,
            styles: vec![Style::Audiobook, Style::Conversational, Style::Agentic],
            default_style: Style::Audiobook,
            sampling: SamplingDefaults {
                semantic,
                acoustic: Sampling { top_p: ACOUSTIC_TOP_P, ..Sampling::GREEDY },
                cfg: None,
                min_codes: MIN_CODES,
                max_codes: MAX_CODES,
                end_bias: -0.8,
                tries: TRIES,
            },
            null_trained: false,
            spoken: Conventions::DEFAULT,
            silence: Silence {
                collapse_codes: vec![
                    3716, 12725, 3974, 4299, 10309, 5995, 6144, 15170, 13601, 398,
                ],
                collapse_bias: -0.2,
                retry_bias: -0.3,
                ordinary_codes: vec![7362, 17, 3710, 1531, 1384, 12293, 5169, 4544],
                ordinary_bias: -0.2,
            },
            forced_first_code: Some(3716),
            trailing: Some(Trailing { codes: vec![15478, 0, 0, 0], frames: 3 }),
            characters_per_second: PACE.0..=PACE.1,
            output_gain: 1.0,
            prompt_frames: PROMPT_FRAMES.to_vec(),
            chunk_characters: CHUNK_CHARS,
            lookahead_characters: LOOKAHEAD_CHARS,
            voices: vec![VoiceEntry::without_prompt(Language::English)],
            default_voice: VoiceEntry::DEFAULT_NAME.to_owned(),
            license: "Tontaube Community licence (its own terms, not an open-source licence)"
                .to_owned(),
            notes: vec![
                "German phonemes are sometimes inaccurate.".to_owned(),
                "Spanish, French, Italian, Dutch and Portuguese were not checked by native speakers."
                    .to_owned(),
                "The audiobook style is the most reliable.".to_owned(),
            ],
            verbalizer: None,
        }
    }
}

impl VoiceEntry {
    const DEFAULT_NAME: &str = "default";

    fn without_prompt(language: Language) -> Self {
        Self { name: Self::DEFAULT_NAME.to_owned(), language, prompt: None }
    }
}
