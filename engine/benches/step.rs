//! What a step of a stage costs on one thread: decode at T = 128 and a prefill, against the plain candle step in the same run.
//!
//! The budget: a code frame is 80 ms, and four stages of all contexts share it. Targets for the 11 M parameter stage in
//! int8: 0.7 / 4.5 / 16 ms at B = 1 / 8 / 32, and 2 / 3 / 1.6 times the speed of candle in f32. Expected before the first
//! run: 0.55 / 3.5 / 13 ms; measured on one core of a busy AMD EPYC (Zen 4, 2.6 GHz): 0.56 / 3.1 / 11.9 ms of processor
//! time, 7.6 / 3.0 to 4.8 / 2.5 to 4.1 times candle.
//!
//! `cargo bench -p dovecote-engine --bench step [-- FILTER]`, FILTER a part of a line's name. Beside the median
//! of the wall times stand the fastest and the mean processor time of the calling thread, since the machine may be shared;
//! speeds are compared by processor time where the system tells it.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use codecs::weights::Weights;
use engine::batch::{BLOCK_TOKENS, Batch, BatchRow};
use engine::kernels::matrix::Precision;
use engine::models::backbone::{Backbone, Block};
use engine::models::config::{StageConfig, open_stage};
use engine::models::qwen3::{Options, Qwen3};
use engine::models::reference::{Cache, Reference};
use engine::runner::StageModel;
use safetensors::Dtype;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CONTEXT: usize = 128;
const PREFILL: usize = 512;
const PRECISIONS: [Precision; 3] = [Precision::F32, Precision::Bf16, Precision::Int8];

fn main() -> Result<()> {
    // candle multiplies on rayon's global pool; this bench compares single threads.
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let filter = std::env::args().skip(1).find(|a| !a.starts_with("--")).unwrap_or_default();
    let bench = Bench { filter };
    println!("{:<40} {:>10} {:>10} {:>10}", "", "median ms", "fastest", "processor");
    let nano = Path::new(env!("CARGO_MANIFEST_DIR")).join("../voices/nano");
    let folder = tempfile::tempdir()?;
    let wide = wide_stage(folder.path())?;
    bench.stage("11M", &wide, &[1, 8, 32])?;
    for stage in ["cb0", "cb1"] {
        bench.stage(stage, &open_stage(&nano.join(stage))?, &[1, 2, 8, 32, 64])?;
    }
    Ok(())
}

struct Bench {
    filter: String,
}

impl Bench {
    fn stage(&self, name: &str, stage: &(StageConfig, Weights), sizes: &[usize]) -> Result<()> {
        let (config, weights) = stage;
        let reference = Reference::load(weights, config)?;
        for &sequences in sizes {
            let plain = self.line(&format!("{name} decode B={sequences} candle f32"), || {
                candle_step(&reference, sequences)
            })?;
            for precision in PRECISIONS {
                let line = format!("{name} decode B={sequences} {precision:?}");
                let fast = self.line(&line, || {
                    let model = load(config, weights, precision, 1)?;
                    Ok(step(model, sequences, CONTEXT, 1))
                })?;
                if let (Some(plain), Some(fast)) = (plain, fast) {
                    println!("{:>62.2}x candle", plain.as_secs_f64() / fast.as_secs_f64());
                }
            }
            self.line(&format!("{name} decode B={sequences} Int8, two threads"), || {
                Ok(step(load(config, weights, Precision::Int8, 2)?, sequences, CONTEXT, 1))
            })?;
        }
        for precision in PRECISIONS {
            self.line(&format!("{name} prefill {PREFILL} {precision:?}"), || {
                Ok(step(load(config, weights, precision, 1)?, 1, 0, PREFILL))
            })?;
        }
        Ok(())
    }

    /// Prints one line; gives its processor time.
    fn line<F: FnMut() -> Result<()>>(
        &self,
        name: &str,
        prepare: impl FnOnce() -> Result<F>,
    ) -> Result<Option<Duration>> {
        if !name.contains(&self.filter) {
            return Ok(None);
        }
        let Times { median, fastest, processor } = measure(prepare()?)?;
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        println!("{name:<40} {:>10.3} {:>10.3} {:>10.3}", ms(median), ms(fastest), ms(processor));
        Ok(Some(processor))
    }
}

/// Times of one call.
struct Times {
    median: Duration,
    fastest: Duration,
    /// Mean over all calls; the median where the system does not tell.
    processor: Duration,
}

/// At least 15 calls and half a second, after a few that warm up.
#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn measure(mut call: impl FnMut() -> Result<()>) -> Result<Times> {
    for _ in 0..3 {
        call()?;
    }
    let (start, mut times) = (Instant::now(), Vec::new());
    let processor = processor_time();
    while times.len() < 15 || start.elapsed() < Duration::from_millis(500) {
        let before = Instant::now();
        call()?;
        times.push(before.elapsed());
    }
    let processor = processor_time().zip(processor).map(|(after, before)| after - before);
    times.sort_unstable();
    let median = times[times.len() / 2];
    let processor = processor.map_or(median, |total| total / times.len() as u32);
    Ok(Times { median, fastest: times[0], processor })
}

/// Time that this thread has had a processor, on Linux.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

fn load(
    config: &StageConfig,
    weights: &Weights,
    precision: Precision,
    threads: usize,
) -> Result<Qwen3> {
    let pool = match threads {
        1 => None,
        n => Some(Arc::new(rayon::ThreadPoolBuilder::new().num_threads(n).build()?)),
    };
    let options = Options { precision, kept_ids: None, pool };
    Ok(Qwen3::load(weights, config, &options, &mut |_| ())?)
}

/// A step that adds `tokens` to each of `sequences` that have `computed`, again and again at the same place.
fn step(
    mut model: Qwen3,
    sequences: usize,
    computed: usize,
    tokens: usize,
) -> impl FnMut() -> Result<()> {
    let blocks = (computed + tokens).div_ceil(BLOCK_TOKENS);
    model.reserve(sequences * blocks);
    let batch = |computed: usize, tokens: usize| {
        let mut batch = Batch::default();
        for s in 0..sequences {
            let range = s * tokens..(s + 1) * tokens;
            batch.ids.extend(range.clone().map(|i| (i * 31 % 2000) as u32));
            batch.positions.extend((computed..computed + tokens).map(|p| p as i32));
            let blocks = (s * blocks..(s + 1) * blocks).map(|b| b as u32).collect();
            batch.rows.push(BatchRow {
                tokens: range,
                computed,
                blocks,
                logits: true,
                ..BatchRow::default()
            });
        }
        batch
    };
    let mut logits = Vec::new();
    if computed > 0 {
        model.forward(&batch(0, computed), &mut logits).expect("a batch that fits");
    }
    let batch = batch(computed, tokens);
    move || {
        logits.clear();
        model.forward(&batch, &mut logits)?;
        Ok(())
    }
}

fn candle_step(reference: &Reference, sequences: usize) -> Result<impl FnMut() -> Result<()>> {
    let ids: Vec<u32> = (0..CONTEXT as u32).map(|i| i * 31 % 2000).collect();
    let positions = (0..CONTEXT as i32).collect();
    let mut cache = Cache::default();
    reference.run(&vec![ids; sequences], &vec![positions; sequences], &mut cache)?;
    Ok(move || {
        let (ids, positions) = (vec![vec![1]; sequences], vec![vec![CONTEXT as i32]; sequences]);
        reference.run(&ids, &positions, &mut cache.clone())?;
        Ok(())
    })
}

/// 11 M parameters beside the embedding: 6 layers of width 384, 6 heads of 64 with keys of their own, feed-forward 1024,
/// audio head 384 -> 384 -> 512.
fn wide_stage(folder: &Path) -> Result<(StageConfig, Weights)> {
    let (hidden, ffn, outputs, vocabulary) = (384, 1024, 512, 2000 + 512);
    let mut tensors = vec![
        ("model.embed_tokens.weight".to_owned(), vec![vocabulary, hidden]),
        ("model.norm.weight".to_owned(), vec![hidden]),
        ("audio_head.fc1.weight".to_owned(), vec![hidden, hidden]),
        ("audio_head.fc1.bias".to_owned(), vec![hidden]),
        ("audio_head.fc2.weight".to_owned(), vec![outputs, hidden]),
        ("audio_head.fc2.bias".to_owned(), vec![outputs]),
    ];
    for layer in 0..6 {
        let mut add = |name: &str, shape: &[usize]| {
            tensors.push((format!("model.layers.{layer}.{name}.weight"), shape.to_vec()));
        };
        for name in ["q_proj", "k_proj", "v_proj", "o_proj"] {
            add(&format!("self_attn.{name}"), &[hidden, hidden]);
        }
        for name in ["q_norm", "k_norm"] {
            add(&format!("self_attn.{name}"), &[64]);
        }
        for name in ["input_layernorm", "post_attention_layernorm"] {
            add(name, &[hidden]);
        }
        add("mlp.gate_proj", &[ffn, hidden]);
        add("mlp.up_proj", &[ffn, hidden]);
        add("mlp.down_proj", &[hidden, ffn]);
    }
    let file = folder.join("model.safetensors");
    common::write_noise(&file, &tensors, Dtype::F32)?;
    let config = StageConfig {
        backbone: Backbone {
            file: folder.join("config.json"),
            prefix: "",
            block: Block::Qwen3,
            layers: 6,
            hidden,
            heads: 6,
            kv_heads: 6,
            head_dim: 64,
            ffn,
            rms_eps: 1e-6,
            rope_theta: 1e6,
            vocabulary,
            max_positions: 4096,
        },
        stage: 0,
        head_hidden: hidden,
        pad: 0,
        end_of_speech: 1,
        text_split: 2,
        audio_split: 3,
        audio_start: 2000,
        semantic_codes: outputs - 2,
        acoustic_codes: 0,
        outputs,
        alignment: None,
    };
    Ok((config, Weights::open(&file)?))
}
