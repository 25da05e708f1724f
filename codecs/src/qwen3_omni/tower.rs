//! The tower: a spectrum to rows, a window after the other.

use std::ops::Range;

use super::Config;
use super::config::{HALVINGS, halved};
use super::layer::{Layer, load_norm};
use crate::conv::{Conv2d, Filter, Linear, PlaneShape};
use crate::frames::Frames;
use crate::math::{Activation, Norm};
use crate::weights::{LoadError, Weights};

/// Longest wave length of the positions, over that of the shortest.
const WAVES: f64 = 10_000.0;

/// Windows that go through the layers together: with fewer rows the weights are read from memory for too little work.
const WINDOWS: usize = 4;

/// The networks of a tower. Holds no state of any clip.
pub struct Tower {
    convs: Vec<Conv2d>,
    project: Linear,
    /// Added to the tokens of every chunk, `[tokens, width]`: positions begin anew in each.
    positions: Frames,
    pub(super) layers: Vec<Layer>,
    pub(super) last: Norm,
    inner: Linear,
    outer: Linear,
    pub(super) chunk_frames: usize,
    window_chunks: usize,
}

/// A clip of which more is to come.
#[derive(Clone, Debug, PartialEq)]
pub struct TowerStream {
    /// Frames that do not fill a chunk yet.
    frames: Frames,
    /// Tokens of the window that is being filled.
    tokens: Frames,
    /// Chunks in it.
    chunks: usize,
    /// Whether the clip has filled a chunk so far.
    long: bool,
}

impl TowerStream {
    /// Number of values kept.
    pub fn values(&self) -> usize {
        self.frames.data().len() + self.tokens.data().len()
    }

    /// The tokens of the window that is being filled; the next one begins.
    fn take(&mut self) -> Frames {
        self.chunks = 0;
        let none = Frames::zeros(0, self.tokens.channels());
        std::mem::replace(&mut self.tokens, none)
    }
}

impl Tower {
    /// Reads the tensors. Their names may all begin with the same, as they do in a checkpoint that holds other parts too.
    ///
    /// # Errors
    /// A size is not supported, or a tensor is missing or malformed.
    pub fn load(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        config.check_in(weights.file())?;
        let prefix = weights.names().find_map(|name| name.strip_suffix("conv2d1.weight"));
        let prefix = prefix.unwrap_or_default();
        let (width, output) = (config.d_model, config.output_dim);
        let named = |part: &str| format!("{prefix}{part}");
        let layer = |i: usize| Layer::load(weights, &named(&format!("layers.{i}")), config);
        let linear = |part: &str, out| {
            Ok::<_, LoadError>(Linear::new(&Filter::matrix(
                weights,
                &named(part),
                [out, width],
                true,
            )?))
        };
        Ok(Self {
            convs: load_convs(weights, prefix, config)?,
            project: load_project(weights, &named("conv_out"), config)?,
            positions: positions(halved(config.chunk_frames()), width),
            layers: (0..config.encoder_layers).map(layer).collect::<Result<_, _>>()?,
            last: load_norm(weights, &named("ln_post"), width)?,
            inner: linear("proj1", width)?,
            outer: linear("proj2", output)?,
            chunk_frames: config.chunk_frames(),
            window_chunks: config.window_chunks(),
        })
    }

    /// Width of a row.
    pub fn output(&self) -> usize {
        self.outer.outputs()
    }

    /// Frames of an attention window.
    pub(super) fn window_frames(&self) -> usize {
        self.window_chunks * self.chunk_frames
    }

    /// Rows of a spectrum of so many frames.
    pub fn tokens(&self, frames: usize) -> usize {
        let (chunks, rest) = (frames / self.chunk_frames, frames % self.chunk_frames);
        chunks * halved(self.chunk_frames) + halved(rest)
    }

    /// Rows of a whole clip, `[frames, bands]` to `[tokens, output]`.
    pub fn forward(&self, mel: &Frames) -> Frames {
        self.step(&mut self.stream(), mel, true)
    }

    /// A clip at its beginning.
    pub fn stream(&self) -> TowerStream {
        let bands = self.convs[0].rows_in();
        let tokens = Frames::zeros(0, self.positions.channels());
        TowerStream { frames: Frames::zeros(0, bands), tokens, chunks: 0, long: false }
    }

    /// The next frames of a clip, the last ones where `ended`: the rows of the windows that are complete. Any pieces give what
    /// the whole gives, bit for bit; after the end the stream is as new.
    pub fn step(&self, stream: &mut TowerStream, mel: &Frames, ended: bool) -> Frames {
        let mut rows = Frames::zeros(0, self.output());
        stream.frames.extend(mel);
        let whole = stream.frames.time() / self.chunk_frames * self.chunk_frames;
        let total = if ended { stream.frames.time() } else { whole };
        for first in (0..total).step_by(WINDOWS * self.window_chunks * self.chunk_frames) {
            let end = total.min(first + WINDOWS * self.window_chunks * self.chunk_frames);
            let windows = self.fill(stream, first..end);
            rows.extend(&self.rows_of(&windows));
        }
        stream.frames.remove_first(total);
        if ended {
            rows.extend(&self.rows_of(&[stream.take()]));
            stream.long = false;
        }
        rows
    }

    /// Adds the tokens of chunks to the window that is being filled, and takes those that are complete.
    fn fill(&self, stream: &mut TowerStream, frames: Range<usize>) -> Vec<Frames> {
        let mut chunks = Vec::new();
        for at in frames.clone().step_by(self.chunk_frames) {
            let chunk = stream.frames.slice(at..frames.end.min(at + self.chunk_frames));
            stream.long |= chunk.time() == self.chunk_frames;
            // A clip shorter than a chunk stands alone; the last chunk of a longer one is filled up with zeros.
            let width = if stream.long { self.chunk_frames } else { chunk.time() };
            chunks.push((chunk, width));
        }
        let mut windows = Vec::new();
        for tokens in self.tokens_of(&chunks) {
            stream.tokens.extend(&tokens);
            stream.chunks += 1;
            if stream.chunks == self.window_chunks {
                windows.push(stream.take());
            }
        }
        windows
    }

    /// Frames of chunks, each as if it were so many frames long, to their tokens `[tokens, width]`.
    pub(super) fn tokens_of(&self, chunks: &[(Frames, usize)]) -> Vec<Frames> {
        let mut seen = Frames::zeros(0, self.project.inputs());
        for (frames, width) in chunks {
            let mut x = frames.padded(0, width - frames.time());
            for conv in &self.convs {
                x = conv.forward(&x);
                Activation::Gelu.apply(x.data_mut());
            }
            x.truncate(halved(frames.time()));
            seen.extend(&x);
        }
        // One product for all chunks: alone, each would read all weights for a dozen rows.
        let (all, mut first) = (self.project.forward(&seen), 0);
        let tokens = chunks.iter().map(|(frames, _)| {
            let range = first..first + halved(frames.time());
            first = range.end;
            let mut tokens = all.slice(range);
            tokens.add(&self.positions.slice(0..tokens.time()));
            tokens
        });
        tokens.collect()
    }

    /// The rows of windows, each with its tokens.
    fn rows_of(&self, windows: &[Frames]) -> Frames {
        let mut tokens = Frames::zeros(0, self.positions.channels());
        windows.iter().for_each(|window| tokens.extend(window));
        let sizes: Vec<usize> = windows.iter().map(Frames::time).collect();
        self.layers.iter().for_each(|layer| layer.apply(&mut tokens, &sizes));
        self.last.apply(tokens.data_mut());
        let mut inner = self.inner.forward(&tokens);
        Activation::Gelu.apply(inner.data_mut());
        self.outer.forward(&inner)
    }
}

fn load_convs(weights: &Weights, prefix: &str, config: &Config) -> Result<Vec<Conv2d>, LoadError> {
    let (channels, mut rows) = (config.downsample_hidden_size, config.num_mel_bins);
    let mut convs = Vec::new();
    for i in 1..=HALVINGS {
        let inputs = if i == 1 { 1 } else { channels };
        let filter = Filter::plane(weights, &format!("{prefix}conv2d{i}"), [channels, inputs, 3])?;
        let shape = PlaneShape { rows, kernel: 3, stride: 2, pad: 1 };
        convs.push(Conv2d::new(&filter, shape));
        rows = shape.steps(rows);
    }
    Ok(convs)
}

/// The file has the values of a time step channel by channel, ours lie row by row.
fn load_project(weights: &Weights, name: &str, config: &Config) -> Result<Linear, LoadError> {
    let (width, channels) = (config.d_model, config.downsample_hidden_size);
    let rows = halved(config.num_mel_bins);
    let filter = Filter::matrix(weights, name, [width, channels * rows], false)?;
    let outputs = filter.values.chunks_exact(channels * rows);
    let values =
        outputs.flat_map(|values| Frames::from_channels_first(values, channels).into_data());
    Ok(Linear::new(&Filter { values: values.collect(), ..filter }))
}

/// Sines in the first half of a row, cosines in the second: rates from 1 down to one over [`WAVES`].
fn positions(tokens: usize, width: usize) -> Frames {
    let half = width / 2;
    let rate = |i: usize| (-WAVES.ln() * i as f64 / (half - 1) as f64).exp();
    let value = |t: usize, i: usize| {
        let angle = t as f64 * rate(i % half);
        (if i < half { angle.sin() } else { angle.cos() }) as f32
    };
    let values = (0..tokens).flat_map(|t| (0..width).map(move |i| value(t, i)));
    Frames::new(values.collect(), width)
}
