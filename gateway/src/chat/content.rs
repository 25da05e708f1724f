//! Messages of a conversation: checked, and in our words.
//!
//! ```text
//! {"role":"user","content":"Hello"}                                                          text
//! {"role":"user","content":[{"type":"text",..},{"type":"input_audio","input_audio":{..}}]}   text and sound
//! {"role":"assistant","audio":{"id":"audio_7f.."}}                                           an answer given before
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codecs::recording::{self, RecordingError};
use engine::answer::{Message, Part, Role};
use serde_json::Value;

use super::Refusal;
use crate::config::Chat;

/// Files of sound that are read, by the names that clients give them.
const FORMATS: [&str; 5] = ["wav", "mp3", "flac", "opus", "ogg"];

/// What one party says in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) role: Role,
    pub(crate) pieces: Vec<Piece>,
}

/// A piece of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// A file of sound.
    File(Vec<u8>),
    /// A recording that its client sends beside the messages, by the client's name for it.
    Upload(String),
    /// An answer that was given before, by our name for it.
    Answer(String),
}

/// What messages may have, and the settings that say so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    pub(crate) messages: usize,
    /// Characters of text in all of them.
    pub(crate) chars: usize,
    /// Of messages, and of characters.
    pub(crate) keys: [&'static str; 2],
}

impl Most {
    /// Of a request over HTTP.
    pub(crate) fn of(settings: &Chat) -> Self {
        Self {
            messages: settings.max_messages,
            chars: settings.max_input_chars,
            keys: ["chat.max_messages", "chat.max_input_chars"],
        }
    }
}

/// Reads `messages`.
///
/// # Errors
/// The first that is not to be had, by its place.
pub(crate) fn read(messages: &Value, most: &Most) -> Result<Vec<Said>, Refusal> {
    let [messages_key, chars_key] = most.keys;
    let bad = |message: String| Refusal::of("messages", message);
    let all = messages.as_array().ok_or_else(|| bad("messages is a list of messages".into()))?;
    let (given, allowed) = (all.len(), most.messages);
    if !(1..=allowed).contains(&given) {
        let message =
            format!("messages has {given} messages, 1 to {allowed} are allowed ({messages_key})");
        return Err(bad(message));
    }
    let read = all.iter().enumerate().map(|(at, one)| message(one, &format!("messages[{at}]")));
    let said = read.collect::<Result<Vec<_>, _>>()?;
    let (chars, allowed) = (text_chars(&said), most.chars);
    if chars > allowed {
        let message =
            format!("messages has {chars} characters of text, {allowed} are allowed ({chars_key})");
        return Err(bad(message));
    }
    Ok(said)
}

/// Characters of text in messages.
pub(crate) fn text_chars(said: &[Said]) -> usize {
    let pieces = said.iter().flat_map(|one| &one.pieces);
    let chars = |piece: &Piece| match piece {
        Piece::Text(text) => text.chars().count(),
        Piece::File(_) | Piece::Upload(_) | Piece::Answer(_) => 0,
    };
    pieces.map(chars).sum()
}

fn message(value: &Value, at: &str) -> Result<Said, Refusal> {
    let role = match value["role"].as_str() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        other => {
            let at = format!("{at}.role");
            let role = other.unwrap_or_default();
            let known = "system, developer, user, assistant";
            let message = format!("{at} {role:?} is not one of {known}");
            return Err(Refusal::of(at, message));
        }
    };
    if value["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty()) {
        let at = format!("{at}.tool_calls");
        let message = format!("{at}: the models here call no tools");
        return Err(Refusal::of(at, message));
    }
    let content = format!("{at}.content");
    let mut pieces = match &value["content"] {
        Value::Null => Vec::new(),
        Value::String(text) => vec![Piece::Text(text.clone())],
        Value::Array(parts) => {
            let read = parts.iter().enumerate();
            let read = read.map(|(n, part)| piece(part, role, &format!("{content}[{n}]")));
            read.collect::<Result<Vec<_>, _>>()?
        }
        _ => {
            let message = format!("{content} is a text or a list of parts");
            return Err(Refusal::of(content, message));
        }
    };
    // What is written down of an answer goes before what is kept of it.
    if role == Role::Assistant
        && pieces.is_empty()
        && let Some(id) = value["audio"]["id"].as_str()
    {
        pieces.push(Piece::Answer(id.to_owned()));
    }
    if pieces.is_empty() {
        let message = format!("{content} is missing");
        return Err(Refusal::of(content, message));
    }
    Ok(Said { role, pieces })
}

fn piece(value: &Value, role: Role, at: &str) -> Result<Piece, Refusal> {
    let text = |field: &str| match value[field].as_str() {
        Some(text) => Ok(Piece::Text(text.to_owned())),
        None => Err(Refusal::of(format!("{at}.{field}"), format!("{at}.{field} is missing"))),
    };
    match value["type"].as_str() {
        Some("text") => text("text"),
        Some("refusal") => text("refusal"),
        Some("input_audio") if role == Role::User => sound(&value["input_audio"], at),
        other => {
            let kind = other.unwrap_or_default();
            let known = if role == Role::User { "text, input_audio" } else { "text" };
            let at = format!("{at}.type");
            let message = format!("{at} {kind:?} is not one of {known} for this role");
            Err(Refusal::of(at, message))
        }
    }
}

fn sound(value: &Value, at: &str) -> Result<Piece, Refusal> {
    let at = format!("{at}.input_audio");
    if let Some(id) = value["id"].as_str() {
        return Ok(Piece::Upload(id.to_owned()));
    }
    if let Some(format) = value["format"].as_str()
        && !FORMATS.contains(&format)
    {
        let (at, known) = (format!("{at}.format"), FORMATS.join(", "));
        let message = format!("{at} {format:?} is not one of {known}");
        return Err(Refusal::of(at, message));
    }
    let at = format!("{at}.data");
    let data = value["data"].as_str();
    let bytes = data.map(|data| STANDARD.decode(data));
    match bytes {
        Some(Ok(bytes)) => Ok(Piece::File(bytes)),
        Some(Err(error)) => {
            let message = format!("{at} is not base64: {error}");
            Err(Refusal::of(at, message))
        }
        None => {
            let message = format!("{at} is missing");
            Err(Refusal::of(at, message))
        }
    }
}

/// Sound that files may have together, and the setting that says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seconds {
    pub(crate) most: f64,
    pub(crate) key: &'static str,
}

impl Seconds {
    /// Of a request over HTTP.
    pub(crate) fn of(settings: &Chat) -> Self {
        Self { most: settings.max_input_seconds, key: "chat.max_input_seconds" }
    }
}

/// Messages as the engine takes them. Decodes files: seconds of work. `answer` gives the text of an answer by its name;
/// `upload` what stands for a recording that its client sends beside the messages.
///
/// # Errors
/// A file that cannot be read, more sound than allowed, a name that nothing is known by.
pub(crate) fn resolve(
    said: Vec<Said>,
    seconds: Seconds,
    answer: impl Fn(&str) -> Option<String>,
    upload: impl Fn(&str) -> Option<Part>,
) -> Result<Vec<Message>, Refusal> {
    let mut seconds_left = seconds.most;
    let mut messages = Vec::with_capacity(said.len());
    for (at, Said { role, pieces }) in said.into_iter().enumerate() {
        let at = format!("messages[{at}]");
        let mut parts = Vec::with_capacity(pieces.len());
        for piece in pieces {
            parts.push(match piece {
                Piece::Text(text) => Part::Text(text),
                Piece::Answer(id) => Part::Text(answer(&id).ok_or_else(|| {
                    let at = format!("{at}.audio.id");
                    let message =
                        format!("{at}: no answer is kept as {id:?}; send its text as content");
                    Refusal::of(at, message)
                })?),
                Piece::File(bytes) => {
                    let samples = decode(&bytes, seconds_left, seconds, &at)?;
                    seconds_left -= samples.len() as f64 / f64::from(recording::RATE);
                    Part::Audio(samples.into())
                }
                Piece::Upload(id) => upload(&id).ok_or_else(|| {
                    let message = format!("{at}: there is no recording {id:?}");
                    Refusal::of(format!("{at}.content"), message)
                })?,
            });
        }
        messages.push(Message { role, parts });
    }
    Ok(messages)
}

/// A file of sound as samples at [`recording::RATE`].
fn decode(
    bytes: &[u8],
    seconds_left: f64,
    Seconds { most, key }: Seconds,
    at: &str,
) -> Result<Vec<f32>, Refusal> {
    let at = format!("{at}.content");
    recording::read(bytes, seconds_left.max(0.0)).map_err(|error| match error {
        RecordingError::TooLong(_) => {
            let message = format!("{at}: more than {most} s of sound ({key})");
            Refusal { code: "too_long", ..Refusal::of(at, message) }
        }
        error => {
            let message = format!("{at}: {error}");
            Refusal { code: "cannot_decode", ..Refusal::of(at, message) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings() -> Chat {
        Chat { max_messages: 3, max_input_chars: 20, max_input_seconds: 0.5, ..Chat::default() }
    }

    /// So many samples at 24 kHz as a WAV.
    fn wav(samples: usize) -> Vec<u8> {
        use codecs::wav::{SampleFormat, header};
        let mut bytes = header(recording::RATE, SampleFormat::I16, &[], Some(samples as u64));
        codecs::pcm::extend_i16_le(&mut bytes, &vec![0.25; samples]);
        bytes
    }

    fn heard(samples: usize) -> Value {
        json!({"type": "input_audio",
            "input_audio": {"data": STANDARD.encode(wav(samples)), "format": "wav"}})
    }

    fn resolved(messages: &Value) -> Result<Vec<Message>, Refusal> {
        let said = read(messages, &Most::of(&settings()))?;
        let answer = |id: &str| (id == "audio_1").then(|| "As I said.".to_owned());
        resolve(said, Seconds::of(&settings()), answer, |_| None)
    }

    #[test]
    fn messages_are_read_in_order_with_their_parts() {
        let messages = json!([
            {"role": "developer", "content": "Be brief."},
            {"role": "assistant", "content": null, "audio": {"id": "audio_1"}, "refusal": null},
            {"role": "user", "name": "x", "content": [{"type": "text", "text": "And?"}, heard(600)]},
        ]);
        let messages = resolved(&messages).unwrap();
        let roles: Vec<Role> = messages.iter().map(|m| m.role).collect();
        assert_eq!(roles, [Role::System, Role::Assistant, Role::User]);
        assert_eq!(messages[1].parts, [Part::Text("As I said.".into())]);
        let [Part::Text(text), Part::Audio(samples)] = &messages[2].parts[..] else {
            panic!("{messages:?}")
        };
        assert_eq!((text.as_str(), samples.len()), ("And?", 600));
    }

    #[test]
    fn what_is_not_to_be_had_is_told_by_its_place() {
        let user = |content: Value| json!([{"role": "user", "content": content}]);
        let bare = |id: &str| json!([{"role": "assistant", "audio": {"id": id}}]);
        let called = json!([{"role": "assistant", "content": "x", "tool_calls": [{}]}]);
        let image = json!([{"type": "image_url", "image_url": {"url": "x"}}]);
        let sound = |sound: Value| json!([{"type": "input_audio", "input_audio": sound}]);
        let other = sound(json!({"data": "", "format": "webm"}));
        let heard_system = json!([{"role": "system", "content": [heard(1)]}]);
        for (messages, param, says) in [
            (json!("Hi"), "messages", "a list"),
            (json!([]), "messages", "1 to 3 are allowed (chat.max_messages)"),
            (json!([{}, {}, {}, {}]), "messages", "4 messages"),
            (user(json!("é".repeat(21))), "messages", "21 characters"),
            (json!([{"role": "tool", "content": "x"}]), "messages[0].role", "\"tool\""),
            (called, "messages[0].tool_calls", "no tools"),
            (user(Value::Null), "messages[0].content", "missing"),
            (user(json!([])), "messages[0].content", "missing"),
            (user(json!(7)), "messages[0].content", "a text or a list"),
            (user(image), "messages[0].content[0].type", "text, input_audio"),
            (heard_system, "messages[0].content[0].type", "not one of text"),
            (user(other), "messages[0].content[0].input_audio.format", "wav, mp3, flac"),
            (user(sound(json!({}))), "messages[0].content[0].input_audio.data", "missing"),
            (
                user(sound(json!({"data": "*"}))),
                "messages[0].content[0].input_audio.data",
                "base64",
            ),
            (user(sound(json!({"data": "AAAA"}))), "messages[0].content", "not a WAV"),
            (user(json!([heard(13_000)])), "messages[0].content", "(chat.max_input_seconds)"),
            (user(sound(json!({"id": "u"}))), "messages[0].content", "no recording \"u\""),
            (bare("audio_2"), "messages[0].audio.id", "\"audio_2\""),
        ] {
            let refused = resolved(&messages).unwrap_err();
            assert_eq!(refused.param.as_deref(), Some(param), "{messages}");
            assert!(refused.message.contains(says), "{}", refused.message);
        }
    }

    #[test]
    fn the_limit_of_sound_is_that_of_all_recordings_together() {
        let twice =
            |samples: usize| json!([{"role": "user", "content": [heard(samples), heard(samples)]}]);
        assert!(resolved(&twice(6_000)).is_ok(), "exactly the limit");
        assert_eq!(resolved(&twice(6_200)).unwrap_err().code, "too_long");
    }
}
