//! Speech that is asked for in one request with all of its text: what a vendor's request comes to, and what the answer is
//! wrapped in.

use std::time::Duration;

use bytes::Bytes;
use engine::{Event, Request, Summary};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Arc, Catalogue, Gateway};
use crate::protocol::mend_surrogates;
use crate::shape::Shape;

/// A request as it comes.
pub(crate) struct Asking<'a> {
    /// Path and query of its address, as they came.
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) body: &'a [u8],
    pub(crate) config: &'a Gateway,
    /// What the client may ask for.
    pub(crate) catalogue: &'a Arc<Catalogue>,
}

impl Asking<'_> {
    /// The body, read as JSON. What is no character in it becomes U+FFFD, as in messages: a text cut in the wrong place is
    /// spoken all the same.
    ///
    /// # Errors
    /// A sentence that says where it is not what was expected.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, String> {
        let body = String::from_utf8_lossy(self.body);
        serde_json::from_str(&mend_surrogates(&body)).map_err(|error| error.to_string())
    }
}

/// What it asks for.
pub(crate) struct Whole {
    /// With the whole text.
    pub(crate) request: Request,
    pub(crate) shape: Shape,
    /// What the bytes are wrapped in; none: they are the body.
    pub(crate) framing: Option<Box<dyn Framing>>,
    /// Fields that have no effect here; the client is told.
    pub(crate) ignored: Vec<&'static str>,
}

/// A request that cannot be spoken, in the vendor's words.
#[derive(Debug, PartialEq)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// What reads requests of a vendor.
pub(crate) type Read = fn(&Asking<'_>) -> Result<Whole, Refused>;

/// What is told of when it sounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing {
    Nothing,
    Words,
    Characters,
}

/// A word or a character of the text and when it sounds, in seconds from the start.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
}

/// How the bytes of an answer reach a client in messages of its vendor. What is empty is not sent.
pub(crate) trait Framing: Send {
    /// Of the body.
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// What it tells of when it sounds.
    fn timing(&self) -> Timing {
        Timing::Nothing
    }

    /// Something that the engine tells beside the sound.
    fn learn(&mut self, _event: &Event) -> Bytes {
        Bytes::new()
    }

    /// What comes next comes so long after the request.
    fn at(&mut self, _after: Duration) {}

    /// More bytes, at least one.
    fn sound(&mut self, bytes: &[u8]) -> Bytes;

    /// Words, or characters, whose sound was told before; only for who wants them.
    fn words(&mut self, _words: &[Word]) -> Bytes {
        Bytes::new()
    }

    /// All was said.
    fn done(&mut self, summary: &Summary) -> Bytes;

    /// It goes wrong; the transfer breaks behind this.
    fn broken(&mut self, message: &str) -> Bytes;
}

/// An event of a stream of them, as browsers read it.
pub(crate) fn server_sent(name: Option<&str>, data: &Value) -> Bytes {
    let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    format!("{name}data: {data}\n\n").into()
}

/// A text of the length that a request may have.
///
/// # Errors
/// A sentence that names the field and the limit.
pub(super) fn text(field: &str, text: Option<String>, config: &Gateway) -> Result<String, String> {
    let text = text.unwrap_or_default();
    let (chars, most) = (text.chars().count(), config.speech.max_input_chars);
    if (1..=most).contains(&chars) {
        return Ok(text);
    }
    Err(format!("{field} has {chars} characters, 1 to {most} are allowed (speech.max_input_chars)"))
}
