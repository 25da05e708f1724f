//! What can be said on the command line of every command, or in the variable of the same name.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

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
    /// Model bundle, or folder of the TontaubeV1 release; `serve` and others take several [default: the bundled voice] [toml: bundle]
    #[arg(
        long,
        global = true,
        env = "DOVECOTE_BUNDLE",
        hide_env_values = true,
        value_name = "DIR",
        value_delimiter = ':'
    )]
    pub bundle: Vec<PathBuf>,
    /// How the numbers of the networks are stored [default: f32] [toml: precision]
    #[arg(long, global = true, env = "DOVECOTE_PRECISION", hide_env_values = true)]
    pub precision: Option<Precision>,
    /// Threads of an engine step [default: one for each processor] [toml: threads]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line
    Json,
}
