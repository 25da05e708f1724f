//! Where a gateway is, and how it is asked for a session.

use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue, Uri, header};

/// Where sessions are asked for, when the address names no path.
const STREAM_PATH: &str = "/v1/tts/stream";

/// A gateway, and the key to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    host: String,
    port: u16,
    path: String,
    key: Option<String>,
}

impl std::fmt::Debug for Target {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("address", &self.address())
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Why an address or a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not a URL with a host.
    #[error("{url:?} is no address: http://HOST:PORT is one")]
    Url {
        /// What was given.
        url: String,
    },
    /// A scheme that this client does not speak.
    #[error("{scheme:?} is not one of http, ws; for TLS, put a proxy before the client")]
    Scheme {
        /// What was given.
        scheme: String,
    },
    /// A key with characters that no HTTP header can carry.
    #[error("the key has characters that no header can carry")]
    Key,
}

impl Target {
    /// The gateway at a URL: `http` or `ws`, with or without a path.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn new(url: &str) -> Result<Self, TargetError> {
        let wrong = || TargetError::Url { url: url.to_owned() };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let scheme = uri.scheme_str().ok_or_else(wrong)?;
        if !matches!(scheme, "http" | "ws") {
            return Err(TargetError::Scheme { scheme: scheme.to_owned() });
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?.to_owned();
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path == "/" { STREAM_PATH } else { path };
        Ok(Self { host, port: uri.port_u16().unwrap_or(80), path: path.to_owned(), key: None })
    }

    /// The same, with an API key.
    pub fn with_key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// The same at another path, unless the address has named one.
    pub(crate) fn at(self, path: &str) -> Self {
        if self.path == STREAM_PATH { Self { path: path.to_owned(), ..self } } else { self }
    }

    /// Path and query.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The API key.
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Host and port.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The request for a session.
    pub(crate) fn upgrade(
        &self,
        subprotocol: Option<&'static str>,
    ) -> Result<Request, TargetError> {
        let url = format!("ws://{}{}", self.address(), self.path);
        let wrong = |_| TargetError::Url { url: url.clone() };
        let mut request = url.as_str().into_client_request().map_err(wrong)?;
        if let Some(subprotocol) = subprotocol {
            let name = HeaderName::from_static("sec-websocket-protocol");
            request.headers_mut().insert(name, HeaderValue::from_static(subprotocol));
        }
        if let Some(key) = &self.key {
            let bearer = HeaderValue::from_str(&format!("Bearer {key}"));
            let mut bearer = bearer.map_err(|_| TargetError::Key)?;
            bearer.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, bearer);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(url: &str) -> Result<(String, String), TargetError> {
        let target = Target::new(url)?;
        Ok((target.address(), target.path))
    }

    #[test]
    fn an_address_may_leave_out_port_and_path() {
        let cases = [
            ("http://localhost", "localhost:80", STREAM_PATH),
            ("http://127.0.0.1:8080/", "127.0.0.1:8080", STREAM_PATH),
            ("ws://[::1]:8080/v1/tts/stream?token=t", "[::1]:8080", "/v1/tts/stream?token=t"),
        ];
        for (url, address, path) in cases {
            assert_eq!(parts(url), Ok((address.to_owned(), path.to_owned())), "{url}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in ["", "localhost:8080", "127.0.0.1", "http://", "/v1"] {
            assert!(parts(url).is_err(), "{url}");
        }
        let scheme = Err(TargetError::Scheme { scheme: "https".to_owned() });
        assert_eq!(parts("https://localhost"), scheme);
    }

    #[test]
    fn a_key_is_sent_and_never_shown() {
        let target = Target::new("http://localhost").unwrap().with_key("secret");
        assert!(!format!("{target:?}").contains("secret"));
        let request = target.upgrade(Some("dovecote.v1")).unwrap();
        assert_eq!(request.headers()["authorization"], "Bearer secret");
        assert!(!format!("{request:?}").contains("secret"));
        let broken = target.with_key("a\nb").upgrade(None);
        assert_eq!(broken.unwrap_err(), TargetError::Key);
    }
}
