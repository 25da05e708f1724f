//! Continuous batching engine of the Dovecote voice gateway: text in, PCM out. No HTTP, no async runtime.

pub mod batch;
pub mod runner;
pub mod text;
