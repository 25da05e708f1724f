//! The embedding table: a row of the residual stream for each id. Rows that the grammar cannot reach may be left on disk, and
//! numbers of 16 bits stay as they are until a row is read.

use codecs::weights::{Floats, LoadError, Weights};

/// Where most models have it.
pub(crate) const EMBEDDING: &str = "model.embed_tokens.weight";
/// Marks an id whose row was dropped.
const DROPPED: u32 = u32::MAX;

/// Rows of the table, found by id.
pub(crate) struct Embedding {
    rows: Floats,
    width: usize,
    /// Row of each id, [`DROPPED`] where there is none.
    place: Vec<u32>,
}

impl Embedding {
    /// Reads the rows of the ids in `kept` (any order, repeats allowed), or of all ids, of the tensor `name`, `[ids, width]`.
    ///
    /// # Errors
    /// The tensor does not hold, or `kept` names an id beyond it.
    pub(crate) fn read(
        weights: &Weights,
        name: &str,
        shape: [usize; 2],
        kept: Option<&[u32]>,
    ) -> Result<Self, LoadError> {
        let [vocabulary, width] = shape;
        let Some(kept) = kept else {
            let all: Vec<u32> = (0..vocabulary as u32).collect();
            return Ok(Self { rows: weights.float_rows(name, &shape, &all)?, width, place: all });
        };
        let mut ids = kept.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let rows = weights.float_rows(name, &shape, &ids)?;
        let mut place = vec![DROPPED; vocabulary];
        for (row, id) in ids.into_iter().enumerate() {
            place[id as usize] = row as u32;
        }
        Ok(Self { rows, width, place })
    }

    /// Numbers held.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Ids below this are in the vocabulary, though a row may have been dropped.
    pub(crate) fn vocabulary(&self) -> usize {
        self.place.len()
    }

    /// Whether an id has a row: it is in the vocabulary and was not dropped.
    pub(crate) fn knows(&self, id: u32) -> bool {
        self.place.get(id as usize).is_some_and(|row| *row != DROPPED)
    }

    /// Appends the row of an id.
    ///
    /// # Panics
    /// When it has none: ids are checked before a forward.
    pub(crate) fn append(&self, id: u32, x: &mut Vec<f32>) {
        let start = x.len();
        x.resize(start + self.width, 0.0);
        self.add(id, &mut x[start..]);
    }

    /// Adds the row of an id to `x`.
    ///
    /// # Panics
    /// As [`Embedding::append`].
    pub(crate) fn add(&self, id: u32, x: &mut [f32]) {
        assert!(self.knows(id), "ids were checked before the forward; this is a bug");
        let start = self.place[id as usize] as usize * self.width;
        self.rows.add_to(start, x);
    }
}
