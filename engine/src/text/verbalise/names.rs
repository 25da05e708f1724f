//! Names from CLDR: months, days, currencies, units and emoji of a language, with what a region writes otherwise.

use std::collections::BTreeMap;

/// The names of one locale.
#[derive(Debug, Default)]
pub(super) struct Names {
    months: Vec<Name>,
    days: Vec<Name>,
    money: Vec<Noun>,
    units: Vec<Noun>,
    emoji: BTreeMap<char, &'static str>,
}

/// A name in full and its short form, without a period.
#[derive(Debug)]
struct Name {
    number: u32,
    full: &'static str,
    short: &'static str,
    /// Both in lower case.
    known_as: [String; 2],
}

/// Something that is counted.
#[derive(Debug)]
pub(super) struct Noun {
    /// ISO code of a currency, CLDR name of a unit.
    key: &'static str,
    /// Its gender, where one is told.
    pub(super) gender: Option<Gender>,
    /// The form for one.
    pub(super) one: &'static str,
    /// The form for all other numbers.
    pub(super) other: &'static str,
}

/// What an adjective or number word agrees with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Gender {
    #[default]
    Masculine,
    Feminine,
    Neuter,
}

impl Names {
    /// Reads the tables of a language and the names of its emoji; tables of a region, read before, win.
    pub(super) fn read(tables: &[&'static str], emoji: &'static str) -> Self {
        let named = |line: &'static str| {
            let (sign, name) = line.split_once('\t')?;
            Some((sign.chars().next()?, name))
        };
        let mut names =
            Self { emoji: emoji.lines().filter_map(named).collect(), ..Self::default() };
        for line in tables.iter().flat_map(|table| table.lines()) {
            let fields: Vec<&'static str> = line.split('\t').collect();
            names.add(&fields);
        }
        names
    }

    fn add(&mut self, fields: &[&'static str]) {
        match *fields {
            ["month", number, full, short] => put(&mut self.months, number, full, short),
            ["day", number, full, short] => put(&mut self.days, number, full, short),
            ["money", key, one, other] => {
                put_noun(&mut self.money, Noun { key, gender: None, one, other });
            }
            ["unit", key, gender, one, other] => {
                let gender = match gender {
                    "f" => Some(Gender::Feminine),
                    "n" => Some(Gender::Neuter),
                    "m" => Some(Gender::Masculine),
                    _ => None,
                };
                put_noun(&mut self.units, Noun { key, gender, one, other });
            }
            _ => {}
        }
    }

    /// The full name of a month, 1 to 12.
    pub(super) fn month(&self, number: u32) -> &'static str {
        full(&self.months, number)
    }

    /// The full name of a day of the week, 1 (Monday) to 7.
    pub(super) fn day(&self, number: u32) -> &'static str {
        full(&self.days, number)
    }

    /// Which month a word names, in lower case and without a period; and whether by its short form.
    pub(super) fn find_month(&self, word: &str) -> Option<(u32, bool)> {
        find(&self.months, word)
    }

    /// Which day of the week a word names, likewise.
    pub(super) fn find_day(&self, word: &str) -> Option<(u32, bool)> {
        find(&self.days, word)
    }

    /// Months and days, in full and short.
    pub(super) fn calendar(&self) -> impl Iterator<Item = &'static str> {
        self.months.iter().chain(&self.days).flat_map(|name| [name.full, name.short])
    }

    /// The name of a pictograph.
    pub(super) fn emoji(&self, sign: char) -> Option<&'static str> {
        self.emoji.get(&sign).copied()
    }

    /// The currency of an ISO code.
    pub(super) fn money(&self, code: &str) -> Option<&Noun> {
        self.money.iter().find(|noun| noun.key == code)
    }

    /// The unit of a CLDR name.
    pub(super) fn unit(&self, key: &str) -> Option<&Noun> {
        self.units.iter().find(|noun| noun.key == key)
    }
}

fn put(names: &mut Vec<Name>, number: &str, full: &'static str, short: &'static str) {
    let number = number.parse().unwrap_or_default();
    if !names.iter().any(|known| known.number == number) {
        let short = short.trim_end_matches('.');
        let known_as = [full.to_lowercase(), short.to_lowercase()];
        names.push(Name { number, full, short, known_as });
    }
}

fn full(names: &[Name], number: u32) -> &'static str {
    names.iter().find(|name| name.number == number).map_or("", |name| name.full)
}

fn put_noun(nouns: &mut Vec<Noun>, noun: Noun) {
    if !nouns.iter().any(|known| known.key == noun.key) {
        nouns.push(noun);
    }
}

fn find(names: &[Name], word: &str) -> Option<(u32, bool)> {
    let name = names.iter().find(|n| n.known_as.iter().any(|known| known == word))?;
    Some((name.number, name.known_as[0] != word))
}
