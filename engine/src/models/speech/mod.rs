//! Speech language models on the fast runner: a token is a row of ids, one of each stream, and so is what is said.
//!
//! ```text
//! token      x = E[id 0] + E[id 1] + ..             (Bagpiper leaves out zeros behind stream 0)
//! logits     stream 0: W (h + e0)                   the whole vocabulary
//!            stream s: W (h + es), its own ids      [stream 0 ..][stream 1 ..][stream 2 ..]   one row of outputs
//! ```
//! W h is the same for all streams, so it is taken once, and a stream's logits are its ids' part of it, with W es, which
//! never changes, added. Most rows of W are text, which nothing looks at while a sound is said: they are a matrix of their own.

mod audit;
mod checkpoint;
mod config;
mod heard;

use std::ops::Range;
use std::sync::Arc;

use codecs::weights::{LoadError, Weights};

use super::embedding::{EMBEDDING, Embedding};
use super::fast::{Ends, Fast, Options, check_width};
use crate::batch::Batch;
use crate::kernels::math::add;
use crate::kernels::matrix::{Matrix, Store};
use crate::layout::NOTHING;
use crate::streams::Outputs;

pub use audit::Audit;
pub use checkpoint::open_model;
pub(crate) use checkpoint::{open_unchecked, weight_file};
pub use config::{Family, SpeechConfig};
pub(crate) use heard::COMING;
pub use heard::{Clip, Heard};

/// Rows of W that are held as `f32` together: whole panels.
const BLOCK_ROWS: usize = 4096;

/// A speech language model on the CPU.
pub type SpeechLm = Fast<SpeechEnds>;

/// Embedding of rows of ids, and a head for each stream.
pub struct SpeechEnds {
    embedding: Embedding,
    heard: Arc<Heard>,
    /// Whether an id of 0 behind stream 0 counts like any other.
    nothing_counts: bool,
    /// Rows of W for symbols and codes, in their order.
    head: Matrix,
    /// Rows of W for text, and which ids that is; none where all is text.
    text: Option<Matrix>,
    text_ids: Range<usize>,
    vocabulary: usize,
    /// Added to the logits of stream 0.
    bias: Vec<f32>,
    others: Vec<StreamHead>,
    outputs: usize,
}

/// What a stream behind the first makes of the common product.
struct StreamHead {
    ids: Range<usize>,
    bias: Vec<f32>,
}

/// Names of the tensors at the ends.
struct Names {
    embedding: &'static str,
    head: &'static str,
    /// One vector for each stream; its first row counts only where `first_counts`.
    streams: Option<&'static str>,
    first_counts: bool,
}

impl SpeechLm {
    /// Reads and packs the weights. `loaded` is called with the number of parameters that each piece brought.
    ///
    /// # Errors
    /// A tensor or a size that does not hold, by file and name.
    pub fn load(
        weights: &Weights,
        config: &SpeechConfig,
        options: &Options<'_>,
        loaded: &mut dyn FnMut(usize),
    ) -> Result<Self, LoadError> {
        let ends = SpeechEnds::load(weights, config, options, loaded)?;
        Self::from_ends(0, ends, weights, &config.backbone, None, options, loaded)
    }

    /// Where rows are kept that stand in prompts in the place of embeddings.
    pub fn heard(&self) -> Arc<Heard> {
        self.ends().heard.clone()
    }

    /// What a row of logits holds.
    pub fn layout(&self) -> Outputs {
        let ends = self.ends();
        let (mut streams, mut first_ids, mut start) = (Vec::new(), Vec::new(), 0);
        for ids in [&(0..ends.vocabulary)].into_iter().chain(ends.others.iter().map(|o| &o.ids)) {
            streams.push(start..start + ids.len());
            first_ids.push(ids.start as u32);
            start += ids.len();
        }
        Outputs { streams, first_ids, own_pads: !ends.nothing_counts }
    }
}

impl SpeechEnds {
    fn load(
        weights: &Weights,
        config: &SpeechConfig,
        options: &Options<'_>,
        loaded: &mut dyn FnMut(usize),
    ) -> Result<Self, LoadError> {
        let (names, backbone) = (Names::of(&config.family), &config.backbone);
        let (vocabulary, hidden) = (backbone.vocabulary, backbone.hidden);
        check_width(&backbone.file, "hidden_size", hidden)?;
        let shape = [vocabulary, hidden];
        let embedding = Embedding::read(weights, names.embedding, shape, options.kept_ids)?;
        loaded(embedding.len());
        let shifts = names.read_shifts(weights, config)?;
        loaded(shifts.len());
        let name = if config.tied { names.embedding } else { names.head };
        let rows = HeadRows { weights, name, shape };
        let mut read = |numbers: usize| loaded(if config.tied { 0 } else { numbers });
        let text_ids = config.text().unwrap_or(vocabulary..vocabulary);
        let symbols = rows.all(&[0..text_ids.start, text_ids.end..vocabulary])?;
        read(symbols.len());
        let head = Matrix::pack(&symbols, hidden, options.precision);
        drop(symbols);
        let mut text = Matrix::empty(hidden, options.precision);
        rows.each(&text_ids, |block| {
            read(block.len());
            text.extend(block);
        })?;
        let bias = |ids: Range<usize>, stream: usize| {
            rows.dots(&ids, &shifts[stream * hidden..][..hidden])
        };
        let (mut others, mut outputs) = (Vec::new(), vocabulary);
        for (i, ids) in config.other_heads().into_iter().enumerate() {
            let ids = ids.start as usize..ids.end as usize;
            outputs += ids.len();
            others.push(StreamHead { bias: bias(ids.clone(), i + 1)?, ids });
        }
        Ok(Self {
            embedding,
            heard: Heard::new(hidden),
            nothing_counts: matches!(config.family, Family::OpusLm(_)),
            bias: if names.first_counts { bias(0..vocabulary, 0)? } else { Vec::new() },
            head,
            text: (!text_ids.is_empty()).then_some(text),
            text_ids,
            vocabulary,
            others,
            outputs,
        })
    }
}

/// Rows of W on disk, read a block at a time: all of them as `f32` would be more than everything else that is held.
struct HeadRows<'a> {
    weights: &'a Weights,
    name: &'static str,
    shape: [usize; 2],
}

impl HeadRows<'_> {
    fn each(&self, ids: &Range<usize>, mut take: impl FnMut(&[f32])) -> Result<(), LoadError> {
        for start in ids.clone().step_by(BLOCK_ROWS) {
            let block = start..ids.end.min(start + BLOCK_ROWS);
            take(&self.weights.f32_range(self.name, &self.shape, block)?);
        }
        Ok(())
    }

    /// Those of symbols and codes are few enough to be held at once.
    fn all(&self, ids: &[Range<usize>]) -> Result<Vec<f32>, LoadError> {
        let mut rows = Vec::new();
        for ids in ids {
            self.each(ids, |block| rows.extend_from_slice(block))?;
        }
        Ok(rows)
    }

    fn dots(&self, ids: &Range<usize>, shift: &[f32]) -> Result<Vec<f32>, LoadError> {
        let mut dots = Vec::with_capacity(ids.len());
        self.each(ids, |block| {
            dots.extend(block.chunks_exact(shift.len()).map(|row| dot(row, shift)))
        })?;
        Ok(dots)
    }
}

impl Names {
    fn of(family: &Family) -> Self {
        match family {
            Family::Text => Self {
                embedding: EMBEDDING,
                head: "lm_head.weight",
                streams: None,
                first_counts: false,
            },
            Family::Bagpiper(_) => Self {
                embedding: EMBEDDING,
                head: "lm_head.weight",
                streams: Some("stream_emb.weight"),
                first_counts: false,
            },
            Family::OpusLm(_) => Self {
                embedding: "corelm.emb.weight",
                head: "corelm.lm_head.weight",
                streams: Some("corelm.head_emb.weight"),
                first_counts: true,
            },
        }
    }

    /// What each stream adds to what its head reads, `[streams, hidden]`. The file may hold more rows, which nothing uses.
    fn read_shifts(&self, weights: &Weights, config: &SpeechConfig) -> Result<Vec<f32>, LoadError> {
        let Some(name) = self.streams else { return Ok(Vec::new()) };
        let streams = config.streams();
        let rows = weights.shape(name).and_then(|shape| shape.first().copied()).unwrap_or(streams);
        let used: Vec<u32> = (0..streams as u32).collect();
        weights.f32_rows(name, &[rows, config.backbone.hidden], &used)
    }
}

impl Ends for SpeechEnds {
    fn vocabulary(&self) -> usize {
        self.embedding.vocabulary()
    }

    fn streams(&self) -> usize {
        1 + self.others.len()
    }

    fn knows(&self, id: u32) -> bool {
        self.embedding.knows(id) || self.heard.with(id, |_| ()).is_some()
    }

    fn embed(&self, batch: &Batch, token: usize, x: &mut Vec<f32>) {
        let start = x.len();
        let id = batch.ids[token];
        // What was heard is the whole of its token.
        if self.heard.with(id, |row| x.extend_from_slice(row)).is_some() {
            return;
        }
        self.embedding.append(id, x);
        let others = self.others.len();
        for &id in &batch.beside[token * others..(token + 1) * others] {
            if id != NOTHING || self.nothing_counts {
                self.embedding.add(id, &mut x[start..]);
            }
        }
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn head(&self, normed: &[f32], narrow: &[bool], inner: &mut Vec<f32>, logits: &mut Vec<f32>) {
        let (width, text_width) = (self.head.outputs(), self.text_ids.len());
        let rows = normed.chunks_exact(self.head.inputs()).zip(narrow);
        let wide = rows.filter(|(_, narrow)| self.text.is_some() && !**narrow);
        let wide: Vec<f32> = wide.flat_map(|(row, _)| row).copied().collect();
        let symbols = narrow.len() * width;
        inner.resize(symbols + wide.len() / self.head.inputs() * text_width, 0.0);
        let (symbols, text) = inner.split_at_mut(symbols);
        self.head.apply(normed, symbols, Store::Set);
        if let Some(matrix) = &self.text {
            matrix.apply(&wide, text, Store::Set);
        }
        let mut texts = text.chunks_exact(text_width.max(1));
        for (row, narrow) in symbols.chunks_exact(width).zip(narrow) {
            let start = logits.len();
            logits.extend_from_slice(&row[..self.text_ids.start]);
            if !narrow && let Some(text) = texts.next() {
                logits.extend_from_slice(text);
            }
            logits.resize(start + self.text_ids.end, 0.0);
            logits.extend_from_slice(&row[self.text_ids.start..]);
            for other in &self.others {
                let from = logits.len();
                logits.extend_from_within(start + other.ids.start..start + other.ids.end);
                add(&mut logits[from..], &other.bias);
            }
            // Last: the other streams read the product without it. Empty where stream 0 has no vector of its own.
            add(&mut logits[start..start + self.vocabulary], &self.bias);
        }
    }
}

/// In `f64`: made once, and every logit inherits its error.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>() as f32
}

#[cfg(test)]
mod tests;
