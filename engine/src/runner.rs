//! The face of a stage's network: a batch in, rows of logits out. Owns weights and key/value memory; knows no policy.

use rayon::ThreadPool;

use crate::batch::Batch;

/// Fewer tokens beside the longest row, which one thread runs alone, are not worth waking another for.
const LEAST_TOKENS: usize = 8;

/// Why a forward could not be run. The engine treats it as fatal for the contexts in the batch.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The network produced a value that is not finite.
    #[error("stage {stage}: broken numbers in the output of batch row {row}")]
    BrokenNumbers {
        /// Which stage, 0 based.
        stage: usize,
        /// Which row of the batch.
        row: usize,
    },
    /// The batch is not one that the stage can run: an id without an embedding row, a block that is not there or not free.
    #[error("stage {stage}: batch row {row}: {reason}")]
    Batch {
        /// Which stage, 0 based.
        stage: usize,
        /// Which row of the batch.
        row: usize,
        /// What does not fit.
        reason: String,
    },
    /// The device refused (out of memory, lost).
    #[error("stage {stage}: {reason}")]
    Device {
        /// Which stage, 0 based.
        stage: usize,
        /// What the device said.
        reason: String,
    },
}

/// One stage's network with its paged key/value memory.
///
/// The contract that the engine is built on: the logits of a sequence depend on its own ids and positions only,
/// bit for bit; not on its neighbours in the batch, on how its prefill was split, or on which blocks it was given.
pub trait StageModel: Send {
    /// Ids below this are in the embedding.
    fn vocabulary(&self) -> usize;

    /// Length of a row of logits, of one that is [narrow](crate::batch::BatchRow::narrow) or of any other.
    fn outputs(&self, narrow: bool) -> usize;

    /// What a token costs beside one of another stage, in any unit that all stages of an engine share.
    fn token_work(&self) -> f64 {
        1.0
    }

    /// Makes room for `blocks` blocks of [`crate::batch::BLOCK_TOKENS`] tokens. Called once, before the first forward.
    fn reserve(&mut self, blocks: usize);

    /// Runs the batch: stores keys and values of all its tokens, and appends a row of [`StageModel::outputs`] logits to
    /// `logits` for each batch row that asks for them, in the order of the rows.
    ///
    /// # Errors
    /// See [`ForwardError`].
    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ForwardError>;

    /// How much, in the last forward, the last token of each row that asks for logits attended to the tokens it watches
    /// (`[watched tokens]` a row, in the order of the rows), by the head that the network was trained to align text and
    /// sound with. The weights of a row sum up to 1, and are as much its own as its logits. Empty: there is no such head.
    fn attention(&self) -> &[f32] {
        &[]
    }
}

/// Runs one batch of each stage, empty ones not at all; logits replace what was there. Stages are independent of each other,
/// so with a pool they run side by side, and its threads help each other out.
pub(crate) fn forward_all(
    models: &mut [Box<dyn StageModel>],
    batches: Vec<Batch>,
    logits: &mut [Vec<f32>],
    pool: Option<&ThreadPool>,
) -> Vec<Result<(), ForwardError>> {
    let mut outcomes: Vec<Result<(), ForwardError>> = batches.iter().map(|_| Ok(())).collect();
    let stages = models.iter_mut().zip(batches).zip(logits).zip(&mut outcomes);
    let mut work: Vec<_> = stages
        .filter_map(|(((model, batch), logits), outcome)| {
            logits.clear();
            (!batch.rows.is_empty()).then_some((model, batch, logits, outcome))
        })
        .collect();
    let rows = || work.iter().flat_map(|(_, batch, _, _)| &batch.rows).map(|r| r.tokens.len());
    let beside = rows().sum::<usize>() - rows().max().unwrap_or(0);
    match pool {
        Some(pool) if beside >= LEAST_TOKENS => pool.scope(|scope| {
            // The thread that spawns takes what it spawned last: the longest.
            work.sort_by_key(|(_, batch, _, _)| batch.ids.len());
            for (model, batch, logits, outcome) in work {
                scope.spawn(move |_| *outcome = model.forward(&batch, logits));
            }
        }),
        _ => {
            for (model, batch, logits, outcome) in work {
                *outcome = model.forward(&batch, logits);
            }
        }
    }
    outcomes
}
