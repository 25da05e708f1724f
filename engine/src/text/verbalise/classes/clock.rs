//! Times with a word behind them that belongs to them: 15:45 Uhr, 15.30 uur.

use super::{Reading, measure};
use crate::text::verbalise::language::Time;
use crate::text::verbalise::scan::Scan;
use crate::text::verbalise::speech::Speech;

/// 15:45 Uhr, 15.45 Uhr, 9–17 Uhr, 9:00 - 17:30 Uhr: a time or two with one of these words behind.
pub(in crate::text::verbalise) fn named<'a>(
    scan: Scan<'a>,
    speech: &Speech,
    words: &[&str],
) -> Option<Reading<'a>> {
    let say = |time| (speech.language().time)(speech, time);
    let (end, first) = one(scan)?;
    let named = word(end, words);
    let mut range = named.unwrap_or(end);
    range.blank();
    let ranged = range.eat_if(|c| matches!(c, '-' | '–' | '—')).is_some();
    range.blank();
    let second = one(range).filter(|_| ranged);
    let Some((end, second)) = second.and_then(|(end, time)| Some((word(end, words)?, time))) else {
        let joined = || is_first_of_two(end, words) && !first_is_bare(scan, end);
        let first_end = named.or_else(|| joined().then_some(end));
        return first_end.map(|end| (end, say(&first)));
    };
    let (from, to) = (say(&first), say(&second));
    // The word is said once: "neun bis siebzehn Uhr".
    let drop = words.iter().find_map(|word| from.strip_suffix(word));
    let from = drop.filter(|_| first.minute == 0).map_or(from.as_str(), str::trim_end);
    Some((end, format!("{from} {} {to}", speech.words().to)))
}

/// a las 13.30, alle 9.00-17.00: a point between hours and minutes is that of a time behind a word that opens one and,
/// where a language writes its times so, in a range.
pub(in crate::text::verbalise) fn pointed<'a>(
    scan: Scan<'a>,
    speech: &Speech,
    openers: &[&str],
    ranges: bool,
) -> Option<Reading<'a>> {
    scan.peek().filter(char::is_ascii_digit)?;
    let say = |time| (speech.language().time)(speech, time);
    let (mut end, first) = one_pointed(scan)?;
    let mut said = say(&first);
    let mut range = end;
    let second = range.eat_if(|c| c == '-' || c == '–').and_then(|_| one_pointed(range));
    let opened = || openers.contains(&scan.word_before().trim_end_matches(['\'', '’']));
    match second {
        Some((range_end, to)) if ranges || opened() => {
            said = format!("{said} {} {}", speech.words().to, say(&to));
            end = range_end;
        }
        _ if !opened() => return None,
        _ => {}
    }
    let measured = end.next_visible() == Some('%') || measure::is_measured(end, speech);
    (end.at_number_end() && !measured).then_some((end, said))
}

/// Hours and minutes with a point between.
fn one_pointed(mut scan: Scan<'_>) -> Option<(Scan<'_>, Time)> {
    let digits = scan.digits();
    let hour = number(digits).filter(|&hour| digits.len() <= 2 && hour <= 24)?;
    let minute = scan.eat('.').then(|| sixty(&mut scan))??;
    Some((scan, Time { hour, minute, ..Time::default() }))
}

/// "zwischen 9.00 und 12.30 Uhr": a word and a second time stand behind.
fn is_first_of_two(mut scan: Scan<'_>, words: &[&str]) -> bool {
    const JOINING: [&str; 6] = ["und", "bis", "oder", "en", "tot", "of"];
    let blank = scan.blank();
    let join: String = scan.letters().iter().collect();
    let joined = blank && JOINING.contains(&join.as_str()) && scan.blank();
    joined && one(scan).is_some_and(|(end, _)| word(end, words).is_some())
}

/// Whether no minutes were written: a number, as long as nothing says more.
fn first_is_bare(start: Scan<'_>, end: Scan<'_>) -> bool {
    end.since(start).iter().all(char::is_ascii_digit)
}

/// An hour, perhaps with its minute and second.
fn one(mut scan: Scan<'_>) -> Option<(Scan<'_>, Time)> {
    let digits = scan.digits();
    let hour = number(digits).filter(|&hour| digits.len() <= 2 && hour <= 24)?;
    let mut time = Time { hour, ..Time::default() };
    let mut end = scan;
    let Some(sign) = scan.eat_if(|c| matches!(c, ':' | '.')) else { return Some((end, time)) };
    let Some(minute) = sixty(&mut scan) else { return Some((end, time)) };
    time.minute = minute;
    end = scan;
    if scan.eat(sign)
        && let Some(second) = sixty(&mut scan)
    {
        time.second = Some(second).filter(|&second| second > 0);
        end = scan;
    }
    Some((end, time))
}

/// Two digits below sixty.
fn sixty(scan: &mut Scan<'_>) -> Option<u32> {
    let digits = scan.digits();
    number(digits).filter(|&n| digits.len() == 2 && n < 60)
}

fn word<'a>(mut scan: Scan<'a>, words: &[&str]) -> Option<Scan<'a>> {
    scan.blank();
    words.iter().find_map(|word| {
        let mut end = scan;
        (end.eat_str(word, true) && end.at_word_end()).then_some(end)
    })
}

fn number(digits: &[char]) -> Option<u32> {
    digits.iter().collect::<String>().parse().ok()
}
