//! What turns codes into sound: the codec of a bundle, or the tones of the stub.

use std::sync::Arc;
use std::time::Duration;

use codecs::codes::CodeError;
use codecs::reconstruct::{self, Codec};
use codecs::window::{End, Plan, SettingsError};

use crate::event::Event;
use crate::pipeline::Settings;
use crate::stub::{ToneStream, Tones};
use crate::{ContextId, Pcm};

/// A codec, shared by all contexts.
#[derive(Clone)]
pub(crate) enum Sound {
    /// That of a bundle.
    Codec(Arc<Codec>),
    /// Tones that tell whose they are.
    Tones(Arc<Tones>),
}

/// What one context has behind it.
pub(crate) enum Stream {
    Codec(Box<reconstruct::Stream>),
    Tones(Box<ToneStream>),
}

/// Sound that may go out, in pieces, and how long the codec stands still behind each: not at all, if it is a real one.
pub(crate) struct Pieces(pub(crate) Vec<(Duration, Pcm)>);

/// Told when a stream is given to another codec than the one that made it.
const FOREIGN: &str = "the stream of another codec; this is a bug";

impl Sound {
    /// Whether there is anything to hear; else all of it is silence.
    pub(crate) fn is_heard(&self) -> bool {
        match self {
            Self::Codec(_) => true,
            Self::Tones(tones) => tones.is_heard(),
        }
    }

    /// Takes in a context that is about to be opened.
    pub(crate) fn enrol(&self, context: ContextId, settings: &mut Settings) {
        if let Self::Tones(tones) = self {
            tones.enrol(context, settings);
        }
    }

    /// Hears the events of a context on their way.
    pub(crate) fn tell<'e>(&self, context: ContextId, events: impl IntoIterator<Item = &'e Event>) {
        if let Self::Tones(tones) = self {
            tones.heard(context, events);
        }
    }

    /// The plan that a stream with this first release follows.
    ///
    /// # Errors
    /// As [`Codec::plan`].
    pub(crate) fn plan(&self, first_frames: usize) -> Result<Plan, SettingsError> {
        match self {
            Self::Codec(codec) => codec.plan(first_frames),
            Self::Tones(tones) => tones.plan(first_frames),
        }
    }

    /// The state of a new context.
    ///
    /// # Errors
    /// As [`Sound::plan`].
    pub(crate) fn stream(
        &self,
        context: ContextId,
        first_frames: usize,
        seed: u64,
    ) -> Result<Stream, SettingsError> {
        Ok(match self {
            Self::Codec(codec) => Stream::Codec(Box::new(codec.stream(first_frames, seed)?)),
            Self::Tones(tones) => {
                Stream::Tones(Box::new(tones.stream(context, first_frames, seed)?))
            }
        })
    }

    /// Takes `[rows][new frames]` of final codes, perhaps none, and gives the sound that may now be heard.
    ///
    /// # Errors
    /// Codes that cannot be decoded.
    pub(crate) fn push(
        &self,
        stream: &mut Stream,
        rows: &[&[u16]],
        end: End,
    ) -> Result<Pieces, CodeError> {
        match (self, stream) {
            (Self::Codec(codec), Stream::Codec(stream)) => {
                let samples = codec.push(stream, rows, end)?;
                Ok(Pieces(vec![(Duration::ZERO, samples.into())]))
            }
            (Self::Tones(tones), Stream::Tones(stream)) => tones.push(stream, rows, end),
            _ => panic!("{FOREIGN}"),
        }
    }
}

impl Pieces {
    /// Gives the pieces one by one, standing still where the codec does.
    pub(crate) fn each(self, mut give: impl FnMut(Pcm)) {
        for (stall, samples) in self.0 {
            give(samples);
            if !stall.is_zero() {
                std::thread::sleep(stall);
            }
        }
    }
}

impl Stream {
    /// Where a sample of the plan lies in what was given.
    pub(crate) fn position(&self, planned: u64) -> u64 {
        match self {
            Self::Codec(_) => planned,
            Self::Tones(stream) => stream.position(planned),
        }
    }
}
