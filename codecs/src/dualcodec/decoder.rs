//! Codes to waveform.

use std::ops::Range;

use super::Config;
use super::convnext::ConvNextBlock;
use super::dac::{ResidualUnits, tile_steps, tiles};
use crate::codebook::{Codebook, CodebookShape};
use crate::codes::CodeError;
use crate::conv::{Conv1d, ConvShape, ConvTranspose1d, Filter, Linear, TransposedShape};
use crate::dac::{load_conv, load_snake};
use crate::frames::Frames;
use crate::math::{Snake, tanh_all};
use crate::weights::{LoadError, Weights};

/// Taps of the first and the last layer, and the steps that they look to either side.
const KERNEL: usize = 7;
const SIDE: usize = KERNEL / 2;

/// Turns rows of codes into samples at 24 kHz.
///
/// Holds no state of any sound, so threads may share one. At the release's sizes it is 217 MB of weights with three
/// acoustic rows, and a call needs 0.3 MB for each frame of its window while it runs.
pub struct Decoder {
    semantic: SemanticDecoder,
    acoustic: Vec<Codebook>,
    first: Conv1d,
    stages: Vec<Stage>,
    last_snake: Snake,
    last: Conv1d,
}

impl Decoder {
    /// Loads the semantic row and the first `acoustic_rows` acoustic ones.
    ///
    /// # Errors
    /// A tensor is missing or malformed, or the file has fewer acoustic rows.
    pub fn load(
        weights: &Weights,
        config: &Config,
        acoustic_rows: usize,
    ) -> Result<Self, LoadError> {
        config.check_in(weights.file())?;
        let acoustic = (0..acoustic_rows)
            .map(|i| Codebook::load(weights, &acoustic_name(i), acoustic_shape(config)));
        let (latent, mut width) = (config.latent_dim, config.decoder_dim);
        let name = |i: usize| format!("dac.decoder.model.{i}");
        let first = load_conv(weights, &name(0), [width, latent], ConvShape::centred(KERNEL, 1))?;
        let mut stages = Vec::with_capacity(config.decoder_rates.len());
        for (i, &rate) in config.decoder_rates.iter().enumerate() {
            stages.push(Stage::load(weights, &name(i + 1), width, rate)?);
            width /= 2;
        }
        let last = stages.len() + 1;
        Ok(Self {
            semantic: SemanticDecoder::load(weights, config)?,
            acoustic: acoustic.collect::<Result<_, _>>()?,
            first,
            stages,
            last_snake: load_snake(weights, &name(last), width)?,
            last: load_conv(weights, &name(last + 1), [1, width], ConvShape::centred(KERNEL, 1))?,
        })
    }

    /// Rows that can be decoded, the semantic one included.
    pub fn rows(&self) -> usize {
        1 + self.acoustic.len()
    }

    /// Samples that `frames` frames of codes give. The release crops unevenly, so this is 1,920 a frame less 4.
    pub fn samples(&self, frames: usize) -> usize {
        self.stages.iter().fold(frames, |steps, stage| stage.rise.steps(steps))
    }

    /// Decodes rows of codes, the semantic one first: `[rows][frames]` to [`Decoder::samples`] samples within -1 and 1.
    ///
    /// # Errors
    /// The rows are none, too many, or of unequal lengths, or a code is not in its codebook.
    pub fn decode(&self, rows: &[impl AsRef<[u16]>]) -> Result<Vec<f32>, CodeError> {
        let mut x = self.first.forward(&self.latent(rows)?);
        let (last, stages) = self.stages.split_last().expect("a rate at least; this is a bug");
        for stage in stages {
            x = stage.forward(&x);
        }
        Ok(self.finish(&x, last))
    }

    /// The sum of semantic and acoustic latents, `[frames, latent]`: what the DAC decoder is given.
    ///
    /// # Errors
    /// As [`Decoder::decode`].
    pub fn latent(&self, rows: &[impl AsRef<[u16]>]) -> Result<Frames, CodeError> {
        let (Some((semantic, acoustic)), true) = (rows.split_first(), rows.len() <= self.rows())
        else {
            return Err(CodeError::Rows { found: rows.len(), expected: self.rows() });
        };
        let semantic = semantic.as_ref();
        let mut sum = self.semantic.decode(semantic)?;
        for (i, (codes, codebook)) in acoustic.iter().zip(&self.acoustic).enumerate() {
            let (row, codes) = (i + 1, codes.as_ref());
            if codes.len() != semantic.len() {
                let (found, expected) = (codes.len(), semantic.len());
                return Err(CodeError::Length { row, found, expected });
            }
            sum.add(&codebook.lookup(codes, row)?);
        }
        Ok(sum)
    }

    /// The last stage and the output layer in one: at 24 kHz the stage's whole output would be the largest matrix of all.
    fn finish(&self, x: &Frames, stage: &Stage) -> Vec<f32> {
        let total = stage.rise.steps(x.time());
        let mut samples = Vec::with_capacity(total);
        for tile in tiles(total, tile_steps(stage.units.channels())) {
            let (start, end) = (tile.start.saturating_sub(SIDE), (tile.end + SIDE).min(total));
            let seen = stage.forward_range(x, total, start..end);
            let first = tile.start as isize - (start + SIDE) as isize;
            let mut seen = seen.window(first, first + (tile.len() + 2 * SIDE) as isize);
            self.last_snake.apply(seen.data_mut());
            samples.extend(self.last.forward_padded(&seen, 0, 0).into_data());
        }
        tanh_all(&mut samples);
        samples
    }
}

/// Codes of row 0 to their share of the latent.
pub(super) struct SemanticDecoder {
    codebook: Codebook,
    blocks: Vec<ConvNextBlock>,
    widen: Linear,
}

impl SemanticDecoder {
    pub(super) fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let (width, latent) = (config.convnext_dim, config.latent_dim);
        let name = |i: usize| format!("convnext_decoder.{i}");
        let hidden = config.convnext_intermediate_dim;
        let blocks = (0..config.convnext_layers)
            .map(|i| ConvNextBlock::load(weights, &name(i), width, hidden));
        let last = name(config.convnext_layers);
        Ok(Self {
            codebook: Codebook::load(weights, SEMANTIC_NAME, semantic_shape(config))?,
            blocks: blocks.collect::<Result<_, _>>()?,
            widen: Linear::new(&Filter::weight_norm(weights, &last, [latent, width, 1], latent)?),
        })
    }

    /// `[frames]` to `[frames, latent]`.
    pub(super) fn decode(&self, codes: &[u16]) -> Result<Frames, CodeError> {
        let mut x = self.codebook.lookup(codes, 0)?;
        for block in &self.blocks {
            block.apply(&mut x);
        }
        Ok(self.widen.forward(&x))
    }
}

pub(super) const SEMANTIC_NAME: &str = "semantic_vq.quantizers.0";

pub(super) fn acoustic_name(row: usize) -> String {
    format!("dac.quantizer.quantizers.{row}")
}

pub(super) fn semantic_shape(config: &Config) -> CodebookShape {
    CodebookShape {
        entries: config.semantic_codebook_size,
        width: config.semantic_codebook_dim,
        latent: config.convnext_dim,
    }
}

pub(super) fn acoustic_shape(config: &Config) -> CodebookShape {
    CodebookShape {
        entries: config.codebook_size,
        width: config.codebook_dim,
        latent: config.latent_dim,
    }
}

/// One rise of the rate: snake, transposed convolution, residual units.
struct Stage {
    snake: Snake,
    rise: ConvTranspose1d,
    units: ResidualUnits,
}

impl Stage {
    fn load(weights: &Weights, name: &str, width: usize, rate: usize) -> Result<Self, LoadError> {
        let part = |i: usize| format!("{name}.block.{i}");
        let (kernel, cut) = (2 * rate, rate.div_ceil(2));
        let shape = TransposedShape { kernel, stride: rate, left: cut, right: cut };
        let out = width / 2;
        let filter = Filter::weight_norm(weights, &part(1), [width, out, kernel], out)?;
        Ok(Self {
            snake: load_snake(weights, &part(0), width)?,
            rise: ConvTranspose1d::new(&filter, shape),
            units: ResidualUnits::load(weights, name, 2, out)?,
        })
    }

    /// `[time, width]` to `[steps, width / 2]`.
    fn forward(&self, x: &Frames) -> Frames {
        let (steps, channels) = (self.rise.steps(x.time()), self.units.channels());
        let mut data = Vec::with_capacity(steps * channels);
        for tile in tiles(steps, tile_steps(channels)) {
            data.extend(self.forward_range(x, steps, tile).into_data());
        }
        Frames::new(data, channels)
    }

    /// The steps `range` of the stage's `total` output steps.
    fn forward_range(&self, x: &Frames, total: usize, range: Range<usize>) -> Frames {
        self.units.forward(total, range, |needed| {
            self.rise.forward_range_of(needed, |start, end| {
                let mut window = x.window(start, end);
                self.snake.apply(window.data_mut());
                window
            })
        })
    }
}
