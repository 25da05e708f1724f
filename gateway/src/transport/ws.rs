//! The upgrade of `GET /v1/tts/stream` and of other vendors' addresses, and WebSocket messages to inputs and frames back.
//! Understands no message.

mod vendors;

use std::error::Error as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::ws::{
    CloseFrame, Message, WebSocket, WebSocketUpgrade, rejection::WebSocketUpgradeRejection,
};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{Sink, SinkExt, Stream};
use tokio_tungstenite::tungstenite;

pub(crate) use self::vendors::{speaks, speaks_once_known};

use crate::access::Access;
use crate::auth::Caller;
use crate::driver::{Clock, drive};
use crate::foreign::{Dialect, Interpreter};
use crate::metrics::SessionMeter;
use crate::protocol::{Frame, Input, SUBPROTOCOL, Session, Setup};
use crate::server::Server;
use crate::sessions::Admission;
use crate::transport::http::problem;
use crate::transport::patience::Patience;
use crate::transport::wire::Meter;

/// Bytes of the client that one read may bring: a dozen words.
const READ_BYTES: usize = 1 << 10;
/// Bytes of frames that one write may carry: half a second of Opus. With one more frame they are less than 4 KiB, which is
/// what the library's buffer then stays at.
const WRITE_BYTES: usize = 3 << 10;

/// Answers an upgrade, or says why not.
pub(crate) async fn stream(
    State(server): State<Arc<Server>>,
    Extension(access): Extension<Access>,
    Extension(caller): Extension<Caller>,
    Extension(meter): Extension<Meter>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let offered = headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL);
    let upgrade = upgrade.protocols([SUBPROTOCOL]);
    // A client of another version must not be answered in this one.
    if offered && upgrade.selected_protocol().is_none() {
        let message = format!("the subprotocol here is {SUBPROTOCOL}");
        return problem(StatusCode::BAD_REQUEST, "unknown_subprotocol", None, &message);
    }
    let setup = server.session_setup(&caller, false);
    match server.admit(&caller) {
        Ok(admission) => {
            let visit = Visit { server, access, caller, meter };
            serve(visit, Talk { setup, dialect: None, first: None }, admission, upgrade)
        }
        Err(refused) => refused.into_response(),
    }
}

/// Somebody at the door.
struct Visit {
    server: Arc<Server>,
    access: Access,
    caller: Caller,
    meter: Meter,
}

/// What a session begins with.
struct Talk {
    setup: Setup,
    /// None: the native protocol.
    dialect: Option<Box<dyn Dialect>>,
    /// What the client has said already.
    first: Option<String>,
}

/// Serves a session in its place.
fn serve(visit: Visit, talk: Talk, admission: Admission, upgrade: WebSocketUpgrade) -> Response {
    let upgrade = bounded(upgrade, &visit.server);
    // The task keeps room for what begins the session as long as that lasts.
    upgrade.on_upgrade(Box::new(move |socket| visit.hold(socket, talk, admission)))
}

/// An upgrade with the limits of this server.
fn bounded(upgrade: WebSocketUpgrade, server: &Server) -> WebSocketUpgrade {
    let limit = server.config.limits.max_message_bytes;
    upgrade
        .max_message_size(limit)
        .max_frame_size(limit)
        // The library clears as much before each read, and keeps it for the life of the connection.
        .read_buffer_size(READ_BYTES)
        // Frames that are handed over together go out in one call; the driver flushes at the end of each turn.
        .write_buffer_size(WRITE_BYTES)
}

impl Visit {
    /// Holds a session to its end, and its place as long.
    fn hold(self, socket: WebSocket, talk: Talk, admission: Admission) -> Stay {
        let Talk { setup, dialect, first } = talk;
        let Self { server, access, caller, meter } = self;
        meter.keep_end();
        let clock = Clock::start();
        let mut session = Box::new(Session::new(setup, clock.now()));
        let mut interpreter = match dialect {
            Some(dialect) => Interpreter::greet(dialect, &mut session, clock.now()),
            None => Interpreter::native(),
        };
        if let Some(first) = first {
            interpreter.hear(&mut session, clock.now(), Input::Message(first));
        }
        let counts = SessionMeter::new(server.metrics.clone(), access);
        let patience = Patience::new(meter.clone(), server.config.server.message);
        let socket = Box::new(Socket::new(socket, caller, patience, meter));
        let drain = admission.drain.clone();
        Box::pin(async move {
            drive((session, interpreter), socket, &server, clock, drain, counts).await;
            drop(admission);
        })
    }
}

/// A session under way.
type Stay = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Comes true with a reason when a caller may speak no longer.
pub(crate) type End = Pin<Box<dyn Future<Output = &'static str> + Send>>;

/// A WebSocket, as the driver sees it.
pub(crate) struct Socket {
    inner: WebSocket,
    /// A message could not be read: what follows would be read wrong.
    is_deaf: bool,
    patience: Patience,
    /// Knows whether the client has closed its half of the connection.
    meter: Meter,
    /// None once it has come.
    end: Option<End>,
}

impl Socket {
    fn new(inner: WebSocket, caller: Caller, patience: Patience, meter: Meter) -> Self {
        let end = Some(Box::pin(caller.end()) as End);
        Self { inner, is_deaf: false, patience, meter, end }
    }

    /// The client's next message. Nothing comes after [`Input::Gone`], nor after a message that could not be read.
    pub(crate) fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        if let Some(end) = &mut self.end
            && let Poll::Ready(reason) = end.as_mut().poll(cx)
        {
            self.end = None;
            return Poll::Ready(Input::Unauthorized(reason));
        }
        while !self.is_deaf {
            let Poll::Ready(message) = Pin::new(&mut self.inner).poll_next(cx) else {
                if self.meter.has_ended() {
                    self.is_deaf = true;
                    return Poll::Ready(Input::HalfClosed);
                }
                let Poll::Ready(limit) = self.patience.poll(cx) else { return Poll::Pending };
                self.is_deaf = true;
                return Poll::Ready(Input::TooSlow(limit));
            };
            match &message {
                Some(Ok(Message::Ping(payload) | Message::Pong(payload))) => {
                    self.patience.control(payload.len());
                }
                _ => self.patience.complete(),
            }
            let input = match message {
                Some(Ok(Message::Text(text))) => Input::Message(text.as_str().to_owned()),
                Some(Ok(Message::Binary(bytes))) => Input::Binary(bytes),
                Some(Ok(Message::Pong(_))) => Input::Pong,
                // Answered by the library, with the next flush.
                Some(Ok(Message::Ping(_))) => continue,
                Some(Ok(Message::Close(_))) => {
                    self.is_deaf = true;
                    Input::Gone
                }
                None => Input::Lost,
                Some(Err(error)) => {
                    self.is_deaf = true;
                    unreadable(&error)
                }
            };
            return Poll::Ready(input);
        }
        Poll::Pending
    }

    /// Whether a frame can be handed over.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
        Pin::new(&mut self.inner).poll_ready(cx)
    }

    /// Hands a frame over.
    pub(crate) fn send(&mut self, frame: Frame) -> Result<(), axum::Error> {
        let message = match frame {
            Frame::Text(json) => Message::Text(json.into()),
            Frame::Audio(bytes) => Message::Binary(bytes),
            Frame::Ping => Message::Ping(bytes::Bytes::new()),
            Frame::Close { code, reason } => {
                Message::Close(Some(CloseFrame { code, reason: reason.into() }))
            }
        };
        Pin::new(&mut self.inner).start_send(message)
    }

    /// Whether everything handed over is on the wire.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    /// Lets go of a client that is not there: what it has not taken is not kept for it, neither here nor in the system. Gives
    /// what ends its session all the same.
    pub(crate) fn abandon(self) -> Option<End> {
        self.meter.abandon();
        self.end
    }

    /// Answers the client's close, if there was one, and lets go.
    pub(crate) async fn close(mut self: Box<Self>) {
        // A client that is gone cannot be told so.
        let _ = self.inner.close().await;
    }
}

fn unreadable(error: &axum::Error) -> Input {
    match error.source().and_then(|e| e.downcast_ref::<tungstenite::Error>()) {
        Some(tungstenite::Error::Capacity(_)) => Input::TooBig,
        Some(tungstenite::Error::Utf8(_)) => Input::NotUtf8,
        _ => Input::Lost,
    }
}
