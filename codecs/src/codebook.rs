//! Codebooks: factorised ones, whose entries are a few values wide and stand between two projections, and plain ones, whose
//! entries are what they stand for.

use crate::codes::{self, CodeError, Piece};
use crate::conv::{Filter, Linear, Sounds};
use crate::frames::Frames;
use crate::weights::{LoadError, Weights};

/// Rows whose similarities to all entries are held at a time.
const SEARCH_TILE_ROWS: usize = 16;
/// What a vector is divided by at least when it is brought to unit length.
const MIN_NORM: f32 = 1e-12;

/// Sizes of one codebook.
#[derive(Clone, Copy)]
pub(crate) struct CodebookShape {
    /// Number of codes.
    pub(crate) entries: usize,
    /// Values of an entry.
    pub(crate) width: usize,
    /// Values of the vector that an entry stands for.
    pub(crate) latent: usize,
}

/// Codes to vectors.
pub(crate) struct Codebook {
    entries: Vec<f32>,
    shape: CodebookShape,
    project: Linear,
}

impl Codebook {
    /// Reads the codebook and its output projection under `name`.
    pub(crate) fn load(
        weights: &Weights,
        name: &str,
        shape: CodebookShape,
    ) -> Result<Self, LoadError> {
        let CodebookShape { entries, width, latent } = shape;
        let filter =
            Filter::load(weights, &format!("{name}.out_proj"), [latent, width, 1], latent)?;
        Ok(Self {
            entries: weights.f32(&format!("{name}.codebook.weight"), &[entries, width])?,
            shape,
            project: Linear::new(&filter),
        })
    }

    /// The vectors of `codes`, `[frames, latent]`; `row` is only for the error.
    pub(crate) fn lookup(&self, codes: &[u16], row: usize) -> Result<Frames, CodeError> {
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
pub(crate) struct CodebookSearch {
    project: Linear,
    /// Unit-length entries as a layer: its outputs are the cosines, one for each entry.
    cosines: Linear,
}

impl CodebookSearch {
    /// Reads the codebook and its input projection under `name`.
    pub(crate) fn load(
        weights: &Weights,
        name: &str,
        shape: CodebookShape,
    ) -> Result<Self, LoadError> {
        let CodebookShape { entries, width, latent } = shape;
        let filter = Filter::load(weights, &format!("{name}.in_proj"), [width, latent, 1], width)?;
        let mut values = weights.f32(&format!("{name}.codebook.weight"), &[entries, width])?;
        to_unit_length(&mut values, width);
        let cosines = Filter { shape: [entries, width, 1], values, bias: Vec::new() };
        Ok(Self { project: Linear::new(&filter), cosines: Linear::new(&cosines) })
    }

    /// The code of every row, `[frames, latent]`; the lowest one on ties.
    pub(crate) fn search(&self, vectors: &Frames) -> Vec<u16> {
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

/// Entries as wide as the vectors that they stand for, to be found by their distance. Of two, the nearer has the larger output
/// of a layer, `r c - |c|^2 / 2`; the layer's weights are the entries.
pub(crate) struct NearestCodebook {
    nearness: Linear,
}

impl NearestCodebook {
    /// Reads the entries, the tensor `name`.
    pub(crate) fn load(
        weights: &Weights,
        name: &str,
        [entries, width]: [usize; 2],
    ) -> Result<Self, LoadError> {
        let values = weights.f32(name, &[entries, width])?;
        let square = |row: &[f32]| row.iter().map(|v| v * v).sum::<f32>();
        let bias = values.chunks_exact(width).map(|row| -0.5 * square(row)).collect();
        let filter = Filter { shape: [entries, width, 1], values, bias };
        Ok(Self { nearness: Linear::new(&filter) })
    }

    /// Number of codes.
    pub(crate) fn entries(&self) -> usize {
        self.nearness.outputs()
    }

    /// The nearest code of every row, `[time, width]`; the lowest one on ties.
    pub(crate) fn nearest(&self, vectors: &Frames) -> Vec<u16> {
        let entries = self.entries();
        let mut codes = Vec::with_capacity(vectors.time());
        for tile in vectors.data().chunks(SEARCH_TILE_ROWS * self.nearness.inputs()) {
            let mut scores = vec![0.0; tile.len() / self.nearness.inputs() * entries];
            self.nearness.add_rows(tile, &mut scores);
            codes.extend(scores.chunks_exact(entries).map(first_maximum));
        }
        codes
    }

    /// [`NearestCodebook::nearest`], and what the codes stand for is subtracted from the rows.
    pub(crate) fn take_nearest(&self, residual: &mut Frames) -> Vec<u16> {
        let codes = self.nearest(residual);
        for (row, &code) in residual.rows_mut().zip(&codes) {
            let entry = self.nearness.weights_of(usize::from(code));
            row.iter_mut().zip(entry).for_each(|(r, e)| *r -= e);
        }
        codes
    }
}

/// Tensors of codebooks that refine each other: what one leaves over, the next one codes.
pub(crate) struct Residual {
    /// Of each codebook.
    pub(crate) names: Vec<String>,
    /// Entries of each, and values of an entry.
    pub(crate) shape: [usize; 2],
}

/// Such codebooks, to code vectors.
pub(crate) struct ResidualSearch(Vec<NearestCodebook>);

impl ResidualSearch {
    pub(crate) fn load(weights: &Weights, residual: &Residual) -> Result<Self, LoadError> {
        let load = |name: &String| NearestCodebook::load(weights, name, residual.shape);
        Ok(Self(residual.names.iter().map(load).collect::<Result<_, _>>()?))
    }

    /// Vectors `[frames, width]` to `[codebooks][frames]`.
    pub(crate) fn encode(&self, mut vectors: Frames) -> Vec<Vec<u16>> {
        self.0.iter().map(|codebook| codebook.take_nearest(&mut vectors)).collect()
    }
}

/// Such codebooks, to make vectors of codes.
pub(crate) struct ResidualEntries {
    /// `[entries, width]` of each.
    codebooks: Vec<Vec<f32>>,
    shape: [usize; 2],
}

impl ResidualEntries {
    pub(crate) fn load(weights: &Weights, residual: &Residual) -> Result<Self, LoadError> {
        let load = |name: &String| weights.f32(name, &residual.shape);
        let codebooks = residual.names.iter().map(load).collect::<Result<_, _>>()?;
        Ok(Self { codebooks, shape: residual.shape })
    }

    /// The vectors of `codes`, `[codebooks][frames]` to `[frames, width]`.
    pub(crate) fn sum(&self, codes: &[&[u16]]) -> Result<Frames, CodeError> {
        let [entries, width] = self.shape;
        let frames = codes::check(codes, &vec![entries; self.codebooks.len()])?;
        let mut sum = Frames::zeros(frames, width);
        for (codebook, row) in self.codebooks.iter().zip(codes) {
            for (sum, &code) in sum.rows_mut().zip(*row) {
                let entry = &codebook[usize::from(code) * width..][..width];
                sum.iter_mut().zip(entry).for_each(|(s, e)| *s += e);
            }
        }
        Ok(sum)
    }

    /// [`ResidualEntries::sum`] of each stream.
    pub(crate) fn sum_each<S>(&self, pieces: &[Piece<'_, S>]) -> Result<Sounds, CodeError> {
        let mut sums = Sounds::none(self.shape[1]);
        for piece in pieces {
            let sum = self.sum(piece.codes)?;
            sums.add(piece.ended, |rows| rows.extend(&sum));
        }
        Ok(sums)
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
