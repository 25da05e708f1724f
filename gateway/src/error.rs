//! The one table from what can go wrong to what the wire says: codes, whether they end the session, close codes.

use serde::Serialize;

/// An error code of the native protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "docs/protocol.md says what each means")]
pub enum Code {
    BadMessage,
    Unauthorized,
    UnknownVoice,
    UnknownModel,
    UnknownLanguage,
    UnknownStyle,
    UnsupportedAudio,
    BadOption,
    CtxExists,
    CtxUnknown,
    CtxEnded,
    SeqGap,
    TooManyContexts,
    TextOverflow,
    TextTooLong,
    PlayedBeyondSent,
    CtxIdle,
    Overloaded,
    ResumeUnknown,
    SlowConsumer,
    IdleTimeout,
    StartTimeout,
    Replaced,
    MessageTooBig,
    EngineFailed,
    ShuttingDown,
    Internal,
}

/// What an error ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Nothing.
    Note,
    /// Its context.
    Context,
    /// Its session, with this WebSocket close code.
    Session(u16),
}

impl Code {
    /// All of them, in their order above.
    pub(crate) const ALL: [Self; 27] = [
        Self::BadMessage,
        Self::Unauthorized,
        Self::UnknownVoice,
        Self::UnknownModel,
        Self::UnknownLanguage,
        Self::UnknownStyle,
        Self::UnsupportedAudio,
        Self::BadOption,
        Self::CtxExists,
        Self::CtxUnknown,
        Self::CtxEnded,
        Self::SeqGap,
        Self::TooManyContexts,
        Self::TextOverflow,
        Self::TextTooLong,
        Self::PlayedBeyondSent,
        Self::CtxIdle,
        Self::Overloaded,
        Self::ResumeUnknown,
        Self::SlowConsumer,
        Self::IdleTimeout,
        Self::StartTimeout,
        Self::Replaced,
        Self::MessageTooBig,
        Self::EngineFailed,
        Self::ShuttingDown,
        Self::Internal,
    ];

    /// What it ends. [`Code::BadMessage`] ends a session too, but only by its number.
    pub fn severity(self) -> Severity {
        match self {
            Self::CtxIdle | Self::EngineFailed => Severity::Context,
            Self::Unauthorized => Severity::Session(4401),
            Self::SlowConsumer | Self::IdleTimeout | Self::StartTimeout => Severity::Session(4408),
            Self::Replaced => Severity::Session(4409),
            Self::MessageTooBig => Severity::Session(1009),
            Self::ShuttingDown => Severity::Session(1012),
            Self::Internal => Severity::Session(1011),
            _ => Severity::Note,
        }
    }

    /// The HTTP status that means it most nearly.
    pub fn http_status(self) -> u16 {
        match self {
            Self::Unauthorized => 401,
            Self::CtxExists | Self::Replaced => 409,
            Self::MessageTooBig => 413,
            Self::TooManyContexts | Self::TextOverflow => 429,
            Self::Overloaded | Self::ShuttingDown => 503,
            Self::EngineFailed | Self::Internal => 500,
            _ => 400,
        }
    }

    /// Its name, for a close reason.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadMessage => "bad_message",
            Self::Unauthorized => "unauthorized",
            Self::UnknownVoice => "unknown_voice",
            Self::UnknownModel => "unknown_model",
            Self::UnknownLanguage => "unknown_language",
            Self::UnknownStyle => "unknown_style",
            Self::UnsupportedAudio => "unsupported_audio",
            Self::BadOption => "bad_option",
            Self::CtxExists => "ctx_exists",
            Self::CtxUnknown => "ctx_unknown",
            Self::CtxEnded => "ctx_ended",
            Self::SeqGap => "seq_gap",
            Self::TooManyContexts => "too_many_contexts",
            Self::TextOverflow => "text_overflow",
            Self::TextTooLong => "text_too_long",
            Self::PlayedBeyondSent => "played_beyond_sent",
            Self::CtxIdle => "ctx_idle",
            Self::Overloaded => "overloaded",
            Self::ResumeUnknown => "resume_unknown",
            Self::SlowConsumer => "slow_consumer",
            Self::IdleTimeout => "idle_timeout",
            Self::StartTimeout => "start_timeout",
            Self::Replaced => "replaced",
            Self::MessageTooBig => "message_too_big",
            Self::EngineFailed => "engine_failed",
            Self::ShuttingDown => "shutting_down",
            Self::Internal => "internal",
        }
    }
}

/// What the wire says when the engine refuses a context.
pub fn refusal(error: &engine::Error) -> Code {
    match error {
        engine::Error::Option { field: "voice", .. } => Code::UnknownVoice,
        engine::Error::Option { field: "language", .. } => Code::UnknownLanguage,
        engine::Error::Option { field: "style", .. } => Code::UnknownStyle,
        engine::Error::Option { .. } => Code::BadOption,
        engine::Error::Sound { .. } | engine::Error::Silent => Code::BadOption,
        engine::Error::Busy { .. }
        | engine::Error::Overloaded { .. }
        | engine::Error::Listening { .. }
        | engine::Error::Unheard { .. } => Code::Overloaded,
        _ => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_called_the_same_in_messages_and_in_close_reasons() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.name());
        }
    }

    #[test]
    fn no_code_is_left_out_of_all() {
        assert!(Code::ALL.iter().enumerate().all(|(at, code)| *code as usize == at));
        assert_eq!(Code::ALL.last(), Some(&Code::Internal), "the last one of the list above");
    }
}
