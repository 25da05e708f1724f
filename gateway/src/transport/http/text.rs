//! `POST /v1/text`: how a text would be said, without saying it. The twin of the command `dovecote text`.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{State, rejection::BytesRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use engine::text::{self, LocaleError, TextOptions};
use serde::Deserialize;
use serde_json::json;

use super::{problem, unread};
use crate::protocol::Catalogue;
use crate::server::Server;

#[derive(Debug, Deserialize)]
struct Asked {
    /// As a client would send it to be spoken.
    input: String,
    /// A name, or a code like `de`; without it, that of the default voice.
    language: Option<String>,
    /// How numbers and dates are written, like `en-GB`; without it, as in the language.
    locale: Option<String>,
}

/// Answers `{spoken, map}`: for each spoken character, where the code points of the input begin and end that it stands
/// for. Costs nothing of what a key may have spoken.
pub(crate) async fn said(
    State(server): State<Arc<Server>>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return unread(&rejection, server.config.server.max_body_bytes),
    };
    let asked: Asked = match serde_json::from_slice(&body) {
        Ok(asked) => asked,
        Err(error) => {
            return problem(StatusCode::BAD_REQUEST, "bad_body", None, &error.to_string());
        }
    };
    let longest = server.config.limits.max_text_chars;
    if asked.input.chars().count() > longest {
        let message = format!("input has at most {longest} characters (limits.max_text_chars)");
        return problem(StatusCode::BAD_REQUEST, "text_too_long", Some("input"), &message);
    }
    let options = match options(&asked, &server.voices.catalogue()) {
        Ok(options) => options,
        Err(error) => {
            let field = if asked.locale.is_some() { "locale" } else { "language" };
            return problem(StatusCode::BAD_REQUEST, "bad_value", Some(field), &error.to_string());
        }
    };
    // A long text takes longer than the threads of the sockets may be kept from them.
    let answer = tokio::task::spawn_blocking(move || {
        let spoken = text::spoken(&asked.input, &options);
        // Without the final period that nobody wrote.
        let written = || spoken.iter().filter(|s| s.from < s.to);
        let line: String = written().map(|s| s.ch).collect();
        json!({"spoken": line, "map": written().map(|s| [s.from, s.to]).collect::<Vec<_>>()})
    });
    match answer.await {
        Ok(answer) => Json(answer).into_response(),
        Err(error) => {
            tracing::error!("a text could not be put into words: {error}");
            let message = "the text could not be put into words";
            problem(StatusCode::INTERNAL_SERVER_ERROR, "internal", None, message)
        }
    }
}

fn options(asked: &Asked, catalogue: &Catalogue) -> Result<TextOptions, LocaleError> {
    let named = asked.locale.as_ref().or(asked.language.as_ref());
    Ok(TextOptions {
        locale: Some(named.map_or_else(|| Ok(catalogue.locale()), |tag| tag.parse())?),
        conventions: catalogue.conventions,
        ..TextOptions::default()
    })
}
