//! The layers of a network, over one pass of tokens at a time. Knows no thread, no batch policy, and not what its ends mean.

use std::path::Path;

use codecs::weights::{LoadError, Weights};

use super::pass::{Part, Piece, passes};
use crate::batch::Batch;
use crate::kernels::attention::{Queries, Scratch, attend, shares};
use crate::kernels::kv::{Heads, Written};
use crate::kernels::math::{add, rms_norm, rms_norm_in_place, rotate, silu_times};
use crate::kernels::matrix::{Matrix, Precision, Store};
use crate::kernels::simd::Narrow;
use crate::kernels::tile::LANES;
use crate::models::backbone::Backbone;
use crate::models::config::AlignmentHead;
use crate::models::tensors::{LayerTensors, Stored, final_norm};

/// The two ends of a network: what makes a token's residual stream, and what reads it behind the last layer.
pub trait Ends: Send + Sync {
    /// Ids below this are in the embedding, though a row may have been dropped.
    fn vocabulary(&self) -> usize;

    /// Ids that a token has: one, or one of each stream.
    fn streams(&self) -> usize {
        1
    }

    /// Whether an id has an embedding row.
    fn knows(&self, id: u32) -> bool;

    /// Appends the embedding of a token of a batch whose ids are all known.
    fn embed(&self, batch: &Batch, token: usize, x: &mut Vec<f32>);

    /// Length of a row of logits, narrow or not.
    fn outputs(&self, narrow: bool) -> usize;

    /// Fills `logits` with a row for each row of `normed`, narrow or not as `narrow` says of each; `inner` is scratch.
    fn head(&self, normed: &[f32], narrow: &[bool], inner: &mut Vec<f32>, logits: &mut [f32]);
}

/// Weights of a network.
pub(crate) struct Network<E> {
    pub(crate) ends: E,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    /// Rotary frequency of each pair of dimensions, in radians a position.
    frequencies: Vec<f64>,
    eps: f32,
    hidden: usize,
    ffn: usize,
    alignment: Option<AlignmentHead>,
}

/// The factor 1 / sqrt(width) of the scores lies in the norm of the queries or, where there is none, in their matrix: the
/// rotation in between is linear.
struct Layer {
    input_norm: Option<Vec<f32>>,
    /// Queries, keys and values in one: they read the same input.
    qkv: Matrix,
    qk_norms: Option<QkNorms>,
    o: Matrix,
    attended_norm: Option<Vec<f32>>,
    ffn_norm: Option<Vec<f32>>,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
    fed_norm: Option<Vec<f32>>,
}

/// Norms of queries and keys; each covers as many values as it has weights, a head or all heads.
struct QkNorms {
    q: Vec<f32>,
    k: Vec<f32>,
}

/// Buffers of one thread, kept between forwards.
#[derive(Default)]
pub(crate) struct Workspace {
    /// Residual stream, `[tokens, hidden]`.
    x: Vec<f32>,
    /// Normed input of a block, or its output before the norm behind it, `[tokens, hidden]`.
    normed: Vec<f32>,
    /// `[tokens, (heads + 2 kv heads) * width]`.
    qkv: Vec<f32>,
    /// `[tokens, heads * width]`.
    attended: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    /// Cosine and sine of each token's angles, `[tokens, width / 2]`.
    cos: Vec<f32>,
    sin: Vec<f32>,
    scores: Scratch,
    /// Which outputs wanted are narrow.
    narrow: Vec<bool>,
    /// Scratch of the head.
    inner: Vec<f32>,
}

/// What a part of a batch makes.
pub(crate) struct Output<'a> {
    /// Room for a row for each row of the part that asks for it.
    pub(crate) logits: &'a mut [f32],
    /// What the rows that watch asked for, one after the other.
    pub(crate) attention: &'a mut Vec<f32>,
}

impl Workspace {
    /// Residual stream behind the last layer, of the tokens of the last pass whose output was wanted.
    #[cfg(test)]
    pub(crate) fn residual(&self) -> &[f32] {
        &self.x
    }

    /// Queries, keys and values of the last layer, normed and rotated, of the same tokens.
    #[cfg(test)]
    pub(crate) fn projected(&self) -> &[f32] {
        &self.qkv
    }
}

impl<E: Ends> Network<E> {
    /// Reads and packs the layers.
    ///
    /// # Errors
    /// A tensor that does not hold, or a width that is not a multiple of [`LANES`].
    pub(crate) fn load(
        ends: E,
        weights: &Weights,
        backbone: &Backbone,
        alignment: Option<AlignmentHead>,
        precision: Precision,
        loaded: &mut dyn FnMut(usize),
    ) -> Result<Self, LoadError> {
        for (field, width) in [("head_dim", backbone.head_dim), ("intermediate_size", backbone.ffn)]
        {
            check_width(&backbone.file, field, width)?;
        }
        let mut layers = Vec::with_capacity(backbone.layers);
        for index in 0..backbone.layers {
            let tensors = LayerTensors::find(weights, backbone, index)?;
            let numbers = tensors.len();
            layers.push(Layer::read(tensors, backbone, precision)?);
            loaded(numbers);
        }
        let norm = final_norm(weights, backbone)?;
        loaded(norm.len());
        let half = backbone.head_dim / 2;
        let frequency = |i: usize| backbone.rope_theta.powf(-(i as f64) / half as f64);
        Ok(Self {
            ends,
            layers,
            norm,
            frequencies: (0..half).map(frequency).collect(),
            eps: backbone.rms_eps,
            hidden: backbone.hidden,
            ffn: backbone.ffn,
            alignment,
        })
    }

    /// Multiplications of a token in the matrices of the layers.
    pub(crate) fn multiplications(&self) -> usize {
        let of = |m: &Matrix| m.outputs() * m.inputs();
        let layer = |l: &Layer| of(&l.qkv) + of(&l.o) + of(&l.gate) + of(&l.up) + of(&l.down);
        self.layers.iter().map(layer).sum()
    }

    /// Takes a part of a batch through the network: stores its keys and values, and leaves what it makes in `out`.
    pub(crate) fn run<N: Narrow>(
        &self,
        mut part: Part<'_, N>,
        w: &mut Workspace,
        mut out: Output<'_>,
    ) {
        out.attention.clear();
        let (last, before) = self.layers.split_last().expect("a network has layers; this is a bug");
        for mut pass in passes(part.rows) {
            self.embed(&part, &pass, w);
            for (index, layer) in before.iter().enumerate() {
                self.store(index, layer, &mut part, &pass, w);
                self.attend(index, layer, &part, &pass, w, out.attention);
                self.feed_forward(layer, w);
            }
            self.store(before.len(), last, &mut part, &pass, w);
            self.keep_wanted(&mut pass, w);
            if !pass.is_empty() {
                self.attend(before.len(), last, &part, &pass, w, out.attention);
                self.feed_forward(last, w);
                w.narrow.clear();
                let narrow = |p: &Piece| std::iter::repeat_n(part.rows[p.row].narrow, p.wanted);
                w.narrow.extend(pass.iter().flat_map(narrow));
                let values = w.narrow.iter().map(|narrow| self.ends.outputs(*narrow)).sum();
                let rows = out.logits.split_off_mut(..values);
                self.head(w, rows.expect("room for every row that is asked for; this is a bug"));
            }
        }
    }

    fn embed<N>(&self, part: &Part<'_, N>, pass: &[Piece], w: &mut Workspace) {
        w.x.clear();
        w.cos.clear();
        w.sin.clear();
        for token in pass.iter().flat_map(|p| p.tokens.clone()) {
            self.ends.embed(part.batch, token, &mut w.x);
            let position = f64::from(part.batch.positions[token]);
            let angles = self.frequencies.iter().map(|f| (position * f).sin_cos());
            for (sin, cos) in angles {
                w.sin.push(sin as f32);
                w.cos.push(cos as f32);
            }
        }
    }

    /// Queries, keys and values of all tokens; the keys and values go where they can be read.
    fn store<N: Narrow>(
        &self,
        index: usize,
        layer: &Layer,
        part: &mut Part<'_, N>,
        pass: &[Piece],
        w: &mut Workspace,
    ) {
        let tokens = w.x.len() / self.hidden;
        let input = self.in_front(&w.x, layer.input_norm.as_deref(), &mut w.normed);
        w.qkv.resize(tokens * layer.qkv.outputs(), 0.0);
        layer.qkv.apply(input, &mut w.qkv, Store::Set);
        self.rotate_and_store(index, layer, part.written, part.kv.heads(), pass, w);
    }

    /// Drops all tokens but the last ones of each piece whose outputs are wanted: behind the keys and values of the last layer,
    /// nothing reads the others any more.
    fn keep_wanted(&self, pass: &mut Vec<Piece>, w: &mut Workspace) {
        let stride = w.qkv.len() * self.hidden / w.x.len();
        let (mut end, mut kept) = (0, 0);
        pass.retain_mut(|piece| {
            end += piece.tokens.len();
            let start = end - piece.wanted;
            w.x.copy_within(start * self.hidden..end * self.hidden, kept * self.hidden);
            w.qkv.copy_within(start * stride..end * stride, kept * stride);
            kept += piece.wanted;
            piece.first += piece.tokens.len() - piece.wanted;
            piece.tokens.start = piece.tokens.end - piece.wanted;
            piece.wanted > 0
        });
        w.x.truncate(kept * self.hidden);
        w.qkv.truncate(kept * stride);
    }

    /// What the tokens see of those before them is added to the residual stream.
    fn attend<N: Narrow>(
        &self,
        index: usize,
        layer: &Layer,
        part: &Part<'_, N>,
        pass: &[Piece],
        w: &mut Workspace,
        shared: &mut Vec<f32>,
    ) {
        let heads = part.kv.heads();
        let (q_width, stride) = (heads.queries * heads.width, layer.qkv.outputs());
        w.attended.resize(w.x.len() / self.hidden * q_width, 0.0);
        let alignment = self.alignment.filter(|a| a.layer == index);
        let mut start = 0;
        for piece in pass {
            let end = start + piece.tokens.len();
            let row = &part.rows[piece.row];
            let queries = &w.qkv[start * stride..end * stride];
            let new = Queries { layer: index, first: piece.first, queries, stride };
            let kv = part.kv.view(&row.blocks, &part.written[piece.row]);
            attend(&kv, &new, &mut w.scores, &mut w.attended[start * q_width..end * q_width]);
            let ends = row.logits && piece.tokens.end == row.tokens.end;
            if let Some(AlignmentHead { head, .. }) = alignment.filter(|_| ends)
                && !row.watched.is_empty()
            {
                let last = (piece.tokens.len() - 1, head);
                shares(&kv, &new, last, row.watched.clone(), &mut w.scores, shared);
            }
            start = end;
        }
        self.add_branch(
            &layer.o,
            &w.attended,
            layer.attended_norm.as_deref(),
            &mut w.normed,
            &mut w.x,
        );
    }

    fn rotate_and_store<N: Narrow>(
        &self,
        index: usize,
        layer: &Layer,
        written: &mut [Written<N>],
        heads: Heads,
        pass: &[Piece],
        w: &mut Workspace,
    ) {
        let (q_width, kv_width) = (heads.queries * heads.width, heads.kv * heads.width);
        let half = heads.width / 2;
        let mut rows = w.qkv.chunks_exact_mut(layer.qkv.outputs());
        let mut angles = w.cos.chunks_exact(half).zip(w.sin.chunks_exact(half));
        for piece in pass {
            for (i, _) in piece.tokens.clone().enumerate() {
                let (Some(row), Some((cos, sin))) = (rows.next(), angles.next()) else { return };
                let (q, kv) = row.split_at_mut(q_width);
                let (k, v) = kv.split_at_mut(kv_width);
                if let Some(norms) = &layer.qk_norms {
                    for (part, norm) in [(&mut *q, &norms.q), (&mut *k, &norms.k)] {
                        for normed in part.chunks_exact_mut(norm.len()) {
                            rms_norm_in_place(normed, norm, self.eps);
                        }
                    }
                }
                for head in q.chunks_exact_mut(heads.width).chain(k.chunks_exact_mut(heads.width)) {
                    rotate(head, cos, sin);
                }
                written[piece.row].store(heads, index, piece.first + i, k, v);
            }
        }
    }

    fn feed_forward(&self, layer: &Layer, w: &mut Workspace) {
        let tokens = w.x.len() / self.hidden;
        w.gate.resize(tokens * self.ffn, 0.0);
        w.up.resize(tokens * self.ffn, 0.0);
        let input = self.in_front(&w.x, layer.ffn_norm.as_deref(), &mut w.normed);
        layer.gate.apply(input, &mut w.gate, Store::Set);
        layer.up.apply(input, &mut w.up, Store::Set);
        silu_times(&mut w.gate, &w.up);
        self.add_branch(&layer.down, &w.gate, layer.fed_norm.as_deref(), &mut w.normed, &mut w.x);
    }

    /// What a block reads: the residual stream, normed where the norm stands in front.
    fn in_front<'a>(
        &self,
        x: &'a [f32],
        norm: Option<&[f32]>,
        normed: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        let Some(weight) = norm else { return x };
        self.norm_rows(x, weight, normed);
        normed
    }

    /// Adds what a block makes to the residual stream, normed before where the norm stands behind.
    fn add_branch(
        &self,
        matrix: &Matrix,
        input: &[f32],
        norm: Option<&[f32]>,
        scratch: &mut Vec<f32>,
        x: &mut [f32],
    ) {
        let Some(weight) = norm else { return matrix.apply(input, x, Store::Add) };
        scratch.resize(x.len(), 0.0);
        matrix.apply(input, scratch, Store::Set);
        for (row, x) in scratch.chunks_exact_mut(self.hidden).zip(x.chunks_exact_mut(self.hidden)) {
            rms_norm_in_place(row, weight, self.eps);
            add(x, row);
        }
    }

    /// Final norm and head.
    fn head(&self, w: &mut Workspace, logits: &mut [f32]) {
        self.norm_rows(&w.x, &self.norm, &mut w.normed);
        self.ends.head(&w.normed, &w.narrow, &mut w.inner, logits);
    }

    /// What the head reads, for any rows of the residual stream.
    #[cfg(test)]
    pub(crate) fn final_norm(&self, x: &[f32]) -> Vec<f32> {
        let mut out = Vec::new();
        self.norm_rows(x, &self.norm, &mut out);
        out
    }

    fn norm_rows(&self, x: &[f32], weight: &[f32], out: &mut Vec<f32>) {
        out.resize(x.len(), 0.0);
        for (row, out) in x.chunks_exact(self.hidden).zip(out.chunks_exact_mut(self.hidden)) {
            rms_norm(row, weight, self.eps, out);
        }
    }
}

impl Layer {
    /// Packs the matrices as they are read: none is ever held whole as `f32`.
    fn read(
        mut t: LayerTensors<Stored<'_>>,
        backbone: &Backbone,
        precision: Precision,
    ) -> Result<Self, LoadError> {
        let pack = |parts: &[&Stored<'_>], inputs: usize, scale: f32| {
            let mut matrix = Matrix::empty(inputs, precision);
            matrix.reserve(parts.iter().map(|part| part.rows()).sum());
            for (i, part) in parts.iter().enumerate() {
                part.each(|mut rows| {
                    if i == 0 && scale != 1.0 {
                        rows.iter_mut().for_each(|v| *v *= scale);
                    }
                    matrix.extend(&rows);
                })?;
            }
            Ok::<_, LoadError>(matrix)
        };
        let score_scale = 1.0 / (backbone.head_dim as f32).sqrt();
        let q_scale = match &mut t.q_norm {
            Some(norm) => {
                norm.iter_mut().for_each(|v| *v *= score_scale);
                1.0
            }
            None => score_scale,
        };
        Ok(Self {
            input_norm: t.input_norm,
            qkv: pack(&[&t.q, &t.k, &t.v], backbone.hidden, q_scale)?,
            qk_norms: t.q_norm.zip(t.k_norm).map(|(q, k)| QkNorms { q, k }),
            o: pack(&[&t.o], backbone.q_width(), 1.0)?,
            attended_norm: t.attended_norm,
            ffn_norm: t.ffn_norm,
            gate: pack(&[&t.gate], backbone.hidden, 1.0)?,
            up: pack(&[&t.up], backbone.hidden, 1.0)?,
            down: pack(&[&t.down], backbone.ffn, 1.0)?,
            fed_norm: t.fed_norm,
        })
    }
}

/// The kernels work on whole tiles.
///
/// # Errors
/// The width of `field` is not a multiple of [`LANES`].
pub(crate) fn check_width(file: &Path, field: &str, width: usize) -> Result<(), LoadError> {
    if width.is_multiple_of(LANES) {
        return Ok(());
    }
    let reason = format!("{width} is not a multiple of {LANES}, which the CPU runner needs");
    Err(LoadError::field(file, field, reason))
}
