//! What a caller asks of a speech language model.

use std::sync::Arc;
use std::time::Duration;

use super::{Modality, Role};
use crate::models::speech::Clip;

/// What is asked of a speech language model. Anything left `None` is the bundle's default.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the model; `None`: the first speech language model there is.
    pub model: Option<String>,
    /// What is to be done with the messages.
    pub task: Task,
    /// The conversation so far, oldest first; for other tasks one message with what is to be worked on.
    pub messages: Vec<Message>,
    /// The answer's segments, in order. Empty: the model chooses, where it can.
    pub modalities: Vec<Modality>,
    /// Name of the bundle's voice that it speaks with; `None`: the model's own.
    pub voice: Option<String>,
    /// How freely text is chosen.
    pub text: Draw,
    /// How freely codes are chosen, in all streams.
    pub audio: Draw,
    /// Guidance weight of sound; 1 switches guidance off.
    pub guidance: Option<f32>,
    /// Guidance weights of the first sounds, in order, where they are not all alike.
    pub sound_guidance: Vec<f32>,
    /// Most tokens of a segment of text.
    pub max_text_tokens: Option<usize>,
    /// Most frames of a segment of sound. The last ones are finished within it, none is cut.
    pub max_audio_frames: Option<usize>,
    /// Most tokens of text and frames of sound in all segments together; it goes before the least that a sound should have.
    pub max_tokens: Option<usize>,
    /// Frames before which no segment of sound ends.
    pub min_audio_frames: Option<usize>,
    /// The answer ends before the first of these that its text would contain; none of it is shown.
    pub stop: Vec<String>,
    /// Decides all draws: the same seed and messages give the same answer.
    pub seed: u64,
    /// How far the sound may run ahead of its listener; `None`: nobody listens in real time.
    pub max_ahead: Option<Duration>,
    /// 0 to 9, 9 the most urgent; orders contexts that have said nothing yet.
    pub priority: u8,
}

/// What is to be done. Models that are told by their messages alone do not look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Task {
    /// Go on with the conversation.
    #[default]
    Converse,
    /// Say the text of the one message.
    Speak,
    /// Write down what is said in the one message.
    Transcribe,
}

/// What one party says in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text.
    Text(String),
    /// A recording at 24 kHz, mono, full scale 1. Only for models that hear.
    Audio(Arc<[f32]>),
    /// A recording that comes in while it is made, by [`Handle::push_audio`](crate::Handle::push_audio), and what has been
    /// heard of it: at first nothing. Only for models that hear.
    Live(Vec<Arc<Clip>>),
    /// What the model has heard of a recording, in order; the engine makes it.
    Heard(Vec<Arc<Clip>>),
    /// Sound in the model's own codes, `[streams][frames]`.
    Codes(Arc<[Vec<u16>]>),
}

/// How freely something is chosen. Anything left `None` is the bundle's default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Draw {
    /// Temperature; 0: always the likeliest.
    pub temperature: Option<f32>,
    /// How many of the likeliest stay; 0: all.
    pub top_k: Option<usize>,
    /// The likeliest stay that together have at least this probability.
    pub top_p: Option<f32>,
}

impl Request {
    /// Recordings that are still to be heard.
    pub(crate) fn recordings(&self) -> impl Iterator<Item = &[f32]> {
        let parts = self.messages.iter().flat_map(|message| &message.parts);
        parts.filter_map(|part| match part {
            Part::Audio(samples) => Some(&samples[..]),
            Part::Text(_) | Part::Live(_) | Part::Heard(_) | Part::Codes(_) => None,
        })
    }

    /// Where its live recordings stand, as message and part, in order.
    pub(crate) fn live(&self) -> Vec<(usize, usize)> {
        let parts = |(at, message): (usize, &Message)| {
            let parts = message.parts.iter().enumerate();
            let live = parts.filter(|(_, part)| matches!(part, Part::Live(_)));
            live.map(|(part, _)| (at, part)).collect::<Vec<_>>()
        };
        self.messages.iter().enumerate().flat_map(parts).collect()
    }

    /// What a text is answered with, read as it is written.
    pub fn new(text: impl Into<String>, modalities: &[Modality]) -> Self {
        let parts = vec![Part::Text(text.into())];
        Self {
            model: None,
            task: Task::Converse,
            messages: vec![Message { role: Role::User, parts }],
            modalities: modalities.to_vec(),
            voice: None,
            text: Draw::default(),
            audio: Draw::default(),
            guidance: None,
            sound_guidance: Vec::new(),
            max_text_tokens: None,
            max_audio_frames: None,
            max_tokens: None,
            min_audio_frames: None,
            stop: Vec::new(),
            seed: 0,
            max_ahead: None,
            priority: 5,
        }
    }
}
