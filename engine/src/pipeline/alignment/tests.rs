//! The path on invented looks, and on the held-out list of the nano voice, whose word ends are known.

use super::*;
use crate::batch::{BLOCK_TOKENS, Batch, BatchRow};
use crate::kernels::matrix::Precision;
use crate::layout::{Layout, Tail, Window};
use crate::models::config::open_stage;
use crate::models::qwen3::{Options, Qwen3};
use crate::runner::StageModel;
use std::path::Path;

/// Bounds on the error of a word's end on the held-out list, in milliseconds. Measured: median 11, 95th percentile 33; a
/// frame is 80, and evenly spread characters are 119 and 451 away.
const MEDIAN_MS: f64 = 15.0;
const P95_MS: f64 = 50.0;

fn chunk(text: &str, first: bool) -> text::Chunk {
    let spans = (0..text.chars().count() as u32).map(|at| at..at + 1).collect();
    text::Chunk {
        text: text.into(),
        spans,
        raw: 0..text.chars().count(),
        first,
        flushed: false,
        last: true,
        tail: text::Tail::Final,
    }
}

/// Shares of one frame that looks at one character, a little at all others.
fn look(characters: usize, at: usize) -> Vec<f32> {
    (0..characters).map(|c| if c == at { 0.9 } else { 0.1 / characters as f32 }).collect()
}

fn looked(chunk: &text::Chunk, path: &[usize]) -> Alignment {
    let mut alignment = Alignment::new(chunk, |_| true);
    let characters = alignment.raw.len();
    for (frame, &at) in path.iter().enumerate() {
        alignment.look(frame, &look(characters, at));
    }
    alignment
}

fn told(ends: &[CharEnd]) -> Vec<(usize, u64)> {
    ends.iter().map(|e| (e.raw_to, e.sample)).collect()
}

#[test]
fn a_path_never_goes_back_for_one_stray_look() {
    let rows = [0, 1, 4, 1, 2, 3, 4].map(|at| look(5, at)).concat();
    assert_eq!(path(&rows, 5), [0, 1, 1, 1, 2, 3, 4]);
    assert_eq!(path(&look(5, 3), 5), [3]);
}

#[test]
fn characters_end_between_the_looks_at_those_behind_them() {
    // "ab" and the line feed that ends the passage.
    let mut alignment = looked(&chunk("ab", true), &[0, 1, 1, 2, 2]);
    // Frame 1 looks from half of "a" on, frame 3 from half of "b" on: "a" ends midway between 2.25 and 3.25.
    assert_eq!(told(&alignment.ends(5, 100, 4 * 1920)), [(1, 100 + 5280)]);
    let rest = told(&alignment.rest(5, 100));
    assert_eq!(rest.len(), 1);
    assert!(rest[0].0 == 2 && rest[0].1 > 100 + 4 * 1920 && rest[0].1 <= 100 + 5 * 1920);
}

#[test]
fn nothing_is_told_twice_nor_earlier_than_what_was_passed_over() {
    let path = [0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let mut whole = looked(&chunk("abcdefgh", true), &path);
    let all = told(&whole.rest(10, 0));
    assert_eq!(all.len(), 8);
    assert!(all.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
    let mut pieces = looked(&chunk("abcdefgh", true), &path);
    let mut ends = told(&pieces.ends(6, 0, 2 * 1920));
    assert!(ends.iter().all(|e| e.1 <= 2 * 1920));
    // Known frames say no more, but the sound is there: what ends later ends behind it.
    ends.extend(told(&pieces.ends(6, 0, 8 * 1920)));
    let before = ends.len();
    ends.extend(told(&pieces.rest(10, 0)));
    assert!(before < 8 && ends[before..].iter().all(|e| e.1 > 8 * 1920), "{ends:?}");
    assert_eq!(ends.iter().map(|e| e.0).collect::<Vec<_>>(), (1..=8).collect::<Vec<_>>());
}

#[test]
fn of_characters_that_stand_for_the_same_text_the_last_one_tells() {
    let mut two = chunk("two a", false);
    // The digit 2 at 7, a blank, an "a".
    two.spans = vec![7..8, 7..8, 7..8, 8..9, 9..10];
    // With the leading blank and the line feed.
    let mut alignment = looked(&two, &[0, 1, 2, 3, 4, 5, 6]);
    let ends = told(&alignment.rest(7, 0));
    assert_eq!(ends.iter().map(|e| e.0).collect::<Vec<_>>(), [8, 9, 10]);
}

#[test]
fn a_network_that_does_not_tell_makes_no_ends() {
    let mut alignment = Alignment::new(&chunk("ab", true), |_| true);
    alignment.look(0, &[]);
    assert!(alignment.ends(1, 0, 1920).is_empty() && alignment.rest(1, 0).is_empty());
}

#[test]
fn characters_that_the_network_does_not_read_have_no_share() {
    let mut alignment = Alignment::new(&chunk("a☃b", true), |c| c != '☃');
    assert_eq!(alignment.raw, [Some(1), Some(3), None]);
    alignment.look(0, &look(3, 0));
    assert_eq!(alignment.rest(1, 0).len(), 2);
}

/// A sentence that the nano voice was not trained on, with the codes of its teacher's speech.
struct Sentence {
    text: String,
    c0: Vec<u16>,
    /// Samples at which its words end.
    ends: Vec<u64>,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn held_out() -> Vec<Sentence> {
    let file = root().join("tests/fixtures/nano/heldout_words.jsonl");
    let sentence = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let numbers = |value: &serde_json::Value| -> Vec<f64> {
            value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
        };
        let c0: Vec<u16> = numbers(&line["codes"][0]).into_iter().map(|c| c as u16).collect();
        let sound = (c0.len() * FRAME_SAMPLES) as u64;
        // The list counts the silence behind the last word, the codes do not have all of it.
        let end = |seconds: f64| ((seconds * 24e3) as u64).min(sound);
        let ends = numbers(&line["word_ends_s"]).into_iter().map(end).collect();
        Sentence { text: line["text"].as_str().unwrap().to_owned(), c0, ends }
    };
    std::fs::read_to_string(file).unwrap().lines().map(sentence).collect()
}

/// CB0 of the nano voice, made to say given codes.
struct Teacher {
    model: Qwen3,
    grammar: crate::grammar::StageGrammar,
    control: Vec<u32>,
}

impl Teacher {
    fn new() -> Self {
        let bundle = crate::bundle::Bundle::open(&root().join("voices/nano")).unwrap();
        let mut grammar = crate::start::read_grammar(&bundle, 0).unwrap();
        let (config, weights) = open_stage(&root().join("voices/nano/cb0")).unwrap();
        let options = Options { precision: Precision::F32, kept_ids: None, pool: None };
        let mut model = Qwen3::load(&weights, &config, &options, &mut |_| ()).unwrap();
        model.reserve(64);
        // English, conversational.
        let control = vec![257, 262, 269, 271, 258, 10];
        Self { model, grammar: grammar.stages.remove(0), control }
    }

    fn align(&mut self, chunk: &text::Chunk, c0: &[u16]) -> Alignment {
        let mut alignment = Alignment::new(chunk, |c| self.grammar.reads(c));
        let ids = self.grammar.read(&chunk.text);
        let window = Window {
            prompt: &[],
            control: &self.control,
            before: None,
            text: &ids,
            tail: Tail::End,
            rows: &[c0],
        };
        let layout = Layout::of(&self.grammar.vocabulary, &window);
        let mut computed = 0;
        for frame in 0..c0.len() {
            let end = layout.own + frame;
            let row = BatchRow {
                tokens: 0..end - computed,
                computed,
                blocks: (0..end.div_ceil(BLOCK_TOKENS) as u32).collect(),
                logits: true,
                watched: layout.text.clone(),
                ..BatchRow::default()
            };
            let ids = layout.ids[computed..end].to_vec();
            let positions = layout.positions[computed..end].to_vec();
            let batch = Batch { ids, positions, rows: vec![row], ..Batch::default() };
            self.model.forward(&batch, &mut Vec::new()).unwrap();
            alignment.look(frame, self.model.attention());
            computed = end;
        }
        alignment
    }
}

/// Code points up to the end of each word.
fn word_ends(text: &str) -> Vec<usize> {
    let chars: Vec<char> = text.chars().collect();
    let ends = |at: &usize| {
        !chars[at - 1].is_whitespace() && chars.get(*at).is_none_or(|c| c.is_whitespace())
    };
    (1..=chars.len()).filter(ends).collect()
}

/// Mean, median, 95th percentile and largest.
fn spread(mut errors: Vec<f64>) -> [f64; 4] {
    errors.sort_by(f64::total_cmp);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let at = |share: f64| errors[((errors.len() - 1) as f64 * share).round() as usize];
    [mean, at(0.5), at(0.95), at(1.0)]
}

#[test]
fn word_ends_of_the_held_out_list_are_found() {
    let mut teacher = Teacher::new();
    let (mut measured, mut even) = (Vec::new(), Vec::new());
    for sentence in held_out() {
        let chunk = chunk(&sentence.text, true);
        let mut alignment = teacher.align(&chunk, &sentence.c0);
        let frames = sentence.c0.len();
        // As a listener would be told: at the releases of a live context, 5 frames behind what is known.
        let known = std::iter::once(10).chain((30..).step_by(25)).take_while(|n| *n < frames);
        let mut told: Vec<CharEnd> =
            known.flat_map(|n| alignment.ends(n, 0, ((n - 5) * FRAME_SAMPLES) as u64)).collect();
        told.extend(alignment.rest(frames, 0));
        let words = word_ends(&sentence.text);
        assert_eq!(words.len(), sentence.ends.len(), "{}", sentence.text);
        for (&word, &truth) in words.iter().zip(&sentence.ends) {
            let found = told.iter().find(|end| end.raw_to == word).unwrap().sample;
            let spread = (frames * FRAME_SAMPLES * word / chunk.spans.len()) as u64;
            let ms = |sample: u64| sample.abs_diff(truth) as f64 / 24.0;
            measured.push(ms(found));
            even.push(ms(spread));
        }
    }
    let count = measured.len();
    let (measured, even) = (spread(measured), spread(even));
    println!("{count} word ends, error in ms: mean, median, 95th percentile, largest");
    println!("measured      {measured:7.1?}\nevenly spread {even:7.1?}");
    assert!(measured[1] < MEDIAN_MS && measured[2] < P95_MS, "{measured:?}");
}
