//! A whole text put into words by something else than the rules, piece by piece; what it refuses is left to them.
//!
//! ```text
//! text -> clean, compose, guard, sanitize -> pieces -> rewriter -> words, each with the raw text that it stands for
//!                                                   -> rules       where the rewriter has none
//! ```

use std::ops::Range;

use super::chunk::Chunk;
use super::front::FrontEnd;
use super::split::{self, ChunkLimits};
use super::spoken::{self, Spoken, is_edge_blank};
use super::{TextOptions, literal, sanitize};

/// Longest piece, in characters; a digit counts for [`DIGIT_CHARS`], as its words are longer than it is.
const PIECE_CHARS: usize = 350;
const DIGIT_CHARS: usize = 4;
/// Tags that say how something is to be read: rules obey them, a model would read them out.
const READING_TAGS: [&str; 3] = ["<say-as", "<sub", "<spell"];

/// Puts written text into words.
pub trait Rewriter {
    /// The words of each piece, in order; `None`: the rules are to read it.
    fn rewrite(&mut self, pieces: &[String]) -> Vec<Option<String>>;
}

/// Whether a text may be put into words by something else than the rules: they alone know its lexicon and its tags.
pub fn may_be_rewritten(text: &str, options: &TextOptions) -> bool {
    let lower = || text.to_ascii_lowercase();
    let tagged =
        || options.ssml && text.contains('<') && READING_TAGS.iter().any(|t| lower().contains(t));
    options.verbalize && options.lexicon.is_empty() && !tagged()
}

/// As [`super::whole`], with a rewriter before the rules.
pub fn whole_by(
    text: &str,
    options: &TextOptions,
    limits: ChunkLimits,
    rewriter: &mut dyn Rewriter,
) -> Vec<Chunk> {
    let spoken = spoken_by(text, options, rewriter);
    if !spoken::is_speakable(&spoken) {
        return Vec::new();
    }
    literal(&spoken, text.chars().count(), limits)
}

fn spoken_by(text: &str, options: &TextOptions, rewriter: &mut dyn Rewriter) -> Vec<Spoken> {
    let plain = TextOptions { verbalize: false, ..options.clone() };
    let (mut front, mut written) = (FrontEnd::new(plain), Vec::new());
    front.push(text, &mut written);
    front.release(&mut written);
    let ranges = pieces(&written);
    let texts: Vec<String> = ranges.iter().map(|r| string(&written[r.clone()])).collect();
    let mut said = rewriter.rewrite(&texts).into_iter();
    let (mut out, mut at) = (Vec::new(), 0);
    for (range, text) in ranges.iter().zip(&texts) {
        out.extend_from_slice(&written[at..range.start]);
        let piece = &written[range.clone()];
        match said.next().flatten() {
            Some(words) => align(piece, &words, &mut out),
            None => by_rules(piece, text, options, &mut out),
        }
        at = range.end;
    }
    out.extend_from_slice(&written[at..]);
    out.extend(sanitize::final_period(&out, front.raw_chars()));
    out
}

fn string(spoken: &[Spoken]) -> String {
    spoken.iter().map(|s| s.ch).collect()
}

/// Whole sentences where they fit, as few pieces as can be.
fn pieces(text: &[Spoken]) -> Vec<Range<usize>> {
    let weight = |s: &Spoken| if s.ch.is_numeric() { DIGIT_CHARS } else { 1 };
    let (mut ranges, mut start) = (Vec::new(), 0);
    while start < text.len() {
        let (mut end, mut weighs) = (start, 0);
        while end < text.len() && weighs + weight(&text[end]) <= PIECE_CHARS {
            weighs += weight(&text[end]);
            end += 1;
        }
        if end < text.len() {
            let sentence = (start..end - 1)
                .rev()
                .find(|&i| matches!(text[i].ch, '.' | '!' | '?') && is_edge_blank(text[i + 1].ch));
            let blank = || (start + 1..end).rev().find(|&i| is_edge_blank(text[i].ch));
            end = sentence.map(|i| i + 1).or_else(blank).unwrap_or(end);
        }
        ranges.push(split::strip(text, start..end));
        start = end;
    }
    ranges.retain(|r| !r.is_empty());
    ranges
}

/// The piece as the rules read it alone.
fn by_rules(piece: &[Spoken], text: &str, options: &TextOptions, out: &mut Vec<Spoken>) {
    // What was markup is gone, and what is left must not be taken for it.
    let options = TextOptions { markdown: false, tags: false, ..options.clone() };
    let (mut front, mut said) = (FrontEnd::new(options), Vec::new());
    front.push(text, &mut said);
    front.release(&mut said);
    let behind = piece.last().map_or(0, |s| s.to);
    let from = |at: u32| piece.get(at as usize).map_or(behind, |s| s.from);
    let to =
        |at: u32| at.checked_sub(1).and_then(|i| piece.get(i as usize)).map_or(behind, |s| s.to);
    out.extend(said.iter().map(|s| Spoken {
        ch: s.ch,
        from: from(s.from),
        to: to(s.to).max(from(s.from)),
    }));
}

/// Words with the raw text of the written ones that they stand for: a word that both have is itself, and what stands between two
/// such words stands for what stood there.
fn align(piece: &[Spoken], words: &str, out: &mut Vec<Spoken>) {
    let words: Vec<char> = words.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    let said = word_ranges(words.len(), |i| words[i]);
    let written = word_ranges(piece.len(), |i| piece[i].ch);
    let same = |w: &Range<usize>, s: &Range<usize>| {
        w.len() == s.len() && w.clone().zip(s.clone()).all(|(w, s)| piece[w].ch == words[s])
    };
    let pairs = common(&written, &said, same);
    let (mut w, mut s) = (0, 0);
    let ends = (written.len(), said.len());
    for (next_w, next_s) in pairs.into_iter().chain([ends]) {
        // What differs, with the blanks around it.
        let gap = written.get(w).map_or(piece.len(), |r| r.start)..match next_w.checked_sub(1) {
            Some(last) if last >= w => written[last].end,
            _ => written.get(w).map_or(piece.len(), |r| r.start),
        };
        let stands_for = raw(piece, gap);
        for range in &said[s..next_s] {
            blank(out, stands_for.0);
            let (from, to) = stands_for;
            out.extend(words[range.clone()].iter().map(|&ch| Spoken { ch, from, to }));
        }
        if let (Some(w), Some(_)) = (written.get(next_w), said.get(next_s)) {
            blank(out, piece[w.start].from);
            out.extend_from_slice(&piece[w.clone()]);
        }
        (w, s) = (next_w + 1, next_s + 1);
    }
}

/// One blank in front of a word that follows another.
fn blank(out: &mut Vec<Spoken>, before: u32) {
    if let Some(last) = out.last().filter(|s| !is_edge_blank(s.ch)) {
        // Between words that stand for the same stretch, the blank does too.
        let (from, to) = if before < last.to { (last.from, last.to) } else { (last.to, before) };
        out.push(Spoken { ch: ' ', from, to });
    }
}

/// The raw text of a stretch, or the place where it would stand.
fn raw(piece: &[Spoken], range: Range<usize>) -> (u32, u32) {
    match &piece[range.clone()] {
        [] => {
            let place = match range.start.checked_sub(1) {
                Some(before) => piece[before].to,
                None => piece.first().map_or(0, |s| s.from),
            };
            (place, place)
        }
        stretch => (stretch[0].from, stretch.last().map_or(0, |s| s.to)),
    }
}

fn word_ranges(length: usize, at: impl Fn(usize) -> char) -> Vec<Range<usize>> {
    let (mut ranges, mut start) = (Vec::new(), None);
    for i in 0..=length {
        let visible = i < length && !is_edge_blank(at(i));
        match start {
            None if visible => start = Some(i),
            Some(first) if !visible => {
                ranges.push(first..i);
                start = None;
            }
            _ => {}
        }
    }
    ranges
}

/// The longest run of pairs, in order, of words that are the same. A piece has at most some hundred words.
fn common(
    written: &[Range<usize>],
    said: &[Range<usize>],
    same: impl Fn(&Range<usize>, &Range<usize>) -> bool,
) -> Vec<(usize, usize)> {
    let width = said.len() + 1;
    let mut most = vec![0_u32; (written.len() + 1) * width];
    for w in (0..written.len()).rev() {
        for s in (0..said.len()).rev() {
            most[w * width + s] = if same(&written[w], &said[s]) {
                1 + most[(w + 1) * width + s + 1]
            } else {
                most[(w + 1) * width + s].max(most[w * width + s + 1])
            };
        }
    }
    let (mut pairs, mut w, mut s) = (Vec::new(), 0, 0);
    while w < written.len() && s < said.len() {
        if same(&written[w], &said[s]) && most[w * width + s] == 1 + most[(w + 1) * width + s + 1] {
            pairs.push((w, s));
            (w, s) = (w + 1, s + 1);
        } else if most[(w + 1) * width + s] >= most[w * width + s + 1] {
            w += 1;
        } else {
            s += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows a few pieces by heart, and keeps what it was asked.
    struct Known(Vec<(&'static str, &'static str)>, Vec<String>);

    impl Rewriter for Known {
        fn rewrite(&mut self, pieces: &[String]) -> Vec<Option<String>> {
            self.1.extend_from_slice(pieces);
            let find = |piece: &String| self.0.iter().find(|(written, _)| written == piece);
            pieces.iter().map(|piece| find(piece).map(|(_, said)| (*said).to_owned())).collect()
        }
    }

    fn say(text: &str, known: &[(&'static str, &'static str)]) -> (Vec<Spoken>, Vec<String>) {
        let mut rewriter = Known(known.to_vec(), Vec::new());
        let options = TextOptions { locale: "en-US".parse().ok(), ..TextOptions::default() };
        (spoken_by(text, &options, &mut rewriter), rewriter.1)
    }

    /// The raw text that each word came from.
    fn origins<'a>(text: &'a str, spoken: &[Spoken]) -> Vec<(String, &'a str)> {
        let place = |at: u32| text.char_indices().nth(at as usize).map_or(text.len(), |(i, _)| i);
        let words = word_ranges(spoken.len(), |i| spoken[i].ch);
        let origin = |r: Range<usize>| {
            let raw = place(spoken[r.start].from)..place(spoken[r.end - 1].to);
            (string(&spoken[r]), &text[raw])
        };
        words.into_iter().map(origin).collect()
    }

    fn check_monotone(spoken: &[Spoken], raw_chars: usize) {
        assert!(spoken.is_sorted_by(|a, b| a.from <= b.from && a.to <= b.to), "{spoken:?}");
        assert!(spoken.iter().all(|s| s.from <= s.to && s.to as usize <= raw_chars));
    }

    #[test]
    fn words_of_the_rewriter_know_what_they_stand_for() {
        let text = "It costs **$5.50** for 2 doves, yes.";
        let written = "It costs $5.50 for 2 doves, yes.";
        let said = "It costs five dollars and fifty cents for two doves, yes.";
        let (spoken, asked) = say(text, &[(written, said)]);
        assert_eq!(asked, [written]);
        assert_eq!(string(&spoken), said);
        check_monotone(&spoken, text.chars().count());
        let origins = origins(text, &spoken);
        assert_eq!(origins[1], ("costs".to_owned(), "costs"));
        for word in &origins[2..7] {
            assert_eq!(word.1, "$5.50", "{}", word.0);
        }
        assert_eq!(origins[8], ("two".to_owned(), "2"));
        assert_eq!(origins[9], ("doves,".to_owned(), "doves,"));
    }

    #[test]
    fn the_rules_read_what_the_rewriter_does_not_know() {
        let text = "It costs $5.50 for 2 doves";
        let (spoken, _) = say(text, &[]);
        let expected = super::super::sanitize(text, &TextOptions::default());
        assert_eq!(string(&spoken), expected);
        check_monotone(&spoken, text.chars().count());
        assert!(origins(text, &spoken).contains(&("two".to_owned(), "2")));
    }

    #[test]
    fn words_may_come_and_go_anywhere() {
        for (written, said) in [
            ("a b c.", "x a b c."),
            ("a b c.", "c."),
            ("a b c.", "a y z b c. w"),
            ("a b c.", "q r s"),
            ("a a a.", "a a"),
        ] {
            let (spoken, _) = say(written, &[(written, said)]);
            check_monotone(&spoken, written.chars().count());
            let ends = if said.ends_with('.') { said.to_owned() } else { format!("{said}.") };
            assert_eq!(string(&spoken), ends);
        }
    }

    #[test]
    fn pieces_end_with_sentences_and_weigh_digits_by_their_words() {
        let sentence = "The dove flies home over the hills and the river. ";
        let text = format!("{}{}", sentence.repeat(9), "1234 ".repeat(60));
        let (_, asked) = say(&text, &[]);
        let weight = |p: &String| {
            p.chars().map(|c| if c.is_numeric() { DIGIT_CHARS } else { 1 }).sum::<usize>()
        };
        assert!(asked.iter().all(|p| weight(p) <= PIECE_CHARS), "{asked:?}");
        assert!(asked[0].ends_with("river.") && asked[0].starts_with("The"));
        assert_eq!(asked.join(" "), text.trim());
        let word = "x".repeat(800);
        assert_eq!(say(&word, &[]).1.concat(), word);
    }

    #[test]
    fn lexicons_and_reading_tags_are_the_rules_alone() {
        let options = TextOptions::default();
        assert!(may_be_rewritten("2 doves & <<4 U>> <b>", &options));
        assert!(!may_be_rewritten("<SAY-AS interpret-as='digits'>2</say-as>", &options));
        let off = TextOptions { verbalize: false, ..TextOptions::default() };
        assert!(!may_be_rewritten("2 doves", &off));
    }
}
