//! Golden turns through the scheduler: together, displaced and computed anew, in small pieces, on shared blocks.

mod golden;

use std::collections::BTreeMap;
use std::path::PathBuf;

use codecs::weights::Weights;

use super::*;
use crate::batch::BLOCK_TOKENS;
use crate::kernels::matrix::Precision;
use crate::models::qwen3::Options;
use crate::models::speech::{Family, SpeechConfig, SpeechLm};
use crate::phase::{Bagpiper, Modality, OpusLm, Plan};
use crate::runner::StageModel;
use crate::sampler::Sampling;
use crate::scheduler::Budget;

const GREEDY: Manner = Manner { text: Sampling::GREEDY, audio: Sampling::GREEDY, seed: 0 };
const TURN: &[Modality] = &[Modality::Text, Modality::Audio];
/// Enough for every turn of these tests at once.
const BLOCKS: usize = 40;

fn open(name: &str) -> Weights {
    let root =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/speechlm_tiny");
    Weights::open(&root.join(name)).unwrap()
}

fn config(folder: &str) -> SpeechConfig {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/speechlm_tiny");
    SpeechConfig::read(&root.join(folder).join("config.json")).unwrap()
}

/// A golden turn: what it is asked, what pushes it about, and what it says.
struct Golden {
    prompt: Vec<u32>,
    order: &'static [Modality],
    min_rows: usize,
    guidance: f32,
    /// Added to the logits of stream 0, `[steps][vocabulary]`.
    biases: Vec<Vec<f32>>,
    rows: Vec<Vec<i64>>,
}

fn golden(folder: &str, name: &str, order: &'static [Modality], guidance: f32) -> Golden {
    let case = open(&format!("{folder}/{name}.safetensors"));
    let rows = |name: &str| {
        let width = case.shape(name).unwrap()[1];
        let all = case.ints(name).unwrap();
        all.chunks(width).map(<[i64]>::to_vec).collect::<Vec<_>>()
    };
    let shape = case.shape("bias0").unwrap().to_vec();
    let biases = case.f32("bias0", &shape).unwrap().chunks(shape[1]).map(<[f32]>::to_vec).collect();
    Golden {
        prompt: rows("prompt_rows").concat().iter().map(|&id| id as u32).collect(),
        order,
        min_rows: if folder == "bagpiper" { 1 } else { 3 },
        guidance,
        biases,
        // What follows the end is fed there and says nothing.
        rows: rows("out_rows").into_iter().filter(|row| row[0] >= 0).collect(),
    }
}

/// A model with its scheduler, and the turns that it runs.
struct Stage {
    model: Arc<Model>,
    family: Family,
    network: SpeechLm,
    scheduler: Scheduler,
    turns: BTreeMap<GroupId, Speaker>,
}

/// A turn under way, what pushes it about, and what it has said.
struct Speaker {
    turn: Turn,
    biases: Vec<Vec<f32>>,
    said: Vec<Said>,
}

impl Stage {
    fn new(folder: &str, blocks: usize, prefill_tokens: usize) -> Self {
        let config = config(folder);
        let options = Options { precision: Precision::F32, kept_ids: None, pool: None };
        let weights = open(&format!("{folder}/model.safetensors"));
        let mut network = SpeechLm::load(&weights, &config, &options, &mut |_| ()).unwrap();
        network.reserve(blocks);
        let streams = match &config.family {
            Family::Bagpiper(ids) => ids.streams.clone(),
            Family::OpusLm(ids) => ids.streams.clone(),
            Family::Text => panic!("has no streams"),
        };
        let model = Arc::new(Model { streams, outputs: network.layout() });
        let budget = Budget { prefill_tokens, sequences: 8, share_prefixes: true };
        let scheduler = Scheduler::new(&[blocks], budget);
        Self { model, family: config.family, network, scheduler, turns: BTreeMap::new() }
    }

    fn machine(&self, order: &[Modality], min_rows: usize) -> Machine {
        let plan = Plan {
            order: order.to_vec(),
            max_text: 100,
            min_rows,
            max_rows: 100,
            max_tokens: usize::MAX,
        };
        match &self.family {
            Family::Bagpiper(ids) => Machine::Bagpiper(Bagpiper::new(ids.clone(), plan).unwrap()),
            Family::OpusLm(ids) => Machine::OpusLm(OpusLm::new(ids.clone(), plan).unwrap()),
            Family::Text => panic!("has no streams"),
        }
    }

    fn begin(&mut self, golden: &Golden, manner: Manner) -> GroupId {
        let machine = self.machine(golden.order, golden.min_rows);
        self.begin_with(golden, manner, machine)
    }

    fn begin_with(&mut self, golden: &Golden, manner: Manner, machine: Machine) -> GroupId {
        let context = ContextId(self.turns.len() as u64);
        let how = (manner, golden.guidance.into());
        let scheduler = &mut self.scheduler;
        let place = (context, 0);
        let turn = Turn::open(scheduler, place, self.model.clone(), machine, &golden.prompt, how);
        let group = turn.group();
        let speaker = Speaker { turn, biases: golden.biases.clone(), said: Vec::new() };
        self.turns.insert(group, speaker);
        group
    }

    /// One step of whatever is scheduled; false when nothing is.
    fn step(&mut self) -> bool {
        let step = self.scheduler.schedule(|context| Some(context.0));
        if step.is_empty() {
            return false;
        }
        let batch = self.scheduler.batch(&step, 0);
        let mut logits = Vec::new();
        self.network.forward(&batch, &mut logits).unwrap();
        let mut rows = &mut logits[..];
        for scheduled in &step {
            self.scheduler.ran(scheduled);
            if !scheduled.completes {
                continue;
            }
            let members = scheduled.tokens.len();
            let narrow = self.scheduler.group(scheduled.group).unwrap().members[0].narrow;
            let outputs = self.network.outputs(narrow);
            let (own, rest) = rows.split_at_mut(members * outputs);
            rows = rest;
            let Speaker { turn, biases, said } = self.turns.get_mut(&scheduled.group).unwrap();
            if let Some(bias) = biases.get(said.len()) {
                // Both branches alike: so much is added to what is merged of them.
                for member in own.chunks_exact_mut(outputs) {
                    self.model.outputs.bias(member, narrow, bias);
                }
            }
            said.push(turn.advance(&mut self.scheduler, own).unwrap());
            if said.last().unwrap().done {
                self.scheduler.remove(scheduled.group);
            }
        }
        self.scheduler.check_integrity().unwrap();
        true
    }

    fn run(&mut self) {
        while self.step() {}
        assert!(self.scheduler.is_empty());
        assert_eq!(self.scheduler.blocks(0).in_use, 0, "blocks are held by nobody");
    }

    fn said(&self, group: GroupId) -> &[Said] {
        &self.turns[&group].said
    }

    fn rows(&self, group: GroupId) -> Vec<Vec<u32>> {
        self.said(group).iter().map(|s| s.ids.clone()).collect()
    }
}

fn bagpiper() -> [Golden; 2] {
    [golden("bagpiper", "gen_plain", TURN, 1.0), golden("bagpiper", "gen_cfg", TURN, 3.0)]
}

fn opuslm() -> [Golden; 3] {
    let sound = &[Modality::Audio];
    [
        golden("opuslm", "gen_tts", sound, 1.0),
        golden("opuslm", "gen_text_audio", TURN, 1.0),
        golden("opuslm", "gen_cfg", sound, 3.0),
    ]
}

fn check(stage: &Stage, group: GroupId, golden: &Golden) {
    let rows: Vec<Vec<i64>> =
        stage.rows(group).iter().map(|r| r.iter().map(|&id| i64::from(id)).collect()).collect();
    assert_eq!(rows, golden.rows);
    let said = stage.said(group);
    assert_eq!(said.iter().filter(|s| s.frame.is_some()).count(), 6);
    assert_eq!(said.iter().filter(|s| s.sound_ends).count(), 1);
    assert!(said.iter().all(|s| s.lost == 0));
}

#[test]
fn golden_turns_are_said_together_however_the_steps_are_cut() {
    for prefill in [3, 1000] {
        let mut stage = Stage::new("bagpiper", BLOCKS, prefill);
        let turns = bagpiper();
        let groups = turns.each_ref().map(|t| stage.begin(t, GREEDY));
        stage.run();
        groups.iter().zip(&turns).for_each(|(g, t)| check(&stage, *g, t));
        let mut stage = Stage::new("opuslm", BLOCKS, prefill);
        let turns = opuslm();
        let groups = turns.each_ref().map(|t| stage.begin(t, GREEDY));
        stage.run();
        groups.iter().zip(&turns).for_each(|(g, t)| check(&stage, *g, t));
    }
}

/// What a displaced turn has said is computed again with the codes of all streams, and half a pair is never displaced.
#[test]
fn displaced_turns_go_on_as_if_nothing_had_been() {
    // One guided turn needs six blocks at its end; both together do not fit.
    let mut stage = Stage::new("bagpiper", 6, 1000);
    let turns = bagpiper();
    let groups = [stage.begin(&turns[1], GREEDY), stage.begin(&turns[0], GREEDY)];
    stage.run();
    assert!(stage.scheduler.preemptions() > 0);
    check(&stage, groups[0], &turns[1]);
    check(&stage, groups[1], &turns[0]);
    let mut stage = Stage::new("opuslm", BLOCKS, 1000);
    let turn = &opuslm()[2];
    let group = stage.begin(turn, GREEDY);
    for count in 1.. {
        if !stage.step() {
            break;
        }
        if count % 3 == 0 {
            stage.scheduler.preempt(group);
            stage.scheduler.forget_unused();
        }
    }
    check(&stage, group, turn);
}

#[test]
fn companions_of_one_length_share_their_chain_of_nothing() {
    let mut stage = Stage::new("opuslm", BLOCKS, 1000);
    let [_, _, guided] = opuslm();
    assert!(guided.prompt.len() / 9 > BLOCK_TOKENS);
    stage.begin(&guided, GREEDY);
    stage.step();
    let before = stage.scheduler.tokens(0).prefix;
    // Another prompt of the same length: only the companion's block is known already.
    let mut other = golden("opuslm", "gen_cfg", &[Modality::Audio], 3.0);
    other.prompt[9 * 3] += 1;
    let second = stage.begin(&other, GREEDY);
    stage.step();
    assert_eq!(stage.scheduler.tokens(0).prefix - before, BLOCK_TOKENS as u64);
    let members = &stage.scheduler.group(second).unwrap().members;
    assert_eq!(members.len(), 2);
    stage.run();
}

/// Whether a sound ends as the model wants or at its limit, its companion goes in the step that ends it, having said nothing.
#[test]
fn a_companion_goes_in_the_step_that_ends_its_sound() {
    for max_rows in [100, 11] {
        let mut stage = Stage::new("bagpiper", BLOCKS, 1000);
        let [_, mut guided] = bagpiper();
        if max_rows < 100 {
            guided.biases.clear();
        }
        // Another segment follows, so that the group stays.
        guided.order = &[Modality::Audio, Modality::Text];
        let plan = Plan {
            order: guided.order.to_vec(),
            max_text: 5,
            min_rows: 4,
            max_rows,
            max_tokens: usize::MAX,
        };
        let Family::Bagpiper(ids) = &stage.family else { panic!() };
        let machine = Machine::Bagpiper(Bagpiper::new(ids.clone(), plan).unwrap());
        let group = stage.begin_with(&guided, GREEDY, machine);
        let (mut with, mut ended) = (0, false);
        while stage.step() {
            let Some(now) = stage.scheduler.group(group) else { break };
            let last = stage.said(group).last().unwrap();
            assert_eq!(last.ids.len(), 8, "one row is said, whoever is in the group");
            with += usize::from(now.members.len() == 2);
            ended |= last.sound_ends;
            assert_eq!(now.members.len() == 2, with > 0 && !ended);
            if last.sound_ends {
                let main = now.members[0].table.blocks().len();
                assert_eq!(stage.scheduler.blocks(0).in_use, main, "its blocks are free");
            }
        }
        assert!(ended && with > 4, "{with}");
        assert_eq!(stage.said(group).iter().filter(|said| said.sound_ends).count(), 1);
    }
}

/// Blocks are found by what all streams say: with the codes of one stream changed, nothing is shared behind the change.
#[test]
fn sequences_that_differ_in_one_stream_share_no_block_behind_it() {
    let streams = 9;
    let mut stage = Stage::new("opuslm", BLOCKS, 1000);
    let mut rows: Vec<u32> = (0..40 * streams).map(|i| 256 + i as u32 % 30).collect();
    let first = stage.scheduler.add(ContextId(0), 0, vec![Sequence::of_rows(&rows, streams)]);
    let step = stage.scheduler.schedule(|c| Some(c.0));
    stage.scheduler.ran(&step[0]);
    let shared = |stage: &mut Stage, rows: &[u32]| {
        let before = stage.scheduler.tokens(0).prefix;
        let id = stage.scheduler.add(ContextId(1), 0, vec![Sequence::of_rows(rows, streams)]);
        stage.scheduler.schedule(|c| Some(c.0));
        stage.scheduler.remove(id);
        stage.scheduler.tokens(0).prefix - before
    };
    assert_eq!(shared(&mut stage, &rows), 32);
    rows[20 * streams + 5] += 1;
    assert_eq!(shared(&mut stage, &rows), 16);
    rows[8] += 1;
    assert_eq!(shared(&mut stage, &rows), 0);
    stage.scheduler.remove(first);
}

/// Frames go to the codec as they are said: sound is there long before the turn is over, and it is that of all codes at once.
#[test]
fn a_turn_becomes_sound_while_it_is_said() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/xcodec_tiny");
    let config = codecs::xcodec::Config::read(&root.join("config.json")).unwrap();
    let weights = Weights::open(&root.join("model.safetensors")).unwrap();
    let codec = codecs::xcodec::Decoder::load(&weights, &config).unwrap();
    // A long sound, sampled, to its limit.
    let mut stage = Stage::new("bagpiper", BLOCKS, 1000);
    let mut golden = bagpiper().into_iter().next().unwrap();
    (golden.order, golden.min_rows, golden.biases) = (&[Modality::Audio], 70, Vec::new());
    let audio = Sampling { temperature: 1.0, top_k: 20, ..Sampling::GREEDY };
    let group = stage.begin(&golden, Manner { text: Sampling::GREEDY, audio, seed: 11 });
    let (mut state, mut sound, mut fed, mut first_sound) = (codec.state(), Vec::new(), 0, None);
    let mut codes = vec![Vec::new(); 8];
    while stage.step() {
        let said = stage.said(group);
        let (last, rows) = (said.last().unwrap(), said.len());
        let frame = last.frame.clone().unwrap_or_default();
        let columns: Vec<&[u16]> = match frame.len() {
            0 => vec![&[]; 8],
            _ => frame.chunks(1).collect(),
        };
        columns.iter().zip(&mut codes).for_each(|(c, all)| all.extend_from_slice(c));
        sound.extend(codec.step(&mut state, &columns, last.sound_ends).unwrap());
        fed += usize::from(!frame.is_empty());
        if !sound.is_empty() {
            first_sound.get_or_insert(rows);
        }
    }
    assert!(fed >= 50, "{fed} frames");
    // A marker, the rows in which the first frame is finished, and the codec's look-ahead.
    assert_eq!(first_sound, Some(1 + 8 + 10 - 1));
    let views: Vec<&[u16]> = codes.iter().map(Vec::as_slice).collect();
    assert_eq!(sound, codec.decode(&views).unwrap());
    assert_eq!(sound.len(), 320 * fed);
}

/// Sampled, not greedy: neighbours, displacements and cuts change nothing of what a seed says.
#[test]
fn a_seed_says_the_same_alone_and_in_a_crowd() {
    let audio = Sampling { temperature: 0.8, top_k: 20, ..Sampling::GREEDY };
    let text = Sampling { temperature: 0.6, top_k: 20, ..Sampling::GREEDY };
    let manner = |seed| Manner { text, audio, seed };
    let alone = |golden: &Golden, seed| {
        let mut stage = Stage::new("bagpiper", BLOCKS, 1000);
        let group = stage.begin(golden, manner(seed));
        stage.run();
        stage.rows(group)
    };
    let [plain, guided] = bagpiper();
    let mut stage = Stage::new("bagpiper", 10, 5);
    let crowd: Vec<(&Golden, u64, GroupId)> =
        [(&plain, 1), (&guided, 2), (&guided, 3), (&plain, 4)]
            .into_iter()
            .map(|(golden, seed)| (golden, seed, stage.begin(golden, manner(seed))))
            .collect();
    stage.run();
    assert!(stage.scheduler.preemptions() > 0);
    for (golden, seed, group) in crowd {
        assert_eq!(stage.rows(group), alone(golden, seed), "seed {seed}");
    }
    assert_ne!(alone(&plain, 1), alone(&plain, 4));
}
