//! A text that must never be seen: not in a log, not in an error, not in a dump of the settings.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Something that only [`Secret::expose`] shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for a comparison or a signature.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // The usual error would quote the value.
        let text = String::deserialize(from).map_err(|_| D::Error::custom("not a string"))?;
        Ok(Self(text))
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("hidden")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_itself_in_no_dump_and_no_error() {
        let secret = Secret::new("SECRET-MARKER");
        assert!(!format!("{secret:?}").contains("MARKER"));
        assert!(!serde_json::to_string(&secret).unwrap().contains("MARKER"));
        let error = serde_json::from_str::<Secret>("4711").unwrap_err().to_string();
        assert!(!error.contains("4711"), "{error}");
    }
}
