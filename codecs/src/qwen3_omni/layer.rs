//! One transformer layer of the tower: a norm stands before attention and before the feed-forward block.

use super::Config;
use crate::attention::{Sides, attend};
use crate::conv::{FeedForward, Filter, Linear};
use crate::frames::Frames;
use crate::math::{Activation, Norm};
use crate::weights::{LoadError, Weights};

/// Added to the variance of every norm.
const EPS: f32 = 1e-5;

pub(super) struct Layer {
    norm: Norm,
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    head: usize,
    feed_forward: FeedForward,
}

impl Layer {
    pub(super) fn load(weights: &Weights, name: &str, config: &Config) -> Result<Self, LoadError> {
        let (width, wide) = (config.d_model, config.encoder_ffn_dim);
        let head = width / config.encoder_attention_heads;
        let matrix =
            |part: &str, shape| Filter::matrix(weights, &format!("{name}.{part}"), shape, true);
        let square = |part: &str| matrix(&format!("self_attn.{part}_proj"), [width, width]);
        // The scale of the scores is folded into the queries.
        let scale = vec![1.0 / (head as f32).sqrt(); width];
        Ok(Self {
            norm: load_norm(weights, &format!("{name}.self_attn_layer_norm"), width)?,
            query: Linear::new(&square("q")?.scaled(&scale)),
            key: Linear::new(&square("k")?),
            value: Linear::new(&square("v")?),
            out: Linear::new(&square("out")?),
            head,
            feed_forward: FeedForward {
                norm: load_norm(weights, &format!("{name}.final_layer_norm"), width)?,
                up: Linear::new(&matrix("fc1", [wide, width])?),
                activation: Activation::Gelu,
                down: Linear::new(&matrix("fc2", [width, wide])?),
            },
        })
    }

    /// The layer on the tokens of some windows, which do not see each other; `windows` tells how many tokens each has.
    pub(super) fn apply(&self, tokens: &mut Frames, windows: &[usize]) {
        let mut normed = tokens.clone();
        self.norm.apply(normed.data_mut());
        let [queries, keys, values] =
            [&self.query, &self.key, &self.value].map(|layer| layer.forward(&normed));
        let (mut mixed, mut first) = (Frames::zeros(0, tokens.channels()), 0);
        for window in windows {
            let window = first..first + window;
            first = window.end;
            let [queries, keys, values] =
                [&queries, &keys, &values].map(|all| all.slice(window.clone()));
            let sides = Sides { queries: &queries, keys: &keys, values: &values, head: self.head };
            mixed.extend(&attend(&sides));
        }
        self.out.add_rows(mixed.data(), tokens.data_mut());
        self.feed_forward.add_to_input(tokens);
    }
}

pub(super) fn load_norm(weights: &Weights, name: &str, width: usize) -> Result<Norm, LoadError> {
    Ok(Norm::Layer {
        weight: weights.f32(&format!("{name}.weight"), &[width])?,
        bias: weights.f32(&format!("{name}.bias"), &[width])?,
        eps: EPS,
    })
}
