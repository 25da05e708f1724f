//! Backbones and multi-stream models against the implementations they were made by, on random weights.

mod checkpoints;
mod hearing;
mod runs;
mod taps;

use std::path::PathBuf;

use super::*;
use crate::batch::BatchRow;
use crate::kernels::matrix::Precision;
use crate::runner::StageModel;

/// Two summation orders in `f32`; independent implementations came within 5e-6.
const TOLERANCE: f32 = 1e-4;
const BLOCKS: u32 = 8;

fn fixture(name: &str) -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
}

fn open(name: &str) -> Weights {
    Weights::open(&fixture(name)).unwrap()
}

fn tensor(case: &Weights, name: &str) -> Vec<f32> {
    case.f32(name, case.shape(name).unwrap()).unwrap()
}

fn ids(case: &Weights, name: &str) -> Vec<u32> {
    case.ints(name).unwrap().into_iter().map(|v| v as u32).collect()
}

fn config(folder: &str) -> SpeechConfig {
    SpeechConfig::read(&fixture(folder).join("config.json")).unwrap()
}

fn load(folder: &str, precision: Precision, change: impl FnOnce(&mut SpeechConfig)) -> SpeechLm {
    let mut config = config(folder);
    change(&mut config);
    let options = Options { precision, kept_ids: None, pool: None };
    let weights = open(&format!("{folder}/model.safetensors"));
    let mut model = SpeechLm::load(&weights, &config, &options, &mut |_| ()).unwrap();
    model.reserve(2 * BLOCKS as usize);
    model
}

/// Rows of ids fed from position `first` on, into blocks from `block` on. Logits of text are asked for.
fn batch(rows: &[u32], streams: usize, first: usize, block: u32) -> Batch {
    let tokens = rows.len() / streams;
    let row = BatchRow {
        tokens: 0..tokens,
        computed: first,
        blocks: (block..block + BLOCKS).collect(),
        logits: true,
        ..BatchRow::default()
    };
    Batch {
        ids: rows.iter().step_by(streams).copied().collect(),
        beside: rows.chunks_exact(streams).flat_map(|row| &row[1..]).copied().collect(),
        positions: (first..first + tokens).map(|p| p as i32).collect(),
        rows: vec![row],
    }
}

/// Logits of the last row.
fn feed(model: &mut SpeechLm, rows: &[u32], streams: usize, first: usize, block: u32) -> Vec<f32> {
    let mut logits = Vec::new();
    model.forward(&batch(rows, streams, first, block), &mut logits).unwrap();
    logits
}

/// The same for symbols and codes.
fn feed_narrow(
    model: &mut SpeechLm,
    rows: &[u32],
    streams: usize,
    first: usize,
    block: u32,
) -> Vec<f32> {
    let (mut batch, mut logits) = (batch(rows, streams, first, block), Vec::new());
    batch.rows[0].narrow = true;
    model.forward(&batch, &mut logits).unwrap();
    logits
}

/// A row as the model gives it, of stream 0's logits of the whole vocabulary, and those of the other streams behind each other.
fn laid_out(outputs: &Outputs, narrow: bool, first: &[f32], others: &[f32]) -> Vec<f32> {
    let first_stream = outputs.first_stream(narrow);
    let of_first = first_stream.flat_map(|(ids, _)| &first[ids.start as usize..ids.end as usize]);
    of_first.chain(others.iter().filter(|_| narrow)).copied().collect()
}

fn close(got: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let worst = got.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < tolerance, "{what}: {worst}");
}

fn best(row: &[f32]) -> u32 {
    let better = |b: usize, o: usize| if row[o] > row[b] { o } else { b };
    (0..row.len()).fold(0, better) as u32
}

/// Residual stream, head input and logits of every row, fed one by one; the logits as a wide row has them and as a narrow one.
fn trace(model: &mut SpeechLm, rows: &[u32], streams: usize) -> [Vec<f32>; 4] {
    let mut all = [const { Vec::new() }; 4];
    for (i, row) in rows.chunks_exact(streams).enumerate() {
        let logits = feed(model, row, streams, i, 0);
        all[0].extend_from_slice(model.residual());
        all[1].extend(model.last_hidden());
        all[2].extend(logits);
        all[3].extend(feed_narrow(model, row, streams, i, 0));
    }
    all
}

/// The same logits as [`trace`] gives, of what the reference gives.
fn traced(model: &SpeechLm, first: &[f32], others: &[f32]) -> [Vec<f32>; 2] {
    let outputs = model.layout();
    let rows = first.len() / model.vocabulary();
    [false, true].map(|narrow| {
        let row = |i: usize| {
            let first = &first[i * model.vocabulary()..][..model.vocabulary()];
            let width = others.len() / rows;
            laid_out(&outputs, narrow, first, &others[i * width..][..width])
        };
        (0..rows).flat_map(row).collect()
    })
}

#[test]
fn backbones_match_at_every_tap_and_choose_the_same() {
    for folder in ["olmo2_tiny", "llama_tiny"] {
        let case = open(&format!("{folder}/case_prefill.safetensors"));
        let rows = ids(&case, "input_ids");
        let [residual, ..] =
            trace(&mut load(folder, Precision::F32, |c| c.backbone.layers = 1), &rows, 1);
        close(&residual, &tensor(&case, "hidden_after_layer_0"), TOLERANCE, folder);
        let mut model = load(folder, Precision::F32, |_| ());
        let [_, hidden, logits, narrow] = trace(&mut model, &rows, 1);
        close(&hidden, &tensor(&case, "last_hidden_state"), TOLERANCE, folder);
        let expected = tensor(&case, "logits");
        close(&logits, &expected, TOLERANCE, folder);
        assert_eq!(narrow, logits, "there is nothing beside text");
        let outputs = model.outputs(false);
        for (got, expected) in logits.chunks_exact(outputs).zip(expected.chunks_exact(outputs)) {
            assert_eq!(best(got), best(expected));
        }
        let whole = feed(&mut load(folder, Precision::F32, |_| ()), &rows, 1, 0, 0);
        assert_eq!(whole, logits[logits.len() - outputs..]);
    }
}

#[test]
fn backbones_continue_a_prompt_with_the_same_tokens() {
    for folder in ["olmo2_tiny", "llama_tiny"] {
        let case = open(&format!("{folder}/case_greedy.safetensors"));
        let mut model = load(folder, Precision::F32, |_| ());
        let mut said = ids(&case, "prompt_ids");
        let prompt = said.len();
        let mut all = feed(&mut model, &said, 1, 0, 0);
        let outputs = model.outputs(false);
        let expected = ids(&case, "tokens");
        while said.len() < prompt + expected.len() {
            let next = best(&all[all.len() - outputs..]);
            if said.len() + 1 < prompt + expected.len() {
                all.extend(feed(&mut model, &[next], 1, said.len(), 0));
            }
            said.push(next);
        }
        assert_eq!(said[prompt..], expected);
        close(&all, &tensor(&case, "logits"), TOLERANCE, folder);
    }
}

#[test]
fn a_tied_head_is_the_embedding() {
    let weights = open("llama_tiny/model.safetensors");
    let mut tied = load("llama_tiny", Precision::F32, |c| c.tied = true);
    let logits = feed(&mut tied, &[5, 6, 7], 1, 0, 0);
    let hidden = tied.last_hidden();
    let table = tensor(&weights, "model.embed_tokens.weight");
    let expected: Vec<f32> =
        table.chunks_exact(hidden.len()).map(|row| dot(row, &hidden)).collect();
    close(&logits, &expected, TOLERANCE, "tied");
}

#[test]
fn rows_of_all_streams_match_at_every_tap() {
    for folder in ["speechlm_tiny/bagpiper", "speechlm_tiny/opuslm"] {
        let case = open(&format!("{folder}/step.safetensors"));
        let streams = config(folder).streams();
        let rows = ids(&case, "rows");
        let mut model = load(folder, Precision::F32, |_| ());
        let mut embeddings = Vec::new();
        for token in 0..rows.len() / streams {
            model.ends().embed(&batch(&rows, streams, 0, 0), token, &mut embeddings);
        }
        close(&embeddings, &tensor(&case, "embeddings"), TOLERANCE, folder);
        let [residual, ..] =
            trace(&mut load(folder, Precision::F32, |c| c.backbone.layers = 1), &rows, streams);
        close(&residual, &tensor(&case, "hidden_after_layer_0"), TOLERANCE, folder);
        let [_, hidden, wide, narrow] = trace(&mut model, &rows, streams);
        close(&hidden, &tensor(&case, "h"), TOLERANCE, folder);
        let [expected_wide, expected_narrow] =
            traced(&model, &tensor(&case, "logits0"), &tensor(&case, "aux_logits"));
        close(&wide, &expected_wide, TOLERANCE, folder);
        close(&narrow, &expected_narrow, TOLERANCE, folder);
    }
}

/// Every promise of the runner, with rows of many ids.
#[test]
fn neighbours_splits_and_blocks_change_no_bit() {
    for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
        for folder in ["speechlm_tiny/bagpiper", "speechlm_tiny/opuslm"] {
            let streams = config(folder).streams();
            let rows = ids(&open(&format!("{folder}/step.safetensors")), "rows");
            let mut model = load(folder, precision, |_| ());
            let whole = feed(&mut model, &rows, streams, 0, 0);
            let (head, tail) = rows.split_at(streams * 7);
            feed(&mut model, head, streams, 0, BLOCKS);
            assert_eq!(feed(&mut model, tail, streams, 7, BLOCKS), whole, "split");
            let mut both = batch(&rows, streams, 0, 0);
            let other = batch(tail, streams, 0, BLOCKS);
            let shift = both.ids.len();
            both.ids.extend(other.ids);
            both.beside.extend(other.beside);
            both.positions.extend(other.positions);
            both.rows.extend(other.rows.into_iter().map(|row| BatchRow {
                tokens: row.tokens.start + shift..row.tokens.end + shift,
                ..row
            }));
            let mut logits = Vec::new();
            model.forward(&both, &mut logits).unwrap();
            assert_eq!(logits[..whole.len()], whole, "beside another");
            assert_eq!(logits[whole.len()..], feed(&mut model, tail, streams, 0, BLOCKS));
        }
    }
}

/// Rows of both kinds side by side are what they are alone, and both have the symbols.
#[test]
fn wide_and_narrow_rows_are_neighbours() {
    for folder in ["speechlm_tiny/bagpiper", "speechlm_tiny/opuslm"] {
        let streams = config(folder).streams();
        let rows = ids(&open(&format!("{folder}/step.safetensors")), "rows");
        let mut model = load(folder, Precision::Int8, |_| ());
        let wide = feed(&mut model, &rows, streams, 0, 0);
        let alone = feed_narrow(&mut model, &rows, streams, 0, 0);
        let mut both = batch(&rows, streams, 0, 0);
        both.rows[0].narrow = true;
        let other = batch(&rows, streams, 0, BLOCKS);
        let shift = both.ids.len();
        both.ids.extend(other.ids);
        both.beside.extend(other.beside);
        both.positions.extend(other.positions);
        both.rows.extend(other.rows.into_iter().map(|row| BatchRow {
            tokens: row.tokens.start + shift..row.tokens.end + shift,
            ..row
        }));
        let mut logits = Vec::new();
        model.forward(&both, &mut logits).unwrap();
        let (narrow, beside) = logits.split_at(model.outputs(true));
        assert_eq!((narrow, beside), (&alone[..], &wide[..]));
        let symbols = model.layout().symbols.iter().map(|ids| ids.len()).sum::<usize>();
        assert_eq!(narrow[..symbols], wide[..symbols]);
        assert_eq!(wide.len(), symbols + config(folder).family.text().len());
    }
}

#[test]
fn rows_with_ids_missing_or_unknown_are_refused() {
    let mut model = load("speechlm_tiny/bagpiper", Precision::F32, |_| ());
    let refuse = |model: &mut SpeechLm, batch: &Batch| {
        model.forward(batch, &mut Vec::new()).unwrap_err().to_string()
    };
    let mut short = batch(&[5, 0, 0, 0, 0, 0, 0, 0], 8, 0, 0);
    short.beside.pop();
    let text = refuse(&mut model, &short);
    assert!(text.contains("6 ids beside 1 of stream 0, not 7 each"), "{text}");
    let text = refuse(&mut model, &batch(&[5, 0, 0, 0, 0, 0, 0, 648], 8, 0, 0));
    assert!(text.contains("id 648 has no embedding row"), "{text}");
}

#[test]
fn a_configuration_that_does_not_hold_is_told_by_field() {
    type Change = (&'static str, serde_json::Value, &'static str);
    let bagpiper: [Change; 10] = [
        ("text_token_offset", 0.into(), "says nothing"),
        ("model_type", "whisper".into(), "not a known model"),
        ("text_config", 5.into(), "not an object"),
        ("num_stream", 9.into(), "codec_base_offset"),
        ("codec_layer_size", 1.into(), "room for a pad"),
        ("eos_token_id", 256.into(), "not below the first code or text, 256"),
        ("text_token_offset", 7.into(), "not below the first code or text, 7"),
        ("text_token_end", 385.into(), "ids 256..385 and 384..417 are of two kinds"),
        ("text_token_end", 256.into(), "not above text_token_offset"),
        ("text_token_end", 649.into(), "vocab_size is 648"),
    ];
    let opuslm: [Change; 7] = [
        ("nq", 8.into(), "must be 9"),
        ("num_codec_streams", 7.into(), "not the 256 ids"),
        ("ssl_token_end", 297.into(), "ids 256..297 and 296..328 are of two kinds"),
        ("text_token_start", 551.into(), "ids 520..552 and 551..680 are of two kinds"),
        ("tie_word_embeddings", "no".into(), "not true or false"),
        ("rope_interleaved", true.into(), "not supported"),
        ("eos_token_id", serde_json::Value::Null, "missing"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    for (model, changes) in [("bagpiper", &bagpiper[..]), ("opuslm", &opuslm)] {
        for (name, value, says) in changes {
            let mut whole: serde_json::Value = codecs::weights::read_json(
                &fixture("speechlm_tiny").join(model).join("config.json"),
            )
            .unwrap();
            whole[*name] = value.clone();
            std::fs::write(&file, whole.to_string()).unwrap();
            let text = SpeechConfig::read(&file).unwrap_err().to_string();
            assert!(text.contains("config.json") && text.contains(says), "{text}");
        }
    }
}
