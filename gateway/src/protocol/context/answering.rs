//! What a context remembers that answers messages: the recordings that come for it, and how its own text is spoken.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use engine::answer::Request;

use super::{Context, Item};
use crate::protocol::incoming::Recording;

/// What a context remembers that answers.
#[derive(Default)]
pub(crate) struct Answering {
    /// What is still to come of what the messages name.
    pub(crate) waiting: Option<Box<Waiting>>,
    /// Number of the next piece of text.
    pub(crate) deltas: u64,
    /// Where the text begins that no sound has taken, in code points.
    pub(crate) spoken_to: usize,
    /// The text that is being spoken.
    pub(crate) speaking: Option<Range<usize>>,
}

/// An answer of which not all has come that it is to.
pub(crate) struct Waiting {
    /// What the engine will be asked, without the messages, until those are read.
    pub(crate) request: Option<Box<Request>>,
    /// Recordings that the messages name.
    pub(crate) uploads: BTreeMap<String, Upload>,
    /// The one that is being sent.
    pub(crate) current: Option<(String, Recording)>,
    /// Number of the next packet of the client.
    pub(crate) next_seq: u32,
    /// Samples that may still come, of all recordings.
    pub(crate) samples_left: usize,
}

/// A recording that its client sends beside the messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Upload {
    /// Its places among the live recordings of the request.
    pub(crate) places: Vec<usize>,
    pub(crate) has_ended: bool,
}

impl Waiting {
    /// Whether no recording is missing any more.
    pub(crate) fn is_complete(&self) -> bool {
        self.uploads.values().all(|upload| upload.has_ended)
    }
}

impl Context {
    /// The model has written more. It reaches the client in its place among the sound.
    pub(crate) fn wrote(&mut self, text: &str, now: Duration) {
        self.record.text.push_str(text);
        self.text_chars += text.chars().count();
        self.first_text_at.get_or_insert(now);
        self.last_text_at = Some(now);
        let Some(answering) = &mut self.answering else { return };
        let (seq, text) = (answering.deltas, text.to_owned());
        answering.deltas += 1;
        self.queued_bytes += text.len();
        self.queued_urgent += 1;
        self.queue.push_back(Item::Wrote { seq, text });
    }

    /// A segment of text is complete.
    pub(crate) fn has_written(&mut self, text: String) {
        self.queued_bytes += text.len();
        self.queued_urgent += 1;
        self.queue.push_back(Item::Written(text));
    }

    /// The model begins to say what it has written since it spoke last.
    pub(crate) fn begins_to_speak(&mut self) {
        let to = self.text_chars;
        let Some(answering) = &mut self.answering else { return };
        let text = answering.spoken_to..to;
        answering.spoken_to = to;
        // Sound without text has no words.
        if !text.is_empty() {
            answering.speaking = Some(text.clone());
            self.record.alignment.chunk(text);
            self.settle_marks();
        }
    }

    /// It has said all of that.
    pub(crate) fn has_spoken(&mut self) {
        let end = self.record.generated;
        let Some(text) = self.answering.as_mut().and_then(|a| a.speaking.take()) else { return };
        self.record.alignment.chunk_end(&text, end);
        self.settle_marks();
    }
}
