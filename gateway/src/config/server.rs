//! `[server]`: where to listen, how many are let in, how long anything may take.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Invalid, Network, at_least, seconds};

/// Where to listen, how many are let in, how long anything may take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Whether to listen beyond this machine although there are no keys.
    pub insecure_open: bool,
    /// Sessions and speech requests that are served at once.
    pub max_sessions: u32,
    /// Sockets that are open at once, whatever they are for.
    pub max_connections: usize,
    /// How long TLS and the head of a request may take, and how long a connection may wait for its next request.
    #[serde(rename = "handshake_s", with = "seconds")]
    pub handshake: Duration,
    /// How long one message or the body of a request may take from its first byte to its last, unless it has a limit of its own.
    #[serde(rename = "message_s", with = "seconds")]
    pub message: Duration,
    /// Bytes of the head of a request.
    pub max_header_bytes: usize,
    /// Bytes of the body of a request that has no limit of its own.
    pub max_body_bytes: usize,
    /// Time that sessions have when the server goes down.
    #[serde(rename = "drain_s", with = "seconds")]
    pub drain: Duration,
    /// Pages of other servers whose scripts may connect, as `https://app.example.com`; `*` for all.
    pub origins: Vec<String>,
    /// Proxies whose word about the client's address is taken.
    pub trusted_proxies: Vec<Network>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            insecure_open: false,
            max_sessions: 1_024,
            max_connections: 4_096,
            handshake: Duration::from_secs(5),
            message: Duration::from_secs(10),
            max_header_bytes: 16_384,
            max_body_bytes: 65_536,
            drain: Duration::from_secs(30),
            origins: Vec::new(),
            trusted_proxies: Vec::new(),
        }
    }
}

impl Server {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        at_least("server.max_sessions", self.max_sessions, 1)?;
        at_least("server.max_connections", self.max_connections, 1)?;
        at_least("server.max_header_bytes", self.max_header_bytes, HEADER_BYTES_MIN)?;
        at_least("server.max_body_bytes", self.max_body_bytes, 1)?;
        at_least("server.handshake_s", self.handshake, Duration::from_millis(1))?;
        at_least("server.message_s", self.message, Duration::from_millis(1))?;
        for origin in &self.origins {
            let has_scheme = origin.starts_with("http://") || origin.starts_with("https://");
            let has_path = origin.splitn(4, '/').nth(3).is_some();
            if origin != "*" && (!has_scheme || has_path) {
                let reason = format!("{origin:?} is not scheme://host[:port]");
                return Err(Invalid { key: "server.origins", reason });
            }
        }
        Ok(())
    }
}

/// Less would refuse the requests of common browsers.
const HEADER_BYTES_MIN: usize = 4_096;
