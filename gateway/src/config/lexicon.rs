//! `[lexicon]`: words with a form of their own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use engine::text::lexicon::Limits;
use serde::{Deserialize, Serialize};

use super::{Invalid, at_least};

/// Words with a form of their own, and how many there may be. Files are JSON, as `text.lexicon` of the protocol is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lexicon {
    /// Most entries of one list.
    pub max_entries: usize,
    /// Most patterns among them.
    pub max_patterns: usize,
    /// Longest word or pattern, in characters.
    pub max_written_chars: usize,
    /// Longest spoken form, in characters.
    pub max_spoken_chars: usize,
    /// Files of lists, by the voice that they are for.
    pub voices: BTreeMap<String, PathBuf>,
    /// Files of lists that clients may ask for, by the name that they ask by.
    pub dictionaries: BTreeMap<String, PathBuf>,
}

impl Default for Lexicon {
    fn default() -> Self {
        let Limits { entries, patterns, written_chars, spoken_chars } = Limits::default();
        Self {
            max_entries: entries,
            max_patterns: patterns,
            max_written_chars: written_chars,
            max_spoken_chars: spoken_chars,
            voices: BTreeMap::new(),
            dictionaries: BTreeMap::new(),
        }
    }
}

impl Lexicon {
    /// How large one list may be.
    pub fn limits(&self) -> Limits {
        Limits {
            entries: self.max_entries,
            patterns: self.max_patterns,
            written_chars: self.max_written_chars,
            spoken_chars: self.max_spoken_chars,
        }
    }

    pub(super) fn check(&self) -> Result<(), Invalid> {
        at_least("lexicon.max_entries", self.max_entries, 1)?;
        at_least("lexicon.max_written_chars", self.max_written_chars, 1)?;
        at_least("lexicon.max_spoken_chars", self.max_spoken_chars, 1)
    }
}
