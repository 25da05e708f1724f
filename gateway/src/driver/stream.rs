//! The engine's side of one context: its events as they come, its sound as packets of the session's format.

use std::task::{Context, Poll};
use std::time::Duration;

use engine::{ContextId, Event, Events, Failure, Pcm};

use crate::audio::{ENGINE_RATE, PacketMaker, Prepared};
use crate::protocol::{Format, Handle, Input};

/// Sound that is encoded before the task looks at its socket again: 100 ms, about half a millisecond of Opus.
const PIECE_SAMPLES: usize = ENGINE_RATE as usize / 10;

/// What a stream gives.
pub(super) enum News {
    /// `waited`: how long the sound had waited for this task, if these are the first packets of it.
    Packets {
        packets: Vec<crate::protocol::Packet>,
        generated: u64,
        waited: Option<Duration>,
    },
    Event(Event),
}

impl News {
    pub(super) fn into_input(self, context: Handle) -> Input {
        match self {
            Self::Packets { packets, generated, .. } => {
                Input::Packets { context, packets, generated }
            }
            Self::Event(event) => Input::Engine { context, event },
        }
    }
}

/// The engine's side of one context, with its encoder.
pub(super) struct Stream {
    id: ContextId,
    events: Events,
    /// None when there is no more sound to come.
    maker: Option<PacketMaker>,
    /// Sound that waits to be encoded, and how much of it was.
    sound: (Pcm, usize),
    /// How long it had waited, until it was told.
    waited: Option<Duration>,
    /// The engine's last event, when packets had to go before it.
    last: Option<Event>,
    is_over: bool,
}

impl Stream {
    /// With `prepared`, its packets are among those, whatever the sound is.
    pub(super) fn new(
        id: ContextId,
        events: Events,
        format: &Format,
        prepared: Option<&Prepared>,
    ) -> Self {
        let encoding = || PacketMaker::new(format);
        let maker = prepared.map_or_else(encoding, |prepared| prepared.maker(format));
        // Told in the place of the first event: the session knows what to do with a context that fails.
        let last = maker.as_ref().err().map(|e| Event::Failed(Failure::Codec(e.to_string())));
        let (maker, sound) = (maker.ok(), (Pcm::default(), 0));
        Self { id, events, maker, sound, waited: None, last, is_over: false }
    }

    /// What the engine calls it.
    pub(super) fn id(&self) -> ContextId {
        self.id
    }

    /// Whether the engine's last event was given.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Key/value blocks that the context holds in the engine.
    pub(super) fn held_blocks(&self) -> usize {
        self.events.held_blocks()
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<News> {
        loop {
            if let Some(packets) = self.encode() {
                return Poll::Ready(packets);
            }
            if let Some(event) = self.last.take() {
                return Poll::Ready(self.end(event));
            }
            let event = match self.events.poll_recv(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(event)) => event,
                Poll::Ready(None) => Event::Failed(Failure::Model("the engine stopped".to_owned())),
            };
            match event {
                Event::Audio { samples, .. } => {
                    self.sound = (samples, 0);
                    self.waited = Some(self.events.waited());
                }
                Event::Done(_) => {
                    self.last = Some(event);
                    if let Some(packets) = self.finish() {
                        return Poll::Ready(packets);
                    }
                }
                Event::Cancelled(_) | Event::Failed(_) => return Poll::Ready(self.end(event)),
                Event::Chunk { .. }
                | Event::Aligned { .. }
                | Event::ChunkEnd { .. }
                | Event::Notice(_)
                | Event::Flushed { .. }
                | Event::Segment { .. }
                | Event::Text { .. }
                | Event::SegmentEnd(_) => {
                    return Poll::Ready(News::Event(event));
                }
            }
        }
    }

    /// Encodes the next piece of the sound that is here.
    fn encode(&mut self) -> Option<News> {
        let (sound, at) = &mut self.sound;
        let maker = self.maker.as_mut().filter(|_| *at < sound.len())?;
        let most = if maker.is_prepared() { usize::MAX } else { PIECE_SAMPLES };
        let end = sound.len().min(at.saturating_add(most));
        let packets = match sound {
            Pcm::Samples(samples) => maker.push(&samples[*at..end]),
            Pcm::Silence(_) => maker.push_silence(end - *at),
        };
        *at = end;
        match packets {
            Ok(packets) => {
                let generated = maker.samples_in();
                // Sound too short for a packet goes with what comes behind it.
                let waited = if packets.is_empty() { None } else { self.waited.take() };
                Some(News::Packets { packets, generated, waited })
            }
            Err(error) => Some(self.end(Event::Failed(Failure::Codec(error.to_string())))),
        }
    }

    /// The packets behind the last sample.
    fn finish(&mut self) -> Option<News> {
        let maker = self.maker.take()?;
        let generated = maker.samples_in();
        match maker.finish() {
            Ok(packets) if packets.is_empty() => None,
            Ok(packets) => Some(News::Packets { packets, generated, waited: None }),
            Err(error) => Some(self.end(Event::Failed(Failure::Codec(error.to_string())))),
        }
    }

    fn end(&mut self, event: Event) -> News {
        self.is_over = true;
        News::Event(event)
    }
}
