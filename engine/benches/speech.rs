//! What several streams, guidance and a full batch cost a speech language model: whole steps, from the schedule to what was said.
//!
//! | what | target | expected | measured |
//! |---|---|---|---|
//! | 1, 4, 16 guided sounds against 2, 8, 32 unguided, time | <= 1.10 | 1.00 | 1.01, 0.99, 0.99 |
//! | 16 guided, 3 of 4 writing, against 32 unguided, main rows a second | >= 0.80 | 0.80 | 0.79 to 0.81 |
//! | 16 writing with guidance to come against without, rows a second | >= 0.98 | 1.00 | 1.00 |
//! | 8 and 32 sounds of 9 streams against 1, time | <= 1.10 | 1.05 | 1.05, 1.06 |
//! | 32 sounds on two threads against one alone, rows a second | >= 3 | 6 | 6.3 |
//!
//! Expected: a step is its multiplications. A companion is one more row; nine slices beside one are 4 % of the layers, and the draws
//! 1 %. Of 16 guided turns 12 are one row and 4 are two, which is 0.806 of 32 singles, text and its head counted, if reading the
//! weights from memory is hidden behind multiplying, and 0.73 if it is not. Rows of a full batch share that reading.
//!
//! The model has the shares of a release: 16 layers of width 1024, text of a tenth of the layers' numbers, slices of 1,025 ids a
//! stream, bf16. Both sides of a comparison take turns, step by step, and the fastest step of each counts. Steps on one thread are
//! measured in processor time, since machines are shared (here two cores of an AMD EPYC of family 26); the last line is wall time, and
//! so the one that suffers.
//!
//! `cargo bench -p dovecote-engine --bench speech [-- FILTER]`, FILTER a part of a line's name.

mod common;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use codecs::weights::Weights;
use cpu_time::ThreadTime;
use engine::ContextId;
use engine::kernels::matrix::Precision;
use engine::models::qwen3::Options;
use engine::models::speech::{Family, SpeechConfig, SpeechLm};
use engine::phase::{Bagpiper, BagpiperIds, Machine, Modality, Phase, Plan};
use engine::runner::StageModel;
use engine::sampler::Sampling;
use engine::scheduler::{Budget, Scheduler};
use engine::streams::Manner;
use engine::turn::{Model, Turn};
use safetensors::Dtype;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HIDDEN: usize = 1024;
const LAYERS: usize = 16;
const HEAD: usize = 64;
/// Query heads that share a key/value head.
const GROUP: usize = 4;
const FFN: usize = 3 * HIDDEN;
/// The share of the layers' numbers that 152 thousand ids are at a width of 4096.
const TEXT: usize = 20_000;
const WIDTH: usize = 1_025;
/// Streams of the larger model.
const STREAMS: usize = 9;
const PROMPT_ROWS: usize = 32;
/// Steps of a comparison that are timed, and those before that fill pages and caches.
const STEPS: usize = 12;
const WARM_STEPS: usize = 4;
/// Blocks of one sequence: prompt, markers and all steps.
const BLOCKS: usize = (PROMPT_ROWS + STEPS + WARM_STEPS + 8).div_ceil(engine::batch::BLOCK_TOKENS);
/// Sequences of a full batch.
const FULL: usize = 32;
const AUDIO: Sampling =
    Sampling { temperature: 0.8, top_k: 20, top_p: 1.0, frequency_penalty: 0.0 };
const WRITING: Sampling = Sampling { temperature: 0.6, ..AUDIO };

fn main() -> Result<()> {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with("--")).unwrap_or_default();
    let folder = tempfile::tempdir()?;
    println!("{:<60} {:>9} {:>9} {:>9}  target", "", "ms", "ms", "measured");
    let load = |streams, threads| Speaker::load(folder.path(), streams, threads);
    let mut bench = Bench { filter: &filter, clock: processor_time, speaker: load(STREAMS, 1)? };
    for pairs in [1, 4, FULL / 2] {
        bench.sounds_in_pairs(pairs)?;
    }
    bench.mixed_pairs()?;
    bench.guided_text()?;
    bench.beside_the_forward()?;
    bench.streams(load(1, 1)?)?;
    let mut bench = Bench { filter: &filter, clock: wall_time, speaker: load(STREAMS, 2)? };
    bench.full_batch()
}

/// Time that this thread has had a processor.
fn processor_time() -> Duration {
    ThreadTime::now().as_duration()
}

/// Time since the first call.
#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn wall_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// A model of random weights.
struct Speaker {
    network: SpeechLm,
    ids: Arc<BagpiperIds>,
    model: Arc<Model>,
}

/// Turns of one model, on blocks of their own.
struct Turns {
    scheduler: Scheduler,
    turns: Vec<Turn>,
    logits: Vec<f32>,
    first_block: u32,
}

/// What one step took.
#[derive(Clone, Copy)]
struct Times {
    whole: Duration,
    forward: Duration,
}

/// Who takes part in a comparison.
#[derive(Clone, Copy)]
struct Crowd {
    writing: usize,
    sounding: usize,
    guidance: f32,
}

struct Bench<'a> {
    filter: &'a str,
    clock: fn() -> Duration,
    speaker: Speaker,
}

impl Bench<'_> {
    fn sounds_in_pairs(&mut self, pairs: usize) -> Result<()> {
        let name = format!("{pairs} guided sounds, as many rows unguided");
        let pair = Crowd { writing: 0, sounding: pairs, guidance: 3.0 };
        let single = Crowd { sounding: 2 * pairs, guidance: 1.0, ..pair };
        let Some([a, b]) = self.compare(&name, [pair, single], None)? else { return Ok(()) };
        self.line(&name, [a, b], a / b, "<= 1.10 of the time");
        Ok(())
    }

    fn mixed_pairs(&mut self) -> Result<()> {
        let name = "16 guided, 3 of 4 writing; 32 unguided: main rows a second";
        let pairs = Crowd { writing: FULL * 3 / 8, sounding: FULL / 8, guidance: 3.0 };
        let singles = Crowd { writing: FULL * 3 / 4, sounding: FULL / 4, guidance: 1.0 };
        let Some([a, b]) = self.compare(name, [pairs, singles], None)? else { return Ok(()) };
        self.line(name, [a, b], b / a / 2.0, ">= 0.80 of the rows");
        Ok(())
    }

    fn guided_text(&mut self) -> Result<()> {
        let name = "16 writing with guidance to come; without";
        let guided = Crowd { writing: FULL / 2, sounding: 0, guidance: 3.0 };
        let plain = Crowd { guidance: 1.0, ..guided };
        let Some([a, b]) = self.compare(name, [guided, plain], None)? else { return Ok(()) };
        self.line(name, [a, b], b / a, ">= 0.98 of the rows");
        Ok(())
    }

    fn full_batch(&mut self) -> Result<()> {
        let name = "32 sounds on two threads; one alone: rows a second";
        let full = Crowd { writing: 0, sounding: FULL, guidance: 1.0 };
        let alone = Crowd { sounding: 1, ..full };
        let Some([a, b]) = self.compare(name, [full, alone], None)? else { return Ok(()) };
        self.line(name, [a, b], b / a * FULL as f64, ">= 3.00 times");
        Ok(())
    }

    /// What a step takes beside its forward: schedule, batch, what is chosen and what becomes of it.
    fn beside_the_forward(&mut self) -> Result<()> {
        let sounding = Crowd { writing: 0, sounding: FULL, guidance: 1.0 };
        let writing = Crowd { writing: FULL, sounding: 0, ..sounding };
        for (crowd, what) in [(sounding, "32 sounds"), (writing, "32 texts")] {
            let name = format!("{what}: all of a step; the forward");
            if !name.contains(self.filter) {
                continue;
            }
            let mut turns = Turns::open(&mut self.speaker, crowd, 0)?;
            let (mut beside, mut fastest) = (Duration::MAX, [Duration::MAX; 2]);
            for _ in 0..STEPS {
                let times = turns.step(&mut self.speaker.network, self.clock)?;
                fastest = [fastest[0].min(times.whole), fastest[1].min(times.forward)];
                beside = beside.min(times.whole - times.forward);
            }
            let [whole, forward] = fastest.map(|t| t.as_secs_f64());
            self.line(&name, [whole, forward], beside.as_secs_f64() / whole, "share beside it");
        }
        Ok(())
    }

    fn streams(&mut self, mut one: Speaker) -> Result<()> {
        for sounding in [8, FULL] {
            let name = format!("{sounding} sounds of 9 streams; of 1");
            let crowd = Crowd { writing: 0, sounding, guidance: 1.0 };
            let times = self.compare(&name, [crowd; 2], Some(&mut one))?;
            let Some([a, b]) = times else { continue };
            self.line(&name, [a, b], a / b, "<= 1.10 of the time");
        }
        Ok(())
    }

    /// Fastest steps of two crowds, in seconds; the second may have a model of its own.
    fn compare(
        &mut self,
        name: &str,
        crowds: [Crowd; 2],
        other: Option<&mut Speaker>,
    ) -> Result<Option<[f64; 2]>> {
        if !name.contains(self.filter) {
            return Ok(None);
        }
        let mut first = Turns::open(&mut self.speaker, crowds[0], 0)?;
        let mut fastest = [Duration::MAX; 2];
        let mut time = |at: usize, times: Times| fastest[at] = fastest[at].min(times.whole);
        let clock = self.clock;
        match other {
            Some(other) => {
                let mut second = Turns::open(other, crowds[1], 0)?;
                for _ in 0..STEPS {
                    time(0, first.step(&mut self.speaker.network, clock)?);
                    time(1, second.step(&mut other.network, clock)?);
                }
                second.check(crowds[1])?;
            }
            None => {
                let blocks = first.scheduler.blocks(0).total as u32;
                let mut second = Turns::open(&mut self.speaker, crowds[1], blocks)?;
                for _ in 0..STEPS {
                    time(0, first.step(&mut self.speaker.network, clock)?);
                    time(1, second.step(&mut self.speaker.network, clock)?);
                }
                second.check(crowds[1])?;
            }
        }
        first.check(crowds[0])?;
        Ok(Some(fastest.map(|t| t.as_secs_f64())))
    }

    fn line(&self, name: &str, [a, b]: [f64; 2], measured: f64, target: &str) {
        println!("{name:<60} {:>9.2} {:>9.2} {measured:>9.3}  {target}", a * 1e3, b * 1e3);
    }
}

impl Speaker {
    fn load(folder: &Path, streams: usize, threads: usize) -> Result<Self> {
        let folder = folder.join(streams.to_string());
        if !folder.exists() {
            std::fs::create_dir(&folder)?;
            write_model(&folder, streams)?;
        }
        let config = SpeechConfig::read(&folder.join("config.json"))?;
        let weights = Weights::open(&folder)?;
        let pool = match threads {
            1 => None,
            n => Some(Arc::new(rayon::ThreadPoolBuilder::new().num_threads(n).build()?)),
        };
        let options = Options { precision: Precision::Bf16, kept_ids: None, pool };
        let mut network = SpeechLm::load(&weights, &config, &options, &mut |_| ())?;
        network.reserve(2 * FULL * BLOCKS);
        let Family::Bagpiper(ids) = config.family else { unreachable!("it was written so") };
        let model = Model { streams: ids.streams.clone(), outputs: network.layout() };
        Ok(Self { network, ids, model: Arc::new(model) })
    }
}

impl Turns {
    /// Turns behind their prompts, markers and first rows, where companions have joined.
    fn open(speaker: &mut Speaker, crowd: Crowd, first_block: u32) -> Result<Self> {
        let budget = Budget { prefill_tokens: 4096, sequences: 2 * FULL, share_prefixes: true };
        let mut turns = Self {
            scheduler: Scheduler::new(&[FULL * BLOCKS], budget),
            turns: Vec::new(),
            logits: Vec::new(),
            first_block,
        };
        for turn in 0..crowd.writing + crowd.sounding {
            let order = match turn < crowd.writing {
                true => vec![Modality::Text, Modality::Audio],
                false => vec![Modality::Audio],
            };
            turns.begin(speaker, order, crowd.guidance)?;
        }
        for _ in 0..WARM_STEPS {
            turns.step(&mut speaker.network, wall_time)?;
        }
        Ok(turns)
    }

    fn begin(&mut self, speaker: &Speaker, order: Vec<Modality>, guidance: f32) -> Result<()> {
        let (seed, streams) = (self.turns.len(), speaker.ids.streams.len());
        let rows = BLOCKS * engine::batch::BLOCK_TOKENS;
        let (max_rows, max_tokens) = (rows + streams, usize::MAX);
        let plan = Plan { order, max_text: rows, min_rows: rows, max_rows, max_tokens };
        let machine = Machine::Bagpiper(Bagpiper::new(speaker.ids.clone(), plan)?);
        let mut prompt = vec![0; PROMPT_ROWS * streams];
        for (row, id) in prompt.iter_mut().step_by(streams).enumerate() {
            *id = 256 + (row * 31 + seed * 7) as u32 % TEXT as u32;
        }
        let manner = Manner { text: WRITING, audio: AUDIO, seed: seed as u64 };
        let (place, how) = ((ContextId(seed as u64), 0), (manner, guidance.into()));
        let model = speaker.model.clone();
        let turn = Turn::open(&mut self.scheduler, place, model, machine, &prompt, how);
        self.turns.push(turn);
        Ok(())
    }

    /// What everybody is in must be what is measured.
    fn check(&self, crowd: Crowd) -> Result<()> {
        let writing = self.turns.iter().filter(|t| t.phase() == Phase::Text).count();
        let sounding = self.turns.iter().filter(|t| t.phase() == Phase::Audio).count();
        ensure!((writing, sounding) == (crowd.writing, crowd.sounding), "a turn has moved on");
        Ok(())
    }

    fn step(&mut self, network: &mut SpeechLm, clock: fn() -> Duration) -> Result<Times> {
        let start = clock();
        let step = self.scheduler.schedule(|context| Some(context.0));
        let mut batch = self.scheduler.batch(&step, 0);
        let blocks = batch.rows.iter_mut().flat_map(|row| &mut row.blocks);
        blocks.for_each(|block| *block += self.first_block);
        self.logits.clear();
        let before = clock();
        network.forward(&batch, &mut self.logits)?;
        let forward = clock() - before;
        let mut rows = &mut self.logits[..];
        for scheduled in &step {
            self.scheduler.ran(scheduled);
            if !scheduled.completes {
                continue;
            }
            let group = self.scheduler.group(scheduled.group).expect("it has just run");
            let lengths = group.members.iter().map(|member| network.outputs(member.narrow));
            let (own, rest) = rows.split_at_mut(lengths.sum());
            rows = rest;
            let turn = self.turns.iter_mut().find(|turn| turn.group() == scheduled.group);
            turn.expect("every group is a turn's").advance(&mut self.scheduler, own)?;
        }
        Ok(Times { whole: clock() - start, forward })
    }
}

fn write_model(folder: &Path, streams: usize) -> Result<()> {
    let base = 256 + TEXT;
    let vocabulary = base + streams * WIDTH;
    let config = serde_json::json!({
        "model_type": "bagpiper", "num_stream": streams, "vocab_size": vocabulary, "hidden_size": HIDDEN,
        "codec_base_offset": base, "codec_layer_size": WIDTH, "text_token_offset": 256, "text_token_end": base,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "eot_token_id": 3, "system_token_id": 4,
        "user_token_id": 5, "assistant_token_id": 6, "text_token_id": 7, "audio_token_id": 8,
        "text_config": {
            "vocab_size": vocabulary, "hidden_size": HIDDEN, "intermediate_size": FFN,
            "num_hidden_layers": LAYERS, "num_attention_heads": HIDDEN / HEAD,
            "num_key_value_heads": HIDDEN / HEAD / GROUP, "head_dim": HEAD, "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": false,
        },
    });
    std::fs::write(folder.join("config.json"), config.to_string())?;
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
        for (name, outputs) in [("q", HIDDEN), ("k", HIDDEN / GROUP), ("v", HIDDEN / GROUP)] {
            add(&format!("self_attn.{name}_proj"), &[outputs, HIDDEN]);
        }
        add("self_attn.o_proj", &[HIDDEN, HIDDEN]);
        for name in ["q_norm", "k_norm"] {
            add(&format!("self_attn.{name}"), &[HEAD]);
        }
        for name in ["input_layernorm", "post_attention_layernorm"] {
            add(name, &[HIDDEN]);
        }
        add("mlp.gate_proj", &[FFN, HIDDEN]);
        add("mlp.up_proj", &[FFN, HIDDEN]);
        add("mlp.down_proj", &[HIDDEN, FFN]);
    }
    common::write_noise(&folder.join("model.safetensors"), &tensors, Dtype::BF16)
}
