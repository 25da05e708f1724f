//! What cases wait for, and the words they have for it.

use std::time::Duration;

use anyhow::Context as _;

use super::super::args::Args;
use super::super::client::Connection;
use super::super::run::Run;
use super::super::server::LOOK;
use super::super::transcript::{Seen, What};
use super::super::vendor;
use super::WAIT_MS;
use super::files::is_over_http;

pub(super) async fn wait_for(run: &Run, args: &mut Args) -> anyhow::Result<()> {
    let event: String = args.need("event")?;
    let name = args.take::<String>("conn")?;
    let ctx = args.take("ctx")?.unwrap_or(vendor::NAME.to_owned());
    let n: usize = args.take("n")?.unwrap_or(1);
    let idle = Duration::from_millis(args.take("ms")?.unwrap_or(0));
    let limit =
        args.take::<u64>("timeout_ms")?.unwrap_or(WAIT_MS) as f64 * run.setup.slack.max(1.0);
    let limit = Duration::from_millis(limit as u64);
    if is_over_http(run, name.as_deref()) {
        return Ok(());
    }
    let waited = async {
        match &*event {
            "all_done" | "all_done_or_error" => all_done(run).await,
            "audio_idle" => {
                audio_idle(run, &*run.connection(name.as_deref(), Some(&ctx))?, &ctx, idle).await
            }
            _ => {
                let connection = run.connection(name.as_deref(), Some(&ctx))?;
                until_event(&connection, &ctx, &event, n).await;
                Ok(())
            }
        }
    };
    let waited = tokio::time::timeout(limit, waited).await;
    if run.left().signalled.is_some() {
        run.remember().await;
    }
    waited.with_context(|| format!("no {event} of {ctx} in {} s", limit.as_secs()))?
}

/// Whether a case's word means sound.
pub(in super::super) fn is_sound(word: &str) -> bool {
    matches!(word, "audio" | "binary" | "chunk" | "output_audio")
}

/// Whether something is what a case's word means, of this context if one is named; a word of any surface.
pub(in super::super) fn is_word(seen: &Seen, word: &str, ctx: Option<&str>) -> bool {
    let is = |kinds: &[&str]| kinds.iter().any(|kind| seen.is_event(kind, ctx));
    match word {
        _ if is_sound(word) => match &seen.what {
            What::Audio(audio) => ctx.is_none_or(|ctx| audio.ctx == ctx),
            _ => false,
        },
        "done" | "Flushed" => is(&["context.done"]),
        "cancelled" | "Cleared" => is(&["context.cancelled"]),
        // ElevenLabs has one word for all ends.
        "isFinal" => is(&["context.done", "context.cancelled"]),
        "flush_done" => is(&["flushed"]),
        "timestamps" | "alignment" | "output_alignment" => is(&["commit"]),
        "Error" => is(&["error"]),
        // What is of no context is of any.
        other => is(&[other]) || seen.is_event(other, Some("")),
    }
}

/// Ends a context, or tells that something about it went wrong.
fn is_final(seen: &Seen, ctx: &str) -> bool {
    ["context.done", "context.cancelled", "error"].iter().any(|kind| seen.is_event(kind, Some(ctx)))
        || seen.what == What::Gone
}

async fn until_event(connection: &Connection, ctx: &str, event: &str, n: usize) {
    let from = connection.contexts().get(ctx).map_or(0, |c| c.cursor);
    let found = |seen: &[Seen]| {
        if is_sound(event) {
            let audio = seen.iter().filter(|s| s.audio_of(ctx).is_some()).count();
            let over = seen[from.min(seen.len())..].iter().any(|s| is_final(s, ctx));
            return (audio >= n || over).then_some(from);
        }
        let news = seen.iter().enumerate().skip(from);
        let mut ends = news.filter(|(_, s)| is_word(s, event, Some(ctx)) || is_final(s, ctx));
        ends.next().map(|(at, _)| at + 1)
    };
    let cursor = connection.transcript.until(found).await;
    connection.contexts().entry(ctx.to_owned()).or_default().cursor = cursor;
}

async fn audio_idle(
    run: &Run,
    connection: &Connection,
    ctx: &str,
    idle: Duration,
) -> anyhow::Result<()> {
    loop {
        let last = connection
            .transcript
            .with(|seen| seen.iter().rev().find(|s| s.audio_of(ctx).is_some()).map(|s| s.at));
        if last.is_some_and(|at| run.clock.now() >= at + idle) {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn all_done(run: &Run) -> anyhow::Result<()> {
    for connection in run.connections() {
        let names: Vec<String> = connection.contexts().keys().cloned().collect();
        for ctx in names {
            let over = |seen: &[Seen]| seen.iter().any(|s| is_final(s, &ctx)).then_some(());
            connection.transcript.until(over).await;
        }
    }
    Ok(())
}
