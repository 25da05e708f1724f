//! What a client asks of `/v1/chat/completions`, checked and in our words.
//!
//! What would change the answer and is not to be had is refused by its name; what would not is passed over.

use engine::answer::{Draw, Modality, Request};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Refusal;
use super::content::{self, Most, Said};
use crate::config::{Chat as Settings, Gateway, Speech};
use crate::container::FileFormat;
use crate::protocol::{Catalogue, Model, mend_surrogates};

/// What OpenAI calls bare samples here.
const PCM16: &str = "pcm16";
/// Most strings to stop at, as OpenAI has it.
const STOPS_MAX: usize = 4;
/// Longest of them, in characters: a part of the text that long is kept back until it is sure.
const STOP_CHARS_MAX: usize = 256;

/// A request that can be answered.
#[derive(Debug)]
pub(crate) struct Chat {
    pub(crate) said: Vec<Said>,
    /// Without the messages, and without a seed if the client gave none.
    pub(crate) request: Request,
    pub(crate) seed: Option<u64>,
    /// Name of the model, as the answer tells it.
    pub(crate) model: String,
    /// What its sound is to be; none: it is text alone.
    pub(crate) sound: Option<FileFormat>,
    /// None: one object.
    pub(crate) stream: Option<Stream>,
}

/// An answer in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stream {
    /// Whether the last one tells what the answer counts as.
    pub(crate) has_usage: bool,
}

/// The body as it comes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Body {
    model: Option<String>,
    messages: Value,
    modalities: Option<Vec<String>>,
    audio: Option<Audio>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    seed: Option<i64>,
    max_tokens: Option<usize>,
    max_completion_tokens: Option<usize>,
    stop: Option<Stops>,
    /// As in the native protocol; OpenAI's clients send them as extra fields.
    top_k: Option<usize>,
    acoustic_temperature: Option<f32>,
    acoustic_top_k: Option<usize>,
    cfg: Option<f32>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Audio {
    voice: Option<VoiceName>,
    format: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum VoiceName {
    Name(String),
    Object { id: String },
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Stops {
    One(String),
    Many(Vec<String>),
}

impl Chat {
    /// Reads a body.
    ///
    /// # Errors
    /// The first value that is not to be had, with those that are.
    pub(crate) fn parse(
        body: &[u8],
        config: &Gateway,
        catalogue: &Catalogue,
    ) -> Result<Self, Refusal> {
        let malformed = |message| Refusal { code: "bad_body", param: None, message };
        let body = std::str::from_utf8(body).map_err(|e| malformed(e.to_string()))?;
        let body = serde_json::from_str::<Body>(&mend_surrogates(body));
        let body = body.map_err(|e| malformed(e.to_string()))?;
        let settings = &config.chat;
        refuse_unsupported(&body.rest)?;
        let model = model(body.model.as_deref(), config, catalogue)?;
        let said = content::read(&body.messages, &Most::of(settings))?;
        let modalities = modalities(body.modalities.as_deref())?;
        let stream = (body.stream == Some(true)).then(|| Stream {
            has_usage: body.stream_options.as_ref().and_then(|o| o.include_usage) == Some(true),
        });
        let has_sound = modalities.contains(&Modality::Audio);
        let audio = body.audio.as_ref();
        let asked = audio.and_then(|audio| audio.format.as_deref());
        let sound = has_sound.then(|| format(asked, stream.is_some())).transpose()?;
        let voice = audio.filter(|_| has_sound).and_then(|audio| audio.voice.as_ref());
        let tokens = tokens(body.max_completion_tokens, body.max_tokens, settings)?;
        let request = Request {
            model: Some(model.id.clone()),
            messages: Vec::new(),
            voice: voice.map(|name| find_voice(name, config, model)).transpose()?.flatten(),
            text: Draw {
                temperature: within("temperature", body.temperature, 0.0, 2.0)?,
                top_k: body.top_k,
                top_p: within("top_p", body.top_p, 0.0, 1.0)?,
            },
            audio: Draw {
                temperature: within("acoustic_temperature", body.acoustic_temperature, 0.0, 2.0)?,
                top_k: body.acoustic_top_k,
                top_p: None,
            },
            guidance: body.cfg,
            max_tokens: tokens,
            stop: stops(body.stop)?,
            ..Request::new("", &modalities)
        };
        // Any number that tells one answer from another.
        let seed = body.seed.map(i64::cast_unsigned);
        Ok(Self { said, request, seed, model: model.id.clone(), sound, stream })
    }
}

/// Refuses what would change the answer and is not to be had.
fn refuse_unsupported(rest: &Map<String, Value>) -> Result<(), Refusal> {
    let is_zero = |value: &Value| value.as_f64() == Some(0.0);
    let is_empty = |value: &Value| {
        value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
    };
    for (name, value) in rest {
        let is_harmless = match name.as_str() {
            "n" => value.as_u64() == Some(1),
            "frequency_penalty" | "presence_penalty" | "top_logprobs" => is_zero(value),
            "logprobs" => value == false,
            "tools" | "functions" | "logit_bias" => is_empty(value),
            "tool_choice" | "function_call" => value == "none" || value == "auto",
            "response_format" => value["type"] == "text",
            "prediction" | "web_search_options" => false,
            _ => true,
        };
        if !is_harmless && !value.is_null() {
            let message = format!("{name}: {value:.60} is not to be had here; leave it out");
            return Err(Refusal { code: "unsupported_value", ..Refusal::of(name, message) });
        }
    }
    Ok(())
}

/// A model that answers, by its own name or one that stands for it; the first if the client names none.
pub(crate) fn model<'a>(
    asked: Option<&str>,
    config: &Gateway,
    catalogue: &'a Catalogue,
) -> Result<&'a Model, Refusal> {
    let known: Vec<&Model> = catalogue.models.iter().filter(|m| m.answers).collect();
    let named = |name: &str| known.iter().copied().find(|m| m.id == name);
    let found = match asked {
        None => known.first().copied(),
        Some(name) => {
            named(name).or_else(|| config.speech.models.get(name).and_then(|name| named(name)))
        }
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|m| m.id.as_str()).collect();
        let message = match (asked, names.is_empty()) {
            (Some(name), false) => format!(
                "model {name:?} is not one of {}; speech.models gives names to them",
                names.join(", ")
            ),
            _ => "no model here answers: this server only speaks".to_owned(),
        };
        Refusal { code: "model_not_found", ..Refusal::of("model", message) }
    })
}

/// Text comes before sound: the models write what they say.
pub(crate) fn modalities(asked: Option<&[String]>) -> Result<Vec<Modality>, Refusal> {
    let Some(asked) = asked else { return Ok(vec![Modality::Text]) };
    let mut modalities = Vec::new();
    for (name, modality) in [("text", Modality::Text), ("audio", Modality::Audio)] {
        if asked.iter().any(|asked| asked == name) {
            modalities.push(modality);
        }
    }
    if asked.is_empty() || asked.iter().any(|name| name != "text" && name != "audio") {
        let message = format!("modalities {asked:?} is not a list of text, audio");
        return Err(Refusal::of("modalities", message));
    }
    Ok(modalities)
}

fn format(asked: Option<&str>, streams: bool) -> Result<FileFormat, Refusal> {
    let refuse = |message| Refusal::of("audio.format", message);
    // A file cannot be cut into chunks that sound by themselves; samples can.
    if streams {
        return match asked {
            None | Some(PCM16 | "pcm") => Ok(FileFormat::Pcm),
            Some(other) => Err(refuse(format!(
                "audio.format {other:?} is not to be had with stream; {PCM16} is"
            ))),
        };
    }
    match asked {
        None => Ok(FileFormat::Wav),
        Some(PCM16) => Ok(FileFormat::Pcm),
        Some(name) => FileFormat::named(name).ok_or_else(|| {
            let names: Vec<&str> = FileFormat::ALL.iter().map(|f| f.name()).collect();
            let known = names.join(", ");
            refuse(format!("audio.format {name:?} is not one of {known}, {PCM16}"))
        }),
    }
}

/// A voice of the model; OpenAI's names that stand for none are the model's own.
fn find_voice(
    asked: &VoiceName,
    config: &Gateway,
    model: &Model,
) -> Result<Option<String>, Refusal> {
    let (VoiceName::Name(name) | VoiceName::Object { id: name }) = asked;
    let mapped = config.speech.voices.get(name);
    let is_known = |id: &String| model.voices.contains(id);
    match mapped {
        _ if is_known(name) => Ok(Some(name.clone())),
        Some(id) if is_known(id) => Ok(Some(id.clone())),
        _ if Speech::is_foreign(name) => Ok(None),
        _ => {
            let known = model.voices.join(", ");
            let message = format!("audio.voice {name:?} is not one of {known}");
            Err(Refusal::of("audio.voice", message))
        }
    }
}

fn tokens(
    new: Option<usize>,
    old: Option<usize>,
    settings: &Settings,
) -> Result<Option<usize>, Refusal> {
    let name = if new.is_some() { "max_completion_tokens" } else { "max_tokens" };
    let most = settings.max_output_tokens;
    match new.or(old) {
        Some(tokens) if !(1..=most).contains(&tokens) => {
            let message =
                format!("{name} {tokens} is not within 1 to {most} (chat.max_output_tokens)");
            Err(Refusal::of(name, message))
        }
        tokens => Ok(tokens),
    }
}

fn within(
    name: &'static str,
    asked: Option<f32>,
    least: f32,
    most: f32,
) -> Result<Option<f32>, Refusal> {
    match asked {
        Some(value) if !(least..=most).contains(&value) => {
            Err(Refusal::of(name, format!("{name} {value} is not within {least} to {most}")))
        }
        value => Ok(value),
    }
}

fn stops(asked: Option<Stops>) -> Result<Vec<String>, Refusal> {
    let stops = match asked {
        None => Vec::new(),
        Some(Stops::One(stop)) => vec![stop],
        Some(Stops::Many(stops)) => stops,
    };
    let fits = |stop: &String| (1..=STOP_CHARS_MAX).contains(&stop.chars().count());
    if stops.len() > STOPS_MAX || !stops.iter().all(fits) {
        let message =
            format!("stop has at most {STOPS_MAX} strings of 1 to {STOP_CHARS_MAX} characters");
        return Err(Refusal::of("stop", message));
    }
    Ok(stops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn catalogue() -> Catalogue {
        let model = |id: &str, answers, voices: &[&str]| Model {
            id: id.into(),
            answers,
            voices: voices.iter().map(|v| (*v).to_owned()).collect(),
            ..Model::default()
        };
        let models = vec![model("nano", false, &[]), model("bag", true, &["ann"])];
        Catalogue { models, ..Catalogue::default() }
    }

    fn config() -> Gateway {
        let mut config = Gateway::default();
        config.speech.models =
            [("gpt-audio", "bag"), ("old", "gone")].map(|(a, b)| (a.into(), b.into())).into();
        config.chat.max_output_tokens = 100;
        config.speech.voices = [("nova".to_owned(), "ann".to_owned())].into();
        config
    }

    fn parse(extra: &Value) -> Result<Chat, Refusal> {
        let mut body = json!({"model": "bag", "messages": [{"role": "user", "content": "Hi."}]});
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        Chat::parse(body.to_string().as_bytes(), &config(), &catalogue())
    }

    #[test]
    fn what_is_left_out_or_null_is_text_in_one_object() {
        let chat = parse(&json!({"modalities": null, "audio": null, "stop": null, "seed": null,
            "max_tokens": null, "stream": null, "n": null, "tools": null, "user": "u", "new": [1]}));
        let chat = chat.unwrap();
        assert_eq!(chat.request.modalities, [Modality::Text]);
        assert_eq!((chat.sound, chat.stream, chat.seed), (None, None, None));
        assert_eq!(chat.request.text, Draw::default());
        assert_eq!(chat.request.max_tokens, None);
    }

    #[test]
    fn what_is_asked_for_reaches_the_engine() {
        let chat = parse(&json!({
            "modalities": ["audio", "text"], "audio": {"voice": "nova", "format": "flac"},
            "temperature": 0.5, "top_p": 0.9, "top_k": 7, "seed": -1, "max_completion_tokens": 60,
            "stop": ["\n\n", "END"], "acoustic_temperature": 0.25, "acoustic_top_k": 9, "cfg": 3.0,
            "n": 1, "frequency_penalty": 0, "tools": [], "tool_choice": "none", "logprobs": false,
            "response_format": {"type": "text"},
        }));
        let Chat { request, seed, sound, model, .. } = chat.unwrap();
        assert_eq!(request.modalities, [Modality::Text, Modality::Audio]);
        assert_eq!((sound, seed, model.as_str()), (Some(FileFormat::Flac), Some(u64::MAX), "bag"));
        assert_eq!(request.voice.as_deref(), Some("ann"));
        let text = Draw { temperature: Some(0.5), top_k: Some(7), top_p: Some(0.9) };
        let audio = Draw { temperature: Some(0.25), top_k: Some(9), top_p: None };
        assert_eq!((request.text, request.audio), (text, audio));
        assert_eq!((request.guidance, request.stop.len()), (Some(3.0), 2));
        assert_eq!(request.max_tokens, Some(60));
    }

    #[test]
    fn a_stream_is_of_samples_and_tells_its_usage_to_who_asks() {
        let sound = json!({"voice": "alloy", "format": "pcm16"});
        let both = json!(["text", "audio"]);
        let chat = parse(&json!({"stream": true, "modalities": both, "audio": sound})).unwrap();
        assert_eq!(chat.stream, Some(Stream { has_usage: false }));
        assert_eq!((chat.sound, chat.request.voice), (Some(FileFormat::Pcm), None));
        let options = json!({"include_usage": true});
        let chat = parse(&json!({"stream": true, "stream_options": options})).unwrap();
        assert_eq!((chat.stream, chat.sound), (Some(Stream { has_usage: true }), None));
        let wav = json!({"stream": true, "modalities": both, "audio": {"format": "wav"}});
        assert!(parse(&wav).unwrap_err().message.contains("pcm16"));
    }

    #[test]
    fn names_of_models_are_ours_or_stand_for_ours() {
        for name in ["bag", "gpt-audio"] {
            assert_eq!(parse(&json!({"model": name})).unwrap().model, "bag");
        }
        assert_eq!(parse(&json!({"model": null})).unwrap().model, "bag");
        for name in ["nano", "old", "gpt-4"] {
            let refused = parse(&json!({"model": name})).unwrap_err();
            assert_eq!(
                (refused.code, refused.param.as_deref()),
                ("model_not_found", Some("model"))
            );
            assert!(refused.message.contains("not one of bag"), "{}", refused.message);
        }
        let body = br#"{"messages":[{"role":"user","content":"x"}]}"#;
        let none = Chat::parse(body, &config(), &Catalogue::default()).unwrap_err();
        assert!(none.message.contains("only speaks"), "{}", none.message);
    }

    #[test]
    fn what_is_not_to_be_had_is_refused_by_name() {
        let spoken = |audio: Value| json!({"modalities": ["audio"], "audio": audio});
        for (body, param, says) in [
            (json!({"n": 2}), "n", "2 is not to be had"),
            (json!({"tools": [{"type": "function"}]}), "tools", "leave it out"),
            (json!({"logprobs": true}), "logprobs", "true"),
            (json!({"presence_penalty": 0.5}), "presence_penalty", "0.5"),
            (json!({"response_format": {"type": "json_object"}}), "response_format", "json_object"),
            (json!({"modalities": []}), "modalities", "text, audio"),
            (json!({"modalities": ["video"]}), "modalities", "\"video\""),
            (spoken(json!({"format": "aac"})), "audio.format", "flac, wav, pcm, pcm16"),
            (spoken(json!({"voice": "eve"})), "audio.voice", "not one of ann"),
            (spoken(json!({"voice": {"id": "eve"}})), "audio.voice", "\"eve\""),
            (json!({"temperature": 2.5}), "temperature", "0 to 2"),
            (json!({"top_p": -0.1}), "top_p", "0 to 1"),
            (json!({"max_tokens": 0}), "max_tokens", "1 to 100 (chat.max_output_tokens)"),
            (json!({"max_completion_tokens": 101}), "max_completion_tokens", "101"),
            (json!({"stop": ["a", "b", "c", "d", "e"]}), "stop", "at most 4"),
            (json!({"stop": ""}), "stop", "1 to 256"),
            (json!({"messages": []}), "messages", "1 to 256"),
        ] {
            let refused = parse(&body).unwrap_err();
            assert_eq!(refused.param.as_deref(), Some(param), "{body}");
            assert!(refused.message.contains(says), "{}", refused.message);
        }
        assert_eq!(parse(&json!({"stream": "yes"})).unwrap_err().code, "bad_body");
    }
}
