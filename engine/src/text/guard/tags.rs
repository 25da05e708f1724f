//! Tags (SSML, HTML, XML), model control words (`<|im_end|>`), autolinks and character entities.

use super::skip::Skip;
use super::{Look, Seen, Verdict};
use crate::text::spoken::{Mark, is_unheard, is_wide_blank};

/// Tags inside a word or phrase. All others keep the words on both sides apart.
const INLINE: [&str; 24] = [
    "a", "abbr", "b", "cite", "code", "del", "em", "emphasis", "font", "i", "ins", "kbd", "lang",
    "mark", "phoneme", "prosody", "say-as", "small", "span", "strong", "sub", "sup", "u", "w",
];

/// Names that are never words behind a `<`: their tag is dropped even when its end is long in coming.
const CERTAIN: [&str; 14] = [
    "audio", "br", "break", "div", "emphasis", "lang", "phoneme", "prosody", "say-as", "span",
    "speak", "strong", "think", "voice",
];

/// Tags of pages and of plain SSML: their words are spoken, and nothing else was asked for.
const PLAIN: [&str; 51] = [
    "",
    "a",
    "abbr",
    "b",
    "blockquote",
    "body",
    "br",
    "center",
    "cite",
    "code",
    "del",
    "details",
    "div",
    "em",
    "font",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "html",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "paragraph",
    "pre",
    "s",
    "sentence",
    "small",
    "span",
    "speak",
    "strong",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "think",
    "tr",
    "u",
    "ul",
];

/// What `say-as` may ask for that the rules find by themselves.
const FOUND: [&str; 8] = ["date", "currency", "money", "unit", "measure", "address", "url", "name"];

/// Longest name of an entity: `&ThickSpace;` and the like are left alone.
const ENTITY_CHARS: usize = 8;

/// `<`: a tag when it has the form of one; else text.
pub(super) fn angle(look: &Look<'_>) -> Verdict {
    match look.at(1) {
        Seen::Unknown => return Verdict::Wait(&[]),
        Seen::Char(c) if c.is_ascii_alphabetic() || "/!?|".contains(c) => {}
        Seen::Char('<') => return passed_through(look),
        _ => return Verdict::Keep(1),
    }
    if look.at(1) == Seen::Char('!') {
        match (look.at(2), look.at(3)) {
            (Seen::Char('-'), Seen::Char('-')) => {
                return Verdict::Skip(4, Skip::comment(look.options.skip_chars));
            }
            (Seen::Unknown, _) | (Seen::Char('-'), Seen::Unknown) => return Verdict::Wait(&[]),
            _ => {}
        }
    }
    let mut quoted = false;
    for i in 1.. {
        match look.at(i) {
            Seen::Unknown => return Verdict::Wait(&['<', '>']),
            Seen::End => return unfinished(look, i),
            Seen::Char('"') => quoted = !quoted,
            Seen::Char('<') if !quoted => return Verdict::Keep(1),
            Seen::Char('>') if !quoted => return finished(look, i),
            Seen::Char(_) => {}
        }
    }
    Verdict::Keep(1)
}

/// `<<…>>` is left as it is, whatever stands in it.
fn passed_through(look: &Look<'_>) -> Verdict {
    for i in 2.. {
        match look.at(i) {
            Seen::Unknown => return Verdict::Wait(&['>', '\n']),
            Seen::Char('>') if look.at(i + 1) == Seen::Char('>') => return Verdict::Keep(i + 2),
            Seen::Char('>') if look.at(i + 1) == Seen::Unknown => return Verdict::Wait(&[]),
            Seen::End | Seen::Char('\n') => return Verdict::Keep(1),
            Seen::Char(_) => {}
        }
    }
    Verdict::Keep(1)
}

fn finished(look: &Look<'_>, close: usize) -> Verdict {
    let inner = look.text(1..close);
    if let Some(word) = inner.strip_prefix('|') {
        return if word.ends_with('|') { Verdict::Gap(close + 1) } else { Verdict::Keep(1) };
    }
    let address = inner.contains("://") || inner.contains('@');
    if address && !inner.contains(char::is_whitespace) {
        return Verdict::Inner(close + 1);
    }
    if let Some(verdict) = obeyed(look, &inner, close) {
        return verdict;
    }
    let Some(name) = tag_name(&inner) else { return Verdict::Keep(1) };
    let apart = !INLINE.contains(&name.as_str());
    if look.options.ssml && !inner.starts_with('/') {
        if name == "break" && is_heard(&inner) {
            return Verdict::Pause(close + 1);
        }
        if let Some(what) = ignored(&inner, &name) {
            return Verdict::Ignored(close + 1, what, apart);
        }
    }
    if apart { Verdict::Gap(close + 1) } else { Verdict::Drop(close + 1) }
}

/// Whether a `break` asks for a pause, and not for none.
fn is_heard(inner: &str) -> bool {
    let none = matches!(attribute(inner, "strength"), Some("none" | "x-weak"));
    let time = attribute(inner, "time").unwrap_or("1");
    !none && time.contains(|c: char| ('1'..='9').contains(&c))
}

/// What of a tag is not obeyed, if a listener would miss it.
fn ignored(inner: &str, name: &str) -> Option<String> {
    match name {
        "break" | "sub" | "spell" => None,
        "say-as" => {
            let asked = attribute(inner, "interpret-as")?;
            let known = mark(inner, name).is_some() || FOUND.contains(&asked);
            (!known).then(|| format!("say-as {asked}"))
        }
        _ => (!PLAIN.contains(&name)).then(|| name.to_owned()),
    }
}

/// Tags whose content is said in another way: it is told as soon as their end is in sight.
fn obeyed(look: &Look<'_>, inner: &str, close: usize) -> Option<Verdict> {
    let name = tag_name(inner)?;
    let known = look.options.ssml && ["sub", "say-as", "spell"].contains(&name.as_str());
    if !known || inner.starts_with('/') || inner.ends_with('/') {
        return None;
    }
    let end: Vec<char> = format!("</{name}>").chars().collect();
    let mut matched = 0;
    for i in close + 1.. {
        match look.at(i) {
            Seen::Unknown => return Some(Verdict::Wait(&['>'])),
            Seen::End => return None,
            Seen::Char(c) if c.to_ascii_lowercase() == end[matched] => matched += 1,
            Seen::Char(c) => matched = usize::from(c == end[0]),
        }
        if matched == end.len() {
            let spoken = i + 1 - end.len() - (close + 1);
            return said(look, inner, &name, [close + 1, spoken, end.len()]);
        }
    }
    None
}

fn said(look: &Look<'_>, inner: &str, name: &str, parts: [usize; 3]) -> Option<Verdict> {
    if name == "sub" {
        let alias = attribute(inner, "alias")?;
        return Some(Verdict::Alias(parts.iter().sum(), alias.to_owned()));
    }
    let mark = mark(inner, name)?;
    look.options.verbalize.then_some(Verdict::Marked(mark, parts))
}

/// How the text behind `say-as` or `spell` is said; none where the rules find it without being told.
fn mark(inner: &str, name: &str) -> Option<Mark> {
    Some(match attribute(inner, "interpret-as") {
        None if name == "spell" => Mark::Characters,
        Some("characters" | "character" | "spell-out" | "verbatim" | "letters") => Mark::Characters,
        Some("digits") => Mark::Digits,
        Some("telephone" | "phone") => Mark::Telephone,
        Some("ordinal") => Mark::Ordinal,
        Some("cardinal" | "number") => Mark::Cardinal,
        Some("fraction") => Mark::Fraction,
        Some("time") => Mark::Time,
        Some("date") => Mark::Date(date_order(attribute(inner, "format")?)?),
        _ => return None,
    })
}

/// Which of [`Mark::DATES`] a format is: `dmy`, `dd/mm/yyyy`, `yyyymmdd`.
fn date_order(format: &str) -> Option<u8> {
    let mut order = String::new();
    for c in format.chars().map(|c| c.to_ascii_lowercase()) {
        if "dmy".contains(c) && !order.ends_with(c) {
            order.push(c);
        }
    }
    Mark::DATES.iter().position(|&known| known == order).map(|at| at as u8)
}

/// The value of an attribute that stands in quotes.
fn attribute<'a>(inner: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = inner.split_once(&format!(" {name}="))?;
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Some(rest[1..].split_once(quote)?.0)
}

/// The end of the tag is not in sight: what can only be a tag is dropped, and so is its rest when it comes.
fn unfinished(look: &Look<'_>, held: usize) -> Verdict {
    let inner = look.text(1..held);
    let name = name_of(inner.trim_start_matches('/'));
    let certain = inner.starts_with(['/', '!', '?', '|'])
        || inner.contains('=')
        || CERTAIN.contains(&name.to_ascii_lowercase().as_str());
    if certain { Verdict::Skip(held, Skip::tag(look.options.hold_chars)) } else { Verdict::Keep(1) }
}

fn name_of(inner: &str) -> &str {
    let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.:".contains(c));
    &inner[..end.unwrap_or(inner.len())]
}

/// Name of a tag, in lower case, if what stands between the angle brackets has the form of one:
/// `name`, `/name`, `name a="1" b='2' c=3`, each with or without a slash at the end; or a declaration.
fn tag_name(inner: &str) -> Option<String> {
    if inner.starts_with(['!', '?']) {
        return Some(String::new());
    }
    let inner = inner.strip_prefix('/').unwrap_or(inner).trim_end();
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    let name = name_of(inner);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let mut rest = &inner[name.len()..];
    while !rest.trim_start().is_empty() {
        let attribute = rest.trim_start();
        if attribute.len() == rest.len() {
            return None;
        }
        let value = attribute.split_once('=')?.1.trim_start();
        let key = name_of(attribute);
        if key.is_empty() || !attribute[key.len()..].trim_start().starts_with('=') {
            return None;
        }
        rest = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].split_once(quote)?.1,
            _ => &value[value.find(char::is_whitespace).unwrap_or(value.len())..],
        };
    }
    Some(name.to_ascii_lowercase())
}

/// `&`: a character entity is read as its character.
pub(super) fn entity(look: &Look<'_>) -> Verdict {
    for i in 1..=ENTITY_CHARS + 1 {
        match look.at(i) {
            Seen::Unknown => return Verdict::Wait(&[]),
            Seen::Char(';') => return decoded(&look.text(1..i), i + 1),
            Seen::Char(c) if c.is_ascii_alphanumeric() || c == '#' => {}
            _ => break,
        }
    }
    Verdict::Keep(1)
}

fn decoded(name: &str, n: usize) -> Verdict {
    let number = name.strip_prefix('#').and_then(|digits| match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    });
    let ch = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        "hellip" => Some('…'),
        "mdash" => Some('—'),
        "ndash" => Some('–'),
        "euro" => Some('€'),
        _ => number.and_then(char::from_u32),
    };
    match ch {
        Some(c) if is_unheard(c) => Verdict::Drop(n),
        Some(c) if is_wide_blank(c) => Verdict::Say(' ', n),
        Some(c) => Verdict::Say(c, n),
        None => Verdict::Keep(1),
    }
}
