//! One chunk of text on its way to codes: which codes are known, which are frozen, which rows are refined.
//!
//! ```text
//! C0    |=========|=========|-----            = frozen: a segment was cut here and goes on to the acoustic stages
//! C1    |=========|====                       - said by CB0, still its own to say again
//! C2    |=========|
//! C3    |=========|
//!       handed    ^ rows complete up to here may go to the codec
//! ```

use std::sync::Arc;

use crate::guards::Verdict;
use crate::layout;
use crate::pipeline::alignment::Alignment;
use crate::sequence::GroupId;
use crate::text;

/// How an attempt of CB0 ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself.
    Stopped,
    /// A guard heard that it was no speech.
    Guard,
    /// The text cannot need so many codes.
    Budget,
}

/// Where a chunk stands in its context, and how it is to be spoken.
#[derive(Debug)]
pub(super) struct Place {
    /// Number of the chunk in its context.
    pub(super) index: usize,
    /// Frames of the passage before it.
    pub(super) base: usize,
    /// Control block of each stage.
    pub(super) control: Arc<[Vec<u32>]>,
}

/// An attempt of CB0 that a guard turned down.
#[derive(Debug, Clone)]
pub(super) struct TurnedDown {
    pub(super) codes: Vec<u16>,
    pub(super) shares: Vec<f32>,
    pub(super) verdict: Verdict,
    pub(super) ending: Ending,
}

/// The acoustic stage that works on a chunk, and up to which frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refine {
    pub(super) group: GroupId,
    pub(super) stage: usize,
    pub(super) frames: usize,
}

/// A chunk between its cut and its last sample.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Number of the chunk in its context.
    pub(super) index: usize,
    /// The text, its tail and its range.
    pub(super) text: text::Chunk,
    /// Frames of the passage before this chunk.
    pub(super) base: usize,
    /// Control block of each stage: the manner that held when the chunk was cut.
    pub(super) control: Arc<[Vec<u32>]>,
    /// C0 so far.
    pub(super) codes: Vec<u16>,
    /// Which characters they say.
    pub(super) alignment: Alignment,
    /// Leading codes of C0 that the current attempt was given.
    pub(super) forced: usize,
    /// Ends of the segments so far, ascending. A segment is refined as it was cut, also when later ones are known by then:
    /// what the acoustic stages see must not depend on how busy the engine is.
    pub(super) cuts: Vec<usize>,
    /// Whether C0 is complete.
    pub(super) complete: bool,
    /// Number of the current attempt, 0 based.
    pub(super) attempt: u32,
    /// Earlier attempts.
    pub(super) turned_down: Vec<TurnedDown>,
    /// CB0's group while it runs.
    pub(super) semantic: Option<GroupId>,
    /// Rows C1.. as far as they are known.
    pub(super) acoustic: Vec<Vec<u16>>,
    /// The acoustic stage at work.
    pub(super) refine: Option<Refine>,
    /// Leading frames that the codec has.
    pub(super) handed: usize,
}

impl Chunk {
    pub(super) fn new(place: Place, text: text::Chunk, acoustic_rows: usize) -> Self {
        Self {
            index: place.index,
            text,
            base: place.base,
            control: place.control,
            codes: Vec::new(),
            alignment: Alignment::default(),
            forced: 0,
            cuts: Vec::new(),
            complete: false,
            attempt: 0,
            turned_down: Vec::new(),
            semantic: None,
            acoustic: vec![Vec::new(); acoustic_rows],
            refine: None,
            handed: 0,
        }
    }

    /// The acoustic work that can start: the stage and the frame it runs up to. A segment goes through all stages before
    /// the next one starts, since only whole columns are sound.
    pub(super) fn due(&self) -> Option<(usize, usize)> {
        let first = self.acoustic.first()?.len();
        if self.refine.is_some() {
            return None;
        }
        match self.acoustic.iter().position(|row| row.len() < first) {
            Some(row) => Some((row + 1, first)),
            None => self.cuts.iter().find(|&&cut| cut > first).map(|&cut| (1, cut)),
        }
    }

    /// Leading codes that are on their way to the listener, so never change.
    pub(super) fn frozen(&self) -> usize {
        self.cuts.last().copied().unwrap_or(0)
    }

    /// A segment ends with the newest code: all before its end goes on to the acoustic stages and is not said again.
    pub(super) fn cut(&mut self) {
        if self.codes.len() > self.frozen() {
            self.cuts.push(self.codes.len());
        }
    }

    /// Frames of which all rows are known.
    pub(super) fn refined(&self) -> usize {
        self.acoustic.last().map_or(self.frozen(), Vec::len)
    }

    /// Whether every frame of the chunk has gone to the codec.
    pub(super) fn spoken(&self) -> bool {
        self.complete && self.handed == self.codes.len()
    }

    /// Drops what CB0 may say again, and remembers it with its verdict.
    pub(super) fn turn_down(&mut self, verdict: Verdict, ending: Ending) {
        let (codes, shares) = (self.codes.clone(), self.alignment.shares().to_vec());
        self.forced = self.forced.max(self.frozen());
        self.codes.truncate(self.forced);
        self.alignment.truncate(self.forced);
        self.turned_down.push(TurnedDown { codes, shares, verdict, ending });
        self.attempt += 1;
    }

    /// Settles on the best of all attempts that begin with what is frozen, the current one (of this verdict) among them.
    /// Returns how that one ended; `None` when there is nothing in it to hear.
    pub(super) fn settle(&mut self, mut verdict: Verdict, mut ending: Ending) -> Option<Ending> {
        for other in std::mem::take(&mut self.turned_down) {
            let goes_on = other.codes.starts_with(&self.codes[..self.frozen()]);
            if goes_on && other.verdict.rank(&verdict).is_gt() {
                (self.codes, verdict, ending) = (other.codes, other.verdict, other.ending);
                self.alignment.restore(other.shares);
            }
        }
        verdict.audible().then_some(ending)
    }

    /// The tail as the layout wants it; `ids` holds the lookahead's characters.
    pub(super) fn tail<'a>(&self, ids: &'a [u32]) -> layout::Tail<'a> {
        match &self.text.tail {
            text::Tail::Lookahead(_) => layout::Tail::Lookahead(ids),
            text::Tail::Final => layout::Tail::End,
            text::Tail::Open => layout::Tail::Open,
        }
    }
}
