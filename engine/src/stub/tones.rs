//! The stub's codec: every frame of codes is a tone that tells whose it is, released as the codec's plan has it.
//!
//! A chunk whose script names a number of samples that is no whole number of frames ends inside its last one. The plan,
//! which the engine mirrors, counts whole frames; [`ToneStream::position`] says where one of its samples really lies.
//!
//! For load tests it is silence of the same length, which costs nothing. A script may also ask for the codec of a bundle:
//! what that makes of the stub's codes is noise, but cut and joined as speech is.

use std::collections::VecDeque;
use std::f64::consts::TAU;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use codecs::codes::CodeError;
use codecs::reconstruct::{self, Codec};
use codecs::window::{End, FRAME_SAMPLES, Plan, Settings as WindowSettings, SettingsError};

use super::codes;
use super::ledger::Ledger;
use super::script::{Script, ScriptError};
use crate::bundle::{Bundle, Prompt};
use crate::event::Event;
use crate::guards::Guards;
use crate::pipeline::{SAMPLE_RATE, Settings};
use crate::sound::Pieces;
use crate::start::load_family;
use crate::{ContextId, Pcm};

/// Loudness of each of the tones: together far from clipping.
const AMPLITUDE: f64 = 0.25;
/// Slowest pace of a script that names its own lengths: no frame budget but the greatest.
const ANY_PACE: std::ops::RangeInclusive<f32> = 0.001..=100_000.0;

/// The tone that tells a context: 100 of them, 25 Hz apart, from 400 Hz on.
pub(super) fn context_hz(context: u64) -> f64 {
    400.0 + 25.0 * (context % 100) as f64
}

/// The tone that tells a chunk: 32 of them, 100 Hz apart, from 4 kHz on.
pub(super) fn chunk_hz(chunk: usize) -> f64 {
    4_000.0 + 100.0 * (chunk % 32) as f64
}

/// Opens the bundle whose codec a script may ask for, or says why it cannot.
pub type OpenBundle = Box<dyn Fn() -> Result<Bundle, String> + Send + Sync>;

/// What a stub is heard as.
pub enum Timbre {
    /// Tones; where there is a bundle, also what its codec makes of them.
    Tones(Option<OpenBundle>),
    /// Nothing: silence of the right length.
    Silence,
}

/// Makes sound of codes.
pub(crate) struct Tones {
    ledger: Arc<Ledger>,
    timbre: Timbre,
    codec: OnceLock<Arc<Codec>>,
}

/// What one context has behind it.
pub(crate) struct ToneStream {
    context: u64,
    script: Arc<Script>,
    source: Source,
    plan: Plan,
    /// Sound of frames that the plan keeps back.
    held: VecDeque<Pcm>,
    chunk: Chunk,
    /// Samples made.
    made: u64,
    /// Samples of all frames so far, were they whole.
    planned: u64,
    /// Where frames were cut short: the sample of the plan behind them, and by how many samples in all.
    cut_short: Vec<(u64, u64)>,
    /// Sound that waits for its piece to be full.
    carry: Pcm,
    /// Lengths of the pieces in turn, and whose turn it is.
    pieces: (Vec<usize>, usize),
}

/// Where the sound of a stream comes from.
enum Source {
    Tones,
    Silence,
    Codec(Arc<Codec>, Box<reconstruct::Stream>),
}

/// The chunk that frames belong to, as its codes tell.
#[derive(Default)]
struct Chunk {
    code: Option<usize>,
    number: usize,
    frames: usize,
}

impl Tones {
    pub(super) fn new(ledger: Arc<Ledger>, timbre: Timbre) -> Self {
        Self { ledger, timbre, codec: OnceLock::new() }
    }

    /// Whether there is anything to hear.
    pub(crate) fn is_heard(&self) -> bool {
        matches!(self.timbre, Timbre::Tones(_))
    }

    /// Gets ready what a script needs: the codec, when one asks for it first.
    ///
    /// # Errors
    /// There is no codec.
    pub(super) fn prepare(&self, script: &Script) -> Result<(), ScriptError> {
        if !script.real_codec || self.codec.get().is_some() {
            return Ok(());
        }
        let refused = |reason: String| ScriptError::Codec { reason };
        let Timbre::Tones(Some(open)) = &self.timbre else {
            return Err(refused("this stub has no bundle at hand".to_owned()));
        };
        let family = load_family(&open().map_err(refused)?).map_err(|e| refused(e.to_string()))?;
        // Without silent frames at the end, of which the plan that the engine mirrors knows nothing.
        let codec = Codec::new(family, None).map_err(|e| refused(e.to_string()))?;
        // Another script may have been quicker.
        let _ = self.codec.set(Arc::new(codec));
        Ok(())
    }

    /// Takes in a context: its voice prompt becomes its number, and its script is settled.
    pub(crate) fn enrol(&self, context: ContextId, settings: &mut Settings) {
        let script = self.ledger.open().enrol(context, settings.seed);
        let mut rows = vec![vec![0; codes::NAME_FRAMES]; crate::bundle::STAGES];
        rows[0] = codes::name(context.0);
        let frames = vec![codes::NAME_FRAMES; crate::bundle::STAGES];
        settings.prompt = Arc::new(Prompt { rows, frames });
        if script.is_free_of_pace() {
            let free = Guards { characters_per_second: ANY_PACE, ..(*settings.guards).clone() };
            settings.guards = Arc::new(free);
        }
    }

    /// The plan of a stream.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub(crate) fn plan(&self, first_frames: usize) -> Result<Plan, SettingsError> {
        Plan::new(WindowSettings { first_frames, ..WindowSettings::default() })
    }

    /// The state of a new context.
    ///
    /// # Errors
    /// As [`Tones::plan`].
    pub(crate) fn stream(
        &self,
        context: ContextId,
        first_frames: usize,
        seed: u64,
    ) -> Result<ToneStream, SettingsError> {
        let script = self.ledger.open().script(context.0);
        let codec = self.codec.get().filter(|_| script.real_codec);
        let source = match (&self.timbre, codec) {
            (Timbre::Silence, _) => Source::Silence,
            (_, Some(codec)) => {
                Source::Codec(codec.clone(), Box::new(codec.stream(first_frames, seed)?))
            }
            (_, None) => Source::Tones,
        };
        Ok(ToneStream {
            context: context.0,
            pieces: (script.pieces(), 0),
            script,
            source,
            plan: self.plan(first_frames)?,
            held: VecDeque::new(),
            chunk: Chunk::default(),
            made: 0,
            planned: 0,
            cut_short: Vec::new(),
            carry: Pcm::default(),
        })
    }

    /// Remembers the chunks that are told.
    pub(crate) fn heard<'e>(
        &self,
        context: ContextId,
        events: impl IntoIterator<Item = &'e Event>,
    ) {
        for event in events {
            if let Event::Chunk { text, .. } = event {
                self.ledger.open().chunk(context.0, text);
            }
        }
    }

    /// Takes codes and gives the sound that may go out, piece by piece.
    ///
    /// # Errors
    /// Rows that are not the stub's.
    pub(crate) fn push(
        &self,
        stream: &mut ToneStream,
        rows: &[&[u16]],
        end: End,
    ) -> Result<Pieces, CodeError> {
        let [semantic, acoustic @ ..] = rows else {
            return Err(CodeError::Rows { found: 0, expected: crate::bundle::STAGES });
        };
        let mut made = Vec::with_capacity(semantic.len());
        for (frame, &code) in semantic.iter().enumerate() {
            let digit = |row: usize| acoustic.get(row).and_then(|r| r.get(frame)).copied();
            let digits = [0, 1, 2].map(|row| digit(row).unwrap_or(0));
            let sound = stream.frame(code, codes::context_of(digits));
            made.push((stream.chunk.number, sound.len()));
            stream.held.push_back(sound);
        }
        stream.release(rows, end)?;
        let pieces = stream.cut(end == End::Passage);
        // Whatever takes its time is done: the networks need the ledger, too.
        let mut open = self.ledger.open();
        if let Some(report) = open.report(stream.context) {
            report.codec_runs += 1;
            for (chunk, samples) in made {
                if let Some(chunk) = report.chunks.get_mut(chunk) {
                    chunk.frames += 1;
                    chunk.samples += samples as u64;
                }
            }
        }
        if matches!(stream.source, Source::Codec(..)) {
            open.codes(stream.context, rows);
        }
        for piece in &pieces.0 {
            open.piece(stream.context, piece.1.len());
        }
        Ok(pieces)
    }
}

impl ToneStream {
    /// Where a sample of the plan lies in what was really given.
    pub(crate) fn position(&self, planned: u64) -> u64 {
        let known = self.cut_short.partition_point(|&(at, _)| at <= planned);
        let cut = known.checked_sub(1).map_or(0, |last| self.cut_short[last].1);
        planned - cut
    }

    /// Moves what may go out to where its pieces are cut.
    fn release(&mut self, rows: &[&[u16]], end: End) -> Result<(), CodeError> {
        if let Source::Codec(codec, stream) = &mut self.source {
            self.held.clear();
            self.carry.append(codec.push(stream, rows, end)?.into());
            return Ok(());
        }
        for window in self.plan.grow(rows[0].len(), end) {
            let out = self.held.drain(..window.emit.len().min(self.held.len()));
            out.for_each(|sound| self.carry.append(sound));
        }
        Ok(())
    }

    /// The sound of one frame of codes, or as much silence.
    fn frame(&mut self, code: u16, context: u64) -> Pcm {
        let chunk = codes::chunk_of(code);
        if self.chunk.code != Some(chunk) {
            let number = if self.chunk.code.is_some() { self.chunk.number + 1 } else { chunk };
            self.chunk = Chunk { code: Some(chunk), number, frames: 0 };
        }
        let before = (self.chunk.frames * FRAME_SAMPLES) as u64;
        self.chunk.frames += 1;
        self.planned += FRAME_SAMPLES as u64;
        if matches!(self.source, Source::Codec(..)) {
            return Pcm::Silence(FRAME_SAMPLES);
        }
        let left = self.script.scripted_samples(self.chunk.number).map_or(u64::MAX, |samples| {
            // Frames behind the end of a script that did not end are whole again.
            if before < samples { samples - before } else { u64::MAX }
        });
        let length = (FRAME_SAMPLES as u64).min(left);
        if length < FRAME_SAMPLES as u64 {
            let before = self.cut_short.last().map_or(0, |&(_, cut)| cut);
            self.cut_short.push((self.planned, before + FRAME_SAMPLES as u64 - length));
        }
        let start = self.made;
        self.made += length;
        match self.source {
            Source::Silence => Pcm::Silence(length as usize),
            _ => self.tones(context, start..self.made).into(),
        }
    }

    /// The tones of a context and its chunk, or the one that the script names.
    fn tones(&self, context: u64, samples: Range<u64>) -> Vec<f32> {
        let tones: &[f64] = match self.script.tone_hz {
            Some(hz) => &[hz],
            None => &[context_hz(context), chunk_hz(self.chunk.number)],
        };
        let sample = |at: u64| {
            let seconds = at as f64 / SAMPLE_RATE as f64;
            let sum: f64 = tones.iter().map(|hz| (TAU * hz * seconds).sin()).sum();
            if self.script.sounds_at(at) { (AMPLITUDE * sum) as f32 } else { 0.0 }
        };
        samples.map(sample).collect()
    }

    /// Full pieces, and at the end of a passage what is left.
    fn cut(&mut self, is_end: bool) -> Pieces {
        let mut pieces = Vec::new();
        let stall = Duration::from_millis(self.script.stall_ms);
        while let (Some(&length), turn) = (self.pieces.0.get(self.pieces.1), self.pieces.1) {
            if self.carry.len() < length {
                break;
            }
            let piece = self.carry.take_front(length);
            self.pieces.1 = (turn + 1) % self.pieces.0.len();
            pieces.push((if self.pieces.1 == 0 { stall } else { Duration::ZERO }, piece));
        }
        if (is_end || self.pieces.0.is_empty()) && !self.carry.is_empty() {
            pieces.push((Duration::ZERO, std::mem::take(&mut self.carry)));
        }
        Pieces(pieces)
    }
}
