//! `[tls]`: certificate and key of the server.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Invalid;

/// Certificate and key of the server. Both or none; none: plain HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// PEM file of the certificate, then those that it is signed with.
    pub cert: Option<PathBuf>,
    /// PEM file of its private key.
    pub key: Option<PathBuf>,
}

impl Tls {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        match (&self.cert, &self.key) {
            (Some(_), None) => {
                Err(Invalid { key: "tls.key", reason: "tls.cert needs it".to_owned() })
            }
            (None, Some(_)) => {
                Err(Invalid { key: "tls.cert", reason: "tls.key needs it".to_owned() })
            }
            _ => Ok(()),
        }
    }
}
