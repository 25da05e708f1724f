//! What the command is told: flags, then `DOVECOTE_*` variables, then `dovecote.toml`, then defaults. Opens no bundle.
//!
//! ```text
//! --threads 2    DOVECOTE_THREADS=2    threads = 2    1
//!        first wins, from left to right
//! ```

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::server::{SpeechSettings, VoiceSettings};

/// The settings file that is read when none is named, if it is there.
const SETTINGS_FILE: &str = "dovecote.toml";

/// Settings that every command shares, as they stand on the command line or in the environment.
#[derive(Debug, Clone, Default, Args)]
pub struct Flags {
    /// Settings file [default: dovecote.toml in the current folder, if there is one]
    #[arg(
        long,
        global = true,
        env = "DOVECOTE_CONFIG",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub config: Option<PathBuf>,
    /// Model bundle, or folder of the TontaubeV1 release [default: the bundled voice] [toml: bundle]
    #[arg(
        long,
        global = true,
        env = "DOVECOTE_BUNDLE",
        hide_env_values = true,
        value_name = "DIR"
    )]
    pub bundle: Option<PathBuf>,
    /// How the numbers of the networks are stored [default: f32] [toml: precision]
    #[arg(long, global = true, env = "DOVECOTE_PRECISION", hide_env_values = true)]
    pub precision: Option<Precision>,
    /// Threads of an engine step [default: 1] [toml: threads]
    #[arg(long, global = true, env = "DOVECOTE_THREADS", hide_env_values = true, value_name = "N")]
    pub threads: Option<usize>,
    /// Bytes of key/value memory [default: 512 MiB, more if four longest windows need it] [toml: kv_bytes]
    #[arg(
        long,
        global = true,
        env = "DOVECOTE_KV_BYTES",
        hide_env_values = true,
        value_name = "N"
    )]
    pub kv_bytes: Option<usize>,
    /// How log lines are written [default: text] [toml: log_format]
    #[arg(long, global = true, env = "DOVECOTE_LOG_FORMAT", hide_env_values = true)]
    pub log_format: Option<LogFormat>,
    /// Say more on standard error
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

/// How the numbers of the networks are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits, the reference
    F32,
    /// 16 bits, half the memory
    Bf16,
    /// 8 bits and a scale for each 64 numbers
    Int8,
}

impl From<Precision> for engine::Precision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::F32 => Self::F32,
            Precision::Bf16 => Self::Bf16,
            Precision::Int8 => Self::Int8,
        }
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

/// `dovecote.toml`. Every key may be left out; an unknown one is an error.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    bundle: Option<PathBuf>,
    precision: Option<Precision>,
    threads: Option<usize>,
    kv_bytes: Option<usize>,
    log_format: Option<LogFormat>,
    speech: Option<SpeechSettings>,
    voices: Option<VoiceSettings>,
}

/// Settings that hold.
#[derive(Debug, Clone)]
pub struct Config {
    /// The bundle; none: the bundled voice.
    pub bundle: Option<PathBuf>,
    /// How the engine is set up.
    pub engine: engine::Options,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// How speech over HTTP is asked for: the table `speech` of the settings file.
    pub speech: SpeechSettings,
    /// How voices are added: the table `voices` of the settings file.
    pub voices: VoiceSettings,
    /// Whether to say more on standard error.
    pub verbose: bool,
}

/// Why settings do not hold.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The settings file is absent or unreadable.
    #[error("{}: cannot read: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The settings file is not TOML, or has a key or value that is not to be had.
    #[error("{}: {reason}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What the parser said: line, key, reason.
        reason: String,
    },
}

impl Config {
    /// Puts together what was told.
    ///
    /// # Errors
    /// A settings file that cannot be read or understood.
    pub fn new(flags: &Flags) -> Result<Self, ConfigError> {
        let file = match &flags.config {
            Some(file) => File::read(file)?,
            None if Path::new(SETTINGS_FILE).exists() => File::read(Path::new(SETTINGS_FILE))?,
            None => File::default(),
        };
        let defaults = engine::Options::default();
        let precision = flags.precision.or(file.precision);
        Ok(Self {
            bundle: flags.bundle.clone().or(file.bundle),
            engine: engine::Options {
                precision: precision.map_or(defaults.precision, Into::into),
                threads: flags.threads.or(file.threads).unwrap_or(defaults.threads),
                kv_bytes: flags.kv_bytes.or(file.kv_bytes),
                ..defaults
            },
            log_format: flags.log_format.or(file.log_format).unwrap_or_default(),
            speech: file.speech.unwrap_or_default(),
            voices: file.voices.unwrap_or_default(),
            verbose: flags.verbose,
        })
    }
}

impl File {
    fn read(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| ConfigError::Io { file: file.to_path_buf(), source })?;
        toml::from_str(&text).map_err(|e| ConfigError::Malformed {
            file: file.to_path_buf(),
            reason: e.to_string().trim_end().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, Flags) {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("settings.toml");
        std::fs::write(&config, text).unwrap();
        (folder, Flags { config: Some(config), ..Flags::default() })
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let (_folder, flags) = file("threads = 3\nprecision = \"int8\"\nbundle = \"here\"");
        let config = Config::new(&Flags { threads: Some(2), ..flags }).unwrap();
        assert_eq!(config.engine.threads, 2);
        assert_eq!(config.engine.precision, engine::Precision::Int8);
        assert_eq!(config.bundle, Some(PathBuf::from("here")));
        assert_eq!((config.engine.kv_bytes, config.log_format), (None, LogFormat::Text));
    }

    #[test]
    fn unknown_keys_and_wrong_values_name_file_and_key() {
        for (text, says) in [("thread = 2", "thread"), ("precision = \"f64\"", "f64"), ("=", "1")] {
            let (_folder, flags) = file(text);
            let error = Config::new(&flags).unwrap_err().to_string();
            assert!(error.contains("settings.toml") && error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_named_file_must_be_there() {
        let flags = Flags { config: Some("not-there.toml".into()), ..Flags::default() };
        let error = Config::new(&flags).unwrap_err().to_string();
        assert!(error.contains("not-there.toml: cannot read"), "{error}");
    }
}
