//! Conversations as OpenAI's `/v1/chat/completions` writes them: what is asked of a speech language model, and the answer.
//! Knows neither sockets nor the engine's threads.
//!
//! ```text
//! body --request--> Chat, with the messages --content--> parts --sound decoded--> engine's request
//! engine's events --reply--> one object, or chunks of it
//! ```

pub(crate) mod content;
pub(crate) mod kept;
pub(crate) mod reply;
pub(crate) mod request;

/// A request that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    /// Where in the request, as `messages[0].content`.
    pub(crate) param: Option<String>,
    pub(crate) message: String,
}

impl Refusal {
    /// A value that is not to be had.
    pub(crate) fn of(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: "bad_value", param: Some(param.into()), message: message.into() }
    }
}
