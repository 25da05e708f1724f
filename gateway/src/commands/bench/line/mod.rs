//! A caller's connection, whatever protocol it speaks: turns go in, sound and their ends come out.

mod events;
mod openai;
mod vendor;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::ValueEnum;

use self::openai::OpenAi;
use self::vendor::{Dialect, Vendor};
use super::turn::Sound;
use crate::client::{
    AudioFrame, CancelAt, ClientError, ContextOptions, Event, Flow, Opening, Session,
    SessionOptions, Target,
};

/// Turns of a session whose sound is still told apart.
const TURNS_KNOWN: usize = 64;
/// Bytes of a second of sound, as other protocols are asked for it: 16-bit samples at 24 kHz.
const BYTES_PER_SECOND: u64 = 48_000;
/// Runs ahead as far as a server allows.
const FAR_AHEAD_MS: u64 = 30_000;

/// What a gateway is spoken to in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Protocol {
    /// The native protocol
    Dovecote,
    /// Cartesia's
    Cartesia,
    /// ElevenLabs'
    Elevenlabs,
    /// Deepgram's
    Deepgram,
    /// LiveKit's
    Livekit,
    /// OpenAI's speech request; with --model its chat completions
    Openai,
}

impl Protocol {
    /// Whether a model can be asked in it.
    pub(super) fn asks(self) -> bool {
        matches!(self, Self::Dovecote | Self::Openai)
    }
}

/// Number of a turn in its session.
pub(super) type TurnId = u32;

/// Something that happens on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Signal {
    /// Text of a turn that a model answers.
    Text(TurnId),
    /// Sound of a turn.
    Sound(TurnId, Sound),
    /// All of a turn has come.
    Done(TurnId),
    /// A turn was stopped; no sound of it may follow.
    Stopped(TurnId),
    /// A turn goes wrong.
    Refused {
        turn: TurnId,
        /// A code, the same for all that go wrong in the same way.
        why: String,
        /// How long to wait before the next.
        retry_after: Duration,
    },
}

/// A line that is no more, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Broken(pub(super) String);

impl From<ClientError> for Broken {
    fn from(error: ClientError) -> Self {
        Self(error.to_string())
    }
}

/// A connection.
pub(super) enum Line {
    Dovecote(Box<Dovecote>),
    Vendor(Box<Vendor>),
    OpenAi(Box<OpenAi>),
}

impl Line {
    /// Connects. A model is asked, if one is named. With `is_eager` the server need not wait for the listener, if the protocol can
    /// say so.
    pub(super) async fn connect(
        protocol: Protocol,
        model: Option<&str>,
        target: &Target,
        is_eager: bool,
    ) -> Result<Self, Broken> {
        let dialect = match protocol {
            Protocol::Dovecote => {
                let line = Dovecote::connect(target, model, is_eager).await?;
                return Ok(Self::Dovecote(Box::new(line)));
            }
            Protocol::Openai => return Ok(Self::OpenAi(Box::new(OpenAi::new(target, model)))),
            Protocol::Cartesia => Dialect::Cartesia,
            Protocol::Livekit => Dialect::LiveKit,
            Protocol::Elevenlabs => Dialect::ElevenLabs,
            Protocol::Deepgram => Dialect::Deepgram,
        };
        Ok(Self::Vendor(Box::new(Vendor::connect(dialect, target).await?)))
    }

    /// Begins a turn.
    pub(super) async fn begin(&mut self, turn: TurnId) -> Result<(), Broken> {
        match self {
            Self::Dovecote(line) => line.begin(turn).await?,
            Self::Vendor(line) => line.begin(turn).await?,
            Self::OpenAi(line) => line.begin(turn),
        }
        Ok(())
    }

    /// Says more in a turn.
    pub(super) async fn say(&mut self, turn: TurnId, text: &str) -> Result<(), Broken> {
        match self {
            Self::Dovecote(line) => line.say(turn, text).await?,
            Self::Vendor(line) => line.say(turn, text).await?,
            Self::OpenAi(line) => line.say(text),
        }
        Ok(())
    }

    /// Says that a turn has no more text.
    pub(super) async fn end(&mut self, turn: TurnId) -> Result<(), Broken> {
        match self {
            Self::Dovecote(line) => Ok(line.end(turn).await?),
            Self::Vendor(line) => line.end(turn).await,
            Self::OpenAi(line) => line.end().await,
        }
    }

    /// Interrupts a turn of which so much was heard.
    pub(super) async fn interrupt(&mut self, turn: TurnId, heard: Duration) -> Result<(), Broken> {
        match self {
            Self::Dovecote(line) => {
                let played = line.samples(heard);
                line.session.cancel(&name(turn), Some(played), CancelAt::Now).await?;
            }
            Self::Vendor(line) => line.interrupt(turn).await?,
            Self::OpenAi(line) => line.interrupt(turn),
        }
        Ok(())
    }

    /// What happens next. Nothing is lost when the future is dropped before it is ready.
    pub(super) async fn next(&mut self) -> Result<Signal, Broken> {
        match self {
            Self::Dovecote(line) => line.next().await,
            Self::Vendor(line) => line.next().await,
            Self::OpenAi(line) => line.next().await,
        }
    }

    /// Breaks off as a crash would.
    pub(super) fn reset(self) {
        match self {
            Self::Dovecote(line) => line.session.reset(),
            Self::Vendor(line) => line.reset(),
            Self::OpenAi(line) => line.reset(),
        }
    }

    /// Says goodbye, and waits for the answer.
    pub(super) async fn hang_up(self) {
        match self {
            Self::Dovecote(mut line) => {
                // Whoever is gone already needs no goodbye.
                let _ = line.session.end_session(false).await;
                while let Ok(event) = line.session.next().await {
                    if matches!(event, Event::Closed(_)) {
                        break;
                    }
                }
            }
            Self::Vendor(line) => line.hang_up().await,
            // Each turn has had a connection of its own.
            Self::OpenAi(_) => {}
        }
    }
}

fn name(turn: TurnId) -> String {
    format!("t{turn}")
}

fn turn_of(ctx: &str) -> Option<TurnId> {
    ctx.strip_prefix('t')?.parse().ok()
}

/// A line of the native protocol.
pub(super) struct Dovecote {
    session: Session,
    /// Turns by the handles of their frames.
    handles: BTreeMap<u32, TurnId>,
    /// The model that is asked, and its question so far; none: texts are spoken.
    asked: Option<(String, String)>,
}

impl Dovecote {
    async fn connect(
        target: &Target,
        model: Option<&str>,
        is_eager: bool,
    ) -> Result<Self, ClientError> {
        let flow = is_eager.then_some(Flow { max_ahead_ms: FAR_AHEAD_MS });
        let options = SessionOptions { flow, ..SessionOptions::default() };
        let session = Session::connect(target, &options).await?;
        let asked = model.map(|model| (model.to_owned(), String::new()));
        Ok(Self { session, handles: BTreeMap::new(), asked })
    }

    async fn begin(&mut self, turn: TurnId) -> Result<(), ClientError> {
        match &mut self.asked {
            // A context that answers is opened with its question.
            Some((_, question)) => question.clear(),
            None => self.session.open(&name(turn), &Opening::default()).await?,
        }
        Ok(())
    }

    async fn say(&mut self, turn: TurnId, text: &str) -> Result<(), ClientError> {
        match &mut self.asked {
            Some((_, question)) => question.push_str(text),
            None => self.session.text(&name(turn), text).await?,
        }
        Ok(())
    }

    async fn end(&mut self, turn: TurnId) -> Result<(), ClientError> {
        let Some((model, question)) = &self.asked else {
            return self.session.end(&name(turn)).await;
        };
        let options = ContextOptions {
            model: Some(model.clone()),
            seed: Some(turn.into()),
            ..ContextOptions::default()
        };
        let messages = serde_json::json!([{"role": "user", "content": question}]);
        let opening = Opening { options, messages: Some(messages), ..Opening::default() };
        self.session.open(&name(turn), &opening).await
    }

    async fn next(&mut self) -> Result<Signal, Broken> {
        loop {
            let signal = match self.session.next().await? {
                Event::Audio(frame) => self.sound(&frame),
                Event::Opened(opened) => {
                    self.known(opened.handle, &opened.ctx);
                    None
                }
                Event::TextDelta(delta) => turn_of(&delta.ctx).map(Signal::Text),
                Event::Done(done) => turn_of(&done.ctx).map(Signal::Done),
                Event::Cancelled(cancelled) => turn_of(&cancelled.ctx).map(Signal::Stopped),
                // The listener is estimated, and a little ahead of what was sent is no harm.
                Event::Error(error) if error.code == "played_beyond_sent" => None,
                Event::Error(error) => match error.ctx.as_deref().and_then(turn_of) {
                    Some(turn) => Some(Signal::Refused {
                        turn,
                        why: error.code,
                        retry_after: Duration::from_millis(error.retry_after_ms.unwrap_or(0)),
                    }),
                    None => return Err(Broken(error.code)),
                },
                Event::Closed(closed) => return Err(Broken(closed_with(closed.code))),
                _ => None,
            };
            if let Some(signal) = signal {
                return Ok(signal);
            }
        }
    }

    fn known(&mut self, handle: u32, ctx: &str) {
        if let Some(turn) = turn_of(ctx) {
            self.handles.insert(handle, turn);
        }
        // Handles count upwards, so the first are the oldest.
        while self.handles.len() > TURNS_KNOWN {
            self.handles.pop_first();
        }
    }

    fn sound(&self, frame: &AudioFrame) -> Option<Signal> {
        let turn = *self.handles.get(&frame.handle)?;
        let audio = self.session.ready().audio;
        let packet = u64::from(audio.sample_rate) * u64::from(audio.frame_ms) / 1_000;
        let end = frame.pos.saturating_add(packet * u64::from(frame.count));
        let sound = Sound {
            seq: frame.seq.into(),
            count: frame.count.into(),
            from: self.time(frame.pos),
            to: self.time(end),
        };
        Some(Signal::Sound(turn, sound))
    }

    /// A position of the media clock as time.
    fn time(&self, pos: u64) -> Duration {
        let rate = u128::from(self.session.ready().audio.sample_rate.max(1));
        let nanos = u128::from(pos) * 1_000_000_000 / rate;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn samples(&self, time: Duration) -> u64 {
        let rate = u128::from(self.session.ready().audio.sample_rate);
        u64::try_from(time.as_nanos() * rate / 1_000_000_000).unwrap_or(u64::MAX)
    }
}

fn closed_with(code: Option<u16>) -> String {
    match code {
        Some(code) => format!("closed with {code}"),
        None => "closed".to_owned(),
    }
}

/// How long so many bytes sound.
fn sounding(bytes: u64) -> Duration {
    Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / BYTES_PER_SECOND)
}

fn broken(error: impl std::fmt::Display) -> Broken {
    Broken(error.to_string())
}
