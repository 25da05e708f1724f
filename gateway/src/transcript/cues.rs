//! Text that is known to be said in one span, in segments that fit on a screen.
//!
//! A model that only writes text tells nothing of times. Where a segment begins inside its span is estimated by the share of
//! characters before it, which people's pace makes right to about a second in a span of half a minute.

use super::{Segment, Span};

/// Characters of a segment: two lines of 42, the custom of subtitles.
pub const CUE_CHARS_MAX: usize = 84;

/// Cuts the text of a span behind sentences, and within one where it is longer than [`CUE_CHARS_MAX`] characters: between
/// words where it has some. Blanks around a segment are not part of it.
pub fn cut(text: &str, span: Span) -> Vec<Segment> {
    let all = text.chars().count().max(1) as f64;
    let at = |chars: usize| span.start_s + (span.end_s - span.start_s) * chars as f64 / all;
    let (mut segments, mut before) = (Vec::new(), 0);
    for piece in pieces(text) {
        let chars = piece.chars().count();
        let said = piece.trim();
        if !said.is_empty() {
            let span = Span { start_s: at(before), end_s: at(before + chars) };
            segments.push(Segment { span, text: said.to_owned(), tokens: Vec::new() });
        }
        before += chars;
    }
    segments
}

/// The whole text in pieces, each with the blanks behind it.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut chars) = (Vec::new(), 0, 0);
    // Where the piece could end: behind its last word so far.
    let mut word_end = None;
    let mut previous = None;
    for (at, c) in text.char_indices() {
        let after_blank = previous.is_some_and(char::is_whitespace) && !c.is_whitespace();
        if after_blank {
            word_end = Some(at);
        }
        let sentence = match stop(&text[start..at]) {
            Some(Stop::Wide) => !is_closing(c),
            Some(Stop::Narrow) => after_blank,
            None => false,
        };
        let full = chars >= CUE_CHARS_MAX && !c.is_whitespace();
        if sentence || full {
            let end = if sentence { at } else { word_end.filter(|&end| end > start).unwrap_or(at) };
            pieces.push(&text[start..end]);
            chars = text[end..at].chars().count();
            (start, word_end) = (end, None);
        }
        chars += 1;
        previous = Some(c);
    }
    pieces.push(&text[start..]);
    pieces
}

/// What ends a sentence.
enum Stop {
    /// A blank follows it, or else it is part of a number or a name.
    Narrow,
    /// No blank follows it.
    Wide,
}

/// The stop that a text ends with: closing quotes and brackets may follow it.
fn stop(text: &str) -> Option<Stop> {
    match text.trim_end().trim_end_matches(is_closing).chars().next_back()? {
        '.' | '!' | '?' | '…' => Some(Stop::Narrow),
        '。' | '！' | '？' => Some(Stop::Wide),
        _ => None,
    }
}

fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | '”' | '’' | '»' | ')' | ']' | '」' | '』')
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { start_s: 10.0, end_s: 20.0 };

    fn texts(text: &str) -> Vec<String> {
        cut(text, SPAN).into_iter().map(|s| s.text).collect()
    }

    #[test]
    fn sentences_are_segments_of_their_share_of_the_time() {
        let segments = cut("One two. Four five!", SPAN);
        let expected =
            [("One two.", 10.0, 10.0 + 90.0 / 19.0), ("Four five!", 10.0 + 90.0 / 19.0, 20.0)];
        assert_eq!(segments.len(), expected.len());
        for (segment, (text, start_s, end_s)) in segments.iter().zip(expected) {
            assert_eq!(segment.text, text);
            // Sums in another order.
            assert!((segment.span.start_s - start_s).abs() < 1e-9, "{segment:?}");
            assert!((segment.span.end_s - end_s).abs() < 1e-9, "{segment:?}");
        }
    }

    #[test]
    fn stops_inside_numbers_and_names_do_not_cut() {
        assert_eq!(
            texts("It is 3.5 at dovecote.example now"),
            ["It is 3.5 at dovecote.example now"]
        );
        assert_eq!(texts("\"So?\" he said."), ["\"So?\"", "he said."]);
        assert_eq!(texts("今日は。元気？"), ["今日は。", "元気？"]);
        assert_eq!(texts("「はい。」次"), ["「はい。」", "次"]);
    }

    #[test]
    fn a_long_sentence_is_cut_between_words_and_a_long_word_within() {
        let words = "word ".repeat(40);
        let cut = texts(&words);
        assert!(cut.iter().all(|c| c.split(' ').all(|w| w == "word")), "{cut:?}");
        assert_eq!(cut.join(" "), words.trim());
        let long = "あ".repeat(200);
        let cut = texts(&long);
        assert_eq!(cut.iter().map(|c| c.chars().count()).collect::<Vec<_>>(), [84, 84, 32]);
    }

    #[test]
    fn any_text_is_kept_in_order_within_its_span() {
        for text in [
            "",
            " ",
            "\n.",
            "a",
            ". . . x",
            &"ab. ".repeat(100),
            &"é".repeat(85),
            &"x y".repeat(99),
        ] {
            let segments = cut(text, SPAN);
            let joined: String = segments.iter().flat_map(|s| s.text.chars()).collect();
            let bare = |t: &str| t.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            assert_eq!(bare(&joined), bare(text));
            assert!(segments.iter().all(|s| s.text.chars().count() <= CUE_CHARS_MAX), "{text}");
            let ends = segments.iter().flat_map(|s| [s.span.start_s, s.span.end_s]);
            let inside = ends.clone().all(|t| (SPAN.start_s..=SPAN.end_s + 1e-9).contains(&t));
            assert!(inside && ends.is_sorted(), "{text}");
        }
    }
}
