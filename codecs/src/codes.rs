//! What can be wrong with rows of codes: one error for every codec.

/// Why codes cannot be decoded. No state has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// The codec has another number of rows, or fewer.
    #[error("{found} rows of codes, the codec has {expected}")]
    Rows {
        /// Rows given.
        found: usize,
        /// Rows of the codec.
        expected: usize,
    },
    /// The rows do not tell of the same frames.
    #[error("row {row} has {found} codes, expected {expected}")]
    Length {
        /// The first row that differs.
        row: usize,
        /// Its length.
        found: usize,
        /// The length expected.
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

/// The codes that come next in one of several streams, and the stream's state.
pub struct Piece<'a, S> {
    /// Where the stream is.
    pub state: &'a mut S,
    /// `[codebooks][frames]`, perhaps no frames.
    pub codes: &'a [&'a [u16]],
    /// Whether they are its last ones.
    pub ended: bool,
}

/// Checks one row of codes for each codebook, given by its size, and returns the number of frames.
pub(crate) fn check(rows: &[&[u16]], codebooks: &[usize]) -> Result<usize, CodeError> {
    if rows.len() != codebooks.len() {
        return Err(CodeError::Rows { found: rows.len(), expected: codebooks.len() });
    }
    let frames = rows.first().map_or(0, |row| row.len());
    for (row, (codes, &entries)) in rows.iter().zip(codebooks).enumerate() {
        if codes.len() != frames {
            return Err(CodeError::Length { row, found: codes.len(), expected: frames });
        }
        if let Some(&code) = codes.iter().find(|&&code| usize::from(code) >= entries) {
            return Err(CodeError::Code { row, code, entries });
        }
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_cannot_be_decoded_are_told_with_their_place() {
        let codebooks = [8, 4];
        assert_eq!(check(&[&[7, 0], &[3, 3]], &codebooks), Ok(2));
        assert_eq!(check(&[&[], &[]], &codebooks), Ok(0));
        let rows = Err(CodeError::Rows { found: 1, expected: 2 });
        assert_eq!(check(&[&[7]], &codebooks), rows);
        let length = Err(CodeError::Length { row: 1, found: 2, expected: 1 });
        assert_eq!(check(&[&[7], &[3, 3]], &codebooks), length);
        let code = Err(CodeError::Code { row: 1, code: 4, entries: 4 });
        assert_eq!(check(&[&[7, 1], &[3, 4]], &codebooks), code);
    }
}
