//! DualCodec and w2v-BERT against golden tensors of the reference packages, on a narrow model with random weights.
//!
//! Origin and shapes: `tests/fixtures/dualcodec_tiny/README.md`.

#![expect(clippy::unwrap_used, reason = "a helper of a test that fails is a failed test")]

use std::path::{Path, PathBuf};

use codecs::codes::CodeError;
use codecs::dualcodec::{Config, Decoder, Encoder, PromptEncoder, PromptError};
use codecs::frames::Frames;
use codecs::w2vbert::{self, Statistics, W2vBert, log_mel_pairs, to_16_khz};
use codecs::weights::Weights;

/// Ten times what an independent `f32` implementation met; the fixture's README lists them.
const RESAMPLE: f32 = 1e-6;
const FEATURES: f32 = 6e-5;
const HIDDEN: f32 = 2e-5;
const SEMANTIC: f32 = 1.2e-5;
const ACOUSTIC: f32 = 2e-4;
const WAVEFORM: f32 = 2.1e-4;

const ACOUSTIC_ROWS: usize = 3;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/dualcodec_tiny").join(name)
}

fn open(name: &str) -> Weights {
    Weights::open(&fixture(name)).unwrap()
}

fn config() -> Config {
    Config::read(&fixture("config.json")).unwrap()
}

fn golden(file: &Weights, name: &str) -> Vec<f32> {
    file.f32(name, file.shape(name).unwrap()).unwrap()
}

/// A golden `[1, channels, time]` tensor.
fn golden_frames(file: &Weights, name: &str) -> Frames {
    Frames::from_channels_first(&golden(file, name), file.shape(name).unwrap()[1])
}

/// Golden codes `[1, rows, frames]` of one or more tensors, row after row.
fn golden_codes(file: &Weights, names: &[&str]) -> Vec<Vec<u16>> {
    let mut rows = Vec::new();
    for name in names {
        let frames = file.shape(name).unwrap()[2];
        let codes: Vec<u16> =
            file.ints(name).unwrap().iter().map(|&c| u16::try_from(c).unwrap()).collect();
        rows.extend(codes.chunks_exact(frames).map(<[u16]>::to_vec));
    }
    rows
}

fn assert_near(what: &str, got: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(got.len(), expected.len(), "{what}: number of values");
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        let error = (g - e).abs();
        assert!(error <= tolerance, "{what}: value {i} is {g}, expected {e}, off by {error:e}");
    }
}

fn decoder(acoustic_rows: usize) -> Decoder {
    Decoder::load(&open("model.safetensors"), &config(), acoustic_rows).unwrap()
}

fn semantic_model() -> W2vBert {
    let config = w2vbert::Config::read(&fixture("w2vbert_config.json")).unwrap();
    W2vBert::load(&open("w2vbert.safetensors"), &config, self::config().w2v_output_idx).unwrap()
}

fn prompt_encoder(statistics: &str, acoustic_rows: usize) -> PromptEncoder {
    let config = config();
    let statistics = Statistics::read(&fixture(statistics), config.semantic_input_dim).unwrap();
    let weights = open("model.safetensors");
    PromptEncoder::new(&config, &weights, semantic_model(), statistics, acoustic_rows).unwrap()
}

#[test]
fn codes_decode_to_the_golden_latent_and_waveform() {
    let decoder = decoder(ACOUSTIC_ROWS);
    for name in ["decode_t12.safetensors", "decode_t40.safetensors"] {
        let golden_file = open(name);
        let rows = golden_codes(&golden_file, &["semantic_codes", "acoustic_codes"]);
        assert_near(
            name,
            &decoder.decode(&rows).unwrap(),
            &golden(&golden_file, "waveform"),
            WAVEFORM,
        );
        if golden_file.shape("z").is_some() {
            let latent = decoder.latent(&rows).unwrap();
            assert_near("z", latent.data(), golden_frames(&golden_file, "z").data(), SEMANTIC);
            let semantic = decoder.latent(&rows[..1]).unwrap();
            let expected = golden_frames(&golden_file, "semantic_latent");
            assert_near("semantic latent", semantic.data(), expected.data(), SEMANTIC);
        }
    }
}

#[test]
fn fewer_rows_decode_without_the_missing_ones() {
    let golden_file = open("decode_t12.safetensors");
    let semantic = &golden_codes(&golden_file, &["semantic_codes"])[0][..4];
    let expected = golden(&golden_file, "waveform_semantic_only_first4");
    for loaded in [0, ACOUSTIC_ROWS, 7] {
        let waveform = decoder(loaded).decode(&[semantic]).unwrap();
        assert_near("semantic row alone", &waveform, &expected, WAVEFORM);
    }
}

#[test]
fn a_decode_is_four_samples_short_of_whole_frames() {
    let decoder = decoder(0);
    for frames in [1_usize, 2, 12, 375] {
        assert_eq!(decoder.samples(frames), 1920 * frames - 4);
    }
    assert_eq!(decoder.samples(0), 0);
    assert_eq!(decoder.decode(&[[0_u16; 3]]).unwrap().len(), 1920 * 3 - 4);
    assert!(decoder.decode(&[[0_u16; 0]]).unwrap().is_empty());
}

/// A code reaches 50,372 samples to the left and 52,287 to the right of its start through the DAC decoder, and the
/// causal blocks carry it on for 24 frames: what lies outside cannot depend on it, whatever the tiles.
#[test]
fn a_window_with_enough_context_equals_the_whole() {
    const LEFT: usize = 52;
    const RIGHT: usize = 27;
    let decoder = decoder(1);
    let noise = |seed: u32| (0..160_u32).map(move |i| ((i * 7919 + seed) * 31 % 61) as u16);
    let rows = [noise(3).collect::<Vec<u16>>(), noise(11).collect()];
    let whole = decoder.decode(&rows).unwrap();
    let (first, last) = (70, 110);
    let window = rows.each_ref().map(|row| &row[first - LEFT..last + RIGHT]);
    let part = decoder.decode(&window).unwrap();
    let inner = LEFT * 1920..(LEFT + last - first) * 1920;
    assert_near("inner frames", &part[inner], &whole[first * 1920..last * 1920], WAVEFORM);
}

#[test]
fn codes_that_cannot_be_are_refused() {
    let decoder = decoder(ACOUSTIC_ROWS);
    let error = |rows: &[&[u16]]| decoder.decode(rows).unwrap_err();
    assert_eq!(error(&[]), CodeError::Rows { found: 0, expected: 4 });
    assert_eq!(error(&[[0].as_slice(); 5]), CodeError::Rows { found: 5, expected: 4 });
    assert_eq!(error(&[&[0, 1], &[0]]), CodeError::Length { row: 1, found: 1, expected: 2 });
    assert_eq!(error(&[&[0, 128]]), CodeError::Code { row: 0, code: 128, entries: 128 });
    assert_eq!(error(&[&[0], &[0], &[64]]), CodeError::Code { row: 2, code: 64, entries: 64 });
}

#[test]
fn features_and_hidden_states_match() {
    let model = semantic_model();
    for name in ["encode_even.safetensors", "encode_odd.safetensors"] {
        let golden_file = open(name);
        let samples = to_16_khz(&golden(&golden_file, "audio_24k"));
        assert_near("16 kHz", &samples, &golden(&golden_file, "audio_16k"), RESAMPLE);
        let features = log_mel_pairs(&samples);
        let expected = golden(&golden_file, "input_features");
        assert_near("features", features.pairs.data(), &expected, FEATURES);
        let mask = golden_file.ints("attention_mask").unwrap();
        assert_eq!(features.valid, mask.iter().filter(|&&m| m == 1).count());
        for (index, tensor) in [(0, "w2v_hidden_0"), (1, "w2v_hidden_1"), (2, "w2v_hidden_tap")] {
            let got = model.hidden_state_of(&features, index);
            let expected = golden(&golden_file, tensor);
            let valid = features.valid * model.hidden();
            assert_near(tensor, &got.data()[..valid], &expected[..valid], HIDDEN);
        }
    }
}

#[test]
fn a_waveform_encodes_to_the_golden_codes() {
    let weights = open("model.safetensors");
    let prompt = prompt_encoder("w2vbert_stats.safetensors", 7);
    let encoder = Encoder::load(&weights, &config(), 7).unwrap();
    for name in ["encode_even.safetensors", "encode_odd.safetensors"] {
        let golden_file = open(name);
        let samples = golden(&golden_file, "audio_24k");
        let features = prompt.features(&samples);
        let expected = golden_frames(&golden_file, "semantic_repr");
        assert_near("semantic features", features.data(), expected.data(), FEATURES);
        let acoustic = encoder.acoustic_latent(&samples);
        let expected = golden_frames(&golden_file, "acoustic_encoded");
        assert_near("acoustic latent", acoustic.data(), expected.data(), ACOUSTIC);
        let expected = golden_codes(&golden_file, &["semantic_codes", "acoustic_codes_all7"]);
        assert_eq!(encoder.encode(&samples, &features), expected, "{name}: codes");
        assert_eq!(prompt.encode(&samples).unwrap(), expected, "{name}: codes of the prompt");
    }
}

#[test]
fn both_forms_of_the_statistics_are_the_same() {
    let width = config().semantic_input_dim;
    let read = |name: &str| Statistics::read(&fixture(name), width).unwrap();
    assert_eq!(read("w2vbert_mean_var_stats.pt"), read("w2vbert_stats.safetensors"));
    let wrong = Statistics::read(&fixture("w2vbert_mean_var_stats.pt"), 1024).unwrap_err();
    assert!(wrong.to_string().contains("expected [1024]"), "{wrong}");
}

#[test]
fn a_long_prompt_is_encoded_in_strides_and_cut_to_a_minute() {
    let prompt = prompt_encoder("w2vbert_mean_var_stats.pt", 1);
    let tone = |samples: usize| -> Vec<f32> {
        (0..samples).map(|n| 0.3 * (n as f32 * (0.02 + 1e-8 * n as f32)).sin()).collect()
    };
    let second = 24_000;
    // 35 s: 250 of the first stride, then 287 of the 23 s from 12 s on, less the 100 of their 8 s of context.
    for (seconds, codes) in [(1, 12), (30, 374), (35, 437), (60, 749), (61, 749)] {
        let rows = prompt.encode(&tone(seconds * second)).unwrap();
        assert_eq!(rows.len(), 2);
        assert!(rows.iter().all(|row| row.len() == codes), "{seconds} s gave {}", rows[0].len());
    }
    // The first stride sees the first 28 s and nothing else.
    let whole = prompt.encode(&tone(60 * second)).unwrap();
    let first = prompt.encode(&tone(28 * second)).unwrap();
    assert_eq!(whole[0][..250], first[0][..250]);
}

#[test]
fn a_prompt_without_a_code_or_with_broken_samples_is_refused() {
    let prompt = prompt_encoder("w2vbert_stats.safetensors", 1);
    for samples in [0, 100, 2_000] {
        let error = prompt.encode(&vec![0.1; samples]).unwrap_err();
        assert_eq!(error, PromptError::TooShort { samples });
    }
    let mut samples = vec![0.1; 24_000];
    samples[77] = f32::INFINITY;
    assert_eq!(prompt.encode(&samples).unwrap_err(), PromptError::NotFinite { index: 77 });
}

#[test]
fn parts_of_other_sizes_are_refused_with_the_tensor_named() {
    let weights = open("model.safetensors");
    let release = Decoder::load(&weights, &Config::release(), 3).err().unwrap().to_string();
    assert!(release.contains("model.safetensors") && release.contains("shape is"), "{release}");
    let rows = Decoder::load(&weights, &config(), 8).err().unwrap().to_string();
    assert!(rows.contains("dac.quantizer.quantizers.7"), "{rows}");
    let layers = w2vbert::Config::read(&fixture("w2vbert_config.json")).unwrap();
    let error = W2vBert::load(&open("w2vbert.safetensors"), &layers, 4).err().unwrap().to_string();
    assert!(error.contains("num_hidden_layers"), "{error}");
}
