//! The codes that a stream may still need.

use std::ops::Range;

/// Rows of codes from frame `first` of a passage on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodeBuffer {
    first: usize,
    rows: Vec<Vec<u16>>,
}

impl CodeBuffer {
    pub(super) fn new(rows: usize) -> Self {
        Self { first: 0, rows: vec![Vec::new(); rows] }
    }

    /// Number of frames held.
    pub(super) fn len(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    pub(super) fn extend(&mut self, new: &[&[u16]]) {
        for (row, new) in self.rows.iter_mut().zip(new) {
            row.extend_from_slice(new);
        }
    }

    pub(super) fn forget_before(&mut self, frame: usize) {
        let gone = frame.saturating_sub(self.first).min(self.len());
        for row in &mut self.rows {
            row.drain(..gone);
        }
        self.first += gone;
    }

    /// The rows of some frames; beyond the newest one they are silent, `silence` holding a code for each row.
    pub(super) fn window(&self, frames: &Range<usize>, silence: &[u16]) -> Vec<Vec<u16>> {
        let start = frames.start - self.first;
        let end = (frames.end - self.first).min(self.len());
        let mut rows: Vec<Vec<u16>> = self.rows.iter().map(|r| r[start..end].to_vec()).collect();
        for (row, &code) in rows.iter_mut().zip(silence) {
            row.resize(frames.len(), code);
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_cut_from_what_is_held_and_filled_with_silence() {
        let mut codes = CodeBuffer::new(2);
        codes.extend(&[&[1, 2, 3, 4], &[11, 12, 13, 14]]);
        codes.forget_before(1);
        codes.extend(&[&[5], &[15]]);
        assert_eq!(codes.window(&(2..5), &[]), [[3, 4, 5], [13, 14, 15]]);
        assert_eq!(codes.window(&(3..7), &[9, 0]), [[4, 5, 9, 9], [14, 15, 0, 0]]);
        codes.forget_before(1);
        assert_eq!(codes.len(), 4);
        codes.forget_before(100);
        assert_eq!(codes.len(), 0);
    }
}
