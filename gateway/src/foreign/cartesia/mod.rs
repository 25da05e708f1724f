//! Cartesia's WebSocket, `GET /tts/websocket`: one JSON message for each piece of text, sound in base64.
//!
//! ```text
//! {"context_id":"a","transcript":"Hello ","continue":true,..}    text, opens the context if there is none of that name
//! {"context_id":"a","transcript":"","continue":false}            no more text: done follows
//! {"context_id":"a","cancel":true}                               stop: nothing follows
//! ```
//!
//! Its clients take a message of a type that they do not know, or without a context, for a fault: none is sent.

mod asked;
mod messages;
#[cfg(test)]
mod tests;
mod whole;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::contexts::{Context, Contexts};
use super::names::Names;
use super::{Dialect, Greeting, NAME_BYTES_MAX, Step, Unwelcome, seed, start, text_frame};
use crate::error::Code;
use crate::protocol::event::{Commit, ErrorEvent, Options, ServerEvent, TextRules};
use crate::protocol::{Frame, SoundFrame, payload};
use asked::{Message, format};
pub(crate) use messages::fault;

/// The field that names a list of words.
const DICTIONARY: &str = "pronunciation_dict_id";

/// Cartesia's protocol for one connection.
pub(crate) struct Cartesia {
    contexts: Contexts<Spoken>,
    names: Names,
    request_id: String,
    seed: Option<u64>,
}

/// What is remembered of a context.
#[derive(Debug)]
struct Spoken {
    wants_words: bool,
    /// The part between two flushes that the client asked for, counted from 1, that is being written, and being spoken.
    writing: u32,
    speaking: u32,
    /// When something was last sent, or the context was opened.
    at: Duration,
}

impl Cartesia {
    /// For a new connection.
    ///
    /// # Errors
    /// None: what a client asks for stands in its messages.
    pub(crate) fn make(greeting: &Greeting<'_>) -> Result<Box<dyn Dialect>, Unwelcome> {
        Ok(Box::new(Self {
            contexts: Contexts::default(),
            names: Names::new(greeting),
            request_id: greeting.setup.session_id.clone(),
            seed: seed(greeting.query),
        }))
    }

    fn generate(&mut self, message: &Message, now: Duration) -> Vec<Step> {
        let name = message.context_id.as_deref();
        let (name, mut steps) = match name {
            Some(name) if self.contexts.open_of(name).is_some() => (name.to_owned(), Vec::new()),
            // An end that comes twice, while the first is still being obeyed.
            Some(name) if message.only_ends() && self.contexts.speaks(name) => return Vec::new(),
            _ => match self.open(message, now) {
                Ok((name, open)) => (name, vec![open]),
                Err(reason) => return vec![self.refusal(name, Code::BadOption, &reason)],
            },
        };
        if let Some(context) = self.contexts.open_of(&name) {
            steps.extend(speak(context, message));
        }
        steps
    }

    /// Opens the context of a message; returns its name.
    fn open(&mut self, message: &Message, now: Duration) -> Result<(String, Step), String> {
        let format = format(message.output_format.as_ref())?;
        let options = Options {
            model: self.names.model(message.model_id.as_deref()),
            voice: self.names.voice(message.voice()?),
            language: message.language.clone(),
            speed: message.generation_config.as_ref().and_then(|config| config.speed),
            text: TextRules { dictionaries: message.dictionaries(), ..TextRules::default() },
            ..Options::default()
        };
        let spoken = Spoken { wants_words: false, writing: 1, speaking: 1, at: now };
        let (context, open) =
            self.contexts.open(message.context_id.clone(), format, options, spoken);
        Ok((context.name.clone(), open))
    }

    fn refusal(&self, name: Option<&str>, code: Code, reason: &str) -> Step {
        Step::Reply(self.error(name, code, reason))
    }

    fn error(&self, name: Option<&str>, code: Code, reason: &str) -> Frame {
        let mut error = fault(code.http_status(), code.name(), reason);
        error["type"] = json!("error");
        error["context_id"] = json!(name);
        error["request_id"] = json!(self.request_id);
        text_frame(&error)
    }

    fn told(&mut self, error: &ErrorEvent) -> Option<Frame> {
        let Some(ctx) = &error.ctx else {
            // What ends the session is told by the close: a message without a context is a fault to some clients.
            return (!error.fatal).then(|| self.error(None, error.code, &error.message));
        };
        let context = self.contexts.remove(ctx)?;
        Some(match error.code {
            // All of its text was spoken; it only lacked its end.
            Code::CtxIdle => done(&context.name),
            code => {
                let message = error.message.replace("text.dictionaries", DICTIONARY);
                self.error(Some(&context.name), code, &message)
            }
        })
    }
}

impl Dialect for Cartesia {
    fn greet(&mut self) -> Vec<Step> {
        vec![start(self.seed)]
    }

    fn hear(&mut self, message: &str, now: Duration) -> Vec<Step> {
        let read: Message = match serde_json::from_str(message) {
            Ok(read) => read,
            Err(error) => return self.unreadable(message, &error.to_string()),
        };
        let is_empty = read.context_id.is_none() && read.transcript.is_none();
        if is_empty || read.context_id.as_ref().is_some_and(|name| name.len() > NAME_BYTES_MAX) {
            let reason = format!("context_id, of at most {NAME_BYTES_MAX} bytes, or transcript");
            return vec![Step::Malformed(format!("a message has {reason}"))];
        }
        match &read.context_id {
            Some(name) if read.cancel == Some(true) => self.contexts.stop(name),
            _ => self.generate(&read, now),
        }
    }

    fn say(&mut self, event: ServerEvent, _now: Duration) -> Vec<Frame> {
        let frame = match event {
            ServerEvent::Opened(opened) => {
                self.contexts.opened(&opened);
                None
            }
            ServerEvent::Commit(commit) => {
                self.contexts.of(&commit.ctx).and_then(|context| timestamps(context, &commit))
            }
            ServerEvent::Flushed { ctx, id, .. } => {
                self.contexts.of(&ctx).and_then(|context| flushed(context, id.as_deref()))
            }
            ServerEvent::Done(end) => self.contexts.remove(&end.ctx).map(|c| done(&c.name)),
            // Not by the client's wish: then it would not be known here any more.
            ServerEvent::Cancelled(end) => self.contexts.remove(&end.ctx).map(|c| done(&c.name)),
            ServerEvent::Error(error) => self.told(&error),
            _ => None,
        };
        frame.into_iter().collect()
    }

    fn sound(&mut self, sound: &SoundFrame, now: Duration) -> Vec<Frame> {
        let Some(context) = self.contexts.of_handle(sound.handle) else { return Vec::new() };
        let took = now.saturating_sub(std::mem::replace(&mut context.own.at, now));
        let data = STANDARD.encode(payload(&sound.bytes));
        let mut chunk = messages::chunk(Some(&context.name), &data, took);
        if context.own.writing > 1 {
            chunk["flush_id"] = context.own.speaking.into();
        }
        vec![text_frame(&chunk)]
    }
}

impl Cartesia {
    /// A message that is no object, or has a field of a wrong type. If it says whose it is, that context cannot go on.
    fn unreadable(&mut self, message: &str, reason: &str) -> Vec<Step> {
        let read: Value = serde_json::from_str(message).unwrap_or_default();
        let Some(name) = read["context_id"].as_str().filter(|n| n.len() <= NAME_BYTES_MAX) else {
            return vec![Step::Malformed(reason.to_owned())];
        };
        let mut steps = self.contexts.stop(name);
        steps.push(self.refusal(Some(name), Code::BadMessage, reason));
        steps
    }
}

/// Says what a message says into its context.
fn speak(context: &mut Context<Spoken>, message: &Message) -> Vec<Step> {
    let transcript = message.transcript.clone().unwrap_or_default();
    let is_blank = transcript.trim().is_empty();
    // Clients that buffer by themselves send whole sentences, each to be spoken at once.
    let in_sentences = message.max_buffer_delay_ms == Some(0.0);
    let spoken = &mut context.own;
    spoken.wants_words |= message.add_timestamps == Some(true);
    let mut steps = Vec::new();
    if !transcript.is_empty() {
        steps.push(match in_sentences {
            true => context.sentence(transcript),
            false => context.text(transcript),
        });
    }
    if message.r#continue != Some(true) {
        steps.push(context.end());
    } else if message.flush == Some(true) {
        let id = context.own.writing.to_string();
        context.own.writing += 1;
        steps.push(context.flush(Some(id)));
    } else if in_sentences && !is_blank {
        steps.extend(context.flush_quietly());
    }
    steps
}

fn timestamps(context: &mut Context<Spoken>, commit: &Commit) -> Option<Frame> {
    let words = context.words(commit);
    let wants = context.own.wants_words && !words.is_empty();
    wants.then(|| text_frame(&messages::timestamps(Some(&context.name), &words)))
}

/// The answer to a flush, if the client asked for it.
fn flushed(context: &mut Context<Spoken>, id: Option<&str>) -> Option<Frame> {
    context.flushed();
    let id: u32 = id?.parse().ok()?;
    context.own.speaking = id + 1;
    Some(text_frame(&messages::flush_done(&context.name, id)))
}

fn done(name: &str) -> Frame {
    text_frame(&messages::done(Some(name)))
}
