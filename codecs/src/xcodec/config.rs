//! Sizes of the codec and of the HuBERT in it, from `config.json`.

use std::path::Path;

use serde::Deserialize;

use crate::dac::{AnalysisShape, Finish, SynthesisShape, check_rates, check_sizes};
use crate::weights::{LoadError, read_json};

/// What the configuration says; other fields are not looked at.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// Kilobits a second that can be chosen; the last one tells how many codebooks there are.
    target_bandwidths: Vec<f64>,
    /// Samples a second.
    pub sample_rate: usize,
    /// Taps between the blocks behind HuBERT.
    pub(super) kernel_size: usize,
    /// Taps in the units of these blocks.
    pub(super) unit_kernel_size: usize,
    /// Widths of these blocks, as multiples of HuBERT's.
    pub(super) channel_ratios: Vec<usize>,
    /// Strides of these blocks.
    strides: Vec<usize>,
    /// Steps between the taps of the units of each block.
    pub(super) block_dilations: Vec<usize>,
    /// Entries of a codebook.
    pub codebook_size: usize,
    /// Values of an entry.
    pub codebook_dim: usize,
    acoustic_model_config: Acoustic,
    semantic_model_config: Semantic,
}

/// The DAC.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Acoustic {
    encoder_hidden_size: usize,
    downsampling_ratios: Vec<usize>,
    decoder_hidden_size: usize,
    upsampling_ratios: Vec<usize>,
    pub(super) hidden_size: usize,
}

/// The HuBERT.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Semantic {
    pub(super) hidden_size: usize,
    pub(super) num_hidden_layers: usize,
    pub(super) num_attention_heads: usize,
    pub(super) intermediate_size: usize,
    pub(super) layer_norm_eps: f32,
    pub(super) conv_dim: Vec<usize>,
    pub(super) conv_stride: Vec<usize>,
    pub(super) conv_kernel: Vec<usize>,
    pub(super) num_conv_pos_embeddings: usize,
    pub(super) num_conv_pos_embedding_groups: usize,
    conv_bias: bool,
    do_stable_layer_norm: bool,
    feat_extract_norm: String,
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// A field is missing, out of range, or at odds with another; a variant that is not computed here.
    pub fn read(file: &Path) -> Result<Self, LoadError> {
        let config: Self = read_json(file)?;
        let checks = config.check().and_then(|()| config.check_semantic());
        checks.map_err(|(field, reason)| LoadError::field(file, field, reason))?;
        Ok(config)
    }

    /// Samples of a frame.
    pub fn frame_samples(&self) -> usize {
        self.acoustic().upsampling_ratios.iter().product()
    }

    /// How many there are: each tells as many bits a frame as its entries need.
    pub fn codebooks(&self) -> usize {
        let frames = self.sample_rate.div_ceil(self.frame_samples()) as f64;
        let bits = (self.codebook_size as f64).log2();
        let kilobits = self.target_bandwidths.last().copied().unwrap_or(0.0);
        (1000.0 * kilobits / (frames * bits)) as usize
    }

    pub(super) fn acoustic(&self) -> &Acoustic {
        &self.acoustic_model_config
    }

    pub(super) fn semantic(&self) -> &Semantic {
        &self.semantic_model_config
    }

    pub(super) fn synthesis(&self) -> SynthesisShape<'_> {
        let acoustic = self.acoustic();
        SynthesisShape {
            latent: acoustic.hidden_size,
            width: acoustic.decoder_hidden_size,
            rates: &acoustic.upsampling_ratios,
            whole_rates: true,
            finish: Finish::Plain,
        }
    }

    pub(super) fn analysis(&self) -> AnalysisShape<'_> {
        let acoustic = self.acoustic();
        let (width, latent) = (acoustic.encoder_hidden_size, acoustic.hidden_size);
        AnalysisShape { width, rates: &acoustic.downsampling_ratios, latent }
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let acoustic = self.acoustic();
        check_sizes(&[
            ("sample_rate", self.sample_rate),
            ("kernel_size", self.kernel_size),
            ("unit_kernel_size", self.unit_kernel_size),
            ("codebook_size", self.codebook_size),
            ("codebook_dim", self.codebook_dim),
            ("acoustic_model_config.encoder_hidden_size", acoustic.encoder_hidden_size),
            ("acoustic_model_config.decoder_hidden_size", acoustic.decoder_hidden_size),
            ("acoustic_model_config.hidden_size", acoustic.hidden_size),
        ])?;
        let (down, up) = (&acoustic.downsampling_ratios, &acoustic.upsampling_ratios);
        check_rates("acoustic_model_config.downsampling_ratios", down, None)?;
        let width = Some(acoustic.decoder_hidden_size);
        check_rates("acoustic_model_config.upsampling_ratios", up, width)?;
        if !(1..=64).contains(&self.codebooks()) {
            let reason = format!("the last one makes {} codebooks, not 1 to 64", self.codebooks());
            return Err(("target_bandwidths", reason));
        }
        let blocks = self.channel_ratios.len();
        if self.block_dilations.len() != 2 || self.strides.len() != blocks {
            return Err(("strides", "one for each block, and two units in each".to_owned()));
        }
        if self.strides.iter().chain(&self.channel_ratios).any(|&s| s != 1) {
            return Err(("strides", "only strides and ratios of 1 are supported".to_owned()));
        }
        let joined = acoustic.hidden_size + self.semantic().hidden_size;
        if joined != self.codebook_dim {
            let reason = format!("is {}, but both branches make {joined}", self.codebook_dim);
            return Err(("codebook_dim", reason));
        }
        Ok(())
    }

    fn check_semantic(&self) -> Result<(), (&'static str, String)> {
        let semantic = self.semantic();
        check_sizes(&[
            ("semantic_model_config.hidden_size", semantic.hidden_size),
            ("semantic_model_config.num_hidden_layers", semantic.num_hidden_layers),
            ("semantic_model_config.num_attention_heads", semantic.num_attention_heads),
            ("semantic_model_config.intermediate_size", semantic.intermediate_size),
            ("semantic_model_config.num_conv_pos_embeddings", semantic.num_conv_pos_embeddings),
            (
                "semantic_model_config.num_conv_pos_embedding_groups",
                semantic.num_conv_pos_embedding_groups,
            ),
        ])?;
        let layers = semantic.conv_dim.len();
        let convs = [&semantic.conv_dim, &semantic.conv_stride, &semantic.conv_kernel];
        if layers == 0 || convs.iter().any(|c| c.len() != layers || c.contains(&0)) {
            let reason = "as many strides and kernels as widths, all above 0".to_owned();
            return Err(("semantic_model_config.conv_dim", reason));
        }
        for (field, parts) in [
            ("semantic_model_config.num_attention_heads", semantic.num_attention_heads),
            (
                "semantic_model_config.num_conv_pos_embedding_groups",
                semantic.num_conv_pos_embedding_groups,
            ),
        ] {
            if !semantic.hidden_size.is_multiple_of(parts) {
                return Err((
                    field,
                    format!("{} is not {parts} equal parts", semantic.hidden_size),
                ));
            }
        }
        if semantic.conv_bias
            || semantic.do_stable_layer_norm
            || semantic.feat_extract_norm != "group"
        {
            let reason =
                "only HuBERT's base variant is supported: group norm, no bias, norms behind";
            return Err(("semantic_model_config.feat_extract_norm", reason.to_owned()));
        }
        Ok(())
    }
}
