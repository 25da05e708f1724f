//! A sound that arrives in pieces, for layers that look to both sides of a step: what they see of it, as soon as it is there.
//!
//! ```text
//! arrived    a b c d e f .         a layer that looks two steps back and two ahead
//! given out  A B C D               E waits for g, or for the end
//! kept           c d e f           what E sees
//! ```

use super::transposed::Needed;
use super::{ConvTranspose1d, Sounds};
use crate::frames::Frames;

/// What lies beyond both ends of a sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Silence.
    Zero,
    /// The sound in a mirror that stands on its first or last step, which is not repeated. A sound that is shorter than the
    /// reflection is made longer by zeros before, as far as needed.
    Mirror,
}

/// How far a layer of stride 1 looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// Steps back.
    pub left: usize,
    /// Steps ahead.
    pub right: usize,
    /// What it sees beyond the ends.
    pub edge: Edge,
}

/// One layer's place in a stream: the steps that it will still look at.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    rows: Frames,
    /// Index in the sound of the first kept step.
    first: usize,
    /// Steps of output given out.
    done: usize,
}

impl Look {
    /// At the beginning of a sound whose steps have `channels` values.
    pub fn fresh(channels: usize) -> Self {
        Self { rows: Frames::zeros(0, channels), first: 0, done: 0 }
    }

    /// Number of values kept.
    pub fn values(&self) -> usize {
        self.rows.data().len()
    }

    /// Takes the next steps of each sound. Gives what the steps see that can be made now, `left` steps and `right` steps around
    /// them included; nothing of a sound where none can.
    ///
    /// # Panics
    /// When there is not one look for each sound: a caller's bug.
    pub fn next_each<'a>(
        mut looks: impl Iterator<Item = &'a mut Self>,
        pieces: &Sounds,
        sides: Sides,
    ) -> Sounds {
        let mut seen = Sounds::none(pieces.channels());
        for (piece, ended) in pieces.each() {
            let look = looks.next().expect("a look for each sound; this is a bug");
            seen.add(ended, |rows| look.see(piece, sides, ended, rows));
        }
        seen
    }

    fn see(&mut self, piece: &[f32], sides: Sides, ended: bool, seen: &mut Frames) {
        self.rows.extend_rows(piece);
        let total = self.first + self.rows.time();
        // The first steps see in the mirror what comes after them.
        let waits = sides.edge == Edge::Mirror && total <= sides.left;
        let ready = match ended {
            true => total,
            false if waits => 0,
            false => total.saturating_sub(sides.right).max(self.done),
        };
        if ready == self.done {
            return;
        }
        let (start, end) =
            (self.done as isize - sides.left as isize, (ready + sides.right) as isize);
        match sides.edge {
            Edge::Mirror if start < 0 || end > total as isize => {
                self.add_mirrored(start, end, sides, seen);
            }
            Edge::Mirror | Edge::Zero => self.add_window(start, end, seen),
        }
        self.done = ready;
        self.forget(ready.saturating_sub(sides.left));
    }

    fn add_window(&self, start: isize, end: isize, seen: &mut Frames) {
        let first = self.first as isize;
        self.rows.add_window(start - first, end - first, seen);
    }

    fn add_mirrored(&self, start: isize, end: isize, sides: Sides, seen: &mut Frames) {
        let total = (self.first + self.rows.time()) as isize;
        let last = total.max(sides.left.max(sides.right) as isize + 1) - 1;
        for step in start..end {
            let step = step.abs();
            let step = if step > last { 2 * last - step } else { step };
            self.add_window(step, step + 1, seen);
        }
    }

    fn forget(&mut self, before: usize) {
        let count = before.saturating_sub(self.first);
        self.rows.remove_first(count);
        self.first += count;
    }
}

impl ConvTranspose1d {
    /// The next steps of each sound: those of the output that no later input reaches.
    ///
    /// # Panics
    /// When there is not one look for each sound: a caller's bug.
    pub fn rise_each<'a>(
        &self,
        mut looks: impl Iterator<Item = &'a mut Look>,
        pieces: &Sounds,
    ) -> Sounds {
        let (mut needed, mut kept) = (Sounds::none(pieces.channels()), Vec::new());
        for (piece, ended) in pieces.each() {
            let look = looks.next().expect("a look for each sound; this is a bug");
            look.rows.extend_rows(piece);
            let total = look.first + look.rows.time();
            let ready = if ended { self.steps(total) } else { self.settled(total) }.max(look.done);
            let Needed { inputs, outputs } = self.needed(look.done..ready);
            needed.add(ended, |rows| look.add_window(inputs.start, inputs.end, rows));
            kept.push(outputs);
            look.done = ready;
            look.forget(self.first_input(ready));
        }
        self.only(&needed, &kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::testing::{assert_close, frames, noise};
    use crate::conv::{Filter, TransposedShape};

    /// Every cut of a short sound in pieces, then longer ones in uneven pieces.
    fn in_all_cuts(time: usize, mut check: impl FnMut(&[usize])) {
        for size in 1..=time.max(1) {
            let mut sizes = vec![size; time / size];
            sizes.push(time % size);
            check(&sizes);
        }
        check(&[0, time]);
        check(&[time, 0]);
    }

    fn naive(input: &Frames, sides: Sides) -> Frames {
        let time = input.time() as isize;
        let mut rows = Vec::new();
        let reach = sides.left.max(sides.right) as isize;
        let long = input.padded(0, (reach + 1 - time).max(0) as usize);
        let last = long.time() as isize - 1;
        for step in -(sides.left as isize)..time + sides.right as isize {
            let mirrored = if step < 0 {
                -step
            } else if step > last {
                2 * last - step
            } else {
                step
            };
            let step = if sides.edge == Edge::Mirror { mirrored } else { step };
            rows.extend(long.window(step, step + 1).into_data());
        }
        Frames::new(rows, input.channels())
    }

    #[test]
    fn windows_of_any_pieces_are_those_of_the_whole_sound() {
        for edge in [Edge::Zero, Edge::Mirror] {
            for (left, right) in [(3, 3), (0, 0), (4, 3), (9, 9), (1, 0)] {
                let sides = Sides { left, right, edge };
                for time in [1, 2, 3, 4, 5, 9, 10, 11, 30] {
                    let input = frames(time, 2, 5);
                    let whole = naive(&input, sides);
                    in_all_cuts(time, |sizes| {
                        let mut look = Look::fresh(2);
                        let (mut at, mut done) = (0, 0);
                        for (i, size) in sizes.iter().enumerate() {
                            let piece = input.slice(at..at + size);
                            at += size;
                            let ended = i + 1 == sizes.len();
                            let looks = std::iter::once(&mut look);
                            let seen = Look::next_each(looks, &Sounds::one(piece, ended), sides);
                            let steps = seen.rows().time().saturating_sub(left + right);
                            if steps > 0 {
                                assert_eq!(
                                    seen.rows(),
                                    &whole.slice(done..done + steps + left + right)
                                );
                            }
                            done += steps;
                            let waits = edge == Edge::Mirror && at <= left;
                            let due = if waits { 0 } else { at.saturating_sub(right) };
                            assert!(ended || done == due);
                            assert!(look.values() <= 2 * (left + right + size));
                        }
                        assert_eq!(done, time);
                    });
                }
            }
        }
    }

    #[test]
    fn transposed_pieces_equal_the_whole_and_wait_for_no_more_than_they_must() {
        for (kernel, stride, left, right) in
            [(16, 8, 4, 4), (10, 5, 3, 2), (10, 5, 3, 3), (4, 2, 1, 1)]
        {
            let shape = TransposedShape { kernel, stride, left, right };
            let filter =
                Filter { shape: [3, 2, kernel], values: noise(6 * kernel, 4), bias: noise(2, 5) };
            let layer = ConvTranspose1d::new(&filter, shape);
            for time in [1, 2, 3, 13] {
                let input = frames(time, 3, 6);
                let whole = layer.forward(&input);
                in_all_cuts(time, |sizes| {
                    let (mut look, mut at, mut data) = (Look::fresh(3), 0, Vec::new());
                    for (i, size) in sizes.iter().enumerate() {
                        let piece = input.slice(at..at + size);
                        at += size;
                        let ended = i + 1 == sizes.len();
                        let looks = std::iter::once(&mut look);
                        let risen = layer.rise_each(looks, &Sounds::one(piece, ended));
                        data.extend_from_slice(risen.rows().data());
                        assert!(ended || data.len() / 2 == (at * stride).saturating_sub(left));
                    }
                    assert_close("pieces", &Frames::new(data, 2), &whole);
                });
            }
        }
    }
}
