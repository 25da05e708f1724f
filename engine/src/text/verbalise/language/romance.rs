//! What Spanish, Portuguese and Italian have in common: numbers agree with nouns, and digits behind a decimal mark are
//! told as a number.

use crate::text::verbalise::classes::{MILLION, Reading};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::number::Number;
use crate::text::verbalise::scan::Scan;
use crate::text::verbalise::speech::Speech;

/// Most digits behind a decimal mark that are told as one number.
const DECIMALS_MAX: usize = 3;

/// The digits behind a decimal mark: `tres coma catorce`, but one by one where a nought stands in front.
pub(super) fn decimals(speech: &Speech, digits: &str) -> String {
    match digits.parse() {
        Ok(n) if digits.len() <= DECIMALS_MAX && !digits.starts_with('0') => speech.count(n),
        _ => speech.digits(digits),
    }
}

/// Four digits behind a decimal mark as two numbers: `tres coma catorce dieciséis`.
pub(super) fn two_pairs(speech: &Speech, digits: &str) -> Option<String> {
    let pair = |digits: &str| match digits.parse() {
        Ok(n) if !digits.starts_with('0') => speech.count(n),
        _ => speech.digits(digits),
    };
    let four = digits.len() == 4 && !digits.starts_with('0');
    four.then(|| format!("{} {}", pair(&digits[..2]), pair(&digits[2..])))
}

/// A whole number before the noun at a place, in its gender. A voice need not wait for the noun where the number has
/// only one form. A word may be a plural, or is certainly one.
pub(super) fn before_noun(
    speech: &Speech,
    n: u64,
    behind: Scan<'_>,
    [may_be_plural, is_plural]: [fn(&str) -> bool; 2],
) -> Option<String> {
    let bare = speech.count(n);
    if n > 0 && n.is_multiple_of(MILLION) {
        return speech.noun(behind).map(|_| format!("{bare} {}", speech.language().of));
    }
    let shows = |gender| speech.cardinal(n, gender) != bare;
    if !shows(Gender::Masculine) && !shows(Gender::Feminine) {
        return None;
    }
    let noun: String = behind.next_word().iter().collect();
    // "200 mil personas" takes its gender from the second word.
    if noun == "mil" {
        let mut second = behind;
        second.blanks();
        second.letters();
        return Some(speech.cardinal(n, speech.noun(second).unwrap_or_default()));
    }
    let gender = (speech.language().noun)(&noun)?;
    // "1-2 días" is uno a dos días: one that does not count them keeps its ending.
    let agrees = match n {
        1 => gender == Gender::Feminine || !is_plural(&noun),
        _ => may_be_plural(&noun),
    };
    agrees.then(|| speech.cardinal(n, gender))
}

/// km 25: a place on a road.
pub(super) fn kilometre<'a>(mut scan: Scan<'a>, word: &str) -> Option<Reading<'a>> {
    let joined = scan.before().is_some_and(char::is_alphanumeric);
    let km = !joined && scan.eat_str("km", true);
    let end = scan;
    let place = km && scan.blank() && scan.peek().is_some_and(|c| c.is_ascii_digit());
    place.then(|| (end, word.to_owned()))
}

/// "opción 1 disponible": behind a word that it tells from others a number counts nothing.
pub(super) fn labelled<'a>(
    mut scan: Scan<'a>,
    speech: &Speech,
    labels: &[&str],
) -> Option<Reading<'a>> {
    scan.peek().filter(char::is_ascii_digit)?;
    let before = scan.word_before();
    let label = before.rsplit(['\'', '’']).next().unwrap_or_default();
    let known = labels.contains(&label);
    let digits: String = scan.digits().iter().collect();
    let n = digits.parse().ok().filter(|_| known && digits.len() <= 3)?;
    let word = scan.peek() == Some(' ') && scan.at(1).is_some_and(char::is_lowercase);
    // "pulse 1 vez"
    let next: String = scan.next_word().iter().collect();
    let word = word && !["vez", "veces", "vezes", "volta", "volte"].contains(&&*next);
    (word && !digits.starts_with('0')).then(|| (scan, speech.count(n)))
}

/// nº 5, n.º5, and n° with the sign of degrees for the raised letter.
pub(super) fn number_sign<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let joined = scan.before().is_some_and(char::is_alphanumeric);
    scan.eat_if(|c| matches!(c, 'n' | 'N') && !joined)?;
    scan.eat('.');
    scan.eat_if(|c| matches!(c, 'º' | '°'))?;
    let open = !scan.peek().is_some_and(char::is_alphabetic);
    open.then(|| (scan, speech.words().number.to_owned()))
}

/// 2 x 3: a letter for the sign between two numbers.
pub(super) fn multiplied<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    scan.peek().filter(char::is_ascii_digit)?;
    let number = Number::read(&mut scan, speech.data.locale.marks())?;
    let sign = scan.blank() && scan.eat_if(|c| c == 'x' || c == 'X').is_some();
    let end = scan;
    let second = sign && scan.blank() && scan.peek().is_some_and(|c| c.is_ascii_digit());
    second.then(|| (end, format!("{} {}", speech.number_alone(&number), speech.words().by)))
}

/// Whether the noun behind a number is counted by it.
pub(super) fn is_counted(behind: Scan<'_>, noun: fn(&str) -> Option<Gender>) -> bool {
    let word: String = behind.next_word().iter().collect();
    noun(&word).is_some()
}

/// A word that could be a noun: small letters, more than one.
pub(super) fn is_noun_like(word: &str) -> bool {
    word.chars().nth(1).is_some() && word.chars().all(char::is_lowercase)
}

/// Whether a word has one of these endings.
pub(super) fn ends(word: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| word.ends_with(ending))
}
