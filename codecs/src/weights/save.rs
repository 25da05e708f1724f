//! Tensors written as safetensors: one after the other, in files of bounded size, so that a model larger than the memory can be
//! written.
//!
//! ```text
//! model.safetensors                                             all of them, where they have room in one
//! model-00001-of-00002.safetensors ..  model.safetensors.index.json
//! ```

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use half::bf16;
use half::slice::HalfFloatSliceExt;
use safetensors::Dtype;
use safetensors::tensor::{View, serialize_to_file};
use serde_json::json;

use super::{LoadError, Weights, le};

/// Bytes of a file, unless one tensor alone has more.
pub const FILE_BYTES: usize = 2 << 30;

/// A tensor to be written.
#[derive(Clone)]
pub struct Outgoing<'a> {
    /// What it will be called.
    pub name: String,
    /// Where it is.
    pub weights: &'a Weights,
    /// What it is called there.
    pub from: String,
}

/// How tensors are written.
#[derive(Debug, Clone, Copy)]
pub struct SaveOptions {
    /// Whether wider floats become bf16; else everything stays as it is.
    pub narrow: bool,
    /// Bytes of a file, unless one tensor alone has more.
    pub file_bytes: usize,
}

/// Why tensors could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// One cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A file cannot be written.
    #[error("{}: cannot write: {reason}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system said.
        reason: String,
    },
}

/// Bytes that tensors will have when they are written.
///
/// # Errors
/// A tensor that is missing.
pub fn size(tensors: &[Outgoing<'_>], options: SaveOptions) -> Result<usize, LoadError> {
    let views = views(tensors, options.narrow)?;
    Ok(views.iter().map(|(_, view)| view.data_len()).sum())
}

/// Writes tensors into a folder that is there; `written` hears of the bytes of each tensor. Returns how many bytes all have.
///
/// # Errors
/// A tensor that is missing or has a value that is not finite, a file that cannot be written.
pub fn save(
    folder: &Path,
    tensors: &[Outgoing<'_>],
    options: SaveOptions,
    written: &mut dyn FnMut(usize),
) -> Result<usize, SaveError> {
    let told = RefCell::new(written);
    let files = share(views(tensors, options.narrow)?, options.file_bytes);
    let (count, mut total, mut index) = (files.len(), 0, BTreeMap::new());
    for tensor in tensors {
        tensor.weights.check_finite(&tensor.from, options.narrow)?;
    }
    for (number, views) in files.into_iter().enumerate() {
        let name = match count {
            1 => "model.safetensors".to_owned(),
            _ => format!("model-{:05}-of-{count:05}.safetensors", number + 1),
        };
        let file = folder.join(&name);
        let bytes: usize = views.iter().map(|(_, v)| v.data_len()).sum();
        index.extend(views.iter().map(|(tensor, _)| (tensor.clone(), name.clone())));
        let views = views.into_iter().map(|(name, view)| (name, Told { view, told: &told }));
        serialize_to_file(views, None, &file)
            .map_err(|e| SaveError::Write { file, reason: e.to_string() })?;
        total += bytes;
    }
    if count > 1 {
        let file = folder.join("model.safetensors.index.json");
        let text = json!({"metadata": {"total_size": total}, "weight_map": index}).to_string();
        std::fs::write(&file, text)
            .map_err(|e| SaveError::Write { file, reason: e.to_string() })?;
    }
    Ok(total)
}

/// A tensor as it will be in the file; its bytes are made when they are asked for.
struct Written<'a> {
    dtype: Dtype,
    narrow: bool,
    shape: &'a [usize],
    bytes: &'a [u8],
}

/// One whose bytes are told of when they are asked for.
struct Told<'a, 'w, 'c> {
    view: Written<'a>,
    told: &'w RefCell<&'c mut dyn FnMut(usize)>,
}

impl View for Told<'_, '_, '_> {
    fn dtype(&self) -> Dtype {
        self.view.dtype()
    }

    fn shape(&self) -> &[usize] {
        self.view.shape()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        (self.told.borrow_mut())(self.view.data_len());
        self.view.data()
    }

    fn data_len(&self) -> usize {
        self.view.data_len()
    }
}

fn views<'a>(
    tensors: &[Outgoing<'a>],
    narrow: bool,
) -> Result<Vec<(String, Written<'a>)>, LoadError> {
    let view = |out: &Outgoing<'a>| {
        let place = out.weights.place(&out.from)?;
        let bytes = &out.weights.shards[place.shard].map[place.bytes.clone()];
        let narrow = narrow && place.dtype == Dtype::F32;
        let dtype = if narrow { Dtype::BF16 } else { place.dtype };
        Ok((out.name.clone(), Written { dtype, narrow, shape: &place.shape, bytes }))
    };
    tensors.iter().map(view).collect()
}

/// Neighbours share a file as long as they have room.
fn share<'a>(
    views: Vec<(String, Written<'a>)>,
    file_bytes: usize,
) -> Vec<Vec<(String, Written<'a>)>> {
    let (mut files, mut room) = (Vec::new(), 0);
    for view in views {
        let bytes = view.1.data_len();
        match files.last_mut() {
            Some(file) if bytes <= room => {
                room -= bytes;
                Vec::push(file, view);
            }
            _ => {
                room = file_bytes.saturating_sub(bytes);
                files.push(vec![view]);
            }
        }
    }
    files
}

impl View for Written<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        if !self.narrow {
            return Cow::Borrowed(self.bytes);
        }
        let floats: Vec<f32> =
            self.bytes.chunks_exact(4).map(|b| f32::from_le_bytes(le(b))).collect();
        let mut narrowed = vec![bf16::ZERO; floats.len()];
        narrowed.convert_from_f32_slice(&floats);
        Cow::Owned(narrowed.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    fn data_len(&self) -> usize {
        if self.narrow { self.bytes.len() / 2 } else { self.bytes.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURE: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/qwen3_tiny/model.safetensors");

    fn outgoing(weights: &Weights) -> Vec<Outgoing<'_>> {
        let out = |name: &str| Outgoing { name: format!("x.{name}"), weights, from: name.into() };
        weights.names().map(out).collect()
    }

    #[test]
    fn what_is_written_reads_as_what_it_was_however_it_is_shared_out() {
        let from = Weights::open(Path::new(FIXTURE)).unwrap();
        for file_bytes in [FILE_BYTES, 100_000, 1] {
            let dir = tempfile::tempdir().unwrap();
            let mut told = Vec::new();
            let options = SaveOptions { narrow: false, file_bytes };
            let total =
                save(dir.path(), &outgoing(&from), options, &mut |bytes| told.push(bytes)).unwrap();
            assert_eq!(told.iter().sum::<usize>(), total);
            assert_eq!(size(&outgoing(&from), options).unwrap(), total);
            assert_eq!(told.len(), from.names().count(), "each tensor is told of");
            let files = std::fs::read_dir(dir.path()).unwrap().count();
            assert!(file_bytes == FILE_BYTES || files > 1);
            let read = Weights::open(dir.path()).unwrap().with_prefix("x.");
            assert!(read.names().eq(from.names()));
            for name in from.names() {
                let shape = from.shape(name).unwrap();
                assert_eq!(read.f32(name, shape).unwrap(), from.f32(name, shape).unwrap());
            }
        }
    }

    #[test]
    fn narrowed_floats_are_the_nearest_and_half_as_long() {
        let from = Weights::open(Path::new(FIXTURE)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let options = SaveOptions { narrow: true, file_bytes: FILE_BYTES };
        save(dir.path(), &outgoing(&from), options, &mut |_| ()).unwrap();
        let read = Weights::open(dir.path()).unwrap().with_prefix("x.");
        for name in from.names() {
            let shape = from.shape(name).unwrap();
            let wide = from.f32(name, shape).unwrap();
            let expected: Vec<f32> = wide.iter().map(|&v| bf16::from_f32(v).to_f32()).collect();
            assert_eq!(read.f32(name, shape).unwrap(), expected, "{name}");
        }
        let length = |file: &Path| std::fs::metadata(file).unwrap().len();
        let narrowed = length(&dir.path().join("model.safetensors"));
        assert!(narrowed < length(Path::new(FIXTURE)) * 6 / 10);
    }

    #[test]
    fn a_value_that_is_not_finite_is_told_by_its_tensor_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("broken.safetensors");
        for (value, narrow) in [(f32::NAN, false), (f32::NEG_INFINITY, true), (f32::MAX, true)] {
            let numbers: Vec<u8> =
                [0.5, value].iter().flat_map(|v: &f32| v.to_le_bytes()).collect();
            let view = safetensors::tensor::TensorView::new(Dtype::F32, vec![2], &numbers).unwrap();
            std::fs::write(&file, safetensors::serialize([("a.b", view)], None).unwrap()).unwrap();
            let from = Weights::open(&file).unwrap();
            let out = [Outgoing { name: "x".into(), weights: &from, from: "a.b".into() }];
            let options = SaveOptions { narrow, file_bytes: FILE_BYTES };
            let target = tempfile::tempdir().unwrap();
            let text = save(target.path(), &out, options, &mut |_| ()).unwrap_err().to_string();
            let says = "broken.safetensors: tensor `a.b`: value 1 is not a finite number";
            assert!(text.ends_with(says), "{text}");
            assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 0);
            // The largest number is finite as long as it is not rounded.
            let wide = SaveOptions { narrow: false, ..options };
            assert_eq!(save(target.path(), &out, wide, &mut |_| ()).is_ok(), value == f32::MAX);
        }
    }

    #[test]
    fn a_tensor_that_is_missing_and_a_folder_that_is_none_are_told() {
        let from = Weights::open(Path::new(FIXTURE)).unwrap();
        let options = SaveOptions { narrow: false, file_bytes: FILE_BYTES };
        let gone = [Outgoing { name: "a".into(), weights: &from, from: "gone".into() }];
        let text = save(Path::new("/"), &gone, options, &mut |_| ()).unwrap_err().to_string();
        assert!(text.contains("`gone`: missing"), "{text}");
        let folder = Path::new("/nowhere/at/all");
        let text = save(folder, &outgoing(&from), options, &mut |_| ()).unwrap_err().to_string();
        assert!(text.contains("/nowhere/at/all/model.safetensors: cannot write"), "{text}");
    }
}
