//! The face of a stage's network: a batch in, rows of logits out. Owns weights and key/value memory; knows no policy.

use crate::batch::Batch;

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

    /// Length of one row of logits.
    fn outputs(&self) -> usize;

    /// Makes room for `blocks` blocks of [`crate::batch::BLOCK_TOKENS`] tokens. Called once, before the first forward.
    fn reserve(&mut self, blocks: usize);

    /// Runs the batch: stores keys and values of all its tokens, and appends one row of [`StageModel::outputs`] logits to
    /// `logits` for each batch row that asks for them, in the order of the rows.
    ///
    /// # Errors
    /// See [`ForwardError`].
    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ForwardError>;
}
