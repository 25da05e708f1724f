//! What the stub is told to do: how long speech is, what it sounds like, what it costs and how it fails.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Sound of a code point when nothing else is said.
const CHARACTER_MS: u64 = 20;
/// Samples of a millisecond of engine audio.
const MS_SAMPLES: u64 = 24;
/// Codes of a chunk that no guard would let pass are not worth a script.
const SAMPLES_MAX: u64 = 400 * FRAME_SAMPLES;
/// Seconds of computing for a second of sound when nothing else is said.
pub(super) const RTF: f64 = 0.05;
/// Stages share the cost of a frame evenly.
const STAGES: f64 = 4.0;
/// Most numbers in a list, and letters of a loop.
const ITEMS_MAX: usize = 1_024;
/// Longest time that one step may be told to take.
const COST_MS_MAX: u64 = 600_000;
const FRAME_SAMPLES: u64 = codecs::window::FRAME_SAMPLES as u64;
const FRAME: Duration = Duration::from_millis(80);

/// What a context does. Everything may be left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Seconds of computing for a second of sound. Default: 0.05; nothing where there is nothing to hear.
    pub rtf: Option<f64>,
    /// Cost of the first step of a chunk, beside `rtf`.
    pub prefill_ms: u64,
    /// More cost of the first step of chunk 0, 1, ..
    pub chunk_cost_ms: Vec<u64>,
    /// Cost of the very first step of the engine, shared by the stages.
    pub warm_up_ms: u64,
    /// Samples of the first chunk, at 24 kHz. Default: 20 ms for each character, in whole frames of 80 ms.
    pub samples: Option<u64>,
    /// The same in milliseconds.
    pub ms: Option<u64>,
    /// The same in frames of 80 ms.
    pub frames: Option<u64>,
    /// Samples of chunk 0, 1, ..
    pub chunk_samples: Vec<u64>,
    /// Samples of the pieces in which the first chunk goes out; it is as long as they are together.
    pub emit_samples: Vec<u64>,
    /// Length of the pieces in which sound goes out, over and over. Default: as the codec's plan has it.
    pub piece_ms: Pieces,
    /// How long the codec stands still after each round of pieces.
    pub stall_ms: u64,
    /// One tone of this frequency instead of those that tell context and chunk.
    pub tone_hz: Option<f64>,
    /// The codec of a bundle is heard instead of tones: noise, in whole frames.
    pub real_codec: bool,
    /// Tone and silence in turn, by the first chunk's length.
    pub pattern: Vec<Part>,
    /// The network returns broken numbers in this chunk ...
    pub fail_chunk: Option<usize>,
    /// ... when it has so many frames.
    pub fail_after_frames: usize,
    /// No chunk ever ends by itself.
    pub never_eos: bool,
    /// Codes that are said over and over, a letter each, and no end.
    pub loop_codes: String,
    /// How long the loop goes on. There is only one answer.
    pub until: Until,
}

/// How long a scripted fault lasts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// Until a guard or the budget ends it.
    #[default]
    Budget,
}

/// One length, or several in turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Pieces {
    /// All pieces are equally long.
    One(u64),
    /// Their lengths in turn.
    Round(Vec<u64>),
}

impl Default for Pieces {
    fn default() -> Self {
        Self::Round(Vec::new())
    }
}

impl Pieces {
    fn round(&self) -> &[u64] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Round(round) => round,
        }
    }
}

/// A stretch of a pattern: `tone 500` or `silence 1500`, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Part {
    /// Whether there is anything to hear.
    pub is_tone: bool,
    /// How long it is.
    pub ms: u64,
}

impl TryFrom<String> for Part {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither \"tone MS\" nor \"silence MS\"");
        let (kind, ms) = text.split_once(' ').ok_or_else(wrong)?;
        let ms = ms.parse().map_err(|_| wrong())?;
        match kind {
            "tone" => Ok(Self { is_tone: true, ms }),
            "silence" => Ok(Self { is_tone: false, ms }),
            _ => Err(wrong()),
        }
    }
}

impl From<Part> for String {
    fn from(part: Part) -> Self {
        format!("{} {}", if part.is_tone { "tone" } else { "silence" }, part.ms)
    }
}

impl Default for Script {
    fn default() -> Self {
        Self {
            rtf: None,
            prefill_ms: 0,
            chunk_cost_ms: Vec::new(),
            warm_up_ms: 0,
            samples: None,
            ms: None,
            frames: None,
            chunk_samples: Vec::new(),
            emit_samples: Vec::new(),
            piece_ms: Pieces::default(),
            stall_ms: 0,
            tone_hz: None,
            real_codec: false,
            pattern: Vec::new(),
            fail_chunk: None,
            fail_after_frames: 0,
            never_eos: false,
            loop_codes: String::new(),
            until: Until::Budget,
        }
    }
}

/// Why a script cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// A value beyond what is allowed.
    #[error("{field}: {allowed}")]
    Value {
        /// The field.
        field: &'static str,
        /// What would be.
        allowed: String,
    },
    /// No codec can be heard.
    #[error("real_codec: {reason}")]
    Codec {
        /// Why not.
        reason: String,
    },
    /// Too many scripts wait for their seed.
    #[error("{max} scripts wait for their seed already")]
    Full {
        /// How many may.
        max: usize,
    },
}

impl Script {
    /// Whether the script can be followed.
    ///
    /// # Errors
    /// The first field that cannot.
    pub(super) fn check(&self) -> Result<(), ScriptError> {
        let must = |field, holds: bool, allowed: String| match holds {
            true => Ok(()),
            false => Err(ScriptError::Value { field, allowed }),
        };
        let seconds = 0.0..=100.0;
        let rtf = self.rtf.is_none_or(|rtf| seconds.contains(&rtf));
        must("rtf", rtf, format!("{seconds:?}"))?;
        let hearable = 20.0..=11_000.0;
        let tone = self.tone_hz.is_none_or(|hz| hearable.contains(&hz));
        must("tone_hz", tone, format!("{hearable:?}"))?;
        let costs = [self.prefill_ms, self.warm_up_ms, self.stall_ms];
        for cost in costs.iter().chain(&self.chunk_cost_ms) {
            must("cost", *cost <= COST_MS_MAX, format!("at most {COST_MS_MAX} ms"))?;
        }
        let lists = [&self.chunk_cost_ms, &self.chunk_samples, &self.emit_samples];
        let items = lists.iter().map(|l| l.len()).max().unwrap_or(0);
        let items = items.max(self.pattern.len()).max(self.loop_codes.len());
        let items = items.max(self.piece_ms.round().len());
        must("list", items <= ITEMS_MAX, format!("at most {ITEMS_MAX} items"))?;
        let no_empty = !self.piece_ms.round().contains(&0) && !self.emit_samples.contains(&0);
        must("piece_ms", no_empty, "no piece is empty".to_owned())?;
        for chunk in 0..self.chunk_samples.len().max(1) {
            let samples = self.scripted_samples(chunk).unwrap_or(1);
            let fits = (1..=SAMPLES_MAX).contains(&samples);
            must("samples", fits, format!("1 to {SAMPLES_MAX} in a chunk"))?;
        }
        Ok(())
    }

    /// Samples that a chunk is told to have.
    pub(super) fn scripted_samples(&self, chunk: usize) -> Option<u64> {
        let listed = self.chunk_samples.get(chunk).copied();
        let sum = |list: &[u64]| (!list.is_empty()).then(|| list.iter().sum::<u64>());
        let pattern: Vec<u64> = self.pattern.iter().map(|p| p.ms * MS_SAMPLES).collect();
        let first = self
            .samples
            .or(self.ms.map(|ms| ms.saturating_mul(MS_SAMPLES)))
            .or(self.frames.map(|frames| frames.saturating_mul(FRAME_SAMPLES)))
            .or_else(|| sum(&self.emit_samples))
            .or_else(|| sum(&pattern));
        listed.or(first.filter(|_| chunk == 0))
    }

    /// Frames of a chunk of so many characters; `None`: it never ends.
    pub(super) fn frames_of(&self, chunk: usize, characters: usize) -> Option<usize> {
        if self.never_eos || !self.loop_codes.is_empty() || self.fail_chunk == Some(chunk) {
            return None;
        }
        let spoken = (characters.max(1) as u64) * CHARACTER_MS * MS_SAMPLES;
        let samples = self.scripted_samples(chunk).unwrap_or(spoken);
        Some(samples.div_ceil(FRAME_SAMPLES) as usize)
    }

    /// Whether the lengths of the script must not be judged as speech of the text.
    pub(super) fn is_free_of_pace(&self) -> bool {
        self.scripted_samples(0).is_some() || !self.chunk_samples.is_empty()
    }

    /// The letter that is said at a frame of a loop.
    pub(super) fn looped(&self, frame: usize) -> Option<usize> {
        let letters = self.loop_codes.as_bytes();
        let letter = letters.get(frame.checked_rem(letters.len())?)?;
        Some(usize::from(letter.wrapping_sub(b'a')))
    }

    /// What a stage's part of one frame costs.
    pub(super) fn frame_cost(&self) -> Duration {
        FRAME.mul_f64(self.rtf.unwrap_or(RTF) / STAGES)
    }

    /// What the first step of a chunk costs.
    pub(super) fn chunk_cost(&self, chunk: usize) -> Duration {
        let more = self.chunk_cost_ms.get(chunk).copied().unwrap_or(0);
        Duration::from_millis(self.prefill_ms + more)
    }

    /// Samples of the pieces in turn; empty: as sound comes.
    pub(super) fn pieces(&self) -> Vec<usize> {
        let emitted = self.emit_samples.iter().map(|&n| n as usize);
        let round = self.piece_ms.round().iter().map(|&ms| (ms * MS_SAMPLES) as usize);
        if self.emit_samples.is_empty() { round.collect() } else { emitted.collect() }
    }

    /// Whether there is a tone at a sample of the context.
    pub(super) fn sounds_at(&self, sample: u64) -> bool {
        let mut end = 0;
        for part in &self.pattern {
            end += part.ms * MS_SAMPLES;
            if sample < end {
                return part.is_tone;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(json: &str) -> Script {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_chunk_is_as_long_as_its_text_unless_it_is_told() {
        assert_eq!(Script::default().frames_of(0, 9), Some(3));
        assert_eq!(script(r#"{"samples": 24037}"#).frames_of(0, 9), Some(13));
        assert_eq!(script(r#"{"samples": 24037}"#).frames_of(1, 9), Some(3));
        assert_eq!(script(r#"{"chunk_samples": [1, 1921]}"#).frames_of(1, 9), Some(2));
        assert_eq!(
            script(r#"{"emit_samples": [2031, 849, 1, 2]}"#).scripted_samples(0),
            Some(2883)
        );
        let pattern = script(r#"{"pattern": ["tone 500", "silence 1500", "tone 500"]}"#);
        assert_eq!(pattern.scripted_samples(0), Some(60_000));
        assert_eq!(
            [0, 12_000, 47_999, 48_000].map(|s| pattern.sounds_at(s)),
            [true, false, false, true]
        );
        assert_eq!(script(r#"{"never_eos": true}"#).frames_of(0, 9), None);
    }

    #[test]
    fn costs_are_those_of_the_frame_and_of_the_chunk() {
        assert_eq!(Script::default().frame_cost(), Duration::from_millis(1));
        let slow = script(r#"{"prefill_ms": 400, "chunk_cost_ms": [900, 50]}"#);
        let costs = [0, 1, 2].map(|chunk| slow.chunk_cost(chunk).as_millis());
        assert_eq!(costs, [1300, 450, 400]);
    }

    #[test]
    fn what_cannot_be_followed_is_refused_by_name() {
        for (json, field) in [
            (r#"{"rtf": -1}"#, "rtf"),
            (r#"{"tone_hz": 1}"#, "tone_hz"),
            (r#"{"prefill_ms": 600001}"#, "cost"),
            (r#"{"samples": 768001}"#, "samples"),
            (r#"{"piece_ms": 0}"#, "piece_ms"),
        ] {
            let error = script(json).check().unwrap_err().to_string();
            assert!(error.starts_with(field), "{error}");
        }
        let many = Script { chunk_cost_ms: vec![1; ITEMS_MAX + 1], ..Script::default() };
        assert!(many.check().is_err());
        assert!(serde_json::from_str::<Script>(r#"{"rft": 1}"#).is_err());
        assert!(serde_json::from_str::<Script>(r#"{"pattern": ["noise 5"]}"#).is_err());
    }
}
