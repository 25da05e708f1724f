//! Names with letters and digits in one: models, serial numbers, identifiers of programs.

use super::{Reading, capitals, measure};
use crate::text::verbalise::number::Number;
use crate::text::verbalise::scan::Scan;
use crate::text::verbalise::speech::Speech;

/// Digits of a name that are still said as a number.
const NUMBER_DIGITS: usize = 4;
/// A name with more changes between letters and digits is told sign by sign.
const CHANGES_MAX: usize = 3;

/// H100, A4, COVID-19, GPT-4o, B2B, v2.1, 747-400.
pub(super) fn read<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    if let Some(read) = paragraph(scan, speech) {
        return Some(read);
    }
    let mut end = scan;
    let (parts, hyphens) = parts(&mut end);
    let digits = parts.iter().any(|p| p[0].is_ascii_digit());
    let letters = parts.iter().any(|p| p[0].is_alphabetic());
    if !digits || !letters || end.peek() == Some('_') {
        return None;
    }
    if parts.len() == 2 && matches!(parts[0], ['v' | 'V']) {
        return version(scan, speech);
    }
    let serial = parts.len() > CHANGES_MAX + 1 || is_told(scan, speech);
    let size = |i: usize| {
        let digits = |part: Option<&&[char]>| part.is_some_and(|p| p[0].is_ascii_digit());
        i > 0 && parts[i] == ['x'] && digits(parts.get(i - 1)) && digits(parts.get(i + 1))
    };
    // "ABC1234": where digits have no pairs they are told one by one, too.
    let is_coded = |i: usize| {
        let capitals = |part: &&&[char]| part.len() >= 2 && part.iter().all(|c| c.is_uppercase());
        let behind = i > 0 && !hyphens[i] && parts.get(i - 1).as_ref().is_some_and(capitals);
        behind && speech.words().oh.is_empty()
    };
    let one = |(i, part): (usize, &&[char])| match size(i) {
        true => speech.words().by.to_owned(),
        false => say(part, serial || is_coded(i), speech),
    };
    let said: Vec<String> = parts.iter().enumerate().map(one).collect();
    let said = said.join(" ");
    let sized = (1..parts.len()).any(size) && end.peek() == Some(' ');
    Some(if sized { measure::with_noun(end, said, false, speech) } else { (end, said) })
}

/// "code AB123", "your code is AB123": a word before says that each sign counts.
fn is_told(scan: Scan<'_>, speech: &Speech) -> bool {
    let openers = speech.language().code_openers;
    if openers.is_empty() {
        return false;
    }
    let label = scan.label_before();
    let [last, earlier] = scan.words_before();
    openers.contains(&label.as_str())
        || (matches!(&*last, "is" | "ist" | "es" | "est" | "è" | "é")
            && openers.contains(&&*earlier))
}

/// 401(k), section 8(a)
fn paragraph<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let digits: String = scan.digits().iter().collect();
    let short = (1..=NUMBER_DIGITS).contains(&digits.len()) && scan.eat('(');
    let letter = scan.eat_if(char::is_alphabetic).filter(|_| short)?;
    let closed = scan.eat(')') && scan.at_word_end();
    closed
        .then(|| (scan, format!("{} {}", speech.pairs(&digits), speech.spell(&letter.to_string()))))
}

/// The runs of letters and of digits, and before which of them a hyphen is left out.
fn parts<'a>(scan: &mut Scan<'a>) -> (Vec<&'a [char]>, Vec<bool>) {
    let (mut parts, mut hyphens) = (Vec::new(), Vec::new());
    loop {
        let mut ahead = *scan;
        if !parts.is_empty() {
            ahead.eat_if(|c| c == '-' || c == '‑');
        }
        let hyphen = ahead.taken() > scan.taken();
        let start = ahead;
        let mut part = ahead.digits();
        if part.is_empty() {
            part = ahead.letters();
        } else if hyphen || parts.is_empty() {
            part = with_fraction(start, &mut ahead, part);
        }
        // A hyphen parts two words unless digits stand at it: "COVID-19", not "post-war".
        let joined = !hyphen
            || part.first().is_some_and(char::is_ascii_digit)
            || parts.last().is_some_and(|p: &&[char]| p[0].is_ascii_digit() && part.len() <= 2);
        if part.is_empty() || !joined {
            return (parts, hyphens);
        }
        parts.push(part);
        hyphens.push(hyphen);
        *scan = ahead;
    }
}

/// The 3.5 of GPT-3.5.
fn with_fraction<'a>(start: Scan<'a>, end: &mut Scan<'a>, whole: &'a [char]) -> &'a [char] {
    let mut behind = *end;
    let point = start.before() == Some('-') && behind.eat('.') && !behind.digits().is_empty();
    if !point || !behind.at_number_end() {
        return whole;
    }
    *end = behind;
    behind.since(start)
}

fn say(part: &[char], serial: bool, speech: &Speech) -> String {
    let text: String = part.iter().collect();
    if let Some((whole, fraction)) = text.split_once('.') {
        let pointed = speech.data.locale.marks().decimal != '.';
        let (whole, fraction) = (whole.to_owned(), fraction.to_owned());
        return speech.number_alone(&Number { whole, fraction, pointed, ..Number::default() });
    }
    if part[0].is_ascii_digit() {
        let long = part.len() > NUMBER_DIGITS || (serial && part.len() > 2);
        return if long { speech.digits(&text) } else { speech.pairs(&text) };
    }
    let one = part.len() == 1;
    let capitals = part.iter().all(|c| c.is_uppercase());
    if one || (capitals && !capitals::is_acronym(&text, speech) && (part.len() <= 4 || serial)) {
        return speech.spell(&text);
    }
    if capitals { speech.acronym(&text) } else { text }
}

/// v2.1.3
fn version<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    scan = scan.skip(1);
    let mut said = vec![speech.words().version.to_owned()];
    loop {
        let digits: String = scan.digits().iter().collect();
        let n = digits.parse().ok()?;
        said.push(speech.count(n));
        let mut ahead = scan;
        if !(ahead.eat('.') && ahead.peek().is_some_and(|c| c.is_ascii_digit())) {
            break;
        }
        said.push(speech.words().dot.to_owned());
        scan = ahead;
    }
    scan.at_word_end().then(|| (scan, said.join(" ")))
}

/// my_file_name, getUserName(): the words of a name in a program.
pub(super) fn identifier<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let start = scan;
    let run = scan.eat_while(usize::MAX, |c| c.is_alphanumeric() || c == '_');
    let called = scan.peek() == Some('(') && scan.at(1) == Some(')');
    let snake = run[1..].windows(2).any(|w| w[0] == '_' && w[1] != '_');
    let humps = run.windows(2).filter(|w| w[0].is_lowercase() && w[1].is_uppercase()).count();
    let camel = run[0].is_lowercase() && humps > 0 && (humps > 1 || called);
    if !(snake || camel || called) {
        return None;
    }
    let mut said = Vec::new();
    let mut word = String::new();
    for (i, &c) in run.iter().enumerate() {
        let hump = c.is_uppercase() && i > 0 && run[i - 1].is_lowercase();
        if (c == '_' || hump) && !word.is_empty() {
            said.push(std::mem::take(&mut word));
        }
        if c != '_' {
            word.push(c);
        }
    }
    said.push(word);
    let said: Vec<String> =
        said.iter().filter(|w| !w.is_empty()).map(|w| part_of(w, speech)).collect();
    let end = if called { scan.skip(2) } else { scan };
    (end.taken() > start.taken() && !said.is_empty()).then(|| (end, said.join(" ")))
}

fn part_of(word: &str, speech: &Speech) -> String {
    let digits = word.bytes().position(|b| b.is_ascii_digit());
    let Some(at) = digits else { return word.to_owned() };
    let (letters, rest) = word.split_at(at);
    let said = match rest.bytes().all(|b| b.is_ascii_digit()) {
        true if rest.len() <= NUMBER_DIGITS => speech.pairs(rest),
        true => speech.digits(rest),
        false => rest.chars().map(|c| said_alone(c, speech)).collect::<Vec<String>>().join(" "),
    };
    if letters.is_empty() { said } else { format!("{letters} {said}") }
}

fn said_alone(c: char, speech: &Speech) -> String {
    match c.to_digit(10) {
        Some(digit) => speech.count(digit.into()),
        None => speech.spell(&c.to_string()),
    }
}
