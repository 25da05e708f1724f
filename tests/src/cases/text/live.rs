//! Text that arrives in deltas while it is spoken: an engine that asks for chunks on virtual time.
//!
//! Each case runs in every split, at several paces, with an engine that is always in need and one that never is, with
//! clean-up on and off. Where no border is demanded, invariants 1 to 4 still hold.

use std::ops::Range;
use std::time::Duration;

use engine::text::{
    CHUNK_CHARS, Chunk, LOOKAHEAD_CHARS, LiveSettings, Need, Passage, Tail, TextOptions, sanitize,
};

use super::{Delta, TextCase, raw_text, splits};
use crate::cases::Findings;

/// Gaps between two deltas that stand for a quick model, a usual one and a slow one; none is long enough to make the
/// front end let go of what it holds.
const GAPS_MS: [u64; 3] = [5, 30, 100];

/// A chunk, when it was cut, and what its prefill was told of the text behind it.
struct Cut {
    at: Duration,
    chunk: Chunk,
    tail: Tail,
}

/// Settings of a passage that waits for the end and takes everything: its only chunk is the sanitized text.
pub(super) fn patient() -> LiveSettings {
    let wait = Duration::from_secs(3_600);
    LiveSettings {
        chunk_chars: usize::MAX / 4,
        lookahead_chars: usize::MAX / 4,
        first_wait: wait,
        mark_wait: wait,
        hold: wait,
        ..LiveSettings::default()
    }
}

pub(super) fn check(case: &TextCase, deltas: &[Delta], findings: &mut Findings) {
    let mut unsplit = case.no_split_inside.clone();
    match case.guarded.as_deref().map(|g| (g, g.strip_prefix("no cut inside "))) {
        None => {}
        Some((_, Some(inside))) => unsplit.push(inside.to_owned()),
        Some((demand, None)) => findings.fail(format!("unknown demand on guarded cuts: {demand}")),
    }
    let raw = raw_text(deltas);
    for options in [TextOptions::literal(), TextOptions::default()] {
        let whole = sanitize(&raw, &options);
        for (how, split) in splits(case, deltas) {
            for need in [Need::Relaxed, Need::Urgent] {
                // Slow deltas of single characters let go of markup that is cut in them: then the text differs.
                let gaps =
                    if options == TextOptions::literal() { &GAPS_MS[..] } else { &GAPS_MS[..1] };
                let paces = std::iter::once(None).chain(gaps.iter().copied().map(Some));
                for gap_ms in paces {
                    let cuts = speak(&split, &options, need, gap_ms);
                    let at_once = gap_ms.is_none() && split.iter().all(|d| d.delay_ms == 0);
                    let run = format!("{how}, {}, {need:?}", pace(gap_ms));
                    check_chunks(&run, &whole, &cuts, at_once, findings);
                    check_borders(&run, &raw, &unsplit, &cuts, findings);
                    if let Some(most) = case.max_stream_chunks.filter(|_| gap_ms.is_none())
                        && cuts.len() > most
                    {
                        findings.fail(format!("{run}: {} chunks, at most {most}", cuts.len()));
                    }
                }
            }
        }
    }
    check_timing(case, deltas, findings);
    check_forced(case, findings);
}

fn pace(gap_ms: Option<u64>) -> String {
    gap_ms.map_or("given pauses".to_owned(), |ms| format!("{ms} ms apart"))
}

/// Speaks the deltas: an engine asks for chunks after every delta and whenever time alone may give one.
fn speak(deltas: &[Delta], options: &TextOptions, need: Need, gap_ms: Option<u64>) -> Vec<Cut> {
    let mut passage = Passage::new(options.clone(), LiveSettings::default());
    let (mut cuts, mut now) = (Vec::new(), Duration::ZERO);
    for (k, delta) in deltas.iter().enumerate() {
        let gap_ms = gap_ms.filter(|_| k > 0).unwrap_or(delta.delay_ms);
        let until = now + Duration::from_millis(gap_ms);
        while let Some(deadline) = passage.next_deadline(need).filter(|&t| t < until) {
            now = deadline;
            cut_all(&mut passage, now, need, &mut cuts);
        }
        now = until;
        passage.push_bytes(&delta.bytes, now);
        cut_all(&mut passage, now, need, &mut cuts);
    }
    passage.end(now);
    cut_all(&mut passage, now, need, &mut cuts);
    cuts
}

fn cut_all(passage: &mut Passage, at: Duration, need: Need, cuts: &mut Vec<Cut>) {
    // The prefill of the chunk before may be laid out at any time until the next chunk is cut.
    if let Some(cut) = cuts.last_mut() {
        cut.tail = passage.tail();
    }
    while let Some(chunk) = passage.cut(at, need) {
        let tail = chunk.tail.clone();
        cuts.push(Cut { at, chunk, tail });
    }
}

/// Invariants 1 to 4. A text that comes with pauses may be spoken before its end is known: then it lacks the final
/// period, marks that come behind the last word stay unspoken, and a line feed may end any sentence.
fn check_chunks(run: &str, whole: &str, cuts: &[Cut], at_once: bool, findings: &mut Findings) {
    let visible = |text: &str| text.split_whitespace().collect::<String>();
    let joined: String = cuts.iter().map(|c| visible(&c.chunk.text)).collect();
    let whole = visible(whole);
    let speakable = whole.contains(char::is_alphanumeric);
    match whole.strip_prefix(&joined) {
        Some("") => {}
        Some(rest) if !speakable || (!at_once && !rest.contains(char::is_alphanumeric)) => {}
        _ => findings.fail(format!("{run}: joined chunks {joined:?} instead of {whole:?}")),
    }
    for (k, Cut { chunk, tail, .. }) in cuts.iter().enumerate() {
        let mut wrong = |what: &str| findings.fail(format!("{run}: chunk {k} {what}: {chunk:?}"));
        let input = chunk.input(tail);
        let length = chunk.text.chars().count();
        if !(1..=CHUNK_CHARS).contains(&length) {
            wrong("is not of 1 to 350 characters");
        }
        if !chunk.text.contains(char::is_alphanumeric) {
            wrong("has nothing to say");
        }
        let blanks = input.chars().take_while(|c| c.is_whitespace()).count();
        if blanks != usize::from(k > 0) {
            wrong("has other leading blanks");
        }
        let Some(next) = cuts.get(k + 1) else {
            if at_once && *tail != Tail::Final {
                wrong("is the last and has no line feed");
            }
            continue;
        };
        let next_input = next.chunk.input(&Tail::Open);
        if let Tail::Lookahead(shown) = tail {
            let text = shown.trim_end_matches('\n');
            let prefix =
                next_input.starts_with(text) && text.chars().count() <= LOOKAHEAD_CHARS + 1;
            if !prefix || (shown.ends_with('\n') && !next.chunk.last) {
                wrong(&format!("was shown {shown:?} before {next_input:?}"));
            }
        } else if at_once {
            wrong("was shown nothing of the text behind it");
        }
        if chunk.raw.end != next.chunk.raw.start {
            wrong("leaves raw text to no chunk");
        }
    }
}

/// No border between two chunks inside the strings.
fn check_borders(run: &str, raw: &str, unsplit: &[String], cuts: &[Cut], findings: &mut Findings) {
    let raw: Vec<char> = raw.chars().collect();
    for inside in unsplit {
        let places = occurrences(&raw, &inside.chars().collect::<Vec<char>>());
        if places.is_empty() {
            findings.fail(format!("{inside:?} is not in the text"));
        }
        for pair in cuts.windows(2) {
            let before = pair[0].chunk.spans.last().map_or(0, |s| s.end as usize);
            let behind = pair[1].chunk.spans.first().map_or(raw.len(), |s| s.start as usize);
            if places.iter().any(|p| p.start < before && behind < p.end) {
                findings.fail(format!("{run}: border inside {inside:?}"));
            }
        }
    }
}

fn occurrences(text: &[char], piece: &[char]) -> Vec<Range<usize>> {
    let windows = text.windows(piece.len().max(1)).enumerate();
    windows.filter(|(_, w)| *w == piece).map(|(i, w)| i..i + w.len()).collect()
}

/// The first chunk is there within the time that the demand names, from the first delta on, and before the second.
fn check_timing(case: &TextCase, deltas: &[Delta], findings: &mut Findings) {
    let Some(demand) = &case.timing else { return };
    let words: Vec<&str> = demand.split_whitespace().collect();
    let limit = words.windows(2).find(|w| w[1].starts_with("ms")).and_then(|w| w[0].parse().ok());
    let Some(limit) = limit else {
        return findings.fail(format!("no time in the demand on timing: {demand}"));
    };
    let [first, second, ..] = deltas else {
        return findings.fail("a demand on timing needs two deltas");
    };
    let start = Duration::from_millis(first.delay_ms);
    for options in [TextOptions::literal(), TextOptions::default()] {
        let cuts = speak(deltas, &options, Need::Relaxed, None);
        let wait = cuts.first().map(|cut| cut.at - start);
        let in_time = wait.is_some_and(|wait| {
            wait <= Duration::from_millis(limit) && wait < Duration::from_millis(second.delay_ms)
        });
        if !in_time {
            findings.fail(format!("first chunk after {wait:?}, at most {limit} ms"));
        }
    }
}

/// Forced chunks: text and flush for each, then the end.
fn check_forced(case: &TextCase, findings: &mut Findings) {
    let Some(pieces) = &case.forced_chunks else { return };
    let mut passage = Passage::new(TextOptions::literal(), LiveSettings::default());
    for (k, piece) in pieces.iter().enumerate() {
        passage.push(if k == 0 { "" } else { " " }, Duration::ZERO);
        passage.push(piece, Duration::ZERO);
        passage.flush(Duration::ZERO);
    }
    passage.end(Duration::ZERO);
    let mut cuts = Vec::new();
    cut_all(&mut passage, Duration::ZERO, Need::Relaxed, &mut cuts);
    let texts: Vec<String> = cuts.iter().map(|c| c.chunk.text.clone()).collect();
    findings.equal("flushed chunks", &texts, pieces);
    let inputs: Vec<String> = cuts.iter().map(|c| c.chunk.input(&c.tail)).collect();
    let lookaheads: Vec<String> = cuts.iter().map(|c| c.chunk.lookahead().to_owned()).collect();
    if let Some(must_be) = &case.model_inputs {
        findings.equal("inputs of flushed chunks", &inputs, must_be);
    }
    if let Some(must_be) = &case.lookaheads {
        findings.equal("lookaheads of flushed chunks", &lookaheads, must_be);
    }
}
