//! Samples to codes.

use super::hubert::Hubert;
use super::{Config, residual};
use crate::codebook::ResidualSearch;
use crate::conv::{Conv1d, ConvShape, Filter, Linear};
use crate::dac::Analysis;
use crate::frames::Frames;
use crate::math::elu;
use crate::weights::{LoadError, Weights};

/// Silence on both sides of what HuBERT hears.
const SIDE_SAMPLES: usize = 160;

/// Encodes whole clips: HuBERT attends to all of one, and its first norm is over all of it.
pub struct Encoder {
    hubert: Hubert,
    semantic: SemanticEncoder,
    acoustic: Analysis,
    join: Linear,
    codebooks: ResidualSearch,
}

impl Encoder {
    /// Reads the weights.
    ///
    /// # Errors
    /// A tensor is missing or malformed.
    pub fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let wide = config.codebook_dim;
        Ok(Self {
            hubert: Hubert::load(weights, "semantic_model", config.semantic())?,
            semantic: SemanticEncoder::load(weights, config)?,
            acoustic: Analysis::load(weights, "acoustic_encoder", &config.analysis())?,
            join: Linear::new(&Filter::matrix(weights, "fc", [wide, wide], true)?),
            codebooks: ResidualSearch::load(weights, &residual(config))?,
        })
    }

    /// Encodes a clip at 16 kHz to `[codebooks][frames]`; one too short for a frame gives none.
    pub fn encode(&self, samples: &[f32]) -> Vec<Vec<u16>> {
        self.codebooks.encode(self.vectors(samples))
    }

    /// What the codebooks code, `[frames, codebook width]`.
    pub fn vectors(&self, samples: &[f32]) -> Frames {
        let samples = Frames::new(samples.to_vec(), 1);
        let padded = samples.padded(SIDE_SAMPLES, SIDE_SAMPLES);
        let semantic = self.semantic.forward(self.hubert.mean_state(&padded));
        // The acoustic side is padded only where its frames would not be as many as the semantic ones.
        let same = self.acoustic.frames(samples.time()) == semantic.time();
        let acoustic = self.acoustic.forward(if same { &samples } else { &padded });
        let rows = acoustic.rows().zip(semantic.rows()).flat_map(|(a, s)| a.iter().chain(s));
        self.join.forward(&Frames::new(rows.copied().collect(), self.join.inputs()))
    }
}

/// `conv`, then blocks of two units `x + conv1(elu(conv(elu(x))))` and a convolution.
struct SemanticEncoder {
    first: Conv1d,
    blocks: Vec<([Unit; 2], Conv1d)>,
}

struct Unit {
    spread: Conv1d,
    mix: Conv1d,
}

impl SemanticEncoder {
    fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let width = config.semantic().hidden_size;
        let conv = |name: &str, kernel: usize, dilation: usize, bias: bool| {
            let name = format!("encoder_semantic.{name}");
            let bias = if bias { width } else { 0 };
            let filter = Filter::load(weights, &name, [width, width, kernel], bias)?;
            Ok::<_, LoadError>(Conv1d::new(&filter, ConvShape::centred(kernel, dilation)))
        };
        let unit = |block: usize, unit: usize| {
            let name = format!("conv_blocks.{block}.res_units.{unit}");
            let (kernel, dilation) = (config.unit_kernel_size, config.block_dilations[unit]);
            Ok::<_, LoadError>(Unit {
                spread: conv(&format!("{name}.conv1"), kernel, dilation, false)?,
                mix: conv(&format!("{name}.conv2"), 1, 1, false)?,
            })
        };
        let kernel = config.kernel_size;
        let block = |i: usize| {
            let last = conv(&format!("conv_blocks.{i}.conv"), kernel, 1, true)?;
            Ok(([unit(i, 0)?, unit(i, 1)?], last))
        };
        Ok(Self {
            first: conv("conv", kernel, 1, false)?,
            blocks: (0..config.channel_ratios.len())
                .map(block)
                .collect::<Result<_, LoadError>>()?,
        })
    }

    fn forward(&self, states: Frames) -> Frames {
        let mut x = self.first.forward(&states);
        for (units, last) in &self.blocks {
            for unit in units {
                let mut inner = x.clone();
                elu(inner.data_mut());
                let mut inner = unit.spread.forward(&inner);
                elu(inner.data_mut());
                unit.mix.add_to(&inner, &mut x);
            }
            x = last.forward(&x);
        }
        x
    }
}
