//! The form that a recording comes in: its parts, each with its limit. Knows nothing of sound.

use axum::extract::Multipart;

use crate::transcript::Format;
use crate::transport::http::form::{Refusal, broken, bytes, text};

/// Longest value of a field that is no file.
const FIELD_CHARS_MAX: usize = 4_000;

/// A form that is complete.
#[derive(Debug, Default)]
pub(super) struct Form {
    pub(super) file: Vec<u8>,
    pub(super) model: Option<String>,
    pub(super) language: Option<String>,
    /// What the client tells of the recording.
    pub(super) prompt: Option<String>,
    pub(super) format: Format,
    pub(super) temperature: Option<f32>,
    pub(super) streams: bool,
}

impl Form {
    /// Reads a form to its end; parts that are not known are passed over.
    ///
    /// # Errors
    /// The first part that is too large or does not fit, or what is missing.
    pub(super) async fn read(
        mut multipart: Multipart,
        file_bytes_max: usize,
    ) -> Result<Self, Refusal> {
        let mut read = Self::default();
        let mut has_file = false;
        // A client that is still sending when it is refused may see a broken connection instead.
        let mut refused = None;
        loop {
            let field = match multipart.next_field().await {
                Ok(Some(field)) => field,
                Ok(None) => break,
                Err(error) => return Err(refused.unwrap_or_else(|| broken(&error, None))),
            };
            let Some(name) = field.name().and_then(known) else { continue };
            if refused.is_some() {
                continue;
            }
            if name == "file" {
                read.file = bytes(field, name, file_bytes_max).await?;
                has_file = true;
                continue;
            }
            let value = text(field, name, FIELD_CHARS_MAX).await?;
            refused = read.take(name, value).err();
        }
        if let Some(refusal) = refused {
            return Err(refusal);
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
            "language" => self.language = Some(value).filter(|value| !value.is_empty()),
            "prompt" => self.prompt = Some(value).filter(|value| !value.is_empty()),
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::body::Body;
    use axum::extract::{FromRequest, Request};
    use futures_util::stream;

    use super::*;

    const BOUNDARY: &str = "limit";

    async fn read(parts: &[(&str, &str)]) -> Result<Form, Refusal> {
        read_body(written(parts).into()).await
    }

    fn written(parts: &[(&str, &str)]) -> String {
        let mut body = String::new();
        for (name, value) in parts {
            let file = if *name == "file" { "; filename=\"a.wav\"" } else { "" };
            body.push_str(&format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n"
            ));
        }
        body.push_str(&format!("--{BOUNDARY}--\r\n"));
        body
    }

    async fn read_body(body: Body) -> Result<Form, Refusal> {
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = Request::builder().method("POST").header("content-type", kind);
        let request = request.body(body).unwrap();
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
        assert_eq!((form.streams, form.prompt.as_deref()), (false, Some("Names: Ann.")));
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

    #[tokio::test]
    async fn what_is_refused_is_read_to_its_end() {
        let body = written(&[("temperature", "9"), ("file", &"x".repeat(1000)), ("stream", "?")]);
        let (mut pieces, left) = (body.into_bytes().into_iter(), Arc::new(AtomicUsize::new(0)));
        let counted = left.clone();
        let sending = stream::iter(std::iter::from_fn(move || {
            let piece: Vec<u8> = pieces.by_ref().take(50).collect();
            counted.store(pieces.len(), Ordering::Relaxed);
            (!piece.is_empty()).then_some(Ok::<_, Infallible>(piece))
        }));
        let refused = read_body(Body::from_stream(sending)).await.unwrap_err();
        assert_eq!((refused.param, left.load(Ordering::Relaxed)), (Some("temperature"), 0));
    }
}
