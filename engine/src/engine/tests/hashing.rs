//! A network whose answers depend on all that it can see, and on nothing else.

use std::collections::VecDeque;

use super::{SEMANTIC, vocabulary};
use crate::batch::{BLOCK_TOKENS, Batch};
use crate::layout::Vocabulary;
use crate::rng;
use crate::runner::{ForwardError, StageModel};

/// Stores the id and position of every token where keys and values would lie, and makes logits of a hash of all that a
/// sequence sees there.
pub(super) struct Hashing {
    vocabulary: Vocabulary,
    slots: Vec<u64>,
    attention: Vec<f32>,
    /// What is said instead of what the hash says, as long as it lasts.
    script: VecDeque<usize>,
    /// The forward, counted from 1, that makes no numbers for its last row.
    pub(super) broken_after: Option<u32>,
    forwards: u32,
}

impl Hashing {
    pub(super) fn new(stage: usize, script: VecDeque<usize>) -> Self {
        let (vocabulary, slots, attention) = (vocabulary(stage), Vec::new(), Vec::new());
        Self { vocabulary, slots, attention, script, broken_after: None, forwards: 0 }
    }
}

impl StageModel for Hashing {
    fn vocabulary(&self) -> usize {
        1000
    }

    fn outputs(&self, _narrow: bool) -> usize {
        self.vocabulary.outputs()
    }

    fn reserve(&mut self, blocks: usize) {
        self.slots = vec![0; blocks * BLOCK_TOKENS];
    }

    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ForwardError> {
        self.forwards += 1;
        self.attention.clear();
        for (number, row) in batch.rows.iter().enumerate() {
            let slot =
                |t: usize| row.blocks[t / BLOCK_TOKENS] as usize * BLOCK_TOKENS + t % BLOCK_TOKENS;
            for (i, at) in row.tokens.clone().enumerate() {
                let token = u64::from(batch.ids[at]) << 32 | batch.positions[at] as u32 as u64;
                self.slots[slot(row.computed + i)] = token;
            }
            let seen = row.computed + row.tokens.len();
            assert!(row.watched.end <= seen, "a token watches only what it sees");
            if !row.logits {
                continue;
            }
            let hash = (0..seen).fold(7u64, |h, t| {
                (h ^ self.slots[slot(t)]).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
            });
            let start = logits.len();
            self.attention
                .extend(row.watched.clone().map(|t| rng::uniform(hash, 2, t as u64) as f32));
            logits.extend(
                (0..self.outputs(false)).map(|i| rng::uniform(hash, 1, i as u64) as f32 * 4.0),
            );
            if self.broken_after == Some(self.forwards) && number + 1 == batch.rows.len() {
                logits[start] = f32::NAN;
            }
            // Chunks end by themselves after some thirty codes.
            if self.vocabulary.stage == 0 && hash % 30 != 0 {
                let stops = start + SEMANTIC as usize;
                logits[stops..].fill(-30.0);
            }
            if let Some(output) = self.script.pop_front() {
                logits[start + output] = 1000.0;
            }
        }
        Ok(())
    }

    fn attention(&self) -> &[f32] {
        &self.attention
    }
}
