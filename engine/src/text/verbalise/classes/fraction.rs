//! Parts of one: 1/2, 3 1/2, ½, and what else stands on both sides of a stroke (24/7, 120/80).

use super::number::{LIKELY_YEARS, is_minus, may_be_sign, plain_digits};
use super::{Reading, date, measure};
use crate::text::verbalise::language::Part;
use crate::text::verbalise::number::Number;
use crate::text::verbalise::scan::{Scan, is_gap};
use crate::text::verbalise::speech::Speech;

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
    let below = grouped(&mut scan, speech).or_else(|| plain_digits(&mut scan))?;
    // 1/4th
    let mut ended = scan;
    if is_fraction(above, below, speech) && date::eat_ordinal_ending(&mut ended, speech) {
        scan = ended;
    }
    if !scan.at_number_end() || scan.peek() == Some('/') {
        return None;
    }
    if whole.is_none() && !is_fraction(above, below, speech) {
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

/// The 1.000.000 of 1/1.000.000: blanks part no groups here, for 1/2 500 g are two numbers.
fn grouped(scan: &mut Scan<'_>, speech: &Speech) -> Option<u64> {
    let mut end = *scan;
    let number = Number::read(&mut end, speech.data.locale.marks())?;
    let blank = end.since(*scan).iter().any(|&c| is_gap(c));
    let n = number.value().filter(|_| number.grouped && number.fraction.is_empty() && !blank)?;
    *scan = end;
    Some(n)
}

/// -1/2
pub(super) fn negative_fraction<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    scan.peek().filter(|&c| is_minus(c) && may_be_sign(scan))?;
    let mut part = scan.skip(1);
    let above = plain_digits(&mut part)?;
    let stroke = part.eat_if(|c| c == '/' || c == '⁄').is_some();
    plain_digits(&mut part).filter(|&below| stroke && is_fraction(above, below, speech))?;
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
        // "tres y dos quintos de metro", but "uno y medio metros"
        let of = speech.language().of;
        let linked = whole.is_some()
            && (above, below) != (1, 2)
            && !of.is_empty()
            && measure::gender(end, speech).is_some();
        let said = if linked { format!("{said} {of}") } else { said };
        return Some(measure::with_noun(end, said, whole.is_none() || linked, speech));
    }
    let part = (speech.language().fraction)(speech, above, below)?;
    let Some(whole) = whole else { return Some(measure::with_noun(end, part, true, speech)) };
    let said = (speech.language().mixed)(&speech.count(whole), &part, (above, below));
    Some(measure::with_noun(end, said, false, speech))
}

/// Whether two numbers at a stroke are a part of one: less than one, and of a usual size. Where a language has few days
/// in that form, also one of many: 1/20, but not the mark 18/20.
fn is_fraction(above: u64, below: u64, speech: &Speech) -> bool {
    // 95/100 is a mark.
    let usual = matches!(below, 2..=10 | 12 | 16 | 32 | 64 | 1_000) || (below == 100 && above < 50);
    let round = below < 100
        || (below <= 1_000 && below.is_multiple_of(100))
        || (below.is_multiple_of(1_000) && !LIKELY_YEARS.contains(&below));
    let single = above == 1 || (below < 20 && !below.is_multiple_of(5));
    let fine = speech.language().fine_fractions && below != 11 && round && single;
    above < below && (usual || fine)
}
