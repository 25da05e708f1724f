//! A real server on a real socket, with the bundled voice, and the plainest of clients.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]
#![allow(dead_code, reason = "each test takes what it needs")]

pub(crate) mod hearing;
pub(crate) mod waiting;
pub(crate) mod wire;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::http::HeaderName;
use engine::bundle::Bundle;
use futures_util::{SinkExt, StreamExt};
use gateway::config::Gateway;
use gateway::protocol::Catalogue;
use gateway::server;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, MutexGuard, oneshot};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use waiting::until;

pub(crate) use waiting::PATIENCE;

/// An engine under way, and what it offers.
pub(crate) type Engine = (Arc<engine::Handle>, Catalogue);

/// One engine for all tests of a file, and one test at a time: they count what the engine holds.
static ENGINE: LazyLock<Mutex<Engine>> =
    LazyLock::new(|| Mutex::new(start(&repository("voices/nano"))));

/// Starts a bundle.
pub(crate) fn start(root: &Path) -> Engine {
    let bundle = Bundle::open(root).unwrap();
    let engine =
        engine::Handle::start(&[bundle.clone().into()], &engine::Options::default(), &mut |_| {})
            .unwrap();
    (Arc::new(engine), Catalogue::of(&bundle))
}

/// Starts bundles of the repository, of any family.
pub(crate) fn start_all(paths: &[&str]) -> Engine {
    let open = |path: &&str| engine::bundle::open(&repository(path)).unwrap();
    let bundles: Vec<_> = paths.iter().map(open).collect();
    let engine = engine::Handle::start(&bundles, &engine::Options::default(), &mut |_| {}).unwrap();
    (Arc::new(engine), Catalogue::of_all(&bundles))
}

/// A path in the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path).canonicalize().unwrap()
}

/// A server that lives as long as this does.
pub(crate) struct House {
    address: SocketAddr,
    engine: Arc<engine::Handle>,
    _alone: Option<MutexGuard<'static, Engine>>,
    shutdown: Option<oneshot::Sender<()>>,
    _served: JoinHandle<std::io::Result<()>>,
}

impl House {
    /// A server with all defaults.
    pub(crate) async fn open() -> Self {
        Self::with(Gateway::default()).await
    }

    /// A server with these settings.
    pub(crate) async fn with(config: Gateway) -> Self {
        let alone = ENGINE.lock().await;
        let engine = alone.clone();
        Self { _alone: Some(alone), ..Self::of(engine, config).await }
    }

    /// A server of this engine, when it is ready.
    pub(crate) async fn of((engine, catalogue): Engine, config: Gateway) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (shutdown, asked) = oneshot::channel();
        let handle = engine.clone();
        let served = tokio::spawn(async move {
            let asked = async {
                let _ = asked.await;
            };
            server::run(config, listener, handle, catalogue, asked).await
        });
        let house =
            Self { address, engine, _alone: None, shutdown: Some(shutdown), _served: served };
        let ready = async || {
            let (head, _) = house.answer("GET /readyz HTTP/1.0\r\n\r\n").await;
            status(&head) == 200
        };
        until("ready", ready).await;
        house
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks the server to go down.
    pub(crate) fn shut_down(&mut self) {
        self.shutdown = None;
    }

    pub(crate) fn engine(&self) -> &engine::Handle {
        &self.engine
    }

    pub(crate) async fn until(&self, what: &str, holds: impl AsyncFnMut() -> bool) {
        until(what, holds).await;
    }

    /// Until the engine holds nothing for anybody.
    pub(crate) async fn until_idle(&self) {
        let idle = async || {
            let stats = self.engine().stats();
            stats.contexts == 0 && stats.kv_blocks_in_use == 0
        };
        until("idle", idle).await;
    }

    /// Head and body of the answer to a JSON body.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> (String, Vec<u8>) {
        self.answer(&post(path, "application/json", body.to_string().as_bytes())).await
    }

    /// Head and body. HTTP 1.0: the body is whatever comes until the end.
    pub(crate) async fn answer(&self, request: impl AsRef<[u8]>) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // A server that has read enough may answer and close before it has read everything.
        let _ = stream.write_all(request.as_ref()).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        let _ = read.expect("no answer in time");
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        (String::from_utf8(answer[..end].to_vec()).unwrap(), answer[end + 4..].to_vec())
    }

    /// The head of the answer to an upgrade, with these headers beside the usual ones; the connection is dropped.
    pub(crate) async fn handshake(&self, path: &str, headers: &[(&str, &str)]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
        let mut head = Vec::new();
        let read = async {
            while !head.windows(4).any(|w| w == b"\r\n\r\n") {
                assert!(stream.read_buf(&mut head).await.unwrap() > 0, "no answer");
            }
        };
        tokio::time::timeout(PATIENCE, read).await.expect("no answer in time");
        String::from_utf8_lossy(&head).into_owned()
    }

    /// An open WebSocket.
    pub(crate) async fn socket(&self, path: &str, headers: &[(&str, &str)]) -> Socket {
        let mut request = format!("ws://{}{path}", self.address).into_client_request().unwrap();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (inner, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        Socket { inner }
    }

    /// A request whose answer is still to be read.
    pub(crate) async fn begin(&self, path: &str, body: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = post(path, "application/json", body.to_string().as_bytes());
        stream.write_all(&request).await.unwrap();
        stream
    }
}

/// A WebSocket to the house.
pub(crate) struct Socket {
    inner: WebSocketStream<TcpStream>,
}

impl Socket {
    /// Sends a JSON message.
    pub(crate) async fn send(&mut self, message: &Value) {
        self.inner.send(Message::text(message.to_string())).await.unwrap();
    }

    /// Sends a binary message.
    pub(crate) async fn send_bytes(&mut self, bytes: Vec<u8>) {
        self.inner.send(Message::binary(bytes)).await.unwrap();
    }

    /// Sends JSON messages in one write.
    pub(crate) async fn send_together(&mut self, messages: &[Value]) {
        for message in messages {
            self.inner.feed(Message::text(message.to_string())).await.unwrap();
        }
        self.inner.flush().await.unwrap();
    }

    /// Asks whether anybody is there.
    pub(crate) async fn ping(&mut self, payload: &'static [u8]) {
        self.inner.send(Message::Ping(payload.into())).await.unwrap();
    }

    /// The answer to a ping, and what came before it.
    pub(crate) async fn pong(&mut self) -> (Vec<Message>, Bytes) {
        let mut before = Vec::new();
        loop {
            let next = tokio::time::timeout(PATIENCE, self.inner.next()).await;
            match next.expect("no pong in time").expect("the socket is gone").unwrap() {
                Message::Pong(payload) => return (before, payload),
                Message::Ping(_) => {}
                message => before.push(message),
            }
        }
    }

    /// Says goodbye, as clients do.
    pub(crate) async fn close(mut self) {
        self.inner.close(None).await.unwrap();
    }

    /// The next message that is no ping.
    pub(crate) async fn next(&mut self) -> Message {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.inner.next()).await;
            match next.expect("no message in time").expect("the socket is gone").unwrap() {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return message,
            }
        }
    }

    /// The next message, which is JSON.
    pub(crate) async fn json(&mut self) -> Value {
        match self.next().await {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

/// A request with a body.
pub(crate) fn post(path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.0\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// A form as clients send it; the part `file` is one.
pub(crate) fn form(path: &str, parts: &[(&str, &[u8])]) -> Vec<u8> {
    const BOUNDARY: &str = "b0undary";
    let mut body = Vec::new();
    for (name, content) in parts {
        let file = if *name == "file" { "; filename=\"../me.wav\"" } else { "" };
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n"
        );
        body.extend(head.as_bytes());
        body.extend(*content);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{BOUNDARY}--\r\n").as_bytes());
    post(path, &format!("multipart/form-data; boundary={BOUNDARY}"), &body)
}

/// The body of an answer that is still to be read.
pub(crate) async fn body(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    read.expect("no answer in time").unwrap();
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    answer.split_off(end + 4)
}

/// The status in a head.
pub(crate) fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}
