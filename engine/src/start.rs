//! From a bundle on disk to a running engine: networks, codec and voices are loaded, memory is shared out.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codecs::codes::CodeError;
use codecs::nano::Nano;
use codecs::reconstruct::{Codec, Dual, Family};
use codecs::weights::{LoadError, Weights};
use codecs::{dualcodec, recording, vibevoice};

use crate::Handle;
use crate::batch::BLOCK_TOKENS;
use crate::bundle::{self, Bundle, Prompt, VoicePrompt};
use crate::engine::Engine;
use crate::grammar::{Grammar, StageGrammar};
use crate::guards::Guards;
use crate::kernels::matrix::Precision;
use crate::layout::{Vocabulary, WindowLimits};
use crate::models::config::{REALIGN_FRAMES, open_stage};
use crate::models::qwen3::{self, Qwen3};
use crate::request::Resolver;
use crate::runner::StageModel;
use crate::scheduler::Budget;
use crate::sound::Sound;
use crate::text::ids::{CharacterIds, IdError};
use crate::voices::{Hearing, LoadedVoice, VoiceError, Voices};

/// Longest recording that a bundle may have for a voice, in seconds: what is read of one, and half a frame for those who cut
/// by ear.
const RECORDING_SECONDS_MAX: f64 = 60.04;
/// Longest control block, in ids: delimiters, a label of a few words, the line feed.
const CONTROL_IDS: usize = 16;
/// Key/value memory that is taken when nothing else is said: some hundred small contexts of a small voice ...
const KV_BYTES: usize = 512 << 20;
/// ... and never less than so many windows of the greatest length.
const KV_WINDOWS: usize = 4;

/// How an engine is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// How the matrices of the stages are stored.
    pub precision: Precision,
    /// Threads of a step. With one the step thread works itself.
    pub threads: usize,
    /// Bytes of key/value memory; `None`: 512 MiB, or four windows of the greatest length if that is more.
    pub kv_bytes: Option<usize>,
    /// Prefill tokens in a step.
    pub prefill_tokens: usize,
    /// Sequences of one stage in a step.
    pub sequences: usize,
    /// Whether contexts share the keys and values of an equal beginning: voice prompt, language, style.
    pub share_prefixes: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            precision: Precision::F32,
            threads: std::thread::available_parallelism().map_or(1, NonZero::get),
            kv_bytes: None,
            prefill_tokens: 512,
            sequences: 128,
            share_prefixes: true,
        }
    }
}

/// Why an engine could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A part of the bundle is missing or damaged.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The bundle's silence code is none of its codec's.
    #[error("silence code: {0}")]
    Silence(#[from] CodeError),
    /// The longest window would not fit.
    #[error("kv_bytes is {given}, this bundle needs at least {needed}")]
    KvBytes {
        /// The setting.
        given: usize,
        /// One window of the greatest length in every stage.
        needed: usize,
    },
    /// The step threads could not be made.
    #[error("threads is {threads}: {reason}")]
    Threads {
        /// The setting.
        threads: usize,
        /// What the system said.
        reason: String,
    },
    /// A voice is a recording that no codes can be made of.
    #[error("voice {name:?}: {}: {reason}", file.display())]
    Recording {
        /// The voice.
        name: String,
        /// The recording.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
}

/// Loading as it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Parameters loaded so far.
    pub loaded: usize,
    /// Parameters of all stages.
    pub total: usize,
}

impl Handle {
    /// Loads a bundle and starts the threads.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(
        bundle: &Bundle,
        options: &Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, StartError> {
        let loaded = Loaded::load(bundle, options, progress)?;
        let blocks = share_memory(bundle, options.kv_bytes)?;
        let budget = Budget {
            // A pair needs a token of each half in its last piece.
            prefill_tokens: options.prefill_tokens.max(2),
            sequences: options.sequences.max(2),
            share_prefixes: options.share_prefixes,
        };
        let grammar = loaded.resolver.grammar.clone();
        let engine = Engine::new(grammar, loaded.models, &blocks, budget, loaded.pool);
        Ok(Self::spawn(engine, loaded.resolver, loaded.hearing))
    }
}

/// Everything of a bundle that an engine needs, in memory.
pub(crate) struct Loaded {
    pub(crate) models: Vec<Box<dyn StageModel>>,
    pub(crate) resolver: Resolver,
    pub(crate) hearing: Option<Hearing>,
    pub(crate) pool: Option<Arc<rayon::ThreadPool>>,
}

impl Loaded {
    pub(crate) fn load(
        bundle: &Bundle,
        options: &Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, StartError> {
        let pool = thread_pool(options.threads)?;
        let models = load_stages(bundle, options.precision, pool.as_ref(), progress)?;
        let grammar = Arc::new(read_grammar(bundle)?);
        let manifest = bundle.manifest.clone();
        let silence = &manifest.silence;
        let guards = Guards {
            min_codes: manifest.sampling.min_codes,
            max_codes: manifest.sampling.max_codes,
            characters_per_second: manifest.characters_per_second.clone(),
            silence: [&silence.collapse_codes[..], &silence.ordinary_codes].concat(),
        };
        let mut hearing = Hearing::of(bundle);
        let load = |voice| load_voice(voice, hearing.as_mut());
        let voices = bundle.voices.iter().map(load).collect::<Result<_, _>>()?;
        let sound = Sound::Codec(Arc::new(load_codec(bundle)?));
        let guards = Arc::new(guards);
        let (voices, prompt_rules) = (Voices::new(voices), bundle.prompt_rules());
        let resolver = Resolver { manifest, voices, prompt_rules, grammar, sound, guards };
        Ok(Self { models, resolver, hearing, pool })
    }
}

fn load_stages(
    bundle: &Bundle,
    precision: Precision,
    pool: Option<&Arc<rayon::ThreadPool>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Box<dyn StageModel>>, StartError> {
    let kept = bundle.kept_ids()?;
    let total = bundle.stages.iter().map(|s| s.config.parameters()).sum();
    let mut loaded = 0;
    let mut models: Vec<Box<dyn StageModel>> = Vec::with_capacity(bundle.stages.len());
    for (stage, kept) in bundle.stages.iter().zip(&kept) {
        let mut count = |parameters| {
            loaded += parameters;
            progress(Progress { loaded, total });
        };
        let model = load_stage(stage, kept, precision, pool.cloned(), &mut count)?;
        models.push(Box::new(model));
    }
    Ok(models)
}

/// Loads one stage with the embedding rows that are read; `count` is told of parameters as they are loaded.
pub(crate) fn load_stage(
    stage: &bundle::Stage,
    kept_ids: &[u32],
    precision: Precision,
    pool: Option<Arc<rayon::ThreadPool>>,
    count: &mut dyn FnMut(usize),
) -> Result<Qwen3, LoadError> {
    let (config, weights) = open_stage(&stage.folder)?;
    let options = qwen3::Options { precision, kept_ids: Some(kept_ids), pool };
    Qwen3::load(&weights, &config, &options, count)
}

/// The threads that run a step; none when the step thread runs it itself.
fn thread_pool(threads: usize) -> Result<Option<Arc<rayon::ThreadPool>>, StartError> {
    if threads < 2 {
        return Ok(None);
    }
    let name = |i| format!("engine-step-{i}");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build();
    let pool = pool.map_err(|e| StartError::Threads { threads, reason: e.to_string() })?;
    Ok(Some(Arc::new(pool)))
}

pub(crate) fn read_grammar(bundle: &Bundle) -> Result<Grammar, LoadError> {
    let stage = |stage: &bundle::Stage| {
        let file = stage.folder.join(bundle::TOKENIZER);
        let wrong = |e: IdError| LoadError::malformed(&file, e.to_string());
        let characters = CharacterIds::of(stage.tokenizer.clone()).map_err(wrong)?;
        let config = &stage.config;
        let vocabulary = Vocabulary {
            stage: config.stage,
            pad: config.pad,
            end_of_speech: config.end_of_speech,
            text_split: config.text_split,
            audio_split: config.audio_split,
            line_feed: characters.id('\n').map_err(wrong)?,
            audio_start: config.audio_start,
            semantic_codes: config.semantic_codes as u32,
            acoustic_codes: config.acoustic_codes as u32,
            realign: REALIGN_FRAMES as usize,
        };
        Ok(StageGrammar { vocabulary, characters })
    };
    Ok(Grammar { stages: bundle.stages.iter().map(stage).collect::<Result<_, LoadError>>()? })
}

fn load_voice(
    voice: &bundle::Voice,
    hearing: Option<&mut Hearing>,
) -> Result<LoadedVoice, StartError> {
    let prompt = match &voice.prompt {
        VoicePrompt::Codes(prompt) => prompt.clone(),
        VoicePrompt::Audio(file) => encode(file, hearing).map_err(|reason| {
            StartError::Recording { name: voice.name.clone(), file: file.clone(), reason }
        })?,
    };
    Ok(LoadedVoice { name: voice.name.clone(), language: voice.language, prompt: Arc::new(prompt) })
}

/// Makes a prompt of a recording, or says in words why not.
fn encode(file: &Path, hearing: Option<&mut Hearing>) -> Result<Prompt, String> {
    let hearing = hearing.ok_or_else(|| VoiceError::Deaf.to_string())?;
    let bytes = std::fs::read(file).map_err(|e| format!("cannot read: {e}"))?;
    let samples = recording::read(&bytes, RECORDING_SECONDS_MAX).map_err(|e| e.to_string())?;
    hearing.encode(&samples).map_err(|e| e.to_string())
}

pub(crate) fn load_codec(bundle: &Bundle) -> Result<Codec, StartError> {
    let silence = bundle.manifest.trailing.as_ref().map(|t| t.codes.clone());
    Ok(Codec::new(load_family(bundle)?, silence)?)
}

/// The weights of a bundle's codec.
pub(crate) fn load_family(bundle: &Bundle) -> Result<Family, LoadError> {
    Ok(match &bundle.codec {
        bundle::Codec::Nano { folder } => {
            Family::Nano(Box::new(Nano::load(folder, bundle.manifest.output_gain)?))
        }
        bundle::Codec::DualCodecVibeVoice { dualcodec, dualcodec_config, vibevoice, .. } => {
            let config = self::dualcodec_config(dualcodec_config.as_deref())?;
            let acoustic_rows = bundle.stages.len() - 1;
            let weights = Weights::open(dualcodec)?;
            let decoder = dualcodec::Decoder::load(&weights, &config, acoustic_rows)?;
            let tokenizer = vibevoice::Tokenizer::open(vibevoice)?;
            Family::Dual(Box::new(Dual::new(decoder, &config, tokenizer)))
        }
    })
}

pub(crate) fn dualcodec_config(file: Option<&Path>) -> Result<dualcodec::Config, LoadError> {
    match file {
        Some(file) => dualcodec::Config::read(file),
        None => Ok(dualcodec::Config::release()),
    }
}

/// Bytes of key/value memory for one window of the greatest length in every stage.
pub(crate) fn window_bytes(bundle: &Bundle) -> usize {
    bundle.stages.iter().map(|s| window_tokens(bundle, s) * token_bytes(s)).sum()
}

/// Tokens of a stage's longest window, with its null companion where it has one.
fn window_tokens(bundle: &Bundle, stage: &bundle::Stage) -> usize {
    let manifest = &bundle.manifest;
    let stage = stage.config.stage;
    let limits = WindowLimits {
        prompt_frames: manifest.prompt_frames[stage],
        control: CONTROL_IDS,
        characters: manifest.chunk_characters,
        lookahead: manifest.lookahead_characters,
        codes: manifest.sampling.max_codes,
    };
    let pair = if stage == 0 && manifest.null_trained { 2 } else { 1 };
    (limits.longest(stage, true) + BLOCK_TOKENS) * pair
}

/// Bytes of one token's keys and values in all layers of a stage.
fn token_bytes(stage: &bundle::Stage) -> usize {
    let config = &stage.config;
    2 * config.backbone.layers * config.backbone.kv_width() * size_of::<f32>()
}

/// Blocks of each stage: as many windows of the greatest length as the bytes hold, the same number in every stage.
fn share_memory(bundle: &Bundle, kv_bytes: Option<usize>) -> Result<Vec<usize>, StartError> {
    let needed = window_bytes(bundle);
    let given = kv_bytes.unwrap_or_else(|| KV_BYTES.max(KV_WINDOWS * needed));
    if given < needed {
        return Err(StartError::KvBytes { given, needed });
    }
    let blocks = |stage: &bundle::Stage| {
        let tokens = window_tokens(bundle, stage) as u128;
        (tokens * given as u128 / needed as u128) as usize / BLOCK_TOKENS
    };
    Ok(bundle.stages.iter().map(blocks).collect())
}
