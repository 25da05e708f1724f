//! `dovecote serve`: the gateway, until it is told to stop.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::speaker::{Speaker, SpeakerArgs};
use super::text::lexicons;
use super::{CommandError, raise_file_limit, tell};
use crate::config::{Config, ConfigError, Gateway};
use crate::control;
use crate::security::Security;
use crate::server;

/// How the process ends when somebody does not want to wait for the sessions.
const IMPATIENT: i32 = 1;

/// Arguments of `dovecote serve`. What is rarer stands in the settings file alone.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:8080] [toml: server.listen]
    #[arg(long, env = "DOVECOTE_LISTEN", hide_env_values = true, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Sessions and speech requests that are served at once [default: 1024] [toml: server.max_sessions]
    #[arg(long, env = "DOVECOTE_MAX_SESSIONS", hide_env_values = true, value_name = "N")]
    max_sessions: Option<u32>,
    /// Listen beyond this machine although there are no keys: whoever reaches the port may speak [toml: server.insecure_open]
    #[arg(long, env = "DOVECOTE_INSECURE_OPEN", hide_env_values = true)]
    insecure_open: bool,
    /// File of `[[keys]]`; read again when it changes [toml: auth.keys_file]
    #[arg(long, env = "DOVECOTE_AUTH_KEYS_FILE", hide_env_values = true, value_name = "FILE")]
    keys_file: Option<PathBuf>,
    /// Certificate of the server as a PEM file [toml: tls.cert]
    #[arg(long, env = "DOVECOTE_TLS_CERT", hide_env_values = true, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate as a PEM file [toml: tls.key]
    #[arg(long, env = "DOVECOTE_TLS_KEY", hide_env_values = true, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    #[command(flatten)]
    speaker: SpeakerArgs,
}

impl Args {
    /// The settings, as far as the command line does not say otherwise.
    fn over(&self, mut gateway: Gateway) -> Result<Gateway, CommandError> {
        let Gateway { server, auth, tls, .. } = &mut gateway;
        server.listen = self.listen.unwrap_or(server.listen);
        server.max_sessions = self.max_sessions.unwrap_or(server.max_sessions);
        server.insecure_open |= self.insecure_open;
        auth.keys_file = self.keys_file.clone().or(auth.keys_file.take());
        tls.cert = self.tls_cert.clone().or(tls.cert.take());
        tls.key = self.tls_key.clone().or(tls.key.take());
        gateway.check().map_err(ConfigError::from)?;
        Ok(gateway)
    }
}

/// Serves until a signal comes.
///
/// # Errors
/// See [`CommandError`].
pub fn run(args: &Args, config: &Config) -> Result<(), CommandError> {
    let settings = args.over(config.gateway.clone())?;
    let listen = settings.server.listen;
    let security = Security::new(&settings)?;
    // Before the model is loaded, which takes longer.
    lexicons(&settings.lexicon)?;
    // An address that is taken is told at once; it is bound for good when there is somebody to answer.
    drop(std::net::TcpListener::bind(listen).map_err(|e| cannot("listen", listen, &e))?);
    if !listen.ip().is_loopback() && !security.needs_key() && !settings.server.insecure_open {
        let message = format!(
            "{listen} can be reached from outside and there are no keys: listen on 127.0.0.1, or say --insecure-open",
        );
        return Err(CommandError::Usage(message));
    }
    let Speaker { engine, catalogue, control } = Speaker::start(&args.speaker, config)?;
    raise_file_limit(settings.server.max_connections as u64);
    let runtime = Runtime::new().map_err(|e| cannot("start", listen, &e))?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await.map_err(|e| cannot("listen", listen, &e))?;
        let address = listener.local_addr().map_err(|e| cannot("listen", listen, &e))?;
        let signals = Signals::new().map_err(|e| cannot("start", listen, &e))?;
        let scheme = if security.is_encrypted() { "https" } else { "http" };
        tell(&format!("listening on {scheme}://{address}"));
        tell(&format!("hear it speak: {scheme}://{address}/demo/"));
        if let Some((control, at)) = control {
            let listener = TcpListener::bind(at).await.map_err(|e| cannot("listen", at, &e))?;
            let address = listener.local_addr().map_err(|e| cannot("listen", at, &e))?;
            tell(&format!("control address http://{address}"));
            tokio::spawn(control::serve(listener, engine.clone(), control));
        }
        let mut hang_up = signal(SignalKind::hangup()).map_err(|e| cannot("start", listen, &e))?;
        let served = server::run_with(
            security.clone(),
            settings,
            listener,
            engine,
            catalogue,
            signals.stop(),
        );
        tokio::select! {
            result = served => result.map_err(|e| cannot("serve", listen, &e)),
            () = reload_at(&mut hang_up, &security) => Ok(()),
        }
    })
}

fn cannot(what: &str, listen: SocketAddr, error: &io::Error) -> CommandError {
    CommandError::Usage(format!("cannot {what} on {listen}: {error}"))
}

/// Reads keys and certificate again whenever a supervisor says so.
async fn reload_at(hang_up: &mut tokio::signal::unix::Signal, security: &Security) {
    while hang_up.recv().await.is_some() {
        match security.reload() {
            Ok(()) => tell("keys and certificate were read again"),
            Err(error) => tell(&format!("something stays as it was: {error}")),
        }
    }
    // No signals can come any more; the server goes on.
    std::future::pending::<()>().await;
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
