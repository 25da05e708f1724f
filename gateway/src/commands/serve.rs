//! `dovecote serve`: the gateway, until it is told to stop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use engine::Handle;
use engine::bundle::Bundle;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::progress::Progress;
use super::{CommandError, licence_line, open_bundle, tell};
use crate::config::Config;
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
    let bundle = open_bundle(config)?;
    tell(&licence_line(&bundle));
    let engine = Arc::new(start(&bundle, config)?);
    let catalogue = Catalogue::of(&bundle);
    let settings = server::Config {
        max_sessions: args.max_sessions,
        speech: config.speech.clone(),
        voices: config.voices.clone(),
        ..server::Config::default()
    };
    let runtime = Runtime::new().map_err(|e| cannot("start", args, &e))?;
    runtime.block_on(async {
        let listener =
            TcpListener::bind(args.listen).await.map_err(|e| cannot("listen", args, &e))?;
        let address = listener.local_addr().map_err(|e| cannot("listen", args, &e))?;
        let signals = Signals::new().map_err(|e| cannot("start", args, &e))?;
        tell(&format!("listening on http://{address}"));
        tell(&format!("hear it speak: http://{address}/demo/"));
        let served = server::run(settings, listener, engine, catalogue, signals.stop());
        served.await.map_err(|e| cannot("serve", args, &e))
    })
}

fn start(bundle: &Bundle, config: &Config) -> Result<Handle, CommandError> {
    let bar = Progress::loading(io::IsTerminal::is_terminal(&io::stderr()));
    let engine = Handle::start(bundle, &config.engine, &mut |p| bar.loaded(p.loaded, p.total))?;
    bar.finish();
    Ok(engine)
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
