//! `dovecote check`: loads bundles as the engine would, and says what is in each or what is wrong with it, and whether they can be
//! served together.

mod speech;

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use engine::bundle::{self, Bundle, Codec, Opened};
use engine::{Inspection, Options, StartError, Together, inspect, together};
use serde_json::{Value, json};

use super::progress::Progress;
use super::text::lexicons;
use super::{CommandError, bundle_roots, licence, print, tell};
use crate::config::Config;
use crate::security::Security;

/// Arguments of `dovecote check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Bundles, or folders of the TontaubeV1 release [default: as --bundle, all of them]
    #[arg(value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the report on standard output, and the bundles' licences on standard error.
///
/// # Errors
/// What is wrong with the bundle, by file and field or tensor; of several, how much is, when each fault has been told.
pub fn run(args: &Args, config: &Config) -> Result<(), CommandError> {
    // The settings hold, else there would be no config; what they name must be there too.
    Security::new(&config.gateway)?;
    lexicons(&config.gateway.lexicon)?;
    let roots = if args.paths.is_empty() { bundle_roots(config)? } else { args.paths.clone() };
    if let [root] = &roots[..] {
        let (_, report) = check(root)?;
        return if args.json {
            print(&format!("{:#}\n", report.json))
        } else {
            print(&report.text)
        };
    }
    check_all(&roots, &config.engine, args.json)
}

/// What is in a bundle, for programs and for people.
struct Report {
    json: Value,
    text: String,
}

/// Loads a bundle.
fn check(root: &Path) -> Result<(Opened, Report), StartError> {
    let opened = bundle::open(root)?;
    tell(&licence(opened.name(), opened.license()));
    let progress = Progress::loading(io::stderr().is_terminal());
    let mut loaded = |p: engine::Progress| progress.loaded(p.loaded, p.total);
    let report = match &opened {
        Opened::Voice(bundle) => {
            let (found, gpus) = (inspect(bundle, &mut loaded)?, gpus());
            Report { json: as_json(bundle, &found, &gpus), text: as_text(bundle, &found, &gpus) }
        }
        Opened::Speech(bundle) => {
            let found = bundle.inspect(&mut loaded)?;
            Report { json: speech::as_json(bundle, &found), text: speech::as_text(bundle, &found) }
        }
    };
    progress.finish();
    Ok((opened, report))
}

/// Checks each of several bundles, whatever the others are, and all that can be opened together.
fn check_all(roots: &[PathBuf], options: &Options, json: bool) -> Result<(), CommandError> {
    let (mut good, mut reports, mut faults) = (Vec::new(), Vec::new(), 0);
    let mut fault = |what: String| {
        tell(&format!("dovecote: {what}"));
        faults += 1;
        what
    };
    for root in roots {
        match check(root) {
            Ok((opened, report)) => {
                good.push(opened);
                if !json {
                    print(&format!("{}\n", report.text))?;
                }
                reports.push(report.json);
            }
            Err(error) => {
                let error = fault(error.to_string());
                reports.push(json!({"root": root.display().to_string(), "error": error}));
            }
        }
    }
    let fits = match together(&good, options) {
        // Each was told.
        Err(StartError::NoBundle) => Value::Null,
        Err(error) => json!({"error": fault(error.to_string())}),
        Ok(needs) => {
            let machine = memory_bytes();
            let lack = lack(&needs, machine).map(&mut fault);
            if !json {
                print(&needed(&needs, machine))?;
            }
            json!({
                "weight_bytes": needs.weight_bytes,
                "kv_bytes": needs.kv_bytes,
                "window_kv_bytes": needs.window_bytes,
                "machine_bytes": machine,
                "error": lack,
            })
        }
    };
    if json {
        print(&format!("{:#}\n", json!({"bundles": reports, "together": fits})))?;
    }
    if faults > 0 { Err(CommandError::Unfit { faults }) } else { Ok(()) }
}

/// Memory of the machine, where the system tells it.
fn memory_bytes() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Why the machine is too small, if it is.
fn lack(needs: &Together, machine: Option<u64>) -> Option<String> {
    let (machine, wanted) = (machine?, needs.weight_bytes + needs.kv_bytes);
    (wanted as u64 > machine).then(|| {
        let (wanted, machine) = (mib(wanted), mib(machine as usize));
        format!("together they need {wanted} at this --precision and --kv-bytes, the machine has {machine}")
    })
}

fn needed(needs: &Together, machine: Option<u64>) -> String {
    let of = machine.map_or(String::new(), |m| format!(", of {} in this machine", mib(m as usize)));
    format!(
        "together: weights {}, key/value memory {} (the longest windows take {}){of}\n",
        mib(needs.weight_bytes),
        mib(needs.kv_bytes),
        mib(needs.window_bytes)
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_less_memory_than_weights_and_contexts_take_is_too_small() {
        let needs = Together { weight_bytes: 3 << 20, kv_bytes: 2 << 20, window_bytes: 1 << 20 };
        assert_eq!(lack(&needs, Some(5 << 20)), None);
        assert_eq!(lack(&needs, None), None, "nobody knows");
        let told = lack(&needs, Some(4 << 20)).unwrap();
        assert!(told.contains("need 5 MiB") && told.contains("has 4 MiB"), "{told}");
    }
}
