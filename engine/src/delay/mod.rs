//! The delay pattern of models that say several streams of codes at once: stream `n` says the code of a frame `n` rows
//! after stream 0 has said its own. A row is what a model says in one step.
//!
//! Whole numbers only: it must never know ids, logits, or whose rows they are.
//!
//! ```text
//! row   a   b   c    completes        S = 3 streams, T = 4 frames, T + S - 1 = 6 rows
//!  0    a0  .   .                     frame t is row[t + n][n] for every stream n
//!  1    a1  b0  .
//!  2    a2  b1  c0   frame 0          cells before a stream's first code: warm-up
//!  3    a3  b2  c1   frame 1
//!  4    .   b3  c2   frame 2          cells behind its last one: drain
//!  5    .   .   c3   frame 3
//! ```
//! Nothing reads warm-up and drain cells, except that a row without a code in stream 0 begins no frame.

use std::ops::Range;

/// What one stream says in one row: a code of its own, counted from 0, or nothing (its pad, or a symbol that ends).
pub type Cell = Option<u16>;

/// How a segment of sound ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Stream 0 falls silent while the others finish; the end symbol behind the last row is no row itself (Bagpiper).
    Padded,
    /// The end symbol stands in stream 0 of a row whose other streams go on, and the others finish behind it (OpusLM).
    Flushed,
}

impl Ending {
    /// Rows that so many frames take, up to and with the last that finishes a frame.
    pub fn rows(self, frames: usize, streams: usize) -> usize {
        match self {
            Self::Padded if frames == 0 => 0,
            Self::Padded => frames + streams - 1,
            // The frame that the end symbol begins is carried to its end like all others, and dropped.
            Self::Flushed => frames + streams,
        }
    }

    /// Frames that can be finished within so many rows. Where a limit is known, no frame beyond these may be begun: what
    /// is begun without time to finish is lost.
    pub fn frames(self, rows: usize, streams: usize) -> usize {
        match self {
            Self::Padded => whole_frames(rows, streams),
            Self::Flushed => rows.saturating_sub(streams),
        }
    }
}

/// Frames whose codes have all been said once so many rows are there.
pub fn whole_frames(rows: usize, streams: usize) -> usize {
    rows.saturating_sub(streams - 1)
}

/// Streams whose cell in this row belongs to a frame; the cells before are drained, those behind are warm-up. `begun` is how
/// many frames have begun or will, where that is known.
pub fn live_streams(row: usize, begun: Option<usize>, streams: usize) -> Range<usize> {
    let end = streams.min(row + 1);
    let start = begun.map_or(0, |begun| (row + 1).saturating_sub(begun));
    start.min(end)..end
}

/// Lays streams of codes, `[streams][frames]`, out as rows.
///
/// # Panics
/// When there is no stream or they differ in length: that is a bug of the caller.
pub fn interleave(streams: &[&[u16]]) -> Vec<Vec<Cell>> {
    let frames = streams[0].len();
    assert!(streams.iter().all(|s| s.len() == frames), "a frame has a code of each stream");
    let cell = |row: usize, stream: usize| {
        row.checked_sub(stream).and_then(|frame| streams[stream].get(frame).copied())
    };
    let rows = Ending::Padded.rows(frames, streams.len());
    (0..rows).map(|row| (0..streams.len()).map(|stream| cell(row, stream)).collect()).collect()
}

/// A frame that has begun lacks a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("frame {frame} has no code in stream {stream}")]
pub struct Hole {
    /// Which frame, 0 based: the row that began it.
    pub frame: usize,
    /// Which stream.
    pub stream: usize,
}

/// Puts the rows of one segment together to frames, as they are said. It holds no more than the frames under way.
#[derive(Debug, Clone)]
pub struct Aligner {
    streams: usize,
    rows: usize,
    /// Frames that have begun: rows with a code in stream 0.
    begun: usize,
    /// Frames given out.
    given: usize,
    /// Cells of the newest frames: frame `t` in the `streams` cells from `t % streams * streams` on.
    cells: Vec<Cell>,
}

impl Aligner {
    /// For a segment of which nothing has been said.
    ///
    /// # Panics
    /// Without a stream: that is a bug of the caller.
    pub fn new(streams: usize) -> Self {
        assert!(streams > 0, "a model has at least one stream; this is a bug");
        Self { streams, rows: 0, begun: 0, given: 0, cells: vec![None; streams * streams] }
    }

    /// Takes the next row. The codes of the frame that it completes, if there is one, are appended to `codes`, one of each
    /// stream; whether there was one is returned.
    ///
    /// # Errors
    /// The completed frame lacks a code. The row is not taken then.
    ///
    /// # Panics
    /// When the row has not one cell for each stream: that is a bug of the caller.
    pub fn push(&mut self, row: &[Cell], codes: &mut Vec<u16>) -> Result<bool, Hole> {
        assert_eq!(row.len(), self.streams, "a row has a cell for each stream; this is a bug");
        let last = self.streams - 1;
        let oldest = self.rows.checked_sub(last);
        let first_of = |frame| if last == 0 { row[0] } else { self.cells[self.place(frame, 0)] };
        let completed = oldest.filter(|&frame| first_of(frame).is_some());
        if let Some(frame) = completed {
            // The last stream's cell is in this row, all others are held.
            let held = |stream: usize| self.cells[self.place(frame, stream)];
            let cell = |stream: usize| if stream == last { row[last] } else { held(stream) };
            if let Some(stream) = (0..self.streams).find(|&stream| cell(stream).is_none()) {
                return Err(Hole { frame, stream });
            }
        }
        for stream in live_streams(self.rows, None, self.streams) {
            let place = self.place(self.rows - stream, stream);
            self.cells[place] = row[stream];
        }
        self.rows += 1;
        self.begun += usize::from(row[0].is_some());
        if let Some(frame) = completed {
            let start = self.place(frame, 0);
            codes.extend(self.cells[start..start + self.streams].iter().flatten());
            self.given += 1;
        }
        Ok(completed.is_some())
    }

    /// Whether the next row must have a code in this stream, not stream 0: its frame has begun.
    pub fn needs(&self, stream: usize) -> bool {
        let frame = self.rows.checked_sub(stream);
        frame.is_some_and(|frame| self.cells[self.place(frame, 0)].is_some())
    }

    /// Rows taken.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Frames given out.
    pub fn frames(&self) -> usize {
        self.given
    }

    /// Frames that have begun and are not whole: what is lost when no further row comes.
    pub fn unfinished(&self) -> usize {
        self.begun - self.given
    }

    fn place(&self, frame: usize, stream: usize) -> usize {
        frame % self.streams * self.streams + stream
    }
}

#[cfg(test)]
mod tests;
