//! The program in a checkpoint, read as data.
//!
//! A pickle is a program for a stack machine, and loading one with the usual tools can run any code. This reader knows the few
//! instructions that checkpoints are written with, and a few names, all of which it replaces by plain data. It calls nothing.
//! Whatever is copied by an instruction is a number that points at what is held once, so that memory is bounded by the length
//! of the program, and nothing is nested that could overflow a stack.

use std::collections::BTreeMap;

use safetensors::Dtype;

/// Far above the fraction of a megabyte of a model with thousands of tensors.
const MAX_PROGRAM_BYTES: usize = 8 << 20;
/// Dictionaries within dictionaries.
const MAX_DEPTH: usize = 8;
/// Packages of which checkpoints of training runs hold objects.
const PLAIN: [&str; 4] = ["deepspeed.", "espnet2.", "numpy.", "omegaconf."];
const TRUNCATED: &str = "the pickle is truncated";
const UNDERFLOW: &str = "the pickle takes what is not on its stack";

/// Where a tensor's values lie.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tensor<'a> {
    pub(super) storage: &'a str,
    pub(super) dtype: Dtype,
    /// Values of the storage before its first.
    pub(super) offset: usize,
    pub(super) count: usize,
    pub(super) shape: Vec<usize>,
}

/// What the stack machine handles.
#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Mark,
    /// A number with a fraction, a list, none, what a checkpoint remembers beside its tensors.
    Other,
    Int(i64),
    Text(&'a str),
    Callable(Callable),
    Storage(&'a str, Dtype),
    /// Places in the lists of the machine.
    Tuple(usize),
    Dict(usize),
    Tensor(usize),
}

/// What the names stand for that a program may use.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Callable {
    RebuildTensor,
    RebuildParameter,
    Storage(Dtype),
    OrderedDict,
    /// A type whose values mean nothing here.
    Plain,
}

impl Callable {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "torch._utils._rebuild_tensor_v2" => Self::RebuildTensor,
            "torch._utils._rebuild_parameter" => Self::RebuildParameter,
            "torch.FloatStorage" => Self::Storage(Dtype::F32),
            "torch.HalfStorage" => Self::Storage(Dtype::F16),
            "torch.BFloat16Storage" => Self::Storage(Dtype::BF16),
            "torch.DoubleStorage" => Self::Storage(Dtype::F64),
            "torch.LongStorage" => Self::Storage(Dtype::I64),
            "torch.IntStorage" => Self::Storage(Dtype::I32),
            "torch.ByteStorage" => Self::Storage(Dtype::U8),
            "torch.BoolStorage" => Self::Storage(Dtype::BOOL),
            "collections.OrderedDict" => Self::OrderedDict,
            "torch.Size"
            | "torch.device"
            | "torch.float32"
            | "torch.float16"
            | "torch.bfloat16"
            | "argparse.Namespace"
            | "collections.defaultdict"
            | "_codecs.encode" => Self::Plain,
            // What training leaves beside its tensors. It is data to us, whatever it is to them.
            _ if PLAIN.iter().any(|package| name.starts_with(package)) => Self::Plain,
            _ => return None,
        })
    }
}

/// Runs the program and gives the tensors of the dictionary that it leaves, by their names in order.
pub(super) fn tensors(program: &[u8]) -> Result<BTreeMap<String, Tensor<'_>>, String> {
    if program.len() > MAX_PROGRAM_BYTES {
        let length = program.len();
        return Err(format!("the pickle has {length} bytes, at most {MAX_PROGRAM_BYTES}"));
    }
    let mut machine = Machine { rest: program, ..Machine::default() };
    while machine.step()? {}
    match machine.stack[..] {
        [Value::Dict(root)] => machine.collect(root),
        _ => Err("the pickle is not a dictionary of tensors".to_owned()),
    }
}

#[derive(Default)]
struct Machine<'a> {
    rest: &'a [u8],
    stack: Vec<Value<'a>>,
    memo: BTreeMap<usize, Value<'a>>,
    tuples: Vec<Vec<Value<'a>>>,
    dicts: Vec<Vec<(Value<'a>, Value<'a>)>>,
    tensors: Vec<Tensor<'a>>,
}

impl<'a> Machine<'a> {
    /// One instruction; false after the last.
    fn step(&mut self) -> Result<bool, String> {
        let [op] = self.take()?;
        match op {
            0x80 => self.take::<1>().map(drop)?,
            b'.' => return Ok(false),
            b'}' => self.push_dict(),
            b')' => self.push_tuple(Vec::new()),
            b'(' => self.stack.push(Value::Mark),
            b']' | b'N' | 0x88 | 0x89 => self.stack.push(Value::Other),
            b'G' => {
                self.take::<8>()?;
                self.stack.push(Value::Other);
            }
            b'K' => self.int::<1>()?,
            b'M' => self.int::<2>()?,
            b'J' => {
                let n = i32::from_le_bytes(self.take()?);
                self.stack.push(Value::Int(i64::from(n)));
            }
            0x8a => self.long()?,
            b'X' => self.text()?,
            b'c' => self.global()?,
            b'q' => self.store::<1>()?,
            b'r' => self.store::<4>()?,
            b'h' => self.recall::<1>()?,
            b'j' => self.recall::<4>()?,
            b'0' => self.pop().map(drop)?,
            b't' => {
                let items = self.pop_to_mark()?;
                self.push_tuple(items);
            }
            0x85..=0x87 => {
                let items = self.pop_many(usize::from(op - 0x84))?;
                self.push_tuple(items);
            }
            b'Q' => self.persistent()?,
            b'R' | 0x81 => self.reduce()?,
            // What is built into an object beside its items, and what is put into a list, means nothing here.
            b'b' | b'a' => self.pop().map(drop)?,
            b'e' => self.pop_to_mark().map(drop)?,
            b's' => {
                let items = self.pop_many(2)?;
                self.set_items(&items)?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.set_items(&items)?;
            }
            other => return Err(format!("pickle instruction {other:#04x} is not allowed here")),
        }
        Ok(true)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(*head)
    }

    fn unsigned<const N: usize>(&mut self) -> Result<u64, String> {
        let bytes = self.take::<N>()?;
        Ok(bytes.iter().rev().fold(0, |value, &b| value << 8 | u64::from(b)))
    }

    fn int<const N: usize>(&mut self) -> Result<(), String> {
        let n = self.unsigned::<N>()?;
        self.stack.push(Value::Int(n as i64));
        Ok(())
    }

    /// A number of up to eight bytes; a longer one is of no use here.
    fn long(&mut self) -> Result<(), String> {
        let length = self.unsigned::<1>()? as usize;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(TRUNCATED)?;
        self.rest = rest;
        let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
        let mut wide = if negative { [0xff; 8] } else { [0; 8] };
        self.stack.push(match wide.get_mut(..length) {
            None => Value::Other,
            Some(low) => {
                low.copy_from_slice(bytes);
                Value::Int(i64::from_le_bytes(wide))
            }
        });
        Ok(())
    }

    fn text(&mut self) -> Result<(), String> {
        let length = self.unsigned::<4>()? as usize;
        let (text, rest) = self.rest.split_at_checked(length).ok_or(TRUNCATED)?;
        let text = std::str::from_utf8(text).map_err(|_| "a text of the pickle is not UTF-8")?;
        self.stack.push(Value::Text(text));
        self.rest = rest;
        Ok(())
    }

    fn line(&mut self) -> Result<&'a str, String> {
        let end = self.rest.iter().position(|&b| b == b'\n').ok_or(TRUNCATED)?;
        let (line, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        std::str::from_utf8(line).map_err(|_| "a name of the pickle is not UTF-8".to_owned())
    }

    fn global(&mut self) -> Result<(), String> {
        let name = format!("{}.{}", self.line()?, self.line()?);
        let callable = Callable::named(&name);
        let callable =
            callable.ok_or_else(|| format!("the pickle names `{name}`, which is not allowed"))?;
        self.stack.push(Value::Callable(callable));
        Ok(())
    }

    fn store<const N: usize>(&mut self) -> Result<(), String> {
        let key = self.unsigned::<N>()? as usize;
        let top = self.stack.last().ok_or(UNDERFLOW)?;
        self.memo.insert(key, *top);
        Ok(())
    }

    fn recall<const N: usize>(&mut self) -> Result<(), String> {
        let key = self.unsigned::<N>()? as usize;
        let value = self.memo.get(&key).ok_or("the pickle recalls what it never stored")?;
        self.stack.push(*value);
        Ok(())
    }

    fn pop(&mut self) -> Result<Value<'a>, String> {
        self.stack.pop().ok_or_else(|| UNDERFLOW.to_owned())
    }

    fn pop_many(&mut self, count: usize) -> Result<Vec<Value<'a>>, String> {
        let start = self.stack.len().checked_sub(count).ok_or(UNDERFLOW)?;
        Ok(self.stack.split_off(start))
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Value<'a>>, String> {
        let mark = self.stack.iter().rposition(|v| matches!(v, Value::Mark)).ok_or(UNDERFLOW)?;
        let items = self.stack.split_off(mark + 1);
        self.stack.pop();
        Ok(items)
    }

    fn push_tuple(&mut self, items: Vec<Value<'a>>) {
        self.stack.push(Value::Tuple(self.tuples.len()));
        self.tuples.push(items);
    }

    fn push_dict(&mut self) {
        self.stack.push(Value::Dict(self.dicts.len()));
        self.dicts.push(Vec::new());
    }

    fn pop_tuple(&mut self) -> Result<Vec<Value<'a>>, String> {
        match self.pop()? {
            Value::Tuple(at) => Ok(self.tuples[at].clone()),
            _ => Err("the pickle passes what is not a list of arguments".to_owned()),
        }
    }

    /// `("storage", type, key, device, count)` to the storage of that key.
    fn persistent(&mut self) -> Result<(), String> {
        match self.pop_tuple()?[..] {
            [
                Value::Text("storage"),
                Value::Callable(Callable::Storage(dtype)),
                Value::Text(key),
                ..,
            ] => {
                self.stack.push(Value::Storage(key, dtype));
                Ok(())
            }
            _ => Err("the pickle refers to what is not a storage of numbers".to_owned()),
        }
    }

    fn reduce(&mut self) -> Result<(), String> {
        let arguments = self.pop_tuple()?;
        let Value::Callable(callable) = self.pop()? else {
            return Err("the pickle calls what is not a function".to_owned());
        };
        match (callable, &arguments[..]) {
            (Callable::OrderedDict, []) => self.push_dict(),
            (Callable::Plain, _) => self.stack.push(Value::Other),
            (Callable::RebuildParameter, [tensor @ Value::Tensor(_), ..]) => {
                self.stack.push(*tensor)
            }
            (
                Callable::RebuildTensor,
                &[
                    Value::Storage(storage, dtype),
                    Value::Int(offset),
                    Value::Tuple(size),
                    Value::Tuple(stride),
                    ..,
                ],
            ) => {
                let offset =
                    usize::try_from(offset).map_err(|_| "a tensor starts before its storage")?;
                let shape = contiguous(&self.tuples[size], &self.tuples[stride])?;
                let count = shape.iter().try_fold(1_usize, |n, &size| n.checked_mul(size));
                let count = count.ok_or("a tensor of the pickle is too large")?;
                self.stack.push(Value::Tensor(self.tensors.len()));
                self.tensors.push(Tensor { storage, dtype, offset, count, shape });
            }
            (other, _) => return Err(format!("the pickle calls {other:?} in an unknown way")),
        }
        Ok(())
    }

    fn set_items(&mut self, items: &[Value<'a>]) -> Result<(), String> {
        let dict = match self.stack.last() {
            Some(Value::Dict(dict)) => dict,
            // Items of an object that means nothing here.
            Some(Value::Other) => return Ok(()),
            _ => return Err(UNDERFLOW.to_owned()),
        };
        for pair in items.chunks(2) {
            let &[key, value] = pair else { return Err(UNDERFLOW.to_owned()) };
            self.dicts[*dict].push((key, value));
        }
        Ok(())
    }

    /// Walks dictionaries within dictionaries. Each is walked once: a program can put one into itself, or into many.
    fn collect(&self, root: usize) -> Result<BTreeMap<String, Tensor<'a>>, String> {
        let mut found = BTreeMap::new();
        let mut seen = vec![false; self.dicts.len()];
        let mut open = vec![(root, String::new(), 0)];
        while let Some((dict, prefix, depth)) = open.pop() {
            if std::mem::replace(&mut seen[dict], true) {
                continue;
            }
            for (key, value) in &self.dicts[dict] {
                let key = match key {
                    Value::Text(key) => (*key).to_owned(),
                    Value::Int(key) => key.to_string(),
                    _ => continue,
                };
                match *value {
                    Value::Tensor(at) => {
                        found.insert(format!("{prefix}{key}"), self.tensors[at].clone());
                    }
                    Value::Dict(inner) if depth < MAX_DEPTH => {
                        open.push((inner, format!("{prefix}{key}."), depth + 1));
                    }
                    _ => {}
                }
            }
        }
        if found.is_empty() {
            return Err("the pickle is not a dictionary of tensors".to_owned());
        }
        Ok(found)
    }
}

/// Sizes of a tensor whose values lie side by side in row-major order.
fn contiguous(size: &[Value<'_>], stride: &[Value<'_>]) -> Result<Vec<usize>, String> {
    if size.len() != stride.len() {
        return Err("a tensor of the pickle has no plain shape".to_owned());
    }
    let (mut shape, mut expected) = (Vec::with_capacity(size.len()), 1_i64);
    for pair in size.iter().zip(stride).rev() {
        let (&Value::Int(size), &Value::Int(stride)) = pair else {
            return Err("a tensor of the pickle has no plain shape".to_owned());
        };
        if size > 1 && stride != expected {
            return Err("a tensor of the pickle is not contiguous".to_owned());
        }
        shape.push(usize::try_from(size).map_err(|_| "a tensor of the pickle has a size below 0")?);
        expected = expected.checked_mul(size).ok_or("a tensor of the pickle is too large")?;
    }
    shape.reverse();
    Ok(shape)
}
