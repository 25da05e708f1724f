//! Recordings that come in while they are made: what is answered depends on the sound alone, and nothing stays of what is given up.

use proptest::prelude::*;

use super::hearing::tone_of;
use super::*;
use crate::batch::BLOCK_TOKENS;
use crate::hearing::{Ear, Progress};

/// More than a window of the tiny tower, at 24 kHz.
const LONG: usize = 24_000 * 9;
/// Within a window.
const SHORT: usize = 30_000;
/// Samples a piece where it does not matter: a fifth of a second.
const PIECE: usize = 4_800;

/// Two recordings with text before, between and behind them.
fn asked() -> Request {
    let text = |text: &str| Part::Text(text.into());
    let parts = vec![text("listen"), live(), text("and to this"), live(), text("so")];
    let messages = vec![Message { role: Role::User, parts }];
    let order = [Modality::Text, Modality::Audio];
    let limits = (Some(12), Some(8));
    Request {
        messages,
        max_text_tokens: limits.0,
        max_audio_frames: limits.1,
        ..request(&order, 4)
    }
}

fn live() -> Part {
    Part::Live(Vec::new())
}

fn sounds() -> [Vec<f32>; 2] {
    [tone_of(LONG, 0.04), tone_of(SHORT, 0.11)]
}

/// The hearing thread's part, at the pace of the steps.
struct Mouth {
    id: ContextId,
    ear: Ear,
    progress: Progress,
    sounds: Vec<Vec<f32>>,
    at: (usize, usize),
}

impl Mouth {
    /// Opens a context for these sounds.
    fn open(rig: &mut Rig, id: u64, request: &Request, sounds: &[Vec<f32>]) -> Self {
        let bundle = SpeechBundle::open(&fixture("bundles/bagpiper")).unwrap();
        let known = rig.speakers[BAGPIPER].heard.clone();
        let ear = Ear::of(&bundle, known).unwrap();
        let (id, settings) = (ContextId(id), rig.resolve(BAGPIPER, request.clone()));
        assert!(settings.growing);
        rig.open(id, settings);
        let progress = Progress::new(rig.speakers[BAGPIPER].clone(), BAGPIPER, request.clone());
        Self { id, ear, progress, sounds: sounds.to_vec(), at: (0, 0) }
    }

    /// Says the next piece; nothing when all is said.
    fn say(&mut self, rig: &mut Rig, piece: usize) {
        let (recording, at) = self.at;
        let Some(sound) = self.sounds.get(recording) else { return };
        let end = sound.len().min(at + piece);
        let ended = end == sound.len();
        self.at = if ended { (recording + 1, 0) } else { (recording, end) };
        let heard = self.progress.hear(&mut self.ear, recording, &sound[at..end], ended);
        if let Some(settings) = heard.unwrap() {
            let now = rig.now();
            rig.engine.heard(self.id, settings, now);
        }
    }

    fn is_silent(&self) -> bool {
        self.at.0 == self.sounds.len()
    }
}

/// What is answered to sounds that come in such pieces, a piece before each step.
fn answered(rig: &mut Rig, id: u64, sounds: &[Vec<f32>], pieces: &[usize]) -> Heard {
    let mut mouth = Mouth::open(rig, id, &asked(), sounds);
    let mut pieces = pieces.iter().copied().cycle();
    while !mouth.is_silent() {
        mouth.say(rig, pieces.next().unwrap());
        rig.step();
        assert_eq!(rig.engine.scheduler().check_integrity(), Ok(()));
        assert!(rig.heard[&mouth.id].segments.is_empty(), "nothing is said before all is heard");
    }
    rig.run();
    rig.heard.remove(&mouth.id).unwrap()
}

fn at_once(rig: &mut Rig) -> Heard {
    answered(rig, 900, &sounds(), &[usize::MAX])
}

fn rows_in(rig: &Rig) -> usize {
    let scheduler = rig.engine.scheduler();
    let groups = scheduler.group_ids().filter_map(|id| scheduler.group(id));
    groups.map(|group| group.members[0].computed).sum()
}

#[test]
fn what_is_known_is_computed_while_more_is_to_come() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let mut mouth = Mouth::open(&mut rig, 1, &asked(), &sounds());
    rig.step();
    let before = rows_in(&rig);
    assert!(before > 4, "the text before the recording");
    assert_eq!(rig.step().tokens, 0, "nobody waits for it");
    while mouth.at.0 == 0 && mouth.at.1 < 24_000 * 8 + 1_200 {
        mouth.say(&mut rig, PIECE);
    }
    rig.step();
    assert_eq!(rows_in(&rig), before + 104, "a window of the tower");
    while mouth.at.0 == 0 {
        mouth.say(&mut rig, PIECE);
    }
    rig.step();
    assert!(rows_in(&rig) > before + 117, "the rest of the recording, and the text behind it");
    assert!(rig.engine.held_blocks(mouth.id) >= (before + 117) / BLOCK_TOKENS);
    assert_eq!(rig.engine.scheduler().tokens(BAGPIPER).decode, 0, "nothing is sampled");
    rig.cancel(mouth.id).unwrap();
    drop(mouth);
    rig.assert_idle();
    assert_eq!(rig.speakers[BAGPIPER].heard.clips(), 0);
}

#[test]
fn within_a_window_live_sound_is_answered_as_the_recording_is() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let [_, short] = sounds();
    let mut whole = asked();
    for part in [1, 3] {
        whole.messages[0].parts[part] = rig.hear(&short);
    }
    let settings = rig.resolve(BAGPIPER, whole);
    let expected = rig.alone(settings);
    let heard = answered(&mut rig, 1, &[short.clone(), short], &[PIECE]);
    assert_eq!(heard, expected);
}

#[test]
fn live_sound_is_answered_the_same_alone_in_a_crowd_in_splits_and_displaced() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let expected = at_once(&mut rig);
    assert!(matches!(expected.outcome, Some(Ok(_))), "{expected:?}");
    for (blocks, prefill_tokens, displaces) in
        [(ROOMY, 5, false), (ROOMY, 256, true), (30, 64, false)]
    {
        let mut rig = Rig::new(blocks, Budget { prefill_tokens, ..BUDGET });
        let mut mouth = Mouth::open(&mut rig, 0, &asked(), &sounds());
        rig.run_with_idle(|rig, step| {
            mouth.say(rig, PIECE);
            if step.is_multiple_of(4) && step < 60 {
                let neighbour = request(&[Modality::Text, Modality::Audio], step);
                let neighbour = Request { max_audio_frames: Some(6), ..neighbour };
                let settings = rig.resolve((step as usize / 4) % 2, neighbour);
                rig.open(ContextId(100 + step), settings);
            }
            if displaces && step.is_multiple_of(3) && step < 120 {
                let groups: Vec<_> = rig.engine.scheduler().group_ids().collect();
                groups.into_iter().for_each(|g| rig.engine.scheduler_mut().preempt(g));
            }
            mouth.is_silent()
        });
        assert_eq!(rig.heard[&ContextId(0)], expected, "{blocks} blocks, {prefill_tokens} tokens");
        assert_eq!(rig.engine.scheduler().preemptions() > 0, displaces || blocks < ROOMY);
    }
}

impl Rig {
    /// Steps until every context is over and `disturb` has nothing more to say.
    fn run_with_idle(&mut self, mut disturb: impl FnMut(&mut Self, u64) -> bool) {
        for count in 0.. {
            let is_silent = disturb(self, count);
            if is_silent && self.engine.contexts() == 0 {
                break;
            }
            self.step();
            assert_eq!(self.engine.scheduler().check_integrity(), Ok(()));
            assert!(count < 20_000, "{} contexts do not come to an end", self.engine.contexts());
        }
        self.assert_idle();
    }
}

#[test]
fn whoever_listens_is_behind_everybody_who_is_waited_for() {
    let mut rig = Rig::new(ROOMY, Budget { prefill_tokens: 4, ..BUDGET });
    let mouth = Mouth::open(&mut rig, 0, &asked(), &sounds());
    let settings = rig.resolve(BAGPIPER, request(&[Modality::Text], 1));
    rig.open(ContextId(1), settings);
    rig.step();
    let scheduler = rig.engine.scheduler();
    let group =
        |id| scheduler.group_ids().filter_map(|g| scheduler.group(g)).find(|g| g.context == id);
    assert_eq!(group(mouth.id).unwrap().members[0].computed, 0);
    assert_eq!(group(ContextId(1)).unwrap().members[0].computed, 4);
}

#[test]
fn a_recording_that_leaves_no_room_for_an_answer_is_told() {
    // 10 blocks are 160 rows: the first window fits, the rest does not.
    let mut rig = Rig::new(10, BUDGET);
    let request = Request { max_text_tokens: None, max_audio_frames: None, ..asked() };
    let mut mouth = Mouth::open(&mut rig, 1, &request, &sounds());
    let failed = loop {
        let (recording, at) = mouth.at;
        let end = (at + PIECE).min(mouth.sounds[recording].len());
        let ended = end == mouth.sounds[recording].len();
        mouth.at = if ended { (recording + 1, 0) } else { (recording, end) };
        let sound = mouth.sounds[recording][at..end].to_vec();
        match mouth.progress.hear(&mut mouth.ear, recording, &sound, ended) {
            Ok(_) => {}
            Err(failed) => break failed,
        }
    };
    assert!(failed.contains("room for"), "{failed}");
    rig.cancel(mouth.id);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn pieces_of_any_length_are_answered_as_one(pieces in prop::collection::vec(1_usize..60_000, 1..6)) {
        let mut rig = Rig::new(ROOMY, BUDGET);
        let expected = at_once(&mut rig);
        prop_assert_eq!(answered(&mut rig, 1, &sounds(), &pieces), expected);
        prop_assert_eq!(rig.speakers[BAGPIPER].heard.clips(), 0);
    }

    #[test]
    fn a_cancel_at_any_moment_gives_all_back(pieces in 0_usize..60, steps in 0_usize..4, shown in any::<bool>()) {
        let mut rig = Rig::new(ROOMY, Budget { share_prefixes: shown, prefill_tokens: 20, ..BUDGET });
        let mut mouth = Mouth::open(&mut rig, 1, &asked(), &sounds());
        for _ in 0..pieces {
            mouth.say(&mut rig, PIECE);
            (0..steps).for_each(|_| _ = rig.step());
        }
        let held = rig.engine.held_blocks(mouth.id);
        if let Some(summary) = rig.cancel(mouth.id) {
            prop_assert_eq!(summary.kv_blocks, held);
        }
        // What is still said to it reaches nobody.
        mouth.say(&mut rig, PIECE);
        prop_assert_eq!(rig.step().tokens, 0);
        drop(mouth);
        rig.assert_idle();
        prop_assert_eq!(rig.speakers[BAGPIPER].heard.clips(), 0);
    }
}
