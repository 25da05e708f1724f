//! Looking at unread text without knowing where it ends.
//!
//! A rule is written as if all text were there. Whether it looked behind the last known character is noted, and then
//! its verdict waits for more: so no verdict depends on how the text was cut into deltas. A rule must therefore never
//! learn the length of the text in another way.

use std::cell::Cell;

#[cfg(test)]
thread_local! {
    /// How many characters rules have looked at.
    pub(super) static WORK: Cell<usize> = const { Cell::new(0) };
}

/// The text at one place: what is unread from there, and a little of what was read.
#[derive(Debug)]
pub(super) struct Look<'a> {
    text: &'a [char],
    start: usize,
    /// Nothing will follow.
    closed: bool,
    beyond: Cell<bool>,
}

/// A place in a [`Look`] that rules move along.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scan<'a> {
    look: &'a Look<'a>,
    pos: usize,
}

impl<'a> Look<'a> {
    /// The view from `text[start]` on. If it is not `closed` more may follow.
    pub(super) fn new(text: &'a [char], start: usize, closed: bool) -> Self {
        Self { text, start, closed, beyond: Cell::new(false) }
    }

    /// Whether a rule has looked behind the last known character.
    pub(super) fn went_beyond(&self) -> bool {
        self.beyond.get()
    }

    /// Where the unread text starts.
    pub(super) fn scan(&'a self) -> Scan<'a> {
        Scan { look: self, pos: self.start }
    }
}

impl<'a> Scan<'a> {
    /// The character `k` behind this place.
    pub(super) fn at(self, k: usize) -> Option<char> {
        #[cfg(test)]
        WORK.with(|work| work.set(work.get() + 1));
        let c = self.look.text.get(self.pos + k).copied();
        if c.is_none() && !self.look.closed {
            self.look.beyond.set(true);
        }
        c
    }

    /// The character here.
    pub(super) fn peek(self) -> Option<char> {
        self.at(0)
    }

    /// The character before this place.
    pub(super) fn before(self) -> Option<char> {
        self.look.text.get(self.pos.checked_sub(1)?).copied()
    }

    /// The character `k` places before that.
    pub(super) fn far_before(self, k: usize) -> Option<char> {
        self.look.text.get(self.pos.checked_sub(1 + k)?).copied()
    }

    /// How many characters lie between the start of the look and this place.
    pub(super) fn taken(self) -> usize {
        self.pos - self.look.start
    }

    /// The characters from an earlier place to this one.
    pub(super) fn since(self, earlier: Scan<'a>) -> &'a [char] {
        &self.look.text[earlier.pos..self.pos]
    }

    /// Steps over `n` characters that have been seen.
    #[must_use]
    pub(super) fn skip(self, n: usize) -> Self {
        Self { pos: (self.pos + n).min(self.look.text.len()), ..self }
    }

    /// Steps over one character if it passes.
    pub(super) fn eat_if(&mut self, test: impl Fn(char) -> bool) -> Option<char> {
        let c = self.peek().filter(|&c| test(c))?;
        self.pos += 1;
        Some(c)
    }

    /// Steps over `c` if it stands here.
    pub(super) fn eat(&mut self, c: char) -> bool {
        self.eat_if(|d| d == c).is_some()
    }

    /// Steps over a string if it stands here, in this or any case when `any_case`.
    pub(super) fn eat_str(&mut self, text: &str, any_case: bool) -> bool {
        let mut ahead = *self;
        let same = |c: char, d: char| c == d || (any_case && lower(c) == lower(d));
        let all = text.chars().all(|c| ahead.eat_if(|d| same(c, d)).is_some());
        if all {
            *self = ahead;
        }
        all
    }

    /// Steps over the characters that pass, at most `most` of them; returns them.
    pub(super) fn eat_while(&mut self, most: usize, test: impl Fn(char) -> bool) -> &'a [char] {
        let start = *self;
        while self.taken() - start.taken() < most && self.eat_if(&test).is_some() {}
        self.since(start)
    }

    /// Steps over ASCII digits; returns them.
    pub(super) fn digits(&mut self) -> &'a [char] {
        self.eat_while(usize::MAX, |c| c.is_ascii_digit())
    }

    /// Steps over letters; returns them.
    pub(super) fn letters(&mut self) -> &'a [char] {
        self.eat_while(usize::MAX, char::is_alphabetic)
    }

    /// Steps over one blank of a line.
    pub(super) fn blank(&mut self) -> bool {
        self.eat_if(is_gap).is_some()
    }

    /// Steps over the blanks of a line.
    pub(super) fn blanks(&mut self) -> usize {
        self.eat_while(usize::MAX, is_gap).len()
    }

    /// Whether no word goes on here.
    pub(super) fn at_word_end(self) -> bool {
        let raised = |c| matches!(c, '\u{b2}' | '\u{b3}' | '\u{b9}' | '\u{2070}'..='\u{2089}');
        !self.peek().is_some_and(|c| (c.is_alphanumeric() && !raised(c)) || c == '_')
    }

    /// Whether no number goes on here: neither a digit nor a mark with a digit behind it.
    pub(super) fn at_number_end(self) -> bool {
        match self.peek() {
            Some(c) if c.is_alphanumeric() || c == '_' => false,
            Some('.' | ',' | ':' | '/') => !self.at(1).is_some_and(|c| c.is_ascii_digit()),
            _ => true,
        }
    }

    /// The word that ends before this place, blanks between aside; in lower case.
    pub(super) fn word_before(self) -> String {
        let text = self.read();
        let end = text.iter().rposition(|&c| !is_gap(c)).map_or(0, |i| i + 1);
        let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '\'' | '’');
        let start = text[..end].iter().rposition(|&c| !part(c)).map_or(0, |i| i + 1);
        text[start..end].iter().map(|&c| lower(c)).collect()
    }

    /// The word before this place, or before the colon there: `Code: 12`.
    pub(super) fn label_before(self) -> String {
        let text = self.read();
        let end = text.iter().rposition(|&c| !is_gap(c)).map_or(0, |i| i + 1);
        let colon = text[..end].last() == Some(&':');
        let place = Self { pos: self.pos - (text.len() - end) - usize::from(colon), ..self };
        place.word_before()
    }

    /// The last `N` words before this place, the last first, with no more than blanks between.
    pub(super) fn words_before<const N: usize>(self) -> [String; N] {
        /// With the reach of a word behind it, less than what is kept of the text.
        const CHARS: usize = 64;
        let mut words = [const { String::new() }; N];
        let mut place = self;
        for word in &mut words {
            *word = place.word_before();
            let text = place.read();
            let end = text.iter().rposition(|&c| !is_gap(c)).map_or(0, |i| i + 1);
            let start = end - word.chars().count().min(end);
            place.pos -= text.len() - start;
            let far = self.pos - place.pos > CHARS;
            if word.is_empty() || far || !place.before().is_some_and(is_gap) {
                break;
            }
        }
        words
    }

    /// The character before this place that is no blank of the line.
    pub(super) fn visible_before(self) -> Option<char> {
        self.read().iter().rfind(|&&c| !is_gap(c)).copied()
    }

    /// Whether that word starts with a capital letter.
    pub(super) fn word_before_is_capital(self) -> bool {
        let text = self.read();
        let end = text.iter().rposition(|&c| !is_gap(c)).map_or(0, |i| i + 1);
        let end = end - usize::from(text[..end].last() == Some(&'.'));
        let start = text[..end].iter().rposition(|c| !c.is_alphanumeric()).map_or(0, |i| i + 1);
        text[start..end].first().is_some_and(|c| c.is_uppercase())
    }

    /// Whether that word has two or more letters, all of them capitals.
    pub(super) fn word_before_is_loud(self) -> bool {
        let text = self.read();
        let end = text.iter().rposition(|c| c.is_alphanumeric()).map_or(0, |i| i + 1);
        let start = text[..end].iter().rposition(|c| !c.is_alphanumeric()).map_or(0, |i| i + 1);
        end - start >= 2 && text[start..end].iter().all(|c| c.is_uppercase())
    }

    /// The next visible character of the line.
    pub(super) fn next_visible(self) -> Option<char> {
        let mut ahead = self;
        ahead.blanks();
        ahead.peek()
    }

    /// The letters of the next word, blanks before it aside.
    pub(super) fn next_word(self) -> &'a [char] {
        let mut ahead = self;
        ahead.blanks();
        ahead.letters()
    }

    /// What was read before this place, as far as it is kept.
    fn read(self) -> &'a [char] {
        /// Enough for a word and a little; the same however much is kept.
        const READ_CHARS: usize = 48;
        &self.look.text[self.pos.saturating_sub(READ_CHARS)..self.pos]
    }
}

/// Blanks that keep two words in one line.
pub(super) fn is_gap(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{a0}' | '\u{2009}' | '\u{202f}')
}

/// One character in lower case, as far as that is one.
pub(super) fn lower(c: char) -> char {
    let mut lower = c.to_lowercase();
    lower.next().filter(|_| lower.next().is_none()).unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chars(text: &str) -> Vec<char> {
        text.chars().collect()
    }

    #[test]
    fn looking_behind_the_last_known_character_is_noted() {
        let text = chars("12");
        let open = Look::new(&text, 0, false);
        let mut scan = open.scan();
        assert_eq!(scan.at(1), Some('2'));
        assert!(!open.went_beyond());
        assert_eq!(scan.digits(), ['1', '2']);
        assert!(open.went_beyond());
        let closed = Look::new(&text, 0, true);
        assert_eq!(closed.scan().digits().len(), 2);
        assert!(!closed.went_beyond());
    }

    #[test]
    fn words_before_a_place_are_found() {
        let text = chars("It opens in May, at No. 12");
        let look = Look::new(&text, 24, true);
        assert_eq!(look.scan().word_before(), "no.");
        assert_eq!(Look::new(&text, 0, true).scan().word_before(), "");
        assert_eq!(look.scan().words_before(), ["no.", "at", ""]);
        assert_eq!(look.scan().visible_before(), Some('.'));
    }

    #[test]
    fn a_colon_may_stand_behind_a_label() {
        let text = chars("Code: 12, 13");
        assert_eq!(Look::new(&text, 6, true).scan().label_before(), "code");
        assert_eq!(Look::new(&text, 6, true).scan().word_before(), "");
        assert_eq!(Look::new(&text, 10, true).scan().label_before(), "");
    }
}
