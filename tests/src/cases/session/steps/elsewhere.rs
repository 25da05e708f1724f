//! Steps on other vendors' surfaces: in their words, or as the case has them.

use anyhow::bail;
use serde_json::{Value, json};

use super::super::args::Args;
use super::super::client::Connection;
use super::super::run::Run;
use super::super::surface::Surface;
use super::super::vendor::Vendor;
use super::files::{ask_for_speech, is_over_http};
use super::stream;

/// Frames after which broken numbers come when a case does not say.
const BROKEN_AFTER: usize = 12;

/// As [`super::speak`], in another vendor's words. A context is opened by its first text there.
pub(super) async fn speak_elsewhere(
    run: &Run,
    args: &mut Args,
    connection: &Connection,
    ctx: &str,
) -> anyhow::Result<()> {
    args.take::<bool>("continuation")?;
    match &*args.name.clone() {
        "text" => {
            args.take::<bool>("at_once")?;
            let text: String = args.need("text")?;
            tell_elsewhere(run, connection, "text", ctx, &text).await
        }
        "text_stream" => stream(run, args, connection, ctx).await,
        "forced_chunks" => {
            let chunks: Vec<String> = args.need("chunks")?;
            for chunk in chunks {
                tell_elsewhere(run, connection, "text", ctx, &chunk).await?;
                tell_elsewhere(run, connection, "flush", ctx, "").await?;
            }
            tell_elsewhere(run, connection, "end", ctx, "").await
        }
        _ => Ok(()),
    }
}

/// Says a step in another vendor's words.
pub(super) async fn tell_elsewhere(
    run: &Run,
    connection: &Connection,
    step: &str,
    ctx: &str,
    text: &str,
) -> anyhow::Result<()> {
    let Some(vendor) = &connection.dial.vendor else { bail!("not another vendor's") };
    let has_ended = connection.with_client(|client| !client.is_taking()).unwrap_or(false);
    if step == "end" && vendor.surface == Surface::Deepgram && has_ended {
        // Its flush was its end.
        return Ok(());
    }
    for message in vendor.says(step, ctx, text)? {
        send_raw(run, connection, vendor, &message, Some(ctx)).await?;
    }
    Ok(())
}

async fn send_raw(
    run: &Run,
    connection: &Connection,
    vendor: &Vendor,
    message: &Value,
    ctx: Option<&str>,
) -> anyhow::Result<()> {
    if run.left().broken.as_ref() == Some(&connection.dial.name) {
        run.server()?.script(Some(vendor.seed), &broken_script()).await?;
    }
    connection.send_raw(message, ctx).await;
    Ok(())
}

/// What makes a context fail on its way.
pub(super) fn broken_script() -> Value {
    json!({"fail_chunk": 0, "fail_after_frames": BROKEN_AFTER})
}

/// A message of another vendor, as the case has it. Over HTTP it is a body.
pub(super) async fn raw(run: &Run, args: &mut Args) -> anyhow::Result<()> {
    let name = args.take::<String>("conn")?;
    let ctx = args.take::<String>("ctx")?;
    let message: Value = args.need("json")?;
    if is_over_http(run, name.as_deref()) {
        return ask_for_speech(run, &message).await;
    }
    let connection = run.connection(name.as_deref(), ctx.as_deref())?;
    match &connection.dial.vendor {
        Some(vendor) => send_raw(run, &connection, vendor, &message, ctx.as_deref()).await,
        None => {
            connection.send(&message).await;
            Ok(())
        }
    }
}
