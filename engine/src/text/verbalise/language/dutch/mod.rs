//! Dutch. Number words after CLDR, with a blank behind "duizend" as the Groene Boekje has it; hours, parts, titles and short
//! forms after Onze Taal.

mod readings;
mod tables;
mod words;

use super::other::BARE;
use super::{Date, Language, Time};
use crate::text::verbalise::classes::{clock, part, sign};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::speech::Speech;

pub(super) const DUTCH: Language = Language {
    // "één": a number is no article.
    counting: "spellout-cardinal-stressed",
    counting_and: "spellout-cardinal-stressed",
    cardinals: ["spellout-cardinal-stressed"; 3],
    ordinals: ["spellout-ordinal"; 3],
    ordinal_endings: &[
        ("e", Gender::Masculine),
        ("de", Gender::Masculine),
        ("ste", Gender::Masculine),
        ("den", Gender::Masculine),
    ],
    words: words::WORDS,
    signs: words::SIGNS,
    letters: [
        "a", "bee", "cee", "dee", "ee", "ef", "gee", "haa", "ie", "jee", "kaa", "el", "em", "en",
        "oo", "pee", "kuu", "er", "es", "tee", "uu", "vee", "wee", "iks", "ij", "zet",
    ],
    magnitudes: tables::MAGNITUDES,
    currencies: tables::CURRENCIES,
    units: tables::UNITS,
    abbreviations: tables::ABBREVIATIONS,
    initialisms: tables::INITIALISMS,
    acronyms: tables::ACRONYMS,
    year_openers: words::YEAR_OPENERS,
    count_openers: words::COUNT_OPENERS,
    day_openers: words::DAY_OPENERS,
    ratio_openers: words::RATIO_OPENERS,
    digit_openers: words::DIGIT_OPENERS,
    short_calls: &["112", "144", "113"],
    slash_words: &["en", "hij", "zij", "ja", "de", "hem", "zijn", "of"],
    small_words: words::SMALL_WORDS,
    loud_words: words::LOUD_WORDS,
    numbered: words::NUMBERED,
    rulers: words::RULERS,
    per: words::PER,
    small_months: true,
    hour_signs: &["u", "uur"],
    spelling: Some(spelling),
    regnal: |speech, n, _| format!("de {}", capital(&speech.ordinal(n, Gender::Masculine))),
    plural: |letters| format!("{letters}'s"),
    mixed,
    date,
    time,
    fraction,
    decimals,
    fine_fractions: true,
    cents: |whole, noun, part, cents| match part {
        // One is no number without its noun.
        "één" | "een" => format!("{whole} {noun} en {part} {cents}"),
        _ => format!("{whole} {noun} {part}"),
    },
    before_noun: |speech, n, _| {
        // elfhonderd
        let hundreds = (1100..10_000).contains(&n) && n % 100 == 0 && n % 1000 != 0;
        hundreds.then(|| speech.year(n))
    },
    watched: &["ie", "iie", "iiie", "ive", "ve", "vie", "ixe", "xe", "x"],
    readings: &[
        part::uneven,
        readings::clock,
        readings::weekdays,
        readings::roman_ordinal,
        readings::joined,
        readings::short_year,
        readings::postcode,
        sign::crossed,
        |scan, speech| clock::pointed(scan, speech, &["om", "rond"], false),
    ],
    is_counted: words::is_counted,
    ..BARE
};

/// duizend tweehonderd, but duizendste
fn spelling(words: &str) -> String {
    const THOUSAND: &str = "duizend";
    let mut parts = words.split(THOUSAND);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(THOUSAND);
        if part.starts_with(char::is_alphabetic) && part != "ste" {
            out.push(' ');
        }
        out.push_str(part);
    }
    out
}

/// anderhalf, tweeënhalf, vierenhalf, twee en een kwart
fn mixed(whole: &str, part: &str, fraction: (u64, u64)) -> String {
    match (fraction, whole) {
        ((1, 2), "één") => "anderhalf".to_owned(),
        ((1, 2), _) if whole.ends_with('e') => format!("{whole}ënhalf"),
        ((1, 2), _) => format!("{whole}enhalf"),
        _ => format!("{whole} en {part}"),
    }
}

/// een half, drie kwart, twee derde
fn fraction(speech: &Speech, above: u64, below: u64) -> Option<String> {
    let noun = match below {
        0 | 1 => return None,
        2 => "half".to_owned(),
        4 => "kwart".to_owned(),
        _ => speech.ordinal(below, Gender::Masculine),
    };
    let above = if above == 1 { "een".to_owned() } else { speech.count(above) };
    Some(format!("{above} {noun}"))
}

/// 3,14: veertien; 0,05: nul vijf; longer ones digit by digit.
fn decimals(speech: &Speech, digits: &str) -> String {
    match digits.parse() {
        Ok(n) if digits.len() == 2 && !digits.starts_with('0') => speech.count(n),
        _ => speech.digits(digits),
    }
}

/// drie mei tweeduizend zesentwintig
fn date(speech: &Speech, date: &Date, _: &str) -> String {
    let day = date.day.map(|day| speech.count(day.into()));
    let year = date.year.map(|year| speech.year(year.into()));
    let month = Some(speech.names().month(date.month).to_owned());
    [day, month, year].into_iter().flatten().collect::<Vec<String>>().join(" ")
}

/// vijftien uur vijfenveertig; with seconds, all are named.
fn time(speech: &Speech, time: &Time) -> String {
    let part = |n: u32, one: &str, other: &str| {
        format!("{} {}", speech.count(n.into()), if n == 1 { one } else { other })
    };
    let hour = part(time.hour, "uur", "uur");
    let minute = || part(time.minute, "minuut", "minuten");
    match (time.minute, time.second) {
        (0, None) => hour,
        (minute, None) => format!("{hour} {}", speech.count(minute.into())),
        (0, Some(second)) => format!("{hour} en {}", part(second, "seconde", "seconden")),
        (_, Some(second)) => {
            format!("{hour} {} en {}", minute(), part(second, "seconde", "seconden"))
        }
    }
}

/// With its first letter as a capital.
fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
