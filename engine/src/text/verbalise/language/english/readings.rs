//! Forms that only English has: mid-1980s, 3Q26, 340 AD, Portland, OR, and the sides of a city in its streets.

use super::places;
use crate::text::verbalise::classes::{Reading, number};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::{Scan, lower};
use crate::text::verbalise::speech::Speech;

/// Longest name of a town that is looked back on.
const TOWN_LETTERS_MAX: usize = 24;

/// mid-1980s, late-90s
pub(super) fn prefixed_decade<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    const PREFIXES: [&str; 5] = ["early", "mid", "late", "pre", "post"];
    let letters = scan.letters();
    let known = |prefix: &&str| letters.iter().map(|&c| lower(c)).eq(prefix.chars());
    if letters.is_empty() || !PREFIXES.iter().any(known) || !scan.eat('-') {
        return None;
    }
    let word: String = letters.iter().collect();
    let (end, decade) = number::one_decade(scan, || true, speech)?;
    Some((end, format!("{word} {decade}")))
}

/// 3Q26, 1H 2026: a quarter or half of a year.
pub(super) fn quarter<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let start = scan;
    let joined = scan.before().is_some_and(|c| c.is_alphanumeric() || "-./".contains(c));
    let [part @ '1'..='4'] = scan.digits() else { return None };
    let name = match scan.eat_if(|c| matches!(c, 'Q' | 'H'))? {
        'Q' => "quarter",
        _ if matches!(part, '1' | '2') => "half",
        _ => return None,
    };
    scan.blank();
    let digits: String = scan.digits().iter().collect();
    let year = match digits.len() {
        2 => speech.pairs(&digits),
        4 if digits.starts_with("20") || digits.starts_with("19") => {
            speech.year(digits.parse().ok()?)
        }
        _ => return None,
    };
    let part = speech.ordinal(part.to_digit(10)?.into(), Gender::Masculine);
    let article = if start.word_before() == "the" { "" } else { "the " };
    (!joined && scan.at_word_end()).then(|| (scan, format!("{article}{part} {name} of {year}")))
}

/// 340 AD, 1066 B.C.: a year by what stands behind it.
pub(super) fn year_of_era<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    const ERAS: [&str; 6] = ["AD", "BC", "CE", "BCE", "A.D", "B.C"];
    let joined = scan.before().is_some_and(|c| c.is_alphanumeric() || "-–.,$€£".contains(c));
    let digits = scan.digits();
    let end = scan;
    if joined || !matches!(digits.len(), 3 | 4) || !scan.blank() {
        return None;
    }
    let digits: String = digits.iter().collect();
    let n = digits.parse().ok()?;
    let era = ERAS.iter().any(|era| {
        let mut behind = scan;
        behind.eat_str(era, false) && behind.at_word_end()
    });
    let said = if digits.len() == 3 { speech.pairs(&digits) } else { speech.year(n) };
    era.then_some((end, said))
}

/// 12 W. Main St., 708 N 1st Street: a letter between the number of a house and its street.
pub(super) fn side<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let words = speech.words();
    // The number of a house.
    let behind_digit = scan.far_before(1).is_some_and(|c| c.is_ascii_digit());
    scan.peek().filter(|&c| behind_digit && "NSEW".contains(c))?;
    let house = scan.word_before();
    let numbered = house.bytes().all(|b| b.is_ascii_digit());
    let letters: String = scan.eat_while(2, |c| "NSEW".contains(c)).iter().collect();
    let said = match letters.as_str() {
        "N" => words.north.to_owned(),
        "S" => words.south.to_owned(),
        "E" => words.east.to_owned(),
        "W" => words.west.to_owned(),
        "NE" | "NW" | "SE" | "SW" => {
            let first = if letters.starts_with('N') { words.north } else { words.south };
            let second = if letters.ends_with('E') { words.east } else { words.west };
            format!("{first}{second}")
        }
        _ => return None,
    };
    scan.eat('.');
    let street = numbered && scan.at_word_end() && number::is_before_street(scan, speech);
    let mut letters = said.chars();
    let capital = letters.next()?.to_uppercase();
    street.then(|| (scan, capital.chain(letters).collect()))
}

/// Portland, OR 97201: a state behind the name of a town.
pub(super) fn state<'a>(mut scan: Scan<'a>, _: &Speech) -> Option<Reading<'a>> {
    if scan.far_before(1) != Some(',') || !is_behind_town(scan) {
        return None;
    }
    let letters: String = scan.eat_while(3, char::is_uppercase).iter().collect();
    if letters.len() != 2 || !scan.at_word_end() {
        return None;
    }
    let name = places::state(&letters)?;
    if places::is_other_word(&letters) {
        let mut code = scan;
        let zip = code.blank() && code.digits().len() == 5;
        let inside = scan.peek() == Some(',');
        return (zip || inside).then(|| (scan, name.to_owned()));
    }
    Some((scan, name.to_owned()))
}

/// 2h 30m, 1h30m15s, 5m 30s: behind hours `m` is minutes, before seconds as well.
pub(super) fn duration<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let joined = scan.before().is_some_and(|c| c.is_alphanumeric() || "./:-".contains(c));
    let mut said = Vec::new();
    let mut end = scan;
    for (sign, noun) in [('h', "hour"), ('m', "minute"), ('s', "second")] {
        let digits = scan.digits();
        if joined
            || !(1..=3).contains(&digits.len())
            || !scan.peek().is_some_and(|c| "hms".contains(c))
        {
            return None;
        }
        let n: u32 = digits.iter().collect::<String>().parse().ok()?;
        if !scan.eat(sign) {
            // Only the hours may be missing.
            if sign == 'h' && scan.peek() == Some('m') {
                scan = end;
                continue;
            }
            return None;
        }
        let ending = if n == 1 { "" } else { "s" };
        said.push(format!("{} {noun}{ending}", speech.count(n.into())));
        end = scan;
        scan.blank();
        if !scan.peek().is_some_and(|c| c.is_ascii_digit()) {
            break;
        }
    }
    (said.len() > 1 && end.at_word_end()).then(|| (end, said.join(" ")))
}

/// 100s of people, 1000s of them: more than one can count.
pub(super) fn many<'a>(mut scan: Scan<'a>, _: &Speech) -> Option<Reading<'a>> {
    let joined = scan.before().is_some_and(|c| c.is_alphanumeric() || "$€£.,-".contains(c));
    let said = match scan.digits() {
        ['1', '0'] => "tens",
        ['1', '0', '0'] => "hundreds",
        ['1', '0', '0', '0'] => "thousands",
        _ => return None,
    };
    let ended = scan.eat('s') && scan.at_word_end() && !joined;
    (ended && scan.next_word() == ['o', 'f']).then(|| (scan, said.to_owned()))
}

/// 22/3: more than one, where it can be no day.
pub(super) fn improper_fraction<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let joined = scan.before().is_some_and(|c| c.is_alphanumeric() || "/.,:-".contains(c));
    let number = |digits: &[char]| -> Option<u64> {
        digits.iter().collect::<String>().parse().ok().filter(|_| digits.len() <= 3)
    };
    let above = number(scan.digits()).filter(|_| !joined)?;
    let stroke = scan.eat('/');
    let below = number(scan.digits()).filter(|below| stroke && (3..=9).contains(below))?;
    // 50/5 and 24/7 are shares and hours.
    let part = above > 12 && !above.is_multiple_of(below) && (above, below) != (24, 7);
    let day = !speech.data.locale.month_first() && above <= 31;
    let said = (speech.language().fraction)(speech, above, below)?;
    (part && !day && scan.at_number_end() && scan.peek() != Some('/')).then_some((scan, said))
}

/// "the $ fell", but "paid in $": the sign of a currency without an amount.
pub(super) fn lone_currency<'a>(mut scan: Scan<'a>, _: &Speech) -> Option<Reading<'a>> {
    const PLURAL_OPENERS: [&str; 3] = ["in", "of", "for"];
    scan.peek().filter(|&c| "$€£¢".contains(c))?;
    let plural = PLURAL_OPENERS.contains(&scan.word_before().as_str())
        || scan.visible_before().is_some_and(|c| c.is_ascii_digit());
    let said = match scan.eat_if(|c| "$€£¢".contains(c))? {
        '$' => "dollar",
        '€' => "euro",
        '£' => "pound",
        _ => "cent",
    };
    let amount = scan.next_visible().is_some_and(|c| c.is_ascii_digit() || ".-−".contains(c));
    (!plural && !amount).then(|| (scan, said.to_owned()))
}

/// Whether a word with a capital letter, a comma and a blank stand before.
fn is_behind_town(scan: Scan<'_>) -> bool {
    let parted = scan.before() == Some(' ') && scan.far_before(1) == Some(',');
    let letter = |k: &usize| scan.far_before(2 + k).is_some_and(char::is_alphabetic);
    let length = (0..TOWN_LETTERS_MAX).take_while(letter).count();
    let capital = length > 1 && scan.far_before(1 + length).is_some_and(char::is_uppercase);
    parted && capital && scan.far_before(length).is_some_and(char::is_lowercase)
}
