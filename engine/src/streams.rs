//! One step of a model that says several streams: a row of logits in, a row of ids out. Same input, same output, bit for bit.
//!
//! Stream 0 chooses among what its state allows; then every stream that has something to say chooses from its own head. All
//! choose from the same logits, and each draws its own number, so that no stream's choice depends on another's.

use std::ops::Range;

use crate::layout::NOTHING;
use crate::phase::{Machine, NotAllowed, Phase, Row};
use crate::rng::uniform;
use crate::sampler::{Rules, SampleError, Sampling, sample};

/// What a step chooses by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Manner {
    /// How freely text and symbols are chosen.
    pub text: Sampling,
    /// How freely codes are chosen, in all streams.
    pub audio: Sampling,
    /// The context's seed.
    pub seed: u64,
}

/// Where a model's row of logits has what: one logit for each id that can be said next, so there are two kinds of rows.
///
/// ```text
/// wide     [ symbols | text ]                             while text is written
/// narrow   [ symbols | stream 0 | stream 1 | stream 2 ]   at any other time
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs {
    /// Ids that are neither text nor a stream's, in ascending order.
    pub symbols: Vec<Range<u32>>,
    /// Ids of text; none where all ids are symbols.
    pub text: Range<u32>,
    /// Ids that the head of each stream chooses from; none in a model of text alone.
    pub heads: Vec<Range<u32>>,
    /// Whether the first of them is the stream's pad, in all streams but the first.
    pub own_pads: bool,
}

impl Outputs {
    /// How many logits a row has.
    pub fn len(&self, narrow: bool) -> usize {
        self.first_stream(narrow).map(|(ids, _)| ids.len()).sum::<usize>()
            + self.heads.iter().skip(1).filter(|_| narrow).map(|ids| ids.len()).sum::<usize>()
    }

    /// Ids that stream 0 can say, and where in a row their logits begin.
    pub fn first_stream(&self, narrow: bool) -> impl Iterator<Item = (Range<u32>, usize)> {
        let own = if narrow { self.heads.first() } else { Some(&self.text) };
        let mut end = 0;
        self.symbols.iter().chain(own).map(move |ids| {
            let start = end;
            end += ids.len();
            (ids.clone(), start)
        })
    }

    /// Where a narrow row has the logits of a stream behind the first.
    ///
    /// # Panics
    /// When there is no such stream.
    pub fn other_stream(&self, stream: usize) -> Range<usize> {
        let before = self.symbols.iter().chain(&self.heads[..stream]);
        let start = before.map(|ids| ids.len()).sum();
        start..start + self.heads[stream].len()
    }

    /// Adds to the logits of stream 0 what `biases` has for their ids.
    #[cfg(test)]
    pub(crate) fn bias(&self, row: &mut [f32], narrow: bool, biases: &[f32]) {
        for (ids, start) in self.first_stream(narrow) {
            let biases = &biases[ids.start as usize..ids.end as usize];
            row[start..].iter_mut().zip(biases).for_each(|(logit, bias)| *logit += bias);
        }
    }

    /// The candidates of stream 0, range by range.
    fn candidates(&self, logits: &[f32], narrow: bool, allowed: &[Range<u32>]) -> Vec<f32> {
        let wanted = allowed.iter().map(|ids| ids.len()).sum();
        let mut candidates = Vec::with_capacity(wanted);
        for allowed in allowed {
            for (ids, start) in self.first_stream(narrow) {
                let common = allowed.start.max(ids.start)..allowed.end.min(ids.end);
                if !common.is_empty() {
                    let start = start + (common.start - ids.start) as usize;
                    candidates.extend_from_slice(&logits[start..start + common.len()]);
                }
            }
        }
        assert_eq!(candidates.len(), wanted, "a row has what may be said; this is a bug");
        candidates
    }
}

/// Why a row could not be chosen.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ChooseError {
    /// A stream has nothing to choose from, or broken numbers.
    #[error("stream {stream}: {error}")]
    Stream {
        /// Which stream.
        stream: usize,
        /// What is wrong with it.
        error: SampleError,
    },
    /// Everything has been said.
    #[error(transparent)]
    Done(#[from] NotAllowed),
}

/// Chooses the row of step `step` and moves the state on. `logits` are a row as [`Machine::is_narrow`] says, and are used up;
/// guidance is merged into them before. `ids` receives one id for each stream, [`NOTHING`] in those that say nothing. A stream
/// that `needs` a code does not say its pad: the frame that its code belongs to has begun.
///
/// # Errors
/// See [`ChooseError`]; the state has not moved when stream 0 could not choose.
pub fn choose(
    machine: &mut Machine,
    logits: &mut [f32],
    outputs: &Outputs,
    manner: &Manner,
    step: u64,
    needs: impl Fn(usize) -> bool,
    ids: &mut Vec<u32>,
) -> Result<Row, ChooseError> {
    if machine.phase() == Phase::Done {
        return Err(NotAllowed { phase: Phase::Done, id: NOTHING }.into());
    }
    let of_sound = matches!(machine.phase(), Phase::Audio | Phase::Drain);
    let sampling = if of_sound { manner.audio } else { manner.text };
    let draw = |stream: usize, row: &mut [f32], sampling, forbidden: &[u16]| {
        let rules = Rules { sampling, forbidden, biases: &[], generated: &[] };
        let number = uniform(manner.seed, stream as u64, step);
        sample(row, &rules, number).map_err(|error| ChooseError::Stream { stream, error })
    };
    let mut candidates = outputs.candidates(logits, machine.is_narrow(), machine.allowed());
    let chosen = draw(0, &mut candidates, sampling, &[])?;
    let first = nth(machine.allowed(), chosen);
    let row = machine.advance(first)?;
    ids.clear();
    ids.push(first);
    ids.resize(outputs.heads.len(), NOTHING);
    for stream in row.streams.clone() {
        let forbidden: &[u16] = if outputs.own_pads && needs(stream) { &[0] } else { &[] };
        let own = &mut logits[outputs.other_stream(stream)];
        let chosen = draw(stream, own, manner.audio, forbidden)?;
        ids[stream] = outputs.heads[stream].start + chosen as u32;
    }
    Ok(row)
}

/// The id at a place in ranges that are laid end to end.
fn nth(ranges: &[Range<u32>], place: usize) -> u32 {
    let mut left = place as u32;
    for range in ranges {
        match left.checked_sub(range.len() as u32) {
            None => return range.start + left,
            Some(rest) => left = rest,
        }
    }
    unreachable!("a candidate of these ranges was chosen; this is a bug")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two symbols, two streams, text, and one more symbol.
    fn outputs() -> Outputs {
        let heads = vec![2..5, 5..7];
        Outputs { symbols: vec![0..2, 12..13], text: 7..12, heads, own_pads: false }
    }

    #[test]
    fn a_row_has_what_can_be_said_next_each_id_once() {
        let outputs = outputs();
        assert_eq!([false, true].map(|narrow| outputs.len(narrow)), [3 + 5, 3 + 3 + 2]);
        let first: Vec<_> = outputs.first_stream(false).collect();
        assert_eq!(first, [(0..2, 0), (12..13, 2), (7..12, 3)]);
        let first: Vec<_> = outputs.first_stream(true).collect();
        assert_eq!(first, [(0..2, 0), (12..13, 2), (2..5, 3)]);
        assert_eq!(outputs.other_stream(1), 6..8);
    }

    #[test]
    fn candidates_stand_in_the_order_of_their_ids() {
        let row: Vec<f32> = (0..8).map(|i| i as f32).collect();
        let candidates = |narrow, ids: Range<u32>| outputs().candidates(&row, narrow, &[ids]);
        assert_eq!(candidates(true, 1..4), [1.0, 3.0, 4.0]);
        assert_eq!(candidates(false, 8..12), [4.0, 5.0, 6.0, 7.0]);
    }

    #[test]
    #[should_panic(expected = "a row has what may be said")]
    fn text_cannot_be_said_from_a_row_without_it() {
        let row = [0.0; 8];
        outputs().candidates(&row, true, std::slice::from_ref(&(8..9)));
    }
}
