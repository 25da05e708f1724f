//! The window plan of a streamed passage: which frames are decoded together, and which of them go out.
//!
//! A neural codec hears a little to the right of every sample, so the newest frames of a growing passage
//! are not stable yet. The plan withholds them, lets the rest go on a two-second grid, and bounds how far
//! to the left each window reaches back. It is arithmetic on whole numbers: it must never know codes,
//! weights or time, and it must never compute with a floating-point frame rate.
//!
//! ```text
//! frames of the passage    0 ....... S ........... A ============= T ----------- N
//!                                    |  context    |  emitted now  |  withheld   |
//!                                    |<------------- decoded together ---------->|
//! 5 frames = 3 latents = 9,600 samples: the only places where a latent starts where a frame starts.
//! ```

use std::ops::Range;

/// Samples of one code frame at 24 kHz (12.5 frames a second).
pub const FRAME_SAMPLES: usize = 1920;
/// Samples of one latent at 24 kHz (7.5 latents a second).
pub const LATENT_SAMPLES: usize = 3200;
/// The smallest number of frames that is a whole number of latents.
pub const STEP_FRAMES: usize = 5;
/// The latents of [`STEP_FRAMES`] frames.
pub const STEP_LATENTS: usize = 3;

/// What a [`Plan`] follows. All values count frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Newest frames that wait for right context; a multiple of 5.
    pub withheld_frames: usize,
    /// Later releases end at multiples of this, counted from the start of the passage; a multiple of 5.
    pub grid_frames: usize,
    /// The first release happens when so many frames are known; a multiple of 5 above `withheld_frames`.
    pub first_frames: usize,
    /// How far before the first emitted frame a window begins; a multiple of 5.
    pub context_frames: usize,
    /// Silent frames appended when a passage closes; 0 for a bundle without a silence code.
    pub tail_frames: usize,
}

impl Default for Settings {
    /// The published values: 5 withheld, a grid of 2 s, 40 frames to the first release, 6 s of context, no tail.
    fn default() -> Self {
        Self {
            withheld_frames: 5,
            grid_frames: 25,
            first_frames: 40,
            context_frames: 75,
            tail_frames: 0,
        }
    }
}

/// Why [`Settings`] cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A value lies off the common steps of frames and latents.
    #[error("{name} is {frames} frames, expected a multiple of {STEP_FRAMES}")]
    OffStep {
        /// The field.
        name: &'static str,
        /// Its value.
        frames: usize,
    },
    /// Nothing would ever go out on a grid of no frames.
    #[error("grid_frames is 0, expected at least {STEP_FRAMES}")]
    NoGrid,
    /// The first release would be empty.
    #[error("first_frames is {first}, expected more than the {withheld} withheld frames")]
    NoFirst {
        /// `first_frames`.
        first: usize,
        /// `withheld_frames`.
        withheld: usize,
    },
}

impl Settings {
    /// The number of known frames at which the grid lets more than `stable` frames go out.
    pub fn grid_event_after(&self, stable: usize) -> usize {
        (stable / self.grid_frames + 1) * self.grid_frames + self.withheld_frames
    }

    /// Checks that every boundary these settings can make lies on a frame and on a latent.
    ///
    /// # Errors
    /// The first value that breaks its rule.
    pub fn check(&self) -> Result<(), SettingsError> {
        let values = [
            ("withheld_frames", self.withheld_frames),
            ("grid_frames", self.grid_frames),
            ("first_frames", self.first_frames),
            ("context_frames", self.context_frames),
        ];
        if let Some(&(name, frames)) = values.iter().find(|(_, f)| f % STEP_FRAMES != 0) {
            return Err(SettingsError::OffStep { name, frames });
        }
        if self.grid_frames == 0 {
            return Err(SettingsError::NoGrid);
        }
        if self.first_frames <= self.withheld_frames {
            let (first, withheld) = (self.first_frames, self.withheld_frames);
            return Err(SettingsError::NoFirst { first, withheld });
        }
        Ok(())
    }
}

/// What ends with the newest known frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Nothing: more frames of the same chunk follow.
    No,
    /// A chunk: the next one joins on, and may be long in coming.
    Chunk,
    /// The passage, by its end or by a pause: all that was spoken goes out, what follows starts anew.
    Passage,
}

/// Frames decoded together and the part of them that goes out, both counted from the start of the passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Frames to decode; at the close they reach past the known codes, into the silent tail.
    pub decode: Range<usize>,
    /// Frames that go out; always inside `decode`, always starting on a multiple of 5.
    pub emit: Range<usize>,
}

impl Window {
    /// Samples that go out. A last latent that reaches beyond its frames is cut to this.
    pub fn samples(&self) -> usize {
        self.emit.len() * FRAME_SAMPLES
    }

    /// Latents that go out, counted from the start of the passage.
    pub fn latents(&self) -> Range<usize> {
        latents_of(self.emit.start)..latents_of(self.emit.end)
    }

    /// Latents of all decoded frames.
    pub fn decoded_latents(&self) -> usize {
        latents_of(self.decode.len())
    }

    /// Decoded latents before the first that goes out.
    pub fn skipped_latents(&self) -> usize {
        latents_of(self.emit.start - self.decode.start)
    }
}

/// Latents that cover a number of frames, the last one perhaps in part.
pub fn latents_of(frames: usize) -> usize {
    (frames * STEP_LATENTS).div_ceil(STEP_FRAMES)
}

/// Where one context stands: how many frames are known, how many are out.
///
/// ```
/// use codecs::window::{End, Plan, Settings};
/// let mut plan = Plan::new(Settings::default())?;
/// assert_eq!(plan.next_event(), 40);
/// let windows = plan.grow(40, End::No);
/// assert_eq!((windows[0].decode.clone(), windows[0].latents()), (0..40, 0..21));
/// assert_eq!((plan.next_event(), plan.released_samples()), (55, 67_200));
/// # Ok::<(), codecs::window::SettingsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    settings: Settings,
    known: usize,
    emitted: usize,
    released: u64,
}

impl Plan {
    /// The plan of a context of which nothing is known yet.
    ///
    /// # Errors
    /// As [`Settings::check`].
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        Ok(Self { settings, known: 0, emitted: 0, released: 0 })
    }

    /// Takes note of `new_frames` more final frames and says what is to be decoded and let go, in order.
    ///
    /// Nothing, one window, or two when the first release and a later one fall together. Any growth is
    /// allowed; which samples come out depends on the list of growths, because every window is decoded with
    /// what is known when it goes out. After [`End::Passage`] the next frame is frame 0 of a new passage.
    pub fn grow(&mut self, new_frames: usize, end: End) -> Vec<Window> {
        self.known += new_frames;
        let windows = match end {
            End::Passage => self.close(),
            End::No => self.first(self.known >= self.settings.first_frames),
            End::Chunk => self.first(true),
        };
        self.released += windows.iter().map(|w| w.samples() as u64).sum::<u64>();
        windows
    }

    /// The next number of known frames of this passage at which something can go out: the useful place to
    /// end a segment.
    pub fn next_event(&self) -> usize {
        if self.emitted == 0 {
            return self.settings.first_frames;
        }
        self.settings.grid_event_after(self.emitted)
    }

    /// Frames of the current passage that are known.
    pub fn known_frames(&self) -> usize {
        self.known
    }

    /// Frames of the current passage that are out.
    pub fn emitted_frames(&self) -> usize {
        self.emitted
    }

    /// Samples let go since the context began, over all its passages.
    pub fn released_samples(&self) -> u64 {
        self.released
    }

    /// The first frame of the current passage that a window to come may still decode.
    pub fn oldest_needed(&self) -> usize {
        self.emitted.saturating_sub(self.settings.context_frames)
    }

    /// The settings followed.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The first release, if it is still to come and `due`, then whatever the grid allows.
    fn first(&mut self, due: bool) -> Vec<Window> {
        let mut windows = Vec::new();
        if self.emitted == 0 {
            if !due {
                return windows;
            }
            // Exactly the first frames, even when more are known: a listener hears the same beginning however
            // late the caller is.
            let known = self.known.min(self.settings.first_frames);
            let stable = known.saturating_sub(self.settings.withheld_frames);
            windows.extend(self.emit_to(stable / STEP_FRAMES * STEP_FRAMES, known));
            if self.emitted == 0 {
                return windows;
            }
        }
        let grid = self.settings.grid_frames;
        let stable = self.known.saturating_sub(self.settings.withheld_frames);
        windows.extend(self.emit_to(stable / grid * grid, self.known));
        windows
    }

    /// Everything, with the silent tail; a passage of which nothing is known has no tail either.
    fn close(&mut self) -> Vec<Window> {
        let mut windows = Vec::new();
        if self.known > 0 {
            let end = self.known + self.settings.tail_frames;
            windows.extend(self.emit_to(end, end));
        }
        (self.known, self.emitted) = (0, 0);
        windows
    }

    fn emit_to(&mut self, target: usize, decode_end: usize) -> Option<Window> {
        if target <= self.emitted {
            return None;
        }
        let window =
            Window { decode: self.oldest_needed()..decode_end, emit: self.emitted..target };
        self.emitted = target;
        Some(window)
    }
}

/// The windows of a finished passage: contents of `content_frames`, each with up to `context_frames` of real
/// context on both sides.
///
/// # Panics
/// When `content_frames` is no positive multiple of 5 or `context_frames` no multiple of 5: the caller's
/// constants are wrong.
pub fn offline_windows(
    frames: usize,
    content_frames: usize,
    context_frames: usize,
) -> impl Iterator<Item = Window> {
    let on_step =
        content_frames.is_multiple_of(STEP_FRAMES) && context_frames.is_multiple_of(STEP_FRAMES);
    assert!(
        content_frames > 0 && on_step,
        "windows of {content_frames} + {context_frames} frames, expected multiples of {STEP_FRAMES}"
    );
    (0..frames).step_by(content_frames).map(move |start| {
        let end = (start + content_frames).min(frames);
        let decode = start.saturating_sub(context_frames)..(end + context_frames).min(frames);
        Window { decode, emit: start..end }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(settings: Settings) -> Plan {
        Plan::new(settings).unwrap()
    }

    fn with_tail() -> Settings {
        Settings { tail_frames: 3, ..Settings::default() }
    }

    #[test]
    fn worked_numbers_of_the_published_settings() {
        // (events before, N, end) -> (decoded, latents out, samples, samples so far)
        type Row = (usize, End, Option<(Range<usize>, Range<usize>, usize)>, u64);
        let run = |rows: &[Row]| {
            let mut plan = plan(with_tail());
            for (n, end, expected, total) in rows {
                let windows = plan.grow(n - plan.known_frames(), *end);
                let got: Vec<_> =
                    windows.iter().map(|w| (w.decode.clone(), w.latents(), w.samples())).collect();
                let expected: Vec<_> = expected.iter().cloned().collect();
                assert_eq!(got, expected, "N = {n}");
                assert_eq!(plan.released_samples(), *total, "N = {n}");
            }
        };
        run(&[
            (39, End::No, None, 0),
            (40, End::No, Some((0..40, 0..21, 67_200)), 67_200),
            (54, End::No, None, 67_200),
            (55, End::No, Some((0..55, 21..30, 28_800)), 96_000),
            (58, End::Chunk, None, 96_000),
            (87, End::Chunk, Some((0..87, 30..45, 48_000)), 144_000),
            (87, End::Passage, Some((0..90, 45..54, 28_800)), 172_800),
        ]);
        run(&[
            (40, End::No, Some((0..40, 0..21, 67_200)), 67_200),
            (150, End::No, Some((0..150, 21..75, 172_800)), 240_000),
            // 150 codes and 3 silent ones: 17 latents are 54,400 samples, 640 of them beyond the last frame.
            (150, End::Passage, Some((50..153, 75..92, 53_760)), 293_760),
        ]);
        // The first chunk stops early: 22 codes let 9 latents go, 9 codes none.
        run(&[
            (9, End::Chunk, None, 0),
            (22, End::Chunk, Some((0..22, 0..9, 28_800)), 28_800),
            (30, End::No, Some((0..30, 9..15, 19_200)), 48_000),
        ]);
        run(&[(22, End::Passage, Some((0..25, 0..15, 48_000)), 48_000)]);
    }

    #[test]
    fn events_worth_stopping_for() {
        let live = Settings { first_frames: 10, ..Settings::default() };
        for (settings, expected) in
            [(Settings::default(), [40, 55, 80, 105]), (live, [10, 30, 55, 80])]
        {
            let mut plan = plan(settings);
            for n in expected {
                assert_eq!(plan.next_event(), n);
                let early = n - plan.known_frames() - 1;
                assert!(plan.grow(early, End::No).is_empty(), "one frame before {n}");
                assert_eq!(plan.grow(1, End::No).len(), 1, "at {n}");
            }
        }
    }

    #[test]
    fn a_late_caller_gets_the_same_beginning_and_the_rest_at_once() {
        let windows = plan(with_tail()).grow(80, End::No);
        let parts: Vec<_> = windows.iter().map(|w| (w.decode.clone(), w.emit.clone())).collect();
        assert_eq!(parts, [(0..40, 0..35), (0..80, 35..75)]);
    }

    #[test]
    fn a_window_reaches_back_no_further_than_the_context() {
        let mut plan = plan(with_tail());
        plan.grow(40, End::No);
        for m in 2..400 {
            let windows = plan.grow(25 * m + 5 - plan.known_frames(), End::No);
            let start = if m == 2 { 35 } else { 25 * (m - 1) };
            assert_eq!(windows[0].emit, start..25 * m);
            assert_eq!(windows[0].decode, start.saturating_sub(75)..25 * m + 5);
            assert_eq!(windows[0].skipped_latents(), start.min(75) * 3 / 5);
        }
    }

    #[test]
    fn a_pause_closes_the_passage_and_the_sample_count_goes_on() {
        let mut paused = plan(with_tail());
        paused.grow(40, End::No);
        paused.grow(7, End::Passage);
        assert_eq!(paused.released_samples(), 50 * 1920);
        assert!(paused.grow(0, End::Passage).is_empty(), "nothing known, nothing to close");

        let mut fresh = plan(with_tail());
        for new in [40, 25, 3] {
            assert_eq!(paused.grow(new, End::No), fresh.grow(new, End::No));
        }
        assert_eq!(paused.released_samples(), 50 * 1920 + fresh.released_samples());
    }

    #[test]
    fn offline_windows_of_the_worked_examples() {
        let rows = |frames, content, context| -> Vec<_> {
            offline_windows(frames, content, context)
                .map(|w| {
                    let take = w.latents().len();
                    (w.decode.clone(), w.decoded_latents(), w.skipped_latents(), take)
                })
                .collect()
        };
        let long = [(0..450, 270, 0, 225), (300..825, 315, 45, 225)];
        assert_eq!(rows(1000, 375, 75)[..2], long);
        assert_eq!(rows(1000, 375, 75)[2..], [(675..1000, 195, 45, 150)]);
        assert_eq!(rows(1003, 375, 75)[2..], [(675..1003, 197, 45, 152)]);
        assert_eq!(rows(205, 375, 75), [(0..205, 123, 0, 123)]);
        assert_eq!(rows(0, 375, 75), []);
        let tiny = [(0..55, 33, 0, 24), (25..90, 39, 9, 24), (65..90, 15, 9, 6)];
        assert_eq!(rows(90, 40, 15), tiny);
    }

    #[test]
    fn settings_off_the_common_step_are_refused() {
        let published = Settings::default();
        for (settings, says) in [
            (Settings { withheld_frames: 3, ..published.clone() }, "withheld_frames is 3"),
            (Settings { grid_frames: 24, ..published.clone() }, "grid_frames is 24"),
            (Settings { grid_frames: 0, ..published.clone() }, "grid_frames is 0"),
            (Settings { first_frames: 41, ..published.clone() }, "first_frames is 41"),
            (Settings { first_frames: 5, ..published.clone() }, "first_frames is 5"),
            (Settings { context_frames: 76, ..published.clone() }, "context_frames is 76"),
        ] {
            let text = Plan::new(settings).unwrap_err().to_string();
            assert!(text.contains(says), "{text}");
        }
        assert!(published.check().is_ok());
    }

    fn any_settings() -> impl Strategy<Value = Settings> {
        (0usize..4, 1usize..8, 1usize..16, 0usize..8, 0usize..5).prop_map(|(w, g, i, c, tail)| {
            Settings {
                withheld_frames: 5 * w,
                grid_frames: 5 * g,
                first_frames: 5 * (w + i),
                context_frames: 5 * c,
                tail_frames: tail,
            }
        })
    }

    fn any_growth() -> impl Strategy<Value = Vec<(usize, End)>> {
        let end = prop_oneof![6 => Just(End::No), 2 => Just(End::Chunk), 1 => Just(End::Passage)];
        prop::collection::vec((0usize..60, end), 0..60)
    }

    proptest! {
        /// Counts by hand what must be out after each growth: nothing twice, nothing left out, nothing early.
        #[test]
        fn every_frame_goes_out_once_and_in_order(settings in any_settings(), growth in any_growth()) {
            let mut plan = plan(settings.clone());
            let (mut known, mut out, mut total) = (0, 0, 0);
            for (new, end) in growth {
                let before = plan.oldest_needed();
                let windows = plan.grow(new, end);
                known += new;
                let tail = if known > 0 { settings.tail_frames } else { 0 };
                let last = if end == End::Passage { known + tail } else { known };
                for w in &windows {
                    prop_assert_eq!(w.emit.start, out, "gap or overlap");
                    prop_assert!(!w.emit.is_empty() && w.emit.start % 5 == 0);
                    prop_assert!(w.decode.start >= before && w.decode.start % 5 == 0);
                    prop_assert_eq!(w.decode.start, out.saturating_sub(settings.context_frames));
                    prop_assert!(w.emit.end <= w.decode.end && w.decode.end <= last);
                    let right = w.decode.end - w.emit.end;
                    prop_assert!(end == End::Passage || right >= settings.withheld_frames);
                    prop_assert!(w.skipped_latents() + w.latents().len() <= w.decoded_latents());
                    prop_assert!(w.latents().len() * LATENT_SAMPLES >= w.samples());
                    out = w.emit.end;
                    total += w.samples() as u64;
                }
                if end == End::Passage {
                    prop_assert_eq!(out, last, "a closed passage is out to its last frame");
                    (known, out) = (0, 0);
                } else if out > 0 {
                    let grid = settings.grid_frames;
                    let due = known.saturating_sub(settings.withheld_frames) / grid * grid;
                    prop_assert!(out >= due, "{} frames out, {} due", out, due);
                }
                prop_assert_eq!(plan.known_frames(), known);
                prop_assert_eq!(plan.emitted_frames(), out);
                prop_assert_eq!(plan.released_samples(), total);
            }
        }

        /// The next event is the first growth that lets something go, not merely one that does.
        #[test]
        fn nothing_goes_out_before_the_next_event(settings in any_settings(), growth in any_growth()) {
            let mut plan = plan(settings);
            for (new, end) in growth {
                plan.grow(new, end);
                let wait = plan.next_event().checked_sub(plan.known_frames());
                prop_assert!(wait.is_some_and(|w| w > 0), "an event that has passed");
                let wait = wait.unwrap();
                prop_assert!(plan.clone().grow(wait - 1, End::No).is_empty());
                prop_assert!(!plan.clone().grow(wait, End::No).is_empty());
            }
        }
    }
}
