//! `dovecote text`: how lines of text are spoken, without speaking them.

use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};

use engine::bundle::Manifest;
use engine::text::{self, Conventions, Lexicon, Locale, TextOptions};
use serde_json::json;

use super::{CommandError, open_voice};
use crate::config::{self, Config};
use crate::lexicon;

/// Longest line, in bytes: far above the text of any context.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Arguments of `dovecote text`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to put into words, line by line [default: standard input]
    text: Option<String>,
    /// Language of the lines: a name, or a code like de [default: that of the voice]
    #[arg(long)]
    language: Option<String>,
    /// How numbers and dates are written, like en-GB [default: as in the language]
    #[arg(long)]
    locale: Option<String>,
    /// JSON file of words with a form of their own, {"nginx": "engine x"} or a list of {word, spoken} and {pattern, spoken}
    #[arg(long, value_name = "FILE")]
    lexicon: Option<PathBuf>,
    /// Print JSON lines {raw, spoken, map}: for each spoken character, where the raw text begins and ends that it stands for
    #[arg(long)]
    map: bool,
}

/// Prints each line of a text, or of standard input as soon as it is there, as it is spoken.
///
/// # Errors
/// An unknown language or locale, a file of words that cannot be used, a line that is too long or no UTF-8.
pub fn run(args: &Args, config: &Config) -> Result<(), CommandError> {
    let options = options(args, config)?;
    match &args.text {
        Some(text) => print_all(text.as_bytes(), args.map, &options),
        None => print_all(io::stdin().lock(), args.map, &options),
    }
}

fn print_all(
    mut lines: impl BufRead,
    with_map: bool,
    options: &TextOptions,
) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    let stream = Path::new("-");
    loop {
        let mut line = String::new();
        let read = lines.by_ref().take(LINE_BYTES_MAX).read_line(&mut line);
        if read.map_err(CommandError::io(stream))? == 0 {
            return Ok(());
        }
        if !line.ends_with('\n') && line.len() as u64 == LINE_BYTES_MAX {
            return Err(CommandError::Usage(format!(
                "a line has more than {LINE_BYTES_MAX} bytes"
            )));
        }
        let raw = line.trim_end_matches(['\n', '\r']);
        let spoken = if with_map { mapped(raw, options) } else { spoken(raw, options) };
        writeln!(out, "{spoken}").and_then(|()| out.flush()).map_err(CommandError::io(stream))?;
    }
}

fn options(args: &Args, config: &Config) -> Result<TextOptions, CommandError> {
    let manifest = match open_voice(config) {
        Ok(bundle) => bundle.map(|bundle| bundle.manifest),
        Err(CommandError::NoBundle { .. }) => None,
        Err(other) => return Err(other),
    };
    let usage = |e: &dyn std::fmt::Display| CommandError::Usage(e.to_string());
    let locale = match (&args.locale, &args.language) {
        (Some(tag), _) | (None, Some(tag)) => tag.parse::<Locale>().map_err(|e| usage(&e))?,
        (None, None) => manifest.as_ref().map_or_else(Locale::default, voice_locale),
    };
    let conventions = manifest.map_or(Conventions::DEFAULT, |manifest| manifest.spoken);
    let lexicon = words(args.lexicon.as_deref(), config)?;
    Ok(TextOptions { locale: Some(locale), conventions, lexicon, ..TextOptions::default() })
}

/// The words of a file, if one is named.
pub(super) fn words(file: Option<&Path>, config: &Config) -> Result<Lexicon, CommandError> {
    let Some(file) = file else { return Ok(Lexicon::default()) };
    let limits = config.gateway.lexicon.limits();
    lexicon::read(file, &limits).map_err(|e| CommandError::Usage(e.to_string()))
}

/// Whether the lists that the settings name are to be had.
pub(super) fn lexicons(settings: &config::Lexicon) -> Result<(), CommandError> {
    let read = lexicon::Lexicons::open(settings);
    read.map(drop).map_err(|e| CommandError::Usage(e.to_string()))
}

fn voice_locale(manifest: &Manifest) -> Locale {
    manifest.languages.first().map_or_else(Locale::default, |&language| Locale::of(language))
}

/// The spoken line, without the final period that nobody wrote.
fn spoken(raw: &str, options: &TextOptions) -> String {
    text::spoken(raw, options).iter().filter(|s| s.from < s.to).map(|s| s.ch).collect()
}

fn mapped(raw: &str, options: &TextOptions) -> String {
    let spoken = text::spoken(raw, options);
    let spoken: Vec<_> = spoken.iter().filter(|s| s.from < s.to).collect();
    let line: String = spoken.iter().map(|s| s.ch).collect();
    let map: Vec<[u32; 2]> = spoken.iter().map(|s| [s.from, s.to]).collect();
    json!({"raw": raw, "spoken": line, "map": map}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_mapped_character_by_character() {
        let line = mapped("5 km", &TextOptions::default());
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["spoken"], "five kilometers");
        assert_eq!(line["map"], json!(vec![[0, 4]; 15]));
        assert_eq!(spoken("", &TextOptions::default()), "");
        assert_eq!(spoken("It is 5.", &TextOptions::default()), "It is five.");
    }
}
