//! Against golden tensors of the public implementation, on a narrow tower with random weights: origin and shapes in
//! `tests/fixtures/qwen3_omni_audio_tiny/README.md`.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use safetensors::{Dtype, tensor::TensorView};

use super::*;

/// An independent implementation was off by 2e-6; sums in another order through two layers, with room.
const TOLERANCE: f32 = 2e-5;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
}

fn open(name: &str) -> Weights {
    Weights::open(&fixture(&format!("qwen3_omni_audio_tiny/{name}.safetensors"))).unwrap()
}

fn config(name: &str) -> Config {
    Config::read(&fixture(&format!("qwen3_omni_audio_tiny/{name}.json"))).unwrap()
}

fn tower(config_name: &str) -> Tower {
    Tower::load(&open("model"), &config(config_name)).unwrap()
}

fn golden(file: &Weights, name: &str) -> Frames {
    let shape = file.shape(name).unwrap();
    Frames::new(file.f32(name, shape).unwrap(), shape[shape.len() - 1])
}

fn input(name: &str) -> Frames {
    let file = open("inputs");
    let bands = file.shape(name).unwrap()[0];
    Frames::from_channels_first(golden(&file, name).data(), bands)
}

fn assert_near(what: &str, got: &Frames, expected: &Frames) {
    assert_eq!((got.time(), got.channels()), (expected.time(), expected.channels()), "{what}");
    for (i, (g, e)) in got.data().iter().zip(expected.data()).enumerate() {
        assert!((g - e).abs() <= TOLERANCE, "{what}: value {i} is {g}, expected {e}");
    }
}

#[test]
fn both_window_settings_give_the_golden_rows() {
    for (config, case, mel) in [
        ("config", "case_w50_3s3", "mel_3s3"),
        ("config", "case_w50_9s", "mel_9s"),
        ("config_w100", "case_w100_3s3", "mel_3s3"),
        ("config_w100", "case_w100_9s", "mel_9s"),
    ] {
        let (tower, golden_file, mel) = (tower(config), open(case), input(mel));
        let chunks: Vec<_> = (0..mel.time())
            .step_by(tower.chunk_frames)
            .map(|start| mel.slice(start..(start + tower.chunk_frames).min(mel.time())))
            .map(|chunk| (chunk, tower.chunk_frames))
            .collect();
        let mut tokens = Frames::zeros(0, 64);
        tower.tokens_of(&chunks).iter().for_each(|chunk| tokens.extend(chunk));
        assert_near(case, &tokens, &golden(&golden_file, "tokens_in"));
        let rows = tower.forward(&mel);
        assert_near(case, &rows, &golden(&golden_file, "features"));
        assert_eq!(rows.time(), tower.tokens(mel.time()));
    }
}

#[test]
fn every_layer_gives_the_golden_tokens() {
    let (tower, golden_file) = (tower("config"), open("case_w50_3s3"));
    // One window holds the whole clip.
    let mut tokens = golden(&golden_file, "tokens_in");
    for (i, layer) in tower.layers.iter().enumerate() {
        let window = [tokens.time()];
        layer.apply(&mut tokens, &window);
        let name = format!("hidden_after_layer_{i}");
        assert_near(&name, &tokens, &golden(&golden_file, &name));
    }
    tower.last.apply(tokens.data_mut());
    assert_near("after the last norm", &tokens, &golden(&golden_file, "after_ln_post"));
}

#[test]
fn a_clip_shorter_than_a_chunk_is_encoded_as_if_alone() {
    let golden_file = open("case_w50_short");
    let rows = tower("config").forward(&input("mel_0s7"));
    assert_near("alone", &rows, &golden(&golden_file, "features_alone"));
}

#[test]
fn rows_are_counted_before_they_are_made() {
    let tower = tower("config");
    for frames in [0, 1, 8, 9, 99, 100, 101, 799, 800, 801, 1_650] {
        let mel = Frames::zeros(frames, 128);
        assert_eq!(tower.forward(&mel).time(), tower.tokens(frames), "{frames} frames");
    }
    assert_eq!((tower.tokens(330), tower.tokens(900), tower.tokens(3_000)), (43, 117, 390));
}

#[test]
fn a_stream_gives_each_window_as_soon_as_it_is_complete() {
    let (tower, mel) = (tower("config"), input("mel_9s"));
    let mut stream = tower.stream();
    assert_eq!(tower.step(&mut stream, &mel.slice(0..799), false).time(), 0);
    assert_eq!(tower.step(&mut stream, &mel.slice(799..800), false).time(), 104);
    assert_eq!(stream.values(), 0);
    assert_eq!(tower.step(&mut stream, &mel.slice(800..900), true).time(), 13);
    assert_eq!(stream, tower.stream());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn pieces_equal_the_whole(sizes in prop::collection::vec(0_usize..400, 1..6), clip in 0_usize..900) {
        let (tower, mel) = (tower("config_w100"), input("mel_9s").slice(0..clip));
        let (mut stream, mut rows, mut at) = (tower.stream(), Frames::zeros(0, 48), 0);
        for size in sizes {
            let end = (at + size).min(clip);
            rows.extend(&tower.step(&mut stream, &mel.slice(at..end), false));
            at = end;
        }
        rows.extend(&tower.step(&mut stream, &mel.slice(at..clip), true));
        prop_assert_eq!(rows, tower.forward(&mel));
        prop_assert_eq!(stream, tower.stream());
    }
}

#[test]
fn the_adaptor_brings_rows_to_the_width_of_the_language_model() {
    let weights = Weights::open(&fixture("speechlm_tiny/bagpiper/model.safetensors")).unwrap();
    let golden_file =
        Weights::open(&fixture("speechlm_tiny/bagpiper/audio_in.safetensors")).unwrap();
    let adaptor = load_adaptor(&weights, [64, 48]).unwrap();
    let rows = adaptor.forward(&golden(&golden_file, "features"));
    let is_audio = golden_file.ints("is_audio").unwrap();
    let expected = golden(&golden_file, "embeddings");
    let expected = expected.rows().zip(is_audio).filter(|(_, is)| *is == 1);
    let expected = expected.flat_map(|(row, _)| row).copied().collect();
    assert_near("adapted", &rows, &Frames::new(expected, 64));
}

/// The tower of one fixture and the adaptor of another.
fn hearing(seconds_max: f64) -> Hearing {
    let model = Weights::open(&fixture("speechlm_tiny/bagpiper/model.safetensors")).unwrap();
    let (tower, config) = (open("model"), config("config"));
    let mel = MelSettings::default();
    Hearing::load((&tower, &config), (&model, 64), mel, seconds_max).unwrap()
}

#[test]
fn a_clip_is_encoded_to_as_many_rows_as_were_told() {
    let hearing = hearing(1.0);
    let samples: Vec<f32> = (0..16_000_u16).map(|i| (f32::from(i) * 0.05).sin() * 0.3).collect();
    for length in [1, 160, 11_000, 16_000] {
        let rows = hearing.encode(&samples[..length]).unwrap();
        assert_eq!((rows.time(), rows.channels()), (hearing.rows(length), hearing.hidden()));
        assert!(rows.data().iter().all(|v| v.is_finite()));
    }
    assert_eq!(hearing.rows(16_000), 13);
}

/// Sound that changes: silence, then noise under an envelope that swells to three times its first loudness in the second window.
fn swelling(samples: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let noise = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let envelope = |i: usize| match i {
        0..8_000 => 0.0,
        8_000..WINDOW_SAMPLES => 0.1,
        _ => 0.3,
    };
    std::iter::repeat_with(noise).take(samples).enumerate().map(|(i, n)| n * envelope(i)).collect()
}

/// A window of the tiny tower, and what the spectrum looks ahead behind it.
const WINDOW_SAMPLES: usize = 800 * 160;
const LOOK_AHEAD: usize = 40;
/// Rows of a window.
const WINDOW_ROWS: usize = 104;

/// Both ways to see a clip; a live one differs from a whole one only by what they look at in all of it.
fn manners() -> [MelSettings; 2] {
    [MelSettings::default(), MelSettings { normalise: true, tail: Tail::Silence }]
}

fn hearing_as(mel: MelSettings) -> Hearing {
    let model = Weights::open(&fixture("speechlm_tiny/bagpiper/model.safetensors")).unwrap();
    let (tower, config) = (open("model"), config("config"));
    Hearing::load((&tower, &config), (&model, 64), mel, 60.0).unwrap()
}

/// The rows of a clip that comes in pieces of these lengths, and behind them as one.
fn live(hearing: &Hearing, samples: &[f32], cuts: &[usize]) -> Frames {
    let (mut clip, mut rest) = (hearing.begin(), samples);
    let mut rows = Frames::zeros(0, hearing.hidden());
    for &cut in cuts {
        let (piece, more) = rest.split_at(cut.min(rest.len()));
        rows.extend(&hearing.step(&mut clip, piece, false).unwrap());
        rest = more;
    }
    rows.extend(&hearing.step(&mut clip, rest, true).unwrap());
    assert_eq!(clip, hearing.begin(), "as new");
    rows
}

#[test]
fn a_live_clip_of_one_window_is_the_whole_clip_bit_for_bit() {
    let samples = swelling(WINDOW_SAMPLES);
    for mel in manners() {
        let hearing = hearing_as(mel);
        for length in [1, 15_000, 16_000, WINDOW_SAMPLES - 1, WINDOW_SAMPLES] {
            let whole = hearing.encode(&samples[..length]).unwrap();
            assert!(live(&hearing, &samples[..length], &[700, 9_000]) == whole, "{length}");
        }
    }
}

#[test]
fn every_window_of_a_live_clip_is_that_of_the_clip_that_ends_behind_it() {
    let samples = swelling(2 * WINDOW_SAMPLES + 20_000);
    for mel in manners() {
        let hearing = hearing_as(mel);
        let rows = live(&hearing, &samples, &[]);
        for window in 0..2 {
            let (from, to) = (window * WINDOW_ROWS, (window + 1) * WINDOW_ROWS);
            let heard = (window + 1) * WINDOW_SAMPLES + LOOK_AHEAD;
            let clip = hearing.encode(&samples[..heard]).unwrap();
            assert!(rows.slice(from..to) == clip.slice(from..to), "window {window}");
        }
        let whole = hearing.encode(&samples).unwrap();
        assert_eq!(rows.time(), whole.time());
        let last = 2 * WINDOW_ROWS..whole.time();
        assert!(rows.slice(last.clone()) == whole.slice(last), "the last window knows all");
        assert!(rows != whole, "the others do not know how loud it becomes");
    }
}

#[test]
fn a_window_is_there_as_soon_as_the_spectrum_needs_no_more() {
    let hearing = hearing_as(MelSettings::default());
    let samples = swelling(WINDOW_SAMPLES + 2 * LOOK_AHEAD);
    let (most, rest) = samples.split_at(WINDOW_SAMPLES + LOOK_AHEAD - 1);
    let mut clip = hearing.begin();
    assert_eq!(hearing.step(&mut clip, most, false).unwrap().time(), 0);
    assert_eq!(hearing.step(&mut clip, &rest[..1], false).unwrap().time(), WINDOW_ROWS);
    assert_eq!(hearing.step(&mut clip, &rest[1..], true).unwrap().time(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn pieces_of_a_live_clip_equal_the_whole(
        cuts in prop::collection::vec(0_usize..90_000, 0..5),
        length in 1_usize..WINDOW_SAMPLES + 30_000,
        way in 0_usize..2,
    ) {
        let (hearing, samples) = (hearing_as(manners()[way]), swelling(length));
        prop_assert!(live(&hearing, &samples, &cuts) == live(&hearing, &samples, &[]));
    }
}

#[test]
fn what_is_refused_of_a_live_clip_counts_as_not_heard() {
    let hearing = hearing(1.0);
    let mut clip = hearing.begin();
    assert_eq!(hearing.step(&mut clip, &[], true).unwrap_err(), HearingError::Empty);
    hearing.step(&mut clip, &[0.5; 15_000], false).unwrap();
    let before = clip.clone();
    let error = hearing.step(&mut clip, &[0.0, f32::NAN], false).unwrap_err();
    assert_eq!(error, HearingError::NotFinite { index: 15_001 });
    let error = hearing.step(&mut clip, &[0.0; 1_001], true).unwrap_err().to_string();
    assert!(error.contains("longer than 1 s"), "{error}");
    assert_eq!(clip, before);
}

#[test]
fn a_clip_that_cannot_be_encoded_is_told_why() {
    let hearing = hearing(1.0);
    assert_eq!(hearing.encode(&[]).unwrap_err(), HearingError::Empty);
    let error = hearing.encode(&[0.0, f32::NAN]).unwrap_err();
    assert_eq!(error, HearingError::NotFinite { index: 1 });
    let error = hearing.encode(&[0.0; 16_001]).unwrap_err().to_string();
    assert_eq!(error, "the clip is too long for the model: longer than 1 s");
}

#[test]
fn a_tower_is_found_among_other_parts_of_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let (source, file) = (open("model"), folder.path().join("all.safetensors"));
    let bytes = |name: &str| -> Vec<u8> {
        let values = source.f32(name, source.shape(name).unwrap()).unwrap();
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    };
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = source
        .names()
        .map(|name| {
            let named = format!("parts.audio_tower.{name}");
            (named, source.shape(name).unwrap().to_vec(), bytes(name))
        })
        .chain([("model.norm.weight".to_owned(), vec![1], vec![0; 4])])
        .collect();
    let views = tensors.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap();
        (name, view)
    });
    std::fs::write(&file, safetensors::serialize(views, None).unwrap()).unwrap();
    let found = Tower::load(&Weights::open(&file).unwrap(), &config("config")).unwrap();
    let mel = input("mel_0s7");
    assert_eq!(found.forward(&mel), tower("config").forward(&mel));
}

#[test]
fn a_missing_part_is_told_by_name() {
    let load = |weights: &str, config: &Config| {
        Tower::load(&open(weights), config).err().unwrap().to_string()
    };
    let error = load("inputs", &config("config"));
    assert!(error.contains("`conv2d1.weight`") && error.contains("missing"), "{error}");
    let error = load("model", &Config { d_model: 128, ..config("config") });
    assert!(error.contains("conv_out.weight"), "{error}");
}
