//! Files of sound in the messages of a context: decoded outside of the session, for that may take longer than sockets may wait.

use std::fmt;

use engine::answer::{Message, Part};

use crate::chat::content::{self, Piece, Said, Seconds};

/// Messages that are still to be read.
pub struct Reading {
    said: Vec<Said>,
    seconds: f64,
}

impl Reading {
    /// Messages whose files have so many seconds of sound together, at most.
    pub(crate) fn new(said: Vec<Said>, seconds: f64) -> Box<Self> {
        Box::new(Self { said, seconds })
    }

    /// Whether there is a file to be decoded; without one reading takes no time.
    pub(crate) fn has_files(&self) -> bool {
        let mut pieces = self.said.iter().flat_map(|said| &said.pieces);
        pieces.any(|piece| matches!(piece, Piece::File(_)))
    }

    /// The messages as the engine takes them; recordings that the client sends beside them are live.
    ///
    /// # Errors
    /// A sentence that says which file is not to be had.
    pub(crate) fn read(self) -> Result<Vec<Message>, String> {
        let seconds = Seconds { most: self.seconds, key: "limits.max_recording_s" };
        let live = |_: &str| Some(Part::Live(Vec::new()));
        content::resolve(self.said, seconds, |_| None, live).map_err(|refusal| refusal.message)
    }
}

impl fmt::Debug for Reading {
    /// Without a word of what is said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("messages", &self.said.len()).finish()
    }
}
