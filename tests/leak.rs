//! Nothing is left behind: after barge-ins, lost connections and sleeping readers by chance, the server holds what it held
//! before. Counted are contexts and key/value blocks of the engine, places, tasks, open files and memory.
//!
//! Short by default. The long run:
//! `DOVECOTE_LEAK_DEEDS=10000 cargo test --release -p dovecote-tests --test leak -- --nocapture`;
//! `DOVECOTE_LEAK_SEED` throws the same dice again.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail its test")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::bundle::Bundle;
use engine::stub::{self, Script};
use gateway::chance::Chance;
use gateway::client::{
    CancelAt, ClientError, Event, Flow, Opening, Session, SessionOptions, Target,
};
use gateway::config::Gateway;
use gateway::protocol::Catalogue;
use gateway::server;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, MutexGuard, Semaphore, oneshot, watch};
use tokio::task::JoinSet;

/// Longest wait for anything at all.
const PATIENCE: Duration = Duration::from_secs(120);
/// Callers at the same time, and places of the server: a place that is not given back is missed at once.
const CALLERS: usize = 8;
/// Deeds of others that a sleeping reader sleeps through.
const SLEEP_DEEDS: usize = 2 * CALLERS;
/// Seconds of computing for a second of sound.
const STUB_RTF: f64 = 0.01;
/// An allocator keeps what is in pieces; a leak of 4 KiB a deed is five times as much in a long run.
const MEMORY_SLACK: u64 = 8 << 20;
const TEXT: &str = "The quick brown fox jumps over the lazy dog while the old clock on the wall keeps ticking. Nobody \
    in the house seems to notice that the evening has come, and the lights are still off.";

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// What the server and its process hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    contexts: u64,
    kv_blocks: u64,
    tasks: usize,
    files: usize,
}

/// Open files and memory are those of the process: one test at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

struct House {
    _alone: MutexGuard<'static, ()>,
    engine: Arc<engine::Handle>,
    target: Target,
    shutdown: oneshot::Sender<()>,
}

impl House {
    async fn open(engine: engine::Handle, catalogue: Catalogue) -> Self {
        let alone = ALONE.lock().await;
        let engine = Arc::new(engine);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Target::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let (shutdown, asked) = oneshot::channel();
        let mut config = Gateway::default();
        config.server.max_sessions = CALLERS as u32;
        let handle = engine.clone();
        tokio::spawn(async move {
            let asked = async {
                let _ = asked.await;
            };
            server::run(config, listener, handle, catalogue, asked).await.unwrap();
        });
        let house = Self { _alone: alone, engine, target, shutdown };
        // The first words of the server, and of a caller, before anything is counted.
        house.everybody_comes_in().await;
        house.until("idle", |held| held.contexts == 0 && held.kv_blocks == 0).await;
        house
    }

    fn held(&self) -> Held {
        let stats = self.engine.stats();
        Held {
            contexts: stats.contexts,
            kv_blocks: stats.kv_blocks_in_use,
            tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
            files: std::fs::read_dir("/proc/self/fd").unwrap().count(),
        }
    }

    async fn until(&self, what: &str, holds: impl Fn(Held) -> bool) {
        let waited = async {
            while !holds(self.held()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waited).await;
        waited.unwrap_or_else(|_| panic!("never {what}: {:?}", self.held()));
    }

    /// All places can be taken at the same time, once those before have been given back.
    async fn everybody_comes_in(&self) {
        let come_in = async {
            loop {
                let mut guests = Vec::new();
                while let Ok(guest) = Session::connect(&self.target, &Default::default()).await {
                    guests.push(guest);
                    if guests.len() == CALLERS {
                        return;
                    }
                }
                drop(guests);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, come_in).await.expect("places are missing");
    }
}

/// What a caller does.
#[derive(Debug, Clone, Copy)]
enum Deed {
    /// Interrupts, and hears the next turn to its end.
    BargeIn,
    /// Interrupts by the next turn, and interrupts that.
    Replace,
    /// Breaks the connection off.
    Reset,
    /// Closes politely in the middle.
    Close,
    /// Leaves before anything came.
    Glance,
    /// Takes nothing while others go on, then breaks off or hears the rest.
    Sleep,
}

const DEEDS: [Deed; 6] =
    [Deed::BargeIn, Deed::Replace, Deed::Reset, Deed::Close, Deed::Glance, Deed::Sleep];

/// What all callers share.
struct Town {
    target: Target,
    options: SessionOptions,
    count: usize,
    begun: AtomicUsize,
    done: watch::Sender<usize>,
    /// If everybody slept, nobody would be woken.
    beds: Semaphore,
}

struct Caller<'a> {
    town: &'a Town,
    chance: Chance,
    session: Option<Session>,
    turns: usize,
}

impl Caller<'_> {
    async fn live(mut self) {
        while self.town.begun.fetch_add(1, Ordering::Relaxed) < self.town.count {
            let deed = DEEDS[self.chance.below(DEEDS.len())];
            let did = tokio::time::timeout(PATIENCE, self.act(deed)).await;
            did.unwrap_or_else(|_| panic!("{deed:?} came to no end"));
            self.town.done.send_modify(|done| *done += 1);
        }
        if let Some(mut session) = self.session {
            session.end_session(false).await.unwrap();
            until(&mut session, |event| matches!(event, Event::Closed(_))).await;
        }
    }

    async fn act(&mut self, deed: Deed) {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.connect().await,
        };
        let first = self.speak(&mut session).await;
        let heard = self.chance.below(30);
        if !matches!(deed, Deed::Glance) {
            packets(&mut session, &first, heard).await;
        }
        match deed {
            Deed::BargeIn => {
                session.cancel(&first, Some(heard as u64 * 960), CancelAt::Now).await.unwrap();
                cancelled(&mut session, &first).await;
                let next = self.speak(&mut session).await;
                until(&mut session, |e| matches!(e, Event::Done(done) if done.ctx == next)).await;
                self.session = Some(session);
            }
            Deed::Replace => {
                let next = self.name();
                let opening = Opening { replaces: vec![first.clone()], ..Opening::default() };
                session.open(&next, &opening).await.unwrap();
                session.text(&next, TEXT).await.unwrap();
                cancelled(&mut session, &first).await;
                session.cancel("*", None, CancelAt::Now).await.unwrap();
                cancelled(&mut session, &next).await;
                self.session = Some(session);
            }
            Deed::Reset | Deed::Glance => session.reset(),
            Deed::Close => {
                session.end_session(false).await.unwrap();
                until(&mut session, |event| matches!(event, Event::Closed(_))).await;
            }
            Deed::Sleep => {
                if let Ok(_bed) = self.town.beds.try_acquire() {
                    let mut done = self.town.done.subscribe();
                    // The last ones of all have nobody to wait for.
                    let wake = *done.borrow() + SLEEP_DEEDS;
                    let wake = wake.min(self.town.count.saturating_sub(CALLERS));
                    done.wait_for(|done| *done >= wake).await.unwrap();
                }
                if self.chance.below(2) == 0 {
                    session.reset();
                } else {
                    until(&mut session, |e| matches!(e, Event::Done(done) if done.ctx == first))
                        .await;
                    self.session = Some(session);
                }
            }
        }
    }

    /// A place that was just left is given back a moment later.
    async fn connect(&self) -> Session {
        loop {
            match Session::connect(&self.town.target, &self.town.options).await {
                Ok(session) => return session,
                Err(ClientError::Refused { status: 503, .. }) => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn name(&mut self) -> String {
        self.turns += 1;
        format!("t{}", self.turns)
    }

    /// Opens a context, and says all of its text or only a part.
    async fn speak(&mut self, session: &mut Session) -> String {
        let name = self.name();
        session.open(&name, &Opening::default()).await.unwrap();
        session.text(&name, TEXT).await.unwrap();
        session.end(&name).await.unwrap();
        name
    }
}

/// Reads until something has come, and fails at what should not.
async fn until(session: &mut Session, mut is_it: impl FnMut(&Event) -> bool) {
    loop {
        let event = session.next().await.unwrap();
        if is_it(&event) {
            return;
        }
        match event {
            Event::Closed(closed) => panic!("{closed:?}"),
            Event::Error(error) if error.code != "played_beyond_sent" => panic!("{error}"),
            _ => {}
        }
    }
}

/// Reads so many packets, or to the end of the context.
async fn packets(session: &mut Session, ctx: &str, wanted: usize) {
    let mut count = 0;
    until(session, |event| {
        count += usize::from(matches!(event, Event::Audio(_)));
        count >= wanted || matches!(event, Event::Done(done) if done.ctx == ctx)
    })
    .await;
}

async fn cancelled(session: &mut Session, ctx: &str) {
    until(session, |e| matches!(e, Event::Cancelled(cancelled) if cancelled.ctx == ctx)).await;
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() << 10
}

/// So many deeds, divided among the callers.
async fn deeds(house: &House, count: usize, seed: u64) {
    // Nobody plays what comes, so the server need not wait for anybody.
    let flow = Some(Flow { max_ahead_ms: 30_000 });
    let town = Arc::new(Town {
        target: house.target.clone(),
        options: SessionOptions { flow, ..SessionOptions::default() },
        count,
        begun: AtomicUsize::new(0),
        done: watch::Sender::new(0),
        beds: Semaphore::new(CALLERS / 2),
    });
    let mut callers = JoinSet::new();
    for n in 0..CALLERS {
        let (town, chance) = (town.clone(), Chance::of(seed, n as u64));
        callers.spawn(async move {
            Caller { town: &town, chance, session: None, turns: 0 }.live().await;
        });
    }
    // A caller's panic is the test's.
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
}

async fn nothing_is_left_behind(house: House, count: usize) {
    let seed = setting("DOVECOTE_LEAK_SEED", 1);
    println!("{count} deeds, DOVECOTE_LEAK_SEED={seed}");
    // Caches fill and pools grow in the first part.
    deeds(&house, count.div_ceil(4), seed).await;
    let none = |held: Held| held.contexts == 0 && held.kv_blocks == 0;
    house.until("empty after the first part", none).await;
    house.everybody_comes_in().await;
    let before = settled(&house).await;
    let memory = resident_bytes();
    deeds(&house, count, seed + 1).await;
    let is_as_before =
        |held: Held| none(held) && held.tasks <= before.tasks && held.files <= before.files;
    house.until(&format!("as before, {before:?}"), is_as_before).await;
    house.everybody_comes_in().await;
    let grown = resident_bytes().saturating_sub(memory);
    println!("held {:?}, before {before:?}, {} KiB more", house.held(), grown >> 10);
    assert!(grown <= MEMORY_SLACK, "{grown} bytes more than before");
    drop(house.shutdown);
}

/// What is held once nobody is connected: the server's tasks end a moment after their sockets.
async fn settled(house: &House) -> Held {
    let mut least = house.held();
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let held = house.held();
        least =
            Held { tasks: least.tasks.min(held.tasks), files: least.files.min(held.files), ..held };
    }
    least
}

#[tokio::test(flavor = "multi_thread")]
async fn tones_leave_nothing_behind() {
    // Quick, but not done before anybody can interrupt it.
    let script = Script { rtf: STUB_RTF, ..Script::default() };
    let (engine, _control) = stub::start(script).unwrap();
    let house = House::open(engine, Catalogue::of_manifest(&stub::manifest())).await;
    nothing_is_left_behind(house, setting("DOVECOTE_LEAK_DEEDS", 600) as usize).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn real_networks_leave_nothing_behind() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../voices/nano");
    let bundle = Bundle::open(&root).unwrap();
    let engine = engine::Handle::start(&bundle, &engine::Options::default(), &mut |_| {}).unwrap();
    let house = House::open(engine, Catalogue::of(&bundle)).await;
    // A twentieth of the deeds of the stub: speech costs more than tones.
    nothing_is_left_behind(house, setting("DOVECOTE_LEAK_DEEDS", 600) as usize / 20).await;
}
