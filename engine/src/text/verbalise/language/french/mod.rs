//! French. Number words after CLDR, with the hyphens of 1990; ordinals, short forms and numerals after the Académie
//! française and the "Lexique des règles typographiques en usage à l'Imprimerie nationale".

mod nouns;
mod readings;
mod small;
mod tables;
mod words;

use super::other::BARE;
use super::{Date, Language, Time, romance};
use crate::text::verbalise::classes::sign;
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::speech::Speech;

pub(super) const FRENCH: Language = Language {
    // "mille neuf cent", in years as well.
    year: "spellout-numbering",
    // The plural begins with two: "1,5 litre".
    is_one: |number| matches!(number.value(), Some(0 | 1)),
    ordinal_endings: &[
        ("er", Gender::Masculine),
        ("re", Gender::Feminine),
        ("ère", Gender::Feminine),
        ("ière", Gender::Feminine),
        ("e", Gender::Masculine),
        ("ème", Gender::Masculine),
        ("eme", Gender::Masculine),
        ("ième", Gender::Masculine),
        ("ieme", Gender::Masculine),
    ],
    noun: nouns::gender,
    words: words::WORDS,
    signs: words::SIGNS,
    letters: [
        "a",
        "bé",
        "cé",
        "dé",
        "e",
        "effe",
        "gé",
        "hache",
        "i",
        "ji",
        "ka",
        "elle",
        "emme",
        "enne",
        "o",
        "pé",
        "cu",
        "erre",
        "esse",
        "té",
        "u",
        "vé",
        "double vé",
        "ixe",
        "i grec",
        "zède",
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
    slash_words: &[
        "et", "il", "elle", "ils", "elles", "oui", "un", "une", "le", "la", "ou", "soit",
    ],
    small_words: small::SMALL_WORDS,
    loud_words: small::LOUD_WORDS,
    numbered: words::NUMBERED,
    rulers: words::RULERS,
    per: words::PER,
    of: "de",
    of_vowel: "d'",
    small_months: true,
    dotted_days: false,
    hour_signs: &["h", "H"],
    telephones: &[&[2, 2, 2, 2, 2]],
    fine_fractions: true,
    code_openers: &["code", "pin", "immatriculation", "série", "réservation"],
    number_endings: &[
        ("terminant", "par"),
        ("termine", "par"),
        ("finissant", "par"),
        ("finit", "par"),
    ],
    group: readings::group,
    regnal: |speech, n, name| match n {
        1 if words::QUEENS.contains(&name) => speech.ordinal(1, Gender::Feminine),
        1 => speech.ordinal(1, Gender::Masculine),
        _ => speech.count(n),
    },
    mixed: |whole, part, fraction| match fraction {
        (1, 2) => format!("{whole} et demi"),
        _ => format!("{whole} et {part}"),
    },
    date,
    time,
    fraction,
    before_noun: nouns::before,
    decimals,
    cents,
    watched: &["ier", "ire", "ve", "xe", "ie", "no", "nos", "nº", "nºs", "sept", "ste", "sts", "x"],
    readings: &[
        sign::crossed,
        readings::part_of,
        readings::part_of_unit,
        readings::number_sign,
        readings::second,
        readings::roman_ordinal,
        readings::half_hour,
        readings::days,
        readings::seven,
        readings::saint,
        readings::listed,
    ],
    ..BARE
};

/// premier mai deux mille vingt-six, trois mai
fn date(speech: &Speech, date: &Date, _: &str) -> String {
    let day = date.day.map(|day| match day {
        1 => speech.ordinal(1, Gender::Masculine),
        _ => speech.count(day.into()),
    });
    let year = date.year.map(|year| speech.year(year.into()));
    let month = Some(speech.names().month(date.month).to_owned());
    [day, month, year].into_iter().flatten().collect::<Vec<String>>().join(" ")
}

/// quinze heures quarante-cinq; with seconds, all are named.
fn time(speech: &Speech, time: &Time) -> String {
    let part = |n: u32, noun: &str| {
        let number = speech.cardinal(n.into(), Gender::Feminine);
        format!("{number} {noun}{}", if n < 2 { "" } else { "s" })
    };
    let hour = part(time.hour, "heure");
    match (time.minute, time.second) {
        (0, None) => hour,
        (minute, None) => format!("{hour} {}", speech.cardinal(minute.into(), Gender::Feminine)),
        (0, Some(second)) => format!("{hour} et {}", part(second, "seconde")),
        (minute, Some(second)) => {
            format!("{hour} {} et {}", part(minute, "minute"), part(second, "seconde"))
        }
    }
}

/// un demi, deux tiers, trois quarts, un cinquième
fn fraction(speech: &Speech, above: u64, below: u64) -> Option<String> {
    let noun = match below {
        0 | 1 => return None,
        2 => "demi".to_owned(),
        3 => "tiers".to_owned(),
        4 => "quart".to_owned(),
        _ => speech.ordinal(below, Gender::Masculine),
    };
    let many = if above > 1 && below != 3 { "s" } else { "" };
    Some(format!("{} {noun}{many}", speech.count(above)))
}

/// 3,14: quatorze; 0,05: zéro cinq; 3,1416: quatorze seize; longer ones digit by digit.
fn decimals(speech: &Speech, digits: &str) -> String {
    /// Most digits that are said as one number.
    const NUMBER_DIGITS: usize = 3;
    if let Some(pairs) = romance::two_pairs(speech, digits) {
        return pairs;
    }
    let rest = digits.trim_start_matches('0');
    if rest.is_empty() || rest.len() > NUMBER_DIGITS || digits.len() > NUMBER_DIGITS + 1 {
        return speech.digits(digits);
    }
    let mut said = vec![speech.count(0); digits.len() - rest.len()];
    said.extend(rest.parse().map(|n| speech.count(n)));
    said.join(" ")
}

/// douze euros cinquante; below ten, where that could be taken for a tenth, with the name of the cents.
fn cents(whole: &str, noun: &str, part: &str, cents: &str) -> String {
    let digit = ["un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"];
    match digit.contains(&part) {
        true => format!("{whole} {noun} et {part} {cents}"),
        false => format!("{whole} {noun} {part}"),
    }
}
