//! The server as a child process: started for one case, watched from outside, and gone with it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Mutex as AsyncMutex;

use super::http::{self, Answer};

/// Longest wait for a server to come up: a debug build on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a state is looked at while something is waited for that nothing tells.
pub(super) const LOOK: Duration = Duration::from_millis(10);
/// Bytes of a page of memory.
const PAGE: u64 = 4_096;
/// Clock ticks of a second in `/proc`.
const TICKS_A_SECOND: u64 = 100;

/// A running server.
pub(super) struct Server {
    child: AsyncMutex<Child>,
    pid: u32,
    /// Where it serves.
    pub(super) address: SocketAddr,
    /// Where its stub engine is controlled, if it has one.
    control: Option<SocketAddr>,
    log: Arc<Mutex<String>>,
    /// The bundle that it speaks with.
    _bundle: Option<TempDir>,
}

/// What speaks in a server.
#[derive(Debug)]
pub(super) enum Engine {
    /// The stub, with its control address.
    Stub,
    /// The networks of a bundle.
    Bundle(TempDir),
}

/// What the control address counts, and what the system does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Counters {
    pub(super) contexts: u64,
    pub(super) kv_blocks_in_use: u64,
    pub(super) steps: u64,
    pub(super) tasks: u64,
    #[serde(default)]
    pub(super) sockets: u64,
}

/// What a context did in the engine, as the control address tells.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Spoken {
    /// Which context of the engine it is, counted from its start.
    pub(super) number: u64,
    pub(super) seed: u64,
    pub(super) context_hz: f64,
    pub(super) steps: u64,
    pub(super) codec_runs: u64,
    pub(super) samples: u64,
    pub(super) chunks: Vec<SpokenChunk>,
    /// Samples of each piece in which the sound went out.
    pub(super) pieces: Vec<usize>,
    /// What a real codec was given, `[rows][frames]`.
    #[serde(default)]
    pub(super) codes: Vec<Vec<u16>>,
}

/// A chunk of it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct SpokenChunk {
    pub(super) text: String,
    pub(super) chunk_hz: f64,
    pub(super) frames: usize,
    pub(super) samples: u64,
}

impl Spoken {
    /// All chunks, joined.
    pub(super) fn text(&self) -> String {
        let chunks: Vec<&str> = self.chunks.iter().map(|c| c.text.trim()).collect();
        chunks.join(" ")
    }
}

impl Server {
    /// Starts the server and waits until it listens, not until it is ready.
    ///
    /// # Errors
    /// It does not come up.
    pub(super) async fn start(
        binary: &Path,
        engine: Engine,
        more: &[&str],
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(binary);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("DOVECOTE_") || name == "RUST_LOG" {
                command.env_remove(name);
            }
        }
        command.args(["serve", "--verbose", "--listen", "127.0.0.1:0"]).args(more);
        match &engine {
            Engine::Stub => command.args(["--engine", "stub-live", "--control", "127.0.0.1:0"]),
            Engine::Bundle(folder) => command.arg("--bundle").arg(folder.path()),
        };
        let is_stub = matches!(engine, Engine::Stub);
        command.current_dir(std::env::temp_dir()).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().with_context(|| {
            format!("cannot start {}: build the workspace first", binary.display())
        })?;
        let pid = child.id().context("it ended at once")?;
        let log = Arc::new(Mutex::new(String::new()));
        let mut lines = BufReader::new(child.stderr.take().context("no stderr")?).lines();
        let (mut address, mut control) = (None, None);
        let up = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(at) = line.strip_prefix("listening on http://") {
                    address = Some(at.parse()?);
                } else if let Some(at) = line.strip_prefix("control address http://") {
                    control = Some(at.parse()?);
                }
                keep(&log, &line);
                if let Some(address) = address
                    && control.is_some() == is_stub
                {
                    return Ok((address, control));
                }
            }
            let said = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
            bail!("the server ended: {said}")
        };
        let (address, control) = tokio::time::timeout(PATIENCE, up).await??;
        let kept = log.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                keep(&kept, &line);
            }
        });
        let bundle = match engine {
            Engine::Stub => None,
            Engine::Bundle(folder) => Some(folder),
        };
        Ok(Self { child: AsyncMutex::new(child), pid, address, control, log, _bundle: bundle })
    }

    /// Waits until a path answers with this status.
    ///
    /// # Errors
    /// It never does.
    pub(super) async fn until_answers(&self, path: &str, status: u16) -> anyhow::Result<()> {
        let waited = async {
            while http::get(self.address, path).await.map_or(0, |a| a.status) != status {
                tokio::time::sleep(LOOK).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waited).await;
        waited.with_context(|| format!("{path} never answered {status}"))
    }

    /// Where its stub engine is controlled.
    fn control(&self) -> anyhow::Result<SocketAddr> {
        self.control.context("this server speaks with a bundle")
    }

    /// The script of contexts to come, or of the one with a seed.
    ///
    /// # Errors
    /// The server does not take it.
    pub(super) async fn script(&self, seed: Option<u64>, script: &Value) -> anyhow::Result<()> {
        let path = seed.map_or("/script".to_owned(), |seed| format!("/script?seed={seed}"));
        let json = ("Content-Type".to_owned(), "application/json".to_owned());
        let body = script.to_string().into_bytes();
        let answer = http::ask(self.control()?, "PUT", &path, &[json], &body).await?;
        if answer.status != 204 {
            bail!("script {script} refused: {}", String::from_utf8_lossy(&answer.body));
        }
        Ok(())
    }

    /// Counters as of now.
    ///
    /// # Errors
    /// The control address does not answer.
    pub(super) async fn counters(&self) -> anyhow::Result<Counters> {
        let mut counters: Counters = http::get(self.control()?, "/state").await?.json()?;
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.pid))?;
        let is_socket = |file: &std::fs::DirEntry| {
            let target = std::fs::read_link(file.path()).unwrap_or_default();
            target.to_string_lossy().starts_with("socket:")
        };
        counters.sockets = files.flatten().filter(is_socket).count() as u64;
        Ok(counters)
    }

    /// What contexts did; with a seed, only those that asked for it.
    ///
    /// # Errors
    /// The control address does not answer.
    pub(super) async fn spoken(&self, seed: Option<u64>) -> anyhow::Result<Vec<Spoken>> {
        let path = seed.map_or("/contexts".to_owned(), |seed| format!("/contexts?seed={seed}"));
        http::get(self.control()?, &path).await?.json()
    }

    /// An answer of the server itself.
    ///
    /// # Errors
    /// There is none.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        http::get(self.address, path).await
    }

    /// Bytes of memory that it really uses.
    ///
    /// # Errors
    /// It is gone.
    pub(super) fn resident(&self) -> anyhow::Result<u64> {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.pid))?;
        let pages: u64 = statm.split(' ').nth(1).context("statm")?.parse()?;
        Ok(pages * PAGE)
    }

    /// Processor time that it has used.
    ///
    /// # Errors
    /// It is gone.
    pub(super) fn cpu(&self) -> anyhow::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        let fields = stat.rsplit(')').next().context("stat")?.split_whitespace();
        // Fields 14 and 15, user and system time; the command's name, which may hold blanks, is field 2.
        let ticks: u64 = fields.skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 1_000 / TICKS_A_SECOND))
    }

    /// Sends a signal by its name.
    ///
    /// # Errors
    /// It cannot be sent.
    pub(super) async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let pid = self.pid.to_string();
        let sent = Command::new("kill").args(["-s", name.trim_start_matches("SIG"), &pid]).status();
        if !sent.await?.success() {
            bail!("cannot send {name}");
        }
        Ok(())
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It goes on.
    pub(super) async fn exit(&self, limit: Duration) -> anyhow::Result<ExitStatus> {
        Ok(tokio::time::timeout(limit, async { self.child.lock().await.wait().await })
            .await
            .context("it does not end")??)
    }

    /// What it has said on standard error.
    pub(super) fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn keep(log: &Mutex<String>, line: &str) {
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    log.push_str(line);
    log.push('\n');
}
