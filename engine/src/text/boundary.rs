//! Where a live text may be cut, and how good the place is.
//!
//! Cuts are made only at blanks (or where a sentence follows another without one), so numbers, words, addresses and
//! dates written in one piece are safe by nature. Blanks inside an abbreviation, a date or a sum are told apart by the
//! words next to them. A place that is missed costs a later cut; a wrong one is heard: in doubt there is none.

use super::spoken::{Spoken, is_blank, is_emoji, is_emoji_part};

/// How good a place is, the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Behind a short word, which most often leans on the next (`the`, `of`, `und`).
    Weak,
    /// Behind another word.
    Word,
    /// Behind a comma, colon, semicolon, dash, pacing dots or the end of a line.
    Clause,
    /// Behind the end of a sentence or paragraph.
    Sentence,
}

/// Letters of a word that leans on the next, at most.
const SHORT_WORD: usize = 3;

/// Closing quotes and brackets stay with the mark before them.
const CLOSERS: &[char] = &['"', '\'', '”', '’', '»', ')', ']', '}', '›', '“'];
const OPENERS: &[char] = &['"', '\'', '“', '‘', '„', '«', '(', '[', '{', '¿', '¡', '‚', '‹', '»'];

/// Words before a period that does not end a sentence, in the languages of the release. Words that are also common
/// without it (`no`, `sat`, `art`) are left out: see [`period`].
const ABBREVIATIONS: &[&str] = &[
    "abs", "approx", "apr", "aug", "ave", "av", "blvd", "bzw", "capt", "cf", "ca", "co", "col",
    "corp", "dec", "dept", "dhr", "dott", "dr", "dra", "drs", "ed", "eds", "est", "etc", "evtl",
    "feb", "fig", "gen", "ggf", "gov", "hon", "inc", "ing", "inkl", "jan", "jr", "jul", "jun",
    "lt", "ltd", "mevr", "mlle", "mme", "mr", "mrs", "ms", "mt", "nos", "nov", "nr", "oct", "okt",
    "pp", "prof", "pág", "rd", "rep", "rev", "sen", "sep", "sept", "sgt", "sig", "sog", "sr",
    "sra", "srta", "st", "str", "tel", "ud", "uds", "usw", "vgl", "vol", "vs", "zzgl",
];

/// The kind of place before `text[at]`, or behind the text when `at` is its length; none where no cut may be.
///
/// `at` must be a blank or the end, or the place between two characters of a token.
pub(super) fn kind(text: &[Spoken], at: usize) -> Option<Kind> {
    if is_inside_reading(text, at) {
        return None;
    }
    if text.get(at).is_some_and(|s| !is_blank(s.ch)) {
        return is_glued_sentence(text, at).then_some(Kind::Sentence);
    }
    let start = token_start(text, at);
    let token = &text[start..at];
    let behind = &text[at..];
    let blanks = behind.iter().take_while(|s| is_blank(s.ch)).count();
    let next = &behind[blanks..];
    let line_feeds = behind[..blanks].iter().filter(|s| s.ch == '\n').count();
    let core = strip_closers(token);
    let inner = match core.last()?.ch {
        '.' | '…' | '!' | '?' => mark(core, next),
        ',' | ';' | ':' if is_digit_pair(core, next) => None,
        ',' | ';' | ':' | '—' | '–' => Some(Kind::Clause),
        _ => word(core, next),
    };
    match line_feeds {
        0 => inner,
        1 if core.last().is_some_and(|s| s.ch == '.') => inner,
        1 => inner.max(Some(Kind::Clause)),
        _ => Some(Kind::Sentence),
    }
}

/// Whether the text could end a sentence where it ends now, if nothing else were to come.
pub(super) fn may_end_sentence(text: &[Spoken]) -> bool {
    // More closing quotes and brackets in a row than this are no end of a sentence.
    const CLOSERS_SEEN: usize = 8;
    strip_closers(&text[text.len().saturating_sub(CLOSERS_SEEN)..])
        .last()
        .is_some_and(|s| matches!(s.ch, '.' | '!' | '?' | '…'))
}

/// Whether the text ends in a digit and a mark: the next character may belong to the number.
pub(super) fn may_end_in_number(text: &[Spoken]) -> bool {
    let digit = |i: usize| text.len().checked_sub(i).is_some_and(|i| text[i].ch.is_numeric());
    digit(1) || digit(2)
}

/// How many words: pieces between blanks that have a letter or digit.
pub(super) fn words(text: &[Spoken]) -> usize {
    text.split(|s| is_blank(s.ch)).filter(|w| super::spoken::is_speakable(w)).count()
}

/// Whether a hard cut before `text[at]` would tear apart what is seen as one character.
pub(super) fn is_inside_cluster(text: &[Spoken], at: usize) -> bool {
    let Some(next) = text.get(at) else { return false };
    let joins = |c: char| {
        is_emoji_part(c)
            || matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
            || unicode_normalization::char::is_combining_mark(c)
    };
    let before = at.checked_sub(1).map(|i| text[i].ch);
    joins(next.ch) || before == Some('\u{200d}') || {
        let flag = |c: char| matches!(c, '\u{1f1e6}'..='\u{1f1ff}');
        before.is_some_and(|c| flag(c) && is_emoji(c)) && flag(next.ch)
    }
}

/// Whether the words on both sides of `text[at]` stand for one piece of raw text: a sum, a date, an address.
pub(super) fn is_inside_reading(text: &[Spoken], at: usize) -> bool {
    let Some((before, next)) = at.checked_sub(1).map(|i| text[i]).zip(text.get(at)) else {
        return false;
    };
    (before.from, before.to) == (next.from, next.to) && !is_blank(before.ch)
}

fn token_start(text: &[Spoken], at: usize) -> usize {
    text[..at].iter().rposition(|s| is_blank(s.ch)).map_or(0, |i| i + 1)
}

fn strip_closers(token: &[Spoken]) -> &[Spoken] {
    let end = token.iter().rposition(|s| !CLOSERS.contains(&s.ch)).map_or(0, |i| i + 1);
    &token[..end]
}

/// First character of what follows, opening quotes and brackets aside.
fn opening(next: &[Spoken]) -> Option<char> {
    next.iter().map(|s| s.ch).find(|c| !OPENERS.contains(c))
}

fn is_digit_pair(core: &[Spoken], next: &[Spoken]) -> bool {
    let before = core.len().checked_sub(2).is_some_and(|i| core[i].ch.is_numeric());
    before && opening(next).is_some_and(char::is_numeric)
}

fn mark(core: &[Spoken], next: &[Spoken]) -> Option<Kind> {
    let lower = opening(next).is_some_and(char::is_lowercase);
    match core {
        [.., last] if last.ch == '…' => Some(Kind::Clause),
        [.., a, b] if a.ch == '.' && b.ch == '.' => Some(Kind::Clause),
        [.., last] if last.ch == '.' => period(&core[..core.len() - 1], next, lower),
        _ if lower => Some(Kind::Clause),
        _ => Some(Kind::Sentence),
    }
}

/// Behind `word.`: the end of a sentence, or no place at all.
fn period(word: &[Spoken], next: &[Spoken], lower: bool) -> Option<Kind> {
    let word: String = word.iter().skip_while(|s| OPENERS.contains(&s.ch)).map(|s| s.ch).collect();
    let word = word.to_lowercase();
    let letters = word.chars().count();
    let dotted = word.contains('.')
        && word.split('.').all(|part| part.len() <= 2 && part.chars().all(char::is_alphabetic));
    let clock = matches!(word.as_str(), "a.m" | "p.m");
    let digits = !word.is_empty() && word.chars().all(char::is_numeric);
    // `3. Mai`, `1. Take the lid off`, `No. 5`, `C. S. Lewis`.
    let ordinal = digits && letters <= 2;
    let numbered = letters <= 4 && opening(next).is_some_and(char::is_numeric) && !digits;
    let initial = letters == 1;
    let short_form = ABBREVIATIONS.contains(&word.as_str());
    if clock && opening(next).is_some_and(char::is_uppercase) {
        return Some(Kind::Sentence);
    }
    let never = lower || dotted || ordinal || numbered || initial || short_form;
    (!never && letters > 0).then_some(Kind::Sentence)
}

fn word(core: &[Spoken], next: &[Spoken]) -> Option<Kind> {
    let digits = core.iter().any(|s| s.ch.is_numeric());
    let letters = core.iter().filter(|s| s.ch.is_alphabetic()).count();
    let sign = |c: char| !c.is_alphabetic() && !OPENERS.contains(&c);
    let next_is_sign = next.first().is_some_and(|s| sign(s.ch));
    let next_is_number = opening(next).is_some_and(char::is_numeric);
    match letters {
        _ if digits || next_is_sign || next_is_number => None,
        0 => None,
        1..=SHORT_WORD => Some(Kind::Weak),
        _ => Some(Kind::Word),
    }
}

/// `noon.You can`: models leave out the blank between what they said before and after a tool call.
fn is_glued_sentence(text: &[Spoken], at: usize) -> bool {
    let start = token_start(text, at);
    let Some((mark, word)) = text[start..at].split_last() else { return false };
    let rest = text[at..].split(|s| is_blank(s.ch)).next().unwrap_or_default();
    let plain = |s: &Spoken| s.ch.is_alphabetic() || matches!(s.ch, '\'' | '’' | '-');
    matches!(mark.ch, '.' | '!' | '?')
        && word.len() > 1
        && word.iter().all(plain)
        && word[1..].iter().all(|s| !s.ch.is_uppercase())
        && rest.first().is_some_and(|s| s.ch.is_uppercase())
        && rest.get(1).map_or(at + rest.len() < text.len(), |s| s.ch.is_lowercase())
        && rest.iter().take_while(|s| plain(s)).count() + 1 >= rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(text: &str) -> Vec<Spoken> {
        text.chars().enumerate().map(|(i, c)| Spoken::at(c, i as u32)).collect()
    }

    /// The text with a sign at each place: `|` sentence, `/` clause, `·` word, `~` weak.
    fn places(text: &str) -> String {
        let text = spoken(text);
        let mut out = String::new();
        for at in 0..=text.len() {
            let place = if at == 0 { None } else { kind(&text, at) };
            out.push_str(match place {
                Some(Kind::Sentence) => "|",
                Some(Kind::Clause) => "/",
                Some(Kind::Word) => "·",
                Some(Kind::Weak) => "~",
                None => "",
            });
            out.extend(text.get(at).map(|s| s.ch));
        }
        out
    }

    #[test]
    fn places_are_told_by_the_words_next_to_them() {
        for marked in [
            "Hello· there.| How~ are~ you?| Fine!|",
            "the~ old~ garden· of~ my~",
            "“Stop.”| Then· she~ left.| “Really?”/ he~ asked.|",
            "Well.../ I~ think…/ maybe·",
            "Yes;/ no:/ maybe,/ perhaps!| Why?|",
            "quiet —/ a~ sight·",
            "three· things:/\nflour/\nwater|\n\nThen· mix.|",
            "that· up.|Then· stop·",
            "at 7 p.m.| She~",
        ] {
            let plain: String = marked.chars().filter(|c| !"|/·~".contains(*c)).collect();
            assert_eq!(places(&plain), marked);
        }
    }

    #[test]
    fn there_is_no_place_inside_abbreviations_numbers_and_dates() {
        for whole in [
            "Dr. Okafor",
            "U.S. Senate",
            "7 a.m. on",
            "i.e. before",
            "C. S. Lewis",
            "No. 5",
            "Prof. Lind",
            "3. Mai",
            "June 12, 2024",
            "12 June",
            "1 000 000",
            "approx. ten",
            "2 * 3",
            "vs. Rome",
            "z.B. Brot",
            "5 km",
            "$3.50 each",
            "test.user@example.com",
            "https://docs.example.com/a?b=1",
            "2:45",
            "$1,234.56",
            "3.14",
            "A.B.C",
            "file.Name.x",
        ] {
            let text = spoken(whole);
            for at in 1..text.len() {
                assert_eq!(kind(&text, at), None, "{whole:?} at {at}");
            }
        }
    }

    #[test]
    fn clusters_are_not_torn_apart() {
        let family = spoken("\u{1f468}\u{200d}\u{1f469} e\u{301} \u{1f1eb}\u{1f1f7}");
        let inside: Vec<usize> =
            (1..family.len()).filter(|&at| is_inside_cluster(&family, at)).collect();
        assert_eq!(inside, [1, 2, 5, 8]);
    }
}
