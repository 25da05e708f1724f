//! OpusLM: at most one text, then at most one sound, each opened by the prompt or by a forced symbol.
//!
//! The end symbol of a sound stands in stream 0 of a row like any other. It does not end the request: behind it stream 0 is
//! silent, by force, for as many rows as the last stream is behind, and only then the end is said.

use std::ops::Range;
use std::sync::Arc;

use super::{Modality, Phase, Plan, PlanError, Row, check_rows, one};
use crate::delay::{Ending, live_streams};
use crate::layout::{NOTHING, StreamIds};

/// Symbols and ranges of the vocabulary.
#[derive(Debug, Clone)]
pub struct OpusLmIds {
    /// Begins and ends a request.
    pub end: u32,
    /// Opens what the assistant is to be, and its voice.
    pub system: u32,
    /// Opens a turn of who is spoken with.
    pub user: u32,
    /// Opens a turn of the assistant.
    pub assistant: u32,
    /// Opens the frames of a voice.
    pub speaker_marker: u32,
    /// Frames of a voice, always as many.
    pub voice_frames: usize,
    /// Opens and ends text.
    pub text_marker: u32,
    /// Opens sound.
    pub audio_marker: u32,
    /// What text is written with.
    pub text: Range<u32>,
    /// The streams of codes, the semantic one first.
    pub streams: Vec<StreamIds>,
}

/// Ids that stream 0 may say, for each state.
#[derive(Debug)]
struct Masks {
    text: [Range<u32>; 3],
    text_marker: [Range<u32>; 1],
    audio_marker: [Range<u32>; 1],
    audio: [Range<u32>; 2],
    audio_without_end: [Range<u32>; 1],
    nothing: [Range<u32>; 1],
    end: [Range<u32>; 1],
}

/// The state of one context.
#[derive(Debug, Clone)]
pub struct OpusLm {
    ids: Arc<OpusLmIds>,
    masks: Arc<Masks>,
    plan: Plan,
    phase: Phase,
    /// Tokens or rows of the segment under way.
    rows: usize,
    /// Tokens and frames that may still be said.
    tokens_left: usize,
    /// Frames that have begun when the end was said, the one that it stands in included.
    begun: Option<usize>,
    /// Whether a limit has ended a segment.
    is_capped: bool,
}

impl OpusLm {
    /// Behind a prompt that ends with the marker of the first segment.
    ///
    /// # Errors
    /// The order is not text, sound, or text and then sound; or the limit of rows leaves no room for one frame, or for the
    /// rows before which no sound may end.
    pub fn new(ids: Arc<OpusLmIds>, plan: Plan) -> Result<Self, PlanError> {
        let phase = match plan.order[..] {
            [Modality::Audio] => Phase::Audio,
            [Modality::Text] | [Modality::Text, Modality::Audio] => Phase::Text,
            _ => return Err(PlanError::Order("OpusLM", plan.order)),
        };
        let frames = Ending::Flushed.frames(plan.max_rows, ids.streams.len());
        check_rows(&plan, frames, plan.min_rows.max(1))?;
        let masks = Arc::new(Masks::new(&ids));
        let tokens_left = plan.max_tokens;
        Ok(Self { ids, masks, plan, phase, rows: 0, tokens_left, begun: None, is_capped: false })
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
            Phase::Text if self.text_is_full() => &m.text_marker,
            Phase::Text => &m.text,
            Phase::Transition => &m.audio_marker,
            // The last row that leaves room for the flush must say the end.
            Phase::Audio if self.sound_is_full() => &m.end,
            Phase::Audio if self.rows < self.plan.min_rows => &m.audio_without_end,
            Phase::Audio => &m.audio,
            Phase::Drain => &m.nothing,
            Phase::Stop => &m.end,
            Phase::Select | Phase::Done => &[],
        }
    }

    /// `id` is one of those allowed.
    pub(super) fn advance(&mut self, id: u32) -> Row {
        let phase = self.phase;
        match phase {
            Phase::Text => {
                self.is_capped |= self.text_is_full();
                self.rows += 1;
                if id == self.ids.end || id == self.ids.text_marker {
                    let sound = self.plan.order.contains(&Modality::Audio) && self.tokens_left > 0;
                    self.phase = if sound { Phase::Transition } else { Phase::Done };
                } else {
                    self.tokens_left = self.tokens_left.saturating_sub(1);
                }
                Row { phase, streams: 0..0, grid: false }
            }
            Phase::Audio | Phase::Drain => {
                let row = self.rows;
                self.is_capped |= phase == Phase::Audio && self.sound_is_full();
                self.rows += 1;
                if phase == Phase::Audio && id == self.ids.end {
                    self.begun = Some(self.rows);
                } else if phase == Phase::Audio {
                    self.tokens_left = self.tokens_left.saturating_sub(1);
                }
                self.phase = self.within_sound();
                let live = live_streams(row, self.begun, self.ids.streams.len());
                let streams = live.start.max(1).min(live.end)..live.end;
                Row { phase, streams, grid: true }
            }
            Phase::Transition => {
                (self.phase, self.rows) = (Phase::Audio, 0);
                Row { phase, streams: 0..0, grid: false }
            }
            Phase::Select | Phase::Stop | Phase::Done => {
                self.phase = Phase::Done;
                Row { phase, streams: 0..0, grid: false }
            }
        }
    }

    fn within_sound(&self) -> Phase {
        match self.begun {
            None => Phase::Audio,
            Some(begun) if self.rows < begun + self.ids.streams.len() - 1 => Phase::Drain,
            Some(_) => Phase::Stop,
        }
    }

    fn text_is_full(&self) -> bool {
        self.tokens_left == 0 || self.rows >= self.plan.max_text
    }

    /// Whether no further frame may be begun.
    fn sound_is_full(&self) -> bool {
        let frames = Ending::Flushed.frames(self.plan.max_rows, self.ids.streams.len());
        self.tokens_left == 0 || self.rows >= frames
    }
}

impl Masks {
    fn new(ids: &OpusLmIds) -> Self {
        let codes = ids.streams[0].codes.clone();
        let mut text = [one(ids.end), one(ids.text_marker), ids.text.clone()];
        let mut audio = [one(ids.end), codes.clone()];
        text.sort_by_key(|r| r.start);
        audio.sort_by_key(|r| r.start);
        Self {
            text,
            text_marker: [one(ids.text_marker)],
            audio_marker: [one(ids.audio_marker)],
            audio,
            audio_without_end: [codes],
            nothing: [one(NOTHING)],
            end: [one(ids.end)],
        }
    }
}
