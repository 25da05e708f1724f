//! Which text a listener has heard. Knows where chunks of text begin and end on the timeline, and spreads the
//! characters of a chunk evenly over its sound: an estimate inside a chunk, exact at its ends.
//!
//! ```text
//! text    |The train leaves at nine. |You change in Basel ...
//! chunks  |------------ 0 -----------|---------- 1 ----------
//! samples 0                        41,600                 (not yet known)
//! ```

use std::ops::Range;

use serde::Serialize;

/// Samples of a spoken character, until a chunk of the context has shown its pace: 15 characters a second.
const SAMPLES_PER_CHAR: u64 = 1_600;

/// What a listener has heard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Heard {
    /// End of the last word heard, in code points of the context's text.
    pub(crate) text_to: usize,
    /// The text up to there, as the client wrote it.
    pub(crate) text: String,
    /// That word, counted from 0; −1 when none was heard.
    pub(crate) last_word_index: i64,
    /// Whether its end was not heard.
    pub(crate) partial_word: bool,
}

impl Heard {
    /// Nothing.
    pub(crate) fn nothing() -> Self {
        Self { last_word_index: -1, ..Self::default() }
    }
}

/// A chunk on the timeline of the engine, in samples at 24 kHz.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    raw: Range<usize>,
    start: u64,
    end: Option<u64>,
}

/// The chunks of a context.
#[derive(Debug, Clone, Default)]
pub(crate) struct Alignment {
    spans: Vec<Span>,
}

impl Alignment {
    /// The engine has taken a chunk of text. It is spoken behind the one before.
    pub(crate) fn chunk(&mut self, raw: Range<usize>) {
        let start = self.spans.last().map_or(0, |s| s.end.unwrap_or(s.start));
        self.spans.push(Span { raw, start, end: None });
    }

    /// The end of a chunk is known.
    pub(crate) fn chunk_end(&mut self, raw: &Range<usize>, end: u64) {
        let Some(at) = self.spans.iter().position(|s| s.raw == *raw) else { return };
        self.spans[at].end = Some(end);
        if let Some(next) = self.spans.get_mut(at + 1) {
            next.start = end;
        }
    }

    /// Code points that chunks have taken.
    pub(crate) fn taken(&self) -> usize {
        self.spans.last().map_or(0, |s| s.raw.end)
    }

    /// End of the text whose sound ends before `samples`, by whole chunks.
    pub(crate) fn complete_to(&self, samples: u64) -> usize {
        let complete = |s: &&Span| s.end.is_some_and(|end| end <= samples);
        self.spans.iter().take_while(complete).last().map_or(0, |s| s.raw.end)
    }

    /// What of `text` was heard, when `played` samples were, of `generated` that there are.
    pub(crate) fn heard(&self, text: &str, played: u64, generated: u64) -> Heard {
        let pace = self.pace();
        let mut heard = Heard::nothing();
        let mut cursor = 0;
        for (index, word) in words(text).enumerate() {
            let Some(begin) = self.time(word.chars.start, &mut cursor, pace, generated) else {
                break;
            };
            // The end of the last character, not the start of the blank: that may lie in the next chunk.
            let last = self.time(word.chars.end - 1, &mut cursor, pace, generated);
            let end = last.map_or(begin.end, |t| t.end);
            if 2 * played < begin.start + end {
                break;
            }
            heard.text_to = word.chars.end;
            heard.text = text[..word.bytes_end].to_owned();
            heard.last_word_index = index as i64;
            heard.partial_word = end > played;
        }
        heard
    }

    /// When a character sounds. `cursor` is the span where the search begins: characters are asked for in order.
    fn time(&self, at: usize, cursor: &mut usize, pace: u64, generated: u64) -> Option<Range<u64>> {
        while self.spans.get(*cursor)?.raw.end <= at {
            *cursor += 1;
        }
        let span = &self.spans[*cursor];
        let chars = span.raw.len() as u64;
        let guess = (span.start + chars * pace).max(generated);
        let length = span.end.unwrap_or(guess).saturating_sub(span.start);
        let into = at.saturating_sub(span.raw.start) as u64;
        let place = |chars_in: u64| span.start + length * chars_in / chars.max(1);
        Some(place(into)..place(into + 1))
    }

    /// Samples a character of the chunks that are complete.
    fn pace(&self) -> u64 {
        let complete = self
            .spans
            .iter()
            .filter_map(|s| Some((s.raw.len() as u64, s.end?.saturating_sub(s.start))));
        let (chars, samples) = complete.fold((0, 0), |sum, s| (sum.0 + s.0, sum.1 + s.1));
        samples.checked_div(chars).unwrap_or(SAMPLES_PER_CHAR)
    }
}

struct Word {
    chars: Range<usize>,
    bytes_end: usize,
}

/// What stands between blanks.
fn words(text: &str) -> impl Iterator<Item = Word> + '_ {
    let mut chars = text.char_indices().enumerate().peekable();
    std::iter::from_fn(move || {
        while chars.next_if(|(_, (_, c))| c.is_whitespace()).is_some() {}
        let &(start, _) = chars.peek()?;
        let mut word = Word { chars: start..start, bytes_end: 0 };
        while let Some((i, (byte, c))) = chars.next_if(|(_, (_, c))| !c.is_whitespace()) {
            word.chars.end = i + 1;
            word.bytes_end = byte + c.len_utf8();
        }
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two chunks of ten characters, a tenth of 1,000 samples each.
    fn two_chunks() -> (Alignment, &'static str) {
        let mut alignment = Alignment::default();
        alignment.chunk(0..10);
        alignment.chunk_end(&(0..10), 1_000);
        alignment.chunk(10..20);
        alignment.chunk_end(&(10..20), 2_000);
        (alignment, "äbc def. x ghi jklm.")
    }

    #[test]
    fn a_word_counts_when_its_middle_was_heard() {
        let (alignment, text) = two_chunks();
        let heard = |played| alignment.heard(text, played, 2_000);
        assert_eq!(heard(0), Heard::nothing());
        assert_eq!(heard(149), Heard::nothing());
        let first =
            Heard { text_to: 3, text: "äbc".into(), last_word_index: 0, partial_word: true };
        assert_eq!(heard(150), first);
        assert_eq!(heard(300), Heard { partial_word: false, ..first });
        assert_eq!(heard(620).text, "äbc def.");
        assert_eq!(heard(2_000).text, text);
    }

    #[test]
    fn text_is_complete_by_whole_chunks() {
        let (alignment, _) = two_chunks();
        let complete = [999, 1_000, 1_999, 2_000].map(|samples| alignment.complete_to(samples));
        assert_eq!(complete, [0, 10, 10, 20]);
    }

    #[test]
    fn a_running_chunk_is_spread_at_the_pace_so_far() {
        let mut alignment = Alignment::default();
        alignment.chunk(0..10);
        alignment.chunk_end(&(0..10), 1_000);
        alignment.chunk(10..20);
        let text = "0123456789 abc defg ";
        assert_eq!(alignment.heard(text, 1_250, 1_300).text, "0123456789 abc");
        assert_eq!(alignment.heard(text, 1_000, 1_300).text, "0123456789");
        assert_eq!(alignment.taken(), 20);
    }

    #[test]
    fn text_that_no_chunk_has_taken_was_not_heard() {
        let mut alignment = Alignment::default();
        assert_eq!(alignment.heard("hello", 9_999, 9_999), Heard::nothing());
        alignment.chunk(0..6);
        alignment.chunk_end(&(0..6), 100);
        assert_eq!(alignment.heard("hello there", 9_999, 9_999).text, "hello");
    }
}
