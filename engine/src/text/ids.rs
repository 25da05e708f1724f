//! Characters to token ids, and the control block that tells a stage language and style.
//!
//! Every character is encoded alone and only its first id is kept, so a text has as many ids as characters and no text
//! can produce a structural token. Knows nothing of files: the caller reads `tokenizer.json`.
//!
//! ```text
//! <|im_start|> english : agentic <|im_end|> LF   H e l l o .
//! ```

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use tokenizers::Tokenizer;

/// Why text has no ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// `tokenizer.json` is not a tokenizer.
    #[error("not a tokenizer: {0}")]
    NotATokenizer(String),
    /// The tokenizer lacks a token that the grammar needs.
    #[error("the tokenizer has no token `{0}`")]
    MissingToken(&'static str),
    /// The tokenizer gives nothing for a character or label.
    #[error("the tokenizer gives no id for `{0}`")]
    NoId(String),
    /// No language of the model.
    #[error("unknown language `{0}`: one of {all}, or their ISO codes", all = Language::NAMES.join(", "))]
    UnknownLanguage(String),
    /// No style of the model.
    #[error("unknown style `{0}`: one of {all}", all = Style::NAMES.join(", "))]
    UnknownStyle(String),
}

/// A language of the control block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Language {
    English,
    German,
    Spanish,
    French,
    Italian,
    Dutch,
    Portuguese,
}

impl Language {
    const ALL: [Self; 7] = [
        Self::English,
        Self::German,
        Self::Spanish,
        Self::French,
        Self::Italian,
        Self::Dutch,
        Self::Portuguese,
    ];
    const NAMES: [&'static str; 7] =
        ["english", "german", "spanish", "french", "italian", "dutch", "portuguese"];
    const CODES: [&'static str; 7] = ["en", "de", "es", "fr", "it", "nl", "pt"];

    /// Its name in the control block.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Its ISO 639-1 code.
    pub fn code(self) -> &'static str {
        Self::CODES[self as usize]
    }
}

impl FromStr for Language {
    type Err = IdError;

    /// A name or ISO code in any case; a region (`en-GB`) is allowed and not looked at.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let lower = text.to_ascii_lowercase();
        let code = lower.split(['-', '_']).next().unwrap_or_default();
        Self::ALL
            .into_iter()
            .find(|l| l.name() == lower || l.code() == code)
            .ok_or_else(|| IdError::UnknownLanguage(text.to_owned()))
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A manner of speaking of the control block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Style {
    Audiobook,
    Conversational,
    Agentic,
}

impl Style {
    const ALL: [Self; 3] = [Self::Audiobook, Self::Conversational, Self::Agentic];
    const NAMES: [&'static str; 3] = ["audiobook", "conversational", "agentic"];

    /// Its name in the control block.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl FromStr for Style {
    type Err = IdError;

    /// A name in any case.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let lower = text.to_ascii_lowercase();
        Self::ALL
            .into_iter()
            .find(|s| s.name() == lower)
            .ok_or_else(|| IdError::UnknownStyle(text.to_owned()))
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Characters that are looked up without hashing: ASCII and the Latin letters of the release's languages.
const TABLE_CHARS: u32 = 0x180;

/// One stage's character table.
pub struct CharacterIds {
    tokenizer: Arc<Tokenizer>,
    table: Vec<Option<u32>>,
    start: u32,
    end: u32,
}

impl CharacterIds {
    /// Builds the table from the bytes of `tokenizer.json`.
    ///
    /// # Errors
    /// [`IdError::NotATokenizer`], or as [`CharacterIds::of`].
    pub fn new(json: &[u8]) -> Result<Self, IdError> {
        let tokenizer =
            Tokenizer::from_bytes(json).map_err(|e| IdError::NotATokenizer(e.to_string()))?;
        Self::of(Arc::new(tokenizer))
    }

    /// Builds the table of a tokenizer, which stages may share.
    ///
    /// # Errors
    /// [`IdError::MissingToken`] for a delimiter of the control block.
    pub fn of(tokenizer: Arc<Tokenizer>) -> Result<Self, IdError> {
        let delimiter = |token| tokenizer.token_to_id(token).ok_or(IdError::MissingToken(token));
        let (start, end) = (delimiter("<|im_start|>")?, delimiter("<|im_end|>")?);
        let entry = |c| char::from_u32(c).and_then(|c| first_id(&tokenizer, c).ok());
        let table = (0..TABLE_CHARS).map(entry).collect();
        Ok(Self { tokenizer, table, start, end })
    }

    /// One id for each character of `text`, appended to `out`.
    ///
    /// # Errors
    /// [`IdError::NoId`] when the tokenizer gives nothing for a character; `out` then holds the ids before it.
    pub fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<(), IdError> {
        for c in text.chars() {
            out.push(self.id(c)?);
        }
        Ok(())
    }

    /// The control block, appended to `out`: delimiters by id, the label as ordinary text, a line feed.
    ///
    /// # Errors
    /// [`IdError::NoId`] when the tokenizer gives nothing for the label or the line feed.
    pub fn control(
        &self,
        language: Language,
        style: Style,
        out: &mut Vec<u32>,
    ) -> Result<(), IdError> {
        let label = format!("{language} : {style}");
        let ids = encode(&self.tokenizer, &label)?;
        out.push(self.start);
        out.extend(ids);
        out.push(self.end);
        out.push(self.id('\n')?);
        Ok(())
    }

    /// The id of a character.
    ///
    /// # Errors
    /// [`IdError::NoId`] when the tokenizer gives nothing for it.
    pub fn id(&self, c: char) -> Result<u32, IdError> {
        match self.table.get(c as usize) {
            Some(Some(id)) => Ok(*id),
            _ => first_id(&self.tokenizer, c),
        }
    }
}

fn first_id(tokenizer: &Tokenizer, c: char) -> Result<u32, IdError> {
    Ok(encode(tokenizer, c.encode_utf8(&mut [0; 4]))?[0])
}

/// The ids of a text by the tokenizer's own rules; at least one.
fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>, IdError> {
    let encoding = tokenizer.encode_fast(text, false);
    let ids = encoding.map_err(|_| IdError::NoId(text.to_owned()))?.get_ids().to_vec();
    if ids.is_empty() { Err(IdError::NoId(text.to_owned())) } else { Ok(ids) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn project(path: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
    }

    fn nano() -> CharacterIds {
        let json = std::fs::read(project("voices/nano/cb0/tokenizer.json")).unwrap();
        CharacterIds::new(&json).unwrap()
    }

    #[test]
    fn golden_prompts_are_reproduced() {
        let golden =
            codecs::weights::Weights::open(&project("tests/fixtures/nano/golden.safetensors"))
                .unwrap();
        let about: serde_json::Value =
            codecs::weights::read_json(&project("tests/fixtures/nano/golden.json")).unwrap();
        let language = about["language"].as_str().unwrap().parse().unwrap();
        let style = about["style"].as_str().unwrap().parse().unwrap();
        for (k, text) in about["texts"].as_array().unwrap().iter().enumerate() {
            let mut ids = Vec::new();
            nano().control(language, style, &mut ids).unwrap();
            nano().encode(&format!("{}\n", text.as_str().unwrap()), &mut ids).unwrap();
            let ids: Vec<i64> = ids.into_iter().map(i64::from).collect();
            let expected = golden.ints(&format!("t{k}.ids0")).unwrap();
            assert_eq!(ids, expected[..ids.len()], "{text}");
            // Only PAD stands between the text and the codes.
            assert_eq!(expected.len(), ids.len() + 1, "{text}");
        }
    }

    #[test]
    fn text_never_makes_structural_ids() {
        let text = "a <|im_end|> ü 好 🎉 <|text_split|>\n";
        let mut ids = Vec::new();
        nano().encode(text, &mut ids).unwrap();
        assert_eq!(ids.len(), text.chars().count());
        assert!(ids.iter().all(|&id| id < 256), "{ids:?}");
    }

    #[test]
    fn languages_and_styles_are_parsed_or_refused_with_the_choice() {
        assert_eq!("English".parse(), Ok(Language::English));
        assert_eq!("de".parse(), Ok(Language::German));
        assert_eq!("pt-BR".parse(), Ok(Language::Portuguese));
        assert_eq!("AGENTIC".parse(), Ok(Style::Agentic));
        let language = "klingon".parse::<Language>().unwrap_err().to_string();
        assert!(language.contains("klingon") && language.contains("portuguese"), "{language}");
        let style = "".parse::<Style>().unwrap_err().to_string();
        assert!(style.contains("audiobook"), "{style}");
    }

    #[test]
    fn a_broken_tokenizer_is_an_error() {
        assert!(matches!(CharacterIds::new(b"{}"), Err(IdError::NotATokenizer(_))));
    }
}
