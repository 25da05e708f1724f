//! What is taken from an answer, and what is asked: the rules of the text around the written words.

/// Between these the answer stands.
const TAGS: (&str, &str) = ("<tool_call>", "</tool_call>");
/// What the model may write before it, and is dropped.
const THOUGHT: (&str, &str) = ("<think>", "</think>");
/// What stands between these is spoken as it is.
const KEPT: (&str, &str) = ("<<", ">>");

/// Why an answer is not spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// One of the tags is missing.
    #[error("the answer does not stand between its tags")]
    Untagged,
    /// There is nothing between them.
    #[error("the answer is empty")]
    Empty,
    /// A digit is left, which nobody can read out.
    #[error("the answer has digits left")]
    Digits,
    /// The text and an answer do not fit into what the model reads.
    #[error("{tokens} tokens, {room} have room")]
    TooLong {
        /// Tokens of the instruction and the text, and as many again for the answer as it may need.
        tokens: usize,
        /// Tokens that the model reads.
        room: usize,
    },
    /// It took longer than it may.
    #[error("the answer took too long")]
    TooSlow,
    /// The network or the tokenizer gave up.
    #[error("the model cannot run")]
    Broken,
}

/// What the model says, out of all that it wrote.
///
/// # Errors
/// Tags that are missing, an answer that is empty or that nobody can read out.
pub(super) fn answer(written: &str) -> Result<&str, Refusal> {
    let after = match written.split_once(THOUGHT.1) {
        Some((before, after)) if before.contains(THOUGHT.0) => after,
        _ => written,
    };
    let (_, inner) = after.split_once(TAGS.0).ok_or(Refusal::Untagged)?;
    let (inner, _) = inner.split_once(TAGS.1).ok_or(Refusal::Untagged)?;
    let said = inner.trim();
    if said.is_empty() {
        return Err(Refusal::Empty);
    }
    if said.chars().any(char::is_numeric) {
        return Err(Refusal::Digits);
    }
    Ok(said)
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// What is put into words.
    Written(&'a str),
    /// What is spoken as it is, without its marks.
    Kept(&'a str),
}

impl<'a> Part<'a> {
    /// What the model is asked to put into words, if there is anything to see.
    pub(super) fn asked(self) -> Option<&'a str> {
        match self {
            Self::Written(text) if !text.trim().is_empty() => Some(text),
            Self::Written(_) | Self::Kept(_) => None,
        }
    }
}

/// The parts of a text, in order; none is empty. A mark that is not closed is text like any other.
pub(super) fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((before, opened)) = rest.split_once(KEPT.0) {
        let Some((kept, after)) = opened.split_once(KEPT.1) else { break };
        parts.extend([Part::Written(before), Part::Kept(kept)]);
        rest = after;
    }
    parts.push(Part::Written(rest));
    parts.retain(|part| !matches!(part, Part::Written("") | Part::Kept("")));
    parts
}

/// Runs of text of which no two meet at a digit, and each digit alone: so the model was taught to read numbers.
pub(super) fn digit_by_digit(text: &str) -> Vec<&str> {
    let (mut runs, mut start) = (Vec::new(), 0);
    for (at, digit) in text.char_indices().filter(|(_, c)| c.is_numeric()) {
        let end = at + digit.len_utf8();
        runs.extend([&text[start..at], &text[at..end]]);
        start = end;
    }
    runs.push(&text[start..]);
    runs.retain(|run| !run.is_empty());
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_stands_between_its_tags() {
        for (written, expected) in [
            ("<tool_call>two doves</tool_call>", Ok("two doves")),
            ("<tool_call>\n two doves \n</tool_call> and more", Ok("two doves")),
            (
                "<think>\nhm <tool_call>x</tool_call>\n</think>\n<tool_call>two</tool_call>",
                Ok("two"),
            ),
            ("two doves", Err(Refusal::Untagged)),
            ("<tool_call>two doves", Err(Refusal::Untagged)),
            ("two doves</tool_call>", Err(Refusal::Untagged)),
            ("</tool_call>two<tool_call>", Err(Refusal::Untagged)),
            ("<tool_call> \n </tool_call>", Err(Refusal::Empty)),
            ("<tool_call>2 doves</tool_call>", Err(Refusal::Digits)),
            ("", Err(Refusal::Untagged)),
        ] {
            assert_eq!(answer(written), expected, "{written}");
        }
    }

    #[test]
    fn marked_stretches_pass_and_what_stands_between_them_is_parted() {
        use Part::{Kept, Written};
        let cases: [(&str, &[Part<'_>]); 6] = [
            ("a <<5 b>> c", &[Written("a "), Kept("5 b"), Written(" c")]),
            ("<<1>><<2>>", &[Kept("1"), Kept("2")]),
            ("a << b", &[Written("a << b")]),
            ("a >> b << c", &[Written("a >> b << c")]),
            ("<<>>", &[]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(parts(text), expected, "{text}");
        }
    }

    #[test]
    fn every_digit_stands_alone() {
        assert_eq!(digit_by_digit("at 12:05"), ["at ", "1", "2", ":", "0", "5"]);
        assert_eq!(digit_by_digit("7"), ["7"]);
        assert_eq!(digit_by_digit("none"), ["none"]);
        assert!(digit_by_digit("").is_empty());
        let text = "a\u{663}\u{bd}b 1";
        assert_eq!(digit_by_digit(text).concat(), text);
    }
}
