//! The `dovecote` command: parses, sets up the log, runs, and says how it ended.
//!
//! Exit codes: 0 done, 1 failed on the way, 2 a command line, setting or bundle that cannot work.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use gateway::commands::{
    self, CommandError, bench, check, convert, fetch, key, say, serve, text, voices,
};
use gateway::config::{Config, Flags, LogFormat};
use tracing_subscriber::EnvFilter;

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A self-hosted realtime voice gateway for LLM agents
#[derive(Debug, Parser)]
#[command(name = "dovecote", version)]
struct Cli {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve agents over WebSocket and HTTP (what is done when no command is given)
    Serve(serve::Args),
    /// Speak a text to a file or a pipe
    Say(Box<say::Args>),
    /// Measure a server: many callers at once, and what they got
    Bench(bench::Args),
    /// Print a text as it would be spoken
    Text(text::Args),
    /// List the voices of a bundle
    Voices(voices::Args),
    /// Load a bundle and say what is in it, or what is wrong with it
    Check(check::Args),
    /// Make a bundle of a published checkpoint of a speech language model
    Convert(convert::Args),
    /// Draw an API key: the key on standard error, its line for the file of keys on standard output
    Key(key::Args),
    /// Download a bundle, or list one for others to download
    Fetch(fetch::Args),
}

fn main() -> ExitCode {
    let mut cli = Cli::parse();
    if cli.command.is_none() {
        // Parsed again, so that variables and defaults of the command hold.
        cli = Cli::parse_from(std::env::args_os().chain(["serve".into()]));
    }
    match run(&cli) {
        Ok(()) | Err(CommandError::ReaderGone) => ExitCode::SUCCESS,
        Err(error) => {
            commands::tell(&format!("dovecote: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(cli: &Cli) -> Result<(), CommandError> {
    let readable = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let config = Config::new(&cli.flags, std::env::vars_os().filter_map(readable))?;
    init_log(&config);
    match &cli.command {
        None => Ok(()),
        Some(Command::Serve(args)) => serve::run(args, &config),
        Some(Command::Say(args)) => say::run(args, &config),
        Some(Command::Bench(args)) => bench::run(args, &cli.flags),
        Some(Command::Text(args)) => text::run(args, &config),
        Some(Command::Voices(args)) => voices::run(args, &config),
        Some(Command::Check(args)) => check::run(args, &config),
        Some(Command::Convert(args)) => convert::run(args),
        Some(Command::Key(args)) => key::run(args),
        Some(Command::Fetch(args)) => fetch::run(args),
    }
}

/// Log lines go to standard error: standard output may carry sound. `RUST_LOG` chooses more finely than `-v`.
fn init_log(config: &Config) {
    let level = if config.verbose { "info" } else { "warn" };
    let access = if config.gateway.logs.access { "info" } else { "off" };
    let level = format!("{level},access={access}");
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    // A file of log lines is read by other programs, which know no colours.
    let has_colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(has_colours);
    match config.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}
