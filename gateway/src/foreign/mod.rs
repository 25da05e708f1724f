//! Other vendors' protocols, as translators between a socket and a session: one file each, no schedule, no socket, no clock.
//!
//! ```text
//! vendor's message --hear--> Step --Interpreter--> Session      contexts, limits, cancels: all as in the native protocol
//! vendor's message <--say--- ServerEvent, sound <--'
//! ```
//!
//! Where all text comes in one request, the request is read and the answer wrapped here (see [`whole`]); the rest is as for
//! any other request for speech.
//!
//! A dialect gives each context a name of its own (see [`contexts`]), for vendors let clients use theirs again.

pub(crate) mod cartesia;
mod contexts;
pub(crate) mod deepgram;
pub(crate) mod elevenlabs;
pub(crate) mod livekit;
pub(crate) mod names;
#[cfg(test)]
mod rig;
pub(crate) mod tontaube;
pub(crate) mod whole;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{Foreign, Gateway, Secret};
use crate::error::Code;
use crate::protocol::event::{ClientEvent, Options, ServerEvent, Start};
use crate::protocol::{
    Asked, Catalogue, Codec, Format, Frame, Input, Said, Session, Setup, SoundFrame,
    mend_surrogates,
};

/// Packets of 20 ms in a message: vendors' clients are used to 20 to 100 ms, and base64 of less is mostly frame.
const PACK: u16 = 5;
/// Longest name of a context that a client may choose: it stands in every message.
const NAME_BYTES_MAX: usize = 256;

/// What a dialect is given when a client connects.
pub(crate) struct Greeting<'a> {
    /// Path and query of the upgrade's address, as they came.
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    /// What the client calls itself.
    pub(crate) agent: &'a str,
    /// What the session's name is, and what can be asked for.
    pub(crate) setup: &'a Setup,
    pub(crate) config: &'a Gateway,
}

/// Why a client is turned away before its socket is open, in a sentence.
#[derive(Debug)]
pub(crate) struct Unwelcome(pub(crate) String);

/// How a client that has shown no key at the door may do so in its first message.
#[derive(Clone, Copy)]
pub(crate) struct Introduction {
    /// The key in a message.
    pub(crate) key: fn(&str) -> Option<Secret>,
    /// What it is told if it is not let in, and with which code its socket is closed then.
    pub(crate) refuse: fn(Code, &str) -> (String, u16),
}

/// What makes a dialect for a new connection.
pub(crate) type Make = fn(&Greeting<'_>) -> Result<Box<dyn Dialect>, Unwelcome>;

/// What a message of the client comes to.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// This is said to the session.
    Say(ClientEvent),
    /// This is answered, behind what waits already.
    Reply(Frame),
    /// The message cannot be read; too many of these in a row end the session.
    Malformed(String),
}

/// A vendor's protocol, for one connection.
pub(crate) trait Dialect: Send {
    /// How the session begins; [`start`] for most.
    fn greet(&mut self) -> Vec<Step>;

    /// What a text message of the client comes to.
    fn hear(&mut self, message: &str, now: Duration) -> Vec<Step>;

    /// An event of the session in the vendor's words, if it has any for it. A close among them ends the session.
    fn say(&mut self, event: ServerEvent, now: Duration) -> Vec<Frame>;

    /// Sound of a context.
    fn sound(&mut self, sound: &SoundFrame, now: Duration) -> Vec<Frame>;

    /// What a native close code is here.
    fn close_code(&self, native: u16, reason: &str) -> u16 {
        match native {
            // Nothing was said for too long: a usual end, behind which clients connect again.
            4_408 if reason == Code::IdleTimeout.name() => 1_000,
            4_000.. => 1_008,
            known => known,
        }
    }
}

/// Stands between a socket and its session, and translates if that is needed.
pub(crate) struct Interpreter {
    dialect: Option<Box<dyn Dialect>>,
    /// What one event came to, beside its first message.
    frames: VecDeque<Frame>,
}

impl Interpreter {
    /// Nothing is to be translated.
    pub(crate) fn native() -> Self {
        Self { dialect: None, frames: VecDeque::new() }
    }

    /// Begins a session with a client that speaks so.
    pub(crate) fn greet(
        mut dialect: Box<dyn Dialect>,
        session: &mut Session,
        now: Duration,
    ) -> Self {
        take(dialect.greet(), session, now);
        Self { dialect: Some(dialect), frames: VecDeque::new() }
    }

    /// Something happens to the session.
    pub(crate) fn hear(&mut self, session: &mut Session, now: Duration, input: Input) {
        match (&mut self.dialect, input) {
            (Some(dialect), Input::Message(message)) => {
                if !session.is_closing() {
                    take(dialect.hear(&mend_surrogates(&message), now), session, now);
                }
            }
            (_, input) => session.handle_input(now, input),
        }
    }

    /// As [`Session::poll_frame`].
    pub(crate) fn poll_frame(&mut self, session: &mut Session, now: Duration) -> Option<Frame> {
        let Some(dialect) = &mut self.dialect else { return session.poll_frame(now) };
        while self.frames.is_empty() {
            match session.poll_said(now)? {
                Said::Event(event) => self.frames.extend(dialect.say(event, now)),
                Said::Sound(sound) => self.frames.extend(dialect.sound(&sound, now)),
                Said::Frame(Frame::Close { code, reason }) => {
                    return Some(Frame::Close { code: dialect.close_code(code, reason), reason });
                }
                Said::Frame(frame) => return Some(frame),
            }
        }
        let frame = self.frames.pop_front();
        if let Some(Frame::Close { code, .. }) = &frame {
            session.closed(*code, now);
        }
        frame
    }
}

fn take(steps: Vec<Step>, session: &mut Session, now: Duration) {
    for step in steps {
        match step {
            Step::Say(event) => session.handle_event(now, Ok(event)),
            Step::Reply(frame) => session.reply(frame),
            Step::Malformed(reason) => session.handle_event(now, Err(reason)),
        }
    }
}

/// A session of small PCM messages, whose contexts may ask for other formats.
fn start(seed: Option<u64>) -> Step {
    let audio = Asked { codec: Some("pcm_s16le".to_owned()), pack: Some(PACK), ..Asked::default() };
    let defaults = Options { seed, ..Options::default() };
    Step::Say(ClientEvent::Start(Box::new(Start { audio, defaults, ..Start::default() })))
}

/// The seed that an address names, for speech that is the same again. No vendor's client does; whoever compares may.
fn seed(query: &str) -> Option<u64> {
    parameter(query, "seed")?.parse().ok()
}

/// A format of uncompressed samples by its native name; none: 16 bits at 24 kHz.
///
/// # Errors
/// A sentence that names the field and what is allowed.
fn pcm_format(codec: Option<&str>, sample_rate: Option<u32>) -> Result<Format, String> {
    let codec = codec.unwrap_or("pcm_s16le").to_owned();
    let asked = Asked { codec: Some(codec), sample_rate, pack: Some(PACK), ..Asked::default() };
    let format = Format::choose(&asked)?;
    debug_assert!(format.codec != Codec::Opus, "packed packets of it cannot be told apart");
    Ok(format)
}

/// Whether a space belongs between two pieces of text: the first ends a sentence, and clients that send sentences drop it.
fn lacks_space(before: &str, next: &str) -> bool {
    const ENDS: &[char] = &['.', '!', '?', '…'];
    const CLOSERS: &[char] = &['"', '\'', '”', '’', '»', ')', ']'];
    let ends = before.trim_end_matches(CLOSERS).ends_with(ENDS);
    ends && next.chars().next().is_some_and(|c| !c.is_whitespace())
}

/// A parameter of a query, its escapes undone.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
}

fn text_frame(message: &serde_json::Value) -> Frame {
    Frame::Text(message.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_space_is_lacking_behind_a_sentence_only() {
        for (before, next, lacks) in [
            ("Hello there.", "How are you?", true),
            ("He said \"no.\"", "Then he left.", true),
            ("Hello there. ", "How", false),
            ("Hello there.", " How", false),
            ("Hello", "there", false),
            ("", "Hello", false),
            ("Hello.", "", false),
        ] {
            assert_eq!(lacks_space(before, next), lacks, "{before:?} {next:?}");
        }
    }
}
