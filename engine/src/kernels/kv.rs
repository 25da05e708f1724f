//! Paged key/value memory: blocks of 16 tokens, each with all layers, read by many and written by one.
//!
//! The numbers are `f32`, or `f16` where half the memory counts for more than the last digits.
//! Knows no sequence: a forward takes the blocks it writes out of the memory, so that the blocks that stay can be read
//! by every thread at the same time, and puts them back.
//!
//! ```text
//! block   layer 0: head 0: keys   [dims / 16] tiles of (dim, token)     layer 1: ..
//!                          values [dims / 16] tiles of (token, dim)
//!                  head 1: ..
//! ```
//! Keys are stored with the tokens side by side: 16 scores then come out of one tile like 16 outputs of a matrix.

use super::simd::Narrow;
use super::tile::{LANES, Tile};
use crate::batch::BLOCK_TOKENS;

const _: () = assert!(BLOCK_TOKENS == LANES, "a block of tokens is one tile");

/// Sizes of the attention of one stage.
#[derive(Debug, Clone, Copy)]
pub struct Heads {
    /// Query heads.
    pub queries: usize,
    /// Key/value heads; `queries` is a multiple of it.
    pub kv: usize,
    /// Width of a head, a multiple of [`LANES`].
    pub width: usize,
}

impl Heads {
    /// Query heads that share one key/value head.
    pub fn group(&self) -> usize {
        self.queries / self.kv
    }

    /// Chunks of [`LANES`] dimensions in a head.
    pub fn chunks(&self) -> usize {
        self.width / LANES
    }

    fn tiles_per_layer(&self) -> usize {
        self.kv * 2 * self.chunks()
    }
}

/// Keys and values of up to 16 tokens in all layers; empty while a forward holds it.
struct Block<N>(Box<[Tile<N>]>);

/// All blocks of one stage.
pub struct KvMemory<N> {
    heads: Heads,
    layers: usize,
    blocks: Vec<Block<N>>,
}

/// Why a block table cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The table has no entry for a token.
    #[error("the block table covers {covered} tokens of {needed}")]
    Short {
        /// Tokens that the table has room for.
        covered: usize,
        /// Tokens of the sequence.
        needed: usize,
    },
    /// There is no such block.
    #[error("block {block} of {blocks}")]
    Beyond {
        /// The block named.
        block: u32,
        /// Blocks that were reserved.
        blocks: usize,
    },
    /// Two sequences of one batch would write it, or one would read what another is writing.
    #[error("block {block} is being written by another sequence of the batch")]
    Taken {
        /// The block named.
        block: u32,
    },
}

impl<N: Narrow> KvMemory<N> {
    /// Memory without blocks.
    pub fn new(heads: Heads, layers: usize) -> Self {
        Self { heads, layers, blocks: Vec::new() }
    }

    /// Makes it `blocks` blocks large, all empty of tokens.
    pub fn reserve(&mut self, blocks: usize) {
        let tiles = self.heads.tiles_per_layer() * self.layers;
        let block = || Block(vec![[[N::ZERO; LANES]; LANES]; tiles].into_boxed_slice());
        self.blocks.resize_with(blocks, block);
    }

    /// Takes out the blocks of `table` that tokens `computed .. computed + added` are written to.
    ///
    /// # Errors
    /// See [`TableError`]; nothing is taken then.
    pub fn take(
        &mut self,
        table: &[u32],
        computed: usize,
        added: usize,
    ) -> Result<Written<N>, TableError> {
        let needed = computed + added;
        let covered = table.len() * BLOCK_TOKENS;
        if needed > covered {
            return Err(TableError::Short { covered, needed });
        }
        let (first, end) = (computed / BLOCK_TOKENS, needed.div_ceil(BLOCK_TOKENS));
        let mut written = Written { first, blocks: Vec::with_capacity(end - first) };
        for &block in &table[first..end] {
            let taken = match self.blocks.get_mut(block as usize) {
                None => Err(TableError::Beyond { block, blocks: self.blocks.len() }),
                Some(b) if b.0.is_empty() => Err(TableError::Taken { block }),
                Some(b) => Ok(std::mem::replace(b, Block(Box::default()))),
            };
            match taken {
                Ok(taken) => written.blocks.push(taken),
                Err(error) => {
                    self.put_back(table, written);
                    return Err(error);
                }
            }
        }
        Ok(written)
    }

    /// Checks that the earlier blocks of the table can be read; to be asked when all rows of the batch have taken theirs.
    ///
    /// # Errors
    /// See [`TableError`].
    pub fn check_readable(&self, table: &[u32], written: &Written<N>) -> Result<(), TableError> {
        for &block in &table[..written.first] {
            match self.blocks.get(block as usize) {
                None => return Err(TableError::Beyond { block, blocks: self.blocks.len() }),
                Some(b) if b.0.is_empty() => return Err(TableError::Taken { block }),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Returns what [`KvMemory::take`] gave for this table.
    pub fn put_back(&mut self, table: &[u32], written: Written<N>) {
        for (&place, block) in table[written.first..].iter().zip(written.blocks) {
            self.blocks[place as usize] = block;
        }
    }

    /// What attention of one sequence sees.
    pub fn view<'a>(&'a self, table: &'a [u32], written: &'a Written<N>) -> KvView<'a, N> {
        KvView { memory: self, table, written }
    }

    /// Sizes of the heads.
    pub fn heads(&self) -> Heads {
        self.heads
    }
}

/// Blocks of one sequence that a forward writes.
pub struct Written<N> {
    /// Index in the block table of the first of them.
    first: usize,
    blocks: Vec<Block<N>>,
}

impl<N: Narrow> Written<N> {
    /// Stores keys and values, `[kv heads, width]` each, of the token with this index in the sequence.
    pub fn store(
        &mut self,
        heads: Heads,
        layer: usize,
        token: usize,
        keys: &[f32],
        values: &[f32],
    ) {
        let slot = token % BLOCK_TOKENS;
        let block = &mut self.blocks[token / BLOCK_TOKENS - self.first].0;
        let per_layer = heads.tiles_per_layer();
        let tiles = &mut block[layer * per_layer..][..per_layer];
        if slot == 0 {
            // The block may hold another sequence's numbers. Attention multiplies values of slots that are not filled
            // yet by weights of exactly 0, which is 0 only for numbers that are finite.
            tiles.fill([[N::ZERO; LANES]; LANES]);
        }
        let chunks = heads.chunks();
        let (keys, _) = keys.as_chunks::<LANES>();
        let (values, _) = values.as_chunks::<LANES>();
        for head in 0..heads.kv {
            let (key_tiles, value_tiles) =
                tiles[head * 2 * chunks..][..2 * chunks].split_at_mut(chunks);
            for (tile, dims) in key_tiles.iter_mut().zip(&keys[head * chunks..]) {
                for (row, v) in tile.iter_mut().zip(N::narrow(dims)) {
                    row[slot] = v;
                }
            }
            for (tile, dims) in value_tiles.iter_mut().zip(&values[head * chunks..]) {
                tile[slot] = N::narrow(dims);
            }
        }
    }
}

/// One sequence's keys and values.
pub struct KvView<'a, N> {
    memory: &'a KvMemory<N>,
    table: &'a [u32],
    written: &'a Written<N>,
}

impl<N: Narrow> KvView<'_, N> {
    /// Sizes of the heads.
    pub fn heads(&self) -> Heads {
        self.memory.heads
    }

    /// Key tiles of one head in block `index` of the table: one for each chunk of dimensions.
    #[inline(always)]
    pub fn keys(&self, layer: usize, head: usize, index: usize) -> &[Tile<N>] {
        &self.head_tiles(layer, head, index)[..self.heads().chunks()]
    }

    /// Value tiles, as [`KvView::keys`].
    #[inline(always)]
    pub fn values(&self, layer: usize, head: usize, index: usize) -> &[Tile<N>] {
        &self.head_tiles(layer, head, index)[self.heads().chunks()..]
    }

    #[inline(always)]
    fn head_tiles(&self, layer: usize, head: usize, index: usize) -> &[Tile<N>] {
        let block = match index.checked_sub(self.written.first) {
            Some(own) => &self.written.blocks[own].0,
            None => &self.memory.blocks[self.table[index] as usize].0,
        };
        let per_head = 2 * self.heads().chunks();
        &block[layer * self.heads().tiles_per_layer() + head * per_head..][..per_head]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> KvMemory<f32> {
        let mut memory = KvMemory::new(Heads { queries: 2, kv: 1, width: 16 }, 2);
        memory.reserve(3);
        memory
    }

    #[test]
    fn written_blocks_can_be_taken_once_and_come_back() {
        let mut memory = memory();
        let first = memory.take(&[2, 0], 10, 10).unwrap();
        assert_eq!(first.blocks.len(), 2);
        assert_eq!(memory.take(&[1, 0], 16, 1).err(), Some(TableError::Taken { block: 0 }));
        let other = memory.take(&[2, 1], 16, 1).unwrap();
        assert_eq!(memory.check_readable(&[2, 1], &other), Err(TableError::Taken { block: 2 }));
        memory.put_back(&[2, 0], first);
        assert_eq!(memory.check_readable(&[2, 1], &other), Ok(()));
        memory.put_back(&[2, 1], other);
        assert!(memory.blocks.iter().all(|b| !b.0.is_empty()));
    }

    #[test]
    fn a_table_that_does_not_fit_takes_nothing() {
        let mut memory = memory();
        let short = TableError::Short { covered: 16, needed: 17 };
        assert_eq!(memory.take(&[1], 16, 1).err(), Some(short));
        let beyond = TableError::Beyond { block: 3, blocks: 3 };
        assert_eq!(memory.take(&[1, 3], 0, 17).err(), Some(beyond));
        assert_eq!(memory.take(&[1, 1], 0, 17).err(), Some(TableError::Taken { block: 1 }));
        assert!(memory.blocks.iter().all(|b| !b.0.is_empty()));
    }

    #[test]
    fn a_block_forgets_its_former_tokens() {
        let mut memory = memory();
        let heads = memory.heads();
        let mut written = memory.take(&[1], 0, 16).unwrap();
        for token in 0..16 {
            written.store(heads, 1, token, &[f32::NAN; 16], &[f32::NAN; 16]);
        }
        memory.put_back(&[1], written);
        let mut written = memory.take(&[1], 0, 1).unwrap();
        let keys: [f32; 16] = std::array::from_fn(|i| i as f32);
        written.store(heads, 1, 0, &keys, &[7.0; 16]);
        let view = memory.view(&[1], &written);
        assert_eq!(view.keys(1, 0, 0)[0][5][..2], [5.0, 0.0]);
        assert_eq!(view.values(1, 0, 0)[0][..2], [[7.0; 16], [0.0; 16]]);
    }
}
