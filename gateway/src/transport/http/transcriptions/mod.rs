//! `POST /v1/audio/transcriptions`: what is said in a recording, written down by a speech language model.
//!
//! ```text
//! form --read--> recording --decoded, cut--> pieces --engine--> text --Writer--> json, text, subtitles, or events as it is written
//! ```

mod dictation;
mod form;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::multipart::MultipartRejection;
use axum::extract::{self, DefaultBodyLimit, Extension, FromRequest, Multipart, State};
use axum::response::{IntoResponse, Response, Result};
use axum::routing::{MethodRouter, post};
use codecs::recording::RecordingError;
use engine::answer::{Draw, Message, Modality, Part, Request, Role, Task};

use self::dictation::{Dictation, Recording};
use self::form::Form;
use self::writer::Writer;
use super::answers::Place;
use super::form::Refusal;
use super::{problem, tell_ignored};
use crate::access::Access;
use crate::auth::Caller;
use crate::chat;
use crate::chat::request::model;
use crate::config;
use crate::protocol::{Catalogue, Hears, Model};
use crate::server::Server;

/// Where it is asked for.
pub(crate) const PATH: &str = "/v1/audio/transcriptions";
/// What a form may have beside its file: names, values, boundaries.
const FORM_BYTES: usize = 64 << 10;
/// What is shorter has no word in it.
const SECONDS_MIN: f64 = 0.1;

/// The route.
pub(crate) fn route(settings: &config::Chat) -> MethodRouter<Arc<Server>> {
    let bytes_max = settings.max_body_bytes.saturating_add(FORM_BYTES);
    post(transcribe).layer(DefaultBodyLimit::max(bytes_max))
}

async fn transcribe(
    State(server): State<Arc<Server>>,
    Extension(access): Extension<Access>,
    Extension(caller): Extension<Caller>,
    mut place: Place,
    multipart: std::result::Result<Multipart, MultipartRejection>,
) -> Result<Response> {
    let settings = &server.config.chat;
    let multipart = multipart.map_err(|rejection| {
        problem(rejection.status(), "bad_body", None, &rejection.body_text())
    })?;
    let mut form = Form::read(multipart, settings.max_body_bytes).await?;
    let catalogue = server.voices.catalogue().seen_by(caller.key());
    let (model, hears) = hearing(form.model.as_deref(), &server.config, &catalogue)?;
    let (file, seconds_max) = (std::mem::take(&mut form.file), settings.max_transcription_seconds);
    // Seconds of work, for a long one.
    let reading = move || Recording::read(&file, seconds_max, hears.most);
    let read = tokio::task::spawn_blocking(reading).await;
    let recording = read.expect("reading does not panic; this is a bug");
    let recording = recording.map_err(|error| unreadable(&error, seconds_max))?;
    if recording.duration_s() < SECONDS_MIN {
        let message = format!("file: less than {SECONDS_MIN} s of sound");
        return Err(Refusal::coded("too_short", "file", message).into());
    }
    // A long one keeps its place until all of it is written down.
    let place = if recording.is_long() {
        place.insist()?;
        Some(place)
    } else {
        drop(place);
        None
    };
    let told = hears.is_told_in_words;
    let words = if told { words(&settings.transcription_prompt, &form) } else { String::new() };
    let ignored = if told { Vec::new() } else { untold(&form) };
    let request = asked(&model.id, words, &form);
    let writer = Writer::new(&form, recording.duration_s());
    let streams = form.streams;
    let begun = Dictation::begin(&server, (&caller, access), (recording, place), request, writer);
    let dictation = match begun {
        Ok(dictation) => dictation,
        Err(none) => return Ok(none.into_response()),
    };
    let mut response = if streams { dictation.stream().await } else { dictation.collect().await };
    tell_ignored(&mut response, &ignored);
    Ok(response)
}

/// The model that is asked for, or the first that hears, and what it hears.
fn hearing<'c>(
    asked: Option<&str>,
    config: &config::Gateway,
    catalogue: &'c Catalogue,
) -> std::result::Result<(&'c Model, Hears), chat::Refusal> {
    let hearing = || catalogue.models.iter().filter(|model| model.hears.is_some());
    let first = || hearing().next().map(|model| model.id.as_str());
    let model = model(asked.or_else(first), config, catalogue)?;
    let hears = model.hears.ok_or_else(|| {
        let known: Vec<&str> = hearing().map(|model| model.id.as_str()).collect();
        let others = if known.is_empty() { "no model here does".into() } else { known.join(", ") };
        let message = format!("model {:?} does not hear; those that do: {others}", model.id);
        chat::Refusal::of("model", message)
    })?;
    Ok((model, hears))
}

/// What a model is told before a recording: what to do with it, and what the client knows of it.
fn words(instruction: &str, form: &Form) -> String {
    let language = form.language.as_ref().map(|language| format!("Language: {language}."));
    let parts = [Some(instruction), language.as_deref(), form.prompt.as_deref()];
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}

/// The fields that a model cannot be told.
fn untold(form: &Form) -> Vec<&'static str> {
    let fields = [("language", &form.language), ("prompt", &form.prompt)];
    fields.into_iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name).collect()
}

/// What each piece is asked with; its sound comes behind the words.
fn asked(model: &str, words: String, form: &Form) -> Request {
    let parts = if words.is_empty() { Vec::new() } else { vec![Part::Text(words)] };
    // The likeliest words unless it is asked for others, as OpenAI has it.
    let temperature = form.temperature.unwrap_or_default();
    Request {
        model: Some(model.to_owned()),
        task: Task::Transcribe,
        messages: vec![Message { role: Role::User, parts }],
        text: Draw { temperature: Some(temperature), ..Draw::default() },
        ..Request::new("", &[Modality::Text])
    }
}

/// Reads a form with at most so much sound, and forgets it.
pub(crate) async fn read_form(request: extract::Request, seconds_max: f64) {
    let Ok(multipart) = Multipart::from_request(request, &()).await else { return };
    if let Ok(form) = Form::read(multipart, config::Chat::default().max_body_bytes).await {
        let _ = Recording::read(&form.file, seconds_max, Duration::from_secs(1));
    }
}

fn unreadable(error: &RecordingError, seconds_max: f64) -> Refusal {
    match error {
        RecordingError::TooLong(_) => {
            let message =
                format!("file: more than {seconds_max} s (chat.max_transcription_seconds)");
            Refusal::coded("too_long", "file", message)
        }
        error => Refusal::coded("cannot_decode", "file", format!("file: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_told_what_to_do_and_what_is_known_of_the_recording() {
        let form = Form {
            language: Some("de".into()),
            prompt: Some("Ann, Bo.".into()),
            ..Form::default()
        };
        assert_eq!(words("Write.", &form), "Write.\nLanguage: de.\nAnn, Bo.");
        assert_eq!(untold(&form), ["language", "prompt"]);
        assert_eq!(words("Write.", &Form::default()), "Write.");
        assert!(words("", &Form::default()).is_empty() && untold(&Form::default()).is_empty());
    }

    #[test]
    fn nobody_gets_a_model_that_does_not_hear() {
        let hears = Hears { most: Duration::from_secs(30), is_told_in_words: false };
        let model =
            |id: &str, hears| Model { id: id.into(), answers: true, hears, ..Model::default() };
        let models = vec![model("deaf", None), model("ear", Some(hears))];
        let catalogue = Catalogue { models, ..Catalogue::default() };
        let config = config::Gateway::default();
        let named = |asked| hearing(asked, &config, &catalogue).map(|(model, _)| model.id.as_str());
        assert_eq!((named(None), named(Some("ear"))), (Ok("ear"), Ok("ear")));
        let refused = named(Some("deaf")).unwrap_err();
        assert_eq!(refused.message, "model \"deaf\" does not hear; those that do: ear");
        let deaf = Catalogue { models: vec![model("deaf", None)], ..Catalogue::default() };
        let refused = hearing(None, &config, &deaf).unwrap_err();
        assert!(refused.message.contains("no model here does"), "{}", refused.message);
    }
}
