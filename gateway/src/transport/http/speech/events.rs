//! OpenAI's events.
//!
//! ```text
//! data: {"type":"speech.audio.delta","audio":"<base64>"}
//! data: {"type":"speech.audio.done","usage":{"input_tokens":12,"output_tokens":13,"total_tokens":25}}
//! ```
//!
//! Of a voice, tokens of the input are characters, those of the output the codec's frames of 80 ms.

use axum::body::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::Summary;
use serde_json::json;

use crate::foreign::whole::{Framing, server_sent};

/// Samples of one frame of codes.
const FRAME_SAMPLES: u64 = 1_920;

pub(super) struct OpenAi;

impl Framing for OpenAi {
    fn sound(&mut self, bytes: &[u8]) -> Bytes {
        server_sent(None, &json!({"type": "speech.audio.delta", "audio": STANDARD.encode(bytes)}))
    }

    fn done(&mut self, summary: &Summary) -> Bytes {
        // Models that answer count by themselves.
        let (input, output) = match summary.usage {
            Some(usage) => (usage.prompt_tokens as u64, usage.audio_frames as u64),
            None => (summary.text_chars as u64, summary.samples.div_ceil(FRAME_SAMPLES)),
        };
        let usage =
            json!({"input_tokens": input, "output_tokens": output, "total_tokens": input + output});
        server_sent(None, &json!({"type": "speech.audio.done", "usage": usage}))
    }

    fn broken(&mut self, message: &str) -> Bytes {
        let error = json!({
            "message": message, "type": "server_error", "param": null, "code": "engine_failed",
        });
        server_sent(None, &json!({"type": "error", "error": error}))
    }
}
