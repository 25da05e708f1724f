//! How rows meet panels: in tiles that fill the registers, with the panels that come next on their way from memory.

use super::{GROUP_TILES, Place, Store};
use crate::kernels::simd::{F32x16, Stored, prefetch};
use crate::kernels::tile::{LANES, Sums, Tile, product_beside};

/// Bytes that a cache fetches at once.
const CACHE_LINE: usize = 64;

/// Which rows take part in a product.
#[derive(Clone, Copy)]
pub(super) enum Rows<'a> {
    /// So many, one output row behind the other.
    All(usize),
    Placed(&'a [Place]),
}

impl Rows<'_> {
    fn len(self) -> usize {
        match self {
            Self::All(rows) => rows,
            Self::Placed(places) => places.len(),
        }
    }

    fn place(self, index: usize, outputs: usize) -> Place {
        match self {
            Self::All(_) => Place { row: index, start: index * outputs },
            Self::Placed(places) => places[index],
        }
    }
}

/// One product under way.
pub(super) struct Call<'a> {
    /// Input rows, `blocks` chunks each.
    pub(super) x: &'a [[f32; LANES]],
    pub(super) y: &'a mut [f32],
    pub(super) rows: Rows<'a>,
    pub(super) outputs: usize,
    pub(super) blocks: usize,
    pub(super) store: Store,
}

impl Call<'_> {
    /// Panel by panel, so that a panel is read from memory once for all rows. One and two rows take several panels at once:
    /// a sum waits for its last term, so about eight must be under way to keep the multipliers busy. Three with two panels
    /// would need more registers than there are, which costs more than it gains.
    pub(super) fn panels<W: Stored>(&mut self, tiles: &[Tile<W>], scales: &[[f32; LANES]]) {
        let packed = Packed { tiles, scales };
        let rows = self.rows.len();
        match rows {
            0 => {}
            1 => self.sweep::<W, 1, 4>(packed),
            2 => self.sweep::<W, 2, 2>(packed),
            _ => {
                let panels = self.outputs.div_ceil(LANES);
                let runs = rows.div_ceil(MOST_ROWS);
                for panel in 0..panels {
                    for (run, (first, count)) in even_runs(rows, MOST_ROWS).enumerate() {
                        let at = At { first, panel, share: (run, runs) };
                        match count {
                            3 => self.tile::<W, 3, 1>(at, packed),
                            4 => self.tile::<W, 4, 1>(at, packed),
                            5 => self.tile::<W, 5, 1>(at, packed),
                            _ => self.tile::<W, 6, 1>(at, packed),
                        }
                    }
                }
            }
        }
    }

    fn sweep<W: Stored, const M: usize, const P: usize>(&mut self, packed: Packed<'_, W>) {
        let panels = self.outputs.div_ceil(LANES);
        let at = |panel| At { first: 0, panel, share: (0, 1) };
        let mut panel = 0;
        while panel + P <= panels {
            self.tile::<W, M, P>(at(panel), packed);
            panel += P;
        }
        for panel in panel..panels {
            self.tile::<W, M, 1>(at(panel), packed);
        }
    }

    #[inline(never)]
    fn tile<W: Stored, const M: usize, const P: usize>(&mut self, at: At, packed: Packed<'_, W>) {
        let At { first, panel, share } = at;
        let blocks = self.blocks;
        let rows: [&[[f32; LANES]]; M] =
            std::array::from_fn(|m| &self.x[self.row(first + m) * blocks..][..blocks]);
        let (_, panels) = packed.tiles.split_at(panel * blocks);
        let (panels, next) = panels.split_at(P * blocks);
        let ahead = Ahead::new(&next[..next.len().min(P * blocks)], blocks, share);
        let panels: [&[Tile<W>]; P] = std::array::from_fn(|p| &panels[p * blocks..][..blocks]);
        let sums = if packed.scales.is_empty() {
            product_beside(rows, panels, |block| ahead.fetch(block))
        } else {
            let groups = blocks.div_ceil(GROUP_TILES);
            let scales = std::array::from_fn(|p| &packed.scales[(panel + p) * groups..][..groups]);
            scaled_product(rows, panels, scales, &ahead)
        };
        for (m, sums) in sums.iter().enumerate() {
            for (p, sums) in sums.iter().enumerate() {
                self.put(first + m, panel + p, &sums.to_array());
            }
        }
    }

    fn row(&self, index: usize) -> usize {
        self.rows.place(index, self.outputs).row
    }

    #[inline(always)]
    fn put(&mut self, index: usize, panel: usize, sums: &[f32; LANES]) {
        let start = panel * LANES;
        let width = LANES.min(self.outputs - start);
        let row = self.rows.place(index, self.outputs).start;
        let out = &mut self.y[row + start..][..width];
        match self.store {
            Store::Set => out.copy_from_slice(&sums[..width]),
            Store::Add => {
                for (o, s) in out.iter_mut().zip(sums) {
                    *o += s;
                }
            }
        }
    }
}

/// Numbers of a matrix; scales where those are whole.
#[derive(Clone, Copy)]
struct Packed<'a, W> {
    tiles: &'a [Tile<W>],
    scales: &'a [[f32; LANES]],
}

/// Where in a product a run of rows meets a panel.
#[derive(Clone, Copy)]
struct At {
    first: usize,
    panel: usize,
    /// Which of how many runs that meet this panel.
    share: (usize, usize),
}

/// The panels that come next. They are fetched from memory while those before are multiplied, a share of them in each run, so that
/// the multipliers do not wait for them.
struct Ahead<'a, W> {
    rows: &'a [[W; LANES]],
    /// Rows that are fetched beside one block.
    step: usize,
}

impl<'a, W: Stored> Ahead<'a, W> {
    const ROWS_PER_LINE: usize = {
        let row = size_of::<[W; LANES]>();
        if row < CACHE_LINE { CACHE_LINE / row } else { 1 }
    };

    fn new(next: &'a [Tile<W>], blocks: usize, (run, runs): (usize, usize)) -> Self {
        let rows = next.as_flattened();
        let step = rows.len().div_ceil(blocks * runs);
        Self { rows: &rows[(run * blocks * step).min(rows.len())..], step }
    }

    #[inline(always)]
    fn fetch(&self, block: usize) {
        let rows = self.rows.get(block * self.step..(block + 1) * self.step).unwrap_or_default();
        rows.iter().step_by(Self::ROWS_PER_LINE).for_each(prefetch);
    }
}

/// Rows of the largest tile: 6 rows of 16 sums fill twelve of the sixteen vector registers.
pub(crate) const MOST_ROWS: usize = 6;

/// Cuts `count` into the fewest runs of at most `most`, as even as can be: pairs of first and length.
pub(crate) fn even_runs(count: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let runs = count.div_ceil(most);
    (0..runs).map(move |i| {
        let (first, end) = (i * count / runs, (i + 1) * count / runs);
        (first, end - first)
    })
}

/// Whole numbers are summed group by group, and the groups in ascending order.
#[inline(always)]
fn scaled_product<W: Stored, const M: usize, const P: usize>(
    rows: [&[[f32; LANES]]; M],
    panels: [&[Tile<W>]; P],
    scales: [&[[f32; LANES]]; P],
    ahead: &Ahead<'_, W>,
) -> Sums<M, P> {
    let mut total = [[F32x16::zero(); P]; M];
    let blocks = panels[0].len();
    for group in 0..blocks.div_ceil(GROUP_TILES) {
        let range = group * GROUP_TILES..blocks.min((group + 1) * GROUP_TILES);
        let (rows, panels) = (rows.map(|r| &r[range.clone()]), panels.map(|p| &p[range.clone()]));
        let sums = product_beside(rows, panels, |block| ahead.fetch(range.start + block));
        let scales = scales.map(|s| f32::widen(&s[group]));
        for m in 0..M {
            for p in 0..P {
                total[m][p] = sums[m][p].mul_add(scales[p], total[m][p]);
            }
        }
    }
    total
}
