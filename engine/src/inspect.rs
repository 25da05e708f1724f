//! What is in a bundle, found out by loading all of it, one part after the other, and whether several can run together. Starts
//! no thread and keeps nothing.

use codecs::weights::LoadError;

use crate::bundle::{Bundle, Opened};
use crate::kernels::matrix::Precision;
use crate::memory::Funds;
use crate::start::{self, Options, Progress, StartError};
use crate::voices::Hearing;

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
            layers: stage.config.backbone.layers,
            parameters: stage.config.parameters(),
            embedding_rows: stage.config.backbone.vocabulary,
            kept_rows: kept.len(),
        });
    }
    start::read_grammar(bundle, 0)?;
    start::load_codec(bundle)?;
    start::load_verbalizer(bundle, Precision::F32, None)?;
    let mut hearing = Hearing::of(bundle);
    if let Some(hearing) = &mut hearing {
        hearing.load()?;
    }
    let hears = hearing.is_some();
    Ok(Inspection { stages, window_bytes: start::window_bytes(bundle), hears })
}

/// What bundles take that run in one engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Together {
    /// Bytes of the numbers of their networks, at the precision of the options; codecs and scratch memory come on top.
    pub weight_bytes: usize,
    /// Bytes of key/value memory that they share ...
    pub kv_bytes: usize,
    /// ... and of it what one window of the greatest length takes in every stage of all of them.
    pub window_bytes: usize,
}

/// Whether bundles can run in one engine, and what they take then. Reads no weights.
///
/// # Errors
/// [`StartError::NoBundle`], [`StartError::SameName`], [`StartError::KvBytes`]; a tokenizer that cannot be used.
pub fn together(bundles: &[Opened], options: &Options) -> Result<Together, StartError> {
    start::check_names(bundles)?;
    let needs: Vec<_> = bundles.iter().flat_map(start::needs).collect();
    let Funds { given, needed } = Funds::of(&needs, options.kv_bytes)?;
    let mut numbers = 0;
    for opened in bundles {
        numbers += numbers_of(opened)?;
    }
    let number_bytes = match options.precision {
        Precision::F32 => 4,
        Precision::Bf16 => 2,
        Precision::Int8 => 1,
    };
    let weight_bytes = numbers * number_bytes;
    Ok(Together { weight_bytes, kv_bytes: given, window_bytes: needed })
}

/// Numbers that are kept of a bundle's networks: rows of an embedding that are never read are not.
fn numbers_of(opened: &Opened) -> Result<usize, LoadError> {
    let bundle = match opened {
        Opened::Speech(bundle) => return Ok(bundle.config.parameters()),
        Opened::Voice(bundle) => bundle,
    };
    let kept = bundle.kept_ids()?;
    let stage = |(stage, kept): (&crate::bundle::Stage, &Vec<u32>)| {
        let backbone = &stage.config.backbone;
        let unread = backbone.vocabulary.saturating_sub(kept.len()) * backbone.hidden;
        stage.config.parameters().saturating_sub(unread)
    };
    Ok(bundle.stages.iter().zip(&kept).map(stage).sum())
}
