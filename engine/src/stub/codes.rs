//! What the stub's codes mean, and how a network reads them back from the ids it is shown. Pure.

use crate::layout::Vocabulary;

/// Frames of the prompt that names a context.
pub(super) const NAME_FRAMES: usize = 3;
/// Entries of the semantic codebook, as in the bundled voice: 64 chunks of 32 frames.
pub(super) const SEMANTIC: u32 = 2_048;
/// Entries of each acoustic codebook: a digit of a context's number.
pub(super) const ACOUSTIC: u32 = 64;
/// Frame numbers that a semantic code can tell apart; more than the longest cycle that a guard takes for a loop.
pub(super) const FRAMES: u16 = 32;
/// Chunk numbers that a semantic code can tell apart.
const CHUNKS: u16 = SEMANTIC as u16 / FRAMES;

/// Ids of the special tokens in the bundled voice's tokenizer.
const PAD: u32 = 256;
const CONTROL_END: u32 = 258;
const END_OF_SPEECH: u32 = 259;
const TEXT_SPLIT: u32 = 260;
const AUDIO_SPLIT: u32 = 261;
const AUDIO_START: u32 = 273;
const LINE_FEED: u32 = 10;
const SPACE: u32 = 32;

/// The ids of a stage.
pub(super) fn vocabulary(stage: usize) -> Vocabulary {
    Vocabulary {
        stage,
        pad: PAD,
        end_of_speech: END_OF_SPEECH,
        text_split: TEXT_SPLIT,
        audio_split: AUDIO_SPLIT,
        line_feed: LINE_FEED,
        audio_start: AUDIO_START,
        semantic_codes: SEMANTIC,
        acoustic_codes: ACOUSTIC,
        realign: 25,
    }
}

/// The semantic code of a frame of a chunk.
pub(super) fn semantic(chunk: usize, frame: usize) -> u16 {
    let chunk = (chunk % usize::from(CHUNKS)) as u16;
    chunk * FRAMES + (frame % usize::from(FRAMES)) as u16
}

/// The chunk that a semantic code belongs to, modulo 64.
pub(super) fn chunk_of(code: u16) -> usize {
    usize::from(code / FRAMES)
}

/// A context's number as three digits of the semantic codebook, lowest first: a row of a voice prompt.
pub(super) fn name(context: u64) -> Vec<u16> {
    digits(context, u64::from(SEMANTIC)).to_vec()
}

/// A context's number as three acoustic codes, lowest first.
pub(super) fn acoustic(context: u64) -> [u16; 3] {
    digits(context, u64::from(ACOUSTIC))
}

/// The number that three acoustic codes tell, modulo 64 to the third.
pub(super) fn context_of(acoustic: [u16; 3]) -> u64 {
    number(acoustic.map(u64::from), u64::from(ACOUSTIC))
}

fn digits(number: u64, base: u64) -> [u16; 3] {
    [1, base, base * base].map(|unit| (number / unit % base) as u16)
}

fn number(digits: [u64; 3], base: u64) -> u64 {
    digits[0] + base * (digits[1] + base * digits[2])
}

/// What a sequence of stage 0 tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sight {
    /// Number of the context.
    pub(super) context: u64,
    /// Number of the chunk in its context, modulo 64; counted on from the codes that stand before it.
    pub(super) chunk: usize,
    /// Characters of its text, without blanks at its ends.
    pub(super) characters: usize,
    /// Codes of it that are known.
    pub(super) frames: usize,
}

/// Whose sequence this is; `None` for the companion of a guidance pair, which has no voice prompt.
pub(super) fn context_in(ids: &[u32]) -> Option<u64> {
    let name = ids.get(..NAME_FRAMES)?;
    let digit = |id: u32| id.checked_sub(AUDIO_START).map(u64::from);
    Some(number([digit(name[0])?, digit(name[1])?, digit(name[2])?], u64::from(SEMANTIC)))
}

/// Reads a sequence of stage 0: prompt, control, texts with splits between them, PAD, codes with a split between them.
pub(super) fn sight(ids: &[u32]) -> Option<Sight> {
    let context = context_in(ids)?;
    let text = ids.iter().position(|&id| id == CONTROL_END)? + 1;
    let pad = text + ids[text..].iter().position(|&id| id == PAD)?;
    let codes = &ids[pad + 1..];
    let split = codes.iter().position(|&id| id == AUDIO_SPLIT);
    let (chunk, frames) = match split {
        Some(split) => {
            let last = codes[..split].last().map_or(0, |&id| id.saturating_sub(AUDIO_START));
            let before = chunk_of(u16::try_from(last).unwrap_or(0));
            ((before + 1) % usize::from(CHUNKS), codes.len() - split - 1)
        }
        None => (0, codes.len()),
    };
    let mut texts = ids[text..pad].split(|&id| id == TEXT_SPLIT);
    let text = texts.nth(usize::from(split.is_some()))?;
    let blank = |id: &u32| matches!(*id, LINE_FEED | SPACE);
    let leading = text.iter().take_while(|id| blank(id)).count();
    let trailing = text[leading..].iter().rev().take_while(|id| blank(id)).count();
    Some(Sight { context, chunk, characters: text.len() - leading - trailing, frames })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, Spoken, Tail, Window};

    #[test]
    fn a_sequence_tells_whose_it_is_and_how_far() {
        let name = name(5_000_000);
        let control = [257, 262, CONTROL_END, LINE_FEED];
        let mut window = Window {
            prompt: &[&name],
            control: &control,
            before: None,
            text: &[65, 66, SPACE, 67],
            tail: Tail::Lookahead(&[SPACE, 68]),
            rows: &[&[0, 1]],
        };
        let vocabulary = vocabulary(0);
        let first = sight(&Layout::of(&vocabulary, &window).ids).unwrap();
        assert_eq!(first, Sight { context: 5_000_000, chunk: 0, characters: 4, frames: 2 });
        let codes = [semantic(7, 0), semantic(7, 1)];
        let (said, nothing): ([&[u16]; 1], [&[u16]; 1]) = ([&codes], [&[]]);
        window.before = Some(Spoken { text: &[70, 71], rows: &said });
        (window.text, window.tail, window.rows) = (&[SPACE, 65], Tail::End, &nothing);
        let later = sight(&Layout::of(&vocabulary, &window).ids).unwrap();
        assert_eq!(later, Sight { context: 5_000_000, chunk: 8, characters: 1, frames: 0 });
        assert_eq!(sight(&Layout::null(&vocabulary, &control, &[1]).ids), None);
    }

    #[test]
    fn codes_tell_the_context_and_the_chunk() {
        for context in [0, 63, 64, 200_000] {
            assert_eq!(context_of(acoustic(context)), context);
        }
        assert_eq!(chunk_of(semantic(63, 400)), 63);
        assert_eq!(chunk_of(semantic(64, 0)), 0);
    }
}
