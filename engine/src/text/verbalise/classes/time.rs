//! Times of day, and ranges of them.

use super::{Reading, with_next_word, word};
use crate::text::verbalise::language::{Half, Time};
use crate::text::verbalise::scan::Scan;
use crate::text::verbalise::speech::Speech;

/// 3:45 PM, 15:45:20, 5 p.m., 9:00-17:00, 9-11am.
pub(super) fn read<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let (end, first) = closed(scan, speech)?;
    let mut ahead = end;
    ahead.blank();
    if ahead.eat_if(|c| matches!(c, '-' | '–' | '—')).is_some() {
        ahead.blank();
        if let Some((range_end, second)) = closed(ahead, speech) {
            let loose = first.marked || second.marked || first.signed || second.signed;
            let said = |time: &Found| say(speech, &time.time);
            if loose {
                let (from, to) = (said(&first), said(&second));
                // "nine to eleven": only a time in full has its "o'clock".
                let from = from.strip_suffix(" o'clock").unwrap_or(&from);
                return Some(close(
                    range_end,
                    format!("{from} {} {to}", speech.words().to),
                    &second,
                    speech,
                ));
            }
        }
    }
    if !first.marked || (first.ratio_like && wants_ratio(scan, speech)) {
        return None;
    }
    Some(close(end, say(speech, &first.time), &first, speech))
}

/// The time behind the T of ISO 8601, with its zone.
pub(super) fn with_zone<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let (mut end, found) = one(scan, speech)?;
    let mut said = say(speech, &found.time);
    if end.eat('.') {
        end.digits();
    }
    let mut zone = end;
    if zone.eat('Z') && zone.at_word_end() {
        said = format!("{said} {}", speech.spell("UTC"));
        end = zone;
    } else if let Some(sign) = zone.eat_if(|c| matches!(c, '+' | '-' | '−')) {
        let hours = zone.digits();
        zone.eat(':');
        zone.digits();
        if hours.len() >= 2 {
            let hours: u64 = hours[..2].iter().collect::<String>().parse().ok()?;
            let words = speech.words();
            let sign = if sign == '+' { words.plus } else { words.minus };
            said = format!("{said} {} {sign} {}", speech.spell("UTC"), speech.count(hours));
            end = zone;
        }
    }
    Some((end, said))
}

/// UTC+2, GMT-4:30: how far a zone is from that of Greenwich.
pub(super) fn offset<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    const HOURS_MAX: u32 = 14;
    let joined = scan.before().is_some_and(char::is_alphanumeric);
    let name: String = scan.letters().iter().collect::<String>().to_uppercase();
    if joined || !matches!(name.as_str(), "UTC" | "GMT") {
        return None;
    }
    scan.blank();
    let sign = scan.eat_if(|c| matches!(c, '+' | '-' | '−' | '–'))?;
    let words = speech.words();
    let sign = if sign == '+' { words.plus } else { words.minus };
    let digits = scan.digits();
    let hours = number(digits).filter(|&hours| digits.len() <= 2 && hours <= HOURS_MAX)?;
    let mut said = format!("{} {sign} {}", speech.spell(&name), speech.count(hours.into()));
    let mut ahead = scan;
    if ahead.eat(':') {
        let digits = ahead.digits();
        let minutes = number(digits).filter(|&m| digits.len() == 2 && m < 60)?;
        scan = ahead;
        if minutes > 0 {
            said = format!("{said} {}", speech.count(minutes.into()));
        }
    }
    (!sign.is_empty() && scan.at_number_end()).then_some((scan, said))
}

struct Found {
    time: Time,
    /// It has minutes or a half of the day: it can be nothing but a time.
    marked: bool,
    /// Only an hour, with its sign: alone it is a length of time.
    signed: bool,
    /// It could be a ratio or a score as well.
    ratio_like: bool,
    /// Its last character is the period of `p.m.`
    dotted: bool,
}

fn closed<'a>(scan: Scan<'a>, speech: &Speech) -> Option<(Scan<'a>, Found)> {
    let (mut end, mut found) = one(scan, speech)?;
    // "08 h" is no length of time.
    let padded = scan.peek() == Some('0') && end.since(scan).len() == "08".len();
    let sign = |sign: &&str| {
        let mut behind = end;
        if padded {
            behind.blank();
        }
        (behind.eat_str(sign, false) && behind.at_word_end()).then_some(behind)
    };
    let signed = speech.language().hour_signs.iter().find_map(sign).filter(|_| !found.marked);
    if let Some(behind) = signed {
        found.signed = true;
        found.marked = padded;
        found.ratio_like = false;
        end = behind;
    }
    (found.time.half.is_some() || end.at_number_end()).then_some((end, found))
}

fn one<'a>(start: Scan<'a>, speech: &Speech) -> Option<(Scan<'a>, Found)> {
    let mut scan = start;
    let digits = scan.digits();
    let hour = number(digits).filter(|&h| digits.len() <= 2 && h <= 24)?;
    let mut time = Time { hour, ..Time::default() };
    let (mut minutes, mut seconds) = (false, false);
    let mut ahead = scan;
    if ahead.eat(':') {
        let digits = ahead.digits();
        time.minute = number(digits).filter(|&m| digits.len() == 2 && m < 60)?;
        minutes = true;
        scan = ahead;
        if ahead.eat(':') {
            let digits = ahead.digits();
            seconds = true;
            time.second = number(digits).filter(|&s| digits.len() == 2 && s < 60);
            time.second?;
            time.second = time.second.filter(|&s| s > 0);
            scan = ahead;
        }
    }
    // 15.45 h
    let mut pointed = scan;
    if !minutes && pointed.eat('.') {
        let digits = pointed.digits();
        let minute = number(digits).filter(|&m| digits.len() == 2 && m < 60);
        let mut behind = pointed;
        behind.blank();
        let halved = speech.language().halves && half_of_day(behind).is_some();
        let named = |_: &u32| halved || hours(pointed, true, speech).is_some();
        if let Some(minute) = minute.filter(named) {
            time.minute = minute;
            minutes = true;
            scan = pointed;
        }
    }
    let signed = hours(scan, minutes, speech);
    if let Some((end, minute, lasting)) = signed {
        time.minute = minute.unwrap_or(time.minute);
        time.lasting = lasting;
        time.named = true;
        minutes = true;
        scan = end;
    }
    let mut half = scan;
    half.blank();
    let mut dotted = false;
    if let Some((end, found, period)) = half_of_day(half)
        && (1..=12).contains(&hour)
        && speech.language().halves
    {
        time.half = Some(found);
        dotted = period;
        scan = end;
    }
    let marked = minutes || time.half.is_some();
    let ratio_like = time.half.is_none() && !seconds && signed.is_none();
    Some((scan, Found { time, marked, signed: false, ratio_like, dotted }))
}

/// A sign for hours: behind a time that has minutes, or behind hours with minutes behind it; whether these have
/// a sign as well.
fn hours<'a>(
    scan: Scan<'a>,
    minutes: bool,
    speech: &Speech,
) -> Option<(Scan<'a>, Option<u32>, bool)> {
    let mut start = scan;
    start.blank();
    let sign = |sign: &&str| {
        let mut end = start;
        end.eat_str(sign, false).then_some(end)
    };
    let mut end = speech.language().hour_signs.iter().find_map(sign)?;
    if minutes {
        return end.at_word_end().then_some((end, None, false));
    }
    end.blank();
    let digits = end.digits();
    let minute = number(digits).filter(|&m| digits.len() == 2 && m < 60)?;
    let mut unit = end;
    unit.blank();
    if (unit.eat_str("min", false) || unit.eat('m')) && unit.at_word_end() {
        // "1 h 30 min 20 s" is a length of time.
        if unit.next_visible().is_some_and(|c| c.is_ascii_digit()) {
            return None;
        }
        return Some((unit, Some(minute), true));
    }
    Some((end, Some(minute), false))
}

/// am, a.m., PM, with the period that belongs to it.
fn half_of_day(mut scan: Scan<'_>) -> Option<(Scan<'_>, Half, bool)> {
    let half = match scan.eat_if(|c| matches!(c, 'a' | 'A' | 'p' | 'P'))? {
        'a' | 'A' => Half::Am,
        _ => Half::Pm,
    };
    let dotted = scan.eat('.');
    if dotted {
        scan.blank();
    }
    scan.eat_if(|c| matches!(c, 'm' | 'M'))?;
    // "9 a.m" without its last period is as good.
    let dotted = dotted && scan.eat('.');
    scan.at_word_end().then_some((scan, half, dotted))
}

/// The period of `p.m.` also ends a sentence where one ends.
fn close<'a>(end: Scan<'a>, said: String, last: &Found, speech: &Speech) -> Reading<'a> {
    // "p.m. EST": a time zone goes on.
    let zone = |word: &[char]| word.len() >= 2 && word.iter().all(|c| c.is_uppercase());
    match last.dotted {
        true if word::ends_sentence(end, speech) && !zone(end.next_word()) => (end, said + "."),
        true => with_next_word(end, said, speech),
        false => (end, said),
    }
}

fn wants_ratio(scan: Scan<'_>, speech: &Speech) -> bool {
    speech.language().ratio_openers.contains(&scan.word_before().as_str())
}

fn say(speech: &Speech, time: &Time) -> String {
    (speech.language().time)(speech, time)
}

fn number(digits: &[char]) -> Option<u32> {
    digits.iter().collect::<String>().parse().ok()
}
