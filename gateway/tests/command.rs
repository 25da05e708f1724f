//! The `dovecote` command from the outside: arguments and pipes in, sound, messages and exit codes out.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod common;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Output, Stdio};

use codecs::ogg::OggOpus;
use codecs::wav::Wav;
use common::{dovecote, repository, run, stderr};
use serde_json::Value;
use tempfile::TempDir;

const SENTENCE: &str = "Hello there, how can I help you today?";
const ENGINE_RATE: usize = 24_000;
/// What an MP3 has beyond its sound: the encoder's delay, and silence up to full frames; at 8 kHz some 0.3 s.
#[cfg(feature = "mp3")]
const MP3_PADDING_S: f64 = 0.5;
/// The sentence has 38 characters, and the bundle's voice says 8 to 28 in a second; pauses at both ends are given a second.
const SENTENCE_S: std::ops::Range<f32> = 38.0 / 28.0..38.0 / 8.0 + 1.0;

fn say(folder: &Path, arguments: &[&str]) -> Output {
    let output = run(dovecote(folder).arg("say").args(arguments));
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

fn wav(file: &Path) -> Wav {
    Wav::read(&std::fs::read(file).unwrap()).unwrap()
}

#[test]
fn a_sentence_sounds_the_same_in_a_file_and_in_a_pipe_and_twice() {
    let folder = TempDir::new().unwrap();
    say(folder.path(), &[SENTENCE]);
    let file = wav(&folder.path().join("out.wav"));
    let seconds = file.samples.len() as f32 / ENGINE_RATE as f32;
    assert_eq!(file.sample_rate as usize, ENGINE_RATE);
    assert!(SENTENCE_S.contains(&seconds), "{seconds} s");
    assert!(file.samples.iter().any(|s| s.abs() > 0.1), "it is silent");

    let pipe = say(folder.path(), &[SENTENCE, "-o", "-"]).stdout;
    assert_eq!(pipe[4..8], [0xff; 4], "a pipe's length is not known beforehand");
    assert!(Wav::read(&pipe).unwrap() == file);
    assert!(pipe == say(folder.path(), &[SENTENCE, "-o", "-"]).stdout);
    assert!(pipe != say(folder.path(), &[SENTENCE, "-o", "-", "--seed", "1"]).stdout);
}

#[test]
fn every_format_holds_the_same_sound_and_says_that_it_is_synthetic() {
    let folder = TempDir::new().unwrap();
    say(folder.path(), &[SENTENCE, "-o", "a.wav"]);
    say(folder.path(), &[SENTENCE, "-o", "a.ogg"]);
    say(folder.path(), &[SENTENCE, "-o", "a.pcm", "--sample-rate", "8000"]);
    let bytes = std::fs::read(folder.path().join("a.wav")).unwrap();
    assert!(String::from_utf8_lossy(&bytes[..200]).contains("Synthetic speech"));
    let samples = Wav::read(&bytes).unwrap().samples.len();

    let ogg = OggOpus::read(&std::fs::read(folder.path().join("a.ogg")).unwrap()).unwrap();
    assert!(ogg.comments.iter().any(|(_, text)| text.contains("Synthetic speech")));
    assert_eq!(ogg.decode(ENGINE_RATE as u32, 10 * ENGINE_RATE).unwrap().len(), samples);
    let pcm = std::fs::read(folder.path().join("a.pcm")).unwrap();
    assert_eq!(pcm.len(), 2 * samples.div_ceil(3));

    say(folder.path(), &[SENTENCE, "-o", "a.FLAC", "--sample-rate", "48000"]);
    let bytes = std::fs::read(folder.path().join("a.FLAC")).unwrap();
    assert!(String::from_utf8_lossy(&bytes[..200]).contains("Synthetic speech"));
    let flac = codecs::flac::read(&bytes, 60.0).unwrap();
    assert_eq!((flac.sample_rate, flac.samples.len()), (48_000, 2 * samples));
}

#[cfg(feature = "mp3")]
#[test]
fn mp3_is_written_at_every_rate() {
    let folder = TempDir::new().unwrap();
    say(folder.path(), &["Hello.", "-o", "a.wav"]);
    let seconds = wav(&folder.path().join("a.wav")).samples.len() as f64 / ENGINE_RATE as f64;
    for rate in ["8000", "24000", "44100"] {
        say(folder.path(), &["Hello.", "-o", "a.mp3", "--sample-rate", rate]);
        let mp3 = codecs::mp3::read(&std::fs::read(folder.path().join("a.mp3")).unwrap(), 60.0);
        let mp3 = mp3.unwrap();
        let written = mp3.samples.len() as f64 / f64::from(mp3.sample_rate);
        assert_eq!(mp3.sample_rate.to_string(), rate);
        assert!((seconds..seconds + MP3_PADDING_S).contains(&written), "{written} s");
    }
}

#[test]
fn text_comes_from_a_file_or_from_standard_input() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("text.txt"), "Good morning.").unwrap();
    let expected = say(folder.path(), &["Good morning.", "-o", "-"]).stdout;
    assert!(say(folder.path(), &["--file", "text.txt", "-o", "-"]).stdout == expected);
    let text = std::fs::File::open(folder.path().join("text.txt")).unwrap();
    let piped = run(dovecote(folder.path()).args(["say", "-o", "-"]).stdin(text));
    assert!(piped.stdout == expected);
}

#[test]
fn streamed_text_is_heard_before_it_has_ended() {
    let folder = TempDir::new().unwrap();
    let mut command = dovecote(folder.path());
    command.args(["say", "--stream-from", "-", "-o", "-", "--format", "pcm"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut text = child.stdin.take().unwrap();
    let mut sound = child.stdout.take().unwrap();
    // The first piece ends inside a character.
    text.write_all(b"We meet in the caf\xc3").unwrap();
    text.write_all(b"\xa9 at noon. And then we ").unwrap();
    let mut first = [0; ENGINE_RATE / 5];
    sound.read_exact(&mut first).unwrap();
    text.write_all(b"go for a walk.").unwrap();
    drop(text);
    let mut rest = Vec::new();
    sound.read_to_end(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(rest.len() > ENGINE_RATE, "{} bytes", rest.len());
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let folder = TempDir::new().unwrap();
    let text = SENTENCE.repeat(10);
    let mut child = dovecote(folder.path())
        .args(["say", &text, "-o", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut sound = child.stdout.take().unwrap();
    sound.read_exact(&mut [0; 100]).unwrap();
    drop(sound);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
}

#[test]
fn nothing_to_say_is_an_empty_file() {
    let folder = TempDir::new().unwrap();
    for text in ["", "  \n", "...", "\u{200b}"] {
        say(folder.path(), &[text]);
        assert!(wav(&folder.path().join("out.wav")).samples.is_empty(), "{text:?}");
    }
    say(folder.path(), &["", "-o", "a.ogg"]);
    let ogg = OggOpus::read(&std::fs::read(folder.path().join("a.ogg")).unwrap()).unwrap();
    assert!(ogg.decode(48_000, 10).unwrap().is_empty());
}

#[test]
fn a_batch_says_each_line_as_if_alone() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("lines.txt"), "Yes, of course.\n\nSee you soon.\n").unwrap();
    say(folder.path(), &["--batch", "lines.txt", "--out-dir", "spoken"]);
    let spoken = folder.path().join("spoken");
    assert_eq!(std::fs::read_dir(&spoken).unwrap().count(), 2);
    for (name, text) in [("0000.wav", "Yes, of course."), ("0001.wav", "See you soon.")] {
        say(folder.path(), &[text]);
        assert!(wav(&spoken.join(name)) == wav(&folder.path().join("out.wav")), "{name}");
    }
}

/// Bytes of the committed cases that are about encodings, one text each.
fn hostile_texts() -> Vec<Vec<u8>> {
    let bytes = |token: &Value| match token["hex"].as_str() {
        Some(hex) => (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
            .collect(),
        None => token["t"].as_str().unwrap_or_default().as_bytes().to_vec(),
    };
    std::fs::read_to_string(repository("tests/fixtures/text_cases.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|case| case["theme"] == "encoding")
        .map(|case| case["tokens"].as_array().unwrap().iter().flat_map(bytes).collect())
        .collect()
}

#[test]
fn hostile_text_is_spoken_without_error() {
    let folder = TempDir::new().unwrap();
    let mut texts = hostile_texts();
    assert!(texts.len() >= 5);
    texts.push(b"Bytes \xff\xfe\xf0\x9f that are no text, and a broken end \xe2\x82".to_vec());
    let mut lines = Vec::new();
    for text in &texts {
        // The beginning is as hostile as the whole, and sooner spoken; the cut may be inside a character.
        lines.extend(text.iter().filter(|b| **b != b'\n').take(150));
        lines.push(b'\n');
    }
    std::fs::write(folder.path().join("lines.txt"), lines).unwrap();
    let output = say(folder.path(), &["--batch", "lines.txt", "--out-dir", "."]);
    assert_eq!(stderr(&output), "");
    for index in 0..texts.len() {
        wav(&folder.path().join(format!("{index:04}.wav")));
    }
    assert!(!wav(&folder.path().join("0000.wav")).samples.is_empty());
}

#[test]
fn speed_is_reported_as_one_json_line() {
    let folder = TempDir::new().unwrap();
    let output = say(folder.path(), &[SENTENCE, "--speed-report", "--threads", "1"]);
    let report: Value = serde_json::from_str(stderr(&output).trim()).unwrap();
    let number = |key: &str| report[key].as_f64().unwrap();
    let samples = wav(&folder.path().join("out.wav")).samples.len();
    // Figures are rounded to four decimals.
    assert!((number("audio_s") - samples as f64 / ENGINE_RATE as f64).abs() < 1e-4);
    assert!(number("cpu_s") > 0.0 && number("first_audio_ms") > 0.0);
    assert!(number("first_audio_ms") / 1e3 <= number("wall_s"));
    assert!((number("real_time_factor") - number("wall_s") / number("audio_s")).abs() < 1e-3);
    assert_eq!(report["threads"], 1);
}

#[test]
fn what_cannot_be_had_is_a_usage_error_that_says_what_can() {
    let folder = TempDir::new().unwrap();
    let cases: [(&[&str], &[&str]); 9] = [
        (&["say", "a", "--voice", "nobody"], &["voice", "nobody", "nano"]),
        (&["say", "a", "--language", "klingon"], &["language", "klingon", "english"]),
        (&["say", "a", "--style", "loud"], &["style", "loud", "agentic"]),
        (&["say", "a", "--cfg", "99"], &["guidance", "99"]),
        (&["say", "a", "--first-frames", "7"], &["first_frames", "7"]),
        (&["say", "a", "-o", "a.aac"], &["a.aac", "\"aac\"", "flac, pcm"]),
        (&["say", "a", "--format", "aac"], &["aac", "wav, ogg, "]),
        (&["say", "a", "-o", "a.ogg", "--sample-rate", "44100"], &["44100", "48000"]),
        (&["say", "--batch", "lines.txt"], &["--out-dir"]),
    ];
    for (arguments, says) in cases {
        let output = run(dovecote(folder.path()).args(arguments));
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(says.iter().all(|s| text.contains(s)), "{arguments:?}: {text}");
        assert!(!folder.path().join("out.wav").exists(), "{arguments:?}: a file of nothing");
    }
}

#[test]
fn a_text_is_put_into_words_from_an_argument_or_from_standard_input() {
    let folder = TempDir::new().unwrap();
    let output = run(dovecote(folder.path()).args(["text", "--locale", "en", "It is 5.\n5 km"]));
    let words = "It is five.\nfive kilometers\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), words, "{}", stderr(&output));

    let mut command = dovecote(folder.path());
    command.args(["text", "--locale", "en"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"It is 5.\n5 km\n").unwrap();
    assert_eq!(String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout), words);
}

#[test]
fn voices_are_listed_with_the_licence() {
    let folder = TempDir::new().unwrap();
    let output = run(dovecote(folder.path()).args(["voices", "--json"]));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list["voices"][0]["name"], "nano");
    assert_eq!(list["styles"][0], "conversational");
    let text = run(dovecote(folder.path()).arg("voices")).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("nano") && text.contains(list["license"].as_str().unwrap()), "{text}");
}

#[test]
fn settings_come_from_flags_then_environment_then_file() {
    let folder = TempDir::new().unwrap();
    let bundle = |file: &str, variable: Option<&str>, flag: Option<&str>| {
        std::fs::write(folder.path().join("dovecote.toml"), file).unwrap();
        let mut command = dovecote(folder.path());
        command.arg("voices").envs(variable.map(|v| ("DOVECOTE_BUNDLE", v)));
        stderr(&run(command.args(flag.map(|f| format!("--bundle={f}")))))
    };
    let file = "bundle = \"from-file\"";
    assert!(bundle(file, None, None).contains("from-file"));
    assert!(bundle(file, Some("from-environment"), None).contains("from-environment"));
    assert!(bundle(file, Some("from-environment"), Some("from-flag")).contains("from-flag"));
    let unknown = bundle("bundel = \"x\"", None, None);
    assert!(unknown.contains("dovecote.toml") && unknown.contains("bundel"), "{unknown}");
}

#[test]
fn a_speech_language_model_speaks_a_text_or_answers_it() {
    /// A frame of the tiny models, in samples of the engine.
    const FRAME: usize = 480;
    let folder = TempDir::new().unwrap();
    let bundle = |name: &str| {
        repository(&format!("tests/fixtures/bundles/{name}")).to_string_lossy().into_owned()
    };
    let (bagpiper, opuslm) = (bundle("bagpiper"), bundle("opuslm"));
    let spoken = say(folder.path(), &["hello", "--bundle", &opuslm, "-o", "spoken.wav"]);
    assert_eq!(stderr(&spoken), "", "a text that is only spoken is not written");
    let sound = wav(&folder.path().join("spoken.wav")).samples;
    assert!(!sound.is_empty() && sound.len().is_multiple_of(FRAME), "{} samples", sound.len());
    let answer = |arguments: &[&str]| {
        let all = ["hello", "--bundle", &bagpiper, "-o", "-"];
        let output = say(folder.path(), &[&all, arguments].concat());
        (stderr(&output), output.stdout)
    };
    let (text, sound) = answer(&[]);
    assert!(!text.trim().is_empty(), "the model's text is shown");
    assert!(!Wav::read(&sound).unwrap().samples.is_empty());
    assert_eq!((&text, &sound), (&answer(&["--do", "answer"]).0, &answer(&[]).1));
    assert_ne!(text, answer(&["--seed", "1"]).0);
    for refused in [&["--style", "calm"][..], &["--cfg", "11"], &["--voice", "nobody"]] {
        let all = [&["say", "hello", "--bundle", &bagpiper][..], refused].concat();
        let output = run(dovecote(folder.path()).args(all));
        assert_eq!(output.status.code(), Some(2), "{refused:?}: {}", stderr(&output));
    }
}

#[test]
fn of_several_bundles_the_one_that_is_meant_is_taken() {
    let folder = TempDir::new().unwrap();
    let fixture = |name: &str| {
        repository(&format!("tests/fixtures/bundles/{name}")).to_string_lossy().into_owned()
    };
    let nano = repository("voices/nano").to_string_lossy().into_owned();
    let (opuslm, bagpiper) = (fixture("opuslm-hearing"), fixture("bagpiper"));
    let both = ["--bundle", opuslm.as_str(), "--bundle", bagpiper.as_str()];
    let answered = |model: &[&str]| {
        let all = [&["hello", "--do", "answer", "-o", "-"], &both[..], model].concat();
        stderr(&say(folder.path(), &all))
    };
    assert_eq!(answered(&[]), answered(&["--model", "opuslm-hearing"]));
    assert_ne!(answered(&[]), answered(&["--model", "bagpiper-tiny"]));
    let all = [&["say", "hello", "--model", "nobody"], &both[..]].concat();
    let output = run(dovecote(folder.path()).args(all));
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(told.contains("is none of opuslm-hearing, bagpiper-tiny"), "{told}");

    let all = [&["voices", "--json"], &both[..], &["--bundle", nano.as_str()]].concat();
    let list = run(dovecote(folder.path()).args(&all)).stdout;
    let list: Value = serde_json::from_slice(&list).unwrap();
    let names: Vec<&str> =
        list["models"].as_array().unwrap().iter().map(|m| m["model"].as_str().unwrap()).collect();
    assert_eq!(names, ["opuslm-hearing", "bagpiper-tiny", "nano"]);
    assert_eq!(list["models"][0]["voices"][0]["name"], "ann");
    assert_eq!(list["models"][0]["voices"][0]["prompt_s"], 0.24);
    // A text is put into words for the one that speaks texts.
    let mut text = dovecote(folder.path());
    text.args(["text", "--bundle", &opuslm, "--bundle", &nano]);
    let (piped, spoken) = (folder.path().join("in.txt"), |command: &mut std::process::Command| {
        String::from_utf8(run(command).stdout).unwrap()
    });
    std::fs::write(&piped, "5 km\n").unwrap();
    text.stdin(std::fs::File::open(&piped).unwrap());
    assert_eq!(spoken(&mut text), "five kilometers\n");
}
