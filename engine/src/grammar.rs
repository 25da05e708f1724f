//! What the stages read and say: ids of symbols, characters and codes, and the longest window there can be.

use crate::layout::Vocabulary;
use crate::text::CharacterIds;

/// The ids of one stage.
#[derive(Debug)]
pub struct StageGrammar {
    /// Symbols and codes.
    pub vocabulary: Vocabulary,
    /// Characters.
    pub characters: CharacterIds,
}

impl StageGrammar {
    /// Ids of a piece of text: all but the first of a passage start with a space.
    pub(crate) fn text(&self, text: &str, first: bool) -> Vec<u32> {
        let space = (!first).then_some(' ');
        space.into_iter().chain(text.chars()).map(|c| self.characters.id(c)).collect()
    }
}

/// The grammar of a bundle: one entry for each stage, cb0 first.
#[derive(Debug)]
pub struct Grammar {
    /// The stages.
    pub stages: Vec<StageGrammar>,
}
