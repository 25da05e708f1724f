//! Who may speak: keys and tokens, what each may use, which pages may ask. Knows no HTTP server and no engine.
//!
//! ```text
//! headers, query --credential--> Credential --Keyring::admit--> Caller { key id, allowance, end }
//! ```

mod allowance;
mod credential;
mod jwt;
mod keyring;
mod origin;
mod token;

#[cfg(test)]
pub(crate) use allowance::Allowance;
pub use allowance::SessionAllowance;
pub(crate) use allowance::{Over, Place};
pub(crate) use credential::{Credential, credential};
pub(crate) use keyring::{Caller, Denied};
pub use keyring::{Keyring, KeyringError, digest_of};
pub(crate) use origin::{client_address, is_listed, is_welcome};
