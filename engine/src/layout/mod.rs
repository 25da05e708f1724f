//! Rows of text and codes laid out as the one sequence that a stage reads: ids and positions, pure integers.
//!
//! It must never know where rows come from, when they are complete, or what is done with the sequence.
//!
//! ```text
//! cb0      [prompt row 0] [control] [before] split [text] split [lookahead] PAD [C0 before] split [C0 known ..
//! cb1..3   [prompt rows 0..i] [control] [text] PAD [C0] end PAD [C1] .. PAD [Ci known ..
//! cb1..3   .. [control] [before] split [text] PAD [C0 before] split [C0] end PAD [C1 before] [C1] .. PAD [Ci before] [Ci known ..
//! ```
//!
//! **Positions.** P is the prompt's length. Each prompt row has 1..P, each PAD has P, text and codes start at P + 1.
//! With an earlier chunk in the window, text and codes of the current one start together again behind a boundary at
//! `M = P + 1 + max(text before + realign, codes before)`, where both rows have their marker. Rows C1.. have the
//! positions of C0's codes, so a frame has one position in all rows and the marker's is skipped.

#[cfg(test)]
mod golden;
mod prompt;
mod streams;
#[cfg(test)]
mod tests;
mod vocabulary;

use std::ops::Range;

pub use prompt::{
    Message, Piece, Role, bagpiper_chat, opuslm_dialogue, opuslm_speech, opuslm_transcription,
};
pub use streams::{NOTHING, StreamIds};
pub use vocabulary::{Symbol, Vocabulary};

/// What follows the text of a chunk, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail<'a> {
    /// The beginning of the next chunk, with its leading space, and a line feed when it is the passage's last.
    Lookahead(&'a [u32]),
    /// Nothing: the passage ends here, or the chunk ends a sentence or was flushed and nothing is known behind it.
    End,
    /// Not known yet, in the middle of a sentence.
    Open,
}

/// A text that was spoken, with its codes: an earlier chunk, or a prefix that the passage continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spoken<'a> {
    /// Its characters, without the line feed that may have ended it.
    pub text: &'a [u32],
    /// Rows 0 to the stage's own, of equal length.
    pub rows: &'a [&'a [u16]],
}

/// All that a stage reads to speak one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window<'a> {
    /// The voice: rows 0 to the stage's own, of equal length, already cut for the stage. No rows: no voice prompt.
    pub prompt: &'a [&'a [u16]],
    /// Language and style.
    pub control: &'a [u32],
    /// Stage 0: the chunk before this one. Any stage: the prefix that this chunk continues.
    pub before: Option<Spoken<'a>>,
    /// Characters of the chunk, without a line feed at the end.
    pub text: &'a [u32],
    /// What follows it. The acoustic stages see only whether the text ends here.
    pub tail: Tail<'a>,
    /// The chunk's codes: rows 0 to the stage's own. The last is what is known of the own row and what generation goes
    /// on from, the rows before it are complete and of equal length.
    pub rows: &'a [&'a [u16]],
}

/// One sequence, and where its parts are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Rotary position of each token.
    pub positions: Vec<i32>,
    /// Indices of the control block, which starts the text row. All before its end depends on voice, language and
    /// style only.
    pub control: Range<usize>,
    /// Indices of the current chunk's text, with the line feed if it has one.
    pub text: Range<usize>,
    /// Indices of the C0 row, with all before the current chunk, without PAD and the symbol that ends it. The same
    /// window with a longer C0 has the same tokens up to the end of this range.
    pub c0: Range<usize>,
    /// Index of the current chunk's first code in the row that the stage makes; one past the end when none is known.
    pub own: usize,
    /// Position of the next token to be generated; those after it count up by one.
    pub next_position: i32,
}

impl Layout {
    /// The sequence that makes a stage say the next code of a window.
    ///
    /// # Panics
    /// When the window has not the stage's number of rows, or rows that must be complete differ in length.
    pub fn of(vocabulary: &Vocabulary, window: &Window<'_>) -> Self {
        check_rows(vocabulary, window);
        let mut layout = Self::default();
        let frames = window.prompt.first().map_or(0, |row| row.len());
        for (row, codes) in window.prompt.iter().enumerate() {
            layout.put(1, codes.iter().map(|&c| vocabulary.code(row, c)));
        }
        let prompt = position(frames);
        let start = layout.put_text(vocabulary, window, prompt + 1);
        for row in 0..=vocabulary.stage {
            layout.put(prompt, [vocabulary.pad]);
            layout.put_codes(vocabulary, window, row, prompt + 1, start);
        }
        layout
    }

    /// The companion of a stage 0 window for guidance: the same codes without voice, text or earlier chunk, at the
    /// positions of a first chunk.
    pub fn null(vocabulary: &Vocabulary, control: &[u32], codes: &[u16]) -> Self {
        let window = Window {
            prompt: &[],
            control,
            before: None,
            text: &[],
            tail: Tail::Open,
            rows: &[codes],
        };
        Self::of(vocabulary, &window)
    }

    /// The text row from position `first` on. Returns the position where the current chunk's text and codes start.
    fn put_text(&mut self, vocabulary: &Vocabulary, window: &Window<'_>, first: i32) -> i32 {
        let control = self.ids.len();
        self.put(first, window.control.iter().copied());
        self.control = control..self.ids.len();
        let mut spoken = self.control.len();
        let mut start = first;
        if let Some(before) = &window.before {
            self.put(first + position(spoken), before.text.iter().copied());
            spoken += before.text.len();
            let boundary =
                first + position((spoken + vocabulary.realign).max(before.rows[0].len()));
            self.put(boundary, [vocabulary.text_split]);
            start = boundary + 1;
            spoken = 0;
        }
        let text = self.ids.len();
        self.put(start + position(spoken), window.text.iter().copied());
        if window.tail == Tail::End {
            let end = start + position(spoken + window.text.len());
            self.put(end, [vocabulary.line_feed]);
        }
        self.text = text..self.ids.len();
        if let (0, Tail::Lookahead(next)) = (vocabulary.stage, window.tail) {
            // The codes of the current chunk do not count here: known ones were generated at a time when none were, and
            // must find the marker where it was then.
            let boundary = start + position(spoken + window.text.len() + vocabulary.realign);
            self.put(boundary, [vocabulary.text_split]);
            self.put(boundary + 1, next.iter().copied());
        }
        start
    }

    /// One row of codes behind its PAD: those before at `first`, those of the current chunk at `start`.
    fn put_codes(
        &mut self,
        vocabulary: &Vocabulary,
        window: &Window<'_>,
        row: usize,
        first: i32,
        start: i32,
    ) {
        let at = self.ids.len();
        if let Some(before) = &window.before {
            self.put(first, before.rows[row].iter().map(|&c| vocabulary.code(row, c)));
            if row == 0 {
                self.put(start - 1, [vocabulary.audio_split]);
            }
        }
        self.own = self.ids.len();
        self.put(start, window.rows[row].iter().map(|&c| vocabulary.code(row, c)));
        self.next_position = start + position(window.rows[row].len());
        if row == 0 {
            self.c0 = at..self.ids.len();
            if vocabulary.stage > 0 {
                self.put(self.next_position, [vocabulary.end_of_speech]);
            }
        }
    }

    /// Appends tokens at consecutive positions.
    fn put(&mut self, first: i32, ids: impl IntoIterator<Item = u32>) {
        self.ids.extend(ids);
        let new = self.ids.len() - self.positions.len();
        self.positions.extend((first..).take(new));
    }
}

/// The sizes that bound a window; characters and ids are one to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimits {
    /// Frames of the voice prompt that the stage reads.
    pub prompt_frames: usize,
    /// Ids of the longest control block.
    pub control: usize,
    /// Characters of a chunk, and of a prefix, without leading space and line feed.
    pub characters: usize,
    /// Characters of a lookahead, without leading space and line feed.
    pub lookahead: usize,
    /// Codes of a row of a chunk, and of a prefix.
    pub codes: usize,
}

impl WindowLimits {
    /// Tokens of the longest window of a stage, generated ones included, however long the passage is. A passage that
    /// continues a prefix makes longer ones in the acoustic stages, where nothing else stands before a chunk.
    pub fn longest(&self, stage: usize, continues_prefix: bool) -> usize {
        const LEADING_SPACE: usize = 1;
        const LINE_FEED: usize = 1;
        const MARKER: usize = 1;
        const PAD: usize = 1;
        let rows = stage + 1;
        let text = LEADING_SPACE + self.characters;
        let common = rows * self.prompt_frames + self.control + rows * (PAD + self.codes) + text;
        if stage == 0 {
            // An inner chunk behind another: a lookahead instead of the line feed, which may come after it.
            let lookahead = MARKER + LEADING_SPACE + self.lookahead + LINE_FEED;
            return common + text + MARKER + lookahead + self.codes + MARKER;
        }
        let prefix = self.characters + MARKER + rows * self.codes + MARKER;
        common + LINE_FEED + MARKER + if continues_prefix { prefix } else { 0 }
    }
}

fn check_rows(vocabulary: &Vocabulary, window: &Window<'_>) {
    let rows = vocabulary.stage + 1;
    let whole = |rows: &[&[u16]]| rows.iter().all(|row| row.len() == rows[0].len());
    let prompt = window.prompt;
    assert!(prompt.is_empty() || prompt.len() == rows && whole(prompt), "prompt; this is a bug");
    let before = window.before.iter().all(|b| b.rows.len() == rows && whole(b.rows));
    assert!(before, "rows of what was spoken before; this is a bug");
    assert_eq!(window.rows.len(), rows, "rows of the chunk; this is a bug");
    let (own, known) = window.rows.split_last().expect("a stage has a row");
    let fits = known.is_empty() || own.len() <= known[0].len();
    assert!(whole(known) && fits, "lengths of the chunk's rows; this is a bug");
}

fn position(tokens: usize) -> i32 {
    i32::try_from(tokens).expect("windows are bounded far below this")
}
