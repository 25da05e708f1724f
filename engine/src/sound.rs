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

/// What comes next in a stream.
pub(crate) struct Input<'a> {
    pub(crate) stream: &'a mut Stream,
    /// `[rows][new frames]` of final codes, perhaps none.
    pub(crate) rows: Vec<&'a [u16]>,
    pub(crate) end: End,
}

impl Input<'_> {
    fn push(self) -> Result<Pieces, CodeError> {
        match self.stream {
            Stream::Codec(codec, stream) => {
                Ok(Pieces::one(codec.push(stream, &self.rows, self.end)?))
            }
            Stream::Tones(tones, stream) => tones.push(stream, &self.rows, self.end),
            Stream::Streaming(codec, _) => {
                let codec = codec.clone();
                push_joined(&codec, vec![self]).remove(0)
            }
            Stream::Mute => Ok(Pieces(Vec::new())),
        }
    }
}

/// Decodes streams of one codec together.
fn push_joined(
    codec: &streaming::Codec,
    mut inputs: Vec<Input<'_>>,
) -> Vec<Result<Pieces, CodeError>> {
    let mut pushes: Vec<_> = inputs
        .iter_mut()
        .map(|input| match input.stream {
            Stream::Streaming(_, stream) => {
                streaming::Push { stream, codes: &input.rows, ended: input.end == End::Passage }
            }
            _ => panic!("a stream that does not join; this is a bug"),
        })
        .collect();
    let clamped = |mut samples: Vec<f32>| {
        samples.iter_mut().for_each(|sample| *sample = sample.clamp(-1.0, 1.0));
        Pieces::one(samples)
    };
    codec.push_each(&mut pushes).into_iter().map(|made| made.map(clamped)).collect()
}

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
    /// None: what waited for the samples before may go out.
    pub(crate) fn none() -> Self {
        Self::one(Pcm::default())
    }

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

    /// Whether the codes of both can be decoded together.
    pub(crate) fn joins(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Streaming(codec, _), Self::Streaming(others, _)) => Arc::ptr_eq(codec, others),
            _ => false,
        }
    }

    /// Takes codes of one stream, or of several that join, and gives the sound of each that may now be heard.
    ///
    /// # Errors
    /// Codes that cannot be decoded; the other streams get their sound.
    pub(crate) fn push_each(inputs: Vec<Input<'_>>) -> Vec<Result<Pieces, CodeError>> {
        let joined = inputs.first().and_then(|input| match &*input.stream {
            Self::Streaming(codec, _) => Some(codec.clone()),
            _ => None,
        });
        match joined {
            Some(codec) => push_joined(&codec, inputs),
            None => inputs.into_iter().map(Input::push).collect(),
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
