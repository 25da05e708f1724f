//! From a bundle on disk to a running engine: networks, codec and voices are loaded, memory is shared out.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use codecs::codes::CodeError;
use codecs::nano::Nano;
use codecs::reconstruct::{Codec, Dual, Family};
use codecs::weights::{LoadError, Weights};
use codecs::{dualcodec, recording, vibevoice};

use crate::Handle;
use crate::answer::{Home, Speaker};
use crate::batch::BLOCK_TOKENS;
use crate::bundle::speech::{LoadOptions, SpeechBundle};
use crate::bundle::{self, Bundle, Opened, Prompt, VoicePrompt};
use crate::engine::Engine;
use crate::grammar::{Grammar, StageGrammar};
use crate::guards::Guards;
use crate::handle::Helpers;
use crate::hearing::{Ear, LiveLimits};
use crate::kernels::matrix::Precision;
use crate::layout::{Vocabulary, WindowLimits};
use crate::memory::{self, Need, TooFew};
use crate::models::backbone::Backbone;
use crate::models::config::{REALIGN_FRAMES, open_stage};
use crate::models::qwen3::{self, Qwen3};
use crate::request::Resolver;
use crate::roster::Models;
use crate::runner::StageModel;
use crate::scheduler::Budget;
use crate::sound::Sound;
use crate::stats::Part;
use crate::text::ids::{CharacterIds, IdError};
use crate::verbalizer::Verbalizer;
use crate::voices::{Hearing, LoadedVoice, Maker, VoiceError, Voices};

/// Longest recording that a bundle may have for a voice, in seconds: what is read of one, and half a frame for those who cut
/// by ear.
const RECORDING_SECONDS_MAX: f64 = 60.04;
/// Longest prompt of a speech language model that memory is kept for: a conversation of some minutes.
const PROMPT_ROWS: usize = 4096;
/// Longest control block, in ids: delimiters, a label of a few words, the line feed.
const CONTROL_IDS: usize = 16;

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
    /// Recordings that come in while they are made, of all contexts together.
    pub max_live: usize,
    /// How long none of a context's live recordings may say anything; then it fails, and holds no memory.
    pub live_idle: Duration,
    /// Sound of live recordings that waits to be heard, of all together.
    pub max_unheard: Duration,
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
            max_live: 64,
            live_idle: Duration::from_secs(600),
            max_unheard: Duration::from_secs(600),
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
    #[error("kv_bytes is {given}, the bundles need at least {needed}")]
    KvBytes {
        /// The setting.
        given: usize,
        /// One window of the greatest length in every stage.
        needed: usize,
    },
    /// There is nothing to run.
    #[error("no bundle was given")]
    NoBundle,
    /// Two bundles have one name, so that requests could not tell them apart.
    #[error("two models are named {name:?}")]
    SameName {
        /// The name.
        name: String,
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

impl From<TooFew> for StartError {
    fn from(TooFew { given, needed }: TooFew) -> Self {
        Self::KvBytes { given, needed }
    }
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
    /// Loads bundles and starts the threads. All of them share the threads, the memory and the order of work.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(
        bundles: &[Opened],
        options: &Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, StartError> {
        let Loaded { models, stages, blocks, helpers, pool } =
            Loaded::load(bundles, options, progress)?;
        let budget = Budget {
            // A pair needs a token of each half in its last piece.
            prefill_tokens: options.prefill_tokens.max(2),
            sequences: options.sequences.max(2),
            share_prefixes: options.share_prefixes,
        };
        Ok(Self::spawn(Engine::new(stages, &blocks, budget, pool), models, helpers))
    }
}

/// Everything of the bundles that an engine needs, in memory.
#[derive(Default)]
pub(crate) struct Loaded {
    pub(crate) models: Models,
    /// The networks of all bundles.
    pub(crate) stages: Vec<Box<dyn StageModel>>,
    /// Key/value blocks of each.
    pub(crate) blocks: Vec<usize>,
    pub(crate) helpers: Helpers,
    pub(crate) pool: Option<Arc<rayon::ThreadPool>>,
}

impl Loaded {
    pub(crate) fn load(
        bundles: &[Opened],
        options: &Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, StartError> {
        check_names(bundles)?;
        let needs: Vec<Need> = bundles.iter().flat_map(needs).collect();
        let mut loaded = Self {
            blocks: memory::share(&needs, options.kv_bytes)?,
            pool: thread_pool(options.threads)?,
            helpers: Helpers { live: live_limits(options), ..Helpers::default() },
            ..Self::default()
        };
        let (mut before, total) = (0, bundles.iter().map(parameters).sum());
        for opened in bundles {
            let mut told = |p: Progress| progress(Progress { loaded: before + p.loaded, total });
            match opened {
                Opened::Voice(bundle) => loaded.add_voice(bundle, options.precision, &mut told)?,
                Opened::Speech(bundle) => {
                    loaded.add_speaker(bundle, options.precision, &mut told)?;
                }
            }
            before += parameters(opened);
        }
        Ok(loaded)
    }

    fn add_speaker(
        &mut self,
        bundle: &SpeechBundle,
        precision: Precision,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), StartError> {
        let options = LoadOptions { precision, pool: self.pool.clone() };
        let speech = bundle.load(&options, progress)?;
        let stage = self.stages.len();
        let home = Home { stage, blocks: self.blocks[stage] };
        let (network, mut speaker) = Speaker::of(speech, home);
        self.models.parts.push(Part::of_speaker(speaker.name()));
        let ear = Ear::of(bundle, speaker.heard.clone());
        if let Some(ear) = &ear {
            speaker.hears(ear.limits());
        }
        let makes_codes = ear.as_ref().is_some_and(Ear::makes_codes);
        let samples_max = ear.as_ref().map_or(0, Ear::samples_max);
        let ear = ear.map(|ear| Arc::new(Mutex::new(ear)));
        if let (Some(ear), true, Some(voice)) = (&ear, makes_codes, speaker.voice_samples()) {
            let samples_max = samples_max.min(voice);
            let maker = Maker::Ear { ear: ear.clone(), samples_max };
            self.helpers.makers.insert(speaker.name().to_owned(), maker);
        }
        self.helpers.ears.push(ear);
        self.stages.push(Box::new(network));
        self.models.speakers.push(Arc::new(speaker));
        Ok(())
    }

    fn add_voice(
        &mut self,
        bundle: &Bundle,
        precision: Precision,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), StartError> {
        let grammar = Arc::new(read_grammar(bundle, self.stages.len())?);
        let stages = load_stages(bundle, precision, self.pool.as_ref(), progress)?;
        self.stages.extend(stages);
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
        let texts = None;
        let resolver = Resolver { manifest, voices, prompt_rules, grammar, sound, guards, texts };
        let verbalizer = load_verbalizer(bundle, precision, self.pool.clone())?;
        let voice = self.models.voices.len();
        self.helpers.verbalizers.extend(verbalizer.map(|verbalizer| (voice, verbalizer)));
        let parts = Part::of_voice(&resolver.manifest.name, bundle.stages.len());
        self.models.parts.extend(parts);
        if let Some(hearing) = hearing {
            let name = resolver.manifest.name.clone();
            self.helpers.makers.insert(name, Maker::Prompts(Box::new(hearing)));
        }
        self.models.voices.push(resolver);
        Ok(())
    }
}

fn live_limits(options: &Options) -> LiveLimits {
    let Options { max_live, live_idle, max_unheard, .. } = *options;
    LiveLimits { recordings: max_live, idle: live_idle, unheard: max_unheard }
}

/// Requests name models, so no two may have one name.
pub(crate) fn check_names(bundles: &[Opened]) -> Result<(), StartError> {
    if bundles.is_empty() {
        return Err(StartError::NoBundle);
    }
    let names: Vec<&str> = bundles.iter().map(Opened::name).collect();
    match (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
        Some(at) => Err(StartError::SameName { name: names[at].to_owned() }),
        None => Ok(()),
    }
}

/// Parameters of a bundle's networks.
fn parameters(opened: &Opened) -> usize {
    match opened {
        Opened::Voice(bundle) => bundle.stages.iter().map(|s| s.config.parameters()).sum(),
        Opened::Speech(bundle) => bundle.config.parameters(),
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

/// The model that puts a bundle's texts into words, if it has one.
pub(crate) fn load_verbalizer(
    bundle: &Bundle,
    precision: Precision,
    pool: Option<Arc<rayon::ThreadPool>>,
) -> Result<Option<Verbalizer>, LoadError> {
    let Some(entry) = &bundle.manifest.verbalizer else { return Ok(None) };
    Verbalizer::open(&bundle.root.join(&entry.path), entry, precision, pool).map(Some)
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

/// The grammar of a bundle whose cb0 is run by this stage of the engine.
pub(crate) fn read_grammar(bundle: &Bundle, first_stage: usize) -> Result<Grammar, LoadError> {
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
    let stages = bundle.stages.iter().map(stage).collect::<Result<_, LoadError>>()?;
    Ok(Grammar { stages, first_stage })
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
    voice_needs(bundle).map(Need::bytes).sum()
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

/// What a bundle's longest windows need, stage by stage.
pub(crate) fn needs(opened: &Opened) -> Vec<Need> {
    match opened {
        Opened::Voice(bundle) => voice_needs(bundle).collect(),
        Opened::Speech(bundle) => vec![speaker_need(bundle)],
    }
}

fn voice_needs(bundle: &Bundle) -> impl Iterator<Item = Need> {
    let need = |stage: &bundle::Stage| Need {
        tokens: window_tokens(bundle, stage),
        token_bytes: token_bytes(&stage.config.backbone),
    };
    bundle.stages.iter().map(need)
}

/// The longest prompt that room is kept for, with the longest segment of either kind, and a companion beside it where there may
/// be one.
fn speaker_need(bundle: &SpeechBundle) -> Need {
    let SpeechBundle { manifest, config, .. } = bundle;
    let sampling = &manifest.sampling;
    let sound = config.family.ending().rows(sampling.max_frames, config.streams());
    let rows = config.backbone.max_positions.min(PROMPT_ROWS + sampling.max_text + sound);
    let members = if manifest.null_trained { 2 } else { 1 };
    let tokens = (rows + BLOCK_TOKENS) * members;
    Need { tokens, token_bytes: token_bytes(&config.backbone) }
}

/// Bytes of one token's keys and values in all layers of a network.
fn token_bytes(backbone: &Backbone) -> usize {
    2 * backbone.layers * backbone.kv_width() * size_of::<f32>()
}
