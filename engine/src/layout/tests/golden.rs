//! Sequences of fixtures, made exactly.

use std::ops::Range;
use std::path::PathBuf;

use codecs::weights::Weights;

use crate::layout::{Layout, Spoken, Tail, Vocabulary, Window};

fn fixture(path: &str) -> Weights {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures"));
    Weights::open(&root.join(path)).unwrap()
}

fn ints<T: TryFrom<i64>>(w: &Weights, name: &str) -> Vec<T> {
    w.ints(name).unwrap().into_iter().map(|v| T::try_from(v).ok().unwrap()).collect()
}

#[test]
fn golden_sequences_of_the_nano_voice_are_made_exactly() {
    let golden = fixture("nano/golden.safetensors");
    for text in ["t0", "t1", "t2"] {
        let frames = golden.shape(&format!("{text}.codes")).unwrap()[1];
        let codes: Vec<u16> = ints(&golden, &format!("{text}.codes"));
        let rows: Vec<&[u16]> = codes.chunks(frames).collect();
        for stage in 0..4 {
            let ids: Vec<u32> = ints(&golden, &format!("{text}.ids{stage}"));
            let vocabulary = Vocabulary {
                stage,
                pad: 256,
                end_of_speech: 259,
                text_split: 260,
                audio_split: 261,
                line_feed: 10,
                audio_start: 273,
                semantic_codes: 2048,
                acoustic_codes: 1024,
                realign: 25,
            };
            let end = ids.iter().position(|&id| id == 256).unwrap() - 1;
            let mut own = rows[..=stage].to_vec();
            own[stage] = &[];
            let window = Window {
                prompt: &[],
                control: &ids[..6],
                before: None,
                text: &ids[6..end],
                tail: Tail::End,
                rows: &own,
            };
            let layout = Layout::of(&vocabulary, &window);
            assert_eq!(layout.ids, ids);
            assert_eq!(layout.positions, ints::<i32>(&golden, &format!("{text}.pos{stage}")));
            assert_eq!(layout.next_position, 1);
        }
    }
}

/// The vocabulary of `qwen3_tiny/config.json`.
fn tiny(stage: usize) -> Vocabulary {
    Vocabulary {
        stage,
        pad: 190,
        end_of_speech: 196,
        text_split: 197,
        audio_split: 198,
        line_feed: 10,
        audio_start: 200,
        semantic_codes: 64,
        acoustic_codes: 32,
        realign: 25,
    }
}

fn codes_of(ids: &[u32], first: u32) -> Vec<u16> {
    ids.iter().map(|id| u16::try_from(id - first).unwrap()).collect()
}

#[test]
fn inner_chunk_of_the_cb0_fixture_is_made_exactly() {
    let case = fixture("qwen3_tiny/case_cb0.safetensors");
    let (ids, positions): (Vec<u32>, Vec<i32>) =
        (ints(&case, "input_ids"), ints(&case, "position_ids"));
    let codes = |at: Range<usize>| codes_of(&ids[at], 200);
    let (prompt, before, own) = (codes(0..6), codes(51..98), codes(99..107));
    let window = Window {
        prompt: &[&prompt],
        control: &ids[6..13],
        before: Some(Spoken { text: &ids[13..27], rows: &[&before] }),
        text: &ids[28..40],
        tail: Tail::Lookahead(&ids[41..50]),
        rows: &[&own],
    };
    let layout = Layout::of(&tiny(0), &window);
    assert_eq!((&layout.ids, &layout.positions), (&ids, &positions));
    assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (51..107, 99, 63));
}

#[test]
fn forced_prefix_of_the_cb3_fixture_is_made_exactly() {
    let case = fixture("qwen3_tiny/case_cb3.safetensors");
    let (ids, positions): (Vec<u32>, Vec<i32>) =
        (ints(&case, "input_ids"), ints(&case, "position_ids"));
    let first = [200, 264, 296, 328];
    let prompt: Vec<Vec<u16>> =
        (0..4).map(|r| codes_of(&ids[5 * r..5 * r + 5], first[r])).collect();
    let rows: Vec<Vec<u16>> = [39..48, 50..59, 60..69, 70..76]
        .into_iter()
        .zip(first)
        .map(|(at, first)| codes_of(&ids[at], first))
        .collect();
    let prompt: Vec<&[u16]> = prompt.iter().map(Vec::as_slice).collect();
    let rows: Vec<&[u16]> = rows.iter().map(Vec::as_slice).collect();
    let window = Window {
        prompt: &prompt,
        control: &ids[20..27],
        before: None,
        text: &ids[27..37],
        tail: Tail::End,
        rows: &rows,
    };
    let layout = Layout::of(&tiny(3), &window);
    assert_eq!((&layout.ids, &layout.positions), (&ids, &positions));
    assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (39..48, 70, 12));
}
