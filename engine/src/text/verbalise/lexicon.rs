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

/// Memory that one compiled pattern may take, in bytes.
const PATTERN_BYTES_MAX: usize = 64 * 1024;

/// How large one lexicon may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Entries.
    pub entries: usize,
    /// Patterns among them: each is compiled when a context is opened.
    pub patterns: usize,
    /// Longest word or pattern, in characters.
    pub written_chars: usize,
    /// Longest spoken form, in characters.
    pub spoken_chars: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 500, patterns: 50, written_chars: 100, spoken_chars: 200 }
    }
}

/// What is said for some words: one list or several, of which the first that has a word decides.
#[derive(Debug, Clone, Default)]
pub struct Lexicon(Vec<Arc<List>>);

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

/// Why a lexicon is not to be had. Limits are named as the settings have them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LexiconError {
    /// More entries than are allowed.
    #[error("{entries} entries, at most {most} (lexicon.max_entries)")]
    Entries {
        /// How many there are.
        entries: usize,
        /// How many may be.
        most: usize,
    },
    /// More patterns than are allowed.
    #[error("{patterns} patterns, at most {most} (lexicon.max_patterns)")]
    Patterns {
        /// How many there are.
        patterns: usize,
        /// How many may be.
        most: usize,
    },
    /// An entry that stands for nothing or begins with a blank.
    #[error("entry {index}: stands for nothing")]
    Empty {
        /// Which of the entries, from 0.
        index: usize,
    },
    /// An entry whose written form is too long.
    #[error("entry {index}: more than {most} characters written (lexicon.max_written_chars)")]
    Written {
        /// Which of the entries, from 0.
        index: usize,
        /// How many there may be.
        most: usize,
    },
    /// An entry whose spoken form is too long.
    #[error("entry {index}: more than {most} characters spoken (lexicon.max_spoken_chars)")]
    Spoken {
        /// Which of the entries, from 0.
        index: usize,
        /// How many there may be.
        most: usize,
    },
    /// A pattern that is none.
    #[error("entry {index}, {pattern:?}: no pattern: {reason}")]
    Pattern {
        /// Which of the entries, from 0.
        index: usize,
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

#[derive(Debug)]
struct List {
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
    pub fn new(entries: Vec<Entry>, limits: &Limits) -> Result<Self, LexiconError> {
        if entries.is_empty() {
            return Ok(Self::default());
        }
        if entries.len() > limits.entries {
            return Err(LexiconError::Entries { entries: entries.len(), most: limits.entries });
        }
        let patterns = entries.iter().filter(|e| matches!(e.written, Written::Pattern(_))).count();
        if patterns > limits.patterns {
            return Err(LexiconError::Patterns { patterns, most: limits.patterns });
        }
        let mut list = List { entries: Vec::new(), words: BTreeMap::new(), patterns: Vec::new() };
        for (index, entry) in entries.iter().enumerate() {
            check(index, entry, limits)?;
            list.add(index, entry)?;
        }
        for words in list.words.values_mut() {
            words.sort_by_key(|(written, _)| std::cmp::Reverse(written.chars().count()));
        }
        list.entries = entries;
        Ok(Self(vec![Arc::new(list)]))
    }

    /// These lists first, then those `below`.
    #[must_use]
    pub fn over(mut self, below: &Self) -> Self {
        self.0.extend(below.0.iter().cloned());
        self
    }

    /// Whether it stands for nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is said for the text at the start of a token, if an entry stands for it.
    pub(super) fn read<'a>(&self, scan: Scan<'a>) -> Option<Reading<'a>> {
        if self.0.is_empty() || scan.before().is_some_and(char::is_alphanumeric) {
            return None;
        }
        self.0.iter().find_map(|list| list.word(scan).or_else(|| list.pattern(scan)))
    }
}

impl PartialEq for Lexicon {
    fn eq(&self, other: &Self) -> bool {
        let entries = |lexicon: &Self| -> Vec<Vec<Entry>> {
            lexicon.0.iter().map(|list| list.entries.clone()).collect()
        };
        entries(self) == entries(other)
    }
}

impl Eq for Lexicon {}

fn check(index: usize, entry: &Entry, limits: &Limits) -> Result<(), LexiconError> {
    let (Written::Word(text) | Written::Pattern(text)) = &entry.written;
    if text.is_empty() || text.starts_with(is_gap) {
        return Err(LexiconError::Empty { index });
    }
    if text.chars().count() > limits.written_chars {
        return Err(LexiconError::Written { index, most: limits.written_chars });
    }
    if entry.spoken.chars().count() > limits.spoken_chars {
        return Err(LexiconError::Spoken { index, most: limits.spoken_chars });
    }
    Ok(())
}

impl List {
    fn add(&mut self, index: usize, entry: &Entry) -> Result<(), LexiconError> {
        match &entry.written {
            Written::Word(word) => {
                let first = word.chars().next().unwrap_or_default();
                let words = self.words.entry(lower(first)).or_default();
                words.push((word.clone(), entry.spoken.clone()));
            }
            Written::Pattern(pattern) => {
                let regex = RegexBuilder::new(&format!(r"\A(?:{pattern})"))
                    .size_limit(PATTERN_BYTES_MAX)
                    .build()
                    .map_err(|e| LexiconError::Pattern {
                        index,
                        pattern: pattern.clone(),
                        // What stands before it draws the pattern.
                        reason: e.to_string().lines().next_back().unwrap_or_default().to_owned(),
                    })?;
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
        let lexicon = Lexicon::new(entries, &Limits::default()).unwrap();
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
            ("INC-4711 is open.", "incident four is open."),
            ("Well, um, no.", "Well, , no."),
        ] {
            assert_eq!(say(&entries, text), spoken, "{text}");
        }
    }

    #[test]
    fn what_is_not_to_be_had_is_told() {
        let limits = Limits { entries: 5, patterns: 2, written_chars: 8, spoken_chars: 4 };
        let many = |n: usize, written: &str| vec![entry(written, ""); n];
        for (entries, says) in [
            (many(6, "a"), "6 entries, at most 5 (lexicon.max_entries)"),
            (many(3, "/a/"), "3 patterns, at most 2 (lexicon.max_patterns)"),
            (vec![entry("a", ""), entry("", "x")], "entry 1: stands for nothing"),
            (vec![entry("nine char", "")], "more than 8 characters written"),
            (vec![entry("a", "xxxxx")], "more than 4 characters spoken (lexicon.max_spoken_chars)"),
            (vec![entry("a", ""), entry("/[/", "")], "entry 1, \"[\": no pattern: error: unclosed"),
        ] {
            let error = Lexicon::new(entries, &limits).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let large = vec![entry("/(a{99}){99}{99}/", "")];
        let error = Lexicon::new(large, &Limits::default()).unwrap_err().to_string();
        assert!(error.contains("exceeds size limit"), "{error}");
        for fits in [many(5, "a"), many(2, "/a/"), vec![entry("eight ch", "four")]] {
            assert!(Lexicon::new(fits, &limits).is_ok());
        }
    }

    #[test]
    fn the_first_list_that_has_a_word_decides() {
        let list = |entries: &[(&str, &str)]| {
            let entries = entries.iter().map(|(written, spoken)| entry(written, spoken)).collect();
            Lexicon::new(entries, &Limits::default()).unwrap()
        };
        let session = list(&[("nginx", "engine x")]);
        let key = list(&[("nginx", "n jinx"), ("SQL", "sequel")]);
        let voice = list(&[("sql", "squeal"), ("gif", "jif")]);
        let lexicon = session.over(&key.over(&voice));
        let options = TextOptions { lexicon, ..TextOptions::default() };
        let said = sanitize("nginx, SQL, sql, gif, GB.", &options);
        assert_eq!(said, "engine x, sequel, squeal, jif, GB.");
    }
}
