//! What turns codes into sound: the codec of a bundle, or the tones of the stub.

use std::sync::Arc;
use std::time::Duration;

use codecs::codes::CodeError;
use codecs::reconstruct::{self, Codec};
use codecs::streaming;
use codecs::window::{End, Plan, SettingsError};

use crate::event::Event;
use crate::pipeline::Settings;
use crate::stub::{ToneStream, Tones};
use crate::{ContextId, Pcm};

/// The codec of a voice, shared by all its contexts.
#[derive(Clone)]
pub(crate) enum Sound {
    /// That of a bundle.
    Codec(Arc<Codec>),
    /// Tones that tell whose they are.
    Tones(Arc<Tones>),
}

/// What one context has behind it, with what goes on from there.
pub(crate) enum Stream {
    /// Of a voice.
    Codec(Arc<Codec>, Box<reconstruct::Stream>),
    /// Of the stub.
    Tones(Arc<Tones>, Box<ToneStream>),
    /// Of an answer.
    Streaming(Arc<streaming::Codec>, Box<streaming::Stream>),
    /// Of an answer that is only written.
    Mute,
}

/// Sound that may go out, in pieces, and how long the codec stands still behind each: not at all, if it is a real one.
pub(crate) struct Pieces(pub(crate) Vec<(Duration, Pcm)>);

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

    /// The state of a context that was enrolled.
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
            Self::Codec(codec) => {
                Stream::Codec(codec.clone(), Box::new(codec.stream(first_frames, seed)?))
            }
            Self::Tones(tones) => {
                let stream = tones.stream(context, first_frames, seed)?;
                Stream::Tones(tones.clone(), Box::new(stream))
            }
        })
    }
}

impl Pieces {
    fn one(samples: impl Into<Pcm>) -> Self {
        Self(vec![(Duration::ZERO, samples.into())])
    }

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
    /// Hears the events of its context on their way.
    pub(crate) fn tell<'e>(&self, context: ContextId, events: impl IntoIterator<Item = &'e Event>) {
        if let Self::Tones(tones, _) = self {
            tones.heard(context, events);
        }
    }

    /// Takes `[rows][new frames]` of final codes, perhaps none, and gives the sound that may now be heard.
    ///
    /// # Errors
    /// Codes that cannot be decoded.
    pub(crate) fn push(&mut self, rows: &[&[u16]], end: End) -> Result<Pieces, CodeError> {
        match self {
            Self::Codec(codec, stream) => Ok(Pieces::one(codec.push(stream, rows, end)?)),
            Self::Tones(tones, stream) => tones.push(stream, rows, end),
            Self::Streaming(codec, stream) => {
                let mut samples = codec.push(stream, rows, end == End::Passage)?;
                samples.iter_mut().for_each(|sample| *sample = sample.clamp(-1.0, 1.0));
                Ok(Pieces::one(samples))
            }
            Self::Mute => Ok(Pieces(Vec::new())),
        }
    }

    /// Where a sample of the plan lies in what was given.
    pub(crate) fn position(&self, planned: u64) -> u64 {
        match self {
            Self::Tones(_, stream) => stream.position(planned),
            Self::Codec(..) | Self::Streaming(..) | Self::Mute => planned,
        }
    }
}
