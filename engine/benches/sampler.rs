//! What one choice costs. Budget: 64 sequences a step in a step of a few milliseconds, so a few microseconds each.

use engine::rng::uniform;
use engine::sampler::{Rules, Sampling, sample};

fn main() {
    divan::main();
}

const FREE: Sampling =
    Sampling { temperature: 0.8, top_k: 50, top_p: 0.95, frequency_penalty: 0.0 };
const ACOUSTIC: Sampling = Sampling { top_k: 0, ..FREE };

#[divan::bench(args = [(2_050, FREE), (16_386, FREE), (16_386, Sampling::GREEDY), (4_096, ACOUSTIC)])]
fn choose(bencher: divan::Bencher<'_, '_>, (outputs, sampling): (u64, Sampling)) {
    let row: Vec<f32> = (0..outputs).map(|i| 12.0 * uniform(1, 2, i).powi(4) as f32).collect();
    let rules = Rules { sampling, forbidden: &[], biases: &[], generated: &[] };
    bencher
        .with_inputs(|| row.clone())
        .bench_local_values(|mut row| sample(&mut row, &rules, 0.5).expect("finite"));
}
