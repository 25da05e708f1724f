//! `[livekit]`: secrets of LiveKit projects, whose tokens are signed with them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Secret;

/// Secrets of LiveKit projects.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LiveKit {
    /// API key to its secret, in clear: HS256 needs it so.
    pub secrets: BTreeMap<String, Secret>,
}
