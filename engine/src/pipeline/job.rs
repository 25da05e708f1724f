//! What passes between a context and the rest of the engine.

use std::collections::VecDeque;
use std::time::Duration;

use codecs::window::End;

use super::Playout;
use crate::ContextId;
use crate::event::{Event, Failure, Summary};
use crate::scheduler::Scheduler;
use crate::stats::GuardHits;

/// New columns of codes for the codec, and what to tell once they are sound.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AudioJob {
    /// Whose.
    pub(crate) context: ContextId,
    /// Rows of equal length, which may be 0; none where there is nothing for the codec.
    pub(crate) rows: Vec<Vec<u16>>,
    /// Samples that the columns sound in the end.
    pub(crate) samples: u64,
    /// What ends with them.
    pub(crate) end: End,
    /// When the listener runs dry: the audio thread's order. Zero before the first sound.
    pub(crate) deadline: Duration,
    /// Events, each with the sample of the context's timeline that it waits for.
    pub(crate) marks: Vec<(u64, Event)>,
    /// How the context ended, with its last job.
    pub(crate) last: Option<Result<Summary, Failure>>,
}

impl AudioJob {
    /// One of a context with nothing in it.
    pub(crate) fn of(context: ContextId, playout: &Playout) -> Self {
        Self {
            context,
            rows: Vec::new(),
            samples: 0,
            end: End::No,
            deadline: playout.dry_at().unwrap_or_default(),
            marks: Vec::new(),
            last: None,
        }
    }
}

/// What a context works with while it is advanced.
pub(crate) struct Env<'a> {
    pub(crate) now: Duration,
    pub(crate) scheduler: &'a mut Scheduler,
    pub(crate) jobs: &'a mut VecDeque<AudioJob>,
    pub(crate) hits: &'a mut GuardHits,
}

/// What a group's step brought.
pub(crate) struct Said<'a> {
    /// A row for each member.
    pub(crate) logits: &'a mut [f32],
    /// What the watched tokens were attended to with; empty where the network does not tell.
    pub(crate) attention: &'a [f32],
}
