//! What crosses the wall between the scheduler and a model: one ragged batch of one stage, as plain integers.
//!
//! It must never know what a token means, who owns a sequence, or on which device the numbers are made.
//!
//! ```text
//! ids        [ a a a a | b | c c ]      tokens of three sequences, back to back
//! beside     [ aa aa aa aa | bb | cc cc ]   of a model of three streams: what tokens say in streams 1 and 2
//! positions  [ 0 1 2 3 | 9 | 4 5 ]      rotary coordinates, any integers
//! rows       a: tokens 0..4, 0 computed    b: 4..5, 57 computed    c: 5..7, 16 computed
//! ```

use std::ops::Range;

/// Tokens that share one block of key/value memory.
pub const BLOCK_TOKENS: usize = 16;

/// One ragged batch of one stage: prefill pieces and decode tokens of many sequences together.
#[derive(Debug, Default, Clone)]
pub struct Batch {
    /// Token ids, sequence after sequence.
    pub ids: Vec<u32>,
    /// What each token says in the streams behind the first, token by token: as many ids as the model has further streams.
    pub beside: Vec<u32>,
    /// Rotary position of each token; same length as `ids`.
    pub positions: Vec<i32>,
    /// One entry for each sequence, in the order of `ids`.
    pub rows: Vec<BatchRow>,
}

/// One sequence's part of a [`Batch`].
#[derive(Debug, Default, Clone)]
pub struct BatchRow {
    /// Which of the batch's tokens are this sequence's: at least one, contiguous.
    pub tokens: Range<usize>,
    /// Tokens of this sequence whose keys and values are already stored.
    pub computed: usize,
    /// Block table: block `i` holds tokens `16 i .. 16 i + 16` of the sequence; covers `computed + tokens.len()`.
    pub blocks: Vec<u32>,
    /// Whether the output of the last token is wanted.
    pub logits: bool,
    /// Where it is: of so many tokens before it, too, the first of them first. Only networks that are asked to confirm what may
    /// follow have to give them.
    pub outputs_before: usize,
    /// Whether symbols and codes are all that can be said next. A network that has text beside codes gives logits for symbols
    /// and codes then, and for symbols and text otherwise.
    pub narrow: bool,
    /// Tokens of the sequence, computed or new, of which it is asked how much the last one attends to each, where logits
    /// are wanted. Empty: none.
    pub watched: Range<usize>,
}

impl Batch {
    /// How many rows of logits a forward of this batch returns.
    pub fn outputs(&self) -> usize {
        self.rows.iter().map(BatchRow::outputs).sum()
    }
}

impl BatchRow {
    /// How many rows of logits it returns.
    pub fn outputs(&self) -> usize {
        if self.logits { 1 + self.outputs_before } else { 0 }
    }
}
