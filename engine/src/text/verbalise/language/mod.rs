//! What is known of a language: its tables and the few readings whose order of words is its own. One file each.
//!
//! A new language is a file with its [`Language`], an arm of [`LocaleData::read`], and a table of tests; what it leaves empty is not
//! read. A rule of `classes` finds out what a piece of text means (the 29th of November); this room says it.

mod dutch;
mod english;
mod french;
mod german;
mod italian;
mod other;
mod portuguese;
mod romance;
mod rows;
mod spanish;
pub(super) mod units;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::classes::Rule;
use super::classes::money::SMALL_CODES;
use super::locale::Locale;
use super::names::{Gender, Names};
use super::number::Number;
use super::rbnf::Rules;
use super::scan::{Scan, lower};
use super::speech::Speech;
use crate::text::ids;
pub(super) use rows::{Abbreviation, Currency, Magnitude, Minor, Short};
use rows::{always, currency, dotted, feminine, number, same, short, title};

/// All that is known of the language of one locale.
#[derive(Debug)]
pub(super) struct LocaleData {
    pub(super) locale: Locale,
    pub(super) rules: Rules,
    pub(super) names: Names,
    pub(super) language: &'static Language,
    shorts: Shorts,
}

/// The short forms of a language, for a quick no: almost every word is none.
#[derive(Debug, Default)]
struct Shorts {
    /// For each first letter, a bit for each length, and the words.
    words: BTreeMap<char, (u32, Vec<Vec<char>>)>,
}

/// A day, as far as it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Date {
    /// 1 (Monday) to 7.
    pub(super) weekday: Option<u32>,
    pub(super) day: Option<u32>,
    pub(super) month: u32,
    pub(super) year: Option<u32>,
    /// The month was written before the day.
    pub(super) month_first: bool,
    /// The day was written as an ordinal.
    pub(super) ordinal: bool,
    /// The year was written with an article: `del 2026`.
    pub(super) definite: bool,
}

/// A part of a noun, perhaps behind a whole number: 3/4 cup, 1 1/2 cups.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) whole: Option<u64>,
    pub(super) above: u64,
    pub(super) below: u64,
    /// That of the noun.
    pub(super) gender: Gender,
}

/// A time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Time {
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: Option<u32>,
    /// `am` or `pm` was written.
    pub(super) half: Option<Half>,
    /// A sign for hours was written.
    pub(super) named: bool,
    /// One for minutes as well: it may be a length of time.
    pub(super) lasting: bool,
}

/// Half of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Am,
    Pm,
}

/// Tables and readings of a language.
#[derive(Debug)]
pub(super) struct Language {
    /// Rule sets of numbers: bare, as they are counted.
    pub(super) counting: &'static str,
    /// The same with "and", where a model wants it.
    pub(super) counting_and: &'static str,
    /// Before a masculine, a feminine and a neuter noun.
    pub(super) cardinals: [&'static str; 3],
    /// Ordinals of these genders.
    pub(super) ordinals: [&'static str; 3],
    pub(super) year: &'static str,
    /// Which numbers take the form for one.
    pub(super) is_one: fn(&Number) -> bool,
    /// Endings that make digits an ordinal: `st`, `º`.
    pub(super) ordinal_endings: &'static [(&'static str, Gender)],
    /// The gender of a word, if it is a noun that numbers before it agree with: `páginas`.
    pub(super) noun: fn(&str) -> Option<Gender>,
    pub(super) words: Words,
    /// Signs that are read as a word wherever they stand.
    pub(super) signs: &'static [(char, &'static str)],
    /// What the letters A to Z are called.
    pub(super) letters: [&'static str; 26],
    /// Words of many ones: thousand, million; with their short forms.
    pub(super) magnitudes: &'static [Magnitude],
    pub(super) currencies: &'static [Currency],
    /// Written units that not every language has: sign and CLDR name, or the words for one and many.
    pub(super) units: &'static [(&'static str, &'static str)],
    pub(super) abbreviations: &'static [Abbreviation],
    /// Words in capitals that are spoken letter by letter, and those that are spoken as words.
    pub(super) initialisms: &'static [&'static str],
    pub(super) acronyms: &'static [&'static str],
    /// Words before a number that make it a year.
    pub(super) year_openers: &'static [&'static str],
    /// Words before a number that make it a count whatever its size.
    pub(super) count_openers: &'static [&'static str],
    /// Words before a day in digits.
    pub(super) day_openers: &'static [&'static str],
    /// Words before a score or ratio.
    pub(super) ratio_openers: &'static [&'static str],
    /// Words before digits that are told one by one.
    pub(super) digit_openers: &'static [&'static str],
    /// Words before letters and digits that are told one by one: `code AB123`.
    pub(super) code_openers: &'static [&'static str],
    /// Pairs of words before the last digits of a number: `ending in 8876`.
    pub(super) number_endings: &'static [(&'static str, &'static str)],
    /// How many digits without groups are told one by one wherever they stand.
    pub(super) bare_digits: std::ops::RangeInclusive<usize>,
    /// One of any number may be a fraction: 1/13.
    pub(super) fine_fractions: bool,
    /// Words before `30s` that are years.
    pub(super) decade_openers: &'static [&'static str],
    /// Numbers that are called: 911.
    pub(super) short_calls: &'static [&'static str],
    /// Words before a number that is told in pairs: flights, rooms, models.
    pub(super) pair_openers: &'static [&'static str],
    /// Last words of a street's name: a number before it is told in pairs.
    pub(super) streets: &'static [&'static str],
    /// Words between which a slash means "or".
    pub(super) slash_words: &'static [&'static str],
    /// "a", "an": what follows them stands in the singular.
    pub(super) articles: &'static [&'static str],
    /// Words that are never a name nor a noun, in the form in which they open a sentence and inside one.
    pub(super) small_words: &'static [&'static str],
    /// Words in capitals that are only loud.
    pub(super) loud_words: &'static [&'static str],
    /// Words before a Roman numeral that is a number, and names before one that is an ordinal.
    pub(super) numbered: &'static [&'static str],
    pub(super) rulers: &'static [&'static str],
    /// Short names behind the stroke of a price, and their words; behind a blank these have a preposition of their own.
    pub(super) per: &'static [(&'static str, &'static str)],
    /// Between a day and its month, or a number of millions and its noun: "of".
    pub(super) of: &'static str,
    /// The same before a vowel, where it is written to the noun: `d'`.
    pub(super) of_vowel: &'static str,
    /// Names of months and days are written small.
    pub(super) small_months: bool,
    /// Every noun is written with a capital letter.
    pub(super) capital_nouns: bool,
    /// Day and month in digits end with a period: `29.11.`
    pub(super) dotted_days: bool,
    /// A number before "percent" is said as if it stood alone: `uno por ciento`.
    pub(super) bare_percent: bool,
    /// What parts hours from minutes or stands behind both: `15h30`, `15:30 h`.
    pub(super) hour_signs: &'static [&'static str],
    /// Lengths of the groups of telephone numbers that nothing else tells.
    pub(super) telephones: &'static [&'static [usize]],
    /// The words of a Roman numeral before a noun, in lower case, that is put in order by it: `XX aniversario`.
    pub(super) ordered: fn(&Speech, u64, &str) -> Option<String>,
    /// A day may stand behind its month: May 5.
    pub(super) day_last: bool,
    /// Times have `am` and `pm`.
    pub(super) halves: bool,
    /// The words of a decade by those of its first year, where `1990s` is written.
    pub(super) decades: Option<fn(&str) -> String>,
    /// The number behind the name of a ruler, with that name in lower case.
    pub(super) regnal: fn(&Speech, u64, &str) -> String,
    /// The plural of letters that are spelled.
    pub(super) plural: fn(&str) -> String,
    /// A whole number and the fraction behind it, in words and as it is written.
    pub(super) mixed: fn(&str, &str, (u64, u64)) -> String,
    /// A day, with the word before it in lower case.
    pub(super) date: fn(&Speech, &Date, &str) -> String,
    pub(super) time: fn(&Speech, &Time) -> String,
    pub(super) fraction: fn(&Speech, u64, u64) -> Option<String>,
    /// A fraction, perhaps behind a whole number, before a noun of a gender, where that has words of its own: `media taza`.
    pub(super) part_of: fn(&Speech, &Part) -> Option<String>,
    /// The words of a whole number before the noun at the place behind it, where these are not those of the number alone:
    /// `1 Stunde`.
    pub(super) before_noun: fn(&Speech, u64, Scan<'_>) -> Option<String>,
    /// The words of the digits behind a decimal mark.
    pub(super) decimals: fn(&Speech, &str) -> String,
    /// An amount of money with its hundredths: the words of the whole, its noun, the words of the part and its noun.
    pub(super) cents: fn(&str, &str, &str, &str) -> String,
    /// A group of digits of a telephone, card or account number.
    pub(super) group: fn(&Speech, &str) -> String,
    /// Words that readings of its own begin with, in small letters: no others are shown to them if they look like words.
    pub(super) watched: &'static [&'static str],
    /// Number words as they are spelled, where the rules leave out a blank.
    pub(super) spelling: Option<fn(&str) -> String>,
    /// Readings that no other language has; asked before those of `classes`.
    pub(super) readings: &'static [Rule],
    /// Whether the word at the place behind a number is counted by it.
    pub(super) is_counted: fn(Scan<'_>) -> bool,
}

/// Single words that readings are made of.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) minus: &'static str,
    pub(super) plus: &'static str,
    pub(super) plus_minus: &'static str,
    pub(super) percent: &'static str,
    pub(super) per_mille: &'static str,
    /// Between two ends of a range.
    pub(super) to: &'static str,
    /// Between two sides of a score or ratio.
    pub(super) ratio: &'static str,
    /// `&` inside an address.
    pub(super) ampersand: &'static str,
    pub(super) number: &'static str,
    /// The nought in the middle of a number that is told in pairs.
    pub(super) oh: &'static str,
    /// `#` behind the name of a tone or a language.
    pub(super) sharp: &'static str,
    pub(super) dot: &'static str,
    pub(super) at: &'static str,
    pub(super) slash: &'static str,
    /// What the slash of an address is called.
    pub(super) stroke: &'static str,
    pub(super) dash: &'static str,
    pub(super) underscore: &'static str,
    pub(super) colon: &'static str,
    pub(super) hash: &'static str,
    pub(super) equals: &'static str,
    pub(super) question_mark: &'static str,
    pub(super) exclamation_mark: &'static str,
    pub(super) tilde: &'static str,
    pub(super) version: &'static str,
    pub(super) times: &'static str,
    pub(super) by: &'static str,
    pub(super) per: &'static str,
    pub(super) square: &'static str,
    pub(super) cubed: &'static str,
    pub(super) to_the_power: &'static str,
    pub(super) north: &'static str,
    pub(super) south: &'static str,
    pub(super) east: &'static str,
    pub(super) west: &'static str,
    pub(super) divided_by: &'static str,
    pub(super) less_than: &'static str,
    pub(super) greater_than: &'static str,
    pub(super) at_most: &'static str,
    pub(super) at_least: &'static str,
    /// Between the numbers of 120/80.
    pub(super) over: &'static str,
    pub(super) or: &'static str,
    pub(super) about: &'static str,
    pub(super) hashtag: &'static str,
}

impl Language {
    /// Written units: those of the language, then those that every language has.
    pub(super) fn units(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        self.units.iter().chain(units::METRIC)
    }
}

impl Shorts {
    fn new(language: &Language, names: &Names) -> Self {
        let mut shorts = Self::default();
        let forms = language.abbreviations.iter().map(|a| a.written);
        let watched = language.watched.iter().copied();
        let codes = SMALL_CODES.iter().copied();
        for word in forms.chain(names.calendar()).chain(watched).chain(codes) {
            let word: Vec<char> = word.to_lowercase().chars().collect();
            if let Some(&first) = word.first() {
                let (lengths, words) = shorts.words.entry(first).or_default();
                *lengths |= length_bit(word.len());
                words.push(word);
            }
        }
        shorts
    }

    fn has(&self, word: &[char]) -> bool {
        let Some(&first) = word.first() else { return false };
        let Some((lengths, words)) = self.words.get(&lower(first)) else { return false };
        let same = |known: &Vec<char>| {
            known.len() == word.len()
                && known.iter().zip(word).all(|(&k, &c)| k == c || k == lower(c))
        };
        lengths & length_bit(word.len()) != 0 && words.iter().any(same)
    }
}

fn length_bit(length: usize) -> u32 {
    1 << length.min(31)
}

impl LocaleData {
    /// What is known for a locale. Read once.
    pub(super) fn of(locale: Locale) -> &'static Self {
        static LOCALES: [OnceLock<LocaleData>; Locale::COUNT] =
            [const { OnceLock::new() }; Locale::COUNT];
        LOCALES[locale.index()].get_or_init(|| Self::read(locale))
    }

    fn read(locale: Locale) -> Self {
        macro_rules! data {
            ($name:literal) => {
                include_str!(concat!("../data/", $name))
            };
        }
        let (rules, names, emoji, language) = match locale.language() {
            ids::Language::English => {
                (data!("en.rbnf"), data!("en.words"), data!("en.emoji"), &english::ENGLISH)
            }
            ids::Language::German => {
                (data!("de.rbnf"), data!("de.words"), data!("de.emoji"), &german::GERMAN)
            }
            ids::Language::Spanish => {
                (spanish::RULES, data!("es.words"), data!("es.emoji"), &spanish::SPANISH)
            }
            ids::Language::French => {
                (data!("fr.rbnf"), data!("fr.words"), data!("fr.emoji"), &french::FRENCH)
            }
            ids::Language::Italian => {
                (italian::RULES, data!("it.words"), data!("it.emoji"), &italian::ITALIAN)
            }
            ids::Language::Dutch => {
                (data!("nl.rbnf"), data!("nl.words"), data!("nl.emoji"), &dutch::DUTCH)
            }
            ids::Language::Portuguese => {
                (data!("pt.rbnf"), data!("pt.words"), data!("pt.emoji"), &portuguese::PORTUGUESE)
            }
        };
        let (rules, region) = match locale.tag() {
            "pt-PT" | "pt-AO" => (portuguese::RULES_OF_PORTUGAL, data!("pt-PT.words")),
            "de-AT" => (rules, data!("de-AT.words")),
            "de-CH" => (data!("de-CH.rbnf"), data!("de-CH.words")),
            "fr-BE" => (data!("fr-BE.rbnf"), ""),
            "fr-CH" => (data!("fr-CH.rbnf"), ""),
            "en-US" | "en-CA" => (rules, ""),
            tag if tag.starts_with("en-") => (rules, data!("en-GB.words")),
            _ => (rules, ""),
        };
        let language = match locale.tag() {
            "pt-PT" | "pt-AO" => &portuguese::OF_PORTUGAL,
            "es-MX" | "es-AR" | "es-CL" | "es-CO" => &spanish::WITH_PESOS,
            _ => language,
        };
        let names = Names::read(&[region, names], emoji);
        Self {
            locale,
            rules: Rules::parse(rules),
            shorts: Shorts::new(language, &names),
            names,
            language,
        }
    }

    /// Whether letters are a short form, or the name of a month or day.
    pub(super) fn is_short(&self, word: &[char]) -> bool {
        self.shorts.has(word)
    }
}
