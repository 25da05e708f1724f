//! What a case has at hand while it runs, and what its steps leave behind for the checks.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::client::Connection;
use super::clock::Clock;
use super::format::Format;
use super::hearing;
use super::http::Answer;
use super::relay::Relay;
use super::server::{Counters, Engine, Server, Spoken};
use super::surface::Surface;

/// Decides what cases leave to chance.
const SEED: u64 = 20;

/// What holds for all cases of a call.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    /// The `dovecote` command.
    pub(super) binary: PathBuf,
    /// Factor on times, memory and ratios.
    pub(super) slack: f64,
    pub(super) long_text: String,
}

/// One run of one case.
pub(super) struct Run {
    pub(super) id: String,
    /// Where connections lead that do not say so themselves.
    pub(super) surface: Surface,
    pub(super) setup: Setup,
    /// What the case will do.
    pub(super) steps: Vec<Value>,
    pub(super) clock: Clock,
    /// Names of connections that go through a relay, since a step will stop it.
    pub(super) relayed: Vec<String>,
    /// Whether a step needs a bundle that makes voices of recordings.
    hears: bool,
    server: OnceCell<Server>,
    left: Mutex<Left>,
    next_seed: AtomicU64,
    next_chance: AtomicU64,
    /// How long slow handshakes were put up with; `None`: they still are.
    slow: Arc<Mutex<Vec<Option<Duration>>>>,
    /// What the engine did, as it was last asked before the server ended.
    remembered: Mutex<Vec<Spoken>>,
}

/// What steps leave behind.
#[derive(Default)]
pub(super) struct Left {
    pub(super) connections: Vec<Arc<Connection>>,
    pub(super) speeches: Vec<Speech>,
    /// Names that stand for files over HTTP now.
    pub(super) over_http: BTreeSet<String>,
    pub(super) relays: Vec<(String, Arc<Relay>)>,
    pub(super) answers: Vec<(String, Answer)>,
    /// Resident bytes and steps of an engine or a context, by time.
    pub(super) resident: Vec<(Duration, u64)>,
    pub(super) steps: Vec<(Duration, u64)>,
    /// Resident bytes after so many turns of a loop.
    pub(super) turns: Vec<(usize, u64)>,
    /// Processor time of the server while text was streamed.
    pub(super) streaming_cpu: Duration,
    /// How long pongs took.
    pub(super) pongs: Vec<Duration>,
    pub(super) log_matches: usize,
    pub(super) patterns: Vec<String>,
    pub(super) scripts: Vec<Value>,
    pub(super) signalled: Option<Duration>,
    pub(super) exit: Option<(Duration, Option<i32>)>,
    pub(super) before: Option<Before>,
    /// The connection whose context gets broken numbers.
    pub(super) broken: Option<String>,
    pub(super) voices: Vec<(f64, Answer)>,
}

/// How the server stood before the first step.
#[derive(Debug, Clone)]
pub(super) struct Before {
    /// Not of a server that speaks with a bundle.
    pub(super) counters: Option<Counters>,
    pub(super) resident: u64,
    pub(super) metrics: String,
}

/// A text spoken over `/v1/audio/speech`.
#[derive(Debug, Clone)]
pub(super) struct Speech {
    pub(super) format: Format,
    pub(super) text: String,
    pub(super) answer: Option<Answer>,
}

impl Run {
    pub(super) fn new(id: &str, surface: Surface, setup: Setup, steps: &[Value]) -> Self {
        let relayed = steps.iter().filter(|step| step["do"] == "blackhole");
        let relayed = relayed.filter_map(|step| step["conn"].as_str().map(str::to_owned)).collect();
        let hears = steps.iter().any(|step| step["do"] == "upload_voice");
        Self {
            id: id.to_owned(),
            surface,
            setup,
            steps: steps.to_vec(),
            clock: Clock::start(),
            relayed,
            hears,
            server: OnceCell::new(),
            left: Mutex::default(),
            next_seed: AtomicU64::new(1_000),
            next_chance: AtomicU64::new(0),
            slow: Arc::default(),
            remembered: Mutex::default(),
        }
    }

    /// Starts the server; once.
    ///
    /// # Errors
    /// It does not come up, or there is one.
    pub(super) async fn start_server(&self, more: &[&str]) -> anyhow::Result<()> {
        let engine = match self.hears {
            true => Engine::Bundle(hearing::bundle(&json!([{"name": "tiny"}]))),
            false => Engine::Stub,
        };
        let server = Server::start(&self.setup.binary, engine, more).await?;
        if self.server.set(server).is_err() {
            bail!("a server runs already");
        }
        Ok(())
    }

    /// The server that was started.
    ///
    /// # Errors
    /// None was.
    pub(super) fn server(&self) -> anyhow::Result<&Server> {
        self.server.get().context("no server was started")
    }

    /// Remembers how the server stands.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) async fn note_before(&self) -> anyhow::Result<()> {
        let server = self.server()?;
        let metrics = server.get("/metrics").await?;
        let counters = if self.hears { None } else { Some(server.counters().await?) };
        let metrics = match metrics.status {
            200 => String::from_utf8_lossy(&metrics.body).into_owned(),
            _ => String::new(),
        };
        let before = Before { counters, resident: server.resident()?, metrics };
        self.left().before = Some(before);
        Ok(())
    }

    pub(super) fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All connections, in the order in which they were asked for.
    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        self.left().connections.clone()
    }

    /// The latest connection of a name. Without a name: that one which alone has the context, else `c1`, else the latest.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn connection(
        &self,
        name: Option<&str>,
        ctx: Option<&str>,
    ) -> anyhow::Result<Arc<Connection>> {
        let all = self.connections();
        let named = |name: &str| all.iter().rev().find(|c| c.dial.name == name);
        if let Some(name) = name {
            return named(name).cloned().with_context(|| format!("no connection {name}"));
        }
        let mut having =
            all.iter().filter(|c| ctx.is_some_and(|ctx| c.contexts().contains_key(ctx)));
        let only = having.next().filter(|_| having.next().is_none());
        let c1 = named("c1");
        let found = c1.filter(|_| only.is_none()).or(only).or(all.last());
        found.cloned().context("no connection")
    }

    /// A seed that no other context of the run has.
    pub(super) fn fresh_seed(&self) -> u64 {
        self.next_seed.fetch_add(1, Ordering::Relaxed)
    }

    /// What the engine did for a context of a connection.
    ///
    /// # Errors
    /// Nothing, or more than one thing.
    pub(super) async fn spoken(
        &self,
        connection: &Connection,
        ctx: &str,
    ) -> anyhow::Result<Spoken> {
        if connection.dial.vendor.is_some() {
            let known = connection.with_client(|client| {
                let known = client.known_to_the_engine();
                known.into_iter().rposition(|at| client.turns[at].ctx == ctx)
            });
            let at = known.flatten().with_context(|| format!("{ctx} was never opened"))?;
            let all = self.spoken_on(connection).await?;
            return all.get(at).cloned().with_context(|| format!("the engine does not know {ctx}"));
        }
        let seed = connection.contexts().get(ctx).map(|c| c.seed);
        let seed = seed.with_context(|| format!("{ctx} was never opened"))?;
        let spoken = match self.server()?.spoken(Some(seed)).await {
            Ok(spoken) => spoken,
            Err(_) => self.recall(seed),
        };
        match &spoken[..] {
            [one] => Ok(one.clone()),
            _ => bail!("the engine knows {} contexts of {ctx}", spoken.len()),
        }
    }

    /// What the engine did for all turns of another vendor's client, in their order; not for those that were refused.
    ///
    /// # Errors
    /// The control address does not answer, or ours is spoken.
    pub(super) async fn spoken_on(&self, connection: &Connection) -> anyhow::Result<Vec<Spoken>> {
        let vendor = connection.dial.vendor.as_ref().context("contexts have seeds of their own")?;
        let mut all = match self.server()?.spoken(Some(vendor.seed)).await {
            Ok(all) => all,
            Err(_) => self.recall(vendor.seed),
        };
        all.sort_by_key(|spoken| spoken.number);
        Ok(all)
    }

    /// Asks the engine what it did, as long as it can be asked.
    pub(super) async fn remember(&self) {
        if let Ok(server) = self.server()
            && let Ok(spoken) = server.spoken(None).await
        {
            *self.remembered.lock().unwrap_or_else(PoisonError::into_inner) = spoken;
        }
    }

    fn recall(&self, seed: u64) -> Vec<Spoken> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.iter().filter(|s| s.seed == seed).cloned().collect()
    }

    /// The next number in 0..1 of a row that is the same in every run.
    pub(super) fn chance(&self) -> f64 {
        let n = self.next_chance.fetch_add(1, Ordering::Relaxed);
        engine::rng::uniform(SEED, 0, n)
    }

    /// How long slow handshakes were put up with.
    pub(super) fn slow(&self) -> Vec<Option<Duration>> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A place for one more of them.
    pub(super) fn slow_place(&self) -> impl Fn(Duration) + Send + 'static {
        let slow = self.slow.clone();
        let mut all = slow.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(None);
        let at = all.len() - 1;
        drop(all);
        move |held| slow.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(held)
    }

    /// A limit in time, with slack.
    pub(super) fn limit(&self, ms: f64) -> f64 {
        ms * self.setup.slack
    }
}
