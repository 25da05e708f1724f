//! What browsers are told about pages of other servers: whose scripts may read the answers of `/v1`.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::{IGNORED, NOTICE};
use crate::auth::is_listed;

/// How long a browser need not ask again; some ask sooner.
const MAX_AGE: Duration = Duration::from_secs(600);
/// What a script may read of an answer's head, beside what it always may.
const EXPOSED: [HeaderName; 4] =
    [HeaderName::from_static("x-request-id"), header::RETRY_AFTER, IGNORED, NOTICE];

/// Answers what browsers ask before a request of a foreign page, and lets such a page read if it is on the list. None when
/// the list is empty: then browsers keep all answers from all foreign pages.
///
/// `needs_key`: keys are needed. Then a page is always named, also if the list is `*`. Cookies play no part: a key is in
/// a header, where only a page that has it can put it.
pub(crate) fn layer(allowed: &[String], needs_key: bool) -> Option<CorsLayer> {
    if allowed.is_empty() {
        return None;
    }
    let origins = if !needs_key && allowed.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        let allowed = allowed.to_vec();
        let is_allowed = move |origin: &HeaderValue, _: &_| {
            origin.to_str().is_ok_and(|origin| is_listed(origin, &allowed))
        };
        AllowOrigin::predicate(is_allowed)
    };
    let layer = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        // Client libraries send headers of their own; a page that may send a key may send those.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(EXPOSED)
        .max_age(MAX_AGE);
    Some(layer)
}
