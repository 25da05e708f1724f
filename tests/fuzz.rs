//! The targets of `gateway::fuzz` on a stable compiler: every input of the corpus, and mutations of it.
//!
//! `DOVECOTE_FUZZ_ROUNDS` says how many mutations of each input, `DOVECOTE_FUZZ_SEED` which.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail its test")]

use std::path::{Path, PathBuf};

use gateway::chance::Chance;
use gateway::fuzz::TARGETS;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus");
/// Longest input, so that a round stays short.
const INPUT_BYTES_MAX: usize = 4_096;
/// Bytes that are more often trouble than others.
const TROUBLE: &[&[u8]] = &[
    b"\0",
    b"\xff",
    b"\\ud83d",
    b"\"",
    b"{",
    b"}",
    b"[",
    b"-1",
    b"1e999",
    b"null",
    b"18446744073709551616",
    b"<",
    b"&#",
    b"```",
    b"\n",
    b"\xf0\x9f",
    b"\xe2\x80\x8b",
];

/// Says which input broke a target.
struct Witness<'a> {
    target: &'static str,
    input: &'a [u8],
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} broke on {}", self.target, self.input.escape_ascii());
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(CORPUS).join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn mutate(input: &[u8], others: &[(PathBuf, Vec<u8>)], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        let to = at + chance.below(bytes.len() - at + 1).min(16);
        match chance.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            1 => _ = bytes.drain(at..to),
            2 => {
                let again = bytes[at..to].to_vec();
                bytes.splice(at..at, again);
            }
            3 => {
                let other = &others[chance.below(others.len())].1;
                let from = chance.below(other.len());
                let end = from + chance.below(other.len() - from + 1);
                bytes.splice(at..to, other[from..end].iter().copied());
            }
            4 => bytes.truncate(at),
            _ => _ = bytes.splice(at..to, TROUBLE[chance.below(TROUBLE.len())].iter().copied()),
        }
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

#[test]
fn no_bytes_break_a_door() {
    let (rounds, seed) = (setting("DOVECOTE_FUZZ_ROUNDS", 300), setting("DOVECOTE_FUZZ_SEED", 1));
    println!("DOVECOTE_FUZZ_ROUNDS={rounds} DOVECOTE_FUZZ_SEED={seed}");
    for &(target, enter) in TARGETS {
        let inputs = corpus(target);
        assert!(!inputs.is_empty(), "{target} has no corpus");
        let mut chance = Chance::new(seed);
        for (_, input) in &inputs {
            let witness = Witness { target, input };
            enter(witness.input);
            for _ in 0..rounds {
                let mutated = mutate(input, &inputs, &mut chance);
                let witness = Witness { target, input: &mutated };
                enter(witness.input);
            }
        }
    }
}

#[test]
fn every_door_has_a_target() {
    let manifest = std::fs::read_to_string(Path::new(CORPUS).join("../Cargo.toml")).unwrap();
    for (target, _) in TARGETS {
        assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
    }
}
