//! Answers of speech language models: what is asked of one, and what a context that answers does next.
//!
//! ```text
//! Request -> rows of the prompt -> one group in the scheduler -> text as it is written, frames to the codec as they are complete
//! ```
//! Such contexts stand beside those that only speak: the same scheduler and memory, the same order of work, the same outbox.

mod context;
mod prompt;
mod request;
mod settings;
mod speaker;
mod writer;

pub use crate::layout::Role;
pub use crate::phase::Modality;
pub(crate) use context::Context;
pub use request::{Draw, Message, Part, Request, Task};
pub(crate) use settings::Settings;
pub(crate) use speaker::{Home, Speaker};

#[cfg(test)]
mod tests;
