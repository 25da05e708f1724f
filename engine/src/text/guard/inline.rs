//! Words with a pronunciation beside them, as one vendor's clients write them into their text:
//! `Take {"word": "dupilumab", "pronounce": "..."} twice.` The voice reads the word; sounds cannot be told to it.

use serde::Deserialize;

use super::{Look, Seen, Verdict};

/// What such a word that has a pronunciation is told as.
const PRONOUNCE: &str = "pronounce";

#[derive(Deserialize)]
struct Inline {
    word: String,
    pronounce: Option<serde::de::IgnoredAny>,
}

/// `{`: a word in an object, when it is one; else text.
pub(super) fn word(look: &Look<'_>) -> Verdict {
    let mut opened = false;
    for i in 1.. {
        match look.at(i) {
            Seen::Unknown if opened => return Verdict::Wait(&['}', '{']),
            Seen::Unknown => return Verdict::Wait(&[]),
            Seen::Char('}') => return read(look, i + 1),
            // No other text begins so.
            Seen::Char('"') => opened = true,
            Seen::Char(c) if opened && c != '{' => {}
            Seen::Char(c) if c.is_whitespace() => {}
            Seen::Char(_) | Seen::End => break,
        }
    }
    Verdict::Keep(1)
}

fn read(look: &Look<'_>, n: usize) -> Verdict {
    match serde_json::from_str::<Inline>(&look.text(0..n)) {
        Ok(Inline { word, pronounce: Some(_) }) => Verdict::AliasOf(n, word, PRONOUNCE.to_owned()),
        Ok(Inline { word, pronounce: None }) => Verdict::Alias(n, word),
        Err(_) => Verdict::Keep(1),
    }
}
