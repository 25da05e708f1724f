//! `POST /v1/tokens`: a key becomes a token that lives some minutes, for a browser to show.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State, rejection::BytesRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, body::Bytes};
use serde::Deserialize;
use serde_json::json;

use super::problem;
use crate::auth::Caller;
use crate::server::{Server, unix_ms};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    /// Life of the token; without it, the longest.
    ttl_s: Option<u64>,
}

/// Answers `{token, expires_at}`, the second in seconds of Unix time.
pub(crate) async fn issue(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => {
            return problem(rejection.status(), "bad_body", None, &rejection.body_text());
        }
    };
    // Everything has a default, so there may be no body at all.
    let asked = if body.is_empty() { Ok(Asked::default()) } else { serde_json::from_slice(&body) };
    let asked: Asked = match asked {
        Ok(asked) => asked,
        Err(error) => {
            return problem(StatusCode::BAD_REQUEST, "bad_body", None, &error.to_string());
        }
    };
    let longest = server.config.auth.token_ttl_max;
    let ttl = asked.ttl_s.map_or(longest, Duration::from_secs);
    if ttl.is_zero() || ttl > longest {
        let message = format!("ttl_s is 1 to {} (auth.token_ttl_max_s)", longest.as_secs());
        return problem(StatusCode::BAD_REQUEST, "bad_value", Some("ttl_s"), &message);
    }
    let expires_unix_ms = unix_ms() + u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX / 2);
    match server.security.keyring.issue(&caller, expires_unix_ms) {
        Some(token) => {
            Json(json!({"token": token, "expires_at": expires_unix_ms / 1_000})).into_response()
        }
        None => {
            let message = "a token makes no tokens: a key is needed";
            problem(StatusCode::FORBIDDEN, "key_needed", None, message)
        }
    }
}
