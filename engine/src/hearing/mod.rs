//! What speech language models hear with: recordings to parts of prompts. The `engine-hearing` thread makes them, so that a
//! long recording stops no step.
//!
//! ```text
//! samples at 24 kHz -> 16 kHz -> audio tower, adaptor -> rows in the place of embeddings      Bagpiper
//!                             -> units of features, codec -> rows of codes                     OpusLM
//! request --checked, waits--> heard --Command::Open--> the step thread, as any other
//! ```
//! An answer that waits to be heard can be cancelled like any other; what was heard for it is thrown away then.
//!
//! Recordings that come in while they are made stand in a request that is open already: its prompt grows in the step thread by
//! what is known of it.
//!
//! ```text
//! sound --Inbox--> heard, window by window --Command::Heard--> rows of the prompt, run while more is to come
//! ```

mod ear;
mod inbox;
mod live;
mod side;
#[cfg(test)]
mod tests;
mod waiting;

pub(crate) use ear::Ear;
pub(crate) use inbox::{Inbox, Lease, LiveLimits};
pub(crate) use live::Progress;
pub(crate) use side::{HearingJob, Side};
pub(crate) use waiting::Waiting;

/// Rate of the recordings that are taken, in Hz.
const RATE: u32 = 24_000;

/// Why a recording cannot be heard.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum HearingError {
    /// Longer than the bundle allows.
    #[error("longer than {seconds_max} s (audio_input.max_seconds)")]
    TooLong { seconds_max: f64 },
    /// Too short for anything to be made of it.
    #[error("{samples} samples are too short to be heard")]
    TooShort { samples: usize },
    /// A sample is infinite or not a number.
    #[error("sample {index} is not a finite number")]
    NotFinite { index: usize },
    /// It becomes rows of numbers, of which no voice can be made.
    #[error("this model does not hear in codes")]
    NoCodes,
    /// What hears cannot be loaded.
    #[error("cannot load what hears: {0}")]
    Load(String),
}

/// What can be said of a recording before it is heard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    seconds_max: f64,
    /// Whether it becomes codes, not rows.
    pub(crate) in_codes: bool,
}

impl Limits {
    /// Checks a recording at 24 kHz.
    ///
    /// # Errors
    /// It is too long, or has samples that are no numbers.
    pub(crate) fn check(self, samples: &[f32]) -> Result<(), HearingError> {
        self.check_more(0, samples)
    }

    /// Checks what comes behind so many samples.
    ///
    /// # Errors
    /// As [`Limits::check`].
    pub(crate) fn check_more(self, before: usize, samples: &[f32]) -> Result<(), HearingError> {
        let seconds_max = self.seconds_max;
        if (before + samples.len()) as f64 > seconds_max * f64::from(RATE) {
            return Err(HearingError::TooLong { seconds_max });
        }
        match samples.iter().position(|s| !s.is_finite()) {
            Some(index) => Err(HearingError::NotFinite { index: before + index }),
            None => Ok(()),
        }
    }
}
