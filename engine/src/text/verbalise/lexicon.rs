//! Words that somebody wants to be said in their own way. They win over every rule.
//!
//! ```text
//! nginx        -> engine x         in small letters: in any case
//! SQL          -> sequel           with a capital letter: only as it is written
//! /v(\d)\w*/   -> version $1       a pattern, for a piece without blanks
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::classes::Reading;
use super::scan::{Scan, is_gap, lower};

/// Most entries of one lexicon.
pub const ENTRIES_MAX: usize = 500;
/// Most patterns among them: each is compiled when a context is opened.
pub const PATTERNS_MAX: usize = 50;
/// Longest word or pattern, in characters.
pub const WRITTEN_CHARS_MAX: usize = 100;
/// Longest spoken form, in characters.
pub const SPOKEN_CHARS_MAX: usize = 200;
/// Memory that one compiled pattern may take, in bytes.
const PATTERN_BYTES_MAX: usize = 64 * 1024;

/// What is said for some words.
#[derive(Debug, Clone, Default)]
pub struct Lexicon(Option<Arc<Inner>>);

/// One word or pattern and what is said for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What stands in the text.
    pub written: Written,
    /// What is said; `$1` is the first group of a pattern. Nothing: it is silent.
    pub spoken: String,
}

/// What an entry stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// This word, or these words.
    Word(String),
    /// Whatever this regular expression matches at the start of a piece without blanks.
    Pattern(String),
}

/// Why a lexicon is not to be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LexiconError {
    /// More entries than are allowed.
    #[error("{entries} entries, at most {ENTRIES_MAX}")]
    Entries {
        /// How many there are.
        entries: usize,
    },
    /// More patterns than are allowed.
    #[error("{patterns} patterns, at most {PATTERNS_MAX}")]
    Patterns {
        /// How many there are.
        patterns: usize,
    },
    /// An entry that stands for nothing, or whose forms are too long.
    #[error(
        "entry {index}: 1 to {WRITTEN_CHARS_MAX} characters written and at most {SPOKEN_CHARS_MAX} spoken"
    )]
    Length {
        /// Which of the entries, from 0.
        index: usize,
    },
    /// A pattern that is none.
    #[error("entry {index}: no pattern: {reason}")]
    Pattern {
        /// Which of the entries, from 0.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
}

#[derive(Debug)]
struct Inner {
    entries: Vec<Entry>,
    /// By the first character in lower case; the longest first.
    words: BTreeMap<char, Vec<(String, String)>>,
    patterns: Vec<(Regex, String)>,
}

impl Lexicon {
    /// Compiles a lexicon; the first of two entries for the same holds.
    ///
    /// # Errors
    /// Too many entries, one that is too long, a pattern that is none.
    pub fn new(entries: Vec<Entry>) -> Result<Self, LexiconError> {
        if entries.is_empty() {
            return Ok(Self(None));
        }
        if entries.len() > ENTRIES_MAX {
            return Err(LexiconError::Entries { entries: entries.len() });
        }
        let patterns = entries.iter().filter(|e| matches!(e.written, Written::Pattern(_))).count();
        if patterns > PATTERNS_MAX {
            return Err(LexiconError::Patterns { patterns });
        }
        let mut inner = Inner { entries: Vec::new(), words: BTreeMap::new(), patterns: Vec::new() };
        for (index, entry) in entries.iter().enumerate() {
            inner.add(index, entry)?;
        }
        for words in inner.words.values_mut() {
            words.sort_by_key(|(written, _)| std::cmp::Reverse(written.chars().count()));
        }
        inner.entries = entries;
        Ok(Self(Some(Arc::new(inner))))
    }

    /// What is said for the text at the start of a token, if an entry stands for it.
    pub(super) fn read<'a>(&self, scan: Scan<'a>) -> Option<Reading<'a>> {
        let inner = self.0.as_ref()?;
        if scan.before().is_some_and(char::is_alphanumeric) {
            return None;
        }
        inner.word(scan).or_else(|| inner.pattern(scan))
    }
}

impl PartialEq for Lexicon {
    fn eq(&self, other: &Self) -> bool {
        let entries = |lexicon: &Self| lexicon.0.as_ref().map(|inner| inner.entries.clone());
        entries(self) == entries(other)
    }
}

impl Eq for Lexicon {}

impl Inner {
    fn add(&mut self, index: usize, entry: &Entry) -> Result<(), LexiconError> {
        let (Written::Word(text) | Written::Pattern(text)) = &entry.written;
        let fits = (1..=WRITTEN_CHARS_MAX).contains(&text.chars().count())
            && entry.spoken.chars().count() <= SPOKEN_CHARS_MAX
            && !text.starts_with(is_gap);
        let Some(first) = text.chars().next().filter(|_| fits) else {
            return Err(LexiconError::Length { index });
        };
        match &entry.written {
            Written::Word(word) => {
                let words = self.words.entry(lower(first)).or_default();
                words.push((word.clone(), entry.spoken.clone()));
            }
            Written::Pattern(pattern) => {
                let regex = RegexBuilder::new(&format!(r"\A(?:{pattern})"))
                    .size_limit(PATTERN_BYTES_MAX)
                    .build()
                    .map_err(|e| LexiconError::Pattern { index, reason: e.to_string() })?;
                self.patterns.push((regex, entry.spoken.clone()));
            }
        }
        Ok(())
    }

    fn word<'a>(&self, scan: Scan<'a>) -> Option<Reading<'a>> {
        for (written, spoken) in self.words.get(&lower(scan.peek()?))? {
            let mut end = scan;
            let any_case = !written.chars().any(char::is_uppercase);
            let whole = !written.ends_with(char::is_alphanumeric);
            if end.eat_str(written, any_case) && (whole || end.at_word_end()) {
                return Some((end, spoken.clone()));
            }
        }
        None
    }

    fn pattern<'a>(&self, scan: Scan<'a>) -> Option<Reading<'a>> {
        if self.patterns.is_empty() {
            return None;
        }
        let mut run = scan;
        let run: String = run.eat_while(usize::MAX, |c| !c.is_whitespace()).iter().collect();
        for (pattern, spoken) in &self.patterns {
            let Some(found) = pattern.captures(&run).filter(|found| !found[0].is_empty()) else {
                continue;
            };
            let end = scan.skip(found[0].chars().count());
            let inside = found[0].ends_with(char::is_alphanumeric) && !end.at_word_end();
            if !inside {
                let mut said = String::new();
                found.expand(spoken, &mut said);
                return Some((end, said));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{TextOptions, sanitize};

    fn entry(written: &str, spoken: &str) -> Entry {
        let pattern = written.strip_prefix('/').and_then(|w| w.strip_suffix('/'));
        let written = match pattern {
            Some(pattern) => Written::Pattern(pattern.to_owned()),
            None => Written::Word(written.to_owned()),
        };
        Entry { written, spoken: spoken.to_owned() }
    }

    fn say(entries: &[(&str, &str)], text: &str) -> String {
        let entries = entries.iter().map(|(written, spoken)| entry(written, spoken)).collect();
        let lexicon = Lexicon::new(entries).unwrap();
        sanitize(text, &TextOptions { lexicon, ..TextOptions::default() })
    }

    #[test]
    fn entries_win_over_the_rules() {
        let entries = [
            ("nginx", "engine x"),
            ("SQL", "sequel"),
            ("new york", "the city"),
            ("$5", "a fiver"),
            (r"/INC-(\d)\d*/", "incident $1"),
            ("um", ""),
        ];
        for (text, spoken) in [
            ("Nginx and NGINX.", "engine x and engine x."),
            ("SQL, sql.", "sequel, sql."),
            ("nginxy.", "nginxy."),
            ("In New York, now.", "In the city, now."),
            ("$5 or $6.", "a fiver or six dollars."),
            ("INC-4711 is open.", "incident 4 is open."),
            ("Well, um, no.", "Well, , no."),
        ] {
            assert_eq!(say(&entries, text), spoken, "{text}");
        }
    }

    #[test]
    fn what_is_not_to_be_had_is_told() {
        let many = |n: usize, written: &str| vec![entry(written, ""); n];
        for (entries, says) in [
            (many(ENTRIES_MAX + 1, "a"), "501 entries, at most 500"),
            (many(PATTERNS_MAX + 1, "/a/"), "51 patterns, at most 50"),
            (vec![entry("", "x")], "entry 0: 1 to 100 characters written"),
            (vec![entry("a", &"x".repeat(201))], "at most 200 spoken"),
            (vec![entry("a", ""), entry("/[/", "")], "entry 1: no pattern"),
            (vec![entry("/(a{99}){99}{99}/", "")], "exceeds size limit"),
        ] {
            let error = Lexicon::new(entries).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(Lexicon::new(many(ENTRIES_MAX, "a")).is_ok());
        assert!(Lexicon::new(many(PATTERNS_MAX, "/a/")).is_ok());
    }
}
