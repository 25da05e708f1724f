//! A session on virtual time, with a wire that takes everything at once unless told otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::{Event, Summary};
use serde_json::{Value, json};

use super::{Session, Setup};
use crate::auth::SessionAllowance;
use crate::protocol::{
    Catalogue, Frame, Handle, Input, Limits, Model, Output, Packet, Resume, Voice,
};

/// One thing that went over the wire.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Seen {
    Text(Value),
    Audio { handle: Handle, flags: u8, count: u16, seq: u32, pos: u64 },
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
    /// What the engine says that cancelled contexts held.
    pub(super) held: usize,
    /// Whether the wire takes anything.
    pub(super) is_writable: bool,
    /// Whether there is a socket.
    pub(super) is_attached: bool,
    /// Whether pings are answered.
    pub(super) is_alive: bool,
}

fn catalogue() -> Catalogue {
    let (languages, styles) = (vec!["english".to_owned()], vec!["agentic".to_owned()]);
    let model = Model {
        id: "toy".into(),
        languages: languages.clone(),
        styles: styles.clone(),
        ..Model::default()
    };
    let voice = Voice {
        voice_id: "ann".into(),
        name: "Ann".into(),
        model: "nano".into(),
        category: "premade",
        languages,
        styles,
        owner: None,
    };
    Catalogue {
        models: vec![model, Model { id: "bag".into(), answers: true, ..Model::default() }],
        voices: vec![voice],
        default_voice: "ann".into(),
        ..Catalogue::default()
    }
}

impl Rig {
    pub(super) fn new(limits: Limits) -> Self {
        let setup = Setup {
            limits,
            catalogue: Arc::new(catalogue()),
            session_id: "s".into(),
            token: "t".into(),
            unix_ms: 1_000,
            allowance: SessionAllowance::default(),
            has_room: true,
            is_foreign: false,
        };
        let session = Session::new(setup, Duration::ZERO);
        let (outputs, seen) = (Vec::new(), Vec::new());
        let (now, refuse) = (Duration::ZERO, None);
        Self {
            session,
            now,
            outputs,
            seen,
            refuse,
            held: 0,
            is_writable: true,
            is_attached: true,
            is_alive: true,
        }
    }

    /// A session that has started, in PCM of 24 kHz, so that positions are the engine's samples.
    pub(super) fn started() -> Self {
        Self::started_with(json!({}))
    }

    /// The same, with more fields of `session.start`.
    pub(super) fn started_with(fields: Value) -> Self {
        Self::started_within(Limits::default(), fields)
    }

    /// The same, with other limits.
    pub(super) fn started_within(limits: Limits, fields: Value) -> Self {
        let mut rig = Self::new(limits);
        let mut start = json!({"type": "session.start", "audio": {"codec": "pcm_s16le"}});
        start.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        rig.send(start);
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
            if let Output::Open { context, .. } | Output::Answer { context, .. } = output {
                let answer = self.refuse.clone().map_or(Ok(()), Err);
                self.session.handle_input(self.now, Input::Opened { context, answer });
            }
            let output = match output {
                Output::Read { context, reading } => {
                    let read = Input::Read { context, messages: reading.read() };
                    self.session.handle_input(self.now, read);
                    continue;
                }
                output => output,
            };
            if let Output::Cancel(context) = output {
                let freed = Input::Freed { context, kv_blocks: self.held };
                self.session.handle_input(self.now, freed);
            }
            if let Output::Detach = output {
                self.is_attached = false;
            }
            self.outputs.push(output);
        }
        while self.is_writable
            && self.is_attached
            && let Some(frame) = self.session.poll_frame(self.now)
        {
            if frame == Frame::Ping && self.is_alive {
                self.session.handle_input(self.now, Input::Pong);
            }
            self.seen.push(match frame {
                Frame::Text(json) => Seen::Text(serde_json::from_str(&json).unwrap()),
                Frame::Audio(bytes) => Seen::Audio {
                    flags: bytes[1],
                    count: u16::from_be_bytes(bytes[2..4].try_into().unwrap()),
                    handle: u32::from_be_bytes(bytes[4..8].try_into().unwrap()),
                    seq: u32::from_be_bytes(bytes[8..12].try_into().unwrap()),
                    pos: u64::from_be_bytes(bytes[12..20].try_into().unwrap()),
                },
                Frame::Ping => Seen::Ping,
                Frame::Close { code, .. } => Seen::Close(code),
            });
        }
    }

    /// The client comes back on another socket, having seen what was seen. Returns whether the session takes it.
    pub(super) fn resume(&mut self) -> bool {
        let resume = self.place();
        let is_taken = self.session.resume(&resume, self.now);
        self.is_attached |= is_taken;
        self.pump();
        is_taken
    }

    /// Where the client stands.
    pub(super) fn place(&self) -> Resume {
        let mut resume = Resume::default();
        let mut names = BTreeMap::new();
        for seen in &self.seen {
            match seen {
                Seen::Text(event) => {
                    resume.last_n = event["n"].as_u64().unwrap();
                    if event["type"] == "context.opened" {
                        let name = event["ctx"].as_str().unwrap().to_owned();
                        names.insert(event["handle"].as_u64().unwrap() as Handle, name);
                    }
                }
                Seen::Audio { handle, count, seq, .. } => {
                    let last = seq + u32::from(*count) - 1;
                    resume.last.insert(names[handle].clone(), last);
                }
                Seen::Ping | Seen::Close(_) => {}
            }
        }
        resume
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
            silent: false,
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
