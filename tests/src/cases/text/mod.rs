//! Text cases: what becomes of one passage, without engine or server.
//!
//! `literal` checks the published rules on the whole text, `spoken` the clean-up, `live` the chunks of text that
//! arrives in deltas. The five invariants of the format hold for every case, whatever it demands.

mod literal;
mod live;
mod spoken;

use serde::Deserialize;

use super::Findings;

/// One text case. Fields that are not here make a case fail.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the format's page says what each field means")]
pub struct TextCase {
    pub id: String,
    pub kind: String,
    pub theme: Option<String>,
    pub title: Option<String>,
    pub source: Option<String>,
    pub expectation: Option<String>,
    pub seen: Option<String>,
    pub status: Option<Status>,
    pub tokens: Vec<Token>,
    pub sanitized: Option<String>,
    pub chunks: Option<Vec<String>>,
    pub model_inputs: Option<Vec<String>>,
    pub lookaheads: Option<Vec<String>>,
    pub forced_chunks: Option<Vec<String>>,
    #[serde(default)]
    pub other_sanitized: Vec<String>,
    #[serde(default)]
    pub other_chunks: Vec<Vec<String>>,
    pub lookaheads_paper_literal: Option<Vec<String>>,
    #[serde(default)]
    pub spoken_must_contain: Vec<String>,
    #[serde(default)]
    pub spoken_must_not_contain: Vec<String>,
    pub spoken_nfc: Option<String>,
    #[serde(default)]
    pub no_split_inside: Vec<String>,
    pub max_stream_chunks: Option<usize>,
    pub timing: Option<String>,
    pub retokenize: Option<String>,
    pub audio: Option<String>,
    pub guarded: Option<String>,
    pub invariant: Option<String>,
}

/// How sure the given chunks are. All that are given are checked alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the format's page says what each value means")]
pub enum Status {
    Exact,
    Server,
    ExactLayout,
    WordsOnly,
}

/// One delta: `{"t": text}` or `{"hex": bytes}`, after a delay.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the format's page says what each field means")]
pub struct Token {
    pub t: Option<String>,
    pub hex: Option<String>,
    #[serde(default)]
    pub delay_ms: u64,
}

/// A delta as it is given to the front end.
#[derive(Debug, Clone)]
struct Delta {
    /// Milliseconds after the delta before it.
    delay_ms: u64,
    bytes: Vec<u8>,
}

impl TextCase {
    /// The case with `LONG_TEXT` in its deltas replaced.
    #[must_use]
    pub fn with_long_text(mut self, long_text: &str) -> Self {
        for text in self.tokens.iter_mut().filter_map(|token| token.t.as_mut()) {
            *text = text.replace("LONG_TEXT", long_text);
        }
        self
    }

    pub(crate) fn check(&self, findings: &mut Findings) {
        let deltas = match self.deltas() {
            Ok(deltas) => deltas,
            Err(reason) => return findings.fail(reason),
        };
        if self.kind != "text" {
            findings.fail(format!("kind `{}` is no text case", self.kind));
        }
        literal::check(self, &deltas, findings);
        spoken::check(self, &deltas, findings);
        live::check(self, &deltas, findings);
    }

    fn deltas(&self) -> Result<Vec<Delta>, String> {
        self.tokens.iter().map(Token::delta).collect()
    }
}

impl Token {
    fn delta(&self) -> Result<Delta, String> {
        let bytes = match (&self.t, &self.hex) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(hex)) => bytes_of_hex(hex).ok_or(format!("`{hex}` is not hex"))?,
            _ => return Err("a token has either `t` or `hex`".to_owned()),
        };
        Ok(Delta { delay_ms: self.delay_ms, bytes })
    }
}

fn bytes_of_hex(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = hex.chars().map(|c| c.to_digit(16)).collect();
    let digits = digits.filter(|d| d.len() % 2 == 0)?;
    digits.chunks(2).map(|d| u8::try_from(16 * d[0] + d[1]).ok()).collect()
}

/// The whole raw text.
fn raw_text(deltas: &[Delta]) -> String {
    let bytes: Vec<u8> = deltas.iter().flat_map(|d| d.bytes.iter().copied()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The same text in deltas of `size`, without pauses: characters where every delta is text, else bytes.
fn resplit(deltas: &[Delta], size: usize) -> Vec<Delta> {
    let delta = |bytes: Vec<u8>| Delta { delay_ms: 0, bytes };
    if deltas.iter().all(|d| std::str::from_utf8(&d.bytes).is_ok()) {
        let text: Vec<char> = raw_text(deltas).chars().collect();
        text.chunks(size).map(|c| delta(c.iter().collect::<String>().into_bytes())).collect()
    } else {
        let bytes: Vec<u8> = deltas.iter().flat_map(|d| d.bytes.iter().copied()).collect();
        bytes.chunks(size).map(|c| delta(c.to_vec())).collect()
    }
}

/// Every way of cutting the text that a case is run with: as given, in pieces of 1, 2, 3 and 7, all at once; up to 20
/// where the case asks for it.
fn splits(case: &TextCase, deltas: &[Delta]) -> Vec<(String, Vec<Delta>)> {
    let sizes = if case.retokenize.is_some() { (1..=20).collect() } else { vec![1, 2, 3, 7] };
    let mut splits = vec![("deltas as given".to_owned(), deltas.to_vec())];
    splits.extend(sizes.into_iter().map(|n| (format!("deltas of {n}"), resplit(deltas, n))));
    splits.push(("all at once".to_owned(), resplit(deltas, usize::MAX)));
    splits
}
