//! A vendor's client on virtual time: its messages go in, what it gets comes out, and an engine speaks as it is told.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::{Event, Summary};
use serde_json::Value;

use super::{Greeting, Interpreter, Make};
use crate::auth::SessionAllowance;
use crate::config::Gateway;
use crate::lexicon::Lexicons;
use crate::protocol::{
    Catalogue, Frame, Handle, Input, Limits, Model, Output, Packet, Session, Setup, Voice,
};

/// Bytes of a packet that the engine gives: 20 ms of 16-bit samples at 24 kHz.
pub(super) const PACKET: &[u8] = &[7; 960];

pub(super) struct Rig {
    pub(super) session: Session,
    pub(super) interpreter: Interpreter,
    pub(super) now: Duration,
    pub(super) outputs: Vec<Output>,
    /// JSON messages to the client that [`Rig::heard`] has not taken.
    pub(super) heard: Vec<Value>,
    /// Binary messages to the client.
    pub(super) sound: Vec<Bytes>,
    pub(super) close: Option<u16>,
    /// The engine's answer to the next contexts.
    pub(super) refuse: Option<engine::Error>,
}

/// Two voices, `ann` and `bob`, one model, one language.
fn catalogue() -> Catalogue {
    let (languages, styles) = (vec!["english".to_owned()], vec!["agentic".to_owned()]);
    let voice = |id: &str| Voice {
        voice_id: id.into(),
        name: id.into(),
        model: "nano".into(),
        category: "premade",
        languages: languages.clone(),
        styles: styles.clone(),
        owner: None,
    };
    let voices = vec![voice("ann"), voice("bob")];
    let model = Model { id: "toy".into(), languages, styles, ..Model::default() };
    Catalogue { models: vec![model], voices, default_voice: "ann".into(), ..Catalogue::default() }
}

impl Rig {
    pub(super) fn new(make: Make) -> Self {
        Self::with(make, &Gateway::default())
    }

    pub(super) fn with(make: Make, config: &Gateway) -> Self {
        Self::at(make, "", config)
    }

    /// A client that has come with a query.
    pub(super) fn at(make: Make, query: &str, config: &Gateway) -> Self {
        Self::from(make, ["/", query, ""], config)
    }

    /// A client that has come to a path with a query, and calls itself something.
    pub(super) fn from(make: Make, [path, query, agent]: [&str; 3], config: &Gateway) -> Self {
        let lexicons = Lexicons::open(&config.lexicon).expect("files of words");
        let setup = Setup {
            limits: Limits { ..config.limits.clone() },
            catalogue: Arc::new(Catalogue { lexicons: Arc::new(lexicons), ..catalogue() }),
            session_id: "s".into(),
            token: "t".into(),
            unix_ms: 1_000,
            allowance: SessionAllowance::default(),
            has_room: true,
            is_foreign: true,
        };
        let greeting = Greeting { path, query, agent, setup: &setup, config };
        let dialect = make(&greeting).expect("welcome");
        let mut session = Session::new(setup, Duration::ZERO);
        let interpreter = Interpreter::greet(dialect, &mut session, Duration::ZERO);
        let mut rig = Self {
            session,
            interpreter,
            now: Duration::ZERO,
            outputs: Vec::new(),
            heard: Vec::new(),
            sound: Vec::new(),
            close: None,
            refuse: None,
        };
        rig.pump();
        rig
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.input(Input::Message(message.to_string()));
    }

    pub(super) fn input(&mut self, input: Input) {
        self.interpreter.hear(&mut self.session, self.now, input);
        self.pump();
    }

    /// Obeys and takes frames until there is nothing more.
    fn pump(&mut self) {
        loop {
            while let Some(output) = self.session.poll_output() {
                match output {
                    Output::Open { context, .. } => {
                        let answer = self.refuse.clone().map_or(Ok(()), Err);
                        self.session.handle_input(self.now, Input::Opened { context, answer });
                    }
                    Output::Cancel(context) => {
                        let freed = Input::Freed { context, kv_blocks: 0 };
                        self.session.handle_input(self.now, freed);
                    }
                    _ => {}
                }
                self.outputs.push(output);
            }
            match self.interpreter.poll_frame(&mut self.session, self.now) {
                None => break,
                Some(Frame::Text(json)) => self.heard.push(serde_json::from_str(&json).unwrap()),
                Some(Frame::Audio(bytes)) => self.sound.push(bytes),
                Some(Frame::Ping) => self.session.handle_input(self.now, Input::Pong),
                Some(Frame::Close { code, .. }) => self.close = Some(code),
            }
        }
    }

    /// The messages since the last call.
    pub(super) fn heard(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.heard)
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

    /// The engine gives `n` packets behind those of before; `last`: the context's last among them.
    pub(super) fn speak(&mut self, context: Handle, before: u64, n: u64, last: bool) {
        let packet = |i| Packet {
            bytes: Bytes::from_static(PACKET),
            duration: 480,
            silent: false,
            last: last && i + 1 == n,
        };
        let packets = (0..n).map(packet).collect();
        self.input(Input::Packets { context, packets, generated: (before + n) * 480 });
    }

    pub(super) fn engine(&mut self, context: Handle, event: Event) {
        self.input(Input::Engine { context, event });
    }

    /// The engine has spoken all, so many samples.
    pub(super) fn done(&mut self, context: Handle, samples: u64) {
        self.engine(context, Event::Done(Summary { samples, ..Summary::default() }));
    }

    /// All text that the engine was given of a context.
    pub(super) fn text(&self, of: Handle) -> String {
        let texts = self.outputs.iter().filter_map(|output| match output {
            Output::Speak { context, text } if *context == of => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// What the engine was told of a context beside its text, in a word each.
    pub(super) fn told(&self, of: Handle) -> Vec<&'static str> {
        let words = self.outputs.iter().filter_map(|output| match output {
            Output::Open { context, .. } if *context == of => Some("open"),
            Output::Flush(context) if *context == of => Some("flush"),
            Output::End(context) if *context == of => Some("end"),
            Output::Cancel(context) if *context == of => Some("cancel"),
            _ => None,
        });
        words.collect()
    }

    /// The request of a context, and the format of its packets.
    pub(super) fn opened(&self, of: Handle) -> (&engine::Request, crate::protocol::Format) {
        let found = self.outputs.iter().find_map(|output| match output {
            Output::Open { context, request, format } if *context == of => {
                Some((&**request, *format))
            }
            _ => None,
        });
        found.expect("opened")
    }
}
