//! A client of another vendor's protocol: the vendor's words for what cases say, and the native words for what it hears, so
//! that a demand is written once.
//!
//! ```text
//! {"do": "raw"}, or a step that Vendor::says so --> told: what it means natively    --> transcript, and the wire
//! the server's message                          --> heard: events and sound of ours --> transcript
//! ```
//!
//! Cases name contexts; on a surface that has no names for them, a name stands for a turn: the first for the first turn, and
//! the last for all that follow.

mod heard;
mod told;

use serde_json::{Value, json};

use super::format::Format;
use super::surface::Surface;

/// A voice of the stub, for addresses that name one.
const VOICE: &str = "v1";
/// The name of a context where a case has none.
pub(super) const NAME: &str = "A";

/// How a connection to a vendor's surface is made.
#[derive(Debug, Clone)]
pub(super) struct Vendor {
    pub(super) surface: Surface,
    /// Whether ElevenLabs' connection has contexts.
    is_multi: bool,
    /// What the engine knows all contexts of the connection by.
    pub(super) seed: u64,
    format: Format,
    /// Names of turns, in their order, where the protocol has none.
    names: Vec<String>,
}

/// One context as its client knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    pub(super) ctx: String,
    pub(super) text: String,
    pub(super) state: State,
    /// What the client said last in it.
    last: Last,
    /// Frames of sound and their samples so far.
    frames: u32,
    samples: u64,
    /// How far its text was told of, in characters, and in ms of sound.
    told_chars: usize,
    told_ms: u64,
}

/// Where a turn stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum State {
    /// It takes text.
    #[default]
    Open,
    /// It takes no more.
    Ended,
    /// The client wants no more of it.
    Cancelled,
    /// The server has said its last word about it: it is complete.
    Done,
    /// As [`State::Done`], behind a cancel.
    Stopped,
    /// It came to nothing, or not to its end.
    Failed,
}

/// What the client said last, which tells ElevenLabs an end from an interruption.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    Text,
    Phrase,
    Flush,
}

impl State {
    /// Whether nothing more is to come.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Stopped | Self::Failed)
    }
}

/// What a client remembers of its connection.
#[derive(Debug)]
pub(super) struct Client {
    vendor: Vendor,
    /// All contexts, in the order in which the engine gets them.
    pub(super) turns: Vec<Turn>,
}

impl Vendor {
    /// A connection of a case: `steps` tell what it will need.
    pub(super) fn new(surface: Surface, seed: u64, format: Format, steps: &[Value]) -> Self {
        let (mut names, mut is_multi) = (Vec::new(), false);
        look_ahead(steps, &mut names, &mut is_multi);
        Self { surface, is_multi, seed, format, names }
    }

    /// The usual address, with what the case adds to its query.
    pub(super) fn path(&self, url: Option<String>, query: Option<&str>) -> anyhow::Result<String> {
        let (kind, rate) = self.asked_format()?;
        let usual = match self.surface {
            Surface::Cartesia => "/tts/websocket?cartesia_version=2025-04-16".to_owned(),
            Surface::Deepgram => format!("/v1/speak?encoding={kind}&sample_rate={rate}"),
            Surface::Elevenlabs => {
                let input = if self.is_multi { "multi-stream-input" } else { "stream-input" };
                format!("/v1/text-to-speech/{VOICE}/{input}?output_format={kind}_{rate}")
            }
            _ => "/v1/tts?model=stub".to_owned(),
        };
        let mut path = url.unwrap_or(usual);
        for more in query.into_iter().chain([&*format!("seed={}", self.seed)]) {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(more);
        }
        Ok(path)
    }

    /// Where its clients put a key; there is none here, so any will do.
    pub(super) fn headers(&self) -> Vec<(String, String)> {
        let (name, value) = match self.surface {
            Surface::Cartesia => ("X-API-Key", "any"),
            Surface::Deepgram => ("Authorization", "Token any"),
            Surface::Elevenlabs => ("xi-api-key", "any"),
            _ => ("Authorization", "Bearer any"),
        };
        vec![(name.to_owned(), value.to_owned())]
    }

    /// The first message, where there is one.
    pub(super) fn greeting(&self) -> anyhow::Result<Option<Value>> {
        let (encoding, rate) = self.asked_format()?;
        Ok((self.surface == Surface::Livekit).then(|| {
            json!({"type": "session.create", "encoding": encoding, "sample_rate": rate.to_string()})
        }))
    }

    /// The server's first message, where there is one.
    pub(super) fn welcome(&self) -> Option<&'static str> {
        match self.surface {
            Surface::Deepgram => Some("Metadata"),
            Surface::Livekit => Some("session.created"),
            _ => None,
        }
    }

    /// The vendor's messages for a step: `text`, `flush`, `end` or `cancel` of a context.
    ///
    /// # Errors
    /// It cannot be said here.
    pub(super) fn says(&self, step: &str, ctx: &str, text: &str) -> anyhow::Result<Vec<Value>> {
        let (encoding, rate) = self.asked_format()?;
        let generate = |transcript: &str, goes_on: bool, flush: bool| {
            json!({
                "context_id": ctx, "transcript": transcript, "continue": goes_on, "flush": flush,
                "add_timestamps": true, "voice": {"mode": "id", "id": VOICE},
                "output_format": {"container": "raw", "encoding": encoding, "sample_rate": rate},
            })
        };
        let of = |message: Value| match self.is_multi {
            true => with(message, "context_id", ctx),
            false => message,
        };
        let said = match (self.surface, step) {
            (Surface::Cartesia, "text") => vec![generate(text, true, false)],
            (Surface::Cartesia, "flush") => vec![generate("", true, true)],
            (Surface::Cartesia, "end") => vec![generate("", false, false)],
            (Surface::Cartesia, "cancel") => vec![json!({"context_id": ctx, "cancel": true})],
            (Surface::Deepgram, "text") => vec![json!({"type": "Speak", "text": text})],
            // Its flush is the end of a turn: there is no other.
            (Surface::Deepgram, "flush" | "end") => vec![json!({"type": "Flush"})],
            (Surface::Deepgram, "cancel") => vec![json!({"type": "Clear"})],
            (Surface::Elevenlabs, "text") => vec![of(json!({"text": text}))],
            (Surface::Elevenlabs, "flush") => vec![of(json!({"text": "", "flush": true}))],
            (Surface::Elevenlabs, "end") if !self.is_multi => vec![json!({"text": ""})],
            (Surface::Elevenlabs, "end") => {
                vec![of(json!({"flush": true})), of(json!({"close_context": true}))]
            }
            (Surface::Elevenlabs, "cancel") if self.is_multi => {
                vec![of(json!({"close_context": true}))]
            }
            (Surface::Livekit, "text") => {
                vec![json!({"type": "input_transcript", "transcript": text})]
            }
            (Surface::Livekit, "end") => vec![json!({"type": "session.flush"})],
            _ => anyhow::bail!("{step} cannot be said on this surface"),
        };
        Ok(said)
    }

    /// Whether the server says when it has obeyed a cancel.
    pub(super) fn answers_a_cancel(&self) -> bool {
        self.surface != Surface::Cartesia
    }

    /// Whether its messages name contexts.
    fn has_names(&self) -> bool {
        self.surface == Surface::Cartesia || self.is_multi
    }

    /// The format in the vendor's words: kind and rate.
    fn asked_format(&self) -> anyhow::Result<(&'static str, u32)> {
        let Format::Native { audio } = &self.format else { anyhow::bail!("not a file") };
        let kind = match (self.surface, audio["codec"].as_str().unwrap_or_default()) {
            (Surface::Cartesia | Surface::Livekit, "pcm_s16le") => "pcm_s16le",
            (Surface::Cartesia, "mulaw") => "pcm_mulaw",
            (Surface::Deepgram, "pcm_s16le") => "linear16",
            (Surface::Deepgram, "mulaw") => "mulaw",
            (Surface::Elevenlabs, "pcm_s16le") => "pcm",
            (Surface::Elevenlabs, "mulaw") => "ulaw",
            (_, other) => anyhow::bail!("{other} is not to be had on this surface"),
        };
        Ok((kind, self.format.rate()))
    }
}

impl Client {
    pub(super) fn new(vendor: Vendor) -> Self {
        Self { vendor, turns: Vec::new() }
    }

    /// Whether a turn takes text.
    pub(super) fn is_taking(&self) -> bool {
        self.turns.iter().any(|turn| turn.state == State::Open)
    }

    /// Turns of a name.
    pub(super) fn of(&self, ctx: &str) -> impl Iterator<Item = (usize, &Turn)> {
        self.turns.iter().enumerate().filter(move |(_, turn)| turn.ctx == ctx)
    }

    /// Places of the turns that the engine has, in its order: those that were refused it never had.
    pub(super) fn known_to_the_engine(&self) -> Vec<usize> {
        let refused = |turn: &Turn| turn.state == State::Failed && turn.frames == 0;
        (0..self.turns.len()).filter(|&at| !refused(&self.turns[at])).collect()
    }
}

fn with(mut message: Value, field: &str, value: &str) -> Value {
    message[field] = value.into();
    message
}

/// Notes which names steps give to contexts that have none on the wire, and whether messages name contexts.
fn look_ahead(steps: &[Value], names: &mut Vec<String>, is_multi: &mut bool) {
    const OF_CONTEXTS: [&str; 4] = ["context_id", "contextId", "close_context", "close_socket"];
    const BY_NAME: [&str; 5] = ["open_context", "text", "text_stream", "forced_chunks", "cancel"];
    for step in steps {
        let name = step["ctx"].as_str().filter(|name| !names.iter().any(|known| known == name));
        names.extend(name.map(str::to_owned));
        *is_multi |= OF_CONTEXTS.iter().any(|field| step["json"].get(field).is_some());
        *is_multi |= step["do"].as_str().is_some_and(|name| BY_NAME.contains(&name));
        for body in ["body", "a", "b"] {
            look_ahead(step[body].as_array().map_or(&[], |body| body), names, is_multi);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_contexts_if_its_case_names_any() {
        let path = |steps: Value| {
            let steps = steps.as_array().unwrap().clone();
            let vendor = Vendor::new(Surface::Elevenlabs, 7, Format::pcm(), &steps);
            vendor.path(None, None).unwrap()
        };
        let single = path(json!([{"do": "raw", "json": {"text": " "}}]));
        assert_eq!(single, "/v1/text-to-speech/v1/stream-input?output_format=pcm_24000&seed=7");
        let body = json!([{"do": "raw", "json": {"text": " ", "context_id": "a"}}]);
        assert!(path(json!([{"do": "loop", "n": 2, "body": body}])).contains("/multi-stream-"));
    }

    #[test]
    fn what_a_surface_does_not_have_is_told() {
        let vendor = Vendor::new(Surface::Livekit, 7, Format::pcm(), &[]);
        assert!(vendor.says("flush", "A", "").is_err());
        let vendor =
            Vendor::new(Surface::Livekit, 7, Format::named("ulaw_8000", None).unwrap(), &[]);
        assert!(vendor.greeting().is_err());
    }
}
