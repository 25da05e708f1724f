//! Ids to text that can be shown while it is written: no half of a character, and no part of a string that ends the answer.
//!
//! ```text
//! ids      .. [ before ][ new ..      decoded together, since a decoder may join what stands side by side
//! text     .. shown     | delta | ?   a last character that is not complete waits for its bytes
//! ```

use std::sync::Arc;

/// What a decoder writes for bytes that are no character, or not yet.
const BROKEN: char = '\u{fffd}';

/// What came of an id.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// What can be shown now.
    pub(super) delta: String,
    /// Whether a string stands behind it that ends the answer.
    pub(super) stopped: bool,
}

/// The text of one segment while it is written.
#[derive(Debug)]
pub(super) struct Writer {
    /// Ids from the last ones whose text was whole.
    ids: Vec<u32>,
    /// How many of them were there when it was.
    whole: usize,
    /// Bytes of their text that have been taken.
    taken: usize,
    /// Taken, and not shown: the beginning of a string that may end the answer.
    held: String,
    stops: Arc<[String]>,
    /// All that was shown.
    text: String,
}

impl Writer {
    /// A segment of which nothing is written, in an answer that ends before any of these strings.
    pub(super) fn new(stops: Arc<[String]>) -> Self {
        let (held, text) = (String::new(), String::new());
        Self { ids: Vec::new(), whole: 0, taken: 0, held, stops, text }
    }

    /// All that was shown.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Takes the next id. `decode` writes ids that stand side by side.
    ///
    /// # Errors
    /// Those of `decode`.
    pub(super) fn push<E>(
        &mut self,
        id: u32,
        decode: impl Fn(&[u32]) -> Result<String, E>,
    ) -> Result<Written, E> {
        self.ids.push(id);
        let text = decode(&self.ids)?;
        let complete = text.strip_suffix(BROKEN).unwrap_or(&text);
        let new = complete.get(self.taken..).unwrap_or_default().to_owned();
        self.taken = self.taken.max(complete.len());
        if !text.ends_with(BROKEN) {
            // What comes next is read beside what was new here, and beside nothing older.
            self.ids.drain(..self.whole);
            self.taken = decode(&self.ids)?.len();
            self.whole = self.ids.len();
        }
        Ok(self.show(&new))
    }

    /// Nothing follows: what waited for more is shown as it is.
    ///
    /// # Errors
    /// Those of `decode`.
    pub(super) fn finish<E>(
        &mut self,
        decode: impl Fn(&[u32]) -> Result<String, E>,
    ) -> Result<Written, E> {
        let text = decode(&self.ids)?;
        let mut written = self.show(text.get(self.taken..).unwrap_or_default());
        if !written.stopped {
            self.text += &self.held;
            written.delta += &self.held;
        }
        self.held.clear();
        Ok(written)
    }

    /// Shows what cannot become a string that ends the answer.
    fn show(&mut self, new: &str) -> Written {
        self.held += new;
        let found = self.stops.iter().filter_map(|stop| self.held.find(stop)).min();
        let end = found.unwrap_or_else(|| self.held.len() - self.begun());
        let delta: String = self.held.drain(..end).collect();
        self.text += &delta;
        Written { delta, stopped: found.is_some() }
    }

    /// Bytes at the end of what is held that a string which ends the answer may begin with.
    fn begun(&self) -> usize {
        let starts = self.held.char_indices().map(|(at, _)| &self.held[at..]);
        let begins = |tail: &&str| self.stops.iter().any(|stop| stop.starts_with(tail));
        starts.into_iter().find(begins).map_or(0, str::len)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    /// An id is a byte.
    fn decode(ids: &[u32]) -> Result<String, Infallible> {
        let bytes: Vec<u8> = ids.iter().map(|&id| id as u8).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Deltas up to the end or to a string that ends the answer, and whether there was one.
    fn write(bytes: &[u8], stops: &[&str]) -> (Vec<String>, bool, String) {
        let stops = stops.iter().map(|s| (*s).to_owned()).collect();
        let mut writer = Writer::new(stops);
        let mut deltas = Vec::new();
        for &byte in bytes {
            let Ok(written) = writer.push(u32::from(byte), decode);
            deltas.push(written.delta);
            if written.stopped {
                return (deltas, true, writer.text().to_owned());
            }
        }
        let Ok(written) = writer.finish(decode);
        deltas.push(written.delta);
        (deltas, written.stopped, writer.text().to_owned())
    }

    #[test]
    fn characters_of_several_tokens_are_shown_when_they_are_whole() {
        let (deltas, _, text) = write("aé😀!".as_bytes(), &[]);
        assert_eq!(deltas, ["a", "", "é", "", "", "", "😀", "!", ""]);
        assert_eq!(text, "aé😀!");
    }

    #[test]
    fn bytes_that_are_no_character_are_marked_once_it_is_certain() {
        let (deltas, _, text) = write(b"a\xe2\x82b\xf0", &[]);
        assert_eq!(text, "a\u{fffd}b\u{fffd}");
        assert_eq!(deltas, ["a", "", "", "\u{fffd}b", "", "\u{fffd}"]);
    }

    #[test]
    fn no_part_of_a_string_that_ends_the_answer_is_shown() {
        let (deltas, stopped, text) = write(b"one\nUser: two", &["\nUser:", "zzz"]);
        assert!(stopped);
        assert_eq!((text.as_str(), deltas.concat().as_str()), ("one", "one"));
        // A beginning that goes on otherwise is shown as soon as it does.
        let (deltas, stopped, _) = write(b"a\nUsx", &["\nUser:"]);
        assert!(!stopped);
        assert_eq!(deltas, ["a", "", "", "", "\nUsx", ""]);
        // One that the text ends with is no such string.
        assert_eq!(write(b"a\nUs", &["\nUser:"]).2, "a\nUs");
    }

    proptest! {
        #[test]
        fn what_is_shown_is_the_text_before_the_first_stop(
            text in "[abé€😀]{0,24}",
            stops in proptest::collection::vec("[abé€]{1,3}", 0..3),
        ) {
            let views: Vec<&str> = stops.iter().map(String::as_str).collect();
            let (deltas, stopped, shown) = write(text.as_bytes(), &views);
            // The stop that is complete first ends the answer.
            let ends = views.iter().filter_map(|s| text.find(s).map(|at| (at + s.len(), at)));
            let expected = match ends.min_by_key(|(end, _)| *end).map(|(end, _)| end) {
                Some(end) => {
                    let known = &text[..end];
                    let at = views.iter().filter_map(|s| known.find(s)).min();
                    &text[..at.unwrap_or(known.len())]
                }
                None => &text,
            };
            prop_assert_eq!(stopped, views.iter().any(|s| text.contains(s)));
            prop_assert_eq!(deltas.concat(), expected);
            prop_assert_eq!(shown, expected);
        }
    }
}
