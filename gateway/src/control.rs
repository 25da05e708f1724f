//! The control address of the stub engine: scripts go in, counters and what was spoken come out. Only for this machine,
//! only beside a stub; no part of a server that speaks.
//!
//! ```text
//! PUT /script          the script of all contexts to come
//! PUT /script?seed=7   that of the next context that asks for this seed
//! GET /state           counters of the engine and the server
//! GET /contexts        what the latest contexts were told and did; ?seed=7 those of one seed
//! ```

use std::io;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use engine::stub::{self, ContextReport, Script};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What the address reads and writes.
struct Stub {
    engine: Arc<engine::Handle>,
    control: stub::Control,
}

/// Whose script or report is meant; none: all.
#[derive(Debug, Deserialize)]
struct Whose {
    seed: Option<u64>,
}

/// Answers until the process ends.
///
/// # Errors
/// The listener failed.
pub(crate) async fn serve(
    listener: TcpListener,
    engine: Arc<engine::Handle>,
    control: stub::Control,
) -> io::Result<()> {
    let routes = Router::new()
        .route("/script", put(set_script))
        .route("/state", get(state))
        .route("/contexts", get(contexts))
        .with_state(Arc::new(Stub { engine, control }));
    axum::serve(listener, routes).await
}

async fn set_script(
    State(stub): State<Arc<Stub>>,
    Query(whose): Query<Whose>,
    Json(script): Json<Script>,
) -> Response {
    match stub.control.set_script(whose.seed, script) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

async fn state(State(stub): State<Arc<Stub>>) -> Json<Value> {
    let stats = stub.engine.stats();
    Json(json!({
        "contexts": stats.contexts,
        "listeners": stats.listeners,
        "kv_blocks_in_use": stats.kv_blocks_in_use,
        "kv_blocks_total": stats.kv_blocks_total,
        "steps": stats.steps,
        "tokens": stats.tokens,
        "preemptions": stats.preemptions,
        "tasks": tokio::runtime::Handle::current().metrics().num_alive_tasks(),
    }))
}

async fn contexts(
    State(stub): State<Arc<Stub>>,
    Query(whose): Query<Whose>,
) -> Json<Vec<ContextReport>> {
    let mut contexts = stub.control.contexts();
    contexts.retain(|context| whose.seed.is_none_or(|seed| context.seed == seed));
    Json(contexts)
}
