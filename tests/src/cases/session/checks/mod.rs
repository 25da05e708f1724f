//! What must hold after the steps of a case: every demand by its name, in rooms by what it looks at.

mod audio;
mod codec;
mod connection;
mod context;
mod process;
mod timing;

use std::sync::Arc;

use serde_json::Value;

use super::args::Args;
use super::client::Connection;
use super::run::Run;
use super::transcript::Seen;

/// Why a demand does not hold.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cases) enum Miss {
    /// It is exact.
    Hard(String),
    /// It is about time, memory or a ratio: a busy machine may be the reason.
    Soft(String),
}

type Checked = Result<(), Miss>;

impl From<anyhow::Error> for Miss {
    fn from(error: anyhow::Error) -> Self {
        Self::Hard(format!("{error:#}"))
    }
}

/// Demands that end connections or speak anew, and so come after all others.
const LAST: [&str; 9] = [
    "opus_declared_samples",
    "first_audio_ratio_vs_idle",
    "p99_first_audio_ratio",
    "first_request_ratio_to_warm",
    "metric_incremented",
    "metrics_matches",
    "free_slots",
    "server_alive",
    "no_leak",
];

/// Checks all demands, and tells of each that does not hold.
pub(super) async fn check_all(run: &Run, demands: &[Value]) -> Vec<Miss> {
    let name = |demand: &Value| demand["check"].as_str().unwrap_or_default().to_owned();
    let rank =
        |demand: &&Value| LAST.iter().position(|l| *l == name(demand)).map_or(0, |at| at + 1);
    let mut ordered: Vec<&Value> = demands.iter().collect();
    ordered.sort_by_key(rank);
    let mut missed = Vec::new();
    for demand in ordered {
        match check(run, demand).await {
            Ok(()) => {}
            Err(Miss::Hard(why)) => missed.push(Miss::Hard(format!("{}: {why}", name(demand)))),
            Err(Miss::Soft(why)) => missed.push(Miss::Soft(format!("{}: {why}", name(demand)))),
        }
    }
    missed
}

async fn check(run: &Run, demand: &Value) -> Checked {
    let mut args = Args::new(demand, "check")?;
    let args = &mut args;
    // Each room answers for what it knows.
    let known = audio::check(run, args).await?
        || codec::check(run, args).await?
        || context::check(run, args).await?
        || connection::check(run, args).await?
        || timing::check(run, args).await?
        || process::check(run, args).await?;
    if !known {
        return hard(false, || "unknown demand".to_owned());
    }
    Ok(args.finish()?)
}

/// Misses for good unless it holds.
fn hard(holds: bool, why: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(Miss::Hard(why())) }
}

/// Misses unless a measure is within its limit.
fn within(run: &Run, what: &str, measure: f64, limit: f64) -> Checked {
    if measure <= limit * run.setup.slack {
        return Ok(());
    }
    Err(Miss::Soft(format!("{what} is {measure:.1}, at most {limit} (slack {})", run.setup.slack)))
}

/// A context on a connection.
type Target = (Arc<Connection>, String);

/// The contexts that a demand is about: `conn` and `ctx` may be lists, and `Q*` all that begin with Q. Without both: all
/// that were opened.
fn targets(run: &Run, args: &mut Args) -> anyhow::Result<Vec<Target>> {
    let conn = args.take::<String>("conn")?;
    let ctx = args.take::<String>("ctx")?;
    let mut found = Vec::new();
    let (conns, ctxs) = (split(conn), split(ctx));
    if let [ctx] = &ctxs[..]
        && conns.len() < 2
        && !ctx.ends_with('*')
    {
        let connection = run.connection(conns.first().map(String::as_str), Some(ctx))?;
        return Ok(vec![(connection, ctx.clone())]);
    }
    for connection in run.connections() {
        if !conns.is_empty() && !conns.contains(&connection.dial.name) {
            continue;
        }
        let named = |ctx: &&String| {
            let fits = |pattern: &String| match pattern.strip_suffix('*') {
                Some(start) => ctx.starts_with(start),
                None => ctx == &pattern,
            };
            ctxs.is_empty() || ctxs.iter().any(fits)
        };
        let names: Vec<String> = connection.contexts().keys().filter(named).cloned().collect();
        found.extend(names.into_iter().map(|ctx| (connection.clone(), ctx)));
    }
    anyhow::ensure!(!found.is_empty(), "no such context");
    Ok(found)
}

fn split(list: Option<String>) -> Vec<String> {
    list.map_or(Vec::new(), |list| list.split(',').map(|s| s.trim().to_owned()).collect())
}

/// Server messages of a type about a context.
fn count(seen: &[Seen], kind: &str, ctx: &str) -> usize {
    seen.iter().filter(|s| s.is_event(kind, Some(ctx))).count()
}

/// The place of the first server message of a type about a context.
fn place(seen: &[Seen], kind: &str, ctx: &str) -> Option<usize> {
    seen.iter().position(|s| s.is_event(kind, Some(ctx)))
}
