//! Steps of several sounds, one sound behind the other. What is done to each step alone is done to all rows at once, and a
//! convolution makes one product of what it sees of all sounds: a product of many rows reads its weights once for all of them.
//! No sound changes another by a bit.

use super::Linear;
use crate::frames::Frames;

/// The next steps of several sounds, `[all steps, channels]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sounds {
    rows: Frames,
    parts: Vec<Part>,
}

/// The steps of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    steps: usize,
    ended: bool,
}

impl Sounds {
    /// None yet; steps of `channels` values.
    pub fn none(channels: usize) -> Self {
        Self { rows: Frames::zeros(0, channels), parts: Vec::new() }
    }

    /// One sound, with its last steps where `ended`.
    pub fn one(rows: Frames, ended: bool) -> Self {
        let parts = vec![Part { steps: rows.time(), ended }];
        Self { rows, parts }
    }

    /// Of rows and the steps of each sound in them, and whether they are its last ones.
    pub(super) fn of(rows: Frames, parts: impl Iterator<Item = (usize, bool)>) -> Self {
        Self { rows, parts: parts.map(|(steps, ended)| Part { steps, ended }).collect() }
    }

    /// Adds the steps that `append` puts behind the rows, whole steps, as those of one more sound.
    pub fn add(&mut self, ended: bool, append: impl FnOnce(&mut Frames)) {
        let before = self.rows.time();
        append(&mut self.rows);
        self.parts.push(Part { steps: self.rows.time() - before, ended });
    }

    /// Values in a step.
    pub fn channels(&self) -> usize {
        self.rows.channels()
    }

    /// All steps of all sounds.
    pub fn rows(&self) -> &Frames {
        &self.rows
    }

    /// All steps of all sounds.
    pub fn rows_mut(&mut self) -> &mut Frames {
        &mut self.rows
    }

    /// All steps of all sounds, without a copy.
    pub fn into_rows(self) -> Frames {
        self.rows
    }

    /// The steps of each sound, and whether they are its last ones.
    pub fn each(&self) -> impl Iterator<Item = (&[f32], bool)> {
        let (mut rest, channels) = (self.rows.data(), self.channels());
        self.parts.iter().map(move |part| {
            let (these, others) = rest.split_at(part.steps * channels);
            rest = others;
            (these, part.ended)
        })
    }

    /// A layer on all steps.
    #[must_use]
    pub fn through(&self, layer: &Linear) -> Self {
        Self { rows: layer.forward(&self.rows), parts: self.parts.clone() }
    }

    /// Without the first `left` and the last `right` steps of each sound; a sound of fewer has none left.
    #[must_use]
    pub fn inner(&self, left: usize, right: usize) -> Self {
        let mut inner = Self::none(self.channels());
        for (rows, ended) in self.each() {
            let (first, behind) = (left * self.channels(), right * self.channels());
            let rows = rows.len().checked_sub(behind).and_then(|end| rows.get(first..end));
            inner.add(ended, |all| all.extend_rows(rows.unwrap_or_default()));
        }
        inner
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::testing::{frames, noise};
    use crate::conv::{Conv1d, ConvShape, Filter};

    #[test]
    fn each_sound_has_the_bits_that_it_has_alone() {
        for (kernel, dilation, stride) in [(7, 3, 1), (1, 1, 1), (4, 1, 2)] {
            let values = noise(5 * 3 * kernel, 1);
            let filter = Filter { shape: [5, 3, kernel], values, bias: noise(5, 2) };
            let shape = ConvShape { kernel, stride, dilation, left: 0, right: 0 };
            let conv = Conv1d::new(&filter, shape);
            // One that is shorter than the filter, and one of nothing.
            let sounds = [23, 2, 40, 0].map(|time| frames(time, 3, time as u32));
            let mut together = Sounds::none(3);
            for (i, sound) in sounds.iter().enumerate() {
                together.add(i % 2 == 0, |rows| rows.extend(sound));
            }
            let made = conv.forward_each(&together);
            assert_eq!(made.each().count(), sounds.len());
            for (i, ((got, ended), sound)) in made.each().zip(&sounds).enumerate() {
                assert_eq!((got, ended), (conv.forward(sound).data(), i % 2 == 0), "{shape:?}");
            }
        }
    }

    #[test]
    fn the_inner_steps_of_a_short_sound_are_none() {
        let mut sounds = Sounds::none(2);
        for time in [5, 3, 2, 0] {
            sounds.add(false, |rows| rows.extend(&frames(time, 2, 1)));
        }
        let inner = sounds.inner(1, 2);
        let steps: Vec<usize> = inner.each().map(|(rows, _)| rows.len() / 2).collect();
        assert_eq!(steps, [2, 0, 0, 0]);
        assert_eq!(inner.rows(), &sounds.rows().slice(1..3));
    }
}
