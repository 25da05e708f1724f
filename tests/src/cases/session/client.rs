//! One client: a WebSocket made by hand, so that it can misbehave, with a transcript of all. What other vendors' clients say
//! and hear stands there in the native words.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Mutex as AsyncMutex, watch};

use super::clock::Clock;
use super::format::Format;
use super::transcript::{Seen, Transcript, What};
use super::vendor::{Client, Vendor};
use super::wire::{self, FIN, Frame, opcode};

/// What the kernel keeps for a client that does not read: as little as it takes, so that the server feels it.
const RECEIVE_BYTES: u32 = 8_192;
/// Longest wait for a handshake or for `session.ready`.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a connection is made.
#[derive(Debug, Clone)]
pub(super) struct Dial {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) format: Format,
    /// `session.start`, or another vendor's first message; null for none.
    pub(super) start: Value,
    /// Whose protocol is spoken; none: ours.
    pub(super) vendor: Option<Vendor>,
}

/// A context as the client knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Context {
    pub(super) seed: u64,
    pub(super) is_opened: bool,
    /// Number of the next delta.
    pub(super) seq: u64,
    /// All text that was sent.
    pub(super) text: String,
    /// How far the transcript has been waited through.
    pub(super) cursor: usize,
}

/// One connection, or the attempt at one.
pub(super) struct Connection {
    pub(super) dial: Dial,
    /// Status of the answer to the handshake; 0: the server closed without one.
    pub(super) status: u16,
    /// Its head.
    pub(super) head: String,
    pub(super) transcript: Arc<Transcript>,
    clock: Clock,
    contexts: Mutex<BTreeMap<String, Context>>,
    client: Option<Arc<Mutex<Client>>>,
    writer: Arc<AsyncMutex<Option<OwnedWriteHalf>>>,
    /// Until when nothing is read.
    stalled: watch::Sender<Duration>,
}

impl Connection {
    /// Connects and shakes hands; an answer that refuses is no error. Then starts a session, and waits for its answer.
    ///
    /// # Errors
    /// No answer in time.
    pub(super) async fn open(
        address: SocketAddr,
        dial: Dial,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(RECEIVE_BYTES)?;
        let mut connection = Self {
            status: 0,
            head: String::new(),
            transcript: Arc::new(Transcript::default()),
            clock,
            contexts: Mutex::default(),
            client: dial.vendor.clone().map(|vendor| Arc::new(Mutex::new(Client::new(vendor)))),
            writer: Arc::default(),
            stalled: watch::Sender::new(Duration::ZERO),
            dial,
        };
        let Ok(mut stream) = socket.connect(address).await else {
            connection.transcript.add(clock.now(), What::Gone);
            return Ok(connection);
        };
        stream.set_nodelay(true)?;
        let shaken = tokio::time::timeout(PATIENCE, shake_hands(&mut stream, &connection.dial));
        let (status, head, early) = shaken.await.context("no answer to the handshake")??;
        (connection.status, connection.head) = (status, head);
        if status != 101 {
            connection.transcript.add(clock.now(), What::Gone);
            return Ok(connection);
        }
        let (reader, writer) = stream.into_split();
        connection.writer = Arc::new(AsyncMutex::new(Some(writer)));
        let (transcript, stalled) = (connection.transcript.clone(), connection.stalled.subscribe());
        let client = connection.client.clone();
        let reader = Reader {
            reader,
            writer: connection.writer.clone(),
            transcript,
            clock,
            stalled,
            client,
        };
        tokio::spawn(reader.run(early));
        let start = connection.dial.start.clone();
        if !start.is_null() {
            connection.send(&start).await;
        }
        let welcome = match &connection.dial.vendor {
            Some(vendor) => vendor.welcome(),
            None => Some("session.ready"),
        };
        if let Some(welcome) = welcome {
            let answered = connection.transcript.until(|seen| {
                let is_answer =
                    |s: &&Seen| s.is_event(welcome, None) || matches!(s.what, What::Gone);
                seen.iter().find(is_answer).map(|_| ())
            });
            tokio::time::timeout(PATIENCE, answered)
                .await
                .context("no answer to the first message")?;
        }
        Ok(connection)
    }

    /// Looks at what another vendor's client remembers; none where ours is spoken. Not while looking at the transcript, which
    /// grows under the same lock.
    pub(super) fn with_client<T>(&self, look: impl FnOnce(&Client) -> T) -> Option<T> {
        let client = self.client.as_ref()?;
        Some(look(&client.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Sends a message in another vendor's words; `ctx` is whose it is, where only the case says so. The transcript has what it
    /// means.
    pub(super) async fn send_raw(&self, message: &Value, ctx: Option<&str>) {
        if let Some(client) = &self.client {
            let mut client = client.lock().unwrap_or_else(PoisonError::into_inner);
            let meaning = client.told(message, ctx);
            let mut contexts = self.contexts();
            for turn in &client.turns {
                contexts.entry(turn.ctx.clone()).or_default().text = turn.text.clone();
            }
            for meant in meaning {
                self.transcript.add(self.clock.now(), What::Sent(meant));
            }
        }
        self.send_frame(FIN | opcode::TEXT, message.to_string().as_bytes()).await;
    }

    /// The contexts that were named on this connection.
    pub(super) fn contexts(&self) -> MutexGuard<'_, BTreeMap<String, Context>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a JSON message.
    pub(super) async fn send(&self, message: &Value) {
        self.transcript.add(self.clock.now(), What::Sent(message.clone()));
        self.send_frame(FIN | opcode::TEXT, message.to_string().as_bytes()).await;
    }

    /// Sends one frame. A connection that has ended takes it and drops it.
    pub(super) async fn send_frame(&self, first: u8, payload: &[u8]) -> bool {
        if first & 0x0f == opcode::PING {
            self.transcript.add(self.clock.now(), What::Pinged);
        }
        self.send_bytes(&wire::encode(first, payload)).await
    }

    /// Sends bytes as they are. Returns whether they could be.
    pub(super) async fn send_bytes(&self, bytes: &[u8]) -> bool {
        let mut writer = self.writer.lock().await;
        match writer.as_mut() {
            Some(writer) => writer.write_all(bytes).await.is_ok(),
            None => false,
        }
    }

    /// Sends a close frame.
    pub(super) async fn close(&self, code: u16) {
        self.transcript.add(self.clock.now(), What::Sent(json!({"close": code})));
        self.send_frame(FIN | opcode::CLOSE, &code.to_be_bytes()).await;
    }

    /// Ends the own side of the stream, and goes on reading.
    pub(super) async fn half_close(&self) {
        if let Some(writer) = self.writer.lock().await.as_mut() {
            let _ = writer.shutdown().await;
        }
    }

    /// Resets the connection, as a client does that crashes.
    pub(super) async fn drop_tcp(&self) {
        let Some(writer) = self.writer.lock().await.take() else { return };
        // Nothing lingers: the kernel answers the next packet with a reset.
        let _ = writer.as_ref().set_zero_linger();
        self.transcript.add(self.clock.now(), What::Gone);
        self.stalled.send_replace(Duration::MAX);
        writer.forget();
    }

    /// Reads nothing for so long.
    pub(super) fn stall(&self, time: Duration) {
        self.stalled.send_replace(self.clock.now() + time);
    }

    /// Whether the end of the stream was seen.
    pub(super) fn is_gone(&self) -> bool {
        self.transcript.with(|seen| seen.iter().any(|s| matches!(s.what, What::Gone)))
    }
}

/// Sends the request of an upgrade and reads the head of the answer. What came behind it is given back.
async fn shake_hands(
    stream: &mut TcpStream,
    dial: &Dial,
) -> anyhow::Result<(u16, String, Vec<u8>)> {
    let mut request = format!(
        "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        dial.path
    );
    for (name, value) in &dial.headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    let end = loop {
        if let Some(end) = answer.windows(4).position(|w| w == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut answer).await.unwrap_or(0) == 0 {
            return Ok((0, String::new(), Vec::new()));
        }
    };
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    Ok((status, head, answer.split_off(end + 4)))
}

/// Reads to the end, into the transcript. Pings are answered by whoever reads, as a client's library does.
struct Reader {
    reader: OwnedReadHalf,
    writer: Arc<AsyncMutex<Option<OwnedWriteHalf>>>,
    transcript: Arc<Transcript>,
    clock: Clock,
    stalled: watch::Receiver<Duration>,
    client: Option<Arc<Mutex<Client>>>,
}

impl Reader {
    async fn run(mut self, mut bytes: Vec<u8>) {
        let mut message = (0, Vec::new());
        loop {
            while let Some((frame, end)) = wire::decode(&bytes) {
                bytes.drain(..end);
                self.take(frame, &mut message).await;
            }
            if !self.wait_out_stall().await {
                return;
            }
            let read = tokio::select! {
                read = self.reader.read_buf(&mut bytes) => read.unwrap_or(0),
                _ = self.stalled.changed() => continue,
            };
            if read == 0 {
                return self.transcript.add(self.clock.now(), What::Gone);
            }
        }
    }

    /// Waits as long as nothing is to be read. Returns whether anything ever will be.
    async fn wait_out_stall(&mut self) -> bool {
        loop {
            let until = *self.stalled.borrow_and_update();
            if until == Duration::MAX {
                return false;
            }
            let left = until.saturating_sub(self.clock.now());
            if left.is_zero() {
                return true;
            }
            let _ = tokio::time::timeout(left, self.stalled.changed()).await;
        }
    }

    async fn take(&self, frame: Frame, message: &mut (u8, Vec<u8>)) {
        let at = self.clock.now();
        match frame.first & 0x0f {
            opcode::PING => {
                self.transcript.add(at, What::Ping);
                if let Some(writer) = self.writer.lock().await.as_mut() {
                    // Whoever cannot be answered is found out by the next read.
                    let pong = wire::encode(FIN | opcode::PONG, &frame.payload);
                    let _ = writer.write_all(&pong).await;
                }
            }
            opcode::PONG => self.transcript.add(at, What::Pong),
            opcode::CLOSE => {
                let code =
                    frame.payload.get(..2).map_or(1005, |c| u16::from_be_bytes([c[0], c[1]]));
                let reason = frame.payload.get(2..).unwrap_or_default().to_vec();
                self.transcript.add(at, What::Close { code, reason });
            }
            data => {
                if data != opcode::CONTINUATION {
                    message.0 = data;
                }
                message.1.extend(frame.payload);
                if frame.first & FIN != 0 {
                    self.understand(at, message.0, &std::mem::take(&mut message.1));
                }
            }
        }
    }

    fn understand(&self, at: Duration, kind: u8, message: &[u8]) {
        let client = self.client.as_ref();
        let mut client = client.map(|c| c.lock().unwrap_or_else(PoisonError::into_inner));
        let transcript = &self.transcript;
        if kind == opcode::BINARY {
            return match &mut client {
                Some(client) => transcript.add(at, client.sound(message)),
                None => transcript.add_binary(at, message),
            };
        }
        let event: Value = match serde_json::from_slice(message) {
            Ok(event) => event,
            Err(error) => return transcript.add(at, What::Odd(format!("not JSON: {error}"))),
        };
        match &mut client {
            Some(client) => {
                client.heard(&event).into_iter().for_each(|what| transcript.add(at, what));
            }
            None => transcript.add(at, What::Event(event)),
        }
    }
}
