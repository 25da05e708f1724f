//! A model's folder: `config.json` beside safetensors files or one torch checkpoint.

use std::path::{Path, PathBuf};

use codecs::weights::{LoadError, Weights};

use super::{Audit, SpeechConfig};

/// Endings of the files that torch saves.
const CHECKPOINTS: [&str; 3] = ["pt", "pth", "bin"];
/// Where a checkpoint of a training run has the model.
const TRAINED: &str = "module.";

/// Opens a folder: its configuration and its tensors, which are not read yet.
///
/// # Errors
/// A file that is missing or damaged, no weights or several, a configuration that does not hold, tensors that are missing or of
/// another shape, or that the model does not have.
pub fn open_model(folder: &Path) -> Result<(SpeechConfig, Weights), LoadError> {
    let (config, weights) = open_unchecked(folder)?;
    Audit::new(&weights, &config).check(&weights)?;
    Ok((config, weights))
}

/// As [`open_model`], whatever tensors there are.
///
/// # Errors
/// A file that is missing or damaged, no weights or several, a configuration that does not hold.
pub(crate) fn open_unchecked(folder: &Path) -> Result<(SpeechConfig, Weights), LoadError> {
    let config = SpeechConfig::read(&folder.join("config.json"))?;
    let mut weights = Weights::open(&weight_file(folder)?)?;
    if weights.names().any(|name| name.starts_with(TRAINED)) {
        weights = weights.with_prefix(TRAINED);
    }
    Ok((config, weights))
}

/// Safetensors where there are any, else the one checkpoint.
pub(crate) fn weight_file(folder: &Path) -> Result<PathBuf, LoadError> {
    let safe = ["model.safetensors", "model.safetensors.index.json"];
    if safe.iter().any(|name| folder.join(name).is_file()) {
        return Ok(folder.to_path_buf());
    }
    let io = |source| LoadError::Io { file: folder.to_path_buf(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let ending = path.extension().and_then(|e| e.to_str());
        if ending.is_some_and(|e| CHECKPOINTS.contains(&e)) {
            found.push(path);
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(LoadError::malformed(folder, "holds neither safetensors nor a torch checkpoint")),
        n => Err(LoadError::malformed(folder, format!("holds {n} torch checkpoints, not one"))),
    }
}
