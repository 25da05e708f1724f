//! Which ids a stage can ever read, so that the embedding rows of all others can stay on disk.
//!
//! The grammar writes text as the first id of each character taken alone, control blocks, markers and codes. In the
//! public release that leaves a tenth of the text vocabulary.

use std::collections::BTreeSet;

use tokenizers::Tokenizer;
use tokenizers::models::ModelWrapper;
use tokenizers::normalizers::NormalizerWrapper;
use unicode_normalization::is_nfc;

use crate::models::config::StageConfig;

/// The ids that a stage can read, in rising order, when these are the ids of its text.
pub(super) fn stage_ids(text: &BTreeSet<u32>, config: &StageConfig) -> Vec<u32> {
    let mut ids = text.clone();
    ids.extend([config.pad, config.text_split, config.audio_split]);
    if config.stage > 0 {
        // Only there is a row of codes closed before the next begins; in cb0 it is an output.
        ids.insert(config.end_of_speech);
    }
    ids.extend(config.audio_start..config.backbone.vocabulary as u32);
    ids.into_iter().collect()
}

/// The first id of every character of Unicode.
pub(super) fn character_ids(tokenizer: &Tokenizer) -> tokenizers::Result<BTreeSet<u32>> {
    first_ids(tokenizer, '\0'..=char::MAX)
}

/// The first id of each character, encoded alone.
///
/// Encoding the million characters of Unicode one by one takes seconds. In a byte-level vocabulary most of them begin
/// with no entry longer than a byte; those with the same first byte then have the same first id, so that one stands
/// for all.
fn first_ids(
    tokenizer: &Tokenizer,
    characters: impl IntoIterator<Item = char>,
) -> tokenizers::Result<BTreeSet<u32>> {
    let vocabulary = ByteVocabulary::of(tokenizer);
    let mut seen = [false; 256];
    let mut ids = BTreeSet::new();
    let mut utf8 = [0; 4];
    for character in characters {
        let text = &*character.encode_utf8(&mut utf8);
        let byte = vocabulary.as_ref().and_then(|v| v.lone_first_byte(text));
        if byte.is_some_and(|byte| std::mem::replace(&mut seen[usize::from(byte)], true)) {
            continue;
        }
        ids.extend(tokenizer.encode_fast(text, false)?.get_ids().first());
    }
    Ok(ids)
}

/// Which pairs of bytes begin an entry of a byte-level vocabulary.
struct ByteVocabulary {
    pairs: Vec<bool>,
    /// Whether text is brought into NFC first, which may change a character's bytes.
    composes: bool,
}

impl ByteVocabulary {
    /// None for a tokenizer of another kind, which must be asked about each character.
    fn of(tokenizer: &Tokenizer) -> Option<Self> {
        let normalizer = tokenizer.get_normalizer();
        let plain = matches!(normalizer, None | Some(NormalizerWrapper::NFC(_)));
        let bpe = matches!(tokenizer.get_model(), ModelWrapper::BPE(_));
        let added = tokenizer.get_added_vocabulary().get_vocab();
        let whole_characters = added.keys().any(|token| token.chars().count() == 1);
        let alphabet = byte_alphabet();
        let entries = tokenizer.get_vocab(false);
        let byte_level = alphabet.iter().all(|c| entries.contains_key(&c.to_string()));
        if !plain || !bpe || whole_characters || !byte_level {
            return None;
        }
        let mut pairs = vec![false; 1 << 16];
        for entry in entries.keys() {
            let mut bytes = entry.chars().map(|c| alphabet.iter().position(|&a| a == c));
            if let (Some(Some(first)), Some(Some(second))) = (bytes.next(), bytes.next()) {
                pairs[first << 8 | second] = true;
            }
        }
        Some(Self { pairs, composes: normalizer.is_some() })
    }

    /// The first byte of a character that no longer entry can begin, normalised or not.
    fn lone_first_byte(&self, text: &str) -> Option<u8> {
        let bytes = text.as_bytes();
        let lone =
            bytes.len() > 1 && !self.pairs[usize::from(bytes[0]) << 8 | usize::from(bytes[1])];
        let stays = !self.composes || is_nfc(text);
        (lone && stays).then_some(bytes[0])
    }
}

/// The character that stands for each byte in a byte-level vocabulary: printable Latin-1 for itself, the others in
/// order from U+0100 on.
fn byte_alphabet() -> Vec<char> {
    let itself = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut next = 0x100..;
    let mut stand_in = || next.next().and_then(char::from_u32).expect("a few above U+0100");
    (0..=255u8).map(|b| if itself(b) { char::from(b) } else { stand_in() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    /// A byte-level tokenizer with merges that begin, fill and cross the bytes of some characters.
    fn small_bpe(normalizer: &serde_json::Value) -> Tokenizer {
        let alphabet = byte_alphabet();
        let token =
            |bytes: &[u8]| bytes.iter().map(|&b| alphabet[usize::from(b)]).collect::<String>();
        let mut vocabulary = serde_json::Map::new();
        let mut id = 0;
        let mut add = |token: String| {
            vocabulary.insert(token, id.into());
            id += 1;
        };
        (0..=255u8).for_each(|b| add(token(&[b])));
        let merges: [(&[u8], &[u8]); 7] = [
            (&[0xC3], &[0xA9]),       // all of U+00E9
            (&[0xE4], &[0xB8]),       // the beginning of some ideographs
            (&[0xE4, 0xB8], &[0xAD]), // all of U+4E2D
            (&[0xB0], &[0x80]),       // inside a syllable, never at its beginning
            (&[0xF0], &[0x9F]),       // the beginning of pictographs
            (&[0xF0, 0x9F], &[0x98]),
            (&[0x61], &[0xCC]), // crosses two characters
        ];
        for (left, right) in merges {
            add(token(&[left, right].concat()));
        }
        let merges: Vec<String> =
            merges.iter().map(|(l, r)| format!("{} {}", token(l), token(r))).collect();
        let json = serde_json::json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": normalizer,
            "pre_tokenizer":
                {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
            "post_processor": null, "decoder": null,
            "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
        });
        Tokenizer::from_bytes(json.to_string()).unwrap()
    }

    #[test]
    fn one_character_stands_only_for_those_that_begin_alike() {
        let characters = || {
            let blocks = [
                ('\0', '\u{33ff}'),
                ('\u{4e00}', '\u{4fff}'),
                ('\u{ac00}', '\u{adff}'),
                ('\u{f900}', '\u{ffff}'),
                ('\u{1d100}', '\u{1d1ff}'),
                ('\u{1f600}', '\u{1f6ff}'),
                ('\u{e0100}', '\u{e01ff}'),
                ('\u{10ff00}', '\u{10ffff}'),
            ];
            blocks.into_iter().flat_map(|(first, last)| first..=last)
        };
        let nfc = serde_json::json!({"type": "NFC"});
        let lowercase = serde_json::json!({"type": "Lowercase"});
        for normalizer in [serde_json::Value::Null, nfc, lowercase] {
            let tokenizer = small_bpe(&normalizer);
            let each: BTreeSet<u32> = characters()
                .filter_map(|c| {
                    tokenizer.encode(c.to_string(), false).unwrap().get_ids().first().copied()
                })
                .collect();
            assert_eq!(first_ids(&tokenizer, characters()).unwrap(), each, "{normalizer}");
            assert!(each.contains(&256) && each.contains(&258) && !each.contains(&259));
        }
    }

    #[test]
    fn only_byte_level_vocabularies_take_the_short_way() {
        let shortened = |normalizer| ByteVocabulary::of(&small_bpe(&normalizer)).is_some();
        assert!(shortened(serde_json::json!({"type": "NFC"})));
        assert!(!shortened(serde_json::json!({"type": "Lowercase"})));
        let mut tokenizer = small_bpe(&serde_json::Value::Null);
        tokenizer.add_tokens([tokenizers::AddedToken::from("\u{e9}", false)]).unwrap();
        assert!(ByteVocabulary::of(&tokenizer).is_none());
    }
}
