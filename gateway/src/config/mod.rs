//! What the command is told: flags, then `DOVECOTE_*` variables, then `dovecote.toml`, then defaults. Opens no bundle.
//!
//! ```text
//! --threads 2    DOVECOTE_THREADS=2            threads = 2                all processors
//!                DOVECOTE_SERVER_DRAIN_S=10    [server] drain_s = 10      30 s
//!        first wins, from left to right
//! ```
//!
//! Each section of the file has a module here, with its defaults and what its values must keep to. A new section is one more
//! field of [`Gateway`], one of `File`, and a name in `SECTIONS`; `dovecote.example.toml` has to tell of it.

mod auth;
mod chat;
mod environment;
mod flags;
mod foreign;
mod hearing;
mod lexicon;
mod livekit;
mod logs;
mod network;
pub(crate) mod seconds;
mod secret;
mod server;
mod speech;
mod tls;
mod voices;

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::Table;

pub(crate) use auth::check_keys;
pub use auth::{Auth, Key, Quota};
pub use chat::Chat;
pub use flags::{Flags, LogFormat, Precision};
pub use foreign::Foreign;
pub use lexicon::Lexicon;
pub use livekit::LiveKit;
pub use logs::Logs;
pub use network::Network;
pub use secret::Secret;
pub use server::Server;
pub use speech::Speech;
pub use tls::Tls;
pub use voices::VoiceUploads;

use crate::protocol::Limits;
use hearing::Hearing;

/// The settings file that is read when none is named, if it is there.
const SETTINGS_FILE: &str = "dovecote.toml";
/// The sections of the file.
const SECTIONS: &[&str] = &[
    "server", "limits", "auth", "tls", "livekit", "logs", "speech", "chat", "hearing", "foreign",
    "voices", "lexicon",
];

/// Settings that hold.
#[derive(Debug, Clone)]
pub struct Config {
    /// The bundle; none: the bundled voice.
    pub bundle: Option<PathBuf>,
    /// Further bundles that a server has.
    pub more_bundles: Vec<PathBuf>,
    /// How the engine is set up.
    pub engine: engine::Options,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// Whether to say more on standard error.
    pub verbose: bool,
    /// How the server is set up.
    pub gateway: Gateway,
}

/// How the server is set up: the sections of the settings file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gateway {
    /// Where it listens, and whom it lets in.
    pub server: Server,
    /// What a session may cost.
    pub limits: Limits,
    /// Who may speak.
    pub auth: Auth,
    /// Its certificate.
    pub tls: Tls,
    /// Secrets of LiveKit projects.
    pub livekit: LiveKit,
    /// What the log tells.
    pub logs: Logs,
    /// How speech over HTTP is asked for.
    pub speech: Speech,
    /// How speech language models are asked over HTTP.
    pub chat: Chat,
    /// How clients of other vendors' protocols are served.
    pub foreign: Foreign,
    /// How clients add voices.
    pub voices: VoiceUploads,
    /// Words with a form of their own.
    pub lexicon: Lexicon,
}

/// `dovecote.toml`. Every key may be left out; an unknown one is an error.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    bundle: Option<Bundles>,
    precision: Option<Precision>,
    threads: Option<usize>,
    kv_bytes: Option<usize>,
    log_format: Option<LogFormat>,
    server: Server,
    limits: Limits,
    auth: Auth,
    tls: Tls,
    livekit: LiveKit,
    logs: Logs,
    speech: Speech,
    chat: Chat,
    hearing: Hearing,
    foreign: Foreign,
    voices: VoiceUploads,
    lexicon: Lexicon,
}

/// One bundle, or a list of them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Bundles {
    One(PathBuf),
    Many(Vec<PathBuf>),
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
        /// Line, key, reason. Never the value of a secret.
        reason: String,
    },
    /// A variable of the environment names no key of its section, or its value does not fit.
    #[error("{name}: {reason}")]
    Variable {
        /// The variable.
        name: String,
        /// What does not fit.
        reason: String,
    },
    /// A value that is not to be had.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// A value that is not to be had, wherever it was said.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct Invalid {
    /// The key, with its section.
    pub key: &'static str,
    /// What it must keep to.
    pub reason: String,
}

impl Config {
    /// Puts together what was told; `variables` are those of the environment.
    ///
    /// # Errors
    /// A settings file that cannot be read or understood, a variable or value that does not fit.
    pub fn new(
        flags: &Flags,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let named = flags.config.as_deref();
        let file = named.or(Some(Path::new(SETTINGS_FILE)).filter(|file| file.exists()));
        let mut table = file.map_or(Ok(Table::new()), read)?;
        environment::merge(&mut table, environment::overlay(SECTIONS, variables)?);
        // Every part was understood by itself before.
        let file: File = table.try_into().map_err(|e| ConfigError::Variable {
            name: "DOVECOTE_*".to_owned(),
            reason: e.message().to_owned(),
        })?;
        let defaults = engine::Options::default();
        let precision = flags.precision.or(file.precision);
        file.hearing.check()?;
        let mut bundles = match file.bundle {
            _ if !flags.bundle.is_empty() => flags.bundle.clone(),
            None => Vec::new(),
            Some(Bundles::One(bundle)) => vec![bundle],
            Some(Bundles::Many(bundles)) => bundles,
        }
        .into_iter();
        let config = Self {
            bundle: bundles.next(),
            more_bundles: bundles.collect(),
            engine: engine::Options {
                precision: precision.map_or(defaults.precision, Into::into),
                threads: flags.threads.or(file.threads).unwrap_or(defaults.threads),
                kv_bytes: flags.kv_bytes.or(file.kv_bytes),
                max_live: file.hearing.max_live,
                live_idle: file.hearing.idle,
                max_unheard: file.hearing.max_unheard,
                ..defaults
            },
            log_format: flags.log_format.or(file.log_format).unwrap_or_default(),
            verbose: flags.verbose,
            gateway: Gateway {
                server: file.server,
                limits: file.limits,
                auth: file.auth,
                tls: file.tls,
                livekit: file.livekit,
                logs: file.logs,
                speech: file.speech,
                chat: file.chat,
                foreign: file.foreign,
                voices: file.voices,
                lexicon: file.lexicon,
            },
        };
        config.gateway.check()?;
        Ok(config)
    }
}

impl Gateway {
    /// Whether every value is to be had.
    ///
    /// # Errors
    /// The first that is not, by its key.
    pub fn check(&self) -> Result<(), Invalid> {
        self.server.check()?;
        self.auth.check()?;
        self.tls.check()?;
        self.speech.check()?;
        self.chat.check()?;
        self.foreign.check()?;
        self.voices.check()?;
        self.lexicon.check()?;
        check_limits(&self.limits)
    }
}

fn check_limits(limits: &Limits) -> Result<(), Invalid> {
    at_least("limits.max_contexts", limits.max_contexts, 1)?;
    at_least("limits.max_draining_contexts", limits.max_draining_contexts, 1)?;
    at_least("limits.max_context_ids", limits.max_context_ids, 1)?;
    at_least("limits.max_text_chars", limits.max_text_chars, 1)?;
    at_least("limits.max_pending_chars", limits.max_pending_chars, 1)?;
    // A session.start with everything in it must fit.
    at_least("limits.max_message_bytes", limits.max_message_bytes, 1_024)
}

/// A value that must not be below its least.
fn at_least<T: PartialOrd + Debug>(key: &'static str, value: T, least: T) -> Result<(), Invalid> {
    if value >= least {
        return Ok(());
    }
    Err(Invalid { key, reason: format!("{value:?} is below {least:?}") })
}

/// The file's table, once it is known to be understood.
fn read(file: &Path) -> Result<Table, ConfigError> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| ConfigError::Io { file: file.to_path_buf(), source })?;
    parse(file, &text)
}

/// The settings of a file with this text.
///
/// # Errors
/// Not TOML, or a key or value that is not to be had.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Table, ConfigError> {
    let malformed =
        |e: &toml::de::Error| ConfigError::Malformed { file: file.into(), reason: place(text, e) };
    toml::from_str::<File>(text).map_err(|e| malformed(&e))?;
    toml::from_str(text).map_err(|e| malformed(&e))
}

/// Line, key and message. The parser's own words would quote the line, and with it a secret.
pub(crate) fn place(text: &str, error: &toml::de::Error) -> String {
    let Some(span) = error.span() else { return error.message().to_owned() };
    let before = &text[..span.start.min(text.len())];
    let number = before.matches('\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or_default();
    let key = line.split_once('=').map(|(key, _)| key.trim()).filter(|key| !key.is_empty());
    let key = key.map(|key| format!(", {key}")).unwrap_or_default();
    format!("line {number}{key}: {}", error.message())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use serde_json::Value;

    use super::*;

    const EXAMPLE: &str =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../dovecote.example.toml"));

    fn file(text: &str) -> (tempfile::TempDir, Flags) {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("settings.toml");
        std::fs::write(&config, text).unwrap();
        (folder, Flags { config: Some(config), ..Flags::default() })
    }

    fn config(flags: &Flags, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::new(flags, variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())))
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let (_folder, flags) = file("threads = 3\nprecision = \"int8\"\nbundle = \"here\"");
        let config = config(&Flags { threads: Some(2), ..flags }, &[]).unwrap();
        assert_eq!(config.engine.threads, 2);
        assert_eq!(config.engine.precision, engine::Precision::Int8);
        assert_eq!(config.bundle, Some(PathBuf::from("here")));
        assert_eq!((config.engine.kv_bytes, config.log_format), (None, LogFormat::Text));
    }

    #[test]
    fn what_is_said_of_hearing_reaches_the_engine() {
        let (_folder, flags) = file("[hearing]\nmax_live = 3\nidle_s = 4\nmax_unheard_s = 5");
        let engine::Options { max_live, live_idle, max_unheard, .. } =
            config(&flags, &[]).unwrap().engine;
        assert_eq!((max_live, live_idle.as_secs(), max_unheard.as_secs()), (3, 4, 5));
    }

    #[test]
    fn bundles_are_one_or_several() {
        let bundles = |config: Config| (config.bundle, config.more_bundles);
        let (_folder, flags) = file("bundle = [\"a\", \"b\", \"c\"]");
        let several = (Some("a".into()), vec!["b".into(), "c".into()]);
        assert_eq!(bundles(config(&flags, &[]).unwrap()), several);
        let flags = Flags { bundle: vec!["x".into(), "y".into()], ..flags };
        assert_eq!(bundles(config(&flags, &[]).unwrap()), (Some("x".into()), vec!["y".into()]));
    }

    #[test]
    fn variables_win_over_the_file_key_by_key() {
        let (_folder, flags) = file("[server]\ndrain_s = 2.5\nmax_sessions = 3");
        let config = config(&flags, &[("DOVECOTE_SERVER_MAX_SESSIONS", "9")]).unwrap();
        let Server { drain, max_sessions, handshake, .. } = config.gateway.server;
        assert_eq!((drain, max_sessions), (Duration::from_millis(2_500), 9));
        assert_eq!(handshake, Server::default().handshake);
    }

    #[test]
    fn unknown_keys_and_wrong_values_name_file_and_key() {
        let cases = [
            ("thread = 2", "line 1, thread"),
            ("precision = \"f64\"", "f64"),
            ("=", "line 1"),
            ("[server]\n\nmax_sessions = \"many\"", "line 3, max_sessions"),
            ("[limits]\nretain_s = -1", "line 2, retain_s"),
            ("[[auth.keys]]\nid = \"a\"\nkey = \"clear\"", "line 3, key"),
            ("[server]\ntrusted_proxies = [\"10.0.0.0/99\"]", "line 2, trusted_proxies"),
            ("[servers]", "servers"),
        ];
        for (text, says) in cases {
            let (_folder, flags) = file(text);
            let error = config(&flags, &[]).unwrap_err().to_string();
            assert!(error.contains("settings.toml") && error.contains(says), "{error}");
        }
    }

    #[test]
    fn values_that_are_not_to_be_had_name_their_key() {
        let digest = "0".repeat(64);
        let twice = format!(
            "[auth]\nkeys = [{{id = \"a\", sha256 = \"{digest}\"}}, {{id = \"a\", sha256 = \"{digest}\"}}]"
        );
        let cases = [
            ("[server]\nmax_sessions = 0", "server.max_sessions: 0 is below 1"),
            ("[server]\nmax_header_bytes = 100", "server.max_header_bytes"),
            ("[server]\norigins = [\"app.example.com\"]", "server.origins"),
            ("[limits]\nmax_message_bytes = 0", "limits.max_message_bytes"),
            ("[auth]\ntoken_ttl_max_s = 601", "auth.token_ttl_max_s"),
            ("[[auth.keys]]\nid = \"a\"\nsha256 = \"abc\"", "auth.keys"),
            (twice.as_str(), "two keys are called \"a\""),
            ("[tls]\ncert = \"a.pem\"", "tls.key"),
            ("[hearing]\nmax_live = 0", "hearing.max_live: 0 is below 1"),
        ];
        for (text, says) in cases {
            let (_folder, flags) = file(text);
            let error = config(&flags, &[]).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn no_error_quotes_a_secret() {
        let cases = [
            "[livekit.secrets]\nproject = \"SECRET-MARKER",
            "[livekit.secrets]\nproject = [\"SECRET-MARKER\"]",
            "[[auth.keys]]\nid = \"a\"\nsha256 = \"SECRET-MARKER\"",
        ];
        for text in cases {
            let (_folder, flags) = file(text);
            let error = config(&flags, &[]).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("SECRET"), "{error}");
        }
        let (_folder, flags) = file("[livekit.secrets]\nproject = \"SECRET-MARKER\"");
        let config = config(&flags, &[]).unwrap();
        assert!(!format!("{config:?}").contains("SECRET"));
    }

    #[test]
    fn a_named_file_must_be_there() {
        let flags = Flags { config: Some("not-there.toml".into()), ..Flags::default() };
        let error = config(&flags, &[]).unwrap_err().to_string();
        assert!(error.contains("not-there.toml: cannot read"), "{error}");
    }

    #[test]
    fn the_example_says_the_defaults() {
        let says = serde_json::to_value(toml::from_str::<File>(EXAMPLE).unwrap()).unwrap();
        assert_eq!(says, serde_json::to_value(File::default()).unwrap());
    }

    /// Paths of all keys, lists and absent values being leaves.
    fn keys(value: &Value, path: &str, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) if !object.is_empty() => {
                for (key, value) in object {
                    keys(value, &format!("{path}.{key}"), into);
                }
            }
            _ => _ = into.insert(path.to_owned()),
        }
    }

    #[test]
    fn the_example_tells_of_every_key_and_its_suggestions_hold() {
        // A suggestion is a line `# key = value` or `# [section]`.
        let suggestion = |line: &str| {
            let rest = line.strip_prefix("# ")?;
            let key = rest.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
            (rest.starts_with('[') || key).then(|| rest.to_owned())
        };
        let lines = EXAMPLE.lines().map(|line| suggestion(line).unwrap_or_else(|| line.to_owned()));
        let text = lines.collect::<Vec<_>>().join("\n");
        let table: Table = toml::from_str(&text).unwrap_or_else(|e| panic!("{e}"));
        toml::from_str::<File>(&text).unwrap_or_else(|e| panic!("{e}"));
        let (mut told, mut all) = (BTreeSet::new(), BTreeSet::new());
        keys(&serde_json::to_value(table).unwrap(), "", &mut told);
        keys(&serde_json::to_value(File::default()).unwrap(), "", &mut all);
        let told =
            |key: &String| told.iter().any(|t| t == key || t.starts_with(&format!("{key}.")));
        let missing: Vec<&String> = all.iter().filter(|key| !told(key)).collect();
        assert!(missing.is_empty(), "dovecote.example.toml does not tell of {missing:?}");
    }
}
