//! Bagpiper: a turn is segments of text and sound. The assistant symbol opens one, a modality symbol says which, `eot` ends one
//! that is followed by another, `eos` ends the turn.
//!
//! A segment of sound ends as the model was trained to: it drains by itself, with its pad in stream 0. Only where the limit of
//! rows comes near is the drain forced, so that no frame is begun that could not be finished.

use std::ops::Range;
use std::sync::Arc;

use super::{Modality, Phase, Plan, PlanError, Row, check_rows, one};
use crate::delay::Ending;
use crate::layout::StreamIds;

/// Symbols and ranges of the vocabulary.
#[derive(Debug, Clone)]
pub struct BagpiperIds {
    /// Begins a conversation.
    pub begin: u32,
    /// Opens a message that tells what to be.
    pub system: u32,
    /// Opens a message of who is spoken with.
    pub user: u32,
    /// Ends a turn.
    pub end_of_turn: u32,
    /// Ends a segment that another of the same speaker follows.
    pub end_of_segment: u32,
    /// Opens a segment of the assistant.
    pub assistant: u32,
    /// Opens text.
    pub text_marker: u32,
    /// Opens sound.
    pub audio_marker: u32,
    /// What text is written with.
    pub text: Range<u32>,
    /// The streams of codes.
    pub streams: Vec<StreamIds>,
}

/// Ids that stream 0 may say, for each state.
#[derive(Debug)]
struct Masks {
    select: [Vec<Range<u32>>; 3],
    text: Vec<Range<u32>>,
    assistant: [Range<u32>; 1],
    audio: Vec<Range<u32>>,
    audio_without_end: [Range<u32>; 1],
    pad: [Range<u32>; 1],
    end_of_turn: [Range<u32>; 1],
    end_of_segment: [Range<u32>; 1],
}

/// The state of one context.
#[derive(Debug, Clone)]
pub struct Bagpiper {
    ids: Arc<BagpiperIds>,
    masks: Arc<Masks>,
    plan: Plan,
    phase: Phase,
    /// What the segment under way holds.
    modality: Modality,
    /// Segments that have been opened.
    opened: usize,
    /// Tokens or rows of the segment under way.
    rows: usize,
    /// Rows at which a segment of sound ends.
    sound_ends_at: usize,
    /// Tokens and frames that may still be said.
    tokens_left: usize,
    /// Whether a limit has ended a segment.
    is_capped: bool,
}

impl Bagpiper {
    /// Behind a prompt that ends with the assistant symbol.
    ///
    /// # Errors
    /// The limit of rows leaves no room for one frame, or for the rows before which no sound may end.
    pub fn new(ids: Arc<BagpiperIds>, plan: Plan) -> Result<Self, PlanError> {
        let frames = Ending::Padded.frames(plan.max_rows, ids.streams.len());
        check_rows(&plan, frames, plan.min_rows.max(1))?;
        let masks = Arc::new(Masks::new(&ids));
        Ok(Self {
            ids,
            masks,
            phase: Phase::Select,
            modality: Modality::Text,
            opened: 0,
            rows: 0,
            sound_ends_at: plan.max_rows,
            tokens_left: plan.max_tokens,
            is_capped: false,
            plan,
        })
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn is_capped(&self) -> bool {
        self.is_capped
    }

    pub(super) fn allowed(&self) -> &[Range<u32>] {
        let m = &*self.masks;
        match self.phase {
            Phase::Select => match self.plan.order.get(self.opened) {
                Some(Modality::Text) => &m.select[0],
                Some(Modality::Audio) => &m.select[1],
                None => &m.select[2],
            },
            Phase::Text => &m.text,
            Phase::Transition => &m.assistant,
            Phase::Audio if self.rows < self.plan.min_rows => &m.audio_without_end,
            Phase::Audio => &m.audio,
            Phase::Drain => &m.pad,
            Phase::Stop if self.has_more() => &m.end_of_segment,
            Phase::Stop => &m.end_of_turn,
            Phase::Done => &[],
        }
    }

    /// `id` is one of those allowed.
    pub(super) fn advance(&mut self, id: u32) -> Row {
        let phase = self.phase;
        let mut row = Row { phase, streams: 0..0, grid: false };
        match phase {
            Phase::Select => {
                let sound = id == self.ids.audio_marker;
                self.modality = if sound { Modality::Audio } else { Modality::Text };
                self.opened += 1;
                self.rows = 0;
                self.sound_ends_at = self.plan.max_rows;
                self.phase = self.within_segment();
            }
            Phase::Transition => self.phase = Phase::Select,
            _ => {
                let sound = self.modality == Modality::Audio;
                if id == self.ids.end_of_turn || id == self.ids.end_of_segment {
                    self.phase = self.behind_segment(id);
                } else {
                    row.grid = sound;
                    row.streams = if sound { 1..self.ids.streams.len() } else { 0..0 };
                    self.rows += 1;
                    // A sound that drains by itself needs no more time than it has.
                    let begins_frame = id != self.ids.streams[0].pad;
                    self.count(sound, begins_frame);
                    self.phase = self.within_segment();
                    let is_over = phase == Phase::Audio && self.phase != Phase::Audio;
                    self.is_capped |= self.phase == Phase::Stop && !sound;
                    self.is_capped |= is_over && begins_frame;
                }
            }
        }
        row
    }

    /// Counts the row that was said. The last frame that may be begun is finished all the same.
    fn count(&mut self, sound: bool, begins_frame: bool) {
        if !sound || begins_frame {
            self.tokens_left = self.tokens_left.saturating_sub(1);
            if sound && self.tokens_left == 0 {
                let finished = self.rows + self.ids.streams.len() - 1;
                self.sound_ends_at = self.sound_ends_at.min(finished);
            }
        }
    }

    /// The phase of the next row, while the segment goes on.
    fn within_segment(&self) -> Phase {
        let frames = Ending::Padded.frames(self.plan.max_rows, self.ids.streams.len());
        let may_begin = self.tokens_left > 0;
        match self.modality {
            Modality::Text if may_begin && self.rows < self.plan.max_text => Phase::Text,
            Modality::Audio if may_begin && self.rows < frames => Phase::Audio,
            Modality::Audio if self.rows < self.sound_ends_at => Phase::Drain,
            Modality::Text | Modality::Audio => Phase::Stop,
        }
    }

    /// An order that was asked for is followed to its end, and no further. Without one the model's own symbol decides.
    fn behind_segment(&self, id: u32) -> Phase {
        let goes_on = if self.plan.order.is_empty() {
            id == self.ids.end_of_segment && self.tokens_left > 0
        } else {
            self.has_more()
        };
        if goes_on { Phase::Transition } else { Phase::Done }
    }

    /// Whether another segment of the order is to come.
    fn has_more(&self) -> bool {
        self.opened < self.plan.order.len() && self.tokens_left > 0
    }
}

impl Masks {
    fn new(ids: &BagpiperIds) -> Self {
        let first = &ids.streams[0];
        let with = |range| ascending(vec![one(ids.end_of_turn), one(ids.end_of_segment), range]);
        let (text, audio) = (one(ids.text_marker), one(ids.audio_marker));
        Self {
            select: [vec![text.clone()], vec![audio.clone()], ascending(vec![text, audio])],
            text: with(ids.text.clone()),
            assistant: [one(ids.assistant)],
            audio: with(first.head()),
            audio_without_end: [first.head()],
            pad: [one(first.pad)],
            end_of_turn: [one(ids.end_of_turn)],
            end_of_segment: [one(ids.end_of_segment)],
        }
    }
}

/// Sorted, and neighbours joined.
fn ascending(mut ranges: Vec<Range<u32>>) -> Vec<Range<u32>> {
    ranges.sort_by_key(|r| r.start);
    let mut joined: Vec<Range<u32>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}
