//! When the characters of a chunk sound: from what CB0 looked at while it said each code. Knows shares of attention and
//! frames; it must never know which network made them.
//!
//! ```text
//! characters      T  h  e     t  r  a  i  n
//! frame 0         #  .                           # most of the attention of the code that was said
//! frame 1            .  #  .
//! frame 2                  .  #  .               the path goes right only, and takes as much of it as it can
//! frame 3                        .  #
//! ```

use std::ops::Range;

use codecs::window::FRAME_SAMPLES;

use crate::event::CharEnd;
use crate::text;

/// The network looks at a character a little before it sounds: a quarter into the frame that it is about to say, half of
/// the character before is over. Found on nano, by the word ends of the held-out list.
const LOOK_FRAMES: f64 = 0.25;
/// See [`LOOK_FRAMES`].
const LOOK_CHARACTERS: f64 = -0.5;
/// A share below this says no more than that the network looked elsewhere.
const LEAST_SHARE: f32 = 1e-3;

/// The attention of a chunk's codes, and which characters' ends were told.
#[derive(Debug, Default)]
pub(super) struct Alignment {
    /// For each character that the network reads: the end of the raw text that it stands for, if it is the last that
    /// stands for it.
    raw: Vec<Option<usize>>,
    /// `[frames, characters]`.
    shares: Vec<f32>,
    /// Leading characters that were told.
    told: usize,
    /// No character that was not told ends at or before this sample of the chunk.
    until: u64,
}

impl Alignment {
    /// A chunk of which nothing is said. `reads`: whether the network has an id for a character.
    pub(super) fn new(chunk: &text::Chunk, reads: impl Fn(char) -> bool) -> Self {
        let mut ends: Vec<Option<usize>> =
            chunk.spans.iter().map(|s| Some(s.end as usize)).collect();
        for at in 1..ends.len() {
            if ends[at] == ends[at - 1] {
                ends[at - 1] = None;
            }
        }
        let input = chunk.input(&chunk.tail);
        let blank = (!chunk.first).then_some(None);
        let raw = blank.into_iter().chain(ends).chain(std::iter::repeat(None));
        let raw = input.chars().zip(raw).filter(|(c, _)| reads(*c)).map(|(_, raw)| raw).collect();
        Self { raw, ..Self::default() }
    }

    /// What the code of a frame looked at: a share for each character, or nothing where the network does not tell.
    pub(super) fn look(&mut self, frame: usize, shares: &[f32]) {
        if shares.len() == self.raw.len() {
            // A frame that nobody said, like a code that was given, could belong to any character.
            self.shares.resize(frame * self.raw.len(), 1.0);
            self.shares.extend_from_slice(shares);
        }
    }

    /// Another attempt goes on behind so many frames.
    pub(super) fn truncate(&mut self, frames: usize) {
        self.shares.truncate(frames * self.raw.len());
    }

    /// The shares so far, for an attempt that may be chosen in the end.
    pub(super) fn shares(&self) -> &[f32] {
        &self.shares
    }

    /// Takes back the shares of an earlier attempt.
    pub(super) fn restore(&mut self, shares: Vec<f32>) {
        self.shares = shares;
    }

    /// Ends of characters that were not told yet, up to sample `until` of the chunk, as the first `frames` of its codes
    /// place them. Samples count from `start`, where the chunk begins.
    pub(super) fn ends(&mut self, frames: usize, start: u64, until: u64) -> Vec<CharEnd> {
        let crossings = self.crossings(frames, None);
        let end = crossings.partition_point(|&sample| sample <= until);
        let told = self.tell(&crossings[..end], start);
        self.until = self.until.max(until);
        told
    }

    /// Ends of all characters that were not told yet: the chunk has so many frames.
    pub(super) fn rest(&mut self, frames: usize, start: u64) -> Vec<CharEnd> {
        let crossings = self.crossings(frames, Some(frames as f64));
        self.tell(&crossings, start)
    }

    fn tell(&mut self, crossings: &[u64], start: u64) -> Vec<CharEnd> {
        let new: Range<usize> = self.told..crossings.len().max(self.told);
        self.told = new.end;
        let least = if self.until > 0 { self.until + 1 } else { 0 };
        new.filter_map(|at| {
            let sample = start + crossings[at].max(least);
            Some(CharEnd { raw_to: self.raw[at]?, sample })
        })
        .collect()
    }

    /// The samples at which the first characters end, as many as the path through the frames has passed.
    fn crossings(&self, frames: usize, close: Option<f64>) -> Vec<u64> {
        let characters = self.raw.len();
        let known = frames.min(self.shares.len().checked_div(characters).unwrap_or(0));
        if known == 0 {
            return Vec::new();
        }
        let path = path(&self.shares[..known * characters], characters);
        let looks = path.into_iter().enumerate().map(|(frame, at)| {
            (frame as f64 + LOOK_FRAMES, (at as f64 + LOOK_CHARACTERS).max(0.0))
        });
        let mut before = (0.0, 0.0);
        let mut crossings = Vec::new();
        for (time, place) in looks.chain(close.map(|time| (time, characters as f64))) {
            while crossings.len() < characters && (crossings.len() + 1) as f64 <= place {
                let end = (crossings.len() + 1) as f64;
                let share = (end - before.1) / (place - before.1);
                let at = before.0 + (time - before.0) * share;
                crossings.push((at * FRAME_SAMPLES as f64).round() as u64);
            }
            before = (time, place);
        }
        crossings
    }
}

/// The character of each frame on the path that never goes back and has the greatest product of shares.
fn path(shares: &[f32], characters: usize) -> Vec<usize> {
    let frames = shares.len() / characters;
    let mut scores = vec![0.0_f32; characters];
    let mut from = vec![0_u32; frames * characters];
    for (row, from) in shares.chunks_exact(characters).zip(from.chunks_exact_mut(characters)) {
        let mut best = 0;
        // `scores[at]` still is the frame before's where `at` is new, and `best` lies at or before it.
        let mut best_score = scores[0];
        for at in 0..characters {
            if scores[at] >= best_score {
                (best, best_score) = (at, scores[at]);
            }
            from[at] = best as u32;
            scores[at] = best_score + row[at].max(LEAST_SHARE).ln();
        }
    }
    let mut at = 0;
    for (other, score) in scores.iter().enumerate() {
        if *score > scores[at] {
            at = other;
        }
    }
    let mut path = vec![0; frames];
    for frame in (0..frames).rev() {
        path[frame] = at;
        at = from[frame * characters + at] as usize;
    }
    path
}

#[cfg(test)]
mod tests;
