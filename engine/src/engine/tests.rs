//! The whole engine over a network that hashes what it can see: any key or value in a wrong place, any token at a wrong
//! position, any neighbour that leaks in changes what is said.

mod guarded;
mod hashing;
mod live;
mod nano;

use std::collections::BTreeMap;

use super::*;
use crate::Speech;
use crate::batch::BLOCK_TOKENS;
use crate::bundle::{Prompt, Silence};
use crate::event::{CharEnd, Event};
use crate::grammar::{Grammar, StageGrammar};
use crate::guards::Guards;
use crate::layout::Vocabulary;
use crate::pipeline::{Segments, Settings, Source, Standing};
use crate::rng;
use crate::sampler::Sampling;
use crate::sequence::GroupId;
use crate::stats::GuardHits;
use crate::text::ids::CharacterIds;
use crate::text::{self, TextOptions};
use codecs::window;
use hashing::Hashing;

const SEMANTIC: u32 = 64;
const ACOUSTIC: u32 = 32;
const STAGES: usize = 4;
/// Blocks of each stage in the roomy engines: more than any test needs at once.
const ROOMY: usize = 1200;
const BUDGET: Budget = Budget { prefill_tokens: 256, sequences: 64, share_prefixes: true };

fn characters() -> CharacterIds {
    let nano = concat!(env!("CARGO_MANIFEST_DIR"), "/../voices/nano/cb0/tokenizer.json");
    CharacterIds::new(&std::fs::read(nano).unwrap()).unwrap()
}

fn vocabulary(stage: usize) -> Vocabulary {
    Vocabulary {
        stage,
        pad: 256,
        end_of_speech: 259,
        text_split: 260,
        audio_split: 261,
        line_feed: 10,
        audio_start: 300,
        semantic_codes: SEMANTIC,
        acoustic_codes: ACOUSTIC,
        realign: 25,
    }
}

fn engine_with(blocks: usize, budget: Budget, script: &[usize]) -> Engine {
    let models = (0..STAGES).map(|stage| {
        let script = if stage == 0 { script.iter().copied().collect() } else { VecDeque::new() };
        Box::new(Hashing::new(stage, script)) as Box<dyn StageModel>
    });
    Engine::new(models.collect(), &[blocks; STAGES], budget, None)
}

/// The grammar of a voice whose cb0 is this stage of the engine.
fn grammar(first_stage: usize) -> Arc<Grammar> {
    let stages = (0..STAGES)
        .map(|stage| StageGrammar { vocabulary: vocabulary(stage), characters: characters() })
        .collect();
    Arc::new(Grammar { stages, first_stage })
}

impl Engine {
    /// Takes in a context that speaks.
    fn speak(&mut self, id: ContextId, settings: Settings, source: Source) {
        self.open(id, Opening::Voice(Box::new(settings), source));
    }
}

fn engine(blocks: usize, budget: Budget) -> Engine {
    engine_with(blocks, budget, &[])
}

fn settings(seed: u64) -> Settings {
    let control: Vec<Vec<u32>> = vec![vec![257, 270, 258, 10]; STAGES];
    Settings {
        seed,
        grammar: grammar(0),
        standing: Standing::new(5, None),
        cut_lead: Duration::from_millis(300),
        pause_lead: Duration::from_millis(100),
        window: window::Settings { first_frames: 10, ..window::Settings::default() },
        segments: Segments::Frames,
        sampling: Sampling { temperature: 0.8, top_k: 20, top_p: 0.95, frequency_penalty: 0.0 },
        acoustic: Sampling::GREEDY,
        guidance: None,
        end_bias: 0.0,
        forced_first_code: None,
        silence: Arc::new(Silence::default()),
        guards: Arc::new(Guards {
            min_codes: 5,
            max_codes: 120,
            characters_per_second: 1.0..=1000.0,
            silence: Vec::new(),
        }),
        tries: 1,
        prompt: Arc::new(Prompt::default()),
        prefix: None,
        control: control.into(),
    }
}

/// A whole text in the chunks given.
fn source(chunks: &[&str]) -> Source {
    Source::Whole {
        chunks: text::given(chunks, &TextOptions::default()).into(),
        raw_chars: 0,
        notices: Vec::new(),
    }
}

const TALE: [&str; 5] =
    ["The first one.", "A second sentence follows.", "Third.", "And a fourth, longer.", "The end."];

/// What was handed to the codec, context by context.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Spoken {
    rows: Vec<Vec<u16>>,
    ends: Vec<u64>,
    aligned: Vec<CharEnd>,
    outcome: Option<Result<Summary, Failure>>,
}

type Heard = BTreeMap<ContextId, Spoken>;

fn hear(engine: &mut Engine, heard: &mut Heard) {
    while let Some(job) = engine.next_job() {
        let spoken = heard.entry(job.context).or_default();
        assert!(spoken.outcome.is_none(), "nothing follows the last job");
        spoken.rows.resize(STAGES, Vec::new());
        for (all, new) in spoken.rows.iter_mut().zip(&job.rows) {
            all.extend(new);
        }
        for (_, event) in job.marks {
            match event {
                Event::ChunkEnd { end, .. } => spoken.ends.push(end),
                Event::Aligned { ends } => spoken.aligned.extend(ends),
                _ => {}
            }
        }
        // How long it waited is all that its neighbours may change.
        let heard = |summary| Summary { queued: Duration::ZERO, ..summary };
        spoken.outcome = job.last.map(|outcome| outcome.map(heard));
    }
}

/// Steps until every context is over; `disturb` may interfere before each step.
fn run(engine: &mut Engine, mut disturb: impl FnMut(&mut Engine, usize)) -> Heard {
    let mut heard = Heard::new();
    for step in 0.. {
        disturb(engine, step);
        let ran = engine.step(Duration::from_millis(step as u64), |_| false);
        if step % 16 == 0 {
            assert_eq!(engine.scheduler().check_integrity(), Ok(()));
        }
        hear(engine, &mut heard);
        if engine.contexts() == 0 {
            break;
        }
        assert!(step < 200_000, "{} contexts do not come to an end", engine.contexts());
        assert!(ran.tokens > 0, "contexts wait for nothing at step {step}");
    }
    assert!(engine.blocks().iter().all(|b| b.in_use == 0), "blocks are held by nobody");
    heard
}

fn undisturbed(engine: &mut Engine) -> Heard {
    run(engine, |_, _| {})
}

/// One context alone in a roomy engine.
fn alone(settings: Settings, chunks: &[&str]) -> Spoken {
    let mut engine = engine(ROOMY, BUDGET);
    engine.speak(ContextId(0), settings, source(chunks));
    undisturbed(&mut engine).remove(&ContextId(0)).unwrap()
}

fn guided(seed: u64) -> Settings {
    Settings { guidance: Some(1.6), ..settings(seed) }
}

#[test]
fn a_prefix_is_read_like_the_chunk_before() {
    let greedy = || Settings { sampling: Sampling::GREEDY, ..settings(4) };
    let both = alone(greedy(), &TALE[..2]);
    let frames = both.ends[0] as usize / codecs::window::FRAME_SAMPLES;
    let codes = both.rows[0][..frames].to_vec();
    let prefix = Some(Arc::new(Speech { text: TALE[0].to_owned(), codes }));
    let second = alone(Settings { prefix, ..greedy() }, &TALE[1..2]);
    assert_eq!(second.rows[0], both.rows[0][frames..]);
    assert_ne!(alone(greedy(), &TALE[1..2]).rows[0], second.rows[0], "it makes a difference");
}

#[test]
fn a_passage_is_spoken_chunk_by_chunk_to_its_end() {
    let spoken = alone(settings(1), &TALE);
    assert!(matches!(spoken.outcome, Some(Ok(_))));
    assert_eq!(spoken.ends.len(), TALE.len());
    assert!(spoken.ends.is_sorted());
    let frames = spoken.rows[0].len();
    assert!(frames >= 5 * TALE.len());
    assert!(spoken.rows.iter().all(|row| row.len() == frames), "all rows are equally long");
    assert_eq!(spoken.ends[4], frames as u64 * 1920);
    let spoken_chars: usize = TALE.iter().map(|text| text.len()).sum();
    assert!(spoken.aligned.is_sorted_by(|a, b| a.raw_to < b.raw_to && a.sample <= b.sample));
    assert_eq!(spoken.aligned.len(), spoken_chars, "every character ends once");
}

#[test]
fn the_same_seed_says_the_same_alone_and_among_others() {
    for make in [settings as fn(u64) -> Settings, guided] {
        let expected: Vec<Spoken> = (0..8).map(|i| alone(make(i), &TALE)).collect();
        let mut engine = engine(ROOMY, BUDGET);
        for i in 0..32 {
            engine.speak(ContextId(i), make(i % 8), source(&TALE));
        }
        for (id, spoken) in undisturbed(&mut engine) {
            assert_eq!(spoken, expected[id.0 as usize % 8]);
        }
    }
    assert_ne!(alone(settings(1), &TALE), alone(settings(2), &TALE));
}

#[test]
fn preemption_and_small_prefill_budgets_change_nothing() {
    let expected: Vec<Spoken> = (0..6).map(|i| alone(guided(i), &TALE)).collect();
    for prefill_tokens in [3, 16, 64] {
        // Room for about two of the six contexts, so they displace one another all the time; some are displaced by hand.
        let mut engine = engine(36, Budget { prefill_tokens, sequences: 5, ..BUDGET });
        for i in 0..6 {
            engine.speak(ContextId(i), guided(i), source(&TALE));
        }
        let heard = run(&mut engine, |engine, step| {
            if step % 50 == 0 {
                let groups: Vec<GroupId> = engine.scheduler().group_ids().collect();
                if let Some(&group) = groups.get(step * 7 % groups.len().max(1)) {
                    engine.scheduler_mut().preempt(group);
                }
            }
        });
        assert!(engine.scheduler().preemptions() > 20);
        for (id, spoken) in heard {
            assert_eq!(spoken, expected[id.0 as usize]);
        }
    }
}

#[test]
fn chunks_refined_one_by_one_or_together_have_the_same_codes() {
    let whole = || Settings { segments: Segments::Chunk, ..settings(3) };
    let together = alone(whole(), &TALE);
    let mut engine = engine(ROOMY, Budget { prefill_tokens: 16, sequences: 1, ..BUDGET });
    engine.speak(ContextId(0), whole(), source(&TALE));
    assert_eq!(undisturbed(&mut engine)[&ContextId(0)], together);
}

#[test]
fn random_cancels_leave_nothing_behind() {
    let mut engine = engine(300, BUDGET);
    let mut next = 0;
    let mut heard = Heard::new();
    let mut over = std::collections::BTreeSet::new();
    for step in 0..5000u64 {
        if engine.contexts() < 12 {
            let make = if next % 3 == 0 { guided } else { settings };
            engine.speak(ContextId(next), make(next), source(&TALE));
            next += 1;
        }
        let draw = |stream| rng::uniform(5, stream, step);
        if draw(1) < 0.9 {
            let id = ContextId(next - 1 - (draw(2) * 12.0) as u64 % next);
            if engine.cancel(id).is_some() {
                over.insert(id);
            }
            assert_eq!(engine.scheduler().check_integrity(), Ok(()));
        }
        engine.step(Duration::from_millis(step), |_| false);
        while let Some(job) = engine.next_job() {
            assert!(!over.contains(&job.context), "a job of a cancelled context");
        }
    }
    assert!(over.len() >= 1000, "{} cancels hit a live context", over.len());
    hear(&mut engine, &mut heard);
    for id in 0..next {
        engine.cancel(ContextId(id));
    }
    assert!(engine.scheduler().is_empty());
    assert!(engine.blocks().iter().all(|b| b.in_use == 0));
}

#[test]
fn prompt_rows_above_a_stage_do_not_touch_it() {
    let with_row = |row: usize, code: u16| {
        let mut rows = vec![vec![1u16; 20]; STAGES];
        rows[row].fill(code);
        let prompt = Prompt { rows, frames: vec![20; STAGES] };
        alone(Settings { prompt: Arc::new(prompt), ..settings(4) }, &TALE)
    };
    let plain = with_row(0, 1);
    for row in 1..STAGES {
        let other = with_row(row, 9);
        assert_eq!(other.rows[..row], plain.rows[..row]);
        assert_ne!(other.rows[row], plain.rows[row]);
    }
}

/// The largest share of prefill tokens that is computed from the second chunk on, with a prompt of 60 s and chunks of about
/// 80 characters and 5 s, one prefill a stage and chunk, all stages together. Of 3,125 tokens a chunk about 925 are its own.
const COMPUTED_SHARE: f64 = 0.35;

#[test]
fn a_shared_voice_prompt_changes_no_code_and_spares_most_of_the_prefill() {
    let text = "It takes five seconds to say a text of this length, more or less, at that pace.";
    let texts = vec![text; 8];
    let script: Vec<usize> = (0..8 * 64)
        .map(|i| if i % 64 == 63 { SEMANTIC as usize + 1 } else { (i * i + 3 * i / 64) % 61 })
        .collect();
    let prompted = || {
        let rows = (1..=STAGES).map(|row| (0..750).map(|t| (t * row % 31) as u16).collect());
        let prompt = Prompt { rows: rows.collect(), frames: vec![750, 300, 150, 100] };
        // No early segment: each stage reads a chunk once.
        let window = window::Settings { first_frames: 1000, ..window::Settings::default() };
        let segments = Segments::Chunk;
        Settings { prompt: Arc::new(prompt), window, segments, ..settings(1) }
    };
    let speak = |share_prefixes, chunks: &[&str]| {
        let mut engine = engine_with(ROOMY, Budget { share_prefixes, ..BUDGET }, &script);
        engine.speak(ContextId(0), prompted(), source(chunks));
        let spoken = undisturbed(&mut engine).remove(&ContextId(0)).unwrap();
        (spoken, engine.scheduler().prefilled())
    };
    let (unshared, all) = speak(false, &texts);
    let (shared, computed) = speak(true, &texts);
    assert_eq!(shared, unshared);
    let (_, first) = speak(true, &texts[..1]);
    let (_, all_first) = speak(false, &texts[..1]);
    let share = (computed - first) as f64 / (all - all_first) as f64;
    assert!(share <= COMPUTED_SHARE, "{share:.3} of the prefill was computed");
}

#[test]
fn acoustic_rows_depend_on_c0_and_not_on_the_seed() {
    let greedy = |seed| Settings { sampling: Sampling::GREEDY, ..settings(seed) };
    assert_eq!(alone(greedy(1), &TALE), alone(greedy(2), &TALE));
}

#[test]
fn segments_cut_for_latency_keep_what_they_have_said() {
    let mut engine = engine(ROOMY, BUDGET);
    engine.speak(ContextId(0), settings(6), source(&TALE));
    let mut before = Heard::new();
    while engine.contexts() > 0 {
        engine.step(Duration::ZERO, |_| false);
        let mut now = before.clone();
        hear(&mut engine, &mut now);
        for (id, spoken) in &before {
            for (old, new) in spoken.rows.iter().zip(&now[id].rows) {
                assert!(new.starts_with(old));
            }
        }
        before = now;
    }
}

#[test]
fn broken_numbers_fail_their_context_alone() {
    let mut engine = engine(ROOMY, BUDGET);
    let mut broken = Hashing::new(0, VecDeque::new());
    broken.broken_after = Some(4);
    broken.reserve(ROOMY);
    engine.models[0] = Box::new(broken);
    for i in 0..3 {
        engine.speak(ContextId(i), settings(i), source(&TALE));
    }
    let heard = undisturbed(&mut engine);
    let failed: Vec<bool> =
        heard.values().map(|s| matches!(s.outcome, Some(Err(Failure::Model(_))))).collect();
    assert_eq!(failed, [false, false, true], "the last row of the fourth forward was broken");
}

#[test]
fn a_listener_that_is_far_behind_costs_nothing() {
    let mut engine = engine(ROOMY, BUDGET);
    let max_ahead = Some(Duration::from_millis(500));
    let standing = Standing::new(5, max_ahead);
    engine.speak(ContextId(0), Settings { standing, ..settings(1) }, source(&TALE));
    let mut steps = 0;
    let wake_at = loop {
        let step = engine.step(Duration::ZERO, |_| false);
        steps += 1;
        if step.tokens == 0 {
            break step.wake_at.expect("a parked context is woken by time");
        }
    };
    assert!(steps < 200 && wake_at > Duration::ZERO);
    assert_eq!(engine.step(wake_at - Duration::from_millis(1), |_| false).tokens, 0);
    assert!(engine.step(wake_at, |_| false).tokens > 0);
}

#[test]
fn a_passage_of_any_length_holds_no_more_than_its_longest_window() {
    let sentence = "Some words that are spoken again and again in this very long passage of ours.";
    let texts = vec![sentence; 60];
    let mut engine = engine(ROOMY, BUDGET);
    engine.speak(ContextId(0), settings(2), source(&texts));
    let mut most = [0; STAGES];
    let heard = run(&mut engine, |engine, _| {
        for (most, blocks) in most.iter_mut().zip(engine.blocks()) {
            *most = (*most).max(blocks.in_use);
        }
    });
    assert!(heard[&ContextId(0)].rows[0].len() > 60 * 25);
    let limits = crate::layout::WindowLimits {
        prompt_frames: 0,
        control: 4,
        characters: sentence.len(),
        lookahead: sentence.len(),
        codes: 120,
    };
    for (stage, most) in most.into_iter().enumerate() {
        let bound = limits.longest(stage, false).div_ceil(BLOCK_TOKENS);
        assert!(most <= bound, "stage {stage} held {most} blocks, bound {bound}");
    }
}
