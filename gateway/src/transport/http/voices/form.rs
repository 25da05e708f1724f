//! The form that a voice is added with: its parts, each with its limit. Knows nothing of sound.

use std::error::Error;

use axum::extract::Multipart;
use axum::extract::multipart::{Field, MultipartError};
use axum::http::StatusCode;

/// Longest name.
const NAME_CHARS_MAX: usize = 200;
/// Longest reference.
const REFERENCE_CHARS_MAX: usize = 4_000;
/// Rows of codes as JSON: eight rows of 750 codes are 48 KB.
const CODES_BYTES_MAX: usize = 256 << 10;

/// Why a form is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) param: Option<&'static str>,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn bad(param: &'static str, message: impl Into<String>) -> Self {
        Self::coded("bad_value", param, message)
    }

    pub(super) fn coded(
        code: &'static str,
        param: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let (status, message) = (StatusCode::BAD_REQUEST, message.into());
        Self { status, code, param: Some(param), message }
    }
}

/// What a voice is to be made from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Material {
    /// A file of sound.
    File(Vec<u8>),
    /// Rows of codes.
    Codes(Vec<Vec<u16>>),
}

/// A form that is complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) name: String,
    pub(super) reference: String,
    pub(super) material: Material,
}

/// A form as it comes in.
#[derive(Debug, Default)]
struct Parts {
    name: Option<String>,
    file: Option<Vec<u8>>,
    codes: Option<Vec<Vec<u16>>>,
    consent: bool,
    reference: String,
}

impl Form {
    /// Reads a form; parts that are not known are passed over.
    ///
    /// # Errors
    /// The first part that is too large or does not fit, or what is missing.
    pub(super) async fn read(
        mut multipart: Multipart,
        file_bytes_max: usize,
    ) -> Result<Self, Refusal> {
        let mut parts = Parts::default();
        while let Some(field) = multipart.next_field().await.map_err(|e| broken(&e, None))? {
            match field.name() {
                Some("name") => parts.name = Some(text(field, "name", NAME_CHARS_MAX).await?),
                Some("reference") => {
                    parts.reference = text(field, "reference", REFERENCE_CHARS_MAX).await?;
                }
                Some("consent") => {
                    parts.consent = text(field, "consent", NAME_CHARS_MAX).await? == "true";
                }
                Some("file") => parts.file = Some(bytes(field, "file", file_bytes_max).await?),
                Some("codes") => {
                    let json = bytes(field, "codes", CODES_BYTES_MAX).await?;
                    let rows = serde_json::from_slice(&json);
                    let rows = rows.map_err(|e| Refusal::bad("codes", format!("codes: {e}")))?;
                    parts.codes = Some(rows);
                }
                _ => {}
            }
        }
        parts.complete()
    }
}

impl Parts {
    fn complete(self) -> Result<Form, Refusal> {
        if !self.consent {
            let message = "consent must be \"true\": who is heard in the recording has to agree";
            return Err(Refusal::coded("consent_required", "consent", message));
        }
        let material = match (self.file, self.codes) {
            (Some(file), None) => Material::File(file),
            (None, Some(codes)) => Material::Codes(codes),
            _ => return Err(Refusal::bad("file", "one of file and codes is needed")),
        };
        let name = self.name.filter(|name| !name.trim().is_empty());
        let name = name.ok_or_else(|| Refusal::bad("name", "name is missing"))?;
        Ok(Form { name, reference: self.reference, material })
    }
}

async fn text(field: Field<'_>, part: &'static str, chars_max: usize) -> Result<String, Refusal> {
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

async fn bytes(
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
fn broken(error: &MultipartError, param: Option<&'static str>) -> Refusal {
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
