//! Text as a speech language model reads and writes it: the ids of its tokenizer, moved to where the vocabulary has text.

use std::ops::Range;
use std::path::Path;

use codecs::weights::LoadError;
use tokenizers::Tokenizer;

use crate::bundle::control::Controls;
use crate::bundle::read_bytes;

/// A text that cannot be put into ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tokenizer refuses the text: {0}")]
pub struct TextError(String);

/// A tokenizer and the ids that its own become.
#[derive(Debug, Clone)]
pub struct TextIds {
    tokenizer: Tokenizer,
    controls: Controls,
    ids: Range<u32>,
}

impl TextIds {
    /// Reads a `tokenizer.json` whose ids become `ids`. Control words of the tokenizer that stand in a text are read as text:
    /// nobody who is spoken with may give commands by them.
    ///
    /// # Errors
    /// A file that is missing or malformed, or one with more ids than there are.
    pub fn read(file: &Path, ids: Range<u32>) -> Result<Self, LoadError> {
        let parsed = Tokenizer::from_bytes(read_bytes(file)?);
        let tokenizer = parsed.map_err(|e| LoadError::malformed(file, e.to_string()))?;
        let known = tokenizer.get_vocab_size(true);
        if known > ids.len() {
            let reason = format!("{known} ids, the model has {} for text", ids.len());
            return Err(LoadError::field(file, "model.vocab", reason));
        }
        Ok(Self { controls: Controls::of(&tokenizer), tokenizer, ids })
    }

    /// The tokenizer itself, whose ids begin at 0.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The model's ids of text.
    pub fn range(&self) -> &Range<u32> {
        &self.ids
    }

    /// The model's ids of a text.
    ///
    /// # Errors
    /// What the tokenizer says.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TextError> {
        let mut ids = Vec::new();
        for run in self.controls.cut(text) {
            let encoded = self.tokenizer.encode_fast(run, false);
            let encoded = encoded.map_err(|e| TextError(e.to_string()))?;
            ids.extend(encoded.get_ids().iter().map(|id| id + self.ids.start));
        }
        Ok(ids)
    }

    /// The text of ids; those that are none of text are passed over, and bytes that are no whole character become U+FFFD.
    ///
    /// # Errors
    /// What the tokenizer says.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TextError> {
        let own = ids.iter().filter(|id| self.ids.contains(id)).map(|id| id - self.ids.start);
        let own: Vec<u32> = own.collect();
        self.tokenizer.decode(&own, true).map_err(|e| TextError(e.to_string()))
    }
}
