//! How the bytes of key/value memory are divided among the stages of all bundles. Pure.
//!
//! Every stage gets the same number of windows of its greatest length, so that none is full while another is empty.

use crate::batch::BLOCK_TOKENS;

/// Key/value memory that is taken when nothing else is said: some hundred small contexts of a small voice ...
const KV_BYTES: usize = 512 << 20;
/// ... and never less than so many windows of the greatest length.
const KV_WINDOWS: usize = 4;

/// What one window of the greatest length needs in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// Its tokens, those of a companion included.
    pub(crate) tokens: usize,
    /// Bytes of a token's keys and values in all layers.
    pub(crate) token_bytes: usize,
}

impl Need {
    /// Bytes of the window.
    pub(crate) fn bytes(self) -> usize {
        self.tokens * self.token_bytes
    }
}

/// The bytes given do not hold one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooFew {
    /// What was given.
    pub(crate) given: usize,
    /// One window in every stage.
    pub(crate) needed: usize,
}

/// Bytes of key/value memory, and how many of them one window in every stage needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Funds {
    pub(crate) given: usize,
    pub(crate) needed: usize,
}

impl Funds {
    /// What the setting gives; without one, what is usual.
    ///
    /// # Errors
    /// See [`TooFew`].
    pub(crate) fn of(needs: &[Need], kv_bytes: Option<usize>) -> Result<Self, TooFew> {
        let needed: usize = needs.iter().map(|need| need.bytes()).sum();
        let given = kv_bytes.unwrap_or_else(|| KV_BYTES.max(KV_WINDOWS * needed));
        if given < needed { Err(TooFew { given, needed }) } else { Ok(Self { given, needed }) }
    }
}

/// Blocks of each stage.
///
/// # Errors
/// See [`TooFew`].
pub(crate) fn share(needs: &[Need], kv_bytes: Option<usize>) -> Result<Vec<usize>, TooFew> {
    let Funds { given, needed } = Funds::of(needs, kv_bytes)?;
    let blocks = |need: &Need| {
        let tokens = need.tokens as u128 * given as u128 / needed as u128;
        tokens as usize / BLOCK_TOKENS
    };
    Ok(needs.iter().map(blocks).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Need = Need { tokens: 160, token_bytes: 100 };
    const LARGE: Need = Need { tokens: 1600, token_bytes: 1000 };

    #[test]
    fn every_stage_gets_as_many_windows_of_one_budget() {
        let needed = SMALL.bytes() + LARGE.bytes();
        let blocks = share(&[SMALL, LARGE], Some(3 * needed)).unwrap();
        assert_eq!(blocks, [30, 300]);
        let used = blocks[0] * BLOCK_TOKENS * 100 + blocks[1] * BLOCK_TOKENS * 1000;
        assert_eq!(used, 3 * needed);
    }

    #[test]
    fn less_than_one_window_is_refused() {
        let needed = SMALL.bytes();
        assert_eq!(share(&[SMALL], Some(needed)), Ok(vec![10]));
        assert_eq!(share(&[SMALL], Some(needed - 1)), Err(TooFew { given: needed - 1, needed }));
    }

    #[test]
    fn large_windows_get_more_than_the_usual_memory() {
        let huge = Need { tokens: 1 << 20, token_bytes: 1 << 10 };
        assert_eq!(share(&[huge], None), Ok(vec![4 << 16]));
        assert_eq!(share(&[Need { tokens: 16, token_bytes: 1 << 20 }], None), Ok(vec![32]));
    }
}
