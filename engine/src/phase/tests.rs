//! Golden traces of `tests/fixtures/delay_pattern`, and what they do not reach.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::delay::{Aligner, Ending};
use crate::layout::StreamIds;
use crate::sampler::{Rules, Sampling, sample};

const EOS: u32 = 2;
const EOT: u32 = 3;
const FLUSHED_EOS: u32 = 5;

fn fixture(name: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/delay_pattern/");
    serde_json::from_slice(&std::fs::read(format!("{folder}{name}")).unwrap()).unwrap()
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn bagpiper_ids() -> Arc<BagpiperIds> {
    Arc::new(BagpiperIds {
        begin: 1,
        system: 4,
        user: 5,
        end_of_turn: EOS,
        end_of_segment: EOT,
        assistant: 6,
        text_marker: 7,
        audio_marker: 8,
        text: 256..152_192,
        streams: StreamIds::with_own_pads(152_192, 1025, 8),
    })
}

fn opuslm_ids(streams: u32) -> Arc<OpusLmIds> {
    let codec_end = 5256 + 1024 * (streams - 1);
    Arc::new(OpusLmIds {
        end: FLUSHED_EOS,
        system: 8,
        user: 9,
        assistant: 10,
        speaker_marker: 37,
        voice_frames: 500,
        text_marker: 35,
        audio_marker: 34,
        text: 13_448..113_800,
        streams: StreamIds::without_pads(256..5256, 5256..codec_end, 1024),
    })
}

fn plan(order: &[Modality], min_rows: usize, max_rows: usize) -> Plan {
    Plan { order: order.to_vec(), max_text: 1000, min_rows, max_rows, max_tokens: usize::MAX }
}

fn bagpiper(order: &[Modality], min_rows: usize, max_rows: usize) -> Machine {
    Machine::Bagpiper(Bagpiper::new(bagpiper_ids(), plan(order, min_rows, max_rows)).unwrap())
}

fn opuslm(streams: u32, order: &[Modality], min_rows: usize, max_rows: usize) -> Machine {
    Machine::OpusLm(OpusLm::new(opuslm_ids(streams), plan(order, min_rows, max_rows)).unwrap())
}

fn mask(masks: &Value, name: &Value) -> Vec<Range<u32>> {
    let ranges: Vec<[u32; 2]> = read(&masks[name.as_str().unwrap()]);
    ranges.iter().map(|[start, end]| *start..*end).collect()
}

/// All that stream 0 may say.
fn ids(machine: &Machine) -> Vec<u32> {
    machine.allowed().iter().cloned().flatten().collect()
}

/// Row by row through a list of symbols.
fn say(machine: &mut Machine, ids: &[u32]) -> Vec<Row> {
    ids.iter().map(|&id| machine.advance(id).unwrap()).collect()
}

/// The likeliest id of a sparse row that is allowed, the lowest on ties.
fn greedy(step: &Value, default: f64, allowed: &[Range<u32>]) -> u32 {
    let logits = step["logits"].as_object().unwrap();
    let logit = |id: u32| logits.get(&id.to_string()).map_or(default, |v| v.as_f64().unwrap());
    let ids = allowed.iter().cloned().flatten();
    ids.fold(None, |best: Option<u32>, id| match best {
        Some(b) if logit(b) >= logit(id) => Some(b),
        _ => Some(id),
    })
    .unwrap()
}

#[test]
fn bagpiper_follows_the_golden_traces_step_by_step() {
    let golden = fixture("phase_bagpiper.json");
    for trace in list(&golden["traces"]) {
        let name = &trace["name"];
        let mut machine = bagpiper(&order(trace), read(&trace["min_audio_rows"]), 100);
        for step in list(&trace["steps"]) {
            let expected = &step["explicit"];
            let phase = bagpiper_phase(&expected["phase"]);
            assert_eq!(machine.phase(), phase, "{name} {step}");
            let allowed = machine.allowed().to_vec();
            assert_eq!(allowed, mask(&golden["masks"], &expected["mask_stream0"]), "{name} {step}");
            let guided = trace.get("w").is_some() && machine.guided();
            assert_eq!(guided, read::<bool>(&expected["cfg_merged"]), "{name} {step}");
            let id = greedy(step, read(&trace["default_logit"]), &allowed);
            assert_eq!(id, read::<u32>(&expected["token"]), "{name} {step}");
            let row = machine.advance(id).unwrap();
            let sampled: bool = read(&expected["aux_streams_sampled"]);
            assert_eq!(row.streams, if sampled { 1..8 } else { 0..0 }, "{name} {step}");
            assert_eq!(row.grid, sampled);
            if let Some(companion) = expected["companion_token"].as_u64() {
                let reads = guided || machine.guided();
                assert_eq!(if reads { u64::from(id) } else { 0 }, companion, "{name} {step}");
            }
            assert_eq!(machine.phase(), bagpiper_phase(&expected["next_phase"]), "{name} {step}");
        }
        assert_eq!(machine.phase(), Phase::Done, "{name}");
        assert!(machine.allowed().is_empty());
    }
}

/// Where the machine that reads the phase off the likeliest symbol goes another way, ours is not that way.
#[test]
fn golden_traces_in_which_the_machines_part_are_followed_by_the_explicit_one() {
    let golden = fixture("phase_bagpiper.json");
    let (parted, together): (Vec<&Value>, Vec<&Value>) =
        list(&golden["traces"]).iter().partition(|trace| trace["machines_agree"] == false);
    let tokens = |trace: &Value, machine: &str| -> Vec<Option<u64>> {
        list(&trace["steps"]).iter().map(|step| step[machine]["token"].as_u64()).collect()
    };
    let names: Vec<&str> = parted.iter().map(|trace| trace["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "eos_too_early_is_held_back",
            "text_token_is_raw_argmax_inside_audio",
            "enforced_audio_but_model_never_selects_it",
        ]
    );
    for trace in parted {
        assert_ne!(tokens(trace, "explicit"), tokens(trace, "compat"), "{}", trace["name"]);
        let mut machine = bagpiper(&order(trace), read(&trace["min_audio_rows"]), 100);
        let mut said = Vec::new();
        while machine.phase() != Phase::Done {
            let step = &trace["steps"][said.len()];
            let id = greedy(step, read(&trace["default_logit"]), machine.allowed());
            machine.advance(id).unwrap();
            said.push(Some(u64::from(id)));
        }
        said.resize(list(&trace["steps"]).len(), None);
        assert_eq!(said, tokens(trace, "explicit"), "{}", trace["name"]);
    }
    for trace in together {
        assert_eq!(tokens(trace, "explicit"), tokens(trace, "compat"), "{}", trace["name"]);
    }
}

/// The segments that a trace asks for.
fn order(trace: &Value) -> Vec<Modality> {
    let order: Vec<String> = read(&trace["enforce"]);
    let kind = |m: &String| if m == "audio" { Modality::Audio } else { Modality::Text };
    order.iter().map(kind).collect()
}

fn bagpiper_phase(name: &Value) -> Phase {
    match name.as_str().unwrap() {
        "modality_select" => Phase::Select,
        "text_body" => Phase::Text,
        "bridge" => Phase::Transition,
        "audio_body" => Phase::Audio,
        "done" => Phase::Done,
        other => panic!("phase {other}"),
    }
}

#[test]
fn opuslm_follows_the_golden_traces_step_by_step() {
    let golden = fixture("phase_opuslm.json");
    for trace in list(&golden["traces"]) {
        let name = &trace["name"];
        let streams: u32 = read(&trace["streams"]);
        let masks = &golden["masks"][streams.to_string()];
        let steps = list(&trace["steps"]);
        let order: &[Modality] = match steps[0]["phase"].as_str().unwrap() {
            "text" => &[Modality::Text, Modality::Audio],
            _ => &[Modality::Audio],
        };
        let mut machine = opuslm(streams, order, read(&trace["min_rows"]), 100);
        let (mut grid_rows, mut aligner) = (0, Aligner::new(streams as usize));
        let mut codes = Vec::new();
        for step in steps {
            assert_eq!(machine.phase(), opuslm_phase(&step["phase"]), "{name} {step}");
            assert_eq!(machine.allowed(), mask(masks, &step["mask_stream0"]), "{name} {step}");
            let id: u32 = read(&step["token"]);
            let row = machine.advance(id).unwrap();
            let sampled: Vec<usize> = match step.get("aux") {
                Some(aux) if !aux.is_null() => read(&aux["sampled"]),
                _ => Vec::new(),
            };
            assert_eq!(row.streams.clone().collect::<Vec<_>>(), sampled, "{name} {step}");
            assert_eq!(row.grid, step.get("row").is_some(), "{name} {step}");
            if let Some(forced) = step["aux"].get("forced_pad") {
                let forced: Vec<usize> = read(forced);
                let others = (1..streams as usize).filter(|s| !row.streams.contains(s));
                assert_eq!(others.collect::<Vec<_>>(), forced, "{name} {step}");
            }
            assert_eq!(machine.phase() == Phase::Done, step["finished"] == true, "{name} {step}");
            if row.grid {
                let own = opuslm_ids(streams).streams[0].code(id);
                let cell =
                    |s: usize| if s == 0 { own } else { row.streams.contains(&s).then_some(9) };
                let cells: Vec<_> = (0..streams as usize).map(cell).collect();
                aligner.push(&cells, &mut codes).unwrap();
                grid_rows += 1;
            }
        }
        assert_eq!(machine.phase(), Phase::Done);
        assert_eq!(grid_rows, read::<usize>(&trace["grid_rows"]), "{name}");
        assert_eq!(aligner.frames(), read::<usize>(&trace["frames"]), "{name}");
        let end: usize = read(&trace["first_eos_step_must_not_stop"]);
        assert!(end + 1 < steps.len(), "{name}");
    }
}

fn opuslm_phase(name: &Value) -> Phase {
    match name.as_str().unwrap() {
        "text" => Phase::Text,
        "pre_audio" => Phase::Transition,
        "audio" => Phase::Audio,
        "audio_flush" => Phase::Drain,
        "audio_stop" => Phase::Stop,
        other => panic!("phase {other}"),
    }
}

/// What each machine forces in the golden drains: nothing where the model leads, stream 0 and the drained streams where it is
/// flushed.
#[test]
fn golden_drains_are_said_and_forced_as_told() {
    let golden = fixture("drain.json");
    for case in list(&golden["cases"]) {
        let (name, streams) = (&case["name"], read::<u32>(&case["streams"]));
        let flushes = case["style"] == "eos_then_flush";
        let (mut machine, own) = if flushes {
            (opuslm(streams, &[Modality::Audio], 0, 100), opuslm_ids(streams).streams.clone())
        } else {
            let own = StreamIds::with_own_pads(152_192, 1025, streams);
            let ids = Arc::new(BagpiperIds { streams: own.clone(), ..(*bagpiper_ids()).clone() });
            let plan = plan(&[Modality::Audio], 0, 100);
            let mut machine = Machine::Bagpiper(Bagpiper::new(ids, plan).unwrap());
            machine.advance(8).unwrap();
            (machine, own)
        };
        let end = if flushes { FLUSHED_EOS } else { EOS };
        let rows: Vec<Vec<i32>> = read(&case["delayed"]);
        let (mut aligner, mut codes) = (Aligner::new(own.len()), Vec::new());
        let (mut forced_rows, mut forced_cells) = (Vec::new(), Vec::new());
        for (at, said) in list(&case["stream0_emitted"]).iter().enumerate() {
            let code = said.as_i64().map(|code| u16::try_from(code).ok());
            let id = code.map_or(end, |code| own[0].id(code));
            let is_forced = machine.allowed().iter().cloned().flatten().eq([id]);
            let row = machine.advance(id).unwrap();
            let Some(cells) = rows.get(at).filter(|_| row.grid) else {
                assert_eq!((said.as_str(), at), (Some("EOS"), rows.len()), "{name}");
                continue;
            };
            if is_forced {
                forced_rows.push(at);
            }
            let silent = (1..own.len()).filter(|s| !row.streams.contains(s));
            forced_cells.extend(silent.map(|stream| [at, stream]));
            let own_code = code.flatten();
            let cell = |(s, &cell): (usize, &i32)| match s {
                0 => own_code,
                _ => u16::try_from(cell).ok().filter(|_| row.streams.contains(&s)),
            };
            let cells: Vec<_> = cells.iter().enumerate().map(cell).collect();
            aligner.push(&cells, &mut codes).unwrap();
        }
        assert_eq!(codes, read::<Vec<Vec<u16>>>(&case["codebooks"]).concat(), "{name}");
        let told =
            |field: &str| case.get(field).cloned().unwrap_or_else(|| Value::Array(Vec::new()));
        if case.get("stopped_by").is_none() {
            assert_eq!((machine.phase(), aligner.unfinished()), (Phase::Done, 0), "{name}");
            assert_eq!(forced_rows, read::<Vec<usize>>(&told("forced_stream0_rows")), "{name}");
            assert_eq!(forced_cells, read::<Vec<[usize; 2]>>(&told("forced_pad_cells")), "{name}");
        }
        if let Some(behind) = case.get("rows_after_last_real_stream0") {
            let real = rows.iter().rposition(|row| row[0] >= 0).map_or(rows.len(), |at| at + 1);
            assert_eq!(rows.len() - real, read::<usize>(behind), "{name}");
        }
    }
}

/// Where the end leads by a little while most of the mass lies on codes, the model's own share of ends is kept.
#[test]
fn an_end_that_leads_by_little_ends_as_rarely_as_the_model_says() {
    /// Even draws find each share to within two of them.
    const DRAWS: u32 = 20_000;
    const TOLERANCE: f64 = 2.0 / DRAWS as f64;
    let mut machine = bagpiper(&[Modality::Audio], 1, 100);
    say(&mut machine, &[8, 152_200]);
    let ids = ids(&machine);
    for case in list(&fixture("phase_bagpiper.json")["end_bias"]["cases"]) {
        // Stands for minus infinity, which the sampler takes for a broken number.
        let logit =
            |id: &u32| case["logits"].get(id.to_string()).map_or(-1e4, |v| v.as_f64().unwrap());
        let logits: Vec<f32> = ids.iter().map(|id| logit(id) as f32).collect();
        let sampling = Sampling {
            temperature: read::<f32>(&case["temperature"]),
            top_k: read(&case["top_k"]),
            ..Sampling::GREEDY
        };
        let rules = Rules { sampling, forbidden: &[], biases: &[], generated: &[] };
        let mut shares = vec![0.0; ids.len()];
        for draw in 0..DRAWS {
            let uniform = (f64::from(draw) + 0.5) / f64::from(DRAWS);
            shares[sample(&mut logits.clone(), &rules, uniform).unwrap()] += 1.0 / f64::from(DRAWS);
        }
        for (id, share) in ids.iter().zip(shares) {
            let expected =
                case["explicit_probs"].get(id.to_string()).map_or(0.0, |v| v.as_f64().unwrap());
            assert!((share - expected).abs() < TOLERANCE, "{}: {id} {share}", case["name"]);
        }
        let compat = case["compat_probs"]["2"].as_f64().unwrap();
        assert!(compat > 0.999, "what the published engine made of it");
    }
}

#[test]
fn several_segments_follow_the_order_whichever_end_the_model_says() {
    use Modality::{Audio, Text};
    for end in [EOS, EOT] {
        let mut machine = bagpiper(&[Text, Audio, Text, Audio], 1, 100);
        let text = [7, 300, end, 6];
        let sound = [8, 152_200, 152_192, end];
        say(&mut machine, &text);
        let rows = say(&mut machine, &sound);
        assert_eq!(rows.iter().map(|r| r.grid).collect::<Vec<_>>(), [false, true, true, false]);
        assert_eq!(machine.phase(), Phase::Transition);
        machine.advance(6).unwrap();
        assert!(!machine.guided(), "the companion went with its segment");
        say(&mut machine, &text);
        say(&mut machine, &sound);
        assert_eq!(machine.phase(), Phase::Done);
    }
}

/// Behind a text that ends in whatever way, an enforced sound is opened by force; without one, nothing more is said.
#[test]
fn opuslm_opens_the_enforced_sound_behind_either_end_of_its_text() {
    use Modality::{Audio, Text};
    for end in [FLUSHED_EOS, 35] {
        let mut machine = opuslm(9, &[Text, Audio], 0, 100);
        say(&mut machine, &[13_448, end]);
        assert_eq!((machine.phase(), ids(&machine)), (Phase::Transition, vec![34]));
        assert!(!machine.guided());
        machine.advance(34).unwrap();
        assert!(machine.guided() && machine.phase() == Phase::Audio);
        let mut machine = opuslm(9, &[Text], 0, 100);
        say(&mut machine, &[13_448, end]);
        assert_eq!(machine.phase(), Phase::Done);
    }
}

/// One stream has nothing to wait for: no warm-up, no drain, a frame a row.
#[test]
fn a_single_stream_has_a_frame_in_each_row() {
    let streams = StreamIds::with_own_pads(152_192, 1025, 1);
    let ids = Arc::new(BagpiperIds { streams: streams.clone(), ..(*bagpiper_ids()).clone() });
    let machine = Bagpiper::new(ids, plan(&[Modality::Audio], 0, 5)).unwrap();
    let (aligner, rows) = run_to_the_limit(&mut Machine::Bagpiper(machine), &streams);
    assert_eq!((aligner.frames(), rows, aligner.unfinished()), (5, 5, 0));
    let ids = opuslm_ids(1);
    let machine = OpusLm::new(ids.clone(), plan(&[Modality::Audio], 0, 6)).unwrap();
    let (aligner, rows) = run_to_the_limit(&mut Machine::OpusLm(machine), &ids.streams);
    // The end stands in a row of its own.
    assert_eq!((aligner.frames(), rows, aligner.unfinished()), (5, 6, 0));
}

#[test]
fn without_an_order_the_model_chooses_and_its_own_end_decides() {
    let mut machine = bagpiper(&[], 1, 100);
    assert_eq!(ids(&machine), [7, 8]);
    say(&mut machine, &[8, 152_200, EOT, 6]);
    assert_eq!((machine.phase(), ids(&machine)), (Phase::Select, vec![7, 8]));
    say(&mut machine, &[7, 300, EOS]);
    assert_eq!(machine.phase(), Phase::Done);
}

#[test]
fn what_is_not_allowed_is_refused_and_changes_nothing() {
    let mut machine = bagpiper(&[Modality::Audio], 2, 100);
    say(&mut machine, &[8, 152_200]);
    let before = format!("{machine:?}");
    for id in [EOS, EOT, 300, 153_217, 7] {
        let error = machine.advance(id).unwrap_err();
        assert_eq!(error, NotAllowed { phase: Phase::Audio, id });
    }
    assert_eq!(format!("{machine:?}"), before);
    say(&mut machine, &[152_200, EOS]);
    assert_eq!(machine.advance(EOS), Err(NotAllowed { phase: Phase::Done, id: EOS }));
}

#[test]
fn a_text_at_its_limit_is_ended() {
    let limited = Plan { max_text: 2, ..plan(&[Modality::Text, Modality::Audio], 1, 100) };
    let mut machine = Machine::Bagpiper(Bagpiper::new(bagpiper_ids(), limited.clone()).unwrap());
    say(&mut machine, &[7, 300, 300]);
    assert_eq!((machine.phase(), ids(&machine)), (Phase::Stop, vec![EOT]));
    machine.advance(EOT).unwrap();
    assert_eq!(machine.phase(), Phase::Transition);
    let mut machine = Machine::OpusLm(OpusLm::new(opuslm_ids(9), limited).unwrap());
    say(&mut machine, &[13_448, 13_448]);
    assert_eq!(ids(&machine), [35]);
    say(&mut machine, &[35, 34]);
    assert_eq!(machine.phase(), Phase::Audio);
}

#[test]
fn a_limit_of_all_tokens_ends_the_turn_and_opens_nothing_more() {
    let limited =
        |max_tokens| Plan { max_tokens, ..plan(&[Modality::Text, Modality::Audio], 5, 100) };
    let bagpiper = |most| Machine::Bagpiper(Bagpiper::new(bagpiper_ids(), limited(most)).unwrap());
    let opuslm = |most| Machine::OpusLm(OpusLm::new(opuslm_ids(9), limited(most)).unwrap());
    // All of it is text.
    let mut machine = bagpiper(2);
    say(&mut machine, &[7, 300, 300]);
    assert_eq!((machine.phase(), ids(&machine)), (Phase::Stop, vec![EOS]));
    machine.advance(EOS).unwrap();
    assert_eq!((machine.phase(), machine.is_capped()), (Phase::Done, true));
    let mut machine = opuslm(2);
    say(&mut machine, &[13_448, 13_448, 35]);
    assert_eq!((machine.phase(), machine.is_capped()), (Phase::Done, true));
    // What text leaves is sound, whatever its least is.
    let mut machine = bagpiper(3);
    say(&mut machine, &[7, 300, EOT, 6, 8, 152_200, 152_200]);
    assert_eq!((machine.phase(), machine.is_capped()), (Phase::Drain, true));
    say(&mut machine, &[bagpiper_ids().streams[0].pad; 7]);
    assert_eq!((machine.phase(), ids(&machine)), (Phase::Stop, vec![EOS]));
    let mut machine = opuslm(3);
    say(&mut machine, &[13_448, 35, 34, 256, 256]);
    assert_eq!(ids(&machine), [FLUSHED_EOS]);
    machine.advance(FLUSHED_EOS).unwrap();
    assert_eq!((machine.phase(), machine.is_capped()), (Phase::Drain, true));
}

#[test]
fn limits_without_room_and_orders_without_symbols_are_refused() {
    let refuse = |min, max| Bagpiper::new(bagpiper_ids(), plan(&[], min, max)).unwrap_err();
    assert_eq!(refuse(0, 7), PlanError::Rows { max_rows: 7, frames: 0, needed: 1 });
    assert_eq!(refuse(3, 9), PlanError::Rows { max_rows: 9, frames: 2, needed: 3 });
    assert_eq!(
        refuse(3, 9).to_string(),
        "max_rows 9 leaves room for 2 frames, at least 3 are needed"
    );
    let refuse =
        |order: &[Modality], max| OpusLm::new(opuslm_ids(9), plan(order, 0, max)).unwrap_err();
    let rows = PlanError::Rows { max_rows: 9, frames: 0, needed: 1 };
    assert_eq!(refuse(&[Modality::Audio], 9), rows);
    for order in [&[][..], &[Modality::Audio, Modality::Text]] {
        assert!(matches!(refuse(order, 100), PlanError::Order("OpusLM", _)));
    }
}

/// Says codes for as long as it may; the frames that come of it, and the rows that they took.
fn run_to_the_limit(machine: &mut Machine, streams: &[StreamIds]) -> (Aligner, usize) {
    let (mut aligner, mut codes) = (Aligner::new(streams.len()), Vec::new());
    while machine.phase() != Phase::Done {
        let longest = machine.allowed().iter().max_by_key(|r| r.len()).unwrap();
        let id = longest.end - 1;
        let row = machine.advance(id).unwrap();
        if row.grid {
            let cell = |s: usize| {
                if s == 0 { streams[0].code(id) } else { row.streams.contains(&s).then_some(1) }
            };
            let cells: Vec<_> = (0..streams.len()).map(cell).collect();
            aligner.push(&cells, &mut codes).unwrap();
        }
    }
    let rows = aligner.rows();
    (aligner, rows)
}

proptest! {
    #[test]
    fn a_limit_of_rows_loses_no_frame(spare in 0..30usize, streams in 1..10u32) {
        let ids = opuslm_ids(streams);
        let max_rows = streams as usize + 1 + spare;
        let machine = OpusLm::new(ids.clone(), plan(&[Modality::Audio], 0, max_rows)).unwrap();
        let (aligner, rows) = run_to_the_limit(&mut Machine::OpusLm(machine), &ids.streams);
        prop_assert_eq!((rows, aligner.unfinished()), (max_rows, 0));
        prop_assert_eq!(aligner.frames(), Ending::Flushed.frames(max_rows, streams as usize));

        let ids = BagpiperIds { streams: StreamIds::with_own_pads(152_192, 1025, streams), ..(*bagpiper_ids()).clone() };
        let max_rows = streams as usize + spare;
        let machine = Bagpiper::new(Arc::new(ids.clone()), plan(&[Modality::Audio], 0, max_rows)).unwrap();
        let (aligner, rows) = run_to_the_limit(&mut Machine::Bagpiper(machine), &ids.streams);
        prop_assert_eq!((rows, aligner.unfinished()), (max_rows, 0));
        prop_assert_eq!(aligner.frames(), max_rows - streams as usize + 1);
    }

    #[test]
    fn a_limit_of_all_tokens_loses_no_frame(most in 1..20usize, streams in 1..10u32) {
        let ids = opuslm_ids(streams);
        let limits = Plan { max_tokens: most, ..plan(&[Modality::Audio], 0, 100) };
        let machine = OpusLm::new(ids.clone(), limits.clone()).unwrap();
        let (aligner, _) = run_to_the_limit(&mut Machine::OpusLm(machine), &ids.streams);
        prop_assert_eq!((aligner.frames(), aligner.unfinished()), (most, 0));

        let ids = BagpiperIds { streams: StreamIds::with_own_pads(152_192, 1025, streams), ..(*bagpiper_ids()).clone() };
        let machine = Bagpiper::new(Arc::new(ids.clone()), limits).unwrap();
        let (aligner, _) = run_to_the_limit(&mut Machine::Bagpiper(machine), &ids.streams);
        prop_assert_eq!((aligner.frames(), aligner.unfinished()), (most, 0));
    }

    /// Whatever is said of what is allowed, a turn in a given order ends, and its sounds are never shorter than asked for.
    #[test]
    fn every_turn_ends_in_order(picks in prop::collection::vec(any::<u32>(), 1..50), min_rows in 0..4usize) {
        use Modality::{Audio, Text};
        let order = [Text, Audio, Audio];
        let limits = Plan { max_text: 5, ..plan(&order, min_rows, 20) };
        let mut machine = Machine::Bagpiper(Bagpiper::new(bagpiper_ids(), limits).unwrap());
        let (mut segments, mut rows) = (Vec::new(), 0);
        for step in 0.. {
            if machine.phase() == Phase::Done {
                break;
            }
            prop_assert!(step < 70);
            let ids: Vec<u32> = machine.allowed().iter().flat_map(|r| [r.start, r.end - 1]).collect();
            let id = ids[picks[step % picks.len()] as usize % ids.len()];
            let ended = machine.phase() == Phase::Audio && [EOS, EOT].contains(&id);
            prop_assert!(!ended || rows >= min_rows);
            let row = machine.advance(id).unwrap();
            match (row.phase, id) {
                (Phase::Select, 7) => segments.push(Text),
                (Phase::Select, 8) => (rows, _) = (0, segments.push(Audio)),
                _ => rows += usize::from(row.grid),
            }
            prop_assert!(rows <= 20 && (row.streams.is_empty() || row.grid));
        }
        prop_assert_eq!(segments, order);
    }
}
