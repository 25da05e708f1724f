//! Refusals over HTTP, at the door and behind it, in the words of the vendor whose client asks.
//!
//! ```text
//! {"error":{"message","code",..}} with the extension Told --reword--> {"detail":{"status","message"}}, ..
//! ```

use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::Told;

/// The body of a refusal: its status, its code, and why.
pub(crate) type Words = fn(status: u16, code: &str, reason: &str) -> Value;

/// Puts an answer that is a refusal into a vendor's words; its status and its headers stay, and so does any other answer.
pub(crate) fn reword(response: Response, words: Words) -> Response {
    let Some(Told { code, message }) = response.extensions().get::<Told>() else {
        return response;
    };
    let body = Json(words(response.status().as_u16(), code, message)).into_response();
    let (mut parts, _) = response.into_parts();
    let length = body.headers().get(header::CONTENT_LENGTH).cloned();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(length.map(|length: HeaderValue| (header::CONTENT_LENGTH, length)));
    Response::from_parts(parts, body.into_body())
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::StatusCode;
    use serde_json::json;

    use super::*;
    use crate::transport::http::problem;

    #[tokio::test]
    async fn a_refusal_keeps_its_status_and_its_headers() {
        let mut refused = problem(StatusCode::SERVICE_UNAVAILABLE, "overloaded", None, "full");
        refused.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(7));
        let words = |status, code: &str, reason: &str| json!([status, code, reason]);
        let refused = reword(refused, words);
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()[header::RETRY_AFTER], "7");
        let body = to_bytes(refused.into_body(), 1_000).await.unwrap();
        assert_eq!(body, r#"[503,"overloaded","full"]"#);
        let other = reword("as it is".into_response(), words);
        assert_eq!(to_bytes(other.into_body(), 1_000).await.unwrap(), "as it is");
    }
}
