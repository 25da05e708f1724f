//! The fast CPU runner of a stage: packed weights, paged keys and values, ragged batches.
//!
//! The rows of a batch are divided among threads, and each thread takes its rows through the whole network: there is no
//! barrier between layers, and no arithmetic that depends on the division.

mod network;
mod pass;

use std::sync::Arc;

use codecs::weights::{LoadError, Weights};
use rayon::ThreadPool;

use self::network::{Network, Workspace};
use self::pass::{Part, divide};
use super::config::StageConfig;
use crate::batch::{Batch, BatchRow};
use crate::kernels::kv::{Heads, KvMemory, TableError, Written};
use crate::kernels::matrix::Precision;
use crate::runner::{ForwardError, StageModel};

/// How a stage is loaded.
#[derive(Clone)]
pub struct Options<'a> {
    /// How the matrices are stored. Norms, biases and the embedding stay `f32`.
    pub precision: Precision,
    /// Ids that can ever be read; the embedding rows of all others are not loaded. `None` keeps all.
    pub kept_ids: Option<&'a [u32]>,
    /// Threads that share the rows of a batch; the caller's own thread works too, in the place of one of them.
    pub pool: Option<Arc<ThreadPool>>,
}

/// One stage's network on the CPU.
pub struct Qwen3 {
    stage: usize,
    network: Network,
    kv: KvMemory,
    pool: Option<Arc<ThreadPool>>,
    workspaces: Vec<Workspace>,
}

impl Qwen3 {
    /// Reads and packs the weights. `loaded` is called with the number of parameters that each piece brought.
    ///
    /// # Errors
    /// A tensor or a size that does not hold, by file and name.
    pub fn load(
        weights: &Weights,
        config: &StageConfig,
        options: &Options<'_>,
        loaded: &mut dyn FnMut(usize),
    ) -> Result<Self, LoadError> {
        let network = Network::load(weights, config, options, loaded)?;
        let heads = Heads { queries: config.heads, kv: config.kv_heads, width: config.head_dim };
        let threads = options.pool.as_ref().map_or(1, |p| p.current_num_threads().max(1));
        Ok(Self {
            stage: config.stage,
            network,
            kv: KvMemory::new(heads, config.layers),
            pool: options.pool.clone(),
            workspaces: (0..threads).map(|_| Workspace::default()).collect(),
        })
    }

    fn fault(&self, row: usize, reason: impl Into<String>) -> ForwardError {
        ForwardError::Batch { stage: self.stage, row, reason: reason.into() }
    }

    fn check(&self, batch: &Batch) -> Result<(), ForwardError> {
        let mut next = 0;
        for (index, row) in batch.rows.iter().enumerate() {
            if row.tokens.start != next || row.tokens.is_empty() {
                return Err(self.fault(index, "its tokens do not follow those of the row before"));
            }
            next = row.tokens.end;
            let Some(ids) = batch.ids.get(row.tokens.clone()) else {
                return Err(self.fault(index, "its tokens end beyond the batch"));
            };
            if let Some(id) = ids.iter().find(|id| self.network.embedding(**id).is_none()) {
                return Err(self.fault(index, format!("id {id} has no embedding row")));
            }
        }
        if next != batch.ids.len() || next != batch.positions.len() {
            let last = batch.rows.len().saturating_sub(1);
            return Err(self.fault(last, "ids, positions and rows differ in length"));
        }
        Ok(())
    }

    /// Takes out the blocks that each row writes; all are back in their places when it fails.
    fn take_blocks(&mut self, rows: &[BatchRow]) -> Result<Vec<Written>, ForwardError> {
        let mut written = Vec::with_capacity(rows.len());
        let mut failed: Option<(usize, TableError)> = None;
        for (index, row) in rows.iter().enumerate() {
            match self.kv.take(&row.blocks, row.computed, row.tokens.len()) {
                Ok(blocks) => written.push(blocks),
                Err(error) => {
                    failed = Some((index, error));
                    break;
                }
            }
        }
        if failed.is_none() {
            let unreadable = |(row, written): (&BatchRow, &Written)| {
                self.kv.check_readable(&row.blocks, written).err()
            };
            let found = rows.iter().zip(&written).map(unreadable).enumerate();
            failed = found.filter_map(|(i, e)| Some((i, e?))).next();
        }
        match failed {
            None => Ok(written),
            Some((index, error)) => {
                self.put_back(rows, written);
                Err(self.fault(index, error.to_string()))
            }
        }
    }

    fn put_back(&mut self, rows: &[BatchRow], written: Vec<Written>) {
        for (row, written) in rows.iter().zip(written) {
            self.kv.put_back(&row.blocks, written);
        }
    }

    /// Leaves each part's logits in its workspace; tells how many parts there were.
    fn run(&mut self, batch: &Batch, written: &mut [Written]) -> usize {
        let ends = divide(&batch.rows, self.workspaces.len());
        let (network, kv) = (&self.network, &self.kv);
        let mut parts = Vec::with_capacity(ends.len());
        let (mut rest, mut first) = (written, 0);
        for (&end, workspace) in ends.iter().zip(&mut self.workspaces) {
            let (own, others) = rest.split_at_mut(end - first);
            let part = Part { batch, rows: &batch.rows[first..end], written: own, kv };
            parts.push((part, workspace));
            (rest, first) = (others, end);
        }
        let others = parts.split_off(1.min(parts.len()));
        let own = parts.pop();
        let run_own = || {
            if let Some((part, workspace)) = own {
                network.run(part, workspace);
            }
        };
        match &self.pool {
            Some(pool) if !others.is_empty() => pool.in_place_scope(|scope| {
                for (part, workspace) in others {
                    scope.spawn(|_| network.run(part, workspace));
                }
                run_own();
            }),
            _ => run_own(),
        }
        ends.len()
    }
}

impl StageModel for Qwen3 {
    fn vocabulary(&self) -> usize {
        self.network.vocabulary()
    }

    fn outputs(&self) -> usize {
        self.network.outputs()
    }

    fn reserve(&mut self, blocks: usize) {
        self.kv.reserve(blocks);
    }

    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ForwardError> {
        self.check(batch)?;
        let mut written = self.take_blocks(&batch.rows)?;
        let parts = self.run(batch, &mut written);
        self.put_back(&batch.rows, written);
        let start = logits.len();
        for workspace in &self.workspaces[..parts] {
            logits.extend_from_slice(workspace.logits());
        }
        let wanted = (0..batch.rows.len()).filter(|i| batch.rows[*i].logits);
        for (row, out) in wanted.zip(logits[start..].chunks_exact(self.network.outputs())) {
            if !out.iter().all(|v| v.is_finite()) {
                logits.truncate(start);
                return Err(ForwardError::BrokenNumbers { stage: self.stage, row });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
