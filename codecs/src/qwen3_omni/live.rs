//! A clip that is encoded while it is heard, a window behind.
//!
//! ```text
//! samples   [=========== window 0 ===========]~~[=========== window 1 =======     ~ what the spectrum looks ahead: 2.5 ms
//! rows                                        ^ of window 0, as in the clip that ends here
//! ```
//! Windows do not see each other, and positions begin anew in every chunk; only the spectrum looks at the whole clip, for its
//! level and for its loudest value. So a window is taken from the spectrum of all that has been heard when it is complete. A
//! clip of one window is then the one that [`Hearing::encode`] makes, and so is the last window of any. The windows before
//! it do not know how loud the clip becomes.

use super::mel::{HOP, WINDOW};
use super::{Hearing, HearingError, TowerStream};
use crate::frames::Frames;
use crate::limited::TooLong;

/// Samples behind the last hop of a window that its last frame looks at.
const AHEAD: usize = WINDOW / 2 - HOP;

/// A clip of which more is to come.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveClip {
    /// All that was heard.
    samples: Vec<f32>,
    /// Frames of the spectrum that the tower has had: whole windows.
    frames: usize,
    tower: TowerStream,
}

impl Hearing {
    /// A clip at its beginning.
    pub fn begin(&self) -> LiveClip {
        LiveClip { samples: Vec::new(), frames: 0, tower: self.tower.stream() }
    }

    /// The next samples of a clip at [`super::RATE`], the last ones where `ended`: the rows of the windows that are complete,
    /// `[rows, hidden]`. Any pieces give what the whole gives, bit for bit; after the end the clip is as new.
    ///
    /// # Errors
    /// See [`HearingError`]; the clip is then as it was.
    pub fn step(
        &self,
        clip: &mut LiveClip,
        samples: &[f32],
        ended: bool,
    ) -> Result<Frames, HearingError> {
        let (before, all) = (clip.samples.len(), clip.samples.len() + samples.len());
        if all as f64 > self.seconds_max * f64::from(super::RATE) {
            return Err(TooLong { seconds_max: self.seconds_max }.into());
        }
        if let Some(index) = samples.iter().position(|s| !s.is_finite()) {
            return Err(HearingError::NotFinite { index: before + index });
        }
        if ended && all == 0 {
            return Err(HearingError::Empty);
        }
        clip.samples.extend_from_slice(samples);
        let mut rows = Frames::zeros(0, self.tower.output());
        loop {
            let end = clip.frames + self.tower.window_frames();
            let heard = end * HOP + AHEAD;
            if clip.samples.len() < heard {
                break;
            }
            let mel = self.mel.spectrum(&clip.samples[..heard]).slice(clip.frames..end);
            rows.extend(&self.tower.step(&mut clip.tower, &mel, false));
            clip.frames = end;
        }
        if ended {
            let mel = self.mel.spectrum(&clip.samples);
            let mel = mel.slice(clip.frames..mel.time());
            rows.extend(&self.tower.step(&mut clip.tower, &mel, true));
            *clip = self.begin();
        }
        Ok(self.adaptor.forward(&rows))
    }
}
