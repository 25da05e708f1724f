//! Texts of pieces, put together as they are written.
//!
//! ```text
//! " Good" " day. " | "How so?"   ->   "Good" " day." " How so?"
//! ```
//! Blanks at either end of a piece say nothing of where it was cut: one stands between two pieces, and none where neither side
//! is written with blanks.

/// A text that grows.
#[derive(Debug, Default)]
pub struct Joined {
    text: String,
    /// Blanks that belong to the text if something of the same piece follows.
    waiting: String,
    /// Whether the piece has said something.
    has_begun: bool,
}

impl Joined {
    /// Takes more of a piece. Returns what the text grows by.
    pub fn push(&mut self, delta: &str) -> String {
        self.waiting.push_str(delta);
        let new = if self.has_begun { self.waiting.as_str() } else { self.waiting.trim_start() };
        let said = new.trim_end();
        if said.is_empty() {
            return String::new();
        }
        let mut told = String::new();
        if !self.has_begun && needs_blank(&self.text, said) {
            told.push(' ');
        }
        told.push_str(said);
        self.waiting = new[said.len()..].to_owned();
        self.has_begun = true;
        self.text.push_str(&told);
        told
    }

    /// The piece is complete.
    pub fn end_piece(&mut self) {
        self.waiting.clear();
        self.has_begun = false;
    }

    /// All that was told.
    pub fn into_text(self) -> String {
        self.text
    }
}

fn needs_blank(before: &str, behind: &str) -> bool {
    let is_wide = |c: Option<char>| c.is_some_and(is_wide);
    let (last, first) = (before.chars().next_back(), behind.chars().next());
    let joins = is_wide(last) && is_wide(first);
    !before.is_empty() && !joins
}

/// Characters of Chinese and Japanese, and their stops.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    /// What is told, and all of it.
    fn joined(pieces: &[Vec<&str>]) -> (Vec<String>, String) {
        let (mut joined, mut told) = (Joined::default(), Vec::new());
        for piece in pieces {
            told.extend(piece.iter().map(|delta| joined.push(delta)));
            joined.end_piece();
        }
        (told, joined.into_text())
    }

    #[test]
    fn one_blank_stands_between_pieces_whatever_is_at_their_ends() {
        let pieces = [vec![" Good", " day. ", "\n"], vec![" "], vec!["How", "  so?"]];
        let (told, text) = joined(&pieces);
        assert_eq!(told, ["Good", " day.", "", "", " How", "  so?"]);
        assert_eq!(text, "Good day. How  so?");
    }

    #[test]
    fn nothing_stands_where_neither_side_is_written_with_blanks() {
        assert_eq!(joined(&[vec!["今日は。"], vec!["元気？"]]).1, "今日は。元気？");
        assert_eq!(joined(&[vec!["今日は。"], vec!["Ja."]]).1, "今日は。 Ja.");
        assert_eq!(joined(&[vec![""], vec!["네."], vec!["네."]]).1, "네. 네.");
    }

    #[test]
    fn what_is_told_is_the_text_however_it_comes() {
        const DELTAS: [&str; 7] = ["", " ", "a", "b ", " c", "。", " \n"];
        let mut chance = Chance::new(7);
        for _ in 0..1_000 {
            let mut piece = || {
                let deltas = chance.below(4);
                (0..deltas).map(|_| DELTAS[chance.below(DELTAS.len())]).collect()
            };
            let pieces: Vec<Vec<&str>> = (0..3).map(|_| piece()).collect();
            let (told, text) = joined(&pieces);
            assert_eq!((told.concat().as_str(), text.trim()), (text.as_str(), text.as_str()));
            let whole: Vec<String> = pieces.iter().map(|piece| piece.concat()).collect();
            let whole: Vec<Vec<&str>> = whole.iter().map(|piece| vec![piece.as_str()]).collect();
            assert_eq!(joined(&whole).1, text, "{pieces:?}");
        }
    }
}
