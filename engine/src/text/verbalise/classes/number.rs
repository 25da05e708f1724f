//! Numbers: cardinals, decimals, ordinals, fractions, ratios, ranges, years and decades.

use super::money::linked;
use super::{Reading, date, measure};
use crate::text::verbalise::language::{Magnitude, Part};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::number::Number;
use crate::text::verbalise::scan::{Scan, is_gap, lower};
use crate::text::verbalise::speech::Speech;

/// A number with the word for its size: 5.3 million.
#[derive(Debug)]
pub(super) struct Amount {
    pub(super) number: Number,
    pub(super) magnitude: Option<&'static Magnitude>,
}

/// A number of millions without a rest is a noun in many languages.
pub(in crate::text::verbalise) const MILLION: u64 = 1_000_000;
/// Years that are told as such without a word that says so.
const LIKELY_YEARS: std::ops::RangeInclusive<u64> = 1900..=2099;
/// Years behind a word that opens one.
const POSSIBLE_YEARS: std::ops::RangeInclusive<u64> = 1000..=2199;

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
    let number = Number::read(&mut scan, speech.tongue.locale.marks())?;
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
        let telling =
            (money && (!parted || whole || priced)) || (!parted && is_large(m, word, speech));
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

/// Whether one to three names with the word for a street at their end follow.
fn is_before_street(mut scan: Scan<'_>, speech: &Speech) -> bool {
    const NAMES_MAX: usize = 3;
    for names in 0..=NAMES_MAX {
        if !scan.blank() {
            return false;
        }
        let word = scan.letters();
        if !word.first().is_some_and(|c| c.is_uppercase()) {
            return false;
        }
        if names > 0 && speech.language().streets.contains(&lower_case(word).as_str()) {
            return true;
        }
    }
    false
}

/// 21st, 1,000th.
pub(super) fn ordinal<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let number = Number::read(&mut scan, speech.tongue.locale.marks())?;
    let n = number.value().filter(|_| number.fraction.is_empty())?;
    for (ending, gender) in speech.language().ordinal_endings {
        let mut end = scan;
        if end.eat_str(ending, true) && end.at_word_end() {
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

/// 1990s, '90s.
pub(super) fn decade<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let decades = speech.language().decades?;
    let before = scan.word_before();
    let quoted = scan.eat_if(|c| matches!(c, '\'' | '’' | '‘')).is_some();
    let digits: String = scan.digits().iter().collect();
    let n: u64 = digits.parse().ok()?;
    if !(n.is_multiple_of(10) && (digits.len() == 4 || (digits.len() == 2 && n >= 10))) {
        return None;
    }
    // "30s" are seconds, "the 30s" are years.
    let told = quoted || speech.language().decade_openers.contains(&before.as_str());
    if digits.len() == 2 && !told {
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

/// 1/2, 3 1/2, 24/7, 120/80, ½, 3½.
pub(super) fn fraction<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let start = scan;
    let before = scan.before();
    let first = plain_digits(&mut scan)?;
    let mut whole = None;
    if let Some((above, below)) = scan.peek().and_then(vulgar) {
        scan = scan.skip(1);
        return say_fraction(scan, Some(first), above, below, speech);
    }
    let mut above = first;
    let mut mixed = scan;
    if mixed.eat_if(is_gap).is_some() {
        if let Some((above, below)) = mixed.peek().and_then(vulgar) {
            return say_fraction(mixed.skip(1), Some(first), above, below, speech);
        }
        if let Some(second) = plain_digits(&mut mixed)
            && mixed.peek() == Some('/')
        {
            whole = Some(first);
            above = second;
            scan = mixed;
        }
    }
    if before == Some('/') || scan.eat_if(|c| c == '/' || c == '⁄').is_none() {
        return None;
    }
    let below = plain_digits(&mut scan)?;
    if !scan.at_number_end() || scan.peek() == Some('/') {
        return None;
    }
    if whole.is_none() && !is_fraction(above, below) {
        let pair = matches!((above, below), (24, 7) | (9, 11))
            || (above.is_multiple_of(10) && above + below == 100)
            || (above == below && above != 10);
        if let Some(day) = date::loose(start, speech).filter(|_| !pair) {
            return Some(day);
        }
        // "Ley 39/2015" is of that year.
        let over = match below {
            _ if pair => "",
            year if LIKELY_YEARS.contains(&year) => speech.words().slash,
            _ => speech.words().over,
        };
        let said = [&speech.count(above), over, &speech.count(below)];
        let said = said.into_iter().filter(|s| !s.is_empty()).collect::<Vec<&str>>().join(" ");
        return Some(measure::with_noun(scan, said, false, speech));
    }
    say_fraction(scan, whole, above, below, speech)
}

/// -1/2
pub(super) fn negative_fraction<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    scan.peek().filter(|&c| is_minus(c) && may_be_sign(scan))?;
    let mut part = scan.skip(1);
    let above = plain_digits(&mut part)?;
    let stroke = part.eat_if(|c| c == '/' || c == '⁄').is_some();
    plain_digits(&mut part).filter(|&below| stroke && is_fraction(above, below))?;
    let (end, said) = fraction(scan.skip(1), speech)?;
    Some((end, format!("{} {said}", speech.words().minus)))
}

/// A sign that is a fraction: half, thirds, quarters and so on.
pub(super) fn vulgar(c: char) -> Option<(u64, u64)> {
    const SIGNS: [(char, u64, u64); 18] = [
        ('½', 1, 2),
        ('⅓', 1, 3),
        ('⅔', 2, 3),
        ('¼', 1, 4),
        ('¾', 3, 4),
        ('⅕', 1, 5),
        ('⅖', 2, 5),
        ('⅗', 3, 5),
        ('⅘', 4, 5),
        ('⅙', 1, 6),
        ('⅚', 5, 6),
        ('⅐', 1, 7),
        ('⅛', 1, 8),
        ('⅜', 3, 8),
        ('⅝', 5, 8),
        ('⅞', 7, 8),
        ('⅑', 1, 9),
        ('⅒', 1, 10),
    ];
    SIGNS.iter().find(|s| s.0 == c).map(|&(_, above, below)| (above, below))
}

/// A fraction in words, perhaps behind a whole number, with the unit behind it.
pub(super) fn say_fraction<'a>(
    end: Scan<'a>,
    whole: Option<u64>,
    above: u64,
    below: u64,
    speech: &Speech,
) -> Option<Reading<'a>> {
    let gender = measure::gender(end, speech).or_else(|| speech.noun(end));
    let part_of = |gender| {
        let part = Part { whole, above, below, gender };
        (speech.language().part_of)(speech, &part)
    };
    if let Some(said) = gender.and_then(part_of) {
        return Some(measure::with_noun(end, said, whole.is_none(), speech));
    }
    let part = (speech.language().fraction)(speech, above, below)?;
    let Some(whole) = whole else { return Some(measure::with_noun(end, part, true, speech)) };
    let said = (speech.language().mixed)(&speech.count(whole), &part, (above, below));
    Some(measure::with_noun(end, said, false, speech))
}

/// Whether two numbers at a stroke are a part of one: less than one, and of a usual size.
fn is_fraction(above: u64, below: u64) -> bool {
    above < below && matches!(below, 2..=10 | 12 | 16 | 32 | 64 | 100 | 1_000)
}

/// 1e6, 1.5e-3
pub(super) fn scientific<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let number = Number::read(&mut scan, speech.tongue.locale.marks())?;
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
    if start.peek() == Some(',') || (start.peek() == Some('.') && !opens(start)) {
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
    let closed = end.at_number_end() && end.peek() != Some('-');
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
    // 3-1 falls: no range does.
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
    opens(scan) && scan.at(1).is_some_and(|c| !is_gap(c))
}

fn opens(scan: Scan<'_>) -> bool {
    scan.before().is_none_or(|c| c.is_whitespace() || "([{“\"'=<>≤≥/*×".contains(c))
}

fn plain_digits(scan: &mut Scan<'_>) -> Option<u64> {
    let digits: String = scan.digits().iter().collect();
    digits.parse().ok().filter(|_| digits.len() <= 9)
}

/// A word in lower case.
pub(super) fn lower_case(word: &[char]) -> String {
    word.iter().map(|&c| lower(c)).collect()
}
