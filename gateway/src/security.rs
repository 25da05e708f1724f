//! Who may connect, and how: the server's keys and its certificate. Both can be read again while it runs.

use std::sync::Arc;
use std::time::Duration;

use crate::auth::{Keyring, KeyringError};
use crate::config::Gateway;
use crate::transport::tls::{Tls, TlsError};

/// How often the file of keys is looked at: a revoked key works this long.
const LOOK: Duration = Duration::from_secs(1);

/// Keys and certificate of a server. Clones share them.
#[derive(Clone)]
pub struct Security {
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) tls: Option<Arc<Tls>>,
}

/// Why keys or certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    /// The file of keys.
    #[error(transparent)]
    Keys(#[from] KeyringError),
    /// Certificate or private key.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Security {
    /// Reads the files that the settings name.
    ///
    /// # Errors
    /// The file that is not to be used, and why.
    pub fn new(settings: &Gateway) -> Result<Self, SecurityError> {
        let mut secret = [0_u8; 32];
        getrandom::fill(&mut secret).expect("a system without random numbers cannot serve");
        let projects = settings.livekit.secrets.clone();
        let (auth, limits) = (settings.auth.clone(), settings.lexicon.limits());
        let keyring = Arc::new(Keyring::new(auth, limits, projects, secret)?);
        let tls = Tls::load(&settings.tls)?.map(Arc::new);
        Ok(Self { keyring, tls })
    }

    /// Whether a key is needed.
    pub fn needs_key(&self) -> bool {
        self.keyring.needs_key()
    }

    /// Whether connections are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads all files again. What cannot be used stays as it was.
    ///
    /// # Errors
    /// The first file that is not to be used.
    pub fn reload(&self) -> Result<(), SecurityError> {
        let keys = self.keyring.reload();
        let tls = self.tls.as_ref().map_or(Ok(()), |tls| tls.reload());
        keys?;
        Ok(tls?)
    }

    /// Follows the file of keys for ever.
    pub(crate) async fn watch(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            match self.keyring.refresh() {
                Ok(true) => tracing::info!("the file of keys was read again"),
                Ok(false) => {}
                Err(error) => tracing::error!("the keys stay as they were: {error}"),
            }
        }
    }
}
