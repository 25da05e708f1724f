//! The plain computation of a stage on candle, in `f32`: what the fast runner is held to. Slow and obvious on purpose.

use std::ops::Range;

use candle_core::{D, Device, Result, Tensor};
use codecs::weights::{LoadError, Weights};

use super::backbone::Backbone;
use super::config::StageConfig;
use super::embedding::{EMBEDDING, Embedding};
use super::tensors::{HeadTensors, LayerTensors, final_norm};
use crate::batch::{BLOCK_TOKENS, Batch, BatchRow};
use crate::runner::{ForwardError, StageModel};

/// One stage's network.
pub struct Reference {
    config: StageConfig,
    embedding: Embedding,
    layers: Vec<Layer>,
    norm: Tensor,
    fc1: Linear,
    fc2: Linear,
    /// What the last forward attended to.
    attention: Vec<f32>,
    /// Ids and positions of the tokens of each block: the reference keeps no keys and values between forwards.
    blocks: Vec<[(u32, i32); BLOCK_TOKENS]>,
}

/// What a forward of whole sequences passes through.
pub struct Trace {
    /// Residual stream before the first layer and after each, `[sequences, tokens, hidden]`.
    pub hidden: Vec<Tensor>,
    /// After the final norm, `[sequences, tokens, hidden]`.
    pub last: Tensor,
    /// Audio head at every token, `[sequences, tokens, outputs]`.
    pub logits: Tensor,
    /// Weights of the alignment head, if there is one, `[sequences, tokens, all tokens]`.
    pub alignment: Option<Tensor>,
}

/// Keys and values of each layer, `[sequences, kv heads, tokens, width]`: lets sequences of one length go on.
#[derive(Default, Clone)]
pub struct Cache(Vec<(Tensor, Tensor)>);

struct Layer {
    input_norm: Tensor,
    q: Linear,
    k: Linear,
    v: Linear,
    q_norm: Tensor,
    k_norm: Tensor,
    o: Linear,
    ffn_norm: Tensor,
    gate: Linear,
    up: Linear,
    down: Linear,
}

struct Linear {
    /// `[inputs, outputs]`.
    weight: Tensor,
    bias: Option<Tensor>,
}

impl Reference {
    /// Reads the weights.
    ///
    /// # Errors
    /// A tensor that does not hold, by file and name.
    pub fn load(weights: &Weights, config: &StageConfig) -> std::result::Result<Self, LoadError> {
        let device = |e: candle_core::Error| LoadError::malformed(weights.file(), e.to_string());
        let backbone = &config.backbone;
        let shape = [backbone.vocabulary, backbone.hidden];
        let embedding = Embedding::read(weights, EMBEDDING, shape, None)?;
        let mut layers = Vec::with_capacity(backbone.layers);
        for index in 0..backbone.layers {
            let tensors = LayerTensors::read(weights, backbone, index)?;
            layers.push(Layer::new(tensors, backbone).map_err(device)?);
        }
        let head = HeadTensors::read(weights, config)?;
        let (inner, outputs) = (config.head_hidden, config.outputs);
        Ok(Self {
            embedding,
            layers,
            norm: vector(final_norm(weights, backbone)?).map_err(device)?,
            fc1: Linear::new(head.fc1, inner, Some(head.fc1_bias)).map_err(device)?,
            fc2: Linear::new(head.fc2, outputs, Some(head.fc2_bias)).map_err(device)?,
            config: config.clone(),
            attention: Vec::new(),
            blocks: Vec::new(),
        })
    }

    /// Runs sequences of one length side by side, each from where `cache` left it; all are `[sequences][tokens]`.
    /// Every token sees itself and those before it in its own sequence.
    ///
    /// # Errors
    /// Lengths that differ, an id beyond the vocabulary, or what candle says.
    pub fn run(
        &self,
        ids: &[Vec<u32>],
        positions: &[Vec<i32>],
        cache: &mut Cache,
    ) -> Result<Trace> {
        let (sequences, tokens) = (ids.len(), ids.first().map_or(0, Vec::len));
        let mut rows = Vec::new();
        for &id in ids.iter().flatten() {
            if !self.embedding.knows(id) {
                return Err(candle_core::Error::Msg(format!("id {id} has no row")));
            }
            self.embedding.append(id, &mut rows);
        }
        let shape = (sequences, tokens, self.config.backbone.hidden);
        let mut x = Tensor::from_vec(rows, shape, &Device::Cpu)?;
        let rotation = self.rotation(positions, tokens)?;
        let mut hidden = vec![x.clone()];
        let mut alignment = None;
        for (index, layer) in self.layers.iter().enumerate() {
            let (attended, weights) = self.attention(layer, &x, &rotation, index, cache)?;
            if let Some(named) = self.config.alignment.filter(|a| a.layer == index) {
                alignment = Some(weights.narrow(1, named.head, 1)?.squeeze(1)?);
            }
            x = (x + attended)?;
            let normed = self.rms_norm(&x, &layer.ffn_norm)?;
            let inner = (silu(&layer.gate.apply(&normed)?)? * layer.up.apply(&normed)?)?;
            x = (x + layer.down.apply(&inner)?)?;
            hidden.push(x.clone());
        }
        let last = self.rms_norm(&x, &self.norm)?;
        let logits = self.fc2.apply(&mish(&self.fc1.apply(&last)?)?)?;
        Ok(Trace { hidden, last, logits, alignment })
    }

    /// Cosines and sines, `[sequences, 1, tokens, width / 2]`.
    fn rotation(&self, positions: &[Vec<i32>], tokens: usize) -> Result<(Tensor, Tensor)> {
        let half = self.config.backbone.head_dim / 2;
        let angle = |p: i32, i: usize| {
            f64::from(p) * self.config.backbone.rope_theta.powf(-(i as f64) / half as f64)
        };
        let angles: Vec<f64> =
            positions.iter().flatten().flat_map(|&p| (0..half).map(move |i| angle(p, i))).collect();
        let table = |f: fn(f64) -> f64| {
            let values: Vec<f32> = angles.iter().map(|a| f(*a) as f32).collect();
            Tensor::from_vec(values, (positions.len(), 1, tokens, half), &Device::Cpu)
        };
        Ok((table(f64::cos)?, table(f64::sin)?))
    }

    /// Output of the block, and the weights of all heads, `[sequences, heads, tokens, all tokens]`.
    fn attention(
        &self,
        layer: &Layer,
        x: &Tensor,
        rotation: &(Tensor, Tensor),
        index: usize,
        cache: &mut Cache,
    ) -> Result<(Tensor, Tensor)> {
        let (sequences, tokens, _) = x.dims3()?;
        let Backbone { heads, kv_heads, head_dim: width, .. } = self.config.backbone;
        let normed = self.rms_norm(x, &layer.input_norm)?;
        let split = |linear: &Linear, heads: usize| {
            linear.apply(&normed)?.reshape((sequences, tokens, heads, width))?.transpose(1, 2)
        };
        let q = self.rms_norm(&split(&layer.q, heads)?, &layer.q_norm)?;
        let k = self.rms_norm(&split(&layer.k, kv_heads)?, &layer.k_norm)?;
        let (q, mut k) = (rotate(&q, rotation)?, rotate(&k, rotation)?);
        let mut v = split(&layer.v, kv_heads)?.contiguous()?;
        if let Some((past_k, past_v)) = cache.0.get(index) {
            k = Tensor::cat(&[past_k, &k], 2)?;
            v = Tensor::cat(&[past_v, &v], 2)?;
        }
        cache.0.truncate(self.layers.len());
        if index < cache.0.len() {
            cache.0[index] = (k.clone(), v.clone());
        } else {
            cache.0.push((k.clone(), v.clone()));
        }
        let (k, v) = (repeat(&k, heads / kv_heads)?, repeat(&v, heads / kv_heads)?);
        let scale = 1.0 / (width as f64).sqrt();
        let scores = (q.matmul(&k.transpose(2, 3)?.contiguous()?)? * scale)?;
        let scores = if tokens > 1 { scores.broadcast_add(&causal(&scores)?)? } else { scores };
        let weights = softmax(&scores)?;
        let mixed = weights.matmul(&v)?.transpose(1, 2)?;
        let out = layer.o.apply(&mixed.reshape((sequences, tokens, heads * width))?)?;
        Ok((out, weights))
    }

    fn rms_norm(&self, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        let mean = x.sqr()?.mean_keepdim(D::Minus1)?;
        let rms = (mean + f64::from(self.config.backbone.rms_eps))?.sqrt()?;
        x.contiguous()?.broadcast_div(&rms)?.broadcast_mul(weight)
    }

    /// Notes a row's tokens in its blocks, and reads its whole sequence back out of them.
    fn whole_sequence(
        &mut self,
        batch: &Batch,
        row: &BatchRow,
    ) -> std::result::Result<(Vec<u32>, Vec<i32>), String> {
        let length = row.computed + row.tokens.len();
        let mut slots = Vec::with_capacity(length);
        for at in 0..length {
            let block = row.blocks.get(at / BLOCK_TOKENS).ok_or("the block table is too short")?;
            let block = self.blocks.get_mut(*block as usize).ok_or("a block is not reserved")?;
            let slot = &mut block[at % BLOCK_TOKENS];
            if let Some(new) = at.checked_sub(row.computed) {
                let token = row.tokens.start + new;
                *slot = (batch.ids[token], batch.positions[token]);
            }
            slots.push(*slot);
        }
        Ok(slots.into_iter().unzip())
    }
}

impl StageModel for Reference {
    fn vocabulary(&self) -> usize {
        self.embedding.vocabulary()
    }

    fn outputs(&self, _narrow: bool) -> usize {
        self.config.outputs
    }

    fn reserve(&mut self, blocks: usize) {
        self.blocks.resize(blocks, [(0, 0); BLOCK_TOKENS]);
    }

    /// Computes each sequence anew from its first token, which makes splits, neighbours and blocks irrelevant.
    fn forward(
        &mut self,
        batch: &Batch,
        logits: &mut Vec<f32>,
    ) -> std::result::Result<(), ForwardError> {
        let stage = self.config.stage;
        self.attention.clear();
        for (row, part) in batch.rows.iter().enumerate() {
            let fault = |reason: String| ForwardError::Batch { stage, row, reason };
            let (ids, positions) = self.whole_sequence(batch, part).map_err(fault)?;
            if !part.logits {
                continue;
            }
            let last = ids.len() - 1;
            let (out, shares) = self
                .run(&[ids], &[positions], &mut Cache::default())
                .and_then(|t| {
                    let logits = t.logits.get(0)?.get(last)?.to_vec1::<f32>()?;
                    Ok((logits, shares(&t, last, part.watched.clone())?))
                })
                .map_err(|e| fault(e.to_string()))?;
            self.attention.extend(shares);
            if !out.iter().all(|v| v.is_finite()) {
                return Err(ForwardError::BrokenNumbers { stage, row });
            }
            logits.extend(out);
        }
        Ok(())
    }

    fn attention(&self) -> &[f32] {
        &self.attention
    }
}

/// How the alignment head divides what it gives to the watched tokens among them.
fn shares(trace: &Trace, query: usize, watched: Range<usize>) -> Result<Vec<f32>> {
    let Some(weights) = trace.alignment.as_ref().filter(|_| !watched.is_empty()) else {
        return Ok(Vec::new());
    };
    let given = weights.get(0)?.get(query)?.narrow(0, watched.start, watched.len())?;
    given.broadcast_div(&given.sum_keepdim(0)?)?.to_vec1()
}

impl Layer {
    fn new(t: LayerTensors, backbone: &Backbone) -> Result<Self> {
        let Backbone { hidden, ffn, .. } = *backbone;
        let (q_width, kv_width) = (backbone.q_width(), backbone.kv_width());
        Ok(Self {
            input_norm: norm(t.input_norm)?,
            q: Linear::new(t.q, q_width, None)?,
            k: Linear::new(t.k, kv_width, None)?,
            v: Linear::new(t.v, kv_width, None)?,
            q_norm: norm(t.q_norm)?,
            k_norm: norm(t.k_norm)?,
            o: Linear::new(t.o, hidden, None)?,
            ffn_norm: norm(t.ffn_norm)?,
            gate: Linear::new(t.gate, ffn, None)?,
            up: Linear::new(t.up, ffn, None)?,
            down: Linear::new(t.down, hidden, None)?,
        })
    }
}

impl Linear {
    fn new(weight: Vec<f32>, outputs: usize, bias: Option<Vec<f32>>) -> Result<Self> {
        let inputs = weight.len() / outputs;
        let weight = Tensor::from_vec(weight, (outputs, inputs), &Device::Cpu)?;
        let bias = bias.map(vector).transpose()?;
        Ok(Self { weight: weight.t()?.contiguous()?, bias })
    }

    /// `x` is `[sequences, tokens, inputs]`.
    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let (sequences, tokens, inputs) = x.dims3()?;
        let rows = x.contiguous()?.reshape((sequences * tokens, inputs))?;
        let y = rows.matmul(&self.weight)?.reshape((sequences, tokens, self.weight.dim(1)?))?;
        match &self.bias {
            Some(bias) => y.broadcast_add(bias),
            None => Ok(y),
        }
    }
}

/// A stage's blocks have all of them.
fn norm(values: Option<Vec<f32>>) -> Result<Tensor> {
    let missing = || candle_core::Error::Msg("the reference computes Qwen3's block only".into());
    vector(values.ok_or_else(missing)?)
}

fn vector(values: Vec<f32>) -> Result<Tensor> {
    let len = values.len();
    Tensor::from_vec(values, len, &Device::Cpu)
}

/// Rotates the halves of each head, `x` is `[sequences, heads, tokens, width]`.
fn rotate(x: &Tensor, (cos, sin): &(Tensor, Tensor)) -> Result<Tensor> {
    let half = x.dim(D::Minus1)? / 2;
    let (a, b) = (x.narrow(D::Minus1, 0, half)?, x.narrow(D::Minus1, half, half)?);
    let low = (a.broadcast_mul(cos)? - b.broadcast_mul(sin)?)?;
    let high = (b.broadcast_mul(cos)? + a.broadcast_mul(sin)?)?;
    Tensor::cat(&[low, high], D::Minus1)
}

/// Gives every query head its own copy of the keys or values of its group.
fn repeat(x: &Tensor, times: usize) -> Result<Tensor> {
    let (sequences, heads, tokens, width) = x.dims4()?;
    let copies = vec![x; times];
    Tensor::stack(&copies, 2)?.reshape((sequences, heads * times, tokens, width))
}

/// Minus infinity above the diagonal; the last row of scores sees all columns. `[tokens, all tokens]`.
fn causal(scores: &Tensor) -> Result<Tensor> {
    let (_, _, tokens, all) = scores.dims4()?;
    let hidden = |row: usize, column: usize| column > row + all - tokens;
    let values: Vec<f32> = (0..tokens)
        .flat_map(|r| (0..all).map(move |c| if hidden(r, c) { f32::NEG_INFINITY } else { 0.0 }))
        .collect();
    Tensor::from_vec(values, (tokens, all), &Device::Cpu)
}

fn softmax(x: &Tensor) -> Result<Tensor> {
    let e = x.broadcast_sub(&x.max_keepdim(D::Minus1)?)?.exp()?;
    e.broadcast_div(&e.sum_keepdim(D::Minus1)?)
}

fn silu(x: &Tensor) -> Result<Tensor> {
    x / (x.neg()?.exp()? + 1.0)?
}

/// x * tanh(ln(1 + e^x)); the logarithm is taken as max(x, 0) + ln(1 + e^-|x|), which cannot overflow.
fn mish(x: &Tensor) -> Result<Tensor> {
    let softplus = (x.relu()? + (x.abs()?.neg()?.exp()? + 1.0)?.log()?)?;
    x * softplus.tanh()?
}
