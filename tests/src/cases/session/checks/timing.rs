//! How long things took: first sound, pongs, gaps between frames. All of it is measured, none of it exact.

use std::time::Duration;

use serde_json::json;

use super::{Miss, hard, targets, within};
use crate::cases::session::args::Args;
use crate::cases::session::client::Connection;
use crate::cases::session::run::Run;
use crate::cases::session::steps::steps;
use crate::cases::session::transcript::{Seen, What};

/// First sounds that a comparison is made with.
const TURNS: usize = 20;
/// A gap of Nagle's algorithm and a delayed answer is 40 ms.
const NAGLE_MS: f64 = 35.0;

pub(super) async fn check(run: &Run, args: &mut Args) -> Result<bool, Miss> {
    match &*args.name.clone() {
        "pong_ms_max" => {
            let max: f64 = args.need("max")?;
            let slowest = run.left().pongs.iter().max().copied();
            hard(slowest.is_some(), || "no pong".to_owned())?;
            within(run, "a pong", slowest.unwrap_or_default().as_secs_f64() * 1e3, max)?;
        }
        "server_ping_interval_ms" => {
            let max: f64 = args.need("max")?;
            let seen = run.connection(None, None)?.transcript.all();
            let mut pings: Vec<Duration> = vec![Duration::ZERO];
            pings.extend(seen.iter().filter(|s| s.what == What::Ping).map(|s| s.at));
            let gap = pings.windows(2).map(|w| w[1] - w[0]).max();
            hard(gap.is_some(), || "the server does not ping".to_owned())?;
            within(run, "a gap between pings", gap.unwrap_or_default().as_secs_f64() * 1e3, max)?;
        }
        "frame_jitter_ms_p99" => {
            let max: f64 = args.need("max")?;
            within(run, "the gap between frames", jitter(&*run.connection(None, None)?), max)?;
        }
        "socket_option" => {
            args.rest();
            // From outside the option shows only in what it prevents.
            within(run, "the gap between frames", jitter(&*run.connection(None, None)?), NAGLE_MS)?;
        }
        "first_audio_ratio_vs_idle" | "first_request_ratio_to_warm" => {
            let max: f64 = args.need("max")?;
            let connection = run.connection(Some("c1"), None)?;
            let text = connection.contexts().get("A").map(|c| c.text.clone()).unwrap_or_default();
            let measured = first_audio(&connection, "A")?;
            for other in run.connections() {
                if other.dial.name != "c1" {
                    other.drop_tcp().await;
                }
            }
            let cancel = json!([{"do": "cancel", "conn": "c1", "ctx": "A"}]);
            steps(run, cancel.as_array().map_or(&[], |s| s)).await?;
            tokio::time::sleep(Duration::from_millis(300)).await;
            let base = median(&turns(run, &text).await?);
            within(run, "first sound against one alone", measured / base, max)?;
        }
        "p99_first_audio_ratio" => {
            let max: f64 = args.need("max")?;
            let mut measured = Vec::new();
            let mut text = String::new();
            for (connection, ctx) in targets(run, args)? {
                if connection.dial.name == "c1" {
                    measured.push(first_audio(&connection, &ctx)?);
                    text =
                        connection.contexts().get(&ctx).map(|c| c.text.clone()).unwrap_or_default();
                }
            }
            run.connection(Some("stuck"), None)?.drop_tcp().await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            let base = turns(run, &text).await?;
            let slowest = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
            within(
                run,
                "first sound against none stuck",
                slowest(&measured) / slowest(&base),
                max,
            )?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Milliseconds from the first text of a context to its first sound.
fn first_audio(connection: &Connection, ctx: &str) -> Result<f64, Miss> {
    let seen = connection.transcript.all();
    let text =
        |s: &&Seen| matches!(&s.what, What::Sent(m) if m["type"] == "text" && m["ctx"] == ctx);
    let from = seen.iter().find(text).map(|s| s.at);
    let to = seen.iter().find(|s| s.audio_of(ctx).is_some()).map(|s| s.at);
    let took = to.zip(from).map(|(to, from)| to.saturating_sub(from).as_secs_f64() * 1e3);
    took.ok_or_else(|| Miss::Hard(format!("{ctx} has no sound")))
}

/// First sounds of the same text, one turn after another on a connection of its own.
async fn turns(run: &Run, text: &str) -> Result<Vec<f64>, Miss> {
    let (conn, body) = (
        "alone",
        json!([
            {"do": "text", "conn": "alone", "ctx": "W{i}", "text": text},
            {"do": "end", "conn": "alone", "ctx": "W{i}"},
            {"do": "wait_for", "conn": "alone", "event": "done", "ctx": "W{i}"}
        ]),
    );
    let all = json!([{"do": "connect", "conn": conn}, {"do": "loop", "n": TURNS, "body": body}]);
    steps(run, all.as_array().map_or(&[], |s| s)).await?;
    let connection = run.connection(Some(conn), None)?;
    (0..TURNS).map(|i| first_audio(&connection, &format!("W{i}"))).collect()
}

fn median(all: &[f64]) -> f64 {
    let mut all = all.to_vec();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// The 99th percentile of the time between two frames that were made together, in ms.
fn jitter(connection: &Connection) -> f64 {
    let seen = connection.transcript.all();
    // Frames of one release come without any message between them.
    let together = |w: &&[Seen]| w.iter().all(|s| matches!(s.what, What::Audio(_)));
    let gaps = seen.windows(2).filter(together).map(|w| (w[1].at - w[0].at).as_secs_f64() * 1e3);
    let mut gaps: Vec<f64> = gaps.collect();
    gaps.sort_by(f64::total_cmp);
    gaps.get(gaps.len() * 99 / 100).copied().unwrap_or(0.0)
}
