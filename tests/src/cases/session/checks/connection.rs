//! What became of connections: how they were closed, when, and who noticed.

use std::time::Duration;

use super::{Checked, Miss, hard, within};
use crate::cases::session::args::Args;
use crate::cases::session::client::Connection;
use crate::cases::session::run::Run;
use crate::cases::session::server::LOOK;
use crate::cases::session::transcript::{Seen, What};

/// Longest wait for a close that must come.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of a close reason.
const REASON_BYTES: usize = 123;

pub(super) async fn check(run: &Run, args: &mut Args) -> Result<bool, Miss> {
    let name = args.name.clone();
    if name == "connection_gone_within_ms" {
        return gone(run, args).await.map(|()| true);
    }
    if name == "slow_closed_within_ms" {
        return slow(run, args).await.map(|()| true);
    }
    if name == "rejected_code_in" {
        return rejected(run, args).map(|()| true);
    }
    const KNOWN: [&str; 11] = [
        "no_connection_close",
        "other_connections_untouched",
        "close_code",
        "close_code_in",
        "close_frames_sent",
        "close_reason_bytes",
        "close_reason_utf8_valid",
        "close_after_done",
        "error_event_before_close",
        "closed_or_resumed",
        "extension_negotiated",
    ];
    if name == "refused" {
        let connection = run.connection(args.take::<String>("conn")?.as_deref(), None)?;
        let status = connection.status;
        hard(matches!(status, 0 | 503), || format!("status {status}"))?;
        return Ok(true);
    }
    if !KNOWN.contains(&&*name) {
        return Ok(false);
    }
    let conn = args.take::<String>("conn")?;
    let connection = run.connection(conn.as_deref(), None)?;
    one(args, &connection).await?;
    Ok(true)
}

async fn closed(connection: &Connection) -> Option<(u16, Vec<u8>)> {
    let close = |seen: &[Seen]| {
        let gone = seen.iter().any(|s| s.what == What::Gone);
        let close = seen.iter().find_map(|s| match &s.what {
            What::Close { code, reason } => Some((*code, reason.clone())),
            _ => None,
        });
        (close.is_some() || gone).then_some(close)
    };
    tokio::time::timeout(PATIENCE, connection.transcript.until(close)).await.ok().flatten()
}

async fn one(args: &mut Args, connection: &Connection) -> Checked {
    match &*args.name.clone() {
        "no_connection_close" | "other_connections_untouched" => {
            let closed = |s: &Seen| matches!(s.what, What::Close { .. } | What::Gone);
            let closed = connection.transcript.with(|seen| seen.iter().any(closed));
            hard(!closed, || format!("{} was closed", connection.dial.name))
        }
        "close_code" | "close_code_in" => {
            let mut codes = args.take::<Vec<u16>>("any")?.unwrap_or_default();
            codes.extend(args.take::<u16>("equals")?);
            let code = closed(connection).await.map(|(code, _)| code);
            hard(code.is_some_and(|code| codes.contains(&code)), || format!("closed with {code:?}"))
        }
        "close_frames_sent" => {
            let equals: usize = args.need("equals")?;
            closed(connection).await;
            let is_close = |s: &&Seen| matches!(s.what, What::Close { .. });
            let n = connection.transcript.with(|seen| seen.iter().filter(is_close).count());
            hard(n == equals, || format!("{n} close frames"))
        }
        "close_reason_bytes" | "close_reason_utf8_valid" => {
            let max = args.take("max")?.unwrap_or(REASON_BYTES);
            let reason = closed(connection).await.map(|(_, reason)| reason);
            let Some(reason) = reason else { return hard(false, || "no close frame".to_owned()) };
            let fits = reason.len() <= max && std::str::from_utf8(&reason).is_ok();
            hard(fits, || format!("{} bytes of reason", reason.len()))
        }
        "close_after_done" => {
            let closed = closed(connection).await.is_some() || connection.is_gone();
            hard(closed, || "the server keeps the connection".to_owned())
        }
        "error_event_before_close" => {
            closed(connection).await;
            let seen = connection.transcript.all();
            let error = seen.iter().position(|s| s.is_event("error", None));
            let close = seen.iter().position(|s| matches!(s.what, What::Close { .. }));
            hard(error.is_some() && error < close, || format!("error {error:?}, close {close:?}"))
        }
        "closed_or_resumed" => {
            let length = connection.transcript.with(<[Seen]>::len);
            let gone = |seen: &[Seen]| seen.iter().any(|s| s.what == What::Gone);
            let more = |seen: &[Seen]| (seen.len() > length || gone(seen)).then_some(());
            let waited = tokio::time::timeout(PATIENCE, connection.transcript.until(more)).await;
            hard(waited.is_ok(), || "neither closed nor resumed".to_owned())
        }
        _ => {
            args.rest();
            let head = connection.head.to_ascii_lowercase();
            hard(!head.contains("sec-websocket-extensions"), || "an extension is on".to_owned())
        }
    }
}

/// The server let go of a connection on which nothing moves any more.
async fn gone(run: &Run, args: &mut Args) -> Checked {
    let ms: f64 = args.need("ms")?;
    let relays = run.left().relays.clone();
    for (name, relay) in relays {
        let Some(held) = relay.server_held_on() else {
            return hard(false, || format!("the server still holds {name}"));
        };
        within(run, "a dead connection", held.as_secs_f64() * 1e3, ms)?;
    }
    Ok(())
}

async fn slow(run: &Run, args: &mut Args) -> Checked {
    let ms: f64 = args.need("ms")?;
    let limit = run.limit(ms) / 1e3;
    let all_closed = async {
        while run.slow().iter().any(Option::is_none) {
            tokio::time::sleep(LOOK).await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs_f64(limit), all_closed).await;
    let held: Vec<Option<Duration>> = run.slow();
    let open = held.iter().filter(|h| h.is_none()).count();
    hard(open == 0 && !held.is_empty(), || format!("{open} of {} are still open", held.len()))?;
    let longest = held.into_iter().flatten().max().unwrap_or_default();
    within(run, "a slow handshake", longest.as_secs_f64() * 1e3, ms)
}

/// Whoever was turned away was told so in one of the ways that clients know.
fn rejected(run: &Run, args: &mut Args) -> Checked {
    let any: Vec<serde_json::Value> = args.need("any")?;
    for connection in run.connections() {
        let seen = connection.transcript.all();
        let refused = seen.iter().filter_map(|s| match &s.what {
            What::Close { code, .. } => Some(serde_json::Value::from(*code)),
            What::Event(event) if event["type"] == "error" => Some(event["code"].clone()),
            _ => None,
        });
        let status = (connection.status != 101).then(|| serde_json::Value::from(connection.status));
        // What follows is misuse of a context that was never opened.
        if let Some(told) = status.into_iter().chain(refused).next() {
            hard(any.contains(&told), || format!("{} was told {told}", connection.dial.name))?;
        }
    }
    Ok(())
}
