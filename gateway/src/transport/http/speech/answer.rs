//! Sound on its way to the client, as the body itself or in events; a tenth of a second at a time, however much comes at once.
//!
//! ```text
//! data: {"type":"speech.audio.delta","audio":"<base64>"}
//! data: {"type":"speech.audio.done","usage":{"input_tokens":12,"output_tokens":13,"total_tokens":25}}
//! ```
//!
//! Tokens of the input are characters, those of the output the codec's frames of 80 ms.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{Event, Events, Pcm, Summary};
use futures_util::stream;
use serde_json::{Value, json};

use super::request::Framing;
use crate::access::Access;
use crate::audio::ENGINE_RATE;
use crate::container::{FileError, FileFormat, FileWriter};
use crate::server::next;
use crate::sessions::Admission;
use crate::transport::http::problem;

/// Sound of one piece: 100 ms. A larger one would keep a listener waiting for its end.
const PIECE_SAMPLES: usize = ENGINE_RATE as usize / 10;
/// Samples of one frame of codes.
const FRAME_SAMPLES: u64 = 1_920;

/// Waits for the first sound, so that a failure before it has a status of its own; then streams.
pub(super) async fn answer(
    events: Events,
    format: FileFormat,
    framing: Framing,
    admission: Admission,
    access: Access,
) -> Response {
    let failed =
        |message: &str| problem(StatusCode::INTERNAL_SERVER_ERROR, "engine_failed", None, message);
    let first = loop {
        match next(&events).await {
            Some(Event::Failed(failure)) => return failed(&failure.to_string()),
            Some(event @ (Event::Audio { .. } | Event::Done(_))) => break event,
            Some(_) => {}
            None => return failed("the engine stopped"),
        }
    };
    let writer = match FileWriter::new(format) {
        Ok(writer) => writer,
        Err(error) => return failed(&error.to_string()),
    };
    let content_type = match framing {
        Framing::Audio => format.content_type(),
        Framing::Events => "text/event-stream",
    };
    // Until the last byte is out.
    access.outcome("gone");
    let speech = Speech {
        events,
        first: Some(first),
        sound: Pcm::default(),
        at: 0,
        writer: Some(writer),
        framing,
        ending: None,
        access,
        _admission: admission,
    };
    let body = Body::from_stream(stream::try_unfold(speech, Speech::advance));
    ([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-store")], body)
        .into_response()
}

/// An answer under way. Dropping it, as a client's leaving does, cancels the context.
struct Speech {
    events: Events,
    /// What was read before the answer began.
    first: Option<Event>,
    /// Sound that came at once, and how much of it is encoded.
    sound: Pcm,
    at: usize,
    /// None once the file is complete.
    writer: Option<FileWriter>,
    framing: Framing,
    /// The last event, while it waits for its turn.
    ending: Option<Ending>,
    access: Access,
    _admission: Admission,
}

enum Ending {
    Done(Summary),
    /// The client was told why; what is left is to break the transfer.
    Broken(BodyError),
}

/// Why a body ends before its time; the client sees a broken transfer, never a short file that looks whole.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error(transparent)]
    Failed(#[from] engine::Failure),
    #[error("the engine stopped")]
    Stopped,
    #[error(transparent)]
    File(#[from] FileError),
}

impl Speech {
    async fn advance(mut self) -> Result<Option<(Bytes, Self)>, BodyError> {
        match self.ending.take() {
            Some(Ending::Done(summary)) => {
                let bytes = event(&done(&summary));
                return Ok(Some((bytes, self)));
            }
            Some(Ending::Broken(error)) => return Err(error),
            None => {}
        }
        match self.next_bytes().await {
            Ok(bytes) => Ok(bytes.map(|bytes| (self.framed(bytes), self))),
            Err(error) if self.framing == Framing::Events => {
                let message = error.to_string();
                self.ending = Some(Ending::Broken(error));
                Ok(Some((event(&broken(&message)), self)))
            }
            Err(error) => Err(error),
        }
    }

    /// The next bytes of the file, at least one; none after its end.
    async fn next_bytes(&mut self) -> Result<Option<Vec<u8>>, BodyError> {
        while let Some(writer) = &mut self.writer {
            if self.at < self.sound.len() {
                let end = self.sound.len().min(self.at + PIECE_SAMPLES);
                let bytes = match &self.sound {
                    Pcm::Samples(samples) => writer.write(&samples[self.at..end])?,
                    Pcm::Silence(_) => writer.write(&vec![0.0; end - self.at])?,
                };
                self.at = end;
                if !bytes.is_empty() {
                    return Ok(Some(bytes));
                }
                continue;
            }
            let event = match self.first.take() {
                Some(event) => Some(event),
                None => next(&self.events).await,
            };
            match event {
                Some(Event::Audio { samples, .. }) => {
                    self.access.sound(sounding(samples.len()));
                    (self.sound, self.at) = (samples, 0);
                }
                Some(Event::Done(summary)) => return self.finish(summary),
                Some(Event::Failed(failure)) => {
                    self.access.outcome("failed");
                    return Err(failure.into());
                }
                Some(Event::Cancelled(_)) | None => return Err(BodyError::Stopped),
                Some(_) => {}
            }
        }
        Ok(None)
    }

    fn finish(&mut self, summary: Summary) -> Result<Option<Vec<u8>>, BodyError> {
        let Some(writer) = self.writer.take() else { return Ok(None) };
        self.access.outcome("done");
        if self.framing == Framing::Events {
            self.ending = Some(Ending::Done(summary));
        }
        Ok(Some(writer.finish()?))
    }

    fn framed(&self, bytes: Vec<u8>) -> Bytes {
        match self.framing {
            Framing::Audio => bytes.into(),
            // What came last may have nothing left to say.
            Framing::Events if bytes.is_empty() => Bytes::new(),
            Framing::Events => {
                event(&json!({"type": "speech.audio.delta", "audio": STANDARD.encode(bytes)}))
            }
        }
    }
}

/// How long so many samples sound.
fn sounding(samples: usize) -> Duration {
    Duration::from_secs_f64(samples as f64 / f64::from(ENGINE_RATE))
}

fn event(data: &Value) -> Bytes {
    format!("data: {data}\n\n").into()
}

fn done(summary: &Summary) -> Value {
    let input = summary.text_chars as u64;
    let output = summary.samples.div_ceil(FRAME_SAMPLES);
    let usage =
        json!({"input_tokens": input, "output_tokens": output, "total_tokens": input + output});
    json!({"type": "speech.audio.done", "usage": usage})
}

fn broken(message: &str) -> Value {
    let error =
        json!({"message": message, "type": "server_error", "param": null, "code": "engine_failed"});
    json!({"type": "error", "error": error})
}
