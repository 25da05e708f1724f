//! Rows of text and codes laid out as the one sequence that a stage reads: ids and positions, pure integers.
//!
//! It must never know where rows come from, when they are complete, or what is done with the sequence.
//!
//! ```text
//! cb0      [prompt row 0] [control] [before] split [text] split [lookahead] PAD [C0 before] split [C0 known ..
//! cb1..3   [prompt rows 0..i] [control] [text] PAD [C0] end PAD [C1] .. PAD [Ci known ..
//! cb1..3   .. [control] [before] split [text] PAD [C0 before] split [C0] end PAD [C1 before] [C1] .. PAD [Ci before] [Ci known ..
//! ```
//!
//! **Positions.** P is the prompt's length. Each prompt row has 1..P, each PAD has P, text and codes start at P + 1.
//! With an earlier chunk in the window, text and codes of the current one start together again behind a boundary at
//! `M = P + 1 + max(text before + realign, codes before)`, where both rows have their marker. Rows C1.. have the
//! positions of C0's codes, so a frame has one position in all rows and the marker's is skipped.

#[cfg(test)]
mod golden;
mod prompt;
mod streams;
mod vocabulary;

use std::ops::Range;

pub use prompt::{
    Message, Piece, Role, bagpiper_chat, opuslm_dialogue, opuslm_speech, opuslm_transcription,
};
pub use streams::{NOTHING, StreamIds};
pub use vocabulary::{Symbol, Vocabulary};

/// What follows the text of a chunk, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail<'a> {
    /// The beginning of the next chunk, with its leading space, and a line feed when it is the passage's last.
    Lookahead(&'a [u32]),
    /// Nothing: the passage ends here, or the chunk ends a sentence or was flushed and nothing is known behind it.
    End,
    /// Not known yet, in the middle of a sentence.
    Open,
}

/// A text that was spoken, with its codes: an earlier chunk, or a prefix that the passage continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spoken<'a> {
    /// Its characters, without the line feed that may have ended it.
    pub text: &'a [u32],
    /// Rows 0 to the stage's own, of equal length.
    pub rows: &'a [&'a [u16]],
}

/// All that a stage reads to speak one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window<'a> {
    /// The voice: rows 0 to the stage's own, of equal length, already cut for the stage. No rows: no voice prompt.
    pub prompt: &'a [&'a [u16]],
    /// Language and style.
    pub control: &'a [u32],
    /// Stage 0: the chunk before this one. Any stage: the prefix that this chunk continues.
    pub before: Option<Spoken<'a>>,
    /// Characters of the chunk, without a line feed at the end.
    pub text: &'a [u32],
    /// What follows it. The acoustic stages see only whether the text ends here.
    pub tail: Tail<'a>,
    /// The chunk's codes: rows 0 to the stage's own. The last is what is known of the own row and what generation goes
    /// on from, the rows before it are complete and of equal length.
    pub rows: &'a [&'a [u16]],
}

/// One sequence, and where its parts are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Rotary position of each token.
    pub positions: Vec<i32>,
    /// Indices of the control block, which starts the text row. All before its end depends on voice, language and
    /// style only.
    pub control: Range<usize>,
    /// Indices of the current chunk's text, with the line feed if it has one.
    pub text: Range<usize>,
    /// Indices of the C0 row, with all before the current chunk, without PAD and the symbol that ends it. The same
    /// window with a longer C0 has the same tokens up to the end of this range.
    pub c0: Range<usize>,
    /// Index of the current chunk's first code in the row that the stage makes; one past the end when none is known.
    pub own: usize,
    /// Position of the next token to be generated; those after it count up by one.
    pub next_position: i32,
}

impl Layout {
    /// The sequence that makes a stage say the next code of a window.
    ///
    /// # Panics
    /// When the window has not the stage's number of rows, or rows that must be complete differ in length.
    pub fn of(vocabulary: &Vocabulary, window: &Window<'_>) -> Self {
        check_rows(vocabulary, window);
        let mut layout = Self::default();
        let frames = window.prompt.first().map_or(0, |row| row.len());
        for (row, codes) in window.prompt.iter().enumerate() {
            layout.put(1, codes.iter().map(|&c| vocabulary.code(row, c)));
        }
        let prompt = position(frames);
        let start = layout.put_text(vocabulary, window, prompt + 1);
        for row in 0..=vocabulary.stage {
            layout.put(prompt, [vocabulary.pad]);
            layout.put_codes(vocabulary, window, row, prompt + 1, start);
        }
        layout
    }

    /// The companion of a stage 0 window for guidance: the same codes without voice, text or earlier chunk, at the
    /// positions of a first chunk.
    pub fn null(vocabulary: &Vocabulary, control: &[u32], codes: &[u16]) -> Self {
        let window = Window {
            prompt: &[],
            control,
            before: None,
            text: &[],
            tail: Tail::Open,
            rows: &[codes],
        };
        Self::of(vocabulary, &window)
    }

    /// The text row from position `first` on. Returns the position where the current chunk's text and codes start.
    fn put_text(&mut self, vocabulary: &Vocabulary, window: &Window<'_>, first: i32) -> i32 {
        let control = self.ids.len();
        self.put(first, window.control.iter().copied());
        self.control = control..self.ids.len();
        let mut spoken = self.control.len();
        let mut start = first;
        if let Some(before) = &window.before {
            self.put(first + position(spoken), before.text.iter().copied());
            spoken += before.text.len();
            let boundary =
                first + position((spoken + vocabulary.realign).max(before.rows[0].len()));
            self.put(boundary, [vocabulary.text_split]);
            start = boundary + 1;
            spoken = 0;
        }
        let text = self.ids.len();
        self.put(start + position(spoken), window.text.iter().copied());
        if window.tail == Tail::End {
            let end = start + position(spoken + window.text.len());
            self.put(end, [vocabulary.line_feed]);
        }
        self.text = text..self.ids.len();
        if let (0, Tail::Lookahead(next)) = (vocabulary.stage, window.tail) {
            // The codes of the current chunk do not count here: known ones were generated at a time when none were, and
            // must find the marker where it was then.
            let boundary = start + position(spoken + window.text.len() + vocabulary.realign);
            self.put(boundary, [vocabulary.text_split]);
            self.put(boundary + 1, next.iter().copied());
        }
        start
    }

    /// One row of codes behind its PAD: those before at `first`, those of the current chunk at `start`.
    fn put_codes(
        &mut self,
        vocabulary: &Vocabulary,
        window: &Window<'_>,
        row: usize,
        first: i32,
        start: i32,
    ) {
        let at = self.ids.len();
        if let Some(before) = &window.before {
            self.put(first, before.rows[row].iter().map(|&c| vocabulary.code(row, c)));
            if row == 0 {
                self.put(start - 1, [vocabulary.audio_split]);
            }
        }
        self.own = self.ids.len();
        self.put(start, window.rows[row].iter().map(|&c| vocabulary.code(row, c)));
        self.next_position = start + position(window.rows[row].len());
        if row == 0 {
            self.c0 = at..self.ids.len();
            if vocabulary.stage > 0 {
                self.put(self.next_position, [vocabulary.end_of_speech]);
            }
        }
    }

    /// Appends tokens at consecutive positions.
    fn put(&mut self, first: i32, ids: impl IntoIterator<Item = u32>) {
        self.ids.extend(ids);
        let new = self.ids.len() - self.positions.len();
        self.positions.extend((first..).take(new));
    }
}

/// The sizes that bound a window; characters and ids are one to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimits {
    /// Frames of the voice prompt that the stage reads.
    pub prompt_frames: usize,
    /// Ids of the longest control block.
    pub control: usize,
    /// Characters of a chunk, and of a prefix, without leading space and line feed.
    pub characters: usize,
    /// Characters of a lookahead, without leading space and line feed.
    pub lookahead: usize,
    /// Codes of a row of a chunk, and of a prefix.
    pub codes: usize,
}

impl WindowLimits {
    /// Tokens of the longest window of a stage, generated ones included, however long the passage is. A passage that
    /// continues a prefix makes longer ones in the acoustic stages, where nothing else stands before a chunk.
    pub fn longest(&self, stage: usize, continues_prefix: bool) -> usize {
        const LEADING_SPACE: usize = 1;
        const LINE_FEED: usize = 1;
        const MARKER: usize = 1;
        const PAD: usize = 1;
        let rows = stage + 1;
        let text = LEADING_SPACE + self.characters;
        let common = rows * self.prompt_frames + self.control + rows * (PAD + self.codes) + text;
        if stage == 0 {
            // An inner chunk behind another: a lookahead instead of the line feed, which may come after it.
            let lookahead = MARKER + LEADING_SPACE + self.lookahead + LINE_FEED;
            return common + text + MARKER + lookahead + self.codes + MARKER;
        }
        let prefix = self.characters + MARKER + rows * self.codes + MARKER;
        common + LINE_FEED + MARKER + if continues_prefix { prefix } else { 0 }
    }
}

fn check_rows(vocabulary: &Vocabulary, window: &Window<'_>) {
    let rows = vocabulary.stage + 1;
    let whole = |rows: &[&[u16]]| rows.iter().all(|row| row.len() == rows[0].len());
    let prompt = window.prompt;
    assert!(prompt.is_empty() || prompt.len() == rows && whole(prompt), "prompt; this is a bug");
    let before = window.before.iter().all(|b| b.rows.len() == rows && whole(b.rows));
    assert!(before, "rows of what was spoken before; this is a bug");
    assert_eq!(window.rows.len(), rows, "rows of the chunk; this is a bug");
    let (own, known) = window.rows.split_last().expect("a stage has a row");
    let fits = known.is_empty() || own.len() <= known[0].len();
    assert!(whole(known) && fits, "lengths of the chunk's rows; this is a bug");
}

fn position(tokens: usize) -> i32 {
    i32::try_from(tokens).expect("windows are bounded far below this")
}

#[cfg(test)]
mod tests {
    use super::*;
    use codecs::weights::Weights;
    use proptest::prelude::*;
    use std::path::PathBuf;

    const PAD: u32 = 90;
    const END: u32 = 91;
    const TEXT_SPLIT: u32 = 92;
    const AUDIO_SPLIT: u32 = 93;
    const LF: u32 = 10;
    const START: u32 = 100;
    const CONTROL: [u32; 3] = [80, 81, LF];

    /// 50 semantic codes from id 100 on, then 20 for each acoustic row: from 150, 170 and 190 on.
    fn vocabulary(stage: usize) -> Vocabulary {
        Vocabulary {
            stage,
            pad: PAD,
            end_of_speech: END,
            text_split: TEXT_SPLIT,
            audio_split: AUDIO_SPLIT,
            line_feed: LF,
            audio_start: START,
            semantic_codes: 50,
            acoustic_codes: 20,
            realign: 25,
        }
    }

    fn assert_tokens(layout: &Layout, parts: &[(&[u32], i32)]) {
        let ids: Vec<u32> = parts.iter().flat_map(|(ids, _)| ids.iter().copied()).collect();
        let positions: Vec<i32> =
            parts.iter().flat_map(|(ids, first)| (*first..).take(ids.len())).collect();
        assert_eq!(layout.ids, ids);
        assert_eq!(layout.positions, positions);
    }

    #[test]
    fn first_chunk_in_mid_sentence_is_control_text_pad() {
        let window = Window {
            prompt: &[],
            control: &[1, 2, 3],
            before: None,
            text: &[65, 66],
            tail: Tail::Open,
            rows: &[&[]],
        };
        let layout = Layout::of(&vocabulary(0), &window);
        assert_tokens(&layout, &[(&[1, 2, 3], 1), (&[65, 66], 4), (&[PAD], 0)]);
        assert_eq!((layout.control.clone(), layout.text.clone()), (0..3, 3..5));
        assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (6..6, 6, 1));
    }

    #[test]
    fn first_chunk_with_prompt_and_lookahead_has_a_marker_25_behind_its_text() {
        let window = Window {
            prompt: &[&[7, 8, 9, 9]],
            control: &[1, 2, 3],
            before: None,
            text: &[65, 66],
            tail: Tail::Lookahead(&[32, 67]),
            rows: &[&[5]],
        };
        let layout = Layout::of(&vocabulary(0), &window);
        // S0 = 5, five ids of text, M0 = 5 + 5 + 25.
        assert_tokens(
            &layout,
            &[
                (&[107, 108, 109, 109], 1),
                (&[1, 2, 3, 65, 66], 5),
                (&[TEXT_SPLIT, 32, 67], 35),
                (&[PAD, 105], 4),
            ],
        );
        assert_eq!((layout.control.clone(), layout.text.clone()), (4..7, 7..9));
        assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (13..14, 13, 6));
    }

    #[test]
    fn last_chunk_behind_a_long_one_starts_behind_its_codes() {
        let long: Vec<u16> = (0..40).collect();
        let window = Window {
            prompt: &[&[7, 8]],
            control: &[1, 2, 3],
            before: Some(Spoken { text: &[70, 71], rows: &[&long] }),
            text: &[32, 65],
            tail: Tail::End,
            rows: &[&[5, 6]],
        };
        let layout = Layout::of(&vocabulary(0), &window);
        // S0 = 3, text to 7, M0 = 3 + max(5 + 25, 40) = 43, S1 = 44.
        let long_ids: Vec<u32> = (100..140).collect();
        assert_tokens(
            &layout,
            &[
                (&[107, 108], 1),
                (&[1, 2, 3, 70, 71], 3),
                (&[TEXT_SPLIT, 32, 65, LF], 43),
                (&[PAD], 2),
                (&long_ids, 3),
                (&[AUDIO_SPLIT, 105, 106], 43),
            ],
        );
        assert_eq!((layout.control.clone(), layout.text.clone()), (2..5, 8..11));
        assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (12..55, 53, 46));
    }

    #[test]
    fn continuation_prefix_in_cb0_stands_like_an_earlier_chunk() {
        let window = Window {
            prompt: &[],
            control: &[1, 2, 3],
            before: Some(Spoken { text: &[70, 71, 72], rows: &[&[1, 2]] }),
            text: &[32, 65],
            tail: Tail::Lookahead(&[32, 67, LF]),
            rows: &[&[]],
        };
        let layout = Layout::of(&vocabulary(0), &window);
        // M0 = 1 + max(6 + 25, 2) = 32, S1 = 33, M1 = 33 + 2 + 25 = 60.
        assert_tokens(
            &layout,
            &[
                (&[1, 2, 3, 70, 71, 72], 1),
                (&[TEXT_SPLIT, 32, 65], 32),
                (&[TEXT_SPLIT, 32, 67, LF], 60),
                (&[PAD, 101, 102], 0),
                (&[AUDIO_SPLIT], 32),
            ],
        );
        assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (14..17, 17, 33));
    }

    #[test]
    fn continuation_prefix_in_cb2_skips_the_markers_position_in_acoustic_rows() {
        let window = Window {
            prompt: &[&[7, 8], &[1, 2], &[3, 4]],
            control: &[1, 2, 3],
            before: Some(Spoken { text: &[70, 71, 72], rows: &[&[1, 2], &[3, 4], &[5, 6]] }),
            text: &[32, 65],
            tail: Tail::Lookahead(&[32, 67]),
            rows: &[&[10, 11, 12], &[13, 14, 15], &[16]],
        };
        let layout = Layout::of(&vocabulary(2), &window);
        // P = 2, M0 = 3 + max(6 + 25, 2) = 34, S1 = 35; no lookahead, no audio split outside C0.
        assert_tokens(
            &layout,
            &[
                (&[107, 108], 1),
                (&[151, 152], 1),
                (&[173, 174], 1),
                (&[1, 2, 3, 70, 71, 72], 3),
                (&[TEXT_SPLIT, 32, 65], 34),
                (&[PAD, 101, 102], 2),
                (&[AUDIO_SPLIT, 110, 111, 112, END], 34),
                (&[PAD, 153, 154], 2),
                (&[163, 164, 165], 35),
                (&[PAD, 175, 176], 2),
                (&[186], 35),
            ],
        );
        assert_eq!((layout.control.clone(), layout.text.clone()), (6..9, 13..15));
        assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (16..22, 32, 36));
    }

    #[test]
    fn null_companion_is_control_pad_codes() {
        let layout = Layout::null(&vocabulary(0), &[1, 2, 3], &[5, 6]);
        assert_tokens(&layout, &[(&[1, 2, 3], 1), (&[PAD, 105, 106], 0)]);
        assert_eq!((layout.own, layout.next_position), (4, 3));
    }

    #[test]
    fn bound_of_the_release_is_the_published_one() {
        let bound = |stage, prompt_frames, prefix| {
            let limits = WindowLimits {
                prompt_frames,
                control: 8,
                characters: 350,
                lookahead: 50,
                codes: 400,
            };
            limits.longest(stage, prefix)
        };
        assert_eq!(bound(0, 750, false), 2316);
        assert_eq!(bound(1, 300, false), 1763);
        assert_eq!(bound(2, 150, false), 2014);
        assert_eq!(bound(3, 100, false), 2365);
        assert_eq!(bound(0, 750, true), 2316);
        assert_eq!(bound(1, 300, true), 1763 + 352 + 800);
    }

    fn fixture(path: &str) -> Weights {
        let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures"));
        Weights::open(&root.join(path)).unwrap()
    }

    fn ints<T: TryFrom<i64>>(w: &Weights, name: &str) -> Vec<T> {
        w.ints(name).unwrap().into_iter().map(|v| T::try_from(v).ok().unwrap()).collect()
    }

    #[test]
    fn golden_sequences_of_the_nano_voice_are_made_exactly() {
        let golden = fixture("nano/golden.safetensors");
        for text in ["t0", "t1", "t2"] {
            let frames = golden.shape(&format!("{text}.codes")).unwrap()[1];
            let codes: Vec<u16> = ints(&golden, &format!("{text}.codes"));
            let rows: Vec<&[u16]> = codes.chunks(frames).collect();
            for stage in 0..4 {
                let ids: Vec<u32> = ints(&golden, &format!("{text}.ids{stage}"));
                let vocabulary = Vocabulary {
                    stage,
                    pad: 256,
                    end_of_speech: 259,
                    text_split: 260,
                    audio_split: 261,
                    line_feed: 10,
                    audio_start: 273,
                    semantic_codes: 2048,
                    acoustic_codes: 1024,
                    realign: 25,
                };
                let end = ids.iter().position(|&id| id == 256).unwrap() - 1;
                let mut own = rows[..=stage].to_vec();
                own[stage] = &[];
                let window = Window {
                    prompt: &[],
                    control: &ids[..6],
                    before: None,
                    text: &ids[6..end],
                    tail: Tail::End,
                    rows: &own,
                };
                let layout = Layout::of(&vocabulary, &window);
                assert_eq!(layout.ids, ids);
                assert_eq!(layout.positions, ints::<i32>(&golden, &format!("{text}.pos{stage}")));
                assert_eq!(layout.next_position, 1);
            }
        }
    }

    /// The vocabulary of `qwen3_tiny/config.json`.
    fn tiny(stage: usize) -> Vocabulary {
        Vocabulary {
            stage,
            pad: 190,
            end_of_speech: 196,
            text_split: 197,
            audio_split: 198,
            line_feed: 10,
            audio_start: 200,
            semantic_codes: 64,
            acoustic_codes: 32,
            realign: 25,
        }
    }

    fn codes_of(ids: &[u32], first: u32) -> Vec<u16> {
        ids.iter().map(|id| u16::try_from(id - first).unwrap()).collect()
    }

    #[test]
    fn inner_chunk_of_the_cb0_fixture_is_made_exactly() {
        let case = fixture("qwen3_tiny/case_cb0.safetensors");
        let (ids, positions): (Vec<u32>, Vec<i32>) =
            (ints(&case, "input_ids"), ints(&case, "position_ids"));
        let codes = |at: Range<usize>| codes_of(&ids[at], 200);
        let (prompt, before, own) = (codes(0..6), codes(51..98), codes(99..107));
        let window = Window {
            prompt: &[&prompt],
            control: &ids[6..13],
            before: Some(Spoken { text: &ids[13..27], rows: &[&before] }),
            text: &ids[28..40],
            tail: Tail::Lookahead(&ids[41..50]),
            rows: &[&own],
        };
        let layout = Layout::of(&tiny(0), &window);
        assert_eq!((&layout.ids, &layout.positions), (&ids, &positions));
        assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (51..107, 99, 63));
    }

    #[test]
    fn forced_prefix_of_the_cb3_fixture_is_made_exactly() {
        let case = fixture("qwen3_tiny/case_cb3.safetensors");
        let (ids, positions): (Vec<u32>, Vec<i32>) =
            (ints(&case, "input_ids"), ints(&case, "position_ids"));
        let first = [200, 264, 296, 328];
        let prompt: Vec<Vec<u16>> =
            (0..4).map(|r| codes_of(&ids[5 * r..5 * r + 5], first[r])).collect();
        let rows: Vec<Vec<u16>> = [39..48, 50..59, 60..69, 70..76]
            .into_iter()
            .zip(first)
            .map(|(at, first)| codes_of(&ids[at], first))
            .collect();
        let prompt: Vec<&[u16]> = prompt.iter().map(Vec::as_slice).collect();
        let rows: Vec<&[u16]> = rows.iter().map(Vec::as_slice).collect();
        let window = Window {
            prompt: &prompt,
            control: &ids[20..27],
            before: None,
            text: &ids[27..37],
            tail: Tail::End,
            rows: &rows,
        };
        let layout = Layout::of(&tiny(3), &window);
        assert_eq!((&layout.ids, &layout.positions), (&ids, &positions));
        assert_eq!((layout.c0.clone(), layout.own, layout.next_position), (39..48, 70, 12));
    }

    /// Reads the rows back from a sequence, by its ids alone: what stands before the control block's first id, the
    /// text row cut at the markers, and the rows of codes cut at PAD.
    fn read_back(
        v: &Vocabulary,
        ids: &[u32],
        control: u32,
    ) -> (Vec<u32>, Vec<Vec<u32>>, Vec<Vec<u32>>) {
        let prompt = ids.iter().position(|&id| id == control).unwrap();
        let mut parts = ids[prompt..].split(|&id| id == v.pad).map(<[u32]>::to_vec);
        let text =
            parts.next().unwrap().split(|&id| id == v.text_split).map(<[u32]>::to_vec).collect();
        (ids[..prompt].to_vec(), text, parts.collect())
    }

    fn codes(row: usize, frames: usize) -> impl Strategy<Value = Vec<u16>> {
        prop::collection::vec(0..if row == 0 { 50u16 } else { 20 }, frames)
    }

    fn rows(stage: usize, frames: Range<usize>) -> impl Strategy<Value = Vec<Vec<u16>>> {
        frames.prop_flat_map(move |n| (0..=stage).map(|row| codes(row, n)).collect::<Vec<_>>())
    }

    fn text(n: Range<usize>) -> impl Strategy<Value = Vec<u32>> {
        prop::collection::vec(32..80u32, n)
    }

    #[derive(Debug, Clone)]
    struct Case {
        stage: usize,
        prompt: Vec<Vec<u16>>,
        before: Option<(Vec<u32>, Vec<Vec<u16>>)>,
        text: Vec<u32>,
        lookahead: Vec<u32>,
        form: u8,
        rows: Vec<Vec<u16>>,
        own: usize,
    }

    fn case() -> impl Strategy<Value = Case> {
        (0..4usize).prop_flat_map(|stage| {
            let before = prop::option::of((text(1..40), rows(stage, 0..60)));
            let parts = (rows(stage, 0..9), before, text(1..40), text(1..9));
            (parts, 0..3u8, rows(stage, 1..60), 0..60usize).prop_map(
                move |(parts, form, rows, own)| {
                    let (prompt, before, text, lookahead) = parts;
                    Case { stage, prompt, before, text, lookahead, form, rows, own }
                },
            )
        })
    }

    fn slices(rows: &[Vec<u16>]) -> Vec<&[u16]> {
        rows.iter().map(Vec::as_slice).collect()
    }

    fn code_ids(v: &Vocabulary, row: usize, codes: &[u16]) -> Vec<u32> {
        codes.iter().map(|&c| v.code(row, c)).collect()
    }

    /// Hands the case's window to `f`, with its rows cut to `frames` and the own one to `own`.
    fn with_window<T>(
        case: &Case,
        frames: usize,
        own: usize,
        f: impl FnOnce(&Window<'_>) -> T,
    ) -> T {
        let prompt = slices(&case.prompt);
        let before_rows = case.before.as_ref().map(|b| slices(&b.1));
        let before = case.before.as_ref().zip(before_rows.as_ref());
        let mut rows: Vec<&[u16]> =
            case.rows.iter().map(|row| &row[..frames.min(row.len())]).collect();
        rows[case.stage] = &rows[case.stage][..own.min(rows[case.stage].len())];
        f(&Window {
            prompt: &prompt,
            control: &CONTROL,
            before: before.map(|(b, rows)| Spoken { text: &b.0, rows }),
            text: &case.text,
            tail: [Tail::Lookahead(&case.lookahead), Tail::End, Tail::Open][case.form as usize],
            rows: &rows,
        })
    }

    /// The text row up to the current chunk, its text, and the text row whole, cut at the markers.
    fn text_parts(case: &Case) -> (Vec<u32>, Vec<Vec<u32>>) {
        let mut current = case.text.clone();
        current.extend((case.form == 1).then_some(LF));
        let mut parts: Vec<Vec<u32>> = case.before.iter().map(|b| b.0.clone()).collect();
        parts.push(current.clone());
        parts[0].splice(0..0, CONTROL);
        parts.extend((case.stage == 0 && case.form == 0).then(|| case.lookahead.clone()));
        (current, parts)
    }

    /// The positions of the codes of each row, markers left out.
    fn code_positions(v: &Vocabulary, layout: &Layout) -> Vec<Vec<i32>> {
        let mut rows: Vec<Vec<i32>> = vec![];
        for (&id, &position) in layout.ids.iter().zip(&layout.positions).skip(layout.text.end) {
            match id {
                PAD => rows.push(vec![]),
                id if id >= v.audio_start => rows.last_mut().unwrap().push(position),
                _ => {}
            }
        }
        rows
    }

    proptest! {
        #[test]
        fn rows_can_be_read_back(case in case()) {
            let v = vocabulary(case.stage);
            let layout = with_window(&case, usize::MAX, case.own, |w| Layout::of(&v, w));
            let (prompt, text, rows) = read_back(&v, &layout.ids, CONTROL[0]);
            let (current, parts) = text_parts(&case);
            prop_assert_eq!(text, parts);
            prop_assert_eq!(&layout.ids[layout.text.clone()], &current);
            prop_assert_eq!(&layout.ids[layout.control.clone()], &CONTROL);
            let voice: Vec<u32> =
                case.prompt.iter().enumerate().flat_map(|(r, codes)| code_ids(&v, r, codes)).collect();
            prop_assert_eq!(prompt, voice);
            prop_assert_eq!(rows.len(), case.stage + 1);
            for (r, read) in rows.iter().enumerate() {
                let known = if r == case.stage { case.own } else { usize::MAX };
                let codes = &case.rows[r][..known.min(case.rows[r].len())];
                let mut row = case.before.as_ref().map_or(vec![], |b| code_ids(&v, r, &b.1[r]));
                row.extend((r == 0 && case.before.is_some()).then_some(AUDIO_SPLIT));
                row.extend(code_ids(&v, r, codes));
                row.extend((r == 0 && case.stage > 0).then_some(END));
                prop_assert_eq!(read, &row);
            }
        }

        #[test]
        fn frame_has_one_position_in_all_rows(case in case()) {
            let v = vocabulary(case.stage);
            let layout = with_window(&case, usize::MAX, case.own, |w| Layout::of(&v, w));
            prop_assert_eq!(layout.ids.len(), layout.positions.len());
            let rows = code_positions(&v, &layout);
            for row in &rows {
                prop_assert_eq!(&row[..], &rows[0][..row.len()]);
                prop_assert!(row.windows(2).all(|w| w[0] < w[1]));
            }
            let own = layout.ids.len() - layout.own;
            let start = layout.next_position - own as i32;
            let expected: Vec<i32> = (start..layout.next_position).collect();
            prop_assert_eq!(&layout.positions[layout.own..], &expected[..]);
            let text_starts = layout.positions[layout.text.start];
            if case.before.is_none() {
                prop_assert_eq!(start, case.prompt.first().map_or(0, |r| r.len()) as i32 + 1);
            } else {
                prop_assert_eq!(start, text_starts);
            }
        }

        #[test]
        fn longer_c0_changes_nothing_before_its_end(case in case(), cut in 0..60usize) {
            let v = vocabulary(case.stage);
            let own = if case.stage == 0 { usize::MAX } else { 0 };
            let short = with_window(&case, cut, own, |w| Layout::of(&v, w));
            let long = with_window(&case, usize::MAX, own, |w| Layout::of(&v, w));
            let same = short.c0.end;
            prop_assert_eq!(&short.ids[..same], &long.ids[..same]);
            prop_assert_eq!(&short.positions[..same], &long.positions[..same]);
        }

        #[test]
        fn no_window_is_longer_than_the_bound(case in case()) {
            let v = vocabulary(case.stage);
            let layout = with_window(&case, usize::MAX, usize::MAX, |w| Layout::of(&v, w));
            let limits =
                WindowLimits { prompt_frames: 8, control: 3, characters: 39, lookahead: 8, codes: 59 };
            prop_assert!(layout.ids.len() <= limits.longest(case.stage, case.before.is_some()));
        }
    }
}
