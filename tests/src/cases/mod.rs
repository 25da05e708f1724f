//! Runs cases written as JSON lines, one case a line, of any kind this program knows.
//!
//! A case says what must hold; what this program cannot check is never passed over in silence: an unknown field or
//! demand fails the case.
//!
//! ```text
//! B001 passed   one word in five pieces
//! B062 passed   clock times before a word
//! B999 FAILED   broken
//!      chunks: [..] instead of [..]
//! 54 passed, 1 failed, 0 skipped
//! ```

pub mod session;
pub mod text;

use std::fmt;
use std::path::Path;

use anyhow::Context;

/// What became of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every demand holds, but for those named, which could not be checked.
    Passed,
    /// Some demands do not hold, or are not known.
    Failed {
        /// One line each.
        reasons: Vec<String>,
    },
    /// The case is of a kind that this program does not run.
    Skipped {
        /// Why.
        reason: String,
    },
}

/// A case and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Id of the case, or its line number when it has none.
    pub id: String,
    /// Title of the case.
    pub title: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// The verdicts of one file, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// One for each case.
    pub verdicts: Vec<Verdict>,
}

/// What failed while a case ran.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    reasons: Vec<String>,
}

impl Findings {
    pub(crate) fn fail(&mut self, reason: impl Into<String>) {
        self.reasons.push(reason.into());
    }

    /// Fails with both values unless they are equal.
    pub(crate) fn equal<T: PartialEq + fmt::Debug>(&mut self, what: &str, is: &T, must_be: &T) {
        if is != must_be {
            self.fail(format!("{what}: {is:?} instead of {must_be:?}"));
        }
    }

    fn outcome(self) -> Outcome {
        let Self { reasons } = self;
        if reasons.is_empty() { Outcome::Passed } else { Outcome::Failed { reasons } }
    }
}

impl Report {
    /// How many cases passed.
    pub fn passed(&self) -> usize {
        self.count(|o| matches!(o, Outcome::Passed))
    }

    /// How many cases failed.
    pub fn failed(&self) -> usize {
        self.count(|o| matches!(o, Outcome::Failed { .. }))
    }

    /// How many cases were skipped.
    pub fn skipped(&self) -> usize {
        self.count(|o| matches!(o, Outcome::Skipped { .. }))
    }

    fn count(&self, is: impl Fn(&Outcome) -> bool) -> usize {
        self.verdicts.iter().filter(|v| is(&v.outcome)).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Verdict { id, title, outcome } in &self.verdicts {
            match outcome {
                Outcome::Passed => writeln!(f, "{id} passed   {title}")?,
                Outcome::Failed { reasons } => {
                    writeln!(f, "{id} FAILED   {title}")?;
                    for reason in reasons {
                        writeln!(f, "     {reason}")?;
                    }
                }
                Outcome::Skipped { reason } => writeln!(f, "{id} skipped  {title}: {reason}")?,
            }
        }
        let (passed, failed, skipped) = (self.passed(), self.failed(), self.skipped());
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// Runs every case of a file of JSON lines. Empty lines are passed over. Without `sessions` session cases are skipped.
///
/// # Errors
/// The file, or a `long_text.txt` that a case wants, cannot be read.
pub fn run_file(file: &Path, sessions: Option<&session::Options>) -> anyhow::Result<Report> {
    let lines =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let beside = file.with_file_name("long_text.txt");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/long_text.txt");
    let long_text = if beside.is_file() { beside } else { fixtures };
    let long_text = std::fs::read_to_string(&long_text)
        .with_context(|| format!("cannot read {}", long_text.display()))?;
    let numbered = lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let lines: Vec<(usize, &str)> = numbered.map(|(i, line)| (i + 1, line)).collect();
    let verdicts = lines.iter().map(|(number, line)| run_line(*number, line, long_text.trim_end()));
    let mut report = Report { verdicts: verdicts.collect() };
    if let Some(options) = sessions {
        play_sessions(&mut report, &lines, long_text.trim_end(), options)?;
    }
    Ok(report)
}

/// Plays the session cases of a file, and puts their outcomes in the place of those that say that they were skipped.
fn play_sessions(
    report: &mut Report,
    lines: &[(usize, &str)],
    long_text: &str,
    options: &session::Options,
) -> anyhow::Result<()> {
    let (mut at, mut cases) = (Vec::new(), Vec::new());
    for (place, (_, line)) in lines.iter().enumerate() {
        let Ok(value) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        if value["kind"] != "session" {
            continue;
        }
        match serde_json::from_value(value) {
            Ok(case) => {
                at.push(place);
                cases.push(case);
            }
            Err(e) => {
                let reasons = vec![format!("not a session case that this program knows: {e}")];
                report.verdicts[place].outcome = Outcome::Failed { reasons };
            }
        }
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let outcomes = runtime.block_on(session::run_all(cases, options, long_text));
    for (place, outcome) in at.into_iter().zip(outcomes) {
        report.verdicts[place].outcome = outcome;
    }
    Ok(())
}

/// Runs the case on line `number`; `LONG_TEXT` in it stands for `long_text`.
pub fn run_line(number: usize, line: &str, long_text: &str) -> Verdict {
    let value: serde_json::Value = match serde_json::from_str(line) {
        Ok(value) => value,
        Err(e) => {
            let outcome = Outcome::Failed { reasons: vec![format!("not JSON: {e}")] };
            return Verdict { id: format!("line {number}"), title: String::new(), outcome };
        }
    };
    let field = |name: &str| value[name].as_str().map(str::to_owned);
    let id = field("id").unwrap_or_else(|| format!("line {number}"));
    let title = field("title").unwrap_or_default();
    let outcome = match value["kind"].as_str() {
        Some("text") => {
            let mut findings = Findings::default();
            match serde_json::from_value::<text::TextCase>(value) {
                Ok(case) => case.with_long_text(long_text).check(&mut findings),
                Err(e) => findings.fail(format!("not a text case that this program knows: {e}")),
            }
            findings.outcome()
        }
        Some("session") => {
            Outcome::Skipped { reason: "a session case is played against a server".into() }
        }
        other => Outcome::Failed { reasons: vec![format!("unknown kind {other:?}")] },
    };
    Verdict { id, title, outcome }
}
