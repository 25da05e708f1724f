//! The server under test: a child process of our own, or one that runs already. Asks it how it is.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use clap::ValueEnum;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};

use super::buckets::Buckets;
use crate::commands::speaker::Kind;
use crate::config::Flags;
use crate::driver::Clock;

/// What a server says when it listens.
const LISTENING: &str = "listening on http://";
/// How long a server may take to get ready: a large bundle from a cold disk.
const READY_LIMIT: Duration = Duration::from_secs(600);
/// Between two questions whether it is ready.
const READY_POLL: Duration = Duration::from_millis(10);
/// How long a server may take to answer a question.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// How long an engine may take to let go of what left.
const IDLE_LIMIT: Duration = Duration::from_secs(2);
/// A stub computes nothing: what is measured is all the rest.
const STUB_SCRIPT: &str = "{\"rtf\": 0}";
/// Longest answer that is read.
const ANSWER_BYTES: u64 = 4 << 20;
/// Places beyond those that are needed: the next turn may begin before the server has noticed the end of the one before.
const SPARE_PLACES: u32 = 64;

/// A server of our own. Dropping it ends it.
pub(super) struct Server {
    pub(super) address: String,
    /// From its start until it said that it was ready.
    pub(super) start_to_ready: Duration,
    process: Child,
    _stderr: tokio::task::JoinHandle<()>,
}

/// What an engine holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Held {
    pub(super) contexts: Option<u64>,
    pub(super) kv_blocks: Option<u64>,
    /// From sound leaving the engine to its first packet at the socket, since the server's start.
    pub(super) event_to_write: Buckets,
}

impl Server {
    /// Starts a server for so many sessions, and waits until it is ready.
    ///
    /// # Errors
    /// It did not start; the error has what it said.
    pub(super) async fn start(engine: Kind, flags: &Flags, sessions: u32) -> io::Result<Self> {
        let clock = Clock::start();
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command.args(["--max-sessions", &sessions.saturating_add(SPARE_PLACES).to_string()]);
        if let Some(name) = engine.to_possible_value().filter(|_| engine != Kind::Native) {
            command.args(["--engine", name.get_name(), "--script", STUB_SCRIPT]);
        }
        pass_on(&mut command, flags);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn()?;
        let stderr = process.stderr.take().expect("it was asked for; this is a bug");
        let (address, stderr) = listening(BufReader::new(stderr)).await?;
        let server = Self {
            // Read on, or the server would stand still at a full pipe.
            _stderr: tokio::spawn(drain(stderr)),
            start_to_ready: Duration::ZERO,
            address,
            process,
        };
        server.until_ready(&clock).await?;
        Ok(Self { start_to_ready: clock.now(), ..server })
    }

    async fn until_ready(&self, clock: &Clock) -> io::Result<()> {
        while get(&self.address, "/readyz").await?.0 != 200 {
            if clock.now() > READY_LIMIT {
                return Err(io::Error::other("the server does not get ready"));
            }
            tokio::time::sleep(READY_POLL).await;
        }
        Ok(())
    }

    /// Processor time that its threads have used; none where the system does not tell.
    pub(super) fn cpu(&self) -> Option<Duration> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.process.id()?)).ok()?;
        let nanos = threads.filter_map(|thread| {
            let file = thread.ok()?.path().join("schedstat");
            // "time on the processor" "time waiting for it" "turns", the times in nanoseconds.
            std::fs::read_to_string(file).ok()?.split(' ').next()?.parse::<u64>().ok()
        });
        Some(Duration::from_nanos(nanos.sum()))
    }

    /// Bytes of memory that are its own now; none where the system does not tell.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id()?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib << 10)
    }
}

fn pass_on(command: &mut Command, flags: &Flags) {
    let config = flags.config.iter().map(|file| ("--config", file));
    for (name, path) in config.chain(flags.bundle.iter().map(|bundle| ("--bundle", bundle))) {
        command.arg(name).arg(path);
    }
    let numbers = [("--threads", flags.threads), ("--kv-bytes", flags.kv_bytes)];
    for (name, number) in numbers.into_iter().filter_map(|(name, n)| Some((name, n?))) {
        command.args([name, &number.to_string()]);
    }
    if let Some(value) = flags.precision.and_then(|p| p.to_possible_value()) {
        command.args(["--precision", value.get_name()]);
    }
}

/// Where a server listens, from what it says.
async fn listening(
    mut stderr: BufReader<ChildStderr>,
) -> io::Result<(String, BufReader<ChildStderr>)> {
    let (mut said, mut line) = (String::new(), String::new());
    while stderr.read_line(&mut line).await? > 0 {
        if let Some(address) = line.trim_end().strip_prefix(LISTENING) {
            return Ok((address.to_owned(), stderr));
        }
        said.push_str(&line);
        line.clear();
    }
    Err(io::Error::other(format!("the server did not start: {}", said.trim_end())))
}

async fn drain(mut stderr: BufReader<ChildStderr>) {
    let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
}

/// What the engine behind an address holds, when everybody has left: waits a moment for it to notice.
pub(super) async fn held(address: &str, clock: &Clock) -> Held {
    let since = clock.now();
    loop {
        let held = held_now(address).await;
        let is_empty = held.contexts.unwrap_or(0) + held.kv_blocks.unwrap_or(0) == 0;
        if is_empty || clock.now() > since + IDLE_LIMIT {
            return held;
        }
        tokio::time::sleep(READY_POLL).await;
    }
}

/// The same at once; nothing of a server that does not show its metrics.
pub(super) async fn held_now(address: &str) -> Held {
    match get(address, "/metrics").await {
        Ok((200, page)) => read_held(&page),
        _ => Held::default(),
    }
}

fn read_held(page: &str) -> Held {
    let sum = |name: &str, label: &str| {
        let samples = page.lines().filter_map(|line| line.strip_prefix(name));
        let samples = samples.filter(|rest| rest.starts_with(['{', ' ']) && rest.contains(label));
        let values = samples.filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok());
        values.map(|value| value as u64).reduce(|a, b| a + b)
    };
    Held {
        contexts: sum("dovecote_engine_contexts", ""),
        kv_blocks: sum("dovecote_engine_kv_blocks", "state=\"used\""),
        event_to_write: Buckets::read(page, "dovecote_event_to_write_seconds"),
    }
}

/// Status and body of an answer to a plain request.
async fn get(address: &str, path: &str) -> io::Result<(u16, String)> {
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES).read_to_string(&mut answer).await?;
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let status = status.ok_or_else(|| io::Error::other("no HTTP in the answer"))?;
        Ok((status, body.to_owned()))
    };
    tokio::time::timeout(ANSWER_LIMIT, ask).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_engine_holds_is_read_from_its_metrics() {
        let page = "# HELP dovecote_engine_contexts Contexts.\n\
            dovecote_engine_contexts{model=\"a\"} 2\n\
            dovecote_engine_contexts_total 99\n\
            dovecote_engine_kv_blocks{model=\"a\",stage=\"cb0\",state=\"used\"} 7\n\
            dovecote_engine_kv_blocks{model=\"a\",stage=\"cb1\",state=\"used\"} 3\n\
            dovecote_engine_kv_blocks{model=\"a\",stage=\"cb1\",state=\"free\"} 50\n";
        assert_eq!(
            read_held(page),
            Held { contexts: Some(2), kv_blocks: Some(10), ..Held::default() }
        );
        assert_eq!(read_held("other 1"), Held::default());
    }
}
