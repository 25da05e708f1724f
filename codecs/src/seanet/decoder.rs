//! Codes to samples, whole or piece by piece.

use super::layers::{Block, Conv, Shape, load_snake};
use super::lstm::{Lstm, LstmState};
use super::{Config, PREFIX, residual};
use crate::codebook::ResidualEntries;
use crate::codes::{CodeError, Piece};
use crate::conv::{ConvTranspose1d, Filter, Look, Sounds, TransposedShape};
use crate::math::Snake;
use crate::weights::{LoadError, Weights};

/// Frames of a whole sound that go through all layers together: what a piece makes stays in the cache.
const PIECE_FRAMES: usize = 16;

/// Turns codes into samples, which may lie beyond -1 and 1.
pub struct Decoder {
    codebooks: ResidualEntries,
    first: Conv,
    lstm: Lstm,
    stages: Vec<Stage>,
    last_snake: Snake,
    last: Conv,
}

struct Stage {
    snake: Snake,
    rise: ConvTranspose1d,
    blocks: Vec<Block>,
}

/// A stream's place in every layer. A copy is a snapshot of the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderState {
    first: Look,
    lstm: LstmState,
    stages: Vec<(Look, Vec<Look>)>,
    last: Look,
}

impl DecoderState {
    /// Number of values kept.
    pub fn values(&self) -> usize {
        let stage = |(rise, blocks): &(Look, Vec<Look>)| {
            rise.values() + blocks.iter().map(Look::values).sum::<usize>()
        };
        let stages = self.stages.iter().map(stage).sum::<usize>();
        self.first.values() + self.lstm.values() + stages + self.last.values()
    }
}

impl Decoder {
    /// Reads the weights.
    ///
    /// # Errors
    /// A tensor is missing or malformed.
    pub fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let model = format!("{PREFIX}.decoder.model");
        let mut width = config.encdec_n_filters << config.encdec_ratios.len();
        let first = Shape::plain(config.hidden_dim, width, config.encdec_kernel_size);
        let first = Conv::load(weights, &format!("{model}.0"), first)?;
        let lstm = Lstm::load(weights, &format!("{model}.1"), width, config.encdec_lstm)?;
        let (mut stages, mut next) = (Vec::new(), 2);
        for &rate in &config.encdec_ratios {
            stages.push(Stage::load(weights, &model, next, width, rate, config)?);
            width /= 2;
            next += 2 + config.encdec_n_residual_layers;
        }
        let last = Shape::plain(width, 1, config.encdec_last_kernel_size);
        Ok(Self {
            codebooks: ResidualEntries::load(weights, &residual(config))?,
            first,
            lstm,
            stages,
            last_snake: load_snake(weights, &format!("{model}.{next}"), width)?,
            last: Conv::load(weights, &format!("{model}.{}", next + 1), last)?,
        })
    }

    /// A stream at its beginning.
    pub fn state(&self) -> DecoderState {
        let stage =
            |s: &Stage| (Look::fresh(s.rise.inputs()), s.blocks.iter().map(Block::look).collect());
        DecoderState {
            first: self.first.look(),
            lstm: self.lstm.state(),
            stages: self.stages.iter().map(stage).collect(),
            last: self.last.look(),
        }
    }

    /// The next codes of a stream, `[codebooks][frames]`, the last ones where `ended`: the samples that are certain now. The
    /// state has not changed when they cannot be decoded.
    ///
    /// # Errors
    /// Rows that are too few or too many or of unequal lengths, or a code that is not in its codebook.
    pub fn step(
        &self,
        state: &mut DecoderState,
        codes: &[&[u16]],
        ended: bool,
    ) -> Result<Vec<f32>, CodeError> {
        Ok(self.step_each(vec![Piece { state, codes, ended }])?.remove(0))
    }

    /// [`Decoder::step`] of several streams: the samples of each, the same as alone, in less time.
    ///
    /// # Errors
    /// As [`Decoder::step`]; no stream has changed then.
    pub fn step_each(
        &self,
        pieces: Vec<Piece<'_, DecoderState>>,
    ) -> Result<Vec<Vec<f32>>, CodeError> {
        let latents = self.codebooks.sum_each(&pieces)?;
        let mut states: Vec<_> = pieces.into_iter().map(|piece| piece.state).collect();
        Ok(self.step_latents(&mut states, &latents))
    }

    /// Decodes a whole sound, `[codebooks][frames]` to 320 samples a frame at the release's rates.
    ///
    /// # Errors
    /// As [`Decoder::step`].
    pub fn decode(&self, codes: &[&[u16]]) -> Result<Vec<f32>, CodeError> {
        let latent = self.codebooks.sum(codes)?;
        let (mut state, mut samples) = (self.state(), Vec::new());
        for start in (0..latent.time()).step_by(PIECE_FRAMES) {
            let end = (start + PIECE_FRAMES).min(latent.time());
            let piece = Sounds::one(latent.slice(start..end), end == latent.time());
            samples.extend(self.step_latents(&mut [&mut state], &piece).remove(0));
        }
        Ok(samples)
    }

    fn step_latents(&self, states: &mut [&mut DecoderState], latents: &Sounds) -> Vec<Vec<f32>> {
        let mut x = self.first.step(states.iter_mut().map(|state| &mut state.first), latents);
        let mut remembered: Vec<_> = states.iter_mut().map(|state| &mut state.lstm).collect();
        x = self.lstm.step(&mut remembered, &x);
        for (i, stage) in self.stages.iter().enumerate() {
            stage.snake.apply(x.rows_mut().data_mut());
            x = stage.rise.rise_each(states.iter_mut().map(|state| &mut state.stages[i].0), &x);
            for (j, block) in stage.blocks.iter().enumerate() {
                x = block.step(states.iter_mut().map(|state| &mut state.stages[i].1[j]), &x);
            }
        }
        self.last_snake.apply(x.rows_mut().data_mut());
        let samples = self.last.step(states.iter_mut().map(|state| &mut state.last), &x);
        samples.each().map(|(samples, _)| samples.to_vec()).collect()
    }
}

impl Stage {
    /// The layers `MODEL.FIRST` and those after it.
    fn load(
        weights: &Weights,
        model: &str,
        first: usize,
        inputs: usize,
        rate: usize,
        config: &Config,
    ) -> Result<Self, LoadError> {
        let (kernel, outputs) = (2 * rate, inputs / 2);
        let name = format!("{model}.{}.convtr.convtr", first + 1);
        let filter = Filter::load(weights, &name, [inputs, outputs, kernel], outputs)?;
        let shape =
            TransposedShape { kernel, stride: rate, left: rate.div_ceil(2), right: rate / 2 };
        Ok(Self {
            snake: load_snake(weights, &format!("{model}.{first}"), inputs)?,
            rise: ConvTranspose1d::new(&filter, shape),
            blocks: Block::load_stage(weights, model, first + 2, outputs, config)?,
        })
    }
}
