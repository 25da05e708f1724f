//! `dovecote key`: draws a key, and says how to let it in.

use std::fmt::Write;

use super::{CommandError, print, tell};
use crate::auth::digest_of;
use crate::config::{Key, check_keys};

/// What keys begin with, so that they are known when they turn up where they should not be.
const PREFIX: &str = "dvk_";

/// Arguments of `dovecote key`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What the key is called in logs
    id: String,
}

/// Shows the key on standard error, once; what the file of keys wants to know goes to standard output:
/// `dovecote key agents >> keys.toml`.
///
/// # Errors
/// An id that is not to be had.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|e| CommandError::Usage(format!("no chance: {e}")))?;
    let mut secret = PREFIX.to_owned();
    for byte in bytes {
        let _ = write!(secret, "{byte:02x}");
    }
    let key = Key {
        id: args.id.clone(),
        sha256: digest_of(&secret),
        max_sessions: None,
        max_contexts: None,
        chars_per_minute: None,
        lexicon: None,
    };
    check_keys(std::slice::from_ref(&key)).map_err(CommandError::Usage)?;
    tell(&format!("{secret}   (shown only now)"));
    // An id that was checked needs no escapes.
    print(&format!("[[keys]]\nid = \"{}\"\nsha256 = \"{}\"\n", key.id, key.sha256))
}
