//! The keys that open the server, and the tokens made with them. Keys are kept as digests; the file of keys can be read again
//! at any time, and who holds a key that is gone hears of it at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use engine::text::Lexicon;
use engine::text::lexicon::Limits;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use super::allowance::Allowance;
use super::credential::Credential;
use super::jwt;
use super::token::{Seal, Token};
use crate::config::{Auth, Key, Quota, Secret, check_keys};
use crate::lexicon::{self, LexiconFileError};

/// Who speaks where no key is needed.
const ANYBODY: &str = "anybody";

/// SHA-256 of a key.
type KeyDigest = [u8; 32];

/// SHA-256 of a key in hex digits, as the settings have it.
pub fn digest_of(key: &str) -> String {
    Sha256::digest(key).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All keys, and what each uses.
pub struct Keyring {
    settings: Auth,
    limits: Limits,
    keys: RwLock<BTreeMap<String, Arc<Entry>>>,
    /// Secrets of the LiveKit projects whose tokens open, by API key, and what each project uses.
    secrets: BTreeMap<String, Secret>,
    projects: BTreeMap<String, Arc<Entry>>,
    /// Who speaks where no key is needed.
    anybody: Option<Arc<Entry>>,
    seal: Seal,
    /// What the file of keys was like when it was read last.
    stamp: Mutex<Option<Stamp>>,
}

/// Time of change and length of a file.
type Stamp = (Option<SystemTime>, u64);

struct Entry {
    id: Arc<str>,
    digest: KeyDigest,
    allowance: Arc<Allowance>,
    lexicon: RwLock<Lexicon>,
    is_revoked: watch::Sender<bool>,
}

/// Somebody who was let in.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The key's id.
    pub(crate) key_id: Arc<str>,
    /// What the key uses, with all who hold it.
    pub(crate) allowance: Arc<Allowance>,
    /// The key's words with a form of their own.
    pub(crate) lexicon: Lexicon,
    /// How long the token holds; none for a key.
    expires_in: Option<Duration>,
    /// Whether it was let in by a key, and so may have tokens.
    has_key: bool,
    is_revoked: watch::Receiver<bool>,
    digest: KeyDigest,
}

/// Why somebody is not let in. Says nothing of what was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    /// Nothing was shown.
    #[error("a key is needed: Authorization: Bearer KEY")]
    Nothing,
    /// A key that is not known, or a token that does not hold.
    #[error("the key or token is not valid")]
    Invalid,
    /// A token whose time is over.
    #[error("the token has expired")]
    Expired,
}

/// Why a file of keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// It cannot be read.
    #[error("{}: cannot read: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not a list of keys.
    #[error("{}: {reason}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A key's words cannot be used.
    #[error(transparent)]
    Lexicon(LexiconFileError),
}

/// The file of keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct KeysFile {
    keys: Vec<Key>,
}

impl Keyring {
    /// Reads the keys and their words, which keep to `limits`; `secrets` are those of LiveKit projects, `secret` is what our
    /// own tokens are signed with.
    ///
    /// # Errors
    /// [`KeyringError`]
    pub fn new(
        settings: Auth,
        limits: Limits,
        secrets: BTreeMap<String, Secret>,
        secret: [u8; 32],
    ) -> Result<Self, KeyringError> {
        let needs_key = settings.needs_key() || !secrets.is_empty();
        let project = |id: &String| {
            let entry = Entry::new(id.as_str().into(), KeyDigest::default(), settings.per_key);
            (id.clone(), Arc::new(entry))
        };
        let projects = secrets.keys().map(project).collect();
        let anybody = (!needs_key)
            .then(|| Arc::new(Entry::new(ANYBODY.into(), KeyDigest::default(), settings.per_key)));
        let ring = Self {
            settings,
            limits,
            keys: RwLock::default(),
            secrets,
            projects,
            anybody,
            seal: Seal::new(secret),
            stamp: Mutex::new(None),
        };
        ring.reload()?;
        Ok(ring)
    }

    /// Whether a key is needed.
    pub fn needs_key(&self) -> bool {
        self.anybody.is_none()
    }

    /// Reads the file of keys again. Who holds a key that is gone is told; who holds one that stays notices nothing.
    ///
    /// # Errors
    /// The file is not to be used; the keys stay as they were.
    pub fn reload(&self) -> Result<(), KeyringError> {
        let mut keys = self.settings.keys.clone();
        if let Some(file) = &self.settings.keys_file {
            // Stamped first: a change while it is read is seen at the next look.
            *self.stamp.lock().unwrap_or_else(PoisonError::into_inner) = stamp(file);
            keys.extend(read(file)?);
            check_keys(&keys)
                .map_err(|reason| KeyringError::Malformed { file: file.clone(), reason })?;
        }
        let lexicons = keys.iter().map(|key| self.lexicon(key)).collect::<Result<Vec<_>, _>>()?;
        let mut held = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = BTreeMap::new();
        for (key, lexicon) in keys.into_iter().zip(lexicons) {
            let (digest, quota) = (unhex(&key.sha256), key.quota(&self.settings.per_key));
            let entry = match held.get(&key.id).filter(|entry| entry.digest == digest) {
                Some(entry) => {
                    entry.allowance.set_quota(quota);
                    entry.clone()
                }
                None => Arc::new(Entry::new(key.id.as_str().into(), digest, quota)),
            };
            *entry.lexicon.write().unwrap_or_else(PoisonError::into_inner) = lexicon;
            fresh.insert(key.id, entry);
        }
        let before = std::mem::replace(&mut *held, fresh);
        for (id, entry) in before {
            if !held.get(&id).is_some_and(|stays| Arc::ptr_eq(stays, &entry)) {
                entry.is_revoked.send_replace(true);
            }
        }
        Ok(())
    }

    /// The words of a key.
    fn lexicon(&self, key: &Key) -> Result<Lexicon, KeyringError> {
        let Some(file) = &key.lexicon else { return Ok(Lexicon::default()) };
        lexicon::read(file, &self.limits).map_err(KeyringError::Lexicon)
    }

    /// Reads the file of keys again if it was changed. Returns whether it was.
    ///
    /// # Errors
    /// As [`Keyring::reload`]; told once for each change.
    pub fn refresh(&self) -> Result<bool, KeyringError> {
        let Some(file) = &self.settings.keys_file else { return Ok(false) };
        if *self.stamp.lock().unwrap_or_else(PoisonError::into_inner) == stamp(file) {
            return Ok(false);
        }
        self.reload().map(|()| true)
    }

    /// Lets somebody in.
    ///
    /// # Errors
    /// [`Denied`]
    pub(crate) fn admit(&self, shown: Option<&Credential>, unix_ms: u64) -> Result<Caller, Denied> {
        if let Some(anybody) = &self.anybody {
            return Ok(anybody.caller(None, true));
        }
        let (secret, may_be_key) = match shown.ok_or(Denied::Nothing)? {
            Credential::Any(secret) => (secret, true),
            Credential::Token(secret) => (secret, false),
        };
        if let Some(token) = Token::read(secret.expose()) {
            return self.admit_token(&token, unix_ms);
        }
        if !self.secrets.is_empty() && may_be_key && jwt::is_one(secret.expose()) {
            let api_key = jwt::signer(secret.expose(), &self.secrets, unix_ms)?;
            let project = self.projects.get(api_key).ok_or(Denied::Invalid)?;
            // It is shown once, for a connection that may outlive it.
            return Ok(project.caller(None, false));
        }
        let digest: KeyDigest = Sha256::digest(secret.expose()).into();
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        // All are compared, whole: how long it takes tells nothing.
        let found = keys.values().fold(None, |found, entry| {
            if bool::from(entry.digest.ct_eq(&digest)) { Some(entry) } else { found }
        });
        found.filter(|_| may_be_key).map(|entry| entry.caller(None, true)).ok_or(Denied::Invalid)
    }

    fn admit_token(&self, token: &Token, unix_ms: u64) -> Result<Caller, Denied> {
        let id = std::str::from_utf8(token.key_id()).map_err(|_| Denied::Invalid)?;
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let entry = keys.get(id).ok_or(Denied::Invalid)?;
        if !self.seal.holds(token, &entry.digest) {
            return Err(Denied::Invalid);
        }
        match token.expires_unix_ms().checked_sub(unix_ms).filter(|left| *left > 0) {
            Some(left) => Ok(entry.caller(Some(Duration::from_millis(left)), false)),
            None => Err(Denied::Expired),
        }
    }

    /// A token for somebody with a key; none for who has but a token, which could live for ever then.
    pub(crate) fn issue(&self, caller: &Caller, expires_unix_ms: u64) -> Option<String> {
        caller.has_key.then(|| self.seal.sign(&caller.key_id, &caller.digest, expires_unix_ms))
    }
}

impl Entry {
    fn new(id: Arc<str>, digest: KeyDigest, quota: Quota) -> Self {
        let allowance = Arc::new(Allowance::new(quota));
        let (lexicon, is_revoked) = (RwLock::default(), watch::Sender::new(false));
        Self { id, digest, allowance, lexicon, is_revoked }
    }

    fn caller(&self, expires_in: Option<Duration>, has_key: bool) -> Caller {
        Caller {
            key_id: self.id.clone(),
            allowance: self.allowance.clone(),
            lexicon: self.lexicon.read().unwrap_or_else(PoisonError::into_inner).clone(),
            expires_in,
            has_key,
            is_revoked: self.is_revoked.subscribe(),
            digest: self.digest,
        }
    }
}

impl Caller {
    /// The key's id; none where no key is needed.
    pub(crate) fn key(&self) -> Option<&str> {
        Some(&*self.key_id).filter(|id| *id != ANYBODY)
    }

    /// Waits until the caller may speak no longer, and says why. Counts from the first poll.
    pub(crate) async fn end(mut self) -> &'static str {
        let expiry = async {
            match self.expires_in {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The sender is dropped with its key.
            _ = self.is_revoked.wait_for(|revoked| *revoked) => "the key was revoked",
            () = expiry => "the token has expired",
        }
    }
}

fn read(file: &Path) -> Result<Vec<Key>, KeyringError> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| KeyringError::Io { file: file.to_path_buf(), source })?;
    let parsed = toml::from_str::<KeysFile>(&text);
    let parsed = parsed.map_err(|e| KeyringError::Malformed {
        file: file.to_path_buf(),
        reason: crate::config::place(&text, &e),
    })?;
    Ok(parsed.keys)
}

fn stamp(file: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok(), metadata.len()))
}

/// The bytes of hex digits that were checked before.
fn unhex(digits: &str) -> KeyDigest {
    let nibble = |c: u8| (c as char).to_digit(16).unwrap_or_default() as u8;
    let mut digest = KeyDigest::default();
    for (byte, pair) in digest.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = pair.iter().fold(0, |all, c| all << 4 | nibble(*c));
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    fn key(id: &str, secret: &str) -> Key {
        Key {
            id: id.into(),
            sha256: digest_of(secret),
            max_sessions: Some(1),
            max_contexts: None,
            chars_per_minute: None,
            lexicon: None,
        }
    }

    fn any(secret: &str) -> Option<Credential> {
        Some(Credential::Any(Secret::new(secret)))
    }

    fn ring(keys: Vec<Key>) -> Keyring {
        let settings = Auth { keys, ..Auth::default() };
        Keyring::new(settings, Limits::default(), BTreeMap::new(), [3; 32]).unwrap()
    }

    #[test]
    fn a_key_opens_and_nothing_else_does() {
        let ring = ring(vec![key("a", "alpha"), key("b", "beta")]);
        let who = |shown: Option<Credential>| {
            ring.admit(shown.as_ref(), 0).map(|caller| caller.key_id.to_string())
        };
        assert!(ring.needs_key());
        assert_eq!((who(any("alpha")), who(any("beta"))), (Ok("a".into()), Ok("b".into())));
        assert_eq!((who(None), who(any("gamma"))), (Err(Denied::Nothing), Err(Denied::Invalid)));
        assert_eq!((who(any("")), who(any("alph"))), (Err(Denied::Invalid), Err(Denied::Invalid)));
        let in_address = Some(Credential::Token(Secret::new("alpha")));
        assert_eq!(who(in_address), Err(Denied::Invalid), "a key has no place in an address");
    }

    #[test]
    fn without_keys_anybody_may_speak() {
        let ring = ring(Vec::new());
        assert!(!ring.needs_key());
        assert!(ring.admit(None, 0).is_ok() && ring.admit(any("whatever").as_ref(), 0).is_ok());
    }

    #[test]
    fn a_token_opens_until_it_expires_and_makes_no_tokens() {
        let ring = ring(vec![key("a", "alpha")]);
        let token = ring.issue(&ring.admit(any("alpha").as_ref(), 0).unwrap(), 1_000).unwrap();
        let shown = Some(Credential::Token(Secret::new(token)));
        let caller = ring.admit(shown.as_ref(), 400).unwrap();
        assert_eq!(caller.expires_in, Some(Duration::from_millis(600)));
        assert!(ring.issue(&caller, 9_000).is_none());
        assert_eq!(ring.admit(shown.as_ref(), 1_000).unwrap_err(), Denied::Expired);
    }

    #[tokio::test]
    async fn a_token_ends_by_itself() {
        let ring = ring(vec![key("a", "alpha")]);
        let token = ring.issue(&ring.admit(any("alpha").as_ref(), 0).unwrap(), 60_000).unwrap();
        let caller = ring.admit(any(&token).as_ref(), 59_999).unwrap();
        assert_eq!(caller.end().await, "the token has expired");
    }

    #[tokio::test]
    async fn a_key_that_is_gone_from_the_file_is_revoked_with_its_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys.toml");
        let write = |keys: &[(&str, &str)]| {
            let entry = |(id, secret): &(&str, &str)| {
                format!("[[keys]]\nid = \"{id}\"\nsha256 = \"{}\"\n", digest_of(secret))
            };
            std::fs::write(&file, keys.iter().map(entry).collect::<String>()).unwrap();
        };
        write(&[("a", "alpha"), ("b", "beta")]);
        let settings = Auth { keys_file: Some(file.clone()), ..Auth::default() };
        let ring = Keyring::new(settings, Limits::default(), BTreeMap::new(), [3; 32]).unwrap();
        let (a, b) = (ring.admit(any("alpha").as_ref(), 0), ring.admit(any("beta").as_ref(), 0));
        let (a, b) = (a.unwrap(), b.unwrap());
        let token = ring.issue(&a, 1_000_000).unwrap();
        assert!(!ring.refresh().unwrap(), "nothing was changed");

        write(&[("b", "beta")]);
        assert!(ring.refresh().unwrap());
        assert_eq!(a.end().await, "the key was revoked");
        assert!(!*b.is_revoked.borrow(), "the other goes on");
        assert_eq!(ring.admit(any("alpha").as_ref(), 0).unwrap_err(), Denied::Invalid);
        assert_eq!(ring.admit(any(&token).as_ref(), 0).unwrap_err(), Denied::Invalid);

        // A file that is broken opens nothing and closes nothing.
        std::fs::write(&file, "[[keys]]\nid = 7").unwrap();
        let error = ring.refresh().unwrap_err().to_string();
        assert!(error.contains("keys.toml: line 2, id"), "{error}");
        assert!(ring.admit(any("beta").as_ref(), 0).is_ok());
        assert!(!ring.refresh().unwrap(), "told once");
    }

    #[test]
    fn a_project_shuts_the_door_and_opens_it_by_its_tokens_alone() {
        let secrets = BTreeMap::from([("APIone".to_owned(), Secret::new(jwt::KNOWN_SECRET))]);
        let ring = Keyring::new(Auth::default(), Limits::default(), secrets, [3; 32]).unwrap();
        assert!(ring.needs_key());
        let who = |shown: &str, unix_ms| {
            ring.admit(any(shown).as_ref(), unix_ms).map(|caller| caller.key_id.to_string())
        };
        assert_eq!(who(jwt::KNOWN, 1_200_000), Ok("APIone".into()));
        assert_eq!(who(jwt::KNOWN, 9_000_000), Err(Denied::Expired));
        assert_eq!(who(jwt::KNOWN_SECRET, 1_200_000), Err(Denied::Invalid));
        let caller = ring.admit(any(jwt::KNOWN).as_ref(), 1_200_000).unwrap();
        assert!(ring.issue(&caller, 9_000).is_none(), "a token makes no tokens");
        let in_address = Credential::Token(Secret::new(jwt::KNOWN));
        assert_eq!(ring.admit(Some(&in_address), 1_200_000).unwrap_err(), Denied::Invalid);
    }

    #[test]
    fn a_key_has_its_words_and_a_file_that_is_broken_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("words.json");
        std::fs::write(&file, r#"{"nginx": "engine x"}"#).unwrap();
        let keys = vec![Key { lexicon: Some(file.clone()), ..key("a", "alpha") }, key("b", "beta")];
        let ring = ring(keys);
        let words = |secret| ring.admit(any(secret).as_ref(), 0).unwrap().lexicon;
        assert!(!words("alpha").is_empty() && words("beta").is_empty());
        std::fs::write(&file, r#"[{"pattern": "[", "spoken": ""}]"#).unwrap();
        let error = ring.reload().unwrap_err().to_string();
        assert!(error.contains("words.json: entry 0"), "{error}");
        assert!(!words("alpha").is_empty(), "they stay as they were");
        std::fs::write(&file, "{}").unwrap();
        ring.reload().unwrap();
        assert!(words("alpha").is_empty());
    }

    #[test]
    fn a_key_keeps_what_it_uses_when_the_file_is_read_again() {
        let ring = ring(vec![key("a", "alpha")]);
        let caller = ring.admit(any("alpha").as_ref(), 0).unwrap();
        let _session = caller.allowance.session().unwrap();
        ring.reload().unwrap();
        let again = ring.admit(any("alpha").as_ref(), 0).unwrap();
        assert_eq!(again.allowance.session().unwrap_err().limit, "max_sessions");
    }
}
