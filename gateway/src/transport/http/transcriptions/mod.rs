//! `POST /v1/audio/transcriptions`: what is said in a recording, written down by a speech language model.
//!
//! ```text
//! form --read--> recording --decoded--> samples --engine--> text --Writer--> json, text, subtitles, or events as it is written
//! ```

use std::sync::Arc;

use axum::extract::multipart::MultipartRejection;
use axum::extract::{DefaultBodyLimit, Extension, FromRequest, Multipart, Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use bytes::Bytes;
use codecs::recording::{self, RecordingError};
use engine::answer::{self as asked, Draw, Message, Modality, Part, Role, Task};
use engine::{Event, Summary};

use super::answer::{self, Wanted};
use super::answers::begin;
use super::form::{self, Refusal};
use super::{IGNORED, problem};
use crate::access::Access;
use crate::auth::Caller;
use crate::chat::request::model;
use crate::config;
use crate::container::FileFormat;
use crate::foreign::whole::Framing;
use crate::server::Server;
use crate::shape::{Shape, ShapeWriter};
use crate::transcript::{Format, Span, Transcript, Usage, cues, events};

/// Where it is asked for.
pub(crate) const PATH: &str = "/v1/audio/transcriptions";
/// Longest value of a field that is no file.
const FIELD_CHARS_MAX: usize = 4_000;
/// What a form may have beside its file: names, values, boundaries.
const FORM_BYTES: usize = 64 << 10;

/// The route.
pub(crate) fn route(settings: &config::Chat) -> MethodRouter<Arc<Server>> {
    let bytes_max = settings.max_body_bytes.saturating_add(FORM_BYTES);
    post(transcribe).layer(DefaultBodyLimit::max(bytes_max))
}

/// A form that is complete.
#[derive(Debug, Default)]
struct Form {
    file: Vec<u8>,
    model: Option<String>,
    language: Option<String>,
    format: Format,
    temperature: Option<f32>,
    streams: bool,
    /// Fields that have no effect here.
    ignored: Vec<&'static str>,
}

async fn transcribe(
    State(server): State<Arc<Server>>,
    Extension(access): Extension<Access>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let place = match server.uploads.place(request.headers()) {
        Ok(place) => place,
        Err(full) => return full.into_response(),
    };
    let settings = &server.config.chat;
    let multipart: Result<Multipart, MultipartRejection> =
        Multipart::from_request(request, &()).await;
    let form = match multipart {
        Ok(multipart) => Form::read(multipart, settings.max_body_bytes).await,
        Err(rejection) => {
            return problem(rejection.status(), "bad_body", None, &rejection.body_text());
        }
    };
    let mut form = match form {
        Ok(form) => form,
        Err(refusal) => return refusal.into_response(),
    };
    let catalogue = server.voices.catalogue().seen_by(caller.key());
    let model = match model(form.model.as_deref(), &server.config, &catalogue) {
        Ok(model) => model.id.clone(),
        Err(refusal) => return refusal.into_response(),
    };
    let (file, seconds_max) = (std::mem::take(&mut form.file), settings.max_input_seconds);
    // Seconds of work, for a long one.
    let decoded = tokio::task::spawn_blocking(move || recording::read(&file, seconds_max)).await;
    drop(place);
    let samples = match decoded.expect("decoding does not panic; this is a bug") {
        Ok(samples) => samples,
        Err(error) => return unreadable(&error, seconds_max).into_response(),
    };
    let duration_s = samples.len() as f64 / f64::from(recording::RATE);
    let request = asked::Request {
        model: Some(model),
        task: Task::Transcribe,
        messages: vec![Message { role: Role::User, parts: vec![Part::Audio(samples.into())] }],
        text: Draw { temperature: form.temperature, ..Draw::default() },
        ..asked::Request::new("", &[Modality::Text])
    };
    let (events, admission) = match begin(&server, &caller, &access, 0, request) {
        Ok(begun) => begun,
        Err(none) => return none.into_response(),
    };
    let (streams, ignored) = (form.streams, std::mem::take(&mut form.ignored));
    let mut response = match wanted(&server, form, duration_s) {
        Ok(wanted) if streams => answer::answer(events, wanted, admission, access).await,
        Ok(wanted) => answer::collect(events, wanted, admission, access).await,
        Err(refused) => refused.into_response(),
    };
    if let Ok(names) = HeaderValue::from_str(&ignored.join(", "))
        && !ignored.is_empty()
    {
        response.headers_mut().insert(IGNORED, names);
    }
    response
}

fn wanted(server: &Server, form: Form, duration_s: f64) -> Result<Wanted, Refusal> {
    // There is no sound; the writer writes nothing.
    let writer = ShapeWriter::new(Shape::File(FileFormat::Pcm)).map_err(|error| Refusal {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        ..Refusal::coded("internal", "response_format", error.to_string())
    })?;
    let framing = Box::new(Writer { form, duration_s, text: String::new() });
    let content_type = framing.content_type();
    let (text, metrics) = (String::new(), server.metrics.clone());
    Ok(Wanted { text, writer, content_type, framing: Some(framing), metrics })
}

fn unreadable(error: &RecordingError, seconds_max: f64) -> Refusal {
    match error {
        RecordingError::TooLong(_) => {
            let message = format!("file: more than {seconds_max} s (chat.max_input_seconds)");
            Refusal::coded("too_long", "file", message)
        }
        error => Refusal::coded("cannot_decode", "file", format!("file: {error}")),
    }
}

impl Form {
    /// Reads a form; parts that are not known are passed over.
    ///
    /// # Errors
    /// The first part that is too large or does not fit, or what is missing.
    async fn read(mut multipart: Multipart, file_bytes_max: usize) -> Result<Self, Refusal> {
        let mut read = Self::default();
        let mut has_file = false;
        while let Some(field) = multipart.next_field().await.map_err(|e| form::broken(&e, None))? {
            let Some(name) = field.name().and_then(known) else { continue };
            if name == "file" {
                read.file = form::bytes(field, name, file_bytes_max).await?;
                has_file = true;
                continue;
            }
            let value = form::text(field, name, FIELD_CHARS_MAX).await?;
            read.take(name, value)?;
        }
        if !has_file {
            return Err(Refusal::bad("file", "file is missing"));
        }
        if read.streams && read.format != Format::Json {
            let message = "stream is of json alone; other formats are made at the end";
            return Err(Refusal::bad("response_format", message));
        }
        Ok(read)
    }

    fn take(&mut self, name: &'static str, value: String) -> Result<(), Refusal> {
        match name {
            "model" => self.model = Some(value),
            "language" => self.language = Some(value),
            "response_format" => {
                self.format = Format::named(&value).ok_or_else(|| {
                    let known = Format::NAMES.map(|(name, _)| name).join(", ");
                    Refusal::bad(name, format!("{name} {value:?} is not one of {known}"))
                })?;
            }
            "temperature" => {
                let temperature = value.parse().ok().filter(|t| (0.0..=1.0).contains(t));
                self.temperature = Some(temperature.ok_or_else(|| {
                    Refusal::bad(name, format!("{name} {value:?} is not within 0 to 1"))
                })?);
            }
            "stream" => {
                self.streams = match value.as_str() {
                    "true" | "True" | "1" => true,
                    "false" | "False" | "0" | "" => false,
                    _ => {
                        let message = format!("{name} {value:?} is neither true nor false");
                        return Err(Refusal::bad(name, message));
                    }
                }
            }
            "timestamp_granularities" if value != "segment" => {
                let message = format!("{name} {value:?} is not to be had; segment is");
                return Err(Refusal::bad(name, message));
            }
            "prompt" if !value.is_empty() => self.ignored.push(name),
            _ => {}
        }
        Ok(())
    }
}

/// The name of a part that is looked at.
fn known(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 8] = [
        "file",
        "model",
        "language",
        "prompt",
        "response_format",
        "temperature",
        "stream",
        "timestamp_granularities",
    ];
    let name = name.strip_suffix("[]").unwrap_or(name);
    NAMES.into_iter().find(|known| *known == name)
}

/// Writes down what is heard.
struct Writer {
    form: Form,
    duration_s: f64,
    text: String,
}

impl Framing for Writer {
    fn content_type(&self) -> &'static str {
        if self.form.streams { "text/event-stream" } else { self.form.format.content_type() }
    }

    fn learn(&mut self, event: &Event) -> Bytes {
        let Event::Text { delta } = event else { return Bytes::new() };
        self.text.push_str(delta);
        if self.form.streams { events::delta(delta) } else { Bytes::new() }
    }

    fn sound(&mut self, _bytes: &[u8]) -> Bytes {
        Bytes::new()
    }

    fn done(&mut self, summary: &Summary) -> Bytes {
        let counted = summary.usage.unwrap_or_default();
        let usage = Usage {
            text_tokens: counted.prompt_tokens as u64,
            audio_tokens: counted.prompt_audio_tokens as u64,
            output_tokens: counted.text_tokens as u64,
        };
        let text = std::mem::take(&mut self.text);
        if self.form.streams {
            return events::done(&text, usage);
        }
        let span = Span { start_s: 0.0, end_s: self.duration_s };
        let transcript = Transcript {
            segments: cues::cut(&text, span),
            text: text.trim().to_owned(),
            language: self.form.language.take(),
            duration_s: self.duration_s,
            words: None,
            temperature: self.form.temperature.unwrap_or_default(),
            usage,
        };
        transcript.write(self.form.format).into()
    }

    fn broken(&mut self, message: &str) -> Bytes {
        let error = serde_json::json!({
            "message": message, "type": "server_error", "param": null, "code": "engine_failed",
        });
        let event = serde_json::json!({"type": "error", "error": error});
        if self.form.streams {
            crate::foreign::whole::server_sent(None, &event)
        } else {
            Bytes::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const BOUNDARY: &str = "limit";

    async fn read(parts: &[(&str, &str)]) -> Result<Form, Refusal> {
        let mut body = String::new();
        for (name, value) in parts {
            let file = if *name == "file" { "; filename=\"a.wav\"" } else { "" };
            body.push_str(&format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n"
            ));
        }
        body.push_str(&format!("--{BOUNDARY}--\r\n"));
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = Request::builder().method("POST").header("content-type", kind);
        let request = request.body(body.into()).unwrap();
        Form::read(Multipart::from_request(request, &()).await.unwrap(), 10).await
    }

    #[tokio::test]
    async fn a_form_is_read_as_clients_send_it() {
        let form = read(&[
            ("file", "RIFF"),
            ("model", "bag"),
            ("language", "en"),
            ("prompt", "Names: Ann."),
            ("response_format", "verbose_json"),
            ("temperature", "0.2"),
            ("timestamp_granularities[]", "segment"),
            ("stream", "False"),
            ("include[]", "logprobs"),
        ]);
        let form = form.await.unwrap();
        assert_eq!((form.file.as_slice(), form.model.as_deref()), (&b"RIFF"[..], Some("bag")));
        assert_eq!((form.format, form.temperature), (Format::VerboseJson, Some(0.2)));
        assert_eq!((form.streams, form.ignored), (false, vec!["prompt"]));
        let least = read(&[("file", "x")]).await.unwrap();
        assert_eq!((least.format, least.model, least.streams), (Format::Json, None, false));
    }

    #[tokio::test]
    async fn what_does_not_fit_is_told_by_its_part() {
        for (parts, param, says) in [
            (vec![("model", "bag")], "file", "missing"),
            (vec![("file", "12345678901")], "file", "more than 10 bytes"),
            (vec![("response_format", "pdf")], "response_format", "json, text, srt"),
            (vec![("temperature", "1.5")], "temperature", "0 to 1"),
            (vec![("temperature", "NaN")], "temperature", "0 to 1"),
            (vec![("stream", "perhaps")], "stream", "neither"),
            (vec![("timestamp_granularities[]", "word")], "timestamp_granularities", "segment"),
            (
                vec![("file", "x"), ("stream", "true"), ("response_format", "srt")],
                "response_format",
                "json alone",
            ),
        ] {
            let refused = read(&parts).await.unwrap_err();
            assert_eq!(refused.param, Some(param));
            assert!(refused.message.contains(says), "{}", refused.message);
        }
    }

    fn written(format: Format, streams: bool) -> (String, String) {
        let form = Form { format, streams, ..Form::default() };
        let mut writer = Writer { form, duration_s: 2.0, text: String::new() };
        let mut all = Vec::new();
        for delta in [" Good", " day."] {
            all.extend(writer.learn(&Event::Text { delta: delta.into() }));
        }
        let usage = engine::Usage {
            prompt_tokens: 2,
            prompt_audio_tokens: 50,
            text_tokens: 3,
            ..engine::Usage::default()
        };
        all.extend(writer.done(&Summary { usage: Some(usage), ..Summary::default() }));
        (writer.content_type().to_owned(), String::from_utf8(all).unwrap())
    }

    #[test]
    fn the_text_is_written_in_every_format() {
        let (kind, json) = written(Format::Json, false);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((kind.as_str(), &json["text"]), ("application/json", &json!("Good day.")));
        assert_eq!(json["usage"]["total_tokens"], 55);
        assert_eq!(written(Format::Text, false).1, "Good day.\n");
        assert!(written(Format::Srt, false).1.contains("00:00:00,000 --> 00:00:02,000\nGood day."));
        assert!(written(Format::Vtt, false).1.starts_with("WEBVTT\n"));
        let verbose: Value = serde_json::from_str(&written(Format::VerboseJson, false).1).unwrap();
        assert_eq!(
            (&verbose["duration"], &verbose["segments"][0]["end"]),
            (&json!(2.0), &json!(2.0))
        );
    }

    #[test]
    fn a_stream_tells_pieces_and_then_the_whole() {
        let (kind, events) = written(Format::Json, true);
        assert_eq!(
            (kind.as_str(), events.matches("transcript.text.delta").count()),
            ("text/event-stream", 2)
        );
        let last = events.trim_end().rsplit("\n\n").next().unwrap();
        assert!(
            last.contains(r#""type":"transcript.text.done""#) && last.contains("Good day."),
            "{last}"
        );
    }
}
