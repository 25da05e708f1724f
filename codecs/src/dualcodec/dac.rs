//! The residual units of a stage, and how a long sound passes them in tiles.
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

use crate::dac::{DILATIONS, Unit};
use crate::frames::Frames;
use crate::weights::{LoadError, Weights};

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

/// The three residual units of one stage.
pub(super) struct ResidualUnits {
    units: Vec<Unit>,
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
            let layers = [0, 1, 2, 3].map(|l| format!("{name}.block.{}.block.{l}", first + i));
            Unit::load(weights, &layers, channels, dilation)
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
            let start = last.start.saturating_sub(unit.reach());
            needed.push(start..(last.end + unit.reach()).min(total));
        }
        let mut at = needed.pop().expect("the range itself is in the list; this is a bug");
        let mut x = input(at.clone());
        for unit in &self.units {
            let next = needed.pop().expect("one range for each unit; this is a bug");
            // Rows are missing only where the sound ends.
            let (from, to) = (next.start as isize, next.end as isize);
            let (first, reach) = (at.start as isize, unit.reach() as isize);
            x = unit.within(x.window(from - reach - first, to + reach - first));
            at = next;
        }
        x
    }
}
