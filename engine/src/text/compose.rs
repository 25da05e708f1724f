//! Second stage of the guard: canonical composition (NFC) of a text that comes in pieces.
//!
//! A character is held while the next one could still join it: `e` may become `é`. Punctuation never composes, so a
//! sentence mark passes at once. What comes out of one segment shares the segment's raw range.

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::spoken::Spoken;

/// Marks on one letter beyond this are a prank; the segment is let go so that no text can hold memory.
const SEGMENT_CHARS: usize = 32;

/// The composer of one text.
#[derive(Debug, Default, Clone)]
pub(super) struct Composer {
    segment: Vec<Spoken>,
}

impl Composer {
    pub(super) fn push(&mut self, s: Spoken, out: &mut Vec<Spoken>) {
        if starts_segment(s.ch) || self.segment.len() == SEGMENT_CHARS {
            self.release(out);
            if never_composes(s.ch) {
                out.push(s);
                return;
            }
        }
        self.segment.push(s);
    }

    /// Lets the held segment go.
    pub(super) fn release(&mut self, out: &mut Vec<Spoken>) {
        match self.segment[..] {
            [] => return,
            [only] if only.ch.is_ascii() => out.push(only),
            [first, ..] => {
                let to = self.segment.last().map_or(first.to, |s| s.to);
                let composed = self.segment.iter().map(|s| s.ch).nfc();
                out.extend(composed.map(|ch| Spoken { ch, from: first.from, to }));
            }
        }
        self.segment.clear();
    }

    /// Whether a segment is held.
    pub(super) fn is_holding(&self) -> bool {
        !self.segment.is_empty()
    }
}

/// Whether composition never reaches over the place before this character.
fn starts_segment(c: char) -> bool {
    c.is_ascii()
        || (canonical_combining_class(c) == 0
            && is_nfc_quick(std::iter::once(c)) != IsNormalized::Maybe)
}

/// Characters that no mark can join: they need not wait for the next one.
fn never_composes(c: char) -> bool {
    match c {
        '<' | '=' | '>' => false,
        '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '«' | '»' => true,
        _ => c.is_ascii() && !c.is_ascii_alphabetic(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn composed(text: &str) -> Vec<Spoken> {
        let (mut composer, mut out) = (Composer::default(), Vec::new());
        for (i, c) in text.chars().enumerate() {
            composer.push(Spoken::at(c, i as u32), &mut out);
        }
        composer.release(&mut out);
        out
    }

    #[test]
    fn a_composed_letter_comes_from_both_raw_characters() {
        let out = composed("cafe\u{301}!");
        assert_eq!(out[3], Spoken { ch: 'é', from: 3, to: 5 });
        assert_eq!(out[4], Spoken::at('!', 5));
    }

    #[test]
    fn marks_pass_at_once_and_letters_wait_for_the_next_character() {
        let (mut composer, mut out) = (Composer::default(), Vec::new());
        for (i, c) in "up.".chars().enumerate() {
            composer.push(Spoken::at(c, i as u32), &mut out);
        }
        assert_eq!(out.len(), 3);
        composer.push(Spoken::at('T', 3), &mut out);
        assert!(out.len() == 3 && composer.is_holding());
    }

    proptest! {
        #[test]
        fn the_pieces_compose_as_the_whole(text in "[a-zA-Z<=>.\u{300}-\u{330}\u{1100}-\u{11ff}éÅ가\u{958}\u{93c} ]{0,24}") {
            let out: String = composed(&text).iter().map(|s| s.ch).collect();
            prop_assert_eq!(out, text.nfc().collect::<String>());
        }
    }
}
