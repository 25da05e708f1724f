//! Joins the bytes of a text that is cut anywhere, even inside a character.
//!
//! At most three bytes are held: an unfinished character. Bytes that can no longer become one are each reading of
//! them U+FFFD, as the standard library's lossy conversion has it.

/// The joiner of one text.
#[derive(Debug, Default, Clone)]
pub struct Utf8Joiner {
    held: Vec<u8>,
}

impl Utf8Joiner {
    /// Adds bytes and appends the characters that are complete.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let bytes = if self.held.is_empty() {
            bytes
        } else {
            self.held.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.held);
            &joined
        };
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            out.push_str(chunk.valid());
            let rest = chunk.invalid();
            if chunks.peek().is_none() && is_unfinished(rest) {
                self.held = rest.to_vec();
            } else if !rest.is_empty() {
                out.push('\u{fffd}');
            }
        }
    }

    /// Lets an unfinished character go, as U+FFFD.
    pub fn release(&mut self, out: &mut String) {
        if !self.held.is_empty() {
            self.held.clear();
            out.push('\u{fffd}');
        }
    }

    /// Whether an unfinished character is held.
    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }
}

fn is_unfinished(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn joined(pieces: &[&[u8]]) -> String {
        let (mut joiner, mut out) = (Utf8Joiner::default(), String::new());
        for piece in pieces {
            joiner.push(piece, &mut out);
            assert!(joiner.held.len() <= 3);
        }
        joiner.release(&mut out);
        out
    }

    #[test]
    fn a_character_cut_in_two_is_whole_again() {
        assert_eq!(joined(&[b"caf\xc3", b"\xa9 \xf0", b"\x9f\x8e", b"\x89."]), "café 🎉.");
    }

    #[test]
    fn an_unfinished_character_becomes_one_replacement_sign() {
        assert_eq!(joined(&[b"a\xf0\x9f"]), "a\u{fffd}");
        assert_eq!(joined(&[b"a\xc3", b"b"]), "a\u{fffd}b");
    }

    proptest! {
        #[test]
        fn any_split_reads_as_the_lossy_whole(
            bytes in proptest::collection::vec(any::<u8>(), 0..64), cut in 1_usize..8,
        ) {
            let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
            prop_assert_eq!(joined(&pieces), String::from_utf8_lossy(&bytes));
        }
    }
}
