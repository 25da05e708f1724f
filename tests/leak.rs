//! Nothing is left behind: after barge-ins, lost connections and sleeping readers by chance, the server holds what it held
//! before. Counted are contexts and key/value blocks of the engine, places, tasks, open files and memory.
//!
//! Short by default. The long run:
//! `DOVECOTE_LEAK_DEEDS=10000 cargo test --release -p dovecote-tests --test leak -- --nocapture`;
//! `DOVECOTE_LEAK_SEED` throws the same dice again. Memory is judged in the long run only.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail its test")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::bundle::Bundle;
use engine::stub::{self, Script, Timbre};
use gateway::chance::Chance;
use gateway::client::{
    CancelAt, ClientError, Event, Flow, Opening, Resume, Session, SessionOptions, Target,
};
use gateway::config::Gateway;
use gateway::protocol::Catalogue;
use gateway::server;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, MutexGuard, Semaphore, oneshot, watch};
use tokio::task::JoinSet;

/// Longest wait for anything at all.
const PATIENCE: Duration = Duration::from_secs(120);
/// Callers at the same time.
const CALLERS: usize = 8;
/// Places of the server. A session whose connection was lost keeps its own while its caller comes back by another.
const PLACES: usize = 2 * CALLERS;
/// How long a lost session is kept: longer than a busy machine needs to come back.
const RESUME_WINDOW_MS: u64 = 15_000;
/// Deeds of others that a sleeping reader sleeps through.
const SLEEP_DEEDS: usize = 2 * CALLERS;
/// Seconds of computing for a second of sound.
const STUB_RTF: f64 = 0.01;
/// Deeds that fill what the stub keeps: a note of each of its last 4,096 contexts, and 131,072 blocks, which are found
/// again by what is in them. A deed is four thirds of a context, a context some sixty blocks.
const STUB_FILLS: usize = 3_100;
/// Little, so that its pages are soon all touched, and enough for all callers.
const NANO_KV_BYTES: usize = 128 << 20;
/// Deeds that touch every page of it.
const NANO_FILLS: usize = 150;
/// An allocator keeps what is in pieces; a leak of 4 KiB a deed is four times as much in a long run.
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
        config.server.max_sessions = PLACES as u32;
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
                    if guests.len() == PLACES {
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
    /// Loses its connection, comes back, and hears the rest.
    Resume,
}

const DEEDS: [Deed; 7] = [
    Deed::BargeIn,
    Deed::Replace,
    Deed::Reset,
    Deed::Close,
    Deed::Glance,
    Deed::Sleep,
    Deed::Resume,
];

/// What all callers share.
struct Town {
    target: Target,
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
        if let Some(session) = self.session {
            leave(session).await;
        }
    }

    async fn act(&mut self, deed: Deed) {
        let mut session = match self.session.take() {
            Some(session) if !matches!(deed, Deed::Resume) => session,
            Some(session) => {
                leave(session).await;
                self.connect(RESUME_WINDOW_MS, None).await
            }
            None if matches!(deed, Deed::Resume) => self.connect(RESUME_WINDOW_MS, None).await,
            None => self.connect(0, None).await,
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
                let opening = Opening { replaces: vec![first.clone()], ..Opening::default() };
                let (next, replaced) = self.open(&mut session, &opening).await;
                assert_eq!(replaced, [first]);
                session.text(&next, TEXT).await.unwrap();
                session.cancel("*", None, CancelAt::Now).await.unwrap();
                cancelled(&mut session, &next).await;
                self.session = Some(session);
            }
            Deed::Reset | Deed::Glance => session.reset(),
            Deed::Close => leave(session).await,
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
            Deed::Resume => {
                let resume = session.resume();
                session.reset();
                let mut session = self.connect(RESUME_WINDOW_MS, Some(resume)).await;
                assert!(session.ready().resumed);
                // What came whole before the connection was lost is not told again.
                session.cancel(&first, None, CancelAt::Now).await.unwrap();
                cancelled(&mut session, &first).await;
                leave(session).await;
            }
        }
    }

    /// A place that was just left is given back a moment later.
    async fn connect(&self, resume_window_ms: u64, resume: Option<Resume>) -> Session {
        // Nobody plays what comes, so the server need not wait for anybody.
        let flow = Some(Flow { max_ahead_ms: 30_000 });
        let resume_window_ms = Some(resume_window_ms);
        let options = SessionOptions { flow, resume_window_ms, resume, ..Default::default() };
        loop {
            match Session::connect(&self.town.target, &options).await {
                Ok(session) => return session,
                Err(ClientError::Refused { status: 503, .. }) => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(ClientError::Server(error)) if error.code == "overloaded" => {
                    let retry_after_ms = error.retry_after_ms.unwrap();
                    tokio::time::sleep(Duration::from_millis(retry_after_ms)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Opens a context, as often as it takes: how many are let in depends on how busy the machine is. Returns its name,
    /// and what was cancelled for it.
    async fn open(&mut self, session: &mut Session, opening: &Opening) -> (String, Vec<String>) {
        loop {
            self.turns += 1;
            let name = format!("t{}", self.turns);
            session.open(&name, opening).await.unwrap();
            let mut cancelled = Vec::new();
            let retry_after_ms = loop {
                match session.next().await.unwrap() {
                    Event::Opened(opened) if opened.ctx == name => return (name, cancelled),
                    Event::Cancelled(event) => cancelled.push(event.ctx),
                    Event::Error(error) if error.code == "overloaded" => {
                        break error.retry_after_ms.unwrap();
                    }
                    event => expected(&event),
                }
            };
            tokio::time::sleep(Duration::from_millis(retry_after_ms)).await;
        }
    }

    /// Opens a context, and says all of its text.
    async fn speak(&mut self, session: &mut Session) -> String {
        let (name, _) = self.open(session, &Opening::default()).await;
        session.text(&name, TEXT).await.unwrap();
        session.end(&name).await.unwrap();
        name
    }
}

/// Says goodbye, and waits for the answer.
async fn leave(mut session: Session) {
    session.end_session(false).await.unwrap();
    until(&mut session, |event| matches!(event, Event::Closed(_))).await;
}

/// Reads until something has come.
async fn until(session: &mut Session, mut is_it: impl FnMut(&Event) -> bool) {
    loop {
        let event = session.next().await.unwrap();
        if is_it(&event) {
            return;
        }
        expected(&event);
    }
}

/// Fails at what should not come.
fn expected(event: &Event) {
    match event {
        Event::Closed(closed) => panic!("{closed:?}"),
        Event::Error(error) if error.code != "played_beyond_sent" => panic!("{error}"),
        _ => {}
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
    let town = Arc::new(Town {
        target: house.target.clone(),
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

/// `fills`: so many deeds before the count begins fill every cache, and only then does memory tell anything.
async fn nothing_is_left_behind(house: House, count: usize, fills: usize) {
    let seed = setting("DOVECOTE_LEAK_SEED", 1);
    println!("{count} deeds, DOVECOTE_LEAK_SEED={seed}");
    // Caches fill and pools grow in the first part.
    let first = count.div_ceil(3);
    deeds(&house, first, seed).await;
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
    assert!(first < fills || grown <= MEMORY_SLACK, "{grown} bytes more than before");
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
    let script = Script { rtf: Some(STUB_RTF), ..Script::default() };
    let (engine, _control) = stub::start(script, Timbre::Tones(None)).unwrap();
    let house = House::open(engine, Catalogue::of_manifest(&stub::manifest())).await;
    nothing_is_left_behind(house, setting("DOVECOTE_LEAK_DEEDS", 600) as usize, STUB_FILLS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn real_networks_leave_nothing_behind() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../voices/nano");
    let bundle = Bundle::open(&root).unwrap();
    let options = engine::Options { kv_bytes: Some(NANO_KV_BYTES), ..engine::Options::default() };
    let engine = engine::Handle::start(&[bundle.clone().into()], &options, &mut |_| {}).unwrap();
    let house = House::open(engine, Catalogue::of(&bundle)).await;
    // A twentieth of the deeds of the stub: speech costs more than tones.
    let count = setting("DOVECOTE_LEAK_DEEDS", 600) as usize / 20;
    nothing_is_left_behind(house, count, NANO_FILLS).await;
}
