//! What the engine counts and measures, as plain data for whoever shows it. Knows no name, no label and no registry.
//!
//! ```text
//! counters   since the start, never smaller than before     steps, tokens, endings, guards
//! gauges     as of the last step                            contexts, blocks, jobs waiting
//! histograms counts of values by their size                 step_seconds, batch, queue_seconds
//! ```

use std::time::Duration;

pub use crate::load::{Cost, Lane};

/// Most bounds of a histogram.
const BOUNDS_MAX: usize = 15;

/// Seconds of a step: a step of 20 ms holds up one packet, one of 80 ms a whole frame of everybody.
const STEP_SECONDS: &[f64] = &[
    0.0005, 0.001, 0.002, 0.004, 0.007, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.25, 1.0,
];
/// Seconds in which the codec does one job: beside a step, against the same 20 ms and 80 ms.
const JOB_SECONDS: &[f64] = STEP_SECONDS;
/// Seconds that the first chunk of a context waits for its first tokens to run: a share of the 150 ms to the first packet.
const QUEUE_SECONDS: &[f64] =
    &[0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.35, 0.6, 1.0, 2.5, 10.0];
/// Sequences of a stage in a step: powers of two up to the seats there are by default.
const BATCH_SEQUENCES: &[f64] =
    &[1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 256.0];

/// Values counted by their size, in buckets of fixed bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Histogram {
    bounds: &'static [f64],
    /// How many values lie in each bucket; those above the last bound are in the one behind it.
    counts: [u64; BOUNDS_MAX + 1],
    sum: f64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        assert!(bounds.len() <= BOUNDS_MAX, "more bounds than a histogram has room for");
        Self { bounds, counts: [0; BOUNDS_MAX + 1], sum: 0.0 }
    }

    /// Takes in a value.
    pub(crate) fn observe(&mut self, value: f64) {
        self.counts[self.bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }

    /// Upper bounds, ascending, each with how many values lie at or below it.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let counts = self.counts.iter().scan(0, |below, count| {
            *below += count;
            Some(*below)
        });
        self.bounds.iter().copied().zip(counts)
    }

    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all values.
    pub fn sum(&self) -> f64 {
        self.sum
    }
}

/// How contexts began and ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Endings {
    /// Contexts that were opened.
    pub opened: u64,
    /// Contexts that were spoken to their end.
    pub done: u64,
    /// Contexts that were cancelled, or whose reader went away.
    pub cancelled: u64,
    /// Contexts that could not go on.
    pub failed: u64,
}

/// How often the guards stepped in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GuardHits {
    /// Chunks that ran into their budget of codes.
    pub budget: u64,
    /// Chunks that turned in a circle.
    pub repetition: u64,
    /// Chunks that fell silent, or began with too much silence.
    pub silence: u64,
    /// Chunks that were said once more.
    pub retries: u64,
    /// Chunks whose tries were used up, so that the best attempt was spoken.
    pub exhausted: u64,
}

/// Tokens by what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens that were sampled one by one.
    pub decode: u64,
    /// Tokens of prompts and texts that were computed.
    pub prefill: u64,
    /// Tokens that an earlier sequence with the same beginning had computed.
    pub prefix: u64,
}

/// Seconds from a request to the first token of text or the first sound of its answer: from what a conversation does not notice to
/// what a long recording takes to be heard.
const ANSWER_SECONDS: &[f64] =
    &[0.02, 0.05, 0.1, 0.15, 0.25, 0.4, 0.6, 0.8, 1.2, 2.0, 3.5, 6.0, 10.0, 20.0, 60.0];

/// What a speech language model was asked and said. Tokens are counted when an answer ends; those of one that failed are not.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerStats {
    /// Name of the model.
    pub model: String,
    /// Answers, from when they were asked for.
    pub endings: Endings,
    /// Tokens of prompts that are no sound.
    pub prompt_tokens: u64,
    /// Tokens of prompts that are sound.
    pub prompt_audio_tokens: u64,
    /// Tokens of text that were written.
    pub text_tokens: u64,
    /// Frames of sound that were said.
    pub audio_frames: u64,
    /// From the request to the first text of its answer.
    pub first_text_seconds: Histogram,
    /// From the request to the first sound of its answer.
    pub first_audio_seconds: Histogram,
    /// Answers whose recordings are still to be heard.
    pub hearing: u64,
}

impl Default for AnswerStats {
    fn default() -> Self {
        Self {
            model: String::new(),
            endings: Endings::default(),
            prompt_tokens: 0,
            prompt_audio_tokens: 0,
            text_tokens: 0,
            audio_frames: 0,
            first_text_seconds: Histogram::new(ANSWER_SECONDS),
            first_audio_seconds: Histogram::new(ANSWER_SECONDS),
            hearing: 0,
        }
    }
}

/// One stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageStats {
    /// Key/value blocks that contexts hold.
    pub blocks_in_use: u64,
    /// Key/value blocks that nobody holds, and that keep what they hold until they are needed.
    pub blocks_cached: u64,
    /// Key/value blocks there are.
    pub blocks_total: u64,
    /// Groups of two sequences: what is said, and its companion for guidance.
    pub pairs: u64,
    /// Tokens since the start.
    pub tokens: Tokens,
    /// Sequences in a step, of the steps that had any.
    pub batch: Histogram,
}

impl Default for StageStats {
    fn default() -> Self {
        Self {
            blocks_in_use: 0,
            blocks_cached: 0,
            blocks_total: 0,
            pairs: 0,
            tokens: Tokens::default(),
            batch: Histogram::new(BATCH_SEQUENCES),
        }
    }
}

/// The audio thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AudioStats {
    /// Jobs that wait.
    pub jobs_waiting: u64,
    /// Samples that were released, at 24 kHz.
    pub samples: u64,
    /// Time that each job took.
    pub job_seconds: Histogram,
}

impl Default for AudioStats {
    fn default() -> Self {
        Self { jobs_waiting: 0, samples: 0, job_seconds: Histogram::new(JOB_SECONDS) }
    }
}

/// What a stage is of its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Name of the model.
    pub model: String,
    /// `cb0` and so on in a voice, `lm` in a speech language model.
    pub name: String,
}

/// What the engine has done so far, and what it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    /// Steps that ran at least one token.
    pub steps: u64,
    /// Tokens that ran, all stages together.
    pub tokens: u64,
    /// Contexts that are not over.
    pub contexts: u64,
    /// Contexts with somebody listening in real time.
    pub listeners: u64,
    /// Contexts that are as far ahead of their listeners as they may be.
    pub parked: u64,
    /// Groups of sequences that wait for blocks.
    pub waiting: u64,
    /// Key/value blocks that contexts hold, all stages together.
    pub kv_blocks_in_use: u64,
    /// Key/value blocks there are, all stages together.
    pub kv_blocks_total: u64,
    /// Times a sequence lost its blocks to a more urgent one.
    pub preemptions: u64,
    /// Prefill tokens computed, all stages together.
    pub prefill_tokens: u64,
    /// Prefill tokens that an earlier sequence with the same beginning had computed, all stages together.
    pub prefix_tokens: u64,
    /// Time spent in steps.
    pub busy: Duration,
    /// Step time that a second of sound costs, lately, all models together; zero until measured.
    pub cost_per_second: Duration,
    /// The same of each way of making sound, with who listens to it.
    pub costs: Vec<Cost>,
    /// How contexts began and ended.
    pub endings: Endings,
    /// How often the guards stepped in.
    pub guards: GuardHits,
    /// Each stage, in order.
    pub stages: Vec<StageStats>,
    /// What each stage is.
    pub parts: Vec<Part>,
    /// Each speech language model, in order.
    pub answers: Vec<AnswerStats>,
    /// Time that each step took.
    pub step_seconds: Histogram,
    /// Time that the first chunk of a context waited for its first tokens to run.
    pub queue_seconds: Histogram,
    /// The audio thread.
    pub audio: AudioStats,
}

impl Stats {
    /// Of an engine of these parts that has done nothing yet.
    pub fn new(parts: Vec<Part>) -> Self {
        Self {
            steps: 0,
            tokens: 0,
            contexts: 0,
            listeners: 0,
            parked: 0,
            waiting: 0,
            kv_blocks_in_use: 0,
            kv_blocks_total: 0,
            preemptions: 0,
            prefill_tokens: 0,
            prefix_tokens: 0,
            busy: Duration::ZERO,
            cost_per_second: Duration::ZERO,
            costs: Vec::new(),
            endings: Endings::default(),
            guards: GuardHits::default(),
            stages: vec![StageStats::default(); parts.len()],
            parts,
            answers: Vec::new(),
            step_seconds: Histogram::new(STEP_SECONDS),
            queue_seconds: Histogram::new(QUEUE_SECONDS),
            audio: AudioStats::default(),
        }
    }
}

impl Part {
    /// The parts of a voice of so many stages.
    pub(crate) fn of_voice(model: &str, stages: usize) -> impl Iterator<Item = Self> {
        (0..stages).map(move |stage| Self { model: model.to_owned(), name: format!("cb{stage}") })
    }

    /// The one part of a speech language model.
    pub(crate) fn of_speaker(model: &str) -> Self {
        Self { model: model.to_owned(), name: "lm".to_owned() }
    }
}

/// What only the engine's own loop can see, kept until it is published.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    pub(crate) guards: GuardHits,
    pub(crate) queue_seconds: Histogram,
    /// Of each stage.
    pub(crate) batches: Vec<Histogram>,
}

impl Tally {
    pub(crate) fn new(stages: usize) -> Self {
        Self {
            guards: GuardHits::default(),
            queue_seconds: Histogram::new(QUEUE_SECONDS),
            batches: vec![Histogram::new(BATCH_SEQUENCES); stages],
        }
    }

    /// Takes note of how many sequences of each stage were in a step.
    pub(crate) fn ran(&mut self, sequences: impl Iterator<Item = usize>) {
        for (batch, sequences) in self.batches.iter_mut().zip(sequences) {
            if sequences > 0 {
                batch.observe(sequences as f64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_at_or_below_their_bound() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        [0.5, 1.0, 1.5, 9.0].into_iter().for_each(|value| histogram.observe(value));
        assert_eq!(histogram.cumulative().collect::<Vec<_>>(), [(1.0, 2), (2.0, 3)]);
        assert_eq!((histogram.count(), histogram.sum()), (4, 12.0));
    }

    #[test]
    fn bounds_ascend_and_a_step_of_a_packet_and_one_of_a_frame_can_be_told_apart() {
        for bounds in [STEP_SECONDS, QUEUE_SECONDS, BATCH_SEQUENCES, ANSWER_SECONDS] {
            assert!(bounds.is_sorted_by(|a, b| a < b));
        }
        assert!(STEP_SECONDS.contains(&0.02) && STEP_SECONDS.contains(&0.08));
    }

    #[test]
    fn stages_without_work_do_not_count_as_empty_batches() {
        let mut tally = Tally::new(2);
        tally.ran([3, 0].into_iter());
        assert_eq!(tally.batches.iter().map(Histogram::count).collect::<Vec<_>>(), [1, 0]);
    }
}
