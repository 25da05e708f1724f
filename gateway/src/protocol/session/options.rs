//! What a client asks of a session and of a context, checked, merged, and turned into a request to the engine.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::text::TextOptions;
use engine::{Manner, Request, Speech};

use super::Settled;
use super::text_rules::text_options;
use crate::chat::content::Said;
use crate::error::Code;
use crate::protocol::catalogue::{Catalogue, Model, Names};
use crate::protocol::context::{Delivery, Release, Timestamps, Upload};
use crate::protocol::event::{ErrorEvent, Flow, Open, Options, Prefix, Sampling, Start, TextRules};
use crate::protocol::format::Format;

/// Least and most a context may run ahead: a commit and a second; more than anybody listens to in one go.
const AHEAD_MS: (u64, u64) = (3_000, 600_000);
const AHEAD_MS_DEFAULT: u64 = 6_000;
const IDLE_MS: (u64, u64) = (1_000, 3_600_000);
const IDLE_MS_DEFAULT: u64 = 300_000;
const RESUME_WINDOW_MS: (u64, u64) = (0, 15_000);
const CONTEXT_IDLE_MS_DEFAULT: u64 = 120_000;
const ID_BYTES_MAX: usize = 64;
const TIMESTAMPS: [(&str, Timestamps); 3] =
    [("word", Timestamps::Word), ("char", Timestamps::Char), ("none", Timestamps::None)];
const RELEASES: [(&str, Release); 2] = [("frame", Release::Frame), ("commit", Release::Commit)];

/// Checks what `session.start` asks.
///
/// # Errors
/// The first thing that is not to be had.
pub(super) fn settle(start: Start, catalogue: &Catalogue) -> Result<Settled, Box<ErrorEvent>> {
    let format = Format::choose(&start.audio)
        .map_err(|message| Box::new(ErrorEvent::new(Code::UnsupportedAudio, message)))?;
    check(&start.defaults, catalogue)?;
    let idle = within("idle_timeout_ms", start.idle_timeout_ms, IDLE_MS_DEFAULT, IDLE_MS)?;
    let context_idle =
        within("context_idle_ms", start.context_idle_ms, CONTEXT_IDLE_MS_DEFAULT, IDLE_MS)?;
    let resume_window = within("resume_window_ms", start.resume_window_ms, 0, RESUME_WINDOW_MS)?;
    let timestamps = choose("timestamps", start.timestamps.as_deref(), &TIMESTAMPS)?;
    let release = choose("flow.release", start.flow.release.as_deref(), &RELEASES)?;
    let max_ahead = max_ahead(&start.flow);
    Ok(Settled {
        delivery: Delivery { format, max_ahead, release, timestamps },
        defaults: start.defaults,
        idle,
        context_idle,
        resume_window,
    })
}

/// What a context is asked that answers messages.
pub(super) struct Asked {
    pub(super) said: Vec<Said>,
    /// Without the messages.
    pub(super) request: Box<engine::answer::Request>,
    /// The recordings that the messages name.
    pub(super) uploads: BTreeMap<String, Upload>,
    /// Characters of text in the messages.
    pub(super) chars: usize,
}

/// The value of a field that has a few names; the first is the default.
///
/// # Errors
/// A name that is none of them.
pub(super) fn choose<T: Copy>(
    field: &str,
    asked: Option<&str>,
    known: &[(&str, T)],
) -> Result<T, Box<ErrorEvent>> {
    let Some(asked) = asked else { return Ok(known[0].1) };
    if let Some((_, value)) = known.iter().find(|(name, _)| *name == asked) {
        return Ok(*value);
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    Err(bad(field, &format!("{asked:?} is not one of {}", names.join(", "))))
}

/// A bound that is out of reach is moved within reach: `session.ready` tells which one holds.
fn max_ahead(flow: &Flow) -> Duration {
    let (least, most) = AHEAD_MS;
    let asked = flow.max_ahead_ms.unwrap_or(AHEAD_MS_DEFAULT);
    Duration::from_millis(asked.clamp(least, most))
}

/// Checks what `context.open` asks, and merges it with the session's defaults.
///
/// # Errors
/// The first thing that is not to be had.
pub(super) fn merge(
    open: &Open,
    settled: &Settled,
    catalogue: &Catalogue,
) -> Result<Options, Box<ErrorEvent>> {
    check_head(open)?;
    check(&open.options, catalogue)?;
    let options = overridden(&open.options, &settled.defaults);
    let answers = |name: &str| catalogue.models.iter().any(|m| m.answers && m.id == name);
    match &options.model {
        Some(name) if answers(name) => {
            Err(bad("messages", &format!("missing, and model {name:?} answers them")))
        }
        _ => Ok(options),
    }
}

/// What every context has.
fn check_head(open: &Open) -> Result<(), Box<ErrorEvent>> {
    if open.ctx.is_empty() || open.ctx.len() > ID_BYTES_MAX {
        return Err(bad("ctx", &format!("an id has 1 to {ID_BYTES_MAX} bytes")));
    }
    if open.priority.is_some_and(|p| p > 9) {
        return Err(bad("priority", "0 to 9"));
    }
    Ok(())
}

/// As [`merge`], for a context that answers messages: what only speakers have is not taken from the session's defaults.
///
/// # Errors
/// The first thing that is not to be had.
pub(super) fn answer_options(
    open: &Open,
    settled: &Settled,
    catalogue: &Catalogue,
) -> Result<Options, Box<ErrorEvent>> {
    check_head(open)?;
    let own = &open.options;
    let known: Vec<&Model> = catalogue.models.iter().filter(|m| m.answers).collect();
    let named = |name: &String| known.iter().find(|m| m.id == *name);
    let usual = || settled.defaults.model.as_ref().and_then(named).or(known.first());
    let Some(model) = own.model.as_ref().map_or_else(usual, named) else {
        let names: Vec<&str> = known.iter().map(|m| m.id.as_str()).collect();
        let message = match (&own.model, names.is_empty()) {
            (Some(name), false) => format!("model {name:?} is not one of {}", names.join(", ")),
            _ => "messages: no model here answers".to_owned(),
        };
        return Err(Box::new(ErrorEvent::new(Code::UnknownModel, message)));
    };
    if let Some(voice) = own.voice.as_ref().filter(|voice| !model.voices.contains(voice)) {
        let message = format!("voice {voice:?} is not one of {}", model.voices.join(", "));
        return Err(Box::new(ErrorEvent::new(Code::UnknownVoice, message)));
    }
    Ok(Options {
        model: Some(model.id.clone()),
        voice: own.voice.clone(),
        ..overridden(own, &settled.defaults)
    })
}

/// What of a context's own options has no effect on an answer.
pub(super) fn ignored_in_answer(own: &Options) -> Vec<&'static str> {
    let fields = [
        ("language", own.language.is_some()),
        ("style", own.style.is_some()),
        ("text", own.text != TextRules::default()),
        ("speed", own.speed.is_some_and(|s| s != 1.0)),
        ("initial_ms", own.initial_ms.is_some()),
        ("prompt_max_frames", own.prompt_max_frames.is_some()),
        ("prefix", own.prefix.is_some()),
        ("sampling.frequency_penalty", own.sampling.frequency_penalty.is_some()),
    ];
    fields.into_iter().filter(|(_, asked)| *asked).map(|(field, _)| field).collect()
}

/// Each field of `own` that is there, else of `base`.
fn overridden(own: &Options, base: &Options) -> Options {
    fn or<T: Clone>(own: &Option<T>, base: &Option<T>) -> Option<T> {
        own.as_ref().or(base.as_ref()).cloned()
    }
    let (draw, base_draw) = (&own.sampling, &base.sampling);
    let (text, base_text) = (&own.text, &base.text);
    Options {
        model: or(&own.model, &base.model),
        voice: or(&own.voice, &base.voice),
        language: or(&own.language, &base.language),
        style: or(&own.style, &base.style),
        seed: or(&own.seed, &base.seed),
        cfg: or(&own.cfg, &base.cfg),
        sampling: Sampling {
            temperature: or(&draw.temperature, &base_draw.temperature),
            acoustic_temperature: or(&draw.acoustic_temperature, &base_draw.acoustic_temperature),
            top_p: or(&draw.top_p, &base_draw.top_p),
            top_k: or(&draw.top_k, &base_draw.top_k),
            frequency_penalty: or(&draw.frequency_penalty, &base_draw.frequency_penalty),
            acoustic_top_k: or(&draw.acoustic_top_k, &base_draw.acoustic_top_k),
        },
        text: TextRules {
            markdown: or(&text.markdown, &base_text.markdown),
            emoji: or(&text.emoji, &base_text.emoji),
            verbalize: or(&text.verbalize, &base_text.verbalize),
            ssml: or(&text.ssml, &base_text.ssml),
            locale: or(&text.locale, &base_text.locale),
            lexicon: or(&text.lexicon, &base_text.lexicon),
            dictionaries: or(&text.dictionaries, &base_text.dictionaries),
            inline_words: text.inline_words || base_text.inline_words,
        },
        speed: or(&own.speed, &base.speed),
        initial_ms: or(&own.initial_ms, &base.initial_ms),
        prompt_max_frames: or(&own.prompt_max_frames, &base.prompt_max_frames),
        prefix: or(&own.prefix, &base.prefix),
    }
}

/// What of the options has no effect here; the client is told.
pub(super) fn ignored(options: &Options) -> Vec<&'static str> {
    let fields = [("speed", options.speed.is_some_and(|s| s != 1.0))];
    fields.into_iter().filter(|(_, asked)| *asked).map(|(field, _)| field).collect()
}

/// How the engine is to speak.
pub(super) fn manner(options: &Options) -> Manner {
    let Options { model, voice, language, style, .. } = options.clone();
    Manner { model, voice, language, style }
}

/// The request to the engine.
pub(super) fn request(
    options: &Options,
    settled: &Settled,
    catalogue: &Catalogue,
    priority: Option<u8>,
) -> Request {
    let mut request = Request::live();
    let lexicon = catalogue.words(options.voice.as_deref());
    let base = TextOptions { lexicon, ..request.options.clone() };
    let language = options.language.as_deref();
    request.options = text_options(&options.text, language, base, &catalogue.lexicons)
        .expect("the options of session and context were checked as they came; this is a bug");
    Request {
        max_ahead: Some(settled.delivery.max_ahead),
        priority: priority.unwrap_or(request.priority),
        ..options.over(request)
    }
}

impl Options {
    /// The request that these make of another, all but the rules of its text.
    pub(crate) fn over(&self, mut request: Request) -> Request {
        if let Some(initial_ms) = self.initial_ms {
            request.begin_after(Duration::from_millis(initial_ms));
        }
        let options = self.clone();
        let prefix = options.prefix.map(|Prefix { text, codes }| Speech { text, codes }.into());
        Request {
            model: options.model,
            voice: options.voice,
            language: options.language,
            style: options.style,
            seed: options.seed.unwrap_or(0),
            temperature: options.sampling.temperature,
            acoustic_temperature: options.sampling.acoustic_temperature,
            top_p: options.sampling.top_p,
            top_k: options.sampling.top_k,
            frequency_penalty: options.sampling.frequency_penalty,
            acoustic_top_k: options.sampling.acoustic_top_k,
            prompt_max_frames: options.prompt_max_frames,
            prefix,
            guidance: options.cfg,
            ..request
        }
    }
}

fn check(options: &Options, catalogue: &Catalogue) -> Result<(), Box<ErrorEvent>> {
    let (language, base) = (options.language.as_deref(), TextOptions::default());
    text_options(&options.text, language, base, &catalogue.lexicons)
        .map_err(|refused| bad(refused.field, &refused.reason))?;
    catalogue.check(&Names {
        model: options.model.as_deref(),
        voice: options.voice.as_deref(),
        language: options.language.as_deref(),
        style: options.style.as_deref(),
    })
}

fn within(
    field: &str,
    asked: Option<u64>,
    default: u64,
    (least, most): (u64, u64),
) -> Result<Duration, Box<ErrorEvent>> {
    let value = asked.unwrap_or(default);
    if !(least..=most).contains(&value) {
        return Err(bad(field, &format!("{value} is not within {least} to {most}")));
    }
    Ok(Duration::from_millis(value))
}

fn bad(field: &str, reason: &str) -> Box<ErrorEvent> {
    Box::new(ErrorEvent::new(Code::BadOption, format!("{field}: {reason}")))
}
