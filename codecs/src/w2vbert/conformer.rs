//! One conformer layer: half a feed-forward block, attention, convolution, half a feed-forward block, norm.

use super::{Config, clear_masked, load_norm};
use crate::attention::{Sides, attend_with};
use crate::conv::{DepthwiseConv1d, FeedForward, Filter, Linear};
use crate::frames::Frames;
use crate::math::{Activation, Norm, glu};
use crate::weights::{LoadError, Weights};

pub(super) struct Layer {
    first: FeedForward,
    attention: Attention,
    convolution: Convolution,
    second: FeedForward,
    last: Norm,
}

impl Layer {
    pub(super) fn load(weights: &Weights, name: &str, config: &Config) -> Result<Self, LoadError> {
        let norm = |part: &str| {
            load_norm(weights, &format!("{name}.{part}"), config.hidden_size, config.layer_norm_eps)
        };
        let feed_forward = |part: &str| {
            let name = format!("{name}.{part}");
            let (hidden, wide) = (config.hidden_size, config.intermediate_size);
            let up = format!("{name}.intermediate_dense");
            let down = format!("{name}.output_dense");
            let down = Filter::matrix(weights, &down, [hidden, wide], true)?;
            Ok::<_, LoadError>(FeedForward {
                norm: norm(&format!("{part}_layer_norm"))?,
                up: Linear::new(&Filter::matrix(weights, &up, [wide, hidden], true)?),
                activation: Activation::Silu,
                // Either block counts half.
                down: Linear::new(&down.scaled(&vec![0.5; hidden])),
            })
        };
        Ok(Self {
            first: feed_forward("ffn1")?,
            attention: Attention::load(weights, name, config, norm("self_attn_layer_norm")?)?,
            convolution: Convolution::load(weights, &format!("{name}.conv_module"), config)?,
            second: feed_forward("ffn2")?,
            last: norm("final_layer_norm")?,
        })
    }

    /// The layer on hidden states `[steps, hidden]`, of which the first `valid` count.
    pub(super) fn apply(&self, h: &mut Frames, valid: usize) {
        self.first.add_to_input(h);
        self.attention.add_to_input(h, valid);
        self.convolution.add_to_input(h, valid);
        self.second.add_to_input(h);
        self.last.apply(h.data_mut());
    }
}

/// Multi-head attention with learned embeddings of the distance from query to key.
struct Attention {
    norm: Norm,
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    /// Embeddings as a layer: a query's score for each distance, shared by the heads.
    distance: Linear,
    left: usize,
    right: usize,
    head: usize,
}

impl Attention {
    fn load(weights: &Weights, name: &str, config: &Config, norm: Norm) -> Result<Self, LoadError> {
        let hidden = config.hidden_size;
        let (left, right) =
            (config.left_max_position_embeddings, config.right_max_position_embeddings);
        let head = hidden / config.num_attention_heads;
        let linear = |part: &str| {
            let name = format!("{name}.self_attn.linear_{part}");
            let filter = Filter::matrix(weights, &name, [hidden, hidden], true)?;
            Ok::<_, LoadError>(filter)
        };
        // The scale of the scores is folded into the queries.
        let scale = vec![1.0 / (head as f32).sqrt(); hidden];
        let distance = format!("{name}.self_attn.distance_embedding");
        let distance = Filter::matrix(weights, &distance, [left + 1 + right, head], false)?;
        Ok(Self {
            norm,
            query: Linear::new(&linear("q")?.scaled(&scale)),
            key: Linear::new(&linear("k")?),
            value: Linear::new(&linear("v")?),
            out: Linear::new(&linear("out")?),
            distance: Linear::new(&distance),
            left,
            right,
            head,
        })
    }

    fn add_to_input(&self, h: &mut Frames, valid: usize) {
        if valid == 0 {
            return;
        }
        let mut normed = h.clone();
        self.norm.apply(normed.data_mut());
        let queries = self.query.forward(&normed);
        let keys = self.key.forward(&normed);
        let values = self.value.forward(&normed);
        let sides = Sides {
            queries: &queries,
            keys: &keys.slice(0..valid),
            values: &values.slice(0..valid),
            head: self.head,
        };
        let mixed = attend_with(&sides, |queries, first, scores| {
            let distances = self.distance.forward(queries);
            for (i, (row, distances)) in scores.rows_mut().zip(distances.rows()).enumerate() {
                self.add_distances(row, distances, first + i);
            }
        });
        self.out.add_rows(mixed.data(), h.data_mut());
    }

    /// Adds to the scores of the query at step `query` what each key's distance is worth:
    /// all keys `left` or more before it count alike, and so do those `right` or more after it.
    fn add_distances(&self, scores: &mut [f32], distances: &[f32], query: usize) {
        let near = query.saturating_sub(self.left).min(scores.len());
        let far = (query + self.right + 1).min(scores.len()).max(near);
        let (before, rest) = scores.split_at_mut(near);
        let (between, after) = rest.split_at_mut(far - near);
        let (nearest, farthest) = (distances[0], distances[distances.len() - 1]);
        before.iter_mut().for_each(|s| *s += nearest);
        after.iter_mut().for_each(|s| *s += farthest);
        let first = (near + self.left).saturating_sub(query);
        for (s, d) in between.iter_mut().zip(&distances[first..]) {
            *s += d;
        }
    }
}

/// Gated pointwise convolution, causal depthwise convolution, pointwise convolution.
struct Convolution {
    norm: Norm,
    gate: Linear,
    depthwise: DepthwiseConv1d,
    depthwise_norm: Norm,
    out: Linear,
}

impl Convolution {
    fn load(weights: &Weights, name: &str, config: &Config) -> Result<Self, LoadError> {
        let (hidden, kernel) = (config.hidden_size, config.conv_depthwise_kernel_size);
        let part = |part: &str| format!("{name}.{part}");
        let norm = |n: &str| load_norm(weights, &part(n), hidden, config.layer_norm_eps);
        let filter = |n: &str, shape| Filter::plain(weights, &part(n), shape, 0);
        Ok(Self {
            norm: norm("layer_norm")?,
            gate: Linear::new(&filter("pointwise_conv1", [2 * hidden, hidden, 1])?),
            depthwise: DepthwiseConv1d::causal(&filter("depthwise_conv", [hidden, 1, kernel])?),
            depthwise_norm: norm("depthwise_layer_norm")?,
            out: Linear::new(&filter("pointwise_conv2", [hidden, hidden, 1])?),
        })
    }

    fn add_to_input(&self, h: &mut Frames, valid: usize) {
        let mut normed = h.clone();
        self.norm.apply(normed.data_mut());
        clear_masked(&mut normed, valid);
        let gated = glu(self.gate.forward(&normed).data(), h.channels());
        let mut mixed = self.depthwise.forward(&Frames::new(gated, h.channels()));
        self.depthwise_norm.apply(mixed.data_mut());
        Activation::Silu.apply(mixed.data_mut());
        self.out.add_rows(mixed.data(), h.data_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_clamped_on_both_sides() {
        let filter = Filter { shape: [1, 1, 1], values: vec![1.0], bias: Vec::new() };
        let linear = || Linear::new(&filter);
        let attention = Attention {
            norm: Norm::Rms { weight: vec![1.0], eps: 0.0 },
            query: linear(),
            key: linear(),
            value: linear(),
            out: linear(),
            distance: linear(),
            left: 2,
            right: 1,
            head: 1,
        };
        let distances = [-2.0, -1.0, 0.0, 1.0];
        for steps in 1..7_usize {
            for query in 0..9_usize {
                let mut scores = vec![0.0; steps];
                attention.add_distances(&mut scores, &distances, query);
                let expected: Vec<f32> =
                    (0..steps).map(|key| (key as f32 - query as f32).clamp(-2.0, 1.0)).collect();
                assert_eq!(scores, expected, "query {query} of {steps} keys");
            }
        }
    }
}
