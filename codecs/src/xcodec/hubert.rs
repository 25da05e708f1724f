//! HuBERT, the base variant: what a clip sounds like, a state of every layer for each 320 samples.

use super::config::Semantic;
use crate::attention::{Sides, attend};
use crate::conv::{Conv1d, ConvShape, Filter, Linear};
use crate::frames::Frames;
use crate::math::{Activation, Norm};
use crate::weights::{LoadError, Weights};

/// Added to the variance of a channel over the clip.
const GROUP_NORM_EPS: f64 = 1e-5;

pub(super) struct Hubert {
    convs: Vec<Conv1d>,
    /// Norm of each channel of the first convolution over the whole clip.
    group_norm: (Vec<f32>, Vec<f32>),
    projected: Norm,
    project: Linear,
    position: PositionConv,
    first: Norm,
    layers: Vec<Layer>,
}

/// A wide convolution whose groups of channels see only themselves.
struct PositionConv {
    groups: Vec<Conv1d>,
    width: usize,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    attended: Norm,
    up: Linear,
    down: Linear,
    fed: Norm,
    head: usize,
}

impl Hubert {
    pub(super) fn load(
        weights: &Weights,
        name: &str,
        config: &Semantic,
    ) -> Result<Self, LoadError> {
        let hidden = config.hidden_size;
        let mut convs = Vec::with_capacity(config.conv_dim.len());
        let mut inputs = 1;
        for (i, &out) in config.conv_dim.iter().enumerate() {
            let (kernel, stride) = (config.conv_kernel[i], config.conv_stride[i]);
            let conv = format!("{name}.feature_extractor.conv_layers.{i}.conv");
            let filter = Filter::plain(weights, &conv, [out, inputs, kernel], 0)?;
            let shape = ConvShape { kernel, stride, dilation: 1, left: 0, right: 0 };
            convs.push(Conv1d::new(&filter, shape));
            inputs = out;
        }
        let vector = |part: &str, len: usize| weights.f32(&format!("{name}.{part}"), &[len]);
        let norm =
            |part: &str, len: usize| load_norm(weights, &format!("{name}.{part}"), len, config);
        let group_norm = "feature_extractor.conv_layers.0.layer_norm";
        let channels = config.conv_dim[0];
        let project = format!("{name}.feature_projection.projection");
        let layer = |i: usize| Layer::load(weights, &format!("{name}.encoder.layers.{i}"), config);
        Ok(Self {
            convs,
            group_norm: (
                vector(&format!("{group_norm}.weight"), channels)?,
                vector(&format!("{group_norm}.bias"), channels)?,
            ),
            projected: norm("feature_projection.layer_norm", inputs)?,
            project: Linear::new(&Filter::matrix(weights, &project, [hidden, inputs], true)?),
            position: PositionConv::load(
                weights,
                &format!("{name}.encoder.pos_conv_embed.conv"),
                config,
            )?,
            first: norm("encoder.layer_norm", hidden)?,
            layers: (0..config.num_hidden_layers).map(layer).collect::<Result<_, _>>()?,
        })
    }

    /// Mean of all hidden states, the one before the first layer included, `[frames, hidden]`.
    pub(super) fn mean_state(&self, samples: &Frames) -> Frames {
        let mut h = self.project(self.features(samples));
        let mut position = self.position.forward(&h);
        Activation::Gelu.apply(position.data_mut());
        h.add(&position);
        self.first.apply(h.data_mut());
        let mut sum = h.clone();
        for layer in &self.layers {
            layer.apply(&mut h);
            sum.add(&h);
        }
        let scale = 1.0 / (self.layers.len() + 1) as f32;
        sum.data_mut().iter_mut().for_each(|v| *v *= scale);
        sum
    }

    fn features(&self, samples: &Frames) -> Frames {
        let mut x = samples.clone();
        for (i, conv) in self.convs.iter().enumerate() {
            x = conv.forward(&x);
            if i == 0 {
                self.norm_over_time(&mut x);
            }
            Activation::Gelu.apply(x.data_mut());
        }
        x
    }

    fn project(&self, mut features: Frames) -> Frames {
        self.projected.apply(features.data_mut());
        self.project.forward(&features)
    }

    fn norm_over_time(&self, x: &mut Frames) {
        let (weight, bias) = &self.group_norm;
        let count = x.time().max(1) as f64;
        for channel in 0..x.channels() {
            // In f64: a clip has millions of steps.
            let values = || x.rows().map(|row| f64::from(row[channel]));
            let mean = values().sum::<f64>() / count;
            let variance = values().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
            let scale = 1.0 / (variance + GROUP_NORM_EPS).sqrt();
            let (w, b) = (f64::from(weight[channel]), f64::from(bias[channel]));
            for row in x.rows_mut() {
                row[channel] = ((f64::from(row[channel]) - mean) * scale * w + b) as f32;
            }
        }
    }
}

impl PositionConv {
    fn load(weights: &Weights, name: &str, config: &Semantic) -> Result<Self, LoadError> {
        let (hidden, kernel) = (config.hidden_size, config.num_conv_pos_embeddings);
        let groups = config.num_conv_pos_embedding_groups;
        let width = hidden / groups;
        let filter = Filter::norm_of_taps(weights, name, [hidden, width, kernel], hidden)?;
        // An even kernel gives one step more than there are; the last one is dropped.
        let shape =
            ConvShape { kernel, stride: 1, dilation: 1, left: kernel / 2, right: (kernel - 1) / 2 };
        let part = width * width * kernel;
        let group = |g: usize| {
            let values = filter.values[g * part..(g + 1) * part].to_vec();
            let bias = filter.bias[g * width..(g + 1) * width].to_vec();
            Conv1d::new(&Filter { shape: [width, width, kernel], values, bias }, shape)
        };
        Ok(Self { groups: (0..groups).map(group).collect(), width })
    }

    fn forward(&self, h: &Frames) -> Frames {
        let mut out = Frames::zeros(h.time(), h.channels());
        for (g, conv) in self.groups.iter().enumerate() {
            let columns = g * self.width..(g + 1) * self.width;
            let own = h.rows().flat_map(|row| &row[columns.clone()]).copied().collect();
            let made = conv.forward(&Frames::new(own, self.width));
            for (row, made) in out.rows_mut().zip(made.rows()) {
                row[columns.clone()].copy_from_slice(made);
            }
        }
        out
    }
}

impl Layer {
    fn load(weights: &Weights, name: &str, config: &Semantic) -> Result<Self, LoadError> {
        let (hidden, wide) = (config.hidden_size, config.intermediate_size);
        let head = hidden / config.num_attention_heads;
        let filter =
            |part: &str, shape| Filter::matrix(weights, &format!("{name}.{part}"), shape, true);
        let square = [hidden, hidden];
        // The scale of the scores is folded into the queries.
        let scale = vec![1.0 / (head as f32).sqrt(); hidden];
        Ok(Self {
            query: Linear::new(&filter("attention.q_proj", square)?.scaled(&scale)),
            key: Linear::new(&filter("attention.k_proj", square)?),
            value: Linear::new(&filter("attention.v_proj", square)?),
            out: Linear::new(&filter("attention.out_proj", square)?),
            attended: load_norm(weights, &format!("{name}.layer_norm"), hidden, config)?,
            up: Linear::new(&filter("feed_forward.intermediate_dense", [wide, hidden])?),
            down: Linear::new(&filter("feed_forward.output_dense", [hidden, wide])?),
            fed: load_norm(weights, &format!("{name}.final_layer_norm"), hidden, config)?,
            head,
        })
    }

    fn apply(&self, h: &mut Frames) {
        let (queries, keys) = (self.query.forward(h), self.key.forward(h));
        let values = self.value.forward(h);
        let sides = Sides { queries: &queries, keys: &keys, values: &values, head: self.head };
        let mixed = attend(&sides);
        self.out.add_rows(mixed.data(), h.data_mut());
        self.attended.apply(h.data_mut());
        let mut inner = self.up.forward(h);
        Activation::Gelu.apply(inner.data_mut());
        self.down.add_rows(inner.data(), h.data_mut());
        self.fed.apply(h.data_mut());
    }
}

fn load_norm(
    weights: &Weights,
    name: &str,
    len: usize,
    config: &Semantic,
) -> Result<Norm, LoadError> {
    Ok(Norm::Layer {
        weight: weights.f32(&format!("{name}.weight"), &[len])?,
        bias: weights.f32(&format!("{name}.bias"), &[len])?,
        eps: config.layer_norm_eps,
    })
}
