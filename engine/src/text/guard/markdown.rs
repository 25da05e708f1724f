//! Markdown: which signs are markup is told from the characters next to them, so that almost nothing has to wait.
//!
//! Signs between two words (`2 * 3`), inside a name (`my_file`) or before a number (`#1`) are text.

use super::skip::Skip;
use super::{Look, Seen, Verdict};
use crate::text::spoken::is_line_break;

pub(super) fn verdict(look: &Look<'_>) -> Verdict {
    let Seen::Char(front) = look.at(0) else { return Verdict::Keep(1) };
    let line = look.line;
    match front {
        '`' | '*' | '_' | '~' | '#' => run(look, front),
        '-' | '=' if line.start => run(look, front),
        '+' | '•' | '>' if line.start => line_sign(look, front),
        '|' if line.start || line.table => cell_border(look),
        ' ' | '\t' if line.table => cell_padding(look),
        '[' => opening_bracket(look),
        ']' => closing_bracket(look),
        '!' if line.start || look.before.is_some_and(char::is_whitespace) => image(look),
        '\\' => escape(look),
        _ => Verdict::Keep(1),
    }
}

/// Runs of one sign: rules, bullets, headings, emphasis, code.
fn run(look: &Look<'_>, sign: char) -> Verdict {
    let n = look.run();
    let after = match look.at(n) {
        Seen::Unknown => return Verdict::Wait(&[]),
        Seen::End => None,
        Seen::Char(c) => Some(c),
    };
    let blank_after = after.is_none_or(char::is_whitespace);
    let blank_before = look.before.is_none_or(char::is_whitespace);
    if look.line.start {
        let rule = n >= 3 && "-=*_".contains(sign) && blank_after;
        let bullet = n == 1 && "-*".contains(sign) && blank_after;
        let heading = sign == '#' && (n >= 2 || blank_after);
        if rule || bullet || heading {
            return Verdict::Drop(n);
        }
    }
    let both = |test: fn(char) -> bool| look.before.is_some_and(test) && after.is_some_and(test);
    let lone = n == 1 && blank_before && blank_after;
    let markup = match sign {
        '`' if n >= 3 => return Verdict::Skip(n, Skip::fence(sign, n, look.options.skip_chars)),
        '~' if n >= 3 && look.line.start => {
            return Verdict::Skip(n, Skip::fence(sign, n, look.options.skip_chars));
        }
        '`' => true,
        '~' => n == 2,
        '#' => n >= 2 && blank_before,
        '_' => !lone && !both(char::is_alphanumeric),
        '*' if n >= 2 => !both(char::is_numeric),
        '*' => !lone && !both(char::is_alphanumeric),
        _ => false,
    };
    if markup { Verdict::Drop(n) } else { Verdict::Keep(n) }
}

/// Bullets and quotation signs at the start of a line.
fn line_sign(look: &Look<'_>, sign: char) -> Verdict {
    match look.at(1) {
        Seen::Unknown => Verdict::Wait(&[]),
        Seen::Char(c) if sign == '>' && (c.is_numeric() || c == '=') => Verdict::Keep(1),
        Seen::Char(c) if sign != '>' && !c.is_whitespace() => Verdict::Keep(1),
        _ => Verdict::Drop(1),
    }
}

/// `|` in a table row: nothing at its ends, a comma between cells; the row of dashes is dropped whole.
fn cell_border(look: &Look<'_>) -> Verdict {
    let ruling = |c: char| matches!(c, '|' | '-' | ':' | ' ' | '\t');
    let filler = |c: char| if look.line.start { ruling(c) } else { c == ' ' || c == '\t' };
    for i in 1.. {
        match look.at(i) {
            Seen::Unknown => return Verdict::Wait(&[]),
            Seen::Char(c) if filler(c) => {}
            Seen::Char(c) if !is_line_break(c) && !look.line.start => return Verdict::Say(',', 1),
            Seen::Char(c) if !is_line_break(c) => return Verdict::Drop(1),
            _ => return Verdict::Drop(i),
        }
    }
    Verdict::Keep(1)
}

/// Blanks that fill up a cell before its border.
fn cell_padding(look: &Look<'_>) -> Verdict {
    for i in 1.. {
        match look.at(i) {
            Seen::Unknown => return Verdict::Wait(&[]),
            Seen::Char(' ' | '\t') => {}
            Seen::Char('|') => return Verdict::Drop(i),
            _ => return Verdict::Keep(i),
        }
    }
    Verdict::Keep(1)
}

/// `[`: markup when its bracket closes and a link target follows, or in a footnote sign or task box.
fn opening_bracket(look: &Look<'_>) -> Verdict {
    let mut depth = 1;
    for i in 1.. {
        match look.at(i) {
            Seen::Unknown => return Verdict::Wait(&['[', ']', '\n']),
            Seen::End => return Verdict::Keep(1),
            Seen::Char('[') => depth += 1,
            Seen::Char(']') => depth -= 1,
            Seen::Char(c) if is_line_break(c) => return Verdict::Keep(1),
            Seen::Char(_) => {}
        }
        if depth == 0 {
            return closed_bracket(look, i);
        }
    }
    Verdict::Keep(1)
}

fn closed_bracket(look: &Look<'_>, close: usize) -> Verdict {
    let footnote = look.at(1) == Seen::Char('^');
    let task = look.line.start && close == 2 && matches!(look.at(1), Seen::Char(' ' | 'x' | 'X'));
    match look.at(close + 1) {
        _ if footnote || task => Verdict::Drop(close + 1),
        Seen::Unknown => Verdict::Wait(&[]),
        Seen::Char('(') => Verdict::Drop(1),
        _ => Verdict::Keep(1),
    }
}

/// `]`: a target in parentheses behind it is not spoken, also when its `[` had to be let go before.
fn closing_bracket(look: &Look<'_>) -> Verdict {
    match look.at(1) {
        Seen::Unknown => Verdict::Wait(&[]),
        Seen::Char('(') => Verdict::Skip(2, Skip::target(look.options.skip_chars)),
        _ => Verdict::Keep(1),
    }
}

/// `!` before a link that shows an image; its text is read as any link's.
fn image(look: &Look<'_>) -> Verdict {
    match look.at(1) {
        Seen::Unknown => Verdict::Wait(&[]),
        Seen::Char('[') => Verdict::Drop(1),
        _ => Verdict::Keep(1),
    }
}

/// A backslash makes the sign behind it plain text, and a line break at the end of a line.
fn escape(look: &Look<'_>) -> Verdict {
    match look.at(1) {
        Seen::Unknown => Verdict::Wait(&[]),
        Seen::Char(c) if c.is_ascii_punctuation() => Verdict::Say(c, 2),
        Seen::Char(c) if is_line_break(c) => Verdict::Drop(1),
        _ => Verdict::Keep(1),
    }
}
