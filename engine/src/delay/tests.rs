//! Golden cases of `tests/fixtures/delay_pattern`, and any rows against the definition.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

type Codes = Vec<Vec<u16>>;

fn fixture(name: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/delay_pattern/");
    serde_json::from_slice(&std::fs::read(format!("{folder}{name}")).unwrap()).unwrap()
}

fn cases(name: &str) -> Vec<Value> {
    let cases = fixture(name)["cases"].as_array().unwrap().clone();
    assert!(!cases.is_empty());
    cases
}

/// Rows of cells; -1 stands for none.
fn cells(value: &Value) -> Vec<Vec<Cell>> {
    let rows: Vec<Vec<i32>> = serde_json::from_value(value.clone()).unwrap();
    rows.iter().map(|row| row.iter().map(|&c| u16::try_from(c).ok()).collect()).collect()
}

/// `[frames][streams]`.
fn codes(value: &Value) -> Codes {
    serde_json::from_value(value.clone()).unwrap()
}

fn size(case: &Value, name: &str) -> usize {
    case[name].as_u64().unwrap() as usize
}

fn transpose(frames: &[Vec<u16>], streams: usize) -> Codes {
    (0..streams).map(|s| frames.iter().map(|f| f[s]).collect()).collect()
}

/// All rows in turn; the frames, and how many were whole after each row.
fn align(rows: &[Vec<Cell>], streams: usize) -> Result<(Codes, Vec<usize>, Aligner), Hole> {
    let mut aligner = Aligner::new(streams);
    let (mut codes, mut counts) = (Vec::new(), Vec::new());
    for row in rows {
        let before = codes.len();
        let completed = aligner.push(row, &mut codes)?;
        assert_eq!(codes.len() - before, if completed { streams } else { 0 });
        counts.push(aligner.frames());
    }
    assert_eq!(aligner.rows(), rows.len());
    Ok((codes.chunks(streams).map(<[u16]>::to_vec).collect(), counts, aligner))
}

#[test]
fn golden_grids_come_apart_row_by_row_and_go_together_again() {
    for case in cases("deinterleave.json") {
        let streams = size(&case, "streams");
        let (rows, expected) = (cells(&case["delayed"]), codes(&case["codebooks"]));
        let (frames, counts, _) = align(&rows, streams).unwrap();
        assert_eq!(frames, expected, "{}", case["name"]);
        assert_eq!(
            counts,
            serde_json::from_value::<Vec<usize>>(case["whole_frames_after_row"].clone()).unwrap()
        );
        let by_stream = transpose(&expected, streams);
        let by_stream: Vec<&[u16]> = by_stream.iter().map(Vec::as_slice).collect();
        assert_eq!(interleave(&by_stream), rows, "{}", case["name"]);
    }
}

#[test]
fn a_segment_cut_short_gives_its_whole_frames_and_counts_the_others() {
    for case in cases("early_end.json") {
        let outcome = align(&cells(&case["delayed"]), size(&case, "streams"));
        if let Some(error) = case.get("expect_error") {
            let hole = Hole { frame: size(error, "frame"), stream: size(error, "stream") };
            assert_eq!(outcome.err(), Some(hole));
            continue;
        }
        let (frames, _, aligner) = outcome.unwrap();
        assert_eq!(frames, codes(&case["codebooks"]), "{}", case["name"]);
        assert_eq!(aligner.unfinished(), size(&case, "frames_lost"), "{}", case["name"]);
        assert_eq!(frames.len() + aligner.unfinished(), size(&case, "frames_begun"));
    }
}

#[test]
fn both_drains_keep_every_frame_and_drop_what_the_end_symbol_began() {
    for case in cases("drain.json") {
        let (streams, rows) = (size(&case, "streams"), cells(&case["delayed"]));
        let expected = codes(&case["codebooks"]);
        let (frames, ..) = align(&rows, streams).unwrap();
        assert_eq!(frames, expected, "{}", case["name"]);
        if case.get("stopped_by").is_some() {
            continue;
        }
        let flushed = case["style"] == "eos_then_flush";
        let ending = if flushed { Ending::Flushed } else { Ending::Padded };
        assert_eq!(ending.rows(frames.len(), streams), rows.len(), "{}", case["name"]);
        assert_eq!(ending.frames(rows.len(), streams), frames.len(), "{}", case["name"]);
        if flushed {
            check_flush(&case, frames.len(), streams, rows.len());
        }
    }
}

/// Which cells and which rows of stream 0 are forced to pad.
fn check_flush(case: &Value, frames: usize, streams: usize, rows: usize) {
    let mut forced = Vec::new();
    for row in 0..rows {
        let live = live_streams(row, Some(frames + 1), streams);
        forced.extend((1..streams).filter(|s| !live.contains(s)).map(|s| vec![row, s]));
    }
    let told: Vec<Vec<usize>> = serde_json::from_value(case["forced_pad_cells"].clone()).unwrap();
    assert_eq!(forced, told, "{}", case["name"]);
    let silent: Vec<usize> = (0..rows)
        .filter(|&row| !live_streams(row, Some(frames + 1), streams).contains(&0))
        .collect();
    let told: Vec<usize> = serde_json::from_value(case["forced_stream0_rows"].clone()).unwrap();
    assert_eq!(silent, told, "{}", case["name"]);
}

#[test]
fn rows_of_many_speakers_in_any_order_reach_their_own_aligners() {
    for case in cases("ragged.json") {
        let requests = case["requests"].as_object().unwrap();
        let mut speakers: BTreeMap<&str, (Aligner, Vec<u16>)> = requests
            .iter()
            .map(|(name, r)| (name.as_str(), (Aligner::new(size(r, "streams")), Vec::new())))
            .collect();
        // A step without a batch only moves requests out or in.
        let batches =
            case["steps"].as_array().unwrap().iter().filter_map(|s| s["batch"].as_array());
        for entry in batches.flatten() {
            let (aligner, codes) = speakers.get_mut(entry[0].as_str().unwrap()).unwrap();
            let row: Vec<i32> = serde_json::from_value(entry[1].clone()).unwrap();
            let row: Vec<Cell> = row.iter().map(|&c| u16::try_from(c).ok()).collect();
            aligner.push(&row, codes).unwrap();
        }
        for (name, request) in requests {
            let (aligner, said) = &speakers[name.as_str()];
            assert_eq!(*said, codes(&request["codebooks"]).concat(), "{} {name}", case["name"]);
            assert_eq!(aligner.unfinished(), 0);
        }
    }
}

#[test]
fn a_row_without_a_code_in_stream_0_begins_no_frame_and_later_ones_do() {
    let mut aligner = Aligner::new(2);
    let mut codes = Vec::new();
    for row in [[Some(1), None], [None, Some(2)], [Some(3), Some(9)], [None, Some(4)]] {
        aligner.push(&row, &mut codes).unwrap();
    }
    assert_eq!((codes, aligner.frames(), aligner.unfinished()), (vec![1, 2, 3, 4], 2, 0));
}

#[test]
fn a_missing_code_is_told_and_the_row_not_taken() {
    let mut aligner = Aligner::new(2);
    let mut codes = Vec::new();
    assert!(!aligner.needs(1));
    aligner.push(&[Some(1), None], &mut codes).unwrap();
    assert!(aligner.needs(1));
    let before = format!("{aligner:?}");
    let error = aligner.push(&[Some(3), None], &mut codes).unwrap_err();
    assert_eq!(error.to_string(), "frame 0 has no code in stream 1");
    assert_eq!((format!("{aligner:?}"), codes.len()), (before, 0));
    aligner.push(&[None, Some(2)], &mut codes).unwrap();
    assert!(!aligner.needs(1));
}

#[test]
fn a_known_limit_leaves_room_to_finish_what_has_begun() {
    for streams in 1..10 {
        for rows in 0..30 {
            for ending in [Ending::Padded, Ending::Flushed] {
                let frames = ending.frames(rows, streams);
                assert!(frames == 0 || ending.rows(frames, streams) <= rows);
                assert!(ending.rows(frames + 1, streams) > rows);
            }
        }
        assert_eq!(Ending::Padded.frames(30, streams), 30 - streams + 1);
    }
}

/// The definition, on a whole grid: frame `t` is `row[t + n][n]`, where row `t` has a code in stream 0.
fn naive(rows: &[Vec<Cell>], streams: usize) -> Result<Codes, Hole> {
    let frames = (0..rows.len().saturating_sub(streams - 1)).filter(|&t| rows[t][0].is_some());
    let code =
        |frame: usize, stream: usize| rows[frame + stream][stream].ok_or(Hole { frame, stream });
    frames.map(|frame| (0..streams).map(|stream| code(frame, stream)).collect()).collect()
}

/// Any grid with junk in warm-up and drain, a stream 0 that is silent at times and in the end, and holes elsewhere if wanted.
fn grid(holes: bool) -> impl Strategy<Value = (usize, Vec<Vec<Cell>>)> {
    (1..10usize, 0..40usize, 0..40usize).prop_flat_map(move |(streams, rows, begun)| {
        let cell = prop::option::weighted(0.97, any::<u16>());
        let grid = prop::collection::vec(prop::collection::vec(cell, streams), rows);
        grid.prop_map(move |mut grid| {
            let filler = if holes { None } else { Some(7) };
            for (row, cells) in grid.iter_mut().enumerate() {
                cells[1..].iter_mut().for_each(|cell| *cell = cell.or(filler));
                cells[0] = cells[0].filter(|_| row < begun);
            }
            (streams, grid)
        })
    })
}

proptest! {
    #[test]
    fn frames_are_those_of_the_whole_grid((streams, rows) in grid(false)) {
        let (frames, counts, aligner) = align(&rows, streams).unwrap();
        prop_assert_eq!(&frames, &naive(&rows, streams).unwrap());
        prop_assert_eq!(counts.last().copied().unwrap_or(0), frames.len());
        let begun = rows.iter().filter(|r| r[0].is_some()).count();
        prop_assert_eq!(aligner.unfinished(), begun - frames.len());
    }

    #[test]
    fn holes_are_found_in_the_first_frame_that_has_one((streams, rows) in grid(true)) {
        prop_assert_eq!(align(&rows, streams).map(|a| a.0), naive(&rows, streams));
    }

    #[test]
    fn what_is_laid_out_comes_back(frames in 0..20usize, streams in 1..10usize, seed in any::<u16>()) {
        let code = |s: usize, t: usize| seed.wrapping_add((s * 31 + t * 7) as u16);
        let codes: Codes = (0..streams).map(|s| (0..frames).map(|t| code(s, t)).collect()).collect();
        let views: Vec<&[u16]> = codes.iter().map(Vec::as_slice).collect();
        let rows = interleave(&views);
        for (row, cells) in rows.iter().enumerate() {
            let live = live_streams(row, Some(frames), streams);
            prop_assert!(cells.iter().enumerate().all(|(s, c)| c.is_some() == live.contains(&s)));
        }
        let (back, ..) = align(&rows, streams).unwrap();
        prop_assert_eq!(transpose(&back, streams), codes);
    }
}
