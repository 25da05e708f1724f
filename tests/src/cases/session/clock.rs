//! Time since a case began: the only clock of the runner.

use std::time::{Duration, Instant};

/// Counts from its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the runner watches a server in real time")]
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(self) -> Duration {
        self.0.elapsed()
    }
}
