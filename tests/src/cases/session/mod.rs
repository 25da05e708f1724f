//! Session cases against the real server: a process of its own for each case, with the stub engine, over real sockets.
//!
//! Nothing here knows the inside of the server: only the wire, its control address, and what the system tells of a process.
//!
//! ```text
//! case -> server starts -> steps, one after another -> demands -> verdict
//! what missed only a time, a size or a ratio is run again alone, up to twice
//! ```
//!
//! Other vendors' surfaces are spoken through `vendor`; a further one gets its words there, and a name in `Surface`.

mod args;
mod checks;
mod client;
mod clock;
mod format;
// The bundle of the gateway's own tests.
#[path = "../../../../gateway/tests/house/hearing.rs"]
mod hearing;
mod http;
mod relay;
mod run;
mod server;
mod sound;
mod steps;
mod surface;
mod transcript;
mod vendor;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::Outcome;
use checks::Miss;
use run::{Run, Setup};
use surface::Surface;

/// Runs of a case that misses only what a busy machine may explain.
const TRIES: usize = 3;
/// Longest run of a case: two hours of talk take less without pauses.
const CASE_LIMIT: Duration = Duration::from_secs(1_800);

/// How session cases are run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The `dovecote` command.
    pub server: PathBuf,
    /// Factor on demands of time, memory and ratios.
    pub slack: f64,
    /// Whether cases that take over half a minute are run.
    pub slow: bool,
    /// Ids of the only cases to run; none: all.
    pub only: Vec<String>,
    /// Cases that run at a time.
    pub jobs: usize,
}

/// A file or folder of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The command that was built together with a test or a program of the workspace.
pub fn server_beside(program: &Path) -> PathBuf {
    let folder = program.parent().unwrap_or(Path::new("."));
    let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    folder.join("dovecote")
}

/// One case. What is for people is not looked at, but must have a known name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionCase {
    id: String,
    surfaces: Vec<Surface>,
    steps: Vec<Value>,
    checks: Vec<Value>,
    #[serde(default)]
    slow: bool,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    #[serde(rename = "theme")]
    _theme: Option<IgnoredAny>,
    #[serde(rename = "title")]
    _title: Option<IgnoredAny>,
    #[serde(rename = "source")]
    _source: Option<IgnoredAny>,
    #[serde(rename = "needs")]
    _needs: Option<IgnoredAny>,
    #[serde(rename = "expectation")]
    _expectation: Option<IgnoredAny>,
    #[serde(rename = "seen")]
    _seen: Option<IgnoredAny>,
}

impl SessionCase {
    /// Why it is not run, if it is not.
    fn skipped(&self, options: &Options) -> Option<String> {
        if !options.only.is_empty() && !options.only.contains(&self.id) {
            return Some("not asked for".to_owned());
        }
        let is_slow = self.slow && !options.slow;
        is_slow.then(|| "takes long: run it with --slow".to_owned())
    }
}

/// Plays cases, some at a time, and gives their outcomes in order.
pub(super) async fn run_all(
    cases: Vec<SessionCase>,
    options: &Options,
    long_text: &str,
) -> Vec<Outcome> {
    let setup = Setup {
        binary: options.server.clone(),
        slack: options.slack,
        long_text: long_text.to_owned(),
    };
    let places = Arc::new(Semaphore::new(options.jobs.max(1)));
    let played = cases.iter().map(async |case| {
        if let Some(reason) = case.skipped(options) {
            return Err(Outcome::Skipped { reason });
        }
        let _place = places.acquire().await;
        Ok(play(case, &setup).await)
    });
    let played = futures_util::future::join_all(played).await;
    let mut outcomes = Vec::new();
    for (case, played) in cases.iter().zip(played) {
        let mut missed = match played {
            Ok(missed) => missed,
            Err(skipped) => {
                outcomes.push(skipped);
                continue;
            }
        };
        for _ in 1..TRIES {
            let may_pass = missed.iter().all(|m| matches!(m, Miss::Soft(_)));
            if missed.is_empty() || !may_pass {
                break;
            }
            missed = play(case, &setup).await;
        }
        outcomes.push(outcome(missed));
    }
    outcomes
}

fn outcome(missed: Vec<Miss>) -> Outcome {
    if missed.is_empty() {
        return Outcome::Passed;
    }
    let reasons = missed.into_iter().map(|miss| match miss {
        Miss::Hard(why) | Miss::Soft(why) => why,
    });
    Outcome::Failed { reasons: reasons.collect() }
}

/// Plays a case once.
async fn play(case: &SessionCase, setup: &Setup) -> Vec<Miss> {
    let steps: Vec<Value> = case.steps.iter().map(|s| put_long_text(s, &setup.long_text)).collect();
    let surface = Surface::usual(&case.surfaces);
    let run = Run::new(&case.id, surface, setup.clone(), &steps);
    let played = async {
        let starts_itself = steps.iter().any(|step| step["do"] == "start_server");
        if !starts_itself {
            run.start_server(&[]).await?;
            run.server()?.until_answers("/readyz", 200).await?;
            run.note_before().await?;
        }
        steps::steps(&run, &steps).await
    };
    match tokio::time::timeout(CASE_LIMIT, played).await {
        Err(_) => vec![Miss::Hard("the steps do not come to an end".to_owned())],
        Ok(Err(error)) => {
            let mut missed = vec![Miss::Hard(format!("{error:#}"))];
            if let Ok(server) = run.server() {
                missed.extend(last_words(&server.log()));
            }
            missed
        }
        Ok(Ok(())) => checks::check_all(&run, &case.checks).await,
    }
}

/// What a server said of its own fault, if it did.
fn last_words(log: &str) -> Option<Miss> {
    let line = log.lines().find(|line| line.contains("panicked"))?;
    Some(Miss::Hard(line.to_owned()))
}

fn put_long_text(value: &Value, long_text: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("LONG_TEXT", long_text)),
        Value::Array(items) => items.iter().map(|v| put_long_text(v, long_text)).collect(),
        Value::Object(map) => {
            map.iter().map(|(k, v)| (k.clone(), put_long_text(v, long_text))).collect()
        }
        other => other.clone(),
    }
}
