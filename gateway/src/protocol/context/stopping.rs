//! A barge-in that is polite: the word or the sentence that is being heard is said to its end.

use std::time::Duration;

use super::{Phase, Record};

/// Where a cancel stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// At once.
    Now,
    /// Behind the word that is being heard.
    Word,
    /// Behind the sentence that is being heard.
    Sentence,
}

/// A cancel that waits for its place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stop {
    /// End of the text that is still to be heard.
    text_offset: usize,
    /// Cancels that wait with it for an answer.
    pub(super) cancels: usize,
}

/// Marks that end a sentence, and what may stand between them and the blank.
const ENDS: &[char] = &['.', '!', '?', '…', '。', '！', '？'];
const CLOSERS: &[char] = &['"', '\'', '”', '’', '»', ')', ']', '›', '“'];

impl Record {
    /// Takes note of a cancel that may have to wait. Returns whether it has to: sound of what is being heard is still to be
    /// sent. If not, the listener's program has it all, and learns from the answer where to stop.
    pub(crate) fn stop_at(&mut self, at: At, now: Duration) -> bool {
        if at == At::Now {
            return false;
        }
        if let Some(stop) = &mut self.stop {
            stop.cancels += 1;
            return true;
        }
        let clock = self.pacer.clock();
        let played = clock.samples(self.pacer.heard(now));
        let Some(word) = self.alignment.begun(&self.text, played, self.generated) else {
            return false;
        };
        let text_offset = match at {
            At::Sentence => sentence_end(&self.text, word.end),
            At::Now | At::Word => word.end,
        };
        self.stop = Some(Stop { text_offset, cancels: 0 });
        let waits = self.phase != Phase::Done && !self.has_stopped();
        self.stop = Some(Stop { text_offset, cancels: usize::from(waits) });
        waits
    }

    /// Whether everything up to the place of a polite cancel was sent.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stop_position().is_some_and(|position| self.pacer.sent() >= position)
    }

    /// Where a polite cancel stops, as far as that is known; it may move until the sound is there.
    pub(super) fn stop_position(&self) -> Option<u64> {
        let samples = self.alignment.sounded(self.stop?.text_offset, self.generated)?;
        Some(self.pacer.clock().position(samples))
    }

    /// One cancel less waits.
    pub(crate) fn forget_cancel(&mut self) {
        if let Some(stop) = &mut self.stop {
            stop.cancels = stop.cancels.saturating_sub(1);
        }
    }

    /// Cancels that have waited; none wait any more.
    pub(crate) fn take_waiting_cancels(&mut self) -> usize {
        self.stop.as_mut().map_or(0, |stop| std::mem::take(&mut stop.cancels))
    }
}

/// End of the sentence that goes on at a place, in code points; the end of the text if it has none.
fn sentence_end(text: &str, from: usize) -> usize {
    let mut after_end = false;
    let mut length = 0;
    for (at, ch) in text.chars().enumerate() {
        length = at + 1;
        // The word before the place may itself be the last one.
        if at >= from && after_end && ch.is_whitespace() {
            return at;
        }
        after_end = ENDS.contains(&ch) || (after_end && CLOSERS.contains(&ch));
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_behind_its_mark_and_what_closes_it() {
        let text = "Sié said \"no.\" Then 3.5 went.";
        assert_eq!(sentence_end(text, 3), 14);
        assert_eq!(sentence_end(text, 14), 14);
        assert_eq!(sentence_end(text, 15), 29);
        assert_eq!(sentence_end("no end", 2), 6);
    }
}
