//! An answer can be stopped at any moment: all that it held is free at once.

use super::*;
use crate::hearing::Ear;
use crate::rng::uniform;

/// Answers at work at once, so that all phases of both families are among them.
const AT_ONCE: usize = 8;
const ABORTS: u64 = 1000;

/// A seeded number below `below`.
fn dice(draw: u64, stream: u64, below: u64) -> u64 {
    (uniform(77, stream, draw) * below as f64) as u64
}

fn random(rig: &Rig, ear: &mut Ear, n: u64) -> Settings {
    let orders: [&[Modality]; 3] =
        [&[Modality::Text], &[Modality::Text, Modality::Audio], &[Modality::Audio]];
    let model = dice(n, 0, 2) as usize;
    // OpusLM converses in text first, and speaks a text when it is told to.
    let order = orders[dice(n, 1, 3) as usize];
    let mut request = request(order, n);
    // Short enough that many are stopped between segments, and while they end.
    request.max_text_tokens = Some(1 + dice(n, 5, 8) as usize);
    request.max_audio_frames = Some(1 + dice(n, 6, 8) as usize);
    if model == OPUSLM && order.len() == 1 && order[0] == Modality::Audio {
        request.task = Task::Speak;
    }
    if model == BAGPIPER && dice(n, 2, 2) == 0 {
        request.guidance = Some(1.5);
    }
    if model == BAGPIPER && dice(n, 7, 3) == 0 {
        let tone: Vec<f32> = (0..4800_u16).map(|i| (f32::from(i) * 0.05).sin() * 0.3).collect();
        request.messages[0].parts.push(ear.hear(&tone).unwrap());
    }
    rig.resolve(model, request)
}

/// What is said next, as far as what was said last tells.
fn stands(rig: &Rig, id: ContextId) -> &'static str {
    let scheduler = rig.engine.scheduler();
    let mut groups = scheduler.group_ids().filter_map(|g| scheduler.group(g));
    let Some(group) = groups.find(|g| g.context == id) else { return "before its first step" };
    let main = &group.members[0];
    match (group.stage, *main.ids.last().unwrap()) {
        _ if !group.resident => "without blocks",
        _ if main.remaining() > 1 => "in its prompt",
        // The end of a text, and the pad that a drain forces.
        (BAGPIPER, 3) | (OPUSLM, 35) => "in transition",
        (BAGPIPER, 384) | (OPUSLM, 0) => "in a drain",
        (BAGPIPER, 8 | 385..) | (OPUSLM, 34 | 256..552) => "in a sound",
        _ => "elsewhere",
    }
}

#[test]
fn a_thousand_aborts_give_everything_back_at_once() {
    // Little enough memory that some are stopped while they wait for blocks.
    let mut rig = Rig::new(40, Budget { prefill_tokens: 30, ..BUDGET });
    let mut ear = rig.ear();
    let mut live: Vec<ContextId> = Vec::new();
    let (mut next, mut aborted, mut with_pairs, mut with_clips) = (0, 0, 0, 0);
    let mut stood: BTreeMap<&str, u64> = BTreeMap::new();
    while aborted < ABORTS {
        while live.len() < AT_ONCE {
            let settings = random(&rig, &mut ear, next);
            rig.open(ContextId(next), settings);
            live.push(ContextId(next));
            next += 1;
        }
        for _ in 0..dice(aborted, 3, 5) {
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
        *stood.entry(stands(&rig, victim)).or_default() += 1;
        let held = rig.engine.held_blocks(victim);
        let (streams, clips) = (rig.audio.streams(), rig.known().clips());
        let summary = rig.cancel(victim).unwrap();
        aborted += 1;
        with_clips += usize::from(rig.known().clips() < clips);
        assert_eq!(summary.kv_blocks, held);
        assert_eq!(rig.engine.held_blocks(victim), 0);
        assert_eq!(rig.audio.streams(), streams - 1);
        let scheduler = rig.engine.scheduler();
        let groups = scheduler.group_ids().filter_map(|g| scheduler.group(g));
        assert!(groups.into_iter().all(|g| g.context != victim), "no half of a pair stays");
        assert_eq!(scheduler.check_integrity(), Ok(()));
    }
    assert!(with_pairs > 30 && with_clips > 30, "{with_pairs} pairs, {with_clips} that heard");
    let phases = ["in its prompt", "in transition", "in a sound", "in a drain"];
    for phase in phases.iter().chain(&["before its first step"]) {
        assert!(stood.get(phase).is_some_and(|count| *count > 5), "{phase}: {stood:?}");
    }
    for id in live {
        rig.cancel(id).unwrap();
    }
    rig.assert_idle();
    assert_eq!(rig.known().clips(), 0, "what was heard is held by nobody");
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
