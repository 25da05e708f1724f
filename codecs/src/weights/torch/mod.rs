//! Checkpoints as torch saves them: where the tensors of one lie, found without running the program in it.
//!
//! ```text
//! NAME.pth                    zip archive, entries stored without compression
//!   */data.pkl                a program that builds {"a.weight": tensor(storage "0", offset, size, stride), ..}
//!   */data/0                  the numbers of storage "0"
//! ```
//! Dictionaries in dictionaries give names with dots. What else a checkpoint remembers of its training is passed over.

mod pickle;
mod zip;

use std::ops::Range;

use safetensors::Dtype;

/// One tensor of a file.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    /// Its values in the file, row-major.
    pub(super) bytes: Range<usize>,
}

/// Why a file cannot be used, and which of its tensors is to blame, if one is.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) tensor: Option<String>,
    pub(super) reason: String,
}

impl<T: Into<String>> From<T> for Fault {
    fn from(reason: T) -> Self {
        Self { tensor: None, reason: reason.into() }
    }
}

/// Every tensor of a file. The file is not trusted: nothing panics, and nothing makes more of it than a fixed multiple of its
/// program.
pub(super) fn read(file: &[u8]) -> Result<Vec<Found>, Fault> {
    let entries = zip::entries(file)?;
    let (name, program) = entries
        .iter()
        .find(|(name, _)| name.rsplit('/').next() == Some("data.pkl"))
        .ok_or("the archive holds no data.pkl")?;
    let folder = name.strip_suffix("data.pkl").unwrap_or_default();
    let mut all = Vec::new();
    for (name, tensor) in pickle::tensors(&file[program.clone()])? {
        let storage = format!("{folder}data/{}", tensor.storage);
        let width = tensor.dtype.bitsize() / 8;
        let range = entries.get(storage.as_str()).and_then(|data| {
            let start = tensor.offset.checked_mul(width)?.checked_add(data.start)?;
            let end = tensor.count.checked_mul(width)?.checked_add(start)?;
            (end <= data.end).then_some(start..end)
        });
        let Some(bytes) = range else {
            return Err(Fault { tensor: Some(name), reason: format!("`{storage}` is too short") });
        };
        all.push(Found { name, dtype: tensor.dtype, shape: tensor.shape, bytes });
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
