//! ElevenLabs' WebSockets below `/v1/text-to-speech/{voice}`: `multi-stream-input`, with contexts, and `stream-input`, with one.
//!
//! ```text
//! {"text":" ","context_id":"a"}                          opens
//! {"text":"Hello. ","context_id":"a","flush":true}       text; to be spoken at once
//! {"context_id":"a","close_context":true}                an end or an interruption, by what came before it
//! {"audio":"..","contextId":"a","alignment":{..}} ..     sound in base64, the last message of two seconds with characters
//! {"isFinal":true,"contextId":"a"}                       the end of each context, whatever it ended by
//! ```
//!
//! Its clients have no message that interrupts: see [`turn::Turn::is_interruption`].

mod asked;
#[cfg(test)]
mod tests;
mod turn;
mod whole;

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use self::asked::Asked;
use self::turn::Turn;
pub(crate) use self::whole::problem;
use super::contexts::Contexts;
use super::names::Names;
use super::{Dialect, Greeting, Introduction, NAME_BYTES_MAX, Step, Unwelcome, text_frame};
use crate::config::Secret;
use crate::error::Code;
use crate::protocol::event::{
    ClientEvent, Commit, EndSession, ErrorEvent, Options, Ping, ServerEvent, TextRules,
};
use crate::protocol::{Frame, SoundFrame, payload};

/// What the vendor closes with for everything that a client should not have asked.
const POLICY: u16 = 1_008;
/// And when there is no place.
const TRY_AGAIN: u16 = 1_013;

/// ElevenLabs' protocol for one connection.
pub(crate) struct ElevenLabs {
    contexts: Contexts<Turn>,
    names: Names,
    asked: Asked,
    /// Whether the connection is one context: `stream-input`.
    is_single: bool,
    /// Whether nothing more is opened: the client has said its last word.
    is_over: bool,
}

/// A message as it comes: it has no type, its fields tell what it is. What is not here has no meaning for the models;
/// `try_trigger_generation` comes with single words, of which nothing good could be made.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    #[serde(alias = "contextId")]
    context_id: Option<String>,
    text: Option<String>,
    flush: Option<bool>,
    close_context: Option<bool>,
    close_socket: Option<bool>,
    voice_settings: Option<VoiceSettings>,
    pronunciation_dictionary_locators: Option<Vec<Locator>>,
}

/// Which list of words goes before the server's own; its versions are not told apart.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Locator {
    pronunciation_dictionary_id: String,
}

/// The lists that a message asks for, the first before the others.
fn dictionaries(locators: Option<&Vec<Locator>>) -> Option<Vec<String>> {
    let ids = locators?.iter().map(|locator| locator.pronunciation_dictionary_id.clone());
    Some(ids.collect::<Vec<_>>()).filter(|ids| !ids.is_empty())
}

/// The field that names lists of words.
const DICTIONARIES: &str = "pronunciation_dictionary_locators";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VoiceSettings {
    speed: Option<f32>,
}

impl ElevenLabs {
    /// For a new connection to `multi-stream-input`.
    ///
    /// # Errors
    /// A format that is not to be had.
    pub(crate) fn multi(greeting: &Greeting<'_>) -> Result<Box<dyn Dialect>, Unwelcome> {
        Ok(Box::new(Self::new(greeting, false)?))
    }

    /// For a new connection to `stream-input`.
    ///
    /// # Errors
    /// As [`ElevenLabs::multi`].
    pub(crate) fn single(greeting: &Greeting<'_>) -> Result<Box<dyn Dialect>, Unwelcome> {
        Ok(Box::new(Self::new(greeting, true)?))
    }

    /// How a client shows its key that could set no header.
    pub(crate) const INTRODUCTION: Introduction = Introduction { key, refuse };

    fn new(greeting: &Greeting<'_>, is_single: bool) -> Result<Self, Unwelcome> {
        Ok(Self {
            contexts: Contexts::default(),
            names: Names::new(greeting),
            asked: Asked::of(greeting)?,
            is_single,
            is_over: false,
        })
    }

    /// The name of a message's context. Without one it is the context of all messages without.
    fn name(&self, message: &Message) -> String {
        match &message.context_id {
            Some(name) if !self.is_single => name.clone(),
            _ => String::new(),
        }
    }

    fn write(&mut self, message: &Message) -> Vec<Step> {
        let name = self.name(message);
        let text = message.text.clone().unwrap_or_default();
        let has_text = !text.trim().is_empty();
        let mut steps = Vec::new();
        let is_new = self.contexts.open_of(&name).is_none();
        if is_new {
            if message.text.is_none() || (text.is_empty() && !self.is_single) {
                // A flush or a sign of life of a context that is no more, or is not yet.
                return vec![stay()];
            }
            match self.open(&name, message) {
                Ok(open) => steps.push(open),
                Err(reason) => return vec![Step::Reply(refusal(&name, &reason, self.is_single))],
            }
        }
        let is_auto = self.asked.is_auto;
        let Some(context) = self.contexts.open_of(&name) else { return steps };
        let flush = message.flush == Some(true);
        context.own.says(has_text, flush);
        // The blank that opens a context is not part of what is said.
        if has_text || !is_new {
            steps.push(if is_auto { context.sentence(text) } else { context.text(text) });
        }
        if flush || (has_text && is_auto) {
            steps.extend(context.flush_quietly());
        }
        steps
    }

    fn open(&mut self, name: &str, message: &Message) -> Result<Step, String> {
        let turn = Turn::new(&self.asked.sound).map_err(|e| e.to_string())?;
        let options = Options {
            model: self.names.model(self.asked.model.as_deref()),
            voice: self.names.voice(self.asked.voice.as_deref()),
            speed: message.voice_settings.as_ref().and_then(|settings| settings.speed),
            text: TextRules {
                dictionaries: dictionaries(message.pronunciation_dictionary_locators.as_ref()),
                ..self.asked.options.text.clone()
            },
            ..self.asked.options.clone()
        };
        let format = self.asked.sound.samples;
        Ok(self.contexts.open(Some(name.to_owned()), format, options, turn).1)
    }

    /// A client closes a context.
    fn close(&mut self, name: &str) -> Vec<Step> {
        let interrupts = self.asked.profile.interrupts;
        let stops = match self.contexts.open_of(name) {
            Some(context) if !context.own.is_interruption(interrupts) => {
                return vec![context.end()];
            }
            Some(_) => true,
            // Closed for the second time while it is still heard: the first was its end, this one is not.
            None => self.contexts.speaks(name),
        };
        if !stops {
            return vec![stay()];
        }
        let mut steps = self.contexts.stop(name);
        steps.push(Step::Reply(last(name, self.is_single)));
        steps
    }

    /// The client has said its last word: all is spoken to its end.
    fn finish(&mut self) -> Vec<Step> {
        self.is_over = true;
        let mut steps = self.contexts.end_all();
        steps.push(Step::Say(ClientEvent::EndSession(EndSession { drain: true })));
        steps
    }

    fn told(&mut self, error: &ErrorEvent) -> Vec<Frame> {
        let Some(ctx) = &error.ctx else {
            return vec![told_of(None, error.code, &error.message)];
        };
        let Some(context) = self.contexts.remove(ctx) else { return Vec::new() };
        let end = last(&context.name, self.is_single);
        if error.code == Code::CtxIdle {
            // All of its text was spoken; it only lacked its end.
            return vec![end];
        }
        let name = (!self.is_single).then_some(context.name.as_str());
        let message = error.message.replace("text.dictionaries", DICTIONARIES);
        let mut frames = vec![told_of(name, error.code, &message), end];
        if self.is_single {
            frames.push(Frame::Close { code: POLICY, reason: error.code.name() });
        }
        frames
    }

    fn characters(&mut self, commit: &Commit) -> Option<Frame> {
        let (absolute, wanted) = (self.asked.profile.absolute, self.asked.wants_alignment);
        let context = self.contexts.of(&commit.ctx)?;
        let chars = context.timed(commit);
        let alignment = match wanted {
            true => context.own.alignment(&chars, &context.format, absolute),
            false => Value::Null,
        };
        let sound = context.own.held.take().unwrap_or_default();
        let says_nothing = sound.is_empty() && alignment.is_null();
        let name = context.name.clone();
        (!says_nothing).then(|| self.audio(&name, &sound, &alignment))
    }

    /// The end of a context that was spoken.
    fn done(&mut self, ctx: &str) -> Vec<Frame> {
        let Some(mut context) = self.contexts.remove(ctx) else { return Vec::new() };
        let mut frames = Vec::new();
        let held = context.own.held.take();
        let rest = context.own.finish().unwrap_or_default();
        for sound in held.into_iter().chain([rest]).filter(|sound| !sound.is_empty()) {
            frames.push(self.audio(&context.name, &sound, &Value::Null));
        }
        frames.push(last(&context.name, self.is_single));
        frames
    }

    fn audio(&self, name: &str, sound: &str, alignment: &Value) -> Frame {
        let message = json!({
            "audio": sound, "isFinal": null, "alignment": alignment, "normalizedAlignment": alignment,
        });
        text_frame(&of(message, (!self.is_single).then_some(name)))
    }
}

impl Dialect for ElevenLabs {
    fn greet(&mut self) -> Vec<Step> {
        vec![Step::Say(ClientEvent::Start(Box::new(self.asked.start())))]
    }

    fn hear(&mut self, message: &str, _now: Duration) -> Vec<Step> {
        let read: Message = match serde_json::from_str(message) {
            Ok(read) => read,
            Err(error) => return vec![Step::Malformed(error.to_string())],
        };
        if read.context_id.as_ref().is_some_and(|name| name.len() > NAME_BYTES_MAX) {
            return vec![Step::Malformed(format!("context_id has at most {NAME_BYTES_MAX} bytes"))];
        }
        if self.is_over {
            return Vec::new();
        }
        let says_nothing = read.text.as_deref().is_none_or(str::is_empty);
        if read.close_socket == Some(true) || (self.is_single && read.text.as_deref() == Some("")) {
            return self.finish();
        }
        let is_alive = says_nothing && read.flush != Some(true) && read.close_context != Some(true);
        if is_alive && read.context_id.is_none() {
            return vec![stay()];
        }
        let mut steps = Vec::new();
        if read.close_context != Some(true) || !says_nothing {
            steps = self.write(&read);
        }
        if read.close_context == Some(true) {
            steps.extend(self.close(&self.name(&read)));
        }
        steps
    }

    fn say(&mut self, event: ServerEvent, _now: Duration) -> Vec<Frame> {
        match event {
            ServerEvent::Opened(opened) => self.contexts.opened(&opened),
            ServerEvent::Commit(commit) => {
                return self.characters(&commit).into_iter().collect();
            }
            ServerEvent::Flushed { ctx, .. } => {
                if let Some(context) = self.contexts.of(&ctx) {
                    context.flushed();
                }
            }
            ServerEvent::Done(end) => return self.done(&end.ctx),
            // Not by the client's wish: then it would not be known here any more.
            ServerEvent::Cancelled(end) => {
                let ended = self.contexts.remove(&end.ctx);
                return ended
                    .map(|context| last(&context.name, self.is_single))
                    .into_iter()
                    .collect();
            }
            ServerEvent::Error(error) => return self.told(&error),
            _ => {}
        }
        Vec::new()
    }

    fn sound(&mut self, sound: &SoundFrame, _now: Duration) -> Vec<Frame> {
        let Some(context) = self.contexts.of_handle(sound.handle) else { return Vec::new() };
        // An encoder that fails gives nothing: its listener hears a gap, and the end comes all the same.
        let encoded = context.own.encode(&payload(&sound.bytes)).unwrap_or_default();
        if sound.closes {
            context.own.held = Some(encoded);
            return Vec::new();
        }
        if encoded.is_empty() {
            return Vec::new();
        }
        let name = context.name.clone();
        vec![self.audio(&name, &encoded, &Value::Null)]
    }

    fn close_code(&self, native: u16, reason: &str) -> u16 {
        match native {
            4_408 if reason == Code::IdleTimeout.name() => 1_000,
            4_000.. => POLICY,
            known => known,
        }
    }
}

/// The key in a client's first message.
fn key(message: &str) -> Option<Secret> {
    #[derive(Deserialize)]
    struct First {
        #[serde(alias = "xi-api-key")]
        xi_api_key: Option<String>,
        authorization: Option<String>,
    }
    let First { xi_api_key, authorization } = serde_json::from_str(message).ok()?;
    let bearer = authorization.map(|value| match value.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim().to_owned(),
        _ => value,
    });
    xi_api_key.or(bearer).map(Secret::new)
}

/// What a client is told that is not let in.
fn refuse(code: Code, reason: &str) -> (String, u16) {
    let close = if code == Code::Overloaded { TRY_AGAIN } else { POLICY };
    (json!({"message": reason, "error": code.name(), "code": close}).to_string(), close)
}

/// Nothing but a sign of life.
fn stay() -> Step {
    Step::Say(ClientEvent::Ping(Ping { t: Value::Null }))
}

/// A message with the name of its context, as half of the clients write it and as the other half does.
fn of(mut message: Value, name: Option<&str>) -> Value {
    if let Some(name) = name {
        let name = if name.is_empty() { Value::Null } else { name.into() };
        message["contextId"] = name.clone();
        message["context_id"] = name;
    }
    message
}

/// The last message of a context.
fn last(name: &str, is_single: bool) -> Frame {
    let message = json!({"isFinal": true, "audio": null});
    text_frame(&of(message, (!is_single).then_some(name)))
}

fn told_of(name: Option<&str>, code: Code, reason: &str) -> Frame {
    let message = json!({"message": reason, "error": code.name(), "code": POLICY});
    text_frame(&of(message, name))
}

fn refusal(name: &str, reason: &str, is_single: bool) -> Frame {
    told_of((!is_single).then_some(name), Code::Internal, reason)
}
