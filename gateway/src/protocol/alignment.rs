//! When each word of a text sounds, and which of it a listener has heard. Knows where chunks of text begin and end on the
//! timeline, and where characters do that the engine has measured, and spreads what lies between two such places evenly.
//!
//! ```text
//! text    |The train leaves at nine. |You change in Basel ...
//! chunks  |------------ 0 -----------|---------- 1 ----------
//! samples 0              32,000    41,600                 (not yet known)
//!                        ^ knot: committed, so what sounds before it stays where it is
//! ```
//!
//! Samples are those of the engine's timeline, at 24 kHz. It must never know of packets, codecs or their clocks.

use std::ops::Range;

use engine::CharEnd;
use serde::Serialize;

/// Samples of a spoken character, until a chunk of the context has shown its pace: 15 characters a second.
const SAMPLES_PER_CHAR: u64 = 1_600;

/// What a listener has heard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Heard {
    /// End of the last word heard, in code points of the context's text.
    pub(crate) text_to: usize,
    /// The text up to there, as the client wrote it.
    pub(crate) text: String,
    /// That word, counted from 0; −1 when none was heard.
    pub(crate) last_word_index: i64,
    /// Whether its end was not heard.
    pub(crate) partial_word: bool,
}

impl Heard {
    /// Nothing.
    pub(crate) fn nothing() -> Self {
        Self { last_word_index: -1, ..Self::default() }
    }
}

/// A word or a character on the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Timed {
    /// Code points of the context's text.
    pub(crate) chars: Range<usize>,
    /// Samples; at least one.
    pub(crate) samples: Range<u64>,
}

/// How times were found, as `commit.align` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Align {
    /// By what the network looked at while it spoke.
    Measured,
    /// Spread over what is known of a chunk.
    Estimated,
}

/// Words or characters that end in one range of the timeline, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Timings {
    /// What ends there.
    pub(crate) timed: Vec<Timed>,
    /// How its times were found.
    pub(crate) align: Align,
}

/// A place in the text of which it is known when it sounds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Knot {
    /// Code points of the text, a part of one as well.
    at: f64,
    sample: u64,
}

/// A chunk on the timeline.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    raw: Range<usize>,
    start: u64,
    end: Option<u64>,
    /// Places inside the chunk, ascending in both.
    knots: Vec<Knot>,
    /// Whether the engine has placed them: then no character ends before it is told.
    measured: bool,
}

/// The chunks of a context.
#[derive(Debug, Clone, Default)]
pub(crate) struct Alignment {
    spans: Vec<Span>,
}

impl Alignment {
    /// The engine has taken a chunk of text. It is spoken behind the one before.
    pub(crate) fn chunk(&mut self, raw: Range<usize>) {
        let start = self.spans.last().map_or(0, |s| s.end.unwrap_or(s.start));
        self.spans.push(Span { raw, start, end: None, knots: Vec::new(), measured: false });
    }

    /// The engine has measured when some characters end.
    pub(crate) fn aligned(&mut self, ends: &[CharEnd]) {
        for end in ends {
            let of = |s: &&mut Span| s.raw.start < end.raw_to && end.raw_to <= s.raw.end;
            let Some(span) = self.spans.iter_mut().rev().find(of) else { continue };
            let knot = Knot { at: end.raw_to as f64, sample: end.sample };
            if span.knots.last().is_none_or(|k| k.at < knot.at && k.sample <= knot.sample) {
                span.knots.push(knot);
            }
            span.measured = true;
        }
    }

    /// The end of a chunk is known.
    pub(crate) fn chunk_end(&mut self, raw: &Range<usize>, end: u64) {
        let Some(at) = self.spans.iter().position(|s| s.raw == *raw) else { return };
        self.spans[at].end = Some(end);
        if let Some(next) = self.spans.get_mut(at + 1) {
            next.start = end;
        }
    }

    /// When all text before a place has sounded; `None` while that can still change.
    pub(crate) fn settled(&self, offset: usize) -> Option<u64> {
        let Some(last) = offset.checked_sub(1) else { return Some(0) };
        let at = self.spans.iter().position(|s| s.raw.end > last)?;
        let span = &self.spans[at];
        if last < span.raw.start {
            // Nothing is said between two chunks.
            return at.checked_sub(1).map_or(Some(0), |before| self.spans[before].end);
        }
        Some(span.sample(offset as f64, span.end?, self.pace()))
    }

    /// When all text before a place has sounded, as far as can be told now; `None`: no chunk has taken it.
    pub(crate) fn sounded(&self, offset: usize, generated: u64) -> Option<u64> {
        let Some(last) = offset.checked_sub(1) else { return Some(0) };
        self.clock(generated).instant(last, offset)
    }

    /// The last word that had begun when `played` samples were heard.
    pub(crate) fn begun(&self, text: &str, played: u64, generated: u64) -> Option<Range<usize>> {
        let mut clock = self.clock(generated);
        self.split(text)
            .map(|word| word.chars)
            .take_while(|word| clock.time(word).is_some_and(|sounds| sounds.start < played))
            .last()
    }

    /// The sound up to `to` is committed: what was said of its text stays true when more becomes known. Where a chunk ends
    /// has been told before the sound that reaches it.
    pub(crate) fn freeze(&mut self, to: u64) {
        let pace = self.pace();
        let Some(span) = self.spans.iter_mut().find(|s| s.end.is_none_or(|end| to < end)) else {
            return;
        };
        let reached = span.knots.last().map_or(span.start, |knot| knot.sample);
        if to > reached && !span.measured {
            let at = span.place(to, to, pace);
            span.knots.push(Knot { at, sample: to });
        }
    }

    /// No chunk will follow: gives back what was reserved for more.
    pub(crate) fn shrink_to_fit(&mut self) {
        for span in &mut self.spans {
            span.knots.shrink_to_fit();
        }
        self.spans.shrink_to_fit();
    }

    /// Code points that chunks have taken.
    pub(crate) fn taken(&self) -> usize {
        self.spans.last().map_or(0, |s| s.raw.end)
    }

    /// The words of `text` that end behind the start and at or before the end of a range. Of ranges that follow each other,
    /// each frozen before it is asked for, every word lies in one.
    pub(crate) fn words(&self, text: &str, ended: Range<u64>) -> Timings {
        self.ended(self.split(text).map(|word| word.chars), ended)
    }

    /// The characters of `text`, blanks among them; see [`Alignment::words`].
    pub(crate) fn chars(&self, text: &str, ended: Range<u64>) -> Timings {
        self.ended((0..text.chars().count()).map(|at| at..at + 1), ended)
    }

    /// What of `text` was heard, when `played` samples were, of `generated` that there are.
    pub(crate) fn heard(&self, text: &str, played: u64, generated: u64) -> Heard {
        let mut clock = self.clock(generated);
        let mut heard = Heard::nothing();
        for (index, word) in self.split(text).enumerate() {
            let Some(sounds) = clock.time(&word.chars) else { break };
            if 2 * played < sounds.start + sounds.end {
                break;
            }
            heard.text_to = word.chars.end;
            heard.text = text[..word.bytes_end].to_owned();
            heard.last_word_index = index as i64;
            heard.partial_word = sounds.end > played;
        }
        heard
    }

    /// The words of a text: what stands between blanks. A chunk ends a word too, for what follows is said on its own.
    fn split<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Word> + 'a {
        let mut chars = text.char_indices().enumerate().peekable();
        let mut chunk_ends = self.spans.iter().map(|span| span.raw.end).peekable();
        std::iter::from_fn(move || {
            while chars.next_if(|(_, (_, c))| c.is_whitespace()).is_some() {}
            let &(start, _) = chars.peek()?;
            while chunk_ends.next_if(|&end| end <= start).is_some() {}
            let end = chunk_ends.peek().copied().unwrap_or(usize::MAX);
            let mut word = Word { chars: start..start, bytes_end: 0 };
            while let Some((i, (byte, c))) =
                chars.next_if(|&(i, (_, c))| i < end && !c.is_whitespace())
            {
                word.chars.end = i + 1;
                word.bytes_end = byte + c.len_utf8();
            }
            Some(word)
        })
    }

    fn ended(&self, pieces: impl Iterator<Item = Range<usize>>, ended: Range<u64>) -> Timings {
        let mut clock = self.clock(ended.end);
        let mut timed = Vec::new();
        let mut align = Align::Measured;
        for chars in pieces {
            let Some(samples) = clock.time(&chars) else { break };
            if samples.end > ended.end {
                break;
            }
            if samples.end > ended.start {
                timed.push(Timed { chars, samples });
                if !clock.measured() {
                    align = Align::Estimated;
                }
            }
        }
        if timed.is_empty() && !clock.measured() {
            align = Align::Estimated;
        }
        Timings { timed, align }
    }

    fn clock(&self, generated: u64) -> Clock<'_> {
        // Where a chunk begins is known when the one before has ended.
        let open = self.spans.iter().position(|s| s.end.is_none());
        let spans = open.map_or(&self.spans[..], |at| &self.spans[..=at]);
        Clock { spans, pace: self.pace(), generated }
    }

    /// Samples a character of the chunks that are complete.
    fn pace(&self) -> u64 {
        let complete = self
            .spans
            .iter()
            .filter_map(|s| Some((s.raw.len() as u64, s.end?.saturating_sub(s.start))));
        let (chars, samples) = complete.fold((0, 0), |sum, s| (sum.0 + s.0, sum.1 + s.1));
        samples.checked_div(chars).unwrap_or(SAMPLES_PER_CHAR)
    }
}

/// Tells when text sounds, asked in the order of the text.
struct Clock<'a> {
    /// Those that are not passed.
    spans: &'a [Span],
    pace: u64,
    generated: u64,
}

impl Clock<'_> {
    /// When some characters sound; `None`: no chunk has taken them, or it is not known where that begins.
    fn time(&mut self, chars: &Range<usize>) -> Option<Range<u64>> {
        let start = self.instant(chars.start, chars.start)?;
        // The end of the last character, not the start of what follows: that may lie in the next chunk.
        let end = self.instant(chars.end - 1, chars.end)?;
        Some(start..end.max(start + 1))
    }

    /// Whether the time that was told last was measured.
    fn measured(&self) -> bool {
        self.spans.first().is_some_and(|span| span.measured)
    }

    /// When the place `at` sounds, in the chunk of the character `of`.
    fn instant(&mut self, of: usize, at: usize) -> Option<u64> {
        while self.spans.first()?.raw.end <= of {
            self.spans = &self.spans[1..];
        }
        let span = self.spans.first()?;
        Some(span.sample(at as f64, self.generated, self.pace))
    }
}

impl Span {
    /// When a place in the chunk sounds.
    fn sample(&self, at: f64, generated: u64, pace: u64) -> u64 {
        let next = self.knots.partition_point(|knot| knot.at < at);
        let (mut a, mut b) = self.around(next, generated, pace);
        if self.measured && self.end.is_none() && next == self.knots.len() {
            // It would have been told if it ended in the sound that there is.
            a.sample = a.sample.max(generated + 1);
            b.sample = b.sample.max(generated + 1);
        }
        let share = if b.at > a.at { ((at - a.at) / (b.at - a.at)).clamp(0.0, 1.0) } else { 1.0 };
        a.sample + ((b.sample.saturating_sub(a.sample)) as f64 * share) as u64
    }

    /// Which place in the chunk sounds at a sample.
    fn place(&self, sample: u64, generated: u64, pace: u64) -> f64 {
        let next = self.knots.partition_point(|knot| knot.sample < sample);
        let (a, b) = self.around(next, generated, pace);
        let length = b.sample.saturating_sub(a.sample).max(1) as f64;
        a.at + (b.at - a.at) * (sample.saturating_sub(a.sample) as f64 / length).min(1.0)
    }

    /// The known places before and behind; the ends of the chunk are known ones, or guessed by the pace.
    fn around(&self, next: usize, generated: u64, pace: u64) -> (Knot, Knot) {
        let first = Knot { at: self.raw.start as f64, sample: self.start };
        let a = next.checked_sub(1).map_or(first, |before| self.knots[before]);
        let b = self.knots.get(next).copied().unwrap_or_else(|| {
            let at = self.raw.end as f64;
            let left = ((at - a.at) * pace as f64) as u64;
            Knot { at, sample: self.end.unwrap_or((a.sample + left).max(generated)) }
        });
        (a, b)
    }
}

struct Word {
    chars: Range<usize>,
    bytes_end: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two chunks of ten characters, a tenth of 1,000 samples each.
    fn two_chunks() -> (Alignment, &'static str) {
        let mut alignment = Alignment::default();
        alignment.chunk(0..10);
        alignment.chunk_end(&(0..10), 1_000);
        alignment.chunk(10..20);
        alignment.chunk_end(&(10..20), 2_000);
        (alignment, "äbc def. x ghi jklm.")
    }

    #[test]
    fn a_word_counts_when_its_middle_was_heard() {
        let (alignment, text) = two_chunks();
        let heard = |played| alignment.heard(text, played, 2_000);
        assert_eq!(heard(0), Heard::nothing());
        assert_eq!(heard(149), Heard::nothing());
        let first =
            Heard { text_to: 3, text: "äbc".into(), last_word_index: 0, partial_word: true };
        assert_eq!(heard(150), first);
        assert_eq!(heard(300), Heard { partial_word: false, ..first });
        assert_eq!(heard(620).text, "äbc def.");
        assert_eq!(heard(2_000).text, text);
    }

    #[test]
    fn a_running_chunk_is_spread_at_the_pace_so_far() {
        let mut alignment = Alignment::default();
        alignment.chunk(0..10);
        alignment.chunk_end(&(0..10), 1_000);
        alignment.chunk(10..20);
        let text = "0123456789 abc defg ";
        assert_eq!(alignment.heard(text, 1_250, 1_300).text, "0123456789 abc");
        assert_eq!(alignment.heard(text, 1_000, 1_300).text, "0123456789");
        assert_eq!(alignment.taken(), 20);
    }

    #[test]
    fn measured_ends_count_for_more_than_the_pace() {
        let mut alignment = Alignment::default();
        alignment.chunk(0..8);
        let end = |raw_to, sample| CharEnd { raw_to, sample };
        alignment.aligned(&[end(1, 100), end(2, 700), end(3, 900), end(4, 1_000)]);
        let text = "abc def ";
        alignment.freeze(2_000);
        let first = alignment.words(text, 0..2_000);
        assert_eq!((timed(&first), first.align), (vec![(0..3, 0..900)], Align::Measured));
        assert_eq!(alignment.heard(text, 1_900, 2_000).text, "abc");
        alignment.aligned(&[end(5, 2_500), end(6, 2_600), end(7, 2_700)]);
        alignment.chunk_end(&(0..8), 9_000);
        let second = alignment.words(text, 2_000..9_000);
        assert_eq!((timed(&second), second.align), (vec![(4..7, 1_000..2_700)], Align::Measured));
        assert_eq!(alignment.chars(text, 2_500..2_600).timed.len(), 1);
        let heard = alignment.heard(text, 2_000, 9_000);
        assert_eq!((heard.text.as_str(), heard.partial_word), ("abc def", true));
    }

    fn timed(timings: &Timings) -> Vec<(Range<usize>, Range<u64>)> {
        timings.timed.iter().map(|t| (t.chars.clone(), t.samples.clone())).collect()
    }

    #[test]
    fn a_word_belongs_to_the_range_that_it_ends_in() {
        let (alignment, text) = two_chunks();
        let first = alignment.words(text, 0..1_300);
        assert_eq!(timed(&first), [(0..3, 0..300), (4..8, 400..800), (9..10, 900..1_000)]);
        let second = alignment.words(text, 1_300..2_000);
        assert_eq!(timed(&second), [(11..14, 1_100..1_400), (15..20, 1_500..2_000)]);
        assert_eq!(timed(&alignment.words(text, 2_000..2_000)), []);
        let chars = alignment.chars(text, 100..300);
        assert_eq!(timed(&chars), [(1..2, 100..200), (2..3, 200..300)]);
    }

    #[test]
    fn a_word_ends_with_its_chunk() {
        let mut alignment = Alignment::default();
        let text = "one.Two ";
        alignment.chunk(0..4);
        alignment.chunk_end(&(0..4), 4_000);
        assert_eq!(timed(&alignment.words(text, 0..4_000)), [(0..4, 0..4_000)]);
        alignment.chunk(4..8);
        alignment.chunk_end(&(4..8), 8_000);
        assert_eq!(timed(&alignment.words(text, 4_000..8_000)), [(4..7, 4_000..7_000)]);
        let heard = alignment.heard(text, 4_000, 8_000);
        assert_eq!((heard.text.as_str(), heard.last_word_index), ("one.", 0));
    }

    #[test]
    fn the_place_of_a_text_is_settled_when_its_chunk_has_ended() {
        let mut alignment = Alignment::default();
        assert_eq!((alignment.settled(0), alignment.settled(4)), (Some(0), None));
        alignment.chunk(0..10);
        assert_eq!((alignment.settled(4), alignment.sounded(11, 0)), (None, None));
        alignment.chunk_end(&(0..10), 1_000);
        alignment.chunk(12..20);
        assert_eq!(
            [4, 10, 12].map(|at| alignment.settled(at)),
            [Some(400), Some(1_000), Some(1_000)]
        );
        assert_eq!((alignment.settled(13), alignment.sounded(13, 0)), (None, Some(1_100)));
    }

    #[test]
    fn the_word_that_is_being_heard_has_begun() {
        let (alignment, text) = two_chunks();
        let begun = |played| alignment.begun(text, played, 2_000);
        assert_eq!([0, 1, 400, 401].map(begun), [None, Some(0..3), Some(0..3), Some(4..8)]);
    }

    #[test]
    fn what_is_committed_stays_where_it_was() {
        let mut alignment = Alignment::default();
        alignment.chunk(0..8);
        let text = "abc def ";
        alignment.freeze(6_000);
        let before = alignment.words(text, 0..6_000);
        assert_eq!(timed(&before), [(0..3, 0..4_800)]);
        // The chunk is much shorter than its text let expect.
        alignment.chunk_end(&(0..8), 7_000);
        assert_eq!(alignment.words(text, 0..6_000), before);
        let [(chars, samples)] = &timed(&alignment.words(text, 6_000..7_000))[..] else { panic!() };
        assert_eq!(*chars, 4..7);
        assert!(samples.start > 6_000 && samples.end < 7_000, "{samples:?}");
    }

    #[test]
    fn a_chunk_sounds_when_the_one_before_has_ended() {
        let mut alignment = Alignment::default();
        alignment.chunk(0..4);
        alignment.chunk(4..8);
        let text = "abc def ";
        assert_eq!(timed(&alignment.words(text, 0..9_000)), [(0..3, 0..6_750)]);
        alignment.chunk_end(&(0..4), 8_000);
        alignment.chunk_end(&(4..8), 12_000);
        assert_eq!(timed(&alignment.words(text, 6_750..12_000)), [(4..7, 8_000..11_000)]);
    }

    #[test]
    fn ranges_one_after_the_other_tell_every_word_once() {
        let text = "one two three four five six seven eight nine ten ";
        let (half, whole) = (text.len() / 2, text.len());
        for first_end in [40_000, 50_000, 90_000] {
            let mut alignment = Alignment::default();
            let mut told = Vec::new();
            alignment.chunk(0..half);
            for at in 0..10 {
                let ended = at * 9_500..(at + 1) * 9_500;
                if ended.contains(&first_end) {
                    alignment.chunk_end(&(0..half), first_end);
                    alignment.chunk(half..whole);
                }
                if at == 9 {
                    alignment.chunk_end(&(half..whole), ended.end);
                }
                alignment.freeze(ended.end);
                told.extend(alignment.words(text, ended).timed);
            }
            let expected: Vec<Range<usize>> =
                alignment.split(text).map(|word| word.chars).collect();
            assert_eq!(expected.len(), 10);
            assert_eq!(told.iter().map(|w| w.chars.clone()).collect::<Vec<_>>(), expected);
            assert!(told.is_sorted_by(|a, b| a.samples.end <= b.samples.start));
        }
    }

    #[test]
    fn text_that_no_chunk_has_taken_was_not_heard() {
        let mut alignment = Alignment::default();
        assert_eq!(alignment.heard("hello", 9_999, 9_999), Heard::nothing());
        alignment.chunk(0..6);
        alignment.chunk_end(&(0..6), 100);
        assert_eq!(alignment.heard("hello there", 9_999, 9_999).text, "hello");
    }
}
