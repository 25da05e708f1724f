//! Days and times of German: `am 3. Mai`, `Montag, 03.05.2026`, `15.45 Uhr`.

use super::{nouns, ordinals};
use crate::text::verbalise::classes::{Reading, clock, date};
use crate::text::verbalise::language::Date;
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::{Scan, lower};
use crate::text::verbalise::speech::Speech;

/// dritter Mai zweitausendsechsundzwanzig; behind "am": dritten.
pub(super) fn say(speech: &Speech, date: &Date, before: &str) -> String {
    let day = date.day.map(|day| {
        let ordinal = speech.ordinal(day.into(), Gender::Masculine);
        let ending = match before {
            "ab" | "bis" | "seit" | "nach" | "vor" => "n",
            // Another day stands before: "am 3. und 5. Mai".
            _ => nouns::ordinal_ending(before, "", Gender::Masculine),
        };
        ordinal + ending
    });
    let year = date.year.map(|year| speech.year(year.into()));
    let month = Some(speech.names().month(date.month).to_owned());
    [day, month, year].into_iter().flatten().collect::<Vec<String>>().join(" ")
}

/// Montag, 3. Mai; am Montag, 3. Mai: "dem" belongs before the day.
pub(super) fn behind_weekday<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let mut end = scan;
    let first = end.letters();
    if !first.first()?.is_uppercase() {
        return None;
    }
    let word: String = first.iter().map(|&c| lower(c)).collect();
    let (weekday, short) = speech.names().find_day(&word)?;
    if short {
        end.eat('.');
    }
    end.eat(',');
    if !end.blank() {
        return None;
    }
    let (end, date) = date::parsed(end, speech)?;
    let weekday = speech.names().day(weekday);
    let said = match scan.word_before().as_str() {
        "am" | "vom" | "zum" | "dem" | "ab" => {
            format!("{weekday}, dem {}", say(speech, &date, "dem"))
        }
        "den" | "bis" => format!("{weekday}, den {}", say(speech, &date, "den")),
        "der" => format!("{weekday}, der {}", say(speech, &date, "der")),
        _ => format!("{weekday}, {}", say(speech, &date, "")),
    };
    Some((end, said))
}

/// Mo.–Fr. 9–17 Uhr, Sa. 9–13 Uhr: short names with a period.
pub(super) fn weekdays<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let day = |mut scan: Scan<'a>| {
        let first = scan.letters();
        let word: String = first.iter().map(|&c| lower(c)).collect();
        let capital = first.first().is_some_and(|c| c.is_uppercase());
        let (number, short) = speech.names().find_day(&word).filter(|_| capital)?;
        let dotted = scan.eat('.');
        (short || !dotted).then(|| (scan, speech.names().day(number), short))
    };
    let (end, first, short) = day(scan)?;
    let mut range = end;
    if range.eat_if(|c| matches!(c, '-' | '–' | '/')).is_some() {
        let (end, last, _) = day(range)?;
        return Some((end, format!("{first} {} {last}", speech.words().to)));
    }
    // "So." may be a word and "Fr." a woman or money.
    let mut time = end;
    let blank = time.blank();
    let timed = blank && clock::named(time, speech, &["Uhr"]).is_some();
    let next: String = time.next_word().iter().collect();
    let joined = blank && matches!(next.as_str(), "und" | "bis" | "geschlossen" | "oder");
    (short && (timed || joined)).then(|| (end, first.to_owned()))
}

/// am 24.12. und 25.12.: the second day takes the case of the first.
pub(super) fn second<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    if !ordinals::joins(&scan.word_before()) {
        return None;
    }
    let (end, date) = date::parsed(scan, speech)?;
    Some((end, say(speech, &date, &ordinals::governing(scan)[0])))
}

/// 05/2026: a month and its year.
pub(super) fn month_and_year<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let number = |digits: &[char]| digits.iter().collect::<String>().parse::<u32>().ok();
    let digits = scan.digits();
    let month = number(digits).filter(|n| digits.len() <= 2 && (1..=12).contains(n))?;
    if !scan.eat('/') {
        return None;
    }
    let digits = scan.digits();
    let year = number(digits).filter(|n| digits.len() == 4 && (1900..2100).contains(n))?;
    let date = Date { month, year: Some(year), ..Date::default() };
    scan.at_number_end().then(|| (scan, say(speech, &date, "")))
}

/// 15:45 Uhr, 15.45 Uhr, 9:00–17:00 Uhr, 15:45 h, um 8 h.
pub(super) fn clock<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    if let Some(read) = clock::named(scan, speech, &["Uhr"]) {
        return Some(read);
    }
    // "8 h" is a length of time where nothing says otherwise.
    let opens = matches!(scan.word_before().as_str(), "um" | "gegen" | "ab");
    let (end, said) = clock::named(scan, speech, &["h"])?;
    let minutes = end.since(scan).iter().any(|c| matches!(c, ':' | '.'));
    (opens || minutes).then_some((end, said))
}
