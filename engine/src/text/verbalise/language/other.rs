//! What every language but English starts from: whole numbers and decimals, and little else.

use super::{Date, Language, Time, Words};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::number::Number;
use crate::text::verbalise::scan::Scan;
use crate::text::verbalise::speech::Speech;

const GENDERS: [&str; 3] =
    ["spellout-cardinal-masculine", "spellout-cardinal-feminine", "spellout-cardinal-masculine"];
const ORDINALS: [&str; 3] =
    ["spellout-ordinal-masculine", "spellout-ordinal-feminine", "spellout-ordinal-masculine"];

/// A language of which only the numbers are known.
pub(super) const BARE: Language = Language {
    counting: "spellout-numbering",
    counting_and: "spellout-numbering",
    cardinals: GENDERS,
    ordinals: ORDINALS,
    year: "spellout-numbering-year",
    is_one: |number: &Number| number.is(1),
    ordinal_endings: &[],
    noun: |_| None,
    words: NO_WORDS,
    signs: &[],
    letters: [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r",
        "s", "t", "u", "v", "w", "x", "y", "z",
    ],
    magnitudes: &[],
    currencies: &[],
    units: &[],
    abbreviations: &[],
    initialisms: &[],
    acronyms: &[],
    year_openers: &[],
    count_openers: &[],
    day_openers: &[],
    ratio_openers: &[],
    digit_openers: &[],
    code_openers: &[],
    number_endings: &[],
    // Ten are a number, longer ones are codes, the longest numbers again.
    bare_digits: 11..=12,
    fine_fractions: false,
    decade_openers: &[],
    short_calls: &[],
    pair_openers: &[],
    streets: &[],
    slash_words: &[],
    articles: &[],
    small_words: &[],
    loud_words: &[],
    numbered: &[],
    rulers: &[],
    per: &[],
    of: "",
    of_vowel: "",
    small_months: true,
    capital_nouns: false,
    dotted_days: false,
    bare_percent: false,
    hour_signs: &[],
    telephones: &[],
    ordered: |_, _, _| None,
    part_of: |_, _| None,
    day_last: false,
    halves: false,
    decades: None,
    regnal: |speech, n, _| speech.ordinal(n, Gender::Masculine),
    plural: str::to_owned,
    mixed: |whole, part, _| format!("{whole} {part}"),
    date,
    time,
    fraction: |_, _, _| None,
    before_noun: |_, _, _| None,
    decimals: |speech, digits| speech.digits(digits),
    cents: |whole, noun, part, _| format!("{whole} {noun} {part}"),
    group: |speech, digits| speech.digits(digits),
    spelling: None,
    watched: &[],
    readings: &[],
    is_counted: |_: Scan<'_>| false,
};

const NO_WORDS: Words = Words {
    minus: "",
    plus: "",
    plus_minus: "",
    percent: "",
    per_mille: "",
    to: "",
    ratio: "",
    ampersand: "",
    number: "",
    oh: "",
    sharp: "",
    dot: "",
    at: "",
    slash: "",
    stroke: "",
    dash: "",
    underscore: "",
    colon: "",
    hash: "",
    equals: "",
    question_mark: "",
    exclamation_mark: "",
    tilde: "",
    version: "",
    times: "",
    by: "",
    per: "",
    square: "",
    cubed: "",
    to_the_power: "",
    north: "",
    south: "",
    east: "",
    west: "",
    divided_by: "",
    less_than: "",
    greater_than: "",
    at_most: "",
    at_least: "",
    over: "",
    or: "",
    about: "",
    hashtag: "",
};

/// Day, month, year.
fn date(speech: &Speech, date: &Date, _: &str) -> String {
    let weekday = date.weekday.map(|day| format!("{},", speech.names().day(day)));
    let day = date.day.map(|day| speech.count(day.into()));
    let year = date.year.map(|year| speech.year(year.into()));
    let month = Some(speech.names().month(date.month).to_owned());
    [weekday, day, month, year].into_iter().flatten().collect::<Vec<String>>().join(" ")
}

/// Hour, minute, second.
fn time(speech: &Speech, time: &Time) -> String {
    let parts = [Some(time.hour), Some(time.minute).filter(|&m| m > 0), time.second];
    parts.into_iter().flatten().map(|n| speech.count(n.into())).collect::<Vec<String>>().join(" ")
}
