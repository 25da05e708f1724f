//! Cartesia's requests with a whole text: `POST /tts/bytes`, a file, and `POST /tts/sse`, the messages of the WebSocket as
//! server-sent events.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use engine::{Request, Summary};
use serde_json::{Value, json};

use super::asked::{Message, OutputFormat, format, samples};
use super::{Cartesia, DICTIONARY, fault, messages};
use crate::error::Code;
use crate::foreign::names::Names;
use crate::foreign::whole::{Asking, Framing, Refused, Timing, Whole, Word, server_sent, text};
use crate::shape::{Samples, Shape};

/// What MP3 is at Cartesia's, unless the request says otherwise.
#[cfg(feature = "mp3")]
const MP3: (u32, u32) = (44_100, 128_000);

impl Cartesia {
    /// Reads a request for a file.
    ///
    /// # Errors
    /// What cannot be spoken.
    pub(crate) fn bytes(asking: &Asking<'_>) -> Result<Whole, Refused> {
        let message = read(asking)?;
        let shape = shape(message.output_format.as_ref()).map_err(|reason| refused(&reason))?;
        whole(asking, message, shape, None)
    }

    /// Reads a request for events.
    ///
    /// # Errors
    /// What cannot be spoken.
    pub(crate) fn events(asking: &Asking<'_>) -> Result<Whole, Refused> {
        let message = read(asking)?;
        let format = format(message.output_format.as_ref()).map_err(|reason| refused(&reason))?;
        let (codec, sample_rate) = (format.codec, format.sample_rate);
        let shape = Shape::Samples(Samples { codec, sample_rate, in_wav: false });
        let framing = Events {
            context_id: message.context_id.clone(),
            wants_words: message.add_timestamps == Some(true),
            now: Duration::ZERO,
            sounded: Duration::ZERO,
        };
        whole(asking, message, shape, Some(Box::new(framing)))
    }
}

fn read(asking: &Asking<'_>) -> Result<Message, Refused> {
    asking.json().map_err(|reason| refused(&reason))
}

fn refused(reason: &str) -> Refused {
    Refused { status: 400, body: fault(400, Code::BadOption.name(), reason) }
}

fn whole(
    asking: &Asking<'_>,
    message: Message,
    shape: Shape,
    framing: Option<Box<dyn Framing>>,
) -> Result<Whole, Refused> {
    let names = Names::of(asking.config, asking.catalogue);
    let voice = message.voice().map_err(|reason| refused(&reason))?;
    let voice = names.voice(voice);
    let model = names.model(message.model_id.as_deref());
    let dictionaries = message.dictionaries().unwrap_or_default();
    let lexicon = asking.catalogue.lexicons.named(&dictionaries);
    let lexicon = lexicon.map_err(|reason| refused(&format!("{DICTIONARY}: {reason}")))?;
    let text = text("transcript", message.transcript, asking.config);
    let speed = message.generation_config.and_then(|config| config.speed);
    let mut request = Request {
        model,
        voice,
        language: message.language,
        ..Request::whole(text.map_err(|reason| refused(&reason))?)
    };
    request.options.lexicon = lexicon;
    let ignored = speed.filter(|speed| *speed != 1.0).map(|_| "generation_config.speed");
    Ok(Whole { request, shape, framing, ignored: ignored.into_iter().collect() })
}

/// # Errors
/// A sentence that names the field and what is allowed.
fn shape(asked: Option<&OutputFormat>) -> Result<Shape, String> {
    let none = OutputFormat::default();
    let asked = asked.unwrap_or(&none);
    let in_wav = match asked.container.as_deref() {
        None | Some("raw") => false,
        Some("wav") => true,
        #[cfg(feature = "mp3")]
        Some("mp3") => {
            let sample_rate = asked.sample_rate.unwrap_or(MP3.0);
            let bitrate = asked.bit_rate.unwrap_or(MP3.1);
            return Ok(Shape::Encoded(crate::container::Encoding::Mp3 { sample_rate, bitrate }));
        }
        Some(other) => {
            let mp3 = if cfg!(feature = "mp3") { ", mp3" } else { "" };
            let known = format!("raw, wav{mp3}");
            return Err(format!("output_format.container {other:?} is not one of {known}"));
        }
    };
    let format = samples(asked)?;
    let (codec, sample_rate) = (format.codec, format.sample_rate);
    Ok(Shape::Samples(Samples { codec, sample_rate, in_wav }))
}

/// The messages of the WebSocket as events.
struct Events {
    context_id: Option<String>,
    wants_words: bool,
    /// Since the request: now, and when sound was last sent.
    now: Duration,
    sounded: Duration,
}

impl Events {
    fn event(&self, message: &Value) -> Bytes {
        server_sent(message["type"].as_str(), message)
    }

    fn name(&self) -> Option<&str> {
        self.context_id.as_deref()
    }
}

impl Framing for Events {
    fn timing(&self) -> Timing {
        if self.wants_words { Timing::Words } else { Timing::Nothing }
    }

    fn at(&mut self, after: Duration) {
        self.now = after;
    }

    fn sound(&mut self, bytes: &[u8]) -> Bytes {
        let took = self.now.saturating_sub(std::mem::replace(&mut self.sounded, self.now));
        self.event(&messages::chunk(self.name(), &STANDARD.encode(bytes), took))
    }

    fn words(&mut self, words: &[Word]) -> Bytes {
        self.event(&messages::timestamps(self.name(), words))
    }

    fn done(&mut self, _summary: &Summary) -> Bytes {
        self.event(&messages::done(self.name()))
    }

    fn broken(&mut self, message: &str) -> Bytes {
        let mut error = fault(500, Code::EngineFailed.name(), message);
        error["type"] = json!("error");
        error["context_id"] = json!(self.context_id);
        self.event(&error)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Gateway;
    use crate::protocol::{Catalogue, Codec};

    type Read = crate::foreign::whole::Read;

    fn asked(read: Read, body: &Value) -> Result<Whole, Refused> {
        let config = Gateway::default();
        let catalogue = Arc::new(Catalogue::default());
        let body = body.to_string();
        let body = body.as_bytes();
        read(&Asking { path: "", query: "", body, config: &config, catalogue: &catalogue })
    }

    fn body(format: &Value) -> Value {
        json!({"model_id": "sonic-3", "transcript": "Hi.", "voice": {"mode": "id", "id": "x"},
            "language": "en", "output_format": format, "new": null})
    }

    #[test]
    fn a_file_has_the_format_asked_for() {
        let shape = |format: Value| asked(Cartesia::bytes, &body(&format)).map(|w| w.shape);
        let samples =
            |codec, sample_rate, in_wav| Ok(Shape::Samples(Samples { codec, sample_rate, in_wav }));
        let raw = json!({"container": "raw", "encoding": "pcm_f32le", "sample_rate": 44_100});
        assert_eq!(shape(raw), samples(Codec::PcmF32le, 44_100, false));
        let wav = json!({"container": "wav", "encoding": "pcm_s16le", "sample_rate": 16_000});
        assert_eq!(shape(wav), samples(Codec::PcmS16le, 16_000, true));
        let alaw = json!({"container": "wav", "encoding": "pcm_alaw", "sample_rate": 8_000});
        assert_eq!(shape(alaw), samples(Codec::Alaw, 8_000, true));
        let mulaw = json!({"container": "raw", "encoding": "pcm_mulaw", "sample_rate": 8_000});
        assert_eq!(shape(mulaw), samples(Codec::Mulaw, 8_000, false));
        #[cfg(feature = "mp3")]
        {
            let encoding = |sample_rate, bitrate| {
                Ok(Shape::Encoded(crate::container::Encoding::Mp3 { sample_rate, bitrate }))
            };
            assert_eq!(shape(json!({"container": "mp3"})), encoding(44_100, 128_000));
            let small = json!({"container": "mp3", "sample_rate": 22_050, "bit_rate": 32_000});
            assert_eq!(shape(small), encoding(22_050, 32_000));
        }
    }

    #[test]
    fn what_is_not_to_be_had_is_told_by_name() {
        let long = json!({"transcript": "a".repeat(4_097)});
        for (read, body, says) in [
            (Cartesia::bytes as Read, body(&json!({"container": "ogg"})), "raw, wav"),
            (
                Cartesia::events,
                json!({"transcript": "Hi.", "voice": {"mode": "embedding", "embedding": [0.1]}}),
                "POST /v1/voices",
            ),
            (Cartesia::events, body(&json!({"container": "mp3"})), "is not raw"),
            (Cartesia::events, long, "speech.max_input_chars"),
            (Cartesia::bytes, json!({"transcript": ""}), "transcript has 0 characters"),
            (Cartesia::bytes, json!({"transcript": 7}), "invalid type"),
            (
                Cartesia::bytes,
                json!({"transcript": "Hi.", "pronunciation_dict_id": "pd_1"}),
                "pronunciation_dict_id: \"pd_1\" is not there",
            ),
        ] {
            let Err(Refused { status, body }) = asked(read, &body) else { panic!("{says}") };
            assert_eq!((status, &body["status_code"]), (400, &json!(400)));
            assert!(body["message"].as_str().unwrap().contains(says), "{body}");
        }
    }

    #[test]
    fn a_speed_without_effect_is_told() {
        let mut body = body(&Value::Null);
        body["generation_config"] = json!({"speed": 1.2, "emotion": "angry"});
        assert_eq!(asked(Cartesia::bytes, &body).unwrap().ignored, ["generation_config.speed"]);
    }

    #[test]
    fn events_are_the_messages_of_the_socket() {
        let mut body = body(&Value::Null);
        body["add_timestamps"] = json!(true);
        body["context_id"] = json!("a");
        let mut framing = asked(Cartesia::events, &body).unwrap().framing.unwrap();
        assert_eq!(framing.timing(), Timing::Words);
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        framing.at(Duration::from_millis(100));
        framing.sound(b"before");
        framing.at(Duration::from_millis(130));
        let chunk = text(framing.sound(b"sound"));
        let data = chunk.strip_prefix("event: chunk\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data.trim_end()).unwrap();
        assert_eq!((&data["data"], &data["context_id"]), (&json!("c291bmQ="), &json!("a")));
        assert_eq!((&data["step_time"], &data["status_code"]), (&json!(30.0), &json!(206)));
        let word = Word { text: "Hi.".into(), start_s: 0.0, end_s: 0.123_456 };
        assert!(text(framing.words(&[word])).contains(r#""end":[0.1235]"#));
        assert!(text(framing.done(&Summary::default())).starts_with("event: done\n"));
        assert!(text(framing.broken("why")).starts_with("event: error\n"));
    }
}
