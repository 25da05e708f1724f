//! The plain requests: health, lists, and errors in the shape that speech clients know.

mod answer;
pub(crate) mod answers;
pub(crate) mod chat;
pub(crate) mod cors;
pub(crate) mod demo;
mod form;
pub(crate) mod gate;
pub(crate) mod refusals;
pub(crate) mod speech;
pub(crate) mod text;
pub(crate) mod tokens;
pub(crate) mod transcriptions;
pub(crate) mod voices;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::BytesRejection;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::metrics;
use crate::server::Server;
use crate::sessions::Refused;

/// Names the fields of a request that had no effect.
const IGNORED: HeaderName = HeaderName::from_static("x-dovecote-ignored");
/// Tells what of a spoken text had no effect, where the body is nothing but sound.
const NOTICE: HeaderName = HeaderName::from_static("x-dovecote-notice");
/// When to come back to a server that has no room: turns of agents last some seconds, so one is soon over.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Nobody is told to wait longer than this: what holds then is not known now.
const RETRY_AFTER_S_MAX: f64 = 3_600.0;

/// Names the fields of a request that had no effect, if there are any.
fn tell_ignored(response: &mut Response, names: &[&str]) {
    if let Ok(names) = HeaderValue::from_str(&names.join(", "))
        && !names.is_empty()
    {
        response.headers_mut().insert(IGNORED, names);
    }
}

/// Whether the process lives.
pub(crate) async fn health() -> &'static str {
    "ok"
}

/// Whether new sessions are welcome.
pub(crate) async fn ready(State(server): State<Arc<Server>>) -> Response {
    let ready = server.is_ready();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({"ready": ready}))).into_response()
}

/// All metrics, for a scraper on this machine or with a key.
pub(crate) async fn metrics(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    if !gate::may_scrape(&server, peer.ip(), &headers) {
        let message = "metrics are for this machine, or for who has a key";
        return problem(StatusCode::FORBIDDEN, "forbidden", None, message);
    }
    let text = server.metrics.text(server.is_ready());
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

/// What the engine holds now, for a page that shows it live; who wants to know more reads the metrics.
pub(crate) async fn engine(State(server): State<Arc<Server>>) -> Json<Value> {
    let stats = server.engine.stats();
    let stage = |stage: &engine::stats::StageStats| {
        json!({
            "used": stage.blocks_in_use,
            "cached": stage.blocks_cached,
            "total": stage.blocks_total,
        })
    };
    Json(json!({
        "contexts": stats.contexts,
        "listeners": stats.listeners,
        "parked": stats.parked,
        "steps": stats.steps,
        "busy_s": stats.busy.as_secs_f64(),
        "cost_per_second": stats.cost_per_second.as_secs_f64(),
        "kv_blocks": stats.stages.iter().map(stage).collect::<Vec<_>>(),
    }))
}

/// The models, in OpenAI's shape.
pub(crate) async fn models(State(server): State<Arc<Server>>) -> Json<Value> {
    let catalogue = server.voices.catalogue();
    let models: Vec<Value> = catalogue.models.iter().map(|m| described(&m.id)).collect();
    Json(json!({"object": "list", "data": models}))
}

/// One of them.
pub(crate) async fn model(State(server): State<Arc<Server>>, Path(id): Path<String>) -> Response {
    if server.voices.catalogue().models.iter().any(|model| model.id == id) {
        return Json(described(&id)).into_response();
    }
    let message = format!("there is no model {id:?}; /v1/models lists those that are");
    problem(StatusCode::NOT_FOUND, "model_not_found", Some("model"), &message)
}

fn described(id: &str) -> Value {
    json!({"id": id, "object": "model", "created": 0, "owned_by": "dovecote"})
}

/// What an error says; stands among the extensions of its answer, for who puts it into a vendor's words.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// An error in OpenAI's shape.
pub(crate) fn problem(
    status: StatusCode,
    code: &str,
    param: Option<&str>,
    message: &str,
) -> Response {
    let r#type = if status.is_server_error() { "server_error" } else { "invalid_request_error" };
    let error = json!({"message": message, "type": r#type, "param": param, "code": code});
    let mut response = (status, Json(json!({"error": error}))).into_response();
    let told = Told { code: code.to_owned(), message: message.to_owned() };
    response.extensions_mut().insert(told);
    response
}

/// The body cannot be read, or has more bytes than are allowed.
pub(crate) fn unread(rejection: &BytesRejection, bytes_max: usize) -> Response {
    let status = rejection.status();
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        let message = format!("the body has more than the {bytes_max} bytes that are allowed");
        return problem(status, "body_too_large", None, &message);
    }
    problem(status, "bad_body", None, &rejection.body_text())
}

/// There is no place.
pub(crate) fn busy(refused: &Refused) -> Response {
    match refused {
        Refused::Full { .. } => overloaded(&refused.to_string()),
        Refused::Draining => come_back("shutting_down", &refused.to_string(), RETRY_AFTER),
    }
}

/// More is asked of the server than it can do.
pub(crate) fn overloaded(message: &str) -> Response {
    overloaded_for(message, RETRY_AFTER)
}

/// As [`overloaded`], for so long.
pub(crate) fn overloaded_for(message: &str, retry_after: Duration) -> Response {
    come_back("overloaded", message, retry_after)
}

fn come_back(code: &str, message: &str, retry_after: Duration) -> Response {
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, code, None, message);
    retry(&mut response, retry_after);
    response
}

/// Tells when to come back, in whole seconds.
pub(crate) fn retry(response: &mut Response, after: Duration) {
    let seconds = after.as_secs_f64().ceil().clamp(1.0, RETRY_AFTER_S_MAX) as u64;
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
}
