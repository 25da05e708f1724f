//! The published splitter, to the letter, and the layout of a whole text.
//!
//! It cuts after the last mark within the cap even inside `1,234`; live text uses the guarded chunker instead.

use std::ops::Range;

use super::chunk::{Chunk, Tail};
use super::spoken::{MARKS, Spoken, is_blank, is_edge_blank};

/// Longest chunk, in characters.
pub const CHUNK_CHARS: usize = 350;

/// Longest lookahead, in characters, without its leading blank.
pub const LOOKAHEAD_CHARS: usize = 50;

/// How long chunks and lookaheads may be, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Longest chunk.
    pub chunk_chars: usize,
    /// Longest lookahead, without its leading blank.
    pub lookahead_chars: usize,
}

impl Default for ChunkLimits {
    /// Those of the published model.
    fn default() -> Self {
        Self { chunk_chars: CHUNK_CHARS, lookahead_chars: LOOKAHEAD_CHARS }
    }
}

/// Cuts a sanitized text into chunks of at most `cap` characters; each is stripped, none is empty.
pub(super) fn chunks(text: &[Spoken], cap: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut rest = strip(text, 0..text.len());
    while rest.len() > cap {
        let at = rest.start + cut(&text[rest.clone()], cap);
        ranges.push(strip(text, rest.start..at));
        rest = strip(text, at..rest.end);
    }
    ranges.push(rest);
    ranges.retain(|r| !r.is_empty());
    ranges
}

fn cut(rest: &[Spoken], cap: usize) -> usize {
    let mark = rest[..cap].iter().rposition(|s| MARKS.contains(&s.ch));
    let blank = || rest[..=cap].iter().rposition(|s| is_blank(s.ch)).filter(|&i| i > 0);
    mark.map(|i| i + 1).or_else(blank).unwrap_or(cap)
}

/// `range` without the blanks at its ends.
pub(super) fn strip(text: &[Spoken], range: Range<usize>) -> Range<usize> {
    let visible = |s: &Spoken| !is_edge_blank(s.ch);
    let inner = &text[range.clone()];
    match (inner.iter().position(visible), inner.iter().rposition(visible)) {
        (Some(first), Some(last)) => range.start + first..range.start + last + 1,
        _ => range.start..range.start,
    }
}

/// How many characters of the next chunk the chunk before it sees: all, or up to the last space before
/// `limit`, or that many.
pub(super) fn lookahead(next: &[Spoken], limit: usize) -> usize {
    if next.len() <= limit {
        return next.len();
    }
    let space = next[..limit].iter().rposition(|s| s.ch == ' ');
    space.filter(|&i| i > 0).unwrap_or(limit)
}

/// A lookahead as the model sees it.
pub(super) fn lookahead_text(next: &[Spoken], last: bool) -> String {
    let line_feed = if last { "\n" } else { "" };
    let text: String = next.iter().map(|s| s.ch).collect();
    format!(" {text}{line_feed}")
}

/// Lays out a whole text cut at `ranges`: every chunk knows the next one, of which it sees `limit` characters.
pub(super) fn layout(
    text: &[Spoken],
    ranges: &[Range<usize>],
    raw_chars: usize,
    limit: usize,
) -> Vec<Chunk> {
    let mut raw_from = 0;
    let chunk = |(k, range): (usize, &Range<usize>)| {
        let spoken = &text[range.clone()];
        let last = k + 1 == ranges.len();
        let raw_to = if last { raw_chars } else { spoken.last().map_or(0, |s| s.to as usize) };
        let mut chunk = Chunk::new(spoken, raw_from..raw_to, k == 0);
        raw_from = raw_to;
        chunk.last = last;
        chunk.tail = ranges.get(k + 1).map_or(Tail::Final, |next| {
            let next = &text[next.clone()];
            let seen = &next[..lookahead(next, limit)];
            Tail::Lookahead(lookahead_text(seen, k + 2 == ranges.len()))
        });
        chunk
    };
    ranges.iter().enumerate().map(chunk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(text: &str) -> Vec<Spoken> {
        text.chars().enumerate().map(|(i, c)| Spoken::at(c, i as u32)).collect()
    }

    fn pieces(text: &str) -> Vec<String> {
        let text = spoken(text);
        let ranges = chunks(&text, CHUNK_CHARS);
        ranges.iter().map(|r| text[r.clone()].iter().map(|s| s.ch).collect()).collect()
    }

    #[test]
    fn a_blank_may_be_the_351st_character() {
        let text = format!("{} {}", "a".repeat(350), "b".repeat(9));
        assert_eq!(pieces(&text), ["a".repeat(350), "b".repeat(9)]);
    }

    #[test]
    fn a_mark_wins_over_a_later_blank() {
        let text = format!("a, {} {}", "b".repeat(300), "c".repeat(90));
        assert_eq!(pieces(&text)[0], "a,");
    }

    #[test]
    fn a_piece_of_nothing_but_blanks_is_no_chunk() {
        let text = format!("{}{}", "\u{a0}\n".repeat(200), "x".repeat(360));
        assert_eq!(pieces(&text), ["x".repeat(350), "x".repeat(10)]);
    }

    #[test]
    fn lookahead_is_cut_at_the_last_space_before_fifty() {
        for (next, chars) in [
            ("short".to_owned(), 5),
            ("a".repeat(50), 50),
            ("a".repeat(51), 50),
            (format!("{} {}", "a".repeat(49), "b"), 49),
            (format!("{} {}", "a".repeat(50), "b"), 50),
            (format!("{} {}", "a".repeat(20), "b".repeat(40)), 20),
        ] {
            assert_eq!(lookahead(&spoken(&next), LOOKAHEAD_CHARS), chars, "{next}");
        }
    }
}
