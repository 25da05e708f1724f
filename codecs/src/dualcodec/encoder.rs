//! Waveform and semantic features to codes.

use super::Config;
use super::convnext::ConvNextBlock;
use super::dac::{ResidualUnits, tile_steps, tiles};
use super::decoder::{
    SEMANTIC_NAME, SemanticDecoder, acoustic_name, acoustic_shape, semantic_shape,
};
use crate::codebook::{Codebook, CodebookSearch};
use crate::conv::{Conv1d, ConvShape, Filter, Linear};
use crate::dac::{load_conv, load_snake};
use crate::frames::Frames;
use crate::math::Snake;
use crate::weights::{LoadError, Weights};

/// Turns a waveform at 24 kHz and the semantic features of the same sound into rows of codes.
///
/// Holds no state of any sound. At the release's sizes a call needs about 0.2 MB for each frame of sound while it runs.
pub struct Encoder {
    semantic: SemanticEncoder,
    semantic_decoder: SemanticDecoder,
    acoustic: Vec<(CodebookSearch, Codebook)>,
    first: Conv1d,
    stages: Vec<Stage>,
    last_snake: Snake,
    last: Conv1d,
    frame_samples: usize,
}

impl Encoder {
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
        let acoustic = (0..acoustic_rows).map(|i| {
            let (name, shape) = (acoustic_name(i), acoustic_shape(config));
            Ok((
                CodebookSearch::load(weights, &name, shape)?,
                Codebook::load(weights, &name, shape)?,
            ))
        });
        let name = |i: usize| format!("dac.encoder.block.{i}");
        let mut width = config.encoder_dim;
        let first = load_conv(weights, &name(0), [width, 1], ConvShape::centred(7, 1))?;
        let mut stages = Vec::with_capacity(config.encoder_rates.len());
        for (i, &rate) in config.encoder_rates.iter().enumerate() {
            stages.push(Stage::load(weights, &name(i + 1), width, rate)?);
            width *= 2;
        }
        let last = stages.len() + 1;
        let square = [config.latent_dim, width];
        Ok(Self {
            semantic: SemanticEncoder::load(weights, config)?,
            semantic_decoder: SemanticDecoder::load(weights, config)?,
            acoustic: acoustic.collect::<Result<_, LoadError>>()?,
            first,
            stages,
            last_snake: load_snake(weights, &name(last), width)?,
            last: load_conv(weights, &name(last + 1), square, ConvShape::centred(3, 1))?,
            frame_samples: config.frame_samples(),
        })
    }

    /// Rows that [`Encoder::encode`] makes, the semantic one included.
    pub fn rows(&self) -> usize {
        1 + self.acoustic.len()
    }

    /// Encodes one sound: samples within -1 and 1, and semantic features `[frames, semantic_input_dim]` at the code rate.
    /// Gives `[rows][frames]`, where the shorter of the two inputs decides the number of frames.
    pub fn encode(&self, samples: &[f32], features: &Frames) -> Vec<Vec<u16>> {
        let mut acoustic = self.acoustic_latent(samples);
        let frames = acoustic.time().min(features.time());
        acoustic.truncate(frames);
        let semantic_codes = self.semantic.encode(&features.slice(0..frames));
        let semantic = self
            .semantic_decoder
            .decode(&semantic_codes)
            .expect("found codes exist; this is a bug");
        let mut residual = acoustic;
        residual.subtract(&semantic);
        let mut rows = vec![semantic_codes];
        for (i, (search, codebook)) in self.acoustic.iter().enumerate() {
            let codes = search.search(&residual);
            let vectors = codebook.lookup(&codes, i + 1).expect("found codes exist; this is a bug");
            residual.subtract(&vectors);
            rows.push(codes);
        }
        rows
    }

    /// Output of the DAC encoder, `[frames, latent]`, of the samples padded with zeros to whole frames.
    pub fn acoustic_latent(&self, samples: &[f32]) -> Frames {
        let whole = samples.len().next_multiple_of(self.frame_samples);
        let samples = Frames::new(samples.to_vec(), 1);
        let (first, stages) = self.stages.split_first().expect("a rate at least; this is a bug");
        // The first layer runs inside the first stage's tiles: at 24 kHz its whole output would be the largest matrix of all.
        let mut x = first.forward(whole, |range| {
            let (start, end) = (range.start as isize - 3, range.end as isize + 3);
            self.first.forward_padded(&samples.window(start, end), 0, 0)
        });
        for stage in stages {
            x = stage.forward(x.time(), |range| x.slice(range));
        }
        self.last_snake.apply(x.data_mut());
        self.last.forward(&x)
    }
}

/// Semantic features to codes of row 0.
struct SemanticEncoder {
    narrow: Linear,
    blocks: Vec<ConvNextBlock>,
    search: CodebookSearch,
}

impl SemanticEncoder {
    fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let (width, input) = (config.convnext_dim, config.semantic_input_dim);
        let name = |i: usize| format!("convnext_encoder.{i}");
        let hidden = config.convnext_intermediate_dim;
        let blocks = (1..=config.convnext_layers)
            .map(|i| ConvNextBlock::load(weights, &name(i), width, hidden));
        let filter = Filter::weight_norm(weights, &name(0), [width, input, 1], width)?;
        Ok(Self {
            narrow: Linear::new(&filter),
            blocks: blocks.collect::<Result<_, _>>()?,
            search: CodebookSearch::load(weights, SEMANTIC_NAME, semantic_shape(config))?,
        })
    }

    fn encode(&self, features: &Frames) -> Vec<u16> {
        let mut x = self.narrow.forward(features);
        for block in &self.blocks {
            block.apply(&mut x);
        }
        self.search.search(&x)
    }
}

/// One fall of the rate: residual units, snake, strided convolution.
struct Stage {
    units: ResidualUnits,
    snake: Snake,
    fall: Conv1d,
    shape: ConvShape,
}

impl Stage {
    fn load(weights: &Weights, name: &str, width: usize, rate: usize) -> Result<Self, LoadError> {
        let (kernel, side) = (2 * rate, rate.div_ceil(2));
        let shape = ConvShape { kernel, stride: rate, dilation: 1, left: side, right: side };
        Ok(Self {
            units: ResidualUnits::load(weights, name, 0, width)?,
            snake: load_snake(weights, &format!("{name}.block.3"), width)?,
            fall: load_conv(weights, &format!("{name}.block.4"), [2 * width, width], shape)?,
            shape,
        })
    }

    /// `input` makes rows `[range, width]` of a sound of `total` steps; gives `[steps, 2 * width]`.
    fn forward(&self, total: usize, input: impl Fn(std::ops::Range<usize>) -> Frames) -> Frames {
        let ConvShape { kernel, stride, left, .. } = self.shape;
        let (steps, channels) = (self.shape.steps(total), self.fall.outputs());
        let mut data = Vec::with_capacity(steps * channels);
        for tile in tiles(steps, tile_steps(self.units.channels()).div_ceil(stride)) {
            // Steps of the units' output that the tile sees, as if zeros went on before its start and after its end.
            let start = (tile.start * stride) as isize - left as isize;
            let end = ((tile.end - 1) * stride + kernel) as isize - left as isize;
            let real = start.max(0) as usize..end.min(total as isize) as usize;
            let offset = real.start as isize;
            let mut seen =
                self.units.forward(total, real, &input).window(start - offset, end - offset);
            self.snake.apply(seen.data_mut());
            data.extend(self.fall.forward_padded(&seen, 0, 0).into_data());
        }
        Frames::new(data, channels)
    }
}
