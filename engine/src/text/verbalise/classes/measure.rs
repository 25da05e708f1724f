//! Numbers with a unit, percentages, lengths in feet and inches, places on the globe.

use super::amount::{Amount, amount};
use super::money::linked;
use super::number::{is_minus, may_be_sign};
use super::{Reading, date};
use crate::text::verbalise::language::units;
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::{Scan, is_gap};
use crate::text::verbalise::speech::Speech;

/// What is counted by a unit.
struct Unit {
    one: &'static str,
    other: &'static str,
    /// None: the number is said as if it stood alone.
    gender: Option<Gender>,
}

/// 5.2 km, -20 °C, 50%, 5-10 kg, 5-km.
pub(super) fn read<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let negative = scan.peek().is_some_and(is_minus) && may_be_sign(scan);
    let plus = scan.peek().is_some_and(|c| c == '+' || c == '±' || c == '~') && may_be_sign(scan);
    let start = if negative || plus { scan.skip(1) } else { scan };
    let opens = match start.peek()? {
        '.' => start.at(1).is_some_and(|c| c.is_ascii_digit()),
        c => c.is_ascii_digit(),
    };
    if !opens {
        return None;
    }
    let (end, mut first) = amount(start, speech, false)?;
    first.number.negative = negative;
    if let Some(read) = inches(scan, end, &first, speech) {
        return Some(read);
    }
    if let Some(read) = feet(end, &first, speech) {
        return Some(read);
    }
    let mut amounts = vec![first];
    let mut end = end;
    // Both ends of a range may have the unit.
    let mut range = unit_behind(end, speech).map_or(end, |(unit_end, _, _)| unit_end);
    range.blank();
    if range.eat_if(|c| matches!(c, '-' | '–' | '—')).is_some() {
        range.blank();
        if let Some((range_end, second)) = amount(range, speech, false)
            && unit_behind(range_end, speech).is_some()
        {
            amounts.push(second);
            end = range_end;
        }
    }
    let Some((end, unit, hyphen)) = unit_behind(end, speech) else {
        return for_each(end, &amounts[0], speech);
    };
    let mut said = say(speech, &amounts, &unit, hyphen);
    let end = match per_unit(end, speech) {
        Some((per_end, per)) => {
            said = format!("{said} {per}");
            without_period(per_end, speech)
        }
        None => without_period(end, speech),
    };
    if plus {
        let words = speech.words();
        let sign = match scan.peek() {
            Some('+') => words.plus,
            Some('±') => words.plus_minus,
            _ => words.about,
        };
        said = format!("{sign} {said}");
    }
    Some((end, said))
}

fn say(speech: &Speech, amounts: &[Amount], unit: &Unit, hyphen: bool) -> String {
    let number = |amount: &Amount| match unit.gender {
        Some(gender) => amount.words(speech, gender),
        None => amount.alone(speech),
    };
    let numbers: Vec<String> = amounts.iter().map(number).collect();
    let numbers = numbers.join(&format!(" {} ", speech.words().to));
    let one = amounts
        .last()
        .is_some_and(|a| a.magnitude.is_none() && (speech.language().is_one)(&a.number));
    let noun = if hyphen || (one && amounts.len() == 1) { unit.one } else { unit.other };
    if noun.contains("{0}") {
        return noun.replace("{0}", &numbers);
    }
    let link = amounts.last().and_then(|a| a.link(speech)).filter(|_| unit.gender.is_some());
    let noun = link.map_or_else(|| speech.named(noun), |of| linked(of, noun, speech));
    format!("{numbers} {noun}")
}

/// The noun of a unit behind a number that is already in words.
pub(super) fn with_noun<'a>(
    end: Scan<'a>,
    said: String,
    one: bool,
    speech: &Speech,
) -> Reading<'a> {
    match unit_behind(end, speech) {
        Some((unit_end, unit, false)) if !unit.one.contains("{0}") => {
            let noun = if one { unit.one } else { unit.other };
            (without_period(unit_end, speech), format!("{said} {noun}"))
        }
        _ => (end, said),
    }
}

/// The noun for one of the unit at a place, with its gender, if it is just said behind the number.
pub(in crate::text::verbalise) fn noun<'a>(
    scan: Scan<'a>,
    speech: &Speech,
) -> Option<(Scan<'a>, &'static str, Gender)> {
    let (end, unit, hyphen) = unit_behind(scan, speech)?;
    let gender = unit.gender.filter(|_| !hyphen && !unit.one.contains("{0}"))?;
    Some((without_period(end, speech), unit.one, gender))
}

/// The gender of the unit behind a number.
pub(super) fn gender(end: Scan<'_>, speech: &Speech) -> Option<Gender> {
    unit_behind(end, speech).and_then(|(_, unit, _)| unit.gender)
}

/// Whether a unit or the sign of a currency stands behind a number.
pub(super) fn is_measured(end: Scan<'_>, speech: &Speech) -> bool {
    end.next_visible().is_some_and(|c| "$€£¥".contains(c)) || unit_behind(end, speech).is_some()
}

/// The period of `ft.` belongs to it unless a sentence ends.
fn without_period<'a>(end: Scan<'a>, speech: &Speech) -> Scan<'a> {
    let dotted = end.peek() == Some('.') && end.before().is_some_and(char::is_alphabetic);
    if dotted && !super::word::ends_sentence(end.skip(1), speech) { end.skip(1) } else { end }
}

/// The unit here or behind a blank or hyphen; and whether that was a hyphen.
fn unit_behind<'a>(scan: Scan<'a>, speech: &Speech) -> Option<(Scan<'a>, Unit, bool)> {
    let mut start = scan;
    let hyphen = start.eat('-');
    let blank = !hyphen && start.blank();
    let mut best: Option<(Scan<'a>, &str)> = None;
    let first = start.peek();
    for (written, name) in speech.language().units() {
        if written.chars().next() != first {
            continue;
        }
        let mut end = start;
        let longer = best
            .is_none_or(|(longest, _)| written.chars().count() > longest.taken() - start.taken());
        if longer && end.eat_str(written, false) && fits(written, end, [blank, hyphen], speech) {
            best = Some((end, name));
        }
    }
    if let Some((end, name)) = best {
        return unit(name, speech).map(|unit| (end, unit, hyphen));
    }
    let words = speech.words();
    let mut end = start;
    let word = match end.eat_if(|c| matches!(c, '%' | '‰'))? {
        '%' => words.percent,
        _ => words.per_mille,
    };
    let gender = Some(Gender::default()).filter(|_| !speech.language().bare_percent);
    Some((end, Unit { one: word, other: word, gender }, hyphen))
}

/// /kg: for each of a unit.
fn per_unit<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let word = speech.words().per;
    let stroke = scan.eat('/') && !word.is_empty();
    let plain = |c: char| c.is_alphabetic() || matches!(c, '°' | '%');
    scan.peek().filter(|&c| stroke && plain(c))?;
    let (end, unit, _) = unit_behind(scan, speech)?;
    (!unit.one.contains("{0}")).then(|| (end, format!("{word} {}", unit.one)))
}

/// 12/kg, 56.3 /km²: so many for each of a unit.
fn for_each<'a>(mut scan: Scan<'a>, amount: &Amount, speech: &Speech) -> Option<Reading<'a>> {
    scan.blank();
    let (end, per) = per_unit(scan, speech)?;
    // "5/m" may be anything, "5/s" is a rate.
    let short = end.taken() - scan.taken() <= "/x".len();
    let rate = scan.at(1).is_some_and(|c| matches!(c, 's' | 'h'));
    (!short || rate).then(|| (end, format!("{} {per}", amount.alone(speech))))
}

/// Whether a written unit is one here: no word goes on, and a single letter is not part of a name (4K).
fn fits(written: &str, end: Scan<'_>, [blank, hyphen]: [bool; 2], speech: &Speech) -> bool {
    let letter = written.ends_with(char::is_alphanumeric);
    // "35 h/semaine" has a unit, "5 m/s" another one.
    let stroke = end.peek() == Some('/') && {
        let next: String = end.skip(1).next_word().iter().collect();
        let paid = next.len() > 2 && speech.language().per.iter().any(|(known, _)| *known == next);
        !paid && !units::METRIC.iter().any(|(known, _)| *known == next)
    };
    if letter && (!end.at_word_end() || stroke || matches!(end.peek(), Some('²' | '³' | '°'))) {
        return false;
    }
    if letter && end.peek() == Some('-') && end.at(1).is_some_and(char::is_alphanumeric) {
        return false;
    }
    match written {
        // "450 W. 5th St." is no power.
        // "220V", but "4K".
        "K" | "V" | "N" | "J" | "W" | "L" | "A" => {
            let pointed = end.peek() == Some('.') && end.skip(1).next_visible().is_some();
            let joined = matches!(written, "V" | "W") && !hyphen;
            (blank || joined) && !pointed && !is_before_ordinal(end, speech)
        }
        // "5 in the box".
        "in" => {
            !hyphen && !end.next_visible().is_some_and(char::is_alphanumeric)
                || end.peek() == Some('.')
        }
        "g" | "h" | "s" | "m" => !hyphen,
        _ => true,
    }
}

/// "708 N 1st St" is a place, no force.
fn is_before_ordinal(mut scan: Scan<'_>, speech: &Speech) -> bool {
    let digits = scan.blank() && !scan.digits().is_empty();
    digits && date::eat_ordinal_ending(&mut scan, speech)
}

/// A unit that CLDR names, or whose words stand in the table.
fn unit(name: &'static str, speech: &Speech) -> Option<Unit> {
    if let Some((one, other)) = name.split_once('|') {
        return Some(Unit { one, other, gender: Some(speech.gender(one)) });
    }
    let noun = speech.names().unit(name)?;
    let gender = noun.gender.or_else(|| Some(speech.gender(noun.one)));
    Some(Unit { one: noun.one, other: noun.other, gender })
}

/// a 55" screen: a mark of inches, where no quotation is open.
fn inches<'a>(
    start: Scan<'a>,
    mut end: Scan<'a>,
    length: &Amount,
    speech: &Speech,
) -> Option<Reading<'a>> {
    /// How far a quotation mark is looked back for.
    const QUOTED_CHARS: usize = 40;
    let sign = end.eat_if(|c| matches!(c, '"' | '″'))?;
    let closed = !end.peek().is_some_and(char::is_alphanumeric) && length.magnitude.is_none();
    let apart = start.before().is_none_or(is_gap);
    let place = |k: &usize| start.far_before(*k).is_some_and(|c| c != '\n');
    // Behind a digit it is one of inches itself.
    let opens = |k: usize| {
        let digit = start.far_before(k + 1).is_some_and(|c| c.is_ascii_digit());
        start.far_before(k).is_some_and(|c| matches!(c, '"' | '“' | '„')) && !digit
    };
    let quoted = sign == '"' && (0..QUOTED_CHARS).take_while(place).any(opens);
    if !closed || !apart || quoted {
        return None;
    }
    let amount = Amount { number: length.number.clone(), magnitude: None };
    // "a fifty-five inch screen"
    let adjective = speech.language().articles.contains(&start.word_before().as_str())
        && end.next_visible().is_some_and(char::is_alphabetic);
    Some((end, say(speech, &[amount], &unit("length-inch", speech)?, adjective)))
}

/// 5'10", 6′: feet and inches.
fn feet<'a>(mut scan: Scan<'a>, feet: &Amount, speech: &Speech) -> Option<Reading<'a>> {
    let straight = scan.eat('\'');
    if !straight && !scan.eat('′') && !scan.eat('’') {
        return None;
    }
    let mut inches = scan;
    inches.eat_if(is_gap);
    let (mut end, amount) = amount(inches, speech, false)?;
    let open = !end.eat('"') && !end.eat('″') && !end.eat('”');
    if open && !(end.at_number_end() && amount.number.whole.len() <= 2) {
        return None;
    }
    let one = |amount: &Amount, name| -> Option<String> {
        Some(say(
            speech,
            &[Amount { number: amount.number.clone(), magnitude: None }],
            &unit(name, speech)?,
            false,
        ))
    };
    let said = format!("{} {}", one(feet, "length-foot")?, one(&amount, "length-inch")?);
    Some((end, said))
}

/// 40.7128° N, 40°42′46″ N.
pub(super) fn coordinates<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let (mut end, degrees) = amount(scan, speech, false)?;
    if !end.eat('°') {
        return None;
    }
    let names = ["angle-degree", "angle-arc-minute", "angle-arc-second"];
    let sign = speech.language().units().find(|(written, _)| *written == "°");
    let degree = unit(sign.map_or(names[0], |(_, name)| name), speech)?;
    let mut said = vec![say(speech, &[degrees], &degree, false)];
    for (name, signs) in [(names[1], ['′', '\'']), (names[2], ['″', '"'])] {
        let mut ahead = end;
        ahead.blank();
        if let Some((mut part_end, part)) = amount(ahead, speech, false)
            && (part_end.eat(signs[0]) || part_end.eat(signs[1]))
        {
            said.push(say(speech, &[part], &unit(name, speech)?, false));
            end = part_end;
        }
    }
    let mut ahead = end;
    ahead.blank();
    let words = speech.words();
    let side = match ahead.eat_if(|c| matches!(c, 'N' | 'S' | 'E' | 'W' | 'O'))? {
        'N' => words.north,
        'S' => words.south,
        'W' => words.west,
        // Ouest, but Ost.
        'O' if words.west.starts_with(['o', 'O']) => words.west,
        _ => words.east,
    };
    said.push(side.to_owned());
    ahead.at_word_end().then(|| (ahead, said.join(" ")))
}
