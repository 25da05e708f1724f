//! Factorised codebooks: entries a few values wide, between two projections.

use crate::codes::CodeError;
use crate::conv::{Filter, Linear};
use crate::frames::Frames;
use crate::weights::{LoadError, Weights};

/// Rows whose similarities to all entries are held at a time.
const SEARCH_TILE_ROWS: usize = 16;
/// What a vector is divided by at least when it is brought to unit length.
const MIN_NORM: f32 = 1e-12;

/// Sizes of one codebook.
#[derive(Clone, Copy)]
pub(super) struct CodebookShape {
    /// Number of codes.
    pub(super) entries: usize,
    /// Values of an entry.
    pub(super) width: usize,
    /// Values of the vector that an entry stands for.
    pub(super) latent: usize,
}

/// Codes to vectors.
pub(super) struct Codebook {
    entries: Vec<f32>,
    shape: CodebookShape,
    project: Linear,
}

impl Codebook {
    /// Reads the codebook and its output projection under `name`.
    pub(super) fn load(
        weights: &Weights,
        name: &str,
        shape: CodebookShape,
    ) -> Result<Self, LoadError> {
        let CodebookShape { entries, width, latent } = shape;
        let filter =
            Filter::weight_norm(weights, &format!("{name}.out_proj"), [latent, width, 1], latent)?;
        Ok(Self {
            entries: weights.f32(&format!("{name}.codebook.weight"), &[entries, width])?,
            shape,
            project: Linear::new(&filter),
        })
    }

    /// The vectors of `codes`, `[frames, latent]`; `row` is only for the error.
    pub(super) fn lookup(&self, codes: &[u16], row: usize) -> Result<Frames, CodeError> {
        let CodebookShape { entries, width, .. } = self.shape;
        let mut chosen = Vec::with_capacity(codes.len() * width);
        for &code in codes {
            let start = usize::from(code) * width;
            let entry = self.entries.get(start..start + width);
            let entry = entry.ok_or(CodeError::Code { row, code, entries })?;
            chosen.extend_from_slice(entry);
        }
        Ok(self.project.forward(&Frames::new(chosen, width)))
    }
}

/// Vectors to codes, by the largest cosine after the input projection.
pub(super) struct CodebookSearch {
    project: Linear,
    /// Unit-length entries as a layer: its outputs are the cosines, one for each entry.
    cosines: Linear,
}

impl CodebookSearch {
    /// Reads the codebook and its input projection under `name`.
    pub(super) fn load(
        weights: &Weights,
        name: &str,
        shape: CodebookShape,
    ) -> Result<Self, LoadError> {
        let CodebookShape { entries, width, latent } = shape;
        let filter =
            Filter::weight_norm(weights, &format!("{name}.in_proj"), [width, latent, 1], width)?;
        let mut values = weights.f32(&format!("{name}.codebook.weight"), &[entries, width])?;
        to_unit_length(&mut values, width);
        let cosines = Filter { shape: [entries, width, 1], values, bias: Vec::new() };
        Ok(Self { project: Linear::new(&filter), cosines: Linear::new(&cosines) })
    }

    /// The code of every row, `[frames, latent]`; the lowest one on ties.
    pub(super) fn search(&self, vectors: &Frames) -> Vec<u16> {
        let (width, entries) = (self.cosines.inputs(), self.cosines.outputs());
        let mut keys = self.project.forward(vectors).into_data();
        to_unit_length(&mut keys, width);
        let mut codes = Vec::with_capacity(vectors.time());
        for tile in keys.chunks(SEARCH_TILE_ROWS * width) {
            let mut cosines = vec![0.0; tile.len() / width * entries];
            self.cosines.add_rows(tile, &mut cosines);
            codes.extend(cosines.chunks_exact(entries).map(first_maximum));
        }
        codes
    }
}

fn first_maximum(row: &[f32]) -> u16 {
    let mut best = 0;
    for (i, &value) in row.iter().enumerate() {
        if value > row[best] {
            best = i;
        }
    }
    u16::try_from(best).expect("a codebook has at most 65,536 entries; this is a bug")
}

fn to_unit_length(values: &mut [f32], width: usize) {
    for row in values.chunks_exact_mut(width) {
        let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt().max(MIN_NORM);
        row.iter_mut().for_each(|v| *v /= norm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_code_wins_a_tie() {
        assert_eq!(first_maximum(&[0.1, 0.5, 0.5, 0.2]), 1);
        assert_eq!(first_maximum(&[0.5]), 0);
    }

    #[test]
    fn a_zero_vector_stays_zero() {
        let mut values = [3.0, 4.0, 0.0, 0.0];
        to_unit_length(&mut values, 2);
        assert_eq!(values, [0.6, 0.8, 0.0, 0.0]);
    }
}
