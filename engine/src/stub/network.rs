//! A network that says what its context's script tells it, and takes the time that the script names.
//!
//! Like a real one it knows a sequence only by the ids in its blocks, so whatever the scheduler mixes up is heard.

use std::sync::Arc;
use std::time::Duration;

use super::codes::{self, Sight};
use super::ledger::Ledger;
use super::script::Script;
use crate::batch::{BLOCK_TOKENS, Batch, BatchRow};
use crate::layout::Vocabulary;
use crate::runner::{ForwardError, StageModel};

/// The logit of what is said; all others are 0.
const SAID: f32 = 100.0;

pub(super) struct Network {
    vocabulary: Vocabulary,
    ledger: Arc<Ledger>,
    sleep: fn(Duration),
    /// The id of every token, where its keys and values would lie.
    slots: Vec<u32>,
    /// The ids of one sequence.
    ids: Vec<u32>,
    is_warm: bool,
}

impl Network {
    pub(super) fn new(vocabulary: Vocabulary, ledger: Arc<Ledger>, sleep: fn(Duration)) -> Self {
        Self { vocabulary, ledger, sleep, slots: Vec::new(), ids: Vec::new(), is_warm: false }
    }

    fn store(&mut self, batch: &Batch, row: &BatchRow) {
        for (i, at) in row.tokens.clone().enumerate() {
            let slot = slot(row, row.computed + i);
            self.slots[slot] = batch.ids[at];
        }
    }

    /// Reads what the sequence of a row begins with, at most `tokens` of it.
    fn read(&mut self, row: &BatchRow, tokens: usize) {
        let seen = (row.computed + row.tokens.len()).min(tokens);
        self.ids.clear();
        for (block, start) in row.blocks.iter().zip((0..seen).step_by(BLOCK_TOKENS)) {
            let first = *block as usize * BLOCK_TOKENS;
            let length = BLOCK_TOKENS.min(seen - start);
            self.ids.extend(&self.slots[first..first + length]);
        }
    }

    /// What is said behind the ids that were read, and what saying it costs. `None`: nothing that would matter.
    fn say(&self, script: &Script, context: u64) -> Option<(Output, Duration)> {
        let stage = self.vocabulary.stage;
        if stage > 0 {
            let code = codes::acoustic(context)[stage - 1];
            return Some((Output::At(usize::from(code)), script.frame_cost()));
        }
        let sight = codes::sight(&self.ids)?;
        let cost = match sight.frames {
            0 => script.frame_cost() + script.chunk_cost(sight.chunk),
            _ => script.frame_cost(),
        };
        Some((semantic(script, &sight), cost))
    }
}

/// What a row of logits says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    At(usize),
    Broken,
}

fn semantic(script: &Script, sight: &Sight) -> Output {
    let broken = script.fail_chunk == Some(sight.chunk) && sight.frames >= script.fail_after_frames;
    if broken {
        return Output::Broken;
    }
    let frames = script.frames_of(sight.chunk, sight.characters);
    if frames.is_some_and(|frames| sight.frames >= frames) {
        // End of speech and the split between chunks both end a chunk; either will do.
        return Output::At(codes::SEMANTIC as usize);
    }
    let frame = script.looped(sight.frames).unwrap_or(sight.frames);
    Output::At(usize::from(codes::semantic(sight.chunk, frame)))
}

fn slot(row: &BatchRow, token: usize) -> usize {
    row.blocks[token / BLOCK_TOKENS] as usize * BLOCK_TOKENS + token % BLOCK_TOKENS
}

impl StageModel for Network {
    fn vocabulary(&self) -> usize {
        let codes = codes::SEMANTIC + 3 * codes::ACOUSTIC;
        (self.vocabulary.audio_start + codes) as usize
    }

    fn outputs(&self, _narrow: bool) -> usize {
        self.vocabulary.outputs()
    }

    fn reserve(&mut self, blocks: usize) {
        self.slots = vec![0; blocks * BLOCK_TOKENS];
    }

    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ForwardError> {
        let ledger = self.ledger.clone();
        let mut open = ledger.open();
        // A batch costs what its most expensive row costs, as on a device that runs them side by side.
        let mut cost = Duration::ZERO;
        if !self.is_warm {
            cost = Duration::from_millis(open.warm_up_ms()) / 4;
            self.is_warm = true;
        }
        for row in &batch.rows {
            self.store(batch, row);
            // The acoustic stages say the same all the time: who speaks is all that they need.
            let is_semantic = self.vocabulary.stage == 0;
            self.read(row, if is_semantic { usize::MAX } else { codes::NAME_FRAMES });
            let context = codes::context_in(&self.ids);
            if let Some(report) = context.and_then(|context| open.report(context)) {
                report.steps += 1;
            }
            if !row.logits {
                continue;
            }
            let start = logits.len();
            logits.resize(start + self.vocabulary.outputs(), 0.0);
            let said = context.and_then(|context| self.say(&open.script(context), context));
            let Some((output, row_cost)) = said else { continue };
            cost = cost.max(row_cost);
            match output {
                Output::At(output) => logits[start + output] = SAID,
                Output::Broken => logits[start] = f32::NAN,
            }
        }
        drop(open);
        if !cost.is_zero() {
            (self.sleep)(cost);
        }
        Ok(())
    }
}
