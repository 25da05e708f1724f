//! The text that reaches the model with the clean-up on, blanks aside.

use engine::text::{TextOptions, sanitize};

use super::{Delta, TextCase, raw_text};
use crate::cases::Findings;

/// Signs that a verbaliser puts into words, beside digits.
const READ_SIGNS: &str = "%€$£@&+=°§/#";

pub(super) fn check(case: &TextCase, deltas: &[Delta], findings: &mut Findings) {
    let raw = raw_text(deltas);
    let spoken = one_blank(&sanitize(&raw, TextOptions::default()));
    let lacks = |wanted: &&String| !spoken.contains(&one_blank(wanted));
    for wanted in case.spoken_must_contain.iter().filter(lacks) {
        if is_reading(wanted, &raw) {
            findings.leave_unchecked(format!("{wanted:?} is a reading"));
        } else {
            findings.fail(format!("spoken text {spoken:?} lacks {wanted:?}"));
        }
    }
    let has = |unwanted: &&String| spoken.contains(unwanted.as_str());
    for unwanted in case.spoken_must_not_contain.iter().filter(has) {
        if is_readable(unwanted) && raw.contains(unwanted.as_str()) {
            findings.leave_unchecked(format!("{unwanted:?} must be read in words"));
        } else {
            findings.fail(format!("spoken text {spoken:?} has {unwanted:?}"));
        }
    }
    if let Some(composed) = &case.spoken_nfc {
        findings.equal("spoken text", &spoken, &one_blank(composed));
    }
}

/// Whether the words stand for digits or signs of the raw text, which the verbaliser will read.
fn is_reading(words: &str, raw: &str) -> bool {
    is_readable(raw) && !one_blank(raw).contains(&one_blank(words))
}

fn is_readable(text: &str) -> bool {
    text.contains(|c: char| c.is_numeric() || READ_SIGNS.contains(c))
}

fn one_blank(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
