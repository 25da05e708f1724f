//! Where the world comes in: HTTP requests and WebSockets. Turns them into calls of the rooms behind, and back.

pub mod http;
pub mod ws;
