//! The doors of the server at which a case can knock.

use serde::Deserialize;

/// Where a case, or one of its connections, is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Surface {
    /// Wherever it can be said: over the native surface.
    Any,
    /// Over `dovecote.v1`, files over `/v1/audio/speech`.
    Native,
    Cartesia,
    Deepgram,
    Elevenlabs,
    Livekit,
    Openai,
}

impl Surface {
    /// Whether it is spoken to in the native protocol.
    pub(super) fn is_native(self) -> bool {
        matches!(self, Self::Any | Self::Native)
    }

    /// Where the connections of a case lead that do not say so themselves.
    pub(super) fn usual(all: &[Self]) -> Self {
        let native = all.iter().any(|surface| surface.is_native());
        if native { Self::Native } else { all.first().copied().unwrap_or(Self::Native) }
    }
}
