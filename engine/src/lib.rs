//! Continuous batching engine of the Dovecote voice gateway: text in, PCM out. No HTTP, no async runtime.

pub mod batch;
pub mod block_manager;
pub mod cfg;
pub mod guards;
pub mod layout;
pub mod rng;
pub mod runner;
pub mod sampler;
