//! What Cartesia's clients are told, over whatever transport.

use std::time::Duration;

use serde_json::{Value, json};

use crate::foreign::whole::Word;

/// Sound, in base64, that was waited for so long.
pub(super) fn chunk(name: Option<&str>, data: &str, took: Duration) -> Value {
    json!({
        "type": "chunk", "context_id": name, "status_code": 206, "done": false, "data": data,
        "step_time": took.as_secs_f64() * 1e3,
    })
}

/// When words sound.
pub(super) fn timestamps(name: Option<&str>, words: &[Word]) -> Value {
    // Tenths of a millisecond: what is finer is noise.
    let round = |seconds: f64| (seconds * 1e4).round() / 1e4;
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let starts: Vec<f64> = words.iter().map(|word| round(word.start_s)).collect();
    let ends: Vec<f64> = words.iter().map(|word| round(word.end_s)).collect();
    json!({
        "type": "timestamps", "context_id": name, "status_code": 206, "done": false,
        "word_timestamps": {"words": texts, "start": starts, "end": ends},
    })
}

/// The answer to a flush that the client asked for.
pub(super) fn flush_done(name: &str, id: u32) -> Value {
    json!({
        "type": "flush_done", "context_id": name, "status_code": 206, "done": false,
        "flush_done": true, "flush_id": id,
    })
}

/// The end.
pub(super) fn done(name: Option<&str>) -> Value {
    json!({"type": "done", "context_id": name, "status_code": 200, "done": true})
}

/// What goes wrong.
pub(crate) fn fault(status: u16, code: &str, reason: &str) -> Value {
    let title = match status {
        401 => "Unauthorized",
        429 => "Too many requests",
        503 => "Not available",
        500.. => "Server error",
        _ => "Invalid request",
    };
    json!({
        "status_code": status, "done": true, "title": title, "message": reason,
        "error_code": code,
        // Where clients of older versions look.
        "error": reason,
    })
}
