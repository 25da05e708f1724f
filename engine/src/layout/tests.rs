mod golden;
mod properties;

use super::*;

const PAD: u32 = 90;
const END: u32 = 91;
const TEXT_SPLIT: u32 = 92;
const AUDIO_SPLIT: u32 = 93;
const LF: u32 = 10;
const START: u32 = 100;
const CONTROL: [u32; 3] = [80, 81, LF];

/// 50 semantic codes from id 100 on, then 20 for each acoustic row: from 150, 170 and 190 on.
fn vocabulary(stage: usize) -> Vocabulary {
    Vocabulary {
        stage,
        pad: PAD,
        end_of_speech: END,
        text_split: TEXT_SPLIT,
        audio_split: AUDIO_SPLIT,
        line_feed: LF,
        audio_start: START,
        semantic_codes: 50,
        acoustic_codes: 20,
        realign: 25,
    }
}

fn assert_tokens(layout: &Layout, parts: &[(&[u32], i32)]) {
    let ids: Vec<u32> = parts.iter().flat_map(|(ids, _)| ids.iter().copied()).collect();
    let positions: Vec<i32> =
        parts.iter().flat_map(|(ids, first)| (*first..).take(ids.len())).collect();
    assert_eq!(layout.ids, ids);
    assert_eq!(layout.positions, positions);
}

#[test]
fn first_chunk_in_mid_sentence_is_control_text_pad() {
    let window = Window {
        prompt: &[],
        control: &[1, 2, 3],
        before: None,
        text: &[65, 66],
        tail: Tail::Open,
        rows: &[&[]],
    };
    let layout = Layout::of(&vocabulary(0), &window);
    assert_tokens(&layout, &[(&[1, 2, 3], 1), (&[65, 66], 4), (&[PAD], 0)]);
    assert_eq!((layout.control.clone(), layout.text.clone()), (0..3, 3..5));
    assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (6..6, 6, 1));
}

#[test]
fn first_chunk_with_prompt_and_lookahead_has_a_marker_25_behind_its_text() {
    let window = Window {
        prompt: &[&[7, 8, 9, 9]],
        control: &[1, 2, 3],
        before: None,
        text: &[65, 66],
        tail: Tail::Lookahead(&[32, 67]),
        rows: &[&[5]],
    };
    let layout = Layout::of(&vocabulary(0), &window);
    // S0 = 5, five ids of text, M0 = 5 + 5 + 25.
    assert_tokens(
        &layout,
        &[
            (&[107, 108, 109, 109], 1),
            (&[1, 2, 3, 65, 66], 5),
            (&[TEXT_SPLIT, 32, 67], 35),
            (&[PAD, 105], 4),
        ],
    );
    assert_eq!((layout.control.clone(), layout.text.clone()), (4..7, 7..9));
    assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (13..14, 13, 6));
}

#[test]
fn last_chunk_behind_a_long_one_starts_behind_its_codes() {
    let long: Vec<u16> = (0..40).collect();
    let window = Window {
        prompt: &[&[7, 8]],
        control: &[1, 2, 3],
        before: Some(Spoken { text: &[70, 71], rows: &[&long] }),
        text: &[32, 65],
        tail: Tail::End,
        rows: &[&[5, 6]],
    };
    let layout = Layout::of(&vocabulary(0), &window);
    // S0 = 3, text to 7, M0 = 3 + max(5 + 25, 40) = 43, S1 = 44.
    let long_ids: Vec<u32> = (100..140).collect();
    assert_tokens(
        &layout,
        &[
            (&[107, 108], 1),
            (&[1, 2, 3, 70, 71], 3),
            (&[TEXT_SPLIT, 32, 65, LF], 43),
            (&[PAD], 2),
            (&long_ids, 3),
            (&[AUDIO_SPLIT, 105, 106], 43),
        ],
    );
    assert_eq!((layout.control.clone(), layout.text.clone()), (2..5, 8..11));
    assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (12..55, 53, 46));
}

#[test]
fn continuation_prefix_in_cb0_stands_like_an_earlier_chunk() {
    let window = Window {
        prompt: &[],
        control: &[1, 2, 3],
        before: Some(Spoken { text: &[70, 71, 72], rows: &[&[1, 2]] }),
        text: &[32, 65],
        tail: Tail::Lookahead(&[32, 67, LF]),
        rows: &[&[]],
    };
    let layout = Layout::of(&vocabulary(0), &window);
    // M0 = 1 + max(6 + 25, 2) = 32, S1 = 33, M1 = 33 + 2 + 25 = 60.
    assert_tokens(
        &layout,
        &[
            (&[1, 2, 3, 70, 71, 72], 1),
            (&[TEXT_SPLIT, 32, 65], 32),
            (&[TEXT_SPLIT, 32, 67, LF], 60),
            (&[PAD, 101, 102], 0),
            (&[AUDIO_SPLIT], 32),
        ],
    );
    assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (14..17, 17, 33));
}

#[test]
fn continuation_prefix_in_cb2_skips_the_markers_position_in_acoustic_rows() {
    let window = Window {
        prompt: &[&[7, 8], &[1, 2], &[3, 4]],
        control: &[1, 2, 3],
        before: Some(Spoken { text: &[70, 71, 72], rows: &[&[1, 2], &[3, 4], &[5, 6]] }),
        text: &[32, 65],
        tail: Tail::Lookahead(&[32, 67]),
        rows: &[&[10, 11, 12], &[13, 14, 15], &[16]],
    };
    let layout = Layout::of(&vocabulary(2), &window);
    // P = 2, M0 = 3 + max(6 + 25, 2) = 34, S1 = 35; no lookahead, no audio split outside C0.
    assert_tokens(
        &layout,
        &[
            (&[107, 108], 1),
            (&[151, 152], 1),
            (&[173, 174], 1),
            (&[1, 2, 3, 70, 71, 72], 3),
            (&[TEXT_SPLIT, 32, 65], 34),
            (&[PAD, 101, 102], 2),
            (&[AUDIO_SPLIT, 110, 111, 112, END], 34),
            (&[PAD, 153, 154], 2),
            (&[163, 164, 165], 35),
            (&[PAD, 175, 176], 2),
            (&[186], 35),
        ],
    );
    assert_eq!((layout.control.clone(), layout.text.clone()), (6..9, 13..15));
    assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (16..22, 32, 36));
}

#[test]
fn null_companion_is_control_pad_codes() {
    let layout = Layout::null(&vocabulary(0), &[1, 2, 3], &[5, 6]);
    assert_tokens(&layout, &[(&[1, 2, 3], 1), (&[PAD, 105, 106], 0)]);
    assert_eq!((layout.own, layout.next_position), (4, 3));
}

#[test]
fn bound_of_the_release_is_the_published_one() {
    let bound = |stage, prompt_frames, prefix| {
        let limits =
            WindowLimits { prompt_frames, control: 8, characters: 350, lookahead: 50, codes: 400 };
        limits.longest(stage, prefix)
    };
    assert_eq!(bound(0, 750, false), 2316);
    assert_eq!(bound(1, 300, false), 1763);
    assert_eq!(bound(2, 150, false), 2014);
    assert_eq!(bound(3, 100, false), 2365);
    assert_eq!(bound(0, 750, true), 2316);
    assert_eq!(bound(1, 300, true), 1763 + 352 + 800);
}
