//! A session on virtual time, with a wire that takes everything at once unless told otherwise.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::{Event, Summary};
use serde_json::{Value, json};

use super::{Session, Setup};
use crate::auth::Purse;
use crate::protocol::{Catalogue, Frame, Handle, Input, Limits, Model, Output, Packet, Voice};

/// One thing that went over the wire.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Seen {
    Text(Value),
    Audio { handle: Handle, flags: u8, seq: u32, pos: u64 },
    Ping,
    Close(u16),
}

pub(super) struct Rig {
    pub(super) session: Session,
    pub(super) now: Duration,
    pub(super) outputs: Vec<Output>,
    pub(super) seen: Vec<Seen>,
    /// The engine's answer to the next contexts.
    pub(super) refuse: Option<engine::Error>,
    /// Whether the wire takes anything.
    pub(super) is_writable: bool,
    /// Whether pings are answered.
    pub(super) is_alive: bool,
}

fn catalogue() -> Catalogue {
    let (languages, styles) = (vec!["english".to_owned()], vec!["agentic".to_owned()]);
    let model = Model {
        id: "toy".into(),
        languages: languages.clone(),
        styles: styles.clone(),
        notes: Vec::new(),
    };
    let voice = Voice {
        voice_id: "ann".into(),
        name: "Ann".into(),
        category: "premade",
        languages,
        styles,
    };
    Catalogue { models: vec![model], voices: vec![voice], default_voice: "ann".into() }
}

impl Rig {
    pub(super) fn new(limits: Limits) -> Self {
        let setup = Setup {
            limits,
            catalogue: Arc::new(catalogue()),
            session_id: "s".into(),
            token: "t".into(),
            unix_ms: 1_000,
            purse: Purse::default(),
        };
        let session = Session::new(setup, Duration::ZERO);
        let (outputs, seen) = (Vec::new(), Vec::new());
        let (now, refuse) = (Duration::ZERO, None);
        Self { session, now, outputs, seen, refuse, is_writable: true, is_alive: true }
    }

    /// A session that has started, in PCM of 24 kHz, so that positions are the engine's samples.
    pub(super) fn started() -> Self {
        let mut rig = Self::new(Limits::default());
        rig.send(json!({"type": "session.start", "audio": {"codec": "pcm_s16le"}}));
        rig
    }

    pub(super) fn input(&mut self, input: Input) {
        self.session.handle_input(self.now, input);
        self.pump();
    }

    pub(super) fn send(&mut self, message: Value) {
        self.input(Input::Message(message.to_string()));
    }

    /// Obeys and takes frames until there is nothing more.
    pub(super) fn pump(&mut self) {
        while let Some(output) = self.session.poll_output() {
            if let Output::Open { context, .. } = output {
                let answer = self.refuse.clone().map_or(Ok(()), Err);
                self.session.handle_input(self.now, Input::Opened { context, answer });
            }
            self.outputs.push(output);
        }
        while self.is_writable
            && let Some(frame) = self.session.poll_frame(self.now)
        {
            if frame == Frame::Ping && self.is_alive {
                self.session.handle_input(self.now, Input::Pong);
            }
            self.seen.push(match frame {
                Frame::Text(json) => Seen::Text(serde_json::from_str(&json).unwrap()),
                Frame::Audio(bytes) => Seen::Audio {
                    flags: bytes[1],
                    handle: u32::from_be_bytes(bytes[4..8].try_into().unwrap()),
                    seq: u32::from_be_bytes(bytes[8..12].try_into().unwrap()),
                    pos: u64::from_be_bytes(bytes[12..20].try_into().unwrap()),
                },
                Frame::Ping => Seen::Ping,
                Frame::Close { code, .. } => Seen::Close(code),
            });
        }
    }

    /// Lets time pass, tick by tick.
    pub(super) fn sleep(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.session.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.input(Input::Tick);
        }
        self.now = end;
        self.pump();
    }

    /// The engine speaks `n` packets of 20 ms, with `before` samples given earlier.
    pub(super) fn speak(&mut self, context: Handle, before: u64, n: u64, last: bool) {
        let packet = |i| Packet {
            bytes: Bytes::from_static(&[0; 8]),
            duration: 480,
            last: last && i + 1 == n,
        };
        let packets = (0..n).map(packet).collect();
        self.input(Input::Packets { context, packets, generated: before + n * 480 });
    }

    pub(super) fn engine(&mut self, context: Handle, event: Event) {
        self.input(Input::Engine { context, event });
    }

    pub(super) fn done(&mut self, context: Handle, samples: u64) {
        self.engine(context, Event::Done(Summary { samples, ..Summary::default() }));
    }

    /// The text messages of one type so far.
    pub(super) fn texts(&self, r#type: &str) -> Vec<&Value> {
        let texts = self.seen.iter().filter_map(|seen| match seen {
            Seen::Text(value) => Some(value),
            _ => None,
        });
        texts.filter(|value| value["type"] == r#type).collect()
    }

    /// The codes of all errors so far.
    pub(super) fn errors(&self) -> Vec<&str> {
        self.texts("error").iter().map(|e| e["code"].as_str().unwrap()).collect()
    }

    pub(super) fn close_code(&self) -> Option<u16> {
        self.seen.iter().find_map(|s| if let Seen::Close(code) = s { Some(*code) } else { None })
    }
}
