//! `dovecote serve`: the gateway, until it is told to stop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::ValueEnum;
use engine::Handle;
use engine::stub::{self, Script};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::progress::Progress;
use super::{CommandError, licence_line, open_bundle, tell};
use crate::config::Config;
use crate::control;
use crate::protocol::Catalogue;
use crate::server;

/// How the process ends when somebody does not want to wait for the sessions.
const IMPATIENT: i32 = 1;

/// Arguments of `dovecote serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to listen; port 0 takes a free one
    #[arg(
        long,
        env = "DOVECOTE_LISTEN",
        hide_env_values = true,
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:8080"
    )]
    listen: SocketAddr,
    /// Sessions and speech requests that are served at once
    #[arg(
        long,
        env = "DOVECOTE_MAX_SESSIONS",
        hide_env_values = true,
        value_name = "N",
        default_value_t = 1_024,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    max_sessions: u32,
    /// Listen beyond this machine although there are no keys: whoever reaches the port may speak
    #[arg(long, env = "DOVECOTE_INSECURE_OPEN", hide_env_values = true)]
    insecure_open: bool,
    /// What speaks
    #[arg(long, env = "DOVECOTE_ENGINE", hide_env_values = true, value_enum, default_value_t)]
    engine: EngineKind,
    /// Where the stub engine takes scripts and shows counters; a loopback address, only with a stub
    #[arg(long, env = "DOVECOTE_CONTROL", hide_env_values = true, value_name = "ADDR:PORT")]
    control: Option<SocketAddr>,
    /// What the stub engine does until it is told otherwise, as JSON: {"rtf": 0.5} (docs/stub-engine.md)
    #[arg(long, env = "DOVECOTE_SCRIPT", hide_env_values = true, value_name = "JSON")]
    script: Option<String>,
}

/// What turns text into sound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum EngineKind {
    /// The networks and the codec of a bundle
    #[default]
    Native,
    /// Tones without a model, for load tests and client developers; packets are encoded beforehand
    Stub,
    /// The same, but each packet is encoded when it is sent
    StubLive,
}

/// Serves until a signal comes.
///
/// # Errors
/// See [`CommandError`].
pub fn run(args: &Args, config: &Config) -> Result<(), CommandError> {
    if !args.listen.ip().is_loopback() && !args.insecure_open {
        let message = format!(
            "{} can be reached from outside and there are no keys: listen on 127.0.0.1, or say --insecure-open",
            args.listen
        );
        return Err(CommandError::Usage(message));
    }
    let Voice { engine, catalogue, stub } = Voice::start(args, config)?;
    let settings = server::Config { max_sessions: args.max_sessions, ..server::Config::default() };
    let runtime = Runtime::new().map_err(|e| cannot("start", args, &e))?;
    runtime.block_on(async {
        let listener =
            TcpListener::bind(args.listen).await.map_err(|e| cannot("listen", args, &e))?;
        let address = listener.local_addr().map_err(|e| cannot("listen", args, &e))?;
        let signals = Signals::new().map_err(|e| cannot("start", args, &e))?;
        tell(&format!("listening on http://{address}"));
        tell(&format!("hear it speak: http://{address}/demo/"));
        if let (Some(stub), Some(control)) = (stub, args.control) {
            let listener =
                TcpListener::bind(control).await.map_err(|e| cannot("control", args, &e))?;
            let address = listener.local_addr().map_err(|e| cannot("control", args, &e))?;
            tell(&format!("control address http://{address}"));
            tokio::spawn(control::serve(listener, engine.clone(), stub));
        }
        let served = server::run(settings, listener, engine, catalogue, signals.stop());
        served.await.map_err(|e| cannot("serve", args, &e))
    })
}

/// What speaks, and what can be asked of it.
struct Voice {
    engine: Arc<Handle>,
    catalogue: Catalogue,
    stub: Option<stub::Control>,
}

impl Voice {
    fn start(args: &Args, config: &Config) -> Result<Self, CommandError> {
        if args.engine != EngineKind::Native {
            return Self::stub(args);
        }
        if args.control.is_some() || args.script.is_some() {
            let message = "--control and --script are for --engine stub and stub-live";
            return Err(CommandError::Usage(message.to_owned()));
        }
        let bundle = open_bundle(config)?;
        tell(&licence_line(&bundle));
        let bar = Progress::loading(io::IsTerminal::is_terminal(&io::stderr()));
        let progress = &mut |p: engine::Progress| bar.loaded(p.loaded, p.total);
        let engine = Handle::start(&bundle, &config.engine, progress)?;
        bar.finish();
        let catalogue = Catalogue::of(&bundle);
        Ok(Self { engine: Arc::new(engine), catalogue, stub: None })
    }

    fn stub(args: &Args) -> Result<Self, CommandError> {
        let usage = |message: String| CommandError::Usage(message);
        if let Some(control) = args.control.filter(|c| !c.ip().is_loopback()) {
            return Err(usage(format!(
                "--control {control}: only a loopback address controls a stub"
            )));
        }
        let script = args.script.as_deref().map_or(Ok(Script::default()), serde_json::from_str);
        let script = script.map_err(|e| usage(format!("--script: {e}")))?;
        let (engine, control) = stub::start(script).map_err(|e| usage(format!("--script: {e}")))?;
        let manifest = stub::manifest();
        tell(&format!("{}: {}", manifest.name, manifest.license));
        let catalogue = Catalogue::of_manifest(&manifest);
        Ok(Self { engine: Arc::new(engine), catalogue, stub: Some(control) })
    }
}

fn cannot(what: &str, args: &Args, error: &io::Error) -> CommandError {
    CommandError::Usage(format!("cannot {what} on {}: {error}", args.listen))
}

/// What ends a server: Ctrl-C at a terminal, SIGTERM from a supervisor.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Comes true at the first signal; a second one ends the process at once.
    async fn stop(mut self) {
        self.next().await;
        tell("finishing what was begun; once more to stop at once");
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(IMPATIENT);
        });
    }
}
