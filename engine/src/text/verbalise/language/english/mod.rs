//! English. Words after the Oxford and Chicago style guides; where Britain and America differ, by the locale.

mod money;
mod places;
mod readings;
mod tables;
mod words;

use super::{Date, Half, Language, Time, romance};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::{Scan, lower};
use crate::text::verbalise::speech::Speech;

pub(super) const ENGLISH: Language = Language {
    counting: "spellout-cardinal",
    counting_and: "spellout-cardinal-verbose",
    cardinals: ["spellout-cardinal"; 3],
    ordinals: ["spellout-ordinal"; 3],
    year: "spellout-numbering-year",
    is_one: |number| number.is(1),
    ordinal_endings: &[
        ("st", Gender::Masculine),
        ("nd", Gender::Masculine),
        ("rd", Gender::Masculine),
        ("th", Gender::Masculine),
    ],
    noun: |_| None,
    words: words::WORDS,
    signs: words::SIGNS,
    letters: [
        "ay",
        "bee",
        "see",
        "dee",
        "ee",
        "eff",
        "jee",
        "aitch",
        "eye",
        "jay",
        "kay",
        "ell",
        "em",
        "en",
        "oh",
        "pee",
        "cue",
        "ar",
        "ess",
        "tee",
        "you",
        "vee",
        "double you",
        "ex",
        "why",
        "zee",
    ],
    magnitudes: money::MAGNITUDES,
    currencies: money::CURRENCIES,
    units: tables::UNITS,
    abbreviations: tables::ABBREVIATIONS,
    initialisms: tables::INITIALISMS,
    acronyms: tables::ACRONYMS,
    year_openers: words::YEAR_OPENERS,
    count_openers: words::COUNT_OPENERS,
    day_openers: words::DAY_OPENERS,
    ratio_openers: &["ratio", "score", "scored", "won", "lost", "odds", "of", "lead", "leading"],
    digit_openers: words::DIGIT_OPENERS,
    code_openers: &["code", "otp", "password", "passcode", "pin", "confirmation", "serial"],
    number_endings: &[("ending", "in"), ("ends", "in"), ("ended", "in"), ("ending", "with")],
    bare_digits: 10..=30,
    fine_fractions: false,
    decade_openers: words::DECADE_OPENERS,
    short_calls: &["911", "999", "411", "311", "511"],
    pair_openers: words::PAIR_OPENERS,
    streets: words::STREETS,
    slash_words: &[
        "and", "he", "she", "his", "him", "yes", "either", "s", "on", "true", "win", "pass",
    ],
    articles: &["a", "an"],
    small_words: words::SMALL_WORDS,
    loud_words: words::LOUD_WORDS,
    numbered: words::NUMBERED,
    rulers: words::RULERS,
    per: words::PER,
    of: "of",
    of_vowel: "",
    small_months: false,
    capital_nouns: false,
    dotted_days: true,
    bare_percent: false,
    hour_signs: &[],
    // A ZIP code with its four digits more.
    telephones: &[&[5, 4]],
    ordered: |_, _, _| None,
    part_of: |_, _| None,
    day_last: true,
    halves: true,
    decades: Some(decades),
    regnal: |speech, n, _| format!("the {}", speech.ordinal(n, Gender::Masculine)),
    plural,
    mixed: |whole, part, (above, _)| {
        let one = if above == 1 { part.replacen("one ", "a ", 1) } else { part.to_owned() };
        format!("{whole} and {one}")
    },
    date,
    time,
    fraction,
    before_noun: |_, _, _| None,
    decimals: |speech, digits| speech.digits(digits),
    cents: |whole, noun, part, cents| format!("{whole} {noun} and {part} {cents}"),
    group: |speech, digits| speech.digits(digits),
    spelling: None,
    watched: &[],
    readings: &[
        readings::prefixed_decade,
        readings::quarter,
        readings::year_of_era,
        readings::side,
        readings::state,
        readings::duration,
        readings::many,
        readings::improper_fraction,
        readings::lone_currency,
        romance::multiplied,
    ],
    is_counted,
};

/// nineteen nineties, nineties, nineteen hundreds
fn decades(year: &str) -> String {
    match year.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{year}s"),
    }
}

/// P Cs is written with an apostrophe where letters stand apart.
fn plural(letters: &str) -> String {
    if letters.contains(' ') { format!("{letters}'s") } else { format!("{letters}s") }
}

/// America: November twenty-ninth twenty twenty-six. Britain, and wherever the day was written first: the twenty-ninth
/// of November twenty twenty-six.
fn date(speech: &Speech, date: &Date, before: &str) -> String {
    let month = speech.names().month(date.month);
    let mut parts = Vec::new();
    if let Some(day) = date.weekday {
        parts.push(format!("{},", speech.names().day(day)));
    }
    match date.day {
        None => parts.push(month.to_owned()),
        Some(day) => {
            let day = speech.ordinal(day.into(), Gender::Masculine);
            parts.push(if date.month_first {
                format!("{month} {day}")
            } else {
                // "the 29th of November" has its article.
                let article = if before == "the" { "" } else { "the " };
                format!("{article}{day} of {month}")
            });
        }
    }
    if let Some(year) = date.year {
        parts.push(speech.year(year.into()));
    }
    parts.join(" ")
}

fn time(speech: &Speech, time: &Time) -> String {
    let Time { hour, minute, second, half, .. } = *time;
    let mut out = speech.count(hour.into());
    match minute {
        0 if second.is_some() => out.push_str(" oh oh"),
        0 if half.is_some() => {}
        0 if hour == 0 => out = "zero hundred".to_owned(),
        0 if hour <= 12 => out.push_str(" o'clock"),
        0 => out.push_str(" hundred"),
        1..=9 => out = format!("{out} oh {}", speech.count(minute.into())),
        _ => out = format!("{out} {}", speech.count(minute.into())),
    }
    if let Some(second) = second {
        out = match half {
            Some(_) => format!("{out} and {}", counted(speech, second, "second")),
            // Most likely a length of time.
            None => format!(
                "{} {} and {}",
                counted(speech, hour, "hour"),
                counted(speech, minute, "minute"),
                counted(speech, second, "second")
            ),
        };
    }
    match half {
        Some(Half::Am) => format!("{out} {}", speech.spell("AM")),
        Some(Half::Pm) => format!("{out} {}", speech.spell("PM")),
        None => out,
    }
}

/// one hour, two hours
fn counted(speech: &Speech, n: u32, noun: &str) -> String {
    let ending = if n == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", speech.count(n.into()))
}

fn fraction(speech: &Speech, above: u64, below: u64) -> Option<String> {
    let name = match (above, below) {
        (_, 0 | 1) => return None,
        (1, 2) => "half".to_owned(),
        (_, 2) => "halves".to_owned(),
        (1, 4) => "quarter".to_owned(),
        (_, 4) => "quarters".to_owned(),
        (1, _) => speech.ordinal(below, Gender::Masculine),
        _ => format!("{}s", speech.ordinal(below, Gender::Masculine)),
    };
    Some(format!("{} {name}", speech.count(above)))
}

/// A noun in the plural: the number before it counts it.
fn is_counted(behind: Scan<'_>) -> bool {
    const IRREGULAR: [&str; 14] = [
        "people",
        "children",
        "men",
        "women",
        "feet",
        "mice",
        "teeth",
        "fish",
        "sheep",
        "more",
        "of",
        "other",
        "different",
        "new",
    ];
    let word: String = behind.next_word().iter().map(|&c| lower(c)).collect();
    let lowercase = behind.next_visible().is_some_and(char::is_lowercase);
    let plural = word.ends_with('s')
        && !["is", "was", "has", "as", "us", "this", "its", "plus", "versus", "thus", "does"]
            .contains(&word.as_str())
        && !word.ends_with("ss");
    lowercase && (plural || IRREGULAR.contains(&word.as_str()))
}
