//! Continuous batching engine of the Dovecote voice gateway: text in, PCM out. No HTTP, no async runtime.

pub mod batch;
pub mod block_manager;
pub mod layout;
pub mod runner;
