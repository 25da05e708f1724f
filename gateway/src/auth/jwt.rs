//! Tokens that LiveKit's clients sign for themselves with the secret of their project: JSON Web Tokens (RFC 7519) with
//! HS256 and nothing else. Time is an argument.
//!
//! ```text
//! base64url({"alg":"HS256"}) . base64url({"iss":API key, "nbf":s, "exp":s, "inference":{"perform":true}}) . base64url(HMAC)
//! ```

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;

use super::keyring::Denied;
use crate::config::Secret;

/// How far the clock of a client may be off.
const LEEWAY_S: u64 = 60;

#[derive(Deserialize)]
struct Header {
    alg: String,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    exp: f64,
    #[serde(default)]
    nbf: f64,
    inference: Option<Inference>,
}

#[derive(Deserialize)]
struct Inference {
    #[serde(default)]
    perform: bool,
}

/// Whether a text has the form of such a token: three parts, the first of which begins as a JSON object does.
pub(super) fn is_one(text: &str) -> bool {
    text.starts_with("ey") && text.split('.').count() == 3
}

/// The API key of the project that signed a token; `secrets` are those of the projects that may.
///
/// # Errors
/// [`Denied::Expired`] for what was right once, [`Denied::Invalid`] for all else.
pub(super) fn signer<'a>(
    token: &str,
    secrets: &'a BTreeMap<String, Secret>,
    unix_ms: u64,
) -> Result<&'a str, Denied> {
    let invalid = Denied::Invalid;
    let (signed, signature) = token.rsplit_once('.').ok_or(invalid)?;
    let (header, claims) = signed.split_once('.').ok_or(invalid)?;
    let header: Header = part(header).ok_or(invalid)?;
    let claims: Claims = part(claims).ok_or(invalid)?;
    // What a token says of its own algorithm decides nothing but whether it is read on.
    if header.alg != "HS256" {
        return Err(invalid);
    }
    let (api_key, secret) = secrets.get_key_value(&claims.iss).ok_or(invalid)?;
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| invalid)?;
    let mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes());
    let mac = mac.expect("HMAC takes keys of any length; this is a bug");
    mac.chain_update(signed).verify_slice(&signature).map_err(|_| invalid)?;
    let (now, leeway) = (unix_ms as f64 / 1e3, LEEWAY_S as f64);
    if now > claims.exp + leeway {
        return Err(Denied::Expired);
    }
    let may_speak = claims.inference.is_some_and(|inference| inference.perform);
    if now + leeway < claims.nbf || !may_speak {
        return Err(invalid);
    }
    Ok(api_key)
}

fn part<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

/// The secret of [`KNOWN`].
#[cfg(test)]
pub(super) const KNOWN_SECRET: &str = "a secret of a project";
/// Signed with [`KNOWN_SECRET`] by PyJWT: `{"iss": "APIone", "sub": "agent", "nbf": 1000, "exp": 1600, "inference":
/// {"perform": true}}`.
#[cfg(test)]
pub(super) const KNOWN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.\
    eyJpc3MiOiJBUElvbmUiLCJzdWIiOiJhZ2VudCIsIm5iZiI6MTAwMCwiZXhwIjoxNjAwLCJpbmZlcmVuY2UiOnsicGVyZm9ybSI6dHJ1ZX19.\
    rqAacX101s_iV9PEU737LB6D2G0RSfHZPeTjFZYfInw";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SECRET: &str = KNOWN_SECRET;
    const NOW_MS: u64 = 1_200_000;

    fn secrets() -> BTreeMap<String, Secret> {
        BTreeMap::from([("APIone".to_owned(), Secret::new(SECRET))])
    }

    fn sign(header: &Value, claims: &Value, secret: &str) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        let signature = mac.chain_update(&signed).finalize().into_bytes();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn claims() -> Value {
        json!({"iss": "APIone", "nbf": 1_000, "exp": 1_600, "inference": {"perform": true}})
    }

    fn with(field: &str, value: Value) -> String {
        let mut claims = claims();
        claims[field] = value;
        sign(&json!({"alg": "HS256"}), &claims, SECRET)
    }

    #[test]
    fn a_token_of_another_implementation_is_taken() {
        assert!(is_one(KNOWN) && !is_one("sk_1.2.3") && !is_one("eyJhbGciOi"));
        assert_eq!(signer(KNOWN, &secrets(), NOW_MS), Ok("APIone"));
    }

    #[test]
    fn a_token_has_its_time() {
        let secrets = secrets();
        let at = |s: u64| signer(KNOWN, &secrets, s * 1_000);
        assert_eq!((at(1_000 - LEEWAY_S), at(1_600 + LEEWAY_S)), (Ok("APIone"), Ok("APIone")));
        assert_eq!(at(1_000 - LEEWAY_S - 1), Err(Denied::Invalid));
        assert_eq!(at(1_600 + LEEWAY_S + 1), Err(Denied::Expired));
    }

    #[test]
    fn what_does_not_hold_in_every_point_is_refused() {
        let hs256 = json!({"alg": "HS256"});
        let right = sign(&hs256, &claims(), SECRET);
        assert_eq!(signer(&right, &secrets(), NOW_MS), Ok("APIone"));
        let unsigned = format!("{}.", right.rsplit_once('.').unwrap().0);
        for wrong in [
            sign(&hs256, &claims(), "another secret"),
            sign(&json!({"alg": "none"}), &claims(), SECRET),
            sign(&json!({"alg": "HS512"}), &claims(), SECRET),
            with("iss", json!("APItwo")),
            with("inference", json!({"perform": false})),
            with("inference", json!(null)),
            with("exp", json!(null)),
            unsigned,
            right[..right.len() - 2].to_owned(),
            "ey.ey.ey".to_owned(),
            "..".to_owned(),
        ] {
            assert_eq!(signer(&wrong, &secrets(), NOW_MS), Err(Denied::Invalid), "{wrong}");
        }
    }
}
