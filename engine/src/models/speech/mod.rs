//! Speech language models on the fast runner: a token is a row of ids, one of each stream, and so is what is said.
//!
//! ```text
//! token      x = E[id 0] + E[id 1] + ..             (Bagpiper leaves out zeros behind stream 0)
//! logits     stream s: W (h + es), its own ids
//!            a row of text:   [symbols][text]                             (`streams::Outputs`)
//!            any other row:   [symbols][stream 0][stream 1][stream 2] ..
//! ```
//! All streams read one h, so the codes of all are one product, and W es, which never changes, is added behind it. An id is of
//! one stream only, so only what can be said is multiplied, and every logit has its place in the row from the start.

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
use crate::kernels::matrix::{Matrix, Place, Precision};
use crate::kernels::tile::LANES;
use crate::layout::NOTHING;
use crate::streams::Outputs;

pub use audit::Audit;
pub use checkpoint::open_model;
pub(crate) use checkpoint::{open_unchecked, weight_file};
pub use config::{Family, SpeechConfig};
pub(crate) use heard::COMING;
pub use heard::{Clip, Heard};

/// Rows of W that are held as `f32` together.
const BLOCK_ROWS: usize = 4096;

/// A speech language model on the CPU.
pub type SpeechLm = Fast<SpeechEnds>;

/// Embedding of rows of ids, and a head for each stream.
pub struct SpeechEnds {
    embedding: Embedding,
    heard: Arc<Heard>,
    /// Whether an id of 0 behind stream 0 counts like any other.
    nothing_counts: bool,
    symbols: Head,
    text: Head,
    /// The codes of all streams, stream by stream.
    codes: Head,
    layout: Outputs,
}

/// Some rows of W.
struct Head {
    matrix: Matrix,
    /// Added to the product; zeros where a stream adds nothing.
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
        self.ends().layout.clone()
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
        let hidden = backbone.hidden;
        check_width(&backbone.file, "hidden_size", hidden)?;
        let shape = [backbone.vocabulary, hidden];
        let embedding = Embedding::read(weights, names.embedding, shape, options.kept_ids)?;
        loaded(embedding.len());
        let shifts = names.read_shifts(weights, config)?;
        loaded(shifts.len());
        let name = if config.tied { names.embedding } else { names.head };
        let rows = HeadRows { weights, name, shape };
        let mut read = |numbers: usize| loaded(if config.tied { 0 } else { numbers });
        let layout = config.outputs();
        let shift = |stream: usize| -> &[f32] {
            let counts = stream > 0 || names.first_counts;
            if counts { &shifts[stream * hidden..][..hidden] } else { &[] }
        };
        let of_first = |ids: &Range<u32>| (ids.clone(), shift(0));
        let symbols: Vec<_> = layout.symbols.iter().map(of_first).collect();
        let heads = layout.heads.iter().enumerate();
        let codes: Vec<_> = heads.map(|(stream, ids)| (ids.clone(), shift(stream))).collect();
        let mut head = |ids: &[_]| rows.pack(ids, options.precision, &mut read);
        Ok(Self {
            embedding,
            heard: Heard::new(hidden),
            nothing_counts: matches!(config.family, Family::OpusLm(_)),
            symbols: head(&symbols)?,
            text: head(&[of_first(&layout.text)])?,
            codes: head(&codes)?,
            layout,
        })
    }
}

impl Head {
    /// Multiplies some of the rows, each to its place.
    fn apply(&self, normed: &[f32], logits: &mut [f32], places: &[Place]) {
        self.matrix.apply_at(normed, logits, places);
        for place in places {
            add(&mut logits[place.start..][..self.matrix.outputs()], &self.bias);
        }
    }
}

/// Rows of W on disk, read a block at a time: all of them as `f32` would be more than everything else that is held.
struct HeadRows<'a> {
    weights: &'a Weights,
    name: &'static str,
    shape: [usize; 2],
}

impl HeadRows<'_> {
    /// Packs the rows of some ids, each with what its stream adds.
    fn pack(
        &self,
        ids: &[(Range<u32>, &[f32])],
        precision: Precision,
        read: &mut dyn FnMut(usize),
    ) -> Result<Head, LoadError> {
        let hidden = self.shape[1];
        let mut head = Head { matrix: Matrix::empty(hidden, precision), bias: Vec::new() };
        head.matrix.reserve(ids.iter().map(|(ids, _)| ids.len()).sum());
        let mut rows = Vec::new();
        for (ids, shift) in ids {
            let ids = ids.start as usize..ids.end as usize;
            for start in ids.clone().step_by(BLOCK_ROWS) {
                let block = start..ids.end.min(start + BLOCK_ROWS);
                let block = self.weights.f32_range(self.name, &self.shape, block)?;
                read(block.len());
                head.bias.extend(block.chunks_exact(hidden).map(|row| dot(row, shift)));
                rows.extend_from_slice(&block);
                // A panel that is not full yet waits for what follows.
                let whole = rows.len() - rows.len() % (LANES * hidden);
                head.matrix.extend(&rows[..whole]);
                rows.drain(..whole);
            }
        }
        head.matrix.extend(&rows);
        Ok(head)
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
        self.layout.heads.len().max(1)
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
        let others = self.streams() - 1;
        for &id in &batch.beside[token * others..(token + 1) * others] {
            if id != NOTHING || self.nothing_counts {
                self.embedding.add(id, &mut x[start..]);
            }
        }
    }

    fn outputs(&self, narrow: bool) -> usize {
        self.layout.len(narrow)
    }

    fn head(&self, normed: &[f32], narrow: &[bool], _inner: &mut Vec<f32>, logits: &mut [f32]) {
        let [mut symbols, mut text, mut codes] = [const { Vec::new() }; 3];
        let mut start = 0;
        for (row, &narrow) in narrow.iter().enumerate() {
            symbols.push(Place { row, start });
            let behind = Place { row, start: start + self.symbols.matrix.outputs() };
            if narrow { &mut codes } else { &mut text }.push(behind);
            start += self.layout.len(narrow);
        }
        self.symbols.apply(normed, logits, &symbols);
        self.text.apply(normed, logits, &text);
        self.codes.apply(normed, logits, &codes);
    }
}

/// In `f64`: made once, and every logit inherits its error.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>() as f32
}

#[cfg(test)]
mod tests;
