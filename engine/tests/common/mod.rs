//! What the tests of the stage networks share: fixtures, and a sequence that is fed to a runner in any pieces.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codecs::weights::Weights;
use engine::batch::{BLOCK_TOKENS, Batch, BatchRow};
use engine::kernels::matrix::Precision;
use engine::models::config::{StageConfig, open_stage};
use engine::models::qwen3::{Options, Qwen3};
use engine::models::reference::Reference;
use engine::runner::StageModel;

pub(crate) const ALL_PRECISIONS: [Precision; 3] =
    [Precision::F32, Precision::Bf16, Precision::Int8];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub(crate) fn nano(stage: usize) -> (StageConfig, Weights) {
    open_stage(&root().join(format!("voices/nano/cb{stage}"))).unwrap()
}

pub(crate) fn fast(stage: usize, precision: Precision, threads: usize) -> Qwen3 {
    let (config, weights) = nano(stage);
    let pool = (threads > 1)
        .then(|| Arc::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()));
    let options = Options { precision, kept_ids: None, pool };
    let mut model = Qwen3::load(&weights, &config, &options, &mut |_| ()).unwrap();
    model.reserve(256);
    model
}

pub(crate) fn reference(stage: usize) -> Reference {
    let (config, weights) = nano(stage);
    let mut model = Reference::load(&weights, &config).unwrap();
    model.reserve(256);
    model
}

/// A sequence with its blocks: what the engine keeps of one.
#[derive(Clone)]
pub(crate) struct Sequence {
    pub(crate) ids: Vec<u32>,
    pub(crate) positions: Vec<i32>,
    pub(crate) computed: usize,
    pub(crate) blocks: Vec<u32>,
    pub(crate) watched: Range<usize>,
}

impl Sequence {
    /// A sequence that owns 16 blocks from `first_block` on.
    pub(crate) fn new(ids: &[u32], positions: &[i32], first_block: u32) -> Self {
        let blocks = (first_block..first_block + 16).collect();
        let (ids, positions) = (ids.to_vec(), positions.to_vec());
        Self { ids, positions, computed: 0, blocks, watched: 0..0 }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.ids.len() - self.computed
    }

    pub(crate) fn push(&mut self, id: u32, position: i32) {
        self.ids.push(id);
        self.positions.push(position);
    }
}

/// Runs the next `counts[i]` tokens of each sequence in one batch; gives the logits of the last token of each.
pub(crate) fn step(
    model: &mut dyn StageModel,
    sequences: &mut [&mut Sequence],
    counts: &[usize],
) -> Vec<Vec<f32>> {
    let mut batch = Batch::default();
    for (s, &count) in sequences.iter_mut().zip(counts) {
        let start = batch.ids.len();
        let new = s.computed..s.computed + count;
        batch.ids.extend_from_slice(&s.ids[new.clone()]);
        batch.positions.extend_from_slice(&s.positions[new.clone()]);
        batch.rows.push(BatchRow {
            tokens: start..start + count,
            computed: s.computed,
            blocks: s.blocks[..new.end.div_ceil(BLOCK_TOKENS)].to_vec(),
            logits: true,
            watched: if count == s.remaining() { s.watched.clone() } else { 0..0 },
            ..BatchRow::default()
        });
        s.computed = new.end;
    }
    let mut logits = Vec::new();
    model.forward(&batch, &mut logits).unwrap();
    assert_eq!(logits.len(), batch.outputs() * model.outputs(false));
    logits.chunks_exact(model.outputs(false)).map(<[f32]>::to_vec).collect()
}

/// The whole rest of a sequence at once, alone.
pub(crate) fn prefill(model: &mut dyn StageModel, sequence: &mut Sequence) -> Vec<f32> {
    let count = sequence.remaining();
    step(model, &mut [sequence], &[count]).remove(0)
}

pub(crate) fn argmax(logits: &[f32]) -> usize {
    let mut best = 0;
    for (i, v) in logits.iter().enumerate() {
        if *v > logits[best] {
            best = i;
        }
    }
    best
}

pub(crate) fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|v| v.to_bits()).collect()
}

pub(crate) fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}
