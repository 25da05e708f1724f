//! The acoustic tokenizer against golden tensors of the public implementation, and its stream against its whole.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

use std::path::{Path, PathBuf};

use codecs::frames::Frames;
use codecs::vibevoice::Tokenizer;
use codecs::weights::Weights;
use proptest::prelude::*;

/// Another summing order than the reference's, amplified by random weights; the reference's own two
/// implementations differ by a tenth of it.
const GOLDEN_TOLERANCE: f32 = 5e-5;
/// A piece and the whole take the same products, but in tiles of other sizes.
const PIECE_TOLERANCE: f32 = 1e-5;

const WIDTH: usize = 8;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/vibevoice_tiny")
}

fn tokenizer() -> Tokenizer {
    Tokenizer::open(&fixture()).unwrap()
}

fn golden(name: &str, shape: &[usize]) -> Vec<f32> {
    Weights::open(&fixture().join("golden.safetensors")).unwrap().f32(name, shape).unwrap()
}

fn golden_latents(name: &str, count: usize) -> Frames {
    Frames::new(golden(name, &[1, count, WIDTH]), WIDTH)
}

fn assert_close(what: &str, got: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(got.len(), expected.len(), "{what}: length");
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= tolerance, "{what}: value {i}: {g}, expected {e}");
    }
}

/// Latents of the streaming fixture, decoded in pieces of the given sizes and then in one last piece.
fn in_pieces(tokenizer: &Tokenizer, latents: &Frames, sizes: &[usize]) -> Vec<f32> {
    let decoder = &tokenizer.decoder;
    let (mut state, mut sound, mut at) = (decoder.state(), Vec::new(), 0);
    for &size in sizes {
        let end = (at + size).min(latents.time());
        sound.extend(decoder.step(&mut state, &latents.slice(at..end)));
        assert_eq!(sound.len(), 3200 * end);
        at = end;
    }
    sound.extend(decoder.step(&mut state, &latents.slice(at..latents.time())));
    sound
}

#[test]
fn latents_of_a_sound_match_the_reference() {
    let got = tokenizer().encoder.encode(&golden("audio", &[1, 1, 22_400]));
    let expected = golden_latents("latents", 7);
    assert_close("latents", got.data(), expected.data(), GOLDEN_TOLERANCE);
}

#[test]
fn a_last_latent_that_the_sound_does_not_fill_is_kept() {
    let audio = golden("audio", &[1, 1, 22_400]);
    let encoder = tokenizer().encoder;
    let got = encoder.encode(&audio[..21_116]);
    let expected = golden_latents("latents_of_21116", 7);
    assert_close("latents", got.data(), expected.data(), GOLDEN_TOLERANCE);
    for (samples, latents) in [(1, 1), (3199, 1), (3200, 1), (3201, 2)] {
        assert_eq!(encoder.encode(&audio[..samples]).time(), latents, "{samples} samples");
    }
}

#[test]
fn decoded_sound_matches_the_reference() {
    let got = tokenizer().decoder.decode(&golden_latents("latents", 7));
    assert_close("decoded", &got, &golden("decoded", &[1, 1, 22_400]), GOLDEN_TOLERANCE);
}

#[test]
fn streamed_sound_matches_the_reference() {
    let latents = golden_latents("stream_latents", 10);
    let expected = golden("stream_audio", &[1, 1, 32_000]);
    let got = in_pieces(&tokenizer(), &latents, &[1, 2, 4, 1, 2]);
    assert_close("streamed", &got, &expected, GOLDEN_TOLERANCE);
}

#[test]
fn a_group_as_long_as_the_latent_is_wide_is_decoded_like_any_other() {
    // An implementation that guesses the layout from the shape takes this group for its own transpose.
    let tokenizer = tokenizer();
    let latents = golden_latents("stream_latents", 10);
    let whole = tokenizer.decoder.decode(&latents);
    let got = in_pieces(&tokenizer, &latents, &[WIDTH]);
    assert_close("group of 8", &got, &whole, PIECE_TOLERANCE);
}

#[test]
fn the_state_is_a_snapshot_of_constant_size() {
    let decoder = tokenizer().decoder;
    let latents = golden_latents("stream_latents", 10);
    let mut state = decoder.state();
    // Six inputs of each convolution of kernel 7, one of each transposed convolution.
    let (sixes, ones) =
        (8 + 2 * 128 + 64 + 32 + 16 + 8 + 2 * 4 + 2 + 2, 128 + 64 + 32 + 16 + 8 + 4);
    assert_eq!(state.values(), 6 * sixes + ones);
    decoder.step(&mut state, &latents.slice(0..6));
    let mut copy = state.clone();
    let rest = latents.slice(6..10);
    let first = decoder.step(&mut state, &rest);
    let second = decoder.step(&mut copy, &rest);
    assert_eq!(first, second, "a copy goes on exactly as the original");
    assert_eq!(state, copy);
    assert_eq!(state.values(), 6 * sixes + ones);
}

#[test]
fn a_piece_of_no_latents_changes_nothing() {
    let decoder = tokenizer().decoder;
    let latents = golden_latents("stream_latents", 10);
    let mut state = decoder.state();
    decoder.step(&mut state, &latents.slice(0..3));
    let before = state.clone();
    assert!(decoder.step(&mut state, &latents.slice(3..3)).is_empty());
    assert_eq!(state, before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_pieces_give_what_the_whole_gives(sizes in prop::collection::vec(0usize..5, 0..8)) {
        let tokenizer = tokenizer();
        let latents = golden_latents("stream_latents", 10);
        let whole = tokenizer.decoder.decode(&latents);
        let pieces = in_pieces(&tokenizer, &latents, &sizes);
        assert_close(&format!("pieces {sizes:?}"), &pieces, &whole, PIECE_TOLERANCE);
    }
}

/// Writes the fixture into a new folder with every tensor renamed; `None` leaves it out.
fn renamed(name: impl Fn(&str) -> Option<String>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(fixture().join("model.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let kept = tensors.tensors().into_iter().filter_map(|(n, view)| Some((name(&n)?, view)));
    std::fs::write(
        dir.path().join("model.safetensors"),
        safetensors::serialize(kept, None).unwrap(),
    )
    .unwrap();
    std::fs::copy(fixture().join("config.json"), dir.path().join("config.json")).unwrap();
    dir
}

#[test]
fn the_tokenizer_is_found_inside_a_whole_model() {
    let dir = renamed(|name| Some(format!("model.acoustic_tokenizer.{name}")));
    let latents = golden_latents("latents", 7);
    let inside = Tokenizer::open(dir.path()).unwrap().decoder.decode(&latents);
    assert_eq!(inside, tokenizer().decoder.decode(&latents));
}

#[test]
fn a_missing_tensor_is_named() {
    let gone = "decoder.stages.3.0.ffn_gamma";
    let dir = renamed(|name| (name != gone).then(|| name.to_owned()));
    let text = Tokenizer::open(dir.path()).err().unwrap().to_string();
    assert!(text.contains("model.safetensors") && text.contains(gone), "{text}");
}
