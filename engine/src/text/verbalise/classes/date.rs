//! Days: in digits, by ISO 8601, and with the name of the month.

use super::{Reading, measure, time};
use crate::text::verbalise::language::Date;
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::{Scan, lower};
use crate::text::verbalise::speech::Speech;

/// 11/29/2026, 29.11.2026, 2026-11-29T15:45Z; 11/29 behind a word that wants a day.
pub(super) fn numeric<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let said = |(end, date): (Scan<'a>, Date)| (end, say(speech, &date, scan));
    iso(scan, speech)
        .or_else(|| three_numbers(scan, speech).map(said))
        .or_else(|| two_numbers(scan, speech).map(said))
        .or_else(|| month_and_year(scan).map(said))
}

/// A day in digits or with the name of its month behind it.
pub(in crate::text::verbalise) fn parsed<'a>(
    scan: Scan<'a>,
    speech: &Speech,
) -> Option<(Scan<'a>, Date)> {
    three_numbers(scan, speech)
        .or_else(|| two_numbers(scan, speech))
        .or_else(|| before_month(scan, speech))
}

fn iso<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let start = scan;
    let year = fixed(&mut scan, 4)?;
    let sign = scan.eat_if(|c| matches!(c, '-' | '/' | '.'))?;
    let month = short(&mut scan)?;
    let date = if scan.eat(sign) {
        let day = short(&mut scan)?;
        Date { day: Some(day), month, year: Some(year), month_first: true, ..Date::default() }
    } else {
        // 2026-11 is a month, 2011-12 are two years.
        let two_years = month == (year + 1) % 100;
        if sign != '-' || two_years || !(1900..2100).contains(&year) {
            return None;
        }
        Date { month, year: Some(year), month_first: true, ..Date::default() }
    };
    let day_ok = date.day.is_none_or(|day| (1..=31).contains(&day));
    if !(1..=12).contains(&month) || !day_ok {
        return None;
    }
    let mut clock = scan;
    if date.day.is_some() && clock.eat_if(|c| c == 'T').is_some() {
        let (end, said) = time::with_zone(clock, speech)?;
        return Some((end, format!("{} {said}", say(speech, &date, start))));
    }
    scan.at_number_end().then(|| (scan, say(speech, &date, start)))
}

fn three_numbers<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<(Scan<'a>, Date)> {
    let first = short(&mut scan)?;
    let sign = scan.eat_if(|c| matches!(c, '/' | '-' | '.'))?;
    let second = short(&mut scan)?;
    if !scan.eat(sign) {
        return None;
    }
    let digits = scan.digits();
    let year = number(digits)?;
    let year = match digits.len() {
        4 => year,
        2 if sign == '/' || (sign == '.' && !speech.data.locale.month_first()) => {
            of_two_digits(year)
        }
        _ => return None,
    };
    if !scan.at_number_end() {
        return None;
    }
    let (day, month, month_first) = day_and_month(first, second, sign, speech)?;
    Some((scan, Date { day: Some(day), month, year: Some(year), month_first, ..Date::default() }))
}

/// 11/29 is a day only where a word before it says so; else it is a fraction.
fn two_numbers<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<(Scan<'a>, Date)> {
    let before = scan.word_before();
    let start = scan;
    let first = short(&mut scan)?;
    let sign = scan.eat_if(|c| c == '/' || c == '.')?;
    let second = short(&mut scan)?;
    let dotted = sign == '.';
    let days = speech.language().dotted_days && !speech.data.locale.month_first();
    let wanted = speech.language().day_openers.contains(&before.as_str());
    // am 17.06, 02.03: two digits each, and something that tells them from a number.
    let whole = scan.since(start).len() == "17.06".len();
    let padded = first < 10 && second < 10;
    let bare = days && whole && (wanted || padded);
    let mut end = scan;
    if (dotted && !(days && (end.eat('.') || bare))) || !end.at_number_end() {
        return None;
    }
    // The last period may end a sentence as well.
    let bracket = matches!(end.peek(), Some(')' | ']'));
    if bracket || !super::word::ends_sentence(end, speech) {
        scan = end;
    }
    if !wanted && !dotted {
        return None;
    }
    let (day, month, month_first) = day_and_month(first, second, sign, speech)?;
    Some((scan, Date { day: Some(day), month, month_first, ..Date::default() }))
}

/// As POSIX has it.
pub(super) fn of_two_digits(year: u32) -> u32 {
    year + if year < 69 { 2000 } else { 1900 }
}

/// 03/2026: the nought in front tells it from the third law of that year.
fn month_and_year(mut scan: Scan<'_>) -> Option<(Scan<'_>, Date)> {
    let start = scan;
    let month = fixed(&mut scan, 2).filter(|&month| (1..10).contains(&month))?;
    let slash = scan.eat('/') && start.before() != Some('/');
    let year = fixed(&mut scan, 4).filter(|&year| slash && (1900..2100).contains(&year))?;
    let date = Date { month, year: Some(year), month_first: true, ..Date::default() };
    scan.at_number_end().then_some((scan, date))
}

/// 12/25 where it is no fraction.
pub(super) fn loose<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let start = scan;
    let first = short(&mut scan)?;
    scan.eat_if(|c| c == '/')?;
    let second = short(&mut scan).filter(|_| scan.at_number_end())?;
    // 12/20 is no day where the month comes second, 20/12 none where it comes first.
    let month = if speech.data.locale.month_first() { first } else { second };
    if month > 12 {
        return None;
    }
    let (day, month, month_first) = day_and_month(first, second, '/', speech)?;
    let date = Date { day: Some(day), month, month_first, ..Date::default() };
    Some((scan, say(speech, &date, start)))
}

fn day_and_month(first: u32, second: u32, sign: char, speech: &Speech) -> Option<(u32, u32, bool)> {
    let month_first = speech.data.locale.month_first();
    let turned = month_first && sign != '.';
    let (day, month) = if turned { (second, first) } else { (first, second) };
    let swapped = month > 12;
    let (day, month) = if swapped { (month, day) } else { (day, month) };
    let valid = (1..=31).contains(&day) && (1..=12).contains(&month);
    // What was written first is said first: 25/12/2026.
    let month_first = if month_first && first > 12 { false } else { month_first };
    valid.then_some((day, month, month_first))
}

/// November 29, 2026; Nov. 29th; Sunday, 29 November; November 2026.
pub(super) fn month_first<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let mut end = scan;
    let first = end.letters();
    let word: String = first.iter().map(|&c| lower(c)).collect();
    let small_months = speech.language().small_months;
    let small = !first[0].is_uppercase() && !small_months;
    if small && !is_dated(end, &word, speech) {
        return None;
    }
    if let Some((weekday, short)) = day(&word, speech) {
        return behind_weekday(end, speech, weekday, short);
    }
    let (number, short) = month(&word, speech)?;
    if let Some(months) = months(end, number, speech) {
        return Some(months);
    }
    let month = number;
    // APR alone is a rate.
    let loud = first.len() > 1 && first.iter().all(|c| c.is_uppercase());
    let dotted = end.eat('.');
    let behind = Date { month, month_first: true, ..Date::default() };
    if let Some((day_end, date)) = day_and_year(end, speech, behind) {
        if let Some(days) = days([scan, day_end], &date, speech) {
            return Some(days);
        }
        return Some((day_end, say_year_apart(speech, &date, [scan, end, day_end])));
    }
    // A short form alone.
    let is_word =
        small_months || matches!(word.as_str(), "mar" | "may" | "jun" | "jan" | "sep" | "dec");
    // "Dat is Jan." is a name.
    let name = small_months && first[0].is_uppercase();
    if !short || loud || name || !(dotted || (!is_word && end.at_word_end())) {
        return None;
    }
    let name = speech.names().month(month).to_owned();
    let ends = dotted && super::word::ends_sentence(end, speech);
    // "Tenho dez." ends with a number.
    if ends && small_months {
        return None;
    }
    let mut without = scan;
    without.letters();
    Some((if ends { without } else { end }, name))
}

/// Whether a name that is written small against the rule is a month: a day or year stands behind it, for words that are
/// also others a clear one.
fn is_dated(mut scan: Scan<'_>, word: &str, speech: &Speech) -> bool {
    let dotted = month(word, speech).is_some_and(|(_, short)| short) && scan.eat('.');
    if (!dotted && month(word, speech).is_none()) || !scan.blank() {
        return false;
    }
    let digits = scan.digits();
    let day = matches!(digits.len(), 1 | 2);
    let clear = digits.len() == 4 || (day && eat_ordinal_ending(&mut scan, speech));
    clear || (day && !matches!(word, "may" | "march" | "mar"))
}

/// The day, the year or both behind the name of a month.
fn day_and_year<'a>(scan: Scan<'a>, speech: &Speech, date: Date) -> Option<(Scan<'a>, Date)> {
    let mut end = scan;
    // jan/2026, Jan-15, Jan-15-2026
    let sign = if end.blank() { None } else { end.eat_if(|c| c == '/' || c == '-') };
    let (stroke, hyphen) = (sign == Some('/'), sign == Some('-'));
    let digits = digits_behind_of(&mut end, speech);
    let n = number(digits).filter(|_| !stroke || digits.len() == 4)?;
    if digits.len() == 4 && (1000..2200).contains(&n) && end.at_number_end() {
        return Some((end, Date { year: Some(n), ..date }));
    }
    if digits.len() > 2 || !(1..=31).contains(&n) {
        return None;
    }
    eat_ordinal_ending(&mut end, speech);
    if !end.at_number_end() || end.peek() == Some('%') {
        return None;
    }
    let date = Date { day: Some(n), ..date };
    let mut year = end;
    year.eat(',');
    let parted = if hyphen { year.eat('-') } else { year.blank() };
    let digits = digits_behind_of(&mut year, speech);
    match number(digits) {
        Some(y)
            if digits.len() == 4 && (1000..2200).contains(&y) && parted && year.at_number_end() =>
        {
            Some((year, Date { year: Some(y), ..date }))
        }
        // "En mayo 5 personas" is no day, "abril 30." is one.
        _ => {
            let small = speech.language().small_months && !stroke && !hyphen;
            let counts = || {
                let word = end.next_visible().is_some_and(char::is_alphanumeric);
                word || measure::is_measured(end, speech)
            };
            (speech.language().day_last || (small && !counts())).then_some((end, date))
        }
    }
}

/// Jan–Mar: both in full.
fn months<'a>(mut scan: Scan<'a>, first: u32, speech: &Speech) -> Option<Reading<'a>> {
    scan.eat('.');
    scan.eat_if(|c| matches!(c, '-' | '–'))?;
    let word: String = scan.letters().iter().map(|&c| lower(c)).collect();
    let (last, _) = month(&word, speech).filter(|_| scan.at_word_end())?;
    let [from, to] = [first, last].map(|month| speech.names().month(month));
    Some((scan, format!("{from} {} {to}", speech.words().to)))
}

/// Jan 5–7, 2026: the last day, and the year behind it.
fn days<'a>([start, first]: [Scan<'a>; 2], date: &Date, speech: &Speech) -> Option<Reading<'a>> {
    let mut scan = first;
    scan.eat_if(|c| matches!(c, '-' | '–')).filter(|_| date.year.is_none())?;
    let bare = Date { day: None, ..*date };
    let (end, last) = day_and_year(scan, speech, bare)?;
    let day = last.day.filter(|&day| Some(day) > date.day)?;
    let day = speech.ordinal(day.into(), Gender::Masculine);
    let mut said = format!("{} {} {day}", say(speech, date, start), speech.words().to);
    if let Some(year) = last.year {
        said = format!("{said}, {}", speech.year(year.into()));
    }
    Some((end, said))
}

fn behind_weekday<'a>(
    mut scan: Scan<'a>,
    speech: &Speech,
    weekday: u32,
    short: bool,
) -> Option<Reading<'a>> {
    let mut range = scan;
    if short {
        range.eat('.');
    }
    if range.eat_if(|c| matches!(c, '-' | '–')).is_some() {
        let second: String = range.letters().iter().map(|&c| lower(c)).collect();
        let (to, to_short) = day(&second, speech)?;
        let [from, to] = [weekday, to].map(|day| speech.names().day(day));
        let dotted = to_short && range.peek() == Some('.');
        if dotted && !super::word::ends_sentence(range.skip(1), speech) {
            range = range.skip(1);
        }
        return range.at_word_end().then(|| (range, format!("{from} {} {to}", speech.words().to)));
    }
    if short {
        scan.eat('.');
    }
    let comma = scan.eat(',');
    if !scan.blank() {
        return None;
    }
    let mut ahead = scan;
    let first = ahead.letters();
    let (end, said) = if first.is_empty() {
        // "Tue, 3/4"
        let digits =
            || three_numbers(scan, speech).map(|(end, date)| (end, say(speech, &date, scan)));
        day_first(scan, speech).or_else(digits).or_else(|| loose(scan, speech))?
    } else {
        let word: String = first.iter().map(|&c| lower(c)).collect();
        month(&word, speech)?;
        month_first(scan, speech)?
    };
    let mark = if comma || (short && !speech.language().small_months) { "," } else { "" };
    Some((end, format!("{}{mark} {said}", speech.names().day(weekday))))
}

/// 29 November 2026, 29th of November.
pub(super) fn day_first<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let (end, date) = before_month(scan, speech)?;
    Some((end, say(speech, &date, scan)))
}

fn before_month<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<(Scan<'a>, Date)> {
    let day = short(&mut scan).filter(|day| (1..=31).contains(day))?;
    let ended = eat_ordinal_ending(&mut scan, speech);
    let ordinal = ended || scan.eat('.');
    scan.blank();
    let of = speech.language().of;
    let mut ahead = scan;
    if !of.is_empty() && ahead.eat_str(of, true) && ahead.blank() {
        scan = ahead;
    } else if !ordinal
        && !scan.before().is_some_and(char::is_whitespace)
        && scan.before() != Some('-')
    {
        return None;
    }
    let word: String = scan.letters().iter().map(|&c| lower(c)).collect();
    let (month, short) = month(&word, speech)?;
    if !scan.at_word_end() {
        return None;
    }
    if short && scan.peek() == Some('.') && !super::word::ends_sentence(scan.skip(1), speech) {
        scan = scan.skip(1);
    }
    let date = Date { day: Some(day), month, ordinal: ended, ..Date::default() };
    let mut year = scan;
    year.eat(',');
    year.blank();
    let digits = digits_behind_of(&mut year, speech);
    Some(match number(digits) {
        Some(y) if digits.len() == 4 && (1000..2200).contains(&y) && year.at_number_end() => {
            let definite = year.since(scan).contains(&'l');
            (year, Date { year: Some(y), definite, ..date })
        }
        _ => (scan, date),
    })
}

/// A comma before the year stays, as a pause.
fn say_year_apart(speech: &Speech, date: &Date, [start, from, to]: [Scan<'_>; 3]) -> String {
    let said = say(speech, date, start);
    let comma = speech.language().day_last && to.since(from).contains(&',');
    match date.year.map(|year| speech.year(year.into())) {
        Some(year) if comma => match said.strip_suffix(&format!(" {year}")) {
            Some(day) => format!("{day}, {year}"),
            None => said,
        },
        _ => said,
    }
}

fn say(speech: &Speech, date: &Date, start: Scan<'_>) -> String {
    (speech.language().date)(speech, date, &start.word_before())
}

/// The month of a word in lower case; `sept` is as good as `sep`.
pub(super) fn month(word: &str, speech: &Speech) -> Option<(u32, bool)> {
    let find = |word| speech.names().find_month(word);
    find(word).or_else(|| match word {
        "sept" => find("sep"),
        "sep" => find("sept"),
        "mär" | "mrz" | "maerz" => find("märz").map(|(number, _)| (number, true)),
        _ => None,
    })
}

/// The day of the week of a word in lower case; `thurs` is as good as `thu`.
fn day(word: &str, speech: &Speech) -> Option<(u32, bool)> {
    let english = matches!(word, "tues" | "weds" | "thur" | "thurs");
    let longer = english || matches!(word, "miér" | "juev" | "vier");
    let cut: String = word.chars().take(3).collect();
    speech.names().find_day(if longer { &cut } else { word })
}

/// Digits, or those behind "of": `de 2026`, `del 2026`.
fn digits_behind_of<'a>(scan: &mut Scan<'a>, speech: &Speech) -> &'a [char] {
    let of = speech.language().of;
    let mut ahead = *scan;
    if speech.language().small_months && !of.is_empty() && ahead.eat_str(of, true) {
        ahead.eat('l');
        if ahead.blank() && ahead.peek().is_some_and(|c| c.is_ascii_digit()) {
            *scan = ahead;
        }
    }
    scan.digits()
}

pub(super) fn eat_ordinal_ending(scan: &mut Scan<'_>, speech: &Speech) -> bool {
    speech.language().ordinal_endings.iter().any(|(ending, _)| {
        let mut ahead = *scan;
        let found = ahead.eat_str(ending, true) && ahead.at_word_end();
        if found {
            *scan = ahead;
        }
        found
    })
}

/// One or two digits.
fn short(scan: &mut Scan<'_>) -> Option<u32> {
    let digits = scan.digits();
    number(digits).filter(|_| digits.len() <= 2)
}

fn fixed(scan: &mut Scan<'_>, count: usize) -> Option<u32> {
    let digits = scan.digits();
    number(digits).filter(|_| digits.len() == count)
}

fn number(digits: &[char]) -> Option<u32> {
    digits.iter().collect::<String>().parse().ok()
}
