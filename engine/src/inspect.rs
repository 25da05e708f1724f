//! What is in a bundle, found out by loading all of it, one part after the other. Starts no thread and keeps nothing.

use crate::bundle::Bundle;
use crate::kernels::matrix::Precision;
use crate::start::{self, Progress, StartError};
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
