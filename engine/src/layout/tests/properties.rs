//! What holds for windows of any shape.

use proptest::prelude::*;

use super::*;

/// Reads the rows back from a sequence, by its ids alone: what stands before the control block's first id, the
/// text row cut at the markers, and the rows of codes cut at PAD.
fn read_back(
    v: &Vocabulary,
    ids: &[u32],
    control: u32,
) -> (Vec<u32>, Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let prompt = ids.iter().position(|&id| id == control).unwrap();
    let mut parts = ids[prompt..].split(|&id| id == v.pad).map(<[u32]>::to_vec);
    let text = parts.next().unwrap().split(|&id| id == v.text_split).map(<[u32]>::to_vec).collect();
    (ids[..prompt].to_vec(), text, parts.collect())
}

fn codes(row: usize, frames: usize) -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(0..if row == 0 { 50u16 } else { 20 }, frames)
}

fn rows(stage: usize, frames: Range<usize>) -> impl Strategy<Value = Vec<Vec<u16>>> {
    frames.prop_flat_map(move |n| (0..=stage).map(|row| codes(row, n)).collect::<Vec<_>>())
}

fn text(n: Range<usize>) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(32..80u32, n)
}

#[derive(Debug, Clone)]
struct Case {
    stage: usize,
    prompt: Vec<Vec<u16>>,
    before: Option<(Vec<u32>, Vec<Vec<u16>>)>,
    text: Vec<u32>,
    lookahead: Vec<u32>,
    form: u8,
    rows: Vec<Vec<u16>>,
    own: usize,
}

fn case() -> impl Strategy<Value = Case> {
    (0..4usize).prop_flat_map(|stage| {
        let before = prop::option::of((text(1..40), rows(stage, 0..60)));
        let parts = (rows(stage, 0..9), before, text(1..40), text(1..9));
        (parts, 0..3u8, rows(stage, 1..60), 0..60usize).prop_map(move |(parts, form, rows, own)| {
            let (prompt, before, text, lookahead) = parts;
            Case { stage, prompt, before, text, lookahead, form, rows, own }
        })
    })
}

fn slices(rows: &[Vec<u16>]) -> Vec<&[u16]> {
    rows.iter().map(Vec::as_slice).collect()
}

fn code_ids(v: &Vocabulary, row: usize, codes: &[u16]) -> Vec<u32> {
    codes.iter().map(|&c| v.code(row, c)).collect()
}

/// Hands the case's window to `f`, with its rows cut to `frames` and the own one to `own`.
fn with_window<T>(case: &Case, frames: usize, own: usize, f: impl FnOnce(&Window<'_>) -> T) -> T {
    let prompt = slices(&case.prompt);
    let before_rows = case.before.as_ref().map(|b| slices(&b.1));
    let before = case.before.as_ref().zip(before_rows.as_ref());
    let mut rows: Vec<&[u16]> = case.rows.iter().map(|row| &row[..frames.min(row.len())]).collect();
    rows[case.stage] = &rows[case.stage][..own.min(rows[case.stage].len())];
    f(&Window {
        prompt: &prompt,
        control: &CONTROL,
        before: before.map(|(b, rows)| Spoken { text: &b.0, rows }),
        text: &case.text,
        tail: [Tail::Lookahead(&case.lookahead), Tail::End, Tail::Open][case.form as usize],
        rows: &rows,
    })
}

/// The text row up to the current chunk, its text, and the text row whole, cut at the markers.
fn text_parts(case: &Case) -> (Vec<u32>, Vec<Vec<u32>>) {
    let mut current = case.text.clone();
    current.extend((case.form == 1).then_some(LF));
    let mut parts: Vec<Vec<u32>> = case.before.iter().map(|b| b.0.clone()).collect();
    parts.push(current.clone());
    parts[0].splice(0..0, CONTROL);
    parts.extend((case.stage == 0 && case.form == 0).then(|| case.lookahead.clone()));
    (current, parts)
}

/// The positions of the codes of each row, markers left out.
fn code_positions(v: &Vocabulary, layout: &Layout) -> Vec<Vec<i32>> {
    let mut rows: Vec<Vec<i32>> = vec![];
    for (&id, &position) in layout.ids.iter().zip(&layout.positions).skip(layout.text.end) {
        match id {
            PAD => rows.push(vec![]),
            id if id >= v.audio_start => rows.last_mut().unwrap().push(position),
            _ => {}
        }
    }
    rows
}

proptest! {
    #[test]
    fn rows_can_be_read_back(case in case()) {
        let v = vocabulary(case.stage);
        let layout = with_window(&case, usize::MAX, case.own, |w| Layout::of(&v, w));
        let (prompt, text, rows) = read_back(&v, &layout.ids, CONTROL[0]);
        let (current, parts) = text_parts(&case);
        prop_assert_eq!(text, parts);
        prop_assert_eq!(&layout.ids[layout.text.clone()], &current);
        prop_assert_eq!(&layout.ids[layout.control.clone()], &CONTROL);
        let voice: Vec<u32> =
            case.prompt.iter().enumerate().flat_map(|(r, codes)| code_ids(&v, r, codes)).collect();
        prop_assert_eq!(prompt, voice);
        prop_assert_eq!(rows.len(), case.stage + 1);
        for (r, read) in rows.iter().enumerate() {
            let known = if r == case.stage { case.own } else { usize::MAX };
            let codes = &case.rows[r][..known.min(case.rows[r].len())];
            let mut row = case.before.as_ref().map_or(vec![], |b| code_ids(&v, r, &b.1[r]));
            row.extend((r == 0 && case.before.is_some()).then_some(AUDIO_SPLIT));
            row.extend(code_ids(&v, r, codes));
            row.extend((r == 0 && case.stage > 0).then_some(END));
            prop_assert_eq!(read, &row);
        }
    }

    #[test]
    fn frame_has_one_position_in_all_rows(case in case()) {
        let v = vocabulary(case.stage);
        let layout = with_window(&case, usize::MAX, case.own, |w| Layout::of(&v, w));
        prop_assert_eq!(layout.ids.len(), layout.positions.len());
        let rows = code_positions(&v, &layout);
        for row in &rows {
            prop_assert_eq!(&row[..], &rows[0][..row.len()]);
            prop_assert!(row.windows(2).all(|w| w[0] < w[1]));
        }
        let own = layout.ids.len() - layout.own;
        let start = layout.next_position - own as i32;
        let expected: Vec<i32> = (start..layout.next_position).collect();
        prop_assert_eq!(&layout.positions[layout.own..], &expected[..]);
        let text_starts = layout.positions[layout.text.start];
        if case.before.is_none() {
            prop_assert_eq!(start, case.prompt.first().map_or(0, |r| r.len()) as i32 + 1);
        } else {
            prop_assert_eq!(start, text_starts);
        }
    }

    #[test]
    fn longer_c0_changes_nothing_before_its_end(case in case(), cut in 0..60usize) {
        let v = vocabulary(case.stage);
        let own = if case.stage == 0 { usize::MAX } else { 0 };
        let short = with_window(&case, cut, own, |w| Layout::of(&v, w));
        let long = with_window(&case, usize::MAX, own, |w| Layout::of(&v, w));
        let same = short.c0.end;
        prop_assert_eq!(&short.ids[..same], &long.ids[..same]);
        prop_assert_eq!(&short.positions[..same], &long.positions[..same]);
    }

    #[test]
    fn no_window_is_longer_than_the_bound(case in case()) {
        let v = vocabulary(case.stage);
        let layout = with_window(&case, usize::MAX, usize::MAX, |w| Layout::of(&v, w));
        let limits =
            WindowLimits { prompt_frames: 8, control: 3, characters: 39, lookahead: 8, codes: 59 };
        prop_assert!(layout.ids.len() <= limits.longest(case.stage, case.before.is_some()));
    }
}
