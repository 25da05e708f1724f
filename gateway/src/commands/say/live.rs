//! Text that is still being written: bytes from a pipe to a live context, as they come.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::text::Utf8Joiner;
use engine::{ContextId, Error, Handle};

use super::STANDARD;
use crate::commands::{CommandError, tell};

/// Bytes that are read at once: far more than anybody writes between two words.
const PIECE_BYTES: usize = 4096;
/// How long to wait before a full command queue is tried again: about one engine step.
const RETRY: Duration = Duration::from_millis(5);

/// A text that arrives as bytes.
pub(super) struct Pipe<R> {
    source: R,
    joiner: Utf8Joiner,
    ended: bool,
}

/// Opens a pipe or file, or standard input for `-`.
///
/// # Errors
/// One that cannot be opened.
pub(super) fn open(from: &Path) -> Result<Pipe<Box<dyn Read + Send>>, CommandError> {
    if from == Path::new(STANDARD) {
        return Ok(Pipe::new(Box::new(io::stdin())));
    }
    let file = File::open(from).map_err(CommandError::io(from))?;
    Ok(Pipe::new(Box::new(file)))
}

/// Passes on all that comes through the pipe, on a thread of its own; the end of the text ends the context.
///
/// The thread is never joined: when the sound's reader has gone, the process ends while it still waits for text.
///
/// # Errors
/// A thread that cannot be started.
#[expect(
    clippy::disallowed_methods,
    reason = "a read from a pipe can neither be awaited together with events nor be broken off"
)]
pub(super) fn feed<R: Read + Send + 'static>(
    engine: Arc<Handle>,
    id: ContextId,
    mut pipe: Pipe<R>,
) -> io::Result<()> {
    let pump = move || {
        if let Err(e) = pass_on(&mut pipe, |delta| engine.push(id, delta)) {
            tell(&format!("dovecote: the text breaks off: {e}"));
        }
        let _ = insist(|| engine.end(id));
    };
    std::thread::Builder::new().name("say-text".to_owned()).spawn(pump).map(drop)
}

impl<R: Read> Pipe<R> {
    fn new(source: R) -> Self {
        Self { source, joiner: Utf8Joiner::default(), ended: false }
    }

    /// The next complete characters, as soon as there are any; none at the end.
    ///
    /// # Errors
    /// A source that cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<String>> {
        let (mut bytes, mut delta) = ([0; PIECE_BYTES], String::new());
        while delta.is_empty() && !self.ended {
            match self.source.read(&mut bytes) {
                Ok(0) => {
                    self.ended = true;
                    self.joiner.release(&mut delta);
                }
                Ok(read) => self.joiner.push(&bytes[..read], &mut delta),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Some(delta).filter(|d| !d.is_empty()))
    }
}

fn pass_on<R: Read>(
    pipe: &mut Pipe<R>,
    push: impl Fn(&str) -> Result<(), Error>,
) -> io::Result<()> {
    while let Some(delta) = pipe.next()? {
        insist(|| push(&delta)).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Tries again while the engine is busy: a pipe can wait.
fn insist(mut command: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    loop {
        match command() {
            Err(Error::Busy { .. }) => std::thread::sleep(RETRY),
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            (out[0], self.0) = (*first, rest);
            Ok(1)
        }
    }

    #[test]
    fn characters_cut_by_the_pipe_arrive_whole() {
        let cut = "é🎉\u{fffd}".as_bytes().split_last().unwrap().1;
        let mut pipe = Pipe::new(Drip(cut));
        let deltas: Vec<String> = std::iter::from_fn(|| pipe.next().unwrap()).collect();
        assert_eq!(deltas, ["é", "🎉", "\u{fffd}"]);
        assert_eq!(pipe.next().unwrap(), None);
    }

    #[test]
    fn a_busy_engine_is_asked_again_and_a_stopped_one_is_not() {
        let mut tries = 0;
        let busy_once = || {
            tries += 1;
            if tries == 1 { Err(Error::Busy { commands: 1 }) } else { Ok(()) }
        };
        insist(busy_once).unwrap();
        assert_eq!(tries, 2);
        assert_eq!(insist(|| Err(Error::Stopped)), Err(Error::Stopped));
    }
}
