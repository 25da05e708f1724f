//! Who runs in the next step, and on which blocks. Pure: the order of the groups comes from outside, the numbers run elsewhere.
//!
//! A step takes decode tokens of every group that has a seat, and prefill tokens up to a budget. A group whose blocks do not
//! fit displaces the least urgent ones of its stage, if that makes room; a displaced group keeps its tokens and is computed
//! again later.
//!
//! ```text
//! most urgent                                                      least urgent
//! [g7 decode][g2 prefill 180 of 300][g9 decode] ... [g4 preempted: its blocks went to g2]
//! ```

use std::collections::BTreeMap;

use crate::ContextId;
use crate::batch::{Batch, BatchRow};
use crate::block_manager::{BlockCounts, BlockManager, BlockTable, Content};
use crate::sequence::{Group, GroupId, Sequence};
use crate::stats::Tokens;

/// Limits of one step.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Prefill tokens in a step, all stages together. Bounds how long a step takes, so how long a decode can be held up.
    pub prefill_tokens: usize,
    /// Sequences of one stage in a step.
    pub sequences: usize,
    /// Whether sequences with an equal beginning share its blocks. Without it every prefill is computed in full.
    pub share_prefixes: bool,
}

/// One group's part of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduled {
    /// Which group.
    pub group: GroupId,
    /// Which stage.
    pub stage: usize,
    /// Tokens to run of each member, in order.
    pub tokens: Vec<usize>,
    /// Whether every member reaches its last token, so that the next one can be sampled.
    pub completes: bool,
}

/// The groups and the blocks of all stages.
pub struct Scheduler {
    stages: Vec<BlockManager>,
    groups: BTreeMap<GroupId, Group>,
    budget: Budget,
    next_id: u64,
    preemptions: u64,
    /// Of each stage.
    tokens: Vec<Tokens>,
}

impl Scheduler {
    /// A scheduler of one stage for each entry of `blocks`, the number of blocks it has.
    pub fn new(blocks: &[usize], budget: Budget) -> Self {
        Self {
            stages: blocks.iter().map(|&n| BlockManager::new(n)).collect(),
            groups: BTreeMap::new(),
            budget,
            next_id: 0,
            preemptions: 0,
            tokens: vec![Tokens::default(); blocks.len()],
        }
    }

    /// Takes in a group; it runs when [`Scheduler::schedule`] finds it a place.
    pub fn add(&mut self, context: ContextId, stage: usize, members: Vec<Sequence>) -> GroupId {
        let id = GroupId(self.next_id);
        self.next_id += 1;
        let (resident, growing) = (false, false);
        self.groups.insert(id, Group { id, context, stage, members, resident, growing });
        id
    }

    /// Removes a group; its blocks are free at once. Returns how many it held.
    pub fn remove(&mut self, id: GroupId) -> usize {
        let Some(mut group) = self.groups.remove(&id) else { return 0 };
        let blocks = group.blocks();
        release(&mut self.stages[group.stage], &mut group);
        blocks
    }

    /// A group, to read.
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        self.groups.get(&id)
    }

    /// Appends the sampled token to every member of a group.
    ///
    /// # Panics
    /// When there is no such group: what was sampled from has just run.
    pub fn append(&mut self, id: GroupId, token: u32) {
        self.append_row(id, &[token]);
    }

    /// Appends what was sampled, an id of each stream, to every member of a group.
    ///
    /// # Panics
    /// When there is no such group: what was sampled from has just run.
    pub fn append_row(&mut self, id: GroupId, row: &[u32]) {
        self.groups.get_mut(&id).expect("it has just run; this is a bug").append(row);
    }

    /// Appends rows of a prompt, `[rows, streams]`, to every member of a group.
    pub fn extend(&mut self, id: GroupId, rows: &[u32]) {
        if let Some(group) = self.groups.get_mut(&id) {
            let streams = 1 + group.members[0].others();
            rows.chunks_exact(streams).for_each(|row| group.append(row));
        }
    }

    /// Tells whether more of a group's prompt is to come, so that nothing is sampled from it yet.
    pub fn grows(&mut self, id: GroupId, growing: bool) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.growing = growing;
        }
    }

    /// Tells whether what a group says next is a symbol or a code, no text.
    pub fn narrow(&mut self, id: GroupId, narrow: bool) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.members.iter_mut().for_each(|m| m.narrow = narrow);
        }
    }

    /// Adds a member to a group; from the next step on it runs with the others.
    pub fn join(&mut self, id: GroupId, member: Sequence) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.members.push(member);
        }
    }

    /// Removes all members of a group but the first; their blocks are free at once.
    pub fn leave(&mut self, id: GroupId) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        for member in group.members.drain(1..) {
            self.stages[group.stage].release(member.table);
        }
    }

    /// Names of all groups, oldest first.
    pub fn group_ids(&self) -> impl Iterator<Item = GroupId> {
        self.groups.keys().copied()
    }

    /// How many groups there are, running or waiting.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Block counts of a stage.
    pub fn blocks(&self, stage: usize) -> BlockCounts {
        self.stages[stage].counts()
    }

    /// Groups of a stage that hold blocks for two sequences: what is said, and its companion.
    pub fn pairs(&self, stage: usize) -> usize {
        let is_pair = |group: &&Group| group.stage == stage && group.resident && group.cost() == 2;
        self.groups.values().filter(is_pair).count()
    }

    /// Times a group lost its blocks to a more urgent one.
    pub fn preemptions(&self) -> u64 {
        self.preemptions
    }

    /// Tokens of a stage since the start.
    pub fn tokens(&self, stage: usize) -> Tokens {
        self.tokens[stage]
    }

    /// Prefill tokens computed since the start, all stages together.
    pub fn prefilled(&self) -> u64 {
        self.tokens.iter().map(|t| t.prefill).sum()
    }

    /// Groups that have no blocks, since they are new or were displaced.
    pub fn waiting(&self) -> usize {
        self.groups.values().filter(|g| !g.resident).count()
    }

    /// Picks the next step's work, most urgent first, and gives it blocks. `urgency` orders contexts, smaller first;
    /// `None` parks a context: its groups do not run, and keep their blocks unless a running one needs them.
    pub fn schedule<K: Ord>(&mut self, urgency: impl Fn(ContextId) -> Option<K>) -> Vec<Scheduled> {
        let mut order = Vec::with_capacity(self.groups.len());
        let mut parked = Vec::new();
        for group in self.groups.values() {
            match urgency(group.context) {
                // Later stages first: they are nearest to sound.
                Some(key) => order.push((key, std::cmp::Reverse(group.stage), group.id)),
                None => parked.push(group.id),
            }
        }
        order.sort_unstable();
        let runnable = order.len();
        let order: Vec<GroupId> = order.into_iter().map(|(_, _, id)| id).chain(parked).collect();
        let mut seats = vec![self.budget.sequences; self.stages.len()];
        let mut prefill = self.budget.prefill_tokens;
        let mut step = Vec::new();
        for (at, &id) in order[..runnable].iter().enumerate() {
            let group = &self.groups[&id];
            let (stage, cost) = (group.stage, group.cost());
            // Whoever cannot run in this step displaces nobody.
            let affordable = group.decodes() || prefill >= cost;
            if seats[stage] < cost || !affordable || !self.make_room(id, &order[at + 1..]) {
                continue;
            }
            if let Some(scheduled) = piece(&self.groups[&id], &mut prefill) {
                seats[stage] -= cost;
                step.push(scheduled);
            }
        }
        step
    }

    /// The ragged batch of a stage, and which of the step's entries each of its output rows belongs to.
    pub fn batch(&self, step: &[Scheduled], stage: usize) -> Batch {
        let mut batch = Batch::default();
        for scheduled in step.iter().filter(|s| s.stage == stage) {
            let group = &self.groups[&scheduled.group];
            for (member, &tokens) in group.members.iter().zip(&scheduled.tokens) {
                if tokens == 0 {
                    continue;
                }
                let run = member.computed..member.computed + tokens;
                let start = batch.ids.len();
                // A piece of a prefill may not have reached yet what the last token watches.
                let watched = if scheduled.completes { member.watched.clone() } else { 0..0 };
                let others = member.others();
                batch
                    .beside
                    .extend_from_slice(&member.beside[run.start * others..run.end * others]);
                batch.ids.extend_from_slice(&member.ids[run.clone()]);
                batch.positions.extend_from_slice(&member.positions[run.clone()]);
                batch.rows.push(BatchRow {
                    tokens: start..start + tokens,
                    computed: member.computed,
                    blocks: member.table.blocks().to_vec(),
                    logits: scheduled.completes,
                    outputs_before: 0,
                    narrow: member.narrow,
                    watched,
                });
            }
        }
        batch
    }

    /// Records that a part of a step has run: its keys and values are stored, and whole blocks can be shared.
    pub fn ran(&mut self, scheduled: &Scheduled) {
        let Some(group) = self.groups.get_mut(&scheduled.group) else { return };
        let (decodes, ran) = (group.decodes(), scheduled.tokens.iter().sum::<usize>() as u64);
        let tokens = &mut self.tokens[group.stage];
        *if decodes { &mut tokens.decode } else { &mut tokens.prefill } += ran;
        let manager = &mut self.stages[group.stage];
        for (member, &tokens) in group.members.iter_mut().zip(&scheduled.tokens) {
            member.computed += tokens;
            if !self.budget.share_prefixes {
                continue;
            }
            let content =
                Content { ids: &member.ids, beside: &member.beside, positions: &member.positions };
            manager.commit(&mut member.table, content, member.computed);
        }
    }

    /// Takes a group's blocks away; it waits and is computed again when there is room.
    pub fn preempt(&mut self, id: GroupId) {
        let Some(group) = self.groups.get_mut(&id).filter(|g| g.resident) else { return };
        release(&mut self.stages[group.stage], group);
        self.preemptions += 1;
    }

    /// Forgets what unused blocks hold.
    pub fn forget_unused(&mut self) {
        self.stages.iter_mut().for_each(BlockManager::forget_unused);
    }

    /// Proves that blocks and groups agree.
    ///
    /// # Errors
    /// What is wrong, for a test or a crash report.
    pub fn check_integrity(&self) -> Result<(), String> {
        for (stage, manager) in self.stages.iter().enumerate() {
            let groups = self.groups.values().filter(|g| g.stage == stage);
            let tables = groups.flat_map(|g| g.members.iter().map(|m| &m.table));
            manager.check_integrity(tables).map_err(|e| format!("stage {stage}: {e}"))?;
        }
        match self.groups.values().find(|g| !g.resident && g.blocks() > 0) {
            Some(group) => Err(format!("group {:?} waits but holds blocks", group.id)),
            None => Ok(()),
        }
    }

    /// Gives a group blocks for all its tokens, displacing less urgent groups from the end if need be. All or nothing: a group
    /// that would not fit even then displaces nobody, and holds what it held.
    fn make_room(&mut self, id: GroupId, less_urgent: &[GroupId]) -> bool {
        const LIVE: &str = "the order lists live groups; this is a bug";
        let group = self.groups.get_mut(&id).expect(LIVE);
        let (stage, waited) = (group.stage, !group.resident);
        let found = find_prefixes(&mut self.stages[stage], group);
        let shortage = self.stages[stage].shortage(wanted(group));
        let victims = self.victims(stage, shortage, less_urgent);
        victims.iter().flatten().for_each(|&victim| self.preempt(victim));
        let (group, manager) = (self.groups.get_mut(&id).expect(LIVE), &mut self.stages[stage]);
        if victims.is_none() {
            found.into_iter().for_each(|member| let_go(manager, &mut group.members[member]));
            return false;
        }
        for member in &mut group.members {
            assert!(manager.grow(&mut member.table, member.ids.len()), "room was made for all");
        }
        group.resident = true;
        if waited {
            let known = group.members.iter().map(|m| m.computed as u64).sum::<u64>();
            self.tokens[stage].prefix += known;
        }
        true
    }

    /// The least urgent groups of a stage whose blocks make up for a shortage; `None` when those of all would not.
    fn victims(
        &self,
        stage: usize,
        shortage: usize,
        less_urgent: &[GroupId],
    ) -> Option<Vec<GroupId>> {
        let candidates = less_urgent.iter().rev().map(|id| &self.groups[id]);
        let mut candidates = candidates.filter(|group| group.stage == stage && group.resident);
        let mut victims = Vec::new();
        if shortage == 0 {
            return Some(victims);
        }
        if candidates.clone().map(Group::blocks).sum::<usize>() < shortage {
            return None;
        }
        let manager = &self.stages[stage];
        let (mut held, mut freed) = (vec![0; manager.counts().total], 0);
        while freed < shortage {
            let victim = candidates.next()?;
            for &block in victim.members.iter().flat_map(|m| m.table.blocks()) {
                // What somebody else holds too stays where it is.
                held[block as usize] += 1;
                freed += usize::from(held[block as usize] == manager.holders(block));
            }
            victims.push(victim.id);
        }
        Some(victims)
    }
}

/// Takes what the prefix cache has for members that hold no block; which ones they are.
fn find_prefixes(manager: &mut BlockManager, group: &mut Group) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, member) in group.members.iter_mut().enumerate() {
        if member.table.blocks().is_empty() {
            (member.table, member.computed) = manager.match_prefix(member.content());
            found.push(at);
        }
    }
    found
}

/// The tables of a group, each with the tokens that it must have room for.
fn wanted(group: &Group) -> impl Iterator<Item = (&BlockTable, usize)> {
    group.members.iter().map(|member| (&member.table, member.ids.len()))
}

fn release(manager: &mut BlockManager, group: &mut Group) {
    group.members.iter_mut().for_each(|member| let_go(manager, member));
    group.resident = false;
}

fn let_go(manager: &mut BlockManager, member: &mut Sequence) {
    manager.release(std::mem::take(&mut member.table));
    member.computed = 0;
}

/// How much of a group runs now. The last tokens of all members run in the same step, so a guidance pair always shares the
/// forward that is sampled from: whoever could be there first keeps its last token back.
fn piece(group: &Group, prefill: &mut usize) -> Option<Scheduled> {
    let of =
        |tokens, completes| Scheduled { group: group.id, stage: group.stage, tokens, completes };
    let remaining: Vec<usize> = group.members.iter().map(Sequence::remaining).collect();
    if group.decodes() {
        return Some(of(remaining, true));
    }
    let mut tokens = shares(*prefill, &remaining);
    let completes = tokens == remaining && !group.growing;
    // Of a group that grows nothing is sampled, so no token waits for the other half's.
    if !completes && !group.growing {
        let kept = tokens.iter_mut().zip(&remaining);
        kept.for_each(|(tokens, &all)| *tokens = (*tokens).min(all.saturating_sub(1)));
    }
    let taken = tokens.iter().sum::<usize>();
    *prefill -= taken;
    (taken > 0).then(|| of(tokens, completes))
}

/// What the members of a group get of a budget: equal parts of it at most, so that no half of a pair waits for the whole of the
/// other; nothing when there is not one token for each.
fn shares(budget: usize, needs: &[usize]) -> Vec<usize> {
    let part = budget / needs.len();
    needs.iter().map(|&need| need.min(part)).collect()
}

#[cfg(test)]
mod tests;
