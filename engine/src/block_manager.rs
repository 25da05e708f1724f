//! Pages of key/value memory of one stage: who holds which block, and which blocks can be shared or used again.
//!
//! Pure bookkeeping. It must never know what a token means, what a stage is, or where the memory lies.
//!
//! ```text
//! table of a sequence     [ b7 b2 b9 | b4 b1 ]
//!                           published   own      tokens 0..48 are in the prefix cache, the rest is not
//! a block is              in use (in a table) -> cached (published, in no table) -> free
//! ```
//!
//! **Prefix cache.** A full block is published under the exact key (its parent, its 16 tokens: ids and positions), so that
//! a later sequence with the same beginning takes it instead of computing it. Equality is that of the whole key;
//! a hash only finds it. A large memory has many thousands of blocks, so keys are written short and kept once. The parent is named by a node number that is never used twice, so a block that was evicted
//! and filled anew is never mistaken for what it was.
//!
//! **Two invariants carry the rest.** A published block is never written: sequences write behind their published
//! blocks only. And who holds a published block holds its parent, the block before it in the same table; tables are let
//! go from their end, so parents are always younger in the eviction order than their children and eviction takes leaves.

mod ages;
mod key;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use crate::batch::BLOCK_TOKENS;
use ages::AgeList;

/// The blocks of one sequence, in the order of its tokens. Belongs to exactly one sequence and goes back to the
/// manager that filled it through [`BlockManager::release`]; one that is dropped instead is a leak that
/// [`BlockManager::check_integrity`] finds.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use = "a table that is dropped leaks its blocks; give it to `release`"]
pub struct BlockTable {
    blocks: Vec<u32>,
    /// How many of the leading blocks are published, and so must not be written.
    published: usize,
}

impl BlockTable {
    /// Block `i` holds tokens `16 i .. 16 i + 16` of the sequence.
    pub fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// Tokens that the blocks have room for.
    pub fn capacity(&self) -> usize {
        self.blocks.len() * BLOCK_TOKENS
    }
}

/// Where all blocks of a manager are. `total` is the sum of the other three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockCounts {
    /// All blocks there are.
    pub total: usize,
    /// Held by at least one table.
    pub in_use: usize,
    /// Held by none, but still findable by their content; taken back, oldest first, when no free block is left.
    pub cached: usize,
    /// Empty.
    pub free: usize,
}

/// Allocates, shares and recycles the blocks of one stage. Every operation on one block is O(1).
#[derive(Debug)]
pub struct BlockManager {
    blocks: Vec<Block>,
    free: Vec<u32>,
    /// Published blocks that no table holds, by the time they were let go.
    unused: AgeList,
    /// The published blocks, to be found by their keys.
    index: HashTable<u32>,
    hasher: RandomState,
    /// The key that was asked for last, so that asking takes no new memory.
    asked: Vec<u8>,
    next_node: u64,
}

#[derive(Debug, Clone, Default)]
struct Block {
    refs: u32,
    publication: Option<Publication>,
}

/// What makes two blocks hold the same keys and values: all that came before, and their own 16 tokens.
#[derive(Debug, Clone)]
struct Publication {
    parent: u64,
    /// See [`key::write`].
    tokens: Box<[u8]>,
    node: u64,
}

/// What tokens are, one after the other: what decides whether keys and values are the same.
#[derive(Debug, Clone, Copy)]
pub struct Content<'a> {
    /// Ids, of stream 0 where tokens have several.
    pub ids: &'a [u32],
    /// Ids of the further streams, token by token, as many of each token.
    pub beside: &'a [u32],
    /// Rotary positions.
    pub positions: &'a [i32],
}

/// The parent of every first block; real nodes start behind it.
const ROOT: u64 = 0;

impl BlockManager {
    /// A manager of `total_blocks` free blocks, numbered from 0.
    ///
    /// # Panics
    /// When `total_blocks` does not fit a block number.
    pub fn new(total_blocks: usize) -> Self {
        let total = u32::try_from(total_blocks).expect("more blocks than numbers; this is a bug");
        Self {
            blocks: vec![Block::default(); total_blocks],
            // Handed out from the end: low numbers first.
            free: (0..total).rev().collect(),
            unused: AgeList::new(total),
            index: HashTable::new(),
            hasher: RandomState::new(),
            asked: Vec::new(),
            next_node: ROOT + 1,
        }
    }

    /// How many blocks there are too few of to give each table room for its tokens; 0: [`BlockManager::grow`] would succeed
    /// for all of them.
    pub fn shortage<'a>(&self, wanted: impl IntoIterator<Item = (&'a BlockTable, usize)>) -> usize {
        let missing = wanted.into_iter().map(|(table, tokens)| missing(table, tokens));
        missing.sum::<usize>().saturating_sub(self.free.len() + self.unused.len())
    }

    /// How many tables hold a block.
    pub fn holders(&self, block: u32) -> u32 {
        self.blocks[block as usize].refs
    }

    /// Gives the table room for `tokens_after` tokens, evicting cached blocks if it must. All or nothing:
    /// false, and nothing changed, when there are not enough blocks.
    #[must_use]
    pub fn grow(&mut self, table: &mut BlockTable, tokens_after: usize) -> bool {
        if self.shortage([(&*table, tokens_after)]) > 0 {
            return false;
        }
        for _ in 0..missing(table, tokens_after) {
            let block = self.take_empty();
            table.blocks.push(block);
        }
        true
    }

    /// A table with the longest published beginning of a sequence, and how many of its tokens that covers. Whole
    /// blocks only, and never the last token: a sequence must run at least one token to have logits to go on from.
    ///
    /// # Panics
    /// When ids and positions differ in length.
    pub fn match_prefix(&mut self, content: Content<'_>) -> (BlockTable, usize) {
        let Content { ids, positions, .. } = content;
        assert_eq!(ids.len(), positions.len(), "a position for each token; this is a bug");
        let mut table = BlockTable::default();
        let mut parent = ROOT;
        let whole = ids.len().saturating_sub(1) / BLOCK_TOKENS;
        for i in 0..whole {
            let Some(block) = self.find(parent, i, content) else { break };
            self.hold(block);
            parent = self.node(block);
            table.blocks.push(block);
        }
        table.published = table.blocks.len();
        let tokens = table.capacity();
        (table, tokens)
    }

    /// Publishes the blocks that the first `computed` tokens fill. Where another sequence has published the same
    /// content meanwhile, the table takes that block and its own becomes free.
    ///
    /// # Panics
    /// When the content or the table are shorter than `computed`.
    pub fn commit(&mut self, table: &mut BlockTable, content: Content<'_>, computed: usize) {
        while (table.published + 1) * BLOCK_TOKENS <= computed {
            let at = table.published;
            let parent = if at == 0 { ROOT } else { self.node(table.blocks[at - 1]) };
            match self.find(parent, at, content) {
                Some(twin) => {
                    self.hold(twin);
                    let own = std::mem::replace(&mut table.blocks[at], twin);
                    self.let_go(own);
                }
                None => self.publish(table.blocks[at], parent),
            }
            table.published += 1;
        }
    }

    /// Keeps the first `tokens` tokens and lets the blocks behind them go. Returns how many tokens are still computed:
    /// fewer than `tokens` when the cut falls inside a published block, which others may hold or find and so must not
    /// be written again; it is let go too, and the caller computes its kept part anew in a block of its own.
    pub fn truncate(&mut self, table: &mut BlockTable, tokens: usize) -> usize {
        let inside_published =
            !tokens.is_multiple_of(BLOCK_TOKENS) && tokens / BLOCK_TOKENS < table.published;
        let kept = if inside_published { tokens - tokens % BLOCK_TOKENS } else { tokens };
        self.let_go_from(table, kept.div_ceil(BLOCK_TOKENS));
        kept
    }

    /// Takes a sequence's blocks back: published ones stay findable until they are evicted, the others are free.
    pub fn release(&mut self, mut table: BlockTable) {
        self.let_go_from(&mut table, 0);
    }

    /// Forgets all blocks that no sequence holds, and with them the ids they were found by (a client's text).
    pub fn forget_unused(&mut self) {
        while self.evict() {}
    }

    /// Where all blocks are.
    pub fn counts(&self) -> BlockCounts {
        let (total, free, cached) = (self.blocks.len(), self.free.len(), self.unused.len());
        BlockCounts { total, in_use: total - free - cached, cached, free }
    }

    /// Checks the books against all tables that are alive.
    ///
    /// # Errors
    /// The first contradiction found: a leaked, doubly freed or wrongly counted block, or a damaged cache.
    pub fn check_integrity<'a>(
        &self,
        live: impl IntoIterator<Item = &'a BlockTable>,
    ) -> Result<(), String> {
        let mut refs = vec![0u32; self.blocks.len()];
        for table in live {
            self.check_table(table)?;
            table.blocks.iter().for_each(|&b| refs[b as usize] += 1);
        }
        let mut places = vec![0u32; self.blocks.len()];
        self.free.iter().for_each(|&b| places[b as usize] += 1);
        self.unused.oldest_first().for_each(|b| places[b as usize] += 1);
        let mut published = 0;
        for (number, block) in self.blocks.iter().enumerate() {
            if block.refs != refs[number] {
                let counted = refs[number];
                return Err(format!("block {number}: {} references, {counted} found", block.refs));
            }
            if places[number] != u32::from(block.refs == 0) {
                let places = places[number];
                return Err(format!("block {number}: {} references, {places} lists", block.refs));
            }
            if let Some(p) = &block.publication {
                published += 1;
                if self.indexed(p.parent, &p.tokens).map(|b| b as usize) != Some(number) {
                    return Err(format!("block {number}: published but not findable"));
                }
            }
        }
        if self.index.len() != published {
            return Err(format!("{} index entries, {published} blocks", self.index.len()));
        }
        self.check_ages()
    }

    fn check_table(&self, table: &BlockTable) -> Result<(), String> {
        let mut parent = ROOT;
        for (i, &number) in table.blocks.iter().enumerate() {
            let block = self.blocks.get(number as usize);
            let block = block.ok_or_else(|| format!("block {number}: beyond the memory"))?;
            match &block.publication {
                Some(p) if i < table.published && p.parent == parent => parent = p.node,
                None if i >= table.published && block.refs == 1 => {}
                _ => return Err(format!("block {number}: wrong in place {i} of its table")),
            }
        }
        Ok(())
    }

    /// Unused blocks are published, and none is older than a child of it.
    fn check_ages(&self) -> Result<(), String> {
        let mut gone = std::collections::HashSet::new();
        for number in self.unused.oldest_first() {
            let Some(p) = &self.blocks[number as usize].publication else {
                return Err(format!("block {number}: cached but not published"));
            };
            if gone.contains(&p.parent) {
                return Err(format!("block {number}: outlives its parent"));
            }
            gone.insert(p.node);
        }
        Ok(())
    }

    fn node(&self, block: u32) -> u64 {
        let publication = self.blocks[block as usize].publication.as_ref();
        publication.expect("asked for a published block only; this is a bug").node
    }

    /// The published block of this content behind `parent`.
    fn find(&mut self, parent: u64, block: usize, content: Content<'_>) -> Option<u32> {
        key::write(&mut self.asked, block, content);
        self.indexed(parent, &self.asked)
    }

    fn indexed(&self, parent: u64, tokens: &[u8]) -> Option<u32> {
        let is_it = |&block: &u32| {
            let publication = self.blocks[block as usize].publication.as_ref();
            publication.is_some_and(|p| p.parent == parent && *p.tokens == *tokens)
        };
        self.index.find(self.hasher.hash_one((parent, tokens)), is_it).copied()
    }

    /// Publishes a block of the content that was asked for last, and not found.
    fn publish(&mut self, block: u32, parent: u64) {
        let Self { blocks, index, hasher, asked, next_node, .. } = self;
        let hash = hasher.hash_one((parent, &asked[..]));
        let tokens = asked.as_slice().into();
        blocks[block as usize].publication = Some(Publication { parent, tokens, node: *next_node });
        index.insert_unique(hash, block, |&block| {
            let publication = blocks[block as usize].publication.as_ref();
            publication.expect("only published blocks are there; this is a bug").hash(hasher)
        });
        *next_node += 1;
    }

    fn hold(&mut self, block: u32) {
        let refs = &mut self.blocks[block as usize].refs;
        *refs += 1;
        if *refs == 1 {
            self.unused.remove(block);
        }
    }

    fn let_go(&mut self, block: u32) {
        let entry = &mut self.blocks[block as usize];
        entry.refs = entry.refs.checked_sub(1).expect("a block was let go twice; this is a bug");
        match (entry.refs, &entry.publication) {
            (0, Some(_)) => self.unused.push_youngest(block),
            (0, None) => self.free.push(block),
            _ => {}
        }
    }

    /// Lets go from the end, so that children come before their parents in the eviction order.
    fn let_go_from(&mut self, table: &mut BlockTable, keep: usize) {
        while table.blocks.len() > keep {
            let block = table.blocks.pop().expect("longer than `keep`");
            self.let_go(block);
        }
        table.published = table.published.min(keep);
    }

    fn take_empty(&mut self) -> u32 {
        if self.free.is_empty() {
            self.evict();
        }
        let block = self.free.pop().expect("room was checked before; this is a bug");
        self.blocks[block as usize].refs = 1;
        block
    }

    /// Makes the oldest unused block free; false when there is none.
    fn evict(&mut self) -> bool {
        let Some(block) = self.unused.pop_oldest() else { return false };
        let publication = self.blocks[block as usize].publication.take();
        let publication = publication.expect("unused blocks are published; this is a bug");
        let entry = self.index.find_entry(publication.hash(&self.hasher), |&b| b == block);
        entry.expect("published blocks are found by their keys; this is a bug").remove();
        self.free.push(block);
        true
    }
}

fn missing(table: &BlockTable, tokens_after: usize) -> usize {
    tokens_after.div_ceil(BLOCK_TOKENS).saturating_sub(table.blocks.len())
}

impl Publication {
    fn hash(&self, hasher: &RandomState) -> u64 {
        hasher.hash_one((self.parent, &self.tokens[..]))
    }
}
