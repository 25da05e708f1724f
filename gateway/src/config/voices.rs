//! `[voices]`: how clients add voices.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Invalid, at_least, seconds};

/// How clients add voices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VoiceUploads {
    /// Where added voices are kept; none: in memory, until the server ends.
    pub folder: Option<PathBuf>,
    /// Largest file, in bytes.
    pub max_upload_bytes: usize,
    /// How long the form of one voice may take from its first byte to its last.
    #[serde(rename = "upload_s", with = "seconds")]
    pub upload: Duration,
    /// Longest recording, in seconds. The first 60 s of one are used.
    pub max_seconds: f64,
    /// Voices that are made at once; each takes some times the size of its file.
    pub max_uploads: usize,
}

impl Default for VoiceUploads {
    fn default() -> Self {
        // Half a frame more than is used, for those who cut by ear.
        let max_seconds = 60.04;
        // The largest file needs 2.8 Mbit/s; most are a tenth of that.
        let upload = Duration::from_secs(60);
        Self { folder: None, max_upload_bytes: 20 << 20, upload, max_seconds, max_uploads: 4 }
    }
}

impl VoiceUploads {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        at_least("voices.max_upload_bytes", self.max_upload_bytes, 1)?;
        at_least("voices.upload_s", self.upload, Duration::from_millis(1))?;
        at_least("voices.max_seconds", self.max_seconds, SECONDS_MIN)?;
        at_least("voices.max_uploads", self.max_uploads, 1)
    }
}

/// One frame of codes; less is no voice.
const SECONDS_MIN: f64 = 0.08;
