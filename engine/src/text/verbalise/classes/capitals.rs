//! Words in capitals: initialisms, acronyms, and words that are only loud.

use super::Reading;
use crate::text::verbalise::conventions::Initialisms;
use crate::text::verbalise::scan::Scan;
use crate::text::verbalise::speech::Speech;

/// Longest word in capitals that is spelled though no table has it.
const SPELLED_LETTERS_MAX: usize = 5;
/// The same for one that could be said.
const SPELLED_WITH_VOWELS_MAX: usize = 3;

/// Words in capitals: spelled, spoken, or only loud.
pub(super) fn capitals<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let start = scan;
    if let Some(mixed) = mixed(scan, speech) {
        return Some(mixed);
    }
    let letters = scan.eat_while(usize::MAX, char::is_uppercase);
    let count = letters.len();
    let mut plural = scan;
    let many = plural.eat('s') && plural.at_word_end() && count >= 2;
    if many {
        scan = plural;
    }
    // "DON'T" is one word, "l'ONU" and "L'ONU" are two.
    let apostrophe = start.before().is_some_and(|c| c == '\'' || c == '’');
    let inside = start.before().is_some_and(char::is_alphanumeric)
        || (apostrophe
            && !start.far_before(1).is_some_and(char::is_lowercase)
            && start.far_before(2).is_some_and(char::is_alphanumeric));
    if count < 2 || !scan.at_word_end() || inside {
        return None;
    }
    let text: String = letters.iter().collect();
    let joined = scan.peek() == Some('&') && scan.at(1).is_some_and(char::is_uppercase);
    let said = if joined {
        speech.spell(&text)
    } else if is_acronym(&text, speech) {
        speech.acronym(&text)
    } else if is_spelled(start, scan, &text, speech) {
        speech.spell(&text)
    } else {
        return None;
    };
    let said = if many { (speech.language().plural)(&said) } else { said };
    Some((scan, said))
}

/// GmbH, PhD: letters of both sizes that are spoken one by one.
fn mixed<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let letters = scan.letters();
    if !letters.iter().any(|c| c.is_lowercase()) {
        return None;
    }
    let text: String = letters.iter().collect();
    let known = speech.language().initialisms.contains(&text.as_str()) && scan.at_word_end();
    let caps = speech.conventions.initialisms == Initialisms::Caps;
    known.then(|| (scan, if caps { text.clone() } else { speech.spell(&text) }))
}

/// Whether a word in capitals is spoken as a word.
pub(super) fn is_acronym(word: &str, speech: &Speech) -> bool {
    speech.language().acronyms.contains(&word)
}

/// Whether it is spoken letter by letter: known so, without a vowel, or short and not just loud among loud words.
fn is_spelled(start: Scan<'_>, end: Scan<'_>, word: &str, speech: &Speech) -> bool {
    let language = speech.language();
    let known = |word: &str| language.initialisms.contains(&word);
    let loud = |next: String| {
        let capitals = next.chars().count() >= 2 && next.chars().all(char::is_uppercase);
        capitals && (!known(&next) || language.loud_words.contains(&&*next))
    };
    let before = start.word_before().to_uppercase();
    let among_loud =
        loud(end.next_word().iter().collect()) || (start.word_before_is_loud() && loud(before));
    let common = language.loud_words.contains(&word);
    if known(word) {
        return !(common && among_loud);
    }
    let count = word.chars().count();
    let vowels = word.chars().any(|c| "AEIOUYÄÖÜÁÉÍÓÚÀÈÌÒÙÂÊÎÔÛ".contains(c));
    if vowels {
        count <= SPELLED_WITH_VOWELS_MAX && !common && !among_loud
    } else {
        count <= SPELLED_LETTERS_MAX && (!among_loud || count <= SPELLED_WITH_VOWELS_MAX)
    }
}
