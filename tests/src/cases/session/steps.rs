//! The steps of a case, one after another: what a client does, what the engine is told, what is looked at meanwhile.

mod connecting;
mod elsewhere;
mod files;
mod waiting;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context as _, bail};
use codecs::pcm;
use codecs::wav::{self, SampleFormat};
use futures_util::future::try_join_all;
use serde_json::{Map, Value, json};

use self::connecting::connect;
use self::elsewhere::{broken_script, raw, speak_elsewhere, tell_elsewhere};
use self::files::{end_speech, is_over_http};
use self::waiting::wait_for;
pub(super) use self::waiting::{is_sound, is_word};
use super::args::{Args, put_in};
use super::client::Connection;
use super::http;
use super::run::Run;
use super::server::LOOK;
use super::transcript::{Seen, What};
use super::wire::{self, FIN, RSV1, opcode};

/// How long `wait_for` waits when a case does not say.
const WAIT_MS: u64 = 30_000;
/// Characters of a token when a text comes in tokens.
const TOKEN: usize = 4;
/// Turns of a loop after which memory is looked at.
const TURNS: usize = 100;
/// What the warm-up of a server costs where a case is about it.
const SLOW_WARM_UP: &str = r#"{"warm_up_ms": 3000}"#;

type Done<'a> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send + 'a>>;

/// Carries out steps in order; texts that say so are streamed together with the one before them.
pub(super) fn steps<'a>(run: &'a Run, all: &'a [Value]) -> Done<'a> {
    Box::pin(async move {
        let mut at = 0;
        while at < all.len() {
            let more = all[at + 1..].iter().take_while(|step| is_stream_beside(step)).count();
            let together = all[at..=at + more].iter().map(|value| step(run, value));
            try_join_all(together).await?;
            at += 1 + more;
        }
        Ok(())
    })
}

fn is_stream_beside(step: &Value) -> bool {
    step["do"] == "text_stream" && step["parallel"] == true
}

fn step<'a>(run: &'a Run, value: &'a Value) -> Done<'a> {
    Box::pin(async move {
        let mut args = Args::new(value, "do")?;
        let told = || format!("step {value}").chars().take(200).collect::<String>();
        carry_out(run, &mut args).await.with_context(told)?;
        args.finish()
    })
}

async fn carry_out(run: &Run, args: &mut Args) -> anyhow::Result<()> {
    match &*args.name.clone() {
        "connect" => connect(run, args).await,
        "open_context" | "text" | "text_stream" | "forced_chunks" => speak(run, args).await,
        "flush" | "end" | "cancel" => tell(run, args).await,
        "close" | "drop_tcp" | "half_close" | "stall_reads" | "blackhole" => {
            hang_up(run, args).await
        }
        "raw" => raw(run, args).await,
        "send_text_frame" | "send_raw_frame" | "send_raw_bytes" | "send_fragments"
        | "send_compressed" | "client_ping" => send_odd(run, args).await,
        "tcp_open" => Ok(_ = args.need::<String>("conn")?),
        "send_slow" => send_slow(run, args).await,
        "loop" | "for" | "random" => repeat(run, args).await,
        "wait_for" => wait_for(run, args).await,
        "idle_until_timeout" => {
            let connection = run.connection(None, None)?;
            let gone = |seen: &[Seen]| seen.iter().any(|s| s.what == What::Gone).then_some(());
            let limit = Duration::from_millis(WAIT_MS);
            let waited = tokio::time::timeout(limit, connection.transcript.until(gone)).await;
            waited.context("the server keeps the connection")
        }
        _ => observe(run, args).await,
    }
}

/// Steps that open a context where there is none, and say something in it.
async fn speak(run: &Run, args: &mut Args) -> anyhow::Result<()> {
    let name = args.take::<String>("conn")?;
    let ctx: String = args.need("ctx")?;
    // Words are aligned unless a session asks for none.
    args.take::<bool>("timestamps")?;
    if is_over_http(run, name.as_deref()) {
        let text: String = args.need("text")?;
        if let Some(speech) = run.left().speeches.last_mut() {
            speech.text.push_str(&text);
        }
        return Ok(());
    }
    let connection = run.connection(name.as_deref(), Some(&ctx))?;
    if connection.dial.vendor.is_some() {
        return speak_elsewhere(run, args, &connection, &ctx).await;
    }
    let mut options = Map::new();
    for field in ["language", "style", "voice"] {
        if let Some(value) = args.take::<Value>(field)? {
            options.insert(field.to_owned(), value);
        }
    }
    if let Some(verbalize) = args.take::<bool>("verbalize")? {
        let verbalize = if verbalize { "auto" } else { "off" };
        options.insert("text".to_owned(), json!({"verbalize": verbalize}));
    }
    let continues = args.take::<bool>("continuation")?.unwrap_or(false);
    if !continues {
        open(run, &connection, &ctx, options).await?;
    }
    match &*args.name.clone() {
        "text" => {
            args.take::<bool>("at_once")?;
            let text: String = args.need("text")?;
            say(&connection, &ctx, &text).await;
        }
        "text_stream" => stream(run, args, &connection, &ctx).await?,
        "forced_chunks" => {
            let chunks: Vec<String> = args.need("chunks")?;
            for chunk in chunks {
                say(&connection, &ctx, &chunk).await;
                connection.send(&json!({"type": "flush", "ctx": ctx})).await;
            }
            connection.send(&json!({"type": "end", "ctx": ctx})).await;
        }
        _ => {}
    }
    Ok(())
}

async fn open(
    run: &Run,
    connection: &Connection,
    ctx: &str,
    options: Map<String, Value>,
) -> anyhow::Result<()> {
    let seed = {
        let mut contexts = connection.contexts();
        let context = contexts.entry(ctx.to_owned()).or_default();
        if context.is_opened {
            return Ok(());
        }
        context.is_opened = true;
        context.seed = run.fresh_seed();
        context.seed
    };
    if run.left().broken.as_ref() == Some(&connection.dial.name) {
        run.server()?.script(Some(seed), &broken_script()).await?;
    }
    let mut message = json!({"type": "context.open", "ctx": ctx, "seed": seed});
    for (field, value) in options {
        message[field] = value;
    }
    connection.send(&message).await;
    Ok(())
}

async fn say(connection: &Connection, ctx: &str, text: &str) {
    let seq = {
        let mut contexts = connection.contexts();
        let context = contexts.entry(ctx.to_owned()).or_default();
        context.seq += 1;
        context.text.push_str(text);
        context.seq - 1
    };
    connection.send(&json!({"type": "text", "ctx": ctx, "seq": seq, "text": text})).await;
}

/// Sends a text in deltas, until all is sent or the server wants no more.
async fn stream(
    run: &Run,
    args: &mut Args,
    connection: &Connection,
    ctx: &str,
) -> anyhow::Result<()> {
    args.take::<bool>("parallel")?;
    let text: String = args.need("text")?;
    let text = text.repeat(args.take("repeat")?.unwrap_or(1));
    let every = Duration::from_millis(args.take("every_ms")?.unwrap_or(0));
    let by = args.take::<String>("by")?;
    let deltas = deltas(&text, by.as_deref().unwrap_or("token"))?;
    let cpu = run.server()?.cpu()?;
    for delta in deltas {
        let refused = |seen: &[Seen]| {
            let refuses = |s: &&Seen| s.is_event("error", Some(ctx)) || s.what == What::Gone;
            seen.iter().rev().take(8).any(|s| refuses(&s))
        };
        if connection.transcript.with(refused) {
            break;
        }
        match &connection.dial.vendor {
            Some(_) => tell_elsewhere(run, connection, "text", ctx, &delta).await?,
            None => say(connection, ctx, &delta).await,
        }
        if !every.is_zero() {
            tokio::time::sleep(every).await;
        }
    }
    run.left().streaming_cpu += run.server()?.cpu()?.saturating_sub(cpu);
    Ok(())
}

fn deltas(text: &str, by: &str) -> anyhow::Result<Vec<String>> {
    let characters: Vec<char> = text.chars().collect();
    Ok(match by {
        "token" => characters.chunks(TOKEN).map(|c| c.iter().collect()).collect(),
        "char" => characters.iter().map(char::to_string).collect(),
        "word" => text.split_inclusive(' ').map(str::to_owned).collect(),
        other => bail!("cannot cut by {other}"),
    })
}

async fn tell(run: &Run, args: &mut Args) -> anyhow::Result<()> {
    let name = args.take::<String>("conn")?;
    let ctx: String = args.need("ctx")?;
    if args.name == "end" && is_over_http(run, name.as_deref()) {
        return end_speech(run).await;
    }
    let connection = run.connection(name.as_deref(), Some(&ctx))?;
    if connection.dial.vendor.is_some() {
        return tell_elsewhere(run, &connection, &args.name, &ctx, "").await;
    }
    connection.send(&json!({"type": args.name, "ctx": ctx})).await;
    Ok(())
}

async fn hang_up(run: &Run, args: &mut Args) -> anyhow::Result<()> {
    let name = args.take::<String>("conn")?;
    let connection = run.connection(name.as_deref(), None)?;
    match &*args.name.clone() {
        "close" => connection.close(args.take("code")?.unwrap_or(1_000)).await,
        "drop_tcp" => connection.drop_tcp().await,
        "half_close" => connection.half_close().await,
        "stall_reads" => connection.stall(Duration::from_millis(args.need("ms")?)),
        _ => {
            let relays = run.left().relays.clone();
            let relay = relays.iter().find(|(name, _)| *name == connection.dial.name);
            relay.context("no relay")?.1.stop();
        }
    }
    Ok(())
}

async fn send_odd(run: &Run, args: &mut Args) -> anyhow::Result<()> {
    let name = args.take::<String>("conn")?;
    let connection = run.connection(name.as_deref(), None)?;
    match &*args.name.clone() {
        "send_text_frame" => {
            let text: String = args.need("text")?;
            connection.send_frame(FIN | opcode::TEXT, text.as_bytes()).await;
        }
        "send_raw_frame" => {
            let (opcode, bytes): (u8, String) = (args.need("opcode")?, args.need("hex")?);
            connection.send_frame(FIN | opcode, &hex(&bytes)?).await;
        }
        "send_raw_bytes" => {
            let bytes: String = args.need("hex")?;
            connection.send_bytes(&hex(&bytes)?).await;
        }
        "send_fragments" => {
            let (bytes, n): (usize, usize) = (args.need("each_bytes")?, args.need("n")?);
            let fin = if args.need("fin")? { FIN } else { 0 };
            let payload = vec![b' '; bytes];
            for i in 0..n {
                let kind = if i == 0 { opcode::TEXT } else { opcode::CONTINUATION };
                let first = if i + 1 == n { fin | kind } else { kind };
                if connection.is_gone() || !connection.send_frame(first, &payload).await {
                    break;
                }
            }
        }
        "send_compressed" => {
            let zeros: usize = args.need("zeros_mb")?;
            let payload = wire::deflated_zeros(zeros << 20);
            connection.send_frame(FIN | RSV1 | opcode::TEXT, &payload).await;
        }
        _ => ping(run, args, &connection).await?,
    }
    Ok(())
}

async fn ping(run: &Run, args: &mut Args, connection: &Connection) -> anyhow::Result<()> {
    let (every_ms, n): (u64, usize) = (args.need("every_ms")?, args.need("n")?);
    for i in 1..=n {
        let sent = run.clock.now();
        connection.send_frame(FIN | opcode::PING, b"?").await;
        let pong =
            |seen: &[Seen]| seen.iter().filter(|s| s.what == What::Pong).nth(i - 1).map(|s| s.at);
        let waited = connection.transcript.until(pong);
        let at = tokio::time::timeout(Duration::from_millis(WAIT_MS), waited).await;
        let took = at.context("no pong")?.saturating_sub(sent);
        run.left().pongs.push(took);
        tokio::time::sleep(Duration::from_millis(every_ms).saturating_sub(took)).await;
    }
    Ok(())
}

fn hex(text: &str) -> anyhow::Result<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|d| Ok(u8::from_str_radix(std::str::from_utf8(d)?, 16)?)).collect()
}

/// A connection that never gets further than its handshake; it goes on beside the case.
async fn send_slow(run: &Run, args: &mut Args) -> anyhow::Result<()> {
    let _name: String = args.need("conn")?;
    let text: String = args.need("text")?;
    let every = Duration::from_millis(args.need("byte_every_ms")?);
    let stream = tokio::net::TcpStream::connect(run.server()?.address).await?;
    let began = run.clock.now();
    let (mut reader, mut writer) = stream.into_split();
    let writing = tokio::spawn(async move {
        for byte in text.bytes().cycle() {
            if tokio::io::AsyncWriteExt::write_all(&mut writer, &[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(every).await;
        }
    });
    let (tell, clock) = (run.slow_place(), run.clock);
    tokio::spawn(async move {
        let mut answer = Vec::new();
        // Whatever it says, the end of the stream is what counts.
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut answer).await;
        tell(clock.now().saturating_sub(began));
        writing.abort();
    });
    Ok(())
}

async fn repeat(run: &Run, args: &mut Args) -> anyhow::Result<()> {
    if args.name == "random" {
        let (p, a, b): (f64, Vec<Value>, Vec<Value>) =
            (args.need("p")?, args.need("a")?, args.need("b")?);
        let chosen = if run.chance() < p { a } else { b };
        return steps(run, &chosen).await;
    }
    let body = Value::Array(args.need("body")?);
    let (var, values): (String, Vec<Value>) = if args.name == "for" {
        (args.need("var")?, args.need("of")?)
    } else {
        let n: usize = args.need("n")?;
        ("i".to_owned(), (0..n).map(Value::from).collect())
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let bodies = values.iter().map(|value| put_in(&body, &var, &text(value)));
    if args.take("parallel")?.unwrap_or(false) {
        let bodies: Vec<Value> = bodies.collect();
        try_join_all(bodies.iter().map(|body| steps(run, body.as_array().map_or(&[], |b| b))))
            .await?;
        return Ok(());
    }
    for (turn, body) in bodies.enumerate() {
        steps(run, body.as_array().map_or(&[], |b| b)).await?;
        if turn % TURNS == 0 {
            let resident = run.server()?.resident()?;
            run.left().turns.push((turn, resident));
        }
    }
    Ok(())
}

/// Steps that look at the server, or tell its engine something.
async fn observe(run: &Run, args: &mut Args) -> anyhow::Result<()> {
    match &*args.name.clone() {
        "engine" => {
            let mut script = args.rest();
            if let Some(name) = script.remove("nan_for") {
                run.left().broken = name.as_str().map(str::to_owned);
            }
            let script = Value::Object(script);
            run.server()?.script(None, &script).await?;
            run.left().scripts.push(script);
        }
        "sleep" => tokio::time::sleep(Duration::from_millis(args.need("ms")?)).await,
        "sleep_random" => {
            let [least, most]: [f64; 2] = args.need("ms")?;
            let ms = least + (most - least) * run.chance();
            tokio::time::sleep(Duration::from_millis(ms as u64)).await;
        }
        "probe" => probe(run, args).await?,
        "http" => {
            let (method, path): (String, String) = (args.need("method")?, args.need("path")?);
            args.take::<Value>("headers")?;
            let body = args.take::<Value>("json")?.map_or(String::new(), |json| json.to_string());
            let json = ("Content-Type".to_owned(), "application/json".to_owned());
            let address = run.server()?.address;
            let answer = http::ask(address, &method, &path, &[json], body.as_bytes()).await?;
            run.left().answers.push((path, answer));
        }
        "scrape" => {
            let path: String = args.need("path")?;
            let answer = run.server()?.get(&path).await?;
            run.left().answers.push((path, answer));
        }
        "poll" => {
            let (path, status): (String, u16) = (args.need("path")?, args.need("until")?);
            run.server()?.until_answers(&path, status).await?;
        }
        "grep_logs" => {
            let patterns: Vec<String> = args.need("patterns")?;
            let log = run.server()?.log();
            let matches = patterns.iter().map(|p| log.matches(p.as_str()).count()).sum::<usize>();
            let mut left = run.left();
            left.log_matches += matches;
            left.patterns.extend(patterns);
        }
        "signal" => {
            run.server()?.signal(&args.need::<String>("name")?).await?;
            run.left().signalled = Some(run.clock.now());
        }
        "wait_exit" => {
            let ms: u64 = args.need("ms")?;
            let limit = Duration::from_millis((ms as f64 * run.setup.slack) as u64);
            run.remember().await;
            let status = run.server()?.exit(limit).await?;
            run.left().exit = Some((run.clock.now(), status.code()));
        }
        "start_server" => {
            run.start_server(&["--script", SLOW_WARM_UP]).await?;
        }
        "upload_voice" => upload(run, args).await?,
        other => bail!("unknown step {other}"),
    }
    Ok(())
}

/// Looks at something again and again for a while.
async fn probe(run: &Run, args: &mut Args) -> anyhow::Result<()> {
    let what: String = args.need("what")?;
    let time = Duration::from_millis(args.take("for_ms")?.unwrap_or(0));
    let ctx = args.take::<String>("ctx")?;
    let end = run.clock.now() + time;
    loop {
        let server = run.server()?;
        match &*what {
            "rss" => {
                let resident = server.resident()?;
                run.left().resident.push((run.clock.now(), resident));
            }
            "engine_steps" => {
                let steps = server.counters().await?.steps;
                run.left().steps.push((run.clock.now(), steps));
            }
            "engine_steps_for" => {
                let ctx = ctx.as_deref().context("whose steps")?;
                let connection = run.connection(None, Some(ctx))?;
                let spoken = run.spoken(&connection, ctx).await?;
                run.left().steps.push((run.clock.now(), spoken.steps + spoken.codec_runs));
            }
            other => bail!("unknown probe {other}"),
        }
        if run.clock.now() >= end {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Offers a recording of so many seconds as a voice.
async fn upload(run: &Run, args: &mut Args) -> anyhow::Result<()> {
    let seconds: f64 = args.need("seconds")?;
    let address = run.server()?.address;
    let (content_type, body) = voice_form(&recording(seconds));
    let headers = [("Content-Type".to_owned(), content_type)];
    let answer = http::ask(address, "POST", "/v1/voices", &headers, &body).await?;
    run.left().voices.push((seconds, answer));
    Ok(())
}

/// A sound that rises and falls as speech does: a WAV file of 16 bits at 16 kHz.
fn recording(seconds: f64) -> Vec<u8> {
    let samples = (seconds * 16_000.0).round() as usize;
    let mut bytes = wav::header(16_000, SampleFormat::I16, &[], Some(samples as u64));
    let sample = |i: usize| 0.3 * (i as f32 * 0.05).sin() * (i as f32 * 0.000_7).sin();
    let sound: Vec<f32> = (0..samples).map(sample).collect();
    pcm::extend_i16_le(&mut bytes, &sound);
    bytes
}

/// The form that offers a voice: its type and its bytes.
fn voice_form(file: &[u8]) -> (String, Vec<u8>) {
    const BOUNDARY: &str = "voice-form-boundary";
    let parts: [(&str, &[u8]); 4] = [
        ("name\"", b"Clip"),
        ("consent\"", b"true"),
        ("reference\"", b"made for a test, no speaker"),
        ("file\"; filename=\"clip.wav\"", file),
    ];
    let mut body = Vec::new();
    for (name, content) in parts {
        let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\r\n\r\n");
        body.extend(head.as_bytes());
        body.extend(content);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{BOUNDARY}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={BOUNDARY}"), body)
}
