//! Before every request of `/v1`: may this page ask, may this caller speak, does the body come in time.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::{chat, problem, retry, transcriptions, voices};
use crate::auth::{Denied, Over, client_address, credential, is_welcome};
use crate::config::Gateway;
use crate::server::{Server, unix_ms};

/// Lets a request through with its [`Caller`](crate::auth::Caller) among the extensions, or says why not.
pub(crate) async fn gate(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    pass(&server, request, next, false).await
}

/// As [`gate`], for sockets whose clients may show their key in their first message: who shows nothing passes without a
/// caller. Who shows a wrong key does not.
pub(crate) async fn gate_or_later(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    pass(&server, request, next, true).await
}

async fn pass(server: &Server, mut request: Request, next: Next, or_later: bool) -> Response {
    let keyring = &server.security.keyring;
    let headers = request.headers();
    if !is_welcome(headers, &server.config.server.origins, keyring.needs_key()) {
        let message = "this page may not connect; server.origins lists those that may";
        return problem(StatusCode::FORBIDDEN, "forbidden_origin", None, message);
    }
    let shown = credential(headers, request.uri().query());
    let caller = match keyring.admit(shown.as_ref(), unix_ms()) {
        Ok(caller) => Some(caller),
        Err(Denied::Nothing) if or_later => None,
        Err(denied) => return unauthorized(denied),
    };
    if let Some(caller) = &caller {
        request.extensions_mut().insert(caller.clone());
    }
    let limit = Limit::of(&request, &server.config);
    let request = request.map(|body| in_time(body, limit));
    let mut response = next.run(request).await;
    // For whoever writes down who asked what.
    if let Some(caller) = caller {
        response.extensions_mut().insert(caller);
    }
    response
}

/// Whether somebody may read the metrics: from this machine, or with a key.
pub(crate) fn may_scrape(server: &Server, peer: IpAddr, headers: &HeaderMap) -> bool {
    let trusted = &server.config.server.trusted_proxies;
    // A proxy on this machine that nobody told us of must not make the world look local.
    let is_forwarded = headers.contains_key("x-forwarded-for") || headers.contains_key("forwarded");
    let is_local = match client_address(peer, headers, trusted) {
        client if client == peer.to_canonical() => client.is_loopback() && !is_forwarded,
        client => client.is_loopback(),
    };
    let shown = credential(headers, None);
    let keyring = &server.security.keyring;
    is_local || (keyring.needs_key() && keyring.admit(shown.as_ref(), unix_ms()).is_ok())
}

/// A limit of the caller's key is reached.
pub(crate) fn too_many(over: &Over) -> Response {
    let mut response =
        problem(StatusCode::TOO_MANY_REQUESTS, "overloaded", None, &over.to_string());
    retry(&mut response, over.retry_after);
    response
}

fn unauthorized(denied: Denied) -> Response {
    let mut response = problem(StatusCode::UNAUTHORIZED, "unauthorized", None, &denied.to_string());
    let scheme = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    response
}

/// How long a body may take.
#[derive(Debug, Clone, Copy)]
struct Limit {
    time: Duration,
    /// The setting that says so.
    key: &'static str,
}

impl Limit {
    fn of(request: &Request, config: &Gateway) -> Self {
        match request.extensions().get::<MatchedPath>().map(MatchedPath::as_str) {
            Some(voices::PATH) => Self { time: config.voices.upload, key: "voices.upload_s" },
            Some(chat::PATH | transcriptions::PATH) => {
                Self { time: config.chat.upload, key: "chat.upload_s" }
            }
            _ => Self { time: config.server.message, key: "server.message_s" },
        }
    }
}

/// Why a body ends before its time.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("the body took longer than {} s ({})", .0.time.as_secs_f64(), .0.key)]
    Late(Limit),
    #[error(transparent)]
    Broken(axum::Error),
}

/// A body that breaks when it takes too long.
fn in_time(body: Body, limit: Limit) -> Body {
    if body.is_end_stream() {
        return body;
    }
    let start = Some((body.into_data_stream(), Box::pin(tokio::time::sleep(limit.time))));
    let pieces = stream::unfold(start, move |state| async move {
        let (mut body, mut late) = state?;
        let piece: Result<Bytes, BodyError> = tokio::select! {
            piece = body.next() => piece?.map_err(BodyError::Broken),
            () = &mut late => return Some((Err(BodyError::Late(limit)), None)),
        };
        Some((piece, Some((body, late))))
    });
    Body::from_stream(pieces)
}
