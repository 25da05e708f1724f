//! The ids of one stage, and what its outputs mean.

/// Ids of one stage, from its configuration and its tokenizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    /// Which codebook the stage makes: 0 is the semantic one.
    pub stage: usize,
    /// Starts every row of codes.
    pub pad: u32,
    /// Ends a complete C0 row; as an output, ends the passage.
    pub end_of_speech: u32,
    /// Stands between two chunks in the text row.
    pub text_split: u32,
    /// Stands between two chunks in the C0 row; as an output, ends an inner chunk.
    pub audio_split: u32,
    /// The line feed character, which ends the text of a passage.
    pub line_feed: u32,
    /// Code 0 of the semantic codebook; all other codes follow it, codebook after codebook.
    pub audio_start: u32,
    /// Entries of the semantic codebook.
    pub semantic_codes: u32,
    /// Entries of each acoustic codebook.
    pub acoustic_codes: u32,
    /// Positions that the boundary of two chunks lies behind the end of a text, at least.
    pub realign: usize,
}

/// What a stage can say at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbol {
    /// A code of the stage's own codebook.
    Code(u16),
    /// The passage is over (stage 0 only).
    EndOfSpeech,
    /// The chunk is over (stage 0 only).
    AudioSplit,
}

impl Vocabulary {
    /// Id of a code of row 0 (semantic) or 1.. (acoustic).
    ///
    /// # Panics
    /// When the codebook of the row has no such code: it would be read as one of the next row.
    pub fn code(&self, row: usize, code: u16) -> u32 {
        let code = u32::from(code);
        let entries = if row == 0 { self.semantic_codes } else { self.acoustic_codes };
        assert!(code < entries, "code {code} in row {row} of {entries}; this is a bug");
        self.row_start(row) + code
    }

    /// How many symbols the stage chooses from: its codes, in stage 0 then end of speech and audio split.
    pub fn outputs(&self) -> usize {
        let outputs = if self.stage == 0 { self.semantic_codes + 2 } else { self.acoustic_codes };
        outputs as usize
    }

    /// What the output with this index means.
    ///
    /// # Panics
    /// When `output` is not below [`Vocabulary::outputs`].
    pub fn symbol(&self, output: usize) -> Symbol {
        assert!(output < self.outputs(), "output {output} of {}; this is a bug", self.outputs());
        match output.checked_sub(self.semantic_codes as usize) {
            Some(0) if self.stage == 0 => Symbol::EndOfSpeech,
            Some(1) if self.stage == 0 => Symbol::AudioSplit,
            _ => Symbol::Code(u16::try_from(output).expect("codebooks are below 65536 entries")),
        }
    }

    fn row_start(&self, row: usize) -> u32 {
        let acoustic_before = u32::try_from(row.saturating_sub(1)).expect("a handful of rows");
        let semantic = if row == 0 { 0 } else { self.semantic_codes };
        self.audio_start + semantic + acoustic_before * self.acoustic_codes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(stage: usize) -> Vocabulary {
        Vocabulary {
            stage,
            pad: 90,
            end_of_speech: 91,
            text_split: 92,
            audio_split: 93,
            line_feed: 10,
            audio_start: 100,
            semantic_codes: 50,
            acoustic_codes: 20,
            realign: 25,
        }
    }

    #[test]
    fn codebooks_follow_each_other_behind_the_first_code() {
        let v = vocabulary(3);
        assert_eq!(
            [(0, 49), (1, 0), (2, 0), (3, 19)].map(|(row, c)| v.code(row, c)),
            [149, 150, 170, 209]
        );
    }

    #[test]
    #[should_panic(expected = "code 20 in row 1 of 20")]
    fn code_of_another_row_is_refused() {
        vocabulary(3).code(1, 20);
    }

    #[test]
    fn outputs_behind_the_semantic_codes_are_the_two_stop_symbols() {
        let cb0 = vocabulary(0);
        assert_eq!(cb0.outputs(), 52);
        assert_eq!(cb0.symbol(49), Symbol::Code(49));
        assert_eq!(cb0.symbol(50), Symbol::EndOfSpeech);
        assert_eq!(cb0.symbol(51), Symbol::AudioSplit);
        assert_eq!(vocabulary(3).outputs(), 20);
        assert_eq!(vocabulary(3).symbol(19), Symbol::Code(19));
    }
}
