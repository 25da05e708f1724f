//! A number with the word for its size behind it: 5.3 million, 200 mil, $5M.

use crate::text::verbalise::language::Magnitude;
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::number::Number;
use crate::text::verbalise::scan::{Scan, lower};
use crate::text::verbalise::speech::Speech;

/// A number with the word for its size: 5.3 million.
#[derive(Debug)]
pub(super) struct Amount {
    pub(super) number: Number,
    pub(super) magnitude: Option<&'static Magnitude>,
}

/// A number of millions without a rest is a noun in many languages.
pub(in crate::text::verbalise) const MILLION: u64 = 1_000_000;

impl Amount {
    /// Its words before a noun of a gender.
    pub(super) fn words(&self, speech: &Speech, gender: Gender) -> String {
        let Some(magnitude) = self.magnitude else { return speech.number(&self.number, gender) };
        let one = (speech.language().is_one)(&self.number);
        let word = if one { magnitude.one } else { magnitude.other };
        format!("{} {word}", speech.number(&self.number, magnitude.gender))
    }

    /// The word that links it to what is counted, where the language has one: `un millón de euros`.
    pub(super) fn link(&self, speech: &Speech) -> Option<&'static str> {
        let language = speech.language();
        let links = language.magnitudes.iter().any(|m| m.linked) && !language.of.is_empty();
        let round = || {
            let n = self.number.value().filter(|_| self.number.fraction.is_empty());
            n.is_some_and(|n| n > 0 && n.is_multiple_of(MILLION))
        };
        let linked = self.magnitude.map_or_else(round, |m| m.linked);
        (links && linked).then_some(language.of)
    }

    /// Its words where it stands alone.
    pub(super) fn alone(&self, speech: &Speech) -> String {
        match self.magnitude {
            Some(_) => self.words(speech, Gender::default()),
            None => speech.number_alone(&self.number),
        }
    }
}

/// A number and, behind it, its size in words; letters like `m` only for `money`.
pub(super) fn amount<'a>(
    mut scan: Scan<'a>,
    speech: &Speech,
    money: bool,
) -> Option<(Scan<'a>, Amount)> {
    let number = Number::read(&mut scan, speech.data.locale.marks())?;
    let found = magnitude(scan, speech, money);
    let (end, magnitude) = found.map_or((scan, None), |(end, magnitude)| (end, Some(magnitude)));
    Some((end, Amount { number, magnitude }))
}

fn magnitude<'a>(
    scan: Scan<'a>,
    speech: &Speech,
    money: bool,
) -> Option<(Scan<'a>, &'static Magnitude)> {
    let mut start = scan;
    start.blanks();
    let parted = start.taken() > scan.taken();
    let hyphen = start.eat_if(|c| c == '-' && scan.peek() == Some('-')).is_some();
    let first = lower(start.peek()?);
    let allowed = |m: &'static Magnitude| {
        let mut word = start;
        let short = m.written.len() <= 3;
        let written = m.written.starts_with(|c| lower(c) == first)
            && word.eat_str(m.written, !short)
            && word.at_word_end();
        // "200 mil": words that agree with what they count are plain text elsewhere.
        let whole = m.written.len() > 1 && m.written.starts_with(char::is_lowercase);
        let priced = word.next_visible().is_some_and(|c| "€$£".contains(c));
        // "$1.5 M"
        let apart = matches!(m.written, "K" | "M" | "MM" | "B" | "T" | "b");
        let telling = (money && (!parted || whole || priced || apart))
            || (!parted && is_large(m, word, speech));
        (written && (!m.money_only || telling) && (short || parted || !hyphen)).then_some((word, m))
    };
    // "mil millones" before "mil".
    let found = speech.language().magnitudes.iter().filter_map(allowed);
    let (mut word, magnitude) = found.max_by_key(|(_, m)| m.written.len())?;
    // A period that belongs to a short form: Mio.
    let dotted = magnitude.dotted && word.peek() == Some('.');
    if dotted && !super::word::ends_sentence(word.skip(1), speech) {
        word = word.skip(1);
    }
    Some((word, magnitude))
}

/// 5M users: a capital letter behind a number that counts something.
fn is_large(magnitude: &Magnitude, behind: Scan<'_>, speech: &Speech) -> bool {
    matches!(magnitude.written, "K" | "M" | "B") && (speech.language().is_counted)(behind)
}
