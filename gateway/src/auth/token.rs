//! Short-lived tokens: signed, not remembered, so they cost nothing until they are shown. Time is an argument.
//!
//! ```text
//! dvt_ base64url( expiry in Unix ms, 8 bytes | key id | HMAC-SHA256 over both and the key's digest, 32 bytes )
//! ```
//!
//! The secret is drawn when the server starts: tokens end with it. A key that is gone or was changed takes its tokens along.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

const PREFIX: &str = "dvt_";
const EXPIRY_BYTES: usize = 8;
const MAC_BYTES: usize = 32;

/// What tokens are signed with.
pub(super) struct Seal([u8; 32]);

/// A token that can be read; whether it holds is for [`Seal::holds`] to say.
pub(super) struct Token {
    bytes: Vec<u8>,
}

impl Seal {
    pub(super) fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// A token of a key that ends at a time of day.
    pub(super) fn sign(&self, key_id: &str, digest: &[u8], expires_unix_ms: u64) -> String {
        let mut bytes = expires_unix_ms.to_be_bytes().to_vec();
        bytes.extend_from_slice(key_id.as_bytes());
        let mac = self.mac(&bytes, digest).finalize().into_bytes();
        bytes.extend_from_slice(&mac);
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Whether a token was signed here for a key with this digest.
    pub(super) fn holds(&self, token: &Token, digest: &[u8]) -> bool {
        let (signed, mac) = token.bytes.split_at(token.bytes.len() - MAC_BYTES);
        self.mac(signed, digest).verify_slice(mac).is_ok()
    }

    fn mac(&self, signed: &[u8], digest: &[u8]) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        let mac = mac.expect("HMAC takes keys of any length; this is a bug");
        mac.chain_update(signed).chain_update(digest)
    }
}

impl Token {
    /// Reads a token; none for what is none.
    pub(super) fn read(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (bytes.len() >= EXPIRY_BYTES + MAC_BYTES).then_some(Self { bytes })
    }

    /// The key that it was made with.
    pub(super) fn key_id(&self) -> &[u8] {
        &self.bytes[EXPIRY_BYTES..self.bytes.len() - MAC_BYTES]
    }

    pub(super) fn expires_unix_ms(&self) -> u64 {
        self.bytes[..EXPIRY_BYTES].iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: [u8; 32] = [7; 32];

    #[test]
    fn a_token_says_whose_it_is_and_until_when() {
        let seal = Seal::new([1; 32]);
        let token = Token::read(&seal.sign("agents", &DIGEST, 1_234_567_890_123)).unwrap();
        assert_eq!((token.key_id(), token.expires_unix_ms()), (&b"agents"[..], 1_234_567_890_123));
        assert!(seal.holds(&token, &DIGEST));
        assert!(!seal.holds(&token, &[8; 32]), "the key was changed");
        assert!(!Seal::new([2; 32]).holds(&token, &DIGEST), "another server's");
    }

    #[test]
    fn no_byte_of_a_token_can_be_changed() {
        let seal = Seal::new([1; 32]);
        let text = seal.sign("agents", &DIGEST, 99);
        let bytes = URL_SAFE_NO_PAD.decode(&text[PREFIX.len()..]).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(changed));
            assert!(!seal.holds(&Token::read(&text).unwrap(), &DIGEST), "byte {at}");
        }
    }

    #[test]
    fn what_is_no_token_is_not_read() {
        for text in ["", "dvt_", "dvt_AAAA", "key", "dvt_***"] {
            assert!(Token::read(text).is_none(), "{text}");
        }
    }
}
