//! A passage whose text arrives while it is spoken: deltas in, chunks out, cut as late as the engine can wait.
//!
//! ```text
//!  taken by chunks | pending: sanitized, not cut        | held: unfinished markup, letters, bytes
//!                  ^ start            ^ flush marks     ^ end of text
//! ```
//!
//! Time is an argument everywhere and never runs backwards.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use super::TextOptions;
use super::boundary::{Kind, kind, may_end_in_number, may_end_sentence};
use super::chunk::{Chunk, Tail};
use super::chunker::{LiveSettings, Need, View, choose};
use super::front::FrontEnd;
use super::sanitize::final_period;
use super::split::{lookahead, lookahead_text, strip};
use super::spoken::{Notice, Spoken, is_blank, is_edge_blank, is_speakable};
use super::utf8::Utf8Joiner;

/// The text of one context, from its first delta to its last chunk.
#[derive(Debug, Clone)]
pub struct Passage {
    live: LiveSettings,
    bytes: Utf8Joiner,
    front: FrontEnd,
    text: Vec<Spoken>,
    /// Index of the first character of `text` that no chunk has taken.
    start: usize,
    /// Index behind the last letter or digit of `text`.
    heard_to: usize,
    /// Flushes that no chunk has reached, in order.
    marks: VecDeque<Mark>,
    ended: bool,
    clock: Clock,
    first: bool,
    /// What comes next opens a sentence or follows a flush.
    opening: bool,
    /// Characters of the pending text that were bound as lookahead.
    promised: usize,
    /// Where the raw range of the last chunk ends.
    raw_cut: usize,
}

/// A flush: everything before it is to be spoken without waiting.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// Index into `text`.
    at: usize,
    /// Raw offset of the flush.
    raw: u32,
}

/// The moments that waiting is counted from.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    now: Duration,
    last_push: Option<Duration>,
    /// When the first visible character of the pending text came.
    opened: Option<Duration>,
    /// First raw character of unfinished markup or of an unfinished number, and since when it is held.
    markup: Option<(u32, Duration)>,
    /// Nothing has come for the whole hold time.
    stalled: bool,
}

/// What has become of a passage's text so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Raw characters that came, in code points.
    pub raw_chars: usize,
    /// Raw characters of which nothing is spoken: blanks at the ends, markup, what cannot be heard. Held text counts
    /// until it is let go.
    pub dropped_chars: usize,
    /// Spoken characters that no chunk has taken.
    pub pending_chars: usize,
}

impl Passage {
    /// A passage without text.
    pub fn new(options: TextOptions, live: LiveSettings) -> Self {
        Self {
            live,
            bytes: Utf8Joiner::default(),
            front: FrontEnd::new(options),
            text: Vec::new(),
            start: 0,
            heard_to: 0,
            marks: VecDeque::new(),
            ended: false,
            clock: Clock::default(),
            first: true,
            opening: true,
            promised: 0,
            raw_cut: 0,
        }
    }

    /// Adds text. After [`Passage::end`] it is ignored.
    pub fn push(&mut self, delta: &str, now: Duration) {
        if self.ended || delta.is_empty() {
            return;
        }
        self.pass_time(now);
        self.release_bytes();
        self.feed(delta);
    }

    /// Adds text as bytes of UTF-8, cut anywhere. What is no UTF-8 counts as U+FFFD, one raw character each.
    pub fn push_bytes(&mut self, delta: &[u8], now: Duration) {
        if self.ended || delta.is_empty() {
            return;
        }
        self.pass_time(now);
        let mut text = String::new();
        self.bytes.push(delta, &mut text);
        self.feed(&text);
    }

    /// Everything so far is to be spoken without waiting for more. A cut is made here.
    pub fn flush(&mut self, now: Duration) {
        if self.ended {
            return;
        }
        self.pass_time(now);
        self.release();
        let segment = self.marks.back().map_or(self.start, |m| m.at);
        if self.heard_to > segment {
            self.marks.push_back(Mark { at: self.text.len(), raw: self.front.raw_chars() });
        } else if segment == self.start {
            self.opening = true;
        }
    }

    /// No more text will come.
    pub fn end(&mut self, now: Duration) {
        if self.ended {
            return;
        }
        self.pass_time(now);
        self.release();
        self.ended = true;
        // With nothing left to say no lone period is added.
        if self.has_pending()
            && let Some(period) = final_period(&self.text, self.front.raw_chars())
        {
            let end = self.text.len();
            self.text.push(period);
            if let Some(mark) = self.marks.back_mut().filter(|m| m.at == end) {
                mark.at += 1;
            }
        }
    }

    /// Cuts the next chunk if one may start now.
    pub fn cut(&mut self, now: Duration, need: Need) -> Option<Chunk> {
        self.pass_time(now);
        self.drop_silence();
        let len = choose(&self.view(need), &self.live)?;
        Some(self.take(len))
    }

    /// What is known by now behind the last chunk that was cut: to be bound when its prefill is laid out.
    ///
    /// What it shows is kept: the next chunk starts with it.
    pub fn tail(&mut self) -> Tail {
        self.drop_silence();
        let live = self.live;
        let closed = self.ended || !self.marks.is_empty();
        let pending = &self.text[self.start..self.stop()];
        let window = &pending[..pending.len().min(live.window_chars())];
        let complete = closed || self.clock.stalled || self.front.has_blank();
        let shown = if closed || pending.len() > live.lookahead_chars {
            // A line feed at its end would tell the model that nothing follows.
            strip(window, 0..lookahead(window, live.lookahead_chars)).end
        } else if complete {
            pending.len()
        } else {
            let words = window.iter().rposition(|s| is_blank(s.ch)).unwrap_or(0);
            strip(window, 0..words).end
        };
        if is_speakable(&window[..shown]) {
            let last = self.ended
                && self.heard_to <= self.stop()
                && pending.len() <= self.live.chunk_chars;
            let tail = Tail::Lookahead(lookahead_text(&window[..shown], last));
            self.promised = shown;
            return tail;
        }
        if self.is_drained() || self.opening { Tail::Final } else { Tail::Open }
    }

    /// When [`Passage::cut`] could newly succeed by time alone: before then, and without new text, it will not.
    pub fn next_deadline(&self, need: Need) -> Option<Duration> {
        let Clock { now, last_push, opened, markup, stalled } = self.clock;
        if self.ended || !self.marks.is_empty() {
            return None;
        }
        let after = |since: Option<Duration>, wait: Duration| since.map(|t| t + wait);
        let wanted = self.first || need == Need::Urgent;
        let mut deadlines = [
            after(markup.map(|(_, since)| since), self.live.hold),
            after(last_push.filter(|_| !stalled), self.live.hold),
            after(
                last_push.filter(|_| wanted || self.front.holds_last_word()),
                self.live.mark_wait,
            ),
            after(opened.filter(|_| wanted && self.opening), self.live.first_wait),
        ];
        deadlines.sort_unstable();
        deadlines.into_iter().flatten().find(|&t| t > now)
    }

    /// Whether the text has ended and every chunk of it was cut.
    pub fn is_drained(&self) -> bool {
        self.ended && !self.has_pending()
    }

    /// Whether there is anything to say that no chunk has taken.
    pub fn has_pending(&self) -> bool {
        self.heard_to > self.start
    }

    /// Raw offset up to which all text is in chunks or will never be spoken. A flush or mark at or before it depends on
    /// no chunk to come.
    pub fn cut_to(&self) -> usize {
        let waiting = self.has_pending() || self.front.is_holding() || self.bytes.is_holding();
        if waiting { self.raw_cut } else { self.front.raw_chars() as usize }
    }

    /// What of the text has no effect, since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.front.take_notices()
    }

    /// What has become of the text so far.
    pub fn stats(&self) -> Stats {
        Stats {
            raw_chars: self.front.raw_chars() as usize,
            dropped_chars: (self.front.raw_chars() - self.front.heard_chars()) as usize,
            pending_chars: self.text.len() - self.start,
        }
    }

    fn feed(&mut self, delta: &str) {
        self.run_front(|front, text| front.push(delta, text));
        let clock = &mut self.clock;
        clock.last_push = Some(clock.now);
        clock.stalled = false;
        if clock.opened.is_none() && delta.chars().any(|c| !is_edge_blank(c)) {
            clock.opened = Some(clock.now);
        }
        let since = clock.markup;
        clock.markup = self.front.held_from().map(|from| match since {
            Some((held_from, since)) if held_from == from => (from, since),
            _ => (from, clock.now),
        });
    }

    fn pass_time(&mut self, now: Duration) {
        self.clock.now = self.clock.now.max(now);
        let over = |since: Duration| self.clock.now >= since + self.live.hold;
        let markup = self.clock.markup.is_some_and(|(_, since)| over(since));
        let all = !self.clock.stalled && self.clock.last_push.is_some_and(over);
        if self.ended {
            return;
        }
        if markup {
            self.run_front(FrontEnd::release_markup);
            self.clock.markup = None;
        }
        let mark_stands =
            self.clock.last_push.is_some_and(|t| self.clock.now >= t + self.live.mark_wait);
        if mark_stands && self.front.holds_last_word() {
            self.run_front(FrontEnd::release_last_word);
            self.clock.markup = None;
        }
        if all {
            self.release();
            self.clock.stalled = true;
        }
    }

    fn release_bytes(&mut self) {
        if self.bytes.is_holding() {
            let mut text = String::new();
            self.bytes.release(&mut text);
            self.run_front(|front, out| front.push(&text, out));
        }
    }

    fn release(&mut self) {
        self.release_bytes();
        self.run_front(FrontEnd::release);
        self.clock.markup = None;
    }

    fn run_front(&mut self, step: impl FnOnce(&mut FrontEnd, &mut Vec<Spoken>)) {
        let before = self.text.len();
        step(&mut self.front, &mut self.text);
        let heard = self.text[before..].iter().rposition(|s| s.ch.is_alphanumeric());
        self.heard_to = heard.map_or(self.heard_to, |i| before + i + 1);
    }

    /// Passes over blanks, and over marks without a word that no chunk has room for.
    fn drop_silence(&mut self) {
        let pending = &self.text[self.start..self.stop()];
        let blanks = pending.iter().take_while(|s| is_edge_blank(s.ch)).count();
        let silence = pending.iter().take_while(|s| !s.ch.is_alphanumeric()).count();
        self.start += if silence < self.live.chunk_chars { blanks } else { silence };
    }

    /// Where the text that the next chunk may take ends: at a flush, or as far as it is known.
    fn stop(&self) -> usize {
        self.marks.front().map_or(self.text.len(), |m| m.at)
    }

    fn view(&self, need: Need) -> View<'_> {
        let closed = self.ended || !self.marks.is_empty();
        let pending = &self.text[self.start..self.stop()];
        let settled = pending.len();
        let window = self.live.window_chars();
        let mut text = Cow::Borrowed(&pending[..settled.min(window)]);
        // What is held is looked at as it stands, so that nothing is cut just before a sentence ends.
        if !closed && self.front.holds_unread() && settled < window {
            let mut known = text.into_owned();
            self.front.append_unread(&mut known);
            text = Cow::Owned(known);
        }
        let len = settled.max(text.len());
        let Clock { now, last_push, opened, stalled, .. } = self.clock;
        let over = |since: Option<Duration>, wait| since.is_some_and(|t| now >= t + wait);
        let end = if len == text.len() { &*text } else { pending };
        let may_end = may_end_sentence(end);
        let mark_stands =
            may_end && !may_end_in_number(end) && over(last_push, self.live.mark_wait);
        let heard = |s: &Spoken| s.ch.is_alphanumeric();
        View {
            len,
            settled,
            heard_to: closed
                .then(|| pending.iter().rposition(heard))
                .flatten()
                .map_or(0, |i| i + 1),
            closed,
            complete: closed || stalled || mark_stands || self.front.has_blank(),
            may_end,
            stalled: stalled && !closed,
            pressing: (self.first || need == Need::Urgent)
                && (!self.opening || over(opened, self.live.first_wait)),
            first: self.first,
            opening: self.opening,
            promised: self.promised,
            text,
        }
    }

    fn take(&mut self, len: usize) -> Chunk {
        let pending = &self.text[self.start..self.stop()];
        // A number or abbreviation before a mark ends a sentence if nothing has followed.
        let stands = self.clock.stalled && len == pending.len() && may_end_sentence(pending);
        let window = &pending[..pending.len().min(self.live.window_chars())];
        let ends_sentence = stands || kind(window, len) == Some(Kind::Sentence);
        let spoken = &pending[strip(pending, 0..len)];
        let raw_to = spoken.last().map_or(self.raw_cut, |s| s.to as usize);
        let mut chunk = Chunk::new(spoken, self.raw_cut..raw_to, self.first);
        self.start += len;
        let mark =
            self.marks.front().copied().filter(|m| !is_speakable(&self.text[self.start..m.at]));
        if let Some(mark) = mark {
            self.marks.pop_front();
            self.start = mark.at;
            chunk.flushed = true;
            chunk.raw.end = mark.raw as usize;
        }
        chunk.last = self.is_drained();
        if chunk.last {
            chunk.raw.end = self.front.raw_chars() as usize;
        }
        self.raw_cut = chunk.raw.end;
        self.first = false;
        self.opening = ends_sentence || chunk.flushed;
        self.promised = 0;
        // What is left came with the last delta or before.
        self.clock.opened = self.clock.last_push.filter(|_| self.start < self.text.len());
        self.compact();
        chunk.tail = self.tail();
        chunk
    }

    /// Forgets taken text once it is the greater part, so that each character is moved about once.
    fn compact(&mut self) {
        if self.start * 2 > self.text.len() {
            self.text.drain(..self.start);
            self.heard_to = self.heard_to.saturating_sub(self.start);
            for mark in &mut self.marks {
                mark.at -= self.start;
            }
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests;
