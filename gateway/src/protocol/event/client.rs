//! What a client says, and how it is read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::protocol::Resume;
use crate::protocol::format::{Asked, Format};

/// What a client says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClientEvent {
    Start(Box<Start>),
    Open(Box<Open>),
    Text(TextDelta),
    Flush(Flush),
    Mark(Mark),
    End(End),
    AudioBegin(AudioBegin),
    AudioEnd(AudioEnd),
    Cancel(Cancel),
    Played(Played),
    Update(Update),
    Ping(Ping),
    EndSession(EndSession),
}

/// `session.start`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Start {
    pub(crate) resume: Option<Resume>,
    pub(crate) resume_window_ms: Option<u64>,
    pub(crate) audio: Asked,
    pub(crate) defaults: Options,
    pub(crate) timestamps: Option<String>,
    pub(crate) flow: Flow,
    pub(crate) idle_timeout_ms: Option<u64>,
    pub(crate) context_idle_ms: Option<u64>,
}

/// `session.start.flow`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Flow {
    pub(crate) max_ahead_ms: Option<u64>,
    pub(crate) release: Option<String>,
}

/// How a context is to sound; what is left out is the session's default, then the bundle's.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Options {
    pub(crate) model: Option<String>,
    pub(crate) voice: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) style: Option<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) cfg: Option<f32>,
    pub(crate) sampling: Sampling,
    pub(crate) text: TextRules,
    pub(crate) speed: Option<f32>,
    pub(crate) initial_ms: Option<u64>,
    pub(crate) prompt_max_frames: Option<usize>,
    pub(crate) prefix: Option<Prefix>,
}

/// What was said before a context, and which its first words go on from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Prefix {
    pub(crate) text: String,
    /// Semantic codes.
    pub(crate) codes: Vec<u16>,
}

/// How codes are drawn.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Sampling {
    pub(crate) temperature: Option<f32>,
    pub(crate) acoustic_temperature: Option<f32>,
    pub(crate) top_p: Option<f32>,
    pub(crate) top_k: Option<usize>,
    pub(crate) frequency_penalty: Option<f32>,
    pub(crate) acoustic_top_k: Option<usize>,
}

/// What is done to text before it is spoken.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct TextRules {
    pub(crate) markdown: Option<bool>,
    pub(crate) emoji: Option<bool>,
    pub(crate) verbalize: Option<String>,
    pub(crate) ssml: Option<bool>,
    pub(crate) locale: Option<String>,
    pub(crate) lexicon: Option<ListedForms>,
    /// Lists that the settings name.
    pub(crate) dictionaries: Option<Vec<String>>,
    /// Whether words may stand in objects with their pronunciation, as one vendor's clients write them.
    #[serde(skip)]
    pub(crate) inline_words: bool,
}

/// Words that the client wants to be said in its own way.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum ListedForms {
    /// `{"nginx": "engine x"}`
    Words(BTreeMap<String, String>),
    /// `[{"pattern": "v(\\d)", "spoken": "version $1"}]`
    Entries(Vec<ListedForm>),
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct ListedForm {
    pub(crate) word: Option<String>,
    pub(crate) pattern: Option<String>,
    pub(crate) spoken: String,
}

/// `context.open`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct Open {
    pub(crate) ctx: String,
    pub(crate) replaces: Option<Replaces>,
    pub(crate) priority: Option<u8>,
    pub(crate) after: Option<String>,
    pub(crate) prosody_from: Option<String>,
    /// A conversation that is to be answered, as OpenAI writes it.
    pub(crate) messages: Option<serde_json::Value>,
    pub(crate) modalities: Option<Vec<String>>,
    /// What its packets are to be, where that is no matter of the session.
    #[serde(skip)]
    pub(crate) format: Option<Format>,
    #[serde(flatten)]
    pub(crate) options: Options,
}

/// Which contexts a new one takes the place of.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Replaces {
    /// `"*"`, all; any other single name is that context.
    One(String),
    /// These.
    Many(Vec<String>),
}

/// `text`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct TextDelta {
    pub(crate) ctx: String,
    pub(crate) seq: u64,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) end: bool,
}

/// `flush`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Flush {
    pub(crate) ctx: String,
    pub(crate) id: Option<String>,
}

/// `mark`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Mark {
    pub(crate) ctx: String,
    pub(crate) id: String,
}

/// `context.update`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Update {
    pub(crate) ctx: String,
    pub(crate) style: Option<String>,
    pub(crate) speed: Option<f32>,
}

/// `end`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct End {
    pub(crate) ctx: String,
}

/// `audio.begin`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct AudioBegin {
    pub(crate) ctx: String,
    pub(crate) id: String,
    pub(crate) codec: Option<String>,
    pub(crate) sample_rate: Option<u32>,
}

/// `audio.end`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct AudioEnd {
    pub(crate) ctx: String,
    pub(crate) id: String,
}

/// `cancel`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Cancel {
    pub(crate) ctx: String,
    pub(crate) played: Option<u64>,
    pub(crate) at: Option<String>,
}

/// `played`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Played {
    pub(crate) ctx: String,
    pub(crate) pos: u64,
}

/// `ping`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Ping {
    #[serde(default)]
    pub(crate) t: serde_json::Value,
}

/// `session.end`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct EndSession {
    #[serde(default)]
    pub(crate) drain: bool,
}

/// Why a message could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseError {
    /// Not a JSON object, or a field of a wrong type.
    #[error("{0}")]
    Malformed(String),
    /// A `type` that this version does not have.
    #[error("type {0:?} is not known")]
    UnknownType(String),
}

/// Reads a client's message.
///
/// # Errors
/// [`ParseError`]; an unknown type is told apart, for it is not a client's mistake.
pub(crate) fn parse(message: &str) -> Result<ClientEvent, ParseError> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        r#type: Cow<'a, str>,
    }
    fn body<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, ParseError> {
        serde_json::from_str(json).map_err(|e| ParseError::Malformed(e.to_string()))
    }
    let json = &*mend_surrogates(message);
    Ok(match &*body::<Head<'_>>(json)?.r#type {
        "session.start" => ClientEvent::Start(body(json)?),
        "context.open" => ClientEvent::Open(body(json)?),
        "text" => ClientEvent::Text(body(json)?),
        "flush" => ClientEvent::Flush(body(json)?),
        "mark" => ClientEvent::Mark(body(json)?),
        "end" => ClientEvent::End(body(json)?),
        "audio.begin" => ClientEvent::AudioBegin(body(json)?),
        "audio.end" => ClientEvent::AudioEnd(body(json)?),
        "cancel" => ClientEvent::Cancel(body(json)?),
        "played" => ClientEvent::Played(body(json)?),
        "context.update" => ClientEvent::Update(body(json)?),
        "ping" => ClientEvent::Ping(body(json)?),
        "session.end" => ClientEvent::EndSession(body(json)?),
        other => return Err(ParseError::UnknownType(other.chars().take(64).collect())),
    })
}

/// A client that cuts its text between two UTF-16 units writes half a pair as an escape, which is no character: it
/// becomes U+FFFD, and the rest of the message is as it was.
pub(crate) fn mend_surrogates(json: &str) -> Cow<'_, str> {
    let unit = |at: usize| -> Option<u16> {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut mended, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = json[at..].find('\\') {
        at += found;
        let pair = matches!(unit(at), Some(0xd800..=0xdbff))
            && matches!(unit(at + 6), Some(0xdc00..=0xdfff));
        match unit(at) {
            Some(_) if pair => at += 12,
            Some(0xd800..=0xdfff) => {
                mended.push_str(&json[copied..at]);
                mended.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            // An escaped backslash does not begin another escape. What follows may be several bytes long.
            _ => at += 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    mended.push_str(&json[copied..]);
    Cow::Owned(mended)
}
