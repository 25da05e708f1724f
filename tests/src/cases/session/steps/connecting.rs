//! How a case connects: to which surface, with which format, by which way.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value, json};

use super::super::args::Args;
use super::super::client::{Connection, Dial};
use super::super::format::Format;
use super::super::relay::Relay;
use super::super::run::{Run, Speech};
use super::super::surface::Surface;
use super::super::vendor::Vendor;

/// Cases about how far the server runs ahead of its listener: there the server's own default holds.
const AHEAD_BY_DEFAULT: [&str; 3] = ["B130", "B131", "B170"];

pub(super) async fn connect(run: &Run, args: &mut Args) -> anyhow::Result<()> {
    let name: String = args.need("conn")?;
    let surface: Surface = args.take("surface")?.unwrap_or(run.surface);
    let (url, query) = (args.take::<String>("url")?, args.take::<String>("query")?);
    let frame_ms = args.take::<Value>("frame_ms")?.map(|ms| number(&ms)).transpose()?;
    let format = args.take::<String>("format")?;
    let format = match format {
        Some(format) => Format::named(&format, frame_ms)?,
        None if surface == Surface::Openai => Format::named("wav", None)?,
        None => Format::pcm(),
    };
    let is_file = matches!(format, Format::Speech { .. }) || surface == Surface::Openai;
    let vendor = (!surface.is_native() && !is_file)
        .then(|| Vendor::new(surface, run.fresh_seed(), format.clone(), &run.steps));
    let path = match (&vendor, query) {
        (Some(vendor), query) => vendor.path(url, query.as_deref())?,
        (None, query) => {
            let query = query.map(|query| format!("?{query}")).unwrap_or_default();
            format!("{}{query}", url.as_deref().unwrap_or("/v1/tts/stream"))
        }
    };
    let mut headers = vendor.as_ref().map_or(Vec::new(), Vendor::headers);
    for (name, value) in args.take::<Map<String, Value>>("headers")?.unwrap_or_default() {
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
        headers.push((name, value.as_str().unwrap_or_default().to_owned()));
    }
    let subprotocol = args.take::<String>("subprotocol")?;
    let subprotocol = subprotocol.or(vendor.is_none().then(|| "dovecote.v1".to_owned()));
    if let Some(subprotocol) = subprotocol {
        headers.push(("Sec-WebSocket-Protocol".to_owned(), subprotocol));
    }
    if let Some(extensions) = args.take("extensions")? {
        headers.push(("Sec-WebSocket-Extensions".to_owned(), extensions));
    }
    let idle_ms = args.take::<u64>("idle_timeout_ms")?;
    let via = args.take::<String>("via")?;
    if is_file {
        let mut left = run.left();
        left.over_http.insert(name.clone());
        left.speeches.push(Speech { format, text: String::new(), answer: None });
        return Ok(());
    }
    run.left().over_http.remove(&name);
    let start = match &vendor {
        Some(vendor) => vendor.greeting()?.unwrap_or_default(),
        None => start(run, &format, idle_ms),
    };
    let idle = match via.as_deref() {
        None => None,
        Some("proxy_idle_60s") => Some(Duration::from_secs(60)),
        Some(other) => bail!("unknown via {other}"),
    };
    let mut address = run.server()?.address;
    if idle.is_some() || run.relayed.contains(&name) {
        let relay = Arc::new(Relay::start(address, idle, run.clock).await?);
        address = relay.address;
        run.left().relays.push((name.clone(), relay));
    }
    let dial = Dial { name, path, headers, format, start, vendor };
    let connection = Connection::open(address, dial, run.clock).await?;
    run.left().connections.push(Arc::new(connection));
    Ok(())
}

/// The first message of the native surface.
fn start(run: &Run, format: &Format, idle_ms: Option<u64>) -> Value {
    let Format::Native { audio } = format else { return Value::Null };
    let mut start = json!({"type": "session.start", "audio": audio});
    if !AHEAD_BY_DEFAULT.contains(&run.id.as_str()) {
        start["flow"] = json!({"max_ahead_ms": 600_000});
    }
    if let Some(idle_ms) = idle_ms {
        start["idle_timeout_ms"] = idle_ms.into();
    }
    start
}

fn number(value: &Value) -> anyhow::Result<u64> {
    match value {
        Value::String(text) => Ok(text.parse()?),
        other => other.as_u64().with_context(|| format!("{other} is no number")),
    }
}
