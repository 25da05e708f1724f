//! Who asked for what, and what came of it: one line in the log for each request and session, written when the last who
//! holds its [`Access`] lets go. Never a text, a key or an address.
//!
//! ```text
//! access: request_id=5f0c… route="/v1/audio/speech" status=200 key="-" voice="nano" audio_s=1.84 outcome="done" ms=212
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

use crate::auth::Caller;
use crate::driver::Clock;
use crate::server::{Server, random_hex};

/// Where a request says what it is called, and where the answer does.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest name that is taken from a client.
const REQUEST_ID_CHARS_MAX: usize = 64;
/// The target of the lines, for those who filter.
const TARGET: &str = "access";
/// Routes that have lines: of those who speak, and of those who prepare it.
const SPEECH: &[&str] = &[
    "/v1/tts/stream",
    "/v1/audio/speech",
    "/v1/audio/transcriptions",
    "/v1/chat/completions",
    "/v1/voices",
    "/v1/voices/{id}",
    "/v1/models",
    "/v1/models/{id}",
    "/v1/text",
    "/v1/tokens",
    "/tts/websocket",
    "/predict",
    "/stream",
    "/ws/stream",
    "/tts/bytes",
    "/tts/sse",
    "/tts",
    "/v1/tts",
    "/v1/speak",
    "/v1/text-to-speech/{voice}",
    "/v1/text-to-speech/{voice}/stream",
    "/v1/text-to-speech/{voice}/with-timestamps",
    "/v1/text-to-speech/{voice}/stream/with-timestamps",
    "/v1/text-to-speech/{voice}/multi-stream-input",
    "/v1/text-to-speech/{voice}/stream-input",
    "/x/livekit/v1/text-to-speech/{voice}",
    "/x/livekit/v1/text-to-speech/{voice}/stream",
    "/x/livekit/v1/text-to-speech/{voice}/with-timestamps",
    "/x/livekit/v1/text-to-speech/{voice}/stream/with-timestamps",
    "/x/livekit/v1/text-to-speech/{voice}/multi-stream-input",
    "/x/livekit/v1/text-to-speech/{voice}/stream-input",
];
/// The others that are told apart. Pages ask for the engine several times a second.
const OTHERS: &[&str] = &["/v1/engine", "/metrics", "/healthz", "/readyz"];

/// A request under way, as the log will tell of it.
#[derive(Clone)]
pub(crate) struct Access(Arc<Entry>);

struct Entry {
    request_id: String,
    route: &'static str,
    clock: Clock,
    told: Mutex<Told>,
}

/// What is found out on the way.
#[derive(Debug, Default)]
struct Told {
    status: u16,
    key: Option<String>,
    voice: Option<String>,
    sound: Duration,
    outcome: Option<&'static str>,
}

impl Access {
    fn new(request_id: String, route: &'static str) -> Self {
        let (clock, told) = (Clock::start(), Mutex::default());
        Self(Arc::new(Entry { request_id, route, clock, told }))
    }

    /// The voice that speaks; `None` is the default one.
    pub(crate) fn voice(&self, voice: Option<&str>) {
        self.told().voice = Some(voice.unwrap_or("default").to_owned());
    }

    /// Who asks, where that is known later than the answer.
    pub(crate) fn key(&self, id: &str) {
        self.told().key = Some(id.to_owned());
    }

    /// How long ago the request came.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.clock.now()
    }

    /// More sound was sent.
    pub(crate) fn sound(&self, sound: Duration) {
        self.told().sound += sound;
    }

    /// How it ended; the last word counts.
    pub(crate) fn outcome(&self, outcome: &'static str) {
        self.told().outcome = Some(outcome);
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // Pages, probes, scrapes and glances say nothing of who speaks.
        if !SPEECH.contains(&self.route) {
            return;
        }
        let told = self.told.get_mut().unwrap_or_else(PoisonError::into_inner);
        tracing::info!(
            target: TARGET,
            request_id = self.request_id,
            route = self.route,
            status = told.status,
            key = told.key.as_deref().unwrap_or("-"),
            voice = told.voice.as_deref().unwrap_or("-"),
            audio_s = (told.sound.as_secs_f64() * 1e3).round() / 1e3,
            outcome = told.outcome.unwrap_or("answered"),
            ms = u64::try_from(self.clock.now().as_millis()).unwrap_or(u64::MAX),
        );
    }
}

/// Names each request, counts it, and sees to its line in the log.
pub(crate) async fn layer(
    State(server): State<Arc<Server>>,
    mut request: Request,
    next: Next,
) -> Response {
    let request_id = request_id(request.headers()).unwrap_or_else(random_hex);
    let route = route(request.extensions().get::<MatchedPath>());
    let access = Access::new(request_id, route);
    request.extensions_mut().insert(access.clone());
    let mut response = next.run(request).await;
    let status = response.status();
    {
        let mut told = access.told();
        told.status = status.as_u16();
        let caller = response.extensions().get::<Caller>();
        told.key = caller.map(|caller| caller.key_id.to_string()).or(told.key.take());
    }
    let class = match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    };
    server.metrics.wire.requests.with_label_values(&[route, class]).inc();
    if let Ok(value) = HeaderValue::from_str(&access.0.request_id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// The client's name for its request, if it is one that can stand in a log.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let sane = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let fits = (1..=REQUEST_ID_CHARS_MAX).contains(&id.len());
    (fits && id.chars().all(sane)).then(|| id.to_owned())
}

/// The route of a request, from the closed set of those that are told apart.
fn route(matched: Option<&MatchedPath>) -> &'static str {
    let path = matched.map_or("", MatchedPath::as_str);
    if path.starts_with("/demo") {
        return "/demo/";
    }
    SPEECH.iter().chain(OTHERS).copied().find(|route| *route == path).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(id: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID, HeaderValue::from_str(id).unwrap());
        request_id(&headers)
    }

    #[test]
    fn only_a_short_plain_name_is_taken_from_a_client() {
        assert_eq!(asked("call_7-a").as_deref(), Some("call_7-a"));
        assert_eq!(asked(&"x".repeat(64)).map(|id| id.len()), Some(64));
        for id in ["", "two words", "a\"b", "caf\u{e9}", &"x".repeat(65)] {
            assert_eq!(asked(id), None, "{id}");
        }
        assert_eq!(request_id(&HeaderMap::new()), None);
    }
}
