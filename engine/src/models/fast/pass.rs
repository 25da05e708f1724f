//! Cuts a batch into parts for threads, and a part into passes of bounded size. Pure integers.
//!
//! ```text
//! rows     a a a a a a a a a | b | c | d
//! parts    [ a             ]   [ b   c   d ]        one for each thread
//! passes   a: 0..PASS_TOKENS, then the rest         each goes through all layers before the next
//! ```
//! A long prefill in passes is a prefill that was split, and may be split anywhere; so scratch memory stays bounded and
//! in the cache.

use std::ops::Range;

use crate::batch::{Batch, BatchRow};
use crate::kernels::kv::{KvMemory, Written};

/// Tokens that go through the layers together: enough rows to use a weight often while it is in the cache, few enough for
/// the activations of the widest layer to stay there too.
pub(crate) const PASS_TOKENS: usize = 128;

/// Parts that a large batch is cut into for each thread, to even out rows of different length.
const PARTS_PER_THREAD: usize = 4;

/// Tokens that a part should have before there are more parts than threads: each part reads all weights, and from about so
/// many tokens on reading them from memory takes less time than multiplying.
const PART_TOKENS: usize = 16;

/// One thread's share of a batch.
pub(crate) struct Part<'a, N> {
    pub(crate) batch: &'a Batch,
    pub(crate) rows: &'a [BatchRow],
    /// Blocks that the rows write, one for each row.
    pub(crate) written: &'a mut [Written<N>],
    pub(crate) kv: &'a KvMemory<N>,
}

impl<N> Part<'_, N> {
    /// How many tokens it runs.
    pub(crate) fn tokens(&self) -> usize {
        self.rows.iter().map(|row| row.tokens.len()).sum()
    }
}

/// Tokens of one row in one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Which row of the part.
    pub(crate) row: usize,
    /// Which tokens of the batch.
    pub(crate) tokens: Range<usize>,
    /// Index in the sequence of the first of them.
    pub(crate) first: usize,
    /// How many of them, the last ones, whose outputs are wanted.
    pub(crate) wanted: usize,
}

/// The passes of a part, in order.
pub(crate) fn passes(rows: &[BatchRow]) -> Vec<Vec<Piece>> {
    let mut passes = Vec::new();
    let mut pass = Vec::new();
    let mut room = PASS_TOKENS;
    for (index, row) in rows.iter().enumerate() {
        let mut tokens = row.tokens.clone();
        while !tokens.is_empty() {
            let count = tokens.len().min(room);
            let first = row.computed + tokens.start - row.tokens.start;
            let taken = tokens.start..tokens.start + count;
            tokens.start += count;
            let wanted = row.outputs().saturating_sub(tokens.len()).min(count);
            pass.push(Piece { row: index, tokens: taken, first, wanted });
            room -= count;
            if room == 0 {
                passes.push(std::mem::take(&mut pass));
                room = PASS_TOKENS;
            }
        }
    }
    if !pass.is_empty() {
        passes.push(pass);
    }
    passes
}

/// Parts that a batch is cut into, none of fewer than `least_tokens` if there are several: at least one for each thread, and more
/// where they can be large.
pub(crate) fn share_out(threads: usize, tokens: usize, least_tokens: usize) -> usize {
    if threads == 1 {
        return 1;
    }
    let parts = (tokens / PART_TOKENS).clamp(threads, threads * PARTS_PER_THREAD);
    parts.min(tokens / least_tokens).max(1)
}

/// Ends of runs of neighbouring rows with about the same number of tokens: about `parts` of them, at most twice as many. A row
/// is not divided, so a long one makes a run longer than the others.
pub(crate) fn divide(rows: &[BatchRow], parts: usize) -> Vec<usize> {
    let total: usize = rows.iter().map(|r| r.tokens.len()).sum();
    let share = total.div_ceil(parts.max(1)).max(1);
    let mut ends = Vec::with_capacity(parts);
    let mut tokens = 0;
    for (index, row) in rows.iter().enumerate() {
        // A run that has half of its share leaves a row that is too long to the next.
        if 2 * tokens >= share && tokens + row.tokens.len() > share {
            ends.push(index);
            tokens = 0;
        }
        tokens += row.tokens.len();
    }
    if tokens > 0 {
        ends.push(rows.len());
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lengths: &[usize]) -> Vec<BatchRow> {
        let mut start = 0;
        let mut row = |len: usize| {
            let tokens = start..start + len;
            start += len;
            BatchRow { tokens, computed: 10, logits: true, ..BatchRow::default() }
        };
        lengths.iter().map(|l| row(*l)).collect()
    }

    #[test]
    fn a_long_row_takes_several_passes_and_answers_in_the_last() {
        let passes = passes(&rows(&[1, 2 * PASS_TOKENS, 1]));
        let piece = |row, tokens, first, wanted| Piece { row, tokens, first, wanted };
        let (p, end) = (PASS_TOKENS, 2 * PASS_TOKENS + 1);
        assert_eq!(passes[0], [piece(0, 0..1, 10, 1), piece(1, 1..p, 10, 0)]);
        assert_eq!(passes[1], [piece(1, p..2 * p, p + 9, 0)]);
        assert_eq!(passes[2], [piece(1, 2 * p..end, 2 * p + 9, 1), piece(2, end..end + 1, 10, 1)]);
        assert_eq!(passes.len(), 3);
    }

    #[test]
    fn outputs_wanted_before_the_last_may_reach_into_an_earlier_pass() {
        let mut rows = rows(&[PASS_TOKENS + 2]);
        rows[0].outputs_before = 4;
        let wanted: Vec<usize> = passes(&rows).iter().map(|pass| pass[0].wanted).collect();
        assert_eq!(wanted, [3, 2]);
        rows[0].logits = false;
        assert!(passes(&rows).iter().all(|pass| pass[0].wanted == 0));
    }

    #[test]
    fn a_batch_is_shared_out_to_all_threads_and_further_only_in_large_parts() {
        assert_eq!(share_out(1, 4096, 1), 1);
        for (tokens, parts) in [(1, 1), (2, 2), (32, 2), (47, 2), (64, 4), (128, 8), (4096, 8)] {
            assert_eq!(share_out(2, tokens, 1), parts, "{tokens} tokens");
        }
        // Waking a thread must pay.
        assert_eq!([7, 8, 16].map(|tokens| share_out(4, tokens, 8)), [1, 1, 2]);
    }

    #[test]
    fn parts_cover_all_rows_and_are_about_as_many_as_asked_for() {
        assert_eq!(divide(&rows(&[1, 1, 1, 1]), 2), [2, 4]);
        assert_eq!(divide(&rows(&[100, 1, 1]), 2), [1, 3]);
        assert_eq!(divide(&rows(&[1, 1, 100]), 2), [3]);
        assert_eq!(divide(&rows(&[30, 100, 40, 90, 1]), 4), [2, 3, 4, 5]);
        assert_eq!(divide(&rows(&[7]), 4), [1]);
        assert!(divide(&rows(&[]), 2).is_empty());
        assert_eq!(divide(&rows(&[1; 7]), 0), [7]);
        assert_eq!(divide(&rows(&[1; 8]), 2), [4, 8]);
        for parts in 1..6 {
            for count in 1..40 {
                let lengths: Vec<usize> = (0..count).map(|i| 1 + i * 7 % 11).collect();
                let ends = divide(&rows(&lengths), parts);
                assert!(ends.len() <= 2 * parts && ends.last() == Some(&count));
                assert!(ends.is_sorted_by(|a, b| a < b));
            }
        }
    }
}
