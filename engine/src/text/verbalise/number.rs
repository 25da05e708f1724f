//! Numbers as they are written: groups, decimal mark, sign.

use super::locale::Marks;
use super::scan::Scan;

/// A number, digit by digit: nothing is rounded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Number {
    pub(super) negative: bool,
    /// Digits before the decimal mark, without groups; may be empty (`.5`).
    pub(super) whole: String,
    /// Digits behind it.
    pub(super) fraction: String,
    /// It was written in groups.
    pub(super) grouped: bool,
    /// A point stands before the fraction where the language has a comma: 3.12.
    pub(super) pointed: bool,
}

/// Most digits of a group.
const GROUP: usize = 3;

impl Number {
    /// A number that is already one.
    pub(super) fn of(n: u64) -> Self {
        Self { whole: n.to_string(), ..Self::default() }
    }

    /// What stands before the fraction, unless it is told digit by digit: too long, or with noughts in front.
    pub(super) fn value(&self) -> Option<u64> {
        let padded = self.whole.len() > 1 && self.whole.starts_with('0');
        let n = if self.whole.is_empty() { Some(0) } else { self.whole.parse::<u64>().ok() };
        n.filter(|&n| !padded && n < super::rbnf::LIMIT)
    }

    /// Whether it is whole, with that value.
    pub(super) fn is(&self, n: u64) -> bool {
        self.fraction.is_empty() && self.value() == Some(n)
    }

    /// Reads digits with the groups and the decimal mark of a locale, and steps over them. Where both marks stand the
    /// other way round, the number was written elsewhere and is read so.
    pub(super) fn read(scan: &mut Scan<'_>, marks: Marks) -> Option<Self> {
        let swapped = Marks { decimal: marks.group, group: marks.decimal };
        let (own, own_end) = Self::read_with(*scan, marks)?;
        let again = own.fraction.len() == GROUP && own_end.peek() == Some(',');
        let (number, end) = if marks.group.is_ascii() && own.fraction.is_empty()
            || own.fraction.len() == GROUP
        {
            match Self::read_with(*scan, swapped) {
                Some((other, end)) if other.grouped && !other.fraction.is_empty() => (other, end),
                _ => (own, own_end),
            }
        } else {
            (own, own_end)
        };
        let regrouped = again.then(|| Self::regrouped(*scan, swapped)).flatten();
        let (number, end) = regrouped.unwrap_or((number, end));
        let (number, end) = number.with_other_mark(end, marks);
        *scan = end;
        Some(number)
    }

    /// Two groups or more behind the other mark can be nothing else: 6,492,000 where a comma is the decimal mark.
    fn regrouped(scan: Scan<'_>, swapped: Marks) -> Option<(Self, Scan<'_>)> {
        if swapped.group != ',' {
            return None;
        }
        let (number, end) = Self::read_with(scan, swapped)?;
        let groups = end.since(scan).iter().filter(|&&c| c == ',').count();
        (groups >= 2).then_some((number, end))
    }

    /// The fraction behind a mark that is no decimal mark here but can be nothing else: 3.12 where a comma stands there,
    /// 3,5 where Switzerland has a point.
    fn with_other_mark<'a>(self, end: Scan<'a>, marks: Marks) -> (Self, Scan<'a>) {
        let other = match marks {
            Marks { decimal: ',', group: '.' } => '.',
            Marks { group: '’', .. } => ',',
            _ => return (self, end),
        };
        let mut behind = end;
        if (self.grouped && other == marks.group) || !self.fraction.is_empty() || !behind.eat(other)
        {
            return (self, end);
        }
        let digits = behind.digits();
        let goes_on = matches!(behind.peek(), Some('.' | ',' | ':' | '/'))
            && behind.at(1).is_some_and(|c| c.is_ascii_digit());
        if digits.is_empty() || digits.len() == GROUP || goes_on {
            return (self, end);
        }
        let fraction = digits.iter().collect();
        (Self { fraction, pointed: other == '.', ..self }, behind)
    }

    fn read_with(start: Scan<'_>, marks: Marks) -> Option<(Self, Scan<'_>)> {
        let mut scan = start;
        let first = scan.digits();
        let mut whole: String = first.iter().collect();
        let mut grouped = false;
        if (1..=GROUP).contains(&first.len()) && first[0] != '0' {
            let mut sign = None;
            while let Some((c, group, end)) = group(scan, marks) {
                if *sign.get_or_insert(c) != c {
                    break;
                }
                whole.extend(group);
                scan = end;
                grouped = true;
            }
        }
        let mut fraction = String::new();
        let mut behind = scan;
        if behind.eat(marks.decimal) {
            let digits = behind.digits();
            if !digits.is_empty() {
                fraction = digits.iter().collect();
                scan = behind;
            }
        }
        let any = !whole.is_empty() || !fraction.is_empty();
        any.then_some((Self { whole, fraction, grouped, ..Self::default() }, scan))
    }
}

/// A mark or blank with exactly three digits behind it.
fn group<'a>(mut scan: Scan<'a>, marks: Marks) -> Option<(char, &'a [char], Scan<'a>)> {
    let apostrophe = |c| marks.group == '’' && c == '\'';
    let blank = |c| marks.group != ',' && super::scan::is_gap(c);
    let mark = scan.eat_if(|c| c == marks.group || apostrophe(c) || blank(c) || c == '\u{202f}')?;
    let digits = scan.digits();
    let mark = if super::scan::is_gap(mark) { ' ' } else { mark };
    (digits.len() == GROUP).then_some((mark, digits, scan))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::verbalise::locale::Locale;
    use crate::text::verbalise::scan::Look;

    fn read(tag: &str, text: &str) -> (String, usize) {
        let chars: Vec<char> = text.chars().collect();
        let look = Look::new(&chars, 0, true);
        let mut scan = look.scan();
        let marks = tag.parse::<Locale>().unwrap().marks();
        let Some(n) = Number::read(&mut scan, marks) else { return (String::new(), 0) };
        let point = if n.fraction.is_empty() { "" } else { "." };
        (format!("{}{point}{}", n.whole, n.fraction), scan.taken())
    }

    #[test]
    fn marks_are_those_of_the_locale() {
        for (tag, text, number, chars) in [
            ("en", "1,234.50", "1234.50", 8),
            ("en", "1,234,567", "1234567", 9),
            ("en", "1,23", "1", 1),
            ("en", "12,3456", "12", 2),
            ("en", ".5", ".5", 2),
            ("en", "3.", "3", 1),
            ("en", "1.234,50", "1234.50", 8),
            ("en", "3.142", "3.142", 5),
            ("de", "1.234,50", "1234.50", 8),
            ("de", "1 234 567,8", "1234567.8", 11),
            ("de", "1,234.50", "1234.50", 8),
            ("de", "3,142", "3.142", 5),
            ("de", "3.14", "3.14", 4),
            ("de", "3.142", "3142", 5),
            ("de", "3.1.2", "3", 1),
            ("fr", "12\u{202f}345", "12345", 6),
            ("de-CH", "1’234.5", "1234.5", 7),
            ("de-CH", "1'234.5", "1234.5", 7),
            ("en", "2024 150", "2024", 4),
            ("fr", "2024 150", "2024", 4),
            ("de", "6,492,000", "6492000", 9),
            ("de", "6,492,00", "6.492", 5),
            ("en", "x", "", 0),
        ] {
            assert_eq!(read(tag, text), (number.to_owned(), chars), "{tag} {text}");
        }
    }
}
