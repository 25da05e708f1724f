//! What the bytes of a file must come to: SHA-256, as lists and hubs have it for large files, or the name that git gives a file.

use std::io::{self, Read, Write};

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// What the bytes of a file must come to, in small hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Checksum {
    /// SHA-256 of the bytes.
    Sha256(String),
    /// The object id of git: SHA-1 of `blob LENGTH`, a zero, and the bytes.
    Git(String),
}

impl Checksum {
    /// Takes the bytes of a file of this length.
    pub(super) fn hasher(&self, bytes: u64) -> Hasher {
        match self {
            Self::Sha256(_) => Hasher::Sha256(Sha256::new()),
            Self::Git(_) => Hasher::Git(Sha1::new_with_prefix(format!("blob {bytes}\0"))),
        }
    }

    /// What it is called.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Sha256(_) => "SHA-256",
            Self::Git(_) => "the object id",
        }
    }

    /// What must come out.
    pub(super) fn digits(&self) -> &str {
        match self {
            Self::Sha256(digits) | Self::Git(digits) => digits,
        }
    }
}

/// A checksum under way.
pub(super) enum Hasher {
    Sha256(Sha256),
    Git(Sha1),
}

impl Hasher {
    /// The digits.
    pub(super) fn finish(self) -> String {
        match self {
            Self::Sha256(hash) => hex(&hash.finalize()),
            Self::Git(hash) => hex(&hash.finalize()),
        }
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Sha256(hash) => hash.update(bytes),
            Self::Git(hash) => hash.update(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Length and SHA-256 of all that is read.
pub(super) fn sha256(mut from: impl Read) -> io::Result<(u64, String)> {
    let mut hash = Sha256::new();
    let bytes = io::copy(&mut from, &mut hash)?;
    Ok((bytes, hex(&hash.finalize())))
}

/// Whether a text is so many small hexadecimal digits.
pub(super) fn is_digits(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_git_names_them() {
        let checksum = Checksum::Git(String::new());
        let mut hasher = checksum.hasher(6);
        hasher.write_all(b"hello\n").unwrap();
        // `printf 'hello\n' | git hash-object --stdin`
        assert_eq!(hasher.finish(), "ce013625030ba8dba906f756967f9e9ca394464a");
    }
}
