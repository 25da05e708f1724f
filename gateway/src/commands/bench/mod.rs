//! `dovecote bench`: many callers against a server, and what they got.
//!
//! ```text
//! plan + chance --> caller --line--> server          report: table or JSON
//!                     |  turn: when sound came            ^
//!                     +------------- tally ---------------+
//! ```

mod buckets;
mod caller;
mod line;
mod plan;
mod report;
mod server;
mod tally;
mod turn;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cpu_time::ProcessTime;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::caller::{Caller, Town};
use self::line::Protocol;
use self::plan::{Arrivals, Mishaps, Plan};
use self::report::Report;
use self::server::Server;
use self::tally::End;
use self::turn::Turn;
use super::speaker::Kind;
use super::{CommandError, print, raise_file_limit};
use crate::chance::Chance;
use crate::client::Target;
use crate::config::Flags;

/// First turns of closed sessions are spread over a quarter of the run, and at most so long: nobody calls in step.
const RAMP_MOST: Duration = Duration::from_secs(5);
/// How often the bar is drawn and the server's memory read.
const LOOK: Duration = Duration::from_millis(250);

/// Arguments of `dovecote bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server to call [default: one of our own, on a free port, for the time of the run]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Key to the server at --url
    #[arg(long, env = "DOVECOTE_KEY", hide_env_values = true, value_name = "KEY")]
    key: Option<String>,
    /// What speaks in a server of our own
    #[arg(long, value_enum, default_value_t, conflicts_with = "url")]
    engine: Kind,
    /// What the server is spoken to in
    #[arg(long, value_enum, default_value_t = Protocol::Dovecote)]
    protocol: Protocol,
    /// Ask this speech language model, which answers in text and sound, instead of having texts spoken; with --protocol dovecote
    /// or openai
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Callers at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
    /// How long new turns begin; those begun are finished
    #[arg(long, value_name = "S", default_value_t = 20.0, value_parser = seconds)]
    seconds: f64,
    /// Words that a caller writes in a second; each turn is listened to in real time. 0: whole texts, one right behind
    /// the other, and nobody listens
    #[arg(long, value_name = "W", default_value_t = 33.0, value_parser = amount)]
    words_per_second: f64,
    /// Share of turns that are interrupted
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = share)]
    barge_in: f64,
    /// Share of turns whose caller breaks the connection off
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = share)]
    disconnects: f64,
    /// Share of turns whose caller takes nothing from the wire for one to four seconds; they count in no times
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = share)]
    slow_readers: f64,
    /// When turns begin: `closed`, each caller's next turn behind the last; or `poisson:RATE`, so many a second by new
    /// callers, whoever is still speaking, up to --sessions of them
    #[arg(long, value_name = "closed|poisson:RATE", default_value = "closed")]
    arrivals: Arrivals,
    /// What is said, one text a line [default: replies of an agent, in English]
    #[arg(long, value_name = "FILE")]
    texts: Option<PathBuf>,
    /// Sound that a listener gathers before playing; a turn that would run dry even so is an underrun
    #[arg(long, value_name = "MS", default_value_t = 40)]
    start_buffer_ms: u64,
    /// Makes texts, mishaps and arrivals the same again
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// End with one JSON object on standard output
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    amount(text).and_then(|p| if p <= 1.0 { Ok(p) } else { Err("0 to 1".to_owned()) })
}

fn amount(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number >= 0.0 && number.is_finite() { Ok(number) } else { Err("0 or more".to_owned()) }
}

fn seconds(text: &str) -> Result<f64, String> {
    let day = 86_400.0;
    amount(text).and_then(|s| if s <= day { Ok(s) } else { Err(format!("at most {day}")) })
}

/// Prints the report on standard output.
///
/// # Errors
/// Arguments that cannot work, a server that does not start or speak.
pub fn run(args: &Args, flags: &Flags) -> Result<(), CommandError> {
    let texts = args.texts.as_deref().map(read).transpose()?;
    let mishaps = Mishaps {
        barge_in: args.barge_in,
        disconnect: args.disconnects,
        slow_reader: args.slow_readers,
    };
    let plan = Plan::new(texts.as_deref(), args.words_per_second, mishaps);
    let plan = plan.map_err(CommandError::Usage)?;
    let plan = if args.model.is_some() { plan.of_questions() } else { plan };
    if args.model.is_some() && !args.protocol.asks() {
        let reason = "--model is for --protocol dovecote and openai";
        return Err(CommandError::Usage(reason.to_owned()));
    }
    // Each session is a file here and one in the server, which inherits the limit.
    raise_file_limit(args.sessions.into());
    let runtime = Runtime::new().map_err(failed)?;
    let report = runtime.block_on(measure(args, flags, plan))?;
    if args.json {
        print(&format!("{}\n", report.as_json()))?;
    } else {
        print(&report.as_text())?;
    }
    match report.tally.turns == report.tally.failed {
        true => Err(CommandError::Bench("no turn was spoken".to_owned())),
        false => Ok(()),
    }
}

fn read(file: &Path) -> Result<String, CommandError> {
    std::fs::read_to_string(file).map_err(CommandError::io(file))
}

async fn measure(args: &Args, flags: &Flags, plan: Plan) -> Result<Report, CommandError> {
    let own = match &args.url {
        Some(_) => None,
        None => Some(Server::start(args.engine, flags, args.sessions).await.map_err(failed)?),
    };
    let url = match (&args.url, &own) {
        (Some(url), _) => url.clone(),
        (None, own) => format!("http://{}", own.as_ref().map_or("", |own| &own.address)),
    };
    let target = Target::new(&url).map_err(|e| CommandError::Usage(e.to_string()))?;
    let target = match &args.key {
        Some(key) => target.with_key(key),
        None => target,
    };
    let address = target.address();
    let buffer = Duration::from_millis(args.start_buffer_ms);
    let town = Arc::new(Town::new(plan, (args.protocol, args.model.clone()), target, buffer));
    let warm = Caller::new(&town, Chance::new(args.seed)).warm_up().await;
    warm.map_err(|e| CommandError::Bench(format!("{address}: {e}")))?;

    let counted = server::held_now(&address).await.event_to_write;
    let before = own.as_ref().and_then(Server::resident_bytes);
    let (client_cpu, server_cpu) = (ProcessTime::now(), own.as_ref().and_then(Server::cpu));
    let began = town.clock.now();
    let most = crowd(args, &town, own.as_ref()).await;
    let wall = town.clock.now().saturating_sub(began);
    let server_cpu = own.as_ref().and_then(Server::cpu).zip(server_cpu);
    let growth = most.zip(before).map(|(most, before)| most.saturating_sub(before));
    let held = server::held(&address, &town.clock).await;
    Ok(Report {
        tally: town.tally(|tally| tally.clone()),
        sessions: args.sessions,
        wall,
        resident_bytes_per_session: growth.map(|bytes| bytes / u64::from(args.sessions)),
        start_to_ready: own.as_ref().map(|own| own.start_to_ready),
        client_cpu: client_cpu.elapsed(),
        server_cpu: server_cpu.map(|(after, before)| after.saturating_sub(before)),
        event_to_write: held.event_to_write.since(&counted),
        held,
    })
}

fn failed(error: io::Error) -> CommandError {
    CommandError::Bench(error.to_string())
}

/// Lets everybody call, and waits until the last has left. Returns the most memory that the server held.
async fn crowd(args: &Args, town: &Arc<Town>, own: Option<&Server>) -> Option<u64> {
    let length = Duration::from_secs_f64(args.seconds);
    let began = town.clock.now();
    let bar = bar(length);
    let calls = async {
        match args.arrivals {
            Arrivals::Closed => closed(args, town, began, length).await,
            Arrivals::Poisson(rate) => open(args, town, began + length, rate).await,
        }
    };
    tokio::pin!(calls);
    let mut most = None;
    loop {
        tokio::select! {
            () = &mut calls => break,
            () = tokio::time::sleep(LOOK) => {}
        }
        most = own.and_then(Server::resident_bytes).max(most);
        draw(&bar, town, town.clock.now().saturating_sub(began));
    }
    bar.finish_and_clear();
    own.and_then(Server::resident_bytes).max(most)
}

/// Everybody takes turn after turn on a line of their own.
async fn closed(args: &Args, town: &Arc<Town>, began: Duration, length: Duration) {
    let ramp = (length / 4).min(RAMP_MOST);
    let mut callers = JoinSet::new();
    for n in 0..args.sessions {
        let (town, seed) = (town.clone(), args.seed);
        callers.spawn(async move {
            let mut chance = Chance::of(seed, n.into());
            tokio::time::sleep(chance.within(Duration::ZERO, ramp)).await;
            Caller::new(&town, chance).stay(began + length).await;
        });
    }
    callers.join_all().await;
}

/// New callers come for a turn each. Whoever finds all lines taken is turned away, and counts as failed.
async fn open(args: &Args, town: &Arc<Town>, until: Duration, rate: f64) {
    let mut chance = Chance::new(args.seed);
    let lines = Arc::new(Semaphore::new(args.sessions as usize));
    let mut callers = JoinSet::new();
    let mut at = town.clock.now();
    for n in 0.. {
        at += chance.wait(rate);
        if at >= until {
            break;
        }
        tokio::time::sleep(at.saturating_sub(town.clock.now())).await;
        while callers.try_join_next().is_some() {}
        let Ok(free) = lines.clone().try_acquire_owned() else {
            let end = End::Failed("no line was free".to_owned());
            town.tally(|tally| tally.add(&Turn::new(Duration::ZERO), end));
            continue;
        };
        let (town, seed) = (town.clone(), args.seed);
        callers.spawn(async move {
            Caller::new(&town, Chance::of(seed, n)).visit().await;
            drop(free);
        });
    }
    callers.join_all().await;
}

fn bar(length: Duration) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("calling [{bar:30}] {msg}");
    ProgressBar::new(length.as_millis() as u64)
        .with_style(style.expect("the template above is well formed; this is a bug"))
}

fn draw(bar: &ProgressBar, town: &Town, since: Duration) {
    if bar.is_hidden() {
        return;
    }
    let (turns, dry, first) =
        town.tally(|tally| (tally.turns, tally.underruns, tally.first_audio.percentile_ms(50.0)));
    let first = first.map_or(String::new(), |ms| format!(", first audio after {ms:.0} ms"));
    bar.set_position(since.as_millis() as u64);
    bar.set_message(format!("{turns} turns, {dry} ran dry{first}"));
}
