//! The gateway: commands and servers over the engine.

mod audio;
pub mod commands;
pub mod config;
mod container;
mod driver;
pub mod error;
pub mod protocol;
pub mod server;
mod sessions;
mod transport;
mod voices;
