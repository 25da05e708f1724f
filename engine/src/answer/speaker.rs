//! What all answers of one speech language model have in common: everything of its bundle but the network.

use std::ops::Range;
use std::sync::Arc;

use codecs::streaming::{Codec, OUTPUT_RATE};

use crate::batch::BLOCK_TOKENS;
use crate::bundle::speech::{Speech, SpeechManifest, SpeechVoice, Task, TextIds, check_rows};
use crate::hearing::Limits;
use crate::meter::Meter;
use crate::models::speech::{Family, Heard, SpeechLm};
use crate::turn;
use crate::voices::{NewVoice, VoiceError, Voices};

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
    pub(super) voices: Voices<SpeechVoice>,
    /// What is counted of its answers.
    pub(crate) meter: Arc<Meter>,
    /// What its network has heard.
    pub(crate) heard: Arc<Heard>,
    /// What recordings may be; none: it does not hear.
    pub(crate) hears: Option<Limits>,
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
            voices: Voices::new(voices),
            meter: Arc::default(),
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

    /// Frames of a voice that it reads, always as many; none: it speaks with its own voice only.
    pub(crate) fn voice_frames(&self) -> Option<usize> {
        let trained = [Task::SpeechWithVoice, Task::AudioDialogue, Task::TextDialogue];
        let takes = trained.iter().any(|task| self.manifest.tasks.contains_key(task));
        match &self.family {
            Family::OpusLm(ids) if takes && self.codec.is_some() => Some(ids.voice_frames),
            _ => None,
        }
    }

    /// Frames of codes in a second.
    pub(crate) fn frames_per_second(&self) -> f64 {
        self.codec.as_ref().map_or(0.0, |codec| codec.shape().frames_per_second())
    }

    /// Samples of the engine's sound in the frames of a voice, and in a window of features behind the last one.
    pub(crate) fn voice_samples(&self) -> Option<usize> {
        self.voice_frames().map(|frames| self.samples(frames + 2) as usize)
    }

    /// A voice for it of rows of codes: what it reads of them.
    ///
    /// # Errors
    /// What is wrong with the rows, in a sentence.
    pub(crate) fn new_voice(&self, mut rows: Vec<Vec<u16>>) -> Result<NewVoice, String> {
        let frames_max = self.voice_frames().unwrap_or(0);
        rows.iter_mut().for_each(|row| row.truncate(frames_max));
        check_rows(&rows, self.family.streams())?;
        let frames_per_second = self.frames_per_second();
        Ok(NewVoice {
            model: self.name().to_owned(),
            read_frames: vec![rows[0].len()],
            rows,
            seconds_max: frames_max as f64 / frames_per_second,
            frames_per_second,
        })
    }

    /// From now on it can be asked to speak with this voice.
    ///
    /// # Errors
    /// As [`Voices::add`].
    pub(crate) fn add_voice(&self, voice: SpeechVoice) -> Result<(), VoiceError> {
        self.voices.add(voice)
    }

    /// Whether there was such a voice; there is none now.
    pub(crate) fn remove_voice(&self, name: &str) -> bool {
        self.voices.remove(name)
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
