//! Runs text and session cases from JSON lines: a line a case, then the sums; fails when a case fails.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use harness::cases::session::{self, server_beside};

/// Runs cases written as JSON lines (format: tests/fixtures/text_cases.md).
#[derive(Parser)]
struct Args {
    /// Files of cases.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The dovecote command that session cases start [default: the one beside this program]
    #[arg(long)]
    server: Option<PathBuf>,
    /// Factor on demands of time, memory and ratios
    #[arg(long, default_value_t = 1.0)]
    slack: f64,
    /// Run session cases that take over half a minute, too
    #[arg(long)]
    slow: bool,
    /// Run only the session cases of these ids
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// Session cases that run at a time
    #[arg(long, default_value_t = 4)]
    jobs: usize,
}

fn main() -> anyhow::Result<ExitCode> {
    let Args { files, server, slack, slow, only, jobs } = Args::parse();
    let server = match server {
        Some(server) => server,
        None => server_beside(&std::env::current_exe()?),
    };
    let options = session::Options { server, slack, slow, only, jobs };
    let mut failed = false;
    for file in files {
        let report = harness::cases::run_file(&file, Some(&options))?;
        println!("{report}");
        failed |= report.failed() > 0;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
