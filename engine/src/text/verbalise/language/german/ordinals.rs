//! Ordinals of German, which are written with a period: `der 3. Platz`, `Ludwig XIV.`

use super::{capital, nouns, small, words};
use crate::text::verbalise::classes::{Reading, word};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::{Scan, is_gap};
use crate::text::verbalise::speech::Speech;

/// Nouns that an ordinal stands before without an article, by their last part.
const ORDERED: &[&str] = &[
    "platz",
    "rang",
    "stelle",
    "tag",
    "woche",
    "monat",
    "jahr",
    "quartal",
    "halbjahr",
    "jahrhundert",
    "jahrtausend",
    "jh",
    "jhd",
    "jhdt",
    "klasse",
    "liga",
    "stock",
    "etage",
    "geschoss",
    "auflage",
    "mal",
    "weltkrieg",
    "runde",
    "halbzeit",
    "semester",
    "geburtstag",
    "preis",
    "minute",
    "spieltag",
    "advent",
    "fc",
    "mai",
    "generation",
    "staffel",
    "folge",
    "grad",
    "satz",
    "gang",
    "spiel",
    "stufe",
    "schritt",
    "versuch",
    "tor",
    "hälfte",
    "drittel",
    "viertel",
    "finale",
    "jahrestag",
    "jubiläum",
    "ausgabe",
    "band",
    "kapitel",
    "teil",
    "akt",
    "gebot",
    "person",
    "vorsitzender",
    "vorsitzende",
    "bürgermeister",
    "bundespräsident",
    "präsident",
    "januar",
];

/// 3. Platz, am 3., die 2. und 3. Auflage, 3.–5. Mai.
pub(super) fn digits<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let (mut end, n) = number(scan)?;
    let mut last = None;
    let mut range = end;
    if range.eat_if(|c| matches!(c, '-' | '–' | '/')).is_some() {
        let (range_end, to) = number(range)?;
        last = Some(to);
        end = range_end;
    }
    if end.peek().is_some_and(|c| !is_gap(c) && !",;:!?)\n".contains(c)) {
        return None;
    }
    let [before, earlier] = governing(scan);
    let noun = noun(end, speech);
    if !is_ordinal(scan, end, noun.as_deref(), speech) {
        return None;
    }
    let gender = noun.as_deref().map_or(Gender::Masculine, nouns::gender);
    let ending = nouns::ordinal_ending(&before, &earlier, gender);
    let say = |n| speech.ordinal(n, Gender::Masculine) + ending;
    let said = match last {
        Some(to) => format!("{} {} {}", say(n), speech.words().to, say(to)),
        None => say(n),
    };
    let closes = noun.is_none() && word::ends_sentence(end, speech);
    let end = if closes { scan.skip(end.taken() - scan.taken() - 1) } else { end };
    Some((end, said))
}

/// Digits and their period.
fn number(mut scan: Scan<'_>) -> Option<(Scan<'_>, u64)> {
    /// Longest number with a period that is read as an ordinal.
    const DIGITS_MAX: usize = 6;
    let mut digits: String = scan.digits().iter().collect();
    let (mut group, first) = (scan, digits.len());
    while first <= 3 && group.eat('.') {
        let three = group.digits();
        if three.len() != 3 {
            break;
        }
        digits.extend(three);
        scan = group;
    }
    let fits = digits.len() <= DIGITS_MAX && !digits.starts_with('0') && scan.eat('.');
    digits.parse().ok().filter(|_| fits).map(|n| (scan, n))
}

/// The two words before an ordinal, or before the first of several: "vom 3. bis 5.", "der 2. oder 3."
pub(super) fn governing(scan: Scan<'_>) -> [String; 2] {
    let [last, second, third, fourth] = scan.words_before();
    if joins(&last) && is_written_ordinal(&second) { [third, fourth] } else { [last, second] }
}

pub(super) fn joins(word: &str) -> bool {
    matches!(word, "und" | "oder" | "bis" | "sowie")
}

/// `3.`, and a day in digits, `24.12.`
fn is_written_ordinal(word: &str) -> bool {
    let digits = word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    digits && word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')
}

/// The next word with a capital letter in the same sentence, over other ordinals and small words between.
fn noun(mut scan: Scan<'_>, speech: &Speech) -> Option<String> {
    /// An adjective or two, and the second of two ordinals.
    const WORDS_MAX: usize = 4;
    for _ in 0..WORDS_MAX {
        scan.eat_if(|c| matches!(c, '-' | '–' | '/'));
        scan.blanks();
        if !scan.digits().is_empty() && !scan.eat('.') {
            return None;
        }
        scan.blanks();
        let word = scan.letters();
        if word.first().is_some_and(|c| c.is_uppercase()) {
            let word: String = word.iter().collect();
            let small = speech.language().small_words.contains(&word.to_lowercase().as_str());
            return Some(word).filter(|_| !small);
        }
        let word: String = word.iter().collect();
        let small = !joins(&word) && speech.language().small_words.contains(&word.as_str());
        if small || !scan.peek().is_some_and(is_gap) {
            return None;
        }
    }
    None
}

fn is_ordinal(scan: Scan<'_>, end: Scan<'_>, noun: Option<&str>, speech: &Speech) -> bool {
    let [before, earlier] = scan.words_before();
    // A line of its own.
    let alone = scan.before().is_none_or(|c| c == '\n') && end.peek().is_none_or(|c| c == '\n');
    if alone || nouns::opens_day(&before) {
        return true;
    }
    if nouns::opens_ordinal(&before) {
        // "Nimm die 3. Danach": a sentence ends.
        return noun.is_some() || !end.next_visible().is_some_and(char::is_uppercase);
    }
    if words::NUMBERED.contains(&&*before) || words::DIGIT_OPENERS.contains(&&*before) {
        return false;
    }
    // No sentence begins small: "wurde 3. im Ziel".
    if end.peek().is_some_and(is_gap) && end.next_visible().is_some_and(char::is_lowercase) {
        return true;
    }
    let Some(noun) = noun.map(str::to_lowercase) else {
        let ordered = nouns::opens_day(&governing(scan)[0]);
        return joins(&before) && is_written_ordinal(&earlier) && ordered;
    };
    let second = joins(&before) && is_written_ordinal(&earlier);
    let next: String = end.next_word().iter().flat_map(|c| c.to_lowercase()).collect();
    let month = speech.names().find_month(&next).is_some();
    // "Beethovens 9. Sinfonie"
    let owned = scan.word_before_is_capital() && before.ends_with('s');
    month || second || owned || ORDERED.iter().any(|end| noun.ends_with(end))
}

/// Ludwig XIV., unter Friedrich II., im XX. Jahrhundert.
pub(super) fn ruler<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let mut end = scan;
    let letters = end.eat_while(usize::MAX, |c| "IVXLCDM".contains(c));
    // "Ludwig M Meier"
    let n = word::roman_value(letters).filter(|_| !matches!(letters, ['L' | 'C' | 'D' | 'M']))?;
    let dotted = end.peek() == Some('.');
    if !end.at_word_end() || !scan.before().is_none_or(is_gap) {
        return None;
    }
    let [before, earlier] = scan.words_before();
    let behind = if dotted { end.skip(1) } else { end };
    let noun = noun(behind, speech).filter(|_| dotted);
    let ordered = |noun: &String| ORDERED.iter().any(|end| noun.to_lowercase().ends_with(end));
    if let Some(noun) = noun.filter(|noun| ordered(noun) && !scan.word_before_is_capital()) {
        let ending = nouns::ordinal_ending(&before, &earlier, nouns::gender(&noun));
        return Some((behind, speech.ordinal(n, Gender::Neuter) + ending));
    }
    let rulers = speech.language().rulers;
    let stem = before.strip_suffix('s').filter(|stem| rulers.contains(stem));
    let known = rulers.contains(&before.as_str()) || stem.is_some();
    // Any name before a numeral with a period that ends no sentence.
    let word = [words::NUMBERED, small::SMALL_WORDS].iter().any(|l| l.contains(&before.as_str()));
    let named = dotted
        && letters.len() > 1
        && !word
        && scan.word_before_is_capital()
        && !word::ends_sentence(behind, speech);
    if !known && !named {
        return None;
    }
    let female = words::QUEENS.contains(&stem.unwrap_or(&before));
    let (article, ending) = match (stem.is_some(), earlier.as_str()) {
        (true, _) => (if female { "der" } else { "des" }, "n"),
        (false, word) if nouns::wants_dative(word) => (if female { "der" } else { "dem" }, "n"),
        (false, word) if nouns::wants_accusative(word) && !female => ("den", "n"),
        _ => (if female { "die" } else { "der" }, ""),
    };
    let said = format!("{article} {}{ending}", capital(&speech.ordinal(n, Gender::Masculine)));
    let closes = dotted && word::ends_sentence(behind, speech);
    Some((if closes { end } else { behind }, said))
}
