//! Rows that stand in prompts in the place of embeddings: what was heard. They are named by ids behind every vocabulary, so
//! that all that moves tokens about, shares their blocks or computes them anew takes them for tokens like any other.
//!
//! ```text
//! prompt     user audio 2147483648 2147483649 .. end          ids of a clip, in stream 0 alone
//! network    x = row of the clip that the id names
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

/// Ids from here on are of no vocabulary.
const FIRST: u32 = 1 << 31;
/// Stands in prompts where more of a recording is to come. Ids of clips end before it.
pub(crate) const COMING: u32 = u32::MAX;

/// The clips whose rows may stand in a prompt now.
#[derive(Debug)]
pub struct Heard {
    width: usize,
    clips: RwLock<Clips>,
}

#[derive(Debug)]
struct Clips {
    /// Rows by the first id of their clip.
    rows: BTreeMap<u32, Vec<f32>>,
    next: u32,
}

/// A clip. Its rows are there as long as it is.
#[derive(Debug)]
pub struct Clip {
    heard: Arc<Heard>,
    ids: Range<u32>,
}

impl Heard {
    /// No clip yet, of rows of so many values.
    pub(super) fn new(width: usize) -> Arc<Self> {
        let clips = Clips { rows: BTreeMap::new(), next: FIRST };
        Arc::new(Self { width, clips: RwLock::new(clips) })
    }

    /// Whether an id is that of a row.
    pub(crate) fn names(id: u32) -> bool {
        id >= FIRST
    }

    /// Values of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Clips that are there.
    pub fn clips(&self) -> usize {
        self.clips.read().unwrap_or_else(PoisonError::into_inner).rows.len()
    }

    /// Keeps the rows of a clip, `[rows, width]`, under ids that no other clip has.
    ///
    /// Ids come round again after two thousand million rows. By then blocks with the old ones are long evicted from any memory
    /// of keys and values, unless their clip is still there; such ids are passed over.
    ///
    /// # Panics
    /// When the rows are none or not whole: a caller's bug.
    pub fn add(self: &Arc<Self>, rows: Vec<f32>) -> Clip {
        assert!(
            !rows.is_empty() && rows.len().is_multiple_of(self.width),
            "rows are not whole; this is a bug"
        );
        let count =
            u32::try_from(rows.len() / self.width).expect("fewer rows than ids; this is a bug");
        let mut clips = self.clips.write().unwrap_or_else(PoisonError::into_inner);
        let first = clips.free(count, self.width);
        clips.next = first + count;
        clips.rows.insert(first, rows);
        Clip { heard: self.clone(), ids: first..first + count }
    }

    /// Gives a row to `read`, where there is one of that id.
    pub(super) fn with<R>(&self, id: u32, read: impl FnOnce(&[f32]) -> R) -> Option<R> {
        if !Self::names(id) {
            return None;
        }
        let clips = self.clips.read().unwrap_or_else(PoisonError::into_inner);
        let (first, rows) = clips.rows.range(..=id).next_back()?;
        let start = (id - first) as usize * self.width;
        rows.get(start..start + self.width).map(read)
    }
}

impl Clips {
    /// The first of `count` ids that no clip has.
    fn free(&self, count: u32, width: usize) -> u32 {
        let mut first = self.next;
        loop {
            let Some(last) = first.checked_add(count) else {
                first = FIRST;
                continue;
            };
            // The last clip that begins before the end of ours is the only one that can reach into it.
            match self.rows.range(..last).next_back() {
                Some((&at, rows)) if at + (rows.len() / width) as u32 > first => {
                    first = at + (rows.len() / width) as u32;
                }
                _ => return first,
            }
        }
    }
}

impl PartialEq for Clip {
    fn eq(&self, other: &Self) -> bool {
        self.is_of(&other.heard) && self.ids == other.ids
    }
}

impl Clip {
    /// Whether its rows are known to the network that `heard` belongs to.
    pub(crate) fn is_of(&self, heard: &Arc<Heard>) -> bool {
        Arc::ptr_eq(&self.heard, heard)
    }

    /// What its rows are called in a prompt.
    pub fn ids(&self) -> Range<u32> {
        self.ids.clone()
    }
}

impl Drop for Clip {
    fn drop(&mut self) {
        let mut clips = self.heard.clips.write().unwrap_or_else(PoisonError::into_inner);
        clips.rows.remove(&self.ids.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(heard: &Heard, id: u32) -> Option<Vec<f32>> {
        heard.with(id, <[f32]>::to_vec)
    }

    #[test]
    fn rows_are_found_by_their_ids_while_their_clip_is_there() {
        let heard = Heard::new(2);
        let one = heard.add(vec![1.0, 2.0, 3.0, 4.0]);
        let two = heard.add(vec![5.0, 6.0]);
        assert_eq!((one.ids(), two.ids()), (FIRST..FIRST + 2, FIRST + 2..FIRST + 3));
        assert_eq!(row(&heard, FIRST + 1), Some(vec![3.0, 4.0]));
        assert_eq!(row(&heard, FIRST + 2), Some(vec![5.0, 6.0]));
        drop(one);
        assert_eq!((row(&heard, FIRST), heard.clips()), (None, 1));
        assert_eq!(row(&heard, FIRST + 2), Some(vec![5.0, 6.0]));
        for id in [0, FIRST - 1, FIRST + 3, u32::MAX] {
            assert_eq!(row(&heard, id), None, "{id}");
        }
    }

    #[test]
    fn an_id_is_used_again_only_after_all_others_and_never_of_a_clip_that_is_there() {
        let heard = Heard::new(1);
        let first = heard.add(vec![1.0; 3]);
        drop(heard.add(vec![2.0; 2]));
        assert_eq!(heard.add(vec![3.0]).ids(), FIRST + 5..FIRST + 6);
        heard.clips.write().unwrap().next = u32::MAX - 1;
        assert_eq!(heard.add(vec![4.0]).ids(), u32::MAX - 1..u32::MAX);
        let round = heard.add(vec![5.0; 2]);
        assert_eq!(round.ids(), FIRST + 3..FIRST + 5, "behind the clip that is still there");
        assert_eq!(row(&heard, first.ids().start), Some(vec![1.0]));
    }
}
