//! Random days of an engine: requests of any kind, blocks and budgets of any size, displacements, slow readers, listeners and
//! cancels. Whatever happens, each answer is what it is alone, and a cancelled one is the beginning of that.
//!
//! ```sh
//! DOVECOTE_DAYS=500 DOVECOTE_SEED=7 cargo test --workspace --lib random_days
//! ```

use super::*;
use crate::hearing::Ear;
use crate::rng::uniform;

/// Enough for every operation to be among them.
const DAYS: u64 = 6;
const ANSWERS: u64 = 14;

/// A setting of the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// Seeded chance.
struct Dice {
    seed: u64,
    drawn: u64,
}

impl Dice {
    fn below(&mut self, below: u64) -> u64 {
        self.drawn += 1;
        (uniform(self.seed, 0, self.drawn) * below as f64) as u64
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Any request that the model takes.
fn any_request(dice: &mut Dice, ear: &mut Ear, model: usize) -> Request {
    use Modality::{Audio, Text};
    let orders: &[&[Modality]] = if model == BAGPIPER {
        &[&[], &[Text], &[Audio], &[Text, Audio], &[Audio, Text], &[Text, Audio, Audio, Text]]
    } else {
        &[&[Text], &[Text, Audio]]
    };
    let mut asked = request(dice.of(orders), dice.below(1 << 40));
    asked.max_text_tokens = Some(1 + dice.below(9) as usize);
    asked.max_audio_frames = Some(1 + dice.below(12) as usize);
    if dice.one_in(2) {
        let most = asked.max_audio_frames.unwrap() as u64;
        asked.min_audio_frames = Some(1 + dice.below(most) as usize);
    }
    asked.text.temperature = Some(dice.of(&[0.0, 0.6, 1.0]));
    asked.audio.temperature = Some(dice.of(&[0.0, 0.8, 1.0]));
    asked.audio.top_k = dice.of(&[None, Some(0), Some(5)]);
    let streams = if model == BAGPIPER { 8 } else { 9 };
    if model == BAGPIPER {
        asked.guidance = Some(dice.of(&[1.0, 1.0, 0.0, 2.5]));
    } else if dice.one_in(3) {
        (asked.task, asked.modalities) = (Task::Speak, vec![Audio]);
        return listened(dice, asked);
    }
    if model == BAGPIPER && dice.one_in(4) {
        let samples = 1 + dice.below(6000) as u16;
        let tone: Vec<f32> = (0..samples).map(|i| (f32::from(i) * 0.05).sin() * 0.3).collect();
        asked.messages[0].parts.push(ear.hear(&tone).unwrap());
    } else if dice.one_in(3) {
        // One of a few recordings, so that some prompts share their beginning.
        let (kind, frames) = (dice.below(3) as u16, 1 + dice.below(40) as u16);
        let row = |s: u16| (0..frames).map(|t| (s * kind + t * 5) % 32).collect();
        let parts = vec![Part::Codes((0..streams).map(row).collect())];
        asked.messages.insert(0, Message { role: Role::User, parts });
    }
    listened(dice, asked)
}

/// Some have a listener in real time.
fn listened(dice: &mut Dice, request: Request) -> Request {
    let max_ahead = dice.of(&[None, None, Some(Duration::from_millis(150))]);
    Request { max_ahead, priority: dice.below(10) as u8, ..request }
}

/// What a cancelled answer came to is how the whole begins.
fn check_begun(begun: &Heard, whole: &Heard, at: &str) {
    assert!(whole.frames.starts_with(&begun.frames), "{at}: other frames");
    assert!(whole.text.starts_with(&begun.text), "{at}: {:?} of {:?}", begun.text, whole.text);
    assert!(whole.segments.starts_with(&begun.segments), "{at}: {:?}", begun.segments);
}

/// One day: opens, disturbs and cancels until all are over, and holds each answer to what it is alone.
fn day(seed: u64, alone: &mut Rig) {
    let mut dice = Dice { seed, drawn: 0 };
    let budget = Budget {
        prefill_tokens: dice.of(&[2, 3, 7, 40, 256]),
        sequences: dice.of(&[2, 3, 5, 64]),
        share_prefixes: !dice.one_in(3),
    };
    let blocks = dice.of(&[24, 32, 60, 400]) as usize;
    let disturbs = dice.of(&[0, 0, 6, 20]);
    let mut rig = Rig::new(blocks, budget);
    rig.step_ms = dice.of(&[1, 10, 40]);
    let mut ear = rig.ear();
    let mut alone_ear = alone.ear();
    let (mut opened, mut cancelled) = (Vec::new(), BTreeSet::new());
    for count in 0_u64.. {
        if (opened.len() as u64) < ANSWERS && (count == 0 || dice.one_in(3)) {
            let id = ContextId(opened.len() as u64);
            let model = dice.of(&[BAGPIPER, OPUSLM]);
            // Both engines make the same request, each with what it has heard itself.
            let drawn = dice.drawn;
            let asked = any_request(&mut dice, &mut ear, model);
            let mut again = Dice { seed, drawn };
            let twin = any_request(&mut again, &mut alone_ear, model);
            if let Ok(settings) = rig.speakers[model].resolve(asked) {
                rig.open(id, settings);
                // Alone, nobody has to wait for a listener.
                opened.push((model, Request { max_ahead: None, ..twin }));
            }
        }
        let live = rig
            .heard
            .iter()
            .filter(|(id, heard)| heard.outcome.is_none() && !cancelled.contains(*id));
        let live: Vec<ContextId> = live.map(|(id, _)| *id).collect();
        if live.is_empty() && opened.len() as u64 >= ANSWERS {
            break;
        }
        if !live.is_empty() && dice.one_in(60) {
            let id = dice.of(&live);
            rig.cancel(id).unwrap();
            cancelled.insert(id);
        }
        if disturbs > 0 && dice.one_in(disturbs) {
            let scheduler = rig.engine.scheduler_mut();
            let groups: Vec<_> = scheduler.group_ids().collect();
            groups
                .into_iter()
                .filter(|_| dice.one_in(2))
                .for_each(|group| scheduler.preempt(group));
            if dice.one_in(2) {
                scheduler.forget_unused();
            }
        }
        rig.held_up = live.iter().copied().filter(|_| dice.one_in(5)).collect();
        rig.step();
        assert_eq!(rig.engine.scheduler().check_integrity(), Ok(()), "seed {seed}");
        assert!(count < 20_000, "seed {seed}: {live:?} do not come to an end");
    }
    rig.assert_idle();
    for (n, (model, request)) in opened.into_iter().enumerate() {
        let id = ContextId(n as u64);
        let at = format!("seed {seed}, answer {n} of {}", BUNDLES[model]);
        // Room for as many rows as there was: an answer ends with it.
        let mut settings = alone.resolve(model, request);
        let members = if settings.guidance.is_none() { 1 } else { 2 };
        settings.rows_max = settings.rows_max.min(rig.speakers[model].rows_max(members));
        let whole = alone.alone(settings);
        match cancelled.contains(&id) {
            true => check_begun(&rig.heard[&id], &whole, &at),
            false => assert_eq!(rig.heard[&id], whole, "{at}"),
        }
    }
}

#[test]
fn random_days_change_nothing_of_what_is_answered() {
    let (days, first) = (setting("DOVECOTE_DAYS", DAYS), setting("DOVECOTE_SEED", 1));
    let mut alone = Rig::new(ROOMY, BUDGET);
    for seed in first..first + days {
        day(seed, &mut alone);
    }
}
