//! `[chat]`: how speech language models are asked over HTTP.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Invalid, at_least, seconds};

/// How speech language models are asked over HTTP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Chat {
    /// Most messages of a conversation.
    pub max_messages: usize,
    /// Most characters of text in all messages of a conversation.
    pub max_input_chars: usize,
    /// Most sound in all messages of a conversation, in seconds.
    pub max_input_seconds: f64,
    /// Longest recording that is written down, in seconds: 100 KB of memory each, until it is.
    pub max_transcription_seconds: f64,
    /// Pieces of such a recording that are written down at once, where it is longer than the model hears.
    pub pieces_at_once: usize,
    /// What a model that is told in words what to do is asked to do with such a recording; empty: nothing.
    pub transcription_prompt: String,
    /// Largest body of a request, in bytes: recordings in base64 are a third larger than their files.
    pub max_body_bytes: usize,
    /// How long a body may take from its first byte to its last.
    #[serde(rename = "upload_s", with = "seconds")]
    pub upload: Duration,
    /// Bodies above `server.max_body_bytes` that are read and decoded at once; a recording in pieces has its place until all
    /// are heard.
    pub max_uploads: usize,
    /// Most tokens of text and frames of sound that a client may ask for.
    pub max_output_tokens: usize,
    /// Spoken answers whose text is kept, for clients that name one in a later request.
    pub max_kept_answers: usize,
    /// How long each is kept.
    #[serde(rename = "keep_answers_s", with = "seconds")]
    pub keep_answers: Duration,
}

impl Default for Chat {
    fn default() -> Self {
        Self {
            max_messages: 256,
            max_input_chars: 100_000,
            // Encoders of these models see half a minute at a time; ten are a long call.
            max_input_seconds: 300.0,
            // What the largest body holds at 29 kbit/s.
            max_transcription_seconds: 7_200.0,
            pieces_at_once: 4,
            transcription_prompt: "Transcribe the speech in this recording word for word.".into(),
            // As OpenAI has it for recordings.
            max_body_bytes: 25 << 20,
            upload: Duration::from_secs(60),
            max_uploads: 8,
            max_output_tokens: 16_384,
            max_kept_answers: 1_024,
            keep_answers: Duration::from_secs(3_600),
        }
    }
}

impl Chat {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        at_least("chat.max_messages", self.max_messages, 1)?;
        at_least("chat.max_input_chars", self.max_input_chars, 1)?;
        at_least("chat.max_input_seconds", self.max_input_seconds, 0.0)?;
        at_least("chat.max_transcription_seconds", self.max_transcription_seconds, 0.0)?;
        at_least("chat.pieces_at_once", self.pieces_at_once, 1)?;
        at_least("chat.max_body_bytes", self.max_body_bytes, 1)?;
        at_least("chat.upload_s", self.upload, Duration::from_millis(1))?;
        at_least("chat.max_uploads", self.max_uploads, 1)?;
        at_least("chat.max_output_tokens", self.max_output_tokens, 1)
    }
}
