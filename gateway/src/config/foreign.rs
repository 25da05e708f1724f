//! `[foreign]`: clients that speak another vendor's protocol.

use serde::{Deserialize, Serialize};

use super::{Invalid, at_least};

/// Clients that speak another vendor's protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Foreign {
    /// Whether a voice that is neither one of ours nor in the table of voices is the default voice; else it is refused.
    pub takes_unknown_voices: bool,
    /// Whether a model that is neither one of ours nor in the table of models is the default model; else it is refused.
    pub takes_unknown_models: bool,
    /// Most sockets at a time whose clients have shown no key and may do so in their first message.
    pub max_unknown_sockets: u32,
    /// Longest text of a request to the routes of the TontaubeV1 server, in characters.
    pub max_predict_chars: usize,
    /// Most pieces that such a text may come in.
    pub max_predict_segments: usize,
}

impl Foreign {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        at_least("foreign.max_predict_chars", self.max_predict_chars, 1)?;
        at_least("foreign.max_predict_segments", self.max_predict_segments, 1)
    }
}

impl Default for Foreign {
    fn default() -> Self {
        // Vendors name voices by ids that nobody can guess the meaning of, and an agent that only changed its address has one.
        Self {
            takes_unknown_voices: true,
            takes_unknown_models: true,
            max_unknown_sockets: 64,
            // As that server has them.
            max_predict_chars: 40_000,
            max_predict_segments: 1_000,
        }
    }
}
