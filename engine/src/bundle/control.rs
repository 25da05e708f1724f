//! Control words of a tokenizer, which nobody who is spoken with may say: a text that has one is read as its letters.

use tokenizers::Tokenizer;

/// The control words that a tokenizer would read in a text.
#[derive(Debug, Clone)]
pub(crate) struct Controls(Vec<String>);

impl Controls {
    /// All that were added to its vocabulary, special or not.
    pub(crate) fn of(tokenizer: &Tokenizer) -> Self {
        let added = tokenizer.get_added_vocabulary().get_vocab().keys();
        let mut words: Vec<String> =
            added.filter(|w| w.chars().nth(1).is_some()).cloned().collect();
        words.sort_unstable();
        Self(words)
    }

    /// A text in runs of which none holds a control word: each is cut behind its first letter.
    pub(crate) fn cut<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let (mut runs, mut start) = (Vec::new(), 0);
        for (at, first) in text.char_indices() {
            if self.0.iter().any(|word| text[at..].starts_with(word)) {
                let end = at + first.len_utf8();
                runs.push(&text[start..end]);
                start = end;
            }
        }
        runs.push(&text[start..]);
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_run_holds_a_control_word_and_together_they_are_the_text() {
        let words = ["<think>", "<|end|>", "<|", "</think>"].map(str::to_owned);
        let controls = Controls(words.to_vec());
        for text in ["", "plain < text", "a<think>b</think>", "<think><think>", "<<|end|>>", "<|<|"]
        {
            let runs = controls.cut(text);
            assert_eq!(runs.concat(), text);
            assert!(!runs.iter().any(|run| words.iter().any(|w| run.contains(w))), "{runs:?}");
        }
        assert_eq!(controls.cut("a<think>b"), ["a<", "think>b"]);
    }
}
