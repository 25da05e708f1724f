//! The draw of one code: which rules hold at this step, and which number of the seed decides.

use crate::event::Failure;
use crate::pipeline::Settings;
use crate::pipeline::chunk::Chunk;
use crate::rng;
use crate::sampler::{BiasGroup, Rules, sample};

/// Chooses CB0's next output from (merged) logits.
///
/// # Errors
/// Broken numbers.
pub(super) fn semantic(
    settings: &Settings,
    chunk: &Chunk,
    logits: &mut [f32],
) -> Result<usize, Failure> {
    let codes = logits.len() - STOPS;
    let stops = [codes as u16, codes as u16 + 1];
    let silence = &settings.silence;
    let collapse = silence.collapse_bias + silence.retry_bias * chunk.attempt as f32;
    let rules = Rules {
        sampling: settings.sampling,
        forbidden: if chunk.codes.len() < settings.guards.min_codes { &stops } else { &[] },
        biases: &[
            BiasGroup { outputs: &stops[..1], add: settings.end_bias },
            BiasGroup { outputs: &silence.collapse_codes, add: collapse },
            BiasGroup { outputs: &silence.ordinary_codes, add: silence.ordinary_bias },
        ],
        generated: &chunk.codes[chunk.forced..],
    };
    let stream = stream(chunk, 0);
    choose(settings, logits, &rules, stream, chunk.codes.len())
}

/// Chooses an acoustic stage's next output.
///
/// # Errors
/// Broken numbers.
pub(super) fn acoustic(
    settings: &Settings,
    chunk: &Chunk,
    stage: usize,
    logits: &mut [f32],
) -> Result<usize, Failure> {
    let rules = Rules { sampling: settings.acoustic, forbidden: &[], biases: &[], generated: &[] };
    choose(settings, logits, &rules, stream(chunk, stage), chunk.acoustic[stage - 1].len())
}

/// Outputs of CB0 behind its codes: end of speech, audio split.
const STOPS: usize = 2;

/// Every chunk, attempt and stage has numbers of its own, so that none depends on what else runs or ran.
fn stream(chunk: &Chunk, stage: usize) -> u64 {
    let attempt = if stage == 0 { u64::from(chunk.attempt) } else { 0 };
    (chunk.index as u64) << 16 | attempt << 8 | stage as u64
}

fn choose(
    settings: &Settings,
    logits: &mut [f32],
    rules: &Rules<'_>,
    stream: u64,
    step: usize,
) -> Result<usize, Failure> {
    let uniform = rng::uniform(settings.seed, stream, step as u64);
    sample(logits, rules, uniform).map_err(|e| Failure::Model(e.to_string()))
}
