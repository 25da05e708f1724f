//! The gateway: commands and servers over the engine.

mod access;
mod audio;
pub mod auth;
pub mod chance;
mod chat;
pub mod client;
pub mod commands;
pub mod config;
mod container;
mod control;
mod driver;
pub mod error;
mod foreign;
#[doc(hidden)]
pub mod fuzz;
pub mod lexicon;
mod metrics;
pub mod protocol;
pub mod security;
pub mod server;
mod sessions;
mod shape;
pub mod transcript;
mod transport;
mod voices;
