//! The process as a whole: what it holds when all is over, what it logged and counted, and how it ended.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Checked, Miss, hard, targets, within};
use crate::cases::session::args::Args;
use crate::cases::session::run::{Before, Run};
use crate::cases::session::server::{Counters, LOOK};
use crate::cases::session::steps::steps;
use crate::cases::session::transcript::{Seen, What};

/// Longest wait for what was held to be given back.
const PATIENCE: Duration = Duration::from_secs(10);
/// Turns after which memory must be flat.
const SETTLED_TURNS: usize = 200;
const MIB: f64 = 1_048_576.0;

pub(super) async fn check(run: &Run, args: &mut Args) -> Result<bool, Miss> {
    match &*args.name.clone() {
        "no_leak" => no_leak(run, args).await?,
        "free_slots" => {
            let equals: String = args.need("equals")?;
            hard(equals == "capacity", || format!("unknown {equals}"))?;
            comes_to_rest(run, |now, _| now.contexts == 0 && now.kv_blocks_in_use == 0).await?;
        }
        "server_alive" => alive(run).await?,
        "no_panic_log" => {
            let log = run.server()?.log();
            hard(!log.contains("panicked"), || log.clone())?;
        }
        "log_matches" => {
            let (equals, found) = (args.need::<usize>("equals")?, run.left().log_matches);
            hard(found == equals, || format!("{found} matches"))?;
        }
        "metrics_matches" => {
            let equals: usize = args.need("equals")?;
            let (metrics, patterns) = (metrics(run).await?, run.left().patterns.clone());
            let found: usize = patterns.iter().map(|p| metrics.matches(p.as_str()).count()).sum();
            hard(found == equals, || format!("{found} matches"))?;
        }
        "metric_incremented" => {
            let name: String = args.need("name")?;
            let before = total(&before(run)?.metrics, &name);
            let after = total(&metrics(run).await?, &name);
            let rose =
                after.zip(before.or(Some(0.0))).is_some_and(|(after, before)| after > before);
            hard(rose, || format!("{name}: {before:?}, then {after:?}"))?;
        }
        "series_growth" | "no_label_in" => scraped(run, args)?,
        "exit_code" => {
            let (equals, exit) = (args.need::<i32>("equals")?, run.left().exit);
            hard(exit.is_some_and(|e| e.1 == Some(equals)), || format!("{exit:?}"))?;
        }
        "exit_within_ms" => {
            let ms: f64 = args.need("ms")?;
            let left = run.left();
            let took = left.exit.zip(left.signalled).map(|(exit, from)| exit.0 - from);
            hard(took.is_some(), || "it did not end".to_owned())?;
            within(run, "the end", took.unwrap_or_default().as_secs_f64() * 1e3, ms)?;
        }
        "http_status" | "http_status_in" => answered(run, args)?,
        "rss_growth_mb" | "rss_slope_mb_per_1000_turns" | "frontend_cpu_ms" => {
            resources(run, args)?
        }
        "engine_steps_after_cancel_ms" | "engine_idle_within_ms" => stopped(run, args)?,
        "engine_paused" => {
            for (connection, ctx) in targets(run, args)? {
                let parked = connection.transcript.until(|seen| {
                    seen.iter().any(|s| s.is_event("context.parked", Some(&ctx))).then_some(())
                });
                let waited = tokio::time::timeout(PATIENCE, parked).await;
                hard(waited.is_ok(), || format!("{ctx} was never parked"))?;
            }
        }
        "prompt_frames" | "rejected_or_truncated_reported" => voices(run, args)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// What was said of a recording: how much of it each stage reads, or that it is too long.
fn voices(run: &Run, args: &mut Args) -> Result<(), Miss> {
    let seconds = args.take::<f64>("seconds")?.or(args.take("for_seconds")?).unwrap_or(0.0);
    let frames = args.take::<Vec<u64>>("equals")?;
    let left = run.left();
    let told = left.voices.iter().find(|(of, _)| *of == seconds).map(|(_, answer)| answer);
    let Some(answer) = told else { return hard(false, || format!("{seconds} s: not offered")) };
    let body: Value = answer.json()?;
    let fits = match frames {
        Some(frames) => answer.status == 201 && body["prompt_frames"] == json!(frames),
        None if answer.status == 201 => body["seconds_used"].as_f64() < Some(seconds),
        None => matches!(answer.status, 400 | 413) && body["error"]["code"].is_string(),
    };
    hard(fits, || format!("{seconds} s: {} {body}", answer.status))
}

fn answered(run: &Run, args: &mut Args) -> Result<(), Miss> {
    let path = args.take::<String>("path")?;
    let mut wanted = args.take::<Vec<u16>>("any")?.unwrap_or_default();
    wanted.extend(args.take::<u16>("equals")?);
    let left = run.left();
    let about = left.answers.iter().filter(|(p, _)| path.as_ref().is_none_or(|path| p == path));
    let got: BTreeSet<u16> = about.map(|(_, answer)| answer.status).collect();
    let fits = !got.is_empty() && got.iter().all(|status| wanted.contains(status));
    hard(fits, || format!("{got:?}"))
}

fn before(run: &Run) -> Result<Before, Miss> {
    run.left().before.clone().ok_or_else(|| Miss::Hard("nothing was noted before".to_owned()))
}

/// Waits until the counters are as they should be.
async fn comes_to_rest(run: &Run, is_rest: impl Fn(&Counters, &Counters) -> bool) -> Checked {
    let before = before(run)?.counters;
    let Some(before) = before else { return hard(false, || "nothing was counted".to_owned()) };
    let mut now = run.server()?.counters().await?;
    let rest = async {
        while !is_rest(&now, &before) {
            tokio::time::sleep(LOOK * 5).await;
            now = run.server()?.counters().await?;
        }
        anyhow::Ok(())
    };
    match tokio::time::timeout(PATIENCE, rest).await {
        Ok(done) => Ok(done?),
        Err(_) => hard(false, || format!("{now:?} instead of {before:?}")),
    }
}

async fn no_leak(run: &Run, args: &mut Args) -> Checked {
    let of: Vec<String> = args.need("of")?;
    for name in &of {
        let known =
            ["engine_slots", "kv_pages", "contexts", "tasks", "connections"].contains(&&**name);
        hard(known, || format!("unknown counter {name}"))?;
    }
    for connection in run.connections() {
        connection.drop_tcp().await;
    }
    comes_to_rest(run, |now, before| {
        of.iter().all(|name| match &**name {
            "kv_pages" => now.kv_blocks_in_use <= before.kv_blocks_in_use,
            "tasks" => now.tasks <= before.tasks,
            "connections" => now.sockets <= before.sockets,
            _ => now.contexts <= before.contexts,
        })
    })
    .await
}

async fn alive(run: &Run) -> Checked {
    let turn = json!([
        {"do": "connect", "conn": "alive", "surface": "native"},
        {"do": "text", "conn": "alive", "ctx": "alive", "text": "Still here."},
        {"do": "end", "conn": "alive", "ctx": "alive"},
        {"do": "wait_for", "conn": "alive", "event": "done", "ctx": "alive"}
    ]);
    steps(run, turn.as_array().map_or(&[], |s| s)).await?;
    let seen = run.connection(Some("alive"), None)?.transcript.all();
    let done = seen.iter().any(|s| s.is_event("context.done", Some("alive")));
    hard(done, || "a fresh connection cannot speak".to_owned())
}

async fn metrics(run: &Run) -> Result<String, Miss> {
    let answer = run.server()?.get("/metrics").await?;
    hard(answer.status == 200, || format!("/metrics answers {}", answer.status))?;
    Ok(String::from_utf8_lossy(&answer.body).into_owned())
}

/// Lines of a metrics page that are series.
fn series(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Sum of all series of a counter.
fn total(page: &str, name: &str) -> Option<f64> {
    let names = [format!("dovecote_{name}"), format!("dovecote_{name}_total")];
    let of = |line: &&str| {
        let end = line.find(['{', ' ']).unwrap_or(line.len());
        names.iter().any(|name| line[..end] == **name)
    };
    let values =
        series(page).filter(of).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    values.reduce(|a, b| a + b)
}

fn scraped(run: &Run, args: &mut Args) -> Checked {
    let before = before(run)?.metrics;
    let left = run.left();
    let page = left.answers.iter().rev().find(|(path, _)| path == "/metrics").map(|(_, a)| a);
    let page =
        page.filter(|a| a.status == 200).map(|a| String::from_utf8_lossy(&a.body).into_owned());
    let Some(page) = page else { return hard(false, || "no metrics".to_owned()) };
    if args.name == "series_growth" {
        let max: usize = args.need("max")?;
        let grown = series(&page).count().saturating_sub(series(&before).count());
        return hard(grown <= max, || format!("{grown} more series"));
    }
    let labels: Vec<String> = args.need("labels")?;
    let has = |label: &&String| {
        series(&page)
            .any(|l| l.contains(&format!("{{{label}=")) || l.contains(&format!(",{label}=")))
    };
    let found: Vec<&String> = labels.iter().filter(has).collect();
    hard(found.is_empty(), || format!("labels {found:?}"))
}

fn resources(run: &Run, args: &mut Args) -> Checked {
    let max: f64 = args.need("max")?;
    let before = before(run)?.resident as f64;
    let left = run.left();
    let (what, measure) = match &*args.name {
        "frontend_cpu_ms" => ("processor time", left.streaming_cpu.as_secs_f64() * 1e3),
        "rss_growth_mb" => {
            let most = left.resident.iter().map(|(_, bytes)| *bytes).max();
            let most = most.map_or_else(|| run.server()?.resident(), Ok)?;
            ("growth in MiB", (most as f64 - before) / MIB)
        }
        _ => {
            let settled = left.turns.iter().find(|(turn, _)| *turn >= SETTLED_TURNS);
            let Some((first, last)) = settled.zip(left.turns.last()) else {
                return hard(false, || "too few turns".to_owned());
            };
            let turns = (last.0 - first.0).max(1) as f64 / 1e3;
            ("growth in MiB a thousand turns", (last.1 as f64 - first.1 as f64) / MIB / turns)
        }
    };
    drop(left);
    within(run, what, measure, max)
}

/// The engine did nothing more for a client that had stopped it.
fn stopped(run: &Run, args: &mut Args) -> Checked {
    let max: f64 = args.take("max")?.or(args.take("ms")?).unwrap_or(0.0);
    let asked = run.connections().iter().find_map(|connection| {
        let stop = |s: &&Seen| match &s.what {
            What::Sent(message) => message["type"] == "cancel",
            other => *other == What::Gone,
        };
        connection.transcript.with(|seen| seen.iter().find(stop).map(|s| s.at))
    });
    let Some(asked) = asked else { return hard(false, || "nobody stopped it".to_owned()) };
    let left = run.left();
    let last = left.steps.last().map_or(0, |s| s.1);
    let Some(rest) = left.steps.iter().find(|s| s.1 == last).map(|s| s.0) else {
        return hard(false, || "nobody looked".to_owned());
    };
    drop(left);
    within(run, "work behind the stop", rest.saturating_sub(asked).as_secs_f64() * 1e3, max)
}
