//! The codes a stream may still need, and what is wrong with codes that cannot be decoded.

use std::ops::Range;

/// Why codes were refused. Nothing of the stream has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodesError {
    /// The codec decodes another number of rows.
    #[error("{found} rows of codes, expected {expected}")]
    Rows {
        /// Rows given.
        found: usize,
        /// Rows of the codec.
        expected: usize,
    },
    /// The rows do not tell of the same frames.
    #[error("row {row} has {found} codes, row 0 has {expected}")]
    Length {
        /// The row.
        row: usize,
        /// Its length.
        found: usize,
        /// Length of row 0.
        expected: usize,
    },
    /// The codebook has no such entry.
    #[error("code {code} in row {row}, the codebook has {entries} entries")]
    Code {
        /// The row.
        row: usize,
        /// The code.
        code: u16,
        /// Size of the row's codebook.
        entries: usize,
    },
}

/// Checks rows against the codebooks and returns the number of frames.
pub(super) fn check(rows: &[&[u16]], codebooks: &[usize]) -> Result<usize, CodesError> {
    if rows.len() != codebooks.len() {
        return Err(CodesError::Rows { found: rows.len(), expected: codebooks.len() });
    }
    let frames = rows.first().map_or(0, |row| row.len());
    for (row, (codes, &entries)) in rows.iter().zip(codebooks).enumerate() {
        if codes.len() != frames {
            return Err(CodesError::Length { row, found: codes.len(), expected: frames });
        }
        if let Some(&code) = codes.iter().find(|&&code| usize::from(code) >= entries) {
            return Err(CodesError::Code { row, code, entries });
        }
    }
    Ok(frames)
}

/// Rows of codes from frame `first` of a passage on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Codes {
    first: usize,
    rows: Vec<Vec<u16>>,
}

impl Codes {
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
        let mut codes = Codes::new(2);
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

    #[test]
    fn codes_that_cannot_be_decoded_are_told_with_their_place() {
        let codebooks = [8, 4];
        assert_eq!(check(&[&[7, 0], &[3, 3]], &codebooks), Ok(2));
        assert_eq!(check(&[&[], &[]], &codebooks), Ok(0));
        assert_eq!(check(&[&[7]], &codebooks), Err(CodesError::Rows { found: 1, expected: 2 }));
        assert_eq!(
            check(&[&[7], &[3, 3]], &codebooks),
            Err(CodesError::Length { row: 1, found: 2, expected: 1 })
        );
        assert_eq!(
            check(&[&[7, 1], &[3, 4]], &codebooks),
            Err(CodesError::Code { row: 1, code: 4, entries: 4 })
        );
    }
}
