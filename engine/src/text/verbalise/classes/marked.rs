//! Text between marks: somebody said how it is to be read, with `say-as` or `spell`.

use super::fraction::say_fraction;
use super::number::plain_digits;
use super::word::roman_value;
use super::{Reading, Rule, address, date, digits, number};
use crate::text::spoken::Mark;
use crate::text::verbalise::Verbaliser;
use crate::text::verbalise::language::Date;
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::{Look, Scan};
use crate::text::verbalise::speech::Speech;

/// Text between marks is said as they tell; a mark alone is silent.
pub(super) fn marked<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let mark = scan.eat_if(|c| c == Mark::CLOSING || Mark::opened_by(c).is_some())?;
    let alone = (scan, String::new());
    let Some(mark) = Mark::opened_by(mark) else { return Some(alone) };
    let text = scan.eat_while(usize::MAX, |c| c != Mark::CLOSING);
    if !scan.eat(Mark::CLOSING) {
        return Some(alone);
    }
    let said = told(mark, text, speech).unwrap_or_else(|| match mark {
        Mark::Characters => characters(text, speech),
        _ => Verbaliser::aside(*speech, text),
    });
    Some((scan, said))
}

/// What a mark makes of a text that suits it.
fn told(mark: Mark, text: &[char], speech: &Speech) -> Option<String> {
    let text: String = text.iter().filter(|c| **c != '\'' && **c != '’').collect();
    let text = text.trim();
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    match mark {
        Mark::Characters => None,
        Mark::Digits => (!digits.is_empty()).then(|| speech.digits(&digits)),
        Mark::Telephone => {
            let grouped = || read_whole(text, digits::grouped, speech);
            grouped().or_else(|| (!digits.is_empty()).then(|| speech.digits(&digits)))
        }
        Mark::Ordinal => {
            let letters: Vec<char> = text.chars().collect();
            let n = roman_value(&letters).or_else(|| digits.parse().ok())?;
            Some(speech.ordinal(n, Gender::Masculine))
        }
        Mark::Cardinal => {
            let letters: Vec<char> = text.chars().collect();
            let n = if plain { text.parse().ok() } else { roman_value(&letters) };
            n.map(|n| speech.count(n)).or_else(|| read_whole(text, number::plain, speech))
        }
        Mark::Fraction => read_whole(&text.replace('+', " "), part_of_one, speech),
        // 0930
        Mark::Time if plain && text.len() == 4 => {
            Some(Verbaliser::aside(*speech, &spaced_by(text, 2, ':')))
        }
        Mark::Time => None,
        Mark::Date(order) => in_order(text, Mark::DATES[usize::from(order)], speech),
    }
}

/// 3/4 and 1 3/4, whatever else they might be.
fn part_of_one<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let mut whole = None;
    let mut above = plain_digits(&mut scan)?;
    if scan.blanks() > 0 {
        whole = Some(std::mem::replace(&mut above, plain_digits(&mut scan)?));
    }
    scan.eat_if(|c| c == '/' || c == '⁄')?;
    let below = plain_digits(&mut scan).filter(|&below| below > 0)?;
    say_fraction(scan, whole, above, below, speech)
}

/// What a rule says of a text, if it reads all of it.
fn read_whole(text: &str, rule: Rule, speech: &Speech) -> Option<String> {
    let text: Vec<char> = text.chars().collect();
    let look = Look::new(&text, 0, true);
    let (end, said) = rule(look.scan(), speech)?;
    (end.taken() == text.len()).then_some(said)
}

/// A sign behind the first so many characters.
fn spaced_by(text: &str, chars: usize, sign: char) -> Vec<char> {
    let mut spaced: Vec<char> = text.chars().collect();
    spaced.insert(chars.min(spaced.len()), sign);
    spaced
}

/// Letters one by one, digits one by one, signs by their names.
fn characters(text: &[char], speech: &Speech) -> String {
    let runs = text.chunk_by(|a, b| a.is_alphabetic() && b.is_alphabetic());
    let say = |run: &[char]| {
        let run_text: String = run.iter().collect();
        match run[0] {
            c if c.is_alphabetic() => speech.spell(&run_text),
            c if c.is_ascii_digit() => speech.digits(&run_text),
            c => address::sign(c, false, speech).unwrap_or_default().to_owned(),
        }
    };
    let said: Vec<String> = runs.map(say).filter(|said| !said.is_empty()).collect();
    said.join(" ")
}

/// A day of digits whose parts stand in an order such as `dmy`, with signs between them or in the usual widths.
fn in_order(text: &str, order: &str, speech: &Speech) -> Option<String> {
    let mut parts: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect();
    if let [run] = &parts[..]
        && order.len() > 1
    {
        let mut rest = run.as_str();
        let mut cut = Vec::new();
        for part in order.chars() {
            let (piece, behind) = rest.split_at_checked(if part == 'y' { 4 } else { 2 })?;
            cut.push(piece.to_owned());
            rest = behind;
        }
        parts = if rest.is_empty() { cut } else { return None };
    }
    if parts.len() != order.len() {
        return None;
    }
    let mut told = Date { month_first: order.starts_with('m'), ..Date::default() };
    for (part, digits) in order.chars().zip(&parts) {
        let n = digits.parse::<u32>();
        match part {
            'd' => told.day = Some(n.ok().filter(|day| (1..=31).contains(day))?),
            'm' => {
                let named = || date::month(&digits.to_lowercase(), speech).map(|(month, _)| month);
                told.month = n.ok().or_else(named).filter(|month| (1..=12).contains(month))?;
            }
            _ if digits.len() == 2 => told.year = Some(date::of_two_digits(n.ok()?)),
            _ => told.year = Some(n.ok().filter(|_| digits.len() <= 4)?),
        }
    }
    match told {
        Date { month: 0, year: Some(year), .. } => Some(speech.year(year.into())),
        Date { day: None, year: None, month, .. } => Some(speech.names().month(month).to_owned()),
        _ => Some((speech.language().date)(speech, &told, "")),
    }
}
