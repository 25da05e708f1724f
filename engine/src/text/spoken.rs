//! One character on its way to the voice, and what kinds of characters there are.
//!
//! It must never know in which order the stages of the front end run.

/// A character together with the raw text it was made from.
///
/// Offsets count Unicode code points of the client's whole raw text. A composed letter comes from two or more raw
/// characters, a blank may come from a run of them, the final period that nobody wrote from none (`from == to`).
/// Along a text both offsets never decrease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spoken {
    /// The character that is read out.
    pub ch: char,
    /// First raw character it came from.
    pub from: u32,
    /// Behind the last raw character it came from.
    pub to: u32,
}

impl Spoken {
    /// A character that stands in the raw text as it is spoken.
    pub fn at(ch: char, offset: u32) -> Self {
        Self { ch, from: offset, to: offset + 1 }
    }
}

/// Something in a text that is not said as the client may expect; it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What has no effect: the name of a tag, or `say-as` with what it asked for.
    pub what: String,
    /// Where it stands in the raw text, in code points.
    pub from: u32,
    /// Behind it.
    pub to: u32,
}

/// How a marked stretch of text is to be said. Marks travel from guard to verbaliser as private-use characters, which
/// cleaned text does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Sign by sign.
    Characters,
    /// Digit by digit.
    Digits,
    /// As a number that is called.
    Telephone,
    /// As a number of order.
    Ordinal,
    /// As a number.
    Cardinal,
    /// As a part of one.
    Fraction,
    /// As a time of day.
    Time,
    /// As a day whose parts stand in the order of one of [`Mark::DATES`].
    Date(u8),
}

impl Mark {
    const PLAIN: [Self; 7] = [
        Self::Characters,
        Self::Digits,
        Self::Telephone,
        Self::Ordinal,
        Self::Cardinal,
        Self::Fraction,
        Self::Time,
    ];
    /// Orders in which the parts of a day may stand.
    pub(super) const DATES: [&str; 10] =
        ["mdy", "dmy", "ymd", "ydm", "md", "dm", "my", "ym", "m", "y"];
    const FIRST: u32 = 0xe000;
    const FIRST_DATE: u32 = 0xe010;
    /// Ends a marked stretch.
    pub(super) const CLOSING: char = '\u{e00f}';
    /// Where a tag asks for a pause: becomes a comma where no mark stands.
    pub(super) const PAUSE: char = '\u{e030}';

    /// Opens a stretch of this kind.
    pub(super) fn opening(self) -> char {
        let code = match self {
            Self::Date(order) => Self::FIRST_DATE + u32::from(order),
            plain => {
                let at = Self::PLAIN.iter().position(|&mark| mark == plain);
                Self::FIRST + at.unwrap_or_default() as u32
            }
        };
        char::from_u32(code).unwrap_or(Self::CLOSING)
    }

    /// The kind of stretch that a character opens.
    pub(super) fn opened_by(c: char) -> Option<Self> {
        let order = (c as u32).wrapping_sub(Self::FIRST_DATE);
        if (order as usize) < Self::DATES.len() {
            return Some(Self::Date(order as u8));
        }
        Self::PLAIN.get((c as u32).wrapping_sub(Self::FIRST) as usize).copied()
    }
}

/// The marks after which the literal splitter cuts, and that need no final period.
pub(super) const MARKS: [char; 6] = ['.', '!', '?', ';', ':', ','];

/// A line feed, or one of the characters that the sanitizer turns into one.
pub(super) fn is_line_break(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The only blanks that collapse and at which the literal splitter cuts.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

/// Blanks that are stripped from both ends. The published server strips what its language calls white space:
/// the Unicode property and the unit separator.
pub(super) fn is_edge_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{1f}'
}

/// Blanks of another width or breaking rule than the space.
pub(super) fn is_wide_blank(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// Characters that no voice can read: controls but tab and line breaks, the replacement sign, soft hyphen, zero-width
/// and direction marks, annotation and object signs, private use, noncharacters.
pub(super) fn is_unheard(c: char) -> bool {
    if is_line_break(c) || c == '\t' {
        return false;
    }
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200c}' | '\u{200e}' | '\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffd}'
                | '\u{e000}'..='\u{f8ff}'
                | '\u{fdd0}'..='\u{fdef}'
                | '\u{f0000}'..='\u{10ffff}'
        )
        || (c as u32) & 0xfffe == 0xfffe
}

/// Signs that only shape the emoji next to them: joiner, variation selectors, keycap, tag letters.
pub(super) fn is_emoji_part(c: char) -> bool {
    matches!(
        c,
        '\u{200d}' | '\u{20e3}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0020}'..='\u{e007f}'
    )
}

/// Pictographs, flags, skin tones and dingbats.
pub(super) fn is_emoji(c: char) -> bool {
    matches!(
        c,
        '\u{1f000}'..='\u{1faff}'
            | '\u{2600}'..='\u{27bf}'
            | '\u{231a}' | '\u{231b}' | '\u{2328}' | '\u{23cf}' | '\u{23e9}'..='\u{23fa}'
            | '\u{25aa}' | '\u{25ab}' | '\u{25b6}' | '\u{25c0}' | '\u{25fb}'..='\u{25fe}'
            | '\u{2b05}'..='\u{2b07}' | '\u{2b1b}' | '\u{2b1c}' | '\u{2b50}' | '\u{2b55}'
            | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
    )
}

/// Whether a voice has anything to say here: a letter or a digit, not only marks and blanks.
pub(super) fn is_speakable(text: &[Spoken]) -> bool {
    text.iter().any(|s| s.ch.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tab_and_line_breaks_are_not_unheard() {
        for c in ['\t', '\n', '\r', '\u{b}', '\u{1c}', '\u{85}', '\u{2028}'] {
            assert!(!is_unheard(c), "{c:?}");
        }
        for c in ['\0', '\u{7}', '\u{1b}', '\u{1f}', '\u{9b}', '\u{fffd}', '\u{e000}', '\u{fffe}'] {
            assert!(is_unheard(c), "{c:?}");
        }
    }

    #[test]
    fn signs_that_are_read_are_no_emoji() {
        for c in ['©', '®', '™', '°', '€', '→', '½', '№', '#', '*', '7'] {
            assert!(!is_emoji(c), "{c:?}");
        }
        for c in ['✅', '🎉', '⚙', '👩', '🏽', '🇫', '⭐'] {
            assert!(is_emoji(c), "{c:?}");
        }
    }
}
