//! The form that a voice is added with: its parts, each with its limit. Knows nothing of sound.

use axum::extract::Multipart;

use crate::transport::http::form::{Refusal, broken, bytes, text};

/// Longest name.
const NAME_CHARS_MAX: usize = 200;
/// Longest reference.
const REFERENCE_CHARS_MAX: usize = 4_000;
/// Rows of codes as JSON: eight rows of 750 codes are 48 KB.
const CODES_BYTES_MAX: usize = 256 << 10;

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
    /// Name of the model that is to speak with it; none: the first that can.
    pub(super) model: Option<String>,
    pub(super) material: Material,
}

/// A form as it comes in.
#[derive(Debug, Default)]
struct Parts {
    name: Option<String>,
    model: Option<String>,
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
                Some("model") => parts.model = Some(text(field, "model", NAME_CHARS_MAX).await?),
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
        Ok(Form { name, reference: self.reference, model: self.model, material })
    }
}
