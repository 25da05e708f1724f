//! The layers and the head of a stage, over one pass of tokens at a time. Knows no thread and no batch policy.

use codecs::weights::{LoadError, Weights};

use super::Options;
use super::pass::{Part, Piece, passes};
use crate::kernels::attention::{Queries, Scratch, attend, shares};
use crate::kernels::kv::{Heads, Written};
use crate::kernels::math::{add, mish_biased, rms_norm, rms_norm_in_place, rotate, silu_times};
use crate::kernels::matrix::{Matrix, Precision, Store};
use crate::kernels::simd::Narrow;
use crate::kernels::tile::LANES;
use crate::models::config::{AlignmentHead, StageConfig};
use crate::models::embedding::Embedding;
use crate::models::tensors::{HeadTensors, LayerTensors};

/// Weights of a stage.
pub(crate) struct Network {
    embedding: Embedding,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    fc1: Matrix,
    fc1_bias: Vec<f32>,
    fc2: Matrix,
    fc2_bias: Vec<f32>,
    /// Rotary frequency of each pair of dimensions, in radians a position.
    frequencies: Vec<f64>,
    eps: f32,
    hidden: usize,
    ffn: usize,
    head_hidden: usize,
    alignment: Option<AlignmentHead>,
}

struct Layer {
    input_norm: Vec<f32>,
    /// Queries, keys and values in one: they read the same input.
    qkv: Matrix,
    /// Holds the factor 1 / sqrt(width) of the scores: the rotation in between is linear.
    q_norm: Vec<f32>,
    k_norm: Vec<f32>,
    o: Matrix,
    post_norm: Vec<f32>,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

/// Buffers of one thread, kept between forwards.
#[derive(Default)]
pub(crate) struct Workspace {
    /// Residual stream, `[tokens, hidden]`.
    x: Vec<f32>,
    /// Normed input of a block, `[tokens, hidden]`.
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
    /// Inner rows of the head, `[outputs wanted, head hidden]`.
    inner: Vec<f32>,
}

/// What a part of a batch makes.
#[derive(Default)]
pub(crate) struct Output {
    /// A row for each row of the part that asks for it.
    pub(crate) logits: Vec<f32>,
    /// What the rows that watch asked for, one after the other.
    pub(crate) attention: Vec<f32>,
}

impl Workspace {
    /// Residual stream behind the last layer, of the tokens of the last pass whose output was wanted.
    #[cfg(test)]
    pub(crate) fn residual(&self) -> &[f32] {
        &self.x
    }
}

impl Network {
    /// Reads and packs the weights.
    ///
    /// # Errors
    /// A tensor that does not hold, or a width that is not a multiple of [`LANES`].
    pub(crate) fn load(
        weights: &Weights,
        config: &StageConfig,
        options: &Options<'_>,
        loaded: &mut dyn FnMut(usize),
    ) -> Result<Self, LoadError> {
        check_widths(config)?;
        let embedding = Embedding::read(weights, config, options.kept_ids)?;
        loaded(embedding.len());
        let mut layers = Vec::with_capacity(config.layers);
        for index in 0..config.layers {
            let tensors = LayerTensors::read(weights, config, index)?;
            loaded(tensors.len());
            layers.push(Layer::pack(tensors, config, options.precision));
        }
        let head = HeadTensors::read(weights, config)?;
        loaded(head.len());
        let half = config.head_dim / 2;
        let frequency = |i: usize| config.rope_theta.powf(-(i as f64) / half as f64);
        Ok(Self {
            embedding,
            layers,
            norm: head.norm,
            fc1: Matrix::pack(&head.fc1, config.hidden, options.precision),
            fc1_bias: head.fc1_bias,
            fc2: Matrix::pack(&head.fc2, config.head_hidden, options.precision),
            fc2_bias: head.fc2_bias,
            frequencies: (0..half).map(frequency).collect(),
            eps: config.rms_eps,
            hidden: config.hidden,
            ffn: config.ffn,
            head_hidden: config.head_hidden,
            alignment: config.alignment,
        })
    }

    /// Multiplications of a token in the matrices of the layers.
    pub(crate) fn multiplications(&self) -> usize {
        let of = |m: &Matrix| m.outputs() * m.inputs();
        let layer = |l: &Layer| of(&l.qkv) + of(&l.o) + of(&l.gate) + of(&l.up) + of(&l.down);
        self.layers.iter().map(layer).sum()
    }

    pub(crate) fn vocabulary(&self) -> usize {
        self.embedding.vocabulary()
    }

    pub(crate) fn outputs(&self) -> usize {
        self.fc2_bias.len()
    }

    pub(crate) fn embedding(&self, id: u32) -> Option<&[f32]> {
        self.embedding.row(id)
    }

    /// Takes a part of a batch through the network: stores its keys and values, and leaves what it makes in `out`.
    pub(crate) fn run<N: Narrow>(
        &self,
        mut part: Part<'_, N>,
        w: &mut Workspace,
        out: &mut Output,
    ) {
        out.logits.clear();
        out.attention.clear();
        let (last, before) = self.layers.split_last().expect("a stage has layers; this is a bug");
        for mut pass in passes(part.rows) {
            self.embed(&part, &pass, w);
            for (index, layer) in before.iter().enumerate() {
                self.store(index, layer, &mut part, &pass, w);
                self.attend(index, layer, &part, &pass, w, out);
                self.feed_forward(layer, w);
            }
            self.store(before.len(), last, &mut part, &pass, w);
            self.keep_wanted(&mut pass, w);
            if !pass.is_empty() {
                self.attend(before.len(), last, &part, &pass, w, out);
                self.feed_forward(last, w);
                self.head(w, &mut out.logits);
            }
        }
    }

    fn embed<N>(&self, part: &Part<'_, N>, pass: &[Piece], w: &mut Workspace) {
        w.x.clear();
        w.cos.clear();
        w.sin.clear();
        for token in pass.iter().flat_map(|p| p.tokens.clone()) {
            let row = self.embedding.row(part.batch.ids[token]);
            w.x.extend_from_slice(row.expect("ids were checked before the forward; this is a bug"));
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
        self.norm_rows(&w.x, &layer.input_norm, &mut w.normed);
        w.qkv.resize(tokens * layer.qkv.outputs(), 0.0);
        layer.qkv.apply(&w.normed, &mut w.qkv, Store::Set);
        self.rotate_and_store(index, layer, part.written, part.kv.heads(), pass, w);
    }

    /// Drops all tokens but the last of each piece whose output is wanted: behind the keys and values of the last layer,
    /// nothing reads the others any more.
    fn keep_wanted(&self, pass: &mut Vec<Piece>, w: &mut Workspace) {
        let stride = w.qkv.len() * self.hidden / w.x.len();
        let (mut end, mut kept) = (0, 0);
        pass.retain_mut(|piece| {
            end += piece.tokens.len();
            if piece.logits {
                let last = end - 1;
                w.x.copy_within(last * self.hidden..end * self.hidden, kept * self.hidden);
                w.qkv.copy_within(last * stride..end * stride, kept * stride);
                kept += 1;
                piece.first += piece.tokens.len() - 1;
                piece.tokens.start = piece.tokens.end - 1;
            }
            piece.logits
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
        out: &mut Output,
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
            if let Some(AlignmentHead { head, .. }) = alignment.filter(|_| piece.logits)
                && !row.watched.is_empty()
            {
                let last = (piece.tokens.len() - 1, head);
                shares(&kv, &new, last, row.watched.clone(), &mut w.scores, &mut out.attention);
            }
            start = end;
        }
        layer.o.apply(&w.attended, &mut w.x, Store::Add);
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
                for (part, norm) in [(q, &layer.q_norm), (&mut *k, &layer.k_norm)] {
                    for head in part.chunks_exact_mut(heads.width) {
                        rms_norm_in_place(head, norm, self.eps);
                        rotate(head, cos, sin);
                    }
                }
                written[piece.row].store(heads, index, piece.first + i, k, v);
            }
        }
    }

    fn feed_forward(&self, layer: &Layer, w: &mut Workspace) {
        self.norm_rows(&w.x, &layer.post_norm, &mut w.normed);
        let tokens = w.x.len() / self.hidden;
        w.gate.resize(tokens * self.ffn, 0.0);
        w.up.resize(tokens * self.ffn, 0.0);
        layer.gate.apply(&w.normed, &mut w.gate, Store::Set);
        layer.up.apply(&w.normed, &mut w.up, Store::Set);
        silu_times(&mut w.gate, &w.up);
        layer.down.apply(&w.gate, &mut w.x, Store::Add);
    }

    /// Final norm and audio head.
    fn head(&self, w: &mut Workspace, logits: &mut Vec<f32>) {
        let wanted = w.x.len() / self.hidden;
        self.norm_rows(&w.x, &self.norm, &mut w.normed);
        w.inner.resize(wanted * self.head_hidden, 0.0);
        self.fc1.apply(&w.normed, &mut w.inner, Store::Set);
        for row in w.inner.chunks_exact_mut(self.head_hidden) {
            mish_biased(row, &self.fc1_bias);
        }
        let start = logits.len();
        logits.resize(start + wanted * self.outputs(), 0.0);
        self.fc2.apply(&w.inner, &mut logits[start..], Store::Set);
        for row in logits[start..].chunks_exact_mut(self.outputs()) {
            add(row, &self.fc2_bias);
        }
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
    fn pack(t: LayerTensors, config: &StageConfig, precision: Precision) -> Self {
        let pack = |weight: &[f32], inputs: usize| Matrix::pack(weight, inputs, precision);
        let score_scale = 1.0 / (config.head_dim as f32).sqrt();
        Self {
            input_norm: t.input_norm,
            qkv: pack(&[t.q, t.k, t.v].concat(), config.hidden),
            q_norm: t.q_norm.into_iter().map(|v| v * score_scale).collect(),
            k_norm: t.k_norm,
            o: pack(&t.o, config.heads * config.head_dim),
            post_norm: t.post_norm,
            gate: pack(&t.gate, config.hidden),
            up: pack(&t.up, config.hidden),
            down: pack(&t.down, config.ffn),
        }
    }
}

/// The kernels work on whole tiles.
fn check_widths(config: &StageConfig) -> Result<(), LoadError> {
    for (field, width) in [
        ("hidden_size", config.hidden),
        ("head_dim", config.head_dim),
        ("intermediate_size", config.ffn),
        ("audio_head_hidden", config.head_hidden),
    ] {
        if !width.is_multiple_of(LANES) {
            let reason =
                format!("{width} is not a multiple of {LANES}, which the CPU runner needs");
            return Err(LoadError::field(&config.file, field, reason));
        }
    }
    Ok(())
}
