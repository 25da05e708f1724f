//! Attention of a sound to itself, head by head, where every step sees all steps. Knows no model.

use std::ops::Range;

use crate::conv::{Filter, Linear};
use crate::frames::Frames;
use crate::math::softmax;

/// Queries whose scores against all keys are held at a time.
const QUERY_TILE: usize = 96;

/// What is attended with, `[time, heads * head]` each; the keys and values may be of another length than the queries.
pub(crate) struct Sides<'a> {
    /// With the scale of the scores in them.
    pub(crate) queries: &'a Frames,
    pub(crate) keys: &'a Frames,
    pub(crate) values: &'a Frames,
    /// Values of a head.
    pub(crate) head: usize,
}

/// Mixes the values for each query, by scores that depend on nothing but queries and keys.
pub(crate) fn attend(sides: &Sides<'_>) -> Frames {
    attend_with(sides, |_, _, _| {})
}

/// Mixes the values for each query. `adjust` gets some queries `[n, head]`, the step of the first, and their scores
/// `[n, keys]` before they become weights.
pub(crate) fn attend_with(
    sides: &Sides<'_>,
    adjust: impl Fn(&Frames, usize, &mut Frames),
) -> Frames {
    let (queries, head) = (sides.queries, sides.head);
    let mut mixed = Frames::zeros(queries.time(), queries.channels());
    if sides.keys.time() == 0 {
        return mixed;
    }
    for start in (0..queries.channels()).step_by(head) {
        let columns = start..start + head;
        let one = Head::new(&columns_of(sides.keys, &columns), &columns_of(sides.values, &columns));
        let queries = columns_of(queries, &columns);
        for first in (0..queries.time()).step_by(QUERY_TILE) {
            let tile = queries.slice(first..(first + QUERY_TILE).min(queries.time()));
            let mut scores = one.keys.forward(&tile);
            adjust(&tile, first, &mut scores);
            scores.rows_mut().for_each(softmax);
            let result = one.values.forward(&scores);
            for (row, values) in mixed.rows_mut().skip(first).zip(result.rows()) {
                row[columns.clone()].copy_from_slice(values);
            }
        }
    }
    mixed
}

/// Keys and values of one head as layers: from a query to scores, from scores to a value.
struct Head {
    keys: Linear,
    values: Linear,
}

impl Head {
    /// From keys and values `[steps, head]`.
    fn new(keys: &Frames, values: &Frames) -> Self {
        let layer = |values: Vec<f32>, out, inputs| {
            Linear::new(&Filter { shape: [out, inputs, 1], values, bias: Vec::new() })
        };
        let (steps, width) = (keys.time(), keys.channels());
        Self {
            keys: layer(keys.data().to_vec(), steps, width),
            values: layer(values.to_channels_first(), width, steps),
        }
    }
}

fn columns_of(frames: &Frames, columns: &Range<usize>) -> Frames {
    let data = frames.rows().flat_map(|row| &row[columns.clone()]).copied().collect();
    Frames::new(data, columns.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::testing::{TOLERANCE, frames};

    /// The formula, value by value.
    fn plain(sides: &Sides<'_>, bias: impl Fn(usize, usize) -> f32) -> Frames {
        let mut out = Frames::zeros(sides.queries.time(), sides.queries.channels());
        let (keys, values) = (sides.keys.data(), sides.values.data());
        let channels = sides.queries.channels();
        for start in (0..channels).step_by(sides.head) {
            for (t, (query, out)) in sides.queries.rows().zip(out.rows_mut()).enumerate() {
                let score = |k: usize| -> f32 {
                    let dot = |c: usize| query[c] * keys[k * channels + c];
                    (start..start + sides.head).map(dot).sum::<f32>() + bias(t, k)
                };
                let weights: Vec<f32> = (0..sides.keys.time()).map(|k| score(k).exp()).collect();
                let total: f32 = weights.iter().sum();
                for c in start..start + sides.head {
                    let mix = |(k, w): (usize, &f32)| w * values[k * channels + c];
                    out[c] = weights.iter().enumerate().map(mix).sum::<f32>() / total;
                }
            }
        }
        out
    }

    #[test]
    fn every_head_mixes_all_values_by_the_scores() {
        for (time, keys) in [(1, 1), (7, 5), (QUERY_TILE + 3, 11)] {
            let sides = Sides {
                queries: &frames(time, 6, 1),
                keys: &frames(keys, 6, 2),
                values: &frames(keys, 6, 3),
                head: 3,
            };
            let bias = |t: usize, k: usize| ((t * 5 + k) % 7) as f32 * 0.3;
            let adjusted = attend_with(&sides, |_, first, scores| {
                for (i, row) in scores.rows_mut().enumerate() {
                    row.iter_mut().enumerate().for_each(|(k, s)| *s += bias(first + i, k));
                }
            });
            for (got, expected) in
                [(attend(&sides), plain(&sides, |_, _| 0.0)), (adjusted, plain(&sides, bias))]
            {
                assert_eq!(got.time(), time);
                for (g, e) in got.data().iter().zip(expected.data()) {
                    assert!((g - e).abs() < TOLERANCE, "{g}, expected {e}");
                }
            }
        }
    }

    #[test]
    fn without_keys_nothing_is_mixed() {
        let none = Frames::zeros(0, 4);
        let sides = Sides { queries: &frames(2, 4, 1), keys: &none, values: &none, head: 2 };
        assert_eq!(attend(&sides), Frames::zeros(2, 4));
    }
}
