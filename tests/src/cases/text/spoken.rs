//! The text that reaches the model with the clean-up on, blanks aside.

use engine::text::{TextOptions, sanitize};

use super::{Delta, TextCase, raw_text};
use crate::cases::Findings;

pub(super) fn check(case: &TextCase, deltas: &[Delta], findings: &mut Findings) {
    let raw = raw_text(deltas);
    let spoken = one_blank(&sanitize(&raw, &TextOptions::default()));
    let lacks = |wanted: &&String| !spoken.contains(&one_blank(wanted));
    for wanted in case.spoken_must_contain.iter().filter(lacks) {
        findings.fail(format!("spoken text {spoken:?} lacks {wanted:?}"));
    }
    let has = |unwanted: &&String| spoken.contains(unwanted.as_str());
    for unwanted in case.spoken_must_not_contain.iter().filter(has) {
        findings.fail(format!("spoken text {spoken:?} has {unwanted:?}"));
    }
    if let Some(composed) = &case.spoken_nfc {
        findings.equal("spoken text", &spoken, &one_blank(composed));
    }
}

fn one_blank(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
