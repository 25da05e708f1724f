//! Which pages may ask, and who is behind a proxy.

use std::net::IpAddr;

use axum::http::{HeaderMap, header};

use crate::config::Network;

/// Whether a request may come from where it comes from. Without an `Origin` no page sent it. The server's own page may always;
/// others must be on the list.
///
/// `needs_key`: keys are needed. Without, a name of somebody else's that leads to this machine would make a foreign page
/// look like our own, so only an address or `localhost` counts as ours.
pub(crate) fn is_welcome(headers: &HeaderMap, allowed: &[String], needs_key: bool) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let Ok(origin) = origin.to_str() else { return false };
    if is_listed(origin, allowed) {
        return true;
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let (Some((_, origin)), Some(host)) = (origin.split_once("://"), host) else { return false };
    origin.eq_ignore_ascii_case(host) && (needs_key || is_local_name(host))
}

/// Whether a page is on the list, as `scheme://host[:port]`.
pub(crate) fn is_listed(origin: &str, allowed: &[String]) -> bool {
    allowed.iter().any(|a| a == "*" || a.eq_ignore_ascii_case(origin))
}

/// Whether a host of a request can only mean this machine or an address, never a name that somebody registered.
fn is_local_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// The address that a request began at: its peer's, or what trusted proxies say about the one before them.
pub(crate) fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    let said = headers.get_all("x-forwarded-for").iter();
    let said: Vec<&str> = said.filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(',')).collect();
    let mut address = peer.to_canonical();
    for before in said.iter().rev() {
        if !is_trusted(address) {
            break;
        }
        let Ok(before) = before.trim().parse::<IpAddr>() else { break };
        address = before.to_canonical();
    }
    address
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (name.parse().unwrap(), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    fn welcome(origin: &'static str, host: &'static str, needs_key: bool) -> bool {
        let allowed = ["https://app.example".to_owned()];
        is_welcome(&headers(&[("origin", origin), ("host", host)]), &allowed, needs_key)
    }

    #[test]
    fn our_own_page_and_those_on_the_list_may_ask() {
        assert!(is_welcome(&headers(&[("host", "a")]), &[], false), "no page");
        assert!(welcome("http://127.0.0.1:8080", "127.0.0.1:8080", false));
        assert!(welcome("http://localhost:8080", "localhost:8080", false));
        assert!(welcome("http://[::1]:8080", "[::1]:8080", false));
        assert!(welcome("https://voice.example", "voice.example", true));
        assert!(welcome("https://app.example", "voice.example", true));
    }

    #[test]
    fn other_pages_may_not() {
        assert!(!welcome("https://evil.example", "voice.example", true));
        assert!(!welcome("http://127.0.0.1:9090", "127.0.0.1:8080", false));
        assert!(!welcome("null", "127.0.0.1:8080", false));
        assert!(
            !welcome("http://evil.example:8080", "evil.example:8080", false),
            "a name led here"
        );
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let address = |peer: &str, said: &'static str| {
            let headers = headers(&[("x-forwarded-for", said)]);
            client_address(peer.parse().unwrap(), &headers, &trusted).to_string()
        };
        assert_eq!(address("203.0.113.9", "127.0.0.1"), "203.0.113.9");
        assert_eq!(address("10.0.0.1", "198.51.100.7"), "198.51.100.7");
        assert_eq!(address("10.0.0.1", "127.0.0.1, 198.51.100.7, 10.0.0.2"), "198.51.100.7");
        assert_eq!(address("10.0.0.1", "nonsense"), "10.0.0.1");
    }
}
