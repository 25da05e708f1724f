//! What the stages read and say: ids of symbols, characters and codes, and the longest window there can be.

use crate::layout::Vocabulary;
use crate::text::ids::CharacterIds;

/// The ids of one stage.
pub struct StageGrammar {
    /// Symbols and codes.
    pub vocabulary: Vocabulary,
    /// Characters.
    pub characters: CharacterIds,
}

impl StageGrammar {
    /// Whether the tokenizer knows a character.
    pub(crate) fn reads(&self, c: char) -> bool {
        self.characters.id(c).is_ok()
    }

    /// Ids of a piece of text, one for each character. A character that the tokenizer knows nothing of is not read.
    pub(crate) fn read(&self, text: &str) -> Vec<u32> {
        text.chars().filter_map(|c| self.characters.id(c).ok()).collect()
    }
}

/// The grammar of a bundle: one entry for each stage, cb0 first.
pub struct Grammar {
    /// The stages.
    pub stages: Vec<StageGrammar>,
    /// Which of the engine's stages runs cb0; the others follow it.
    pub first_stage: usize,
}
