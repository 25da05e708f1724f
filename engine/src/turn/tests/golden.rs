//! Golden cases of `tests/fixtures/delay_pattern` through turns and their scheduler: whose rows are merged, what companions
//! read, and what is computed anew.

use serde_json::Value;

use super::*;
use crate::phase::BagpiperIds;
use crate::scheduler::Scheduled;

const WORDS: usize = 12;

fn fixture(name: &str) -> Value {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/delay_pattern");
    codecs::weights::read_json(&folder.join(name)).unwrap()
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

/// A model of one stream whose rows of logits have the length of the golden ones.
fn words() -> (Arc<Model>, Arc<BagpiperIds>) {
    let streams = StreamIds::with_own_pads(9, 3, 1);
    // Rows of both kinds have all words, in their order.
    let codes = 9..WORDS as u32;
    let symbols = std::iter::once(0..codes.start).collect();
    let outputs = Outputs { symbols, text: codes.clone(), heads: vec![codes], own_pads: true };
    let ids = BagpiperIds {
        begin: 1,
        system: 0,
        user: 0,
        end_of_turn: 2,
        end_of_segment: 3,
        assistant: 6,
        text_marker: 7,
        audio_marker: 8,
        text: 4..6,
        streams: streams.clone(),
    };
    (Arc::new(Model { streams, outputs }), Arc::new(ids))
}

/// In a batch of sounds, text and symbols, rows of guided sounds are merged and no others, and companions read what they must.
#[test]
fn golden_batch_merges_the_rows_of_guided_sounds_alone() {
    let golden = &fixture("cfg_merge.json")["mixed_batch"];
    let (model, ids) = words();
    let mut scheduler =
        Scheduler::new(&[8], Budget { prefill_tokens: 99, sequences: 9, share_prefixes: true });
    let row = |name: &str| read::<Vec<f32>>(&golden["rows"][name]);
    let mut checked = 0;
    for name in read::<Vec<String>>(&golden["order"]) {
        // Companions have no turn of their own.
        let Some(request) = golden["requests"].get(&name) else { continue };
        let (order, opened): (&[Modality], &[u32]) = match request["phase"].as_str().unwrap() {
            "audio_body" => (&[Modality::Audio], &[8]),
            "text_body" => (TURN, &[7]),
            "modality_select" => (&[Modality::Audio], &[]),
            other => panic!("phase {other}"),
        };
        let plan = Plan {
            order: order.to_vec(),
            max_text: 9,
            min_rows: 1,
            max_rows: 9,
            max_tokens: usize::MAX,
        };
        let mut machine = Machine::Bagpiper(Bagpiper::new(ids.clone(), plan).unwrap());
        opened.iter().for_each(|&id| _ = machine.advance(id).unwrap());
        let prompt = [&[1, 6][..], opened].concat();
        let how = (GREEDY, read::<f32>(&request["w"]).into());
        let place = (ContextId(0), 0);
        let mut turn = Turn::open(&mut scheduler, place, model.clone(), machine, &prompt, how);
        let members = |s: &Scheduler, turn: &Turn| -> Vec<Vec<u32>> {
            let group = s.group(turn.group()).unwrap();
            group.members.iter().map(|member| member.ids.clone()).collect()
        };
        let mut logits = row(&name);
        let expected = &golden["expected"][&name];
        let merged: bool = read(&expected["merged"]);
        assert_eq!(members(&scheduler, &turn).len(), 1 + usize::from(merged), "{name}");
        if merged {
            logits.extend(row(request["companion"].as_str().unwrap()));
        }
        let said = turn.advance(&mut scheduler, &mut logits).unwrap();
        assert_eq!(logits[..WORDS], read::<Vec<f32>>(&expected["logits"]), "{name}");
        // What its companion has read and will read, if there is one.
        let companion = members(&scheduler, &turn).get(1).cloned();
        let told = golden["companion_next_token"].get(request["companion"].as_str().unwrap_or(""));
        match told.and_then(Value::as_str) {
            Some(text) if text.starts_with("same token") => {
                let before = prompt.len() - usize::from(merged);
                let opened = if merged { vec![8] } else { Vec::new() };
                let rows = [vec![NOTHING; before], opened, said.ids.clone()].concat();
                assert_eq!(companion, Some(rows), "{name}");
            }
            // It joins with nothing in all rows up to then.
            Some(text) => assert!(text.starts_with("pad (0)") && companion.is_none(), "{name}"),
            None => assert!(companion.is_none(), "{name}"),
        }
        checked += 1;
    }
    assert_eq!(checked, golden["requests"].as_object().unwrap().len());
}

/// Cells as ids: nothing for a pad.
fn row_of(value: &Value) -> Vec<u32> {
    read::<Vec<i32>>(value).iter().map(|&cell| (cell + 1) as u32).collect()
}

/// A request of a golden batch: its group, and what it has said behind a row for a prompt.
struct Request {
    context: ContextId,
    group: GroupId,
    rows: Vec<Vec<u32>>,
}

/// Models of other widths in one engine, any order of rows, late joiners; whoever lost its blocks has all its rows, with all
/// streams, computed anew.
#[test]
fn golden_rows_reach_their_own_groups_and_are_computed_anew_whole() {
    let mut replayed = 0;
    for case in fixture("ragged.json")["cases"].as_array().unwrap() {
        let width = |name: &str| read::<usize>(&case["requests"][name]["streams"]);
        let budget = Budget { prefill_tokens: 99, sequences: 9, share_prefixes: true };
        // A stage for each number of streams.
        let mut scheduler = Scheduler::new(&[20; 10], budget);
        let mut requests: BTreeMap<String, Request> = BTreeMap::new();
        let mut away: Vec<ContextId> = Vec::new();
        for step in case["steps"].as_array().unwrap() {
            for name in names(&step["preempt"]) {
                scheduler.preempt(requests[&name].group);
                scheduler.forget_unused();
                away.push(requests[&name].context);
            }
            let resumed = names(&step["resume"]);
            away.retain(|context| resumed.iter().all(|name| requests[name].context != *context));
            for entry in step["batch"].as_array().into_iter().flatten() {
                let (name, row) = (entry[0].as_str().unwrap(), row_of(&entry[1]));
                let context = ContextId(requests.len() as u64);
                let request = requests.entry(name.to_owned()).or_insert_with(|| {
                    let prompt = vec![7; width(name)];
                    let sequence = Sequence::of_rows(&prompt, prompt.len());
                    let group = scheduler.add(context, prompt.len(), vec![sequence]);
                    Request { context, group, rows: vec![prompt] }
                });
                assert!(!away.contains(&request.context), "it waits for its blocks");
                scheduler.append_row(request.group, &row);
                request.rows.push(row);
            }
            let plan = scheduler.schedule(|c| (!away.contains(&c)).then_some(c.0));
            for name in resumed {
                let Request { group, rows, .. } = &requests[&name];
                assert_eq!(rows[1..], rows_of(&step["replay_rows"]), "{name}");
                let part = plan.iter().find(|part| part.group == *group).unwrap();
                assert_eq!(batch_rows(&scheduler, part), *rows, "{name}");
                replayed += 1;
            }
            plan.iter().for_each(|part| scheduler.ran(part));
        }
        for (name, Request { rows, .. }) in &requests {
            let (mut aligner, mut codes) = (Aligner::new(width(name)), Vec::new());
            for row in &rows[1..] {
                let cell = |id: &u32| id.checked_sub(1).map(|code| code as u16);
                aligner.push(&row.iter().map(cell).collect::<Vec<_>>(), &mut codes).unwrap();
            }
            let expected: Vec<Vec<u16>> = read(&case["requests"][name]["codebooks"]);
            assert_eq!(codes, expected.concat(), "{name}");
        }
    }
    assert!(replayed > 0);
}

fn rows_of(value: &Value) -> Vec<Vec<u32>> {
    value.as_array().unwrap().iter().map(row_of).collect()
}

fn names(value: &Value) -> Vec<String> {
    if value.is_null() { Vec::new() } else { read(value) }
}

/// Rows of ids that a part of a step runs.
fn batch_rows(scheduler: &Scheduler, part: &Scheduled) -> Vec<Vec<u32>> {
    let batch = scheduler.batch(std::slice::from_ref(part), part.stage);
    let others = batch.beside.len() / batch.ids.len();
    let row = |(at, &id): (usize, &u32)| {
        [&[id][..], &batch.beside[at * others..(at + 1) * others]].concat()
    };
    batch.ids.iter().enumerate().map(row).collect()
}
