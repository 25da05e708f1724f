//! A request whose recordings come in while they are made: what has been heard of each, and the request as far as it is known.
//!
//! ```text
//! request   user: "What is this?" [recording 0 ....] "And this?" [recording 1 ....]
//! known     ----------------------------- rows ----|                                  settings that grow
//! ```

use std::sync::Arc;

use super::Ear;
use super::ear::Listener;
use crate::Error;
use crate::answer::{Part, Request, Settings, Speaker};

/// What the hearing thread knows of such a request.
pub(crate) struct Progress {
    speaker: Arc<Speaker>,
    /// Its place among the models that answer.
    pub(crate) model: usize,
    request: Request,
    recordings: Vec<Recording>,
}

struct Recording {
    /// Where it stands in the request, as message and part.
    place: (usize, usize),
    /// None before its first sample, and behind its end.
    listener: Option<Listener>,
}

impl Progress {
    /// Of a request of which no live recording has been heard yet.
    pub(crate) fn new(speaker: Arc<Speaker>, model: usize, request: Request) -> Self {
        let places = request.live().into_iter();
        let recordings = places.map(|place| Recording { place, listener: None }).collect();
        Self { speaker, model, request, recordings }
    }

    /// Hears more of a recording. Returns the settings of the request as far as it is known, if more of it is.
    ///
    /// # Errors
    /// A sentence: it cannot be heard, or the request leaves no room for an answer.
    pub(crate) fn hear(
        &mut self,
        ear: &mut Ear,
        recording: usize,
        samples: &[f32],
        ended: bool,
    ) -> Result<Option<Settings>, String> {
        let Recording { place: (message, part), listener } = &mut self.recordings[recording];
        let part: &mut Part = &mut self.request.messages[*message].parts[*part];
        let mut current = match listener.take() {
            Some(listener) => listener,
            None => ear.listen().map_err(|e| e.to_string())?,
        };
        let heard = ear.hear_more(&mut current, part, samples, ended).map_err(|e| e.to_string())?;
        *listener = Some(current).filter(|_| !ended);
        if !heard {
            return Ok(None);
        }
        let settings = self.speaker.resolve(self.request.clone());
        settings.map(Some).map_err(|e: Error| e.to_string())
    }
}
