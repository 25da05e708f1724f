//! The nano codec: rows of codes at 12.5 Hz to a 24 kHz waveform, by a small network and a harmonic-plus-noise
//! synthesiser.
//!
//! ```text
//! codes [rows][frames] -> network -> parameters [4 x frames, 53] -> pulses and noise, shaped every 10 ms -> samples
//! ```
//!
//! A sample depends on the code frames within [`Nano::reach_frames`] on either side of its own, on the phase of the
//! pulses, which [`NanoStream`] carries, and on the noise of its place, which a counter tells. So a passage decoded in
//! windows with that much context is the passage decoded whole. It knows nothing of when windows are due.

mod bands;
mod config;
mod elementary;
mod network;
mod noise;
mod pulses;
mod synthesis;

use std::path::Path;

use crate::codes::CodeError;
use crate::weights::{LoadError, Weights};
use crate::window::Window;
use config::Config;
use network::Network;
use noise::NoiseKey;
use synthesis::{Noise, Stretch, Synthesizer};

/// Frames that [`Nano::decode`] renders at a time: its buffers stay small, however long the passage is.
const DECODE_FRAMES: usize = 50;

/// The decoder. It holds weights and tables only; threads may share it.
pub struct Nano {
    network: Network,
    synthesizer: Synthesizer,
    codebooks: Vec<usize>,
    reach_frames: usize,
}

/// What one context carries from window to window.
#[derive(Debug, Clone, PartialEq)]
pub struct NanoStream {
    key: NoiseKey,
    /// Frames of passages that are closed.
    frames_before: u64,
    /// Phase of the pulses where the next window begins, in turns.
    phase: f64,
}

impl NanoStream {
    /// The start of a context; the same seed gives the same noise.
    pub fn new(seed: u64) -> Self {
        Self { key: NoiseKey::new(seed), frames_before: 0, phase: 0.0 }
    }

    /// Closes a passage of so many frames: the next frame is frame 0 of a new one, without left context, and the
    /// noise goes on.
    pub fn close_passage(&mut self, frames: usize) {
        self.frames_before += frames as u64;
        self.phase = 0.0;
    }
}

impl Nano {
    /// Loads a codec folder: `config.json` and `model.safetensors`. The gain is the bundle's `output_gain`.
    ///
    /// # Errors
    /// A file, field or tensor that is missing, malformed or contradicts another.
    pub fn load(folder: &Path, output_gain: f32) -> Result<Self, LoadError> {
        let config = Config::read(&folder.join("config.json"))?;
        let weights = Weights::open(&folder.join("model.safetensors"))?;
        Ok(Self {
            network: Network::load(&weights, &config)?,
            synthesizer: Synthesizer::new(&config, output_gain),
            codebooks: config.codebooks(),
            reach_frames: config.reach_frames(),
        })
    }

    /// The same codec for codes of the first `rows` rows only: the others add nothing, and the voice is coarser.
    #[must_use]
    pub fn with_rows(mut self, rows: usize) -> Self {
        self.codebooks.truncate(rows);
        self.network.keep_rows(rows);
        self
    }

    /// Entries of each row's codebook, the semantic row first.
    pub fn codebooks(&self) -> &[usize] {
        &self.codebooks
    }

    /// Frames on either side that a sample depends on: fewer withheld frames or less context change the sound.
    pub fn reach_frames(&self) -> usize {
        self.reach_frames
    }

    /// The samples of the frames that `window` emits; `rows` are the codes of the frames that it decodes,
    /// `[rows][window.decode.len()]`.
    ///
    /// Windows of a passage follow one another without gaps. With `reach_frames` on both sides, except at the ends of
    /// the passage, the samples are those of [`Nano::decode`], to the bit.
    ///
    /// # Errors
    /// See [`CodeError`].
    pub fn window(
        &self,
        stream: &mut NanoStream,
        rows: &[impl AsRef<[u16]>],
        window: &Window,
    ) -> Result<Vec<f32>, CodeError> {
        let noise = Noise { key: stream.key, frames_before: stream.frames_before };
        self.render(&mut stream.phase, Some(noise), rows, window)
    }

    /// A whole passage, `[rows][frames]` to 1,920 samples a frame.
    ///
    /// # Errors
    /// See [`CodeError`].
    pub fn decode(&self, rows: &[impl AsRef<[u16]>], seed: u64) -> Result<Vec<f32>, CodeError> {
        let noise = Noise { key: NoiseKey::new(seed), frames_before: 0 };
        self.decode_with(rows, Some(noise))
    }

    fn decode_with(
        &self,
        rows: &[impl AsRef<[u16]>],
        noise: Option<Noise>,
    ) -> Result<Vec<f32>, CodeError> {
        let frames = rows.first().map_or(0, |row| row.as_ref().len());
        let (mut phase, mut samples) = (0.0, Vec::new());
        for start in (0..frames).step_by(DECODE_FRAMES) {
            let emit = start..(start + DECODE_FRAMES).min(frames);
            let window = Window { decode: 0..frames, emit };
            samples.extend(self.render(&mut phase, noise, rows, &window)?);
        }
        Ok(samples)
    }

    fn render(
        &self,
        phase: &mut f64,
        noise: Option<Noise>,
        rows: &[impl AsRef<[u16]>],
        window: &Window,
    ) -> Result<Vec<f32>, CodeError> {
        let Window { decode, emit } = window;
        let needed = emit.start.saturating_sub(self.reach_frames).max(decode.start)
            ..(emit.end + self.reach_frames).min(decode.end);
        let mut cut = Vec::with_capacity(rows.len());
        for (row, codes) in rows.iter().enumerate() {
            let (codes, expected) = (codes.as_ref(), decode.len());
            if codes.len() != expected {
                return Err(CodeError::Length { row, found: codes.len(), expected });
            }
            cut.push(&codes[needed.start - decode.start..needed.end - decode.start]);
        }
        let parameters = self.network.parameters(&cut)?;
        let stretch = Stretch { first_frame: needed.start, parameters: &parameters };
        Ok(self.synthesizer.render(&stretch, emit.clone(), phase, noise))
    }
}

#[cfg(test)]
mod tests;
