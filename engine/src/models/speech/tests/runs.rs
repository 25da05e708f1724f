//! Whole turns, greedy, with the explicit state, the delay and guidance: what is said must be what the golden runs say.

use super::*;
use crate::cfg::merge;
use crate::delay::Aligner;
use crate::phase::{Bagpiper, Machine, Modality, OpusLm, Phase, Plan};
use crate::sampler::Sampling;
use crate::streams::{Manner, choose};

/// Merging multiplies the error of both branches by up to five.
const MERGED_TOLERANCE: f32 = 5e-4;
const GREEDY: Manner = Manner { text: Sampling::GREEDY, audio: Sampling::GREEDY, seed: 0 };

struct Run {
    folder: &'static str,
    name: &'static str,
    order: &'static [Modality],
    min_rows: usize,
    weight: f32,
}

const RUNS: [Run; 5] = {
    use Modality::{Audio, Text};
    const TURN: &[Modality] = &[Text, Audio];
    let (bagpiper, opuslm) = ("speechlm_tiny/bagpiper", "speechlm_tiny/opuslm");
    [
        Run { folder: bagpiper, name: "gen_plain", order: TURN, min_rows: 1, weight: 1.0 },
        Run { folder: bagpiper, name: "gen_cfg", order: TURN, min_rows: 1, weight: 3.0 },
        Run { folder: opuslm, name: "gen_tts", order: &[Audio], min_rows: 3, weight: 1.0 },
        Run { folder: opuslm, name: "gen_text_audio", order: TURN, min_rows: 3, weight: 1.0 },
        Run { folder: opuslm, name: "gen_cfg", order: &[Audio], min_rows: 3, weight: 3.0 },
    ]
};

/// One branch of a context: what it has read, and where.
struct Branch {
    read: usize,
    block: u32,
}

impl Branch {
    fn feed(
        &mut self,
        model: &mut SpeechLm,
        rows: &[u32],
        streams: usize,
        narrow: bool,
    ) -> Vec<f32> {
        let feed = if narrow { feed_narrow } else { feed };
        let logits = feed(model, rows, streams, self.read, self.block);
        self.read += rows.len() / streams;
        logits
    }
}

/// One row of a golden tensor.
fn row(case: &Weights, name: &str, step: usize) -> Vec<f32> {
    let width: usize = case.shape(name).unwrap()[1..].iter().product();
    tensor(case, name)[step * width..][..width].to_vec()
}

/// Compares a row, narrow or not, with the golden one.
fn check(
    model: &mut SpeechLm,
    case: &Weights,
    (logits, narrow): (&[f32], bool),
    step: usize,
    branch: &str,
) {
    let name = |n: &str| format!("{n}{branch}");
    if branch != "_merged" {
        close(&model.last_hidden(), &row(case, &name("h"), step), TOLERANCE, &name("h"));
    }
    let tolerance = if branch == "_merged" { MERGED_TOLERANCE } else { TOLERANCE };
    let (first, others) = (row(case, &name("logits0"), step), row(case, &name("aux_logits"), step));
    let expected = laid_out(&model.layout(), narrow, &first, &others);
    close(logits, &expected, tolerance, &name("logits"));
}

fn machine(run: &Run) -> Machine {
    let order = run.order.to_vec();
    let plan = Plan {
        order,
        max_text: 100,
        min_rows: run.min_rows,
        max_rows: 100,
        max_tokens: usize::MAX,
    };
    match config(run.folder).family {
        Family::Bagpiper(ids) => Machine::Bagpiper(Bagpiper::new(ids, plan).unwrap()),
        Family::OpusLm(ids) => Machine::OpusLm(OpusLm::new(ids, plan).unwrap()),
        Family::Text => panic!("has no streams"),
    }
}

fn code(family: &Family, stream: usize, id: u32) -> Option<u16> {
    match family {
        Family::Bagpiper(ids) => ids.streams[stream].code(id),
        Family::OpusLm(ids) => ids.streams[stream].code(id),
        Family::Text => None,
    }
}

/// Logits of the companion, which begins with as many rows of nothing as the other branch has read before the segment.
fn companion(
    model: &mut SpeechLm,
    branch: &mut Option<Branch>,
    row: &[u32],
    before: usize,
) -> Vec<f32> {
    let streams = row.len();
    let branch = branch.get_or_insert_with(|| {
        let mut branch = Branch { read: 0, block: BLOCKS };
        branch.feed(model, &vec![NOTHING; before * streams], streams, true);
        branch
    });
    branch.feed(model, row, streams, true)
}

fn play(run: &Run) {
    let case = open(&format!("{}/{}.safetensors", run.folder, run.name));
    let family = config(run.folder).family;
    let mut model = load(run.folder, Precision::F32, |_| ());
    let layout = model.layout();
    let streams = layout.heads.len();
    let prompt = ids(&case, "prompt_rows");
    let (before, last) = prompt.split_at(prompt.len() - streams);
    let (mut main, mut null) = (Branch { read: 0, block: 0 }, None);
    main.feed(&mut model, before, streams, true);
    let mut machine = machine(run);
    let mut said = last.to_vec();
    let (mut aligner, mut codes, mut grid) = (Aligner::new(streams), Vec::new(), Vec::new());
    let expected: Vec<i64> = case.ints("out_rows").unwrap();
    for (step, expected) in expected.chunks_exact(streams).enumerate() {
        let at = format!("{} {} step {step}", run.folder, run.name);
        assert_eq!(said, ids(&case, "in_rows")[step * streams..][..streams], "{at}");
        assert_eq!(main.read as i64, case.ints("positions").unwrap()[step], "{at}");
        let before = main.read;
        let narrow = machine.is_narrow();
        let mut logits = main.feed(&mut model, &said, streams, narrow);
        check(&mut model, &case, (&logits, narrow), step, "");
        if machine.phase() == Phase::Done {
            assert!(expected.iter().all(|&id| id == -1), "{at}");
            continue;
        }
        if run.weight != 1.0 && machine.guided() {
            if null.is_none() {
                assert_eq!(case.ints("null_len").unwrap(), [before as i64], "{at}");
            }
            let null_logits = companion(&mut model, &mut null, &said, before);
            check(&mut model, &case, (&null_logits, narrow), step, "_null");
            merge(&mut logits, &null_logits, run.weight);
            check(&mut model, &case, (&logits, narrow), step, "_merged");
        }
        layout.bias(&mut logits, narrow, &row(&case, "bias0", step));
        let (logits, number) = (&mut logits, step as u64);
        let row =
            choose(&mut machine, logits, &layout, &GREEDY, number, |_| true, &mut said).unwrap();
        assert_eq!(said.iter().map(|&id| i64::from(id)).collect::<Vec<_>>(), expected, "{at}");
        let sampled = (1..streams).map(|stream| i64::from(row.streams.contains(&stream)));
        let told = case.ints("aux_sampled").unwrap();
        assert!(sampled.eq(told[step * (streams - 1)..][..streams - 1].iter().copied()), "{at}");
        if row.grid {
            grid.extend(said.iter().map(|&id| i64::from(id)));
            let cells: Vec<_> = (0..streams).map(|s| code(&family, s, said[s])).collect();
            aligner.push(&cells, &mut codes).unwrap();
        }
    }
    assert_eq!(machine.phase(), Phase::Done);
    assert_eq!(grid, case.ints("grid").unwrap(), "{} {}", run.folder, run.name);
    let expected: Vec<u16> = case.ints("codes").unwrap().iter().map(|&c| c as u16).collect();
    assert_eq!(codes, expected[..codes.len()], "{} {}", run.folder, run.name);
    assert_eq!(codes.len() / streams, 6);
}

#[test]
fn golden_turns_are_said_row_for_row_with_and_without_guidance() {
    for run in &RUNS {
        play(run);
    }
}

/// Draws of a stream depend on seed, step and stream: another stream's logits cannot change them.
#[test]
fn streams_draw_on_their_own() {
    let folder = "speechlm_tiny/bagpiper";
    let mut model = load(folder, Precision::F32, |_| ());
    let layout = model.layout();
    let prompt = ids(&open(&format!("{folder}/gen_plain.safetensors")), "prompt_rows");
    let logits = feed_narrow(&mut model, &prompt, 8, 0, 0);
    let audio = Sampling { temperature: 1.0, ..Sampling::GREEDY };
    let say = |logits: &[f32], seed: u64, step: u64| {
        let run = Run { folder, name: "", order: &[Modality::Audio], min_rows: 1, weight: 1.0 };
        let mut machine = machine(&run);
        machine.advance(8).unwrap();
        let manner = Manner { text: Sampling::GREEDY, audio, seed };
        let mut ids = Vec::new();
        let logits = &mut logits.to_vec();
        choose(&mut machine, logits, &layout, &manner, step, |_| true, &mut ids).unwrap();
        ids
    };
    let first = say(&logits, 1, 0);
    assert_eq!(first, say(&logits, 1, 0));
    assert!(first != say(&logits, 2, 0) && first != say(&logits, 1, 1));
    let mut changed = logits.clone();
    changed[layout.other_stream(3)].reverse();
    let second = say(&changed, 1, 0);
    assert!(second[3] != first[3]);
    let others = |row: &[u32]| [&row[..3], &row[4..]].concat();
    assert_eq!(others(&second), others(&first));
}

#[test]
fn nothing_is_chosen_behind_the_end_or_from_broken_numbers() {
    let run = &RUNS[2];
    let mut machine = machine(run);
    let layout = load(run.folder, Precision::F32, |_| ()).layout();
    let mut logits = vec![0.0; layout.len(true)];
    let (_, first_codes) = layout.first_stream(true).last().unwrap();
    logits[first_codes + 4] = f32::NAN;
    let choose = |machine: &mut Machine, logits: &mut [f32], step| {
        choose(machine, logits, &layout, &GREEDY, step, |_| true, &mut Vec::new())
    };
    let error = choose(&mut machine, &mut logits, 0).unwrap_err();
    assert!(error.to_string().starts_with("stream 0: logit 4 is NaN"), "{error}");
    logits[first_codes + 4] = 0.0;
    for step in 0.. {
        if machine.phase() == Phase::Done {
            break;
        }
        choose(&mut machine, &mut logits, step).unwrap();
    }
    let error = choose(&mut machine, &mut logits, 0).unwrap_err();
    assert!(error.to_string().contains("not allowed in phase Done"), "{error}");
}
