//! LiveKit Inference's WebSocket, `GET /tts?model=provider/model`: one stream of speech, a turn after the other.
//!
//! ```text
//! session.create                         -> session.created
//! input_transcript, input_transcript ..  -> output_audio, output_alignment ..
//! session.flush                          -> .. done          the next input_transcript begins another turn
//! ```
//!
//! There is no barge-in: clients close the socket.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::contexts::Contexts;
use super::names::Names;
use super::whole::Word;
use super::{Dialect, Greeting, Step, Unwelcome, parameter, pcm_format, seed, start, text_frame};
use crate::error::Code;
use crate::protocol::event::{ErrorEvent, Options, ServerEvent};
use crate::protocol::{Format, Frame, SoundFrame, payload};

/// All turns have this name: each is spoken behind the one before.
const TURN: &str = "";

/// LiveKit Inference's protocol for one connection.
pub(crate) struct LiveKit {
    session_id: String,
    names: Names,
    turns: Contexts<()>,
    /// What `session.create` asked for, or what the address did.
    asked: Asked,
    format: Format,
    seed: Option<u64>,
}

/// A message as it comes. What is not here has no meaning for the models.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    r#type: String,
    sample_rate: Option<Rate>,
    encoding: Option<String>,
    transcript: Option<String>,
    generation_config: Option<Asked>,
    extra: Option<Extra>,
    #[serde(flatten)]
    asked: Asked,
}

/// Who is to speak, and in which language.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Asked {
    model: Option<String>,
    voice: Option<String>,
    language: Option<String>,
}

/// Clients write it as text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Rate {
    Number(u32),
    Text(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Extra {
    speed: Option<Value>,
}

impl LiveKit {
    /// For a new connection.
    ///
    /// # Errors
    /// None: what a client asks for stands in its messages.
    pub(crate) fn make(greeting: &Greeting<'_>) -> Result<Box<dyn Dialect>, Unwelcome> {
        let model = parameter(greeting.query, "model");
        Ok(Box::new(Self {
            session_id: greeting.setup.session_id.clone(),
            names: Names::new(greeting),
            turns: Contexts::default(),
            asked: Asked { model, ..Asked::default() },
            format: pcm_format(None, None).map_err(Unwelcome)?,
            seed: seed(greeting.query),
        }))
    }

    fn create(&mut self, message: Message) -> Step {
        match format(message.encoding.as_deref(), message.sample_rate.as_ref()) {
            Ok(format) => self.format = format,
            Err(reason) => return Step::Reply(self.error(Code::UnsupportedAudio, &reason)),
        }
        self.asked = message.asked.over(&self.asked);
        let created = json!({"type": "session.created", "session_id": self.session_id});
        Step::Reply(text_frame(&created))
    }

    fn transcribe(&mut self, message: Message) -> Vec<Step> {
        let (mut steps, asked) = (Vec::new(), message.generation_config.unwrap_or_default());
        let speed = message.extra.and_then(|extra| extra.speed?.as_f64());
        if self.turns.open_of(TURN).is_none() {
            steps.push(self.begin(&asked, speed));
        }
        if let (Some(turn), Some(text)) = (self.turns.open_of(TURN), message.transcript) {
            steps.push(turn.sentence(text));
        }
        steps
    }

    /// Begins a turn.
    fn begin(&mut self, asked: &Asked, speed: Option<f64>) -> Step {
        let asked = asked.clone().over(&self.asked);
        // Some models are one voice.
        let model = asked.model.as_deref();
        let listed = self.names.listed(model);
        let options = Options {
            model: if listed.is_none() { self.names.model(model) } else { None },
            voice: self.names.voice(asked.voice.or(listed).as_deref()),
            language: asked.language.filter(|language| !language.is_empty()),
            speed: speed.map(|speed| speed as f32),
            ..Options::default()
        };
        self.turns.open(Some(TURN.to_owned()), self.format, options, ()).1
    }

    fn end(&mut self) -> Vec<Step> {
        // The end of a turn without text, unless it is one that comes twice.
        let mut steps = Vec::new();
        if self.turns.open_of(TURN).is_none() && !self.turns.speaks(TURN) {
            steps.push(self.begin(&Asked::default(), None));
        }
        steps.extend(self.turns.open_of(TURN).map(super::contexts::Context::end));
        steps
    }

    fn error(&self, code: Code, reason: &str) -> Frame {
        text_frame(&json!({
            "type": "error", "session_id": self.session_id, "code": code.name(), "message": reason,
        }))
    }

    fn done(&self) -> Frame {
        text_frame(&json!({"type": "done", "session_id": self.session_id}))
    }

    /// Whoever waits for the end of a turn gets it, also when that goes wrong.
    fn told(&mut self, error: &ErrorEvent) -> Vec<Frame> {
        let told = self.error(error.code, &error.message);
        let Some(ctx) = &error.ctx else { return vec![told] };
        match (self.turns.remove(ctx), error.code) {
            (None, _) => Vec::new(),
            // All of its text was spoken; it only lacked its end.
            (Some(_), Code::CtxIdle) => vec![self.done()],
            (Some(_), _) => vec![told, self.done()],
        }
    }
}

impl Dialect for LiveKit {
    fn greet(&mut self) -> Vec<Step> {
        vec![start(self.seed)]
    }

    fn hear(&mut self, message: &str, _now: Duration) -> Vec<Step> {
        let read: Message = match serde_json::from_str(message) {
            Ok(read) => read,
            Err(error) => return vec![Step::Malformed(error.to_string())],
        };
        match &*read.r#type {
            "session.create" => vec![self.create(read)],
            "input_transcript" => self.transcribe(read),
            "session.flush" => self.end(),
            "" => vec![Step::Malformed("a message has a type".to_owned())],
            // A newer client is not a broken one.
            _ => Vec::new(),
        }
    }

    fn say(&mut self, event: ServerEvent, _now: Duration) -> Vec<Frame> {
        match event {
            ServerEvent::Opened(opened) => {
                self.turns.opened(&opened);
                Vec::new()
            }
            ServerEvent::Commit(commit) => {
                let Some(turn) = self.turns.of(&commit.ctx) else { return Vec::new() };
                let words = turn.words(&commit);
                // Tenths of a millisecond: what is finer is noise.
                let round = |seconds: f64| (seconds * 1e4).round() / 1e4;
                let word = |word: &Word| {
                    let (start, end) = (round(word.start_s), round(word.end_s));
                    json!({"word": word.text, "start": start, "end": end})
                };
                let words: Vec<Value> = words.iter().map(word).collect();
                if words.is_empty() {
                    return Vec::new();
                }
                vec![text_frame(&json!({
                    "type": "output_alignment", "session_id": self.session_id, "words": words,
                }))]
            }
            ServerEvent::Done(end) => {
                self.turns.remove(&end.ctx).map(|_| self.done()).into_iter().collect()
            }
            ServerEvent::Cancelled(end) => {
                self.turns.remove(&end.ctx).map(|_| self.done()).into_iter().collect()
            }
            ServerEvent::Error(error) => self.told(&error),
            _ => Vec::new(),
        }
    }

    fn sound(&mut self, sound: &SoundFrame, _now: Duration) -> Vec<Frame> {
        if self.turns.of_handle(sound.handle).is_none() {
            return Vec::new();
        }
        let audio = STANDARD.encode(payload(&sound.bytes));
        let session_id = &self.session_id;
        vec![text_frame(&json!({"type": "output_audio", "session_id": session_id, "audio": audio}))]
    }
}

impl Asked {
    /// Each field of this one that is there, else of `base`.
    fn over(self, base: &Self) -> Self {
        Self {
            model: self.model.or_else(|| base.model.clone()),
            voice: self.voice.or_else(|| base.voice.clone()),
            language: self.language.or_else(|| base.language.clone()),
        }
    }
}

/// # Errors
/// A sentence that names the field and what is allowed.
fn format(encoding: Option<&str>, rate: Option<&Rate>) -> Result<Format, String> {
    let codec = match encoding {
        None | Some("pcm_s16le") => "pcm_s16le",
        Some(other) => return Err(format!("encoding {other:?} is not pcm_s16le")),
    };
    let rate = match rate {
        None => None,
        Some(Rate::Number(rate)) => Some(*rate),
        Some(Rate::Text(text)) => {
            let rate = text.trim().parse();
            Some(rate.map_err(|_| format!("sample_rate {text:?} is not a number"))?)
        }
    };
    pcm_format(Some(codec), rate).map_err(|reason| reason.replace("audio.", ""))
}

#[cfg(test)]
mod tests {
    use super::super::rig::{PACKET, Rig};
    use super::*;
    use crate::config::Gateway;
    use crate::protocol::Input;
    use engine::{Event, Failure, Speech};

    fn created(more: &Value) -> Rig {
        let mut rig = Rig::new(LiveKit::make);
        let mut create = json!({
            "type": "session.create", "sample_rate": "24000", "encoding": "pcm_s16le",
            "model": "cartesia/sonic-3", "voice": "71a7ad14", "language": "en", "extra": {},
            "connection": {"timeout": 10, "retries": 3},
        });
        create.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rig.send(&create);
        rig
    }

    fn say(rig: &mut Rig, transcript: &str) {
        let config = json!({"voice": null, "model": "cartesia/sonic-3", "language": "en"});
        rig.send(&json!({"type": "input_transcript", "transcript": transcript,
            "generation_config": config, "extra": {"max_buffer_delay_ms": 1}}));
    }

    fn flush(rig: &mut Rig) {
        rig.send(&json!({"type": "session.flush"}));
    }

    fn types(heard: &[Value]) -> Vec<&str> {
        heard.iter().map(|m| m["type"].as_str().unwrap()).collect()
    }

    #[test]
    fn a_turn_is_sound_words_and_an_end_and_another_follows() {
        let mut rig = created(&json!({}));
        assert_eq!(rig.heard(), [json!({"type": "session.created", "session_id": "s"})]);
        say(&mut rig, "Hello there. ");
        say(&mut rig, "Go on. ");
        flush(&mut rig);
        flush(&mut rig);
        assert_eq!(rig.text(1), "Hello there. Go on. ");
        assert_eq!(rig.told(1), ["open", "end"]);
        rig.engine(1, Event::Chunk { text: "Hello there. Go on.".into(), raw: 0..19 });
        let said = Speech { text: String::new(), codes: Vec::new() }.into();
        rig.engine(1, Event::ChunkEnd { said, raw: 0..19, end: 4_800 });
        rig.speak(1, 0, 10, true);
        rig.done(1, 4_800);
        let heard = rig.heard();
        assert!(heard.iter().all(|m| m["session_id"] == "s"));
        assert_eq!(types(&heard), ["output_audio", "output_audio", "output_alignment", "done"]);
        let sound = STANDARD.decode(heard[0]["audio"].as_str().unwrap()).unwrap();
        assert_eq!(sound, PACKET.repeat(5));
        let words = heard[2]["words"].as_array().unwrap();
        let texts: Vec<&str> = words.iter().map(|w| w["word"].as_str().unwrap()).collect();
        assert_eq!(texts, ["Hello", "there.", "Go", "on."]);
        assert_eq!((&words[0]["start"], words[3]["end"].as_f64()), (&json!(0.0), Some(0.2)));
        say(&mut rig, "Next turn.");
        assert_eq!((rig.text(2).as_str(), rig.told(2)), ("Next turn.", vec!["open"]));
    }

    #[test]
    fn a_turn_that_is_still_being_spoken_comes_to_its_end_first() {
        let mut rig = created(&json!({}));
        for text in ["First.", "Second."] {
            say(&mut rig, text);
            flush(&mut rig);
        }
        rig.heard();
        rig.speak(2, 0, 5, true);
        rig.done(2, 2_400);
        assert!(rig.heard().is_empty());
        rig.speak(1, 0, 5, true);
        rig.done(1, 2_400);
        assert_eq!(types(&rig.heard()), ["output_audio", "done", "output_audio", "done"]);
    }

    #[test]
    fn a_turn_without_text_ends_all_the_same() {
        let mut rig = created(&json!({}));
        rig.heard();
        flush(&mut rig);
        rig.done(1, 0);
        assert_eq!(types(&rig.heard()), ["done"]);
    }

    #[test]
    fn the_rate_is_text_or_a_number_and_other_encodings_are_refused() {
        for (rate, expected) in [(json!("16000"), 16_000), (json!(48_000), 48_000)] {
            let mut rig = created(&json!({"sample_rate": rate}));
            say(&mut rig, "Hi.");
            assert_eq!(rig.opened(1).1.sample_rate, expected);
        }
        for (more, says) in [
            (json!({"encoding": "opus"}), "pcm_s16le"),
            (json!({"sample_rate": "fast"}), "not a number"),
            (json!({"sample_rate": 12}), "sample_rate 12 is not one of 8000"),
        ] {
            let heard = created(&more).heard();
            assert_eq!(types(&heard), ["error"]);
            assert!(heard[0]["message"].as_str().unwrap().contains(says), "{}", heard[0]);
        }
    }

    #[test]
    fn voices_stand_in_the_table_or_are_the_default() {
        let mut config = Gateway::default();
        config.speech.voices.insert("71a7ad14".into(), "bob".into());
        config.speech.voices.insert("vendor/only-bob".into(), "bob".into());
        let voice = |model: &str, voice: Value| {
            let mut rig = Rig::with(LiveKit::make, &config);
            rig.send(&json!({"type": "session.create", "model": model, "voice": voice}));
            rig.send(&json!({"type": "input_transcript", "transcript": "Hi."}));
            rig.opened(1).0.voice.clone()
        };
        let bob = Some("bob".to_owned());
        assert_eq!(voice("cartesia/sonic-3", json!("71a7ad14")), bob);
        assert_eq!(voice("cartesia/sonic-3", json!("someone else")), None);
        assert_eq!(voice("cartesia/sonic-3", Value::Null), None);
        assert_eq!(voice("vendor/only-bob", Value::Null), bob);
    }

    #[test]
    fn who_waits_for_an_end_gets_it_when_something_goes_wrong() {
        let mut rig = created(&json!({}));
        rig.heard();
        say(&mut rig, "Hi.");
        rig.engine(1, Event::Failed(Failure::Codec("broken".into())));
        let heard = rig.heard();
        assert_eq!(types(&heard), ["error", "done"]);
        assert_eq!(heard[0]["code"], "engine_failed");
        say(&mut rig, "Again.");
        assert_eq!(rig.text(2), "Again.");
        rig.sleep(Duration::from_secs(121));
        assert_eq!(types(&rig.heard()), ["done"]);
    }

    #[test]
    fn types_that_are_not_known_are_ignored_and_nonsense_is_told() {
        let mut rig = created(&json!({}));
        rig.heard();
        rig.send(&json!({"type": "session.sing", "loud": true}));
        assert!(rig.heard().is_empty());
        for odd in ["", "null", "{}", "[]", "{\"type\":7}"] {
            rig.input(Input::Message(odd.to_owned()));
            assert_eq!(types(&rig.heard()), ["error"], "{odd}");
        }
        assert_eq!(rig.close, None);
    }
}
