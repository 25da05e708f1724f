//! The request of the TontaubeV1 server, field by field. Fields that it does not have are refused, as there.
use engine::Request;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::config::Gateway;
use crate::foreign::whole::Refused;
use crate::protocol::event::{Options, Prefix, Sampling, TextRules};

/// What ends a segment that does not end by itself.
const ENDS: &[char] = &['.', '!', '?', ';', ':', ','];
/// Codes of a chunk, leading frames of a prompt, and seconds before the first sound that a request may ask for.
const NEW_TOKENS: (u64, u64) = (50, 400);
const PROMPT_TOKENS: (u64, u64) = (1, 750);
const INITIAL_SECONDS: (f64, f64) = (0.4, 6.0);
/// What `priority` means: contexts without first sound are served in this order.
const PRIORITIES: [(&str, u8); 2] = [("low", 2), ("high", 8)];
const BITRATES: [(&str, u32); 4] =
    [("32k", 32_000), ("64k", 64_000), ("96k", 96_000), ("128k", 128_000)];

/// A request as it comes.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Fields {
    text: Option<Text>,
    language: Option<String>,
    tag: Option<String>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<usize>,
    frequency_penalty: Option<f32>,
    seed: Option<u64>,
    voice_path: Option<String>,
    voice_audio_b64: Option<IgnoredAny>,
    voice_opus_b64: Option<IgnoredAny>,
    voice_tokens: Option<IgnoredAny>,
    prefix_text: Option<String>,
    prefix_tokens: Option<Codes>,
    max_new_tokens: Option<u64>,
    streaming_initial_seconds: Option<f64>,
    acoustic_temperature: Option<f32>,
    acoustic_top_k: Option<usize>,
    prompt_max_tokens: Option<u64>,
    use_verbalization: Option<bool>,
    silence_logit_bias: Option<IgnoredAny>,
    vibevoice_postprocess: Option<IgnoredAny>,
    mossformer2_postprocess: Option<IgnoredAny>,
    vllm_priority: Option<IgnoredAny>,
    trim_silence_padding_ms: Option<IgnoredAny>,
    format: Option<String>,
    bitrate: Option<String>,
    priority: Option<String>,
}

/// A passage, or one in pieces.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Text {
    Whole(String),
    Segments(Vec<String>),
}

/// Semantic codes, alone or as the first of all rows.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Codes {
    Row(Vec<u16>),
    Rows(Vec<Vec<u16>>),
}

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Wav,
    Mp3,
    Opus,
}

/// A request that was understood.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) text: String,
    pub(super) options: Options,
    pub(super) priority: Option<u8>,
    /// None: whatever is usual where it was asked.
    pub(super) kind: Option<Kind>,
    pub(super) bitrate: Option<u32>,
    /// Fields that have no effect here.
    pub(super) ignored: Vec<&'static str>,
}

/// Why a request is refused, with the status that says so.
pub(super) fn refused(reason: &str) -> Refused {
    Refused { status: 422, body: problem(422, "", reason) }
}

/// A refusal over HTTP.
pub(crate) fn problem(_status: u16, _code: &str, reason: &str) -> Value {
    json!({"detail": reason})
}

impl Asked {
    /// Reads a request, which may stand in an `instances` envelope.
    ///
    /// # Errors
    /// A sentence that names the field and what is allowed.
    pub(super) fn read(mut value: Value, config: &Gateway) -> Result<Self, String> {
        if let Some(instances) = value.get_mut("instances") {
            value = match instances {
                Value::Array(all) if all.len() == 1 => all.remove(0),
                _ => return Err("instances holds one request".to_owned()),
            };
        }
        let fields: Fields = serde_json::from_value(value).map_err(|error| error.to_string())?;
        fields.check()?;
        let ignored = fields.ignored();
        Ok(Self {
            text: text(fields.text, config)?,
            priority: known("priority", fields.priority.as_deref(), &PRIORITIES)?,
            kind: known("format", fields.format.as_deref(), &KINDS)?,
            bitrate: known("bitrate", fields.bitrate.as_deref(), &BITRATES)?,
            options: Options {
                // Upstream it is a file of the server; here, one of its voices.
                voice: fields.voice_path.as_deref().map(|path| stem(path).to_owned()),
                language: fields.language,
                style: fields.tag,
                seed: fields.seed,
                sampling: Sampling {
                    temperature: fields.temperature,
                    top_p: fields.top_p,
                    top_k: fields.top_k,
                    frequency_penalty: fields.frequency_penalty,
                    acoustic_temperature: fields.acoustic_temperature,
                    acoustic_top_k: fields.acoustic_top_k,
                },
                initial_ms: fields.streaming_initial_seconds.map(|s| (s * 1e3).round() as u64),
                prompt_max_frames: fields.prompt_max_tokens.map(|frames| frames as usize),
                prefix: prefix(fields.prefix_text, fields.prefix_tokens)?,
                text: TextRules {
                    verbalize: fields
                        .use_verbalization
                        .map(|is_on| if is_on { "auto" } else { "off" }.to_owned()),
                    ..TextRules::default()
                },
                ..Options::default()
            },
            ignored,
        })
    }

    /// As a request to the engine with the whole text.
    pub(super) fn request(&self) -> Request {
        let mut request = Request::whole(self.text.clone());
        if let Some(rule) = &self.options.text.verbalize {
            request.options.verbalize = rule == "auto";
        }
        Request {
            priority: self.priority.unwrap_or(request.priority),
            ..self.options.over(request)
        }
    }
}

const KINDS: [(&str, Kind); 3] = [("wav", Kind::Wav), ("mp3", Kind::Mp3), ("opus", Kind::Opus)];

impl Fields {
    fn check(&self) -> Result<(), String> {
        let recordings = [
            ("voice_audio_b64", self.voice_audio_b64.is_some()),
            ("voice_opus_b64", self.voice_opus_b64.is_some()),
            ("voice_tokens", self.voice_tokens.is_some()),
        ];
        if let Some((field, _)) = recordings.iter().find(|(_, is_there)| *is_there) {
            // Whose voice it is must have been said.
            return Err(format!(
                "{field}: add the voice with POST /v1/voices, then name it in voice_path"
            ));
        }
        within("max_new_tokens", self.max_new_tokens, NEW_TOKENS)?;
        within("prompt_max_tokens", self.prompt_max_tokens, PROMPT_TOKENS)?;
        within("streaming_initial_seconds", self.streaming_initial_seconds, INITIAL_SECONDS)
    }

    /// Fields that are there and have no effect.
    fn ignored(&self) -> Vec<&'static str> {
        let fields = [
            ("max_new_tokens", self.max_new_tokens.is_some()),
            ("silence_logit_bias", self.silence_logit_bias.is_some()),
            ("vibevoice_postprocess", self.vibevoice_postprocess.is_some()),
            ("mossformer2_postprocess", self.mossformer2_postprocess.is_some()),
            ("vllm_priority", self.vllm_priority.is_some()),
            ("trim_silence_padding_ms", self.trim_silence_padding_ms.is_some()),
        ];
        fields.into_iter().filter(|(_, is_there)| *is_there).map(|(field, _)| field).collect()
    }
}

/// The text; pieces of it are ended as sentences, so that each is spoken as one.
fn text(text: Option<Text>, config: &Gateway) -> Result<String, String> {
    let (chars_max, segments_max) =
        (config.foreign.max_predict_chars, config.foreign.max_predict_segments);
    let text = match text.ok_or("text is missing")? {
        Text::Whole(text) => text,
        Text::Segments(segments) if segments.len() > segments_max => {
            let n = segments.len();
            return Err(format!(
                "text has {n} segments, {segments_max} are allowed (foreign.max_predict_segments)"
            ));
        }
        Text::Segments(segments) => {
            let ended = |segment: &String| match segment.trim() {
                "" => None,
                segment if segment.ends_with(ENDS) => Some(segment.to_owned()),
                segment => Some(format!("{segment}.")),
            };
            segments.iter().filter_map(ended).collect::<Vec<String>>().join(" ")
        }
    };
    let chars = text.chars().count();
    if (1..=chars_max).contains(&chars) {
        return Ok(text);
    }
    Err(format!(
        "text has {chars} characters, 1 to {chars_max} are allowed (foreign.max_predict_chars)"
    ))
}

fn prefix(text: Option<String>, codes: Option<Codes>) -> Result<Option<Prefix>, String> {
    let codes = match codes {
        None => Vec::new(),
        Some(Codes::Row(row)) => row,
        Some(Codes::Rows(rows)) => rows.into_iter().next().unwrap_or_default(),
    };
    match (text.unwrap_or_default(), codes) {
        (text, codes) if text.is_empty() && codes.is_empty() => Ok(None),
        (text, codes) if text.is_empty() || codes.is_empty() => {
            Err("prefix_text and prefix_tokens belong together".to_owned())
        }
        (text, codes) => Ok(Some(Prefix { text, codes })),
    }
}

/// The name of a file without its folder and its ending.
fn stem(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

fn known<T: Copy>(
    field: &str,
    asked: Option<&str>,
    known: &[(&str, T)],
) -> Result<Option<T>, String> {
    let Some(asked) = asked else { return Ok(None) };
    if let Some((_, value)) = known.iter().find(|(name, _)| *name == asked) {
        return Ok(Some(*value));
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    Err(format!("{field} {asked:?} is not one of {}", names.join(", ")))
}

fn within<T: PartialOrd + std::fmt::Display>(
    field: &str,
    asked: Option<T>,
    (least, most): (T, T),
) -> Result<(), String> {
    match asked {
        Some(value) if value < least || value > most => {
            Err(format!("{field} {value} is not within {least} to {most}"))
        }
        _ => Ok(()),
    }
}
