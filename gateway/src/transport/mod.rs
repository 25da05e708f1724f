//! Where the world comes in: sockets, TLS, HTTP requests and WebSockets. Turns them into calls of the rooms behind, and back.

pub(crate) mod accept;
pub(crate) mod http;
mod patience;
pub(crate) mod tls;
mod wire;
pub(crate) mod ws;
