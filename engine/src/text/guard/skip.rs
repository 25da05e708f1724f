//! Stretches of which nothing is spoken: code blocks, comments, link targets, tags that came too slowly.
//!
//! A stretch that never closes must not mute the rest of a text, so each has a budget of characters.

use crate::text::spoken::is_line_break;

/// The unspoken stretch that a text is in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Skip {
    close: Close,
    budget: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Close {
    /// A run of at least `len` of `sign`; `run` of them have been seen.
    Fence { sign: char, len: usize, run: usize },
    /// `-->`.
    Comment { dashes: usize },
    /// The parenthesis that closes the one opened, or the end of the line.
    Target { depth: usize },
    /// `>`.
    Tag,
}

/// Where a character stands to the stretch.
#[derive(Debug, PartialEq)]
pub(super) enum Over {
    Inside,
    Last,
    Behind,
}

impl Skip {
    /// A code block fenced by `len` of `sign`.
    pub(super) fn fence(sign: char, len: usize, budget: usize) -> Self {
        Self { close: Close::Fence { sign, len, run: 0 }, budget }
    }

    /// A comment of HTML.
    pub(super) fn comment(budget: usize) -> Self {
        Self { close: Close::Comment { dashes: 0 }, budget }
    }

    /// The target of a link, behind its parenthesis.
    pub(super) fn target(budget: usize) -> Self {
        Self { close: Close::Target { depth: 1 }, budget }
    }

    /// The rest of a tag.
    pub(super) fn tag(budget: usize) -> Self {
        Self { close: Close::Tag, budget }
    }

    /// Whether the words before and behind are two words.
    pub(super) fn keeps_apart(&self) -> bool {
        !matches!(self.close, Close::Target { .. })
    }

    pub(super) fn over(&mut self, c: char) -> Over {
        if self.budget == 0 {
            return Over::Behind;
        }
        self.budget -= 1;
        let last = match &mut self.close {
            Close::Fence { sign, len, run } => {
                if c == *sign {
                    *run += 1;
                } else if *run >= *len {
                    return Over::Behind;
                } else {
                    *run = 0;
                }
                false
            }
            Close::Comment { dashes } => {
                let last = c == '>' && *dashes >= 2;
                *dashes = if c == '-' { *dashes + 1 } else { 0 };
                last
            }
            Close::Target { depth } => {
                match c {
                    '(' => *depth += 1,
                    ')' => *depth -= 1,
                    _ if is_line_break(c) => return Over::Behind,
                    _ => {}
                }
                *depth == 0
            }
            Close::Tag => c == '>',
        };
        if last { Over::Last } else { Over::Inside }
    }
}
