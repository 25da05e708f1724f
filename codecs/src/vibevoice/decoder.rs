//! The causal decoder: latents to a waveform, whole or piece by piece.
//!
//! One path serves both: a whole sound is one piece from a fresh state.

use super::block::{Block, load_stage};
use super::config::{Config, Side};
use super::{EDGE_KERNEL, resample_kernel};
use crate::conv::{Conv1d, ConvShape, ConvState, ConvTranspose1d, Filter, TransposedShape};
use crate::frames::Frames;
use crate::weights::{LoadError, Weights};

/// Latents to waveform. Weights only: what a stream remembers is its [`DecoderState`].
pub struct Decoder {
    stem: Conv1d,
    stem_blocks: Vec<Block>,
    stages: Vec<Stage>,
    head: Conv1d,
}

struct Stage {
    up: ConvTranspose1d,
    blocks: Vec<Block>,
}

/// What one stream remembers: the last inputs of every layer that looks back. Its size never changes, and a copy is
/// a snapshot from which the stream can go on twice.
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderState {
    layers: Vec<ConvState>,
}

impl DecoderState {
    /// Number of values kept.
    pub fn values(&self) -> usize {
        self.layers.iter().map(ConvState::values).sum()
    }
}

impl Decoder {
    /// Reads the tensors whose names begin with `decoder.`.
    ///
    /// # Errors
    /// A tensor is missing or malformed.
    pub fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let Side { widths, ratios, depths } = &config.decoder;
        let edge = |name: &str, out, input| {
            let filter = Filter::plain(weights, name, [out, input, EDGE_KERNEL], out)?;
            Ok::<_, LoadError>(Conv1d::new(&filter, ConvShape::causal(EDGE_KERNEL, 1, 1)))
        };
        let blocks = |i: usize| {
            let name = format!("decoder.stages.{i}");
            load_stage(weights, &name, depths[i], widths[i], config.norm_eps)
        };
        let mut stages = Vec::with_capacity(ratios.len());
        for (i, &stride) in ratios.iter().enumerate().map(|(i, s)| (i + 1, s)) {
            let kernel = resample_kernel(stride);
            let name = format!("decoder.upsample_layers.{i}.0.convtr.convtr");
            let shape = [widths[i - 1], widths[i], kernel];
            let filter = Filter::plain(weights, &name, shape, widths[i])?;
            let up = ConvTranspose1d::new(&filter, TransposedShape::causal(kernel, stride));
            stages.push(Stage { up, blocks: blocks(i)? });
        }
        let stem = "decoder.upsample_layers.0.0.conv.conv";
        Ok(Self {
            stem: edge(stem, widths[0], config.latent_width)?,
            stem_blocks: blocks(0)?,
            stages,
            head: edge("decoder.head.conv.conv", 1, widths[widths.len() - 1])?,
        })
    }

    /// State of a fresh stream.
    pub fn state(&self) -> DecoderState {
        let stem = std::iter::once(self.stem.state());
        let stem_blocks = self.stem_blocks.iter().map(Block::state);
        let stages = self.stages.iter().flat_map(|stage| {
            std::iter::once(stage.up.state()).chain(stage.blocks.iter().map(Block::state))
        });
        let head = std::iter::once(self.head.state());
        DecoderState { layers: stem.chain(stem_blocks).chain(stages).chain(head).collect() }
    }

    /// The next piece of a stream: `[latents, width]`, at least none, to 3,200 samples a latent at 24 kHz, not
    /// clipped. Pieces of any lengths give what the whole gives.
    ///
    /// # Panics
    /// When `state` belongs to another model: a caller's bug.
    pub fn step(&self, state: &mut DecoderState, latents: &Frames) -> Vec<f32> {
        let mut states = state.layers.iter_mut();
        let mut next = || states.next().expect("one state for each layer; this is a bug");
        let mut x = self.stem.step(next(), latents);
        for block in &self.stem_blocks {
            block.step(next(), &mut x);
        }
        for stage in &self.stages {
            x = stage.up.step(next(), &x);
            for block in &stage.blocks {
                block.step(next(), &mut x);
            }
        }
        self.head.step(next(), &x).into_data()
    }

    /// A whole sound: [`Decoder::step`] from a fresh state.
    pub fn decode(&self, latents: &Frames) -> Vec<f32> {
        self.step(&mut self.state(), latents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vibevoice::testing::{assert_golden, golden, tokenizer};

    #[test]
    fn every_stage_matches_the_reference() {
        let decoder = tokenizer().decoder;
        let latents = Frames::new(golden("latents", &[1, 7, 8]), 8);
        let mut x = decoder.stem.forward(&latents);
        decoder.stem_blocks.iter().for_each(|b| b.step(&mut b.state(), &mut x));
        assert_golden("decoder_stage_0", &x);
        for (i, stage) in decoder.stages.iter().enumerate().take(3) {
            x = stage.up.forward(&x);
            stage.blocks.iter().for_each(|b| b.step(&mut b.state(), &mut x));
            assert_golden(&format!("decoder_stage_{}", i + 1), &x);
        }
    }
}
