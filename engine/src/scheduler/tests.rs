//! Steps as a caller sees them, and any operations: the books are kept and nobody starves.

mod pairs;

use std::collections::BTreeSet;
use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::batch::BLOCK_TOKENS;

const BUDGET: Budget = Budget { prefill_tokens: 40, sequences: 6, share_prefixes: true };

fn sequence(ids: impl Iterator<Item = u32>) -> Sequence {
    let ids: Vec<u32> = ids.collect();
    let end = ids.len() as i32;
    Sequence::new(ids, (0..end).collect(), end)
}

fn by_number(context: ContextId) -> Option<u64> {
    Some(context.0)
}

fn run(scheduler: &mut Scheduler, step: &[Scheduled]) {
    step.iter().for_each(|s| scheduler.ran(s));
}

#[test]
fn what_is_there_of_a_growing_group_runs_and_is_not_sampled_from() {
    let mut s = Scheduler::new(&[8], BUDGET);
    let group = s.add(ContextId(1), 0, vec![sequence(0..50)]);
    s.grows(group, true);
    let step = |s: &mut Scheduler| {
        let step = s.schedule(by_number);
        run(s, &step);
        step.first().map(|one| (one.tokens[0], one.completes))
    };
    assert_eq!(step(&mut s), Some((40, false)));
    assert_eq!(step(&mut s), Some((10, false)), "its last token too");
    assert_eq!(step(&mut s), None);
    s.extend(group, &[50]);
    assert_eq!(step(&mut s), Some((1, false)), "a prefill, though of one token");
    s.preempt(group);
    s.extend(group, &[51, 52]);
    s.grows(group, false);
    // Whole blocks of what had run are found again.
    assert_eq!(step(&mut s), Some((53 - 3 * BLOCK_TOKENS, true)));
    assert_eq!(s.tokens(0), Tokens { prefill: 56, prefix: 48, ..Tokens::default() });
    s.append(group, 53);
    assert_eq!(step(&mut s), Some((1, true)));
    assert_eq!(s.tokens(0).decode, 1);
    s.remove(group);
    assert_eq!((s.check_integrity(), s.blocks(0).in_use), (Ok(()), 0));
}

#[test]
fn a_long_prefill_is_cut_to_the_budget_and_decodes_go_on_beside_it() {
    let mut s = Scheduler::new(&[32], BUDGET);
    let short = s.add(ContextId(1), 0, vec![sequence(0..4)]);
    let long = s.add(ContextId(2), 0, vec![sequence(100..200)]);
    let step = s.schedule(by_number);
    assert_eq!(step[0], Scheduled { group: short, stage: 0, tokens: vec![4], completes: true });
    assert_eq!(step[1], Scheduled { group: long, stage: 0, tokens: vec![36], completes: false });
    run(&mut s, &step);
    s.append(short, 7);
    let step = s.schedule(by_number);
    assert_eq!(step[0].tokens, [1]);
    assert_eq!(step[1].tokens, [40]);
    run(&mut s, &step);
    let step = s.schedule(by_number);
    assert_eq!(step[0], Scheduled { group: long, stage: 0, tokens: vec![24], completes: true });
    assert_eq!(s.batch(&step, 0).rows[0].computed, 76);
}

#[test]
fn both_halves_of_a_pair_reach_their_last_token_in_one_step() {
    let mut s = Scheduler::new(&[32], BUDGET);
    s.add(ContextId(1), 0, vec![sequence(0..60), sequence(500..530)]);
    let mut steps = Vec::new();
    loop {
        let step = s.schedule(by_number);
        run(&mut s, &step);
        steps.push(step[0].tokens.clone());
        if step[0].completes {
            break;
        }
    }
    assert_eq!(steps, [[20, 20], [20, 9], [20, 1]]);
}

#[test]
fn an_urgent_group_displaces_the_least_urgent_of_its_stage_and_parked_ones_first() {
    let mut s = Scheduler::new(&[4], BUDGET);
    let parked = s.add(ContextId(1), 0, vec![sequence(0..16)]);
    let late = s.add(ContextId(9), 0, vec![sequence(100..132)]);
    let step = s.schedule(by_number);
    run(&mut s, &step);
    let urgent = s.add(ContextId(0), 0, vec![sequence(200..232)]);
    s.schedule(|c| (c.0 != 1).then_some(c.0));
    let resident = |id| s.group(id).unwrap().resident;
    assert_eq!((resident(parked), resident(late), resident(urgent)), (false, true, true));
    assert_eq!((s.preemptions(), s.check_integrity()), (1, Ok(())));
}

#[test]
fn a_group_that_was_displaced_finds_what_is_left_of_its_work() {
    let mut s = Scheduler::new(&[8], BUDGET);
    let id = s.add(ContextId(1), 0, vec![sequence(0..35)]);
    let step = s.schedule(by_number);
    run(&mut s, &step);
    s.preempt(id);
    let step = s.schedule(by_number);
    assert_eq!(step[0].tokens, [35 - 2 * BLOCK_TOKENS]);
}

/// Two seats are seldom free at once where single groups always want one; a pair that has waited longest gets them first.
#[test]
fn a_pair_gets_its_turn_among_single_groups_that_never_rest() {
    const STEPS: u64 = 64;
    const SINGLES: u64 = 6;
    let mut s = Scheduler::new(&[64], Budget { sequences: 3, ..BUDGET });
    for context in 0..SINGLES {
        let start = context as u32 * 1000;
        s.add(ContextId(context), 0, vec![sequence(start..start + 4)]);
    }
    s.add(ContextId(SINGLES), 0, vec![sequence(9000..9020), sequence(9500..9520)]);
    let mut served = vec![(0, 0); SINGLES as usize + 1];
    for step in 1..=STEPS {
        let plan = s.schedule(|c| Some((served[c.0 as usize].0, c.0)));
        for part in &plan {
            s.ran(part);
            if part.completes {
                let context = s.group(part.group).unwrap().context;
                let (last, times) = &mut served[context.0 as usize];
                (*last, *times) = (step, *times + 1);
                s.append(part.group, 7);
            }
        }
    }
    // Eight seats are wanted, three are there, and one of them may stay empty beside a pair.
    let least = STEPS * 2 / (SINGLES + 2) - 1;
    assert!(served.iter().all(|(_, times)| *times >= least), "{served:?}, least {least}");
}

/// A random operation.
#[derive(Debug, Clone)]
enum Op {
    Add { context: u64, stage: usize, main: usize, companion: Option<usize> },
    Step,
    Remove(usize),
    Park(u64),
    Preempt(usize),
    Join(usize),
    Leave(usize),
}

/// So many operations on sequences of such lengths.
fn ops(lengths: Range<usize>, count: Range<usize>) -> impl Strategy<Value = Vec<Op>> {
    let add = (0..5u64, 0..2usize, lengths.clone(), prop::option::of(lengths));
    let op = prop_oneof![
        3 => add.prop_map(|(context, stage, main, companion)| Op::Add { context, stage, main, companion }),
        8 => Just(Op::Step),
        1 => any::<usize>().prop_map(Op::Remove),
        1 => (0..6u64).prop_map(Op::Park),
        1 => any::<usize>().prop_map(Op::Preempt),
        1 => any::<usize>().prop_map(Op::Join),
        1 => any::<usize>().prop_map(Op::Leave),
    ];
    prop::collection::vec(op, count)
}

/// Holds every rule of a step against what the groups looked like before it.
fn check_step(s: &Scheduler, step: &[Scheduled], parked: u64) {
    let mut seen = BTreeSet::new();
    let mut prefill = 0;
    for stage in 0..2 {
        let of_stage = || step.iter().filter(move |p| p.stage == stage);
        let seats: usize = of_stage().map(|p| p.tokens.len()).sum();
        assert!(seats <= BUDGET.sequences, "stage {stage}: {seats} sequences");
        let batch = s.batch(step, stage);
        let rows: usize = of_stage().map(|p| p.tokens.iter().filter(|&&t| t > 0).count()).sum();
        assert_eq!(batch.rows.len(), rows);
    }
    for p in step {
        assert!(seen.insert(p.group), "a group runs once in a step");
        let g = s.group(p.group).unwrap();
        assert!(g.resident && g.context.0 != parked);
        let left: Vec<usize> =
            g.members.iter().zip(&p.tokens).map(|(m, t)| m.remaining() - t).collect();
        assert_eq!(p.tokens.len(), g.members.len(), "no half of a pair runs alone");
        assert!(left.iter().all(|&l| (l == 0) == p.completes), "no half of a pair ends alone");
        for m in &g.members {
            assert!(m.table.capacity() >= m.ids.len());
        }
        if !g.decodes() {
            prefill += p.tokens.iter().sum::<usize>();
        }
    }
    assert!(prefill <= BUDGET.prefill_tokens);
}

proptest! {
    #[test]
    fn any_operations_keep_the_books_and_nobody_starves(ops in ops(1..90, 1..80)) {
        let mut s = Scheduler::new(&[14, 14], BUDGET);
        let mut live: Vec<(GroupId, usize)> = Vec::new();
        let mut parked = 99;
        let mut fresh = 0;
        let mut apply = |s: &mut Scheduler, live: &mut Vec<(GroupId, usize)>, parked: u64| {
            let step = s.schedule(|c| (c.0 != parked).then_some(c.0));
            check_step(s, &step, parked);
            for p in &step {
                s.ran(p);
                if !p.completes {
                    continue;
                }
                let at = live.iter().position(|(id, _)| *id == p.group).unwrap();
                live[at].1 -= 1;
                if live[at].1 == 0 {
                    s.remove(p.group);
                    live.swap_remove(at);
                } else {
                    s.append(p.group, fresh);
                    fresh += 1;
                }
            }
            !step.is_empty()
        };
        for op in ops {
            match op {
                Op::Add { context, stage, main, companion } => {
                    // Prompts of one context share their beginning, so that blocks are shared too.
                    let base = context as u32 * 1000;
                    let mut members = vec![sequence(base..base + main as u32)];
                    members.extend(companion.map(|length| sequence(9000..9000 + length as u32)));
                    live.push((s.add(ContextId(context), stage, members), 1 + main % 7));
                }
                Op::Step => { apply(&mut s, &mut live, parked); }
                Op::Remove(at) if !live.is_empty() => {
                    let (id, _) = live.swap_remove(at % live.len());
                    s.remove(id);
                }
                Op::Preempt(at) if !live.is_empty() => s.preempt(live[at % live.len()].0),
                Op::Park(context) => parked = context,
                Op::Join(at) if !live.is_empty() => {
                    let id = live[at % live.len()].0;
                    let group = s.group(id).unwrap();
                    if group.cost() == 1 {
                        // As long as the main half, and nothing in any row: one chain of blocks serves all.
                        let companion = sequence(std::iter::repeat_n(0, group.members[0].ids.len()));
                        s.join(id, companion);
                    }
                }
                Op::Leave(at) if !live.is_empty() => {
                    let id = live[at % live.len()].0;
                    let kept = s.group(id).unwrap().members[0].table.blocks().len();
                    s.leave(id);
                    let group = s.group(id).unwrap();
                    prop_assert_eq!((group.cost(), group.blocks()), (1, kept));
                }
                Op::Remove(_) | Op::Preempt(_) | Op::Join(_) | Op::Leave(_) => {}
            }
            prop_assert_eq!(s.check_integrity(), Ok(()));
        }
        // With nobody parked, whoever is left comes to an end.
        while !live.is_empty() {
            prop_assert!(apply(&mut s, &mut live, 99), "{} groups wait for nothing", live.len());
        }
        for stage in 0..2 {
            prop_assert_eq!(s.blocks(stage).in_use, 0);
        }
    }
}
