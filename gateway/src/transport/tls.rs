//! TLS 1.2 and 1.3 in front of everything else, with a certificate that can be read again. Knows no HTTP.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config;

/// What is spoken inside: HTTP/1.1, which WebSockets need.
const ALPN: &[u8] = b"http/1.1";

/// The server's side of TLS.
pub(crate) struct Tls {
    files: Files,
    acceptor: RwLock<TlsAcceptor>,
}

struct Files {
    cert: PathBuf,
    key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that is absent, or no PEM file of its kind.
    #[error("{}: {source}", file.display())]
    Pem {
        /// The file.
        file: PathBuf,
        /// What the parser said.
        source: pem::Error,
    },
    /// A PEM file with something else in it.
    #[error("{}: there is no {what} in it", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
        /// What it should have.
        what: &'static str,
    },
    /// Certificate and key do not go together.
    #[error("{}: {source}", file.display())]
    Refused {
        /// The certificate.
        file: PathBuf,
        /// What is wrong with it.
        source: rustls::Error,
    },
}

impl Tls {
    /// Reads the files that the settings name; none for settings that name none.
    pub(crate) fn load(settings: &config::Tls) -> Result<Option<Self>, TlsError> {
        let (Some(cert), Some(key)) = (&settings.cert, &settings.key) else { return Ok(None) };
        let files = Files { cert: cert.clone(), key: key.clone() };
        let acceptor = RwLock::new(files.read()?);
        Ok(Some(Self { files, acceptor }))
    }

    /// Reads the files again; connections that are open keep what they have.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        let acceptor = self.files.read()?;
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(())
    }

    /// Shakes hands.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let acceptor = self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone();
        acceptor.accept(stream).await
    }
}

impl Files {
    fn read(&self) -> Result<TlsAcceptor, TlsError> {
        let pem = |file: &Path, what: &'static str| {
            let file = file.to_path_buf();
            move |source| match source {
                pem::Error::NoItemsFound => TlsError::Missing { file, what },
                source => TlsError::Pem { file, source },
            }
        };
        let chain = CertificateDer::pem_file_iter(&self.cert).and_then(Iterator::collect);
        let chain = chain.and_then(|chain: Vec<CertificateDer<'static>>| match chain.is_empty() {
            true => Err(pem::Error::NoItemsFound),
            false => Ok(chain),
        });
        let chain = chain.map_err(pem(&self.cert, "certificate"))?;
        let key = PrivateKeyDer::from_pem_file(&self.key);
        let key = key.map_err(pem(&self.key, "private key"))?;
        let refused = |source| TlsError::Refused { file: self.cert.clone(), source };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|versions| versions.with_no_client_auth().with_single_cert(chain, key))
            .map_err(refused)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        let load = || Tls::load(&config::Tls { cert: Some(cert.clone()), key: Some(key.clone()) });
        let says = |file: &str| {
            let error = load().err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains(file), "{error}");
        };
        says("cert.pem");
        let ours = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&cert, ours.cert.pem()).unwrap();
        std::fs::write(&key, ours.cert.pem()).unwrap();
        says("key.pem: there is no private key in it");
        std::fs::write(&cert, ours.signing_key.serialize_pem()).unwrap();
        says("cert.pem: there is no certificate in it");
        std::fs::write(&cert, ours.cert.pem()).unwrap();
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&key, other.signing_key.serialize_pem()).unwrap();
        says("cert.pem");
        std::fs::write(&key, ours.signing_key.serialize_pem()).unwrap();
        assert!(load().unwrap().is_some());
        assert!(Tls::load(&config::Tls::default()).unwrap().is_none());
    }
}
