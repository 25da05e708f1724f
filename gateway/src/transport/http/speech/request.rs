//! What a client asks of `/v1/audio/speech`, checked and in our words. Knows no engine and no sockets.

use axum::http::StatusCode;
use axum::response::Response;
use engine::text::TextOptions;
use serde::Deserialize;

use crate::config::Speech;
use crate::container::FileFormat;
use crate::protocol::event::TextRules;
use crate::protocol::{Catalogue, mend_surrogates, text_options};
use crate::transport::http::problem;

/// What a request gets that says nothing, as OpenAI has it.
const DEFAULT_FORMAT: &str = "mp3";

/// The body as it comes.
#[derive(Debug, Default, Deserialize)]
struct Asked {
    model: Option<String>,
    input: Option<String>,
    voice: Option<VoiceName>,
    response_format: Option<String>,
    stream_format: Option<String>,
    speed: Option<f64>,
    /// Ours: how the text is read, as in `context.open`.
    #[serde(default)]
    text: TextRules,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum VoiceName {
    Name(String),
    Object { id: String },
}

/// How the bytes of the file reach the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// As the body.
    Audio,
    /// In base64, in events.
    Events,
}

/// A request that can be spoken.
#[derive(Debug, PartialEq)]
pub(super) struct Spoken {
    /// The model, by whatever name; clients mostly send OpenAI's.
    pub(super) model: Option<String>,
    pub(super) text: String,
    pub(super) speaker: Speaker,
    pub(super) format: FileFormat,
    pub(super) framing: Framing,
    /// How the text is read; without the words of key and voice.
    pub(super) options: TextOptions,
}

/// Who speaks it.
#[derive(Debug, PartialEq)]
pub(super) enum Speaker {
    /// A voice of ours.
    Voice(String),
    /// A speech language model, with a voice of its own if it has one of that name.
    Model { model: String, voice: Option<String> },
}

/// A request that cannot.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    param: Option<&'static str>,
    message: String,
}

impl Refusal {
    fn of(param: &'static str, message: String) -> Self {
        Self { param: Some(param), message }
    }

    pub(super) fn into_response(self) -> Response {
        let code = if self.param.is_some() { "bad_value" } else { "bad_body" };
        problem(StatusCode::BAD_REQUEST, code, self.param, &self.message)
    }
}

impl Spoken {
    /// Reads a body.
    ///
    /// # Errors
    /// The first value that is not to be had, with those that are.
    pub(super) fn parse(
        body: &[u8],
        settings: &Speech,
        catalogue: &Catalogue,
    ) -> Result<Self, Refusal> {
        let malformed = |message: String| Refusal { param: None, message };
        let body = std::str::from_utf8(body).map_err(|e| malformed(e.to_string()))?;
        let asked = serde_json::from_str::<Asked>(&mend_surrogates(body));
        let asked = asked.map_err(|e| malformed(e.to_string()))?;
        check_speed(asked.speed)?;
        Ok(Self {
            text: text(asked.input, settings.max_input_chars)?,
            speaker: speaker(asked.model.as_deref(), asked.voice, settings, catalogue)?,
            model: asked.model,
            format: format(asked.response_format.as_deref().unwrap_or(DEFAULT_FORMAT))?,
            framing: framing(asked.stream_format.as_deref())?,
            options: text_options(&asked.text, None, TextOptions::default(), &catalogue.lexicons)
                .map_err(|refused| Refusal::of(refused.field, refused.reason))?,
        })
    }
}

fn text(input: Option<String>, chars_max: usize) -> Result<String, Refusal> {
    let refuse = |message| Refusal::of("input", message);
    let input = input.ok_or_else(|| refuse("input is missing".to_owned()))?;
    let chars = input.chars().count();
    if !(1..=chars_max).contains(&chars) {
        let message = format!("input has {chars} characters, 1 to {chars_max} are allowed");
        return Err(refuse(message));
    }
    Ok(input)
}

/// Never another format than the one asked for, not even for a client that only took the default.
fn format(name: &str) -> Result<FileFormat, Refusal> {
    FileFormat::named(name).ok_or_else(|| {
        let names: Vec<&str> = FileFormat::ALL.iter().map(|f| f.name()).collect();
        let message = format!(
            "response_format {name:?} is not available; available are {}",
            names.join(", ")
        );
        Refusal::of("response_format", message)
    })
}

fn framing(name: Option<&str>) -> Result<Framing, Refusal> {
    match name {
        None | Some("audio") => Ok(Framing::Audio),
        Some("sse") => Ok(Framing::Events),
        Some(other) => {
            let message = format!("stream_format {other:?} is not one of audio, sse");
            Err(Refusal::of("stream_format", message))
        }
    }
}

fn check_speed(speed: Option<f64>) -> Result<(), Refusal> {
    match speed {
        Some(speed) if !(0.25..=4.0).contains(&speed) => {
            Err(Refusal::of("speed", format!("speed {speed} is not within 0.25 to 4")))
        }
        Some(speed) if speed != 1.0 => {
            tracing::info!(speed, "the models have no speed: spoken at their own");
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The model that is named, if it answers, or the only kind there is; else a voice.
fn speaker(
    asked: Option<&str>,
    voice_name: Option<VoiceName>,
    settings: &Speech,
    catalogue: &Catalogue,
) -> Result<Speaker, Refusal> {
    let mut models = catalogue.models.iter().filter(|m| m.answers);
    let named = models.clone().find(|m| Some(m.id.as_str()) == asked);
    let only = || models.next().filter(|_| catalogue.voices.is_empty());
    let Some(model) = named.or_else(only) else {
        return Ok(Speaker::Voice(voice(voice_name, settings, catalogue)?));
    };
    let (VoiceName::Name(name) | VoiceName::Object { id: name }) = match voice_name {
        Some(name) => name,
        None => return Ok(Speaker::Model { model: model.id.clone(), voice: None }),
    };
    let mapped = settings.voices.get(&name);
    let voice = [Some(&name), mapped].into_iter().flatten().find(|v| model.voices.contains(v));
    if voice.is_none() && !Speech::is_foreign(&name) {
        let known = model.voices.join(", ");
        return Err(Refusal::of("voice", format!("voice {name:?} is not one of {known}")));
    }
    Ok(Speaker::Model { model: model.id.clone(), voice: voice.cloned() })
}

/// A voice of ours, or what a foreign name stands for.
fn voice(
    asked: Option<VoiceName>,
    settings: &Speech,
    catalogue: &Catalogue,
) -> Result<String, Refusal> {
    let is_known = |id: &str| catalogue.voices.iter().any(|v| v.voice_id == id);
    let name = match asked {
        None => return Ok(catalogue.default_voice.clone()),
        Some(VoiceName::Name(name) | VoiceName::Object { id: name }) => name,
    };
    let mapped = settings.voices.get(&name);
    let refuse = |what: String| {
        let known: Vec<&str> = catalogue.voices.iter().map(|v| &*v.voice_id).collect();
        Refusal::of("voice", format!("{what} is not one of {}", known.join(", ")))
    };
    match mapped {
        _ if is_known(&name) => Ok(name),
        Some(id) if is_known(id) => Ok(id.clone()),
        Some(id) => Err(refuse(format!("voice {name:?} stands for {id:?}, which"))),
        None if Speech::is_foreign(&name) => Ok(catalogue.default_voice.clone()),
        None => Err(refuse(format!("voice {name:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Voice;
    use serde_json::{Value, json};

    fn catalogue() -> Catalogue {
        let voice = |id: &str| Voice {
            voice_id: id.into(),
            name: id.into(),
            model: "nano".into(),
            category: "premade",
            languages: Vec::new(),
            styles: Vec::new(),
            owner: None,
        };
        Catalogue {
            voices: vec![voice("ann"), voice("bob")],
            default_voice: "ann".into(),
            ..Catalogue::default()
        }
    }

    fn parse(body: &Value) -> Result<Spoken, Refusal> {
        let voices = [("nova", "bob"), ("old", "gone")].map(|(a, b)| (a.into(), b.into()));
        let settings = Speech { voices: voices.into(), max_input_chars: 20, ..Speech::default() };
        Spoken::parse(body.to_string().as_bytes(), &settings, &catalogue())
    }

    fn with(field: &str, value: Value) -> Value {
        let mut body =
            json!({"model": "gpt-4o-mini-tts", "input": "Hi.", "response_format": "wav"});
        body[field] = value;
        body
    }

    #[test]
    fn what_is_left_out_or_null_is_the_default() {
        let body = json!({"input": "Hi.", "response_format": "wav", "voice": null, "speed": null,
            "stream_format": null, "instructions": "Softly.", "whatever": [1]});
        let wanted = parse(&body).unwrap();
        let expected = Spoken {
            model: None,
            text: "Hi.".into(),
            speaker: Speaker::Voice("ann".into()),
            format: FileFormat::Wav,
            framing: Framing::Audio,
            options: TextOptions::default(),
        };
        assert_eq!(wanted, expected);
    }

    #[test]
    fn a_text_is_read_as_it_is_asked_for() {
        let options = |text: Value| parse(&with("text", text)).map(|spoken| spoken.options);
        let rules = json!({"lexicon": {"nginx": "engine x"}, "locale": "en-GB"});
        let said = engine::text::sanitize("nginx 1/2/2026", &options(rules).unwrap());
        assert_eq!(said, "engine x the first of February twenty twenty-six.");
        let refused = options(json!({"lexicon": [{"pattern": "[", "spoken": ""}]})).unwrap_err();
        assert_eq!(refused.param, Some("text.lexicon"));
        assert!(refused.message.starts_with("entry 0"), "{}", refused.message);
    }

    #[cfg(feature = "mp3")]
    #[test]
    fn who_names_no_format_gets_mp3() {
        assert_eq!(parse(&json!({"input": "Hi."})).unwrap().format, FileFormat::Mp3);
    }

    #[cfg(not(feature = "mp3"))]
    #[test]
    fn without_the_encoder_mp3_is_refused_by_name_also_as_the_default() {
        for asked in [with("response_format", json!("mp3")), json!({"input": "Hi."})] {
            let refused = parse(&asked).unwrap_err();
            assert!(refused.message.contains("\"mp3\" is not available"), "{}", refused.message);
        }
    }

    #[test]
    fn names_of_voices_are_ours_or_stand_for_ours() {
        for (asked, voice) in [
            (json!("bob"), "bob"),
            (json!({"id": "bob"}), "bob"),
            (json!("nova"), "bob"),
            (json!("alloy"), "ann"),
        ] {
            let speaker = parse(&with("voice", asked)).unwrap().speaker;
            assert_eq!(speaker, Speaker::Voice(voice.into()));
        }
        for name in ["ash", "marin", "verse"] {
            assert!(parse(&with("voice", json!(name))).is_ok(), "{name}");
        }
        let refused = parse(&with("voice", json!("eve"))).unwrap_err();
        assert_eq!(refused.message, "voice \"eve\" is not one of ann, bob");
        assert!(parse(&with("voice", json!("old"))).unwrap_err().message.contains("\"gone\""));
    }

    #[test]
    fn a_model_that_answers_speaks_when_it_is_named_or_alone() {
        use crate::protocol::Model;
        let model = Model {
            id: "bag".into(),
            answers: true,
            voices: vec!["eve".into()],
            ..Model::default()
        };
        let both = Catalogue { models: vec![model.clone()], ..catalogue() };
        let alone = Catalogue { models: vec![model], ..Catalogue::default() };
        let settings =
            Speech { voices: [("nova".into(), "eve".into())].into(), ..Speech::default() };
        let speaker = |catalogue: &Catalogue, model: &str, voice: &str| {
            let body =
                json!({"model": model, "input": "Hi.", "voice": voice, "response_format": "wav"});
            Spoken::parse(body.to_string().as_bytes(), &settings, catalogue).map(|s| s.speaker)
        };
        let bag = |voice: Option<&str>| {
            Ok(Speaker::Model { model: "bag".into(), voice: voice.map(str::to_owned) })
        };
        assert_eq!(speaker(&both, "bag", "alloy"), bag(None));
        assert_eq!(speaker(&both, "bag", "nova"), bag(Some("eve")));
        assert_eq!(speaker(&both, "tts-1", "bob"), Ok(Speaker::Voice("bob".into())));
        assert_eq!(speaker(&alone, "tts-1", "eve"), bag(Some("eve")));
        assert!(speaker(&both, "bag", "bob").unwrap_err().message.contains("not one of eve"));
    }

    #[test]
    fn what_is_not_to_be_had_is_told_by_name_with_what_is() {
        for (field, value, says) in [
            ("response_format", json!("aac"), "opus, flac, wav, pcm"),
            ("stream_format", json!("ws"), "audio, sse"),
            ("speed", json!(5), "0.25 to 4"),
            ("input", json!(""), "1 to 20"),
            ("input", json!("a".repeat(21)), "21 characters"),
            ("input", json!(null), "missing"),
        ] {
            let refused = parse(&with(field, value)).unwrap_err();
            assert_eq!(refused.param, Some(field));
            assert!(refused.message.contains(says), "{}", refused.message);
        }
        assert_eq!(parse(&with("input", json!(3))).unwrap_err().param, None);
    }

    #[test]
    fn the_longest_text_and_a_speed_without_effect_are_taken() {
        assert!(parse(&with("input", json!("é".repeat(20)))).is_ok());
        assert!(parse(&with("speed", json!(1.5))).is_ok());
    }

    #[test]
    fn half_a_character_does_not_spoil_the_rest() {
        let body = br#"{"input": "a\ud83d b", "response_format": "wav"}"#;
        let wanted = Spoken::parse(body, &Speech::default(), &catalogue()).unwrap();
        assert_eq!(wanted.text, "a\u{fffd} b");
    }
}
