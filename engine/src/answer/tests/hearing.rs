//! Answers to what was heard.

use super::*;
use crate::Error;
use crate::hearing::Ear;
use crate::models::speech;

fn tone(samples: u16, step: f32) -> Vec<f32> {
    tone_of(usize::from(samples), step)
}

pub(super) fn tone_of(samples: usize, step: f32) -> Vec<f32> {
    (0..samples).map(|i| (i as f32 * step).sin() * 0.3).collect()
}

impl Rig {
    pub(super) fn known(&self) -> &Arc<speech::Heard> {
        &self.speakers[BAGPIPER].heard
    }

    /// What Bagpiper hears with.
    pub(super) fn ear(&self) -> Ear {
        let bundle = SpeechBundle::open(&fixture("bundles/bagpiper")).unwrap();
        Ear::of(&bundle, self.known().clone()).unwrap()
    }

    pub(super) fn hear(&self, samples: &[f32]) -> Part {
        self.ear().hear(samples).unwrap()
    }
}

/// A question in text about a recording.
fn asked(part: Part, order: &[Modality]) -> Request {
    let mut request = request(order, 4);
    request.messages[0].parts.push(part);
    request.max_text_tokens = Some(24);
    request
}

#[test]
fn an_answer_to_what_was_heard_is_the_same_alone_beside_others_and_with_a_split_prompt() {
    let order = [Modality::Text, Modality::Audio];
    let mut rig = Rig::new(ROOMY, BUDGET);
    let about = |rig: &Rig, step| asked(rig.hear(&tone(30_000, step)), &order);
    let settings = rig.resolve(BAGPIPER, about(&rig, 0.04));
    let alone = rig.alone(settings);
    let settings = rig.resolve(BAGPIPER, about(&rig, 0.11));
    assert_ne!(rig.alone(settings), alone, "what is heard decides what is answered");

    let mut rig = Rig::new(ROOMY, Budget { prefill_tokens: 5, ..BUDGET });
    for (id, model) in [(1, OPUSLM), (2, BAGPIPER), (3, BAGPIPER)] {
        let settings = rig.resolve(model, request(&order, id));
        rig.open(ContextId(id), settings);
    }
    for (id, step) in [(4, 0.11), (5, 0.04)] {
        let settings = rig.resolve(BAGPIPER, about(&rig, step));
        rig.open(ContextId(id), settings);
    }
    rig.run();
    assert_eq!(rig.heard[&ContextId(5)], alone);
    assert_ne!(rig.heard[&ContextId(4)], alone);
}

#[test]
fn what_was_heard_counts_as_sound_and_goes_with_its_answer() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let part = rig.hear(&tone(24_000, 0.04));
    let settings = rig.resolve(BAGPIPER, asked(part, &[Modality::Text]));
    rig.open(ContextId(0), settings);
    rig.step();
    assert_eq!(rig.known().clips(), 1);
    rig.run();
    assert_eq!(rig.known().clips(), 0);
    let Some(Ok(Summary { usage: Some(usage), .. })) = &rig.heard[&ContextId(0)].outcome else {
        panic!("{:?}", rig.heard)
    };
    assert_eq!(usage.prompt_audio_tokens, 13);
}

#[test]
fn a_cancel_lets_go_of_what_was_heard() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    for steps in [0, 1, 3] {
        let part = rig.hear(&tone(24_000, 0.04));
        let settings = rig.resolve(BAGPIPER, asked(part, &[Modality::Text]));
        rig.open(ContextId(steps), settings);
        (0..steps).for_each(|_| _ = rig.step());
        rig.cancel(ContextId(steps));
        assert_eq!(rig.known().clips(), 0, "after {steps} steps");
        rig.assert_idle();
    }
}

#[test]
fn what_another_network_has_heard_is_refused() {
    let (rig, other) = (Rig::new(ROOMY, BUDGET), Rig::new(ROOMY, BUDGET));
    let request = asked(other.hear(&tone(2_400, 0.04)), &[Modality::Text]);
    for model in [BAGPIPER, OPUSLM] {
        let refused = rig.speakers[model].resolve(request.clone()).err().unwrap();
        assert!(matches!(refused, Error::Option { field: "messages", .. }), "{refused}");
    }
}

#[test]
fn codes_of_a_recording_are_written_down_and_nothing_else_is() {
    let mut rig = Rig::new(ROOMY, BUDGET);
    let codes: Vec<Vec<u16>> = (0..9).map(|s| (0..20).map(|t| (s + t) % 32).collect()).collect();
    let transcribe = |parts: Vec<Part>| {
        let mut request = request(&[], 6);
        (request.task, request.messages[0].parts) = (Task::Transcribe, parts);
        request
    };
    let settings = rig.resolve(OPUSLM, transcribe(vec![Part::Codes(codes.clone().into())]));
    let heard = rig.alone(settings);
    assert!(matches!(heard.segments[..], [Segment::Text(_)]), "{heard:?}");
    for parts in [vec![Part::Text("a text".into())], vec![Part::Codes(codes.into()); 2]] {
        let refused = rig.speakers[OPUSLM].resolve(transcribe(parts)).err().unwrap().to_string();
        assert!(refused.contains("one recording to be written down"), "{refused}");
    }
}
