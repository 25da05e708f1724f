//! Numbers, dates, money, addresses and short forms are put into words, before anything is cut.
//!
//! ```text
//! Dr. Lee owes $1,234.50   ->   Doctor Lee owes one thousand two hundred thirty-four dollars and fifty cents
//! ```
//!
//! `scan` looks at text whose end is not known, `classes` finds out what a piece means, `language` says it with the
//! number words of `rbnf` and the names of `names`. Text that could still mean something else with more text is held,
//! so the result does not depend on deltas. It must never know how text is cut into chunks.

mod classes;
mod conventions;
mod language;
pub mod lexicon;
mod locale;
mod names;
mod number;
mod rbnf;
mod scan;
mod speech;

pub use conventions::{Acronyms, Conventions, Initialisms};
pub use lexicon::Lexicon;
pub use locale::{Locale, LocaleError};

use self::classes::{Verdict, verdict};
use self::scan::Look;
use self::speech::Speech;
use super::TextOptions;
use super::spoken::{Spoken, is_unheard};

/// Characters that stay known behind the place where the unread text starts: rules look back on them.
const READ_CHARS: usize = 128;
/// Read characters are forgotten once there are so many.
const FORGET_CHARS: usize = 4_096;

/// The verbaliser of one passage.
#[derive(Debug, Clone)]
pub(super) struct Verbaliser {
    speech: Option<Speech>,
    lexicon: Lexicon,
    /// At most so many characters decide one reading.
    hold_chars: usize,
    /// What was read and what is unread, and the raw range of each.
    text: Vec<char>,
    spans: Vec<(u32, u32)>,
    start: usize,
    /// The character spoken last.
    last: Option<char>,
    /// What was spoken last does not stand in the text as it is.
    read: bool,
}

impl Verbaliser {
    /// Reads as the options have it; text stays as it is where nothing is to be read.
    pub(super) fn new(options: &TextOptions) -> Self {
        let locale = options.locale.unwrap_or_default();
        Self {
            speech: options.verbalize.then(|| Speech::new(locale, options.conventions)),
            lexicon: options.lexicon.clone(),
            hold_chars: options.hold_chars.max(1),
            text: Vec::new(),
            spans: Vec::new(),
            start: 0,
            last: None,
            read: false,
        }
    }

    /// How a text is read by itself.
    fn aside(speech: Speech, text: &[char]) -> String {
        let mut reader = Self { speech: Some(speech), ..Self::new(&TextOptions::literal()) };
        // A mark inside a marked stretch means nothing; so this reads no stretch within a stretch.
        for &ch in text.iter().filter(|c| !is_unheard(**c)) {
            reader.push(Spoken::at(ch, 0));
        }
        let mut out = Vec::new();
        reader.settle(true, &mut out);
        out.iter().map(|s| s.ch).collect()
    }

    /// Adds a character; [`Verbaliser::settle`] reads it.
    pub(super) fn push(&mut self, s: Spoken) {
        self.text.push(s.ch);
        self.spans.push((s.from, s.to));
    }

    /// Moves what can be read to `out`, in order; with `all`, everything.
    pub(super) fn settle(&mut self, all: bool, out: &mut Vec<Spoken>) {
        while self.start < self.text.len() {
            let Some(speech) = self.speech else {
                self.keep(self.text.len() - self.start, out);
                break;
            };
            let end = self.text.len().min(self.start + self.hold_chars);
            let closed = all || end == self.start + self.hold_chars;
            let look = Look::new(&self.text[..end], self.start, closed);
            let listed = self.lexicon.read(look.scan());
            let found = match listed {
                Some((end, words)) => Verdict::Say(end.taken(), in_words(words, speech)),
                None => verdict(look.scan(), &speech),
            };
            if look.went_beyond() {
                break;
            }
            match found {
                Verdict::Keep(n) => self.keep(n, out),
                Verdict::Say(n, words) => self.say(n, &words, out),
            }
        }
        self.forget();
    }

    /// Raw offset of the first character that is held, if any is.
    pub(super) fn holds_from(&self) -> Option<u32> {
        self.spans.get(self.start).map(|span| span.0)
    }

    /// What is held, as it stands.
    pub(super) fn unread(&self) -> impl Iterator<Item = Spoken> {
        let chars = self.text[self.start..].iter().zip(&self.spans[self.start..]);
        chars.map(|(&ch, &(from, to))| Spoken { ch, from, to })
    }

    /// Whether what is held is a word with a mark behind it: most likely no more than the end of a sentence.
    pub(super) fn holds_last_word(&self) -> bool {
        let held = &self.text[self.start..];
        held.last().is_some_and(|c| matches!(c, '.' | '!' | '?' | '…'))
            && held.iter().all(|c| c.is_alphabetic() || matches!(c, '.' | '!' | '?' | '…' | '\''))
    }

    /// The next `n` characters as they stand; a blank parts them from words that were put in before.
    fn keep(&mut self, n: usize, out: &mut Vec<Spoken>) {
        for i in self.start..self.start + n {
            let (ch, (from, to)) = (self.text[i], self.spans[i]);
            if self.read {
                self.part(ch, from, to, out);
                self.read = false;
            }
            out.push(Spoken { ch, from, to });
            self.last = Some(ch);
        }
        self.start += n;
    }

    /// The next `n` characters in words.
    fn say(&mut self, n: usize, words: &str, out: &mut Vec<Spoken>) {
        let from = self.spans[self.start].0;
        let to = self.spans[self.start + n - 1].1;
        if let Some(first) = words.chars().next() {
            self.part(first, from, to, out);
        }
        out.extend(words.chars().map(|ch| Spoken { ch, from, to }));
        self.last = words.chars().last().or(self.last);
        self.read = true;
        self.start += n;
    }

    /// A blank between two words, one of them put in, that the text has none between.
    fn part(&self, next: char, from: u32, to: u32, out: &mut Vec<Spoken>) {
        let joined = self.last.is_some_and(|c| c.is_alphanumeric() || c == '%');
        if joined && next.is_alphanumeric() {
            out.push(Spoken { ch: ' ', from, to });
        }
    }

    fn forget(&mut self) {
        if self.start > FORGET_CHARS {
            let gone = self.start - READ_CHARS;
            self.text.drain(..gone);
            self.spans.drain(..gone);
            self.start = READ_CHARS;
        }
    }
}

/// What a list has for a word; digits in it are read by the rules.
fn in_words(listed: String, speech: Speech) -> String {
    if !listed.contains(|c: char| c.is_ascii_digit()) {
        return listed;
    }
    let listed: Vec<char> = listed.chars().collect();
    Verbaliser::aside(speech, &listed)
}

/// How many characters rules have looked at since the last call, on this thread.
#[cfg(test)]
pub(super) fn take_work() -> usize {
    scan::WORK.with(std::cell::Cell::take)
}

#[cfg(test)]
mod tests;
