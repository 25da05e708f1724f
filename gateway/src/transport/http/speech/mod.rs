//! Speech for one request with a whole text: sound out as it is made, in the words of OpenAI (`POST /v1/audio/speech`) or of
//! another vendor.
//!
//! ```text
//! body --request--> what is wanted --engine--> events --answer--> bytes of a file, or messages with them
//! ```
//!
//! A client that leaves drops the body, and with it the context.

mod events;
mod request;

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Extension, State, rejection::BytesRejection};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use engine::answer::{Modality, Task};
use engine::{Request, Text};

use self::request::{Framing, Speaker, Spoken};
use super::answer::{self, Wanted};
use super::answers::begin;
use super::gate::too_many;
use super::{overloaded, overloaded_for, problem, tell_ignored, unread};
use crate::access::Access;
use crate::auth::Caller;
use crate::config::Speech;
use crate::foreign::names::Names;
use crate::foreign::whole::{self, Asking, Read, Refused, Whole};
use crate::protocol::{self, Catalogue};
use crate::server::Server;
use crate::shape::{Shape, ShapeWriter};

/// Answers OpenAI's clients.
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
    let catalogue = server.catalogue_for(&caller);
    let spoken = match Spoken::parse(&body, &server.config.speech, &catalogue) {
        Ok(spoken) => spoken,
        Err(refusal) => return refusal.into_response(),
    };
    let names = Names::of(&server.config, &catalogue);
    let shape = Shape::File(spoken.format);
    let framing: Option<Box<dyn whole::Framing>> = match spoken.framing {
        Framing::Audio => None,
        Framing::Events => Some(Box::new(events::OpenAi)),
    };
    match spoken.speaker {
        Speaker::Voice(voice) => {
            let options = spoken.options;
            let model = names.model(spoken.model.as_deref());
            let voice = Some(voice);
            let request = Request { model, voice, options, ..Request::whole(spoken.text) };
            let whole = Whole { request, shape, framing, ignored: Vec::new() };
            perform(&server, access, &caller, &catalogue, whole).await
        }
        Speaker::Model { model, voice } => {
            let chars = spoken.text.chars().count();
            let request = engine::answer::Request {
                model: Some(model),
                voice,
                task: Task::Speak,
                ..engine::answer::Request::new(spoken.text, &[Modality::Audio])
            };
            say(&server, access, &caller, (request, chars), (shape, framing)).await
        }
    }
}

/// Lets a speech language model say a text, if there is a place for it.
async fn say(
    server: &Server,
    access: Access,
    caller: &Caller,
    (request, chars): (engine::answer::Request, usize),
    (shape, framing): (Shape, Option<Box<dyn whole::Framing>>),
) -> Response {
    let writer = match ShapeWriter::new(shape) {
        Ok(writer) => writer,
        Err(error) => {
            let message = error.to_string();
            return problem(StatusCode::BAD_REQUEST, "unsupported_audio", None, &message);
        }
    };
    let (events, admission) = match begin(server, caller, &access, chars, request) {
        Ok(begun) => begun,
        Err(none) => return none.into_response(),
    };
    let content_type = shape.content_type();
    let (text, metrics) = (String::new(), server.metrics.clone());
    let wanted = Wanted { text, writer, content_type, framing, metrics };
    answer::answer(events, wanted, admission, access).await
}

/// Reads a body as [`speak`] does, and forgets it.
pub(crate) fn read_body(body: &[u8], catalogue: &Catalogue) {
    let _ = Spoken::parse(body, &Speech::default(), catalogue);
}

/// Answers requests of another vendor's clients.
pub(crate) fn reads(read: Read) -> MethodRouter<Arc<Server>> {
    post(
        async move |State(server): State<Arc<Server>>,
                    Extension(access): Extension<Access>,
                    Extension(caller): Extension<Caller>,
                    uri: Uri,
                    body: Result<Bytes, BytesRejection>| {
            let body = match body {
                Ok(body) => body,
                Err(rejection) => return unread(&rejection, server.config.server.max_body_bytes),
            };
            let catalogue = server.catalogue_for(&caller);
            let asking = Asking {
                path: uri.path(),
                query: uri.query().unwrap_or_default(),
                body: &body,
                config: &server.config,
                catalogue: &catalogue,
            };
            match read(&asking) {
                Ok(whole) => perform(&server, access, &caller, &catalogue, whole).await,
                Err(Refused { status, body }) => {
                    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
                    (status, Json(body)).into_response()
                }
            }
        },
    )
}

/// Speaks what is wanted, if there is a place for it.
async fn perform(
    server: &Server,
    access: Access,
    caller: &Caller,
    catalogue: &Catalogue,
    whole: Whole,
) -> Response {
    let Whole { mut request, shape, framing, ignored } = whole;
    let bad = |code, message: &str| problem(StatusCode::BAD_REQUEST, code, None, message);
    let names = protocol::Names {
        model: request.model.as_deref(),
        voice: request.voice.as_deref(),
        language: request.language.as_deref(),
        style: request.style.as_deref(),
    };
    if let Err(error) = catalogue.check(&names) {
        return bad(error.code.name(), &error.message);
    }
    let writer = match ShapeWriter::new(shape) {
        Ok(writer) => writer,
        Err(error) => return bad("unsupported_audio", &error.to_string()),
    };
    let text = match &request.text {
        Text::Whole(text) => text.clone(),
        Text::Live(_) => String::new(),
    };
    let admission = match server.admit(caller) {
        Ok(admission) => admission,
        Err(refused) => return refused.into_response(),
    };
    if let Err(over) = caller.allowance.chars(text.chars().count(), server.since_start()) {
        return too_many(&over);
    }
    access.voice(request.voice.as_deref());
    let own = std::mem::take(&mut request.options.lexicon);
    request.options.lexicon = own.over(&catalogue.words(request.voice.as_deref()));
    let events = match server.engine.open(request) {
        Ok((_, events)) => events,
        Err(error @ engine::Error::Option { .. }) => return bad("bad_value", &error.to_string()),
        Err(error @ engine::Error::Overloaded { retry_after, .. }) => {
            return overloaded_for(&error.to_string(), retry_after);
        }
        Err(error) => return overloaded(&error.to_string()),
    };
    let (content_type, metrics) = (shape.content_type(), server.metrics.clone());
    let wanted = Wanted { text, writer, content_type, framing, metrics };
    let mut response = answer::answer(events, wanted, admission, access).await;
    tell_ignored(&mut response, &ignored);
    response
}
