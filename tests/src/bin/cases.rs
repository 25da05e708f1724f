//! Runs text cases from JSON lines: a line a case, then the sums; fails when a case fails.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Runs cases written as JSON lines (format: tests/fixtures/text_cases.md).
#[derive(Parser)]
struct Args {
    /// Files of cases.
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    let mut failed = false;
    for file in Args::parse().files {
        let report = harness::cases::run_file(&file)?;
        println!("{report}");
        failed |= report.failed() > 0;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
