//! What a step of a speech language model costs on one thread: guidance pairs against as many single sequences, and nine heads
//! against one.
//!
//! The budget: a frame is 20 ms. A pair is two sequences of one forward, so k pairs should cost what 2k singles do, give or take
//! the merge of a row; streams behind the first should cost their own ids of a product that is there already, so a small share.
//!
//! Fastest of a hundred steps on a busy machine, optimised for development: 0.73 and 2.3 ms for one and four pairs, 0.87 and 2.5 ms
//! for as many single sequences; eight sequences of 1, 8 and 9 streams 1.5, 2.3 and 2.5 ms. So pairs keep the promise; at this
//! width, a sixteenth of the release's, streams do not yet: their share of the layers is that much larger.

use std::path::Path;
use std::sync::Arc;

use codecs::weights::Weights;
use engine::ContextId;
use engine::kernels::matrix::Precision;
use engine::models::qwen3::Options;
use engine::models::speech::{Family, SpeechConfig, SpeechLm};
use engine::phase::{Bagpiper, Machine, Modality, Plan};
use engine::runner::StageModel;
use engine::sampler::Sampling;
use engine::scheduler::{Budget, Scheduler};
use engine::streams::Manner;
use engine::turn::{Model, Turn};
use safetensors::{Dtype, tensor::TensorView};

const HIDDEN: usize = 256;
const LAYERS: usize = 4;
/// Ids of text, where Bagpiper has 152 thousand beside a width of 4096.
const TEXT: usize = 9_500;
const WIDTH: usize = 1_025;
const PROMPT_ROWS: usize = 32;
const ROWS: usize = 1_500;
const AUDIO: Sampling =
    Sampling { temperature: 0.8, top_k: 20, top_p: 1.0, frequency_penalty: 0.0 };

fn main() {
    divan::main();
}

/// A model of random weights in the middle of sounds, and all that a step of it needs.
struct Stage {
    network: SpeechLm,
    scheduler: Scheduler,
    turns: Vec<Turn>,
    logits: Vec<f32>,
}

impl Stage {
    /// So many turns at once, guided or not, that are all in their sounds.
    fn speaking(streams: usize, turns: usize, guidance: f32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = write_model(folder.path(), streams);
        let weights = Weights::open(folder.path()).expect("just written");
        let options = Options { precision: Precision::Bf16, kept_ids: None, pool: None };
        let mut network =
            SpeechLm::load(&weights, &config, &options, &mut |_| ()).expect("just written");
        let Family::Bagpiper(ids) = &config.family else { unreachable!("it was written so") };
        let blocks = turns * 2 * (PROMPT_ROWS + ROWS).div_ceil(16);
        network.reserve(blocks);
        let budget = Budget { prefill_tokens: 4096, sequences: 256, share_prefixes: true };
        let mut scheduler = Scheduler::new(&[blocks], budget);
        let model = Arc::new(Model { streams: ids.streams.clone(), outputs: network.layout() });
        let begin = |seed: usize| {
            let order = vec![Modality::Audio];
            let plan = Plan { order, max_text: 1, min_rows: ROWS, max_rows: ROWS + streams };
            let machine = Bagpiper::new(ids.clone(), plan).expect("it has room");
            let mut prompt = vec![0; PROMPT_ROWS * streams];
            for (row, id) in prompt.iter_mut().step_by(streams).enumerate() {
                *id = 256 + (row * 31 + seed * 7) as u32 % TEXT as u32;
            }
            let manner = Manner { text: Sampling::GREEDY, audio: AUDIO, seed: seed as u64 };
            let (place, how) = ((ContextId(seed as u64), 0), (manner, guidance.into()));
            let machine = Machine::Bagpiper(machine);
            Turn::open(&mut scheduler, place, model.clone(), machine, &prompt, how)
        };
        let turns = (0..turns).map(begin).collect();
        let mut stage = Self { network, scheduler, turns, logits: Vec::new() };
        // Prompts, markers, companions and the first rows are behind it.
        (0..4).for_each(|_| stage.step());
        stage
    }

    fn step(&mut self) {
        let step = self.scheduler.schedule(|context| Some(context.0));
        let batch = self.scheduler.batch(&step, 0);
        self.logits.clear();
        self.network.forward(&batch, &mut self.logits).expect("a batch that fits");
        let mut rows = &mut self.logits[..];
        for scheduled in &step {
            self.scheduler.ran(scheduled);
            let (own, rest) = rows.split_at_mut(scheduled.tokens.len() * self.network.outputs());
            rows = rest;
            let turn = self.turns.iter_mut().find(|turn| turn.group() == scheduled.group);
            let turn = turn.expect("every group is a turn's");
            turn.advance(&mut self.scheduler, own).expect("finite numbers");
        }
    }
}

#[divan::bench(args = [2, 8, 32])]
fn singles(bencher: divan::Bencher<'_, '_>, sequences: usize) {
    let mut stage = Stage::speaking(8, sequences, 1.0);
    bencher.bench_local(|| stage.step());
}

/// As many sequences as [`singles`], half of them companions.
#[divan::bench(args = [2, 8, 32])]
fn pairs(bencher: divan::Bencher<'_, '_>, sequences: usize) {
    let mut stage = Stage::speaking(8, sequences / 2, 3.0);
    bencher.bench_local(|| stage.step());
}

/// Sequences of models that differ in nothing but their streams.
#[divan::bench(args = [1, 8, 9])]
fn streams(bencher: divan::Bencher<'_, '_>, streams: usize) {
    let mut stage = Stage::speaking(streams, 8, 1.0);
    bencher.bench_local(|| stage.step());
}

fn write_model(folder: &Path, streams: usize) -> SpeechConfig {
    let (base, head) = (256 + TEXT, 64);
    let vocabulary = base + streams * WIDTH;
    let config = serde_json::json!({
        "model_type": "bagpiper", "num_stream": streams, "vocab_size": vocabulary, "hidden_size": HIDDEN,
        "codec_base_offset": base, "codec_layer_size": WIDTH, "text_token_offset": 256, "text_token_end": base,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "eot_token_id": 3, "system_token_id": 4,
        "user_token_id": 5, "assistant_token_id": 6, "text_token_id": 7, "audio_token_id": 8,
        "text_config": {
            "vocab_size": vocabulary, "hidden_size": HIDDEN, "intermediate_size": 3 * HIDDEN,
            "num_hidden_layers": LAYERS, "num_attention_heads": HIDDEN / head,
            "num_key_value_heads": HIDDEN / head, "head_dim": head, "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": false,
        },
    });
    let file = folder.join("config.json");
    std::fs::write(&file, config.to_string()).expect("a file");
    let wide = vec![vocabulary, HIDDEN];
    let mut tensors = vec![
        ("model.embed_tokens.weight".to_owned(), wide.clone()),
        ("lm_head.weight".to_owned(), wide),
        ("model.norm.weight".to_owned(), vec![HIDDEN]),
        ("stream_emb.weight".to_owned(), vec![streams, HIDDEN]),
    ];
    for layer in 0..LAYERS {
        let mut add = |name: &str, shape: &[usize]| {
            tensors.push((format!("model.layers.{layer}.{name}.weight"), shape.to_vec()));
        };
        for name in ["q_proj", "k_proj", "v_proj", "o_proj"] {
            add(&format!("self_attn.{name}"), &[HIDDEN, HIDDEN]);
        }
        for name in ["q_norm", "k_norm"] {
            add(&format!("self_attn.{name}"), &[head]);
        }
        for name in ["input_layernorm", "post_attention_layernorm"] {
            add(name, &[HIDDEN]);
        }
        add("mlp.gate_proj", &[3 * HIDDEN, HIDDEN]);
        add("mlp.up_proj", &[3 * HIDDEN, HIDDEN]);
        add("mlp.down_proj", &[HIDDEN, 3 * HIDDEN]);
    }
    write_noise(&folder.join("model.safetensors"), &tensors);
    SpeechConfig::read(&file).expect("just written")
}

/// Tensors of small values, the same at every call.
fn write_noise(file: &Path, tensors: &[(String, Vec<usize>)]) {
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * 0.08
    };
    let data: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, shape)| {
            let len = shape.iter().product();
            std::iter::repeat_with(&mut noise).take(len).flat_map(f32::to_le_bytes).collect()
        })
        .collect();
    let views = tensors.iter().zip(&data).map(|((name, shape), bytes)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
        (name.as_str(), view.expect("as many bytes as the shape says"))
    });
    let bytes = safetensors::serialize(views, None).expect("tensors of one kind");
    std::fs::write(file, bytes).expect("a file");
}
