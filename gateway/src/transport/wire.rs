//! A socket that counts what it reads and holds its place among the connections, whatever it becomes.
//!
//! It can also keep to itself that the other side says no more: a WebSocket library that reads an end writes no more either,
//! but who has closed one half of a connection may still listen on the other.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use prometheus::IntGauge;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;

use crate::metrics::Held;

/// A socket with a meter.
pub(crate) struct Wire<S> {
    inner: S,
    meter: Meter,
    /// Makes the system forget what the other side has not taken, once the socket is closed.
    forget: fn(&S),
    _place: Place,
}

/// A place among the connections, counted until it is dropped.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
    _open: Held,
}

impl Place {
    pub(crate) fn new(permit: OwnedSemaphorePermit, open: &IntGauge) -> Self {
        Self { _permit: permit, _open: Held::new(open) }
    }
}

/// How many bytes a socket has read so far, and whether that was all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<Readings>);

#[derive(Debug, Default)]
struct Readings {
    bytes: AtomicU64,
    keeps_end: AtomicBool,
    has_ended: AtomicBool,
    is_abandoned: AtomicBool,
}

impl Meter {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// From now on the end of what comes in is told here only; reading goes on without one.
    pub(crate) fn keep_end(&self) {
        self.0.keeps_end.store(true, Ordering::Relaxed);
    }

    /// Whether the end has come that is told here only.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::Relaxed)
    }

    /// Nobody is on the other side: when the socket is closed, nothing waits for anybody to take it.
    pub(crate) fn abandon(&self) {
        self.0.is_abandoned.store(true, Ordering::Relaxed);
    }

    /// Takes note of a read. Returns whether it is to be told further.
    fn read(&self, bytes: usize, is_end: bool) -> bool {
        self.0.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let is_kept = is_end && self.0.keeps_end.load(Ordering::Relaxed);
        self.0.has_ended.fetch_or(is_kept, Ordering::Relaxed);
        !is_kept
    }
}

impl<S> Wire<S> {
    /// `forget` is for sockets that are abandoned: what was not taken is then thrown away instead of sent.
    pub(crate) fn new(inner: S, place: Place, forget: fn(&S)) -> Self {
        Self { inner, meter: Meter::default(), forget, _place: place }
    }

    pub(crate) fn meter(&self) -> Meter {
        self.meter.clone()
    }
}

impl<S> Drop for Wire<S> {
    fn drop(&mut self) {
        if self.meter.0.is_abandoned.load(Ordering::Relaxed) {
            (self.forget)(&self.inner);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let read = buffer.filled().len() - before;
        let is_end = read == 0 && buffer.remaining() > 0;
        if self.meter.read(read, is_end) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Semaphore;

    fn place() -> Place {
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        Place::new(permit, &IntGauge::new("open", "open").unwrap())
    }

    #[tokio::test]
    async fn an_end_is_kept_when_that_was_asked_for() {
        for is_kept in [false, true] {
            let (mut near, far) = tokio::io::duplex(64);
            let mut wire = Wire::new(far, place(), |_| {});
            let meter = wire.meter();
            if is_kept {
                meter.keep_end();
            }
            near.write_all(b"hello").await.unwrap();
            near.shutdown().await.unwrap();
            let mut text = [0; 5];
            wire.read_exact(&mut text).await.unwrap();
            let mut rest = [0; 1];
            let end = futures_util::future::poll_immediate(wire.read(&mut rest)).await;
            assert_eq!(end.is_none(), is_kept, "{end:?}");
            assert_eq!((meter.bytes(), meter.has_ended()), (5, is_kept));
            wire.write_all(b"still here").await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_an_abandoned_socket_has_not_sent_is_forgotten() {
        for is_abandoned in [false, true] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
            let (mut near, (far, _)) = (near.unwrap(), far.unwrap());
            let mut wire = Wire::new(far, place(), |socket| _ = socket.set_zero_linger());
            wire.write_all(b"hello").await.unwrap();
            if is_abandoned {
                wire.meter().abandon();
            }
            drop(wire);
            let read = near.read_to_end(&mut Vec::new()).await;
            assert_eq!(read.is_err(), is_abandoned, "{read:?}");
        }
    }
}
