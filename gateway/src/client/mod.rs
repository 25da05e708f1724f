//! A client of the native protocol `dovecote.v1`: text goes in, sound and what became of it come out.
//!
//! ```no_run
//! use gateway::client::{Event, Opening, Session, SessionOptions, Target};
//!
//! # async fn speak() -> Result<(), gateway::client::ClientError> {
//! let target = Target::new("http://127.0.0.1:8080")?;
//! let mut session = Session::connect(&target, &SessionOptions::default()).await?;
//! session.open("greeting", &Opening::default()).await?;
//! session.text("greeting", "Hello there, ").await?;
//! session.text("greeting", "how can I help you?").await?;
//! session.end("greeting").await?;
//! loop {
//!     match session.next().await? {
//!         Event::Audio(frame) => frame.packets().for_each(|packet| println!("{} bytes", packet.len())),
//!         Event::Done(_) | Event::Closed(_) => break,
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! It decodes no sound, plays nothing, and has no clock: whoever uses it decides how long to wait. What it reads is
//! declared apart from what the server writes, since it demands less; tests hold the two together.

mod answering;
mod command;
mod event;
mod frame;
mod target;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message as Wire, handshake::client::Response};

pub use command::{
    AudioOptions, CancelAt, ClientName, ContextOptions, Flow, Opening, Resume, SessionOptions,
    Timestamps,
};
pub use event::{
    Ahead, Audio, Cancelled, Closed, Closing, Commit, Done, Event, Freed, Heard, Limits, Opened,
    Pressure, Reached, Ready, ServerError, TextDelta, TextDone, TextRange, Timing,
};
pub use frame::{AudioFrame, Flag, FrameError};
pub use target::{Target, TargetError};

use crate::protocol::SUBPROTOCOL;
use command::Command;
use event::{Message, Numbered};

/// Bytes that one read of the socket may bring: some dozens of packets. The library clears as much before each read.
const READ_BYTES: usize = 8 << 10;

/// Why a client cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address cannot be used.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Nobody answers at the address.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Host and port.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The server does not let the client in.
    #[error("refused with HTTP {status}: {body}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// What the server said about it.
        body: String,
    },
    /// The server answers with something else than `dovecote.v1`.
    #[error("the server does not speak {SUBPROTOCOL}")]
    Subprotocol,
    /// The server takes the options of the session for wrong, or has no room.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server closed the connection before the session began.
    #[error("closed before the session began, with code {0:?}")]
    Closed(Option<u16>),
    /// The connection broke, or carries no WebSocket.
    #[error("the connection failed: {0}")]
    Socket(#[from] Box<tungstenite::Error>),
    /// A text message that no version of the server sends.
    #[error("a message that cannot be read: {0}")]
    Message(String),
    /// A binary message that is no sound.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl From<tungstenite::Error> for ClientError {
    fn from(error: tungstenite::Error) -> Self {
        Self::Socket(Box::new(error))
    }
}

/// A session with a gateway. Dropping it drops the connection, and with it what was not yet spoken.
#[derive(Debug)]
pub struct Session {
    socket: WebSocketStream<TcpStream>,
    ready: Ready,
    /// The next `seq` of the text of contexts that are not over.
    texts: HashMap<String, u64>,
    /// What came so far, for a server that keeps lost sessions.
    received: Received,
    /// The next `seq` of the sound that is sent, by handle.
    recordings: HashMap<u32, u32>,
}

/// How far a session has come, as its next connection must know it.
#[derive(Debug, Default)]
struct Received {
    is_kept: bool,
    last_n: u64,
    names: HashMap<u32, String>,
    last: BTreeMap<String, u32>,
}

impl Session {
    /// Connects and begins a session, or goes on with the one in [`SessionOptions::resume`].
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Refused`] has the answer of a server that lets nobody in.
    pub async fn connect(target: &Target, options: &SessionOptions) -> Result<Self, ClientError> {
        let mut socket = upgrade(target).await?;
        send(&mut socket, &Command::Start(options)).await?;
        let (ready, n) = ready(&mut socket).await?;
        let mut received = Received { is_kept: ready.resume_window_ms > 0, ..Default::default() };
        received.last_n = n;
        let mut texts = HashMap::new();
        if let Some(resume) = options.resume.as_ref().filter(|_| ready.resumed) {
            (received.last, received.names) = (resume.last.clone(), resume.names.clone());
            texts.extend(ready.next_text_seq.clone());
        }
        Ok(Self { socket, ready, texts, received, recordings: HashMap::new() })
    }

    /// What the server said at the beginning.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// What [`SessionOptions::resume`] needs to go on with this session when its connection is lost.
    pub fn resume(&self) -> Resume {
        Resume {
            session_id: self.ready.session_id.clone(),
            token: self.ready.token.clone(),
            last_n: self.received.last_n,
            last: self.received.last.clone(),
            names: self.received.names.clone(),
        }
    }

    /// Opens a context. `ctx` is a name of 1 to 64 bytes that was not used before in the session.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn open(&mut self, ctx: &str, opening: &Opening) -> Result<(), ClientError> {
        self.texts.insert(ctx.to_owned(), 0);
        self.send(&Command::Open { ctx, opening }).await
    }

    /// Appends to the text of a context.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn text(&mut self, ctx: &str, text: &str) -> Result<(), ClientError> {
        let next = self.texts.get_mut(ctx);
        let seq = next.map_or(0, |next| std::mem::replace(next, *next + 1));
        self.send(&Command::Text { ctx, seq, text }).await
    }

    /// Has everything so far spoken without waiting for more; answered by [`Event::Flushed`].
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn flush(&mut self, ctx: &str, id: &str) -> Result<(), ClientError> {
        self.send(&Command::Flush { ctx, id }).await
    }

    /// Asks to be told when the sound of the text so far was sent; answered by [`Event::Mark`].
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn mark(&mut self, ctx: &str, id: &str) -> Result<(), ClientError> {
        self.send(&Command::Mark { ctx, id }).await
    }

    /// Says that no more text follows; [`Event::Done`] comes behind the last sound.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn end(&mut self, ctx: &str) -> Result<(), ClientError> {
        self.send(&Command::End { ctx }).await
    }

    /// Stops a context, `"*"` all of them. `played` is the position that the listener had reached. Each is answered by
    /// one [`Event::Cancelled`], and no sound of it follows.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn cancel(
        &mut self,
        ctx: &str,
        played: Option<u64>,
        at: CancelAt,
    ) -> Result<(), ClientError> {
        self.send(&Command::Cancel { ctx, played, at }).await
    }

    /// Reports the position that the listener has reached; best every 200 to 500 ms.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn played(&mut self, ctx: &str, pos: u64) -> Result<(), ClientError> {
        self.send(&Command::Played { ctx, pos }).await
    }

    /// Shows that there is still somebody; answered by [`Event::Pong`].
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn ping(&mut self) -> Result<(), ClientError> {
        self.send(&Command::Ping { t: 0 }).await
    }

    /// Ends the session; with `drain` what was begun is spoken first. [`Event::Closed`] follows.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn end_session(&mut self, drain: bool) -> Result<(), ClientError> {
        self.send(&Command::EndSession { drain }).await
    }

    /// Breaks the connection off without a word, as a crash or a lost network would.
    pub fn reset(self) {
        // A connection that is gone already needs no breaking.
        let _ = self.socket.get_ref().set_zero_linger();
    }

    /// What comes next from the server. Nothing is lost when the future is dropped before it is ready.
    ///
    /// # Errors
    /// The connection broke, or the server says something that cannot be read.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            let event = match read(&mut self.socket).await? {
                Incoming::Audio(frame) => Some(Event::Audio(frame)),
                Incoming::Text(Numbered { n, message }) => {
                    self.received.last_n = n.max(self.received.last_n);
                    message.into_event()
                }
                Incoming::Closed(closed) => Some(Event::Closed(closed)),
            };
            if let Some(event) = event {
                self.note(&event);
                return Ok(event);
            }
        }
    }

    /// Keeps in mind what later messages, or a later connection, must know.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Opened(opened) if self.received.is_kept => {
                self.received.names.insert(opened.handle, opened.ctx.clone());
            }
            Event::Audio(frame) if self.received.is_kept => {
                if let Some(ctx) = self.received.names.get(&frame.handle) {
                    let seq = frame.seq.saturating_add(u32::from(frame.count).saturating_sub(1));
                    self.received.last.insert(ctx.clone(), seq);
                }
            }
            Event::Done(done) => _ = self.texts.remove(&done.ctx),
            Event::Cancelled(cancelled) => _ = self.texts.remove(&cancelled.ctx),
            _ => {}
        }
    }

    async fn send(&mut self, command: &Command<'_>) -> Result<(), ClientError> {
        send(&mut self.socket, command).await
    }
}

async fn send(
    socket: &mut WebSocketStream<TcpStream>,
    command: &Command<'_>,
) -> Result<(), ClientError> {
    Ok(socket.send(Wire::text(command.to_json())).await?)
}

/// The WebSocket, if the server lets the client in.
async fn upgrade(target: &Target) -> Result<WebSocketStream<TcpStream>, ClientError> {
    let address = target.address();
    let connect = |source| ClientError::Connect { address: address.clone(), source };
    let stream = TcpStream::connect(&address).await.map_err(connect)?;
    // A word must not wait for the answer to the one before.
    stream.set_nodelay(true).map_err(connect)?;
    let config = WebSocketConfig::default().read_buffer_size(READ_BYTES);
    let request = target.upgrade(Some(SUBPROTOCOL))?;
    let answer = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
    let (socket, response) = answer.map_err(refusal)?;
    let chosen = response.headers().get("sec-websocket-protocol");
    if chosen.is_none_or(|name| name != SUBPROTOCOL) {
        return Err(ClientError::Subprotocol);
    }
    Ok(socket)
}

fn refusal(error: tungstenite::Error) -> ClientError {
    match error {
        tungstenite::Error::Http(response) => refused(&response),
        error => error.into(),
    }
}

fn refused(response: &Response) -> ClientError {
    let body = response.body().as_deref().unwrap_or_default();
    let body = String::from_utf8_lossy(body).trim().to_owned();
    ClientError::Refused { status: response.status().as_u16(), body }
}

/// The server's first message and its number; an error on the way is the answer.
async fn ready(socket: &mut WebSocketStream<TcpStream>) -> Result<(Ready, u64), ClientError> {
    loop {
        match read(socket).await? {
            Incoming::Text(Numbered { message: Message::Ready(ready), n }) => {
                return Ok((*ready, n));
            }
            Incoming::Text(Numbered { message: Message::Error(error), .. }) => {
                return Err(error.into());
            }
            Incoming::Closed(closed) => return Err(ClientError::Closed(closed.code)),
            Incoming::Text(_) | Incoming::Audio(_) => {}
        }
    }
}

/// A message of the server, read.
enum Incoming {
    Text(Numbered),
    Audio(AudioFrame),
    Closed(Closed),
}

async fn read(socket: &mut WebSocketStream<TcpStream>) -> Result<Incoming, ClientError> {
    loop {
        match socket.next().await.transpose()? {
            Some(Wire::Text(json)) => return parse(&json).map(Incoming::Text),
            Some(Wire::Binary(bytes)) => return Ok(Incoming::Audio(AudioFrame::parse(bytes)?)),
            Some(Wire::Close(Some(frame))) => {
                let closed = Closed {
                    code: Some(frame.code.into()),
                    reason: frame.reason.as_str().to_owned(),
                };
                return Ok(Incoming::Closed(closed));
            }
            Some(Wire::Close(None)) | None => {
                return Ok(Incoming::Closed(Closed { code: None, reason: String::new() }));
            }
            // Pings are answered by the library, with what is sent or read next.
            Some(Wire::Ping(_) | Wire::Pong(_) | Wire::Frame(_)) => {}
        }
    }
}

/// Reads a message, and forgets it.
pub(crate) fn read_message(json: &str) {
    let _ = parse(json).map(|numbered| numbered.message.into_event());
}

fn parse(json: &str) -> Result<Numbered, ClientError> {
    serde_json::from_str(json).map_err(|e| ClientError::Message(e.to_string()))
}
