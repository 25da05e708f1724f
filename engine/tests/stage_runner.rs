//! The contract of a stage's runner: the logits of a sequence are its own, bit for bit, whatever else happens.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use common::{
    ALL_PRECISIONS, Sequence, bits, fast, largest_difference, nano, prefill, reference, step,
};
use engine::batch::{BLOCK_TOKENS, Batch, BatchRow};
use engine::kernels::matrix::Precision;
use engine::models::qwen3::{Options, Qwen3};
use engine::runner::{ForwardError, StageModel};
use proptest::prelude::*;

/// The same sums in another order, through three layers, on logits of about 10.
const REFERENCE_TOLERANCE: f32 = 1e-3;
const STAGE: usize = 1;

/// Ids and positions that look like a sequence of the stage, with jumps in the positions.
fn noise(seed: u32, length: usize) -> (Vec<u32>, Vec<i32>) {
    let mut state = seed.wrapping_mul(747_796_405).wrapping_add(1);
    let mut next = move |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    let ids = (0..length).map(|_| next(3345)).collect();
    (ids, (0..length).map(|_| next(400) as i32 - 50).collect())
}

fn sequence(seed: u32, length: usize, first_block: u32) -> Sequence {
    let (ids, positions) = noise(seed, length);
    Sequence::new(&ids, &positions, first_block)
}

/// Logits of the whole sequence at once, alone, on one thread, in blocks 0 and following.
fn alone(precision: Precision, seed: u32, length: usize) -> Vec<u32> {
    bits(&prefill(&mut fast(STAGE, precision, 1), &mut sequence(seed, length, 0)))
}

#[test]
fn fast_runner_agrees_with_the_plain_one() {
    for length in [1, 15, 16, 17, 40, 130, 200] {
        let fast = prefill(&mut fast(STAGE, Precision::F32, 1), &mut sequence(9, length, 0));
        let plain = prefill(&mut reference(STAGE), &mut sequence(9, length, 0));
        let difference = largest_difference(&fast, &plain);
        assert!(difference < REFERENCE_TOLERANCE, "{length} tokens: {difference}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn split_prefill_equals_whole(
        seed in 0..1000_u32,
        length in 2..180_usize,
        cuts in prop::collection::vec(1..60_usize, 1..8),
        precision in prop::sample::select(ALL_PRECISIONS.to_vec()),
    ) {
        let mut model = fast(STAGE, precision, 1);
        let mut pieces = sequence(seed, length, 40);
        let mut logits = Vec::new();
        for cut in cuts.into_iter().cycle() {
            let count = cut.min(pieces.remaining());
            logits = step(&mut model, &mut [&mut pieces], &[count]).remove(0);
            if pieces.remaining() == 0 {
                break;
            }
        }
        prop_assert_eq!(bits(&logits), alone(precision, seed, length));
    }

    #[test]
    fn batched_equals_alone(
        lengths in prop::collection::vec(1..90_usize, 1..12),
        last in prop::collection::vec(1..40_usize, 12),
        threads in 1..3_usize,
        precision in prop::sample::select(ALL_PRECISIONS.to_vec()),
    ) {
        let mut model = fast(STAGE, precision, threads);
        let mut all: Vec<Sequence> = lengths
            .iter()
            .enumerate()
            .map(|(i, l)| sequence(i as u32, *l, 16 * i as u32))
            .collect();
        // The first step is ragged prefill, the second a mix of prefill pieces and single tokens.
        let firsts: Vec<usize> =
            lengths.iter().zip(&last).map(|(l, last)| l.saturating_sub(*last)).collect();
        let (mut some, counts): (Vec<&mut Sequence>, Vec<usize>) =
            all.iter_mut().zip(&firsts).filter(|(_, c)| **c > 0).unzip();
        if !some.is_empty() {
            step(&mut model, &mut some, &counts);
        }
        let counts: Vec<usize> = all.iter().map(Sequence::remaining).collect();
        let rows = step(&mut model, &mut all.iter_mut().collect::<Vec<_>>(), &counts);
        for (i, (row, length)) in rows.iter().zip(&lengths).enumerate() {
            prop_assert_eq!(bits(row), alone(precision, i as u32, *length), "row {}", i);
        }
    }
}

#[test]
fn shared_blocks_equal_unshared_ones() {
    for precision in ALL_PRECISIONS {
        let mut model = fast(STAGE, precision, 2);
        let (prefix_ids, prefix_positions) = noise(1, 2 * BLOCK_TOKENS);
        let mut prefix = Sequence::new(&prefix_ids, &prefix_positions, 0);
        prefill(&mut model, &mut prefix);
        let mut shared: Vec<Sequence> = (0..3)
            .map(|i| {
                let (ids, positions) = noise(10 + i, 5 + 9 * i as usize);
                let ids = [&prefix_ids[..], &ids].concat();
                let positions = [&prefix_positions[..], &positions].concat();
                let mut s = Sequence::new(&ids, &positions, 16 + 16 * i);
                s.blocks.splice(..2, prefix.blocks[..2].iter().copied());
                s.computed = prefix.computed;
                s
            })
            .collect();
        let counts: Vec<usize> = shared.iter().map(Sequence::remaining).collect();
        let rows = step(&mut model, &mut shared.iter_mut().collect::<Vec<_>>(), &counts);
        for (s, row) in shared.iter().zip(&rows) {
            let mut own = Sequence::new(&s.ids, &s.positions, 200);
            assert_eq!(bits(row), bits(&prefill(&mut model, &mut own)), "{precision:?}");
        }
    }
}

#[test]
fn only_rows_that_ask_get_logits_in_order() {
    let mut model = fast(STAGE, Precision::F32, 2);
    let (ids, positions) = noise(3, 9);
    let row = |tokens, block, logits| BatchRow {
        tokens,
        blocks: vec![block],
        logits,
        ..BatchRow::default()
    };
    let rows = vec![row(0..4, 7, true), row(4..6, 3, false), row(6..9, 9, true)];
    let mut logits = vec![1.0];
    model
        .forward(
            &Batch { ids: ids.clone(), positions: positions.clone(), rows, ..Batch::default() },
            &mut logits,
        )
        .unwrap();
    let alone = |model: &mut Qwen3, range: std::ops::Range<usize>| {
        prefill(model, &mut Sequence::new(&ids[range.clone()], &positions[range], 100))
    };
    let first = alone(&mut model, 0..4);
    let last = alone(&mut model, 6..9);
    assert_eq!(logits, [&[1.0][..], &first, &last].concat());
}

#[test]
fn positions_matter_and_shift_together() {
    let mut model = fast(STAGE, Precision::F32, 1);
    let (ids, positions) = noise(5, 60);
    let moved: Vec<i32> = positions.iter().map(|p| p + 137).collect();
    let plain: Vec<i32> = (0..60).collect();
    let logits = prefill(&mut model, &mut Sequence::new(&ids, &positions, 0));
    let shifted = prefill(&mut model, &mut Sequence::new(&ids, &moved, 16));
    let counted = prefill(&mut model, &mut Sequence::new(&ids, &plain, 32));
    // Angles round differently at other positions.
    assert!(largest_difference(&logits, &shifted) < REFERENCE_TOLERANCE);
    assert!(largest_difference(&logits, &counted) > 0.1);
}

#[test]
fn dropped_embedding_rows_are_missed_only_when_read() {
    let (config, weights) = nano(STAGE);
    let kept = [3344, 5, 6, 7, 5];
    let options = Options { precision: Precision::F32, kept_ids: Some(&kept), pool: None };
    let mut parameters = 0;
    let mut model = Qwen3::load(&weights, &config, &options, &mut |n| parameters += n).unwrap();
    model.reserve(16);
    let dropped = (config.backbone.vocabulary - 4) * config.backbone.hidden;
    assert_eq!(parameters, config.parameters() - dropped);
    let ids = [5, 3344, 7];
    let logits = prefill(&mut model, &mut Sequence::new(&ids, &[0, 1, 2], 0));
    let mut whole = fast(STAGE, Precision::F32, 1);
    assert_eq!(logits, prefill(&mut whole, &mut Sequence::new(&ids, &[0, 1, 2], 0)));
    for id in [8, 3345, u32::MAX] {
        let row = BatchRow { tokens: 0..1, blocks: vec![0], logits: true, ..BatchRow::default() };
        let batch =
            Batch { ids: vec![id], positions: vec![0], rows: vec![row], ..Batch::default() };
        let error = model.forward(&batch, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains(&format!("id {id}")), "{error}");
    }
}

#[test]
fn a_batch_that_does_not_fit_is_refused_and_does_no_harm() {
    let mut model = fast(STAGE, Precision::F32, 1);
    let before = prefill(&mut model, &mut sequence(2, 20, 0));
    let row = |tokens, computed, blocks: &[u32]| BatchRow {
        tokens,
        computed,
        blocks: blocks.to_vec(),
        logits: true,
        ..BatchRow::default()
    };
    let cases: [(&str, Vec<BatchRow>); 7] = [
        ("ids, positions and rows", vec![row(0..1, 0, &[0])]),
        ("do not follow", vec![row(0..2, 0, &[0]), row(3..4, 0, &[1])]),
        ("do not follow", vec![row(0..0, 0, &[0]), row(0..4, 0, &[1])]),
        ("beyond the batch", vec![row(0..5, 0, &[0])]),
        ("covers 16 tokens", vec![row(0..4, 13, &[0])]),
        ("block 256 of 256", vec![row(0..4, 16, &[0, 256])]),
        ("block 3 is being written", vec![row(0..2, 16, &[3, 4]), row(2..4, 0, &[3])]),
    ];
    for (says, rows) in cases {
        let batch = Batch { ids: vec![1; 4], positions: vec![0; 4], rows, ..Batch::default() };
        let mut logits = Vec::new();
        let error = model.forward(&batch, &mut logits).unwrap_err();
        assert!(matches!(error, ForwardError::Batch { stage: STAGE, .. }));
        assert!(error.to_string().contains(says), "{error}");
        assert!(logits.is_empty());
    }
    assert_eq!(before, prefill(&mut model, &mut sequence(2, 20, 0)));
    model.forward(&Batch::default(), &mut Vec::new()).unwrap();
}
