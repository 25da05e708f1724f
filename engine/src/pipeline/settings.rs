//! What holds for one context: the request and the bundle's defaults, resolved and checked once.

use std::sync::Arc;
use std::time::Duration;

use codecs::window;

use crate::Speech;
use crate::bundle::{Prompt, Silence};
use crate::cfg;
use crate::grammar::Grammar;
use crate::guards::{Attempt, Guards, Verdict};
use crate::load::Lane;
use crate::pipeline::chunk::Chunk;
use crate::pipeline::playout::Standing;
use crate::sampler::Sampling;

/// Where the acoustic stages meet C0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segments {
    /// At every frame count where something can go out: the least delay, on rows that are cut.
    Frames,
    /// After the first release only at the end of a chunk: the published way, on rows that are whole.
    Chunk,
}

/// Resolved settings of a context.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Decides all draws.
    pub(crate) seed: u64,
    /// Symbols and codes of its voice.
    pub(crate) grammar: Arc<Grammar>,
    /// Its place in the order of work.
    pub(crate) standing: Standing,
    /// How long before the listener runs dry a chunk is cut from unfinished text.
    pub(crate) cut_lead: Duration,
    /// How long before the listener runs dry the codec lets go what it keeps back.
    pub(crate) pause_lead: Duration,
    /// The codec's plan.
    pub(crate) window: window::Settings,
    /// Where segments are cut.
    pub(crate) segments: Segments,
    /// CB0's sampling.
    pub(crate) sampling: Sampling,
    /// Sampling of the acoustic stages.
    pub(crate) acoustic: Sampling,
    /// Guidance weight of CB0; `None`: no null companion.
    pub(crate) guidance: Option<f32>,
    /// Bias of the end-of-speech symbol.
    pub(crate) end_bias: f32,
    /// First code of the context.
    pub(crate) forced_first_code: Option<u16>,
    /// Silence codes and their biases.
    pub(crate) silence: Arc<Silence>,
    /// What attempts are measured against.
    pub(crate) guards: Arc<Guards>,
    /// Attempts at a chunk.
    pub(crate) tries: u32,
    /// The voice.
    pub(crate) prompt: Arc<Prompt>,
    /// What was said before the first chunk.
    pub(crate) prefix: Option<Arc<Speech>>,
    /// Control block of each stage.
    pub(crate) control: Arc<[Vec<u32>]>,
}

impl Settings {
    /// How its sound is made.
    pub(crate) fn lane(&self) -> Lane {
        Lane { stage: self.grammar.first_stage, guided: self.guidance.is_some() }
    }

    /// Length of the chunk's C0 at which the next segment is cut; `None`: at the end of the chunk only.
    pub(super) fn next_cut(&self, chunk: &Chunk) -> Option<usize> {
        let known = chunk.base + chunk.frozen();
        let event = if known < self.window.first_frames {
            self.window.first_frames
        } else if self.segments == Segments::Frames {
            next_event(&self.window, known.saturating_sub(self.window.withheld_frames))
        } else {
            return None;
        };
        Some(event - chunk.base)
    }

    /// One row of CB0's logits, guided when there are two.
    pub(super) fn merge<'l>(&self, logits: &'l mut [f32], outputs: usize) -> &'l mut [f32] {
        let (conditioned, null) = logits.split_at_mut(outputs);
        if let Some(weight) = self.guidance {
            cfg::merge(conditioned, null, weight);
        }
        conditioned
    }

    /// Most codes that the chunk's text may take.
    pub(super) fn frame_budget(&self, chunk: &Chunk) -> usize {
        self.guards.budget(chunk.text.text.chars().count())
    }

    /// The acceptance test of a chunk whose CB0 has ended.
    pub(super) fn judge(&self, chunk: &Chunk, stopped: bool) -> Verdict {
        let characters = chunk.text.text.chars().count();
        self.guards.judge(&Attempt { codes: &chunk.codes, stopped, characters })
    }
}

/// The number of known frames that lets more than `out` frames go out: one step of the codec's grid more, and two once the
/// listener has two. Each segment runs the acoustic rows of its chunk anew, so half as many are half of that work.
fn next_event(window: &window::Settings, out: usize) -> usize {
    let mut window = window.clone();
    if out >= 2 * window.grid_frames {
        window.grid_frames *= 2;
    }
    window.grid_event_after(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_grow_once_the_listener_has_sound_in_hand() {
        let window = window::Settings { first_frames: 10, ..window::Settings::default() };
        let after = |known: usize| next_event(&window, known - window.withheld_frames);
        assert_eq!([10, 30, 55, 105, 155].map(after), [30, 55, 105, 155, 205]);
        // A chunk may end anywhere; the next one goes on to the same places.
        assert_eq!([29, 31, 54, 56, 70, 104].map(after), [30, 55, 55, 105, 105, 105]);
    }
}
