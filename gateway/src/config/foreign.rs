//! `[foreign]`: clients that speak another vendor's protocol.

use serde::{Deserialize, Serialize};

/// Clients that speak another vendor's protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Foreign {
    /// Whether a voice that is neither one of ours nor in the table of voices is the default voice; else it is refused.
    pub takes_unknown_voices: bool,
}

impl Default for Foreign {
    fn default() -> Self {
        // Vendors name voices by ids that nobody can guess the meaning of, and an agent that only changed its address has one.
        Self { takes_unknown_voices: true }
    }
}
