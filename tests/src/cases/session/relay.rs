//! A loopback relay between client and server that can fail as networks do: it stops forwarding without a word, or closes
//! what has been quiet for too long.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::clock::Clock;

/// One relay, for one connection.
pub(super) struct Relay {
    /// Where the client connects to.
    pub(super) address: SocketAddr,
    is_open: watch::Sender<bool>,
    server_gone: Arc<Mutex<Option<Duration>>>,
    stopped: Mutex<Option<Duration>>,
    clock: Clock,
}

impl Relay {
    /// Waits for a client and joins it to the server; `idle` is how long both may be quiet.
    ///
    /// # Errors
    /// No port is free.
    pub(super) async fn start(
        server: SocketAddr,
        idle: Option<Duration>,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let is_open = watch::Sender::new(true);
        let server_gone = Arc::new(Mutex::new(None));
        let (open, gone) = (is_open.subscribe(), server_gone.clone());
        tokio::spawn(async move {
            let _ = join(&listener, server, idle, open).await;
            *gone.lock().unwrap_or_else(PoisonError::into_inner) = Some(clock.now());
        });
        Ok(Self { address, is_open, server_gone, stopped: Mutex::new(None), clock })
    }

    /// From now on nothing gets through, and nobody is told.
    pub(super) fn stop(&self) {
        self.is_open.send_replace(false);
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.clock.now());
    }

    /// How long after the stop the server let go; `None`: it has not.
    pub(super) fn server_held_on(&self) -> Option<Duration> {
        let gone = (*self.server_gone.lock().unwrap_or_else(PoisonError::into_inner))?;
        let stopped = (*self.stopped.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some(gone.saturating_sub(stopped))
    }
}

/// Forwards until one side ends, or until the server does after a stop.
async fn join(
    listener: &TcpListener,
    server: SocketAddr,
    idle: Option<Duration>,
    mut open: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let (mut client, _) = listener.accept().await?;
    let mut server = TcpStream::connect(server).await?;
    let (mut from_client, mut from_server) = (vec![0; 65_536], vec![0; 65_536]);
    let idle = idle.unwrap_or(Duration::from_secs(86_400));
    while *open.borrow() {
        tokio::select! {
            _ = open.changed() => {}
            read = client.read(&mut from_client) => match read? {
                0 => return Ok(()),
                n => server.write_all(&from_client[..n]).await?,
            },
            read = server.read(&mut from_server) => match read? {
                0 => return Ok(()),
                n => client.write_all(&from_server[..n]).await?,
            },
            () = tokio::time::sleep(idle) => return Ok(()),
        }
    }
    // The server's bytes are taken by the kernel as long as it has room, which is how a dead network looks from there.
    let mut unread = [0; 1];
    loop {
        // The end shows in the state of the socket, not in what is read.
        let ready =
            server.ready(tokio::io::Interest::READABLE | tokio::io::Interest::ERROR).await?;
        if ready.is_read_closed() || ready.is_error() || server.peek(&mut unread).await? == 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
