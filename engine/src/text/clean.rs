//! First stage of the guard: single characters. Drops what cannot be heard and terminal escape sequences, turns blanks
//! of every width into spaces. Holds nothing back: each character is judged when it comes.

use super::spoken::{is_emoji, is_emoji_part, is_unheard, is_wide_blank};

/// An escape string (title of a window, link) without an end must not mute the text behind it.
const ESCAPE_STRING_CHARS: u32 = 200;

/// The character filter of one text.
#[derive(Debug, Clone)]
pub(super) struct Cleaner {
    drop_emoji: bool,
    escape: Escape,
    after_emoji: bool,
}

/// Where in a terminal escape sequence the text stands (ECMA-48).
#[derive(Debug, Clone, Copy, PartialEq)]
enum Escape {
    None,
    Started,
    Control,
    String { chars: u32 },
}

impl Cleaner {
    pub(super) fn new(drop_emoji: bool) -> Self {
        Self { drop_emoji, escape: Escape::None, after_emoji: false }
    }

    /// What is left of the character.
    pub(super) fn push(&mut self, c: char) -> Option<char> {
        if self.is_escape(c) {
            return None;
        }
        let part = is_emoji_part(c);
        let shapes_emoji = part && self.after_emoji && !self.drop_emoji;
        self.after_emoji = is_emoji(c) || shapes_emoji;
        if (part && !shapes_emoji) || is_unheard(c) {
            return None;
        }
        Some(if is_wide_blank(c) { ' ' } else { c })
    }

    fn is_escape(&mut self, c: char) -> bool {
        let (inside, next) = match (self.escape, c) {
            (_, '\u{1b}') => (true, Escape::Started),
            (_, '\u{9b}') | (Escape::Started, '[') => (true, Escape::Control),
            (_, '\u{9d}') | (Escape::Started, ']' | 'P' | '^' | '_' | 'X') => {
                (true, Escape::String { chars: 0 })
            }
            (Escape::Started, '!'..='~') => (true, Escape::None),
            (Escape::Control, ' '..='?') => (true, Escape::Control),
            (Escape::Control, '@'..='~') => (true, Escape::None),
            (Escape::String { .. }, '\u{7}' | '\u{9c}') => (true, Escape::None),
            (Escape::String { chars }, _) if chars < ESCAPE_STRING_CHARS => {
                (true, Escape::String { chars: chars + 1 })
            }
            _ => (false, Escape::None),
        };
        self.escape = next;
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(text: &str, drop_emoji: bool) -> String {
        let mut cleaner = Cleaner::new(drop_emoji);
        text.chars().filter_map(|c| cleaner.push(c)).collect()
    }

    #[test]
    fn what_cannot_be_heard_is_dropped() {
        for (raw, left) in [
            ("Alpha\0Beta\u{7}", "AlphaBeta"),
            ("gamma\u{1b}[31m delta\u{1b}[0;1m.", "gamma delta."),
            ("\u{1b}]0;title\u{7}text \u{1b}]8;;x\u{1b}\\link", "text link"),
            ("a\u{9b}2Kb \u{1b}(Bc", "ab Bc"),
            ("pre\u{ad}re\u{200b}qui\u{2060}sites\u{feff}", "prerequisites"),
            ("a\u{202e}b\u{2066}c\u{200f}", "abc"),
            ("x\u{e000}y\u{f0000}z\u{fffd}", "xyz"),
            ("ten\u{a0}km\u{202f}h\u{3000}!", "ten km h !"),
            ("1\u{fe0f}\u{20e3} \u{2764}\u{fe0f}", "1 \u{2764}"),
            ("tab\tfeed\u{c}line\u{2028}.", "tab\tfeed\u{c}line\u{2028}."),
        ] {
            assert_eq!(cleaned(raw, true), left, "{raw:?}");
        }
    }

    #[test]
    fn an_endless_escape_string_does_not_mute_the_text() {
        let text = format!("\u{1b}]{} heard", "x".repeat(ESCAPE_STRING_CHARS as usize));
        assert_eq!(cleaned(&text, true), " heard");
    }

    #[test]
    fn joiners_stay_only_inside_emoji_that_stay() {
        let family = "\u{1f468}\u{200d}\u{1f469}\u{fe0f}";
        assert_eq!(cleaned(family, false), family);
        assert_eq!(cleaned("be\u{200d}low", false), "below");
        assert_eq!(cleaned(family, true), "\u{1f468}\u{1f469}");
    }
}
