//! Deepgram's WebSocket, `GET /v1/speak`: text in JSON, sound in binary frames that say nothing of themselves.
//!
//! ```text
//! {"type":"Metadata",..}                    the server's first word
//! {"type":"Speak","text":"Hello "}          text, often a word at a time; opens a turn if there is none
//! {"type":"Flush"}                          no more text of this turn: Flushed follows its sound
//! {"type":"Clear"}                          stop: Cleared follows, and no sound of before
//! {"type":"Close"}                          stop, and the end
//! ```

mod whole;

pub(crate) use self::whole::problem;

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::contexts::Contexts;
use super::names::Names;
use super::{Dialect, Format, Greeting, Step, Unwelcome, parameter, pcm_format, seed, text_frame};
use crate::error::Code;
use crate::protocol::event::{
    ClientEvent, EndSession, ErrorEvent, Options, ServerEvent, Start, TextRules,
};
use crate::protocol::{Asked, Frame, SoundFrame, payload};

/// Turns have no names: they are spoken one behind the other.
const TURN: &str = "";
/// Close code and reason behind an error that all further turns would run into.
const POLICY: (u16, &str) = (1_008, "DATA-0000");

/// Deepgram's protocol for one connection.
pub(crate) struct Deepgram {
    turns: Contexts<()>,
    voice: Option<String>,
    format: Format,
    speed: Option<f32>,
    seed: Option<u64>,
    model: String,
    request_id: String,
    /// Number of the next `Flushed` or `Cleared`.
    sequence: u64,
}

/// A message as it comes.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
enum Message {
    Speak {
        text: String,
    },
    Flush,
    Clear,
    Close,
    #[serde(other)]
    Unknown,
}

impl Deepgram {
    /// For a new connection.
    ///
    /// # Errors
    /// A format that is not to be had.
    pub(crate) fn make(greeting: &Greeting<'_>) -> Result<Box<dyn Dialect>, Unwelcome> {
        let query = |name: &str| parameter(greeting.query, name);
        let model = query("model").unwrap_or_default();
        let names = Names::new(greeting);
        Ok(Box::new(Self {
            turns: Contexts::default(),
            voice: names.voice(Some(&model)),
            format: format(query("encoding").as_deref(), query("sample_rate").as_deref())
                .map_err(Unwelcome)?,
            speed: query("speed").and_then(|speed| speed.parse().ok()),
            seed: seed(greeting.query),
            model,
            request_id: greeting.setup.session_id.clone(),
            sequence: 0,
        }))
    }

    /// Steps that open a turn if none takes text.
    fn open(&mut self) -> Vec<Step> {
        if self.turns.open_of(TURN).is_some() {
            return Vec::new();
        }
        let options = Options {
            voice: self.voice.clone(),
            speed: self.speed,
            seed: self.seed,
            text: TextRules { inline_words: true, ..TextRules::default() },
            ..Options::default()
        };
        vec![self.turns.open(Some(TURN.to_owned()), self.format, options, ()).1]
    }

    fn speak(&mut self, text: String) -> Vec<Step> {
        let mut steps = self.open();
        steps.extend(self.turns.open_of(TURN).map(|turn| turn.text(text)));
        steps
    }

    /// A turn without text is one all the same: its end comes in its place.
    fn flush(&mut self) -> Vec<Step> {
        let mut steps = self.open();
        steps.extend(self.turns.open_of(TURN).map(|turn| turn.end()));
        steps
    }

    fn ended(&mut self, name: &str) -> Frame {
        let message = json!({"type": name, "sequence_id": self.sequence});
        self.sequence += 1;
        text_frame(&message)
    }

    /// A turn is over, unless it was over for the client before.
    fn finished(&mut self, ctx: &str) -> Option<Frame> {
        self.turns.remove(ctx).map(|_| self.ended("Flushed"))
    }

    fn told(&mut self, error: &ErrorEvent) -> Vec<Frame> {
        let code = error.code.name();
        let Some(ctx) = &error.ctx else {
            // What ends the session is told by its close.
            return if error.fatal { Vec::new() } else { vec![warning(code, &error.message)] };
        };
        let Some(flushed) = self.finished(ctx) else { return Vec::new() };
        let mut frames = Vec::new();
        // All of an abandoned turn was spoken; it only lacked its end.
        if error.code != Code::CtxIdle {
            let told = json!({
                "type": "Error", "description": error.message, "err_msg": error.message,
                "code": code, "request_id": self.request_id,
            });
            frames.push(text_frame(&told));
        }
        frames.push(match error.code {
            // What is wrong with the address is wrong with every turn: a client that sends words would hear of each.
            Code::UnknownVoice | Code::BadOption => {
                Frame::Close { code: POLICY.0, reason: POLICY.1 }
            }
            _ => flushed,
        });
        frames
    }
}

impl Dialect for Deepgram {
    fn greet(&mut self) -> Vec<Step> {
        let audio = Asked { codec: Some("pcm_s16le".to_owned()), ..Asked::default() };
        let timestamps = Some("none".to_owned());
        let start = Start { audio, timestamps, ..Start::default() };
        let metadata = json!({
            "type": "Metadata", "request_id": self.request_id, "model_name": self.model,
            "model_version": env!("CARGO_PKG_VERSION"), "model_uuid": self.request_id,
        });
        vec![Step::Say(ClientEvent::Start(Box::new(start))), Step::Reply(text_frame(&metadata))]
    }

    fn hear(&mut self, message: &str, _now: Duration) -> Vec<Step> {
        match serde_json::from_str(message) {
            Ok(Message::Speak { text }) => self.speak(text),
            Ok(Message::Flush) => self.flush(),
            Ok(Message::Clear) => {
                let mut steps = self.turns.stop(TURN);
                let cleared = self.ended("Cleared");
                steps.push(Step::Reply(cleared));
                steps
            }
            Ok(Message::Close) => {
                let mut steps = self.turns.stop(TURN);
                steps.push(Step::Say(ClientEvent::EndSession(EndSession { drain: false })));
                steps
            }
            Ok(Message::Unknown) => {
                let reason = "type is not one of Speak, Flush, Clear, Close";
                vec![Step::Reply(warning(Code::BadMessage.name(), reason))]
            }
            Err(error) => vec![Step::Malformed(error.to_string())],
        }
    }

    fn say(&mut self, event: ServerEvent, _now: Duration) -> Vec<Frame> {
        match event {
            ServerEvent::Opened(opened) => self.turns.opened(&opened),
            ServerEvent::Done(end) => return self.finished(&end.ctx).into_iter().collect(),
            // Not by the client's wish: then it would not be known here any more.
            ServerEvent::Cancelled(end) => return self.finished(&end.ctx).into_iter().collect(),
            ServerEvent::Error(error) => return self.told(&error),
            _ => {}
        }
        Vec::new()
    }

    fn sound(&mut self, sound: &SoundFrame, _now: Duration) -> Vec<Frame> {
        let is_wanted = self.turns.of_handle(sound.handle).is_some();
        is_wanted.then(|| Frame::Audio(payload(&sound.bytes))).into_iter().collect()
    }
}

/// Something that ends nothing; with the name that its text had before, too.
fn warning(code: &str, reason: &str) -> Frame {
    let warning =
        json!({"type": "Warning", "description": reason, "warn_msg": reason, "code": code});
    text_frame(&warning)
}

/// # Errors
/// A sentence that names the parameter and what is allowed.
fn format(encoding: Option<&str>, sample_rate: Option<&str>) -> Result<Format, String> {
    let codec = match encoding {
        None | Some("linear16") => "pcm_s16le",
        Some("mulaw") => "mulaw",
        Some("alaw") => "alaw",
        Some(other) => {
            return Err(format!("encoding {other:?} is not one of linear16, mulaw, alaw"));
        }
    };
    let rate = sample_rate.map(str::parse).transpose();
    let rate = rate.map_err(|_| "sample_rate is not a number of Hz".to_owned())?;
    pcm_format(Some(codec), rate).map_err(|reason| reason.replace("audio.", ""))
}

#[cfg(test)]
mod tests {
    use super::super::rig::{PACKET, Rig};
    use super::*;
    use crate::config::Gateway;
    use crate::protocol::{Codec, Input};
    use serde_json::Value;

    fn rig(query: &str) -> Rig {
        Rig::at(Deepgram::make, query, &Gateway::default())
    }

    fn speak(rig: &mut Rig, text: &str) {
        rig.send(&json!({"type": "Speak", "text": text}));
    }

    fn say(rig: &mut Rig, kind: &str) {
        rig.send(&json!({"type": kind}));
    }

    fn types(heard: &[Value]) -> Vec<&str> {
        heard.iter().map(|m| m["type"].as_str().unwrap()).collect()
    }

    #[test]
    fn a_turn_of_words_is_sound_and_an_end() {
        let mut rig = rig("model=aura-2-helena-en&encoding=linear16&sample_rate=24000");
        let metadata = rig.heard().remove(0);
        assert_eq!(
            (&metadata["type"], &metadata["model_name"]),
            (&json!("Metadata"), &json!("aura-2-helena-en"))
        );
        for word in ["I ", "am ", "here. "] {
            speak(&mut rig, word);
        }
        // Nothing is said of single words.
        assert_eq!((rig.text(1).as_str(), rig.told(1)), ("I am here. ", vec!["open"]));
        say(&mut rig, "Flush");
        assert_eq!(rig.told(1), ["open", "end"]);
        rig.speak(1, 0, 7, true);
        rig.done(1, 7 * 480);
        let sound: Vec<u8> = rig.sound.iter().flat_map(|bytes| bytes.to_vec()).collect();
        assert_eq!(sound, PACKET.repeat(7), "samples and nothing else");
        assert!(rig.sound.iter().all(|bytes| bytes.len() <= 5 * PACKET.len()));
        let heard = rig.heard();
        assert_eq!((types(&heard), &heard[0]["sequence_id"]), (vec!["Flushed"], &json!(0)));
    }

    #[test]
    fn a_word_with_a_pronunciation_is_read_as_the_word() {
        let mut rig = rig("");
        let text = r#"Take {"word": "dupilumab", "pronounce": "duːˈpɪljuːmæb"} now."#;
        speak(&mut rig, text);
        let options = &rig.opened(1).0.options;
        assert_eq!(engine::text::sanitize(text, options), "Take dupilumab now.");
    }

    #[test]
    fn no_sound_of_before_follows_cleared() {
        let mut rig = rig("");
        rig.heard();
        speak(&mut rig, "A long story. ");
        say(&mut rig, "Flush");
        rig.speak(1, 0, 5, false);
        assert_eq!(rig.sound.len(), 1);
        say(&mut rig, "Clear");
        rig.speak(1, 5, 5, false);
        assert_eq!((types(&rig.heard()), rig.sound.len()), (vec!["Cleared"], 1));
        assert_eq!(rig.told(1), ["open", "end", "cancel"]);
        speak(&mut rig, "Anew. ");
        say(&mut rig, "Flush");
        rig.speak(2, 0, 5, true);
        rig.done(2, 2_400);
        let heard = rig.heard();
        assert_eq!((types(&heard), &heard[0]["sequence_id"]), (vec!["Flushed"], &json!(1)));
        assert_eq!(rig.sound.len(), 2);
    }

    #[test]
    fn turns_come_in_order_and_an_empty_one_ends_too() {
        let mut rig = rig("");
        rig.heard();
        speak(&mut rig, "First. ");
        say(&mut rig, "Flush");
        say(&mut rig, "Flush");
        rig.done(2, 0);
        assert!(rig.heard().is_empty(), "the first is still spoken");
        rig.speak(1, 0, 5, true);
        rig.done(1, 2_400);
        assert_eq!(types(&rig.heard()), ["Flushed", "Flushed"]);
    }

    #[test]
    fn close_is_the_end_at_once() {
        let mut rig = rig("");
        speak(&mut rig, "A long story. ");
        say(&mut rig, "Flush");
        rig.speak(1, 0, 5, false);
        say(&mut rig, "Close");
        assert_eq!((rig.close, rig.told(1)), (Some(1_000), vec!["open", "end", "cancel"]));
    }

    #[test]
    fn a_failure_is_told_and_ended() {
        let mut rig = rig("");
        rig.heard();
        rig.refuse = Some(engine::Error::Busy { commands: 1 });
        speak(&mut rig, "Hello. ");
        let heard = rig.heard();
        assert_eq!(types(&heard), ["Error", "Flushed"]);
        assert_eq!(heard[0]["code"], "overloaded");
        rig.input(Input::Message("{\"type\":\"Listen\"}".into()));
        assert_eq!((types(&rig.heard()), rig.close), (vec!["Warning"], None));
    }

    #[test]
    fn a_voice_that_is_not_there_is_told_once_and_closes() {
        let mut config = Gateway::default();
        config.foreign.takes_unknown_voices = false;
        let mut rig = Rig::at(Deepgram::make, "model=carl", &config);
        rig.heard();
        for word in ["I ", "am ", "here. "] {
            speak(&mut rig, word);
        }
        say(&mut rig, "Flush");
        let heard = rig.heard();
        assert_eq!((types(&heard), rig.close), (vec!["Error"], Some(1_008)));
        assert_eq!(heard[0]["code"], "unknown_voice");
        assert!(heard[0]["description"].as_str().unwrap().contains("carl"), "{heard:?}");
    }

    #[test]
    fn formats_are_those_asked_for_or_refused_by_name() {
        for (query, codec, rate) in [
            ("", Codec::PcmS16le, 24_000),
            ("encoding=mulaw", Codec::Mulaw, 8_000),
            ("encoding=alaw&sample_rate=16000", Codec::Alaw, 16_000),
            ("encoding=linear16&sample_rate=48000", Codec::PcmS16le, 48_000),
        ] {
            let mut rig = rig(query);
            speak(&mut rig, "Hi.");
            let (_, format) = rig.opened(1);
            assert_eq!((format.codec, format.sample_rate), (codec, rate));
        }
        for (encoding, rate, says) in [
            (Some("mp3"), None, "linear16"),
            (None, Some("11025"), "sample_rate 11025"),
            (None, Some("x"), "Hz"),
        ] {
            assert!(format(encoding, rate).unwrap_err().contains(says));
        }
    }
}
