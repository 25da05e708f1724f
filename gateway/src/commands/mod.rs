//! The commands: what each does between its arguments and its exit code. What they share stands here.

pub mod bench;
pub mod check;
pub mod convert;
pub mod fetch;
pub mod key;
mod progress;
pub mod say;
pub mod serve;
mod speaker;
mod speed;
pub mod text;
pub mod voices;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use engine::bundle::speech::ConvertError;
use engine::bundle::{self, Bundle, Opened};
use engine::{Failure, StartError};

use crate::config::{Config, ConfigError};
use crate::security::SecurityError;

/// The bundled voice, from the project's root or the folder of the executable.
const BUNDLED_VOICE: &str = "voices/nano";
/// Files that a process needs beside one for each connection.
const SPARE_FILES: u64 = 256;
/// Rate of the engine's sound, in Hz.
const ENGINE_RATE: u32 = 24_000;

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Arguments that do not go together, or a value that is not to be had.
    #[error("{0}")]
    Usage(String),
    /// Settings that do not hold.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Keys or certificate cannot be used.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// No bundle is named, and the bundled voice is in none of its places.
    #[error("no voice found in {}; name a bundle with --bundle DIR", list(tried))]
    NoBundle {
        /// Where it was looked for.
        tried: Vec<PathBuf>,
    },
    /// The bundle is damaged, or the engine's settings do not suit it.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The engine does not take the request.
    #[error(transparent)]
    Request(#[from] engine::Error),
    /// The engine could not go on.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// A checkpoint that no bundle can be made of.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// A bundle that cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] fetch::FetchError),
    /// A file that cannot be read or written.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file; `-` for standard input or output.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An encoder that refuses.
    #[error("cannot encode: {0}")]
    Encode(String),
    /// A server that cannot be measured.
    #[error("{0}")]
    Bench(String),
    /// Some lines of a batch could not be spoken; each was told.
    #[error("{failed} of {lines} lines failed")]
    Batch {
        /// How many.
        failed: usize,
        /// Of how many.
        lines: usize,
    },
    /// Bundles that cannot be served, alone or together; each reason was told.
    #[error("{faults} of what was checked does not hold")]
    Unfit {
        /// How many.
        faults: usize,
    },
    /// Whoever reads our output has left: nothing more to do, and nothing to complain of.
    #[error("the reader has gone")]
    ReaderGone,
}

impl CommandError {
    /// 2 for what another command line or bundle would mend, 1 for what went wrong on the way.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_)
            | Self::Config(_)
            | Self::Security(_)
            | Self::NoBundle { .. }
            | Self::Start(_)
            | Self::Unfit { .. }
            | Self::Convert(ConvertError::Load(_) | ConvertError::NotEmpty(_)) => 2,
            Self::Request(engine::Error::Option { .. }) => 2,
            Self::Request(_) | Self::Failed(_) | Self::Encode(_) | Self::Bench(_) => 1,
            Self::Io { .. } | Self::Batch { .. } | Self::Fetch(_) | Self::Convert(_) => 1,
            Self::ReaderGone => 0,
        }
    }

    /// An [`io::Error`] with the file that it is about.
    fn io(file: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| match source.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::Io { file: file.to_path_buf(), source },
        }
    }
}

/// Raises the limit of open files as far as it goes; says so if that is too few for so many connections.
fn raise_file_limit(connections: u64) {
    let wanted = connections + SPARE_FILES;
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) if limit < wanted => {
            tell(&format!(
                "the system allows {limit} open files; {connections} connections need more"
            ));
        }
        Ok(_) => {}
        Err(error) => tell(&format!("cannot raise the number of open files: {error}")),
    }
}

/// Writes a line to standard error, if there still is one.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes a text to standard output.
fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(CommandError::io(Path::new("-")))
}

/// Opens the first of the bundles that the settings name that speaks a text, else the bundled voice; none: all of them answer.
fn open_voice(config: &Config) -> Result<Option<Bundle>, CommandError> {
    let voice = |opened: Opened| match opened {
        Opened::Voice(bundle) => Some(*bundle),
        Opened::Speech(_) => None,
    };
    Ok(open_bundles(config)?.into_iter().find_map(voice))
}

/// Opens all bundles that the settings name, of any family, else the bundled voice.
fn open_bundles(config: &Config) -> Result<Vec<Opened>, CommandError> {
    let open = |root: &PathBuf| Ok(bundle::open(root).map_err(StartError::from)?);
    bundle_roots(config)?.iter().map(open).collect()
}

/// The folders of all bundles that the settings name, else of the bundled voice.
fn bundle_roots(config: &Config) -> Result<Vec<PathBuf>, CommandError> {
    let first = bundle_root(config)?;
    Ok(std::iter::once(first).chain(config.more_bundles.iter().cloned()).collect())
}

/// The folder of the bundle that the settings name, else of the bundled voice.
fn bundle_root(config: &Config) -> Result<PathBuf, CommandError> {
    match &config.bundle {
        Some(root) => Ok(root.clone()),
        None => bundled_voice(),
    }
}

fn bundled_voice() -> Result<PathBuf, CommandError> {
    let executable = std::env::current_exe().ok();
    let beside = executable.as_deref().and_then(Path::parent);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let roots = [Some(Path::new("")), beside, source];
    let tried: Vec<PathBuf> = roots.iter().flatten().map(|root| root.join(BUNDLED_VOICE)).collect();
    match tried.iter().find(|root| root.is_dir()) {
        Some(root) => Ok(root.clone()),
        None => Err(CommandError::NoBundle { tried }),
    }
}

/// The line that is shown wherever a bundle is loaded.
fn licence_line(bundle: &Bundle) -> String {
    licence(&bundle.manifest.name, &bundle.manifest.license)
}

fn licence(name: &str, license: &str) -> String {
    format!("{name}: {license}")
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    paths.join(", ")
}
