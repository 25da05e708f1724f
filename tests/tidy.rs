//! The rules of the house as code: who imports whom, what is pure, how long a file is, who may spawn and read the clock.
//!
//! Every rule has a test that it holds, and one that it catches what breaks it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where the crates lie.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const FILE_LINES_MAX: usize = 800;

/// What the gateway may name of the engine: its public face, and what its commands read.
const ENGINE_FACE: &[&str] = &[
    "CharEnd",
    "ContextId",
    "Error",
    "Event",
    "Events",
    "Failure",
    "Finish",
    "Handle",
    "Inspection",
    "Manner",
    "NewVoice",
    "Options",
    "Pcm",
    "Precision",
    "Progress",
    "Request",
    "Segment",
    "Segments",
    "Speech",
    "StageSize",
    "StartError",
    "Stats",
    "Summary",
    "Text",
    "Together",
    "Usage",
    "VoiceError",
    "VoiceSource",
    "answer",
    "bundle",
    "device",
    "inspect",
    "stats",
    "stub",
    "text",
    "together",
];
/// What the gateway may name of the codecs: transport formats, no network.
const CODECS_FACE: &[&str] = &[
    "flac",
    "g711",
    "incoming",
    "mp3",
    "ogg",
    "opus",
    "pauses",
    "pcm",
    "recording",
    "resample",
    "wav",
];

/// Crates that each crate must not name.
const FORBIDDEN_CRATES: &[(&str, &[&str])] = &[
    ("codecs/src/", &["engine", "gateway", "harness", "candle_core", "tokio", "axum"]),
    ("engine/src/", &["gateway", "harness", "tokio", "axum"]),
    ("gateway/src/", &["harness", "candle_core"]),
];

/// Files that decide, and leave doing to others.
const PURE: &[&str] = &[
    "codecs/src/window.rs",
    "engine/src/answer/",
    "engine/src/block_manager.rs",
    "engine/src/delay/",
    "engine/src/grammar.rs",
    "engine/src/guards.rs",
    "engine/src/layout/",
    "engine/src/memory.rs",
    "engine/src/phase/",
    "engine/src/pipeline/",
    "engine/src/scheduler.rs",
    "engine/src/sequence.rs",
    "engine/src/streams.rs",
    "engine/src/text/",
    "engine/src/turn/",
    "gateway/src/chat/",
    "gateway/src/foreign/",
    "gateway/src/protocol/",
];
/// What they must not name: whole crates, and rooms of the standard library.
const IMPURE_CRATES: &[&str] = &["tokio", "axum", "candle_core"];
const IMPURE_STD: &[&str] = &["fs", "net", "process", "thread"];

/// Who may start threads.
const SPAWNERS: &[&str] = &[
    "engine/src/handle.rs",
    // A pipe that is read can neither be awaited nor be broken off.
    "gateway/src/commands/say/live.rs",
];
/// Who may read the clock: the owners of the loops, the stopwatch, and the time of day in `pong`.
const CLOCKS: &[&str] = &[
    "engine/src/handle.rs",
    "gateway/src/commands/speed.rs",
    "gateway/src/driver/mod.rs",
    "gateway/src/server.rs",
    "tests/src/cases/session/clock.rs",
];

/// A source file: its path from the root, and its lines without comments.
struct Source {
    path: String,
    lines: Vec<String>,
    /// Lines up to its tests.
    code_lines: usize,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
        let lines: Vec<String> = text.lines().map(code).collect();
        let tests = lines.iter().position(|line| line.starts_with("#[cfg(test)]"));
        let code_lines = match tests {
            _ if path.ends_with("/tests.rs") || path.contains("/tests/") => 0,
            Some(tests) => tests,
            None => lines.len(),
        };
        Self { path: path.to_owned(), lines, code_lines }
    }

    /// The lines that are not tests, numbered from 1.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines[..self.code_lines].iter().enumerate().map(|(i, line)| (i + 1, line.as_str()))
    }

    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }

    fn breaks(&self, line: usize, rule: &'static str, found: impl Into<String>) -> Violation {
        Violation { path: self.path.clone(), line, rule, found: found.into() }
    }

    /// What the code names of a crate, `engine::{Handle, text::Passage}` as `Handle` and `text`, with the line.
    fn names_of(&self, krate: &str) -> Vec<(usize, String)> {
        let mut names = Vec::new();
        for (number, line) in self.code() {
            for rest in paths(line, krate) {
                let Some(group) = rest.strip_prefix('{') else {
                    names.push((number, first_word(rest)));
                    continue;
                };
                let after: Vec<&str> = self.lines[number..].iter().map(String::as_str).collect();
                let group = format!("{group} {}", after.join(" "));
                names.extend(members(&group).into_iter().map(|name| (number, name)));
            }
        }
        names
    }
}

/// A rule that does not hold somewhere.
struct Violation {
    path: String,
    line: usize,
    rule: &'static str,
    found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.found)
    }
}

/// What follows `krate::` where it is a path's beginning.
fn paths<'a>(line: &'a str, krate: &str) -> Vec<&'a str> {
    let start = format!("{krate}::");
    let begins = |at: &usize| {
        let before = line[..*at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':')
    };
    let found = line.match_indices(&start).map(|(at, _)| at).filter(begins);
    found.map(|at| &line[at + start.len()..]).collect()
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// First words of a group's members, up to the brace that closes it.
fn members(group: &str) -> Vec<String> {
    let (mut depth, mut members) = (0, vec![String::new()]);
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => members.push(String::new()),
            _ => {}
        }
        if let Some(member) = members.last_mut()
            && c != ','
        {
            member.push(c);
        }
    }
    let words = members.iter().map(|m| first_word(m.trim()));
    words.filter(|word| !word.is_empty() && word != "self").collect()
}

fn imports_go_one_way(file: &Source) -> Vec<Violation> {
    let rule = "R1, codecs <- engine <- gateway <- tests";
    let mut found = Vec::new();
    for (place, crates) in FORBIDDEN_CRATES.iter().filter(|(place, _)| file.is_in(&[place])) {
        for krate in *crates {
            let says = format!("{place} must not know {krate}");
            found.extend(file.names_of(krate).iter().map(|(n, _)| file.breaks(*n, rule, &says)));
        }
    }
    if file.is_in(&["gateway/src/"]) {
        for (krate, face) in [("engine", ENGINE_FACE), ("codecs", CODECS_FACE)] {
            for (number, name) in file.names_of(krate) {
                if !face.contains(&name.as_str()) {
                    let says = format!("`{krate}::{name}` is not for the gateway");
                    found.push(file.breaks(number, rule, says));
                }
            }
        }
    }
    found
}

fn pure_files_do_nothing(file: &Source) -> Vec<Violation> {
    if !file.is_in(PURE) {
        return Vec::new();
    }
    let rule = "R2, pure files do no IO";
    let mut found = Vec::new();
    for krate in IMPURE_CRATES {
        found.extend(file.names_of(krate).iter().map(|(n, _)| file.breaks(*n, rule, *krate)));
    }
    for (number, name) in file.names_of("std") {
        if IMPURE_STD.contains(&name.as_str()) {
            found.push(file.breaks(number, rule, format!("std::{name}")));
        }
    }
    found
}

fn files_are_short(file: &Source) -> Vec<Violation> {
    let lines = file.lines.len();
    if lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    let says = format!("{lines} lines, at most {FILE_LINES_MAX}: split it by meaning");
    vec![file.breaks(lines, "room plan", says)]
}

fn threads_and_clocks_have_owners(file: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in file.code().filter(|_| file.path.contains("/src/")) {
        let spawns = ["thread::spawn", "thread::Builder", "thread::scope"];
        if spawns.iter().any(|s| line.contains(s)) && !file.is_in(SPAWNERS) {
            found.push(file.breaks(number, "R4, threads are spawned in one place", line.trim()));
        }
        let clocks = ["Instant::now(", "SystemTime::now("];
        if clocks.iter().any(|c| line.contains(c)) && !file.is_in(CLOCKS) {
            found.push(file.breaks(number, "R3, time is an argument", line.trim()));
        }
    }
    found
}

/// The first block of commands is all that a newcomer has to type: one to set up, one to hear it speak.
fn readme_needs_two_commands(readme: &str) -> Result<(), String> {
    let mut lines = readme.lines().skip_while(|line| !line.starts_with("```"));
    lines.next();
    let block = lines.take_while(|line| !line.starts_with("```"));
    let commands: Vec<&str> =
        block.filter(|l| !l.trim().is_empty() && !l.starts_with('#')).collect();
    match commands[..] {
        [_, _] => Ok(()),
        _ => Err(format!("README.md: its first block has {} commands, not two", commands.len())),
    }
}

/// Files of a crate that say themselves what they are.
const PLAIN: &[&str] = &["lib", "main"];

/// Rooms and pages that the map names and that are not there, and rooms of the crates that it leaves out.
fn map_against(map: &str, exists: impl Fn(&str) -> bool, rooms: &[(&str, &str)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let (mut place, mut named) = ("", Vec::new());
    for line in map.lines() {
        if let Some((name, _)) = line.strip_prefix("**").and_then(|rest| rest.split_once("/**")) {
            place = name;
        } else if line.starts_with("## ") {
            place = "";
        }
        let item = line.strip_prefix("- `").filter(|_| !place.is_empty());
        let heads = item.and_then(|item| item.split(": ").next()).unwrap_or_default();
        // `a`, `b` (what they are): the names stand at even places, what is in brackets is no name.
        let heads = heads.split(" (").next().unwrap_or_default().split('`').step_by(2);
        for name in heads.filter(|name| !name.is_empty() && !name.ends_with(".js")) {
            let paths = [
                format!("{place}/src/{name}.rs"),
                format!("{place}/src/{name}/mod.rs"),
                format!("{place}/{name}.js"),
            ];
            if !paths.iter().any(|path| exists(path)) {
                wrong.push(format!("ARCHITECTURE.md: there is no {place}/{name}"));
            }
        }
        named.extend(line.split('`').skip(1).step_by(2).map(|name| (place, name)));
    }
    let pages = named
        .iter()
        .filter(|(_, name)| name.contains('/') && (name.ends_with(".rs") || name.ends_with(".md")));
    let lost = pages.filter(|(_, path)| !exists(path));
    wrong.extend(lost.map(|(_, path)| format!("ARCHITECTURE.md: there is no {path}")));
    let left_out = rooms.iter().filter(|(krate, room)| {
        let is_room =
            |(place, name): &(&str, &str)| place == krate && name.split('/').next() == Some(room);
        !PLAIN.contains(room) && !named.iter().any(is_room)
    });
    wrong.extend(left_out.map(|(krate, room)| format!("{krate}/src/{room} is not on the map")));
    wrong
}

fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    for krate in ["codecs", "engine", "gateway", "tests"] {
        collect(&Path::new(ROOT).join(krate), &mut files);
    }
    let read = |file: &PathBuf| {
        let path = file.strip_prefix(ROOT).expect("it was found there").display().to_string();
        Source::new(&path, &std::fs::read_to_string(file).expect("a source file is text"))
    };
    files.iter().map(read).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the crates lie beside this one") {
        let path = entry.expect("a folder can be listed").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

fn holds(rule: impl Fn(&Source) -> Vec<Violation>) {
    let sources = sources();
    assert!(sources.len() > 50, "only {} files found", sources.len());
    let found: Vec<String> = sources.iter().flat_map(rule).map(|v| v.to_string()).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn every_import_goes_the_right_way() {
    holds(imports_go_one_way);
}

#[test]
fn every_pure_file_is_pure() {
    holds(pure_files_do_nothing);
}

#[test]
fn every_file_is_short() {
    holds(files_are_short);
}

#[test]
fn every_thread_and_clock_has_its_owner() {
    holds(threads_and_clocks_have_owners);
}

#[test]
fn setting_up_takes_two_commands() {
    let readme = std::fs::read_to_string(Path::new(ROOT).join("README.md"));
    // Before there is a page for newcomers there is nothing to keep short.
    if let Ok(readme) = readme {
        assert_eq!(readme_needs_two_commands(&readme), Ok(()));
    }
}

#[test]
fn the_map_shows_the_house() {
    let root = Path::new(ROOT);
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the map is there");
    let mut rooms = Vec::new();
    for krate in ["codecs", "engine", "gateway"] {
        for entry in std::fs::read_dir(root.join(krate).join("src")).expect("a crate has sources") {
            let path = entry.expect("a folder can be listed").path();
            let stem = path.file_stem().expect("it was found by name").display().to_string();
            rooms.push((krate, stem));
        }
    }
    let rooms: Vec<(&str, &str)> = rooms.iter().map(|(krate, room)| (*krate, &**room)).collect();
    let wrong = map_against(&map, |path| root.join(path).exists(), &rooms);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn rooms_off_the_map_are_caught() {
    let map = "**codecs/** is\n- `wav`, `ogg`: files (`wav` first).\n- `dac` (a codec).\n## Words\n- `row`: no room; see `codecs/src/wav.rs`.";
    let exists = |path: &str| !path.contains("ogg") && !path.ends_with("mod.rs");
    let rooms = [("codecs", "wav"), ("codecs", "mp3"), ("codecs", "lib"), ("engine", "dac")];
    let wrong = map_against(map, exists, &rooms);
    assert_eq!(
        wrong,
        [
            "ARCHITECTURE.md: there is no codecs/ogg",
            "codecs/src/mp3 is not on the map",
            "engine/src/dac is not on the map",
        ]
    );
    assert_eq!(map_against(map, |_| false, &[]).len(), 4);
}

/// Lines that a rule finds in an invented file.
fn caught(rule: fn(&Source) -> Vec<Violation>, path: &str, text: &str) -> Vec<usize> {
    rule(&Source::new(path, text)).iter().map(|v| v.line).collect()
}

#[test]
fn imports_against_the_grain_are_caught() {
    let rule = imports_go_one_way;
    assert_eq!(caught(rule, "codecs/src/a.rs", "\nuse engine::Handle;"), [2]);
    assert_eq!(caught(rule, "engine/src/a.rs", "use tokio::spawn;\nuse crate::engine::Step;"), [1]);
    let group = "use engine::{\n    Handle, text::{Passage, whole},\n    scheduler::Budget,\n};";
    assert_eq!(caught(rule, "gateway/src/a.rs", group), [1]);
    assert_eq!(caught(rule, "gateway/src/a.rs", "let x = codecs::nano::Nano::load();"), [1]);
    assert_eq!(caught(rule, "gateway/src/a.rs", "use engine::{Handle, text::Passage};"), []);
    assert_eq!(caught(rule, "gateway/src/a.rs", "// engine::scheduler"), []);
}

#[test]
fn deeds_in_pure_files_are_caught() {
    let rule = pure_files_do_nothing;
    assert_eq!(caught(rule, "engine/src/text/a.rs", "\nuse std::fs::File;"), [2]);
    assert_eq!(caught(rule, "engine/src/text/a.rs", "use std::{fmt,\n  net::TcpStream};"), [1]);
    assert_eq!(caught(rule, "engine/src/scheduler.rs", "let t = candle_core::Tensor::new();"), [1]);
    assert_eq!(caught(rule, "engine/src/start.rs", "use std::fs::File;"), []);
    let tests = "use std::fmt;\n#[cfg(test)]\nmod tests { use std::fs; }";
    assert_eq!(caught(rule, "engine/src/text/a.rs", tests), []);
}

#[test]
fn stray_threads_clocks_and_long_files_are_caught() {
    let rule = threads_and_clocks_have_owners;
    assert_eq!(caught(rule, "engine/src/a.rs", "std::thread::spawn(f);\nInstant::now();"), [1, 2]);
    assert_eq!(caught(rule, "engine/src/handle.rs", "thread::Builder::new();"), []);
    assert_eq!(caught(files_are_short, "engine/src/a.rs", &"\n".repeat(801)), [801]);
    assert_eq!(caught(files_are_short, "engine/src/a.rs", &"\n".repeat(800)), []);
}

#[test]
fn a_third_command_in_the_readme_is_caught() {
    let two = "# Dovecote\n```sh\n./setup.sh\n# then\ncargo run\n```\n```sh\nmore\n```";
    assert_eq!(readme_needs_two_commands(two), Ok(()));
    assert!(readme_needs_two_commands(&two.replace("# then", "then")).is_err());
    assert!(readme_needs_two_commands("no block").is_err());
}
