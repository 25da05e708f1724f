//! `/metrics` over a real socket, with the bundled voice: what it counts, and what it never tells.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail its test")]

#[path = "house/waiting.rs"]
mod waiting;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use engine::bundle::Bundle;
use futures_util::{SinkExt, StreamExt};
use gateway::config::Gateway;
use gateway::protocol::{Catalogue, SUBPROTOCOL};
use gateway::server;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use waiting::{PATIENCE, until};

struct House {
    address: SocketAddr,
}

impl House {
    async fn open() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../voices/nano");
        let bundle = Bundle::open(&root).unwrap();
        let options = engine::Options::default();
        let engine =
            engine::Handle::start(&[bundle.clone().into()], &options, &mut |_| {}).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (engine, catalogue) = (Arc::new(engine), Catalogue::of(&bundle));
        let forever = std::future::pending();
        tokio::spawn(server::run(Gateway::default(), listener, engine, catalogue, forever));
        let house = Self { address };
        house.until("dovecote_ready", |ready| ready == 1.0).await;
        house
    }

    async fn http(&self, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        read.expect("no answer in time").unwrap();
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    async fn speak(&self, text: &str, voice: &str) -> String {
        let body = json!({"input": text, "voice": voice, "response_format": "pcm"}).to_string();
        let length = body.len();
        let head = "POST /v1/audio/speech HTTP/1.0\r\nContent-Type: application/json\r\n";
        self.http(&format!("{head}Content-Length: {length}\r\n\r\n{body}")).await.0
    }

    /// Every series with its value.
    async fn scrape(&self) -> BTreeMap<String, f64> {
        let (head, body) = self.http("GET /metrics HTTP/1.0\r\n\r\n").await;
        assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
        let series = body.lines().filter(|line| !line.starts_with('#'));
        let split = |line: &str| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        };
        series.map(split).collect()
    }

    /// Waits until a metric, all its series together, has a value that holds.
    async fn until(&self, name: &str, holds: impl Fn(f64) -> bool) {
        until(name, async || holds(sum(&self.scrape().await, name))).await;
    }
}

/// A session under way.
struct Guest(WebSocketStream<TcpStream>);

impl Guest {
    async fn enter(house: &House) -> Self {
        let url = format!("ws://{}/v1/tts/stream", house.address);
        let mut request = url.into_client_request().unwrap();
        let protocol = SUBPROTOCOL.parse().unwrap();
        request.headers_mut().insert("Sec-WebSocket-Protocol", protocol);
        let stream = TcpStream::connect(house.address).await.unwrap();
        let (socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        let mut guest = Self(socket);
        guest.say(json!({"type": "session.start"})).await;
        guest
    }

    async fn say(&mut self, message: serde_json::Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    /// Is lost without a word: the connection is reset, for one that only ends is still listening.
    fn cut_off(self) {
        self.0.get_ref().set_zero_linger().unwrap();
    }

    /// Reads up to a message of a type; the length of all sound before it in packets.
    async fn until(&mut self, kind: &str) -> usize {
        let mut packets = 0;
        loop {
            let message = tokio::time::timeout(PATIENCE, self.0.next()).await.unwrap();
            match message.unwrap().unwrap() {
                Message::Binary(_) => packets += 1,
                Message::Text(text) => {
                    let event: serde_json::Value = serde_json::from_str(&text).unwrap();
                    if event["type"] == kind {
                        return packets;
                    }
                }
                _ => {}
            }
        }
    }
}

/// A metric, all its series together.
fn sum(series: &BTreeMap<String, f64>, name: &str) -> f64 {
    let of = |key: &str| key.split('{').next() == Some(name);
    series.iter().filter(|(key, _)| of(key)).map(|(_, value)| value).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_spoken_is_counted_and_what_was_held_is_given_back() {
    let house = House::open().await;
    house.until("dovecote_engine_contexts", |open| open == 0.0).await;
    let before = house.scrape().await;
    assert!(house.speak("One short sentence.", "alloy").await.contains("200 OK"));
    house.until("dovecote_engine_contexts", |open| open == 0.0).await;
    let after = house.scrape().await;
    let grown = |name| sum(&after, name) - sum(&before, name);
    assert_eq!(grown("dovecote_engine_contexts_opened_total"), 1.0);
    assert_eq!(grown("dovecote_engine_contexts_ended_total"), 1.0);
    assert!(grown("dovecote_engine_audio_seconds_total") > 0.5);
    assert!(grown("dovecote_engine_steps_total") > 10.0);
    assert_eq!(grown("dovecote_engine_queue_seconds_count"), 1.0);
    assert!(grown("dovecote_codec_job_seconds_count") > 0.0);
    let used = after.iter().filter(|(key, _)| key.contains("state=\"used\""));
    assert_eq!(used.map(|(_, blocks)| blocks).sum::<f64>(), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_voices_that_are_not_there_add_no_series() {
    let house = House::open().await;
    house.speak("Hi.", "nobody").await;
    let before = house.scrape().await;
    for i in 0..1_000 {
        let head = house.speak("Hi.", &format!("bad-voice-{i}")).await;
        assert!(head.contains(" 400 "), "{head}");
    }
    let after = house.scrape().await;
    let new: Vec<_> = after.keys().filter(|key| !before.contains_key(*key)).collect();
    assert!(new.is_empty(), "{new:?}");
    let told = ["session", "context", "request", "api_key", "ip", "path", "voice"];
    for key in after.keys() {
        let has = |label: &&str| key.contains(&format!("{label}=\""));
        assert!(!told.iter().any(has), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_counted_while_it_lives_and_by_what_it_did() {
    let house = House::open().await;
    let before = house.scrape().await;
    let mut guest = Guest::enter(&house).await;
    guest.until("session.ready").await;
    house.until("dovecote_sessions_open", |open| open == 1.0).await;
    guest.say(json!({"type": "context.open", "ctx": "a"})).await;
    guest
        .say(json!({"type": "text", "ctx": "a", "seq": 0, "text": "Hello you.", "end": true}))
        .await;
    let packets = guest.until("context.done").await;
    guest.say(json!({"type": "context.open", "ctx": "b"})).await;
    guest.until("context.opened").await;
    assert_eq!(sum(&house.scrape().await, "dovecote_contexts_open"), 1.0);
    guest.say(json!({"type": "cancel", "ctx": "b"})).await;
    guest.until("context.cancelled").await;
    guest.say(json!({"type": "cancel", "ctx": "a"})).await;
    guest.until("context.cancelled").await;
    guest.say(json!({"type": "flush", "ctx": "nobody"})).await;
    guest.until("error").await;
    // Leaves with a context that is still open.
    guest.say(json!({"type": "context.open", "ctx": "c"})).await;
    guest.until("context.opened").await;
    guest.cut_off();
    house.until("dovecote_sessions_open", |open| open == 0.0).await;
    let after = house.scrape().await;
    let grown = |name| sum(&after, name) - sum(&before, name);
    assert_eq!(grown("dovecote_sessions_total"), 1.0);
    assert_eq!(after["dovecote_sessions_total{outcome=\"gone\"}"], 1.0);
    assert_eq!(grown("dovecote_contexts_open"), 0.0);
    assert_eq!(grown("dovecote_contexts_done_total"), 1.0);
    assert_eq!(after["dovecote_contexts_cancelled_total{reason=\"client\"}"], 1.0);
    assert_eq!(after["dovecote_contexts_cancelled_total{reason=\"gone\"}"], 1.0);
    assert_eq!(grown("dovecote_late_cancels_total"), 1.0);
    assert_eq!(grown("dovecote_cancel_seconds_count"), 2.0);
    assert_eq!(after["dovecote_errors_total{code=\"ctx_unknown\"}"], 1.0);
    assert_eq!(grown("dovecote_packets_total"), packets as f64);
    assert_eq!(grown("dovecote_first_audio_seconds_count"), 1.0);
    assert!(grown("dovecote_event_to_write_seconds_count") >= 1.0);
    assert_eq!(grown("dovecote_text_characters_total"), 10.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_sees_the_blocks_of_every_stage() {
    let house = House::open().await;
    house.until("dovecote_engine_contexts", |open| open == 0.0).await;
    let (head, body) = house.http("GET /v1/engine HTTP/1.0\r\n\r\n").await;
    assert!(head.contains(" 200 "), "{head}");
    let glance: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(glance["contexts"], 0);
    let stages = glance["kv_blocks"].as_array().unwrap();
    assert_eq!(stages.len(), 4);
    for stage in stages {
        let blocks = |kind: &str| stage[kind].as_u64().unwrap();
        // The warm-up left its beginning for whoever begins the same.
        assert!(blocks("used") == 0 && blocks("cached") > 0 && blocks("total") > blocks("cached"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_named_and_a_sane_name_of_the_client_is_kept() {
    let house = House::open().await;
    let id = async |header: &str| {
        let (head, _) = house.http(&format!("GET /healthz HTTP/1.0\r\n{header}\r\n")).await;
        let head = head.to_lowercase();
        let id = head.lines().find_map(|line| line.strip_prefix("x-request-id: "));
        id.unwrap().to_owned()
    };
    assert_eq!(id("x-request-id: call-7\r\n").await, "call-7");
    let (random, other) = (id("").await, id("x-request-id: not sane\r\n").await);
    assert!(random.len() == 32 && other.len() == 32 && random != other);
    let (head, _) = house.http("GET /nowhere HTTP/1.0\r\n\r\n").await;
    assert!(head.contains(" 404 ") && head.to_lowercase().contains("x-request-id: "), "{head}");
}
