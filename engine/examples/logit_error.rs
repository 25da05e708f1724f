//! How far the fast runner's logits are from the plain `f32` reference, for each precision: nano cb0, teacher-forced.
//!
//! `cargo run --release -p dovecote-engine --example logit_error [SENTENCES]` prints one line a precision: the RMSE of a
//! step's logits (mean and largest over all steps), and how many steps choose another code, the first of them named.

use std::path::Path;

use anyhow::{Context, Result};
use codecs::weights::read_text;
use engine::batch::{BLOCK_TOKENS, Batch, BatchRow};
use engine::kernels::matrix::Precision;
use engine::models::config::{StageConfig, open_stage};
use engine::models::qwen3::{Options, Qwen3};
use engine::models::reference::{Cache, Reference};
use engine::runner::StageModel;

/// The control block of the bundle: English, conversational.
const CONTROL: [u32; 6] = [257, 262, 269, 271, 258, 10];
const FRAMES: usize = 40;
const SENTENCES: usize = 200;

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let count = std::env::args().nth(1).map_or(Ok(SENTENCES), |n| n.parse())?;
    let (config, weights) = open_stage(&root.join("voices/nano/cb0"))?;
    let reference = Reference::load(&weights, &config)?;
    let text = read_text(&root.join("tests/fixtures/nano/heldout.txt"))?;
    let spoken = text
        .lines()
        .take(count)
        .map(|line| speak(&reference, &config, line))
        .collect::<Result<Vec<_>>>()?;
    println!("{} sentences, {FRAMES} greedy codes each", spoken.len());
    for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
        let options = Options { precision, kept_ids: None, pool: None };
        let mut model = Qwen3::load(&weights, &config, &options, &mut |_| ())?;
        model.reserve(64);
        let mut errors = Errors::default();
        for (sentence, teacher) in spoken.iter().enumerate() {
            errors.add(sentence, teacher, &mut model)?;
        }
        errors.print(precision);
    }
    Ok(())
}

/// One sentence as the reference spoke it.
struct Teacher {
    ids: Vec<u32>,
    positions: Vec<i32>,
    prompt: usize,
    /// Logits of each step.
    steps: Vec<Vec<f32>>,
}

/// Greedy codes of the reference, without stopping.
fn speak(reference: &Reference, config: &StageConfig, line: &str) -> Result<Teacher> {
    let text = line.bytes().chain([b'\n']).map(u32::from);
    let mut ids: Vec<u32> = CONTROL.into_iter().chain(text).collect();
    let mut positions: Vec<i32> = (1..=ids.len() as i32).collect();
    ids.push(config.pad);
    positions.push(0);
    let prompt = ids.len();
    let (mut cache, mut steps, mut from) = (Cache::default(), Vec::new(), 0);
    for frame in 0..FRAMES {
        let trace =
            reference.run(&[ids[from..].to_vec()], &[positions[from..].to_vec()], &mut cache)?;
        let logits = trace.logits.get(0)?.get(ids.len() - from - 1)?.to_vec1::<f32>()?;
        from = ids.len();
        let code = argmax(&logits[..config.own_codes()]) as u32;
        ids.push(config.code_id(0, code).context("a code of the stage's own codebook")?);
        positions.push(frame as i32 + 1);
        steps.push(logits);
    }
    Ok(Teacher { ids, positions, prompt, steps })
}

#[derive(Default)]
struct Errors {
    rmse: Vec<f64>,
    differing: usize,
    first: Option<(usize, usize)>,
}

impl Errors {
    fn add(&mut self, sentence: usize, teacher: &Teacher, model: &mut Qwen3) -> Result<()> {
        let mut computed = 0;
        for (step, expected) in teacher.steps.iter().enumerate() {
            let end = teacher.prompt + step;
            let row = BatchRow {
                tokens: 0..end - computed,
                computed,
                blocks: (0..end.div_ceil(BLOCK_TOKENS) as u32).collect(),
                logits: true,
                ..BatchRow::default()
            };
            let ids = teacher.ids[computed..end].to_vec();
            let positions = teacher.positions[computed..end].to_vec();
            let mut logits = Vec::new();
            model.forward(
                &Batch { ids, positions, rows: vec![row], ..Batch::default() },
                &mut logits,
            )?;
            computed = end;
            let square = |(a, b): (&f32, &f32)| f64::from(a - b).powi(2);
            let sum: f64 = logits.iter().zip(expected).map(square).sum();
            self.rmse.push((sum / logits.len() as f64).sqrt());
            if argmax(&logits) != argmax(expected) {
                self.differing += 1;
                self.first = self.first.or(Some((sentence, step)));
            }
        }
        Ok(())
    }

    fn print(&self, precision: Precision) {
        let mean = self.rmse.iter().sum::<f64>() / self.rmse.len() as f64;
        let largest = self.rmse.iter().copied().fold(0.0, f64::max);
        let first =
            self.first.map_or("none".to_owned(), |(s, i)| format!("sentence {s}, step {i}"));
        println!(
            "{precision:?}: RMSE mean {mean:.2e}, largest {largest:.2e}; another code in {} of {} steps, first: {first}",
            self.differing,
            self.rmse.len()
        );
    }
}

fn argmax(values: &[f32]) -> usize {
    (0..values.len()).max_by(|a, b| values[*a].total_cmp(&values[*b])).unwrap_or(0)
}
