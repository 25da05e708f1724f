//! Numbers: cardinals, decimals, ordinals, ratios, ranges, years and decades.

use super::Reading;
use super::amount::{Amount, amount};
use super::money::linked;
use crate::text::verbalise::number::Number;
use crate::text::verbalise::scan::{Scan, is_gap, lower};
use crate::text::verbalise::speech::Speech;

/// Years that are told as such without a word that says so.
pub(super) const LIKELY_YEARS: std::ops::RangeInclusive<u64> = 1900..=2099;
/// Years behind a word that opens one.
const POSSIBLE_YEARS: std::ops::RangeInclusive<u64> = 1000..=2199;

/// 5.3 million, 5M users.
pub(super) fn large<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let (_, amount) = amount(scan, speech, false)?;
    amount.magnitude.and_then(|_| plain(scan, speech))
}

/// Room 305, flight 1234, 123 Main St.: told in pairs.
pub(super) fn pairs<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let before = scan.word_before();
    let digits: String = scan.digits().iter().collect();
    if !(3..=5).contains(&digits.len()) || !scan.at_number_end() || scan.peek() == Some('-') {
        return None;
    }
    let language = speech.language();
    if language.short_calls.contains(&digits.as_str()) && !(language.is_counted)(scan) {
        return Some((scan, speech.digits(&digits)));
    }
    let named = language.pair_openers.contains(&before.as_str());
    if !named && !is_before_street(scan, speech) {
        return None;
    }
    let said = match digits.len() {
        5 => format!("{} {}", speech.pairs(&digits[..3]), speech.pairs(&digits[3..])),
        _ => speech.pairs(&digits),
    };
    Some((scan, said))
}

/// Whether one to four names with the word for a street at their end follow.
pub(in crate::text::verbalise) fn is_before_street(mut scan: Scan<'_>, speech: &Speech) -> bool {
    const NAMES_MAX: usize = 4;
    for names in 0..=NAMES_MAX {
        if !scan.blank() {
            return false;
        }
        // "12 W. 5th St."
        let number = !scan.digits().is_empty();
        let word = scan.letters();
        let ending = |(ending, _): &(&str, _)| word.iter().copied().eq(ending.chars());
        let numbered = number && speech.language().ordinal_endings.iter().any(ending);
        if !numbered && (number || !word.first().is_some_and(|c| c.is_uppercase())) {
            return false;
        }
        if names > 0 && speech.language().streets.contains(&lower_case(word).as_str()) {
            return true;
        }
        if word.len() == 1 {
            scan.eat('.');
        }
    }
    false
}

/// 21st, 1,000th.
pub(super) fn ordinal<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let number = Number::read(&mut scan, speech.data.locale.marks())?;
    let n = number.value().filter(|_| number.fraction.is_empty())?;
    for (ending, gender) in speech.language().ordinal_endings {
        let mut end = scan;
        // "123A" is the number of a house.
        let any_case = ending.len() > 1;
        if end.eat_str(ending, any_case) && end.at_word_end() {
            let first = speech.ordinal(n, *gender);
            let mut range = end;
            if range.eat_if(|c| matches!(c, '-' | '–')).is_some()
                && let Some((end, second)) = ordinal(range, speech)
            {
                return Some((end, format!("{first} {} {second}", speech.words().to)));
            }
            return Some((end, first));
        }
    }
    None
}

/// 1990s, '90s, 1960s-80s.
pub(super) fn decade<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    // "30s" are seconds, "the 30s" and "the 20s and 30s" are years.
    let told = || {
        let [last, earlier] = scan.words_before();
        let joined = matches!(&*last, "and" | "or")
            && earlier.strip_suffix('s').is_some_and(|digits| digits.ends_with('0'));
        joined || speech.language().decade_openers.contains(&last.as_str())
    };
    let (end, from) = one_decade(scan, told, speech)?;
    let mut range = end;
    if range.eat_if(|c| matches!(c, '-' | '–')).is_some()
        && let Some((end, to)) = one_decade(range, || true, speech)
    {
        return Some((end, format!("{from} {} {to}", speech.words().to)));
    }
    Some((end, from))
}

/// One decade; two digits are one if something has told so, or an apostrophe does.
pub(in crate::text::verbalise) fn one_decade<'a>(
    mut scan: Scan<'a>,
    told: impl Fn() -> bool,
    speech: &Speech,
) -> Option<Reading<'a>> {
    let decades = speech.language().decades?;
    let quoted = scan.eat_if(|c| matches!(c, '\'' | '’' | '‘')).is_some();
    let digits: String = scan.digits().iter().collect();
    let n: u64 = digits.parse().ok()?;
    if !(n.is_multiple_of(10) && (digits.len() == 4 || (digits.len() == 2 && n >= 10))) {
        return None;
    }
    if digits.len() == 2 && !quoted && !told() {
        return None;
    }
    let mut end = scan;
    if !quoted {
        end.eat_if(|c| matches!(c, '\'' | '’'));
    }
    if !end.eat('s') || !end.at_word_end() {
        return None;
    }
    Some((end, decades(&speech.year(n))))
}

/// '08, '99: a year without its century.
pub(super) fn short_year<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    speech.language().decades?;
    let open = opens(scan);
    scan.eat_if(|c| matches!(c, '\'' | '’' | '‘')).filter(|_| open)?;
    let digits: String = scan.digits().iter().collect();
    let n = digits.parse().ok().filter(|_| digits.len() == 2 && scan.at_word_end())?;
    let said = match speech.words().oh {
        oh if digits.starts_with('0') && n > 0 && !oh.is_empty() => {
            format!("{oh} {}", speech.count(n))
        }
        _ if digits.starts_with('0') => speech.digits(&digits),
        _ => speech.count(n),
    };
    Some((scan, said))
}

/// 1e6, 1.5e-3
pub(super) fn scientific<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let number = Number::read(&mut scan, speech.data.locale.marks())?;
    scan.eat_if(|c| c == 'e' || c == 'E')?;
    let negative = scan.eat_if(is_minus).is_some();
    scan.eat('+');
    let power = plain_digits(&mut scan).filter(|_| scan.at_word_end())?;
    let words = speech.words();
    let power = if negative {
        format!("{} {}", words.minus, speech.count(power))
    } else {
        speech.count(power)
    };
    let number = speech.number_alone(&number);
    let ten = speech.count(10);
    Some((scan, format!("{number} {} {ten} {} {power}", words.times, words.to_the_power)))
}

/// 3:2, 16:9, 1:100.
pub(super) fn ratio<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let first = plain_digits(&mut scan)?;
    if !scan.eat(':') {
        return None;
    }
    let second = plain_digits(&mut scan)?;
    let ratio = speech.words().ratio;
    scan.at_number_end()
        .then(|| (scan, format!("{} {ratio} {}", speech.count(first), speech.count(second))))
}

/// Whatever digits are left: a year, a range, a number.
pub(super) fn plain<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let sign = scan.peek().filter(|&c| is_sign(c) && may_be_sign(scan));
    let start = if sign.is_some() { scan.skip(1) } else { scan };
    if !start.peek().is_some_and(|c| c.is_ascii_digit() || matches!(c, '.' | ',')) {
        return None;
    }
    let mark = start.peek().filter(|&c| matches!(c, '.' | ','));
    let point = mark == Some(',') && speech.data.locale.marks().decimal != ',';
    if mark.is_some() && (point || !opens(start)) {
        return None;
    }
    let (end, mut amount) = amount(start, speech, false)?;
    let words = speech.words();
    let prefix = match sign {
        Some(c) if is_minus(c) => {
            amount.number.negative = true;
            ""
        }
        Some('+') => words.plus,
        Some('±') => words.plus_minus,
        Some('~') => words.about,
        _ => "",
    };
    let year = is_year(scan, &amount, end, speech);
    let (end, said) = range([scan, end], &amount, year, speech).unwrap_or_else(|| {
        let said = match amount.number.value() {
            Some(n) if year => speech.year(n),
            _ => return with_link(&amount, end, speech),
        };
        (end, said)
    });
    Some((end, if prefix.is_empty() { said } else { format!("{prefix} {said}") }))
}

/// 10-15, 1990–2000, 3-2: the second number and both in words.
fn range<'a>(
    [start, mut end]: [Scan<'a>; 2],
    first: &Amount,
    year: bool,
    speech: &Speech,
) -> Option<Reading<'a>> {
    let blank = end.blank();
    let sign = end.eat_if(|c| matches!(c, '-' | '–' | '‑'))?;
    if blank != end.blank() {
        return None;
    }
    let (end, second) = amount(end, speech, false)?;
    // 5-3=2 is a sum.
    let summed = matches!(end.next_visible(), Some('='));
    let closed = end.at_number_end() && end.peek() != Some('-') && !summed;
    let (from, to) = (first.number.value()?, second.number.value()?);
    // 10 - 4 is a sum.
    if !closed || (blank && (from >= to && sign == '-')) || speech.words().to.is_empty() {
        return None;
    }
    let say = |amount: &Amount, n: u64| {
        let as_year = year && amount.number.fraction.is_empty() && POSSIBLE_YEARS.contains(&n);
        if as_year { speech.year(n) } else { bare(amount, end, speech) }
    };
    let (from_said, to_said) = (say(first, from), say(&second, to));
    if (from, to) == (50, 50) {
        return Some((end, format!("{from_said} {to_said}")));
    }
    // 1960-80 ends in the century in which it began.
    let century = year && second.number.whole.len() == 2 && (from % 100..100).contains(&to);
    // 978-0 is a code, 3-1 a score: no range falls.
    if from > to && from >= 100 && !blank && !century {
        return None;
    }
    let falls = from >= to && from < 100;
    let opens = speech.language().ratio_openers.contains(&start.word_before().as_str());
    let score = falls || opens;
    let to = if score { speech.words().ratio } else { speech.words().to };
    Some((end, format!("{from_said} {to} {to_said}")))
}

/// A number that is no year, with the noun that is linked to it where the link is written to the noun: `un million
/// d'habitants`.
fn with_link<'a>(amount: &Amount, end: Scan<'a>, speech: &Speech) -> Reading<'a> {
    let said = bare(amount, end, speech);
    let elides = !speech.language().of_vowel.is_empty() && amount.magnitude.is_none();
    let mut ahead = end;
    if ahead.blank()
        && ahead.peek().is_some_and(char::is_lowercase)
        && let Some(of) = amount.link(speech).filter(|_| elides)
    {
        let noun = lower_case(ahead.letters());
        let word = noun.chars().count() > 1 && !speech.language().small_words.contains(&&*noun);
        if word && ahead.at_word_end() && !ahead.peek().is_some_and(|c| "'’@/_".contains(c)) {
            return (ahead, format!("{said} {}", linked(of, &noun, speech)));
        }
    }
    (end, said)
}

/// A number that is no year, before a noun or alone.
fn bare(amount: &Amount, end: Scan<'_>, speech: &Speech) -> String {
    let number = &amount.number;
    let counts = amount.magnitude.is_none() && number.fraction.is_empty() && !number.negative;
    let n = number.value().filter(|_| counts);
    let said = n.and_then(|n| (speech.language().before_noun)(speech, n, end));
    said.unwrap_or_else(|| amount.alone(speech))
}

/// Whether four digits are a year: by the word before, else by their size and by what stands behind.
fn is_year(scan: Scan<'_>, amount: &Amount, end: Scan<'_>, speech: &Speech) -> bool {
    let number = &amount.number;
    let four = number.whole.len() == 4 && number.fraction.is_empty() && !number.grouped;
    let Some(n) = number.value().filter(|_| four && amount.magnitude.is_none()) else {
        return false;
    };
    if !POSSIBLE_YEARS.contains(&n) || number.negative {
        return false;
    }
    let before = scan.word_before();
    let language = speech.language();
    if language.year_openers.contains(&before.trim_start_matches('\'')) {
        return true;
    }
    // Alone in its line, where years are told in pairs.
    let alone = scan.before().is_none_or(|c| c == '\n') && end.peek().is_none_or(|c| c == '\n');
    if alone && !speech.words().oh.is_empty() && POSSIBLE_YEARS.contains(&n) && n >= 1100 {
        return true;
    }
    let counted = (language.is_counted)(end);
    LIKELY_YEARS.contains(&n) && !counted && !language.count_openers.contains(&before.as_str())
}

/// Signs that belong to the number behind them.
fn is_sign(c: char) -> bool {
    is_minus(c) || matches!(c, '+' | '±' | '~')
}

/// Minus, and the hyphen that stands for it.
pub(super) fn is_minus(c: char) -> bool {
    matches!(c, '-' | '−' | '‐')
}

/// A sign belongs to the number behind it where nothing leans on it from before.
pub(super) fn may_be_sign(scan: Scan<'_>) -> bool {
    // "40.7,-74.0"
    let listed = scan.before().is_some_and(|c| ",;?!".contains(c));
    (listed || opens(scan)) && scan.at(1).is_some_and(|c| !is_gap(c))
}

fn opens(scan: Scan<'_>) -> bool {
    scan.before().is_none_or(|c| c.is_whitespace() || "([{“\"'=<>≤≥/*×".contains(c))
}

/// Up to nine digits as a number.
pub(super) fn plain_digits(scan: &mut Scan<'_>) -> Option<u64> {
    let digits: String = scan.digits().iter().collect();
    digits.parse().ok().filter(|_| digits.len() <= 9)
}

/// A word in lower case.
pub(super) fn lower_case(word: &[char]) -> String {
    word.iter().map(|&c| lower(c)).collect()
}
