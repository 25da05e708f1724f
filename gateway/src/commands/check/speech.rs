//! What is in a bundle of a speech language model.

use std::fmt::Write;

use engine::bundle::speech::{AudioInput, Inspected, SpeechBundle};
use serde_json::{Value, json};

pub(super) fn as_json(bundle: &SpeechBundle, found: &Inspected) -> Value {
    let SpeechBundle { manifest, codec, .. } = bundle;
    let tasks = manifest.tasks.iter().map(|(task, id)| (task.name().to_owned(), (*id).into()));
    json!({
        "model": manifest.name,
        "kind": manifest.kind.name(),
        "root": bundle.root.display().to_string(),
        "layers": found.layers,
        "parameters": found.parameters,
        "streams": found.streams,
        "context_tokens": found.context_tokens,
        "token_kv_bytes": found.token_bytes,
        "codec": codec.map(|c| json!({
            "kind": c.kind.name(), "codebooks": c.rows, "sample_rate": c.sample_rate,
            "frames_per_second": c.frames_per_second(), "look_ahead_frames": c.kind.look_ahead_frames(),
        })),
        "audio_input": manifest.audio_input.as_ref().map(hears),
        "tasks": tasks.collect::<serde_json::Map<String, Value>>(),
        "voices": bundle.voices.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(),
        "unused_tensors": found.unused.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        "license": manifest.license,
    })
}

pub(super) fn as_text(bundle: &SpeechBundle, found: &Inspected) -> String {
    let SpeechBundle { manifest, codec, .. } = bundle;
    let mut text = format!("{} ({})\n", manifest.name, bundle.root.display());
    let (kind, millions) = (manifest.kind, found.parameters as f64 / 1e6);
    let _ = writeln!(
        text,
        "{kind}: {} layers, {millions:.1} million parameters, {} streams, {} tokens of context",
        found.layers, found.streams, found.context_tokens
    );
    let _ = match codec {
        None => writeln!(text, "codec: none, it only writes"),
        Some(codec) => writeln!(
            text,
            "codec: {}, {} codebooks, {} frames a second at {} Hz, {} frames behind",
            codec.kind,
            codec.rows,
            codec.frames_per_second(),
            codec.sample_rate,
            codec.kind.look_ahead_frames()
        ),
    };
    let hears = manifest.audio_input.as_ref().map_or("nothing", hears);
    let _ = writeln!(text, "hears with: {hears}");
    if !manifest.tasks.is_empty() {
        let tasks: Vec<&str> = manifest.tasks.keys().map(|t| t.name()).collect();
        let _ = writeln!(text, "tasks: {}", tasks.join(", "));
    }
    if !bundle.voices.is_empty() {
        let voices: Vec<&str> = bundle.voices.iter().map(|v| v.name.as_str()).collect();
        let _ = writeln!(text, "voices: {}", voices.join(", "));
    }
    for (group, tensors) in &found.unused {
        let _ = writeln!(text, "not read: {group} ({tensors} tensors)");
    }
    let kib = found.token_bytes as f64 / 1024.0;
    let _ = writeln!(text, "key/value memory of a token: {kib:.1} KiB");
    text
}

fn hears(input: &AudioInput) -> &'static str {
    match input {
        AudioInput::Qwen3Omni { .. } => "qwen3-omni",
        AudioInput::Units { .. } => "units",
    }
}
