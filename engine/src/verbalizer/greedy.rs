//! Several prompts answered side by side, each with the likeliest id at every step. Drafts save steps and change nothing: an id is
//! only taken when the network itself would have said it.
//!
//! ```text
//! known   a b c d | draft e f g       one row: the newest id and the draft, outputs of all of them wanted
//! says            e   f   x           e and f are confirmed, x is said instead of g: three ids in one step
//! ```

use crate::batch::{BLOCK_TOKENS, Batch, BatchRow};
use crate::runner::{ForwardError, StageModel};

use super::lookup::Lookup;

/// What holds for every answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    /// Ids of a prompt and its answer together, at most.
    pub(super) room: usize,
    /// Ids that end an answer; the answer has them.
    pub(super) ends: &'a [u32],
    /// How drafts are looked up.
    pub(super) lookup: Lookup,
}

/// What came of the prompts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answers {
    /// The ids behind each prompt; `None` where time ran out.
    pub(super) ids: Vec<Option<Vec<u32>>>,
    /// Forwards that it took.
    pub(super) steps: usize,
}

struct Sequence {
    ids: Vec<u32>,
    prompt: usize,
    /// Ids whose keys and values are stored.
    computed: usize,
    blocks: Vec<u32>,
    drafted: Vec<u32>,
    done: bool,
}

/// Answers prompts, none of them empty, until `late`; `network` has blocks for so many of the greatest length. Its logits begin with
/// one for each id.
///
/// # Errors
/// The network cannot run.
pub(super) fn answer(
    network: &mut dyn StageModel,
    prompts: &[Vec<u32>],
    rules: Rules<'_>,
    late: &dyn Fn() -> bool,
) -> Result<Answers, ForwardError> {
    let per_sequence = rules.room.div_ceil(BLOCK_TOKENS) as u32;
    let sequence = |(i, prompt): (usize, &Vec<u32>)| Sequence {
        ids: prompt.clone(),
        prompt: prompt.len(),
        computed: 0,
        blocks: (i as u32 * per_sequence..(i as u32 + 1) * per_sequence).collect(),
        drafted: Vec::new(),
        done: prompt.len() >= rules.room,
    };
    let mut sequences: Vec<Sequence> = prompts.iter().enumerate().map(sequence).collect();
    let (mut steps, mut logits) = (0, Vec::new());
    while sequences.iter().any(|s| !s.done) && !late() {
        let batch = batch(&mut sequences, &rules);
        logits.clear();
        network.forward(&batch, &mut logits)?;
        steps += 1;
        let mut rows = logits.chunks_exact(network.outputs(false));
        for sequence in sequences.iter_mut().filter(|s| !s.done) {
            let own: Vec<&[f32]> = rows.by_ref().take(1 + sequence.drafted.len()).collect();
            sequence.follow(&own, network.vocabulary(), &rules);
        }
    }
    let ids = sequences.into_iter().map(|mut s| s.done.then(|| s.ids.split_off(s.prompt)));
    Ok(Answers { ids: ids.collect(), steps })
}

/// What each sequence has not stored yet, and a draft behind it.
fn batch(sequences: &mut [Sequence], rules: &Rules<'_>) -> Batch {
    let mut batch = Batch::default();
    for s in sequences.iter_mut().filter(|s| !s.done) {
        let room = rules.room - s.ids.len() - 1;
        let draft = rules.lookup.draft(&s.ids);
        s.drafted = draft[..draft.len().min(room)].to_vec();
        let start = batch.ids.len();
        batch.ids.extend_from_slice(&s.ids[s.computed..]);
        batch.ids.extend_from_slice(&s.drafted);
        let end = s.ids.len() + s.drafted.len();
        batch.positions.extend((s.computed..end).map(|position| position as i32));
        batch.rows.push(BatchRow {
            tokens: start..batch.ids.len(),
            computed: s.computed,
            blocks: s.blocks.clone(),
            logits: true,
            outputs_before: s.drafted.len(),
            ..BatchRow::default()
        });
    }
    batch
}

impl Sequence {
    /// Says what the network says, as long as that is what was drafted.
    fn follow(&mut self, rows: &[&[f32]], vocabulary: usize, rules: &Rules<'_>) {
        for (i, row) in rows.iter().enumerate() {
            let next = best(&row[..vocabulary]);
            self.ids.push(next);
            self.done = rules.ends.contains(&next) || self.ids.len() >= rules.room;
            if self.done || self.drafted.get(i) != Some(&next) {
                break;
            }
        }
        // Behind the last id that was right, what was stored is overwritten.
        self.computed = self.ids.len() - 1;
    }
}

/// The first of the likeliest ids.
fn best(row: &[f32]) -> u32 {
    let better = |best: usize, other: usize| if row[other] > row[best] { other } else { best };
    (0..row.len()).fold(0, better) as u32
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::kernels::matrix::Precision;
    use crate::models::fast::Options;
    use crate::models::speech::{Family, SpeechLm, open_model};

    const ROOM: usize = 120;

    /// The tensors of the golden Bagpiper, read as a model of text alone.
    fn network(sequences: usize, precision: Precision) -> SpeechLm {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/speechlm_tiny/bagpiper");
        let (mut config, weights) = open_model(&folder).unwrap();
        config.family = Family::Text;
        let options = Options { precision, kept_ids: None, pool: None };
        let mut model = SpeechLm::load(&weights, &config, &options, &mut |_| ()).unwrap();
        model.reserve(sequences * ROOM.div_ceil(BLOCK_TOKENS));
        model
    }

    fn prompts(count: u32) -> Vec<Vec<u32>> {
        let id = |p: u32, i: u32| 256 + (p * 37 + i * i * 11 + i % (3 + p)) % 120;
        // The second half says the first again, as an answer does that copies.
        let half = |p| (0..10 + p).map(move |i| id(p, i));
        (0..count).map(|p| half(p).chain(half(p)).collect()).collect()
    }

    fn rules(lookup: Lookup) -> Rules<'static> {
        Rules { room: ROOM, ends: &[], lookup }
    }

    #[test]
    fn drafts_give_the_very_answers_that_plain_steps_give() {
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            let prompts = prompts(4);
            let mut network = network(prompts.len(), precision);
            let plain = answer(&mut network, &prompts, rules(Lookup::OFF), &|| false).unwrap();
            assert!(plain.ids.iter().zip(&prompts).all(|(ids, prompt)| {
                ids.as_ref().is_some_and(|ids| ids.len() + prompt.len() == ROOM)
            }));
            for lookup in [
                Lookup::PUBLISHED,
                Lookup { longest: 2, shortest: 1, drafted: 3 },
                Lookup { longest: 4, shortest: 1, drafted: 40 },
            ] {
                let drafted = answer(&mut network, &prompts, rules(lookup), &|| false).unwrap();
                assert_eq!(drafted.ids, plain.ids, "{precision:?} {lookup:?}");
                assert!(drafted.steps <= plain.steps, "{lookup:?}: {} steps", drafted.steps);
            }
            // Alone as among others.
            for (prompt, ids) in prompts.iter().zip(&plain.ids) {
                let one = std::slice::from_ref(prompt);
                let alone = answer(&mut network, one, rules(Lookup::PUBLISHED), &|| false).unwrap();
                assert_eq!(&alone.ids[0], ids);
            }
        }
    }

    /// Says each id's successor, round and round.
    struct Ring(u32);

    impl StageModel for Ring {
        fn vocabulary(&self) -> usize {
            self.0 as usize
        }

        fn outputs(&self, _narrow: bool) -> usize {
            self.0 as usize
        }

        fn reserve(&mut self, _blocks: usize) {}

        fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ForwardError> {
            for row in &batch.rows {
                for &id in &batch.ids[row.tokens.end - row.outputs()..row.tokens.end] {
                    logits.extend((0..self.0).map(|next| f32::from(next == (id + 1) % self.0)));
                }
            }
            Ok(())
        }
    }

    #[test]
    fn what_was_read_before_is_said_eleven_ids_a_step() {
        let prompt: Vec<u32> = (0..30).chain(0..8).collect();
        let rules = |lookup| Rules { room: 38 + 22, ends: &[], lookup };
        let expected: Vec<u32> = (8..30).collect();
        for (lookup, steps) in [(Lookup::OFF, 22), (Lookup::PUBLISHED, 2)] {
            let prompts = std::slice::from_ref(&prompt);
            let answers = answer(&mut Ring(30), prompts, rules(lookup), &|| false).unwrap();
            assert_eq!(answers, Answers { ids: vec![Some(expected.clone())], steps });
        }
    }

    #[test]
    fn an_answer_ends_with_its_end_also_inside_a_draft() {
        let prompts = prompts(1);
        let mut network = network(1, Precision::F32);
        let whole = answer(&mut network, &prompts, rules(Lookup::OFF), &|| false).unwrap();
        let whole = whole.ids[0].clone().unwrap();
        for &end in &whole {
            let until = whole.iter().position(|&id| id == end).unwrap() + 1;
            for lookup in [Lookup::OFF, Lookup { longest: 4, shortest: 1, drafted: 40 }] {
                let rules = Rules { ends: &[end], ..rules(lookup) };
                let cut = answer(&mut network, &prompts, rules, &|| false).unwrap();
                assert_eq!(cut.ids[0].as_deref(), Some(&whole[..until]));
            }
        }
    }

    #[test]
    fn nobody_waits_beyond_the_time_given() {
        let mut network = network(2, Precision::F32);
        let asked = std::cell::Cell::new(0);
        let late = || {
            asked.set(asked.get() + 1);
            asked.get() > 3
        };
        let mut prompts = prompts(1);
        prompts.push(vec![300; ROOM]);
        let late = answer(&mut network, &prompts, rules(Lookup::OFF), &late).unwrap();
        assert_eq!((late.ids[0].as_ref(), late.steps), (None, 3));
        // A prompt that leaves no room is answered with nothing at once.
        assert_eq!(late.ids[1], Some(Vec::new()));
    }

    #[test]
    fn an_id_that_the_network_does_not_know_is_an_error() {
        let mut network = network(1, Precision::F32);
        let error = answer(&mut network, &[vec![648]], rules(Lookup::OFF), &|| false).unwrap_err();
        assert!(error.to_string().contains("id 648"), "{error}");
    }
}
