//! Residual units, the part that the DAC encoder and decoder share, and how a long sound passes them in tiles.
//!
//! At 24 kHz a second of activations is megabytes, too much for any cache. So a stage is run for a tile of its
//! output at a time, from as much of its input as that tile sees: a step more of input for each step that a
//! convolution looks beyond the tile. The result does not depend on the tiles.
//!
//! ```text
//! tile of the output            |#########|
//! input of the third unit   |...|#########|...|        27 steps more on either side
//! input of the second      |....|#########|....|       9 more
//! input of the first       |....|#########|....|       3 more
//! ```

use std::ops::Range;

use crate::conv::{Conv1d, ConvShape, Filter};
use crate::frames::Frames;
use crate::math::Snake;
use crate::weights::{LoadError, Weights};

const DILATIONS: [usize; 3] = [1, 3, 9];
const KERNEL: usize = 7;

/// Bytes of one matrix of a tile: a handful of them fit into a second-level cache of 1 MiB.
const TILE_BYTES: usize = 256 << 10;

/// Steps of a tile whose rows hold `channels` values: at least a few hundred, so that what tiles share stays small.
pub(super) fn tile_steps(channels: usize) -> usize {
    (TILE_BYTES / (channels * size_of::<f32>())).max(512)
}

/// Ranges of at most `steps` that cover `0..total`.
pub(super) fn tiles(total: usize, steps: usize) -> impl Iterator<Item = Range<usize>> {
    (0..total).step_by(steps).map(move |start| start..(start + steps).min(total))
}

/// Reads the snake whose tensor is `NAME.alpha`.
pub(super) fn load_snake(
    weights: &Weights,
    name: &str,
    channels: usize,
) -> Result<Snake, LoadError> {
    Ok(Snake::new(weights.f32(&format!("{name}.alpha"), &[1, channels, 1])?))
}

/// Reads the weight-normed convolution under `name`.
pub(super) fn load_conv(
    weights: &Weights,
    name: &str,
    [out, inputs]: [usize; 2],
    shape: ConvShape,
) -> Result<Conv1d, LoadError> {
    let filter = Filter::weight_norm(weights, name, [out, inputs, shape.kernel], out)?;
    Ok(Conv1d::new(&filter, shape))
}

/// `x + conv1(snake(conv7(snake(x))))`, the seven taps `dilation` apart.
struct ResidualUnit {
    before: Snake,
    spread: Conv1d,
    between: Snake,
    mix: Conv1d,
    reach: usize,
}

impl ResidualUnit {
    fn load(
        weights: &Weights,
        name: &str,
        channels: usize,
        dilation: usize,
    ) -> Result<Self, LoadError> {
        let part = |i: usize| format!("{name}.block.{i}");
        let square = [channels, channels];
        Ok(Self {
            before: load_snake(weights, &part(0), channels)?,
            spread: load_conv(weights, &part(1), square, ConvShape::centred(KERNEL, dilation))?,
            between: load_snake(weights, &part(2), channels)?,
            mix: load_conv(weights, &part(3), square, ConvShape::centred(1, 1))?,
            reach: (KERNEL - 1) / 2 * dilation,
        })
    }

    /// The unit's output at the steps `range` of its input. Rows of `x` must be missing only where the sound ends.
    fn forward(&self, x: &Frames, range: Range<usize>) -> Frames {
        let (start, end) = (range.start as isize, range.end as isize);
        let mut seen = x.window(start - self.reach as isize, end + self.reach as isize);
        self.before.apply(seen.data_mut());
        let mut spread = self.spread.forward_padded(&seen, 0, 0);
        self.between.apply(spread.data_mut());
        let mut out = x.slice(range);
        self.mix.add_to(&spread, &mut out);
        out
    }
}

/// The three residual units of one stage.
pub(super) struct ResidualUnits {
    units: Vec<ResidualUnit>,
    channels: usize,
}

impl ResidualUnits {
    /// Reads the units `NAME.block.FIRST` and the two after it.
    pub(super) fn load(
        weights: &Weights,
        name: &str,
        first: usize,
        channels: usize,
    ) -> Result<Self, LoadError> {
        let units = DILATIONS.iter().enumerate().map(|(i, &dilation)| {
            ResidualUnit::load(weights, &format!("{name}.block.{}", first + i), channels, dilation)
        });
        Ok(Self { units: units.collect::<Result<_, _>>()?, channels })
    }

    /// Values in a row.
    pub(super) fn channels(&self) -> usize {
        self.channels
    }

    /// The units' output at the steps `range` of a sound of `total` steps; `input` makes the first unit's input at the
    /// steps it is asked for.
    pub(super) fn forward(
        &self,
        total: usize,
        range: Range<usize>,
        input: impl FnOnce(Range<usize>) -> Frames,
    ) -> Frames {
        let mut needed = vec![range];
        for unit in self.units.iter().rev() {
            let last = &needed[needed.len() - 1];
            let start = last.start.saturating_sub(unit.reach);
            needed.push(start..(last.end + unit.reach).min(total));
        }
        let mut at = needed.pop().expect("the range itself is in the list; this is a bug");
        let mut x = input(at.clone());
        for unit in &self.units {
            let next = needed.pop().expect("one range for each unit; this is a bug");
            x = unit.forward(&x, next.start - at.start..next.end - at.start);
            at = next;
        }
        x
    }
}
