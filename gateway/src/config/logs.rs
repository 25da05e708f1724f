//! `[logs]`: what the log tells beside what goes wrong.

use serde::{Deserialize, Serialize};

/// What the log tells beside what goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Logs {
    /// Whether each session and request of `/v1/` has a line: key id, route, voice, seconds of sound, outcome. Never text.
    pub access: bool,
}

impl Default for Logs {
    fn default() -> Self {
        Self { access: true }
    }
}
