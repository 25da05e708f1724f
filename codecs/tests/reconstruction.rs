//! Streaming reconstruction, carried out with the two tiny codecs joined: the golden case at its list of events, and
//! the properties that a listener and an operator rely on.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

use std::path::{Path, PathBuf};

use codecs::codes::CodeError;
use codecs::dualcodec::{Config, Decoder};
use codecs::nano::Nano;
use codecs::reconstruct::{Codec, Dual, Family, Stream};
use codecs::vibevoice::Tokenizer;
use codecs::weights::Weights;
use codecs::window::{End, Plan, Settings, offline_windows};

/// The random encoder amplifies the last digits of the DualCodec waveform some hundred times; an independent
/// implementation met 4e-4 in latents and 1.5e-4 in sound.
const GOLDEN_TOLERANCE: f32 = 2e-3;

/// Windows that reach back far enough hold the same numbers, but may sum them in tiles that begin elsewhere, which
/// costs the last digits of the DualCodec waveform; the same amplification applies. Measured: no difference at all.
const WINDOW_TOLERANCE: f32 = 2e-4;

const ROWS: usize = 4;
const WIDTH: usize = 8;
const SILENCE: [u16; ROWS] = [5, 0, 0, 0];
const FIRST_FRAMES: usize = 40;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
}

fn dual() -> Dual {
    let folder = fixture("dualcodec_tiny");
    let config = Config::read(&folder.join("config.json")).unwrap();
    let decoder = Decoder::load(&Weights::open(&folder).unwrap(), &config, ROWS - 1).unwrap();
    Dual::new(decoder, &config, Tokenizer::open(&fixture("vibevoice_tiny")).unwrap())
}

fn family() -> Family {
    Family::Dual(Box::new(dual()))
}

fn codec_with(settings: Settings) -> Codec {
    Codec::new(family(), Some(SILENCE.to_vec())).unwrap().with_settings(settings).unwrap()
}

fn codec() -> Codec {
    codec_with(Settings::default())
}

fn stream(codec: &Codec) -> Stream {
    codec.stream(FIRST_FRAMES, 0).unwrap()
}

fn golden() -> Weights {
    Weights::open(&fixture("vibevoice_tiny/reconstruction.safetensors")).unwrap()
}

type Codes = Vec<Vec<u16>>;

fn golden_codes() -> Codes {
    let file = golden();
    let ints = |name| file.ints(name).unwrap().into_iter().map(|c| u16::try_from(c).unwrap());
    let semantic: Vec<u16> = ints("semantic_codes").collect();
    let acoustic: Vec<u16> = ints("acoustic_codes").collect();
    let mut codes = vec![semantic.clone()];
    codes.extend(acoustic.chunks_exact(semantic.len()).map(<[u16]>::to_vec));
    codes
}

/// Codes without a pattern; the same seed gives the same codes.
fn random_codes(frames: usize, seed: u32) -> Codes {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = |entries: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u16::try_from((state >> 16) % entries).unwrap()
    };
    (0..ROWS)
        .map(|row| (0..frames).map(|_| next(if row == 0 { 128 } else { 64 })).collect())
        .collect()
}

/// Frames `from..to` of every row.
fn part(codes: &Codes, from: usize, to: usize) -> Vec<&[u16]> {
    codes.iter().map(|row| &row[from..to]).collect()
}

/// Pushes a passage so that it is known up to each of `events` in turn, and ends with its last frame.
fn speak(codec: &Codec, stream: &mut Stream, codes: &Codes, events: &[usize]) -> Vec<f32> {
    let (mut sound, mut at) = (Vec::new(), 0);
    for &n in events {
        sound.extend(codec.push(stream, &part(codes, at, n), End::No).unwrap());
        at = n;
    }
    let last = part(codes, at, codes[0].len());
    sound.extend(codec.push(stream, &last, End::Passage).unwrap());
    sound
}

fn assert_close(what: &str, got: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(got.len(), expected.len(), "{what}: length");
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= tolerance, "{what}: value {i}: {g}, expected {e}");
    }
}

fn every_16th(sound: &[f32]) -> Vec<f32> {
    sound.iter().step_by(16).copied().collect()
}

#[test]
fn committed_latents_match_the_reference() {
    let (dual, file) = (dual(), golden());
    let mut codes = golden_codes();
    codes.iter_mut().zip(SILENCE).for_each(|(row, code)| row.extend([code; 3]));
    let mut plan = Plan::new(Settings { tail_frames: 3, ..Settings::default() }).unwrap();
    let events =
        [(40, End::No, 21), (18, End::Chunk, 9), (29, End::Chunk, 15), (0, End::Passage, 9)];
    for (i, (new, end, count)) in events.into_iter().enumerate() {
        let windows = plan.grow(new, end);
        assert_eq!(windows.len(), 1);
        let decode = &windows[0].decode;
        let codes: Codes = codes.iter().map(|row| row[decode.clone()].to_vec()).collect();
        let got = dual.latents(&codes, &windows[0]).unwrap();
        let expected = file.f32(&format!("committed_{i}"), &[1, count, WIDTH]).unwrap();
        assert_close(&format!("event {i}"), got.data(), &expected, GOLDEN_TOLERANCE);
    }
}

#[test]
fn streamed_sound_matches_the_reference() {
    let (codec, codes) = (codec(), golden_codes());
    let mut stream = stream(&codec);
    let sound = speak(&codec, &mut stream, &codes, &[40, 58, 87]);
    assert_eq!((sound.len(), stream.plan().released_samples()), (172_800, 172_800));
    let expected = golden().f32("streamed_audio_every_16th", &[1, 1, 10_800]).unwrap();
    assert_close("streamed", &every_16th(&sound), &expected, GOLDEN_TOLERANCE);
}

#[test]
fn offline_windows_match_the_reference() {
    let (codec, codes) = (codec(), golden_codes());
    let sound = codec.offline_in_windows(&part(&codes, 0, 87), 0, 40, 15).unwrap();
    assert_eq!(sound.len(), 172_800);
    let expected = golden().f32("offline_audio_every_16th", &[1, 1, 10_800]).unwrap();
    assert_close("offline", &every_16th(&sound), &expected, GOLDEN_TOLERANCE);
}

#[test]
fn offline_latents_match_the_reference() {
    let (dual, file) = (dual(), golden());
    let mut codes = golden_codes();
    codes.iter_mut().zip(SILENCE).for_each(|(row, code)| row.extend([code; 3]));
    for (name, content, context) in [("offline_latents", 40, 15), ("whole_latents", 90, 0)] {
        let mut got = Vec::new();
        for window in offline_windows(90, content, context) {
            let codes: Codes =
                codes.iter().map(|row| row[window.decode.clone()].to_vec()).collect();
            got.extend(dual.latents(&codes, &window).unwrap().into_data());
        }
        let expected = file.f32(name, &[1, 54, WIDTH]).unwrap();
        assert_close(name, &got, &expected, GOLDEN_TOLERANCE);
    }
}

#[test]
fn twelve_seconds_of_context_give_what_the_whole_prefix_gives() {
    let codes = random_codes(400, 1);
    let events: Vec<usize> = (1..16).map(|m| 25 * m + 5).collect();
    let [bounded, whole] = [150, 400].map(|context_frames| {
        let codec = codec_with(Settings { context_frames, ..Settings::default() });
        let mut stream = stream(&codec);
        let sound = speak(&codec, &mut stream, &codes, &events);
        (sound, stream.decoded_frames())
    });
    assert_close("bounded", &bounded.0, &whole.0, WINDOW_TOLERANCE);
    assert!(bounded.1 < whole.1, "{} frames decoded, {} for the whole prefix", bounded.1, whole.1);
}

#[test]
fn a_pause_lets_the_sentence_go_whole_and_the_next_one_starts_as_new() {
    let codec = codec();
    let (first, second) = (random_codes(67, 2), random_codes(58, 3));
    let mut paused = stream(&codec);
    let sentence = speak(&codec, &mut paused, &first, &[40, 55]);
    assert_eq!(sentence.len(), (67 + 3) * 1920, "all of it, with its tail");

    // Four seconds in which the caller looks in and has nothing.
    let nothing = part(&first, 0, 0);
    for end in [End::No, End::Chunk, End::Passage, End::No] {
        assert!(codec.push(&mut paused, &nothing, end).unwrap().is_empty());
    }
    assert_eq!(paused.plan().released_samples(), sentence.len() as u64);
    assert_eq!(paused.held_frames(), 0);

    let after = speak(&codec, &mut paused, &second, &[40, 55]);
    let fresh = speak(&codec, &mut stream(&codec), &second, &[40, 55]);
    assert_eq!(after, fresh, "nothing of the first sentence is left in the state");
    assert_eq!(paused.plan().released_samples(), (sentence.len() + fresh.len()) as u64);
}

#[test]
fn frames_that_come_one_by_one_give_what_the_useful_events_give() {
    let (codec, codes) = (codec(), random_codes(62, 4));
    let at_events = speak(&codec, &mut stream(&codec), &codes, &[40, 55]);
    let every: Vec<usize> = (1..62).collect();
    let one_by_one = speak(&codec, &mut stream(&codec), &codes, &every);
    assert_eq!(one_by_one, at_events);
}

#[test]
fn work_and_memory_of_a_commit_do_not_grow_with_the_passage() {
    // A short context: what is counted is frames, and two minutes of them take long at the real one.
    let settings = Settings { context_frames: 5, ..Settings::default() };
    let (codec, codes) = (codec_with(settings), random_codes(25, 5));
    let mut stream = stream(&codec);
    let new = part(&codes, 0, 25);
    let mut costs = Vec::new();
    for _ in 0..60 {
        let before = stream.decoded_frames();
        codec.push(&mut stream, &new, End::No).unwrap();
        costs.push(stream.decoded_frames() - before);
        assert!(stream.held_frames() <= 5 + 25 + 25, "{} frames held", stream.held_frames());
    }
    assert_eq!(stream.plan().known_frames(), 1500);
    let late: Vec<u64> = costs[3..].to_vec();
    assert!(late.iter().all(|&c| c == late[0]), "frames decoded for each push: {costs:?}");
}

#[test]
fn a_copy_of_a_stream_goes_on_by_itself() {
    let (codec, codes) = (codec(), random_codes(80, 6));
    let mut original = stream(&codec);
    codec.push(&mut original, &part(&codes, 0, 40), End::No).unwrap();
    let mut copy = original.clone();
    let rest = part(&codes, 40, 80);
    let first = codec.push(&mut original, &rest, End::Passage).unwrap();
    let second = codec.push(&mut copy, &rest, End::Passage).unwrap();
    assert_eq!(first, second);
}

#[test]
fn codes_that_cannot_be_decoded_leave_the_stream_as_it_was() {
    let (codec, mut codes) = (codec(), random_codes(45, 7));
    let expected = speak(&codec, &mut stream(&codec), &codes, &[40]);
    let mut hurt = stream(&codec);
    let mut sound = codec.push(&mut hurt, &part(&codes, 0, 40), End::No).unwrap();

    let few = codec.push(&mut hurt, &part(&codes, 40, 45)[..3], End::Passage);
    assert_eq!(few, Err(CodeError::Rows { found: 3, expected: ROWS }));
    let good = std::mem::replace(&mut codes[2][44], 64);
    let out_of_range = codec.push(&mut hurt, &part(&codes, 40, 45), End::Passage);
    assert_eq!(out_of_range, Err(CodeError::Code { row: 2, code: 64, entries: 64 }));

    codes[2][44] = good;
    sound.extend(codec.push(&mut hurt, &part(&codes, 40, 45), End::Passage).unwrap());
    assert_eq!(sound, expected);
}

#[test]
fn a_voice_without_a_silence_code_closes_without_a_tail() {
    let codec = Codec::new(family(), None).unwrap();
    let codes = random_codes(12, 8);
    // 12 frames are 7.2 latents: the eighth is cut where the frames end.
    let sound = speak(&codec, &mut stream(&codec), &codes, &[]);
    assert_eq!(sound.len(), 12 * 1920);
    assert_eq!(codec.offline(&part(&codes, 0, 12), 0).unwrap().len(), 12 * 1920);
    assert!(codec.offline(&part(&codes, 0, 0), 0).unwrap().is_empty());
}

#[test]
fn a_silence_code_outside_the_codebooks_is_refused() {
    for silence in [vec![128, 0, 0, 0], vec![5, 0, 0]] {
        assert!(Codec::new(family(), Some(silence.clone())).is_err(), "{silence:?}");
    }
}

fn nano() -> Nano {
    Nano::load(&fixture("../../voices/nano/codec"), 1.5).unwrap()
}

/// Codes of a spoken sentence.
fn sentence(name: &str) -> Codes {
    let file = Weights::open(&fixture("nano/golden.safetensors")).unwrap();
    let codes = file.ints(&format!("{name}.codes")).unwrap();
    let row = |codes: &[i64]| codes.iter().map(|&c| u16::try_from(c).unwrap()).collect();
    codes.chunks(codes.len() / ROWS).map(row).collect()
}

#[test]
fn the_bundled_voice_streams_exactly_what_it_decodes_whole() {
    const SEED: u64 = 9;
    let codes = sentence("t0");
    let frames = codes[0].len();
    let whole = nano().decode(&codes, SEED).unwrap();
    let codec = Codec::new(Family::Nano(Box::new(nano())), None).unwrap();
    assert_eq!(codec.rows(), ROWS);
    assert_eq!(codec.offline(&part(&codes, 0, frames), SEED).unwrap(), whole);
    for first_frames in [10, 25] {
        let mut stream = codec.stream(first_frames, SEED).unwrap();
        let events: Vec<usize> = (1..frames).collect();
        assert_eq!(speak(&codec, &mut stream, &codes, &events), whole);
        assert!(stream.decoded_frames() < 3 * frames as u64);
    }
}

#[test]
fn sentences_on_both_sides_of_a_pause_join_without_a_jump() {
    let codec = Codec::new(Family::Nano(Box::new(nano())), None).unwrap();
    let mut stream = codec.stream(10, 0).unwrap();
    let [first, second] =
        ["t0", "t1"].map(|name| speak(&codec, &mut stream, &sentence(name), &[10]));
    let step = |pair: &[f32]| (pair[1] - pair[0]).abs();
    let largest = first.windows(2).map(step).fold(0.0_f32, f32::max);
    let join = step(&[first[first.len() - 1], second[0]]);
    assert!(join <= largest / 10.0, "a step of {join} at the join, speech has up to {largest}");
    assert_eq!(stream.plan().released_samples(), (first.len() + second.len()) as u64);
}
