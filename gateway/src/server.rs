//! The server: its routes, what they share, and its life from the first connection to the last.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Router, response::Response};
use engine::{Event, Events, Request};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::config::Gateway;
use crate::metrics::Metrics;
use crate::protocol::{Catalogue, Setup};
use crate::sessions::Sessions;
use crate::transport::{http, ws};

/// Spoken once before the first guest, so that nobody pays for cold caches.
const WARM_UP: &str = "Hello, this is a first word.";
/// How long open requests may take after the last session has gone.
const LINGER: Duration = Duration::from_secs(5);

/// What all requests share.
pub(crate) struct Server {
    pub(crate) config: Gateway,
    pub(crate) engine: Arc<engine::Handle>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) sessions: Sessions,
    pub(crate) metrics: Arc<Metrics>,
    is_warm: AtomicBool,
}

impl Server {
    /// What a new session is given.
    pub(crate) fn session_setup(&self) -> Setup {
        Setup {
            limits: self.config.limits.clone(),
            catalogue: self.catalogue.clone(),
            session_id: format!("s_{}", random_hex()),
            token: format!("r_{}", random_hex()),
            unix_ms: unix_ms(),
        }
    }

    /// Whether new sessions are welcome.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_warm.load(Ordering::Relaxed)
            && !self.sessions.is_draining()
            && self.sessions.has_room()
    }
}

/// Serves until `shutdown` comes true and everybody has left, or their time was over.
///
/// # Errors
/// The listener failed.
pub async fn run(
    config: Gateway,
    listener: TcpListener,
    engine: Arc<engine::Handle>,
    catalogue: Catalogue,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let model = catalogue.models.first().map_or("", |model| &*model.id);
    let server = Arc::new(Server {
        sessions: Sessions::new(config.server.max_sessions),
        config,
        metrics: Arc::new(Metrics::new(engine.clone(), model)),
        engine,
        catalogue: Arc::new(catalogue),
        is_warm: AtomicBool::new(false),
    });
    // Small frames must not wait for the answer to those before.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let service = routes(server.clone()).into_make_service_with_connect_info::<SocketAddr>();
    let served = axum::serve(listener, service).with_graceful_shutdown(async move {
        let _ = stopped.await;
    });
    let life = async {
        tokio::pin!(shutdown);
        tokio::select! {
            () = warm_up(&server) => shutdown.await,
            () = &mut shutdown => {}
        }
        // Upgrades and probes are answered meanwhile, with a no.
        let limit = server.config.server.drain;
        // Sessions keep to the limit by themselves; the body of a request whose reader sleeps does not.
        let _ = tokio::time::timeout(limit + LINGER, server.sessions.drain(limit)).await;
        let _ = stop.send(());
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        result = served => result,
        () = life => Ok(()),
    }
}

fn routes(server: Arc<Server>) -> Router {
    let body_bytes = server.config.server.max_body_bytes;
    Router::new()
        .route("/v1/tts/stream", get(ws::stream))
        .route("/v1/audio/speech", post(http::speech::speak))
        .route("/v1/voices", get(http::voices))
        .route("/v1/models", get(http::models))
        .route("/metrics", get(http::metrics))
        .route("/healthz", get(http::health))
        .route("/readyz", get(http::ready))
        .route("/", get(http::demo::home))
        .route("/demo", get(http::demo::home))
        .route("/demo/", get(http::demo::index))
        .route("/demo/{file}", get(http::demo::file))
        .fallback(not_found)
        .layer(DefaultBodyLimit::max(body_bytes))
        .with_state(server)
}

/// There is nothing at the path.
pub(crate) async fn not_found() -> Response {
    http::problem(StatusCode::NOT_FOUND, "not_found", None, "there is nothing at this path")
}

async fn warm_up(server: &Server) {
    match server.engine.open(Request::whole(WARM_UP)) {
        Ok((_, events)) => {
            while let Some(event) = next(&events).await {
                if let Event::Failed(failure) = event {
                    tracing::error!("the engine failed at its first words: {failure}");
                    return std::future::pending().await;
                }
            }
        }
        Err(error) => {
            tracing::error!("the engine took nothing: {error}");
            return std::future::pending().await;
        }
    }
    server.is_warm.store(true, Ordering::Relaxed);
    server.metrics.ready();
    tracing::info!("ready");
}

/// The next event of a context.
pub(crate) async fn next(events: &Events) -> Option<Event> {
    poll_fn(|cx| events.poll_recv(cx)).await
}

/// 128 bits that nobody can guess.
pub(crate) fn random_hex() -> String {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).expect("a system without random numbers cannot serve");
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[expect(clippy::disallowed_methods, reason = "the server tells its clients the time of day")]
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
