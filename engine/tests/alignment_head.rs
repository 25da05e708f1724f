//! The head that follows the text: what it looks at is a sequence's own, bit for bit, as the logits are.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use common::{ALL_PRECISIONS, Sequence, bits, fast, largest_difference, nano, reference, step};
use engine::kernels::matrix::Precision;
use engine::runner::StageModel;

/// Shares are at most 1; the same sums in another order, through four layers.
const REFERENCE_TOLERANCE: f32 = 1e-4;

/// A sentence, laid out for cb0, and some codes of it.
fn sequence(codes: u32, first_block: u32) -> Sequence {
    let (config, _) = nano(0);
    let text = "Bear with me. The total comes to fourteen dollars.\n";
    let mut ids = vec![257, 262, 269, 271, 258, 10];
    ids.extend(text.bytes().map(u32::from));
    let mut positions: Vec<i32> = (1..=ids.len() as i32).collect();
    let watched = 6..ids.len();
    ids.push(config.pad);
    positions.push(0);
    for frame in 0..codes {
        ids.push(config.code_id(0, frame * 37 % 2048).unwrap());
        positions.push(frame as i32 + 1);
    }
    Sequence { watched, ..Sequence::new(&ids, &positions, first_block) }
}

fn alone(model: &mut dyn StageModel, codes: u32) -> Vec<f32> {
    let mut sequence = sequence(codes, 0);
    let count = sequence.remaining();
    step(model, &mut [&mut sequence], &[count]);
    model.attention().to_vec()
}

#[test]
fn fast_runner_looks_where_the_plain_one_looks() {
    for codes in [0, 1, 20, 70] {
        let fast = alone(&mut fast(0, Precision::F32, 1), codes);
        let plain = alone(&mut reference(0), codes);
        assert_eq!(fast.len(), sequence(codes, 0).watched.len());
        assert!((fast.iter().sum::<f32>() - 1.0).abs() < REFERENCE_TOLERANCE);
        assert!(largest_difference(&fast, &plain) < REFERENCE_TOLERANCE, "{codes} codes");
    }
}

#[test]
fn neighbours_splits_and_threads_change_no_bit() {
    for precision in ALL_PRECISIONS {
        let expected = [3, 40, 60].map(|codes| alone(&mut fast(0, precision, 1), codes));
        let mut model = fast(0, precision, 2);
        let mut all = [sequence(3, 0), sequence(40, 16), sequence(60, 32), sequence(9, 48)];
        all[3].watched = 0..0;
        let [a, b, c, d] = &mut all;
        step(&mut model, &mut [&mut *c, &mut *b], &[100, 7]);
        let mut rest = [a, d, b, c];
        let counts = rest.each_ref().map(|s| s.remaining());
        step(&mut model, &mut rest, &counts);
        assert_eq!(bits(model.attention()), bits(&expected.concat()), "{precision:?}");
    }
}

#[test]
fn stages_without_such_a_head_tell_nothing() {
    let mut model = fast(1, Precision::F32, 1);
    assert!(alone(&mut model, 3).is_empty());
}
