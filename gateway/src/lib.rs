//! The gateway: commands and servers over the engine.

pub mod commands;
pub mod config;
