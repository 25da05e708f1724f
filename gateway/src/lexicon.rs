//! Words with a form of their own: read from files and from what clients send, and which list goes before which.
//!
//! ```text
//! session, context > dictionaries that it names > key > voice > rules of the language
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::text::Lexicon;
use engine::text::lexicon::{Entry, Limits, Written};

use crate::config;
use crate::protocol::event::{ListedForm, ListedForms};

/// A file of words that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", file.display())]
pub struct LexiconFileError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// The lists that texts of a server are read with, beside those that come with a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lexicons {
    /// How large one list may be.
    pub limits: Limits,
    voices: BTreeMap<String, Lexicon>,
    dictionaries: BTreeMap<String, Lexicon>,
    /// That of the key whose texts these are.
    key: Lexicon,
}

impl Lexicons {
    /// Reads the files that the settings name.
    ///
    /// # Errors
    /// The first file that is not to be used, and the entry in it.
    pub fn open(settings: &config::Lexicon) -> Result<Self, LexiconFileError> {
        let limits = settings.limits();
        let all = |files: &BTreeMap<String, PathBuf>| {
            let one = |(name, file): (&String, &PathBuf)| Ok((name.clone(), read(file, &limits)?));
            files.iter().map(one).collect::<Result<_, _>>()
        };
        let (voices, dictionaries) = (all(&settings.voices)?, all(&settings.dictionaries)?);
        Ok(Self { limits, voices, dictionaries, key: Lexicon::default() })
    }

    /// The same for who holds a key with words of its own.
    #[must_use]
    pub fn with_key(&self, key: &Lexicon) -> Self {
        Self { key: key.clone(), ..self.clone() }
    }

    /// What holds for a voice where a text brings nothing of its own.
    pub fn of_voice(&self, voice: &str) -> Lexicon {
        let key = self.key.clone();
        self.voices.get(voice).map_or_else(|| key.clone(), |voice| key.clone().over(voice))
    }

    /// The lists of these names, the first before the others.
    ///
    /// # Errors
    /// A sentence that names the one that is not there, and those that are.
    pub(crate) fn named(&self, names: &[String]) -> Result<Lexicon, String> {
        let mut all = Lexicon::default();
        for (at, name) in names.iter().enumerate() {
            let Some(found) = self.dictionaries.get(name) else {
                let known: Vec<&str> = self.dictionaries.keys().map(String::as_str).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(format!("{name:?} is not there; lexicon.dictionaries has {known}"));
            };
            if !names[..at].contains(name) {
                all = all.over(found);
            }
        }
        Ok(all)
    }
}

/// Reads a file of words: JSON, as clients send it.
///
/// # Errors
/// The file cannot be read, or has an entry that is not to be had.
pub fn read(file: &Path, limits: &Limits) -> Result<Lexicon, LexiconFileError> {
    let wrong = |reason: String| LexiconFileError { file: file.to_path_buf(), reason };
    let text = std::fs::read_to_string(file).map_err(|e| wrong(format!("cannot read: {e}")))?;
    let forms = serde_json::from_str::<ListedForms>(&text).map_err(|e| {
        wrong(format!(
            "neither {{\"word\": \"spoken\"}} nor a list of {{word, spoken}} and {{pattern, spoken}}: {e}"
        ))
    })?;
    compile(&forms, limits).map_err(wrong)
}

/// What a client or a file lists, ready to be used.
///
/// # Errors
/// A sentence that names the entry or the limit.
pub(crate) fn compile(forms: &ListedForms, limits: &Limits) -> Result<Lexicon, String> {
    let word = |(word, spoken): (&String, &String)| Entry {
        written: Written::Word(word.clone()),
        spoken: spoken.clone(),
    };
    let entry = |(at, entry): (usize, &ListedForm)| {
        let written = match (&entry.word, &entry.pattern) {
            (Some(word), None) => Written::Word(word.clone()),
            (None, Some(pattern)) => Written::Pattern(pattern.clone()),
            _ => return Err(format!("entry {at}: either `word` or `pattern`")),
        };
        Ok(Entry { written, spoken: entry.spoken.clone() })
    };
    let entries = match forms {
        ListedForms::Words(words) => words.iter().map(word).collect(),
        ListedForms::Entries(entries) => {
            entries.iter().enumerate().map(entry).collect::<Result<_, _>>()?
        }
    };
    Lexicon::new(entries, limits).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use engine::text::{TextOptions, sanitize};

    use super::*;

    fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    fn said(lexicon: Lexicon, text: &str) -> String {
        sanitize(text, &TextOptions { lexicon, ..TextOptions::default() })
    }

    #[test]
    fn a_key_goes_before_a_voice_and_what_is_named_before_both() {
        let folder = tempfile::tempdir().unwrap();
        let settings = config::Lexicon {
            voices: [(
                "ann".to_owned(),
                file(&folder, "ann.json", r#"{"a1": "ann", "b1": "ann", "c1": "ann"}"#),
            )]
            .into(),
            dictionaries: [
                ("x".to_owned(), file(&folder, "x.json", r#"[{"word": "a1", "spoken": "x"}]"#)),
                (
                    "y".to_owned(),
                    file(&folder, "y.json", r#"[{"pattern": "a\\d", "spoken": "y"}]"#),
                ),
            ]
            .into(),
            ..config::Lexicon::default()
        };
        let lexicons = Lexicons::open(&settings).unwrap();
        let key =
            read(&file(&folder, "key.json", r#"{"a1": "key", "b1": "key"}"#), &lexicons.limits);
        let lexicons = lexicons.with_key(&key.unwrap());
        let text = "a1 b1 c1.";
        assert_eq!(said(lexicons.of_voice("ann"), text), "key key ann.");
        let named = |names: &[&str]| {
            lexicons.named(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
        };
        let all = |names: &[&str]| named(names).unwrap().over(&lexicons.of_voice("ann"));
        assert_eq!(said(all(&["x", "y", "x"]), text), "x key ann.");
        assert_eq!(said(all(&["y", "x"]), text), "y key ann.");
        assert_eq!(named(&["z"]).unwrap_err(), "\"z\" is not there; lexicon.dictionaries has x, y");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_its_entry() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { entries: 1, ..Limits::default() };
        for (text, says) in [
            ("nginx = 1", "neither"),
            (r#"[{"pattern": "(", "spoken": ""}]"#, "entry 0, \"(\": no pattern"),
            (r#"[{"spoken": ""}]"#, "entry 0: either"),
            (r#"{"a": "b", "c": "d"}"#, "2 entries, at most 1 (lexicon.max_entries)"),
        ] {
            let error = read(&file(&folder, "words.json", text), &limits).unwrap_err().to_string();
            assert!(error.contains("words.json") && error.contains(says), "{error}");
        }
        let error = read(&folder.path().join("gone"), &limits).unwrap_err().to_string();
        assert!(error.contains("gone: cannot read"), "{error}");
    }
}
