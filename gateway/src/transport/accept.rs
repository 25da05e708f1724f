//! From the listener to requests: sockets are counted, handshakes have a time limit, heads a size. Knows no route.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt;

use super::tls::Tls;
use super::wire::{Place, Wire};
use crate::config;
use crate::metrics::Connections;

/// When to try again after the system had no socket to give.
const EXHAUSTED_RETRY: Duration = Duration::from_millis(100);
/// What a socket beyond the limit is told; encrypted ones cannot be told anything.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// What every connection is served with.
pub(crate) struct Acceptor {
    pub(crate) router: Router,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) settings: config::Server,
    pub(crate) counts: Connections,
    /// Becomes true when nobody new is to be let in, and the others are to leave after what they are at.
    pub(crate) stop: watch::Receiver<bool>,
}

impl Acceptor {
    /// Serves until it is told to stop and the last connection is gone.
    pub(crate) async fn run(mut self, listener: TcpListener) {
        let places_total = self.settings.max_connections.min(Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(places_total));
        let mut stop = self.stop.clone();
        self.settings.max_connections = places_total;
        let ours = Arc::new(self);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            match accepted {
                Ok((stream, peer)) => match places.clone().try_acquire_owned() {
                    Ok(permit) => {
                        let place = Place::new(permit, &ours.counts.open);
                        tokio::spawn(ours.clone().connection(stream, peer, place));
                    }
                    Err(_) => ours.refuse(&stream),
                },
                // Of the one that wanted to connect, not of the listener.
                Err(error) if is_of_peer(&error) => {}
                Err(error) => {
                    tracing::error!("no more sockets: {error}");
                    tokio::time::sleep(EXHAUSTED_RETRY).await;
                }
            }
        }
        drop(listener);
        // All places together are free only when nobody is left.
        let all = u32::try_from(places_total).unwrap_or(u32::MAX);
        let _ = places.acquire_many(all).await;
    }

    fn refuse(&self, stream: &TcpStream) {
        self.counts.refused.inc();
        tracing::warn!("server.max_connections of {} is reached", self.settings.max_connections);
        if self.tls.is_none() {
            // Its buffer is empty, so this goes out at once or never.
            let _ = stream.try_write(FULL);
        }
    }

    /// One connection, from TLS to its last request. What becomes a WebSocket goes on elsewhere.
    async fn connection(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, place: Place) {
        // Small frames must not wait for the answer to those before.
        let _ = stream.set_nodelay(true);
        let has_asked = AtomicBool::new(false);
        let served = async {
            match &self.tls {
                None => {
                    let wire = Wire::new(stream, place, forget);
                    self.requests(wire, peer, &has_asked).await;
                }
                Some(tls) => {
                    // A client that speaks no TLS has nobody to be told so.
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let wire = Wire::new(stream, place, |stream| forget(stream.get_ref().0));
                    self.requests(wire, peer, &has_asked).await;
                }
            }
        };
        let mut served = pin!(served);
        // TLS and the first head have one limit together.
        tokio::select! {
            () = &mut served => return,
            () = tokio::time::sleep(self.settings.handshake) => {}
        }
        if has_asked.load(Ordering::Relaxed) {
            served.await;
        }
    }

    async fn requests<S>(&self, wire: Wire<S>, peer: SocketAddr, has_asked: &AtomicBool)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let meter = wire.meter();
        let service = service_fn(|request: hyper::Request<Incoming>| {
            has_asked.store(true, Ordering::Relaxed);
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(meter.clone());
            let router = self.router.clone();
            async move {
                Ok::<_, Infallible>(router.oneshot(request).await.unwrap_or_else(|e| match e {}))
            }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.settings.handshake)
            .max_header_size(self.settings.max_header_bytes);
        let mut served = pin!(http.serve_connection(TokioIo::new(wire), service).with_upgrades());
        let mut stop = self.stop.clone();
        tokio::select! {
            // Whoever breaks off has nobody to be told so.
            _ = served.as_mut() => return,
            _ = stop.wait_for(|stop| *stop) => served.as_mut().graceful_shutdown(),
        }
        let _ = served.await;
    }
}

/// A socket that is closed now is reset, whatever was not sent.
fn forget(stream: &TcpStream) {
    // One that is broken already has nothing left to forget.
    let _ = stream.set_zero_linger();
}

fn is_of_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
