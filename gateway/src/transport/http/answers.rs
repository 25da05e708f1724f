//! What the routes of models that answer share: large bodies, and an answer that begins.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use engine::Events;
use engine::answer::Request;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::gate::too_many;
use super::{overloaded, overloaded_for, problem};
use crate::access::Access;
use crate::auth::{Caller, Over};
use crate::chat::Refusal;
use crate::config::Gateway;
use crate::server::{NoPlace, Server};
use crate::sessions::Admission;

/// Places for bodies that are larger than most, and take memory and time to be read.
pub(crate) struct Uploads {
    places: Arc<Semaphore>,
    /// Bodies that need none, in bytes.
    small: usize,
}

impl Uploads {
    /// As many as the settings allow.
    pub(crate) fn new(config: &Gateway) -> Self {
        let places = Arc::new(Semaphore::new(config.chat.max_uploads));
        Self { places, small: config.server.max_body_bytes }
    }

    /// A place for a body, to be held until it is read and decoded.
    ///
    /// # Errors
    /// All are taken.
    pub(super) fn place(&self, headers: &HeaderMap) -> Result<Place, NoneLeft> {
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let length: Option<usize> = length.and_then(|length| length.parse().ok());
        // A body that does not tell its length may be of any.
        if length.is_some_and(|bytes| bytes <= self.small) {
            return Ok(Place { _permit: None });
        }
        match self.places.clone().try_acquire_owned() {
            Ok(permit) => Ok(Place { _permit: Some(permit) }),
            Err(_) => Err(NoneLeft),
        }
    }
}

/// The place of a body.
#[derive(Debug)]
pub(super) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
}

/// There is no place for a large body.
#[derive(Debug, thiserror::Error)]
#[error("as many recordings are being read as may be at once (chat.max_uploads)")]
pub(super) struct NoneLeft;

impl IntoResponse for NoneLeft {
    fn into_response(self) -> Response {
        overloaded(&self.to_string())
    }
}

/// Begins an answer, if there is a place for it; `chars` of text are charged to the caller's key.
///
/// # Errors
/// See [`NotBegun`].
pub(super) fn begin(
    server: &Server,
    caller: &Caller,
    access: &Access,
    chars: usize,
    request: Request,
) -> Result<(Events, Admission), NotBegun> {
    let admission = server.admit(caller)?;
    caller.allowance.chars(chars, server.since_start())?;
    access.voice(request.voice.as_deref());
    let (_, events) = server.engine.answer(request)?;
    Ok((events, admission))
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotBegun {
    #[error(transparent)]
    Place(#[from] NoPlace),
    #[error(transparent)]
    Over(#[from] Over),
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

impl IntoResponse for NotBegun {
    fn into_response(self) -> Response {
        match self {
            Self::Place(none) => none.into_response(),
            Self::Over(over) => too_many(&over),
            Self::Engine(ref error @ engine::Error::Option { field, .. }) => {
                let (param, message) = (Some(public(field)), error.to_string());
                problem(StatusCode::BAD_REQUEST, "bad_value", param, &message)
            }
            Self::Engine(ref error @ engine::Error::Overloaded { retry_after, .. }) => {
                overloaded_for(&error.to_string(), retry_after)
            }
            Self::Engine(error) => overloaded(&error.to_string()),
        }
    }
}

/// What a field of the engine's request is called by clients.
fn public(field: &'static str) -> &'static str {
    match field {
        "text.temperature" => "temperature",
        "text.top_p" => "top_p",
        "audio.temperature" => "acoustic_temperature",
        "guidance" => "cfg",
        "max_text_tokens" | "max_audio_frames" => "max_completion_tokens",
        same => same,
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self.code {
            "model_not_found" => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        problem(status, self.code, self.param.as_deref(), &self.message)
    }
}
