//! Signs that are read, between words or alone; and what is passed through.

use super::Reading;
use super::fraction::{say_fraction, vulgar};
use crate::text::spoken::{is_emoji, is_emoji_part};
use crate::text::verbalise::scan::{Scan, is_gap};
use crate::text::verbalise::speech::Speech;

/// `<<Siân>>` is spoken as it stands, without its brackets.
pub(super) fn passed_through<'a>(mut scan: Scan<'a>, _: &Speech) -> Option<Reading<'a>> {
    if !scan.eat_str("<<", false) {
        return None;
    }
    let start = scan;
    loop {
        let mut end = scan;
        if end.eat_str(">>", false) {
            return Some((end, scan.since(start).iter().collect()));
        }
        scan.eat_if(|c| c != '\n')?;
    }
}

/// #MondayMotivation, @handle, #1.
pub(super) fn tagged<'a>(at: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let mut scan = at;
    let leans = scan.before().is_some_and(char::is_alphanumeric);
    let sign = scan.eat_if(|c| c == '@' || (c == '#' && !leans))?;
    let words = speech.words();
    let start = scan;
    let digits: String = scan.digits().iter().collect();
    if sign == '#' && !digits.is_empty() && scan.at_word_end() {
        let said = if digits.len() > 4 {
            speech.digits(&digits)
        } else {
            speech.count(digits.parse().ok()?)
        };
        return Some((scan, format!("{} {said}", words.number)));
    }
    // "Order #AB123", "Apt. #5B": what stands behind is a code.
    let before = at.word_before();
    let label = before.trim_end_matches('.');
    let language = speech.language();
    let openers = [language.digit_openers, language.pair_openers, language.code_openers];
    let opened = openers.iter().any(|openers| openers.contains(&label));
    if sign == '#' && (opened || !digits.is_empty()) && !words.number.is_empty() {
        let mut code = start;
        let run = code.eat_while(usize::MAX, char::is_alphanumeric);
        if run.iter().any(char::is_ascii_digit) {
            return Some((start, words.number.to_owned()));
        }
    }
    while scan.eat_if(|c| c.is_alphanumeric() || c == '_').is_some() {
        // @jane.doe
        let inside = sign == '@' && scan.peek() == Some('.');
        if inside && scan.at(1).is_some_and(|c| c.is_lowercase() || c.is_ascii_digit()) {
            scan = scan.skip(1);
        }
    }
    let name = scan.since(start);
    if name.is_empty() {
        return None;
    }
    let said = humps(name, speech);
    let sign = if sign == '#' { words.hashtag } else { words.at };
    Some((scan, format!("{sign} {said}")))
}

/// The words of a name written in one: small letters before a capital part it, and so do underscores and digits.
fn humps(name: &[char], speech: &Speech) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut start = 0;
    for i in 1..=name.len() {
        let parts = |c: char| c == '_' || c == '.';
        let ends = i == name.len() || parts(name[i]) || parts(name[i - 1]) || {
            let (a, b) = (name[i - 1], name[i]);
            (a.is_lowercase() && b.is_uppercase()) || a.is_ascii_digit() != b.is_ascii_digit()
        };
        if ends {
            if name[start] == '.' {
                words.push(speech.words().dot.to_owned());
            }
            let part: String = name[start..i].iter().filter(|&&c| !parts(c)).collect();
            start = i;
            if part.is_empty() {
                continue;
            }
            let capitals = part.chars().count() <= 3 && part.chars().all(char::is_uppercase);
            words.push(match part.parse::<u64>() {
                Ok(_) => speech.name_digits(&part),
                Err(_) if capitals => speech.spell(&part),
                Err(_) => part,
            });
        }
    }
    words.join(" ")
}

/// Signs of sums and comparisons between two terms: 2 + 2 = 4, x^2, a/b.
pub(super) fn between<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let start = scan;
    let words = speech.words();
    let spaced_before = start.before().is_some_and(is_gap);
    let (before, word) = (term_before(start), |n: usize| start.at(n));
    // A digit, or a sign of a currency.
    let amount = |n: usize| start.at(n).is_some_and(|c| c.is_ascii_digit() || "$€£¥".contains(c));
    let said = match scan.eat_if(|c| "+=<>*/^×·−-~∗∙⋅∕:".contains(c))? {
        '<' if word(1) == Some('=') => (scan.eat('='), words.at_most).1,
        '>' if word(1) == Some('=') => (scan.eat('='), words.at_least).1,
        '=' if word(1) == Some('=') => (scan.eat('='), words.equals).1,
        '+' if word(1) == Some('/') && word(2).is_some_and(super::number::is_minus) => {
            scan = scan.skip(2);
            words.plus_minus
        }
        '-' | '=' if word(1) == Some('>') => (scan.eat('>'), words.to).1,
        '+' if start.before().is_some_and(|c| c.is_alphanumeric() || c == '+')
            || before == Some(Term::Number)
            || (spaced_before && word(1).is_some_and(is_gap)) =>
        {
            words.plus
        }
        '=' => words.equals,
        '<' if amount(1) || (spaced_before && word(1).is_some_and(is_gap)) => words.less_than,
        '>' if amount(1) || (spaced_before && word(1).is_some_and(is_gap)) => words.greater_than,
        '~' if amount(1) => words.about,
        '*' | '∗' | '∙' | '⋅' if before == Some(Term::Number) && digit_behind(scan) => {
            words.times
        }
        '∕' if before == Some(Term::Number) && digit_behind(scan) => words.divided_by,
        // 10 : 2, as it is divided in Europe.
        ':' if before == Some(Term::Number)
            && speech.data.locale.marks().decimal != '.'
            && spaced_before
            && digit_behind(scan)
            && word(1).is_some_and(is_gap) =>
        {
            words.divided_by
        }
        '×' | '·' if before == Some(Term::Number) && digit_behind(scan) => words.by,
        '^' => return power(scan, speech),
        sign @ ('−' | '-')
            if before == Some(Term::Number)
                && digit_behind(scan)
                && (sign == '−'
                    || (spaced_before && word(1).is_some_and(is_gap))
                    || is_summed(scan)) =>
        {
            words.minus
        }
        '/' if before == Some(Term::Number) && spaced_before => words.divided_by,
        '/' if before == Some(Term::Number) && amount(1) => words.over,
        '/' if spaced_before && word(1).is_some_and(is_gap) => words.slash,
        '/' if before == Some(Term::Word) && word(1).is_some_and(char::is_alphabetic) => {
            slash(start, speech)
        }
        // "gen/2026": what is said of a number is a word.
        '/' if before == Some(Term::Word) && amount(1) => words.slash,
        _ => return None,
    };
    (!said.is_empty()).then(|| {
        // "and/or" has its "or".
        let doubled = said == words.or && super::number::lower_case(scan.next_word()) == words.or;
        (scan, if doubled { String::new() } else { said.to_owned() })
    })
}

/// 3 × 4, 5 x 3: "times"; 3 m x 4 m: "by".
pub(in crate::text::verbalise) fn crossed<'a>(
    mut scan: Scan<'a>,
    speech: &Speech,
) -> Option<Reading<'a>> {
    let [last, earlier] = scan.words_before();
    let number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let measured = number(&earlier) && last.chars().count() <= 2;
    let sign = scan.eat_if(|c| matches!(c, '×' | '·' | 'x'))?;
    let apart = sign != 'x' || scan.peek().is_some_and(is_gap);
    let digit = scan.next_visible().is_some_and(|c| c.is_ascii_digit());
    if !(number(&last) || measured) || !digit || !apart {
        return None;
    }
    let words = speech.words();
    Some((scan, if number(&last) { words.times } else { words.by }.to_owned()))
}

#[derive(PartialEq)]
enum Term {
    Number,
    Word,
}

fn term_before(scan: Scan<'_>) -> Option<Term> {
    let before = scan.word_before();
    let last = before.chars().last().or_else(|| scan.before())?;
    if last.is_ascii_digit() || last == ')' || vulgar(last).is_some() {
        Some(Term::Number)
    } else {
        last.is_alphabetic().then_some(Term::Word)
    }
}

fn digit_behind(scan: Scan<'_>) -> bool {
    scan.next_visible().is_some_and(|c| c.is_ascii_digit() || c == '(')
}

/// 5-3=2: an equals sign stands behind the second number.
fn is_summed(mut scan: Scan<'_>) -> bool {
    scan.blanks();
    scan.digits();
    scan.next_visible() == Some('=')
}

/// and/or, he/she.
fn slash(scan: Scan<'_>, speech: &Speech) -> &'static str {
    let next = super::number::lower_case(scan.skip(1).next_word());
    let last = |full: &str| full.to_lowercase().rsplit([' ', '\'']).next() == Some(next.as_str());
    if speech.language().per.iter().any(|(_, full)| last(full)) {
        return speech.words().per;
    }
    let alternatives = speech.language().slash_words.contains(&scan.word_before().as_str());
    if alternatives { speech.words().or } else { speech.words().slash }
}

/// ^2, ^3, ^n.
fn power<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let words = speech.words();
    let negative = scan.eat('-');
    let digits: String = scan.digits().iter().collect();
    let said = match digits.as_str() {
        "2" if !negative => words.square.to_owned(),
        "3" if !negative => words.cubed.to_owned(),
        "" => words.to_the_power.to_owned(),
        _ => {
            let n = digits.parse().map_or_else(|_| speech.digits(&digits), |n| speech.count(n));
            let sign = if negative { format!("{} ", words.minus) } else { String::new() };
            format!("{} {sign}{n}", words.to_the_power)
        }
    };
    (!said.is_empty()).then_some((scan, said))
}

/// Signs with a name of their own, powers and fractions written as one sign, digits of other scripts.
pub(super) fn alone<'a>(mut scan: Scan<'a>, speech: &Speech) -> Option<Reading<'a>> {
    let c = scan.peek()?;
    if let Some((above, below)) = vulgar(c) {
        return say_fraction(scan.skip(1), None, above, below, speech);
    }
    if let Some(digit) = raised(c) {
        let power = !('₀'..='₉').contains(&c)
            && scan.before().is_some_and(|c| c.is_alphanumeric() || c == ')');
        scan = scan.skip(1);
        let mut digits = digit.to_string();
        while let Some(next) = scan.peek().and_then(raised) {
            digits.push_str(&next.to_string());
            scan = scan.skip(1);
        }
        let words = speech.words();
        return Some((
            scan,
            match digits.as_str() {
                "2" if power => words.square.to_owned(),
                "3" if power => words.cubed.to_owned(),
                _ => speech.digits(&digits),
            },
        ));
    }
    if let Some(digit) = digit_of_script(c) {
        let mut value = u64::from(digit);
        scan = scan.skip(1);
        while let Some(next) =
            scan.peek().and_then(digit_of_script).filter(|_| value < 1_000_000_000)
        {
            value = value * 10 + u64::from(next);
            scan = scan.skip(1);
        }
        return Some((scan, speech.count(value)));
    }
    let words = speech.words();
    let leans = scan.before().is_some_and(char::is_alphanumeric);
    if c == '_' && leans && scan.at(1).is_some_and(char::is_alphanumeric) {
        return Some((scan.skip(1), String::new()));
    }
    if c == '.' && scan.at(1).is_some_and(char::is_alphabetic) && !leans && !words.dot.is_empty() {
        return Some((scan.skip(1), words.dot.to_owned()));
    }
    if c == '#' && leans && scan.skip(1).at_word_end() && !words.sharp.is_empty() {
        return Some((scan.skip(1), words.sharp.to_owned()));
    }
    if let Some(face) = emoticon(scan) {
        return Some((face, String::new()));
    }
    if is_emoji(c) {
        return Some(emoji(scan, speech));
    }
    if c == '&' && scan.at(1) == Some('&') {
        scan = scan.skip(1);
    }
    // Forms of one sign.
    let c = match c {
        '≦' => '≤',
        '≧' => '≥',
        c => c,
    };
    let &(_, word) = speech.language().signs.iter().find(|s| s.0 == c)?;
    Some((scan.skip(1), word.to_owned()))
}

/// A pictograph by its name. What is joined to it and the tone of its skin only shape it; one without a name is silent.
fn emoji<'a>(mut scan: Scan<'a>, speech: &Speech) -> Reading<'a> {
    let name = scan.peek().and_then(|c| speech.names().emoji(c)).unwrap_or_default();
    scan = scan.skip(1);
    let tone = |c: char| matches!(c, '\u{1f3fb}'..='\u{1f3ff}');
    while let Some(part) = scan.eat_if(|c| is_emoji_part(c) || tone(c)) {
        if part == '\u{200d}' {
            scan.eat_if(is_emoji);
        }
    }
    (scan, name.to_owned())
}

/// :) and the like, apart from words: a voice does not say them.
fn emoticon(scan: Scan<'_>) -> Option<Scan<'_>> {
    const FACES: [&str; 10] = [":-)", ":)", ";-)", ";)", ":-(", ":(", ":D", ":P", ":-D", "<3"];
    let apart = |c: Option<char>| c.is_none_or(char::is_whitespace);
    if !apart(scan.before()) {
        return None;
    }
    FACES.iter().find_map(|face| {
        let mut end = scan;
        (end.eat_str(face, false) && apart(end.peek())).then_some(end)
    })
}

/// Digits above and below the line, and those in circles.
fn raised(c: char) -> Option<u32> {
    match c {
        '⁰' => Some(0),
        '¹' => Some(1),
        '²' => Some(2),
        '³' => Some(3),
        '⁴'..='⁹' => Some(c as u32 - '⁰' as u32),
        '₀'..='₉' => Some(c as u32 - '₀' as u32),
        '①'..='⑨' => Some(c as u32 - '①' as u32 + 1),
        _ => None,
    }
}

/// Decimal digits of other scripts: each has its ten in a row. Source: Unicode, general category Nd.
fn digit_of_script(c: char) -> Option<u32> {
    const NOUGHTS: [u32; 37] = [
        0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6,
        0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
        0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0,
        0xff10, 0x104a0,
    ];
    let c = c as u32;
    NOUGHTS.iter().map(|&nought| c.wrapping_sub(nought)).find(|&digit| digit < 10)
}
