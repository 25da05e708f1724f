//! The command as a child process, away from the settings of whoever runs the tests.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The command, in a folder, without settings in its environment.
pub(crate) fn dovecote(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovecote"));
    command.current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DOVECOTE_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    command
}

/// Runs to the end.
pub(crate) fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// What was said on standard error.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A path in the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path).canonicalize().unwrap()
}
