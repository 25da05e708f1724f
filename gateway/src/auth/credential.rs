//! Where the clients of all surfaces put their key or token.

use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::config::Secret;

/// The subprotocol that carries a key or token, for browsers: they can set no header of an upgrade.
const TOKEN_SUBPROTOCOL: &str = "dovecote.token.";
/// Subprotocols of other vendors behind which a key is offered as one more, for browsers too.
const KEY_SUBPROTOCOLS: [&str; 2] = ["token", "bearer"];
/// Parameters that carry a token, ours and those of other vendors. Addresses are seen by too many for a key.
const TOKEN_PARAMETERS: [&str; 3] = ["token", "access_token", "single_use_token"];
/// Headers that carry a bare key, for clients of other vendors.
const KEY_HEADERS: [&str; 2] = ["xi-api-key", "x-api-key"];
/// Schemes of `Authorization`.
const SCHEMES: [&str; 2] = ["bearer", "token"];

/// What somebody shows.
#[derive(Debug)]
pub(crate) enum Credential {
    /// A key, or a token, where a header can be set.
    Any(Secret),
    /// From the address, where only a short-lived token may stand.
    Token(Secret),
}

/// What a request shows, if it shows anything: `Authorization`, a key header, a subprotocol, or a parameter, in this order.
pub(crate) fn credential(headers: &HeaderMap, query: Option<&str>) -> Option<Credential> {
    let any = authorization(headers).or_else(|| key_header(headers)).or_else(|| protocol(headers));
    let any = any.map(|secret| Credential::Any(Secret::new(secret)));
    any.or_else(|| Some(Credential::Token(Secret::new(parameter(query?)?))))
}

fn authorization(headers: &HeaderMap) -> Option<String> {
    let (scheme, secret) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let is_known = SCHEMES.contains(&scheme.to_ascii_lowercase().as_str());
    is_known.then(|| secret.trim().to_owned())
}

fn key_header(headers: &HeaderMap) -> Option<String> {
    let value = KEY_HEADERS.iter().find_map(|name| headers.get(*name))?;
    Some(value.to_str().ok()?.to_owned())
}

fn protocol(headers: &HeaderMap) -> Option<String> {
    let offers = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL);
    let offers = offers.iter().filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(','));
    let offers: Vec<&str> = offers.map(str::trim).collect();
    if let [first, key, ..] = offers[..]
        && KEY_SUBPROTOCOLS.contains(&first)
    {
        return Some(key.to_owned());
    }
    let encoded = offers.iter().find_map(|offer| offer.strip_prefix(TOKEN_SUBPROTOCOL))?;
    // What cannot be decoded is shown all the same: it opens nothing.
    let bytes = URL_SAFE_NO_PAD.decode(encoded.trim_end_matches('=')).unwrap_or_default();
    Some(String::from_utf8(bytes).unwrap_or_default())
}

/// Tokens need no escapes, so none are undone.
fn parameter(query: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| TOKEN_PARAMETERS.contains(name)).map(|(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn shown(headers: &[(&'static str, &str)], query: Option<&str>) -> Option<(String, bool)> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        Some(match credential(&map, query)? {
            Credential::Any(secret) => (secret.expose().to_owned(), true),
            Credential::Token(secret) => (secret.expose().to_owned(), false),
        })
    }

    #[test]
    fn every_place_is_looked_at() {
        let key = || Some(("k".to_owned(), true));
        assert_eq!(shown(&[("authorization", "Bearer k")], None), key());
        assert_eq!(shown(&[("authorization", "bearer  k ")], None), key());
        assert_eq!(shown(&[("authorization", "Token k")], None), key());
        assert_eq!(shown(&[("xi-api-key", "k")], None), key());
        assert_eq!(shown(&[("x-api-key", "k")], None), key());
        let protocols = [("sec-websocket-protocol", "dovecote.v1, dovecote.token.aw")];
        assert_eq!(shown(&protocols, None), key());
        assert_eq!(shown(&[("sec-websocket-protocol", "token, k")], None), key());
        assert_eq!(shown(&[("sec-websocket-protocol", "bearer,k")], None), key());
        for name in ["token", "access_token", "single_use_token"] {
            let query = format!("a=b&{name}=k");
            assert_eq!(shown(&[], Some(&query)), Some(("k".to_owned(), false)));
        }
        assert_eq!(shown(&[("authorization", "Bearer k")], Some("token=t")), key());
    }

    #[test]
    fn what_is_no_credential_is_none() {
        assert_eq!(shown(&[], None), None);
        assert_eq!(shown(&[], Some("api_key=k&x")), None, "a key has no place in an address");
        assert_eq!(shown(&[("authorization", "Basic k")], None), None);
        assert_eq!(shown(&[("sec-websocket-protocol", "dovecote.v1")], None), None);
        assert_eq!(shown(&[("sec-websocket-protocol", "token")], None), None);
    }

    #[test]
    fn a_subprotocol_that_cannot_be_decoded_is_an_empty_credential() {
        let protocols = [("sec-websocket-protocol", "dovecote.token.***")];
        assert_eq!(shown(&protocols, None), Some((String::new(), true)));
    }
}
