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

/// Where a model's row of logits has what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs {
    /// Logits of each stream, stream 0 first, whose output `i` is id `i`.
    pub streams: Vec<Range<usize>>,
    /// The id that the first logit of each stream stands for.
    pub first_ids: Vec<u32>,
    /// Whether that is the stream's pad, in all streams but the first.
    pub own_pads: bool,
}

impl Outputs {
    /// How many logits a row has.
    pub fn len(&self) -> usize {
        self.streams.last().map_or(0, |s| s.end)
    }

    /// Whether there is no stream.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

/// Chooses the row of step `step` and moves the state on. `ids` receives one id for each stream, [`NOTHING`] in those that
/// say nothing. Guidance is merged into `logits` before. A stream that `needs` a code does not say its pad: the frame that
/// its code belongs to has begun.
///
/// # Errors
/// See [`ChooseError`]; the state has not moved when stream 0 could not choose.
pub fn choose(
    machine: &mut Machine,
    logits: &[f32],
    outputs: &Outputs,
    manner: &Manner,
    step: u64,
    needs: impl Fn(usize) -> bool,
    ids: &mut Vec<u32>,
) -> Result<Row, ChooseError> {
    if machine.phase() == Phase::Done {
        return Err(NotAllowed { phase: Phase::Done, id: NOTHING }.into());
    }
    let own = &logits[outputs.streams[0].clone()];
    let of_sound = matches!(machine.phase(), Phase::Audio | Phase::Drain);
    let sampling = if of_sound { manner.audio } else { manner.text };
    let draw = |stream: usize, row: &mut [f32], sampling, forbidden: &[u16]| {
        let rules = Rules { sampling, forbidden, biases: &[], generated: &[] };
        let number = uniform(manner.seed, stream as u64, step);
        sample(row, &rules, number).map_err(|error| ChooseError::Stream { stream, error })
    };
    let mut candidates = Vec::new();
    for allowed in machine.allowed() {
        candidates.extend_from_slice(&own[allowed.start as usize..allowed.end as usize]);
    }
    let chosen = draw(0, &mut candidates, sampling, &[])?;
    let first = nth(machine.allowed(), chosen);
    let row = machine.advance(first)?;
    ids.clear();
    ids.push(first);
    ids.resize(outputs.streams.len(), NOTHING);
    for stream in row.streams.clone() {
        candidates.clear();
        candidates.extend_from_slice(&logits[outputs.streams[stream].clone()]);
        let forbidden: &[u16] = if outputs.own_pads && needs(stream) { &[0] } else { &[] };
        let chosen = draw(stream, &mut candidates, manner.audio, forbidden)?;
        ids[stream] = outputs.first_ids[stream] + chosen as u32;
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
