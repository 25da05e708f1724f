//! `[hearing]`: recordings that speech language models hear while they are made.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Invalid, at_least, seconds};

/// Recordings that come in while they are made, of all sessions together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Hearing {
    /// Recordings that have not ended.
    pub(super) max_live: usize,
    /// How long nothing may come of a context's recordings; then the context fails, and holds no memory.
    #[serde(rename = "idle_s", with = "seconds")]
    pub(super) idle: Duration,
    /// Sound that waits to be heard.
    #[serde(rename = "max_unheard_s", with = "seconds")]
    pub(super) max_unheard: Duration,
}

impl Default for Hearing {
    fn default() -> Self {
        let engine::Options { max_live, live_idle, max_unheard, .. } = engine::Options::default();
        Self { max_live, idle: live_idle, max_unheard }
    }
}

impl Hearing {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        at_least("hearing.max_live", self.max_live, 1)?;
        at_least("hearing.idle_s", self.idle, Duration::from_millis(1))?;
        at_least("hearing.max_unheard_s", self.max_unheard, Duration::from_millis(1))
    }
}
