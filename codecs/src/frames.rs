//! Activations of one sound inside the neural codecs: a matrix `[time, channels]`, one row per step.
//!
//! Time-major on purpose: a row is what norms and pointwise layers work on, and consecutive rows lie side by
//! side, so the input of a convolution needs no rearranging. It knows nothing of rates; a layer's owner does.

/// Activations `[time, channels]`, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Frames {
    data: Vec<f32>,
    channels: usize,
}

impl Frames {
    /// Takes `data` as rows of `channels` values.
    ///
    /// # Panics
    /// When `channels` is 0 or `data` is not whole rows: a caller's bug, since lengths come from layers.
    pub fn new(data: Vec<f32>, channels: usize) -> Self {
        assert!(
            channels > 0 && data.len().is_multiple_of(channels),
            "not whole rows; this is a bug"
        );
        Self { data, channels }
    }

    /// `time` rows of zeros.
    pub fn zeros(time: usize, channels: usize) -> Self {
        Self::new(vec![0.0; time * channels], channels)
    }

    /// From the layout `[channels, time]` that most tensor files use.
    ///
    /// # Panics
    /// When `data` is not `channels` equal parts.
    pub fn from_channels_first(data: &[f32], channels: usize) -> Self {
        assert!(
            channels > 0 && data.len().is_multiple_of(channels),
            "not whole rows; this is a bug"
        );
        let time = data.len() / channels;
        let mut frames = Self::zeros(time, channels);
        for (t, row) in frames.data.chunks_exact_mut(channels).enumerate() {
            for (c, value) in row.iter_mut().enumerate() {
                *value = data[c * time + t];
            }
        }
        frames
    }

    /// The values as `[channels, time]`.
    pub fn to_channels_first(&self) -> Vec<f32> {
        let time = self.time();
        let mut out = vec![0.0; self.data.len()];
        for (t, row) in self.rows().enumerate() {
            for (c, &value) in row.iter().enumerate() {
                out[c * time + t] = value;
            }
        }
        out
    }

    /// Number of rows.
    pub fn time(&self) -> usize {
        self.data.len() / self.channels
    }

    /// Values in a row.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// All values, row after row.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// All values, row after row.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// The values, without a copy.
    pub fn into_data(self) -> Vec<f32> {
        self.data
    }

    /// Row after row.
    pub fn rows(&self) -> std::slice::ChunksExact<'_, f32> {
        self.data.chunks_exact(self.channels)
    }

    /// Row after row.
    pub fn rows_mut(&mut self) -> std::slice::ChunksExactMut<'_, f32> {
        self.data.chunks_exact_mut(self.channels)
    }

    /// A copy of the rows in `range`.
    ///
    /// # Panics
    /// When `range` reaches beyond the last row.
    #[must_use]
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        let values = range.start * self.channels..range.end * self.channels;
        Self { data: self.data[values].to_vec(), channels: self.channels }
    }

    /// Keeps the first `time` rows, or all when there are fewer.
    pub fn truncate(&mut self, time: usize) {
        self.data.truncate(time * self.channels);
    }

    /// Appends the rows of another matrix of the same width.
    ///
    /// # Panics
    /// When the widths differ: a caller's bug.
    pub fn extend(&mut self, other: &Self) {
        assert_eq!(self.channels, other.channels, "rows of another width; this is a bug");
        self.data.extend_from_slice(&other.data);
    }

    /// Appends whole rows.
    ///
    /// # Panics
    /// When they are not: a caller's bug.
    pub fn extend_rows(&mut self, rows: &[f32]) {
        assert!(rows.len().is_multiple_of(self.channels), "not whole rows; this is a bug");
        self.data.extend_from_slice(rows);
    }

    /// Drops the first `time` rows, or all when there are fewer.
    pub fn remove_first(&mut self, time: usize) {
        self.data.drain(..(time * self.channels).min(self.data.len()));
    }

    /// A copy of the rows from `start` to `end` (not included), where rows before the first and after the last are zeros.
    #[must_use]
    pub fn window(&self, start: isize, end: isize) -> Self {
        let mut window = Self::zeros(0, self.channels);
        self.add_window(start, end, &mut window);
        window
    }

    /// Appends [`Frames::window`] to other rows of the same width.
    pub fn add_window(&self, start: isize, end: isize, to: &mut Self) {
        let time = self.time() as isize;
        let (first, last) = (start.clamp(0, time), end.clamp(0, time).max(start.clamp(0, time)));
        let values = |rows: isize| rows.max(0) as usize * self.channels;
        let (before, length) = (to.data.len(), values(end - start));
        to.data.reserve(length);
        to.data.resize(before + values(first - start).min(length), 0.0);
        to.data.extend_from_slice(&self.data[values(first)..values(last)]);
        to.data.resize(before + length, 0.0);
    }

    /// A copy with `left` rows of zeros before and `right` after.
    #[must_use]
    pub fn padded(&self, left: usize, right: usize) -> Self {
        self.window(-(left as isize), (self.time() + right) as isize)
    }

    /// Means of `count` consecutive rows each; rows left over at the end are dropped.
    #[must_use]
    pub fn mean_of_every(&self, count: usize) -> Self {
        let mut data = Vec::with_capacity(self.data.len() / count);
        let scale = 1.0 / count as f32;
        for group in self.data.chunks_exact(count * self.channels) {
            for c in 0..self.channels {
                let sum: f32 = group[c..].iter().step_by(self.channels).sum();
                data.push(sum * scale);
            }
        }
        Self { data, channels: self.channels }
    }

    /// Adds another matrix of the same shape.
    ///
    /// # Panics
    /// When the shapes differ: a caller's bug.
    pub fn add(&mut self, other: &Self) {
        self.zip_with(other, |a, b| a + b);
    }

    /// Subtracts another matrix of the same shape.
    ///
    /// # Panics
    /// When the shapes differ: a caller's bug.
    pub fn subtract(&mut self, other: &Self) {
        self.zip_with(other, |a, b| a - b);
    }

    fn zip_with(&mut self, other: &Self, f: impl Fn(f32, f32) -> f32) {
        assert!(
            self.channels == other.channels && self.data.len() == other.data.len(),
            "matrices of different shape; this is a bug"
        );
        for (a, &b) in self.data.iter_mut().zip(&other.data) {
            *a = f(*a, b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_hold_the_same_values() {
        let frames = Frames::from_channels_first(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2);
        assert_eq!(frames.time(), 3);
        assert_eq!(frames.data(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!(frames.to_channels_first(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }

    #[test]
    fn a_window_beyond_both_ends_reads_zeros() {
        let frames = Frames::new(vec![1.0, 2.0, 3.0], 1);
        for (start, end, expected) in [
            (-2, 5, vec![0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0]),
            (1, 2, vec![2.0]),
            (-3, -1, vec![0.0, 0.0]),
            (4, 6, vec![0.0, 0.0]),
            (2, 2, vec![]),
        ] {
            assert_eq!(frames.window(start, end).data(), expected, "{start}..{end}");
        }
    }

    #[test]
    fn padding_slicing_and_adding_keep_rows_whole() {
        let mut frames = Frames::new(vec![1.0, 2.0, 3.0, 4.0], 2).padded(1, 1);
        assert_eq!(frames.data(), [0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
        let inner = frames.slice(1..3);
        frames.truncate(2);
        frames.add(&inner);
        assert_eq!(frames.data(), [1.0, 2.0, 4.0, 6.0]);
        frames.extend(&inner);
        frames.remove_first(2);
        assert_eq!(frames, inner);
        frames.remove_first(9);
        assert_eq!(frames.time(), 0);
    }
}
