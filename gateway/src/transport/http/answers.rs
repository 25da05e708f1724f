//! What the routes of models that answer share: large bodies, and an answer that begins.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
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

    fn place(&self, headers: &HeaderMap) -> Result<Place, NoneLeft> {
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let length: Option<usize> = length.and_then(|length| length.parse().ok());
        let mut place = Place { places: self.places.clone(), permit: None };
        // A body that does not tell its length may be of any.
        if length.is_none_or(|bytes| bytes > self.small) {
            place.insist()?;
        }
        Ok(place)
    }
}

/// The place of a body, to be held until it is read and decoded; a handler that asks for it before the body has it in time.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Semaphore>,
    /// None: the body is small.
    permit: Option<OwnedSemaphorePermit>,
}

impl Place {
    /// Takes a place for a body that is small and has much in it.
    ///
    /// # Errors
    /// All are taken.
    pub(super) fn insist(&mut self) -> Result<(), NoneLeft> {
        if self.permit.is_none() {
            let permit = self.places.clone().try_acquire_owned();
            self.permit = Some(permit.map_err(|_| NoneLeft)?);
        }
        Ok(())
    }
}

impl FromRequestParts<Arc<Server>> for Place {
    type Rejection = NoneLeft;

    async fn from_request_parts(
        parts: &mut Parts,
        server: &Arc<Server>,
    ) -> Result<Self, Self::Rejection> {
        server.uploads.place(&parts.headers)
    }
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
        "max_tokens" => "max_completion_tokens",
        // The symbol by which a model is told what to do.
        "task" => "model",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bodies_take_places_and_small_ones_only_where_they_insist() {
        let mut config = Gateway::default();
        config.chat.max_uploads = 1;
        config.server.max_body_bytes = 600;
        let uploads = Uploads::new(&config);
        let headers = |length: &'static str| {
            let length = (header::CONTENT_LENGTH, length.parse().unwrap());
            HeaderMap::from_iter([length])
        };
        let large = uploads.place(&headers("601")).unwrap();
        assert!(uploads.place(&HeaderMap::new()).is_err(), "it may be of any length");
        let mut small = uploads.place(&headers("600")).unwrap();
        assert!(small.insist().is_err());
        drop(large);
        small.insist().unwrap();
        small.insist().unwrap();
        assert!(uploads.place(&headers("601")).is_err());
        drop(small);
        assert!(uploads.place(&headers("601")).is_ok());
    }
}
