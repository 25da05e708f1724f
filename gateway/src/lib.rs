//! The gateway: commands and servers over the engine.

mod audio;
mod driver;
pub mod error;
pub mod protocol;
pub mod server;
mod sessions;
mod transport;
