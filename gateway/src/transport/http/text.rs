//! `POST /v1/text`: how a text would be said, without saying it. The twin of the command `dovecote text`.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Extension, State, rejection::BytesRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use engine::text::{self, Locale, Notice, TextOptions};
use serde::Deserialize;
use serde_json::json;

use super::{problem, unread};
use crate::auth::Caller;
use crate::protocol::event::TextRules;
use crate::protocol::{Catalogue, Refused, text_options};
use crate::server::Server;

#[derive(Debug, Deserialize)]
struct Asked {
    /// As a client would send it to be spoken.
    input: String,
    /// A name, or a code like `de`; without it, that of the default voice.
    language: Option<String>,
    /// How numbers and dates are written, like `en-GB`; without it, as in the language.
    locale: Option<String>,
    /// Whose words hold; without it, those of the default voice.
    voice: Option<String>,
    /// How it is read, as in `context.open`.
    #[serde(default)]
    text: TextRules,
}

/// Answers `{spoken, map, notices}`: for each spoken character, where the code points of the input begin and end that it
/// stands for; and what of the input has no effect. Costs nothing of what a key may have spoken.
pub(crate) async fn said(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
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
    let options = match options(&asked, &server.catalogue_for(&caller)) {
        Ok(options) => options,
        Err(Refused { field, reason }) => {
            return problem(StatusCode::BAD_REQUEST, "bad_value", Some(field), &reason);
        }
    };
    // A long text takes longer than the threads of the sockets may be kept from them.
    let answer = tokio::task::spawn_blocking(move || {
        let (spoken, notices) = text::read(&asked.input, &options);
        // Without the final period that nobody wrote.
        let written = || spoken.iter().filter(|s| s.from < s.to);
        let line: String = written().map(|s| s.ch).collect();
        let map: Vec<_> = written().map(|s| [s.from, s.to]).collect();
        let notice = |n: &Notice| json!({"what": n.what, "text": {"from": n.from, "to": n.to}});
        let notices: Vec<_> = notices.iter().map(notice).collect();
        json!({"spoken": line, "map": map, "notices": notices})
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

fn options(asked: &Asked, catalogue: &Catalogue) -> Result<TextOptions, Refused> {
    let parse = |field, tag: &str| {
        tag.parse::<Locale>().map_err(|e| Refused { field, reason: e.to_string() })
    };
    let locale = match (&asked.locale, &asked.language) {
        (Some(tag), _) => parse("locale", tag)?,
        (None, Some(name)) => parse("language", name)?,
        (None, None) => catalogue.locale(),
    };
    let base = TextOptions {
        locale: Some(locale),
        conventions: catalogue.conventions,
        lexicon: catalogue.words(asked.voice.as_deref()),
        ..TextOptions::default()
    };
    text_options(&asked.text, None, base, &catalogue.lexicons)
}
