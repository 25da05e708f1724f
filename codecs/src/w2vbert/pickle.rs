//! A reader for the one shape of torch pickle that the release needs: a dictionary of names to float tensors.
//!
//! A pickle is a program for a stack machine, and loading one with the usual tools can run any code. This reader
//! knows the few instructions that such a dictionary is written with, names only three callables, all of which it
//! replaces by plain data, and refuses everything else. It reads untrusted files: no panic, and no program makes
//! more of its file than a few megabytes.
//!
//! ```text
//! NAME.pt                     zip archive, entries stored without compression
//!   */data.pkl                {"mean": rebuild(storage "0", offset, size, stride), ..}
//!   */data/0                  the values, little-endian f32
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use crate::weights::LoadError;

/// Far above the few kilobytes of a real file.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Far above the hundred instructions and the names of a real file. A program copies texts and lists by single
/// instructions, so that without limits a small one could fill the memory.
const MAX_INSTRUCTIONS: usize = 10_000;
const MAX_TEXT_BYTES: usize = 256;

/// Reads every tensor of a pickled dictionary, flattened.
///
/// # Errors
/// The file is unreadable, or holds anything but a dictionary of contiguous `f32` tensors of finite values.
pub(super) fn read_pickled_tensors(file: &Path) -> Result<BTreeMap<String, Vec<f32>>, LoadError> {
    let io = |source| LoadError::Io { file: file.to_path_buf(), source };
    if std::fs::metadata(file).map_err(io)?.len() > MAX_FILE_BYTES {
        return Err(LoadError::malformed(file, "larger than any file of statistics"));
    }
    parse(file, &std::fs::read(file).map_err(io)?)
}

/// [`read_pickled_tensors`] of a file's bytes; `file` is what an error names.
fn parse(file: &Path, bytes: &[u8]) -> Result<BTreeMap<String, Vec<f32>>, LoadError> {
    let error = |reason| LoadError::malformed(file, reason);
    let entries = zip_entries(bytes).map_err(error)?;
    let (name, program) = entries
        .iter()
        .find(|(name, _)| name.ends_with("data.pkl"))
        .ok_or_else(|| error("the archive holds no data.pkl".to_owned()))?;
    let folder = name.trim_end_matches("data.pkl");
    let mut tensors = BTreeMap::new();
    for (name, tensor) in run(program).map_err(error)? {
        let storage = format!("{folder}data/{}", tensor.storage);
        let values = entries
            .get(storage.as_str())
            .and_then(|data| data.get(tensor.offset.checked_mul(4)?..))
            .and_then(|data| data.get(..tensor.count.checked_mul(4)?))
            .ok_or_else(|| LoadError::tensor(file, &name, format!("`{storage}` is too short")))?;
        let values = values
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect::<Vec<_>>();
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            let reason = format!("value {at} is {}, not a finite number", values[at]);
            return Err(LoadError::tensor(file, name, reason));
        }
        tensors.insert(name, values);
    }
    Ok(tensors)
}

/// Name and bytes of every entry of a zip archive without compression.
fn zip_entries(bytes: &[u8]) -> Result<BTreeMap<&str, &[u8]>, String> {
    const END: &[u8] = b"PK\x05\x06";
    const CENTRAL: &[u8] = b"PK\x01\x02";
    const LOCAL: &[u8] = b"PK\x03\x04";
    let cut = || "the archive is truncated or not a zip archive".to_owned();
    // A comment may follow the end record; it is at most 65,535 bytes.
    let tail = bytes.len().saturating_sub(22 + 65_535);
    let end = bytes[tail..].windows(22).rposition(|w| w.starts_with(END)).ok_or_else(cut)? + tail;
    let count = u16_at(bytes, end + 10).ok_or_else(cut)?;
    let mut at = u32_at(bytes, end + 16).ok_or_else(cut)?;
    let mut entries = BTreeMap::new();
    for _ in 0..count {
        let header = bytes.get(at..).filter(|h| h.starts_with(CENTRAL)).ok_or_else(cut)?;
        let half = |i| u16_at(header, i).map(usize::from).ok_or_else(cut);
        let (method, name_length) = (half(10)?, half(28)?);
        let size = u32_at(header, 24).ok_or_else(cut)?;
        let local = u32_at(header, 42).ok_or_else(cut)?;
        let name = header.get(46..46 + name_length).ok_or_else(cut)?;
        let name = std::str::from_utf8(name).map_err(|_| cut())?;
        if method != 0 {
            return Err(format!("entry `{name}` is compressed; torch stores its entries plain"));
        }
        let body = bytes.get(local..).filter(|h| h.starts_with(LOCAL)).ok_or_else(cut)?;
        let lengths = [26, 28].map(|i| u16_at(body, i).map(usize::from));
        let [Some(names), Some(extra)] = lengths else { return Err(cut()) };
        let data = body.get(30 + names + extra..).and_then(|d| d.get(..size)).ok_or_else(cut)?;
        entries.insert(name, data);
        at += 46 + name_length + half(30)? + half(32)?;
    }
    Ok(entries)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
}

/// Where a tensor's values lie.
#[derive(Clone, Debug, PartialEq)]
struct Tensor {
    storage: String,
    offset: usize,
    count: usize,
}

/// What the stack machine handles.
#[derive(Clone, Debug)]
enum Value {
    Mark,
    None,
    Bool,
    Int(i64),
    Text(String),
    Callable(Callable),
    Tuple(Vec<Value>),
    Dict(Vec<(String, Tensor)>),
    Storage(String),
    Tensor(Tensor),
    /// An ordered dictionary that must be empty: a tensor's hooks.
    Empty,
}

/// The only names that a program may use.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Callable {
    RebuildTensor,
    FloatStorage,
    OrderedDict,
}

/// Runs the program and gives the dictionary that it leaves.
fn run(program: &[u8]) -> Result<Vec<(String, Tensor)>, String> {
    let mut machine = Machine { rest: program, stack: Vec::new(), memo: BTreeMap::new() };
    let mut steps = 0;
    while machine.step()? {
        steps += 1;
        if steps == MAX_INSTRUCTIONS {
            return Err(format!("the pickle has more than {MAX_INSTRUCTIONS} instructions"));
        }
    }
    match machine.stack.pop() {
        Some(Value::Dict(tensors)) if machine.stack.is_empty() => Ok(tensors),
        _ => Err("the pickle is not a dictionary of tensors".to_owned()),
    }
}

struct Machine<'a> {
    rest: &'a [u8],
    stack: Vec<Value>,
    memo: BTreeMap<usize, Value>,
}

impl Machine<'_> {
    /// One instruction; false after the last.
    fn step(&mut self) -> Result<bool, String> {
        let [op] = self.take()?;
        match op {
            0x80 => self.take::<1>().map(drop)?,
            b'.' => return Ok(false),
            b'}' => self.stack.push(Value::Dict(Vec::new())),
            b')' => self.stack.push(Value::Tuple(Vec::new())),
            b'(' => self.stack.push(Value::Mark),
            b'N' => self.stack.push(Value::None),
            0x88 | 0x89 => self.stack.push(Value::Bool),
            b'K' => {
                let [n] = self.take()?;
                self.stack.push(Value::Int(i64::from(n)));
            }
            b'M' => {
                let n = u16::from_le_bytes(self.take()?);
                self.stack.push(Value::Int(i64::from(n)));
            }
            b'J' => {
                let n = i32::from_le_bytes(self.take()?);
                self.stack.push(Value::Int(i64::from(n)));
            }
            b'X' => self.text()?,
            b'c' => self.global()?,
            b'q' | b'r' => {
                let key = self.index(op == b'q')?;
                // Lists are stored too in a real file, but never recalled.
                let top = self.stack.last().ok_or_else(underflow)?;
                if matches!(top, Value::Text(_) | Value::Callable(_) | Value::Storage(_)) {
                    self.memo.insert(key, top.clone());
                }
            }
            b'h' | b'j' => {
                let key = self.index(op == b'h')?;
                let value = self.memo.get(&key).cloned();
                self.stack.push(value.ok_or("the pickle recalls what it never stored")?);
            }
            b't' => {
                let items = self.pop_to_mark()?;
                self.stack.push(Value::Tuple(items));
            }
            0x85..=0x87 => {
                let start = self.stack.len().checked_sub(usize::from(op - 0x84));
                let items = self.stack.split_off(start.ok_or_else(underflow)?);
                self.stack.push(Value::Tuple(items));
            }
            b'Q' => self.persistent()?,
            b'R' => self.reduce()?,
            b's' => {
                let start = self.stack.len().checked_sub(2).ok_or_else(underflow)?;
                let items = self.stack.split_off(start);
                self.set_items(items)?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.set_items(items)?;
            }
            other => return Err(format!("pickle instruction {other:#04x} is not allowed here")),
        }
        Ok(true)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or("the pickle is truncated")?;
        self.rest = rest;
        Ok(*head)
    }

    fn index(&mut self, short: bool) -> Result<usize, String> {
        if short {
            let [n] = self.take()?;
            return Ok(usize::from(n));
        }
        Ok(u32::from_le_bytes(self.take()?) as usize)
    }

    fn text(&mut self) -> Result<(), String> {
        let length = u32::from_le_bytes(self.take()?) as usize;
        if length > MAX_TEXT_BYTES {
            return Err(format!(
                "a text of {length} bytes in the pickle, at most {MAX_TEXT_BYTES}"
            ));
        }
        let (text, rest) = self.rest.split_at_checked(length).ok_or("the pickle is truncated")?;
        let text = std::str::from_utf8(text).map_err(|_| "a text of the pickle is not UTF-8")?;
        self.stack.push(Value::Text(text.to_owned()));
        self.rest = rest;
        Ok(())
    }

    fn global(&mut self) -> Result<(), String> {
        let mut line = || {
            let end =
                self.rest.iter().position(|&b| b == b'\n').ok_or("the pickle is truncated")?;
            let text = String::from_utf8_lossy(&self.rest[..end]).into_owned();
            self.rest = &self.rest[end + 1..];
            Ok::<_, String>(text)
        };
        let name = format!("{}.{}", line()?, line()?);
        let callable = match name.as_str() {
            "torch._utils._rebuild_tensor_v2" => Callable::RebuildTensor,
            "torch.FloatStorage" => Callable::FloatStorage,
            "collections.OrderedDict" => Callable::OrderedDict,
            _ => return Err(format!("the pickle calls `{name}`, which is not allowed")),
        };
        self.stack.push(Value::Callable(callable));
        Ok(())
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Value>, String> {
        let mark = self.stack.iter().rposition(|v| matches!(v, Value::Mark));
        let items = self.stack.split_off(mark.ok_or_else(underflow)? + 1);
        self.stack.pop();
        Ok(items)
    }

    /// `("storage", FloatStorage, key, device, count)` to the storage of that key.
    fn persistent(&mut self) -> Result<(), String> {
        let Some(Value::Tuple(id)) = self.stack.pop() else { return Err(underflow()) };
        let [Value::Text(kind), Value::Callable(Callable::FloatStorage), Value::Text(key), ..] =
            id.as_slice()
        else {
            return Err("a storage of the pickle is not of f32 values".to_owned());
        };
        if kind != "storage" {
            return Err(format!("the pickle refers to a `{kind}`, expected a storage"));
        }
        self.stack.push(Value::Storage(key.clone()));
        Ok(())
    }

    fn reduce(&mut self) -> Result<(), String> {
        let (Some(Value::Tuple(arguments)), Some(Value::Callable(callable))) =
            (self.stack.pop(), self.stack.pop())
        else {
            return Err("the pickle calls what is not a function".to_owned());
        };
        self.stack.push(match (callable, arguments.as_slice()) {
            (Callable::OrderedDict, []) => Value::Empty,
            (
                Callable::RebuildTensor,
                [
                    Value::Storage(storage),
                    Value::Int(offset),
                    Value::Tuple(size),
                    Value::Tuple(stride),
                    ..,
                ],
            ) => Value::Tensor(Tensor {
                storage: storage.clone(),
                offset: usize::try_from(*offset)
                    .map_err(|_| "a tensor starts before its storage")?,
                count: contiguous_count(size, stride)?,
            }),
            (other, _) => return Err(format!("the pickle calls {other:?} in an unknown way")),
        });
        Ok(())
    }

    fn set_items(&mut self, items: Vec<Value>) -> Result<(), String> {
        let Some(Value::Dict(dict)) = self.stack.last_mut() else { return Err(underflow()) };
        for pair in items.chunks(2) {
            let [Value::Text(name), Value::Tensor(tensor)] = pair else {
                return Err("the dictionary of the pickle holds more than tensors".to_owned());
            };
            dict.push((name.clone(), tensor.clone()));
        }
        Ok(())
    }
}

fn underflow() -> String {
    "the pickle takes what is not on its stack".to_owned()
}

/// Number of values of a tensor whose values lie side by side in row-major order.
fn contiguous_count(size: &[Value], stride: &[Value]) -> Result<usize, String> {
    let mut count = 1_i64;
    if size.len() != stride.len() {
        return Err("a tensor of the pickle has no plain shape".to_owned());
    }
    for (size, stride) in size.iter().zip(stride).rev() {
        let (Value::Int(size), Value::Int(stride)) = (size, stride) else {
            return Err("a tensor of the pickle has no plain shape".to_owned());
        };
        if *size > 1 && *stride != count {
            return Err("a tensor of the pickle is not contiguous".to_owned());
        }
        count = count.checked_mul(*size).filter(|&c| c >= 0).ok_or("a tensor is too large")?;
    }
    usize::try_from(count).map_err(|_| "a tensor is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stored zip archive with one entry after another, as torch writes it, without checksums.
    fn archive(entries: &[(&str, &[u8])], method: u16) -> Vec<u8> {
        let (mut local, mut central) = (Vec::new(), Vec::new());
        for (name, data) in entries {
            let offset = local.len() as u32;
            let lengths = |out: &mut Vec<u8>| {
                out.extend([0; 8]); // time, date, checksum
                out.extend((data.len() as u32).to_le_bytes());
                out.extend((data.len() as u32).to_le_bytes());
                out.extend((name.len() as u16).to_le_bytes());
                out.extend([0; 2]); // extra
            };
            local.extend(b"PK\x03\x04\0\0\0\0");
            local.extend(method.to_le_bytes());
            lengths(&mut local);
            local.extend(name.as_bytes());
            local.extend(*data);
            central.extend(b"PK\x01\x02\0\0\0\0\0\0");
            central.extend(method.to_le_bytes());
            lengths(&mut central);
            central.extend([0; 10]); // comment, disk, attributes
            central.extend(offset.to_le_bytes());
            central.extend(name.as_bytes());
        }
        let (start, size) = (local.len() as u32, central.len() as u32);
        let mut out = local;
        out.extend(central);
        out.extend(b"PK\x05\x06\0\0\0\0");
        out.extend([(entries.len() as u16).to_le_bytes(); 2].concat());
        out.extend(size.to_le_bytes());
        out.extend(start.to_le_bytes());
        out.extend([0; 2]);
        out
    }

    /// `{"mean": tensor of storage "0"}` with `size` values of stride `stride`.
    fn program(function: &str, storage: &str, size: u8, stride: u8) -> Vec<u8> {
        let mut p = b"\x80\x02}(X\x04\0\0\0mean".to_vec();
        p.extend(format!("c{function}\n((X\x07\0\0\0storagec{storage}\n").bytes());
        p.extend(b"X\x01\0\0\x000X\x03\0\0\0cpuK\x03tQK\0");
        p.extend([b'K', size, 0x85, b'K', stride, 0x85, 0x89]);
        p.extend(b"ccollections\nOrderedDict\n)RtRu.");
        p
    }

    const REBUILD: &str = "torch._utils\n_rebuild_tensor_v2";
    const FLOATS: &str = "torch\nFloatStorage";

    fn read(bytes: &[u8]) -> Result<BTreeMap<String, Vec<f32>>, String> {
        let result = parse(Path::new("stats.pt"), bytes).map_err(|e| e.to_string());
        if let Err(text) = &result {
            assert!(text.contains("stats.pt"), "{text}");
        }
        result
    }

    fn pack(program: &[u8], values: &[f32]) -> Vec<u8> {
        let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        archive(&[("s/data.pkl", program), ("s/data/0", &data)], 0)
    }

    #[test]
    fn a_dictionary_of_tensors_is_read() {
        let tensors = read(&pack(&program(REBUILD, FLOATS, 3, 1), &[1.0, -2.0, 3.5])).unwrap();
        assert_eq!(tensors["mean"], [1.0, -2.0, 3.5]);
    }

    #[test]
    fn whatever_is_not_such_a_dictionary_is_refused_with_a_reason() {
        let values = [1.0, 2.0, 3.0];
        let plain = program(REBUILD, FLOATS, 3, 1);
        for (bytes, says) in [
            (pack(&program("os\nsystem", FLOATS, 3, 1), &values), "`os.system`"),
            (pack(&program(REBUILD, "torch\nLongStorage", 3, 1), &values), "LongStorage"),
            (pack(&program(REBUILD, FLOATS, 3, 2), &values), "not contiguous"),
            (pack(&program(REBUILD, FLOATS, 4, 1), &values), "too short"),
            (pack(&plain, &[1.0, f32::NAN, 3.0]), "not a finite number"),
            (pack(b"\x80\x02]q\0.", &values), "not allowed"),
            (pack(b"\x80\x02K\x01.", &values), "not a dictionary"),
            (pack(b"\x80\x02}X\x01\0\0\0aK\x01s.", &values), "more than tensors"),
            (pack(b"R", &values), "not a function"),
            (pack(b"t", &values), "not on its stack"),
            (pack(b"h\x05", &values), "never stored"),
            (pack(b"X\xff\0\0\0", &values), "truncated"),
            (pack(b"X\xff\xff\xff\xff", &values), "at most 256"),
            (pack(b")q\0h\0", &values), "never stored"),
            (pack(&[b'N'; 20_000], &values), "more than 10000 instructions"),
            (archive(&[("s/data.pkl", &plain)], 8), "compressed"),
            (archive(&[("s/other", &plain)], 0), "no data.pkl"),
            (b"not a zip archive".to_vec(), "truncated or not a zip"),
        ] {
            let text = read(&bytes).unwrap_err();
            assert!(text.contains(says), "{text}, expected {says}");
        }
    }

    #[test]
    fn no_truncation_and_no_changed_byte_panics() {
        let whole = pack(&program(REBUILD, FLOATS, 3, 1), &[1.0, 2.0, 3.0]);
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length} bytes were taken for whole");
        }
        for at in 0..whole.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                // Some changes give another valid file; what counts is that every one returns.
                let _ = read(&bytes);
            }
        }
    }
}
