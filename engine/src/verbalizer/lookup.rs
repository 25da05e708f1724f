//! Drafts without a second model: what followed the newest words the last time they stood in the text. A language model that
//! copies most of what it reads confirms several of them in one step.
//!
//! Whole numbers only. A draft is a guess: it changes how many steps an answer takes, never the answer.

/// How drafts are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup {
    /// Newest ids that are looked for, at most.
    pub longest: usize,
    /// ... and at least.
    pub shortest: usize,
    /// Ids of a draft, at most.
    pub drafted: usize,
}

impl Lookup {
    /// As the public server of TontaubeV1 has it.
    pub const PUBLISHED: Self = Self { longest: 8, shortest: 3, drafted: 10 };
    /// No drafts: one id a step.
    pub const OFF: Self = Self { longest: 0, shortest: 1, drafted: 0 };

    /// What may follow: what stood behind the most of the newest ids where they stood before, the latest such place first.
    pub fn draft<'a>(&self, ids: &'a [u32]) -> &'a [u32] {
        let longest = self.longest.min(ids.len().saturating_sub(1));
        for length in (self.shortest.max(1)..=longest).rev() {
            let newest = &ids[ids.len() - length..];
            // Not the newest ids themselves: something stands behind the place.
            let found = ids[..ids.len() - 1].windows(length).rposition(|window| window == newest);
            if let Some(at) = found {
                let behind = &ids[at + length..];
                return &behind[..behind.len().min(self.drafted)];
            }
        }
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_and_latest_place_is_gone_on_from() {
        let lookup = Lookup { longest: 3, shortest: 2, drafted: 4 };
        // 1 2 stood twice, 9 1 2 once.
        assert_eq!(lookup.draft(&[9, 1, 2, 3, 4, 1, 2, 5, 6, 9, 1, 2]), [3, 4, 1, 2]);
        assert_eq!(lookup.draft(&[1, 2, 3, 4, 1, 2, 5, 6, 7, 1, 2]), [5, 6, 7, 1]);
        // A draft may run into the newest ids.
        assert_eq!(lookup.draft(&[7, 7, 7, 7]), [7]);
    }

    #[test]
    fn nothing_is_drafted_where_too_little_was_seen() {
        let lookup = Lookup { longest: 8, shortest: 3, drafted: 10 };
        for ids in [&[][..], &[1], &[1, 2, 3], &[1, 2, 9, 1, 2]] {
            assert!(lookup.draft(ids).is_empty(), "{ids:?}");
        }
        assert!(Lookup::OFF.draft(&[1, 1, 1, 1, 1]).is_empty());
    }
}
