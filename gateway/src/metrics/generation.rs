//! The engine's metrics: its plain statistics under their names. Everything carries the label `model`, so that several
//! gateways with different voices can stand in one dashboard.

use engine::Stats;
use engine::stats::{AnswerStats, Cost, StageStats};

use super::page::{Labels, Page};

/// Adds what the engine has done and holds.
pub(super) fn add(page: &mut Page, stats: &Stats, model: &str) {
    steps(page, stats, model);
    contexts(page, stats, model);
    stages(page, stats);
    costs(page, stats);
    answers(page, stats);
    guards(page, stats, model);
    sound(page, stats, model);
}

fn steps(page: &mut Page, stats: &Stats, model: &str) {
    let of: Labels = &[("model", model)];
    page.counters(
        "dovecote_engine_steps_total",
        "Steps that ran at least one token.",
        [(of, stats.steps as f64)],
    );
    page.counters(
        "dovecote_engine_busy_seconds_total",
        "Time spent in steps. Its rate is the load of the step thread: 1 is all it can do.",
        [(of, stats.busy.as_secs_f64())],
    );
    page.histograms("dovecote_engine_step_seconds", "Time of a step.", [(of, &stats.step_seconds)]);
    page.counters(
        "dovecote_engine_preemptions_total",
        "Times a sequence lost its blocks to a more urgent one.",
        [(of, stats.preemptions as f64)],
    );
    page.gauges(
        "dovecote_engine_waiting_groups",
        "Groups of sequences that wait for blocks.",
        [(of, stats.waiting as f64)],
    );
    page.gauges(
        "dovecote_engine_cost_ratio",
        "Step time that a second of sound costs, lately, in seconds; 0 until measured.",
        [(of, stats.cost_per_second.as_secs_f64())],
    );
}

fn contexts(page: &mut Page, stats: &Stats, model: &str) {
    let of: Labels = &[("model", model)];
    page.gauges(
        "dovecote_engine_contexts",
        "Contexts that the engine holds.",
        [(of, stats.contexts as f64)],
    );
    page.gauges(
        "dovecote_engine_listeners",
        "Contexts with somebody listening in real time.",
        [(of, stats.listeners as f64)],
    );
    page.gauges(
        "dovecote_engine_parked_contexts",
        "Contexts as far ahead of their listeners as they may be: they cost nothing.",
        [(of, stats.parked as f64)],
    );
    let endings = stats.endings;
    page.counters(
        "dovecote_engine_contexts_opened_total",
        "Contexts that were opened, of sessions and of requests.",
        [(of, endings.opened as f64)],
    );
    let ended =
        [("done", endings.done), ("cancelled", endings.cancelled), ("failed", endings.failed)];
    let labels = ended.map(|(outcome, _)| [("model", model), ("outcome", outcome)]);
    page.counters(
        "dovecote_engine_contexts_ended_total",
        "Contexts that ended, by how.",
        labels.iter().zip(ended).map(|(labels, (_, n))| (labels.as_slice(), n as f64)),
    );
    page.histograms(
        "dovecote_engine_queue_seconds",
        "From the cut of a context's first chunk to the first step that ran a token of it.",
        [(of, &stats.queue_seconds)],
    );
}

fn stages(page: &mut Page, stats: &Stats) {
    let mut kinds = |name: &str, help: &str, is_counter: bool, kinds: &[(&str, Kind)]| {
        let each = || {
            stats.parts.iter().zip(&stats.stages).flat_map(|s| kinds.iter().map(move |k| (s, k)))
        };
        let label = if is_counter { "kind" } else { "state" };
        let labels: Vec<_> = each()
            .map(|((part, _), (kind, _))| {
                [("model", part.model.as_str()), ("stage", &part.name), (label, *kind)]
            })
            .collect();
        let values = each().map(|((_, stage), (_, value))| value(stage) as f64);
        let values = labels.iter().map(|l| l.as_slice()).zip(values);
        if is_counter {
            page.counters(name, help, values);
        } else {
            page.gauges(name, help, values);
        }
    };
    kinds(
        "dovecote_engine_kv_blocks",
        "Key/value blocks of 16 tokens: held by contexts, kept for whoever begins the same, or free.",
        false,
        &[
            ("used", |s| s.blocks_in_use),
            ("cached", |s| s.blocks_cached),
            ("free", |s| s.blocks_total - s.blocks_in_use - s.blocks_cached),
        ],
    );
    kinds(
        "dovecote_engine_tokens_total",
        "Tokens: decoded one by one, prefilled, or found in blocks that were there already.",
        true,
        &[
            ("decode", |s| s.tokens.decode),
            ("prefill", |s| s.tokens.prefill),
            ("prefix", |s| s.tokens.prefix),
        ],
    );
    let labels: Vec<_> = stats
        .parts
        .iter()
        .map(|part| [("model", part.model.as_str()), ("stage", part.name.as_str())])
        .collect();
    let batches = labels.iter().zip(&stats.stages).map(|(l, stage)| (l.as_slice(), &stage.batch));
    page.histograms(
        "dovecote_engine_batch_sequences",
        "Sequences of a stage in a step, of the steps that had any.",
        batches,
    );
    let pairs = stats.stages.iter().map(|stage| stage.pairs as f64);
    page.gauges(
        "dovecote_engine_pairs",
        "Sequences that run with a companion for guidance.",
        labels.iter().map(|l| l.as_slice()).zip(pairs),
    );
}

/// What each way of making sound costs, and who listens to it.
fn costs(page: &mut Page, stats: &Stats) {
    let labels = |cost: &Cost| {
        let model = stats.parts.get(cost.lane.stage).map_or("", |part| part.model.as_str());
        [("model", model), ("guided", if cost.lane.guided { "true" } else { "false" })]
    };
    let labels: Vec<_> = stats.costs.iter().map(labels).collect();
    let mut each = |name: &str, help: &str, value: fn(&Cost) -> f64| {
        let values = stats.costs.iter().map(value);
        page.gauges(name, help, labels.iter().map(|l| l.as_slice()).zip(values));
    };
    each(
        "dovecote_model_cost_ratio",
        "Step time that a second of a model's sound costs, lately, in seconds; 0 until measured.",
        |cost| cost.per_second.unwrap_or_default().as_secs_f64(),
    );
    each(
        "dovecote_model_listeners",
        "Contexts of a model with somebody listening in real time.",
        |cost| cost.listeners as f64,
    );
}

/// What speech language models were asked and said.
fn answers(page: &mut Page, stats: &Stats) {
    let all = &stats.answers;
    let mut each = |name: &str, help: &str, label: &str, kinds: &[(&str, AnswerKind)]| {
        let pairs = || all.iter().flat_map(|stats| kinds.iter().map(move |kind| (stats, kind)));
        let labels: Vec<_> = pairs()
            .map(|(stats, (kind, _))| [("model", stats.model.as_str()), (label, *kind)])
            .collect();
        let values = pairs().map(|(stats, (_, value))| value(stats) as f64);
        page.counters(name, help, labels.iter().map(|l| l.as_slice()).zip(values));
    };
    each(
        "dovecote_lm_answers_total",
        "Answers that ended, by how.",
        "outcome",
        &[
            ("done", |s| s.endings.done),
            ("cancelled", |s| s.endings.cancelled),
            ("failed", |s| s.endings.failed),
        ],
    );
    each(
        "dovecote_lm_prompt_tokens_total",
        "Tokens of what was answered.",
        "kind",
        &[("text", |s| s.prompt_tokens), ("audio", |s| s.prompt_audio_tokens)],
    );
    each(
        "dovecote_lm_tokens_total",
        "Tokens of answers that are over; of sound, its frames. A companion says nothing of its own.",
        "kind",
        &[("text", |s| s.text_tokens), ("audio", |s| s.audio_frames)],
    );
    let labels: Vec<_> = all.iter().map(|stats| [("model", stats.model.as_str())]).collect();
    let labels = || labels.iter().map(|l| l.as_slice());
    page.counters(
        "dovecote_lm_requests_total",
        "Answers that were asked for.",
        labels().zip(all.iter().map(|s| s.endings.opened as f64)),
    );
    page.histograms(
        "dovecote_lm_first_text_seconds",
        "From the request to the first text of its answer, hearing included.",
        labels().zip(all.iter().map(|s| &s.first_text_seconds)),
    );
    page.histograms(
        "dovecote_lm_first_audio_seconds",
        "From the request to the first sound of its answer, hearing included.",
        labels().zip(all.iter().map(|s| &s.first_audio_seconds)),
    );
    page.gauges(
        "dovecote_lm_hearing_waiting",
        "Answers whose recordings are still to be heard.",
        labels().zip(all.iter().map(|s| s.hearing as f64)),
    );
}

/// One number of a speech language model.
type AnswerKind = fn(&AnswerStats) -> u64;

/// One number of a stage.
type Kind = fn(&StageStats) -> u64;

fn guards(page: &mut Page, stats: &Stats, model: &str) {
    let of: Labels = &[("model", model)];
    let hits = stats.guards;
    for (name, help, value) in [
        (
            "dovecote_generation_budget_hits_total",
            "Chunks that ran into their budget of codes.",
            hits.budget,
        ),
        ("dovecote_generation_loop_hits_total", "Chunks that turned in a circle.", hits.repetition),
        (
            "dovecote_generation_silence_hits_total",
            "Chunks that fell silent, or began with too much silence.",
            hits.silence,
        ),
        ("dovecote_generation_retries_total", "Chunks that were said once more.", hits.retries),
        (
            "dovecote_generation_exhausted_total",
            "Chunks whose tries were used up, so that the best attempt was spoken.",
            hits.exhausted,
        ),
    ] {
        page.counters(name, help, [(of, value as f64)]);
    }
}

fn sound(page: &mut Page, stats: &Stats, model: &str) {
    let of: Labels = &[("model", model)];
    page.counters(
        "dovecote_engine_audio_seconds_total",
        "Sound that was made.",
        [(of, stats.audio.samples as f64 / f64::from(crate::audio::ENGINE_RATE))],
    );
    page.gauges(
        "dovecote_codec_jobs_waiting",
        "Jobs that wait for the audio thread.",
        [(of, stats.audio.jobs_waiting as f64)],
    );
    page.histograms(
        "dovecote_codec_job_seconds",
        "Time in which the codec does one job.",
        [(of, &stats.audio.job_seconds)],
    );
}
