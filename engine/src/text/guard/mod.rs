//! Third stage of the guard: markup. Markdown signs, SSML and HTML-like tags, model control words and emoji are dropped
//! or read for what they mean; the words stay.
//!
//! The text comes character by character. Where the first characters of a construct do not yet say what it is, they are
//! held, at most `hold_chars` of them; then, or when [`Guard::release`] is called, they are judged by what is there.
//! The result therefore never depends on how the text was cut into deltas.
//!
//! ```text
//! **Buy** [milk](http://x)<br/>now      ->  Buy milk now
//! ```

mod inline;
mod markdown;
mod skip;
mod tags;

use std::collections::VecDeque;

use self::skip::{Over, Skip};
use super::TextOptions;
use super::spoken::{Mark, Notice, Spoken, is_emoji, is_line_break};

/// Most things of one text that are told to be ignored; each name once.
const NOTICES_MAX: usize = 16;
/// Longest name that is told, in characters.
const NOTICE_CHARS_MAX: usize = 64;

/// The markup guard of one text.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    options: TextOptions,
    held: VecDeque<Spoken>,
    /// Only these characters can end the wait of the construct at the front; empty: any can.
    awaited: &'static [char],
    skip: Option<Skip>,
    line: Line,
    before: Option<char>,
    /// The last that is no blank.
    visible: Option<char>,
    /// Raw range of something dropped that kept two words apart.
    gap: Option<(u32, u32)>,
    /// What was ignored and not told yet, and the names of all that was told.
    notices: Vec<Notice>,
    told: Vec<String>,
    #[cfg(test)]
    pub(super) work: std::cell::Cell<usize>,
}

/// Where in its line the next character stands.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// Only blanks and list signs so far.
    start: bool,
    /// A table row.
    table: bool,
}

const NEW_LINE: Line = Line { start: true, table: false };

/// What becomes of the first held characters.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// More text is needed, namely one of these characters (empty: any).
    Wait(&'static [char]),
    /// They are text.
    Keep(usize),
    /// They are markup inside a word or line.
    Drop(usize),
    /// They are markup that keeps the words on both sides apart.
    Gap(usize),
    /// They stand for one character.
    Say(char, usize),
    /// The first and the last are markup, what is between is text.
    Inner(usize),
    /// They stand for this text.
    Alias(usize, String),
    /// They stand for this text, and something of them is not obeyed: its name.
    AliasOf(usize, String, String),
    /// A tag, text that is said in one way, a tag: how many characters each has.
    Marked(Mark, [usize; 3]),
    /// They ask for a pause.
    Pause(usize),
    /// They are markup of which something is not obeyed: its name, and whether it keeps the words on both sides apart.
    Ignored(usize, String, bool),
    /// They open something of which nothing is spoken.
    Skip(usize, Skip),
}

impl Guard {
    pub(super) fn new(options: TextOptions) -> Self {
        Self {
            options,
            held: VecDeque::new(),
            awaited: &[],
            skip: None,
            line: NEW_LINE,
            before: None,
            visible: None,
            gap: None,
            notices: Vec::new(),
            told: Vec::new(),
            #[cfg(test)]
            work: std::cell::Cell::new(0),
        }
    }

    pub(super) fn push(&mut self, s: Spoken, out: &mut Vec<Spoken>) {
        self.held.push_back(s);
        let awaited = self.awaited.is_empty() || self.awaited.contains(&s.ch);
        if awaited || self.held.len() > self.options.hold_chars {
            self.settle(false, out);
        }
    }

    /// Judges everything held by what is there.
    pub(super) fn release(&mut self, out: &mut Vec<Spoken>) {
        self.settle(true, out);
    }

    /// What was ignored since the last call.
    pub(super) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    fn tell(&mut self, what: String, from: u32, to: u32) {
        let what: String = what.chars().take(NOTICE_CHARS_MAX).collect();
        if self.told.len() < NOTICES_MAX && !self.told.contains(&what) {
            self.told.push(what.clone());
            self.notices.push(Notice { what, from, to });
        }
    }

    /// Raw offset of the first character held, if any is.
    pub(super) fn holds_from(&self) -> Option<u32> {
        self.held.front().map(|s| s.from)
    }

    fn settle(&mut self, all: bool, out: &mut Vec<Spoken>) {
        self.awaited = &[];
        while let Some(&front) = self.held.front() {
            if let Some(skip) = &mut self.skip {
                let over = skip.over(front.ch);
                if over != Over::Inside {
                    self.skip = None;
                }
                if over != Over::Behind {
                    self.held.pop_front();
                }
                continue;
            }
            let end = all || self.held.len() > self.options.hold_chars;
            match self.verdict(front.ch, end) {
                Verdict::Wait(awaited) => {
                    self.awaited = awaited;
                    return;
                }
                verdict => self.carry_out(verdict, front, out),
            }
        }
    }

    fn verdict(&self, front: char, end: bool) -> Verdict {
        let look = Look {
            held: &self.held,
            before: self.before,
            line: self.line,
            end,
            options: &self.options,
            #[cfg(test)]
            work: &self.work,
        };
        match front {
            '<' if self.options.tags => tags::angle(&look),
            '&' if self.options.tags => tags::entity(&look),
            '{' if self.options.inline_words => inline::word(&look),
            c if self.options.emoji && is_emoji(c) => Verdict::Gap(1),
            _ if self.options.markdown => markdown::verdict(&look),
            _ => Verdict::Keep(1),
        }
    }

    fn carry_out(&mut self, verdict: Verdict, front: Spoken, out: &mut Vec<Spoken>) {
        match verdict {
            Verdict::Wait(_) => {}
            Verdict::Keep(n) => self.keep(n, out),
            Verdict::Drop(n) => {
                self.drop_held(n);
                if front.ch == '|' {
                    self.line = Line { start: false, table: true };
                }
            }
            Verdict::Gap(n) => self.gap = Some((front.from, self.drop_held(n))),
            Verdict::Pause(n) => {
                let to = self.drop_held(n);
                self.gap = Some((front.from, to));
                if self.visible.is_some_and(|c| c.is_alphanumeric() || ")]\"'”’»%".contains(c))
                {
                    out.push(Spoken { ch: Mark::PAUSE, from: front.from, to });
                }
            }
            Verdict::Ignored(n, what, apart) => {
                let (from, to) = (front.from, self.drop_held(n));
                if apart {
                    self.gap = Some((from, to));
                }
                self.tell(what, from, to);
            }
            Verdict::Say(ch, n) => {
                let to = self.drop_held(n);
                self.say(Spoken { ch, from: front.from, to }, out);
            }
            Verdict::Inner(n) => {
                self.drop_held(1);
                self.keep(n - 2, out);
                self.drop_held(1);
            }
            Verdict::Alias(n, text) => {
                self.alias(n, &text, front, out);
            }
            Verdict::AliasOf(n, text, what) => {
                let to = self.alias(n, &text, front, out);
                self.tell(what, front.from, to);
            }
            Verdict::Marked(mark, [open, inner, close]) => {
                let to = self.drop_held(open);
                out.push(Spoken { ch: mark.opening(), from: front.from, to });
                self.keep(inner, out);
                let from = self.holds_from().unwrap_or(to);
                let to = self.drop_held(close);
                out.push(Spoken { ch: Mark::CLOSING, from, to });
            }
            Verdict::Skip(n, skip) => {
                let to = self.drop_held(n);
                if skip.keeps_apart() {
                    self.gap = Some((front.from, to));
                }
                self.skip = Some(skip);
            }
        }
    }

    fn keep(&mut self, n: usize, out: &mut Vec<Spoken>) {
        for _ in 0..n {
            let s = self.held.pop_front().expect("a verdict never reaches beyond the held text");
            self.say(s, out);
        }
    }

    /// Says a text in the place of the first `n` held characters; returns where they end in the raw text.
    fn alias(&mut self, n: usize, text: &str, front: Spoken, out: &mut Vec<Spoken>) -> u32 {
        let to = self.drop_held(n);
        for ch in text.chars() {
            self.say(Spoken { ch, from: front.from, to }, out);
        }
        to
    }

    /// Drops the first `n` held characters; returns where they end in the raw text.
    fn drop_held(&mut self, n: usize) -> u32 {
        self.held.drain(..n).next_back().map_or(0, |s| s.to)
    }

    fn say(&mut self, s: Spoken, out: &mut Vec<Spoken>) {
        if let Some((from, to)) = self.gap.take()
            && self.before.is_some_and(|c| c.is_alphanumeric() || ".!?,;:…)]\"'”’".contains(c))
            && s.ch.is_alphanumeric()
        {
            out.push(Spoken { ch: ' ', from, to });
        }
        if is_line_break(s.ch) {
            self.line = NEW_LINE;
        } else if !s.ch.is_whitespace() {
            self.line.start = false;
        }
        self.before = Some(s.ch);
        if !s.ch.is_whitespace() {
            self.visible = Some(s.ch);
        }
        out.push(s);
    }
}

/// What a rule may look at: the held text and where it stands.
struct Look<'a> {
    held: &'a VecDeque<Spoken>,
    /// The character spoken before.
    before: Option<char>,
    line: Line,
    /// Nothing more will come, or what is held must be judged now.
    end: bool,
    options: &'a TextOptions,
    #[cfg(test)]
    work: &'a std::cell::Cell<usize>,
}

/// A character looked at ahead.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Seen {
    Char(char),
    End,
    Unknown,
}

impl Look<'_> {
    fn at(&self, i: usize) -> Seen {
        #[cfg(test)]
        self.work.set(self.work.get() + 1);
        match self.held.get(i) {
            Some(s) => Seen::Char(s.ch),
            None if self.end => Seen::End,
            None => Seen::Unknown,
        }
    }

    /// How many times the first character stands there in a row.
    fn run(&self) -> usize {
        let first = self.at(0);
        (1..).find(|&i| self.at(i) != first).unwrap_or(1)
    }

    fn text(&self, range: std::ops::Range<usize>) -> String {
        self.held.range(range).map(|s| s.ch).collect()
    }
}

#[cfg(test)]
mod tests;
