//! Numbers and letters in words, as one voice wants them: a language and the conventions of a model.

use super::conventions::{Acronyms, Conventions, Initialisms};
use super::language::{Language, LocaleData, Words};
use super::locale::Locale;
use super::names::{Gender, Names};
use super::number::Number;
use super::scan::Scan;

/// What readings are made with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Speech {
    pub(super) data: &'static LocaleData,
    pub(super) conventions: Conventions,
}

impl Speech {
    pub(super) fn new(locale: Locale, conventions: Conventions) -> Self {
        Self { data: LocaleData::of(locale), conventions }
    }

    pub(super) fn language(&self) -> &'static Language {
        self.data.language
    }

    pub(super) fn words(&self) -> &'static Words {
        &self.data.language.words
    }

    pub(super) fn names(&self) -> &'static Names {
        &self.data.names
    }

    fn say(&self, set: &str, n: u64) -> String {
        let mut out = String::new();
        self.data.rules.say(set, n, &mut out);
        let out = if out.contains(',') { out.replace(',', "") } else { out };
        self.language().spelling.map_or_else(|| out.clone(), |spelling| spelling(&out))
    }

    /// The words of a whole number that stands alone.
    pub(super) fn count(&self, n: u64) -> String {
        let language = self.language();
        let with_and = self.conventions.number_and;
        self.say(if with_and { language.counting_and } else { language.counting }, n)
    }

    /// The words of a whole number before a noun of a gender.
    pub(super) fn cardinal(&self, n: u64, gender: Gender) -> String {
        let set = self.language().cardinals[gender as usize];
        if set == self.language().counting { self.count(n) } else { self.say(set, n) }
    }

    /// The words of a whole number by a rule set.
    pub(super) fn by(&self, set: &str, n: u64) -> String {
        self.say(set, n)
    }

    /// The gender of the noun at a place, if there is one that numbers agree with.
    pub(super) fn noun(&self, place: Scan<'_>) -> Option<Gender> {
        let word: String = place.next_word().iter().collect();
        (self.language().noun)(&word)
    }

    /// The gender of words that start with their noun: `coronas suecas`.
    pub(super) fn gender(&self, words: &str) -> Gender {
        let first = words.split(' ').next().unwrap_or_default();
        (self.language().noun)(first).unwrap_or_default()
    }

    /// The words of an ordinal.
    pub(super) fn ordinal(&self, n: u64, gender: Gender) -> String {
        self.say(self.language().ordinals[gender as usize], n)
    }

    /// The words of a year.
    pub(super) fn year(&self, n: u64) -> String {
        self.say(self.language().year, n).replace("oh-", "oh ")
    }

    /// The words of a number with sign and fraction, before a noun of a gender.
    pub(super) fn number(&self, number: &Number, gender: Gender) -> String {
        // Before a noun it is no version: its point is a comma.
        let number = Number { pointed: false, ..number.clone() };
        self.number_with(&number, |n| self.cardinal(n, gender))
    }

    /// The words of a number with sign and fraction that stands alone.
    pub(super) fn number_alone(&self, number: &Number) -> String {
        self.number_with(number, |n| self.count(n))
    }

    fn number_with(&self, number: &Number, whole: impl Fn(u64) -> String) -> String {
        let mut out = String::new();
        let words = self.words();
        if number.negative {
            out.push_str(words.minus);
            out.push(' ');
        }
        match number.value() {
            Some(n) if number.fraction.is_empty() => out.push_str(&whole(n)),
            Some(_) if number.whole.is_empty() => {
                // "point five", but "null Komma fünf"
                if self.words().oh.is_empty() {
                    out.push_str(&self.count(0));
                }
            }
            Some(n) => out.push_str(&self.count(n)),
            None => out.push_str(&self.digits(&number.whole)),
        }
        if !number.fraction.is_empty() {
            let language = self.language();
            let comma = self.data.locale.marks().decimal == ',';
            let point = self.data.rules.point(language.cardinals[0], comma);
            let gap = if out.is_empty() || out.ends_with(' ') { "" } else { " " };
            out = match number.pointed {
                true => format!("{out}{gap}{} {}", words.dot, self.version_part(&number.fraction)),
                false => {
                    format!("{out}{gap}{point} {}", (language.decimals)(self, &number.fraction))
                }
            };
        }
        out
    }

    /// A part of a version: one or two digits are a number.
    fn version_part(&self, digits: &str) -> String {
        match digits.parse() {
            Ok(n) if digits.len() <= 2 && !digits.starts_with('0') => self.count(n),
            _ => self.digits(digits),
        }
    }

    /// The words of digits, one by one; what is no digit is passed over.
    pub(super) fn digits(&self, digits: &str) -> String {
        let digits = digits.chars().filter_map(|c| c.to_digit(10));
        let words: Vec<String> =
            digits.map(|d| self.say(self.language().counting, d.into())).collect();
        words.join(" ")
    }

    /// Letters to be spoken one by one.
    pub(super) fn spell(&self, letters: &str) -> String {
        let capital = |c: char| c.to_uppercase().collect::<String>();
        let one_by_one = |name: &dyn Fn(char) -> String| {
            letters.chars().map(name).collect::<Vec<String>>().join(" ")
        };
        match self.conventions.initialisms {
            Initialisms::Caps => letters.chars().map(capital).collect(),
            Initialisms::Spaced => one_by_one(&capital),
            Initialisms::Names => one_by_one(&|c| self.letter(c)),
        }
    }

    /// A name from the tables: its capitals are spelled as all others, `US dollars`.
    pub(super) fn named(&self, name: &str) -> String {
        let mut said = String::with_capacity(name.len());
        for piece in name.split_inclusive([' ', '-']) {
            let word = piece.trim_end_matches([' ', '-']);
            let letters = word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
            if letters {
                said.push_str(&self.spell(word));
                said.push_str(&piece[word.len()..]);
            } else {
                said.push_str(piece);
            }
        }
        said
    }

    /// What a letter is called.
    fn letter(&self, c: char) -> String {
        let plain = c.to_ascii_lowercase();
        if plain.is_ascii_lowercase() {
            self.language().letters[usize::from(plain as u8 - b'a')].to_owned()
        } else {
            c.to_uppercase().collect()
        }
    }

    /// Letters in capitals that are spoken as a word.
    pub(super) fn acronym(&self, word: &str) -> String {
        match self.conventions.acronyms {
            Acronyms::Caps => word.to_owned(),
            Acronyms::Capitalised => {
                let mut letters = word.chars();
                let first: String = letters.by_ref().take(1).collect();
                first + &letters.as_str().to_lowercase()
            }
        }
    }

    /// Digits of a name that somebody chose: pairs where people say them, else, if there are many, one by one.
    pub(super) fn name_digits(&self, digits: &str) -> String {
        let pairs = digits.len() <= 2 || !self.words().oh.is_empty();
        if pairs { self.pairs(digits) } else { self.digits(digits) }
    }

    /// Numbers of a name, in the pairs that people say them in: 747 as seven forty-seven, 4090 as forty ninety; as one
    /// number where the language has no word for the nought of 305.
    pub(super) fn pairs(&self, digits: &str) -> String {
        let n = digits.parse::<u64>().unwrap_or_default();
        match digits.len() {
            _ if digits.starts_with('0') => self.digits(digits),
            1 | 2 => self.count(n),
            3 | 4 if self.words().oh.is_empty() => self.count(n),
            3 | 4 if n % 1000 == 0 || (digits.len() == 3 && n.is_multiple_of(100)) => self.count(n),
            3 | 4 => {
                if n % 1000 < 10 {
                    return self.count(n);
                }
                let (high, low) = (self.count(n / 100), n % 100);
                match low {
                    0 => self.year(n),
                    1..=9 => format!("{high} {} {}", self.words().oh, self.count(low)),
                    _ => format!("{high} {}", self.count(low)),
                }
            }
            _ => self.digits(digits),
        }
    }
}
