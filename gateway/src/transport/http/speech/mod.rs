//! `POST /v1/audio/speech`: a text in, sound out as it is made, as OpenAI's clients have it.
//!
//! ```text
//! body --request--> what is wanted --engine--> events --answer--> bytes of a file, or events with them
//! ```
//!
//! A client that leaves drops the body, and with it the context.

mod answer;
mod request;

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, State, rejection::BytesRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use engine::Request;

use self::request::Wanted;
use super::gate::too_many;
use super::{overloaded, problem, unread};
use crate::access::Access;
use crate::auth::Caller;
use crate::server::Server;

/// Answers with sound.
pub(crate) async fn speak(
    State(server): State<Arc<Server>>,
    Extension(access): Extension<Access>,
    Extension(caller): Extension<Caller>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return unread(&rejection, server.config.server.max_body_bytes),
    };
    let catalogue = server.voices.catalogue().seen_by(caller.key());
    let wanted = match Wanted::parse(&body, &server.config.speech, &catalogue) {
        Ok(wanted) => wanted,
        Err(refusal) => return refusal.into_response(),
    };
    let admission = match server.admit(&caller) {
        Ok(admission) => admission,
        Err(refused) => return refused.into_response(),
    };
    if let Err(over) = caller.allowance.chars(wanted.text.chars().count(), server.since_start()) {
        return too_many(&over);
    }
    access.voice(Some(&wanted.voice));
    let request = Request { voice: Some(wanted.voice), ..Request::whole(wanted.text) };
    match server.engine.open(request) {
        Ok((_, events)) => {
            let Wanted { format, framing, .. } = wanted;
            answer::answer(events, format, framing, admission, access).await
        }
        Err(error @ engine::Error::Option { .. }) => {
            problem(StatusCode::BAD_REQUEST, "bad_value", None, &error.to_string())
        }
        Err(error) => overloaded(&error.to_string()),
    }
}
