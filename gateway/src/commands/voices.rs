//! `dovecote voices`: the voices of the bundles, and what a user should know of each.

use std::fmt::Write;

use engine::bundle::speech::SpeechBundle;
use engine::bundle::{Bundle, Opened, Voice, VoicePrompt};
use serde_json::{Value, json};

use super::{CommandError, licence, licence_line, open_bundles, print};
use crate::config::Config;

/// Frames of codes in a second.
const FRAME_RATE: f64 = 12.5;

/// Arguments of `dovecote voices`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the voices of each bundle on standard output.
///
/// # Errors
/// A bundle that is not to be had.
pub fn run(args: &Args, config: &Config) -> Result<(), CommandError> {
    let bundles = open_bundles(config)?;
    if args.json {
        let models: Vec<Value> = bundles.iter().map(told_as_json).collect();
        // One is told alone; several are a list.
        return match <[Value; 1]>::try_from(models) {
            Ok([model]) => print(&format!("{model:#}\n")),
            Err(models) => print(&format!("{:#}\n", json!({"models": models}))),
        };
    }
    let texts: Vec<String> = bundles.iter().map(told_as_text).collect();
    print(&texts.join("\n"))
}

fn told_as_json(opened: &Opened) -> Value {
    match opened {
        Opened::Voice(bundle) => as_json(bundle),
        Opened::Speech(bundle) => speech_as_json(bundle),
    }
}

fn told_as_text(opened: &Opened) -> String {
    match opened {
        Opened::Voice(bundle) => as_text(bundle),
        Opened::Speech(bundle) => speech_as_text(bundle),
    }
}

fn speech_as_json(bundle: &SpeechBundle) -> Value {
    let manifest = &bundle.manifest;
    let voices = speech_voices(bundle);
    let voice = |(name, seconds): (&str, Option<f64>)| json!({"name": name, "prompt_s": seconds});
    json!({
        "model": manifest.name,
        "kind": manifest.kind.name(),
        "voices": voices.map(voice).collect::<Vec<_>>(),
        "license": manifest.license,
        "notes": manifest.notes,
    })
}

fn speech_as_text(bundle: &SpeechBundle) -> String {
    let manifest = &bundle.manifest;
    let mut text = format!("{}: its own voice\n", manifest.name);
    for (name, seconds) in speech_voices(bundle) {
        let prompt = seconds.map_or(String::new(), |seconds| format!("  prompt of {seconds:.1} s"));
        let _ = writeln!(text, "{name}{prompt}");
    }
    for note in &manifest.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let _ = writeln!(text, "{}", licence(&manifest.name, &manifest.license));
    text
}

/// Names, and how long the codes of each are where a codec says it.
fn speech_voices(bundle: &SpeechBundle) -> impl Iterator<Item = (&str, Option<f64>)> {
    bundle.voices.iter().map(|voice| {
        let frames = voice.codes.first().map_or(0, Vec::len) as f64;
        (voice.name.as_str(), bundle.codec.map(|codec| frames / codec.frames_per_second()))
    })
}

fn as_json(bundle: &Bundle) -> Value {
    let manifest = &bundle.manifest;
    let voice = |voice: &Voice| {
        json!({
            "name": voice.name,
            "language": voice.language.to_string(),
            "prompt_s": prompt_seconds(voice),
            "default": voice.name == manifest.default_voice,
        })
    };
    json!({
        "model": manifest.name,
        "voices": bundle.voices.iter().map(voice).collect::<Vec<_>>(),
        "languages": names(&manifest.languages),
        "styles": names(&manifest.styles),
        "default_style": manifest.default_style.to_string(),
        "license": manifest.license,
        "notes": manifest.notes,
    })
}

fn as_text(bundle: &Bundle) -> String {
    let manifest = &bundle.manifest;
    let mut text = String::new();
    for voice in &bundle.voices {
        let default = if voice.name == manifest.default_voice { "  (default)" } else { "" };
        let prompt = match (&voice.prompt, prompt_seconds(voice)) {
            (VoicePrompt::Audio(_), _) => "from a recording".to_owned(),
            (VoicePrompt::Codes(_), Some(seconds)) => format!("prompt of {seconds:.1} s"),
            (VoicePrompt::Codes(_), None) => "no prompt".to_owned(),
        };
        let _ = writeln!(text, "{}  {}  {prompt}{default}", voice.name, voice.language);
    }
    let _ = writeln!(text, "languages: {}", names(&manifest.languages).join(", "));
    let styles = names(&manifest.styles).join(", ");
    let _ = writeln!(text, "styles: {styles} (default {})", manifest.default_style);
    for note in &manifest.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let _ = writeln!(text, "{}", licence_line(bundle));
    text
}

/// Seconds of codes that the first stage reads; none for a voice without prompt, or one that is still a recording.
fn prompt_seconds(voice: &Voice) -> Option<f64> {
    match &voice.prompt {
        VoicePrompt::Codes(prompt) => prompt.rows.first().map(|row| row.len() as f64 / FRAME_RATE),
        VoicePrompt::Audio(_) => None,
    }
}

fn names<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(T::to_string).collect()
}
