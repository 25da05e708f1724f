//! `dovecote bench` from the outside: a short run against a server of its own, and what it refuses.

mod common;

use common::{dovecote, repository, run, stderr};
use serde_json::Value;

#[test]
fn callers_who_interrupt_and_break_off_leave_nothing_behind() {
    let mut command = dovecote(&repository(""));
    command.args(["bench", "--sessions", "3", "--seconds", "2", "--barge-in", "0.4", "--json"]);
    command.args(["--disconnects", "0.3", "--seed", "7"]);
    let output = run(&mut command);
    assert!(output.status.success(), "{}", stderr(&output));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let report: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    let count = |key: &str| report[key].as_u64().unwrap_or_else(|| panic!("{key}: {report}"));
    assert!(count("turns") >= 3, "{report}");
    for key in ["turns_failed", "continuity_errors", "audio_after_cancel"] {
        assert_eq!(count(key), 0, "{key}: {report}");
    }
    assert!(report["first_audio_ms"]["p50"].as_f64().unwrap() > 0.0, "{report}");
    // Whoever is given by the system is asked for no more than the keys that scripts rely on.
    for key in ["sessions", "underruns", "underrun_ms", "late_ms", "cancel_ms", "engine"] {
        assert!(!report[key].is_null(), "{key}: {report}");
    }
    assert!(
        !report["real_time_factor"].is_null() && !report["aggregate_real_time_factor"].is_null()
    );
    assert!(report["resident_bytes_per_session"].is_u64(), "{report}");
}

#[test]
fn clients_of_other_vendors_take_turns_and_interrupt() {
    for protocol in ["cartesia", "livekit", "elevenlabs", "deepgram", "openai"] {
        let mut command = dovecote(&repository(""));
        command.args(["bench", "--protocol", protocol, "--engine", "stub", "--sessions", "3"]);
        command.args(["--seconds", "2", "--barge-in", "0.4", "--seed", "7", "--json"]);
        let output = run(&mut command);
        assert!(output.status.success(), "{protocol}: {}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report["turns"].as_u64().unwrap() >= 3, "{protocol}: {report}");
        assert!(report["turns_interrupted"].as_u64().unwrap() > 0, "{protocol}: {report}");
        for key in ["turns_failed", "continuity_errors", "audio_after_cancel"] {
            assert_eq!(report[key], 0, "{protocol}, {key}: {report}");
        }
        let left = &report["engine"];
        assert_eq!((&left["contexts_end"], &left["kv_blocks_in_use_end"]), (&0.into(), &0.into()));
    }
}

#[test]
fn a_model_is_asked_and_interrupted_in_both_protocols() {
    for protocol in ["dovecote", "openai"] {
        let mut command = dovecote(&repository(""));
        command.args(["bench", "--protocol", protocol, "--model", "bagpiper-tiny", "--json"]);
        command.args(["--bundle", "tests/fixtures/bundles/bagpiper", "--words-per-second", "0"]);
        command.args(["--sessions", "2", "--seconds", "2", "--barge-in", "0.4", "--seed", "7"]);
        let output = run(&mut command);
        assert!(output.status.success(), "{protocol}: {}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report["turns"].as_u64().unwrap() >= 2, "{protocol}: {report}");
        for key in ["turns_failed", "continuity_errors", "audio_after_cancel"] {
            assert_eq!(report[key], 0, "{protocol}, {key}: {report}");
        }
        let first = |key: &str| report[key]["p50"].as_f64().unwrap();
        assert!(first("first_text_ms") > 0.0, "{protocol}: {report}");
        assert!(first("first_audio_ms") >= first("first_text_ms"), "{protocol}: {report}");
        let left = &report["engine"];
        assert_eq!((&left["contexts_end"], &left["kv_blocks_in_use_end"]), (&0.into(), &0.into()));
    }
}

#[test]
fn turns_that_come_by_chance_are_spoken_whole() {
    let mut command = dovecote(&repository(""));
    command.args(["bench", "--sessions", "4", "--seconds", "2", "--arrivals", "poisson:3"]);
    command.args(["--words-per-second", "0", "--json", "--seed", "2"]);
    let output = run(&mut command);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["turns"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["continuity_errors"], 0, "{report}");
}

#[test]
fn what_cannot_be_measured_is_told() {
    let cases = [
        (&["--url", "localhost"][..], 2, "no address"),
        (&["--url", "http://127.0.0.1:1"], 1, "127.0.0.1:1"),
        (&["--arrivals", "open"], 2, "poisson:RATE"),
        (&["--protocol", "cartesia", "--model", "m"], 2, "--model is for"),
        (&["--barge-in", "1.5"], 2, "0 to 1"),
        (&["--barge-in", "0.8", "--disconnects", "0.8"], 2, "more than 1"),
        (&["--texts", "not-there.txt"], 1, "not-there.txt"),
        (&["--bundle", "not-there"], 1, "not-there"),
    ];
    for (args, code, says) in cases {
        let output = run(dovecote(&repository("")).arg("bench").args(args));
        assert!(stderr(&output).contains(says), "{args:?}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{args:?}");
    }
}
