//! What all answers of one speech language model have in common: everything of its bundle but the network.

use std::ops::Range;
use std::sync::Arc;

use codecs::streaming::{Codec, OUTPUT_RATE};

use crate::batch::BLOCK_TOKENS;
use crate::bundle::speech::{Speech, SpeechManifest, SpeechVoice, TextIds};
use crate::hearing::Limits;
use crate::models::speech::{Family, Heard, SpeechLm};
use crate::turn;

/// A speech language model without its network.
pub(crate) struct Speaker {
    /// What it says of itself.
    pub(super) manifest: SpeechManifest,
    /// Its symbols and streams.
    pub(super) family: Family,
    /// What its turns have in common.
    pub(super) turns: Arc<turn::Model>,
    /// Its tokenizer.
    pub(super) text: Arc<TextIds>,
    /// Codes to sound; none: it only writes.
    pub(super) codec: Option<Arc<Codec>>,
    /// The streams that the codec reads.
    pub(super) sounding: Range<usize>,
    /// Its voices.
    pub(super) voices: Vec<SpeechVoice>,
    /// What its network has heard.
    pub(crate) heard: Arc<Heard>,
    /// What recordings may be; none: it does not hear.
    pub(super) hears: Option<Limits>,
    /// The engine's stage that runs it.
    pub(super) stage: usize,
    /// Places that a row can have.
    positions: usize,
    /// Key/value blocks for all members of a group.
    blocks: usize,
}

/// What a speech language model will run on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Home {
    /// The engine's stage.
    pub(crate) stage: usize,
    /// Its key/value blocks.
    pub(crate) blocks: usize,
}

impl Speaker {
    /// Takes a loaded model apart.
    pub(crate) fn of(speech: Speech, home: Home) -> (SpeechLm, Self) {
        let Speech { manifest, config, network, model, text, codec, sounding, voices } = speech;
        let speaker = Self {
            manifest,
            positions: config.backbone.max_positions,
            family: config.family,
            turns: model,
            text,
            codec,
            sounding,
            voices,
            heard: network.heard(),
            hears: None,
            stage: home.stage,
            blocks: home.blocks,
        };
        (network, speaker)
    }

    /// It hears what is within limits.
    pub(crate) fn hears(&mut self, limits: Limits) {
        self.hears = Some(limits);
    }

    /// What requests call it.
    pub(crate) fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Most rows that each of so many members of a group can have.
    pub(super) fn rows_max(&self, members: usize) -> usize {
        self.positions.min(self.blocks / members * BLOCK_TOKENS)
    }

    /// Samples of the engine's sound in so many frames.
    pub(super) fn samples(&self, frames: usize) -> u64 {
        let Some(codec) = &self.codec else { return 0 };
        let shape = codec.shape();
        let own = frames as u64 * shape.frame_samples as u64;
        (own * u64::from(OUTPUT_RATE)).div_ceil(u64::from(shape.sample_rate))
    }

    /// Frames of a sound that is not over which cannot be heard yet.
    pub(super) fn look_ahead(&self) -> usize {
        self.codec.as_ref().map_or(0, |codec| codec.shape().kind.look_ahead_frames())
    }
}
