//! Deepgram's request with a whole text, `POST /v1/speak`: what it is to be stands in the query, the text in the body.

use codecs::resample::RATES;
use engine::Request;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Deepgram, format};
use crate::container::Encoding;
use crate::error::Code;
use crate::foreign::names::Names;
use crate::foreign::parameter;
use crate::foreign::whole::{Asking, Refused, Whole, text};
use crate::shape::{Samples, Shape};

/// What a request gets that says nothing, and what MP3 is there.
const DEFAULT_ENCODING: &str = "mp3";
#[cfg(feature = "mp3")]
const MP3: (u32, u32) = (22_050, 48_000);
/// Bits a second of Opus.
const OPUS_BITRATE: u32 = 32_000;
/// Rate of FLAC, in Hz.
const FLAC_RATE: u32 = 24_000;

#[derive(Debug, Deserialize)]
struct Body {
    text: Option<String>,
}

impl Deepgram {
    /// Reads a request for a file.
    ///
    /// # Errors
    /// What cannot be spoken.
    pub(crate) fn file(asking: &Asking<'_>) -> Result<Whole, Refused> {
        let body: Body = asking.json().map_err(|reason| refused(Code::BadMessage, &reason))?;
        let bad = |reason: String| refused(Code::BadOption, &reason);
        let query = |name: &str| parameter(asking.query, name);
        let shape = shape(&query).map_err(bad)?;
        let text = text("text", body.text, asking.config).map_err(bad)?;
        let names = Names::of(asking.config, asking.catalogue);
        let mut request =
            Request { voice: names.voice(query("model").as_deref()), ..Request::whole(text) };
        request.options.inline_words = true;
        let speed = query("speed").filter(|speed| speed.parse() != Ok(1.0)).map(|_| "speed");
        Ok(Whole { request, shape, framing: None, ignored: speed.into_iter().collect() })
    }
}

/// # Errors
/// A sentence that names the parameter and what is allowed.
fn shape(query: &dyn Fn(&str) -> Option<String>) -> Result<Shape, String> {
    let (encoding, container) = (query("encoding"), query("container"));
    let number = |name: &str| -> Result<Option<u32>, String> {
        let value = query(name).map(|value| value.parse()).transpose();
        value.map_err(|_| format!("{name} is not a number"))
    };
    let container = container.as_deref();
    let misfit = |container: &str, known: &str| {
        Err(format!("container {container:?} is not one of {known} for this encoding"))
    };
    match encoding.as_deref().unwrap_or(DEFAULT_ENCODING) {
        #[cfg(feature = "mp3")]
        "mp3" => match container {
            None | Some("none") => {
                let bitrate = number("bit_rate")?.unwrap_or(MP3.1);
                Ok(Shape::Encoded(Encoding::Mp3 { sample_rate: MP3.0, bitrate }))
            }
            Some(other) => misfit(other, "none"),
        },
        "opus" => match container {
            None | Some("ogg") => {
                let bitrate = number("bit_rate")?.unwrap_or(OPUS_BITRATE);
                Ok(Shape::Encoded(Encoding::Opus { bitrate }))
            }
            Some(other) => misfit(other, "ogg"),
        },
        "flac" => match container {
            None | Some("none") => {
                let sample_rate = number("sample_rate")?.unwrap_or(FLAC_RATE);
                if !RATES.contains(&sample_rate) {
                    return Err(format!("sample_rate {sample_rate} is not one of {RATES:?}"));
                }
                Ok(Shape::Encoded(Encoding::Flac { sample_rate }))
            }
            Some(other) => misfit(other, "none"),
        },
        plain @ ("linear16" | "mulaw" | "alaw") => {
            let format = format(Some(plain), query("sample_rate").as_deref())?;
            let (codec, sample_rate) = (format.codec, format.sample_rate);
            let in_wav = match container {
                None | Some("wav") => true,
                Some("none") => false,
                Some(other) => return misfit(other, "wav, none"),
            };
            Ok(Shape::Samples(Samples { codec, sample_rate, in_wav }))
        }
        other => {
            let mp3 = if cfg!(feature = "mp3") { ", mp3" } else { "" };
            let known = format!("linear16, mulaw, alaw, opus, flac{mp3}");
            Err(format!("encoding {other:?} is not one of {known}"))
        }
    }
}

fn refused(code: Code, reason: &str) -> Refused {
    Refused { status: 400, body: problem(400, code.name(), reason) }
}

/// A refusal over HTTP.
pub(crate) fn problem(_status: u16, code: &str, reason: &str) -> Value {
    json!({"err_code": code, "err_msg": reason})
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Gateway;
    use crate::protocol::{Catalogue, Codec};

    fn asked(query: &str, body: &str) -> Result<Whole, Refused> {
        let (config, catalogue) = (Gateway::default(), Arc::new(Catalogue::default()));
        let body = body.as_bytes();
        let path = "/v1/speak";
        Deepgram::file(&Asking { path, query, body, config: &config, catalogue: &catalogue })
    }

    #[test]
    fn a_file_has_the_format_asked_for() {
        let shape = |query: &str| asked(query, r#"{"text":"Hi."}"#).map(|w| w.shape).unwrap();
        let samples =
            |codec, sample_rate, in_wav| Shape::Samples(Samples { codec, sample_rate, in_wav });
        assert_eq!(shape("encoding=linear16"), samples(Codec::PcmS16le, 24_000, true));
        let bare = "encoding=linear16&container=none&sample_rate=16000";
        assert_eq!(shape(bare), samples(Codec::PcmS16le, 16_000, false));
        assert_eq!(shape("encoding=mulaw"), samples(Codec::Mulaw, 8_000, true));
        let bare = "encoding=alaw&container=none&sample_rate=16000";
        assert_eq!(shape(bare), samples(Codec::Alaw, 16_000, false));
        let flac = |sample_rate| Shape::Encoded(Encoding::Flac { sample_rate });
        assert_eq!(shape("encoding=flac"), flac(24_000));
        assert_eq!(shape("encoding=flac&sample_rate=48000"), flac(48_000));
        assert_eq!(shape("encoding=opus&container=ogg").content_type(), "audio/ogg");
        assert_eq!(shape("encoding=flac").content_type(), "audio/flac");
        #[cfg(feature = "mp3")]
        assert_eq!(shape("model=aura-2-thalia-en").content_type(), "audio/mpeg");
    }

    #[test]
    fn what_is_not_to_be_had_is_told_by_name() {
        let hi = r#"{"text":"Hi."}"#;
        for (query, body, says) in [
            ("encoding=aac", hi, "linear16, mulaw, alaw, opus, flac"),
            ("encoding=linear16&container=ogg", hi, "wav, none"),
            ("encoding=flac&container=ogg", hi, "none"),
            ("encoding=flac&sample_rate=11025", hi, "8000, 16000"),
            ("encoding=opus&bit_rate=x", hi, "bit_rate is not a number"),
            ("encoding=linear16", r#"{"text":""}"#, "text has 0 characters"),
            ("encoding=linear16", "[", "EOF"),
        ] {
            let Err(Refused { status, body }) = asked(query, body) else { panic!("{says}") };
            assert!(status == 400 && body["err_msg"].as_str().unwrap().contains(says), "{body}");
        }
        let quick = asked("encoding=linear16&speed=1.2", hi).unwrap();
        assert_eq!(quick.ignored, ["speed"]);
    }
}
