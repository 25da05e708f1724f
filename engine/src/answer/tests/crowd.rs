//! Neighbours, preemption, other cuts of the prefill and shared blocks change nothing of what is answered.

use super::*;
use crate::load::Lane;

const TEXT: &[Modality] = &[Modality::Text];
const SOUND: &[Modality] = &[Modality::Audio];
const TURN: &[Modality] = &[Modality::Text, Modality::Audio];
const LONG: &[Modality] = &[Modality::Text, Modality::Audio, Modality::Text, Modality::Audio];
const CROWD: u64 = 32;
/// Shares of a step are sums of a few quotients.
const ROUNDING: f64 = 1e-9;
/// How many steps lie between two that begin, so that all are in different phases.
const APART: u64 = 3;

/// Settings of the crowd's n-th answer: both families, every order, some guided, some behind sound.
fn member(rig: &Rig, n: u64) -> Settings {
    let model = n as usize % 2;
    let orders =
        if model == BAGPIPER { [TEXT, SOUND, TURN, LONG] } else { [TEXT, TURN, TURN, TEXT] };
    let mut request = request(orders[n as usize / 2 % 4], n);
    request.max_text_tokens = Some(5 + n as usize % 7);
    request.max_audio_frames = Some(4 + n as usize % 9);
    request.min_audio_frames = Some(3);
    if n.is_multiple_of(5) {
        let streams = rig.speakers[model].family.streams().len();
        let codes = (0..streams).map(|s| (0..6).map(|t| (s as u16 * 3 + t) % 32).collect());
        let heard = Message { role: Role::User, parts: vec![Part::Codes(codes.collect())] };
        request.messages.insert(0, heard);
    }
    if model == BAGPIPER && n.is_multiple_of(3) {
        request.guidance = Some(2.0);
    }
    rig.resolve(model, request)
}

fn alone() -> Vec<Heard> {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let each = (0..CROWD).map(|n| {
        let settings = member(&rig, n);
        rig.alone(settings)
    });
    each.collect()
}

/// The whole crowd, one after the other; `disturb` may interfere before each step.
fn together(blocks: usize, budget: Budget, mut disturb: impl FnMut(&mut Rig, u64)) -> Rig {
    let mut rig = Rig::new(blocks, budget);
    let first = member(&rig, 0);
    rig.open(ContextId(0), first);
    rig.run_with(|rig, step| {
        if step > 0 && step.is_multiple_of(APART) && step / APART < CROWD {
            let settings = member(rig, step / APART);
            rig.open(ContextId(step / APART), settings);
        }
        disturb(rig, step);
    });
    rig
}

fn check(expected: &[Heard], rig: &Rig, how: &str) {
    for (n, expected) in expected.iter().enumerate() {
        assert_eq!(&rig.heard[&ContextId(n as u64)], expected, "answer {n}, {how}");
    }
}

#[test]
fn the_same_seed_answers_the_same_alone_and_in_a_crowd() {
    let expected = alone();
    assert!(expected.iter().all(|heard| matches!(heard.outcome, Some(Ok(_)))));
    assert!(expected.iter().any(|heard| heard.segments.len() == 4));
    let rig = together(ROOMY, BUDGET, |_, _| ());
    check(&expected, &rig, "in a crowd");
    let rig = together(ROOMY, Budget { prefill_tokens: 5, ..BUDGET }, |_, _| ());
    check(&expected, &rig, "prefilled in pieces of five");
    let rig = together(ROOMY, Budget { share_prefixes: false, ..BUDGET }, |_, _| ());
    check(&expected, &rig, "no block shared");
}

#[test]
fn answers_that_lose_their_blocks_go_on_as_if_nothing_had_been() {
    let expected = alone();
    // Room for one long answer that is guided.
    let rig = together(16, Budget { prefill_tokens: 40, ..BUDGET }, |_, _| ());
    assert!(rig.engine.scheduler().preemptions() > 0);
    check(&expected, &rig, "with little memory");
    let rig = together(ROOMY, BUDGET, |rig, step| {
        if step.is_multiple_of(4) {
            let scheduler = rig.engine.scheduler_mut();
            let groups: Vec<_> = scheduler.group_ids().collect();
            groups.into_iter().for_each(|group| scheduler.preempt(group));
            scheduler.forget_unused();
        }
    });
    check(&expected, &rig, "displaced again and again");
}

#[test]
fn seeds_differ() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let mut say = |seed| {
        let settings = rig.resolve(BAGPIPER, request(TURN, seed));
        rig.alone(settings)
    };
    let first = say(1);
    assert_eq!(first, say(1));
    assert_ne!(first, say(2));
}

/// A voice beside answers says what it says alone, and it is what the reference implementation says.
#[test]
fn a_voice_says_the_same_beside_answers() {
    use crate::bundle::{Bundle, Opened};
    use crate::start::{Loaded, Options};
    use codecs::weights::Weights;

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let voice = Bundle::open(&root.join("voices/nano")).unwrap();
    let speech = |name| SpeechBundle::open(&fixture("bundles").join(name)).unwrap();
    let bundles: [Opened; 3] = [speech("bagpiper").into(), voice.into(), speech("opuslm").into()];
    let options = Options { threads: 1, ..Options::default() };
    let loaded = Loaded::load(&bundles, &options, &mut |_| ()).unwrap();
    let mut engine = Engine::new(loaded.stages, &loaded.blocks, BUDGET, None);
    let text = "Hello there, how can I help you today?";
    let (temperature, guidance) = (Some(0.0), Some(1.0));
    let request = crate::Request { temperature, guidance, ..crate::Request::file(text) };
    let (settings, source) = loaded.models.voices[0].resolve(request).unwrap();
    engine.open(ContextId(0), Opening::Voice(Box::new(settings), source));
    for (n, speaker) in loaded.models.speakers.iter().cycle().take(6).enumerate() {
        let settings = speaker.resolve(super::request(TURN, n as u64)).unwrap();
        engine.open(ContextId(1 + n as u64), Opening::Answer(Box::new(settings)));
    }
    let mut rows: Vec<Vec<u16>> = vec![Vec::new(); 4];
    let mut ended = 0;
    for step in 0.. {
        engine.step(Duration::from_millis(step), |_| false);
        while let Some(job) = engine.next_job() {
            if job.context == ContextId(0) {
                rows.iter_mut().zip(&job.rows).for_each(|(all, new)| all.extend(new));
            }
            ended += usize::from(matches!(job.last, Some(Ok(_))));
        }
        if engine.contexts() == 0 {
            break;
        }
        assert!(step < 20_000);
    }
    assert_eq!(ended, 7);
    let golden = Weights::open(&fixture("nano/golden.safetensors")).unwrap();
    let expected: Vec<u16> =
        golden.ints("t0.codes").unwrap().into_iter().map(|c| c as u16).collect();
    assert_eq!(rows.concat(), expected);
}

#[test]
fn a_step_is_charged_to_those_whose_sound_it_makes() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let long = |guidance| Request {
        min_audio_frames: Some(60),
        guidance: Some(guidance),
        ..request(&[Modality::Audio], 3)
    };
    let written = request(&[Modality::Text], 4);
    for (id, model, request) in [
        (0, BAGPIPER, long(3.0)),
        (1, BAGPIPER, long(1.0)),
        (2, OPUSLM, long(1.0)),
        (3, BAGPIPER, written),
    ] {
        let settings = rig.resolve(model, request);
        rig.open(ContextId(id), settings);
    }
    // A token of each sequence: two of the pair, three alone.
    let step = (0..60).map(|_| rig.step()).find(|step| step.shares.len() == 3 && step.tokens == 5);
    let step = step.unwrap();
    let share = |stage, guided| step.shares[&Lane { stage, guided }];
    let (pair, single) = (share(BAGPIPER, true), share(BAGPIPER, false));
    assert!((pair - 2.0 * single).abs() < ROUNDING, "{step:?}");
    // What is only written makes no sound dearer.
    let all = pair + single + share(OPUSLM, false);
    assert!((all + single - 1.0).abs() < ROUNDING, "{step:?}");
    rig.run();
}
