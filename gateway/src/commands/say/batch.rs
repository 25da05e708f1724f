//! Many texts at once in one engine, each to its own file, as if each were spoken alone.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use engine::{Event, Events, Handle, Request};

use super::output::{Recorder, Target};
use crate::commands::progress::Progress;
use crate::commands::speed::Stopwatch;
use crate::commands::{CommandError, tell};

/// Contexts open at once: enough to fill the batch of a stage with the chunks of short texts.
const AT_ONCE: usize = 32;

/// One text on its way.
struct Line {
    index: usize,
    events: Events,
    recorder: Recorder,
}

/// Speaks every line to `folder`, 0000 first. A line that fails leaves a valid file of what was made of it.
///
/// # Errors
/// [`CommandError::Batch`] when lines failed, else what kept all from being spoken.
pub(super) fn speak(
    engine: &Handle,
    lines: &[String],
    folder: &Path,
    target: &Target,
    request: impl Fn(String) -> Request,
    progress: &Progress,
) -> Result<Stopwatch, CommandError> {
    std::fs::create_dir_all(folder).map_err(CommandError::io(folder))?;
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let (mut waiting, mut open) = (lines.iter().enumerate(), VecDeque::new());
    let mut tally = Tally { watch: Stopwatch::start(), failed: 0 };
    loop {
        while open.len() < AT_ONCE
            && let Some((index, text)) = waiting.next()
        {
            let file = folder.join(format!("{index:04}.{}", target.format.extension()));
            let recorder = Recorder::create(&file, target)?;
            let (_, events) = engine.open(request(text.clone()))?;
            open.push_back(Line { index, events, recorder });
        }
        if open.is_empty() {
            break;
        }
        let mut idle = true;
        for _ in 0..open.len() {
            let Some(line) = open.pop_front() else { break };
            match line.events.poll_recv(&mut context) {
                Poll::Pending => open.push_back(line),
                Poll::Ready(event) => {
                    idle = false;
                    open.extend(line.take(event, &mut tally)?);
                    progress.spoken(&tally.watch);
                }
            }
        }
        if idle {
            // An event that came since the last look has unparked this thread already.
            std::thread::park();
        }
    }
    let Tally { mut watch, failed } = tally;
    watch.stop();
    match failed {
        0 => Ok(watch),
        failed => Err(CommandError::Batch { failed, lines: lines.len() }),
    }
}

/// What all lines came to.
struct Tally {
    watch: Stopwatch,
    failed: usize,
}

impl Line {
    /// Does what an event asks for; none when it was the last.
    fn take(
        mut self,
        event: Option<Event>,
        tally: &mut Tally,
    ) -> Result<Option<Self>, CommandError> {
        match event {
            Some(Event::Audio { samples, .. }) => {
                tally.watch.heard(samples.len());
                self.recorder.write(&samples.into_samples())?;
            }
            Some(Event::Failed(failure)) => {
                tally.failed += 1;
                tell(&format!("dovecote: line {}: {failure}", self.index));
            }
            Some(_) => {}
            None => return self.recorder.finish().map(|()| None),
        }
        Ok(Some(self))
    }
}

/// Wakes the thread that waits for any of the contexts.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
