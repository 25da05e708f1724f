//! Numbers that are part of a word in German (`3-mal`, `18-Jährige`, `90er`), and forms that no other language has.

use super::{capital, nouns, small, words};
use crate::text::verbalise::classes::{Reading, word};
use crate::text::verbalise::names::Gender;
use crate::text::verbalise::scan::{Scan, is_gap};
use crate::text::verbalise::speech::Speech;

/// Words that a number is written into, by their beginning.
const ENDINGS: &[&str] = &[
    "jährig",
    "stündig",
    "minütig",
    "tägig",
    "wöchig",
    "monatig",
    "köpfig",
    "seitig",
    "stellig",
    "prozentig",
    "teilig",
    "malig",
    "stöckig",
    "zeilig",
    "fach",
    "mal",
    "stufig",
    "spurig",
    "gliedrig",
    "bändig",
    "motorig",
    "türig",
    "sekündig",
    "silbig",
    "jährlich",
    "stündlich",
];

/// 3-mal, 2x, 18-Jährige, 10%ig, 3te, 90er, 5-km-Lauf.
pub(super) fn read<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let digits: String = scan.digits().iter().collect();
    let n: u64 = digits.parse().ok().filter(|_| digits.len() <= 4)?;
    let short = |n| speech.cardinal(n, Gender::Neuter);
    let mut percent = scan;
    if percent.eat('%') {
        percent.eat('-');
        let word: String = percent.letters().iter().collect();
        return word.starts_with("ig").then(|| (percent, format!("{}prozent{word}", short(n))));
    }
    let number_end = scan;
    let hyphen = scan.eat('-');
    let mut word = scan;
    let letters: String = word.letters().iter().collect();
    if letters.is_empty() || !word.at_word_end() {
        return None;
    }
    if let Some(read) = unit_in_word(scan, n, speech).filter(|_| hyphen) {
        return Some(read);
    }
    let small = letters.to_lowercase();
    let said = match small.as_str() {
        "x" if !hyphen && word.peek() != Some('-') => format!("{}mal", short(n)),
        "te" | "ter" | "tes" | "ten" | "tem" | "ste" | "ster" | "stes" | "sten" if !hyphen => {
            let ending = small.trim_start_matches('s').trim_start_matches("te");
            speech.ordinal(n, Gender::Masculine) + ending
        }
        "er" | "ern" if !hyphen || n.is_multiple_of(10) => {
            let number = if digits.len() == 4 { speech.year(n) } else { short(n) };
            number + &small
        }
        _ if ENDINGS.iter().any(|end| small.starts_with(end)) => short(n) + &small,
        // Drei-Zimmer-Wohnung: the rest stays as it stands.
        _ if hyphen && letters.starts_with(char::is_uppercase) && letters.chars().count() > 2 => {
            return Some((number_end, capital(&short(n))));
        }
        _ => return None,
    };
    let noun = letters.starts_with(char::is_uppercase);
    let decade = small.starts_with("er") && !word.next_visible().is_some_and(char::is_uppercase);
    Some((word, if noun || decade { capital(&said) } else { said }))
}

/// 5-km-Lauf: the unit in full.
fn unit_in_word<'a>(scan: Scan<'a>, n: u64, speech: &Speech) -> Option<Reading<'a>> {
    speech.language().units().find_map(|(written, name)| {
        let mut end = scan;
        let inside = end.eat_str(written, false)
            && end.peek() == Some('-')
            && end.at(1).is_some_and(char::is_alphabetic);
        let unit = speech.names().unit(name).filter(|_| inside)?;
        Some((end, format!("{}-{}", capital(&speech.cardinal(n, Gender::Neuter)), unit.one)))
    })
}

/// 1 Stunde, in 1 Minute, für 1 Tag: "ein" in its case.
pub(super) fn one<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let mut end = scan;
    if end.digits() != ['1'] || !end.peek().is_some_and(is_gap) {
        return None;
    }
    let [before, earlier] = scan.words_before();
    if scan.before().is_some_and(|c| !c.is_whitespace() && c != '(')
        || words::NUMBERED.contains(&before.as_str())
        || words::DIGIT_OPENERS.contains(&before.as_str())
        || scan.visible_before() == Some('§')
        || matches!(before.as_str(), "die" | "eine" | "komma")
    {
        return None;
    }
    let mut ahead = end;
    ahead.blanks();
    let mut gender = None;
    if ahead.peek().is_some_and(char::is_lowercase) {
        let word: String = ahead.letters().iter().collect();
        gender = Some(adjective_gender(&word)?);
        if ahead.blanks() == 0 {
            return None;
        }
    }
    let noun: String = ahead.letters().iter().collect();
    if speech.language().units().any(|(written, _)| *written == noun) {
        return None;
    }
    let capital = noun.chars().count() > 1 && noun.starts_with(char::is_uppercase);
    let known = speech.language().small_words.contains(&noun.to_lowercase().as_str());
    let size = matches!(noun.as_str(), "Mio" | "Mrd" | "Tsd" | "Bio");
    // "§ 1 Abs. 2"
    let short =
        ahead.peek() == Some('.') && speech.data.is_short(&noun.chars().collect::<Vec<char>>());
    if !capital || known || size || short || noun.chars().all(char::is_uppercase) {
        return None;
    }
    let uninflected = matches!(noun.as_str(), "Uhr" | "Prozent" | "Euro");
    let gender = gender.unwrap_or_else(|| Some(nouns::gender(&noun)));
    let said = match (gender, before.as_str()) {
        _ if uninflected => "ein",
        (Some(Gender::Feminine), word) if nouns::wants_dative(word) && earlier != "um" => "einer",
        (_, word) if nouns::wants_dative(word) && earlier != "um" => "einem",
        (Some(Gender::Masculine), word) if nouns::wants_accusative(word) => "einen",
        (Some(Gender::Feminine), _) => "eine",
        (None, _) => "einen",
        _ => "ein",
    };
    Some((end, said.to_owned()))
}

/// What an adjective behind "ein" tells of its noun: `neue`, `neuer`, `neues`; `neuen` is no nominative.
fn adjective_gender(word: &str) -> Option<Option<Gender>> {
    if word.chars().count() <= 3 || small::SMALL_WORDS.contains(&word) {
        return None;
    }
    match word {
        _ if word.ends_with('e') => Some(Some(Gender::Feminine)),
        _ if word.ends_with("er") => Some(Some(Gender::Masculine)),
        _ if word.ends_with("es") => Some(Some(Gender::Neuter)),
        _ if word.ends_with("en") => Some(None),
        _ => None,
    }
}

/// ", 10115 Berlin": the number of a place is told digit by digit.
pub(super) fn postcode<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    /// Germany has five digits; Austria and Switzerland, with four, say them as a number.
    const DIGITS: usize = 5;
    let apart = scan.visible_before() == Some(',') || scan.visible_before() == Some('\n');
    let digits: String = scan.digits().iter().collect();
    let place = digits.len() == DIGITS
        && scan.peek().is_some_and(is_gap)
        && scan.next_visible().is_some_and(char::is_uppercase);
    (place && apart && !super::is_counted(scan)).then(|| (scan, speech.digits(&digits)))
}

/// Hauptstr. 5
pub(super) fn street<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let letters: String = scan.letters().iter().collect();
    let name = letters.strip_suffix("str").filter(|name| name.chars().count() > 2)?;
    let behind = scan;
    if !scan.eat('.') {
        return None;
    }
    let closes = word::ends_sentence(scan, speech);
    Some((if closes { behind } else { scan }, format!("{name}straße")))
}

/// Art.-Nr. 4711
pub(super) fn compounds<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    const COMPOUNDS: [(&str, &str); 8] = [
        ("Art.-Nr.", "Artikelnummer"),
        ("Best.-Nr.", "Bestellnummer"),
        ("Kd.-Nr.", "Kundennummer"),
        ("Tel.-Nr.", "Telefonnummer"),
        ("Rg.-Nr.", "Rechnungsnummer"),
        ("St.-Nr.", "Steuernummer"),
        ("Konto-Nr.", "Kontonummer"),
        ("Dipl.-Ing.", "Diplomingenieur"),
    ];
    word::listed(scan, &COMPOUNDS, speech)
}

/// Abs. 1 S. 2: a sentence of a law, else a page.
pub(super) fn sentence<'a>(mut scan: Scan<'a>, _: &Speech) -> Option<Reading<'a>> {
    let [number, paragraph] = scan.words_before();
    let law = number.starts_with(|c: char| c.is_ascii_digit()) && paragraph == "abs.";
    let digit =
        scan.eat_str("S.", false) && scan.next_visible().is_some_and(|c| c.is_ascii_digit());
    (law && digit).then(|| (scan, "Satz".to_owned()))
}

/// §§ 5–7
pub(super) fn paragraphs<'a>(mut scan: Scan<'a>, _: &Speech) -> Option<Reading<'a>> {
    scan.eat_str("§§", false).then(|| (scan, "Paragrafen".to_owned()))
}
