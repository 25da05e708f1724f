//! The published sanitizer, as a stage that is fed character by character: line breaks of every kind become line feeds,
//! runs of blanks collapse, both ends are stripped. The final period is the passage's to add, since only its end
//! is known to be one.
//!
//! A run of blanks waits for the visible character behind it; a visible character never waits.

use super::spoken::{MARKS, Mark, Spoken, is_blank, is_edge_blank, is_line_break};

/// The sanitizer of one passage.
#[derive(Debug, Default, Clone)]
pub(super) struct Sanitizer {
    started: bool,
    run: Option<Run>,
    /// Collapsed runs and blanks that do not collapse, behind the last visible character.
    waiting: Vec<Spoken>,
    /// A pause that was asked for: a comma, if no mark comes next.
    pause: Option<Spoken>,
}

/// A run of spaces, tabs and line feeds.
#[derive(Debug, Clone, Copy)]
struct Run {
    line_feeds: usize,
    from: u32,
    to: u32,
}

impl Sanitizer {
    pub(super) fn push(&mut self, s: Spoken, out: &mut Vec<Spoken>) {
        if s.ch == Mark::PAUSE {
            self.pause = self.pause.or(Some(s)).filter(|_| self.started);
            return;
        }
        let ch = if is_line_break(s.ch) { '\n' } else { s.ch };
        if is_blank(ch) {
            let run = self.run.get_or_insert(Run { line_feeds: 0, from: s.from, to: s.to });
            run.line_feeds += usize::from(ch == '\n');
            run.to = s.to;
            return;
        }
        self.close_run();
        if is_edge_blank(ch) {
            self.waiting.push(s);
            return;
        }
        let pause = self.pause.take();
        if pause.is_some() && MARKS.contains(&ch) {
            // The mark is the pause, and stands behind its word.
            self.waiting.clear();
        } else if let Some(pause) = pause {
            // In front of the blanks, so with no more of the raw text than they have.
            let Spoken { from, to, .. } = *self.waiting.first().unwrap_or(&pause);
            out.push(Spoken { ch: ',', from, to });
        }
        if self.started {
            out.append(&mut self.waiting);
        }
        self.waiting.clear();
        self.started = true;
        out.push(s);
    }

    /// Whether a blank at which one may cut stands behind the last visible character.
    pub(super) fn has_blank(&self) -> bool {
        self.waiting.first().map_or(self.run.is_some(), |s| is_blank(s.ch))
    }

    fn close_run(&mut self) {
        let Some(Run { line_feeds, from, to }) = self.run.take() else { return };
        let blank = |ch| Spoken { ch, from, to };
        match line_feeds {
            0 => self.waiting.push(blank(' ')),
            1 => self.waiting.push(blank('\n')),
            _ => self.waiting.extend([blank('\n'), blank('\n')]),
        }
    }
}

/// The period that ends a passage whose last character is no mark; it comes from no raw text.
pub(super) fn final_period(text: &[Spoken], raw_chars: u32) -> Option<Spoken> {
    let last = text.last()?;
    (!MARKS.contains(&last.ch)).then_some(Spoken { ch: '.', from: raw_chars, to: raw_chars })
}

#[cfg(test)]
mod tests {
    use crate::text::{TextOptions, sanitize};
    use proptest::prelude::*;

    #[test]
    fn a_pause_is_a_comma_where_no_mark_stands() {
        for (raw, spoken) in [
            ("Wait <break time=\"1s\"/> here<break/>.", "Wait, here."),
            ("Wait<break/>here <break/>, now", "Wait, here, now."),
            ("Wait. <break/> Here (so) <break/> it ends <break/>", "Wait. Here (so), it ends."),
            ("<break/>Go on<break/><break/>then", "Go on, then."),
        ] {
            assert_eq!(sanitize(raw, &TextOptions::default()), spoken, "{raw}");
        }
    }

    #[test]
    fn blanks_collapse_and_ends_are_stripped() {
        for (raw, clean) in [
            ("", ""),
            (" \n\t", ""),
            ("a", "a."),
            ("  a \t b  ", "a b."),
            ("a \n b", "a\nb."),
            ("a\r\nb", "a\n\nb."),
            ("a\n\n\n\nb!", "a\n\nb!"),
            ("a\u{b}b\u{2029}c\u{85}d;", "a\nb\nc\nd;"),
            ("\u{a0} a\u{a0} b \u{a0}", "a\u{a0} b."),
            ("He said “Stop.”", "He said “Stop.”."),
            ("Dear Sir,", "Dear Sir,"),
        ] {
            assert_eq!(sanitize(raw, &TextOptions::literal()), clean, "{raw:?}");
        }
    }

    proptest! {
        #[test]
        fn a_clean_text_stays_as_it_is(text in "(?s).{0,60}") {
            let once = sanitize(&text, &TextOptions::literal());
            prop_assert_eq!(&sanitize(&once, &TextOptions::literal()), &once);
        }
    }
}
