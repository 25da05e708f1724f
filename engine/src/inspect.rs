//! What is in a bundle, found out by loading all of it, one part after the other. Starts no thread and keeps nothing.

use codecs::dualcodec::PromptEncoder;
use codecs::w2vbert::{self, Statistics, W2vBert};
use codecs::weights::{LoadError, Weights};

use crate::bundle::{self, Bundle};
use crate::kernels::matrix::Precision;
use crate::start::{self, Progress, StartError};

/// A bundle that an engine can be started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The stages, cb0 first.
    pub stages: Vec<StageSize>,
    /// Bytes of key/value memory that one window of the greatest length takes, all stages together.
    pub window_bytes: usize,
    /// Whether voices can be made from recordings.
    pub hears: bool,
}

/// One stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageSize {
    /// Transformer layers.
    pub layers: usize,
    /// Numbers in its files.
    pub parameters: usize,
    /// Rows of its embedding.
    pub embedding_rows: usize,
    /// Those that the grammar can reach: only they are loaded.
    pub kept_rows: usize,
}

/// Loads every part of a bundle as [`crate::Handle::start`] does, and the encoder of recordings if there is one.
///
/// # Errors
/// The first part that is missing or damaged, by file and field or tensor.
pub fn inspect(
    bundle: &Bundle,
    progress: &mut dyn FnMut(Progress),
) -> Result<Inspection, StartError> {
    let kept = bundle.kept_ids()?;
    let total = bundle.stages.iter().map(|s| s.config.parameters()).sum();
    let mut loaded = 0;
    let mut stages = Vec::with_capacity(bundle.stages.len());
    for (stage, kept) in bundle.stages.iter().zip(&kept) {
        let mut count = |parameters| {
            loaded += parameters;
            progress(Progress { loaded, total });
        };
        start::load_stage(stage, kept, Precision::F32, None, &mut count)?;
        stages.push(StageSize {
            layers: stage.config.layers,
            parameters: stage.config.parameters(),
            embedding_rows: stage.config.vocabulary,
            kept_rows: kept.len(),
        });
    }
    start::read_grammar(bundle)?;
    start::load_codec(bundle)?;
    let hears = load_encoder(bundle)?;
    Ok(Inspection { stages, window_bytes: start::window_bytes(bundle), hears })
}

/// Loads what makes codes of recordings. Returns whether there is such a thing.
fn load_encoder(bundle: &Bundle) -> Result<bool, LoadError> {
    let bundle::Codec::DualCodecVibeVoice { dualcodec, dualcodec_config, encoder, .. } =
        &bundle.codec
    else {
        return Ok(false);
    };
    let Some(encoder) = encoder else { return Ok(false) };
    let codec_config = start::dualcodec_config(dualcodec_config.as_deref())?;
    let config = w2vbert::Config::read(&encoder.w2v_bert.join("config.json"))?;
    let weights = Weights::open(&encoder.w2v_bert)?;
    let semantic = W2vBert::load(&weights, &config, codec_config.w2v_output_idx)?;
    let statistics = Statistics::read(&encoder.statistics, codec_config.semantic_input_dim)?;
    let weights = Weights::open(dualcodec)?;
    PromptEncoder::new(&codec_config, &weights, semantic, statistics, bundle.stages.len() - 1)?;
    Ok(true)
}
