//! The nano voice against codes and logits of the implementation that it was trained with, stage by stage.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use codecs::weights::Weights;
use common::{Sequence, argmax, fast, largest_difference, nano, prefill, reference, root, step};
use engine::kernels::matrix::Precision;
use engine::models::config::StageConfig;
use engine::runner::StageModel;

/// The same `f32` sums in another order, through six layers, on logits of about 10.
const LOGIT_TOLERANCE: f32 = 1e-3;
/// `sampling.min_codes` of the bundle: no stop before.
const MIN_CODES: usize = 5;
/// English, conversational, with its delimiters and line feed.
const CONTROL_TOKENS: usize = 6;

struct Golden {
    file: Weights,
    text: usize,
}

impl Golden {
    fn text(text: usize) -> Self {
        let file = Weights::open(&root().join("tests/fixtures/nano/golden.safetensors")).unwrap();
        Self { file, text }
    }

    fn ints(&self, name: &str) -> Vec<i64> {
        self.file.ints(&format!("t{}.{name}", self.text)).unwrap()
    }

    fn sequence(&self, stage: usize) -> Sequence {
        let ids: Vec<u32> = self.ints(&format!("ids{stage}")).iter().map(|v| *v as u32).collect();
        let positions = self.ints(&format!("pos{stage}"));
        let positions: Vec<i32> = positions.iter().map(|v| *v as i32).collect();
        Sequence::new(&ids, &positions, 0)
    }

    fn codes(&self, stage: usize) -> Vec<usize> {
        let all = self.ints("codes");
        let frames = all.len() / 4;
        all[stage * frames..][..frames].iter().map(|v| *v as usize).collect()
    }
}

/// The best output that may be chosen as code `index`.
fn best(config: &StageConfig, logits: &[f32], index: usize) -> usize {
    argmax(if index < MIN_CODES { &logits[..config.own_codes()] } else { logits })
}

/// Codes after the prefill until `frames` or a stop symbol; positions count up from 1, as without a prompt.
fn greedy(model: &mut dyn StageModel, stage: usize, golden: &Golden, frames: usize) -> Vec<usize> {
    let config = nano(stage).0;
    let mut sequence = golden.sequence(stage);
    let mut logits = prefill(model, &mut sequence);
    let mut codes = Vec::new();
    while codes.len() < frames {
        let code = best(&config, &logits, codes.len());
        let Some(id) = config.code_id(stage, code as u32) else { break };
        codes.push(code);
        sequence.push(id, codes.len() as i32);
        logits = prefill(model, &mut sequence);
    }
    codes
}

#[test]
fn fast_runner_speaks_the_reference_codes_of_all_stages() {
    for stage in 0..4 {
        let mut model = fast(stage, Precision::F32, 1);
        for text in 0..3 {
            let golden = Golden::text(text);
            let expected = golden.codes(stage);
            // Texts 0 and 1 stop by themselves right after their last code.
            let room = if stage == 0 && text < 2 { 1 } else { 0 };
            let codes = greedy(&mut model, stage, &golden, expected.len() + room);
            assert_eq!(codes, expected, "stage {stage}, text {text}");
        }
    }
}

#[test]
fn reference_runner_speaks_them_too() {
    for stage in 0..4 {
        let mut model = reference(stage);
        let golden = Golden::text(0);
        let codes = greedy(&mut model, stage, &golden, golden.codes(stage).len());
        assert_eq!(codes, golden.codes(stage), "stage {stage}");
    }
}

#[test]
fn first_logits_match() {
    for text in 0..3 {
        let golden = Golden::text(text);
        let expected = golden.file.f32(&format!("t{text}.first_logits0"), &[2050]).unwrap();
        let models: [&mut dyn StageModel; 2] = [&mut fast(0, Precision::F32, 1), &mut reference(0)];
        for model in models {
            let logits = prefill(model, &mut golden.sequence(0));
            let difference = largest_difference(&logits, &expected);
            assert!(difference < LOGIT_TOLERANCE, "text {text}: {difference}");
        }
    }
}

#[test]
fn guided_codes_match() {
    let guidance = 1.6;
    let golden = Golden::text(0);
    let config = nano(0).0;
    let mut model = fast(0, Precision::F32, 1);
    let mut conditional = golden.sequence(0);
    let mut ids = conditional.ids[..CONTROL_TOKENS].to_vec();
    let mut positions = conditional.positions[..CONTROL_TOKENS].to_vec();
    ids.push(config.pad);
    positions.push(0);
    let mut null = Sequence::new(&ids, &positions, 100);
    let expected = golden.ints("codes0_guided_1.6");
    let mut codes = Vec::new();
    while codes.len() < expected.len() {
        let counts = [conditional.remaining(), null.remaining()];
        let rows = step(&mut model, &mut [&mut conditional, &mut null], &counts);
        let merged: Vec<f32> = rows[0]
            .iter()
            .zip(&rows[1])
            .map(|(c, n)| guidance * c + (1.0 - guidance) * n)
            .collect();
        let code = best(&config, &merged, codes.len());
        codes.push(code as i64);
        let id = config.code_id(0, code as u32).unwrap();
        conditional.push(id, codes.len() as i32);
        null.push(id, codes.len() as i32);
    }
    assert_eq!(codes, expected);
}
