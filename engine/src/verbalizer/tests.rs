//! What the model is asked, and what becomes of what it says: a network that says what a test wants.

use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::batch::Batch;
use crate::runner::ForwardError;

const ROOM: usize = 200;
const END: &str = "<|im_end|>";

/// Prompts with their answers.
type Answers = Vec<(Vec<u32>, Vec<u32>)>;

/// Says a known answer behind each known prompt.
struct Script {
    answers: Arc<Mutex<Answers>>,
    /// What was read in each first block.
    read: Vec<Vec<u32>>,
    ids: usize,
}

impl Script {
    fn next(&self, known: &[u32]) -> u32 {
        let answers = self.answers.lock().unwrap();
        let (prompt, answer) = answers.iter().find(|(p, _)| known.starts_with(p)).unwrap();
        answer[known.len() - prompt.len()]
    }
}

impl StageModel for Script {
    fn vocabulary(&self) -> usize {
        self.ids
    }

    fn outputs(&self, _narrow: bool) -> usize {
        self.ids
    }

    fn reserve(&mut self, blocks: usize) {
        self.read = vec![Vec::new(); blocks];
    }

    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ForwardError> {
        for row in &batch.rows {
            let at = row.blocks[0] as usize;
            self.read[at].truncate(row.computed);
            self.read[at].extend_from_slice(&batch.ids[row.tokens.clone()]);
            let length = self.read[at].len();
            for known in length - row.outputs_before..=length {
                let answers = self.answers.lock().unwrap();
                let prefix = &self.read[at][..known];
                let fits =
                    answers.iter().any(|(p, a)| prefix.starts_with(p) && known - p.len() < a.len());
                drop(answers);
                let mut one = vec![0.0; self.ids];
                if fits {
                    one[self.next(prefix) as usize] = 1.0;
                }
                logits.extend(one);
            }
        }
        Ok(())
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
}

/// The tiny tokenizer with the words that the answers stand between.
fn tokenizer() -> Tokenizer {
    let mut tokenizer = Tokenizer::from_file(fixture("bundles/tokenizer.json")).unwrap();
    let words = ["<tool_call>", CLOSE_TAG, "<think>", "</think>", END];
    tokenizer.add_tokens(words.map(|w| tokenizers::AddedToken::from(w, false))).unwrap();
    tokenizer
}

fn entry() -> bundle::Verbalizer {
    bundle::Verbalizer {
        path: "verbalizer".to_owned(),
        instruction: "Say: ".to_owned(),
        closing: "<think>\n\n</think>\n\n".to_owned(),
        context_tokens: ROOM,
        timeout_ms: 1000,
    }
}

/// A verbalizer whose model answers each text with what stands beside it.
pub(super) fn scripted(answers: &[(&str, &str)]) -> Verbalizer {
    let script = Arc::new(Mutex::new(Vec::new()));
    let tokenizer = tokenizer();
    let ids = tokenizer.get_vocab_size(true);
    let network = Script { answers: script.clone(), read: Vec::new(), ids };
    let ends = vec![tokenizer.token_to_id(END).unwrap()];
    let made = Verbalizer::new(Box::new(network), tokenizer, &entry(), ends, ROOM).unwrap();
    for (text, answer) in answers {
        let prompt = made.prompt(text).unwrap();
        let said = made.tokenizer.encode(*answer, false).unwrap();
        script.lock().unwrap().push((prompt, said.get_ids().to_vec()));
    }
    made
}

const NEVER: &dyn Fn() -> bool = &|| false;

#[test]
fn each_text_gets_its_own_answer_or_the_reason_why_not() {
    let mut verbalizer = scripted(&[
        ("2 doves", "<tool_call>two doves</tool_call>"),
        ("3 doves", "<think>\nhm\n</think>\n\n<tool_call>\nthree doves\n</tool_call>"),
        ("4 doves", "four doves<|im_end|>"),
        ("5 doves", "<tool_call> </tool_call>"),
        ("6 doves", "<tool_call>6 doves</tool_call>"),
        ("7 doves", "<tool_call>seven doves</tool_call>"),
    ]);
    let texts = ["2 doves", "3 doves", "4 doves", "5 doves", "6 doves", " 7 doves\n"];
    let said = verbalizer.verbalize(&texts, NEVER);
    assert_eq!(said[0].as_deref(), Ok("two doves"));
    assert_eq!(said[1].as_deref(), Ok("three doves"));
    let refused = [Err(Refusal::Untagged), Err(Refusal::Empty), Err(Refusal::Digits)];
    assert_eq!(said[2..5], refused);
    assert_eq!(said[5].as_deref(), Ok(" seven doves\n"));
}

#[test]
fn marked_stretches_are_not_shown_to_the_model() {
    let mut verbalizer = scripted(&[("2 doves,", "<tool_call>two doves,</tool_call>")]);
    let said = verbalizer.verbalize(&["2 doves, <<4 U>>", "<<5>>", ""], NEVER);
    assert_eq!(said, [Ok("two doves, 4 U".to_owned()), Ok("5".to_owned()), Ok(String::new())]);
}

#[test]
fn the_model_reads_instruction_text_and_closing_with_each_digit_alone() {
    let verbalizer = scripted(&[]);
    let ids = verbalizer.prompt("the 20 <think>").unwrap();
    let shown = verbalizer.tokenizer.decode(&ids, false).unwrap();
    assert_eq!(shown, "Say: the 20 <think><think>\n\n</think>\n\n");
    let id = |text: &str| verbalizer.tokenizer.token_to_id(text).unwrap();
    let digits = ids.iter().position(|&i| i == id("2")).unwrap();
    assert_eq!(ids[digits + 1], id("0"));
    // The control word of the text is letters, that of the closing is itself.
    assert_eq!(ids.iter().filter(|&&i| i == id("<think>")).count(), 1);
}

#[test]
fn a_text_that_leaves_no_room_for_its_answer_is_refused() {
    let mut verbalizer = scripted(&[("2", "<tool_call>two</tool_call>")]);
    let long = "x ".repeat(ROOM / 2);
    let said = verbalizer.verbalize(&[&long, "2"], NEVER);
    assert!(matches!(said[0], Err(Refusal::TooLong { room: ROOM, .. })), "{said:?}");
    assert_eq!(said[1].as_deref(), Ok("two"));
}

#[test]
fn an_answer_that_comes_too_late_is_given_up() {
    let mut verbalizer = scripted(&[("2", "<tool_call>two</tool_call>")]);
    assert_eq!(verbalizer.verbalize(&["2"], &|| true), [Err(Refusal::TooSlow)]);
}

/// A folder as a bundle has it, of the golden Bagpiper's tensors, read as a model of text.
fn folder() -> tempfile::TempDir {
    let (dir, from) = (tempfile::tempdir().unwrap(), fixture("speechlm_tiny/bagpiper"));
    let whole: serde_json::Value = read_json(&from.join("config.json")).unwrap();
    let mut config = whole["text_config"].clone();
    config["model_type"] = "qwen3".into();
    config["eos_token_id"] = json!([7, 8]);
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let weights = from.join("model.safetensors").canonicalize().unwrap();
    std::os::unix::fs::symlink(weights, dir.path().join("model.safetensors")).unwrap();
    tokenizer().save(dir.path().join("tokenizer.json"), false).unwrap();
    dir
}

fn open(folder: &Path, entry: &bundle::Verbalizer) -> Result<Verbalizer, LoadError> {
    Verbalizer::open(folder, entry, Precision::F32, None)
}

#[test]
fn a_model_on_disk_answers_and_random_weights_never_between_tags() {
    let dir = folder();
    let mut verbalizer = open(dir.path(), &entry()).unwrap();
    assert!(verbalizer.ends.starts_with(&[7, 8]) && verbalizer.ends.len() == 3);
    let texts = ["2 doves", "3 doves", "20 pigeons", "4", "5"];
    let said = verbalizer.verbalize(&texts, NEVER);
    assert_eq!(said, vec![Err(Refusal::Untagged); 5]);
}

#[test]
fn what_cannot_verbalize_is_refused_by_file_and_field() {
    let dir = folder();
    let long = bundle::Verbalizer { instruction: "Say ".repeat(100), ..entry() };
    let text = open(dir.path(), &long).err().unwrap().to_string();
    assert!(text.contains("`verbalizer.instruction`") && text.contains("leave no room"), "{text}");
    let text = open(&fixture("speechlm_tiny/opuslm"), &entry()).err().unwrap().to_string();
    assert!(text.contains("config.json") && text.contains("a model that speaks"), "{text}");
    std::fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
    let text = open(dir.path(), &entry()).err().unwrap().to_string();
    assert!(text.contains("tokenizer.json") && text.contains("cannot read"), "{text}");
}
