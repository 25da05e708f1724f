//! Causal attention of new tokens over a paged sequence. What is visible is the order in the sequence, never the position.
//!
//! Rows are pairs of a query and a head that shares its keys; a few of them run through the sequence together.
//! For each: scores over all blocks, softmax, then the mix of the values.

use std::ops::Range;

use super::kv::KvView;
use super::math::softmax_unscaled;
use super::matrix::{MOST_ROWS, even_runs};
use super::simd::{F32x16, Narrow};
use super::tile::{LANES, Sums, Tile, multiply, product};

/// New tokens of one sequence in one layer; their keys and values are stored already.
pub struct Queries<'a> {
    /// Which layer.
    pub layer: usize,
    /// Index in the sequence of the first new token.
    pub first: usize,
    /// Query vectors, scaled: `stride` values a token, of which the first `heads * width` are read.
    pub queries: &'a [f32],
    /// Values from one token to the next in `queries`.
    pub stride: usize,
}

/// Scores of the rows that run together, kept between calls.
#[derive(Default)]
pub struct Scratch(Vec<[f32; LANES]>);

/// Attention of the new tokens: `out` is `[tokens, heads, width]`.
pub fn attend<N: Narrow>(
    kv: &KvView<'_, N>,
    new: &Queries<'_>,
    scratch: &mut Scratch,
    out: &mut [f32],
) {
    let heads = kv.heads();
    let tokens = out.len() / (heads.queries * heads.width);
    let group = heads.group();
    for kv_head in 0..heads.kv {
        for (first, count) in even_runs(tokens * group, MOST_ROWS) {
            let mut rows =
                Rows { kv, new, kv_head, first, scratch: &mut scratch.0, out: &mut *out };
            match count {
                1 => rows.run::<1, 4>(),
                2 => rows.run::<2, 2>(),
                3 => rows.run::<3, 1>(),
                4 => rows.run::<4, 1>(),
                5 => rows.run::<5, 1>(),
                _ => rows.run::<6, 1>(),
            }
        }
    }
}

/// How much one query of one head attends to each of the watched tokens, as shares of them all: appended to `out`.
/// `query` counts the new tokens; what is watched lies at or before it in the sequence.
pub fn shares<N: Narrow>(
    kv: &KvView<'_, N>,
    new: &Queries<'_>,
    (query, head): (usize, usize),
    watched: Range<usize>,
    scratch: &mut Scratch,
    out: &mut Vec<f32>,
) {
    let group = kv.heads().group();
    let (kv_head, first) = (head / group, query * group + head % group);
    let blocks = watched.end.div_ceil(LANES);
    scratch.0.resize(blocks, [0.0; LANES]);
    let mut rows = Rows { kv, new, kv_head, first, scratch: &mut scratch.0, out: &mut [] };
    rows.score::<1, 4>(blocks);
    let start = out.len();
    out.extend_from_slice(&scratch.0.as_flattened()[watched]);
    let scores = &mut out[start..];
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - largest).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|share| *share /= sum);
}

/// A run of rows of one key/value head: row `first + m` is query `/ group`, head `% group`.
struct Rows<'a, N> {
    kv: &'a KvView<'a, N>,
    new: &'a Queries<'a>,
    kv_head: usize,
    first: usize,
    scratch: &'a mut Vec<[f32; LANES]>,
    out: &'a mut [f32],
}

impl<N: Narrow> Rows<'_, N> {
    fn run<const M: usize, const P: usize>(&mut self) {
        let group = self.kv.heads().group();
        let last_query = (self.first + M - 1) / group;
        let blocks = (self.new.first + last_query + 1).div_ceil(LANES);
        self.scratch.resize(M * blocks, [0.0; LANES]);
        self.score::<M, P>(blocks);
        let sums = self.weigh::<M>(blocks);
        self.mix::<M, P>(blocks, sums);
    }

    /// Query and offset of its head in a token's `[heads, width]` of row `m`.
    fn place(&self, m: usize) -> (usize, usize) {
        let heads = self.kv.heads();
        let row = self.first + m;
        let head = self.kv_head * heads.group() + row % heads.group();
        (row / heads.group(), head * heads.width)
    }

    fn score<const M: usize, const P: usize>(&mut self, blocks: usize) {
        let (layer, head) = (self.new.layer, self.kv_head);
        let width = self.kv.heads().width;
        let queries: [&[[f32; LANES]]; M] = std::array::from_fn(|m| {
            let (query, offset) = self.place(m);
            let start = query * self.new.stride + offset;
            self.new.queries[start..start + width].as_chunks().0
        });
        let kv = self.kv;
        let mut block = 0;
        while block + P <= blocks {
            let keys = std::array::from_fn(|p| kv.keys(layer, head, block + p));
            self.keep_scores::<M, P>(block, blocks, product(queries, keys));
            block += P;
        }
        for block in block..blocks {
            let keys = [kv.keys(layer, head, block)];
            self.keep_scores::<M, 1>(block, blocks, product(queries, keys));
        }
    }

    #[inline(always)]
    fn keep_scores<const M: usize, const P: usize>(
        &mut self,
        block: usize,
        blocks: usize,
        sums: Sums<M, P>,
    ) {
        for (m, sums) in sums.iter().enumerate() {
            let scores = &mut self.scratch[m * blocks + block..][..P];
            scores.copy_from_slice(&sums.map(F32x16::to_array));
        }
    }

    /// Hides what comes after each row's query, and turns scores into weights; gives their sums.
    fn weigh<const M: usize>(&mut self, blocks: usize) -> [f32; M] {
        std::array::from_fn(|m| {
            let visible = self.new.first + self.place(m).0 + 1;
            let scores = &mut self.scratch[m * blocks..][..blocks];
            scores.as_flattened_mut()[visible..].fill(f32::NEG_INFINITY);
            softmax_unscaled(scores)
        })
    }

    fn mix<const M: usize, const P: usize>(&mut self, blocks: usize, sums: [f32; M]) {
        let chunks = self.kv.heads().chunks();
        let mut chunk = 0;
        while chunk + P <= chunks {
            self.mix_chunks::<M, P>(blocks, chunk, sums);
            chunk += P;
        }
        for chunk in chunk..chunks {
            self.mix_chunks::<M, 1>(blocks, chunk, sums);
        }
    }

    #[inline(always)]
    fn mix_chunks<const M: usize, const P: usize>(
        &mut self,
        blocks: usize,
        chunk: usize,
        sums: [f32; M],
    ) {
        let (layer, head, kv) = (self.new.layer, self.kv_head, self.kv);
        let weights: [&[[f32; LANES]]; M] =
            std::array::from_fn(|m| &self.scratch[m * blocks..][..blocks]);
        let mut mixed: Sums<M, P> = [[F32x16::zero(); P]; M];
        for block in 0..blocks {
            let values: &[Tile<N>] = &kv.values(layer, head, block)[chunk..chunk + P];
            let tiles = std::array::from_fn(|p| &values[p]);
            multiply(&mut mixed, weights.map(|w| &w[block]), tiles);
        }
        let token_width = kv.heads().queries * kv.heads().width;
        for m in 0..M {
            let (query, offset) = self.place(m);
            let start = query * token_width + offset + chunk * LANES;
            let out = &mut self.out[start..start + P * LANES];
            let mixed = mixed[m].map(F32x16::to_array);
            for (o, v) in out.iter_mut().zip(mixed.as_flattened()) {
                *o = v / sums[m];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::kv::{Heads, KvMemory};

    /// About 50 products of values below 1 in `f32`.
    const TOLERANCE: f64 = 1e-5;
    const CONTEXT: usize = 53;

    fn noise(len: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..len).map(|_| next()).collect()
    }

    fn exact(heads: Heads, q: &[f32], keys: &[f32], values: &[f32], token: usize) -> Vec<f64> {
        let (width, stride) = (heads.width, heads.kv * heads.width);
        let mut out = Vec::new();
        for (head, q) in q.chunks_exact(width).enumerate() {
            let start = head / heads.group() * width;
            let of = |all: &[f32], t: usize, d: usize| f64::from(all[t * stride + start + d]);
            let score = |t| (0..width).map(|d| f64::from(q[d]) * of(keys, t, d)).sum::<f64>();
            let weights: Vec<f64> = (0..=token).map(|t| score(t).exp()).collect();
            let sum: f64 = weights.iter().sum();
            let mix = |d| weights.iter().enumerate().map(|(t, w)| w / sum * of(values, t, d)).sum();
            out.extend((0..width).map(mix).collect::<Vec<f64>>());
        }
        out
    }

    #[test]
    fn shares_are_the_weights_of_the_watched_tokens() {
        let heads = Heads { queries: 6, kv: 3, width: 32 };
        let q = noise(CONTEXT * 6 * 32, 1);
        let keys = noise(CONTEXT * 3 * 32, 2);
        let mut memory = KvMemory::<f32>::new(heads, 1);
        memory.reserve(8);
        let table = [5, 1, 7, 2];
        let mut written = memory.take(&table, 0, CONTEXT).unwrap();
        for (t, k) in keys.chunks_exact(3 * 32).enumerate() {
            written.store(heads, 0, t, k, k);
        }
        let kv = memory.view(&table, &written);
        let new = Queries { layer: 0, first: 0, queries: &q, stride: 6 * 32 };
        for (query, head, watched) in [(52, 3, 5..40), (20, 0, 0..21), (33, 5, 16..32)] {
            let score = |t: usize| {
                let (q, k) = (&q[(query * 6 + head) * 32..], &keys[(t * 3 + head / 2) * 32..]);
                q.iter().zip(k).take(32).map(|(a, b)| f64::from(a * b)).sum::<f64>().exp()
            };
            let sum: f64 = watched.clone().map(score).sum();
            let mut shares = vec![9.0];
            let (scratch, at) = (&mut Scratch::default(), (query, head));
            super::shares(&kv, &new, at, watched.clone(), scratch, &mut shares);
            assert_eq!(shares.len(), 1 + watched.len());
            for (share, t) in shares[1..].iter().zip(watched) {
                assert!((f64::from(*share) - score(t) / sum).abs() < TOLERANCE, "{query} {t}");
            }
        }
    }

    /// The last `new` of all tokens attend together.
    fn run(heads: Heads, q: &[f32], keys: &[f32], values: &[f32], new: usize) -> Vec<f32> {
        let mut memory = KvMemory::<f32>::new(heads, 2);
        memory.reserve(8);
        let table = [5, 1, 7, 2];
        let mut written = memory.take(&table, 0, CONTEXT).unwrap();
        let stride = heads.kv * heads.width;
        for (t, (k, v)) in keys.chunks_exact(stride).zip(values.chunks_exact(stride)).enumerate() {
            written.store(heads, 1, t, k, v);
        }
        let width = heads.queries * heads.width;
        let first = CONTEXT - new;
        let new = Queries { layer: 1, first, queries: &q[first * width..], stride: width };
        let mut out = vec![0.0; q.len() - first * width];
        attend(&memory.view(&table, &written), &new, &mut Scratch::default(), &mut out);
        out
    }

    #[test]
    fn matches_the_definition_for_every_grouping_of_heads() {
        for (queries, kv, width) in [(1, 1, 16), (3, 1, 64), (4, 2, 32), (6, 6, 80), (8, 1, 48)] {
            let heads = Heads { queries, kv, width };
            let q = noise(CONTEXT * queries * width, 1);
            let keys = noise(CONTEXT * kv * width, 2);
            let values = noise(CONTEXT * kv * width, 3);
            let all = run(heads, &q, &keys, &values, CONTEXT);
            let row = queries * width;
            for token in 0..CONTEXT {
                let expected = exact(heads, &q[token * row..][..row], &keys, &values, token);
                for (got, expected) in all[token * row..].iter().zip(expected) {
                    assert!((f64::from(*got) - expected).abs() < TOLERANCE, "{heads:?} {token}");
                }
            }
            for new in [1, 2, 5, 30] {
                let last = run(heads, &q, &keys, &values, new);
                assert_eq!(last, all[(CONTEXT - new) * row..], "{heads:?}, {new} new tokens");
            }
        }
    }
}
