//! ElevenLabs' requests with a whole text, below `POST /v1/text-to-speech/{voice}`.
//!
//! ```text
//! ""  /stream                 a file
//! /with-timestamps            one object with the file in base64 and when its characters sound
//! /stream/with-timestamps     an object a line: {"audio_base64":"..","alignment":{..}|null}
//! ```
//!
//! Times are seconds from the start.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use engine::text::TextOptions;
use engine::{Request, Summary};
use serde::Deserialize;
use serde_json::{Value, json};

use super::asked::{DEFAULT_FORMAT, Sound, voice_in};
use super::{DICTIONARIES, ElevenLabs, Locator, VoiceSettings, dictionaries};
use crate::error::Code;
use crate::foreign::names::Names;
use crate::foreign::parameter;
use crate::foreign::whole::{Asking, Framing, Refused, Timing, Whole, Word, text};
use crate::protocol::Codec;
use crate::shape::{Samples, Shape};

/// The body as it comes. What is not here has no meaning for the models.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Body {
    text: Option<String>,
    model_id: Option<String>,
    language_code: Option<String>,
    seed: Option<u64>,
    apply_text_normalization: Option<String>,
    voice_settings: Option<VoiceSettings>,
    pronunciation_dictionary_locators: Option<Vec<Locator>>,
}

impl ElevenLabs {
    /// Reads a request for a file.
    ///
    /// # Errors
    /// What cannot be spoken.
    pub(crate) fn file(asking: &Asking<'_>) -> Result<Whole, Refused> {
        whole(asking, None)
    }

    /// Reads a request for a file and the times of its characters.
    ///
    /// # Errors
    /// What cannot be spoken.
    pub(crate) fn timed_file(asking: &Asking<'_>) -> Result<Whole, Refused> {
        whole(asking, Some(Box::<Object>::default()))
    }

    /// Reads a request for pieces of a file, with the times of its characters.
    ///
    /// # Errors
    /// What cannot be spoken.
    pub(crate) fn timed_pieces(asking: &Asking<'_>) -> Result<Whole, Refused> {
        whole(asking, Some(Box::<Lines>::default()))
    }
}

fn whole(asking: &Asking<'_>, framing: Option<Box<dyn Framing>>) -> Result<Whole, Refused> {
    let body: Body = asking.json().map_err(|reason| refused(Code::BadMessage, &reason))?;
    let bad = |reason: String| refused(Code::BadOption, &reason);
    let format = parameter(asking.query, "output_format");
    let shape = shape(format.as_deref().unwrap_or(DEFAULT_FORMAT)).map_err(bad)?;
    let text = text("text", body.text, asking.config).map_err(bad)?;
    let rules = TextOptions::default();
    let verbalize = rules.verbalize && body.apply_text_normalization.as_deref() != Some("off");
    let locators = dictionaries(body.pronunciation_dictionary_locators.as_ref());
    let lexicon = asking.catalogue.lexicons.named(&locators.unwrap_or_default());
    let lexicon = lexicon.map_err(|reason| bad(format!("{DICTIONARIES}: {reason}")))?;
    let names = Names::of(asking.config, asking.catalogue);
    let request = Request {
        model: names.model(body.model_id.as_deref()),
        voice: names.voice(voice_in(asking.path).as_deref()),
        language: body.language_code,
        seed: body.seed.unwrap_or_default(),
        options: TextOptions { verbalize, lexicon, ..rules },
        ..Request::whole(text)
    };
    let speed = body.voice_settings.and_then(|settings| settings.speed);
    let ignored = speed.filter(|speed| *speed != 1.0).map(|_| "voice_settings.speed");
    Ok(Whole { request, shape, framing, ignored: ignored.into_iter().collect() })
}

/// A format as [`Sound::named`] has it, or 16-bit samples in a WAV.
///
/// # Errors
/// A sentence that names what there is.
fn shape(name: &str) -> Result<Shape, String> {
    let wav = name.strip_prefix("wav_").map(|rate| format!("pcm_{rate}"));
    let in_wav = wav.is_some();
    let sound = Sound::named(wav.as_deref().unwrap_or(name))
        .map_err(|reason| format!("{reason}, or wav_ with a rate of pcm_"))?;
    Ok(match sound.file {
        Some(encoding) => Shape::Encoded(encoding),
        None => {
            let (codec, sample_rate) = (sound.samples.codec, sound.samples.sample_rate);
            debug_assert!(!in_wav || codec == Codec::PcmS16le, "as its name was made");
            Shape::Samples(Samples { codec, sample_rate, in_wav })
        }
    })
}

fn refused(code: Code, reason: &str) -> Refused {
    Refused { status: 400, body: problem(400, code.name(), reason) }
}

/// A refusal over HTTP.
pub(crate) fn problem(_status: u16, code: &str, reason: &str) -> Value {
    json!({"detail": {"status": code, "message": reason}})
}

/// When characters sound.
#[derive(Debug, Default)]
struct Characters {
    texts: Vec<String>,
    starts: Vec<f64>,
    ends: Vec<f64>,
}

impl Characters {
    fn learn(&mut self, characters: &[Word]) {
        // Tenths of a millisecond: what is finer is noise.
        let round = |seconds: f64| (seconds * 1e4).round() / 1e4;
        for character in characters {
            self.texts.push(character.text.clone());
            self.starts.push(round(character.start_s));
            self.ends.push(round(character.end_s));
        }
    }

    /// Those since the last call; null for none.
    fn take(&mut self) -> Value {
        let Self { texts, starts, ends } = std::mem::take(self);
        if texts.is_empty() {
            return Value::Null;
        }
        json!({
            "characters": texts,
            "character_start_times_seconds": starts, "character_end_times_seconds": ends,
        })
    }
}

fn object(sound: &str, alignment: &Value) -> Value {
    json!({"audio_base64": sound, "alignment": alignment, "normalized_alignment": alignment})
}

fn broken(message: &str) -> Value {
    problem(500, Code::EngineFailed.name(), message)
}

/// All in one object, when all is there.
#[derive(Default)]
struct Object {
    bytes: Vec<u8>,
    characters: Characters,
}

impl Framing for Object {
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    fn timing(&self) -> Timing {
        Timing::Characters
    }

    fn sound(&mut self, bytes: &[u8]) -> Bytes {
        self.bytes.extend_from_slice(bytes);
        Bytes::new()
    }

    fn words(&mut self, characters: &[Word]) -> Bytes {
        self.characters.learn(characters);
        Bytes::new()
    }

    fn done(&mut self, _summary: &Summary) -> Bytes {
        object(&STANDARD.encode(&self.bytes), &self.characters.take()).to_string().into()
    }

    fn broken(&mut self, message: &str) -> Bytes {
        broken(message).to_string().into()
    }
}

/// An object a line. Characters go with the next piece of sound, and the last of them alone.
#[derive(Default)]
struct Lines {
    characters: Characters,
}

impl Lines {
    fn line(&mut self, bytes: &[u8]) -> Bytes {
        format!("{}\n", object(&STANDARD.encode(bytes), &self.characters.take())).into()
    }
}

impl Framing for Lines {
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    fn timing(&self) -> Timing {
        Timing::Characters
    }

    fn sound(&mut self, bytes: &[u8]) -> Bytes {
        self.line(bytes)
    }

    fn words(&mut self, characters: &[Word]) -> Bytes {
        self.characters.learn(characters);
        Bytes::new()
    }

    fn done(&mut self, _summary: &Summary) -> Bytes {
        if self.characters.texts.is_empty() { Bytes::new() } else { self.line(&[]) }
    }

    fn broken(&mut self, message: &str) -> Bytes {
        format!("{}\n", broken(message)).into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Gateway;
    use crate::foreign::whole::Read;
    use crate::protocol::Catalogue;

    fn asked(read: Read, query: &str, body: &Value) -> Result<Whole, Refused> {
        let (config, catalogue) = (Gateway::default(), Arc::new(Catalogue::default()));
        let body = body.to_string();
        let path = "/v1/text-to-speech/x/stream";
        read(&Asking { path, query, body: body.as_bytes(), config: &config, catalogue: &catalogue })
    }

    fn letter(text: &str, start_s: f64) -> Word {
        Word { text: text.into(), start_s, end_s: start_s + 0.05 }
    }

    #[test]
    fn a_file_has_the_format_asked_for() {
        let shape = |query: &str| {
            asked(ElevenLabs::file, query, &json!({"text": "Hi."}))
                .map(|whole| whole.shape)
                .unwrap()
        };
        let samples = |sample_rate, in_wav| {
            Shape::Samples(Samples { codec: Codec::PcmS16le, sample_rate, in_wav })
        };
        assert_eq!(shape("output_format=pcm_16000"), samples(16_000, false));
        assert_eq!(shape("output_format=wav_44100"), samples(44_100, true));
        assert_eq!(shape("output_format=opus_48000_32").content_type(), "audio/ogg");
        #[cfg(feature = "mp3")]
        assert_eq!(shape("").content_type(), "audio/mpeg");
    }

    #[test]
    fn what_the_models_can_do_something_with_is_taken() {
        let body = json!({
            "text": "Hi.", "model_id": "eleven_flash_v2_5", "seed": 7, "language_code": "en",
            "apply_text_normalization": "off", "voice_settings": {"stability": 0.5, "speed": 1.1},
            "previous_text": null,
        });
        let Whole { request, ignored, .. } =
            asked(ElevenLabs::file, "output_format=pcm_8000", &body).unwrap();
        assert_eq!((request.seed, request.language.as_deref()), (7, Some("en")));
        assert!(!request.options.verbalize);
        assert_eq!(ignored, ["voice_settings.speed"]);
    }

    #[test]
    fn what_is_not_to_be_had_is_told_by_name() {
        for (query, body, says) in [
            ("output_format=aac_1", json!({"text": "Hi."}), "wav_"),
            ("output_format=pcm_8000", json!({"text": ""}), "text has 0 characters"),
            ("output_format=pcm_8000", json!({"text": []}), "invalid type"),
        ] {
            let Err(Refused { status, body }) = asked(ElevenLabs::file, query, &body) else {
                panic!("{says}")
            };
            let message = body["detail"]["message"].as_str().unwrap();
            assert!(status == 400 && message.contains(says), "{body}");
        }
    }

    #[test]
    fn characters_come_with_the_sound() {
        let read = |framing: &mut dyn Framing| {
            let mut all = Vec::new();
            all.extend(framing.sound(b"so"));
            all.extend(framing.words(&[letter("H", 0.0), letter("i", 0.05)]));
            all.extend(framing.sound(b"und"));
            all.extend(framing.words(&[letter(".", 0.1)]));
            all.extend(framing.done(&Summary::default()));
            String::from_utf8(all).unwrap()
        };
        let lines = read(&mut Lines::default());
        let lines: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let sound: Vec<&str> = lines.iter().map(|l| l["audio_base64"].as_str().unwrap()).collect();
        assert_eq!(sound, [STANDARD.encode("so"), STANDARD.encode("und"), String::new()]);
        assert!(lines[0]["alignment"].is_null());
        assert_eq!(lines[1]["alignment"]["characters"], json!(["H", "i"]));
        assert_eq!(lines[2]["alignment"]["character_end_times_seconds"], json!([0.15]));

        let whole: Value = serde_json::from_str(&read(&mut Object::default())).unwrap();
        assert_eq!(whole["audio_base64"], STANDARD.encode("sound"));
        assert_eq!(whole["normalized_alignment"]["characters"], json!(["H", "i", "."]));
    }
}
