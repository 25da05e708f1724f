//! What speaks for a server: the networks of a bundle, or the stub engine.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::sync::Arc;

use clap::ValueEnum;
use engine::stub::{self, Script, Timbre};
use engine::{Handle, Progress};

use super::progress;
use super::{CommandError, open_bundles, open_voice, tell};
use crate::config::Config;
use crate::protocol::Catalogue;

/// Which engine, and how a stub is controlled.
#[derive(Debug, clap::Args)]
pub(super) struct SpeakerArgs {
    /// What speaks
    #[arg(long, env = "DOVECOTE_ENGINE", hide_env_values = true, value_enum, default_value_t)]
    engine: Kind,
    /// Where the stub engine takes scripts and shows counters: a loopback address (docs/stub-engine.md)
    #[arg(long, env = "DOVECOTE_CONTROL", hide_env_values = true, value_name = "ADDR:PORT")]
    control: Option<SocketAddr>,
    /// What the stub engine does until it is told otherwise: {"rtf": 0.5}
    #[arg(long, env = "DOVECOTE_SCRIPT", hide_env_values = true, value_name = "JSON")]
    script: Option<String>,
}

/// What turns text into sound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// The networks and the codec of a bundle
    #[default]
    Native,
    /// Speech without a model or sound, in packets that were encoded beforehand, for load tests
    Stub,
    /// Tones without a model, each packet encoded when it is sent
    StubLive,
}

/// An engine with what can be asked of it.
pub(super) struct Speaker {
    pub(super) engine: Arc<Handle>,
    pub(super) catalogue: Catalogue,
    /// A stub that is controlled, and where.
    pub(super) control: Option<(stub::Control, SocketAddr)>,
}

impl Speaker {
    /// Loads and starts it.
    ///
    /// # Errors
    /// A bundle that cannot be loaded, or arguments that do not go together.
    pub(super) fn start(args: &SpeakerArgs, config: &Config) -> Result<Self, CommandError> {
        if args.engine != Kind::Native {
            return Self::stub(args, config);
        }
        if args.control.is_some() || args.script.is_some() {
            let message = "--control and --script are for --engine stub and stub-live";
            return Err(CommandError::Usage(message.to_owned()));
        }
        let bundles = open_bundles(config)?;
        for bundle in &bundles {
            tell(&format!("{}: {}", bundle.name(), bundle.license()));
        }
        let bar = progress::Progress::loading(io::stderr().is_terminal());
        let progress = &mut |p: Progress| bar.loaded(p.loaded, p.total);
        let engine = Handle::start(&bundles, &config.engine, progress)?;
        bar.finish();
        let catalogue = Catalogue::of_all(&bundles);
        Ok(Self { engine: Arc::new(engine), catalogue, control: None })
    }

    fn stub(args: &SpeakerArgs, config: &Config) -> Result<Self, CommandError> {
        let usage = |message: String| CommandError::Usage(message);
        if let Some(control) = args.control.filter(|c| !c.ip().is_loopback()) {
            let message =
                format!("--control {control}: a stub is controlled from this machine only");
            return Err(usage(message));
        }
        let wrong = |reason: String| usage(format!("--script: {reason}"));
        let script = args.script.as_deref().map(serde_json::from_str::<Script>).transpose();
        let script = script.map_err(|e| wrong(e.to_string()))?;
        let timbre = if args.engine == Kind::Stub {
            Timbre::Silence
        } else {
            let config = config.clone();
            let open = move || {
                let bundle = open_voice(&config).map_err(|e| e.to_string())?;
                bundle.ok_or_else(|| "none of the bundles speaks a text".to_owned())
            };
            Timbre::Tones(Some(Box::new(open)))
        };
        let started = stub::start(script.unwrap_or_default(), timbre);
        let (engine, control) = started.map_err(|e| wrong(e.to_string()))?;
        let manifest = stub::manifest();
        tell(&format!("{}: {}", manifest.name, manifest.license));
        let catalogue = Catalogue::of_manifest(&manifest);
        if args.control.is_none() {
            control.unwatch();
        }
        let control = args.control.map(|at| (control, at));
        Ok(Self { engine: Arc::new(engine), catalogue, control })
    }
}
