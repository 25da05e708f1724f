//! Continuous batching engine of the Dovecote voice gateway: text in, PCM out. No HTTP, no async runtime.

pub mod answer;
mod audio;
pub mod batch;
pub mod block_manager;
pub mod bundle;
pub mod cfg;
pub mod delay;
#[cfg(feature = "cuda")]
pub mod device;
mod engine;
pub mod event;
pub mod grammar;
pub mod guards;
mod handle;
mod hearing;
mod inspect;
pub mod kernels;
pub mod layout;
mod load;
mod memory;
mod meter;
pub mod models;
mod pcm;
pub mod phase;
pub mod pipeline;
mod request;
pub mod rng;
mod roster;
pub mod runner;
pub mod sampler;
pub mod scheduler;
pub mod sequence;
mod sound;
mod start;
pub mod stats;
pub mod streams;
pub mod stub;
pub mod text;
pub mod turn;
pub mod verbalizer;
mod voices;
mod worker;

pub use event::{CharEnd, Event, Events, Failure, Finish, Segment, Summary, Usage};
pub use handle::Handle;
pub use inspect::{Inspection, StageSize, Together, inspect, together};
pub use kernels::matrix::Precision;
pub use pcm::Pcm;
pub use pipeline::Segments;
pub use request::{Manner, Request, Speech, Text};
pub use start::{Options, Progress, StartError};
pub use stats::Stats;
pub use voices::{NewVoice, VoiceError, VoiceSource};

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
    /// One more listener could not be kept supplied.
    #[error("{listeners} listeners are all that can be kept supplied; try again in {} ms", retry_after.as_millis())]
    Overloaded {
        /// Who is listening.
        listeners: u64,
        /// When to ask again.
        retry_after: std::time::Duration,
    },
    /// Sound of a recording is refused; what came of it before still counts.
    #[error("recording {recording}: {reason}")]
    Sound {
        /// Its place among the live recordings of the request, from 0.
        recording: usize,
        /// Why not.
        reason: String,
    },
    /// The context takes no sound: it is over, or was asked about no live recording.
    #[error("the context takes no sound")]
    Silent,
    /// No more recordings may come in at once.
    #[error("{most} recordings come in, as many as may at once (hearing.max_live)")]
    Listening {
        /// The limit.
        most: usize,
    },
    /// The hearing thread has as much sound waiting as it may.
    #[error("{} s of sound wait to be heard, as much as may (hearing.max_unheard_s)", most.as_secs_f64())]
    Unheard {
        /// The limit.
        most: std::time::Duration,
    },
    /// The engine has gone down.
    #[error("the engine has stopped")]
    Stopped,
    /// A field of a request has a value that is not to be had.
    #[error("{field} {value:?} is not available; {allowed}")]
    Option {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What would be.
        allowed: String,
    },
}

impl Error {
    fn option(field: &'static str, value: impl ToString, allowed: impl Into<String>) -> Self {
        Self::Option { field, value: value.to_string(), allowed: allowed.into() }
    }
}
