//! The published rules on the whole text, with clean-up off: every byte of the given values, and invariants 1 to 5.

use engine::text::ids::CharacterIds;
use engine::text::{self, CHUNK_CHARS, Chunk, ChunkLimits, LOOKAHEAD_CHARS, TextOptions};

use super::{Delta, TextCase, raw_text, splits};
use crate::cases::Findings;

pub(super) fn check(case: &TextCase, deltas: &[Delta], findings: &mut Findings) {
    let raw = raw_text(deltas);
    let spoken = text::spoken(&raw, &TextOptions::literal());
    let sanitized: String = spoken.iter().map(|s| s.ch).collect();
    let chunks = match &case.forced_chunks {
        Some(pieces) => {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            text::given(&pieces, &TextOptions::literal())
        }
        None => text::literal(&spoken, raw.chars().count(), ChunkLimits::default()),
    };
    let texts: Vec<String> = chunks.iter().map(|c| c.text.clone()).collect();
    let inputs: Vec<String> = chunks.iter().map(|c| c.input(&c.tail)).collect();
    let lookaheads: Vec<String> = chunks.iter().map(|c| c.lookahead().to_owned()).collect();

    check_given(case.sanitized.as_ref(), "sanitized", &sanitized, findings);
    check_given(case.chunks.as_ref(), "chunks", &texts, findings);
    check_given(case.forced_chunks.as_ref(), "forced chunks", &texts, findings);
    check_given(case.model_inputs.as_ref(), "model inputs", &inputs, findings);
    check_given(case.lookaheads.as_ref(), "lookaheads", &lookaheads, findings);
    check_given(
        case.lookaheads_paper_literal.as_ref(),
        "lookaheads by the paper's plain reading",
        &plain_lookaheads(&inputs),
        findings,
    );
    if case.other_sanitized.contains(&sanitized) || case.other_chunks.contains(&texts) {
        findings.fail("the text is read as another reading of the paper has it");
    }
    check_invariants(&sanitized, &chunks, findings);
    check_splits(case, deltas, &sanitized, findings);
    check_audio(case, &raw, findings);
    check_ids(case, &inputs, findings);
}

fn check_given<T: PartialEq + std::fmt::Debug>(
    given: Option<&T>,
    what: &str,
    is: &T,
    findings: &mut Findings,
) {
    if let Some(must_be) = given {
        findings.equal(what, is, must_be);
    }
}

/// The lookahead cut at 50 with its blank, the final line feed only where it fits.
fn plain_lookaheads(inputs: &[String]) -> Vec<String> {
    let next = inputs.iter().skip(1).map(|n| n.chars().take(LOOKAHEAD_CHARS).collect());
    next.chain(inputs.last().map(|_| String::new())).collect()
}

fn check_invariants(sanitized: &str, chunks: &[Chunk], findings: &mut Findings) {
    let visible = |text: &str| text.split_whitespace().collect::<String>();
    let joined: String = chunks.iter().map(|c| visible(&c.text)).collect();
    findings.equal("joined chunks", &joined, &visible(sanitized));
    for (k, chunk) in chunks.iter().enumerate() {
        let last = k + 1 == chunks.len();
        let input = chunk.input(&chunk.tail);
        let length = chunk.text.chars().count();
        if !(1..=CHUNK_CHARS).contains(&length) {
            findings.fail(format!("chunk {k} has {length} characters"));
        }
        let blanks = input.chars().take_while(|c| c.is_whitespace()).count();
        findings.equal("leading blanks", &blanks, &usize::from(k > 0));
        findings.equal("line feed at the end", &input.ends_with('\n'), &last);
        let Some(next) = chunks.get(k + 1) else { continue };
        let next = next.input(&next.tail);
        let shown = chunk.lookahead().trim_end_matches('\n');
        if !next.starts_with(shown) || shown.chars().count() > LOOKAHEAD_CHARS + 1 {
            findings.fail(format!("lookahead {shown:?} is not the start of {next:?}"));
        }
    }
}

/// Invariant 5: where deltas are cut changes nothing.
fn check_splits(case: &TextCase, deltas: &[Delta], sanitized: &str, findings: &mut Findings) {
    for (how, split) in splits(case, deltas) {
        let mut passage = text::Passage::new(TextOptions::literal(), super::live::patient());
        for delta in &split {
            passage.push_bytes(&delta.bytes, std::time::Duration::ZERO);
        }
        passage.end(std::time::Duration::ZERO);
        let cut = || passage.cut(std::time::Duration::ZERO, text::Need::Relaxed);
        let texts: Vec<String> = std::iter::from_fn(cut).map(|c| c.text).collect();
        // Nothing is cut before the end, and everything is one chunk; a text with nothing to say has none.
        let must_be: Vec<String> = Some(sanitized.to_owned())
            .filter(|s| s.contains(char::is_alphanumeric))
            .into_iter()
            .collect();
        findings.equal(&format!("sanitized, {how}"), &texts, &must_be);
    }
}

fn check_audio(case: &TextCase, raw: &str, findings: &mut Findings) {
    match case.audio.as_deref() {
        None => {}
        Some("none") => {
            for options in [TextOptions::literal(), TextOptions::default()] {
                findings.equal(
                    "chunks of a silent text",
                    &text::whole(raw, &options, ChunkLimits::default()).0,
                    &Vec::new(),
                );
            }
        }
        Some(other) => findings.fail(format!("unknown demand on audio: {other}")),
    }
}

/// Each character has one id, and none of them is a structural one.
fn check_ids(case: &TextCase, inputs: &[String], findings: &mut Findings) {
    match case.invariant.as_deref() {
        None => return,
        Some("structural ids in the text row come only from the engine") => {}
        Some(other) => return findings.fail(format!("unknown invariant: {other}")),
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../voices/nano/cb0");
    let read = |name: &str| std::fs::read(format!("{folder}/{name}"));
    let (Ok(json), Ok(config)) = (read("tokenizer.json"), read("config.json")) else {
        return findings.fail(format!("cannot read the tokenizer in {folder}"));
    };
    let config: serde_json::Value = serde_json::from_slice(&config).unwrap_or_default();
    let structural =
        ["pad_token_id", "eos_token_id", "text_marker_token_id", "audio_marker_token_id"];
    let structural: Vec<u64> = structural.iter().filter_map(|name| config[name].as_u64()).collect();
    for input in inputs {
        let mut ids = Vec::new();
        let encoded = CharacterIds::new(&json).and_then(|t| t.encode(input, &mut ids));
        if let Err(e) = encoded {
            findings.fail(e.to_string());
        }
        findings.equal("number of ids", &ids.len(), &input.chars().count());
        if structural.len() != 4 || ids.iter().any(|&id| structural.contains(&u64::from(id))) {
            findings.fail(format!("structural ids {structural:?} among {ids:?}"));
        }
    }
}
