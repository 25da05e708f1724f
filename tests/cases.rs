//! The committed text cases, and that the runner of cases fails when it should.

use std::path::Path;

use harness::cases::{Outcome, run_file, run_line};

fn outcome(case: &str) -> Outcome {
    run_line(1, case, "the long text").outcome
}

fn case_with(extra: &str) -> String {
    format!(
        r#"{{"id": "T1", "kind": "text", "tokens": [{{"t": "It costs 5 "}}, {{"t": "now"}}]{extra}}}"#
    )
}

#[test]
fn every_committed_text_case_passes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/text_cases.jsonl");
    let report = run_file(&file, None).unwrap();
    assert_eq!((report.failed(), report.skipped()), (0, 0), "{report}");
    assert!(report.passed() >= 55, "{report}");
}

#[test]
fn a_case_without_demands_still_keeps_the_invariants() {
    assert_eq!(outcome(&case_with("")), Outcome::Passed);
}

#[test]
fn demands_that_do_not_hold_fail() {
    for wrong in [
        r#", "sanitized": "It costs 5 now""#,
        r#", "chunks": ["It costs 5", "now."]"#,
        r#", "model_inputs": ["It costs 5 now."]"#,
        r#", "lookaheads": [" now"]"#,
        r#", "lookaheads_paper_literal": [" now"]"#,
        r#", "other_sanitized": ["It costs 5 now."]"#,
        r#", "other_chunks": [["It costs 5 now."]]"#,
        r#", "forced_chunks": ["It costs 5 now"]"#,
        r#", "spoken_must_contain": ["It  cost now"], "tokens": [{"t": "It costs now"}]"#,
        r#", "spoken_must_not_contain": ["costs"]"#,
        r#", "spoken_nfc": "It""#,
        r#", "no_split_inside": ["not there"]"#,
        r#", "max_stream_chunks": 0"#,
        r#", "audio": "none""#,
        r#", "timing": "at most 10 ms""#,
    ] {
        let case = case_with(wrong);
        // A second `tokens` takes the place of the first.
        let value: serde_json::Value = serde_json::from_str(&case).unwrap();
        let found = outcome(&value.to_string());
        assert!(matches!(found, Outcome::Failed { .. }), "{wrong}: {found:?}");
    }
}

#[test]
fn borders_inside_a_string_fail() {
    let sentence = "Six words are in this sentence. ".repeat(12);
    let case = serde_json::json!({
        "id": "T2", "kind": "text", "tokens": [{"t": sentence}],
        "no_split_inside": ["sentence. Six"],
    });
    assert!(matches!(outcome(&case.to_string()), Outcome::Failed { .. }));
}

#[test]
fn what_is_not_known_fails_and_is_never_skipped() {
    for (case, says) in [
        ("{", "not JSON"),
        (r#"{"id": "T"}"#, "unknown kind"),
        (&case_with(r#", "novel_field": 1"#), "novel_field"),
        (&case_with(r#", "status": "guess""#), "guess"),
        (&case_with(r#", "audio": "some""#), "unknown demand"),
        (&case_with(r#", "guarded": "be nice""#), "unknown demand"),
        (&case_with(r#", "invariant": "be nice""#), "unknown invariant"),
        (&case_with(r#", "timing": "soon""#), "no time"),
        (r#"{"id": "T", "kind": "text", "tokens": [{"hex": "0g"}]}"#, "not hex"),
        (r#"{"id": "T", "kind": "text", "tokens": [{}]}"#, "either"),
    ] {
        let Outcome::Failed { reasons } = outcome(case) else { panic!("{case} did not fail") };
        assert!(reasons.iter().any(|r| r.contains(says)), "{reasons:?}");
    }
}

#[test]
fn numbers_are_demanded_in_words() {
    assert_eq!(outcome(&case_with(r#", "spoken_must_contain": ["costs five"]"#)), Outcome::Passed);
}

#[test]
fn session_cases_are_skipped_with_a_reason() {
    assert!(matches!(outcome(r#"{"id": "S", "kind": "session"}"#), Outcome::Skipped { .. }));
}

#[test]
fn the_long_text_takes_the_place_of_its_name() {
    let case = r#"{"id": "T", "kind": "text", "tokens": [{"t": "LONG_TEXT"}], "sanitized": "the long text."}"#;
    assert_eq!(outcome(case), Outcome::Passed);
}
