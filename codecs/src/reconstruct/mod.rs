//! From final codes to the samples that may be heard: the one face of every codec family.
//!
//! A [`Codec`] holds weights and is shared by all contexts; a [`Stream`] holds what one context has behind it. The
//! window plan says what is decoded and what goes out, a family decodes it; the work of a push is bounded by what is
//! new and the context of the plan, however long the passage is. It must never know text, time or who listens.
//!
//! ```text
//! push(codes, End::No) .. push(codes, End::Passage)     a passage, by its end or by a pause
//!      |  window::Plan: decode S..N, emit A..T
//!      v
//! codes S..N -> family -> samples of frames A..T        24 kHz, not clipped
//! ```

mod buffer;
mod dual;

pub use dual::Dual;

use crate::codes::{self, CodeError};
use crate::nano::{Nano, NanoStream};
use crate::vibevoice::DecoderState;
use crate::window::{End, Plan, STEP_FRAMES, Settings, SettingsError, Window, offline_windows};
use buffer::CodeBuffer;

/// Silent frames that close a passage when the voice has a silence code, so that its last sound is not cut.
const TAIL_FRAMES: usize = 3;

/// Frames of one offline window (30 s), and of the context on each side of it (6 s).
const OFFLINE_FRAMES: (usize, usize) = (375, 75);

/// Weights of a codec and the plan that its streams follow.
pub struct Codec {
    family: Family,
    settings: Settings,
    /// A code for each row, or empty.
    silence: Vec<u16>,
}

/// The codecs there are.
pub enum Family {
    /// DualCodec, then the VibeVoice tokenizer.
    Dual(Box<Dual>),
    /// The small codec of the bundled voice; it has no latents.
    Nano(Box<Nano>),
}

impl Codec {
    /// With [`Family::settings`] and a silence code for each row, or none: then a passage closes without silent frames.
    ///
    /// # Errors
    /// A silence code that is not in the codebooks.
    pub fn new(family: Family, silence: Option<Vec<u16>>) -> Result<Self, CodeError> {
        let tail_frames = if silence.is_some() { TAIL_FRAMES } else { 0 };
        let settings = Settings { tail_frames, ..family.settings() };
        if let Some(silence) = &silence {
            let rows: Vec<&[u16]> = silence.iter().map(std::slice::from_ref).collect();
            codes::check(&rows, family.codebooks())?;
        }
        Ok(Self { family, settings, silence: silence.unwrap_or_default() })
    }

    /// With other settings; `tail_frames` stays as the silence code wants it.
    ///
    /// # Errors
    /// As [`Settings::check`].
    pub fn with_settings(self, settings: Settings) -> Result<Self, SettingsError> {
        let settings = Settings { tail_frames: self.settings.tail_frames, ..settings };
        settings.check()?;
        Ok(Self { settings, ..self })
    }

    /// Rows of codes, the semantic one first.
    pub fn rows(&self) -> usize {
        self.family.codebooks().len()
    }

    /// The plan that a stream with this first release follows, for whoever must know it without the weights.
    ///
    /// # Errors
    /// `first_frames` is no multiple of 5 or not above the withheld frames.
    pub fn plan(&self, first_frames: usize) -> Result<Plan, SettingsError> {
        Plan::new(Settings { first_frames, ..self.settings.clone() })
    }

    /// The state of a new context; `seed` is for families with a random part.
    ///
    /// # Errors
    /// As [`Codec::plan`].
    pub fn stream(&self, first_frames: usize, seed: u64) -> Result<Stream, SettingsError> {
        Ok(Stream {
            plan: self.plan(first_frames)?,
            codes: CodeBuffer::new(self.rows()),
            state: self.family.state(seed),
            decoded: 0,
        })
    }

    /// Takes `[rows][new frames]` of final codes, perhaps none, and returns the samples that may now be heard,
    /// perhaps none. After [`End::Passage`] all of the passage is out and the stream stands as a new one, but for its
    /// count of released samples.
    ///
    /// # Errors
    /// Codes that cannot be decoded; the stream is as it was.
    ///
    /// # Panics
    /// When `stream` belongs to another codec: a caller's bug.
    pub fn push(
        &self,
        stream: &mut Stream,
        new: &[&[u16]],
        end: End,
    ) -> Result<Vec<f32>, CodeError> {
        let frames = codes::check(new, self.family.codebooks())?;
        stream.codes.extend(new);
        let mut sound = Vec::new();
        let windows = stream.plan.grow(frames, end);
        for window in &windows {
            let codes = stream.codes.window(&window.decode, &self.silence);
            sound.extend(self.family.render(&mut stream.state, &codes, window));
            stream.decoded += window.decode.len() as u64;
        }
        if end == End::Passage {
            stream.codes = CodeBuffer::new(self.rows());
            let frames = windows.last().map_or(0, |last| last.emit.end);
            self.family.close_passage(&mut stream.state, frames);
        } else {
            stream.codes.forget_before(stream.plan.oldest_needed());
        }
        Ok(sound)
    }

    /// A finished passage at once, `[rows][frames]` to samples: windows of 30 s with context on both sides. It is not
    /// what a stream gives, since a stream must decide sooner.
    ///
    /// # Errors
    /// Codes that cannot be decoded.
    pub fn offline(&self, rows: &[&[u16]], seed: u64) -> Result<Vec<f32>, CodeError> {
        let (content, context) = OFFLINE_FRAMES;
        self.offline_in_windows(rows, seed, content, context)
    }

    /// [`Codec::offline`] with other windows.
    ///
    /// # Errors
    /// Codes that cannot be decoded.
    ///
    /// # Panics
    /// As [`offline_windows`].
    pub fn offline_in_windows(
        &self,
        rows: &[&[u16]],
        seed: u64,
        content_frames: usize,
        context_frames: usize,
    ) -> Result<Vec<f32>, CodeError> {
        let known = codes::check(rows, self.family.codebooks())?;
        let frames = if known == 0 { 0 } else { known + self.settings.tail_frames };
        let mut codes = CodeBuffer::new(self.rows());
        codes.extend(rows);
        let mut state = self.family.state(seed);
        let mut sound = Vec::new();
        for window in offline_windows(frames, content_frames, context_frames) {
            let codes = codes.window(&window.decode, &self.silence);
            sound.extend(self.family.render(&mut state, &codes, &window));
        }
        Ok(sound)
    }
}

/// What one context has behind it. A copy is a snapshot that can go on by itself; dropping it frees all there is.
#[derive(Debug, Clone)]
pub struct Stream {
    plan: Plan,
    codes: CodeBuffer,
    state: State,
    decoded: u64,
}

impl Stream {
    /// Where the stream stands: frames known and out, samples released, the next useful push.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Frames decoded so far, with context and withheld ones: what the work is proportional to.
    pub fn decoded_frames(&self) -> u64 {
        self.decoded
    }

    /// Frames of codes held for windows to come.
    pub fn held_frames(&self) -> usize {
        self.codes.len()
    }
}

/// What a family remembers of one stream.
#[derive(Debug, Clone)]
enum State {
    Dual(DecoderState),
    Nano(NanoStream),
}

/// Told when a stream is given to another codec than the one that made it.
const FOREIGN: &str = "the stream of another codec; this is a bug";

impl Family {
    /// The settings that suit the codec: those published, and no more context than it can hear.
    pub fn settings(&self) -> Settings {
        let published = Settings::default();
        match self {
            Self::Dual(_) => published,
            Self::Nano(nano) => Settings {
                context_frames: nano.reach_frames().next_multiple_of(STEP_FRAMES),
                ..published
            },
        }
    }

    /// Entries of each row's codebook.
    fn codebooks(&self) -> &[usize] {
        match self {
            Self::Dual(dual) => dual.codebooks(),
            Self::Nano(nano) => nano.codebooks(),
        }
    }

    fn state(&self, seed: u64) -> State {
        match self {
            Self::Dual(dual) => State::Dual(dual.state()),
            Self::Nano(_) => State::Nano(NanoStream::new(seed)),
        }
    }

    /// Decodes `codes`, those of `window.decode`, and returns the samples of `window.emit`.
    fn render(&self, state: &mut State, codes: &[Vec<u16>], window: &Window) -> Vec<f32> {
        match (self, state) {
            (Self::Dual(dual), State::Dual(state)) => dual.render(state, codes, window),
            (Self::Nano(nano), State::Nano(state)) => nano
                .window(state, codes, window)
                .expect("codes are checked on arrival; this is a bug"),
            _ => panic!("{FOREIGN}"),
        }
    }

    /// Makes the state ready for a new passage after one of `frames` frames.
    fn close_passage(&self, state: &mut State, frames: usize) {
        match (self, state) {
            (Self::Dual(dual), State::Dual(state)) => *state = dual.state(),
            (Self::Nano(_), State::Nano(state)) => state.close_passage(frames),
            _ => panic!("{FOREIGN}"),
        }
    }
}
