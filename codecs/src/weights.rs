//! Model weights on disk: safetensors files and torch checkpoints, mapped into memory, read as `f32`.
//!
//! A [`Weights`] is one file, or the shards that an index names. A checkpoint is read as data: nothing in it is run. It knows nothing of layers; a caller
//! asks for a tensor by name and shape and gets the values or an error that names file and tensor.
//!
//! ```text
//! model.safetensors                  one file
//! model.safetensors.index.json       {"weight_map": {"a.weight": "model-00001-of-00002.safetensors", ..}}
//! NAME.pt, NAME.pth, NAME.bin        what torch saves; names of nested dictionaries are joined by dots
//! ```

mod save;
mod torch;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use half::slice::HalfFloatSliceExt;
use safetensors::{Dtype, SafeTensors};

pub use save::{FILE_BYTES, Outgoing, SaveError, SaveOptions, save, size};

/// Why a part of a model could not be loaded. Every variant names the file.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is absent or unreadable.
    #[error("{}: cannot read: {source}", file.display())]
    Io {
        /// The file asked for.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is there but is not what its name says: truncated, damaged, not JSON.
    #[error("{}: {reason}", file.display())]
    Malformed {
        /// The file read.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A configuration field is missing, of another type, or contradicts another.
    #[error("{}: field `{field}`: {reason}", file.display())]
    Field {
        /// The configuration file.
        file: PathBuf,
        /// Path of the field, dots between levels.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A tensor is missing, of another shape or type, or holds values that are not finite.
    #[error("{}: tensor `{tensor}`: {reason}", file.display())]
    Tensor {
        /// The weight file, or the folder when no file holds the tensor.
        file: PathBuf,
        /// Name of the tensor.
        tensor: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl LoadError {
    /// A [`LoadError::Field`].
    pub fn field(file: &Path, field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Field { file: file.to_path_buf(), field: field.into(), reason: reason.into() }
    }

    /// A [`LoadError::Tensor`].
    pub fn tensor(file: &Path, tensor: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Tensor { file: file.to_path_buf(), tensor: tensor.into(), reason: reason.into() }
    }

    /// A [`LoadError::Malformed`].
    pub fn malformed(file: &Path, reason: impl Into<String>) -> Self {
        Self::Malformed { file: file.to_path_buf(), reason: reason.into() }
    }
}

/// Reads a small text file (a configuration).
///
/// # Errors
/// [`LoadError::Io`] when it cannot be read.
pub fn read_text(file: &Path) -> Result<String, LoadError> {
    std::fs::read_to_string(file)
        .map_err(|source| LoadError::Io { file: file.to_path_buf(), source })
}

/// Reads a JSON file into any type; an unknown, missing or ill-typed field is told with its line.
///
/// # Errors
/// [`LoadError::Io`], or [`LoadError::Malformed`] with what the parser said.
pub fn read_json<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T, LoadError> {
    serde_json::from_str(&read_text(file)?).map_err(|e| LoadError::malformed(file, e.to_string()))
}

/// What a torch checkpoint begins with, as every zip archive.
const ARCHIVE: &[u8] = b"PK\x03\x04";

/// Named tensors of one model, mapped from disk.
pub struct Weights {
    root: PathBuf,
    shards: Vec<Shard>,
    place: BTreeMap<String, Place>,
    prefix: String,
}

struct Shard {
    file: PathBuf,
    map: memmap2::Mmap,
}

struct Place {
    shard: usize,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: std::ops::Range<usize>,
}

impl Weights {
    /// Opens `path`: a safetensors file, a torch checkpoint, an index file, or a folder that holds `model.safetensors` or its
    /// index.
    ///
    /// # Errors
    /// A file that is missing, truncated or damaged.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        let path = if path.is_dir() {
            let index = path.join("model.safetensors.index.json");
            if index.is_file() { index } else { path.join("model.safetensors") }
        } else {
            path.to_path_buf()
        };
        let files = if path.extension().is_some_and(|e| e == "json") {
            shards_of_index(&path)?
        } else {
            vec![path.clone()]
        };
        let mut weights =
            Self { root: path, shards: Vec::new(), place: BTreeMap::new(), prefix: String::new() };
        for file in files {
            weights.add_shard(file)?;
        }
        Ok(weights)
    }

    /// The same tensors under a common prefix: afterwards `name` means `prefix` + `name`.
    #[must_use]
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        self.prefix = prefix.to_owned();
        self
    }

    /// The file (or index) that was opened, for error messages.
    pub fn file(&self) -> &Path {
        &self.root
    }

    /// Names of all tensors under the prefix, in order, without it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.place.keys().filter_map(|k| k.strip_prefix(self.prefix.as_str()))
    }

    /// Shape of a tensor, if it is there.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.place.get(&self.full(name)).map(|p| p.shape.as_slice())
    }

    /// All values of a float tensor (f32, f16 or bf16 on disk), row-major.
    ///
    /// # Errors
    /// The tensor is missing, its shape is not `shape`, its type is not a float, or a value is not finite.
    pub fn f32(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        let place = self.checked(name, shape)?;
        let floats = self.floats(name, place, place.bytes.clone());
        self.release(place, place.bytes.clone());
        floats
    }

    /// Looks for a value of a float tensor that is not finite as `f32`, or `narrow` as bf16; integers have none.
    ///
    /// # Errors
    /// The tensor is missing, or has such a value.
    fn check_finite(&self, name: &str, narrow: bool) -> Result<(), LoadError> {
        let place = self.place(name)?;
        let shard = &self.shards[place.shard];
        let bytes = &shard.map[place.bytes.clone()];
        let halves = || bytes.chunks_exact(2).map(|b| u16::from_le_bytes(le(b)));
        let wide = || bytes.chunks_exact(4).map(|b| f32::from_le_bytes(le(b)));
        let broken = match place.dtype {
            Dtype::F32 if narrow => wide().position(|v| !half::bf16::from_f32(v).is_finite()),
            Dtype::F32 => wide().position(|v| !v.is_finite()),
            Dtype::F16 => halves().position(|bits| !half::f16::from_bits(bits).is_finite()),
            Dtype::BF16 => halves().position(|bits| !half::bf16::from_bits(bits).is_finite()),
            _ => None,
        };
        match broken {
            None => Ok(()),
            Some(at) => {
                let reason = format!("value {at} is not a finite number");
                Err(LoadError::tensor(&shard.file, self.full(name), reason))
            }
        }
    }

    /// Neighbouring rows (first axis) of a float matrix.
    ///
    /// # Errors
    /// As [`Weights::f32`]; also a row beyond the first axis.
    pub fn f32_range(
        &self,
        name: &str,
        shape: &[usize],
        rows: std::ops::Range<usize>,
    ) -> Result<Vec<f32>, LoadError> {
        let place = self.checked(name, shape)?;
        if rows.end > shape[0] || rows.start > rows.end {
            let reason = format!("rows {rows:?} asked for, the tensor has {}", shape[0]);
            return Err(LoadError::tensor(&self.shards[place.shard].file, name, reason));
        }
        let stride = place.bytes.len() / shape[0].max(1);
        let start = place.bytes.start;
        let bytes = start + rows.start * stride..start + rows.end * stride;
        let floats = self.floats(name, place, bytes.clone());
        self.release(place, bytes);
        floats
    }

    /// Chosen rows (first axis) of a float matrix, in the order given.
    ///
    /// # Errors
    /// As [`Weights::f32`]; also a row beyond the first axis.
    pub fn f32_rows(
        &self,
        name: &str,
        shape: &[usize],
        rows: &[u32],
    ) -> Result<Vec<f32>, LoadError> {
        let out = self.chosen_rows(name, shape, rows)?;
        let place = self.place(name)?;
        self.release(place, place.bytes.clone());
        Ok(out)
    }

    fn chosen_rows(
        &self,
        name: &str,
        shape: &[usize],
        rows: &[u32],
    ) -> Result<Vec<f32>, LoadError> {
        let place = self.checked(name, shape)?;
        let stride = place.bytes.len() / shape[0].max(1);
        let mut out = Vec::with_capacity(rows.len() * shape[1..].iter().product::<usize>());
        for &row in rows {
            let row = row as usize;
            if row >= shape[0] {
                let reason = format!("row {row} asked for, the tensor has {}", shape[0]);
                return Err(LoadError::tensor(&self.shards[place.shard].file, name, reason));
            }
            let start = place.bytes.start + row * stride;
            out.extend(self.floats(name, place, start..start + stride)?);
        }
        Ok(out)
    }

    /// As [`Weights::f32_rows`], but numbers of 16 bits stay as they are on disk.
    ///
    /// # Errors
    /// As [`Weights::f32_rows`].
    pub fn float_rows(
        &self,
        name: &str,
        shape: &[usize],
        rows: &[u32],
    ) -> Result<Floats, LoadError> {
        let place = self.checked(name, shape)?;
        if !matches!(place.dtype, Dtype::F16 | Dtype::BF16) {
            return self.f32_rows(name, shape, rows).map(Floats::F32);
        }
        let mut bits = Vec::with_capacity(rows.len() * shape[1..].iter().product::<usize>());
        let stride = place.bytes.len() / shape[0].max(1);
        for &row in rows {
            // Finds what is not finite, and rows beyond the last.
            self.chosen_rows(name, shape, &[row])?;
            let start = place.bytes.start + row as usize * stride;
            let bytes = &self.shards[place.shard].map[start..start + stride];
            bits.extend(bytes.chunks_exact(2).map(|b| u16::from_le_bytes(le(b))));
        }
        self.release(place, place.bytes.clone());
        Ok(match place.dtype {
            Dtype::F16 => Floats::F16(bits.into_iter().map(half::f16::from_bits).collect()),
            _ => Floats::Bf16(bits.into_iter().map(half::bf16::from_bits).collect()),
        })
    }

    /// All values of an integer tensor (i32, i64, u8, u16 or u32 on disk), row-major.
    ///
    /// # Errors
    /// The tensor is missing or its type is not one of these integers.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>, LoadError> {
        let place = self.place(name)?;
        let shard = &self.shards[place.shard];
        let bytes = &shard.map[place.bytes.clone()];
        let word = |n: usize| bytes.chunks_exact(n);
        Ok(match place.dtype {
            Dtype::I64 => word(8).map(|b| i64::from_le_bytes(le(b))).collect(),
            Dtype::I32 => word(4).map(|b| i64::from(i32::from_le_bytes(le(b)))).collect(),
            Dtype::U32 => word(4).map(|b| i64::from(u32::from_le_bytes(le(b)))).collect(),
            Dtype::U16 => word(2).map(|b| i64::from(u16::from_le_bytes(le(b)))).collect(),
            Dtype::U8 => bytes.iter().map(|&b| i64::from(b)).collect(),
            other => {
                let reason = format!("type {other:?} is not an integer this program reads");
                return Err(LoadError::tensor(&shard.file, name, reason));
            }
        })
    }

    fn add_shard(&mut self, file: PathBuf) -> Result<(), LoadError> {
        let map = map_file(&file)?;
        let shard = self.shards.len();
        // A safetensors file begins with the length of its header, of which no real one has these lowest bytes.
        if map.starts_with(ARCHIVE) {
            let found = torch::read(&map).map_err(|fault| match fault.tensor {
                Some(tensor) => LoadError::tensor(&file, tensor, fault.reason),
                None => LoadError::malformed(&file, fault.reason),
            })?;
            for torch::Found { name, dtype, shape, bytes } in found {
                self.place.insert(name, Place { shard, dtype, shape, bytes });
            }
        } else {
            let (header, meta) = SafeTensors::read_metadata(&map).map_err(|e| {
                LoadError::malformed(&file, format!("not a whole safetensors file: {e}"))
            })?;
            let data = 8 + header;
            for (name, info) in meta.tensors() {
                let bytes = data + info.data_offsets.0..data + info.data_offsets.1;
                if bytes.end > map.len() {
                    let reason = "data ends beyond the end of the file";
                    return Err(LoadError::tensor(&file, name, reason));
                }
                let place = Place { shard, dtype: info.dtype, shape: info.shape.clone(), bytes };
                self.place.insert(name, place);
            }
        }
        self.shards.push(Shard { file, map });
        Ok(())
    }

    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn place(&self, name: &str) -> Result<&Place, LoadError> {
        let full = self.full(name);
        self.place.get(&full).ok_or_else(|| LoadError::tensor(&self.root, full, "missing"))
    }

    fn checked(&self, name: &str, shape: &[usize]) -> Result<&Place, LoadError> {
        let place = self.place(name)?;
        if place.shape != shape {
            let reason = format!("shape is {:?}, expected {shape:?}", place.shape);
            return Err(LoadError::tensor(&self.shards[place.shard].file, self.full(name), reason));
        }
        Ok(place)
    }

    /// Lets the system take back the memory of bytes that were read: the mapping of a file that is read once would otherwise count
    /// beside what was made of it. They are there again when they are looked at.
    #[cfg_attr(
        unix,
        expect(unsafe_code, reason = "a file is mapped, and pages that were read are given back")
    )]
    fn release(&self, place: &Place, bytes: std::ops::Range<usize>) {
        #[cfg(unix)]
        {
            let map = &self.shards[place.shard].map;
            let advice = memmap2::UncheckedAdvice::DontNeed;
            // SAFETY: the map is of a file, read-only and never written to, so that pages which are dropped hold nothing that the
            // file does not have; they are read from it again when somebody looks. A system that refuses changes nothing.
            let _ = unsafe { map.unchecked_advise_range(advice, bytes.start, bytes.len()) };
        }
    }

    fn floats(
        &self,
        name: &str,
        place: &Place,
        bytes: std::ops::Range<usize>,
    ) -> Result<Vec<f32>, LoadError> {
        let shard = &self.shards[place.shard];
        let error = |reason: String| LoadError::tensor(&shard.file, self.full(name), reason);
        let bytes = &shard.map[bytes];
        let halves = || bytes.chunks_exact(2).map(|b| u16::from_le_bytes(le(b)));
        let values = match place.dtype {
            Dtype::F32 => bytes.chunks_exact(4).map(|b| f32::from_le_bytes(le(b))).collect(),
            Dtype::F16 => {
                let h: Vec<half::f16> = halves().map(half::f16::from_bits).collect();
                h.to_f32_vec()
            }
            Dtype::BF16 => {
                let h: Vec<half::bf16> = halves().map(half::bf16::from_bits).collect();
                h.to_f32_vec()
            }
            other => return Err(error(format!("type {other:?}, expected f32, f16 or bf16"))),
        };
        match values.iter().position(|v: &f32| !v.is_finite()) {
            Some(at) => Err(error(format!("value {at} is {}, not a finite number", values[at]))),
            None => Ok(values),
        }
    }
}

/// Numbers as narrow as they were on disk.
#[derive(Debug, Clone, PartialEq)]
pub enum Floats {
    /// 32 bits.
    F32(Vec<f32>),
    /// 16 bits, 10 of them of the mantissa.
    F16(Vec<half::f16>),
    /// 16 bits, 7 of them of the mantissa.
    Bf16(Vec<half::bf16>),
}

impl Floats {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::Bf16(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds as many as `x` has, from `start` on, to `x`.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn add_to(&self, start: usize, x: &mut [f32]) {
        let range = start..start + x.len();
        match self {
            Self::F32(values) => x.iter_mut().zip(&values[range]).for_each(|(x, v)| *x += v),
            Self::F16(values) => {
                x.iter_mut().zip(&values[range]).for_each(|(x, v)| *x += v.to_f32())
            }
            Self::Bf16(values) => {
                x.iter_mut().zip(&values[range]).for_each(|(x, v)| *x += v.to_f32())
            }
        }
    }
}

fn le<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("chunks_exact gives N bytes; this is a bug")
}

#[expect(unsafe_code, reason = "mapping a file is the only way not to hold a second copy of it")]
fn map_file(file: &Path) -> Result<memmap2::Mmap, LoadError> {
    let io = |source| LoadError::Io { file: file.to_path_buf(), source };
    let handle = File::open(file).map_err(io)?;
    // SAFETY: the map is read-only and private to `Weights`. Another process that truncates a model file while
    // it is being read could still fault this one; bundles are installed whole and not written in place.
    unsafe { memmap2::Mmap::map(&handle) }.map_err(io)
}

fn shards_of_index(index: &Path) -> Result<Vec<PathBuf>, LoadError> {
    #[derive(serde::Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let parsed: Index = read_json(index)?;
    let mut names: Vec<String> = parsed.weight_map.into_values().collect();
    names.sort_unstable();
    names.dedup();
    if names.iter().any(|n| Path::new(n).components().count() != 1) {
        return Err(LoadError::field(index, "weight_map", "a shard must be a plain file name"));
    }
    Ok(names.into_iter().map(|n| index.with_file_name(n)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::TensorView;

    fn write(dir: &Path, name: &str, tensors: &[(&str, Dtype, Vec<usize>, Vec<u8>)]) -> PathBuf {
        let views: Vec<(&str, TensorView<'_>)> = tensors
            .iter()
            .map(|(n, d, s, b)| (*n, TensorView::new(*d, s.clone(), b).unwrap()))
            .collect();
        let file = dir.join(name);
        std::fs::write(&file, safetensors::serialize(views, None).unwrap()).unwrap();
        file
    }

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn three_float_types_read_as_f32() {
        let dir = tempfile::tempdir().unwrap();
        let f16 = [half::f16::from_f32(1.5), half::f16::from_f32(-2.0)];
        let bf16 = [half::bf16::from_f32(1.5), half::bf16::from_f32(-2.0)];
        let halves = |b: [u16; 2]| b.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let file = write(
            dir.path(),
            "m.safetensors",
            &[
                ("a", Dtype::F32, vec![2], f32s(&[1.5, -2.0])),
                ("b", Dtype::F16, vec![2], halves(f16.map(half::f16::to_bits))),
                ("c", Dtype::BF16, vec![2], halves(bf16.map(half::bf16::to_bits))),
            ],
        );
        let w = Weights::open(&file).unwrap();
        for name in ["a", "b", "c"] {
            assert_eq!(w.f32(name, &[2]).unwrap(), [1.5, -2.0]);
        }
        assert!(matches!(w.float_rows("a", &[2], &[1]).unwrap(), Floats::F32(v) if v == [-2.0]));
        for name in ["b", "c"] {
            let narrow = w.float_rows(name, &[2], &[1, 0]).unwrap();
            assert!(!matches!(narrow, Floats::F32(_)));
            let mut x = [1.0, 1.0];
            narrow.add_to(0, &mut x);
            assert_eq!((narrow.len(), x), (2, [-1.0, 2.5]), "{name}");
            assert!(w.float_rows(name, &[2], &[2]).is_err());
        }
    }

    #[test]
    fn shards_and_prefix_and_rows() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "s1.safetensors", &[("x.a", Dtype::F32, vec![1], f32s(&[1.0]))]);
        write(
            dir.path(),
            "s2.safetensors",
            &[("x.b", Dtype::F32, vec![3, 2], f32s(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]))],
        );
        std::fs::write(
            dir.path().join("model.safetensors.index.json"),
            r#"{"weight_map": {"x.a": "s1.safetensors", "x.b": "s2.safetensors"}}"#,
        )
        .unwrap();
        let w = Weights::open(dir.path()).unwrap().with_prefix("x.");
        assert_eq!(w.names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(w.f32_rows("b", &[3, 2], &[2, 0]).unwrap(), [4.0, 5.0, 0.0, 1.0]);
        assert_eq!(w.f32_range("b", &[3, 2], 1..3).unwrap(), [2.0, 3.0, 4.0, 5.0]);
        assert!(w.f32_range("b", &[3, 2], 1..1).unwrap().is_empty());
        let beyond = w.f32_range("b", &[3, 2], 2..4).unwrap_err().to_string();
        assert!(beyond.contains("s2.safetensors") && beyond.contains("rows 2..4"), "{beyond}");
        let beyond = w.f32_rows("b", &[3, 2], &[3]).unwrap_err().to_string();
        assert!(beyond.contains("s2.safetensors") && beyond.contains("row 3"), "{beyond}");
    }

    #[test]
    fn every_fault_names_file_and_tensor() {
        let dir = tempfile::tempdir().unwrap();
        let file = write(
            dir.path(),
            "m.safetensors",
            &[
                ("nan", Dtype::F32, vec![2], f32s(&[0.0, f32::NAN])),
                ("int", Dtype::I32, vec![1], vec![0; 4]),
            ],
        );
        let w = Weights::open(&file).unwrap();
        for (name, shape, says) in [
            ("gone", vec![1], "missing"),
            ("nan", vec![3], "expected [3]"),
            ("nan", vec![2], "not a finite number"),
            ("int", vec![1], "expected f32"),
        ] {
            let text = w.f32(name, &shape).unwrap_err().to_string();
            assert!(text.contains("m.safetensors") && text.contains(name), "{text}");
            assert!(text.contains(says), "{text}");
        }
        let bytes = std::fs::read(&file).unwrap();
        let cut = dir.path().join("cut.safetensors");
        std::fs::write(&cut, &bytes[..bytes.len() - 3]).unwrap();
        let text = Weights::open(&cut).err().unwrap().to_string();
        assert!(text.contains("cut.safetensors"), "{text}");
        let absent = Weights::open(&dir.path().join("none.safetensors")).err().unwrap();
        assert!(absent.to_string().contains("none.safetensors"));
    }
}
