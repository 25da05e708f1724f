//! Networks whose rows of sound are swayed, for answers of the tiny Bagpiper.

use super::*;
use crate::runner::ForwardError;

/// Ids of the tiny Bagpiper, and where a row of a sound has their logits: symbols first, then the streams.
pub(super) mod tiny {
    use std::ops::Range;

    pub(crate) const END_OF_TURN: usize = 2;
    pub(crate) const END_OF_SEGMENT: usize = 3;
    pub(crate) const TEXT_MARKER: usize = 7;
    pub(crate) const AUDIO_MARKER: u32 = 8;
    /// Ids from here on are codes; a row of a sound has those before that are symbols, 256.
    pub(crate) const FIRST_CODE: u32 = 384;
    /// Of stream 0.
    pub(crate) const PAD: usize = 256;
    pub(crate) const CODES: Range<usize> = 257..289;
    pub(crate) const STREAMS: usize = 8;

    /// Where the logits of the streams behind the first begin: a pad and 32 codes each.
    pub(crate) fn others() -> impl Iterator<Item = usize> {
        (0..STREAMS - 1).map(|stream| 289 + stream * 33)
    }
}

/// Changes a row of logits; also told how many rows of the batch stand before it.
pub(super) type Sway = fn(&mut [f32], usize);

/// A network whose rows of sound are swayed.
struct Swayed(Box<dyn StageModel>, Sway);

impl StageModel for Swayed {
    fn vocabulary(&self) -> usize {
        self.0.vocabulary()
    }

    fn outputs(&self, narrow: bool) -> usize {
        self.0.outputs(narrow)
    }

    fn reserve(&mut self, blocks: usize) {
        self.0.reserve(blocks);
    }

    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ForwardError> {
        self.0.forward(batch, logits)?;
        let rows = with_logits(batch, &outputs(BAGPIPER), logits);
        for (n, (row, logits)) in rows.into_iter().enumerate() {
            let newest = batch.ids[row.tokens.end - 1];
            if newest == tiny::AUDIO_MARKER || newest >= tiny::FIRST_CODE {
                (self.1)(logits, n);
            }
        }
        Ok(())
    }
}

/// An engine whose Bagpiper is swayed.
pub(super) fn rig(sway: Sway) -> Rig {
    Rig::with(ROOMY, BUDGET, |stage, network| match stage == BAGPIPER {
        true => Box::new(Swayed(network, sway)),
        false => network,
    })
}

/// Each row of a sound begins a frame.
pub(super) fn rig_without_pads() -> Rig {
    rig(|row, _| row[tiny::PAD] = -1000.0)
}
