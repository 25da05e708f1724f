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
//! **Prefix cache.** A full block is published under the exact key (its parent, its 16 ids, its 16 positions), so that
//! a later sequence with the same beginning takes it instead of computing it. Equality is that of the whole key;
//! a hash only finds it. The parent is named by a node number that is never used twice, so a block that was evicted
//! and filled anew is never mistaken for what it was.
//!
//! **Two invariants carry the rest.** A published block is never written: sequences write behind their published
//! blocks only. And who holds a published block holds its parent, the block before it in the same table; tables are let
//! go from their end, so parents are always younger in the eviction order than their children and eviction takes leaves.

use std::collections::HashMap;
use std::sync::Arc;

use crate::batch::BLOCK_TOKENS;

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
    index: HashMap<Arc<Key>, u32>,
    next_node: u64,
}

#[derive(Debug, Clone, Default)]
struct Block {
    refs: u32,
    publication: Option<Publication>,
}

#[derive(Debug, Clone)]
struct Publication {
    key: Arc<Key>,
    node: u64,
}

/// What makes two blocks hold the same keys and values: all that came before, and their own 16 tokens.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    parent: u64,
    ids: [u32; BLOCK_TOKENS],
    positions: [i32; BLOCK_TOKENS],
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
            index: HashMap::new(),
            next_node: ROOT + 1,
        }
    }

    /// Whether [`BlockManager::grow`] would succeed.
    pub fn can_grow(&self, table: &BlockTable, tokens_after: usize) -> bool {
        missing(table, tokens_after) <= self.free.len() + self.unused.len()
    }

    /// Gives the table room for `tokens_after` tokens, evicting cached blocks if it must. All or nothing:
    /// false, and nothing changed, when there are not enough blocks.
    #[must_use]
    pub fn grow(&mut self, table: &mut BlockTable, tokens_after: usize) -> bool {
        if !self.can_grow(table, tokens_after) {
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
    /// When `ids` and `positions` differ in length.
    pub fn match_prefix(&mut self, ids: &[u32], positions: &[i32]) -> (BlockTable, usize) {
        assert_eq!(ids.len(), positions.len(), "a position for each token; this is a bug");
        let mut table = BlockTable::default();
        let mut parent = ROOT;
        let whole = ids.len().saturating_sub(1) / BLOCK_TOKENS;
        for i in 0..whole {
            let key = Key::of(parent, i, ids, positions);
            let Some(&block) = self.index.get(&key) else { break };
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
    /// When `ids`, `positions` or the table are shorter than `computed`.
    pub fn commit(
        &mut self,
        table: &mut BlockTable,
        ids: &[u32],
        positions: &[i32],
        computed: usize,
    ) {
        while (table.published + 1) * BLOCK_TOKENS <= computed {
            let at = table.published;
            let parent = if at == 0 { ROOT } else { self.node(table.blocks[at - 1]) };
            let key = Key::of(parent, at, ids, positions);
            match self.index.get(&key).copied() {
                Some(twin) => {
                    self.hold(twin);
                    let own = std::mem::replace(&mut table.blocks[at], twin);
                    self.let_go(own);
                }
                None => self.publish(table.blocks[at], key),
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
                if self.index.get(&p.key).map(|&b| b as usize) != Some(number) {
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
                Some(p) if i < table.published && p.key.parent == parent => parent = p.node,
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
            if gone.contains(&p.key.parent) {
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

    fn publish(&mut self, block: u32, key: Key) {
        let key = Arc::new(key);
        self.index.insert(key.clone(), block);
        self.blocks[block as usize].publication = Some(Publication { key, node: self.next_node });
        self.next_node += 1;
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
        self.index.remove(&publication.key);
        self.free.push(block);
        true
    }
}

fn missing(table: &BlockTable, tokens_after: usize) -> usize {
    tokens_after.div_ceil(BLOCK_TOKENS).saturating_sub(table.blocks.len())
}

impl Key {
    fn of(parent: u64, block: usize, ids: &[u32], positions: &[i32]) -> Self {
        let tokens = block * BLOCK_TOKENS..(block + 1) * BLOCK_TOKENS;
        let mut key = Self { parent, ids: [0; BLOCK_TOKENS], positions: [0; BLOCK_TOKENS] };
        key.ids.copy_from_slice(&ids[tokens.clone()]);
        key.positions.copy_from_slice(&positions[tokens]);
        key
    }
}

/// Block numbers in the order they came, each removable in O(1): a ring of links with one extra entry as its knot.
#[derive(Debug)]
struct AgeList {
    links: Vec<Link>,
    len: usize,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    older: u32,
    younger: u32,
}

impl AgeList {
    fn new(numbers: u32) -> Self {
        // An entry outside the list points at itself, and so does the knot of an empty one.
        let links = (0..=numbers).map(|i| Link { older: i, younger: i }).collect();
        Self { links, len: 0 }
    }

    fn len(&self) -> usize {
        self.len
    }

    fn knot(&self) -> u32 {
        u32::try_from(self.links.len() - 1).expect("made from a u32; this is a bug")
    }

    fn push_youngest(&mut self, number: u32) {
        let knot = self.knot();
        let older = std::mem::replace(&mut self.links[knot as usize].older, number);
        self.links[older as usize].younger = number;
        self.links[number as usize] = Link { older, younger: knot };
        self.len += 1;
    }

    fn remove(&mut self, number: u32) {
        let Link { older, younger } = self.links[number as usize];
        self.links[older as usize].younger = younger;
        self.links[younger as usize].older = older;
        self.links[number as usize] = Link { older: number, younger: number };
        self.len -= 1;
    }

    fn pop_oldest(&mut self) -> Option<u32> {
        let oldest = self.oldest_first().next()?;
        self.remove(oldest);
        Some(oldest)
    }

    fn oldest_first(&self) -> impl Iterator<Item = u32> {
        let knot = self.knot();
        let step = move |number: u32| {
            let next = self.links[number as usize].younger;
            (next != knot).then_some(next)
        };
        std::iter::successors(step(knot), move |&number| step(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `n` tokens of a sequence that begins like every other of the same `kind`.
    fn sequence(kind: u32, n: usize) -> (Vec<u32>, Vec<i32>) {
        (0..n).map(|i| (kind * 1000 + i as u32, 1 + i as i32)).unzip()
    }

    fn admit(m: &mut BlockManager, (ids, positions): &(Vec<u32>, Vec<i32>)) -> (BlockTable, usize) {
        let (mut table, matched) = m.match_prefix(ids, positions);
        assert!(m.grow(&mut table, ids.len()));
        m.commit(&mut table, ids, positions, ids.len());
        (table, matched)
    }

    #[test]
    fn second_sequence_takes_the_whole_blocks_of_the_first() {
        let mut m = BlockManager::new(8);
        let text = sequence(1, 40);
        let (first, none) = admit(&mut m, &text);
        let (second, matched) = admit(&mut m, &text);
        assert_eq!((none, matched), (0, 32));
        assert_eq!(first.blocks()[..2], second.blocks()[..2]);
        assert_ne!(first.blocks()[2], second.blocks()[2]);
        assert_eq!(m.counts(), BlockCounts { total: 8, in_use: 4, cached: 0, free: 4 });
        m.check_integrity([&first, &second]).unwrap();
        m.release(first);
        m.release(second);
        assert_eq!(m.counts(), BlockCounts { total: 8, in_use: 0, cached: 2, free: 6 });
        m.forget_unused();
        assert_eq!(m.counts(), BlockCounts { total: 8, in_use: 0, cached: 0, free: 8 });
        assert_eq!(m.match_prefix(&text.0, &text.1), (BlockTable::default(), 0));
    }

    #[test]
    fn last_token_is_never_matched() {
        let mut m = BlockManager::new(4);
        let text = sequence(1, 32);
        let (table, _) = admit(&mut m, &text);
        m.release(table);
        let (table, matched) = m.match_prefix(&text.0, &text.1);
        assert_eq!(matched, 16);
        m.release(table);
    }

    #[test]
    fn equal_ids_at_other_positions_do_not_match() {
        let mut m = BlockManager::new(4);
        let (ids, positions) = sequence(1, 20);
        let (table, _) = admit(&mut m, &(ids.clone(), positions.clone()));
        let moved: Vec<i32> = positions.iter().map(|p| p + 1).collect();
        assert_eq!(m.match_prefix(&ids, &moved), (BlockTable::default(), 0));
        m.release(table);
    }

    #[test]
    fn equal_block_behind_another_beginning_does_not_match() {
        let mut m = BlockManager::new(8);
        let (ids, positions) = sequence(1, 40);
        let (table, _) = admit(&mut m, &(ids.clone(), positions.clone()));
        let mut other = ids.clone();
        other[0] += 1;
        let (second, _) = admit(&mut m, &(other, positions));
        assert!(table.blocks().iter().all(|b| !second.blocks().contains(b)));
        m.check_integrity([&table, &second]).unwrap();
        m.release(table);
        m.release(second);
    }

    #[test]
    fn two_sequences_that_compute_the_same_end_up_with_one_block() {
        let mut m = BlockManager::new(4);
        let (ids, positions) = sequence(1, 17);
        let mut tables = [BlockTable::default(), BlockTable::default()];
        for table in &mut tables {
            assert!(m.grow(table, 17));
        }
        for table in &mut tables {
            m.commit(table, &ids, &positions, 17);
        }
        assert_eq!(tables[0].blocks()[0], tables[1].blocks()[0]);
        assert_eq!(m.counts().in_use, 3);
        m.check_integrity(&tables).unwrap();
        for table in tables {
            m.release(table);
        }
    }

    #[test]
    fn growth_is_all_or_nothing() {
        let mut m = BlockManager::new(3);
        let mut table = BlockTable::default();
        assert!(m.grow(&mut table, 17));
        assert!(!m.can_grow(&table, 49));
        assert!(!m.grow(&mut table, 64));
        assert_eq!(table.blocks().len(), 2);
        assert!(m.grow(&mut table, 48));
        m.release(table);
    }

    #[test]
    fn eviction_takes_the_longest_unused_and_leaves_before_roots() {
        let mut m = BlockManager::new(4);
        let (old, new) = (sequence(1, 33), sequence(2, 17));
        let (table, _) = admit(&mut m, &old);
        m.release(table);
        let (table, _) = admit(&mut m, &new);
        m.release(table);
        // Cached: two blocks of `old`, one of `new`; one is free. Two are needed: the second of `old` goes.
        let mut taker = BlockTable::default();
        assert!(m.grow(&mut taker, 32));
        let (table, matched) = m.match_prefix(&old.0, &old.1);
        assert_eq!(matched, 16);
        m.release(table);
        let (table, matched) = m.match_prefix(&new.0, &new.1);
        assert_eq!(matched, 16);
        m.release(table);
        m.release(taker);
    }

    #[test]
    fn cut_inside_a_published_block_drops_it_and_inside_an_own_one_keeps_it() {
        let mut m = BlockManager::new(8);
        let (ids, positions) = sequence(1, 40);
        let (mut table, _) = admit(&mut m, &(ids, positions));
        assert_eq!(m.truncate(&mut table, 35), 35);
        assert_eq!(table.blocks().len(), 3);
        assert_eq!(m.truncate(&mut table, 20), 16);
        assert_eq!(table.blocks().len(), 1);
        m.check_integrity([&table]).unwrap();
        assert_eq!(m.truncate(&mut table, 16), 16);
        assert_eq!(m.truncate(&mut table, 0), 0);
        assert!(table.blocks().is_empty());
    }

    #[test]
    fn integrity_check_sees_a_leaked_table_and_a_foreign_one() {
        let mut m = BlockManager::new(4);
        let mut table = BlockTable::default();
        assert!(m.grow(&mut table, 20));
        assert!(m.check_integrity([]).unwrap_err().contains("1 references, 0 found"));
        assert!(m.check_integrity([&table, &table]).is_err());
        m.check_integrity([&table]).unwrap();
        m.release(table);
        m.check_integrity([]).unwrap();
    }

    /// The same policy in the plainest possible form: prefixes as whole vectors, everything by linear search.
    #[derive(Default)]
    struct Naive {
        total: usize,
        published: Vec<Entry>,
        own: usize,
        clock: u64,
    }

    struct Entry {
        prefix: Vec<(u32, i32)>,
        refs: usize,
        let_go_at: u64,
    }

    impl Naive {
        fn find(&mut self, prefix: &[(u32, i32)]) -> Option<&mut Entry> {
            self.published.iter_mut().find(|e| e.prefix == prefix)
        }

        fn matched(&mut self, tokens: &[(u32, i32)]) -> usize {
            let mut blocks = 0;
            while (blocks + 1) * BLOCK_TOKENS < tokens.len() {
                let Some(entry) = self.find(&tokens[..(blocks + 1) * BLOCK_TOKENS]) else { break };
                entry.refs += 1;
                blocks += 1;
            }
            blocks
        }

        fn counts(&self) -> BlockCounts {
            let held = self.published.iter().filter(|e| e.refs > 0).count();
            let (total, cached, in_use) =
                (self.total, self.published.len() - held, self.own + held);
            BlockCounts { total, in_use, cached, free: total - in_use - cached }
        }

        fn grow(&mut self, blocks: usize) -> bool {
            let counts = self.counts();
            if blocks > counts.free + counts.cached {
                return false;
            }
            for _ in counts.free..blocks {
                let unused = self.published.iter().enumerate().filter(|(_, e)| e.refs == 0);
                let oldest = unused.min_by_key(|(_, e)| e.let_go_at).unwrap().0;
                self.published.remove(oldest);
            }
            self.own += blocks;
            true
        }

        fn commit(&mut self, prefix: &[(u32, i32)]) {
            self.own -= 1;
            match self.find(prefix) {
                Some(entry) => entry.refs += 1,
                None => {
                    let entry = Entry { prefix: prefix.to_vec(), refs: 1, let_go_at: 0 };
                    self.published.push(entry);
                }
            }
        }

        fn let_go(&mut self, prefix: &[(u32, i32)], published: bool) {
            self.clock += 1;
            let clock = self.clock;
            if published {
                let entry = self.find(prefix).unwrap();
                entry.refs -= 1;
                entry.let_go_at = clock;
            } else {
                self.own -= 1;
            }
        }
    }

    struct Live {
        tokens: Vec<(u32, i32)>,
        table: BlockTable,
        computed: usize,
        published: usize,
    }

    /// Both sides, and a memory in which each slot remembers the whole beginning it was computed from.
    struct World {
        manager: BlockManager,
        naive: Naive,
        memory: Vec<[Vec<(u32, i32)>; BLOCK_TOKENS]>,
        live: Vec<Live>,
    }

    impl World {
        fn new(total: usize) -> Self {
            Self {
                manager: BlockManager::new(total),
                naive: Naive { total, ..Naive::default() },
                memory: vec![Default::default(); total],
                live: Vec::new(),
            }
        }

        fn admit(&mut self, tokens: Vec<(u32, i32)>) {
            let (ids, positions): (Vec<u32>, Vec<i32>) = tokens.iter().copied().unzip();
            let (table, computed) = self.manager.match_prefix(&ids, &positions);
            let blocks = self.naive.matched(&tokens);
            assert_eq!(computed, blocks * BLOCK_TOKENS);
            self.live.push(Live { tokens, table, computed, published: blocks });
            self.check_memory(self.live.len() - 1);
        }

        fn run(&mut self, at: usize, steps: usize, publish: bool) {
            let Live { tokens, table, computed, published } = &mut self.live[at];
            let to = (*computed + steps).min(tokens.len());
            let blocks = to.div_ceil(BLOCK_TOKENS).saturating_sub(table.blocks().len());
            let can = self.manager.can_grow(table, to);
            assert_eq!(can, self.naive.grow(blocks));
            assert_eq!(can, self.manager.grow(table, to));
            if !can {
                return;
            }
            for t in *computed..to {
                let block = table.blocks()[t / BLOCK_TOKENS] as usize;
                self.memory[block][t % BLOCK_TOKENS] = tokens[..=t].to_vec();
            }
            *computed = to;
            if publish {
                let (ids, positions): (Vec<u32>, Vec<i32>) = tokens.iter().copied().unzip();
                self.manager.commit(table, &ids, &positions, to);
                while (*published + 1) * BLOCK_TOKENS <= to {
                    *published += 1;
                    self.naive.commit(&tokens[..*published * BLOCK_TOKENS]);
                }
            }
            self.check_memory(at);
        }

        fn naive_let_go(naive: &mut Naive, live: &mut Live, keep: usize) {
            for block in (keep..live.table.blocks().len()).rev() {
                let end = ((block + 1) * BLOCK_TOKENS).min(live.tokens.len());
                naive.let_go(&live.tokens[..end], block < live.published);
            }
            live.published = live.published.min(keep);
        }

        fn truncate(&mut self, at: usize, tokens: usize, tail: u32) {
            let live = &mut self.live[at];
            let tokens = tokens.min(live.computed);
            let inside =
                !tokens.is_multiple_of(BLOCK_TOKENS) && tokens / BLOCK_TOKENS < live.published;
            let kept = if inside { tokens / BLOCK_TOKENS * BLOCK_TOKENS } else { tokens };
            Self::naive_let_go(&mut self.naive, live, kept.div_ceil(BLOCK_TOKENS));
            assert_eq!(self.manager.truncate(&mut live.table, tokens), kept);
            live.computed = kept;
            live.tokens.iter_mut().skip(tokens).for_each(|t| t.0 = tail);
            self.check_memory(at);
        }

        fn release(&mut self, at: usize) {
            let mut live = self.live.swap_remove(at);
            Self::naive_let_go(&mut self.naive, &mut live, 0);
            self.manager.release(live.table);
        }

        fn forget_unused(&mut self) {
            self.manager.forget_unused();
            self.naive.published.retain(|e| e.refs > 0);
        }

        /// What a sequence reads is what it would have computed itself.
        fn check_memory(&self, at: usize) {
            let Live { tokens, table, computed, .. } = &self.live[at];
            for t in 0..*computed {
                let block = table.blocks()[t / BLOCK_TOKENS] as usize;
                assert_eq!(self.memory[block][t % BLOCK_TOKENS], tokens[..=t]);
            }
        }

        fn check(&self) {
            self.manager.check_integrity(self.live.iter().map(|l| &l.table)).unwrap();
            assert_eq!(self.manager.counts(), self.naive.counts());
            (0..self.live.len()).for_each(|at| self.check_memory(at));
        }
    }

    #[derive(Debug, Clone)]
    enum Op {
        Admit { prefix: u32, shared: usize, own: u32, len: usize },
        Run { at: usize, steps: usize, publish: bool },
        Truncate { at: usize, tokens: usize, tail: u32 },
        Release { at: usize },
        ForgetUnused,
    }

    fn op() -> impl Strategy<Value = Op> {
        let admit = (0..3u32, 0..50usize, 0..3u32, 1..70usize)
            .prop_map(|(prefix, shared, own, len)| Op::Admit { prefix, shared, own, len });
        let run = (0..8usize, 1..40usize, prop::bool::weighted(0.8))
            .prop_map(|(at, steps, publish)| Op::Run { at, steps, publish });
        let truncate = (0..8usize, 0..70usize, 0..3u32)
            .prop_map(|(at, tokens, tail)| Op::Truncate { at, tokens, tail });
        prop_oneof![
            3 => admit,
            6 => run,
            2 => truncate,
            2 => (0..8usize).prop_map(|at| Op::Release { at }),
            1 => Just(Op::ForgetUnused),
        ]
    }

    proptest! {
        #[test]
        fn random_operations_agree_with_the_naive_model_and_leak_nothing(
            total in 1..14usize,
            ops in prop::collection::vec(op(), 1..80),
        ) {
            let mut world = World::new(total);
            for op in ops {
                let lives = world.live.len();
                match op {
                    Op::Admit { prefix, shared, own, len } if lives < 8 => {
                        let token = |i| (if i < shared { prefix } else { 10 + own }, i as i32);
                        world.admit((0..len).map(token).collect());
                    }
                    Op::Run { at, steps, publish } if lives > 0 => world.run(at % lives, steps, publish),
                    Op::Truncate { at, tokens, tail } if lives > 0 => {
                        world.truncate(at % lives, tokens, tail);
                    }
                    Op::Release { at } if lives > 0 => world.release(at % lives),
                    Op::ForgetUnused => world.forget_unused(),
                    _ => {}
                }
                world.check();
            }
            while !world.live.is_empty() {
                world.release(0);
            }
            world.check();
            world.forget_unused();
            prop_assert_eq!(world.manager.counts().free, total);
        }
    }
}
