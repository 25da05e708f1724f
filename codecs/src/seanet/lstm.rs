//! Layers of an LSTM, one direction, whose output is added to their input.

use crate::conv::{Filter, Linear, Sounds};
use crate::math::{sigmoid, tanh};
use crate::weights::{LoadError, Weights};

/// Gates of a layer, side by side: input, forget, cell, output.
const GATES: usize = 4;

pub(super) struct Lstm {
    layers: Vec<Layer>,
    width: usize,
}

struct Layer {
    /// Of the input, `[width]` to `[4 width]`, both biases included.
    input: Linear,
    /// Of the layer's own last output.
    hidden: Linear,
}

/// What the layers remember. A copy is a snapshot of the stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LstmState {
    /// Output and cell of each layer.
    layers: Vec<(Vec<f32>, Vec<f32>)>,
}

impl LstmState {
    /// Number of values kept.
    pub(super) fn values(&self) -> usize {
        self.layers.iter().map(|(h, c)| h.len() + c.len()).sum()
    }
}

impl Lstm {
    pub(super) fn load(
        weights: &Weights,
        name: &str,
        width: usize,
        layers: usize,
    ) -> Result<Self, LoadError> {
        let layer = |i: usize| {
            let tensor = |part: &str, shape: &[usize]| {
                weights.f32(&format!("{name}.lstm.{part}_l{i}"), shape)
            };
            let filter = |part: &str, bias| {
                let values = tensor(part, &[GATES * width, width])?;
                Ok::<_, LoadError>(Filter { shape: [GATES * width, width, 1], values, bias })
            };
            let mut bias = tensor("bias_ih", &[GATES * width])?;
            let other = tensor("bias_hh", &[GATES * width])?;
            bias.iter_mut().zip(other).for_each(|(b, o)| *b += o);
            Ok(Layer {
                input: Linear::new(&filter("weight_ih", bias)?),
                hidden: Linear::new(&filter("weight_hh", Vec::new())?),
            })
        };
        Ok(Self { layers: (0..layers).map(layer).collect::<Result<_, LoadError>>()?, width })
    }

    pub(super) fn state(&self) -> LstmState {
        let layer = || (vec![0.0; self.width], vec![0.0; self.width]);
        LstmState { layers: self.layers.iter().map(|_| layer()).collect() }
    }

    /// The next steps of each sound.
    pub(super) fn step(&self, states: &mut [&mut LstmState], x: &Sounds) -> Sounds {
        let width = self.width;
        let mut first = 0;
        let places: Vec<(usize, usize)> = x
            .each()
            .map(|(rows, _)| {
                let steps = rows.len() / width;
                first += steps;
                (first - steps, steps)
            })
            .collect();
        let longest = places.iter().map(|(_, steps)| *steps).max().unwrap_or(0);
        let mut out = x.clone();
        for (i, layer) in self.layers.iter().enumerate() {
            let gates = layer.input.forward(out.rows());
            for step in 0..longest {
                // The sounds that still have a step, and its row.
                let going = || {
                    let going = places.iter().enumerate().filter(move |(_, p)| step < p.1);
                    going.map(move |(sound, p)| (sound, p.0 + step))
                };
                let hidden = going().flat_map(|(sound, _)| states[sound].layers[i].0.iter());
                let hidden: Vec<f32> = hidden.copied().collect();
                let size = GATES * width;
                let now = going().flat_map(|(_, row)| &gates.data()[row * size..][..size]);
                let mut now: Vec<f32> = now.copied().collect();
                layer.hidden.add_rows(&hidden, &mut now);
                for ((sound, row), gates) in going().zip(now.chunks_exact(size)) {
                    let (h, c) = &mut states[sound].layers[i];
                    turn(gates, h, c);
                    out.rows_mut().data_mut()[row * width..][..width].copy_from_slice(h);
                }
            }
        }
        out.rows_mut().add(x.rows());
        out
    }
}

/// One step of one layer: `c = forget c + input cell`, `h = output tanh(c)`.
fn turn(gates: &[f32], h: &mut [f32], c: &mut [f32]) {
    let width = h.len();
    let (input, rest) = gates.split_at(width);
    let (forget, rest) = rest.split_at(width);
    let (cell, output) = rest.split_at(width);
    for i in 0..width {
        c[i] = sigmoid(forget[i]) * c[i] + sigmoid(input[i]) * tanh(cell[i]);
        h[i] = sigmoid(output[i]) * tanh(c[i]);
    }
}
