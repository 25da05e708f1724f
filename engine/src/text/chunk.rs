//! A chunk: the piece of text that one sequence speaks, with what the model sees around it.

use std::ops::Range;

use super::spoken::Spoken;

/// What the model sees behind a chunk (the live forms of `tontaube.md`, section 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tail {
    /// More text is known: a marker, then this start of it (with its leading blank, at most 51 characters, and the
    /// line feed of a passage's last chunk).
    Lookahead(String),
    /// The passage ends here, or nothing is known behind the end of a sentence or a flush: a line feed, no marker.
    Final,
    /// Nothing is known behind, in mid-sentence: no line feed, no marker.
    Open,
}

/// A piece of at most 350 spoken characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// What is spoken, stripped.
    pub text: String,
    /// Raw code points of the passage each character of `text` came from, in order; both ends never decrease.
    pub spans: Vec<Range<u32>>,
    /// Raw code points this chunk answers for. The ranges of a passage's chunks follow each other without a gap;
    /// what lies between the spans was dropped (blanks, markup).
    pub raw: Range<usize>,
    /// First of its passage: no leading blank.
    pub first: bool,
    /// It ends at a flush.
    pub flushed: bool,
    /// Nothing of the passage can follow it.
    pub last: bool,
    /// What was known behind it when it was cut.
    pub tail: Tail,
}

impl Chunk {
    /// The characters the model sees of this chunk with a given tail: a blank before every chunk but the first, a
    /// line feed behind a final one. In the window of the next chunk it stands with [`Tail::Open`].
    pub fn input(&self, tail: &Tail) -> String {
        let blank = if self.first { "" } else { " " };
        let line_feed = if *tail == Tail::Final { "\n" } else { "" };
        format!("{blank}{}{line_feed}", self.text)
    }

    /// What the model sees as lookahead with the tail it was cut with: empty unless it is [`Tail::Lookahead`].
    pub fn lookahead(&self) -> &str {
        match &self.tail {
            Tail::Lookahead(text) => text,
            Tail::Final | Tail::Open => "",
        }
    }

    /// Digits in the text: what the model must read although nobody put it into words.
    pub fn unread_digits(&self) -> usize {
        self.text.chars().filter(|c| c.is_numeric()).count()
    }

    pub(super) fn new(spoken: &[Spoken], raw: Range<usize>, first: bool) -> Self {
        Self {
            text: spoken.iter().map(|s| s.ch).collect(),
            spans: spoken.iter().map(|s| s.from..s.to).collect(),
            raw,
            first,
            flushed: false,
            last: false,
            tail: Tail::Open,
        }
    }
}
