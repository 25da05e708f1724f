//! The encoder: a waveform to latents, each of which hears only what lies before its end.

use super::block::{Block, load_stage};
use super::config::{Config, Side};
use super::{EDGE_KERNEL, resample_kernel};
use crate::conv::{Conv1d, ConvShape, Filter};
use crate::frames::Frames;
use crate::weights::{LoadError, Weights};

/// Waveform to latents. Weights only: any number of sounds may be encoded at the same time.
pub struct Encoder {
    stages: Vec<Stage>,
    head: Conv1d,
}

struct Stage {
    down: Conv1d,
    shape: ConvShape,
    blocks: Vec<Block>,
}

impl Encoder {
    /// Reads the tensors whose names begin with `encoder.`.
    ///
    /// # Errors
    /// A tensor is missing or malformed.
    pub fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let Side { widths, ratios, depths } = &config.encoder;
        let mut stages = Vec::with_capacity(widths.len());
        for (i, (&width, &depth)) in widths.iter().zip(depths).enumerate() {
            let (input, stride) = if i == 0 { (1, 1) } else { (widths[i - 1], ratios[i - 1]) };
            let kernel = if i == 0 { EDGE_KERNEL } else { resample_kernel(stride) };
            let name = format!("encoder.downsample_layers.{i}.0.conv.conv");
            let filter = Filter::plain(weights, &name, [width, input, kernel], width)?;
            let blocks =
                load_stage(weights, &format!("encoder.stages.{i}"), depth, width, config.norm_eps)?;
            let shape = ConvShape::causal(kernel, stride, 1);
            stages.push(Stage { down: Conv1d::new(&filter, shape), shape, blocks });
        }
        let (latent, last) = (config.latent_width, widths[widths.len() - 1]);
        let shape = [latent, last, EDGE_KERNEL];
        let head = Filter::plain(weights, "encoder.head.conv.conv", shape, latent)?;
        Ok(Self { stages, head: Conv1d::new(&head, ConvShape::causal(EDGE_KERNEL, 1, 1)) })
    }

    /// The latents of a sound at 24 kHz: `ceil(samples / 3200)` rows of the latent width, the means of the
    /// distributions. A last latent that the samples do not fill hears zeros after them.
    pub fn encode(&self, samples: &[f32]) -> Frames {
        let sound = Frames::new(samples.to_vec(), 1);
        let features = self.stages.iter().fold(sound, |x, stage| stage.forward(&x));
        self.head.forward(&features)
    }
}

impl Stage {
    fn forward(&self, input: &Frames) -> Frames {
        let right = input.time().next_multiple_of(self.shape.stride) - input.time();
        let mut x = self.down.forward_padded(input, self.shape.left, right);
        for block in &self.blocks {
            block.step(&mut block.state(), &mut x);
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vibevoice::testing::{assert_golden, golden, tokenizer};

    #[test]
    fn every_stage_matches_the_reference() {
        let encoder = tokenizer().encoder;
        let mut x = Frames::new(golden("audio", &[1, 1, 22_400]), 1);
        for (i, stage) in encoder.stages.iter().enumerate() {
            x = stage.forward(&x);
            if i >= 3 {
                assert_golden(&format!("encoder_stage_{i}"), &x);
            }
        }
    }

    #[test]
    fn no_samples_give_no_latents() {
        assert_eq!(tokenizer().encoder.encode(&[]).time(), 0);
    }
}
