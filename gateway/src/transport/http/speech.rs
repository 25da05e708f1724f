//! `POST /v1/audio/speech`: a text in, sound out as it is made, as OpenAI's clients have it.
//!
//! ```text
//! wav   header of unknown length, then 16-bit samples      pcm   the samples alone, 24 kHz
//! opus  Ogg pages, each as soon as it holds something
//! ```
//!
//! A client that leaves drops the body, and with it the context.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{Extension, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use codecs::ogg::{OggError, OggHead, OggWriter};
use codecs::opus::{Encoder, EncoderConfig, OpusError};
use codecs::pcm;
use codecs::wav::{self, SampleFormat};
use engine::{Event, Events, Request};
use futures_util::stream;
use serde::Deserialize;

use super::problem;
use crate::audio::ENGINE_RATE;
use crate::auth::Caller;
use crate::server::{Server, next};
use crate::sessions::Admission;
use crate::transport::http::gate::too_many;

/// Longest text, as OpenAI has it.
const INPUT_CHARS_MAX: usize = 4_096;
/// Voices that OpenAI's clients insist on; each is the bundle's default voice.
const FOREIGN_VOICES: [&str; 13] = [
    "alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage",
    "shimmer", "verse",
];
const FORMATS: &str = "wav, pcm, opus";
/// What every file says of itself.
const LABEL: &str = "Synthetic speech, made by Dovecote";

#[derive(Debug, Deserialize)]
struct Asked {
    input: String,
    voice: Option<VoiceName>,
    response_format: Option<String>,
    stream_format: Option<String>,
    speed: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum VoiceName {
    Name(String),
    Object { id: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Wav,
    Pcm,
    Opus,
}

impl Format {
    fn content_type(self) -> &'static str {
        match self {
            Self::Wav => "audio/wav",
            Self::Pcm => "audio/pcm",
            Self::Opus => "audio/ogg",
        }
    }
}

/// Answers with sound.
pub(crate) async fn speak(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => {
            return problem(rejection.status(), "bad_body", None, &rejection.body_text());
        }
    };
    let asked = match serde_json::from_slice::<Asked>(&body) {
        Ok(asked) => asked,
        Err(error) => {
            return problem(StatusCode::BAD_REQUEST, "bad_body", None, &error.to_string());
        }
    };
    let (format, voice) = match check(&asked, &server) {
        Ok(checked) => checked,
        Err(Refusal { param, message }) => {
            return problem(StatusCode::BAD_REQUEST, "bad_value", Some(param), &message);
        }
    };
    let admission = match server.admit(&caller) {
        Ok(admission) => admission,
        Err(refused) => return refused.into_response(),
    };
    if let Err(over) = caller.allowance.chars(asked.input.chars().count(), server.since_start()) {
        return too_many(&over);
    }
    let request = Request { voice: Some(voice), ..Request::whole(asked.input) };
    match server.engine.open(request) {
        Ok((_, events)) => answer(events, format, admission).await,
        Err(error @ engine::Error::Option { .. }) => {
            problem(StatusCode::BAD_REQUEST, "bad_value", None, &error.to_string())
        }
        Err(error) => {
            problem(StatusCode::SERVICE_UNAVAILABLE, "overloaded", None, &error.to_string())
        }
    }
}

struct Refusal {
    param: &'static str,
    message: String,
}

fn check(asked: &Asked, server: &Server) -> Result<(Format, String), Refusal> {
    let refuse = |param, message: String| Err(Refusal { param, message });
    let format = match asked.response_format.as_deref().unwrap_or("mp3") {
        "wav" => Format::Wav,
        "pcm" => Format::Pcm,
        "opus" => Format::Opus,
        // Never another format than the one asked for, not even for a client that only took the default.
        other => {
            return refuse(
                "response_format",
                format!("response_format {other:?} is not available; available are {FORMATS}"),
            );
        }
    };
    let chars = asked.input.chars().count();
    if !(1..=INPUT_CHARS_MAX).contains(&chars) {
        return refuse(
            "input",
            format!("input has {chars} characters, 1 to {INPUT_CHARS_MAX} are allowed"),
        );
    }
    if asked.stream_format.as_deref().is_some_and(|f| f != "audio") {
        return refuse("stream_format", "stream_format: only \"audio\" is available".to_owned());
    }
    match asked.speed {
        Some(speed) if !(0.25..=4.0).contains(&speed) => {
            return refuse("speed", format!("speed {speed} is not within 0.25 to 4"));
        }
        Some(speed) if speed != 1.0 => tracing::info!("speed {speed} has no effect"),
        _ => {}
    }
    let catalogue = &server.catalogue;
    let voice = match &asked.voice {
        None => catalogue.default_voice.clone(),
        Some(VoiceName::Name(name) | VoiceName::Object { id: name }) => {
            if catalogue.voices.iter().any(|v| v.voice_id == *name) {
                name.clone()
            } else if FOREIGN_VOICES.contains(&name.as_str()) {
                catalogue.default_voice.clone()
            } else {
                let known: Vec<&str> = catalogue.voices.iter().map(|v| &*v.voice_id).collect();
                return refuse(
                    "voice",
                    format!("voice {name:?} is not one of {}", known.join(", ")),
                );
            }
        }
    };
    Ok((format, voice))
}

/// Waits for the first sound, so that a failure before it has a status of its own; then streams.
async fn answer(events: Events, format: Format, admission: Admission) -> Response {
    let first = loop {
        match next(&events).await {
            Some(Event::Failed(failure)) => {
                let message = failure.to_string();
                return problem(StatusCode::INTERNAL_SERVER_ERROR, "engine_failed", None, &message);
            }
            Some(event @ (Event::Audio { .. } | Event::Done(_))) => break event,
            Some(_) => {}
            None => {
                let message = "the engine stopped";
                return problem(StatusCode::INTERNAL_SERVER_ERROR, "engine_failed", None, message);
            }
        }
    };
    let writer = match Writer::new(format) {
        Ok(writer) => writer,
        Err(error) => {
            let message = error.to_string();
            return problem(StatusCode::INTERNAL_SERVER_ERROR, "internal", None, &message);
        }
    };
    let speech = Speech { events, first: Some(first), writer: Some(writer), _admission: admission };
    let body = Body::from_stream(stream::try_unfold(speech, Speech::advance));
    ([(header::CONTENT_TYPE, format.content_type())], body).into_response()
}

/// An answer under way.
struct Speech {
    events: Events,
    /// What was read before the answer began.
    first: Option<Event>,
    /// None once the last byte is out.
    writer: Option<Writer>,
    _admission: Admission,
}

/// Why a body ends before its time; the client sees a broken transfer, never a short file that looks whole.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error(transparent)]
    Failed(#[from] engine::Failure),
    #[error("the engine stopped")]
    Stopped,
    #[error(transparent)]
    Opus(#[from] OpusError),
    #[error(transparent)]
    Ogg(#[from] OggError),
}

impl Speech {
    async fn advance(mut self) -> Result<Option<(Bytes, Self)>, BodyError> {
        let Some(mut writer) = self.writer.take() else { return Ok(None) };
        loop {
            let event = match self.first.take() {
                Some(event) => Some(event),
                None => next(&self.events).await,
            };
            let bytes = match event {
                Some(Event::Audio { samples, .. }) => {
                    let bytes = writer.write(&samples)?;
                    self.writer = Some(writer);
                    bytes
                }
                Some(Event::Done(_)) => writer.finish()?,
                Some(Event::Failed(failure)) => return Err(failure.into()),
                Some(Event::Cancelled(_)) | None => return Err(BodyError::Stopped),
                Some(_) => continue,
            };
            return Ok(Some((bytes.into(), self)));
        }
    }
}

/// Samples to the bytes of a file.
enum Writer {
    /// What stands before the first sample, until it is out.
    Plain {
        header: Vec<u8>,
    },
    Ogg {
        encoder: Box<Encoder>,
        pages: OggWriter<Vec<u8>>,
    },
}

impl Writer {
    fn new(format: Format) -> Result<Self, BodyError> {
        Ok(match format {
            Format::Pcm => Self::Plain { header: Vec::new() },
            Format::Wav => {
                let info = [(*b"ICMT", LABEL)];
                Self::Plain { header: wav::header(ENGINE_RATE, SampleFormat::I16, &info, None) }
            }
            Format::Opus => {
                let encoder = Encoder::new(&EncoderConfig::default())?;
                let head = OggHead { pre_skip: encoder.pre_skip(), input_rate: ENGINE_RATE };
                let pages = OggWriter::new(Vec::new(), 1, head, &[("COMMENT", LABEL)])?;
                Self::Ogg { encoder: Box::new(encoder), pages }
            }
        })
    }

    fn write(&mut self, samples: &[f32]) -> Result<Vec<u8>, BodyError> {
        match self {
            Self::Plain { header } => {
                let mut bytes = std::mem::take(header);
                pcm::extend_i16_le(&mut bytes, samples);
                Ok(bytes)
            }
            Self::Ogg { encoder, pages } => {
                for packet in encoder.push(samples)? {
                    pages.packet(packet)?;
                }
                pages.flush()?;
                Ok(std::mem::take(pages.sink_mut()))
            }
        }
    }

    fn finish(self) -> Result<Vec<u8>, BodyError> {
        match self {
            Self::Plain { header } => Ok(header),
            Self::Ogg { mut encoder, pages } => Ok(pages.finish(encoder.finish()?)?),
        }
    }
}
