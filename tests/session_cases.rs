//! The committed session cases against the real server. Those that wait for a part that is not built are listed, and
//! fail the test as soon as they pass.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::path::Path;

use harness::cases::session::{Options, server_beside};
use harness::cases::{Outcome, run_file};

/// Times, memory and ratios on a machine that has other things to do.
const SLACK: f64 = 5.0;
/// Cases mostly wait, so more than there are cores may do so.
const JOBS: usize = 8;

/// Cases that cannot pass yet, and why.
const PENDING: &[(&str, &str)] = &[];
/// Cases that speak for minutes; `cases tests/fixtures/session_cases.jsonl --slow` plays them, too.
const APART: &[&str] = &["B113", "B130", "B182"];

#[test]
fn every_committed_session_case_passes_or_waits_for_a_part() {
    play("session_cases.jsonl");
}

#[test]
fn every_case_of_other_vendors_surfaces_passes() {
    play("vendor_cases.jsonl");
}

fn play(name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    let server = server_beside(&std::env::current_exe().unwrap());
    let only = ids(&file).into_iter().filter(|id| !APART.contains(&id.as_str())).collect();
    let options = Options { server, slack: SLACK, slow: false, only, jobs: JOBS };
    let report = run_file(&file, Some(&options)).unwrap();
    let pending = |id: &str| PENDING.iter().any(|(pending, _)| *pending == id);
    let unexpected: Vec<&str> = report
        .verdicts
        .iter()
        .filter(|verdict| match verdict.outcome {
            Outcome::Passed => pending(&verdict.id),
            Outcome::Failed { .. } => !pending(&verdict.id),
            Outcome::Skipped { .. } => false,
        })
        .map(|verdict| verdict.id.as_str())
        .collect();
    assert!(unexpected.is_empty(), "not as listed: {unexpected:?}\n{report}");
}

/// The ids of a file of cases.
fn ids(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let id = |line: &str| {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        case["id"].as_str().unwrap().to_owned()
    };
    text.lines().map(id).collect()
}
