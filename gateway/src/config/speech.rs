//! `[speech]`: how speech over HTTP is asked for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Invalid, at_least};

/// How speech over HTTP is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Speech {
    /// Longest text, in characters.
    pub max_input_chars: usize,
    /// Voices by the names that clients use for them, such as `alloy`. OpenAI's own names that are not here are the
    /// default voice.
    pub voices: BTreeMap<String, String>,
    /// Models by the names that clients use for them, such as `sonic-3`.
    pub models: BTreeMap<String, String>,
}

impl Default for Speech {
    fn default() -> Self {
        // As OpenAI has it.
        Self { max_input_chars: 4_096, voices: BTreeMap::new(), models: BTreeMap::new() }
    }
}

/// Voices that OpenAI's clients insist on.
const FOREIGN_VOICES: [&str; 13] = [
    "alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage",
    "shimmer", "verse",
];

impl Speech {
    /// Whether a name is one of OpenAI's, which stand for a default voice.
    pub fn is_foreign(name: &str) -> bool {
        FOREIGN_VOICES.contains(&name)
    }

    pub(super) fn check(&self) -> Result<(), Invalid> {
        at_least("speech.max_input_chars", self.max_input_chars, 1)
    }
}
