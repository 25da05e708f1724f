//! An answer can be stopped at any moment: all that it held is free at once.

use super::*;
use crate::rng::uniform;

/// Answers at work at once, so that all phases of both families are among them.
const AT_ONCE: usize = 8;
const ABORTS: u64 = 1000;

/// A seeded number below `below`.
fn dice(draw: u64, stream: u64, below: u64) -> u64 {
    (uniform(77, stream, draw) * below as f64) as u64
}

fn random(rig: &Rig, n: u64) -> Settings {
    let orders: [&[Modality]; 3] =
        [&[Modality::Text], &[Modality::Text, Modality::Audio], &[Modality::Audio]];
    let model = dice(n, 0, 2) as usize;
    // OpusLM converses in text first, and speaks a text when it is told to.
    let order = orders[dice(n, 1, 3) as usize];
    let mut request = request(order, n);
    if model == OPUSLM && order.len() == 1 && order[0] == Modality::Audio {
        request.task = Task::Speak;
    }
    if model == BAGPIPER && dice(n, 2, 2) == 0 {
        request.guidance = Some(1.5);
    }
    rig.resolve(model, request)
}

#[test]
fn a_thousand_aborts_give_everything_back_at_once() {
    // Little enough memory that some are stopped while they wait for blocks.
    let mut rig = Rig::new(40, Budget { prefill_tokens: 30, ..BUDGET });
    let mut live: Vec<ContextId> = Vec::new();
    let (mut next, mut aborted, mut with_pairs, mut with_sound) = (0, 0, 0, 0);
    while aborted < ABORTS {
        while live.len() < AT_ONCE {
            let settings = random(&rig, next);
            rig.open(ContextId(next), settings);
            live.push(ContextId(next));
            next += 1;
        }
        for _ in 0..1 + dice(aborted, 3, 8) {
            rig.step();
        }
        live.retain(|id| rig.heard[id].outcome.is_none());
        if live.is_empty() {
            continue;
        }
        let victim = live.swap_remove(dice(aborted, 4, live.len() as u64) as usize);
        let scheduler = rig.engine.scheduler();
        let group = scheduler.group_ids().filter_map(|g| scheduler.group(g));
        let members = group.into_iter().find(|g| g.context == victim).map_or(0, |g| g.cost());
        with_pairs += usize::from(members == 2);
        with_sound += usize::from(!rig.heard[&victim].frames.is_empty());
        let held = rig.engine.held_blocks(victim);
        let streams = rig.audio.streams();
        let summary = rig.cancel(victim).unwrap();
        aborted += 1;
        assert_eq!(summary.kv_blocks, held);
        assert_eq!(rig.engine.held_blocks(victim), 0);
        assert_eq!(rig.audio.streams(), streams - 1);
        let scheduler = rig.engine.scheduler();
        let groups = scheduler.group_ids().filter_map(|g| scheduler.group(g));
        assert!(groups.into_iter().all(|g| g.context != victim), "no half of a pair stays");
        assert_eq!(scheduler.check_integrity(), Ok(()));
    }
    assert!(with_pairs > 50 && with_sound > 50, "{with_pairs} pairs, {with_sound} sounding");
    for id in live {
        rig.cancel(id).unwrap();
    }
    rig.assert_idle();
}

#[test]
fn nothing_of_an_aborted_answer_is_heard_afterwards() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let id = ContextId(0);
    let settings = rig.resolve(BAGPIPER, request(&[Modality::Text, Modality::Audio], 3));
    rig.open(id, settings);
    while rig.heard[&id].frames.len() < 3 {
        rig.step();
    }
    rig.cancel(id).unwrap();
    let before = rig.heard[&id].clone();
    assert_eq!(rig.step().tokens, 0);
    assert_eq!(rig.heard[&id], before);
    assert!(rig.cancel(id).is_none());
}
