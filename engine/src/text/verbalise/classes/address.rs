//! Addresses and file names: `https://example.com/help`, test.user@example.com, report.pdf, /usr/bin.

use super::{Reading, capitals};
use crate::text::verbalise::scan::{Scan, is_gap};
use crate::text::verbalise::speech::Speech;

/// Last parts of a host's name, beside those of two letters.
const DOMAINS: &[&str] = &[
    "com", "org", "net", "edu", "gov", "mil", "int", "info", "biz", "app", "dev", "ai", "io",
    "xyz", "shop", "blog", "news", "tech", "cloud", "online", "store", "example", "test", "local",
];

/// Last parts of a file's name.
const FILES: &[&str] = &[
    "pdf", "txt", "md", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "csv", "json", "xml", "yaml",
    "yml", "toml", "html", "htm", "css", "js", "ts", "py", "rs", "go", "java", "c", "cpp", "h",
    "sh", "exe", "zip", "tar", "gz", "png", "jpg", "jpeg", "gif", "svg", "webp", "mp3", "mp4",
    "wav", "ogg", "opus", "mov", "avi", "log", "ini", "cfg", "conf", "sql", "db", "env", "lock",
    "iso",
];

/// Two letters that end a host's name and nothing else in a text without its blank.
const COUNTRIES: &[&str] = &[
    "us", "uk", "de", "fr", "es", "it", "nl", "pt", "br", "eu", "ch", "at", "be", "ca", "au", "jp",
    "cn", "in", "mx", "ar", "ru", "pl", "se", "no", "dk", "fi", "ie", "nz", "za", "co", "me", "tv",
    "ly", "gg", "fm", "to",
];

/// A run without blanks that is an address or the name of a file.
pub(super) fn read<'a>(scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    if speech.words().dot.is_empty() || !is_promising(scan) {
        return None;
    }
    let mut end = scan;
    let run = end.eat_while(usize::MAX, |c| {
        !is_gap(c) && !c.is_whitespace() && !"<>\"“”«»{}|\\^`".contains(c)
    });
    let text = trimmed(run);
    let kind = kind(text).or_else(|| lone(scan, text))?;
    let end = scan.skip(text.len());
    let whole = kind == Kind::Url && fills_line(scan, text);
    let text: String = text.iter().collect();
    Some((end, say(&text, kind, whole, speech)))
}

/// Whether the token starts a run and goes on behind its first word with a sign that addresses have.
fn is_promising(scan: Scan<'_>) -> bool {
    let starts = |c: char| c.is_whitespace() || "([{<\"'“‘«¿¡,;:=>|*_–—".contains(c);
    if !scan.before().is_none_or(starts) {
        return false;
    }
    if matches!(scan.peek(), Some('/' | '~' | '.')) {
        let rooted = scan.at(1).is_some_and(|c| c.is_alphabetic() || c == '/' || c == '.');
        return rooted && scan.at(2).is_some_and(|c| !is_gap(c));
    }
    let mut word = scan;
    word.eat_while(usize::MAX, |c| c.is_alphanumeric() || matches!(c, '-' | '_' | '+' | '%'));
    match word.peek() {
        Some('@') => true,
        Some(':') => word.at(1) == Some('/'),
        Some('.') => word.at(1).is_some_and(|c| c.is_alphanumeric()),
        Some('/') => word.at(1).is_some_and(|c| c.is_alphanumeric() || c == '.'),
        _ => false,
    }
}

/// Marks at the end belong to the sentence.
fn trimmed(run: &[char]) -> &[char] {
    let mut end = run.len();
    while end > 0 {
        let c = run[end - 1];
        let open = |open| run[..end].contains(&open);
        let keep = match c {
            ')' => open('('),
            ']' => open('['),
            _ => !".,;:!?'’*_…–—".contains(c),
        };
        if keep {
            break;
        }
        end -= 1;
    }
    &run[..end]
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Url,
    Mail,
    File,
}

fn kind(text: &[char]) -> Option<Kind> {
    let text: String = text.iter().collect::<String>().to_lowercase();
    if text.contains("://") || text.starts_with("www.") || text.starts_with("mailto:") {
        return Some(Kind::Url);
    }
    if let Some((name, host)) = text.split_once('@') {
        let valid =
            !name.is_empty() && host.contains('.') && !host.contains('@') && !host.ends_with('.');
        return valid.then_some(Kind::Mail);
    }
    let strokes = text.matches('/').count();
    if text.starts_with(['/', '~', '.']) {
        let plain = |c: char| c.is_alphanumeric() || "/._-~".contains(c);
        let rooted = text.starts_with('/') || text.contains("./") || text.starts_with("~/");
        return (rooted
            && strokes >= 2 - usize::from(!text.starts_with('/'))
            && text.chars().all(plain))
        .then_some(Kind::File);
    }
    let (host, path) = text.split_once('/').unwrap_or((&text, ""));
    let host = host.split_once(':').map_or(host, |(host, _)| host);
    let labels: Vec<&str> = host.split('.').collect();
    let last = labels.last().copied().unwrap_or_default();
    let plain = |label: &&str| {
        !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
    };
    let words = labels.len() >= 2
        && labels.iter().all(plain)
        && labels.iter().any(|l| l.chars().any(char::is_alphabetic));
    let domain =
        DOMAINS.contains(&last) || (COUNTRIES.contains(&last) && labels[0].chars().count() > 1);
    if words && domain {
        return Some(Kind::Url);
    }
    let file = FILES.contains(&last) && path.is_empty() && labels[0].chars().count() > 1;
    (words && file).then_some(Kind::File)
}

/// A line with nothing but names and points, whatever the last of them is.
fn lone(scan: Scan<'_>, text: &[char]) -> Option<Kind> {
    let labels = text.split(|&c| c == '.');
    let name = |label: &[char]| label.len() > 1 && label.iter().all(char::is_ascii_lowercase);
    let address = text.contains(&'.') && labels.into_iter().all(name);
    (address && fills_line(scan, text)).then_some(Kind::Url)
}

/// Whether nothing else stands in the line.
fn fills_line(scan: Scan<'_>, text: &[char]) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| c == '\n');
    edge(scan.before()) && edge(scan.skip(text.len()).peek())
}

/// `whole`: it is told from its scheme to its last stroke, as one does who dictates it; in a sentence nobody does.
fn say(text: &str, kind: Kind, whole: bool, speech: &Speech) -> String {
    let (scheme, text) = match text.split_once("://") {
        Some((scheme, rest)) if scheme.to_lowercase().starts_with("http") => (Some(scheme), rest),
        _ => (None, text),
    };
    let whole = scheme.filter(|_| whole);
    let text = if kind == Kind::Url && whole.is_none() { text.trim_end_matches('/') } else { text };
    let words = speech.words();
    let scheme = |s: &str| {
        format!("{} {} {slash} {slash}", speech.spell(s), words.colon, slash = words.stroke)
    };
    let mut said: Vec<String> = whole.map(scheme).into_iter().collect();
    let mut run = String::new();
    let chars: Vec<char> = text.chars().collect();
    for (i, &c) in chars.iter().enumerate() {
        let turns = run.chars().last().is_some_and(|last| {
            last.is_ascii_digit() != c.is_ascii_digit() || (last.is_lowercase() && c.is_uppercase())
        });
        if c.is_alphanumeric() {
            if turns {
                said.push(part(&std::mem::take(&mut run), kind, speech));
            }
            run.push(c);
            continue;
        }
        if !run.is_empty() {
            said.push(part(&std::mem::take(&mut run), kind, speech));
        }
        let last = i + 1 == chars.len() && whole.is_none();
        said.extend(sign(c, last, speech).map(str::to_owned));
    }
    if !run.is_empty() {
        said.push(part(&run, kind, speech));
    }
    said.join(" ")
}

pub(super) fn sign(c: char, last: bool, speech: &Speech) -> Option<&'static str> {
    let words = speech.words();
    let word = match c {
        '.' => words.dot,
        '@' => words.at,
        '/' if last => "",
        '/' => words.stroke,
        '-' => words.dash,
        '_' => words.underscore,
        ':' => words.colon,
        '#' => words.hash,
        '=' => words.equals,
        '?' => words.question_mark,
        '!' => words.exclamation_mark,
        '&' => words.ampersand,
        '~' => words.tilde,
        '%' => words.percent,
        '+' => words.plus,
        _ => "",
    };
    Some(word).filter(|w| !w.is_empty())
}

/// A part between two signs: words stay, letters without a vowel and known ones are spelled, digits are told.
fn part(text: &str, kind: Kind, speech: &Speech) -> String {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return match text.parse() {
            Ok(n) if kind == Kind::File && text.len() <= 2 && !text.starts_with('0') => {
                speech.count(n)
            }
            _ if text.len() == 4 => speech.name_digits(text),
            _ => speech.digits(text),
        };
    }
    let upper = text.to_uppercase();
    let vowel = upper.contains(['A', 'E', 'I', 'O', 'U', 'Y']);
    let known = speech.language().initialisms.contains(&upper.as_str());
    let count = text.chars().count();
    if capitals::is_acronym(&upper, speech) || ["com", "org", "net", "mil"].contains(&text) {
        return text.to_owned();
    }
    if text == "jpg" {
        return "jpeg".to_owned();
    }
    let country = count == 2
        && COUNTRIES.contains(&text)
        && !speech.language().small_words.contains(&text)
        && !matches!(text, "me" | "to" | "at" | "in" | "it" | "no" | "be" | "co" | "us");
    let spelled = count == 1 || known || country || (!vowel && count <= 4);
    if spelled { speech.spell(text) } else { text.to_owned() }
}
