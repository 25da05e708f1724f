//! What a caller asks for, and what becomes of it: checked against the bundle once, when the context is opened.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use crate::Error;
use crate::bundle::{Manifest, Prompt, PromptRules};
use crate::grammar::Grammar;
use crate::guards::Guards;
use crate::load::Lane;
use crate::pipeline::{Segments, Settings, Source, Standing};
use crate::sampler::Sampling;
use crate::sound::Sound;
use crate::text::ids::{Language, Style};
use crate::text::{self, ChunkLimits, LiveSettings, Locale, Passage, TextOptions};
use crate::verbalizer::Job;
use crate::voices::{LoadedVoice, NewVoice, Voices};

/// Frames to the first release of a live context: 0.8 s of codes, 0.4 s of sound.
const LIVE_FIRST_FRAMES: usize = 10;
/// Frames to the first release of a whole text, as published: 3.2 s of codes, 2.8 s of sound.
const WHOLE_FIRST_FRAMES: usize = 40;
/// Frames of codes for a second of speech, and what the first release is a multiple of.
const FRAMES_PER_SECOND: f64 = 12.5;
const FRAMES_STEP: usize = 5;
/// The most of a recording that a voice is made of.
const PROMPT_SECONDS_MAX: f64 = 60.0;
/// Longest text and most codes of what was said before: those of one chunk.
const PREFIX_CHARS: usize = 350;
const PREFIX_CODES: usize = 400;
/// Largest frequency penalty; beyond it a code is said once.
const MAX_PENALTY: f32 = 2.0;
/// More frames than any chunk has: the first release is that of a complete chunk.
const COMPLETE_CHUNK_FRAMES: usize = 1000;
/// How long before the listener runs dry a chunk is cut from unfinished text, beyond two steps.
const CUT_LEAD: Duration = Duration::from_millis(300);
/// How long before the listener runs dry the codec lets go what it keeps back.
const PAUSE_LEAD: Duration = Duration::from_millis(150);
/// Largest guidance weight; beyond it nothing is left of the model's own scale.
const MAX_GUIDANCE: f32 = 10.0;
/// Largest temperature; beyond it every code is about as likely as any other.
const MAX_TEMPERATURE: f32 = 2.0;

/// Where the text of a context comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Text {
    /// All of it is here; it is cut by the published rules.
    Whole(String),
    /// It comes in pieces, through [`crate::Handle::push`].
    Live(LiveSettings),
}

/// What a context is to be. Anything left `None` is the bundle's default.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the model; `None`: the first that speaks a text.
    pub model: Option<String>,
    /// The text.
    pub text: Text,
    /// What is done to it before it is spoken.
    pub options: TextOptions,
    /// Name of a voice.
    pub voice: Option<String>,
    /// Name or code of a language.
    pub language: Option<String>,
    /// Name of a style.
    pub style: Option<String>,
    /// Decides all draws: the same seed and text give the same codes.
    pub seed: u64,
    /// Temperature of the semantic stage.
    pub temperature: Option<f32>,
    /// Temperature of the acoustic stages.
    pub acoustic_temperature: Option<f32>,
    /// The best semantic codes stay that together have at least this probability.
    pub top_p: Option<f32>,
    /// How many of the best semantic codes stay; 0: all.
    pub top_k: Option<usize>,
    /// Subtracted from a semantic code's logit for each time it was said already.
    pub frequency_penalty: Option<f32>,
    /// How many of the best acoustic codes stay; 0: all.
    pub acoustic_top_k: Option<usize>,
    /// Most leading frames of the voice's prompt that a stage reads.
    pub prompt_max_frames: Option<usize>,
    /// What was said just before, by whatever context: the first chunk goes on from it.
    pub prefix: Option<Arc<Speech>>,
    /// Guidance weight; 1 switches guidance off.
    pub guidance: Option<f32>,
    /// Where segments are cut.
    pub segments: Segments,
    /// Frames to the first release; a multiple of 5 above the codec's withheld frames.
    pub first_frames: usize,
    /// How far the context may run ahead of its listener; `None`: nobody listens in real time.
    pub max_ahead: Option<Duration>,
    /// 0 to 9, 9 the most urgent; orders contexts without first audio.
    pub priority: u8,
}

impl Request {
    /// A text that is there as a whole, for a file: nothing is released before a chunk is complete, so that the acoustic
    /// stages see every row whole.
    pub fn file(text: impl Into<String>) -> Self {
        Self { first_frames: COMPLETE_CHUNK_FRAMES, ..Self::whole(text) }
    }

    /// A text that is there as a whole, for somebody who listens: the published way.
    pub fn whole(text: impl Into<String>) -> Self {
        Self {
            model: None,
            text: Text::Whole(text.into()),
            options: TextOptions::default(),
            voice: None,
            language: None,
            style: None,
            seed: 0,
            temperature: None,
            acoustic_temperature: None,
            top_p: None,
            top_k: None,
            frequency_penalty: None,
            acoustic_top_k: None,
            prompt_max_frames: None,
            prefix: None,
            guidance: None,
            segments: Segments::Chunk,
            first_frames: WHOLE_FIRST_FRAMES,
            max_ahead: None,
            priority: 5,
        }
    }

    /// Lets the first sound go when so much speech is made, or as soon after as the codec can.
    pub fn begin_after(&mut self, speech: Duration) {
        let frames = (speech.as_secs_f64() * FRAMES_PER_SECOND).ceil() as usize;
        let frames = frames.next_multiple_of(FRAMES_STEP);
        self.first_frames = frames.clamp(LIVE_FIRST_FRAMES, COMPLETE_CHUNK_FRAMES);
    }

    /// A text that is still being written, for somebody who listens.
    pub fn live() -> Self {
        Self {
            text: Text::Live(LiveSettings::default()),
            segments: Segments::Frames,
            first_frames: LIVE_FIRST_FRAMES,
            max_ahead: Some(Duration::from_secs(6)),
            ..Self::whole(String::new())
        }
    }
}

/// A piece of speech, as the model reads it when it goes on from there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Speech {
    /// What was spoken, stripped.
    pub text: String,
    /// Its semantic codes.
    pub codes: Vec<u16>,
}

/// How a context speaks. Anything left `None` is the bundle's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manner {
    /// Name of the model; `None`: the first that speaks a text.
    pub model: Option<String>,
    /// Name of a voice.
    pub voice: Option<String>,
    /// Name or code of a language.
    pub language: Option<String>,
    /// Name of a style.
    pub style: Option<String>,
}

/// What requests are checked against.
pub(crate) struct Resolver {
    pub(crate) manifest: Manifest,
    pub(crate) voices: Voices<LoadedVoice>,
    pub(crate) prompt_rules: PromptRules,
    pub(crate) grammar: Arc<Grammar>,
    pub(crate) sound: Sound,
    pub(crate) guards: Arc<Guards>,
    /// What puts whole texts into words; none: the rules.
    pub(crate) texts: Option<SyncSender<Job>>,
}

/// A whole text, as it is to be read.
pub(crate) struct Written {
    pub(crate) text: String,
    pub(crate) options: TextOptions,
    pub(crate) limits: ChunkLimits,
}

impl Resolver {
    /// How the sound of a request would be made.
    pub(crate) fn lane(&self, request: &Request) -> Lane {
        let guidance = request.guidance.or(self.manifest.sampling.cfg);
        let guided = guidance.is_some_and(|weight| weight != 1.0);
        Lane { stage: self.grammar.first_stage, guided }
    }

    /// A voice for the model of rows of codes: what its stages read of them.
    ///
    /// # Errors
    /// What is wrong with the rows, in a sentence.
    pub(crate) fn new_voice(&self, rows: Vec<Vec<u16>>) -> Result<NewVoice, String> {
        let prompt = Prompt::from_rows(rows, &self.prompt_rules)?;
        let read = |stage| prompt.cut(stage).first().map_or(0, |row| row.len());
        Ok(NewVoice {
            model: self.manifest.name.clone(),
            read_frames: (0..prompt.frames.len()).map(read).collect(),
            seconds_max: PROMPT_SECONDS_MAX,
            frames_per_second: FRAMES_PER_SECOND,
            rows: prompt.rows,
        })
    }

    /// The settings and the text of a context.
    ///
    /// # Errors
    /// A field with a value that the bundle or the engine does not have.
    pub(crate) fn resolve(&self, request: Request) -> Result<(Settings, Source), Error> {
        let manifest = &self.manifest;
        let voice = self.voice(request.voice.as_deref())?;
        let language = self.language(request.language.as_deref(), &voice)?;
        let style = self.style(request.style.as_deref())?;
        let plan = self
            .sound
            .plan(request.first_frames)
            .map_err(|e| Error::option("first_frames", request.first_frames, e.to_string()))?;
        let settings = Settings {
            seed: request.seed,
            grammar: self.grammar.clone(),
            standing: Standing::new(request.priority, request.max_ahead),
            cut_lead: CUT_LEAD,
            pause_lead: PAUSE_LEAD,
            window: plan.settings().clone(),
            segments: request.segments,
            sampling: self.semantic(&request)?,
            acoustic: self.acoustic(&request)?,
            prefix: self.prefix(request.prefix.as_ref())?,
            guidance: self.guidance(request.guidance)?,
            end_bias: manifest.sampling.end_bias,
            forced_first_code: manifest.forced_first_code,
            silence: Arc::new(manifest.silence.clone()),
            guards: self.guards.clone(),
            tries: manifest.sampling.tries,
            prompt: shortened(voice.prompt, request.prompt_max_frames),
            control: self.control(language, style)?,
        };
        let options = self.options(request.options, language);
        Ok((settings, self.source(request.text, options)))
    }

    /// The control blocks of a manner.
    ///
    /// # Errors
    /// A name that the bundle does not have.
    pub(crate) fn manner(&self, manner: &Manner) -> Result<Arc<[Vec<u32>]>, Error> {
        let voice = self.voice(manner.voice.as_deref())?;
        let language = self.language(manner.language.as_deref(), &voice)?;
        self.control(language, self.style(manner.style.as_deref())?)
    }

    /// The text of a request that a model may put into words: all of it is there, and it is English.
    pub(crate) fn written(&self, request: &Request) -> Option<Written> {
        let Text::Whole(text) = &request.text else { return None };
        let voice = self.voice(request.voice.as_deref()).ok()?;
        let language = self.language(request.language.as_deref(), &voice).ok()?;
        let options = self.options(request.options.clone(), language);
        let english = language == Language::English;
        (english && text::may_be_rewritten(text, &options)).then(|| Written {
            text: text.clone(),
            options,
            limits: self.limits(),
        })
    }

    fn options(&self, options: TextOptions, language: Language) -> TextOptions {
        TextOptions {
            locale: options.locale.or(Some(Locale::of(language))),
            conventions: self.manifest.spoken,
            ..options
        }
    }

    fn limits(&self) -> ChunkLimits {
        ChunkLimits {
            chunk_chars: self.manifest.chunk_characters,
            lookahead_chars: self.manifest.lookahead_characters,
        }
    }

    fn source(&self, text: Text, options: TextOptions) -> Source {
        let limits = self.limits();
        match text {
            Text::Whole(text) => {
                let raw_chars = text.chars().count();
                let (chunks, notices) = text::whole(&text, &options, limits);
                Source::Whole { chunks: chunks.into(), raw_chars, notices }
            }
            Text::Live(live) => {
                let ChunkLimits { chunk_chars, lookahead_chars } = limits;
                let live = LiveSettings { chunk_chars, lookahead_chars, ..live };
                Source::Live(Box::new(Passage::new(options, live)))
            }
        }
    }

    fn voice(&self, name: Option<&str>) -> Result<LoadedVoice, Error> {
        let name = name.unwrap_or(&self.manifest.default_voice);
        let found = self.voices.find(name);
        found.map_err(|names| Error::option("voice", name, format!("voices: {}", names.join(", "))))
    }

    fn language(&self, name: Option<&str>, voice: &LoadedVoice) -> Result<Language, Error> {
        let known = &self.manifest.languages;
        let Some(name) = name else { return Ok(voice.language) };
        let language = name.parse::<Language>().ok().filter(|l| known.contains(l));
        language.ok_or_else(|| Error::option("language", name, list("languages", known)))
    }

    fn style(&self, name: Option<&str>) -> Result<Style, Error> {
        let known = &self.manifest.styles;
        let Some(name) = name else { return Ok(self.manifest.default_style) };
        let style = name.parse::<Style>().ok().filter(|s| known.contains(s));
        style.ok_or_else(|| Error::option("style", name, list("styles", known)))
    }

    fn semantic(&self, request: &Request) -> Result<Sampling, Error> {
        let default = self.manifest.sampling.semantic;
        let top_p = share("top_p", request.top_p.unwrap_or(default.top_p))?;
        let frequency_penalty = request.frequency_penalty.unwrap_or(default.frequency_penalty);
        if !(0.0..=MAX_PENALTY).contains(&frequency_penalty) {
            let allowed = format!("0 to {MAX_PENALTY}");
            return Err(Error::option("frequency_penalty", frequency_penalty, allowed));
        }
        let top_k = request.top_k.unwrap_or(default.top_k);
        let drawn = Sampling { top_p, top_k, frequency_penalty, ..default };
        warmed("temperature", drawn, request.temperature)
    }

    fn acoustic(&self, request: &Request) -> Result<Sampling, Error> {
        let default = self.manifest.sampling.acoustic;
        let top_k = request.acoustic_top_k.unwrap_or(default.top_k);
        let drawn = Sampling { top_k, ..default };
        warmed("acoustic_temperature", drawn, request.acoustic_temperature)
    }

    /// What was said before, if the model can have said it.
    fn prefix(&self, prefix: Option<&Arc<Speech>>) -> Result<Option<Arc<Speech>>, Error> {
        let Some(prefix) = prefix else { return Ok(None) };
        let (chars, codes) = (prefix.text.trim().chars().count(), prefix.codes.len());
        if chars == 0 || chars > PREFIX_CHARS || codes == 0 || codes > PREFIX_CODES {
            let allowed = format!("1 to {PREFIX_CHARS} characters and 1 to {PREFIX_CODES} codes");
            return Err(Error::option("prefix", format!("{chars} and {codes}"), allowed));
        }
        let known = self.grammar.stages[0].vocabulary.semantic_codes as usize;
        if let Some(code) = prefix.codes.iter().find(|code| usize::from(**code) >= known) {
            return Err(Error::option("prefix", code, format!("codes below {known}")));
        }
        let text = prefix.text.trim().to_owned();
        Ok(Some(Arc::new(Speech { text, codes: prefix.codes.clone() })))
    }

    fn guidance(&self, asked: Option<f32>) -> Result<Option<f32>, Error> {
        let weight = asked.or(self.manifest.sampling.cfg).unwrap_or(1.0);
        check_guidance(weight, self.manifest.null_trained)?;
        Ok(Some(weight).filter(|weight| *weight != 1.0))
    }

    fn control(&self, language: Language, style: Style) -> Result<Arc<[Vec<u32>]>, Error> {
        let block = |stage: &crate::grammar::StageGrammar| {
            let mut ids = Vec::new();
            let known = stage.characters.control(language, style, &mut ids);
            known.map_err(|e| Error::option("style", style, e.to_string()))?;
            Ok(ids)
        };
        self.grammar.stages.iter().map(block).collect()
    }
}

/// A weight of guidance that a model can follow.
///
/// # Errors
/// It was trained for none, or the weight is beyond all sense.
pub(crate) fn check_guidance(weight: f32, null_trained: bool) -> Result<(), Error> {
    if weight != 1.0 && !null_trained {
        let reason = "this model was not trained without its condition, so only 1 is allowed";
        return Err(Error::option("guidance", weight, reason));
    }
    if !(0.0..=MAX_GUIDANCE).contains(&weight) {
        return Err(Error::option("guidance", weight, format!("0 to {MAX_GUIDANCE}")));
    }
    Ok(())
}

/// A share of probability.
pub(crate) fn share(field: &'static str, top_p: f32) -> Result<f32, Error> {
    if top_p > 0.0 && top_p <= 1.0 {
        return Ok(top_p);
    }
    Err(Error::option(field, top_p, "above 0, at most 1"))
}

/// Sampling at the temperature asked for.
pub(crate) fn warmed(
    field: &'static str,
    default: Sampling,
    asked: Option<f32>,
) -> Result<Sampling, Error> {
    let temperature = asked.unwrap_or(default.temperature);
    if !(0.0..=MAX_TEMPERATURE).contains(&temperature) {
        return Err(Error::option(field, temperature, format!("0 to {MAX_TEMPERATURE}")));
    }
    Ok(Sampling { temperature, ..default })
}

/// The prompt, but no stage reads more than so many of its frames.
fn shortened(prompt: Arc<Prompt>, frames_max: Option<usize>) -> Arc<Prompt> {
    let Some(max) = frames_max else { return prompt };
    let frames = prompt.frames.iter().map(|frames| (*frames).min(max)).collect();
    Arc::new(Prompt { rows: prompt.rows.clone(), frames })
}

fn list<T: ToString>(what: &str, values: &[T]) -> String {
    let names: Vec<String> = values.iter().map(T::to_string).collect();
    format!("{what}: {}", names.join(", "))
}
