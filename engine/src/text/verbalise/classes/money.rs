//! Amounts of money: sign or code before or behind, cents, ranges, thousands and millions.

use super::Reading;
use super::amount::{self, Amount};
use super::number;
use crate::text::verbalise::language::{Currency, Magnitude};
use crate::text::verbalise::names::{Gender, Noun};
use crate::text::verbalise::number::Number;
use crate::text::verbalise::scan::{Scan, lower};
use crate::text::verbalise::speech::Speech;

/// Names of a currency for one and many, and its hundredth.
struct Named {
    one: &'static str,
    other: &'static str,
    gender: Gender,
    minor: Option<(&'static str, &'static str)>,
    minor_gender: Gender,
}

impl Named {
    fn of(currency: &Currency) -> Self {
        let Currency { one, other, gender, minor, minor_gender, .. } = *currency;
        Self { one, other, gender, minor, minor_gender }
    }

    /// What CLDR calls it.
    fn of_code(noun: &Noun, speech: &Speech) -> Self {
        let Noun { one, other, .. } = *noun;
        let (gender, minor_gender) = (speech.gender(one), Gender::default());
        Self { one, other, gender, minor: None, minor_gender }
    }
}

/// $1,234.50, -$5, USD 5.3m, 20 €, $5-10, $20/month.
pub(super) fn read<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let mut start = scan;
    let negative = scan.peek().is_some_and(number::is_minus) && number::may_be_sign(scan);
    if negative {
        start = start.skip(1);
    }
    let (mut end, mut amounts, money) = before(start, speech).or_else(|| behind(start, speech))?;
    if let Some(first) = amounts.first_mut() {
        first.number.negative |= negative;
    }
    let adjective = speech.language().articles.contains(&scan.word_before().as_str())
        && end.next_visible().is_some_and(char::is_alphabetic)
        && amounts.iter().all(|a| a.number.fraction.is_empty() || a.magnitude.is_some())
        && !speech.language().small_words.contains(&next(end).to_lowercase().as_str());
    let mut said = say(speech, &amounts, &money, adjective);
    if let Some((per_end, per)) = per(end, speech) {
        said = match per.strip_prefix(' ') {
            Some(per) => format!("{said} {per}"),
            None => format!("{said} {} {per}", speech.words().per),
        };
        end = per_end;
    }
    Some((end, said))
}

fn next(scan: Scan<'_>) -> String {
    scan.next_word().iter().collect()
}

/// Sign or code, then the amount.
fn before<'a>(start: Scan<'a>, speech: &Speech) -> Option<(Scan<'a>, Vec<Amount>, Named)> {
    let found = named(start, speech).or_else(|| small_code(start, speech));
    let (mut scan, money) = found?;
    scan.blank();
    let negative = scan.peek().is_some_and(number::is_minus);
    let digit = scan.at(usize::from(negative)).is_some_and(|c| c.is_ascii_digit() || c == '.');
    if !digit {
        return None;
    }
    if negative {
        scan = scan.skip(1);
    }
    let (mut end, mut first) = amount(scan, speech)?;
    first.number.negative = negative;
    let mut amounts = vec![first];
    let mut range = end;
    range.blank();
    if range.eat_if(|c| matches!(c, '-' | '–' | '—')).is_some() {
        range.blank();
        if let Some((behind_sign, _)) = named(range, speech) {
            range = behind_sign;
            range.blank();
        }
        if let Some((range_end, second)) = amount(range, speech) {
            amounts.push(second);
            end = range_end;
        }
    }
    match said_again(end, speech) {
        Some((end, money)) => Some((end, amounts, money)),
        None => Some((end, amounts, money)),
    }
}

/// $5 USD, $20 pesos: the sign is told once more in words, which are more exact.
fn said_again<'a>(end: Scan<'a>, speech: &Speech) -> Option<(Scan<'a>, Named)> {
    let mut start = end;
    if !start.blank() || !start.peek().is_some_and(char::is_alphabetic) {
        return None;
    }
    let word = |currency: &Currency| {
        let mut scan = start;
        let whole = scan.eat_str(currency.other, false) || scan.eat_str(currency.one, false);
        (whole && scan.at_word_end()).then(|| (scan, Named::of(currency)))
    };
    let word = speech.language().currencies.iter().find_map(word);
    word.or_else(|| named(start, speech).filter(|(scan, _)| scan.at_word_end()))
}

/// The amount, then sign or code.
fn behind<'a>(start: Scan<'a>, speech: &Speech) -> Option<(Scan<'a>, Vec<Amount>, Named)> {
    let (mut scan, first) = amount(start, speech)?;
    let mut amounts = vec![first];
    let mut range = scan;
    range.blank();
    // 50 €–60 €: both may have the sign.
    if let Some((signed, _)) = named(range, speech) {
        range = signed;
        range.blank();
    }
    if range.eat_if(|c| matches!(c, '-' | '–' | '—')).is_some() {
        range.blank();
        if let Some((range_end, second)) = amount(range, speech) {
            let mut sign = range_end;
            sign.blank();
            if named(sign, speech).is_some() {
                amounts.push(second);
                scan = range_end;
            }
        }
    }
    scan.blank();
    let (end, money) = named(scan, speech).or_else(|| small_code(scan, speech))?;
    // "5 $10 bills": the sign belongs to the number behind it.
    let other = end.peek().is_some_and(|c| c.is_alphanumeric());
    (!other).then_some((end, amounts, money))
}

fn amount<'a>(scan: Scan<'a>, speech: &Speech) -> Option<(Scan<'a>, Amount)> {
    let (end, amount) = amount::amount(scan, speech, true)?;
    // 5,- and 5.– have no cents.
    let mut dash = end;
    let marked = dash.eat_if(|c| c == ',' || c == '.').is_some();
    let dashes = dash.eat_while(2, |c| matches!(c, '-' | '–' | '—')).len();
    let closed = marked && dashes > 0 && !dash.peek().is_some_and(char::is_alphanumeric);
    Some((if closed { dash } else { end }, amount))
}

/// A sign of the table, or a code that CLDR names.
fn named<'a>(start: Scan<'a>, speech: &Speech) -> Option<(Scan<'a>, Named)> {
    let first = start.peek();
    // "us$" as well
    let capital = first.filter(char::is_ascii_lowercase).map(|c| c.to_ascii_uppercase());
    let begins = |c: char| Some(c) == first || Some(c) == capital;
    for currency in speech.language().currencies {
        if !currency.sign.chars().next().is_some_and(begins) {
            continue;
        }
        let mut scan = start;
        // "us$ 5", "mex$5"
        let any_case = is_sign(currency) && currency.sign.starts_with(char::is_alphabetic);
        if scan.eat_str(currency.sign, any_case) && (is_sign(currency) || closes(scan)) {
            return Some((scan, Named::of(currency)));
        }
    }
    let mut scan = start;
    let code: String = scan.eat_while(3, |c| c.is_ascii_uppercase()).iter().collect();
    // "COP21" is a name.
    let apart = !scan.peek().is_some_and(|c| c.is_ascii_digit());
    let noun = speech.names().money(&code).filter(|_| closes(scan) && apart)?;
    Some((scan, Named::of_code(noun, speech)))
}

/// Codes in small letters that are no words of any language: `5 usd`.
pub(in crate::text::verbalise) const SMALL_CODES: [&str; 29] = [
    "aud", "brl", "cad", "chf", "cny", "crc", "czk", "dkk", "dop", "eur", "gbp", "gtq", "hkd",
    "hnl", "inr", "jpy", "krw", "mxn", "nio", "nok", "nzd", "pab", "pln", "pyg", "sek", "usd",
    "uyu", "ves", "zar",
];

/// A code in small letters behind its amount.
fn small_code<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<(Scan<'a>, Named)> {
    let letters = scan.eat_while(3, |c| c.is_ascii_lowercase());
    let known = |code: &&&str| letters.iter().copied().eq(code.chars());
    let code = SMALL_CODES.iter().find(known).filter(|_| scan.at_word_end())?.to_uppercase();
    let listed = speech.language().currencies.iter().find(|currency| currency.sign == code);
    let named = || Some(Named::of_code(speech.names().money(&code)?, speech));
    Some((scan, listed.map(Named::of).or_else(named)?))
}

fn is_sign(currency: &Currency) -> bool {
    !currency.sign.ends_with(char::is_alphabetic)
}

fn closes(scan: Scan<'_>) -> bool {
    !scan.peek().is_some_and(char::is_alphabetic)
}

fn say(speech: &Speech, amounts: &[Amount], money: &Named, adjective: bool) -> String {
    let Some(last) = amounts.last() else { return String::new() };
    let mut said: Vec<String> = Vec::new();
    for amount in &amounts[..amounts.len() - 1] {
        let shared = amount.magnitude.is_some() || amount.number.fraction.is_empty();
        said.push(if shared {
            amount.words(speech, money.gender)
        } else {
            one(speech, amount, money, false)
        });
    }
    said.push(one(speech, last, money, adjective));
    said.join(&format!(" {} ", speech.words().to))
}

/// An amount with hundredths where it can have them: $2.5 is $2.50, and noughts behind these say nothing.
fn with_hundredths(amount: &Amount, money: &Named) -> Amount {
    let mut number = amount.number.clone();
    let digits = number.fraction.trim_end_matches('0').len();
    if amount.magnitude.is_none() && !number.fraction.is_empty() {
        match (digits, money.minor) {
            (0, None) => number.fraction.clear(),
            (0..=2, Some(_)) => number.fraction = format!("{:0<2}", &number.fraction[..digits]),
            (0..=2, None) => {}
            _ => number.fraction.truncate(digits),
        }
    }
    Amount { number, magnitude: amount.magnitude }
}

fn one(speech: &Speech, amount: &Amount, money: &Named, adjective: bool) -> String {
    let amount = &with_hundredths(amount, money);
    let number = &amount.number;
    let cents = number.fraction.len() == 2 && amount.magnitude.is_none();
    let noun = |number: &Number, (one, other): (&'static str, &'static str)| {
        speech.named(if adjective || (speech.language().is_one)(number) { one } else { other })
    };
    let names = (money.one, money.other);
    let (true, Some(minor)) = (cents, money.minor) else {
        let words = amount.words(speech, money.gender);
        let large: Option<&Magnitude> = amount.magnitude;
        let many = large.is_some() && !adjective;
        let noun = if many { speech.named(money.other) } else { noun(number, names) };
        let noun = amount.link(speech).map_or(noun.clone(), |of| linked(of, &noun, speech));
        return format!("{words} {noun}");
    };
    let whole = Number { fraction: String::new(), ..number.clone() };
    let part = Number::of(number.fraction.parse().unwrap_or_default());
    let has_whole = !(whole.is(0) || whole.whole.is_empty());
    let (small, cents) = (speech.number(&part, money.minor_gender), noun(&part, minor));
    let cents = cents.as_str();
    let (big, noun) = (speech.number(&whole, money.gender), noun(&whole, names));
    let amount = Amount { number: whole, magnitude: None };
    let noun = amount.link(speech).map_or(noun.clone(), |of| linked(of, &noun, speech));
    match (has_whole, part.is(0)) {
        (_, true) => format!("{big} {noun}"),
        (true, false) => (speech.language().cents)(&big, &noun, &small, cents),
        (false, false) if number.negative => format!("{} {small} {cents}", speech.words().minus),
        (false, false) => format!("{small} {cents}"),
    }
}

/// "of" and a noun: `de dollars`, `d'euros`.
pub(in crate::text::verbalise) fn linked(of: &str, noun: &str, speech: &Speech) -> String {
    let of_vowel = speech.language().of_vowel;
    let vowel = noun.starts_with(|c| "aeiouyéèêh".contains(lower(c)));
    match vowel && !of_vowel.is_empty() {
        true => format!("{of_vowel}{noun}"),
        false => format!("{of} {noun}"),
    }
}

/// `/month`, `/hr`: what is paid for.
fn per<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<(Scan<'a>, String)> {
    if !scan.eat('/') || speech.words().per.is_empty() {
        return None;
    }
    if scan.peek().is_some_and(|c| c.is_ascii_digit()) {
        let (end, amount) = amount(scan, speech)?;
        return Some((end, amount.alone(speech)));
    }
    let word: String = scan.letters().iter().collect();
    if word.is_empty() || !scan.at_word_end() {
        return None;
    }
    let known = speech.language().per.iter().find(|(short, _)| *short == word);
    Some((scan, known.map_or(word.clone(), |(_, full)| (*full).to_owned())))
}
