//! Who gets in, and what a stranger can do to the door: keys, tokens, pages, limits, slow and oversized clients, TLS.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail its test")]

#[path = "house/waiting.rs"]
mod waiting;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use engine::bundle::Bundle;
use futures_util::{SinkExt, StreamExt};
use gateway::auth::digest_of;
use gateway::config::{Gateway, Key};
use gateway::protocol::{Catalogue, SUBPROTOCOL};
use gateway::security::Security;
use gateway::server;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use waiting::{PATIENCE, until, until_within};

/// A limit that a test waits for, and that nothing honest comes near.
const SHORT: Duration = Duration::from_millis(400);
/// The key of all tests that have one.
const KEY: &str = "correct-horse";
/// The longest time that a session waits for its client.
const RESUME_WINDOW_MS: u64 = 15_000;

/// One engine for all tests.
static ENGINE: LazyLock<Mutex<(Arc<engine::Handle>, Catalogue)>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../voices/nano");
    let bundle = Bundle::open(&root).unwrap();
    let engine =
        engine::Handle::start(&[bundle.clone().into()], &engine::Options::default(), &mut |_| {})
            .unwrap();
    Mutex::new((Arc::new(engine), Catalogue::of(&bundle)))
});

struct House {
    address: SocketAddr,
    security: Security,
}

impl House {
    async fn open(settings: Gateway) -> Self {
        settings.check().unwrap();
        let security = Security::new(&settings).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (engine, catalogue) = ENGINE.lock().await.clone();
        let never = std::future::pending();
        let served =
            server::run_with(security.clone(), settings, listener, engine, catalogue, never);
        tokio::spawn(served);
        Self { address, security }
    }

    /// Status, head and body of the answer to a request.
    async fn ask(&self, request: &str) -> (u16, String, String) {
        let stream = TcpStream::connect(self.address).await.unwrap();
        ask(stream, request).await
    }

    async fn get(&self, path: &str, headers: &str) -> (u16, String, String) {
        self.ask(&format!("GET {path} HTTP/1.0\r\n{headers}\r\n")).await
    }

    async fn post(&self, path: &str, headers: &str, body: &Value) -> (u16, String, String) {
        let (body, length) = (body.to_string(), body.to_string().len());
        let head = format!("POST {path} HTTP/1.0\r\n{headers}Content-Length: {length}\r\n\r\n");
        self.ask(&(head + &body)).await
    }

    async fn token(&self, ttl_s: u64) -> String {
        let headers = format!("Authorization: Bearer {KEY}\r\n");
        let (status, _, body) = self.post("/v1/tokens", &headers, &json!({"ttl_s": ttl_s})).await;
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["token"].as_str().unwrap().to_owned()
    }

    /// A WebSocket, or the status and head of the answer that refuses it.
    async fn connect(
        &self,
        query: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Client, (u16, tungstenite::http::HeaderMap)> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let uri = format!("ws://{}/v1/tts/stream{query}", self.address);
        Client::new(stream, &uri, headers).await
    }

    async fn with_key(&self) -> Result<Client, (u16, tungstenite::http::HeaderMap)> {
        self.connect("", &[("authorization", &format!("Bearer {KEY}"))]).await
    }
}

async fn ask(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &str,
) -> (u16, String, String) {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A server that refuses does not read to the end, which the system may call an error.
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    let _ = read.expect("no answer in time");
    // Of sound, only the head is looked at.
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    (status, head.to_ascii_lowercase(), body.to_owned())
}

struct Client<S = TcpStream>(WebSocketStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    async fn new(
        stream: S,
        uri: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, (u16, tungstenite::http::HeaderMap)> {
        let mut request = uri.into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", SUBPROTOCOL.parse().unwrap());
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, answer)) => {
                assert_eq!(answer.headers()["sec-websocket-protocol"], SUBPROTOCOL);
                assert!(!answer.headers().contains_key("sec-websocket-extensions"));
                Ok(Self(socket))
            }
            Err(tungstenite::Error::Http(answer)) => {
                Err((answer.status().as_u16(), answer.headers().clone()))
            }
            Err(error) => panic!("{error}"),
        }
    }

    async fn start(&mut self) {
        self.say(json!({"type": "session.start"})).await;
        assert_eq!(self.next().await.unwrap()["type"], "session.ready");
    }

    async fn say(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    /// The next event, or the code of the close.
    async fn next(&mut self) -> Result<Value, u16> {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.0.next()).await;
            match message.expect("nothing came in time").expect("the end of the stream").unwrap() {
                Message::Text(text) => return Ok(serde_json::from_str(&text).unwrap()),
                Message::Close(frame) => return Err(frame.unwrap().code.into()),
                _ => {}
            }
        }
    }

    /// The code of the last error and of the close.
    async fn end(&mut self) -> (String, u16) {
        let mut error = String::new();
        loop {
            match self.next().await {
                Ok(event) if event["type"] == "error" => {
                    assert_eq!(event["fatal"], true);
                    error = event["code"].as_str().unwrap().to_owned();
                }
                Ok(_) => {}
                Err(code) => return (error, code),
            }
        }
    }
}

fn key(id: &str, secret: &str) -> Key {
    Key {
        id: id.to_owned(),
        sha256: digest_of(secret),
        max_sessions: None,
        max_contexts: None,
        chars_per_minute: None,
        lexicon: None,
    }
}

fn locked() -> Gateway {
    let mut settings = Gateway::default();
    settings.auth.keys.push(key("tests", KEY));
    settings
}

/// A key as it stands in a file of keys.
fn key_line(id: &str, secret: &str) -> String {
    format!("[[keys]]\nid = \"{id}\"\nsha256 = \"{}\"\n", digest_of(secret))
}

fn bearer(key: &str) -> String {
    format!("Authorization: Bearer {key}\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn with_keys_nothing_is_served_without_one() {
    let house = House::open(locked()).await;
    for path in ["/v1/voices", "/v1/models", "/v1/tts/stream"] {
        let (status, head, body) = house.get(path, "").await;
        assert_eq!(status, 401, "{path}: {body}");
        assert!(head.contains("www-authenticate: bearer") && body.contains("unauthorized"));
        assert_eq!(house.get(path, &bearer("wrong")).await.0, 401, "{path}");
    }
    assert_eq!(house.get("/v1/voices", &bearer(KEY)).await.0, 200);
    assert_eq!(house.get("/v1/voices", &format!("xi-api-key: {KEY}\r\n")).await.0, 200);
    let speech = json!({"input": "Hello.", "response_format": "pcm"});
    assert_eq!(house.post("/v1/audio/speech", "", &speech).await.0, 401);
    assert_eq!(house.get("/healthz", "").await.0, 200, "probes have no keys");

    assert_eq!(house.connect("", &[]).await.err().unwrap().0, 401);
    assert_eq!(house.connect("?api_key=wrong", &[]).await.err().unwrap().0, 401);
    house.with_key().await.unwrap().start().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_shows_a_token_and_never_a_key() {
    let house = House::open(locked()).await;
    let token = house.token(60).await;
    house.connect(&format!("?token={token}"), &[]).await.unwrap().start().await;
    assert_eq!(house.connect(&format!("?token={KEY}"), &[]).await.err().unwrap().0, 401);

    use base64::Engine;
    let encoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&token);
    let offered = format!("{SUBPROTOCOL}, dovecote.token.{encoded}");
    house.connect("", &[("sec-websocket-protocol", &offered)]).await.unwrap().start().await;

    let longer = house.post("/v1/tokens", &bearer(KEY), &json!({"ttl_s": 601})).await;
    assert_eq!((longer.0, longer.2.contains("auth.token_ttl_max_s")), (400, true));
    let more = house.post("/v1/tokens", &bearer(&token), &json!({})).await;
    assert_eq!(more.0, 403, "a token makes no tokens");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_its_token() {
    let house = House::open(locked()).await;
    let token = house.token(1).await;
    let mut client = house.connect(&format!("?token={token}"), &[]).await.unwrap();
    client.start().await;
    assert_eq!(client.end().await, ("unauthorized".to_owned(), 4401));
    assert_eq!(house.connect(&format!("?token={token}"), &[]).await.err().unwrap().0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_when_its_key_is_revoked_and_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.toml");
    std::fs::write(&file, key_line("tests", KEY) + &key_line("others", "other")).unwrap();
    let mut settings = Gateway::default();
    settings.auth.keys_file = Some(file.clone());
    let house = House::open(settings).await;
    let mut client = house.with_key().await.unwrap();
    let mut other = house.connect("", &[("x-api-key", "other")]).await.unwrap();
    client.start().await;

    // Nobody says that the file was changed: it is looked at.
    std::fs::write(&file, key_line("others", "other")).unwrap();
    assert_eq!(client.end().await, ("unauthorized".to_owned(), 4401));
    assert_eq!(house.with_key().await.err().unwrap().0, 401);
    other.start().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_client_is_away_ends_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.toml");
    std::fs::write(&file, key_line("tests", KEY) + &key_line("others", "other")).unwrap();
    let mut settings = Gateway::default();
    settings.auth.keys_file = Some(file.clone());
    let house = House::open(settings).await;
    let mut client = house.with_key().await.unwrap();
    client.say(json!({"type": "session.start", "resume_window_ms": RESUME_WINDOW_MS})).await;
    let ready = client.next().await.unwrap();
    client.say(json!({"type": "context.open", "ctx": "t1"})).await;
    assert_eq!(client.next().await.unwrap()["type"], "context.opened");
    // Without a word, so that the session waits for its client.
    client.0.get_ref().set_zero_linger().unwrap();
    drop(client);
    std::fs::write(&file, key_line("others", "other")).unwrap();
    let is_open = async || {
        let metrics = house.get("/metrics", "").await.2;
        metrics.contains("\ndovecote_sessions_open 1\n")
    };
    assert!(is_open().await);
    let window = Duration::from_millis(RESUME_WINDOW_MS);
    until_within(window / 2, "over with its key", async || !is_open().await).await;

    let mut other = house.connect("", &[("x-api-key", "other")]).await.unwrap();
    let resume =
        json!({"session_id": ready["session_id"], "token": ready["token"], "last_n": ready["n"]});
    other.say(json!({"type": "session.start", "resume": resume})).await;
    assert_eq!(other.next().await.unwrap()["resumed"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_servers_may_not_connect_unless_they_are_listed() {
    let mut settings = Gateway::default();
    settings.server.origins = vec!["https://app.example".to_owned()];
    let house = House::open(settings).await;
    let from = async |origin: &str| house.connect("", &[("origin", origin)]).await.map(|_| ());
    assert_eq!(from("https://evil.example").await.unwrap_err().0, 403);
    assert!(from("https://app.example").await.is_ok());
    assert!(from(&format!("http://{}", house.address)).await.is_ok());
    let speech = json!({"input": "Hello."});
    let (status, ..) =
        house.post("/v1/audio/speech", "Origin: http://evil.example\r\n", &speech).await;
    assert_eq!(status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_limits_of_its_own() {
    let mut settings = locked();
    settings.auth.keys[0].max_sessions = Some(1);
    settings.auth.keys[0].chars_per_minute = Some(10);
    let house = House::open(settings).await;
    let client = house.with_key().await.unwrap();
    let (status, headers) = house.with_key().await.err().unwrap();
    assert_eq!((status, headers["retry-after"].to_str().unwrap()), (429, "1"));
    drop(client);
    until("a place again", async || house.with_key().await.is_ok()).await;

    let speech = json!({"input": "Ten chars.", "response_format": "pcm"});
    let say = async || loop {
        let answer = house.post("/v1/audio/speech", &bearer(KEY), &speech).await;
        // The last session may just be leaving.
        if !answer.2.contains("max_sessions") {
            return answer;
        }
    };
    let quiet = json!({"input": "Hi", "response_format": "none"});
    assert_eq!(house.post("/v1/audio/speech", &bearer(KEY), &quiet).await.0, 400);
    assert_eq!(say().await.0, 200);
    let (status, head, body) = say().await;
    assert_eq!(status, 429, "{body}");
    assert!(head.contains("retry-after: ") && body.contains("chars_per_minute of the key is 10"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_no_upgrade_takes_no_place() {
    let mut settings = Gateway::default();
    settings.server.max_sessions = 1;
    let house = House::open(settings).await;
    for _ in 0..40 {
        assert_eq!(house.get("/v1/tts/stream", "").await.0, 400);
    }
    house.connect("", &[]).await.unwrap().start().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_handshakes_are_cut_off_while_others_are_served() {
    let mut settings = Gateway::default();
    settings.server.handshake = SHORT;
    let house = House::open(settings).await;
    let slow = (0..200).map(|_| async {
        let mut stream = TcpStream::connect(house.address).await.unwrap();
        for byte in b"GET /v1/tts/stream HTTP/1.1\r\nHost: x\r\n".iter().cycle() {
            tokio::time::sleep(SHORT / 8).await;
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
        }
    });
    let slow = futures_util::future::join_all(slow);
    let normal = async { house.connect("", &[]).await.unwrap().start().await };
    let both = futures_util::future::join(slow, normal);
    tokio::time::timeout(PATIENCE, both).await.expect("a slow client was never cut off");
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_beyond_the_limit_are_told_to_come_back() {
    let mut settings = Gateway::default();
    settings.server.max_connections = 1;
    let house = House::open(settings).await;
    let mut client = house.connect("", &[]).await.unwrap();
    let mut stream = TcpStream::connect(house.address).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("Retry-After: 1"), "{answer}");
    client.start().await;
    drop(client);
    until("a place again", async || house.get("/healthz", "").await.0 == 200).await;
    let metrics = house.get("/metrics", "").await.2;
    assert!(metrics.contains("\ndovecote_connections_open 1\n"), "the one that asks");
    let refused =
        metrics.lines().find_map(|l| l.strip_prefix("dovecote_connections_refused_total "));
    assert!(refused.unwrap().parse::<u64>().unwrap() >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_too_long_and_a_body_that_is_too_slow_are_refused() {
    let mut settings = Gateway::default();
    settings.server.message = SHORT;
    let house = House::open(settings).await;
    let long = format!("X-Long: {}\r\n", "a".repeat(20_000));
    assert_eq!(house.get("/healthz", &long).await.0, 431);
    let head = "POST /v1/audio/speech HTTP/1.0\r\nContent-Length: 100\r\n\r\n{\"input\"";
    let (status, _, body) = house.ask(head).await;
    assert_eq!((status, body.contains("server.message_s")), (400, true), "{body}");
}

/// The form of a voice, up to the middle of its recording, and the rest.
fn form() -> (String, &'static str) {
    let (boundary, rest) = ("line", "\r\n--line--\r\n");
    let part = "--line\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nRIFF";
    let head = format!(
        "POST /v1/voices HTTP/1.0\r\nContent-Type: multipart/form-data; boundary={boundary}\r\n\
         Content-Length: {}\r\n\r\n{part}",
        part.len() + rest.len(),
    );
    (head, rest)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_has_a_limit_of_its_own() {
    let mut settings = Gateway::default();
    settings.server.message = SHORT;
    let house = House::open(settings.clone()).await;
    let (head, rest) = form();
    let mut stream = TcpStream::connect(house.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    // A message would be late by now.
    tokio::time::sleep(2 * SHORT).await;
    let (status, _, body) = ask(stream, rest).await;
    assert_eq!((status, body.contains("consent_required")), (400, true), "{body}");

    settings.voices.upload = SHORT;
    let house = House::open(settings).await;
    let (status, _, body) = house.ask(&head).await;
    assert_eq!((status, body.contains("voices.upload_s")), (400, true), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_claims_four_gigabytes_is_not_waited_for() {
    let house = House::open(Gateway::default()).await;
    let mut client = house.connect("", &[]).await.unwrap();
    let claim = [0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd];
    client.0.get_mut().write_all(&claim).await.unwrap();
    assert_eq!(client.end().await, ("message_too_big".to_owned(), 1009));
}

/// A fragment of a text, masked with zeros.
fn fragment(first: bool, bytes: usize) -> Vec<u8> {
    let mut frame = vec![u8::from(first), 0x80 | 126];
    frame.extend_from_slice(&u16::try_from(bytes).unwrap().to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.resize(frame.len() + bytes, b'a');
    frame
}

#[tokio::test(flavor = "multi_thread")]
async fn fragments_are_summed_up() {
    let house = House::open(Gateway::default()).await;
    let mut client = house.connect("", &[]).await.unwrap();
    for at in 0..2 {
        client.0.get_mut().write_all(&fragment(at == 0, 60_000)).await.unwrap();
    }
    assert_eq!(client.end().await, ("message_too_big".to_owned(), 1009));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_does_not_end_is_not_waited_for() {
    let mut settings = Gateway::default();
    settings.server.message = SHORT;
    let house = House::open(settings).await;
    let mut client = house.connect("", &[]).await.unwrap();
    client.start().await;
    // A quiet client may take its time.
    tokio::time::sleep(2 * SHORT).await;
    client.0.get_mut().write_all(&fragment(true, 10)).await.unwrap();
    // A pong between the fragments ends no message: an empty one, masked with zeros.
    client.0.get_mut().write_all(&[0x8a, 0x80, 0, 0, 0, 0]).await.unwrap();
    assert_eq!(client.end().await, ("idle_timeout".to_owned(), 4408));
}

mod tls {
    use super::*;

    /// Writes a new certificate, and returns what trusts it.
    fn certify(folder: &Path) -> tokio_rustls::TlsConnector {
        let ours = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(folder.join("cert.pem"), ours.cert.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), ours.signing_key.serialize_pem()).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(ours.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        tokio_rustls::TlsConnector::from(Arc::new(config))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn sessions_and_requests_go_through_it_and_a_new_certificate_is_taken_up() {
        let folder = tempfile::tempdir().unwrap();
        let first = certify(folder.path());
        let mut settings = Gateway::default();
        settings.tls.cert = Some(folder.path().join("cert.pem"));
        settings.tls.key = Some(folder.path().join("key.pem"));
        settings.server.handshake = SHORT;
        let house = House::open(settings).await;
        let connect = async |connector: &tokio_rustls::TlsConnector| {
            let stream = TcpStream::connect(house.address).await.unwrap();
            connector.connect(ServerName::try_from("localhost").unwrap(), stream).await
        };
        let stream = connect(&first).await.unwrap();
        assert_eq!(ask(stream, "GET /healthz HTTP/1.0\r\n\r\n").await.0, 200);
        let stream = connect(&first).await.unwrap();
        let mut client = Client::new(stream, "wss://localhost/v1/tts/stream", &[]).await.unwrap();
        client.start().await;

        let second = certify(folder.path());
        house.security.reload().unwrap();
        assert!(connect(&first).await.is_err(), "the old one is gone");
        assert!(connect(&second).await.is_ok());

        // Who speaks no TLS, or nothing, is let go.
        assert_eq!(house.get("/healthz", "").await.0, 0);
        let mut silent = TcpStream::connect(house.address).await.unwrap();
        let end = tokio::time::timeout(PATIENCE, silent.read(&mut [0; 1])).await;
        assert_eq!(end.expect("never let go").unwrap_or(0), 0);
    }
}
