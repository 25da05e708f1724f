//! Words that are not read as they stand: short forms, initials, Roman numerals.

use super::number::lower_case;
use super::{Reading, with_next_word};
use crate::text::verbalise::language::{Abbreviation, Short};
use crate::text::verbalise::scan::{Scan, is_gap};
use crate::text::verbalise::speech::Speech;

/// Longest short form of the tables.
const SHORT_LETTERS_MAX: usize = 7;

/// Titles whose short form is one in small letters, too.
const SMALL_TITLES: [&str; 11] =
    ["avv", "dr", "dra", "mr", "mrs", "prof", "profa", "sig", "sr", "sra", "srta"];

/// Short forms at the end of a list, where a sentence often ends.
const LIST_ENDS: [&str; 4] = ["etc", "ecc", "usw", "enz"];

/// Dr. Okafor, 12 Main St., etc., e.g.
pub(super) fn abbreviation<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    if let Some(parted) = parted(scan, speech) {
        return Some(parted);
    }
    let mut end = scan;
    let letters = end.letters();
    let lone = scan.word_before_is_capital() && scan.word_before().chars().count() == 1;
    // "C D.": letters that are spelled.
    if lone && matches!(letters, [letter] if letter.is_uppercase()) {
        return None;
    }
    let mut word = lower_case(letters);
    // e.g, i.e, w/o: letters parted by points or slashes.
    let mut longer = end;
    while let Some(mark) = longer.eat_if(|c| c == '.' || c == '/') {
        let letters = longer.letters();
        if letters.is_empty() && mark == '/' && !longer.at_word_end() {
            break;
        }
        if letters.is_empty() {
            if mark == '/' && word.len() == 1 {
                word.push('/');
                end = longer;
            }
            break;
        }
        word.push(mark);
        word.push_str(&lower_case(letters));
        end = longer;
    }
    if word.len() > SHORT_LETTERS_MAX + 3 || !end.at_word_end() {
        return None;
    }
    let dotted = end.peek() == Some('.');
    let behind = if dotted { end.skip(1) } else { end };
    let table = speech.language().abbreviations.iter().filter(|a| a.written == word);
    let found = table.into_iter().find(|a| holds(a, scan, end, dotted, speech))?;
    let spoken = if word.contains('.') && found.kind != Short::Title {
        as_written(found.spoken, scan)
    } else {
        found.spoken.to_owned()
    };
    // "etc..."
    let trails = dotted && behind.peek() == Some('.');
    if trails || (dotted && closes(found, behind, speech)) {
        return Some((end, spoken));
    }
    let joined = match found.kind {
        Short::Title => true,
        Short::Number => false,
        _ => dotted,
    };
    Some(if joined { with_next_word(behind, spoken, speech) } else { (behind, spoken) })
}

/// z. B., p. ej.: short forms of several words with a blank behind each period; the longest counts.
fn parted<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let mut word = String::new();
    let mut ahead = scan;
    let mut found = None;
    let mut blanks = 0;
    while word.len() <= SHORT_LETTERS_MAX + 3 {
        let letters = ahead.letters();
        if letters.is_empty() || letters.len() > SHORT_LETTERS_MAX || !ahead.at_word_end() {
            break;
        }
        word.push_str(&lower_case(letters));
        let table = speech.language().abbreviations;
        let short = |a: &&Abbreviation| a.written == word;
        if blanks > 0
            && ahead.peek() == Some('.')
            && let Some(short) = table.iter().find(short)
        {
            found = Some((ahead, short));
        }
        word.push('.');
        // What is no beginning of a short form must not wait for its next word.
        if !table.iter().any(|a| a.written.starts_with(&word)) || !ahead.eat('.') {
            break;
        }
        blanks += usize::from(ahead.blank());
    }
    let (end, short) = found?;
    let spoken = as_written(short.spoken, scan);
    let behind = end.skip(1);
    if closes(short, behind, speech) {
        return Some((end, spoken));
    }
    Some(with_next_word(behind, spoken, speech))
}

/// A form of a list as it stands there; its last period may end a sentence as well.
pub(in crate::text::verbalise) fn listed<'a>(
    scan: Scan<'a>,
    list: &[(&str, &str)],
    speech: &Speech,
) -> Option<Reading<'a>> {
    let (end, spoken) = list.iter().find_map(|(written, spoken)| {
        let mut end = scan;
        let whole = end.eat_str(written, true)
            && (!written.ends_with(char::is_alphabetic) || end.at_word_end());
        whole.then_some((end, *spoken))
    })?;
    let dotted = end.before() == Some('.') && ends_sentence(end, speech);
    let end = if dotted { scan.skip(end.taken() - scan.taken() - 1) } else { end };
    Some((end, spoken.to_owned()))
}

/// With a capital letter where the short form has one.
fn as_written(spoken: &str, scan: Scan<'_>) -> String {
    let mut letters = spoken.chars();
    match letters.next() {
        Some(first) if scan.peek().is_some_and(char::is_uppercase) => {
            first.to_uppercase().chain(letters).collect()
        }
        _ => spoken.to_owned(),
    }
}

/// Whether the period behind a short form also ends its sentence.
fn closes(short: &Abbreviation, behind: Scan<'_>, speech: &Speech) -> bool {
    let next = lower_case(behind.next_word());
    match short.kind {
        Short::Title | Short::Number => false,
        // "Martin Luther King Jr. Boulevard"
        Short::Name => {
            let opens = next.is_empty() || speech.language().small_words.contains(&next.as_str());
            ends_sentence(behind, speech) && opens
        }
        // "a.k.a. Bob", "approx. Five"
        Short::Always if !LIST_ENDS.contains(&short.written) => {
            next.is_empty() && ends_sentence(behind, speech)
        }
        _ => ends_sentence(behind, speech),
    }
}

/// Whether a short form is one at this place.
fn holds(
    short: &Abbreviation,
    scan: Scan<'_>,
    end: Scan<'_>,
    dotted: bool,
    speech: &Speech,
) -> bool {
    let behind = if dotted { end.skip(1) } else { end };
    let capital = scan.peek().is_some_and(char::is_uppercase);
    let next = behind.next_visible();
    let same_line = behind.peek().is_some_and(is_gap);
    match short.kind {
        Short::Always => true,
        // "punt NL." has letters that are spelled, unless all is written so.
        Short::Dotted => {
            let letters = end.since(scan);
            let loud = letters.len() > 1 && letters.iter().all(|c| c.is_uppercase());
            dotted && (!loud || scan.word_before_is_loud())
        }
        Short::Title => {
            // "prof. dr. Bakker"
            let title = || {
                let (mut end, table) = (behind, speech.language().abbreviations);
                end.blanks();
                let word = lower_case(end.letters());
                let title = |a: &Abbreviation| a.kind == Short::Title && a.written == word;
                dotted && end.peek() == Some('.') && table.iter().any(title)
            };
            let name = same_line && (next.is_some_and(char::is_uppercase) || title());
            let street = |a: &Abbreviation| {
                matches!(a.kind, Short::Behind | Short::Name) && a.written == short.written
            };
            let ambiguous = speech.language().abbreviations.iter().any(street);
            // "M.-A. Dupont" has two initials.
            let initial = short.written.len() == 1 && behind.peek() == Some('-');
            let certain = !ambiguous && dotted && !initial;
            // "ING Direct" and "D" are no titles.
            let loud = !dotted && !end.since(scan).iter().any(|c| c.is_lowercase());
            // "dr. dao": in small letters nothing else.
            let small = SMALL_TITLES.contains(&short.written)
                && next.is_none_or(|c| c.is_lowercase() || c == '\n');
            let holds = if capital { name || certain } else { (name || small) && certain } && !loud;
            // "Cap. IV" is no captain.
            let numbered = |a: &Abbreviation| a.kind == Short::Number && a.written == short.written;
            let roman = roman_value(behind.next_word()).is_some()
                && speech.language().abbreviations.iter().any(numbered);
            holds && !roman && !(ambiguous && is_behind_name(scan, speech))
        }
        Short::Number => {
            // "Vol. II", but "No. I think".
            let word = behind.next_word();
            let small = !speech.language().small_months
                && speech.language().small_words.contains(&&*lower_case(word));
            let letter = matches!(word, ['L' | 'C' | 'D' | 'M']);
            let roman = dotted && !small && !letter && roman_value(word).is_some();
            let number = roman || next.is_some_and(|c| c.is_ascii_digit() || c == '#');
            let lower = end.since(scan).iter().any(|c| c.is_lowercase());
            // "No 2º andar": in the, not number.
            let language = speech.language();
            let common = language.small_months && language.small_words.contains(&short.written);
            let telling = dotted || (capital && lower && !common && short.written.len() > 1);
            number && telling && (same_line || dotted)
        }
        Short::Behind | Short::Name => {
            capital && (dotted || is_behind_name(scan, speech)) && is_behind_name(scan, speech)
        }
    }
}

/// Whether the word before is a name in the same line: "12 Main St.", not "the St."
fn is_behind_name(scan: Scan<'_>, speech: &Speech) -> bool {
    if !scan.before().is_some_and(is_gap) {
        return false;
    }
    let word = scan.word_before();
    let short = word.trim_end_matches('.');
    let title = |a: &Abbreviation| a.kind == Short::Title && a.written == short;
    if word.ends_with('.') && speech.language().abbreviations.iter().any(title) {
        return false;
    }
    let capital = scan.word_before_is_capital();
    (capital && !speech.language().small_words.contains(&word.as_str()))
        || speech.language().ordinal_endings.iter().any(|(ending, _)| {
            word.strip_suffix(ending)
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
}

/// Whether what is behind a period begins a sentence, or nothing does.
pub(in crate::text::verbalise) fn ends_sentence(behind: Scan<'_>, speech: &Speech) -> bool {
    match behind.peek() {
        None | Some('\n' | '\r') => true,
        Some(c) if is_gap(c) => behind.next_visible().is_none_or(|c| {
            let language = speech.language();
            let noun = || {
                language.capital_nouns
                    && !language.small_words.contains(&lower_case(behind.next_word()).as_str())
            };
            // "5 p.m. (local time)" goes on.
            let bracket = || {
                let mut inside = behind;
                inside.blanks();
                c == '(' && inside.at(1).is_some_and(char::is_uppercase)
            };
            (c.is_uppercase() && !noun()) || "\n“\"‘".contains(c) || bracket()
        }),
        Some(c) => "\"”’)".contains(c),
    }
}

/// U.S. Senate, C. S. Lewis, J.R.R. Tolkien, Ph.D.
pub(super) fn initials<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let mut end = scan;
    let mut letters = String::new();
    let mut last = end;
    let mut inner_blank = false;
    loop {
        let mut ahead = end;
        let part = ahead.letters();
        let short =
            part.len() == 1 || (part.len() == 2 && part[1].is_lowercase() && !letters.is_empty());
        let short = short || (part == ['P', 'h']);
        // "in the U.S we": the last period is missing.
        let open = !letters.is_empty() && end.before() == Some('.') && ahead.at_word_end();
        if short && open && part[0].is_uppercase() && ahead.peek() != Some('.') {
            letters.extend(part);
            return Some((ahead, speech.spell(&letters)));
        }
        if !short || !part[0].is_uppercase() || !ahead.eat('.') {
            break;
        }
        letters.extend(part);
        last = ahead;
        end = ahead;
        if end.peek().is_some_and(is_gap)
            && end.at(1).is_some_and(char::is_uppercase)
            && end.at(2) == Some('.')
        {
            end = end.skip(1);
            inner_blank = true;
        }
    }
    let count = letters.chars().count();
    if count == 0 {
        return None;
    }
    if count == 1 {
        return single_initial(scan, last, &letters, speech);
    }
    let spelled = speech.spell(&letters);
    let name =
        last.peek().is_some_and(is_gap) && last.next_visible().is_some_and(char::is_uppercase);
    if name {
        // "in the U.S. The": an article or pronoun begins a sentence.
        let next = lower_case(last.next_word());
        let starts = speech.language().small_words.contains(&next.as_str());
        if starts && !inner_blank {
            return Some((last, spelled + "."));
        }
        return Some(with_next_word(last, spelled, speech));
    }
    if ends_sentence(last, speech) {
        return Some((last, spelled + "."));
    }
    Some(with_next_word(last, spelled, speech))
}

/// "J. Smith": the period goes where a name follows and none ended the sentence.
fn single_initial<'a>(
    scan: Scan<'a>,
    end: Scan<'a>,
    letter: &str,
    speech: &Speech,
) -> Option<Reading<'a>> {
    let name = end.peek().is_some_and(is_gap) && end.next_visible().is_some_and(char::is_uppercase);
    let before = scan.word_before();
    let capital = scan.word_before_is_capital() && before.chars().count() > 1;
    let title =
        |a: &Abbreviation| a.kind == Short::Title && before.strip_suffix('.') == Some(a.written);
    let opens = before.is_empty() || capital || speech.language().abbreviations.iter().any(title);
    (name && opens && letter != "I").then(|| with_next_word(end, speech.spell(letter), speech))
}

/// Henry IV, Chapter XII, World War II.
pub(super) fn roman<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let start = scan;
    let letters = scan.eat_while(usize::MAX, |c| "IVXLCDM".contains(c));
    let n = roman_value(letters)?;
    let possessive = scan.peek().is_some_and(|c| c == '\'' || c == '’');
    let opens = start.before().is_none_or(|c| is_gap(c) || "(\n\"“".contains(c));
    if !(scan.at_word_end() || possessive) || !opens {
        return None;
    }
    let language = speech.language();
    let before = start.word_before();
    let has = |list: &[&str]| list.contains(&before.as_str());
    // "art. L. 123"
    let letter = letters.len() == 1 && "LCDM".contains(letters[0]);
    if (has(language.numbered) || before == "war") && !letter {
        return Some((scan, speech.count(n)));
    }
    // "John D Rockefeller"
    if has(language.rulers) && !letter {
        return Some((scan, (language.regnal)(speech, n, &before)));
    }
    let next = lower_case(scan.next_word());
    if let Some(ordinal) = (language.ordered)(speech, n, &next) {
        return Some((scan, ordinal));
    }
    // "Rocky II", "John Smith III"; one letter alone is a letter.
    let certain =
        letters.len() >= 4 || (letters.len() == 3 && letters.iter().all(|c| "IVX".contains(*c)));
    if certain {
        return Some((scan, speech.count(n)));
    }
    let alone = start.before().is_none_or(|c| c == '\n')
        && scan.peek().is_none_or(|c| c == '\n')
        && letters.len() >= 2
        && letters.iter().all(|c| "IVX".contains(*c));
    if alone {
        return Some((scan, speech.count(n)));
    }
    let name = start.word_before_is_capital() && !language.small_words.contains(&before.as_str());
    let multiple = letters.len() >= 2 && letters.iter().all(|&c| c == 'I');
    (name && multiple).then(|| (scan, speech.count(n)))
}

/// The value of a Roman numeral in its usual form, below 4,000.
pub(in crate::text::verbalise) fn roman_value(letters: &[char]) -> Option<u64> {
    const SIGNS: [(&str, u64); 13] = [
        ("M", 1000),
        ("CM", 900),
        ("D", 500),
        ("CD", 400),
        ("C", 100),
        ("XC", 90),
        ("L", 50),
        ("XL", 40),
        ("X", 10),
        ("IX", 9),
        ("V", 5),
        ("IV", 4),
        ("I", 1),
    ];
    let text: String = letters.iter().collect();
    let (mut rest, mut value) = (text.as_str(), 0);
    for (sign, worth) in SIGNS {
        while let Some(behind) = rest.strip_prefix(sign) {
            rest = behind;
            value += worth;
        }
    }
    let mut again = String::new();
    let mut left = value;
    for (sign, worth) in SIGNS {
        while left >= worth && value < 4000 {
            again.push_str(sign);
            left -= worth;
        }
    }
    (rest.is_empty() && !text.is_empty() && again == text).then_some(value)
}

/// A Roman numeral with small letters behind it, which come back: XXIe. Of large numerals some are words: "Le", "De".
pub(in crate::text::verbalise) fn roman_with_ending(
    mut scan: Scan<'_>,
) -> Option<(Scan<'_>, u64, String)> {
    if !scan.before().is_none_or(|c| is_gap(c) || "\n(«'’-–".contains(c)) {
        return None;
    }
    let n = roman_value(scan.eat_while(usize::MAX, |c| "IVX".contains(c)))?;
    let ending: String = scan.letters().iter().collect();
    scan.at_word_end().then_some((scan, n, ending))
}
