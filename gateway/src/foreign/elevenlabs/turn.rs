//! What is remembered of a context: how its sound is written, how far its characters were told, and what its client means
//! when it closes it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codecs::pcm;
use serde_json::{Value, json};

use super::super::Format;
use super::asked::Sound;
use crate::container::{FileError, FileWriter};

/// A context of this protocol.
pub(super) struct Turn {
    file: Option<FileWriter>,
    /// Sound of the last message of a commit, until it is known which characters it ends with.
    pub(super) held: Option<String>,
    /// What the client said last.
    last: Last,
    /// Where the next message's times count from, in ms of the context.
    base_ms: u64,
}

/// What a client said last: it tells an end from an interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    /// Text that was not flushed.
    Text,
    /// Text that was to be spoken at once.
    Phrase,
    /// A flush without text.
    Flush,
}

impl Turn {
    pub(super) fn new(sound: &Sound) -> Result<Self, FileError> {
        let file = sound.file.map(FileWriter::of).transpose()?;
        Ok(Self { file, held: None, last: Last::Nothing, base_ms: 0 })
    }

    /// The client says something, or wants to hear what it said.
    pub(super) fn says(&mut self, has_text: bool, flush: bool) {
        self.last = match (has_text, flush) {
            (true, false) => Last::Text,
            (true, true) => Last::Phrase,
            (false, true) => Last::Flush,
            (false, false) => self.last,
        };
    }

    /// Whether a client that closes the context now does not want to hear the rest.
    pub(super) fn is_interruption(&self, phrases_too: bool) -> bool {
        match self.last {
            Last::Text => true,
            Last::Phrase => phrases_too,
            Last::Nothing | Last::Flush => false,
        }
    }

    /// Sound as a message has it; empty while an encoder keeps it back.
    ///
    /// # Errors
    /// What the encoder says; not to be expected.
    pub(super) fn encode(&mut self, payload: &[u8]) -> Result<String, FileError> {
        let Some(file) = &mut self.file else { return Ok(STANDARD.encode(payload)) };
        let samples: Vec<f32> = pcm::f32_le(payload).collect();
        Ok(STANDARD.encode(file.write(&samples)?))
    }

    /// What an encoder kept back.
    ///
    /// # Errors
    /// As [`Turn::encode`].
    pub(super) fn finish(&mut self) -> Result<String, FileError> {
        let rest = self.file.take().map(FileWriter::finish).transpose()?;
        Ok(STANDARD.encode(rest.unwrap_or_default()))
    }

    /// Characters with their times, as the wire has them; null for none.
    pub(super) fn alignment(
        &mut self,
        chars: &[(String, [u64; 2])],
        format: &Format,
        absolute: bool,
    ) -> Value {
        let ms = |position: u64| position * 1_000 / u64::from(format.sample_rate);
        let Some((_, [_, end])) = chars.last() else { return Value::Null };
        let base = if absolute { 0 } else { self.base_ms };
        self.base_ms = ms(*end);
        let starts: Vec<u64> =
            chars.iter().map(|(_, [start, _])| ms(*start).saturating_sub(base)).collect();
        let lengths: Vec<u64> =
            chars.iter().map(|(_, [start, end])| ms(*end) - ms(*start)).collect();
        let chars: Vec<&str> = chars.iter().map(|(ch, _)| ch.as_str()).collect();
        json!({"chars": chars, "charStartTimesMs": starts, "charDurationsMs": lengths})
    }
}
