//! The fast CPU runner of a network: packed weights, paged keys and values, ragged batches.
//!
//! The rows of a batch are divided into parts, more than there are threads where it pays, and a thread takes a part through
//! the whole network: there is no barrier between layers, and no arithmetic that depends on the division. Threads take parts
//! of whatever stage has some left, so a step is over when the work is, not when the longest stage is.

mod network;
mod pass;

use std::sync::{Arc, Mutex, PoisonError};

use codecs::weights::{LoadError, Weights};
use rayon::ThreadPool;

pub use self::network::Ends;
pub(crate) use self::network::check_width;
use self::network::{Network, Output, Workspace};
use self::pass::{Part, divide, share_out};
use super::backbone::Backbone;
use super::config::AlignmentHead;
use crate::batch::{Batch, BatchRow};
use crate::kernels::kv::{Heads, KvMemory, TableError, Written};
use crate::kernels::math::all_finite;
use crate::kernels::matrix::Precision;
use crate::kernels::simd::{F16, Narrow};
use crate::runner::{ForwardError, StageModel};

/// Multiplications that are worth waking a thread for: about a quarter of a millisecond's work, several times what a
/// parked thread takes to start.
const LEAST_PART: usize = 10_000_000;

/// How a network is loaded.
#[derive(Clone)]
pub struct Options<'a> {
    /// How the matrices are stored. Norms, biases and the embedding stay `f32`; keys and values are `f16` unless this
    /// is [`Precision::F32`].
    pub precision: Precision,
    /// Ids that can ever be read; the embedding rows of all others are not loaded. `None` keeps all.
    pub kept_ids: Option<&'a [u32]>,
    /// Threads that share the rows of a batch.
    pub pool: Option<Arc<ThreadPool>>,
}

/// A network on the CPU: the layers that all have, between the two ends that are its own.
pub struct Fast<E> {
    stage: usize,
    network: Network<E>,
    kv: Kv,
    threads: Threads,
    /// What the parts of the last forward attended to, in the order of their rows.
    shares: Vec<Vec<f32>>,
    /// The same of all of them.
    attention: Vec<f32>,
}

/// Keys and values are as exact as the weights ask for.
enum Kv {
    F32(KvMemory<f32>),
    F16(KvMemory<F16>),
}

/// Who works on a batch.
struct Threads {
    pool: Option<Arc<ThreadPool>>,
    /// Those that no thread uses now: there are as many as threads that have worked at once.
    workspaces: Mutex<Vec<Workspace>>,
    /// Tokens that are worth waking a thread for.
    least_tokens: usize,
}

/// Which row of a batch cannot be run, and why.
struct RowFault {
    row: usize,
    reason: String,
}

impl<E: Ends> Fast<E> {
    /// Reads and packs the layers. `stage` is what errors call the network.
    pub(super) fn from_ends(
        stage: usize,
        ends: E,
        weights: &Weights,
        backbone: &Backbone,
        alignment: Option<AlignmentHead>,
        options: &Options<'_>,
        loaded: &mut dyn FnMut(usize),
    ) -> Result<Self, LoadError> {
        let network = Network::load(ends, weights, backbone, alignment, options.precision, loaded)?;
        let heads =
            Heads { queries: backbone.heads, kv: backbone.kv_heads, width: backbone.head_dim };
        let kv = match options.precision {
            Precision::F32 => Kv::F32(KvMemory::new(heads, backbone.layers)),
            Precision::Bf16 | Precision::Int8 => Kv::F16(KvMemory::new(heads, backbone.layers)),
        };
        let workspaces = Mutex::default();
        let least_tokens = LEAST_PART.div_ceil(network.multiplications());
        let threads = Threads { pool: options.pool.clone(), workspaces, least_tokens };
        let (shares, attention) = (Vec::new(), Vec::new());
        Ok(Self { stage, network, kv, threads, shares, attention })
    }

    pub(super) fn ends(&self) -> &E {
        &self.network.ends
    }

    /// What the head reads, of the tokens of the last pass whose output was wanted.
    #[cfg(test)]
    pub(super) fn last_hidden(&mut self) -> Vec<f32> {
        let x = self.residual().to_vec();
        self.network.final_norm(&x)
    }

    /// Residual stream behind the last layer, of the same tokens.
    #[cfg(test)]
    pub(super) fn residual(&mut self) -> &[f32] {
        self.threads.workspaces.get_mut().unwrap()[0].residual()
    }

    /// Queries, keys and values of the last layer, of the same tokens.
    #[cfg(test)]
    pub(super) fn projected(&mut self) -> &[f32] {
        self.threads.workspaces.get_mut().unwrap()[0].projected()
    }
}

fn check<E: Ends>(network: &Network<E>, batch: &Batch) -> Result<(), RowFault> {
    let mut next = 0;
    for (index, row) in batch.rows.iter().enumerate() {
        let fault = |reason: &str| RowFault { row: index, reason: reason.into() };
        if row.tokens.start != next || row.tokens.is_empty() {
            return Err(fault("its tokens do not follow those of the row before"));
        }
        next = row.tokens.end;
        if row.watched.end > row.computed + row.tokens.len() {
            return Err(fault("it watches tokens beyond its last"));
        }
        if row.outputs() > row.tokens.len() {
            return Err(fault("outputs of tokens are wanted that were computed before"));
        }
        if row.tokens.end > batch.ids.len() {
            return Err(fault("its tokens end beyond the batch"));
        }
    }
    let last = batch.rows.len().saturating_sub(1);
    if next != batch.ids.len() || next != batch.positions.len() {
        return Err(RowFault {
            row: last,
            reason: "ids, positions and rows differ in length".into(),
        });
    }
    let beside = network.ends.streams() - 1;
    if batch.beside.len() != next * beside {
        let reason =
            format!("{} ids beside {next} of stream 0, not {beside} each", batch.beside.len());
        return Err(RowFault { row: last, reason });
    }
    for (index, row) in batch.rows.iter().enumerate() {
        let others = &batch.beside[row.tokens.start * beside..row.tokens.end * beside];
        let mut ids = batch.ids[row.tokens.clone()].iter().chain(others);
        if let Some(id) = ids.find(|id| !network.ends.knows(**id)) {
            return Err(RowFault { row: index, reason: format!("id {id} has no embedding row") });
        }
    }
    Ok(())
}

impl Threads {
    /// Parts that a batch of so many tokens is cut into.
    fn parts(&self, tokens: usize) -> usize {
        let threads = self.pool.as_ref().map_or(1, |p| p.current_num_threads().max(1));
        share_out(threads, tokens, self.least_tokens)
    }

    fn run<E: Ends, N: Narrow>(&self, network: &Network<E>, part: Part<'_, N>, output: Output<'_>) {
        let idle = || self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let mut workspace = idle().pop().unwrap_or_default();
        network.run(part, &mut workspace, output);
        idle().push(workspace);
    }
}

/// Runs a batch. `logits` has room for all rows, and `shares` receives what each part attended to.
fn run<E: Ends, N: Narrow>(
    network: &Network<E>,
    kv: &mut KvMemory<N>,
    threads: &Threads,
    batch: &Batch,
    mut logits: &mut [f32],
    shares: &mut Vec<Vec<f32>>,
) -> Result<(), RowFault> {
    let mut written = take_blocks(kv, &batch.rows)?;
    let ends = divide(&batch.rows, threads.parts(batch.ids.len()));
    shares.resize_with(ends.len(), Vec::new);
    let mut parts = Vec::with_capacity(ends.len());
    let (mut rest, mut first) = (&mut written[..], 0);
    for (&end, attention) in ends.iter().zip(&mut *shares) {
        let (own, others) = rest.split_at_mut(end - first);
        let rows = &batch.rows[first..end];
        let (values, behind) = logits.split_at_mut(lengths(network, rows).sum());
        let part = Part { batch, rows, written: own, kv: &*kv };
        parts.push((part, Output { logits: values, attention }));
        (rest, first, logits) = (others, end, behind);
    }
    // Threads that run out of work take the oldest part that waits: the longest ones first, so that none is left for the end.
    parts.sort_by_key(|(part, _)| std::cmp::Reverse(part.tokens()));
    let others = parts.split_off(1.min(parts.len()));
    let run_own = || parts.into_iter().for_each(|(part, out)| threads.run(network, part, out));
    match &threads.pool {
        Some(pool) if !others.is_empty() => pool.in_place_scope(|scope| {
            for (part, output) in others {
                scope.spawn(|_| threads.run(network, part, output));
            }
            run_own();
        }),
        _ => run_own(),
    }
    put_back(kv, &batch.rows, written);
    Ok(())
}

/// Lengths of the rows of logits that the rows of a batch ask for.
fn lengths<E: Ends>(network: &Network<E>, rows: &[BatchRow]) -> impl Iterator<Item = usize> {
    rows.iter().flat_map(|row| std::iter::repeat_n(network.ends.outputs(row.narrow), row.outputs()))
}

/// Takes out the blocks that each row writes; all are back in their places when it fails.
fn take_blocks<N: Narrow>(
    kv: &mut KvMemory<N>,
    rows: &[BatchRow],
) -> Result<Vec<Written<N>>, RowFault> {
    let mut written = Vec::with_capacity(rows.len());
    let fault = |row: usize, error: TableError| RowFault { row, reason: error.to_string() };
    for (index, row) in rows.iter().enumerate() {
        match kv.take(&row.blocks, row.computed, row.tokens.len()) {
            Ok(blocks) => written.push(blocks),
            Err(error) => {
                put_back(kv, rows, written);
                return Err(fault(index, error));
            }
        }
    }
    for (index, row) in rows.iter().enumerate() {
        if let Err(error) = kv.check_readable(&row.blocks, &written[index]) {
            put_back(kv, rows, written);
            return Err(fault(index, error));
        }
    }
    Ok(written)
}

fn put_back<N: Narrow>(kv: &mut KvMemory<N>, rows: &[BatchRow], written: Vec<Written<N>>) {
    for (row, written) in rows.iter().zip(written) {
        kv.put_back(&row.blocks, written);
    }
}

/// The first row of a batch whose logits are not all finite.
fn broken<E: Ends>(network: &Network<E>, batch: &Batch, mut logits: &[f32]) -> Option<usize> {
    if all_finite(logits) {
        return None;
    }
    batch.rows.iter().position(|row| {
        let (own, behind) = logits.split_at(lengths(network, std::slice::from_ref(row)).sum());
        logits = behind;
        !all_finite(own)
    })
}

impl<E: Ends> StageModel for Fast<E> {
    fn vocabulary(&self) -> usize {
        self.network.ends.vocabulary()
    }

    fn outputs(&self, narrow: bool) -> usize {
        self.network.ends.outputs(narrow)
    }

    fn token_work(&self) -> f64 {
        self.network.multiplications() as f64
    }

    fn reserve(&mut self, blocks: usize) {
        match &mut self.kv {
            Kv::F32(kv) => kv.reserve(blocks),
            Kv::F16(kv) => kv.reserve(blocks),
        }
    }

    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ForwardError> {
        let Self { stage, network, kv, threads, shares, attention } = self;
        let (stage, start) = (*stage, logits.len());
        let fault = |RowFault { row, reason }| ForwardError::Batch { stage, row, reason };
        check(network, batch).map_err(fault)?;
        logits.resize(start + lengths(network, &batch.rows).sum::<usize>(), 0.0);
        let rows = &mut logits[start..];
        let outcome = match kv {
            Kv::F32(kv) => run(network, kv, threads, batch, rows, shares),
            Kv::F16(kv) => run(network, kv, threads, batch, rows, shares),
        };
        let outcome = outcome.map_err(fault).and_then(|()| match broken(network, batch, rows) {
            Some(row) => Err(ForwardError::BrokenNumbers { stage, row }),
            None => Ok(()),
        });
        attention.clear();
        shares.iter().for_each(|of_part| attention.extend_from_slice(of_part));
        if outcome.is_err() {
            logits.truncate(start);
        }
        outcome
    }

    fn attention(&self) -> &[f32] {
        &self.attention
    }
}
