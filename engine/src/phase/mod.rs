//! What a speech model of several streams may say next: an explicit state for each context, which only its own symbols move.
//! What the model would rather say never moves it, so no likely symbol of another phase can end a sound or slip into it.
//!
//! Whole numbers only: it must never know logits, sampling, or whose rows they are. For each step:
//!
//! 1. [`Machine::allowed`] are the ids that stream 0 may say; [`Machine::guided`] tells whether guidance counts.
//! 2. Stream 0 chooses one of them, and [`Machine::advance`] says what the row is, and moves on.
//!
//! ```text
//! Bagpiper   Select -> Text -> Transition -> Select -> Audio [-> Drain -> Stop] -> Done
//! OpusLM               Text -> Transition ----------->  Audio -> Drain -> Stop  -> Done
//! ```

mod bagpiper;
mod opuslm;

use std::ops::Range;

pub use bagpiper::{Bagpiper, BagpiperIds};
pub use opuslm::{OpusLm, OpusLmIds};

/// Where a context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The next segment's kind is chosen.
    Select,
    /// Text is written.
    Text,
    /// A forced symbol leads from one segment to the next.
    Transition,
    /// Rows of codes are said.
    Audio,
    /// Stream 0 is silent, by force, while the others finish their frames.
    Drain,
    /// The end is said, by force.
    Stop,
    /// Nothing more is said.
    Done,
}

/// What a segment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modality {
    /// Text.
    Text,
    /// Rows of codes.
    Audio,
}

/// What a context is asked to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Its segments, in order. Empty: the model chooses, where it has symbols to choose with.
    pub order: Vec<Modality>,
    /// Tokens that a text has at most; then its end is forced.
    pub max_text: usize,
    /// Rows of a segment of sound before which it cannot end.
    pub min_rows: usize,
    /// Rows that a segment of sound has at most, those included in which its last frames are finished.
    pub max_rows: usize,
    /// Tokens of text and frames of sound that all segments have together, at least one. What is said then is finished, and
    /// no further segment is opened.
    pub max_tokens: usize,
}

/// What became of a row once stream 0 had chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The phase in which it was said.
    pub phase: Phase,
    /// Streams that say what their own heads choose; all but these and stream 0 say nothing.
    pub streams: Range<usize>,
    /// Whether it is a row of codes.
    pub grid: bool,
}

/// A plan that the model cannot follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A limit leaves no room for one frame, or less than must be said before an end.
    #[error("max_rows {max_rows} leaves room for {frames} frames, at least {needed} are needed")]
    Rows {
        /// The limit.
        max_rows: usize,
        /// Frames that can be finished within it.
        frames: usize,
        /// Frames that it must have room for.
        needed: usize,
    },
    /// Segments in an order that the model has no symbols for.
    #[error("{0} cannot say segments in this order: {1:?}")]
    Order(&'static str, Vec<Modality>),
}

/// Stream 0 said what it may not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("id {id} is not allowed in phase {phase:?}")]
pub struct NotAllowed {
    /// The phase.
    pub phase: Phase,
    /// What was said.
    pub id: u32,
}

/// The state of one context.
#[derive(Debug, Clone)]
pub enum Machine {
    /// Chat turns with markers for roles and modalities, S codec streams with pads of their own.
    Bagpiper(Bagpiper),
    /// A semantic stream and codec streams, no pads of their own, an end that is flushed.
    OpusLm(OpusLm),
}

impl Machine {
    /// Where the context is.
    pub fn phase(&self) -> Phase {
        match self {
            Self::Bagpiper(m) => m.phase(),
            Self::OpusLm(m) => m.phase(),
        }
    }

    /// Ids that stream 0 may say next, in ascending order; none when all is said.
    pub fn allowed(&self) -> &[Range<u32>] {
        match self {
            Self::Bagpiper(m) => m.allowed(),
            Self::OpusLm(m) => m.allowed(),
        }
    }

    /// Whether what is said next is no text: a symbol, or codes.
    pub fn is_narrow(&self) -> bool {
        self.phase() != Phase::Text
    }

    /// Whether logits of this step are merged with those of guidance's companion, in all streams. The companion reads the rows
    /// that such steps are made from, the marker that opens the sound first, and before them nothing, for as many rows as the
    /// conditional branch has read: it knows nothing of what was asked for.
    pub fn guided(&self) -> bool {
        matches!(self.phase(), Phase::Audio | Phase::Drain)
    }

    /// Whether a limit of the plan has ended a segment that would have gone on.
    pub fn is_capped(&self) -> bool {
        match self {
            Self::Bagpiper(m) => m.is_capped(),
            Self::OpusLm(m) => m.is_capped(),
        }
    }

    /// Takes what stream 0 says.
    ///
    /// # Errors
    /// It may not say it; nothing has changed then.
    pub fn advance(&mut self, id: u32) -> Result<Row, NotAllowed> {
        if !self.allowed().iter().any(|r| r.contains(&id)) {
            return Err(NotAllowed { phase: self.phase(), id });
        }
        Ok(match self {
            Self::Bagpiper(m) => m.advance(id),
            Self::OpusLm(m) => m.advance(id),
        })
    }
}

/// Checks that `max_rows` has room for the frames that must be.
fn check_rows(plan: &Plan, frames: usize, needed: usize) -> Result<(), PlanError> {
    if frames < needed {
        return Err(PlanError::Rows { max_rows: plan.max_rows, frames, needed });
    }
    Ok(())
}

fn one(id: u32) -> Range<u32> {
    id..id + 1
}

#[cfg(test)]
mod tests;
