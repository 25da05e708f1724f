//! `dovecote voices`: the voices of a bundle, and what a user should know of it.

use std::fmt::Write;

use engine::bundle::{Bundle, Voice, VoicePrompt};
use serde_json::{Value, json};

use super::{CommandError, licence_line, open_bundle, print};
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

/// Prints the voices on standard output.
///
/// # Errors
/// A bundle that is not to be had.
pub fn run(args: &Args, config: &Config) -> Result<(), CommandError> {
    let bundle = open_bundle(config)?;
    if args.json { print(&format!("{:#}\n", as_json(&bundle))) } else { print(&as_text(&bundle)) }
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
