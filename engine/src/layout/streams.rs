//! The ids of a model that says several streams of codes at once: one vocabulary, of which each stream has a range.
//!
//! ```text
//! Bagpiper   reserved | text ..                     | pad, codes of stream 0 | pad, codes of stream 1 | ..
//! OpusLM     reserved (with the one pad) | codes of stream 0 | codes of stream 1 | .. | text .. | unused
//! ```

use std::ops::Range;

/// Says nothing, in any stream: the id of "no code" in rows of text, and of all that a stream does not say.
pub const NOTHING: u32 = 0;

/// Ids of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamIds {
    /// Its codes, code 0 first.
    pub codes: Range<u32>,
    /// What it says in a segment of sound while it has no code: an id of its own, or [`NOTHING`].
    pub pad: u32,
}

impl StreamIds {
    /// Streams whose ranges of `width` ids follow one another from `base` on; the first id of each is its pad.
    pub fn with_own_pads(base: u32, width: u32, streams: u32) -> Vec<Self> {
        let stream = |s: u32| {
            let pad = base + s * width;
            Self { codes: pad + 1..pad + width, pad }
        };
        (0..streams).map(stream).collect()
    }

    /// A stream of its own range, and behind it those that share `others` evenly, `width` ids each. None has a pad of its own.
    pub fn without_pads(first: Range<u32>, others: Range<u32>, width: u32) -> Vec<Self> {
        let starts = others.clone().step_by(width as usize);
        let others = starts.map(|start| start..(start + width).min(others.end));
        std::iter::once(first).chain(others).map(|codes| Self { codes, pad: NOTHING }).collect()
    }

    /// What the stream's own head chooses from: its codes, with the pad if that is one of its ids.
    pub fn head(&self) -> Range<u32> {
        if self.pad + 1 == self.codes.start { self.pad..self.codes.end } else { self.codes.clone() }
    }

    /// The id of a code, counted from 0, or of no code.
    ///
    /// # Panics
    /// When the stream has no such code: it would be read as one of the next stream.
    pub fn id(&self, code: Option<u16>) -> u32 {
        let Some(code) = code else { return self.pad };
        let id = self.codes.start + u32::from(code);
        assert!(
            self.codes.contains(&id),
            "code {code} in a stream of {:?}; this is a bug",
            self.codes
        );
        id
    }

    /// The code that an id stands for, or `None` when it is none of this stream's.
    pub fn code(&self, id: u32) -> Option<u16> {
        if !self.codes.contains(&id) {
            return None;
        }
        u16::try_from(id - self.codes.start).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::delay::{Aligner, interleave};

    fn golden() -> Value {
        let file =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/delay_pattern/global_ids.json");
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    }

    fn bagpiper() -> Vec<StreamIds> {
        StreamIds::with_own_pads(152_192, 1025, 8)
    }

    fn opuslm() -> Vec<StreamIds> {
        StreamIds::without_pads(256..5256, 5256..13_448, 1024)
    }

    fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
        serde_json::from_value(value.clone()).unwrap()
    }

    #[test]
    fn golden_points_map_both_ways() {
        for (name, streams) in [("bagpiper", bagpiper()), ("opuslm", opuslm())] {
            for point in golden()[name]["points"].as_array().unwrap() {
                let stream = &streams[read::<usize>(&point["stream"])];
                let code = u16::try_from(read::<i32>(&point["code"])).ok();
                let id: u32 = read(&point["id"]);
                assert_eq!((stream.id(code), stream.code(id)), (id, code), "{name} {point}");
            }
        }
    }

    #[test]
    fn heads_choose_from_the_golden_ranges() {
        for (name, streams) in [("bagpiper", bagpiper()), ("opuslm", opuslm())] {
            let ranges: Vec<[u32; 2]> = read(&golden()[name]["stream_ranges"]);
            let heads: Vec<[u32; 2]> =
                streams.iter().map(|s| s.head()).map(|h| [h.start, h.end]).collect();
            assert_eq!(heads, ranges, "{name}");
        }
    }

    #[test]
    fn golden_grids_in_ids_hold_the_codes() {
        for (name, streams) in [("bagpiper", bagpiper()), ("opuslm", opuslm())] {
            let grid = &golden()[name]["grid"];
            let frames: Vec<Vec<u16>> = read(&grid["codebooks"]);
            let rows: Vec<Vec<u32>> = read(&grid["delayed_ids"]);
            let mut aligner = Aligner::new(streams.len());
            let mut codes = Vec::new();
            for row in &rows {
                let cells: Vec<_> = row.iter().zip(&streams).map(|(id, s)| s.code(*id)).collect();
                aligner.push(&cells, &mut codes).unwrap();
            }
            assert_eq!(codes, frames.concat(), "{name}");
            let by_stream: Vec<Vec<u16>> =
                (0..streams.len()).map(|s| frames.iter().map(|f| f[s]).collect()).collect();
            let views: Vec<&[u16]> = by_stream.iter().map(Vec::as_slice).collect();
            let laid: Vec<Vec<u32>> = interleave(&views)
                .iter()
                .map(|row| row.iter().zip(&streams).map(|(c, s)| s.id(*c)).collect())
                .collect();
            assert_eq!(laid, rows, "{name}");
        }
    }

    #[test]
    #[should_panic(expected = "code 1024 in a stream")]
    fn a_code_of_the_next_stream_is_refused() {
        bagpiper()[0].id(Some(1024));
    }
}
