//! Where the world comes in: HTTP requests and WebSockets. Turns them into calls of the rooms behind, and back.

pub(crate) mod http;
pub(crate) mod ws;
