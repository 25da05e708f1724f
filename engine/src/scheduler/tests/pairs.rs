//! Guidance pairs: golden shares of a budget, what becomes of one half becomes of the other, and any operations against the
//! rules in their plainest form.

use std::cmp::Reverse;

use serde_json::Value;

use super::*;

/// Nothing is found by its content: how much a group computes follows from lengths alone.
const BUDGET: Budget = Budget { prefill_tokens: 40, sequences: 6, share_prefixes: false };

/// A sequence of so many tokens.
fn tokens(count: usize) -> Sequence {
    let ids: Vec<u32> = (0..count as u32).collect();
    Sequence::new(ids, (0..count as i32).collect(), count as i32)
}

fn pair(main: usize, companion: usize) -> Vec<Sequence> {
    vec![tokens(main), tokens(companion)]
}

fn golden() -> Value {
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/delay_pattern/pair_schedule.json");
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// Schedules, and runs what was scheduled.
fn step(s: &mut Scheduler) -> Vec<Scheduled> {
    let step = s.schedule(by_number);
    step.iter().for_each(|part| s.ran(part));
    s.check_integrity().unwrap();
    step
}

/// What each member of the group runs, if it runs.
fn run_of(step: &[Scheduled], group: GroupId) -> Option<&[usize]> {
    step.iter().find(|part| part.group == group).map(|part| &part.tokens[..])
}

#[test]
fn golden_budgets_are_shared_in_equal_parts() {
    let golden = golden();
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() > 10);
    for case in cases {
        let size = |name: &str| case[name].as_u64().unwrap() as usize;
        let (budget, needs) = (size("budget"), [size("need_main"), size("need_companion")]);
        let give: Vec<usize> = serde_json::from_value(case["give"].clone()).unwrap();
        assert_eq!(shares(budget, &needs), give, "{case}");
        // A pair that only goes on has its place in a step by its seats, not by this budget.
        if needs == [1, 1] {
            continue;
        }
        let mut s = Scheduler::new(&[600], Budget { prefill_tokens: budget, ..BUDGET });
        let group = s.add(ContextId(0), 0, pair(needs[0], needs[1]));
        let step = step(&mut s);
        // Whose part is all that it needs waits with the last token for the other.
        let whole = give == needs;
        let kept = |(&given, &need): (&usize, &usize)| given.min(need - usize::from(!whole));
        let expected: Vec<usize> = give.iter().zip(&needs).map(kept).collect();
        let expected = (give != [0, 0]).then_some(expected);
        assert_eq!(run_of(&step, group), expected.as_deref(), "{case}");
        assert_eq!(step.iter().any(|part| part.completes), whole && budget > 0, "{case}");
    }
}

/// What this file, `turn::tests` and `answer::tests` each have a test for.
#[test]
fn every_event_in_the_life_of_a_pair_is_known() {
    const EVENTS: [&str; 7] = [
        "no block for the companion",
        "victim is either half",
        "client aborts main",
        "main hits eos or the length cap",
        "one running slot left",
        "main still in chunked prefill",
        "companion still in chunked prefill while main is ready",
    ];
    let golden = golden();
    let events = golden["lifecycle"].as_array().unwrap();
    let events: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(events, EVENTS);
}

/// Neither half runs, and the blocks that the main one would have had are there for others.
#[test]
fn without_a_block_for_the_companion_neither_half_runs_or_takes_one() {
    for (prompt, before) in [(BLOCK_TOKENS, 2), (20, 0)] {
        let mut s = Scheduler::new(&[3], BUDGET);
        let group = s.add(ContextId(0), 0, pair(prompt, prompt));
        let ran = !step(&mut s).is_empty();
        assert_eq!(ran, before > 0);
        if ran {
            // Both blocks are full: each half wants another, and one is left.
            s.append(group, 7);
        }
        let single = s.add(ContextId(1), 0, vec![tokens(5)]);
        let step = step(&mut s);
        assert_eq!(run_of(&step, group), None);
        assert_eq!(s.group(group).unwrap().blocks(), before);
        assert_eq!(run_of(&step, single), Some(&[5][..]), "what the pair cannot use is free");
        assert_eq!(s.preemptions(), 0);
    }
}

/// A companion that joins and finds no room holds nothing, also none of the blocks that it could have shared.
#[test]
fn a_companion_that_finds_no_room_holds_nothing() {
    let mut s = Scheduler::new(&[6], Budget { share_prefixes: true, ..BUDGET });
    let nothing = |count: usize| Sequence::new(vec![0; count], (0..count as i32).collect(), 0);
    // Somebody's chain of nothing, of which the first block is known.
    let known = s.add(ContextId(0), 0, vec![nothing(20)]);
    step(&mut s);
    s.remove(known);
    let main = s.add(ContextId(1), 0, vec![tokens(34)]);
    let urgent = s.add(ContextId(0), 0, vec![Sequence::new(vec![9; 17], (0..17).collect(), 17)]);
    step(&mut s);
    s.append(urgent, 7);
    // Three blocks and two are taken, the known one is left: the companion of 34 needs two more.
    s.join(main, nothing(34));
    s.append(main, 8);
    let step = step(&mut s);
    assert_eq!((run_of(&step, main), run_of(&step, urgent)), (None, Some(&[1][..])));
    let members = &s.group(main).unwrap().members;
    assert_eq!(members.iter().map(|m| m.table.blocks().len()).collect::<Vec<_>>(), [3, 0]);
    assert_eq!(members[1].computed, 0);
}

#[test]
fn both_halves_of_a_victim_lose_their_blocks() {
    let mut s = Scheduler::new(&[6], BUDGET);
    let victim = s.add(ContextId(5), 0, pair(20, 20));
    step(&mut s);
    assert_eq!(s.group(victim).unwrap().blocks(), 4);
    // Three blocks: two are free, so one of the pair's would do.
    let urgent = s.add(ContextId(0), 0, vec![tokens(40)]);
    let step = step(&mut s);
    assert!(run_of(&step, urgent).is_some() && run_of(&step, victim).is_none());
    let group = s.group(victim).unwrap();
    assert_eq!((group.resident, group.blocks(), s.preemptions()), (false, 0, 1));
    assert!(group.members.iter().all(|m| m.computed == 0));
}

#[test]
fn both_tables_of_a_pair_that_goes_are_free() {
    let mut s = Scheduler::new(&[6], BUDGET);
    let group = s.add(ContextId(0), 0, pair(20, 30));
    step(&mut s);
    assert_eq!(s.remove(group), 4);
    assert_eq!((s.blocks(0).free, s.len()), (6, 0));
}

#[test]
fn with_one_seat_left_a_pair_waits_and_who_is_behind_it_may_start() {
    let mut s = Scheduler::new(&[30], Budget { sequences: 2, ..BUDGET });
    let first = s.add(ContextId(0), 0, vec![tokens(3)]);
    let pair = s.add(ContextId(1), 0, pair(3, 3));
    let behind = s.add(ContextId(2), 0, vec![tokens(3)]);
    let plan = step(&mut s);
    assert_eq!(plan.iter().map(|part| part.group).collect::<Vec<_>>(), [first, behind]);
    assert_eq!(s.group(pair).unwrap().blocks(), 0);
    s.remove(first);
    assert_eq!(run_of(&step(&mut s), pair), Some(&[3, 3][..]));
}

/// No row of a step is sampled from while either half is incomplete, and then the last rows of both are.
#[test]
fn while_one_half_is_incomplete_no_row_of_either_is_sampled_from() {
    for (main, companion) in [(100, 8), (8, 100), (8, 1), (1, 8), (50, 50)] {
        let mut s = Scheduler::new(&[30], Budget { prefill_tokens: 6, ..BUDGET });
        let group = s.add(ContextId(0), 0, pair(main, companion));
        for _ in 0..100 {
            let plan = s.schedule(by_number);
            let rows = s.batch(&plan, 0).rows;
            s.ran(&plan[0]);
            let left = s.group(group).unwrap().remaining();
            assert_eq!(plan[0].completes, left == 0);
            assert!(rows.iter().all(|row| row.logits == (left == 0)), "{rows:?}");
            if left == 0 {
                assert_eq!(rows.len(), 2, "the last rows of both run in one step");
                break;
            }
        }
        assert_eq!(s.group(group).unwrap().remaining(), 0, "it comes to its end");
    }
}

/// Who cannot be helped by all blocks of those behind takes them from nobody.
#[test]
fn nobody_is_displaced_in_vain() {
    let mut s = Scheduler::new(&[6], BUDGET);
    let urgent = s.add(ContextId(0), 0, vec![tokens(40)]);
    step(&mut s);
    let late = s.add(ContextId(9), 0, vec![tokens(17)]);
    s.append(urgent, 7);
    step(&mut s);
    // Four blocks: one is free and two are the late one's.
    let middle = s.add(ContextId(5), 0, pair(20, 20));
    s.append(urgent, 7);
    s.append(late, 7);
    let plan = step(&mut s);
    assert_eq!((run_of(&plan, late), run_of(&plan, middle)), (Some(&[1][..]), None));
    assert_eq!(s.preemptions(), 0);
    // Of shared blocks only those are gained that nobody else holds.
    let mut s = Scheduler::new(&[6], Budget { share_prefixes: true, ..BUDGET });
    let urgent = s.add(ContextId(0), 0, vec![tokens(39)]);
    let late = s.add(ContextId(9), 0, vec![tokens(39)]);
    step(&mut s);
    step(&mut s);
    s.append(urgent, 7);
    s.append(late, 7);
    let other = Sequence::new(vec![5; 60], (0..60).collect(), 60);
    s.add(ContextId(5), 0, vec![other]);
    let plan = step(&mut s);
    assert_eq!((run_of(&plan, late), s.preemptions()), (Some(&[1][..]), 0));
}

/// Who has no tokens left of the step's budget displaces nobody either.
#[test]
fn who_does_not_run_displaces_nobody() {
    let mut s = Scheduler::new(&[10], BUDGET);
    let late = s.add(ContextId(9), 0, vec![tokens(33)]);
    step(&mut s);
    s.append(late, 7);
    // Both fit only where the late one was, and the budget is all for the first.
    s.add(ContextId(0), 0, vec![tokens(60)]);
    let second = s.add(ContextId(1), 0, vec![tokens(60)]);
    let plan = step(&mut s);
    assert_eq!((run_of(&plan, second), run_of(&plan, late)), (None, Some(&[1][..])));
    assert_eq!(s.preemptions(), 0);
}

/// The rules in their plainest form: lengths, and counts of blocks.
struct Naive {
    groups: BTreeMap<GroupId, NaiveGroup>,
    blocks: usize,
    preemptions: u64,
}

struct NaiveGroup {
    context: u64,
    stage: usize,
    members: Vec<NaiveMember>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct NaiveMember {
    tokens: usize,
    computed: usize,
    blocks: usize,
}

impl NaiveMember {
    fn of(tokens: usize) -> Self {
        Self { tokens, computed: 0, blocks: 0 }
    }

    fn left(&self) -> usize {
        self.tokens - self.computed
    }
}

impl NaiveGroup {
    fn blocks(&self) -> usize {
        self.members.iter().map(|m| m.blocks).sum()
    }

    fn preempt(&mut self) {
        self.members.iter_mut().for_each(|m| (m.computed, m.blocks) = (0, 0));
    }
}

impl Naive {
    fn preempt(&mut self, id: GroupId) {
        let group = self.groups.get_mut(&id).unwrap();
        if group.blocks() > 0 {
            group.preempt();
            self.preemptions += 1;
        }
    }

    fn schedule(&mut self, parked: u64) -> Vec<Scheduled> {
        let mut runnable: Vec<GroupId> = self.groups.keys().copied().collect();
        let waits = |id: &GroupId| self.groups[id].context == parked;
        let behind: Vec<GroupId> = runnable.iter().copied().filter(waits).collect();
        runnable.retain(|id| !waits(id));
        runnable.sort_by_key(|id| (self.groups[id].context, Reverse(self.groups[id].stage), *id));
        let order = [&runnable[..], &behind].concat();
        let (mut seats, mut budget) = ([BUDGET.sequences; 2], BUDGET.prefill_tokens);
        let mut step = Vec::new();
        for (at, &group) in order[..runnable.len()].iter().enumerate() {
            let (stage, left) = (self.groups[&group].stage, self.left(group));
            let goes_on = left.iter().all(|&left| left == 1);
            let pays = goes_on || budget >= left.len();
            if !pays || seats[stage] < left.len() || !self.makes_room(group, &order[at + 1..]) {
                continue;
            }
            let mut tokens = vec![1; left.len()];
            if !goes_on {
                // A token for each, as often as all can be paid.
                tokens.fill(0);
                for _ in 0..budget / left.len() {
                    tokens
                        .iter_mut()
                        .zip(&left)
                        .for_each(|(t, &left)| *t += usize::from(*t < left));
                }
                if tokens != left {
                    tokens.iter_mut().zip(&left).for_each(|(t, &left)| *t = (*t).min(left - 1));
                }
                budget -= tokens.iter().sum::<usize>();
            }
            if tokens.iter().sum::<usize>() > 0 {
                seats[stage] -= left.len();
                step.push(Scheduled { group, stage, completes: tokens == left, tokens });
            }
        }
        step
    }

    fn left(&self, id: GroupId) -> Vec<usize> {
        self.groups[&id].members.iter().map(NaiveMember::left).collect()
    }

    fn makes_room(&mut self, id: GroupId, behind: &[GroupId]) -> bool {
        let stage = self.groups[&id].stage;
        let of_stage = |g: &&NaiveGroup| g.stage == stage;
        let held: usize = self.groups.values().filter(of_stage).map(NaiveGroup::blocks).sum();
        let wanted = |m: &NaiveMember| m.tokens.div_ceil(BLOCK_TOKENS);
        let all: usize = self.groups[&id].members.iter().map(wanted).sum();
        let mut free = self.blocks - held + self.groups[&id].blocks();
        let mut victims = Vec::new();
        for &victim in behind.iter().rev() {
            let group = &self.groups[&victim];
            if free < all && group.stage == stage && group.blocks() > 0 {
                free += group.blocks();
                victims.push(victim);
            }
        }
        if free < all {
            return false;
        }
        victims.into_iter().for_each(|victim| self.preempt(victim));
        let members = &mut self.groups.get_mut(&id).unwrap().members;
        members.iter_mut().for_each(|m| m.blocks = m.tokens.div_ceil(BLOCK_TOKENS));
        true
    }

    fn check(&self, s: &Scheduler) {
        assert_eq!(s.check_integrity(), Ok(()));
        assert_eq!(s.preemptions(), self.preemptions);
        for (id, expected) in &self.groups {
            let group = s.group(*id).unwrap();
            let seen = group.members.iter().map(|m| NaiveMember {
                tokens: m.ids.len(),
                computed: m.computed,
                blocks: m.table.blocks().len(),
            });
            assert_eq!(seen.collect::<Vec<_>>(), expected.members, "{id:?}");
            assert_eq!(group.resident, expected.blocks() > 0);
        }
        for stage in 0..2 {
            let groups = self.groups.values().filter(|g| g.stage == stage);
            let held: usize = groups.map(NaiveGroup::blocks).sum();
            assert_eq!(s.blocks(stage).in_use, held);
        }
    }
}

/// One operation on both.
fn apply(s: &mut Scheduler, naive: &mut Naive, parked: &mut u64, op: &Op) {
    let named = |at: usize| s.group_ids().nth(at % s.len().max(1));
    match *op {
        Op::Add { context, stage, main, companion } => {
            let lengths: Vec<usize> = [main].into_iter().chain(companion).collect();
            let members = lengths.iter().map(|&length| tokens(length)).collect();
            let id = s.add(ContextId(context), stage, members);
            let members = lengths.into_iter().map(NaiveMember::of).collect();
            naive.groups.insert(id, NaiveGroup { context, stage, members });
        }
        Op::Step => {
            let step = s.schedule(|c| (c.0 != *parked).then_some(c.0));
            assert_eq!(step, naive.schedule(*parked));
            for part in &step {
                s.ran(part);
                let group = naive.groups.get_mut(&part.group).unwrap();
                let members = group.members.iter_mut().zip(&part.tokens);
                members.for_each(|(m, tokens)| m.computed += tokens);
                if part.completes {
                    s.append(part.group, 7);
                    group.members.iter_mut().for_each(|m| m.tokens += 1);
                }
            }
        }
        Op::Park(context) => *parked = context,
        Op::Remove(at) => {
            if let Some(id) = named(at) {
                assert_eq!(s.remove(id), naive.groups.remove(&id).unwrap().blocks());
            }
        }
        Op::Preempt(at) => {
            if let Some(id) = named(at) {
                s.preempt(id);
                naive.preempt(id);
            }
        }
        Op::Join(at) => {
            if let Some(id) = named(at).filter(|id| naive.groups[id].members.len() == 1) {
                let members = &mut naive.groups.get_mut(&id).unwrap().members;
                s.join(id, tokens(members[0].tokens));
                members.push(NaiveMember::of(members[0].tokens));
            }
        }
        Op::Leave(at) => {
            if let Some(id) = named(at) {
                s.leave(id);
                naive.groups.get_mut(&id).unwrap().members.truncate(1);
            }
        }
    }
}

/// Steps in which whoever has waited longest goes first; the longest that anybody waited to be served.
fn longest_wait(s: &mut Scheduler, steps: u64) -> u64 {
    let mut served = vec![0; s.len()];
    let mut longest = 0;
    for now in 1..=steps {
        let plan = s.schedule(|c| Some((served[c.0 as usize], c.0)));
        for part in &plan {
            s.ran(part);
            if part.completes {
                let last = &mut served[s.group(part.group).unwrap().context.0 as usize];
                longest = longest.max(now - *last);
                *last = now;
                s.append(part.group, 7);
            }
        }
        s.check_integrity().unwrap();
    }
    served.iter().map(|last| steps - last).fold(longest, u64::max)
}

proptest! {
    #[test]
    fn steps_are_those_of_the_plain_rules(ops in ops(1..70, 1..100)) {
        const BLOCKS: usize = 11;
        let mut s = Scheduler::new(&[BLOCKS; 2], BUDGET);
        let mut naive = Naive { groups: BTreeMap::new(), blocks: BLOCKS, preemptions: 0 };
        let mut parked = 99;
        for op in &ops {
            apply(&mut s, &mut naive, &mut parked, op);
            naive.check(&s);
        }
    }

    /// Seats are short: whoever waits longest goes first, and at most one seat stays empty beside a pair.
    #[test]
    fn no_pair_starves_for_seats(pairs in prop::collection::vec(any::<bool>(), 1..12), seats in 2..8usize) {
        let mut s = Scheduler::new(&[200], Budget { sequences: seats, ..BUDGET });
        let cost = |pair: bool| 1 + usize::from(pair);
        for (context, &is_pair) in pairs.iter().enumerate() {
            let members = (0..cost(is_pair)).map(|_| tokens(1)).collect();
            s.add(ContextId(context as u64), 0, members);
        }
        let all: usize = pairs.iter().map(|&pair| cost(pair)).sum();
        let bound = (all - 1).div_ceil(seats - 1) + 1;
        let longest = longest_wait(&mut s, 60);
        prop_assert!(longest <= bound as u64, "{} steps, at most {}", longest, bound);
    }

    /// Blocks are short: whoever waits longest is displaced by nobody, and there as soon as it is computed anew.
    #[test]
    fn no_pair_starves_for_blocks(pairs in prop::collection::vec(any::<bool>(), 2..8), prompt in 1..40usize) {
        const STEPS: usize = 60;
        let longest_sequence = prompt + STEPS;
        // Room for one pair at its end.
        let mut s = Scheduler::new(&[2 * longest_sequence.div_ceil(BLOCK_TOKENS)], BUDGET);
        for (context, &is_pair) in pairs.iter().enumerate() {
            let members = (0..1 + usize::from(is_pair)).map(|_| tokens(prompt)).collect();
            s.add(ContextId(context as u64), 0, members);
        }
        let anew = longest_sequence.div_ceil(BUDGET.prefill_tokens / 2) + 1;
        let longest = longest_wait(&mut s, STEPS as u64);
        prop_assert!(longest <= (pairs.len() * anew) as u64, "{} steps", longest);
    }
}
