//! German. Number words after CLDR; cases, ordinals and short forms after Duden ("Die deutsche Rechtschreibung" and "Die
//! Grammatik").

mod days;
mod joined;
mod nouns;
mod ordinals;
mod small;
mod tables;
mod words;

use super::other::BARE;
use super::{Language, Part, Time};
use crate::text::verbalise::classes::{clock, part, sign};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::Scan;
use crate::text::verbalise::speech::Speech;

pub(super) const GERMAN: Language = Language {
    cardinals: [
        "spellout-cardinal-masculine",
        "spellout-cardinal-feminine",
        "spellout-cardinal-neuter",
    ],
    ordinals: ["spellout-ordinal"; 3],
    noun: nouns::of_noun,
    words: words::WORDS,
    signs: words::SIGNS,
    letters: [
        "ah", "beh", "zeh", "deh", "eh", "eff", "geh", "hah", "ih", "jott", "kah", "ell", "emm",
        "enn", "oh", "peh", "kuh", "err", "ess", "teh", "uh", "vau", "weh", "iks", "ypsilon",
        "zett",
    ],
    magnitudes: tables::MAGNITUDES,
    currencies: tables::CURRENCIES,
    units: tables::UNITS,
    abbreviations: tables::ABBREVIATIONS,
    initialisms: tables::INITIALISMS,
    acronyms: tables::ACRONYMS,
    year_openers: words::YEAR_OPENERS,
    count_openers: words::COUNT_OPENERS,
    day_openers: &["am", "vom", "zum", "bis", "ab", "seit", "den", "dem", "der", "des"],
    ratio_openers: words::RATIO_OPENERS,
    digit_openers: words::DIGIT_OPENERS,
    short_calls: &["110", "112", "115"],
    slash_words: &["und", "er", "sie", "ja", "entweder", "der", "die", "das", "ihm", "seine"],
    small_words: small::SMALL_WORDS,
    loud_words: small::LOUD_WORDS,
    numbered: words::NUMBERED,
    rulers: words::RULERS,
    per: words::PER,
    small_months: false,
    capital_nouns: true,
    dotted_days: true,
    plural: |letters| letters.to_owned() + "s",
    mixed,
    date: days::say,
    time,
    fraction,
    part_of,
    cents: |whole, noun, part, cents| match part {
        // One is no number without its noun.
        "ein" => format!("{whole} {noun} {part} {cents}"),
        _ => format!("{whole} {noun} {part}"),
    },
    fine_fractions: true,
    code_openers: &[
        "code",
        "kennwort",
        "passwort",
        "pin",
        "kennzeichen",
        "seriennummer",
        "buchungscode",
    ],
    number_endings: &[("endet", "auf"), ("endend", "auf"), ("endenden", "auf"), ("endende", "auf")],
    watched: &["x"],
    readings: &[
        sign::crossed,
        days::weekdays,
        days::behind_weekday,
        days::month_and_year,
        days::second,
        days::clock,
        ordinals::digits,
        ordinals::ruler,
        joined::read,
        joined::one,
        part::uneven,
        joined::postcode,
        joined::sentence,
        joined::street,
        joined::compounds,
        joined::paragraphs,
        |scan, speech| clock::pointed(scan, speech, &["um", "gegen"], false),
    ],
    is_counted,
    ..BARE
};

/// eineinhalb, zwei drei Viertel
fn mixed(whole: &str, part: &str, fraction: (u64, u64)) -> String {
    let whole = if whole == "eins" { "ein" } else { whole };
    match fraction {
        (1, 2) => format!("{whole}einhalb"),
        _ => format!("{whole} {part}"),
    }
}

/// ein halber Liter, eine halbe Stunde, ein halbes Jahr
fn part_of(_: &Speech, part: &Part) -> Option<String> {
    let said = match part.gender {
        Gender::Masculine => "ein halber",
        Gender::Feminine => "eine halbe",
        Gender::Neuter => "ein halbes",
    };
    ((part.whole, part.above, part.below) == (None, 1, 2)).then(|| said.to_owned())
}

/// ein halb, drei Viertel, zwei Zwanzigstel
fn fraction(speech: &Speech, above: u64, below: u64) -> Option<String> {
    let noun = match below {
        0 | 1 => return None,
        2 if above == 1 => "halb".to_owned(),
        2 => "Halbe".to_owned(),
        100 => "Hundertstel".to_owned(),
        1000 => "Tausendstel".to_owned(),
        _ => {
            let ordinal = speech.ordinal(below, Gender::Neuter);
            capital(ordinal.strip_suffix("te").unwrap_or(&ordinal)) + "tel"
        }
    };
    Some(format!("{} {noun}", speech.cardinal(above, Gender::Neuter)))
}

/// fünfzehn Uhr fünfundvierzig; with seconds, all are named.
fn time(speech: &Speech, time: &Time) -> String {
    let part = |n: u32, gender, one: &'static str, other: &'static str| {
        format!("{} {}", speech.cardinal(n.into(), gender), if n == 1 { one } else { other })
    };
    let hour = part(time.hour, Gender::Neuter, "Uhr", "Uhr");
    match (time.minute, time.second) {
        (0, None) => hour,
        (minute, None) => format!("{hour} {}", speech.count(minute.into())),
        (minute, Some(second)) => {
            let second = part(second, Gender::Feminine, "Sekunde", "Sekunden");
            match minute {
                0 => format!("{hour} und {second}"),
                _ => {
                    let minute = part(minute, Gender::Feminine, "Minute", "Minuten");
                    format!("{hour} {minute} und {second}")
                }
            }
        }
    }
}

/// A noun that looks like a plural: the number before it counts it.
fn is_counted(behind: Scan<'_>) -> bool {
    const PLURALS: [&str; 10] =
        ["euro", "stück", "mal", "autos", "fans", "prozent", "ps", "fotos", "büros", "jobs"];
    let word: String = behind.next_word().iter().flat_map(|c| c.to_lowercase()).collect();
    let capital = behind.next_visible().is_some_and(char::is_uppercase);
    let plural = ["en", "er", "e", "el", "ern", "eln"].iter().any(|end| word.ends_with(end));
    let small = small::SMALL_WORDS.contains(&word.as_str());
    capital && !small && word.len() > 3 && (plural || PLURALS.contains(&word.as_str()))
}

/// With its first letter as a capital.
fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
