//! Parts of multipart forms, each with its limit. Knows nothing of what they mean.

use std::error::Error;

use axum::extract::multipart::{Field, MultipartError};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::problem;

/// Why a form is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) param: Option<&'static str>,
    pub(super) message: String,
}

impl Refusal {
    /// A value that is not to be had.
    pub(super) fn bad(param: &'static str, message: impl Into<String>) -> Self {
        Self::coded("bad_value", param, message)
    }

    /// As [`Refusal::bad`], in another word.
    pub(super) fn coded(
        code: &'static str,
        param: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let (status, message) = (StatusCode::BAD_REQUEST, message.into());
        Self { status, code, param: Some(param), message }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        problem(self.status, self.code, self.param, &self.message)
    }
}

/// The text of a part.
///
/// # Errors
/// It is longer, or not UTF-8.
pub(super) async fn text(
    field: Field<'_>,
    part: &'static str,
    chars_max: usize,
) -> Result<String, Refusal> {
    let bytes = bytes(field, part, chars_max * 4).await?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| Refusal::bad(part, format!("{part} is not UTF-8")))?;
    match text.chars().count() {
        chars if chars > chars_max => {
            let message = format!("{part} has {chars} characters, {chars_max} are allowed");
            Err(Refusal::bad(part, message))
        }
        _ => Ok(text),
    }
}

/// The bytes of a part.
///
/// # Errors
/// There are more, or they cannot be read to their end.
pub(super) async fn bytes(
    mut field: Field<'_>,
    part: &'static str,
    bytes_max: usize,
) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    let too_large = || Refusal {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        code: "too_large",
        param: Some(part),
        message: format!("{part} has more than {bytes_max} bytes"),
    };
    loop {
        match field.chunk().await {
            Ok(None) => return Ok(bytes),
            Ok(Some(chunk)) if bytes.len() + chunk.len() > bytes_max => return Err(too_large()),
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Err(e) if e.status() == StatusCode::PAYLOAD_TOO_LARGE => return Err(too_large()),
            Err(e) => return Err(broken(&e, Some(part))),
        }
    }
}

/// What is wrong with the body that a form comes in.
pub(super) fn broken(error: &MultipartError, param: Option<&'static str>) -> Refusal {
    match error.status() {
        status @ StatusCode::PAYLOAD_TOO_LARGE => {
            Refusal { status, code: "too_large", param, message: error.body_text() }
        }
        // It could not be read to its end, and only the first cause of that says why. Never a fault of ours.
        status if status.is_server_error() => {
            let causes = std::iter::successors(error.source(), |&cause| cause.source());
            let message = causes.last().map_or_else(|| error.body_text(), ToString::to_string);
            Refusal { status: StatusCode::BAD_REQUEST, code: "bad_body", param, message }
        }
        status => Refusal { status, code: "bad_body", param, message: error.body_text() },
    }
}
