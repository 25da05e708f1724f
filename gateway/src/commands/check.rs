//! `dovecote check`: loads a bundle as the engine would, and says what is in it or what is wrong with it.

mod speech;

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use engine::bundle::{Bundle, Codec, Opened};
use engine::{Inspection, StartError, inspect};
use serde_json::{Value, json};

use super::progress::Progress;
use super::text::lexicons;
use super::{CommandError, licence, licence_line, open_any_bundle, print, tell};
use crate::config::Config;
use crate::locks::Locks;

/// Arguments of `dovecote check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The bundle, or a folder of the TontaubeV1 release [default: as --bundle]
    path: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the report on standard output, and the bundle's licence on standard error.
///
/// # Errors
/// What is wrong with the bundle, by file and field or tensor.
pub fn run(args: &Args, config: &Config) -> Result<(), CommandError> {
    // The settings hold, else there would be no config; what they name must be there too.
    Locks::new(&config.gateway)?;
    lexicons(&config.gateway.lexicon)?;
    let path = args.path.clone().or_else(|| config.bundle.clone());
    let progress = Progress::loading(io::stderr().is_terminal());
    let mut loaded = |p: engine::Progress| progress.loaded(p.loaded, p.total);
    match open_any_bundle(&Config { bundle: path, ..config.clone() })? {
        Opened::Voice(bundle) => {
            tell(&licence_line(&bundle));
            let found = inspect(&bundle, &mut loaded)?;
            progress.finish();
            let gpus = gpus();
            report(
                args.json,
                || as_json(&bundle, &found, &gpus),
                || as_text(&bundle, &found, &gpus),
            )
        }
        Opened::Speech(bundle) => {
            tell(&licence(&bundle.manifest.name, &bundle.manifest.license));
            let found = bundle.inspect(&mut loaded).map_err(StartError::from)?;
            progress.finish();
            report(
                args.json,
                || speech::as_json(&bundle, &found),
                || speech::as_text(&bundle, &found),
            )
        }
    }
}

fn report(
    json: bool,
    as_json: impl FnOnce() -> Value,
    as_text: impl FnOnce() -> String,
) -> Result<(), CommandError> {
    if json { print(&format!("{:#}\n", as_json())) } else { print(&as_text()) }
}

/// The GPUs in words, or why there are none; nothing in a build that cannot use any.
type Gpus = Option<Result<Vec<String>, String>>;

#[cfg(feature = "cuda")]
fn gpus() -> Gpus {
    let name = |gpu: engine::device::Gpu| format!("{}, {}", gpu.name, mib(gpu.memory_bytes));
    let found = engine::device::gpus().map(|gpus| gpus.into_iter().map(name).collect());
    Some(found.map_err(|e| e.to_string()))
}

#[cfg(not(feature = "cuda"))]
fn gpus() -> Gpus {
    None
}

fn as_json(bundle: &Bundle, found: &Inspection, gpus: &Gpus) -> Value {
    let stages = bundle.stages.iter().zip(&found.stages).map(|(stage, size)| {
        json!({
            "folder": stage.folder.display().to_string(),
            "layers": size.layers,
            "parameters": size.parameters,
            "embedding_rows": size.embedding_rows,
            "kept_embedding_rows": size.kept_rows,
        })
    });
    json!({
        "model": bundle.manifest.name,
        "root": bundle.root.display().to_string(),
        "stages": stages.collect::<Vec<_>>(),
        "codec": codec_name(&bundle.codec),
        "makes_voices": found.hears,
        "voices": bundle.voices.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(),
        "window_kv_bytes": found.window_bytes,
        "license": bundle.manifest.license,
        "gpus": gpus.as_ref().map(|g| g.clone().unwrap_or_default()),
        "gpu_error": gpus.as_ref().and_then(|g| g.clone().err()),
    })
}

fn as_text(bundle: &Bundle, found: &Inspection, gpus: &Gpus) -> String {
    let mut text = format!("{} ({})\n", bundle.manifest.name, bundle.root.display());
    for (name, size) in bundle.manifest.stages.iter().zip(&found.stages) {
        let (kept, rows) = (size.kept_rows, size.embedding_rows);
        let millions = size.parameters as f64 / 1e6;
        let _ = writeln!(
            text,
            "{name}: {} layers, {millions:.1} million parameters, {kept} of {rows} embedding rows kept",
            size.layers
        );
    }
    let hears = if found.hears { ", makes voices from recordings" } else { "" };
    let _ = writeln!(text, "codec: {}{hears}", codec_name(&bundle.codec));
    let voices: Vec<&str> = bundle.voices.iter().map(|v| v.name.as_str()).collect();
    let _ = writeln!(text, "voices: {}", voices.join(", "));
    let _ = writeln!(text, "key/value memory of the longest window: {}", mib(found.window_bytes));
    match gpus {
        None => {}
        Some(Err(reason)) => _ = writeln!(text, "GPUs: {reason}"),
        Some(Ok(names)) if names.is_empty() => _ = writeln!(text, "GPUs: none"),
        Some(Ok(names)) => _ = writeln!(text, "GPUs: {}", names.join("; ")),
    }
    text
}

fn codec_name(codec: &Codec) -> &'static str {
    match codec {
        Codec::Nano { .. } => "nano",
        Codec::DualCodecVibeVoice { .. } => "dualcodec+vibevoice",
    }
}

fn mib(bytes: usize) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}
