//! What a piece of text means: each file finds a few classes, in the order in which they are asked here.
//!
//! A rule gets a place at the start of a token and answers with where its piece ends and how that is said, or not at
//! all. It must never say anything itself: words are the language's.

mod address;
mod amount;
mod capitals;
pub(super) mod clock;
mod code;
pub(super) mod date;
mod digits;
mod fraction;
mod marked;
pub(super) mod measure;
pub(super) mod money;
pub(super) mod number;
pub(super) mod part;
pub(super) mod sign;
mod time;
pub(super) mod word;

pub(super) use amount::MILLION;

use super::scan::{Scan, is_gap};
use super::speech::Speech;

/// Where a piece ends and what is said for it.
pub(super) type Reading<'a> = (Scan<'a>, String);

/// What becomes of the characters at the front of the unread text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// So many of them are text as it stands.
    Keep(usize),
    /// So many of them are read as this; nothing when it is empty.
    Say(usize, String),
}

/// A way to read what stands at a place.
pub(super) type Rule = for<'a> fn(Scan<'a>, &Speech) -> Option<Reading<'a>>;

/// Rules for a token that starts with a digit, or with a sign or mark before one.
const NUMBERS: &[Rule] = &[
    address::read,
    date::numeric,
    time::read,
    measure::coordinates,
    digits::grouped,
    digits::dotted,
    date::day_first,
    money::read,
    number::ordinal,
    number::scientific,
    number::pairs,
    number::decade,
    fraction::fraction,
    measure::read,
    number::ratio,
    number::large,
    code::read,
    number::plain,
];

/// Rules for a token that starts with a letter.
const WORDS: &[Rule] = &[
    address::read,
    date::month_first,
    money::read,
    word::abbreviation,
    word::initials,
    word::roman,
    time::offset,
    code::read,
    code::identifier,
    capitals::capitals,
];

/// Rules for a token that starts with another sign.
const SIGNS: &[Rule] = &[
    sign::passed_through,
    marked::marked,
    digits::grouped,
    money::read,
    measure::read,
    number::decade,
    number::short_year,
    fraction::negative_fraction,
    number::plain,
    address::read,
    sign::tagged,
    sign::between,
    sign::alone,
];

/// What becomes of the text at the start of a token.
pub(super) fn verdict(scan: Scan<'_>, speech: &Speech) -> Verdict {
    let Some(first) = scan.peek() else { return Verdict::Keep(1) };
    if is_gap(first) {
        return Verdict::Keep(1);
    }
    let leans = scan.before().is_some_and(|c| !c.is_whitespace());
    if leans && ".,;:!?…)]\"".contains(first) {
        return Verdict::Keep(1);
    }
    if first.is_alphabetic() && is_plain_word(scan, speech) {
        let mut word = scan;
        word.letters();
        return Verdict::Keep(word.taken());
    }
    let rules = match first {
        c if c.is_ascii_digit() => NUMBERS,
        c if c.is_alphabetic() => WORDS,
        _ => SIGNS,
    };
    let own = speech.language().readings;
    let read = own.iter().chain(rules).find_map(|rule| rule(scan, speech));
    match read {
        Some((end, text)) if end.taken() > 0 => Verdict::Say(end.taken(), text),
        _ if first.is_alphabetic() => {
            let mut word = scan;
            word.letters();
            Verdict::Keep(word.taken())
        }
        _ => Verdict::Keep(1),
    }
}

/// Most words need no rule: small letters, perhaps behind a capital, with a blank behind them, and no short form.
fn is_plain_word(scan: Scan<'_>, speech: &Speech) -> bool {
    let mut word = scan;
    let letters = word.letters();
    let behind = word.peek();
    let rest = letters.get(1..).unwrap_or_default();
    let one = rest.is_empty() && letters.iter().any(|c| c.is_uppercase());
    let small = !one && rest.iter().all(|c| c.is_lowercase());
    let parted =
        behind.is_none_or(|c| is_gap(c) || matches!(c, '\n' | ',' | '!' | '?' | ';' | ')' | '"'));
    parted && small && !speech.data.is_short(letters)
}

/// A plain word behind a short form is read with it, so that no chunk ends between the two. One that rules read is left to
/// them: "e.g. https://example.com", "p. ex. Mme Dupont".
fn with_next_word<'a>(mut end: Scan<'a>, mut text: String, speech: &Speech) -> Reading<'a> {
    let mut ahead = end;
    if ahead.blank() {
        let word = ahead.letters();
        let plain = word.iter().skip(1).all(|c| c.is_lowercase()) && !speech.data.is_short(word);
        let address = ahead.peek() == Some(':') && ahead.at(1) == Some('/');
        let closed =
            !address && !ahead.peek().is_some_and(|c| c.is_alphanumeric() || "._@/-'’".contains(c));
        // "Séc. I" has a number behind it.
        let letter = matches!(word, [c] if c.is_uppercase());
        if plain && closed && !word.is_empty() && !letter {
            text.push(' ');
            text.extend(word);
            end = ahead;
        }
    }
    (end, text)
}
