//! Answers that were spoken, for clients that name one in a later request instead of sending its text again.

use std::collections::VecDeque;
use std::time::Duration;

/// Texts of answers, the oldest first.
#[derive(Debug)]
pub(crate) struct Kept {
    answers: VecDeque<Answer>,
    most: usize,
}

#[derive(Debug)]
struct Answer {
    id: String,
    /// The key that it was given to.
    key: Option<String>,
    text: String,
    until: Duration,
}

impl Kept {
    /// Nothing yet, and never more than so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { answers: VecDeque::new(), most }
    }

    /// Keeps an answer for some time; the oldest ones make room.
    pub(crate) fn keep(&mut self, id: String, key: Option<&str>, text: String, until: Duration) {
        while self.answers.len() >= self.most && self.answers.pop_front().is_some() {}
        if self.most > 0 {
            self.answers.push_back(Answer { id, key: key.map(str::to_owned), text, until });
        }
    }

    /// The text of an answer that was given to this key.
    pub(crate) fn find(&mut self, id: &str, key: Option<&str>, now: Duration) -> Option<String> {
        // All are kept for the same time, so the oldest go first.
        while self.answers.pop_front_if(|answer| answer.until <= now).is_some() {}
        let mut answers = self.answers.iter();
        let found = answers.find(|answer| answer.id == id && answer.key.as_deref() == key);
        found.map(|answer| answer.text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_answer_is_found_by_its_key_until_its_time_is_over() {
        let mut kept = Kept::new(2);
        kept.keep("a".into(), Some("k"), "Hello.".into(), at(10));
        assert_eq!(kept.find("a", Some("k"), at(9)).as_deref(), Some("Hello."));
        assert_eq!(kept.find("a", None, at(9)), None);
        assert_eq!(kept.find("a", Some("other"), at(9)), None);
        assert_eq!(kept.find("a", Some("k"), at(10)), None);
        assert!(kept.answers.is_empty(), "what is over takes no memory");
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut kept = Kept::new(2);
        for id in ["a", "b", "c"] {
            kept.keep(id.into(), None, id.to_uppercase(), at(10));
        }
        let found = ["a", "b", "c"].map(|id| kept.find(id, None, at(1)));
        assert_eq!(found, [None, Some("B".into()), Some("C".into())]);
        let mut none = Kept::new(0);
        none.keep("a".into(), None, "A".into(), at(10));
        assert_eq!(none.find("a", None, at(1)), None);
    }
}
