//! Codes to parameters: a small convolutional network, first at the code rate, then at the sub-frame rate.

use super::config::Config;
use crate::codes::CodeError;
use crate::conv::{DepthwiseConv1d, FeedForward, Filter, Linear};
use crate::frames::Frames;
use crate::math::{Activation, Norm};
use crate::weights::{LoadError, Weights};

/// The decoder network.
pub(super) struct Network {
    books: Vec<Book>,
    input: Linear,
    frame_blocks: Vec<Block>,
    up: Linear,
    subframe_blocks: Vec<Block>,
    norm: Norm,
    head: Linear,
    /// Of each parameter over the training data.
    mean: Vec<f32>,
    std: Vec<f32>,
}

impl Network {
    pub(super) fn keep_rows(&mut self, rows: usize) {
        self.books.truncate(rows);
    }

    pub(super) fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let (width, narrow) = (config.width, config.subframe_width);
        let blocks = |prefix: &str, width: usize, kernels: &[usize]| {
            let load = |(i, &kernel): (usize, &usize)| {
                Block::load(weights, &format!("{prefix}.{i}"), width, kernel, config)
            };
            kernels.iter().enumerate().map(load).collect::<Result<Vec<_>, _>>()
        };
        let linear = |name: &str, shape: [usize; 2]| load_linear(weights, name, shape);
        let parameters = config.parameters();
        let books = config.codebooks().into_iter().enumerate();
        let books = books.map(|(row, n)| Book::load(weights, row, [n, config.code_width]));
        Ok(Self {
            books: books.collect::<Result<_, _>>()?,
            input: linear("dec_in", [width, config.code_width])?,
            frame_blocks: blocks("dec", width, &config.frame_blocks)?,
            up: linear("up", [config.subframes * narrow, width])?,
            subframe_blocks: blocks("dec2", narrow, &config.subframe_blocks)?,
            norm: load_norm(weights, "norm", narrow, config.layer_norm_eps)?,
            head: linear("head", [1 + parameters, narrow])?,
            mean: weights.f32("mean", &[parameters])?,
            std: weights.f32("std", &[parameters])?,
        })
    }

    /// Rows of codes to `[sub-frames, 1 + bands]`: fundamental frequency in Hz, 0 where unvoiced, and natural-log
    /// magnitudes of harmonic and noise bands.
    pub(super) fn parameters(&self, rows: &[impl AsRef<[u16]>]) -> Result<Frames, CodeError> {
        let mut x = self.input.forward(&self.embed(rows)?);
        self.frame_blocks.iter().for_each(|block| block.add_to_input(&mut x));
        // The channels of a row are its sub-frames side by side.
        let mut x = Frames::new(self.up.forward(&x).into_data(), self.norm.channels());
        self.subframe_blocks.iter().for_each(|block| block.add_to_input(&mut x));
        self.norm.apply(x.data_mut());
        Ok(self.denormalise(&self.head.forward(&x)))
    }

    /// The sum of all rows' vectors, `[frames, code width]`.
    fn embed(&self, rows: &[impl AsRef<[u16]>]) -> Result<Frames, CodeError> {
        if rows.len() != self.books.len() {
            return Err(CodeError::Rows { found: rows.len(), expected: self.books.len() });
        }
        let frames = rows[0].as_ref().len();
        let mut sum = Frames::zeros(frames, self.input.inputs());
        for (row, (codes, book)) in rows.iter().zip(&self.books).enumerate() {
            let codes = codes.as_ref();
            if codes.len() != frames {
                return Err(CodeError::Length { row, found: codes.len(), expected: frames });
            }
            for (&code, sum) in codes.iter().zip(sum.rows_mut()) {
                let entries = book.entries();
                let vector = book.vector(code).ok_or(CodeError::Code { row, code, entries })?;
                sum.iter_mut().zip(vector).for_each(|(s, v)| *s += v);
            }
        }
        Ok(sum)
    }

    fn denormalise(&self, head: &Frames) -> Frames {
        let mut data = Vec::with_capacity(head.time() * self.mean.len());
        for row in head.rows() {
            let scaled = row[1..].iter().zip(&self.std).zip(&self.mean);
            let start = data.len();
            data.extend(scaled.map(|((y, std), mean)| y * std + mean));
            let voiced = row[0] > 0.0;
            data[start] = if voiced { data[start].exp() } else { 0.0 };
        }
        Frames::new(data, self.mean.len())
    }
}

/// A codebook, `[entries, width]`.
struct Book {
    vectors: Vec<f32>,
    width: usize,
}

impl Book {
    fn load(weights: &Weights, row: usize, shape: [usize; 2]) -> Result<Self, LoadError> {
        let vectors = weights.f32(&format!("vq.{row}.book"), &shape)?;
        Ok(Self { vectors, width: shape[1] })
    }

    fn entries(&self) -> usize {
        self.vectors.len() / self.width
    }

    fn vector(&self, code: u16) -> Option<&[f32]> {
        self.vectors.chunks_exact(self.width).nth(code.into())
    }
}

/// Residual block: depthwise convolution along time, then a pointwise feed-forward layer.
struct Block {
    depthwise: DepthwiseConv1d,
    pointwise: FeedForward,
}

impl Block {
    fn load(
        weights: &Weights,
        prefix: &str,
        width: usize,
        kernel: usize,
        config: &Config,
    ) -> Result<Self, LoadError> {
        let name = |part: &str| format!("{prefix}.{part}");
        let filter = Filter::plain(weights, &name("dw"), [width, 1, kernel], width)?;
        let inner = config.block_mult * width;
        Ok(Self {
            depthwise: DepthwiseConv1d::new(&filter, kernel / 2, kernel / 2),
            pointwise: FeedForward {
                norm: load_norm(weights, &name("norm"), width, config.layer_norm_eps)?,
                up: load_linear(weights, &name("pw1"), [inner, width])?,
                activation: Activation::Gelu,
                down: load_linear(weights, &name("pw2"), [width, inner])?,
            },
        })
    }

    fn add_to_input(&self, x: &mut Frames) {
        let mixed = self.depthwise.forward(x);
        self.pointwise.add_to(&mixed, x);
    }
}

fn load_linear(weights: &Weights, name: &str, shape: [usize; 2]) -> Result<Linear, LoadError> {
    Ok(Linear::new(&Filter::matrix(weights, name, shape, true)?))
}

fn load_norm(weights: &Weights, name: &str, width: usize, eps: f32) -> Result<Norm, LoadError> {
    let vector = |part: &str| weights.f32(&format!("{name}.{part}"), &[width]);
    Ok(Norm::Layer { weight: vector("weight")?, bias: vector("bias")?, eps })
}
