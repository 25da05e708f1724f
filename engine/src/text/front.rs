//! The stages before the cut, joined: clean, compose, guard, verbalise, sanitize.
//!
//! Text goes in as deltas of any size, spoken characters come out. Every stage works character by character, so the
//! result depends on the text only, not on how it was cut; unless held text was let go in between.

use super::TextOptions;
use super::clean::Cleaner;
use super::compose::Composer;
use super::guard::Guard;
use super::sanitize::Sanitizer;
use super::spoken::{Notice, Spoken};
use super::verbalise::Verbaliser;

/// The front end of one passage.
#[derive(Debug, Clone)]
pub(super) struct FrontEnd {
    clean: bool,
    cleaner: Cleaner,
    composer: Composer,
    guard: Guard,
    verbaliser: Verbaliser,
    sanitizer: Sanitizer,
    raw_chars: u32,
    /// Raw characters that some spoken character came from, and where the last of them ends.
    heard_chars: u32,
    heard_to: u32,
    stages: [Vec<Spoken>; 3],
}

impl FrontEnd {
    pub(super) fn new(options: TextOptions) -> Self {
        Self {
            clean: options.clean,
            cleaner: Cleaner::new(options.emoji),
            composer: Composer::default(),
            verbaliser: Verbaliser::new(&options),
            guard: Guard::new(options),
            sanitizer: Sanitizer::default(),
            raw_chars: 0,
            heard_chars: 0,
            heard_to: 0,
            stages: Default::default(),
        }
    }

    /// Adds raw text and appends what can be spoken of it.
    pub(super) fn push(&mut self, delta: &str, out: &mut Vec<Spoken>) {
        for c in delta.chars() {
            // 4 billion characters are beyond every limit of a context; the offsets of such a text stop counting.
            let at = self.raw_chars.min(u32::MAX - 1);
            self.raw_chars = at + 1;
            if !self.clean {
                self.stages[0].push(Spoken::at(c, at));
            } else if let Some(ch) = self.cleaner.push(c) {
                self.composer.push(Spoken::at(ch, at), &mut self.stages[0]);
            }
        }
        self.flow(false, false, out);
    }

    /// Lets go of markup and numbers that are not finished.
    pub(super) fn release_markup(&mut self, out: &mut Vec<Spoken>) {
        self.flow(true, true, out);
    }

    /// Lets go of everything held: the text ends here, or is to be spoken as far as it is known.
    pub(super) fn release(&mut self, out: &mut Vec<Spoken>) {
        self.composer.release(&mut self.stages[0]);
        self.flow(true, true, out);
    }

    /// Lets go of a last word and the mark behind it, if nothing else is held.
    pub(super) fn release_last_word(&mut self, out: &mut Vec<Spoken>) {
        if self.holds_last_word() {
            self.flow(false, true, out);
        }
    }

    /// Raw offset of the first character of unfinished markup or of an unfinished number, if there is some.
    pub(super) fn held_from(&self) -> Option<u32> {
        // What the guard holds stands behind what the verbaliser holds.
        self.verbaliser.holds_from().or(self.guard.holds_from())
    }

    /// Whether no more is held than a word and the mark that may end its sentence.
    pub(super) fn holds_last_word(&self) -> bool {
        let before = self.composer.is_holding() || self.guard.holds_from().is_some();
        !before && self.verbaliser.holds_last_word()
    }

    /// Whether any character is held.
    pub(super) fn is_holding(&self) -> bool {
        self.composer.is_holding() || self.held_from().is_some()
    }

    /// Whether a blank at which one may cut stands behind the last spoken character.
    pub(super) fn has_blank(&self) -> bool {
        self.sanitizer.has_blank()
    }

    /// Whether something is held that is not yet read.
    pub(super) fn holds_unread(&self) -> bool {
        self.verbaliser.holds_from().is_some()
    }

    /// Appends what is held and not yet read, as it stands.
    pub(super) fn append_unread(&self, out: &mut Vec<Spoken>) {
        let mut sanitizer = self.sanitizer.clone();
        for s in self.verbaliser.unread() {
            sanitizer.push(s, out);
        }
    }

    /// What of the text has no effect, since the last call.
    pub(super) fn take_notices(&mut self) -> Vec<Notice> {
        self.guard.take_notices()
    }

    /// How many raw characters have come.
    pub(super) fn raw_chars(&self) -> u32 {
        self.raw_chars
    }

    /// How many of them some spoken character came from.
    pub(super) fn heard_chars(&self) -> u32 {
        self.heard_chars
    }

    /// How many characters the markup rules have looked at.
    #[cfg(test)]
    pub(super) fn work(&self) -> usize {
        self.guard.work.get()
    }

    fn flow(&mut self, markup: bool, all: bool, out: &mut Vec<Spoken>) {
        let [composed, guarded, read] = &mut self.stages;
        for s in composed.drain(..) {
            self.guard.push(s, guarded);
        }
        if markup {
            self.guard.release(guarded);
        }
        for s in guarded.drain(..) {
            self.verbaliser.push(s);
        }
        self.verbaliser.settle(all, read);
        let start = out.len();
        for s in read.drain(..) {
            self.sanitizer.push(s, out);
        }
        for s in &out[start..] {
            self.heard_chars += s.to.max(self.heard_to) - s.from.max(self.heard_to);
            self.heard_to = self.heard_to.max(s.to);
        }
    }
}
