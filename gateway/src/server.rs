//! The server: its routes, what they share, and its life from the first connection to the last.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Router, middleware, response::Response};
use engine::answer::Modality;
use engine::{Event, Events, Request};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::access;
use crate::audio::Prepared;
use crate::auth::{Caller, Over, SessionAllowance};
use crate::chat::kept::Kept;
use crate::config::Gateway;
use crate::driver::Clock;
use crate::foreign::cartesia::{self, Cartesia};
use crate::foreign::deepgram::{self, Deepgram};
use crate::foreign::elevenlabs::{self, ElevenLabs};
use crate::foreign::livekit::LiveKit;
use crate::foreign::tontaube::{self, Tontaube};
use crate::lexicon::Lexicons;
use crate::metrics::Metrics;
use crate::protocol::{Catalogue, Setup};
use crate::security::Security;
use crate::sessions::{Admission, Refused, Sessions};
use crate::transport::accept::Acceptor;
use crate::transport::http::answers::Uploads;
use crate::transport::http::cors;
use crate::transport::http::gate::{self, too_many};
use crate::transport::http::refusals::{self, Words};
use crate::transport::{http, ws};
use crate::voices::Voices;

/// Spoken once before the first guest, so that nobody pays for cold caches.
const WARM_UP: &str = "Hello, this is a first word.";
/// Tokens that a model answers it with.
const WARM_UP_TOKENS: usize = 8;
/// How long open requests may take after the last session has gone.
const LINGER: Duration = Duration::from_secs(5);

/// What all requests share.
pub(crate) struct Server {
    pub(crate) config: Gateway,
    pub(crate) engine: Arc<engine::Handle>,
    pub(crate) voices: Voices,
    pub(crate) sessions: Sessions,
    pub(crate) security: Security,
    pub(crate) metrics: Arc<Metrics>,
    /// What is sent in the place of sound that cannot be heard.
    pub(crate) prepared: Option<Prepared>,
    /// Places of those who have not shown their key yet.
    pub(crate) strangers: Arc<Semaphore>,
    /// Places for large bodies.
    pub(crate) uploads: Uploads,
    kept: Mutex<Kept>,
    is_warm: AtomicBool,
    clock: Clock,
}

impl Server {
    /// What a new session of a caller is given.
    pub(crate) fn session_setup(&self, caller: &Caller, is_foreign: bool) -> Setup {
        Setup {
            limits: self.config.limits.clone(),
            catalogue: self.catalogue_for(caller),
            session_id: format!("s_{}", random_hex()),
            token: format!("r_{}", random_hex()),
            unix_ms: unix_ms(),
            allowance: SessionAllowance::new(caller.allowance.clone(), self.since_start()),
            has_room: self.engine.has_room(),
            is_foreign,
        }
    }

    /// What a caller may ask for, with the words of its key.
    pub(crate) fn catalogue_for(&self, caller: &Caller) -> Arc<Catalogue> {
        self.voices.catalogue().seen_by(caller.key()).with_words(&caller.lexicon)
    }

    /// Whether new sessions are welcome.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_warm.load(Ordering::Relaxed)
            && !self.sessions.is_draining()
            && self.sessions.has_room()
            && self.engine.has_room()
    }

    /// Time since the server began: what the limits of keys count by.
    pub(crate) fn since_start(&self) -> Duration {
        self.clock.now()
    }

    /// Whether the engine could supply the listener of a new session.
    ///
    /// # Errors
    /// It could not.
    pub(crate) fn has_room_for(&self, setup: &Setup) -> Result<(), NoPlace> {
        if setup.has_room {
            return Ok(());
        }
        self.metrics.wire.sessions.refused.with_label_values(&[NoPlace::Engine.reason()]).inc();
        Err(NoPlace::Engine)
    }

    /// Answers that later requests may name.
    pub(crate) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for somebody, of the house and of those of the key.
    ///
    /// # Errors
    /// Which are all taken.
    pub(crate) fn admit(&self, caller: &Caller) -> Result<Admission, NoPlace> {
        let key_place = caller.allowance.session().map_err(NoPlace::from);
        let place = key_place.and_then(|key| Ok(self.sessions.admit()?.with(key)));
        place.inspect_err(|refused| {
            let refusals = &self.metrics.wire.sessions.refused;
            refusals.with_label_values(&[refused.reason()]).inc();
        })
    }
}

/// Whose places are all taken; becomes the answer that says so.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoPlace {
    #[error(transparent)]
    Key(#[from] Over),
    #[error(transparent)]
    House(#[from] Refused),
    /// Those of the engine.
    #[error("one more listener could not be kept supplied")]
    Engine,
}

impl NoPlace {
    /// In a word, for the metrics.
    fn reason(&self) -> &'static str {
        match self {
            Self::Key(_) => "key",
            Self::House(Refused::Full { .. }) => "full",
            Self::House(Refused::Draining) => "draining",
            Self::Engine => "engine",
        }
    }
}

impl IntoResponse for NoPlace {
    fn into_response(self) -> Response {
        match self {
            Self::Key(over) => too_many(&over),
            Self::House(refused) => http::busy(&refused),
            Self::Engine => http::overloaded(&self.to_string()),
        }
    }
}

/// Serves until `shutdown` comes true and everybody has left, or their time was over.
///
/// # Errors
/// A file or folder that the settings name cannot be used.
pub async fn run(
    config: Gateway,
    listener: TcpListener,
    engine: Arc<engine::Handle>,
    catalogue: Catalogue,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let security = Security::new(&config).map_err(io::Error::other)?;
    run_with(security, config, listener, engine, catalogue, shutdown).await
}

/// As [`run`], with keys and certificate that the caller can have read again meanwhile.
///
/// # Errors
/// The folder of voices or a file of words cannot be used.
pub async fn run_with(
    security: Security,
    config: Gateway,
    listener: TcpListener,
    engine: Arc<engine::Handle>,
    mut catalogue: Catalogue,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    catalogue.lexicons = Arc::new(Lexicons::open(&config.lexicon).map_err(io::Error::other)?);
    let model = catalogue.models.first().map(|model| model.id.clone()).unwrap_or_default();
    let voices = Voices::open(config.voices.clone(), engine.clone(), catalogue);
    let server = Arc::new(Server {
        sessions: Sessions::new(config.server.max_sessions),
        strangers: Arc::new(Semaphore::new(config.foreign.max_unknown_sockets as usize)),
        uploads: Uploads::new(&config),
        kept: Mutex::new(Kept::new(config.chat.max_kept_answers)),
        security: security.clone(),
        config,
        metrics: Arc::new(Metrics::new(engine.clone(), &model)),
        prepared: (!engine.is_heard()).then(Prepared::default),
        engine,
        voices: voices.map_err(io::Error::other)?,
        is_warm: AtomicBool::new(false),
        clock: Clock::start(),
    });
    let (stop, stopped) = watch::channel(false);
    let acceptor = Acceptor {
        router: routes(server.clone()),
        tls: security.tls.clone(),
        settings: server.config.server.clone(),
        counts: server.metrics.wire.connections.clone(),
        stop: stopped,
    };
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
        stop.send_replace(true);
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        () = acceptor.run(listener) => {}
        () = life => {}
        () = security.watch() => {}
    }
    Ok(())
}

fn routes(server: Arc<Server>) -> Router {
    let body_bytes = server.config.server.max_body_bytes;
    let guarded = Router::new()
        .route("/v1/tts/stream", get(ws::stream))
        // What is refused here has no shape that anybody knows.
        .route("/tts", ws::speaks(LiveKit::make))
        .route("/v1/tts", ws::speaks(LiveKit::make))
        .route("/v1/audio/speech", post(http::speech::speak))
        .route(http::transcriptions::PATH, http::transcriptions::route(&server.config.chat))
        .route(http::chat::PATH, http::chat::completions(&server.config.chat))
        .route(http::voices::PATH, http::voices::all(&server.config.voices))
        .route("/v1/voices/{id}", http::voices::one())
        .route("/v1/models", get(http::models))
        .route("/v1/models/{id}", get(http::model))
        .route("/v1/engine", get(http::engine))
        .route("/v1/text", post(http::text::said))
        .route("/v1/tokens", post(http::tokens::issue))
        .route_layer(middleware::from_fn_with_state(server.clone(), gate::gate))
        .merge(vendors(&server))
        // Before browsers are answered, who ask with a method that no route has.
        .method_not_allowed_fallback(not_allowed);
    let guarded = match cors::layer(&server.config.server.origins, server.security.needs_key()) {
        Some(cors) => guarded.layer(cors),
        None => guarded,
    };
    Router::new()
        .merge(guarded)
        .route("/metrics", get(http::metrics))
        .route("/healthz", get(http::health))
        .route("/readyz", get(http::ready))
        .route("/", get(http::demo::home))
        .route("/demo", get(http::demo::home))
        .route("/demo/", get(http::demo::index))
        .route("/demo/{file}", get(http::demo::file))
        .route("/demo/vendor/{file}", get(http::demo::vendor))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(body_bytes))
        .layer(middleware::from_fn_with_state(server.clone(), access::layer))
        .with_state(server)
}

/// The addresses of other vendors; what is refused there is told in their words.
fn vendors(server: &Arc<Server>) -> Router<Arc<Server>> {
    let reads = http::speech::reads;
    let worded = |router: Router<Arc<Server>>, words: Words| {
        router.route_layer(middleware::map_response(move |response: Response| {
            std::future::ready(refusals::reword(response, words))
        }))
    };
    let guarded = |router: Router<Arc<Server>>, words: Words| {
        let gate = middleware::from_fn_with_state(server.clone(), gate::gate);
        worded(router.route_layer(gate), words)
    };
    let cartesia = Router::new()
        .route("/tts/websocket", ws::speaks(Cartesia::make))
        .route("/tts/bytes", reads(Cartesia::bytes))
        .route("/tts/sse", reads(Cartesia::events));
    let deepgram =
        Router::new().route("/v1/speak", ws::speaks(Deepgram::make).merge(reads(Deepgram::file)));
    let tontaube = Router::new()
        .route("/predict", reads(Tontaube::predict))
        .route("/stream", reads(Tontaube::stream))
        .route("/ws/stream", ws::speaks(Tontaube::make));
    // Again under an address that tells LiveKit's plugin apart.
    let (mut files, mut sockets) = (Router::new(), Router::new());
    for base in ["/v1", "/x/livekit/v1"] {
        let at = |rest: &str| format!("{base}/text-to-speech/{{voice}}{rest}");
        let known = |make| ws::speaks_once_known(make, ElevenLabs::INTRODUCTION);
        files = files
            .route(&at(""), reads(ElevenLabs::file))
            .route(&at("/stream"), reads(ElevenLabs::file))
            .route(&at("/with-timestamps"), reads(ElevenLabs::timed_file))
            .route(&at("/stream/with-timestamps"), reads(ElevenLabs::timed_pieces));
        sockets = sockets
            .route(&at("/multi-stream-input"), known(ElevenLabs::multi))
            .route(&at("/stream-input"), known(ElevenLabs::single));
    }
    let gate_or_later = middleware::from_fn_with_state(server.clone(), gate::gate_or_later);
    guarded(cartesia, cartesia::fault)
        .merge(guarded(deepgram, deepgram::problem))
        .merge(guarded(tontaube, tontaube::problem))
        .merge(guarded(files, elevenlabs::problem))
        .merge(worded(sockets.route_layer(gate_or_later), elevenlabs::problem))
}

/// There is nothing at the path.
pub(crate) async fn not_found() -> Response {
    http::problem(StatusCode::NOT_FOUND, "not_found", None, "there is nothing at this path")
}

/// The path is there, but not for this method; `Allow` names those that it is there for.
async fn not_allowed(method: Method) -> Response {
    let message = format!("this path does not take {method}");
    http::problem(StatusCode::METHOD_NOT_ALLOWED, "method_not_supported", None, &message)
}

async fn warm_up(server: &Server) {
    let catalogue = server.voices.catalogue();
    for model in &catalogue.models {
        let opened = match model.answers {
            true => {
                let words = engine::answer::Request {
                    model: Some(model.id.clone()),
                    max_text_tokens: Some(WARM_UP_TOKENS),
                    ..engine::answer::Request::new(WARM_UP, &[Modality::Text])
                };
                server.engine.answer(words)
            }
            false => {
                let model = Some(model.id.clone());
                server.engine.open(Request { model, ..Request::whole(WARM_UP) })
            }
        };
        if let Err(reason) = first_words(opened).await {
            tracing::error!("{} cannot be used: {reason}", model.id);
            return std::future::pending().await;
        }
    }
    server.is_warm.store(true, Ordering::Relaxed);
    server.metrics.ready();
    tracing::info!("ready");
}

/// Hears a context to its end.
///
/// # Errors
/// Why it did not begin, or failed.
async fn first_words(
    opened: Result<(engine::ContextId, Events), engine::Error>,
) -> Result<(), String> {
    let (_, events) = opened.map_err(|error| error.to_string())?;
    while let Some(event) = next(&events).await {
        if let Event::Failed(failure) = event {
            return Err(failure.to_string());
        }
    }
    Ok(())
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

/// A number that nobody can guess, for draws that nobody asked to be the same again.
pub(crate) fn random_seed() -> u64 {
    getrandom::u64().expect("a system without random numbers cannot serve")
}

/// The time of day, in milliseconds of Unix time.
#[expect(clippy::disallowed_methods, reason = "the server tells its clients the time of day")]
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
