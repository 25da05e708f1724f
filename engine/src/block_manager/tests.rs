//! Operation by operation, and any operations against a naive model.

use super::*;
use proptest::prelude::*;

fn content<'a>(ids: &'a [u32], positions: &'a [i32]) -> Content<'a> {
    Content { ids, beside: &[], positions }
}

/// `n` tokens of a sequence that begins like every other of the same `kind`.
fn sequence(kind: u32, n: usize) -> (Vec<u32>, Vec<i32>) {
    (0..n).map(|i| (kind * 1000 + i as u32, 1 + i as i32)).unzip()
}

fn admit(m: &mut BlockManager, (ids, positions): &(Vec<u32>, Vec<i32>)) -> (BlockTable, usize) {
    let (mut table, matched) = m.match_prefix(content(ids, positions));
    assert!(m.grow(&mut table, ids.len()));
    m.commit(&mut table, content(ids, positions), ids.len());
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
    assert_eq!(m.match_prefix(content(&text.0, &text.1)), (BlockTable::default(), 0));
}

#[test]
fn last_token_is_never_matched() {
    let mut m = BlockManager::new(4);
    let text = sequence(1, 32);
    let (table, _) = admit(&mut m, &text);
    m.release(table);
    let (table, matched) = m.match_prefix(content(&text.0, &text.1));
    assert_eq!(matched, 16);
    m.release(table);
}

#[test]
fn equal_ids_at_other_positions_do_not_match() {
    let mut m = BlockManager::new(4);
    let (ids, positions) = sequence(1, 20);
    let (table, _) = admit(&mut m, &(ids.clone(), positions.clone()));
    let moved: Vec<i32> = positions.iter().map(|p| p + 1).collect();
    assert_eq!(m.match_prefix(content(&ids, &moved)), (BlockTable::default(), 0));
    m.release(table);
}

#[test]
fn blocks_whose_positions_jump_match_their_like_alone() {
    let mut m = BlockManager::new(8);
    let (ids, run) = sequence(1, 20);
    let jumping = |at: usize| -> Vec<i32> {
        run.iter().enumerate().map(|(i, p)| p + if i < at { 0 } else { 100 }).collect()
    };
    let (table, _) = admit(&mut m, &(ids.clone(), jumping(15)));
    m.release(table);
    for (positions, tokens) in [(jumping(15), 16), (jumping(14), 0), (run.clone(), 0)] {
        let (table, matched) = m.match_prefix(content(&ids, &positions));
        assert_eq!(matched, tokens);
        m.release(table);
    }
}

#[test]
fn tokens_that_differ_in_a_further_stream_do_not_match() {
    let mut m = BlockManager::new(4);
    let (ids, positions) = sequence(1, 20);
    let beside: Vec<u32> = (0..60).collect();
    let whole = Content { ids: &ids, beside: &beside, positions: &positions };
    let (mut table, _) = m.match_prefix(whole);
    assert!(m.grow(&mut table, 20));
    m.commit(&mut table, whole, 20);
    m.release(table);
    for changed in [0, 47] {
        let mut beside = beside.clone();
        beside[changed] += 1;
        let other = Content { beside: &beside, ..whole };
        assert_eq!(m.match_prefix(other), (BlockTable::default(), 0));
    }
    let (table, matched) = m.match_prefix(whole);
    assert_eq!(matched, 16);
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
        m.commit(table, content(&ids, &positions), 17);
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
    assert_eq!(m.shortage([(&table, 49)]), 1);
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
    let (table, matched) = m.match_prefix(content(&old.0, &old.1));
    assert_eq!(matched, 16);
    m.release(table);
    let (table, matched) = m.match_prefix(content(&new.0, &new.1));
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
        let (total, cached, in_use) = (self.total, self.published.len() - held, self.own + held);
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
        let (table, computed) = self.manager.match_prefix(content(&ids, &positions));
        let blocks = self.naive.matched(&tokens);
        assert_eq!(computed, blocks * BLOCK_TOKENS);
        self.live.push(Live { tokens, table, computed, published: blocks });
        self.check_memory(self.live.len() - 1);
    }

    fn run(&mut self, at: usize, steps: usize, publish: bool) {
        let Live { tokens, table, computed, published } = &mut self.live[at];
        let to = (*computed + steps).min(tokens.len());
        let blocks = to.div_ceil(BLOCK_TOKENS).saturating_sub(table.blocks().len());
        let can = self.manager.shortage([(&*table, to)]) == 0;
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
            self.manager.commit(table, content(&ids, &positions), to);
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
        let inside = !tokens.is_multiple_of(BLOCK_TOKENS) && tokens / BLOCK_TOKENS < live.published;
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
    Admit { prefix: u32, shared: usize, own: u32, jump: usize, len: usize },
    Run { at: usize, steps: usize, publish: bool },
    Truncate { at: usize, tokens: usize, tail: u32 },
    Release { at: usize },
    ForgetUnused,
}

fn op() -> impl Strategy<Value = Op> {
    let admit = (0..3u32, 0..50usize, 0..3u32, 0..90usize, 1..70usize)
        .prop_map(|(prefix, shared, own, jump, len)| Op::Admit { prefix, shared, own, jump, len });
    let run = (0..8usize, 1..40usize, prop::bool::weighted(0.8))
        .prop_map(|(at, steps, publish)| Op::Run { at, steps, publish });
    let truncate = (0..8usize, 0..70usize, 0..3u32).prop_map(|(at, tokens, tail)| Op::Truncate {
        at,
        tokens,
        tail,
    });
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
                Op::Admit { prefix, shared, own, jump, len } if lives < 8 => {
                    // Positions go on elsewhere from one token on, as they do where a row ends.
                    let position = |i| i as i32 - if i < jump { 0 } else { 7 };
                    let token = |i| (if i < shared { prefix } else { 10 + own }, position(i));
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
