//! Languages as they are written in a region: where commas and points stand, and whether the day or the month comes
//! first. It must never know a word.

use std::fmt;
use std::str::FromStr;

use crate::text::ids::Language;

/// A language and the region whose way of writing is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locale(&'static Entry);

/// A tag that no table has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown locale `{tag}`; known: {}", Locale::tags())]
pub struct LocaleError {
    tag: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    tag: &'static str,
    language: Language,
    marks: Marks,
    month_first: bool,
}

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marks {
    /// Before the fraction.
    pub(super) decimal: char,
    /// Between groups of three digits; a blank may stand there as well.
    pub(super) group: char,
}

const POINT: Marks = Marks { decimal: '.', group: ',' };
const COMMA: Marks = Marks { decimal: ',', group: '.' };
/// Switzerland: 1’234.50
const SWISS: Marks = Marks { decimal: '.', group: '’' };

/// The first of each language is the one that its name alone stands for. Source: CLDR, `numbers.json` and
/// `ca-gregorian.json`.
const ENTRIES: [Entry; 30] = [
    entry("en-US", Language::English, POINT, true),
    entry("en-GB", Language::English, POINT, false),
    entry("en-AU", Language::English, POINT, false),
    entry("en-CA", Language::English, POINT, true),
    entry("en-IE", Language::English, POINT, false),
    entry("en-IN", Language::English, POINT, false),
    entry("en-NZ", Language::English, POINT, false),
    entry("en-ZA", Language::English, POINT, false),
    entry("de-DE", Language::German, COMMA, false),
    entry("de-AT", Language::German, COMMA, false),
    entry("de-CH", Language::German, SWISS, false),
    entry("es-ES", Language::Spanish, COMMA, false),
    entry("es-MX", Language::Spanish, POINT, false),
    entry("es-US", Language::Spanish, POINT, false),
    entry("es-419", Language::Spanish, POINT, false),
    entry("es-AR", Language::Spanish, COMMA, false),
    entry("es-CL", Language::Spanish, COMMA, false),
    entry("es-CO", Language::Spanish, COMMA, false),
    entry("es-PE", Language::Spanish, POINT, false),
    entry("fr-FR", Language::French, COMMA, false),
    entry("fr-BE", Language::French, COMMA, false),
    entry("fr-CA", Language::French, COMMA, false),
    entry("fr-CH", Language::French, SWISS, false),
    entry("it-IT", Language::Italian, COMMA, false),
    entry("it-CH", Language::Italian, SWISS, false),
    entry("nl-NL", Language::Dutch, COMMA, false),
    entry("nl-BE", Language::Dutch, COMMA, false),
    entry("pt-BR", Language::Portuguese, COMMA, false),
    entry("pt-PT", Language::Portuguese, COMMA, false),
    entry("pt-AO", Language::Portuguese, COMMA, false),
];

const fn entry(tag: &'static str, language: Language, marks: Marks, month_first: bool) -> Entry {
    Entry { tag, language, marks, month_first }
}

impl Locale {
    /// How a language is written where nothing is said of a region.
    pub fn of(language: Language) -> Self {
        let entry = ENTRIES.iter().find(|e| e.language == language);
        Self(entry.expect("every language has a locale; this is a bug"))
    }

    /// Its language.
    pub fn language(self) -> Language {
        self.0.language
    }

    /// Its BCP 47 tag, `en-GB`.
    pub fn tag(self) -> &'static str {
        self.0.tag
    }

    /// Which of the locales it is, from 0.
    pub(super) fn index(self) -> usize {
        ENTRIES.iter().position(|e| e.tag == self.0.tag).unwrap_or_default()
    }

    pub(super) const COUNT: usize = ENTRIES.len();

    pub(super) fn marks(self) -> Marks {
        self.0.marks
    }

    /// Whether 11/29 is a day of November.
    pub(super) fn month_first(self) -> bool {
        self.0.month_first
    }

    fn tags() -> String {
        ENTRIES.each_ref().map(|e| e.tag).join(", ")
    }
}

impl Default for Locale {
    fn default() -> Self {
        Self::of(Language::English)
    }
}

impl fmt::Display for Locale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tag())
    }
}

impl FromStr for Locale {
    type Err = LocaleError;

    /// A tag in any case, with `-` or `_`, or a language alone.
    fn from_str(text: &str) -> Result<Self, LocaleError> {
        let tag = text.replace('_', "-");
        let entry = ENTRIES.iter().find(|e| e.tag.eq_ignore_ascii_case(&tag));
        let language = || text.parse().ok().filter(|_| !tag.contains('-')).map(Self::of);
        entry.map(Self).or_else(language).ok_or_else(|| LocaleError { tag: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_or_a_language_names_a_locale() {
        for (text, tag) in
            [("en-GB", "en-GB"), ("DE_at", "de-AT"), ("pt", "pt-BR"), ("French", "fr-FR")]
        {
            assert_eq!(text.parse::<Locale>().unwrap().tag(), tag);
        }
        for unknown in ["", "en-XX", "zz", "en-GB-x"] {
            let error = unknown.parse::<Locale>().unwrap_err().to_string();
            assert!(error.contains("known: en-US, en-GB"), "{error}");
        }
    }

    #[test]
    fn every_locale_finds_itself() {
        for (index, entry) in ENTRIES.iter().enumerate() {
            assert_eq!(Locale(entry).index(), index);
        }
    }
}
