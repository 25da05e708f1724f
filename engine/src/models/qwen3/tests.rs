//! The fast runner and the reference against the Qwen3 of transformers, layer by layer, on random weights.

use std::path::{Path, PathBuf};

use super::*;
use crate::batch::BatchRow;
use crate::kernels::matrix::Precision;
use crate::models::reference::{Cache, Reference};
use crate::runner::StageModel;

/// Two summation orders in `f32`; an independent implementation came within 4e-6.
const TOLERANCE: f32 = 1e-4;

struct Tiny {
    config: StageConfig,
    weights: Weights,
    case: Weights,
    tokens: usize,
    /// Holds the files that `weights` maps.
    _folder: Option<tempfile::TempDir>,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/qwen3_tiny").join(name)
}

impl Tiny {
    fn cb3() -> Self {
        Self {
            config: StageConfig::read(&fixture("config.json"), 32).unwrap(),
            weights: Weights::open(&fixture("model.safetensors")).unwrap(),
            case: Weights::open(&fixture("case_cb3.safetensors")).unwrap(),
            tokens: 76,
            _folder: None,
        }
    }

    /// The same layers with the head of cb0, which stands in a file of its own.
    fn cb0() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let copy = |from: &str, to: &str| {
            std::fs::copy(fixture(from), folder.path().join(to)).unwrap();
        };
        // Of two shards that hold a tensor the later name counts.
        copy("model.safetensors", "1.safetensors");
        copy("audio_head_cb0.safetensors", "2.safetensors");
        let index = folder.path().join("model.safetensors.index.json");
        let map = r#"{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}"#;
        std::fs::write(&index, map).unwrap();
        let mut config = Self::cb3().config;
        (config.stage, config.outputs) = (0, 66);
        Self {
            config,
            weights: Weights::open(&index).unwrap(),
            case: Weights::open(&fixture("case_cb0.safetensors")).unwrap(),
            tokens: 107,
            _folder: Some(folder),
        }
    }

    fn ids(&self) -> Vec<u32> {
        self.case.ints("input_ids").unwrap().into_iter().map(|v| v as u32).collect()
    }

    fn positions(&self) -> Vec<i32> {
        self.case.ints("position_ids").unwrap().into_iter().map(|v| v as i32).collect()
    }

    fn expected(&self, name: &str) -> Vec<f32> {
        let width =
            if name == "logits" { self.config.outputs } else { self.config.backbone.hidden };
        self.case.f32(name, &[1, self.tokens, width]).unwrap()
    }

    fn fast(&self, layers: usize) -> Qwen3 {
        let mut config = self.config.clone();
        config.backbone.layers = layers;
        let options = Options { precision: Precision::F32, kept_ids: None, pool: None };
        let mut model = Qwen3::load(&self.weights, &config, &options, &mut |_| ()).unwrap();
        model.reserve(8);
        model
    }

    fn batch(&self, range: std::ops::Range<usize>) -> Batch {
        let row = BatchRow {
            tokens: 0..range.len(),
            computed: range.start,
            blocks: (0..8).collect(),
            logits: true,
            ..BatchRow::default()
        };
        Batch {
            ids: self.ids()[range.clone()].to_vec(),
            positions: self.positions()[range].to_vec(),
            rows: vec![row],
            ..Batch::default()
        }
    }
}

fn close(got: &[f32], expected: &[f32], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let worst = got.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < TOLERANCE, "{what}: {worst}");
}

fn same_choices(got: &[f32], expected: &[f32], outputs: usize) {
    let best = |row: &[f32]| (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b]));
    for (got, expected) in got.chunks_exact(outputs).zip(expected.chunks_exact(outputs)) {
        assert_eq!(best(got), best(expected));
    }
}

#[test]
fn reference_matches_at_every_tap() {
    for tiny in [Tiny::cb3(), Tiny::cb0()] {
        let model = Reference::load(&tiny.weights, &tiny.config).unwrap();
        let trace = model.run(&[tiny.ids()], &[tiny.positions()], &mut Cache::default()).unwrap();
        let values = |t: &candle_core::Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        close(&values(&trace.hidden[0]), &tiny.expected("embeddings"), "embeddings");
        close(&values(&trace.hidden[1]), &tiny.expected("hidden_after_layer_0"), "layer 0");
        close(&values(&trace.last), &tiny.expected("last_hidden_state"), "last");
        close(&values(&trace.logits), &tiny.expected("logits"), "logits");
        same_choices(&values(&trace.logits), &tiny.expected("logits"), tiny.config.outputs);
    }
}

#[test]
fn reference_with_a_cache_goes_on_where_it_stopped() {
    let tiny = Tiny::cb0();
    let model = Reference::load(&tiny.weights, &tiny.config).unwrap();
    let (ids, positions) = (tiny.ids(), tiny.positions());
    let mut cache = Cache::default();
    let mut logits = Vec::new();
    for range in [0..20, 20..21, 21..60, 60..107] {
        let (ids, positions) = (ids[range.clone()].to_vec(), positions[range].to_vec());
        let trace = model.run(&[ids.clone(), ids], &[positions.clone(), positions], &mut cache);
        let second = trace.unwrap().logits.get(1).unwrap();
        logits.extend(second.flatten_all().unwrap().to_vec1::<f32>().unwrap());
    }
    close(&logits, &tiny.expected("logits"), "logits");
}

#[test]
fn fast_runner_matches_at_every_tap() {
    for tiny in [Tiny::cb3(), Tiny::cb0()] {
        for (layers, tap) in [(1, "hidden_after_layer_0"), (2, "last_hidden_state")] {
            let mut model = tiny.fast(layers);
            let mut hidden = Vec::new();
            for token in 0..tiny.tokens {
                model.forward(&tiny.batch(token..token + 1), &mut Vec::new()).unwrap();
                let last =
                    if layers == 2 { model.last_hidden() } else { model.residual().to_vec() };
                hidden.extend(last);
            }
            close(&hidden, &tiny.expected(tap), tap);
        }
    }
}

#[test]
fn fast_runner_matches_the_logits_of_every_token_one_by_one_and_at_once() {
    for tiny in [Tiny::cb3(), Tiny::cb0()] {
        let expected = tiny.expected("logits");
        let outputs = tiny.config.outputs;
        let mut stepped = Vec::new();
        let mut model = tiny.fast(2);
        for token in 0..tiny.tokens {
            model.forward(&tiny.batch(token..token + 1), &mut stepped).unwrap();
        }
        close(&stepped, &expected, "steps");
        same_choices(&stepped, &expected, outputs);
        let mut whole = Vec::new();
        tiny.fast(2).forward(&tiny.batch(0..tiny.tokens), &mut whole).unwrap();
        assert_eq!(whole, stepped[(tiny.tokens - 1) * outputs..]);
    }
}

#[test]
fn widths_that_are_no_whole_tiles_are_told_by_field() {
    let tiny = Tiny::cb3();
    let mut config = tiny.config.clone();
    config.backbone.ffn = 170;
    let options = Options { precision: Precision::F32, kept_ids: None, pool: None };
    let error = Qwen3::load(&tiny.weights, &config, &options, &mut |_| ()).err().unwrap();
    let text = error.to_string();
    assert!(text.contains("config.json") && text.contains("`intermediate_size`"), "{text}");
}
