//! Voices over HTTP: `GET /v1/voices`, `POST /v1/voices`, `DELETE /v1/voices/{id}`.
//!
//! ```text
//! form --> file or codes --decoded, encoded--> prompt --> added, 201      what is wrong --> 400, 413, 503
//! ```

mod form;

use std::sync::Arc;

use axum::Json;
use axum::extract::multipart::MultipartRejection;
use axum::extract::{DefaultBodyLimit, Extension, FromRequest, Multipart, Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get};
use codecs::recording::{self, RecordingError};
use engine::{Handle, NewVoice, VoiceError, VoiceSource};
use serde_json::{Value, json};

use self::form::{Form, Material};
use super::form::Refusal;
use super::{overloaded, problem};
use crate::auth::Caller;
use crate::config::VoiceUploads;
use crate::server::{Server, unix_ms};
use crate::voices::{Refused, Stored, Voices};

/// Where all voices are.
pub(crate) const PATH: &str = "/v1/voices";
/// What a form may have beside its file: names, references, boundaries.
const FORM_BYTES: usize = 512 << 10;

/// The routes of all voices.
pub(crate) fn all(settings: &VoiceUploads) -> MethodRouter<Arc<Server>> {
    let bytes_max = settings.max_upload_bytes.saturating_add(FORM_BYTES);
    get(list).post(add).layer(DefaultBodyLimit::max(bytes_max))
}

/// The routes of one voice.
pub(crate) fn one() -> MethodRouter<Arc<Server>> {
    delete(remove)
}

/// The voices, for native and ElevenLabs clients alike.
async fn list(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
) -> Json<Value> {
    let seen = server.voices.catalogue().seen_by(caller.key());
    Json(json!({"voices": seen.all_voices().collect::<Vec<_>>()}))
}

async fn add(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    multipart: Result<Multipart, MultipartRejection>,
) -> Response {
    let Some(_place) = server.voices.upload() else {
        return overloaded("other voices are being made");
    };
    let multipart = match multipart {
        Ok(multipart) => multipart,
        Err(rejection) => {
            return problem(rejection.status(), "bad_body", None, &rejection.body_text());
        }
    };
    let settings = &server.voices.settings;
    let form = match Form::read(multipart, settings.max_upload_bytes).await {
        Ok(form) => form,
        Err(refusal) => return refusal.into_response(),
    };
    let (engine, seconds_max) = (server.engine.clone(), settings.max_seconds);
    let Form { name, reference, model, material } = form;
    let by = By { name, reference, owner: caller.key().map(str::to_owned) };
    // If the client leaves meanwhile, what is made is dropped: a voice that nobody was told of is nobody's.
    let make = move || make(&engine, model.as_deref(), material, seconds_max);
    let made = tokio::task::spawn_blocking(make).await;
    match made.expect("making a voice does not panic; this is a bug") {
        Ok(made) => keep(server.clone(), by, made).await,
        Err(NotMade::Refused(refusal)) => refusal.into_response(),
        Err(NotMade::Busy(message)) => overloaded(&message),
        Err(NotMade::Broken(message)) => {
            problem(StatusCode::INTERNAL_SERVER_ERROR, "internal", None, &message)
        }
    }
}

/// What is written down about a voice beside its sound.
struct By {
    name: String,
    reference: String,
    owner: Option<String>,
}

struct Made {
    voice: NewVoice,
    seconds_used: f64,
}

enum NotMade {
    Refused(Refusal),
    Busy(String),
    Broken(String),
}

/// Decodes and encodes: seconds of work.
fn make(
    engine: &Handle,
    model: Option<&str>,
    material: Material,
    seconds_max: f64,
) -> Result<Made, NotMade> {
    let (source, length, part) = match material {
        Material::Codes(rows) => {
            let frames = rows.first().map_or(0, Vec::len);
            (VoiceSource::Codes(rows), Length::Frames(frames), "codes")
        }
        Material::File(bytes) => {
            let samples = recording::read(&bytes, seconds_max).map_err(unreadable)?;
            let seconds = samples.len() as f64 / f64::from(recording::RATE);
            (VoiceSource::Recording(samples), Length::Seconds(seconds), "file")
        }
    };
    let voice = engine.make_voice(model, source).map_err(|error| unmade(&error, part))?;
    let seconds = match length {
        Length::Seconds(seconds) => seconds,
        Length::Frames(frames) => frames as f64 / voice.frames_per_second,
    };
    let seconds_used = seconds.min(voice.seconds_max);
    Ok(Made { voice, seconds_used })
}

/// How much there was to make a voice of.
enum Length {
    Seconds(f64),
    Frames(usize),
}

fn unreadable(error: RecordingError) -> NotMade {
    let code = match &error {
        RecordingError::TooLong(_) => "too_long",
        _ => "cannot_decode",
    };
    NotMade::Refused(Refusal::coded(code, "file", error.to_string()))
}

fn unmade(error: &VoiceError, part: &'static str) -> NotMade {
    let message = error.to_string();
    let refused = |code, message| NotMade::Refused(Refusal::coded(code, part, message));
    match error {
        VoiceError::Silent => refused("silent", message),
        VoiceError::Codes(_) => refused("bad_value", message),
        VoiceError::Recording(_) | VoiceError::Deaf | VoiceError::Unheard(_) => {
            refused("cannot_encode", message)
        }
        VoiceError::Model { .. } => {
            NotMade::Refused(Refusal::coded("unknown_model", "model", message))
        }
        VoiceError::Busy { .. } => NotMade::Busy(message),
        _ => NotMade::Broken(message),
    }
}

/// Adds what was made, and tells how much of it each stage reads.
async fn keep(server: Arc<Server>, by: By, made: Made) -> Response {
    let Made { voice: made, seconds_used } = made;
    let voice = Stored {
        voice_id: Voices::new_id(),
        name: by.name,
        model: Some(made.model.clone()),
        owner: by.owner,
        consent: true,
        reference: by.reference,
        added_unix_ms: unix_ms(),
        seconds_used,
        codes: made.rows.clone(),
    };
    let answer = json!({
        "voice_id": voice.voice_id,
        "name": voice.name,
        "model": voice.model,
        "seconds_used": seconds_used,
        "prompt_frames": made.read_frames,
    });
    let added = tokio::task::spawn_blocking(move || server.voices.add(&voice, made)).await;
    match added.expect("adding a voice does not panic; this is a bug") {
        Ok(()) => (StatusCode::CREATED, Json(answer)).into_response(),
        Err(refusal) => not_changed(&refusal),
    }
}

async fn remove(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let remove = move || server.voices.remove(&id, caller.key());
    let removed = tokio::task::spawn_blocking(remove).await;
    match removed.expect("removing a voice does not panic; this is a bug") {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(refusal) => not_changed(&refusal),
    }
}

fn not_changed(refusal: &Refused) -> Response {
    let message = refusal.to_string();
    match refusal {
        Refused::Unknown(_) => problem(StatusCode::NOT_FOUND, "unknown_voice", None, &message),
        Refused::Premade(_) => problem(StatusCode::FORBIDDEN, "premade_voice", None, &message),
        Refused::Engine(VoiceError::Full { .. }) => {
            problem(StatusCode::INSUFFICIENT_STORAGE, "too_many_voices", None, &message)
        }
        Refused::Engine(_) | Refused::Store(_) => {
            tracing::error!("a voice could not be changed: {message}");
            let told = "the voice could not be changed; the server's log says why";
            problem(StatusCode::INTERNAL_SERVER_ERROR, "internal", None, told)
        }
    }
}

/// Reads a form, and forgets it.
pub(crate) async fn read_form(request: Request) {
    if let Ok(multipart) = Multipart::from_request(request, &()).await {
        let _ = Form::read(multipart, VoiceUploads::default().max_upload_bytes).await;
    }
}
