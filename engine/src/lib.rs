//! Continuous batching engine of the Dovecote voice gateway: text in, PCM out. No HTTP, no async runtime.

mod audio;
pub mod batch;
pub mod block_manager;
pub mod bundle;
pub mod cfg;
mod engine;
pub mod event;
pub mod grammar;
pub mod guards;
mod handle;
pub mod kernels;
pub mod layout;
pub mod models;
pub mod pipeline;
pub mod kernels;
pub mod layout;
pub mod models;
pub mod rng;
pub mod runner;
pub mod sampler;
pub mod scheduler;
pub mod sequence;
pub mod text;
mod worker;

pub use event::{Event, Events, Failure, Summary};
pub use handle::{Handle, Stats};

/// Names a context for as long as the engine lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u64);

/// Why the engine refused something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing arrived in the time given.
    #[error("no event in the time given")]
    Timeout,
    /// The step thread has more commands waiting than it takes.
    #[error("the engine is busy: {commands} commands wait")]
    Busy {
        /// The size of the queue.
        commands: usize,
    },
    /// The engine has gone down.
    #[error("the engine has stopped")]
    Stopped,
}
