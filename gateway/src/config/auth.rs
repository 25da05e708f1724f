//! `[auth]`: who may speak, and how much. Holds no key in clear.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Invalid, at_least, seconds};

/// A token of a browser lives at most this long: it may be seen in an address.
const TOKEN_TTL_MAX: Duration = Duration::from_secs(600);

/// Who may speak, and how much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// The keys. None here and no `keys_file`: anybody may speak.
    pub keys: Vec<Key>,
    /// A file of more `[[keys]]`, read again when it changes.
    pub keys_file: Option<PathBuf>,
    /// Longest life of a browser's token.
    #[serde(rename = "token_ttl_max_s", with = "seconds")]
    pub token_ttl_max: Duration,
    /// What each key may use at once, unless it says otherwise.
    pub per_key: Quota,
}

/// A key, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// What it is called in logs and errors.
    pub id: String,
    /// SHA-256 of the key, in hex digits.
    pub sha256: String,
    /// Sessions and speech requests at once.
    pub max_sessions: Option<u32>,
    /// Contexts at once, all sessions together.
    pub max_contexts: Option<u32>,
    /// Characters a minute, all sessions together.
    pub chars_per_minute: Option<u32>,
    /// File of words with a form of their own, for its texts.
    pub lexicon: Option<PathBuf>,
}

/// What a key may use; what is absent has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quota {
    /// Sessions and speech requests at once.
    pub max_sessions: Option<u32>,
    /// Contexts at once, all sessions together.
    pub max_contexts: Option<u32>,
    /// Characters a minute, all sessions together. A minute's worth may come at once.
    pub chars_per_minute: Option<u32>,
}

impl Default for Auth {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            keys_file: None,
            token_ttl_max: TOKEN_TTL_MAX,
            per_key: Quota::default(),
        }
    }
}

impl Key {
    /// What the key may use.
    pub fn quota(&self, unless_said: &Quota) -> Quota {
        Quota {
            max_sessions: self.max_sessions.or(unless_said.max_sessions),
            max_contexts: self.max_contexts.or(unless_said.max_contexts),
            chars_per_minute: self.chars_per_minute.or(unless_said.chars_per_minute),
        }
    }
}

impl Auth {
    /// Whether somebody must show a key.
    pub fn needs_key(&self) -> bool {
        !self.keys.is_empty() || self.keys_file.is_some()
    }

    pub(super) fn check(&self) -> Result<(), Invalid> {
        at_least("auth.token_ttl_max_s", self.token_ttl_max, Duration::from_secs(1))?;
        if self.token_ttl_max > TOKEN_TTL_MAX {
            let reason = format!("at most {} s", TOKEN_TTL_MAX.as_secs());
            return Err(Invalid { key: "auth.token_ttl_max_s", reason });
        }
        check_keys(&self.keys).map_err(|reason| Invalid { key: "auth.keys", reason })
    }
}

/// What is wrong with a list of keys, if anything is.
pub(crate) fn check_keys(keys: &[Key]) -> Result<(), String> {
    for (at, key) in keys.iter().enumerate() {
        let Key { id, sha256, .. } = key;
        let is_plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-@".contains(&b));
        if id.is_empty() || id.len() > ID_BYTES_MAX || !is_plain {
            let reason = format!("an id is 1 to {ID_BYTES_MAX} letters, digits or one of . _ - @");
            return Err(format!("key {}: {reason}", at + 1));
        }
        if keys[..at].iter().any(|other| other.id == *id) {
            return Err(format!("two keys are called {id:?}"));
        }
        // Not quoted: somebody may have written the key itself.
        if sha256.len() != 64 || !sha256.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(format!("key {id:?}: sha256 is not 64 hex digits"));
        }
    }
    Ok(())
}

/// Ids stand in log lines and in tokens.
const ID_BYTES_MAX: usize = 64;
