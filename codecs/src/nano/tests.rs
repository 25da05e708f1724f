use super::*;
use crate::frames::Frames;
use crate::window::{End, FRAME_SAMPLES, Plan, Settings};
use proptest::prelude::*;
use std::sync::LazyLock;

/// Natural-log magnitudes up to 5 and the logarithm of the pitch: some roundings of single precision.
const PARAMETER_TOLERANCE: f32 = 1e-5;
/// Samples up to 0.3 from the reference's own parameters: roundings of two FFTs.
const SYNTHESIS_TOLERANCE: f32 = 5e-6;
/// From codes, a pitch that differs in its last digit drifts for 3 s, and the harmonics multiply the drift by 50.
const WAVE_TOLERANCE: f32 = 2e-4;

static NANO: LazyLock<Nano> = LazyLock::new(|| load(1.0).unwrap());
static GOLDEN: LazyLock<Weights> = LazyLock::new(|| {
    Weights::open(&root().join("tests/fixtures/nano/golden.safetensors")).unwrap()
});

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn load(output_gain: f32) -> Result<Nano, LoadError> {
    Nano::load(&root().join("voices/nano/codec"), output_gain)
}

fn golden_codes(name: &str) -> Vec<Vec<u16>> {
    let codes = GOLDEN.ints(&format!("{name}.codes")).unwrap();
    let row = |codes: &[i64]| codes.iter().map(|&c| u16::try_from(c).unwrap()).collect();
    codes.chunks(codes.len() / 4).map(row).collect()
}

/// The three golden passages one after the other: 95 frames.
fn long_codes() -> Vec<Vec<u16>> {
    let parts = ["t0", "t1", "t2"].map(golden_codes);
    (0..4).map(|row| parts.iter().flat_map(|p| p[row].clone()).collect()).collect()
}

fn cut(rows: &[Vec<u16>], range: std::ops::Range<usize>) -> Vec<&[u16]> {
    rows.iter().map(|row| &row[range.clone()]).collect()
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn live_settings() -> Settings {
    let context_frames = NANO.reach_frames();
    Settings { first_frames: 10, context_frames, ..Settings::default() }
}

/// Decodes the windows that a plan makes of pieces of the given sizes, over and over, to the end of the passage.
fn stream(
    context: &mut NanoStream,
    settings: Settings,
    rows: &[Vec<u16>],
    pieces: &[usize],
) -> Vec<f32> {
    let mut plan = Plan::new(settings).unwrap();
    let (frames, mut known, mut samples) = (rows[0].len(), 0, Vec::new());
    for &piece in pieces.iter().cycle() {
        let piece = piece.min(frames - known);
        known += piece;
        let end = if known == frames { End::Passage } else { End::No };
        for window in plan.grow(piece, end) {
            let codes = cut(rows, window.decode.clone());
            samples.extend(NANO.window(context, &codes, &window).unwrap());
        }
        if known == frames {
            break;
        }
    }
    context.close_passage(frames);
    samples
}

#[test]
fn parameters_match_the_reference() {
    for name in ["t0", "t1", "t2"] {
        let codes = golden_codes(name);
        let got = NANO.network.parameters(&codes).unwrap();
        let expected = GOLDEN.f32(&format!("{name}.params"), &[4 * codes[0].len(), 53]).unwrap();
        for (t, (got, expected)) in got.rows().zip(expected.chunks(53)).enumerate() {
            assert_eq!(got[0] > 0.0, expected[0] > 0.0, "{name}: voicing of sub-frame {t}");
            let octave = (got[0] - expected[0]) / expected[0].max(1.0);
            assert!(octave.abs() < PARAMETER_TOLERANCE, "{name}: pitch of sub-frame {t}");
            let worst = largest_difference(&got[1..], &expected[1..]);
            assert!(worst < PARAMETER_TOLERANCE, "{name}: bands of sub-frame {t}: {worst}");
        }
    }
}

#[test]
fn waveforms_match_the_reference() {
    for name in ["t0", "t1", "t2"] {
        let codes = golden_codes(name);
        let frames = codes[0].len();
        let expected = GOLDEN.f32(&format!("{name}.wave_no_noise"), &[1920 * frames]).unwrap();
        let parameters = GOLDEN.f32(&format!("{name}.params"), &[4 * frames, 53]).unwrap();
        let parameters = Frames::new(parameters, 53);
        let stretch = Stretch { first_frame: 0, parameters: &parameters };
        let rendered = NANO.synthesizer.render(&stretch, 0..frames, &mut 0.0, None);
        let worst = largest_difference(&rendered, &expected);
        assert!(worst < SYNTHESIS_TOLERANCE, "{name}: {worst} from parameters");
        let worst = largest_difference(&NANO.decode_with(&codes, None).unwrap(), &expected);
        assert!(worst < WAVE_TOLERANCE, "{name}: {worst} from codes");
    }
}

#[test]
fn parameters_do_not_depend_on_how_many_frames_are_computed_together() {
    // A last digit of pitch that depended on the window would drift apart over the passage: bits, not tolerances.
    let codes = long_codes();
    let whole = NANO.network.parameters(&codes).unwrap();
    let reach = NANO.reach_frames() - 1; // of the network alone
    for length in [10, 11, 12, 13, 15, 18, 21, 33, 48] {
        for start in (0..codes[0].len() - length).step_by(3) {
            let part = NANO.network.parameters(&cut(&codes, start..start + length)).unwrap();
            let inner = part.slice(4 * reach..4 * (length - reach));
            let same = whole.slice(4 * (start + reach)..4 * (start + length - reach));
            assert!(inner == same, "frames {start} to {}", start + length);
        }
    }
}

#[test]
fn one_window_over_all_equals_decoding_in_parts() {
    let codes = long_codes();
    let frames = codes[0].len();
    let window = Window { decode: 0..frames, emit: 0..frames };
    let whole = NANO.window(&mut NanoStream::new(5), &codes, &window).unwrap();
    assert_eq!(whole, NANO.decode(&codes, 5).unwrap());
    assert_eq!(whole.len(), frames * FRAME_SAMPLES);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_streamed_passage_is_the_offline_passage_to_the_bit(
        pieces in prop::collection::vec(1_usize..40, 1..8),
        frames in 1_usize..95,
        more_context in 0_usize..3,
        first in 2_usize..9,
    ) {
        let mut settings = live_settings();
        settings.context_frames += 5 * more_context;
        settings.first_frames = 5 * first;
        let codes: Vec<Vec<u16>> = long_codes().iter().map(|row| row[..frames].to_vec()).collect();
        let streamed = stream(&mut NanoStream::new(11), settings, &codes, &pieces);
        prop_assert!(streamed == NANO.decode(&codes, 11).unwrap());
    }
}

#[test]
fn a_new_passage_has_no_left_context_and_its_own_noise() {
    let (first, second) = (golden_codes("t0"), golden_codes("t1"));
    let mut context = NanoStream::new(7);
    stream(&mut context, live_settings(), &first, &[26]);
    let after_a_pause = stream(&mut context, live_settings(), &second, &[3, 8]);

    let mut elsewhere = NanoStream::new(7);
    elsewhere.close_passage(first[0].len());
    assert_eq!(stream(&mut elsewhere, live_settings(), &second, &[38]), after_a_pause);
    assert_ne!(NANO.decode(&second, 7).unwrap(), after_a_pause, "the same noise again");
}

#[test]
fn the_seed_decides_the_noise_and_only_that() {
    let codes = golden_codes("t0");
    let plain = NANO.decode_with(&codes, None).unwrap();
    let [a, again, b] = [1, 1, 2].map(|seed| NANO.decode(&codes, seed).unwrap());
    assert_eq!(a, again);
    let noise = |wave: &[f32]| wave.iter().zip(&plain).map(|(w, p)| w - p).collect::<Vec<_>>();
    let power = |wave: &[f32]| wave.iter().map(|s| f64::from(s * s)).sum::<f64>();
    let (a, b) = (noise(&a), noise(&b));
    let ratio = power(&a) / power(&b);
    assert!((0.8..1.25).contains(&ratio), "loudness differs by {ratio}");
    let product: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(a * b)).sum();
    assert!(product.abs() < 0.1 * power(&a), "two seeds correlate");
    assert!(power(&a) < power(&plain), "speech must not drown");
}

#[test]
fn fewer_rows_are_decoded_alone_and_change_the_sound() {
    let codes = golden_codes("t0");
    let whole = NANO.decode(&codes, 1).unwrap();
    let all_rows = load(1.0).unwrap().with_rows(4).decode(&codes, 1).unwrap();
    assert_eq!(all_rows, whole);
    let one_row = load(1.0).unwrap().with_rows(1);
    assert!(one_row.decode(&codes, 1).is_err(), "four rows are too many for one");
    let coarse = one_row.decode(&codes[..1], 1).unwrap();
    assert_eq!(coarse.len(), whole.len());
    assert!(largest_difference(&coarse, &whole) > 0.01);
}

#[test]
fn the_bundle_gain_scales_and_clips() {
    let codes = golden_codes("t0");
    let plain = NANO.decode(&codes, 1).unwrap();
    let loud = load(50.0).unwrap().decode(&codes, 1).unwrap();
    for (p, l) in plain.iter().zip(&loud) {
        assert!((l - (50.0 * p).clamp(-1.0, 1.0)).abs() < 1e-5); // 50 times a last digit
    }
    assert!(loud.contains(&1.0));
}

#[test]
fn codes_that_cannot_be_decoded_are_told_and_change_nothing() {
    let mut codes = golden_codes("t0");
    let window = Window { decode: 0..26, emit: 0..20 };
    let mut context = NanoStream::new(3);
    let refused = |context: &mut NanoStream, rows: &[Vec<u16>]| {
        NANO.window(context, rows, &window).unwrap_err()
    };
    assert_eq!(refused(&mut context, &codes[..3]), CodeError::Rows { found: 3, expected: 4 });
    codes[2].pop();
    assert_eq!(
        refused(&mut context, &codes),
        CodeError::Length { row: 2, found: 25, expected: 26 }
    );
    codes[2].push(1_024);
    assert_eq!(NANO.decode(&codes, 1), refused_code());
    assert_eq!(context, NanoStream::new(3));
    assert_eq!(NANO.codebooks(), [2_048, 1_024, 1_024, 1_024]);
    assert_eq!(NANO.decode(&golden_codes("t0")[..0], 1), Ok(Vec::new()));
}

fn refused_code() -> Result<Vec<f32>, CodeError> {
    Err(CodeError::Code { row: 2, code: 1_024, entries: 1_024 })
}

#[test]
fn a_bad_configuration_is_told_by_field() {
    let dir = tempfile::tempdir().unwrap();
    let original = root().join("voices/nano/codec");
    std::fs::copy(original.join("model.safetensors"), dir.path().join("model.safetensors"))
        .unwrap();
    let text = std::fs::read_to_string(original.join("config.json")).unwrap();
    for (from, to, names) in [
        ("\"harmonic_noise\"", "\"dac\"", "family"),
        ("24000", "16000", "sample_rate"),
        ("\"hop\": 240", "\"hop\": 250", "hop"),
        ("\"hop\": 240", "\"hop\": 0", "hop"),
        ("\"n_fft\": 1200", "\"n_fft\": 2400", "n_fft"),
        ("\"n_fft\": 1200", "\"n_fft\": 1199", "n_fft"),
        ("\"subframes\": 4", "\"subframes\": 5", "hop"),
        ("\"noise_bands\": 20", "\"noise_bands\": 1", "noise_bands"),
        ("11000", "99000", "pulse_max_frequency"),
        ("\"hop\": 240,", "", "hop"),
        ("\"n_codebooks\": 4", "\"n_codebooks\": 99999999999", "n_codebooks"),
        ("\"width\": 256", "\"width\": 128", "dec_in.weight"),
        ("\"n_codebooks\": 4", "\"n_codebooks\": 5", "vq.4.book"),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(dir.path().join("config.json"), text.replacen(from, to, 1)).unwrap();
        let error = Nano::load(dir.path(), 1.0).err().unwrap().to_string();
        assert!(error.contains(names), "{from} to {to}: {error}");
    }
}

#[test]
fn the_reach_is_what_the_plan_withholds() {
    assert_eq!(NANO.reach_frames(), Settings::default().withheld_frames);
}
