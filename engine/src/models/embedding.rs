//! The embedding table: a row of the residual stream for each id. Rows that the grammar cannot reach may be left on disk.

use codecs::weights::{LoadError, Weights};

/// Where most models have it.
pub(crate) const EMBEDDING: &str = "model.embed_tokens.weight";
/// Marks an id whose row was dropped.
const DROPPED: u32 = u32::MAX;

/// Rows of the table, found by id.
pub(crate) struct Embedding {
    rows: Vec<f32>,
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
            let rows = weights.f32(name, &shape)?;
            return Ok(Self { rows, width, place: (0..vocabulary as u32).collect() });
        };
        let mut ids = kept.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let rows = weights.f32_rows(name, &shape, &ids)?;
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

    /// The row of an id, `None` when it is beyond the vocabulary or was dropped.
    pub(crate) fn row(&self, id: u32) -> Option<&[f32]> {
        let row = *self.place.get(id as usize)?;
        let start = row as usize * self.width;
        (row != DROPPED).then(|| &self.rows[start..start + self.width])
    }
}
