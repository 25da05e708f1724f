//! The golden turns, said by the engine: the rows, the frames and the text are the fixture's, whoever else is there.

use codecs::weights::Weights;

use super::*;
use crate::phase::Plan;
use crate::runner::ForwardError;
use crate::sampler::Sampling;
use crate::streams::Manner;

const GREEDY: Manner = Manner { text: Sampling::GREEDY, audio: Sampling::GREEDY, seed: 0 };
const TURN: &[Modality] = &[Modality::Text, Modality::Audio];
/// Rows before which no golden turn's prompt ends.
const SIX_FRAMES: usize = 6;

/// A golden turn.
pub(super) struct Golden {
    model: usize,
    name: &'static str,
    order: &'static [Modality],
    min_rows: usize,
    guidance: f32,
}

pub(super) const GOLDEN: [Golden; 5] = {
    const SOUND: &[Modality] = &[Modality::Audio];
    [
        Golden { model: BAGPIPER, name: "gen_plain", order: TURN, min_rows: 1, guidance: 1.0 },
        Golden { model: BAGPIPER, name: "gen_cfg", order: TURN, min_rows: 1, guidance: 3.0 },
        Golden { model: OPUSLM, name: "gen_tts", order: SOUND, min_rows: 3, guidance: 1.0 },
        Golden { model: OPUSLM, name: "gen_text_audio", order: TURN, min_rows: 3, guidance: 1.0 },
        Golden { model: OPUSLM, name: "gen_cfg", order: SOUND, min_rows: 3, guidance: 3.0 },
    ]
};

impl Golden {
    fn case(&self) -> Weights {
        let folder = fixture("speechlm_tiny").join(BUNDLES[self.model]);
        Weights::open(&folder.join(format!("{}.safetensors", self.name))).unwrap()
    }

    fn rows(&self, name: &str) -> Vec<Vec<i64>> {
        let case = self.case();
        let width = case.shape(name).unwrap()[1];
        case.ints(name).unwrap().chunks(width).map(<[i64]>::to_vec).collect()
    }

    /// What the fixture was made with.
    fn settings(&self, rig: &Rig) -> Settings {
        let settings = rig.resolve(self.model, request(self.order, 0));
        let order = self.order.to_vec();
        let plan = Plan {
            order,
            max_text: 100,
            min_rows: self.min_rows,
            max_rows: 100,
            max_tokens: usize::MAX,
        };
        let prompt = self.rows("prompt_rows").concat().iter().map(|&id| id as u32).collect();
        Settings {
            machine: settings.speaker.family.machine(plan).unwrap(),
            guidance: self.guidance.into(),
            manner: GREEDY,
            prompt,
            ..settings
        }
    }
}

/// A network whose stream 0 is pushed about as the fixture says: by the rows that a sequence has behind it.
struct Steered {
    inner: Box<dyn StageModel>,
    outputs: Outputs,
    prompt_rows: usize,
    biases: Vec<Vec<f32>>,
}

impl Steered {
    fn by(golden: &Golden, inner: Box<dyn StageModel>) -> Self {
        let case = golden.case();
        let shape = case.shape("bias0").unwrap().to_vec();
        let biases = case.f32("bias0", &shape).unwrap();
        Self {
            inner,
            outputs: outputs(golden.model),
            prompt_rows: golden.rows("prompt_rows").len(),
            biases: biases.chunks(shape[1]).map(<[f32]>::to_vec).collect(),
        }
    }
}

impl StageModel for Steered {
    fn vocabulary(&self) -> usize {
        self.inner.vocabulary()
    }

    fn outputs(&self, narrow: bool) -> usize {
        self.inner.outputs(narrow)
    }

    fn reserve(&mut self, blocks: usize) {
        self.inner.reserve(blocks);
    }

    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ForwardError> {
        self.inner.forward(batch, logits)?;
        for (row, logits) in with_logits(batch, &self.outputs, logits) {
            // Both halves of a pair alike: so much is added to what is merged of them.
            let step = (row.computed + row.tokens.len()).checked_sub(self.prompt_rows);
            if let Some(bias) = step.and_then(|step| self.biases.get(step)) {
                self.outputs.bias(logits, row.narrow, bias);
            }
        }
        Ok(())
    }
}

/// Rows of a context's main half, as the scheduler has them.
fn rows(rig: &Rig, id: ContextId) -> Option<Vec<Vec<i64>>> {
    let scheduler = rig.engine.scheduler();
    let groups = scheduler.group_ids().filter_map(|group| scheduler.group(group));
    let main = &groups.into_iter().find(|group| group.context == id)?.members[0];
    let others = main.beside.chunks_exact(main.others());
    let row = |(first, others): (&u32, &[u32])| {
        [first].into_iter().chain(others).map(|&id| i64::from(id)).collect()
    };
    Some(main.ids.iter().zip(others).map(row).collect())
}

/// Holds a turn, said among others while `disturb` may interfere before each step, to what the fixture says.
pub(super) fn check(golden: &Golden, budget: Budget, mut disturb: impl FnMut(&mut Rig, u64)) {
    let at = format!("{} {} {budget:?}", BUNDLES[golden.model], golden.name);
    let mut rig = Rig::with(ROOMY, budget, |stage, network| {
        if stage == golden.model { Box::new(Steered::by(golden, network)) } else { network }
    });
    let id = ContextId(0);
    let settings = golden.settings(&rig);
    rig.open(id, settings);
    // Others of both families are at work beside it.
    for other in 1..4 {
        let settings = rig.resolve(other as usize % 2, request(TURN, other));
        rig.open(ContextId(other), settings);
    }
    let mut said = Vec::new();
    rig.run_with(|rig, step| {
        said = rows(rig, id).unwrap_or(std::mem::take(&mut said));
        disturb(rig, step);
    });
    let prompt = golden.rows("prompt_rows");
    let mut expected: Vec<Vec<i64>> = golden.rows("out_rows");
    // What follows the end is fed there and says nothing; the end itself is said and not fed here.
    expected.retain(|row| row[0] >= 0);
    expected.pop();
    assert_eq!(said[prompt.len()..], expected, "{at}");
    let heard = rig.heard.remove(&id).unwrap();
    let speaker = &rig.speakers[golden.model];
    let codes: Vec<Vec<u16>> = golden.rows("codes")[..SIX_FRAMES]
        .iter()
        .map(|frame| frame[speaker.sounding.clone()].iter().map(|&c| c as u16).collect())
        .collect();
    assert_eq!(heard.frames, codes, "{at}");
    let text: Vec<u32> = expected.iter().map(|row| row[0] as u32).collect();
    let text: Vec<u32> = text.into_iter().filter(|id| speaker.text.range().contains(id)).collect();
    assert_eq!(heard.text, speaker.text.decode(&text).unwrap(), "{at}");
    let Some(Ok(summary)) = heard.outcome else { panic!("{at}: {:?}", heard.outcome) };
    let usage = summary.usage.unwrap();
    // The companion is nobody's: what is counted is the same with and without it.
    assert_eq!((usage.text_tokens, usage.audio_frames), (text.len(), SIX_FRAMES), "{at}");
    assert_eq!(summary.samples, SIX_FRAMES as u64 * 480, "{at}");
    assert_eq!(spoken(&rig.read(id)).len(), SIX_FRAMES * 480, "{at}");
}

#[test]
fn golden_turns_are_said_row_for_row_among_others() {
    for golden in &GOLDEN {
        for (prefill_tokens, share_prefixes) in [(1000, true), (5, true), (5, false)] {
            check(golden, Budget { prefill_tokens, share_prefixes, ..BUDGET }, |_, _| ());
        }
    }
}

/// A companion is there from the marker of a sound to its end, as long as the main half, and at no other time.
#[test]
fn a_companion_lives_as_long_as_its_sound() {
    let golden = &GOLDEN[1];
    let mut rig = Rig::with(ROOMY, BUDGET, |stage, network| match stage == golden.model {
        true => Box::new(Steered::by(golden, network)),
        false => network,
    });
    let settings = golden.settings(&rig);
    rig.open(ContextId(0), settings);
    let mut members = Vec::new();
    rig.run_with(|rig, _| {
        let scheduler = rig.engine.scheduler();
        let group = scheduler.group_ids().next().and_then(|group| scheduler.group(group));
        if let Some(group) = group {
            let lengths: Vec<usize> = group.members.iter().map(|m| m.ids.len()).collect();
            assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
            members.push(lengths.len());
        }
    });
    let with = members.iter().filter(|&&count| count == 2).count();
    // The marker, thirteen rows of the grid; the last row that was said is not fed any more.
    assert_eq!(with, 1 + 13, "{members:?}");
    assert!(members.iter().skip_while(|&&count| count == 1).all(|&count| count == 2));
}
