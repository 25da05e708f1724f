//! What waits for the hearing thread: requests with recordings, and sound that comes in while it is made.
//!
//! ```text
//! answer --submit--> [request][sound of 7][request][sound of 3] --next--> the thread, in this order
//! push   --------->  sound of 7: what came since the thread took it last
//! ```
//! All is bounded: requests, recordings that come in at once, sound that waits. A context that ends drops its [`Lease`], and
//! with it goes whatever waits for it.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::live::Progress;
use super::side::HearingJob;
use super::{HearingError, Limits, RATE};
use crate::{ContextId, Error};

/// Requests that wait for their recordings to be heard: seconds of work each, and five megabytes.
const REQUESTS: usize = 4;

/// What may come in, of all contexts together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct LiveLimits {
    /// Recordings that have not ended.
    pub(crate) recordings: usize,
    /// How long none of a context's recordings may say anything.
    pub(crate) idle: Duration,
    /// Sound that waits for the thread.
    pub(crate) unheard: Duration,
}

/// What the thread does next.
pub(crate) enum Todo {
    /// Hears the recordings of a request.
    Whole(Box<HearingJob>),
    /// Goes on with a recording.
    Live(Sound),
    /// Tells a context that nothing came for it for so long.
    Abandoned(ContextId, Duration),
}

/// What came of a recording since the thread took it last.
pub(crate) struct Sound {
    pub(crate) id: ContextId,
    /// Its place among those of the request.
    pub(crate) recording: usize,
    pub(crate) samples: Vec<f32>,
    pub(crate) ended: bool,
    /// What the thread knows of the context; it goes back by [`Inbox::put_back`].
    pub(crate) progress: Box<Progress>,
}

/// The queue of the hearing thread.
pub(crate) struct Inbox {
    limits: LiveLimits,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Entry>,
    /// Requests in it.
    requests: usize,
    live: BTreeMap<ContextId, Live>,
    /// Samples that wait.
    unheard: usize,
    closed: bool,
}

enum Entry {
    Whole(Box<HearingJob>),
    /// There is sound of this context.
    Sound(ContextId),
}

/// A context whose recordings come in.
struct Live {
    limits: Limits,
    recordings: Vec<Recording>,
    /// When something came last.
    since: Duration,
    is_queued: bool,
    /// None while the thread has it, and before the rest of the request is heard.
    progress: Option<Box<Progress>>,
}

#[derive(Default)]
struct Recording {
    /// What waits.
    samples: Vec<f32>,
    /// How many came, in all.
    count: usize,
    ended: bool,
    /// Whether the thread knows that it has.
    is_taken: bool,
}

impl Live {
    fn is_coming(&self) -> bool {
        self.recordings.iter().any(|recording| !recording.ended)
    }

    /// Puts it in line, unless it is. Returns whether it was put there.
    fn enqueue(&mut self, id: ContextId, queue: &mut VecDeque<Entry>) -> bool {
        let is_new = !mem::replace(&mut self.is_queued, true);
        if is_new {
            queue.push_back(Entry::Sound(id));
        }
        is_new
    }
}

/// The place of a context among those whose recordings come in. Dropping it gives the place up.
pub(crate) struct Lease {
    inbox: Weak<Inbox>,
    id: ContextId,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(inbox) = self.inbox.upgrade() {
            inbox.forget(self.id);
        }
    }
}

impl Inbox {
    pub(crate) fn new(limits: LiveLimits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default(), arrived: Condvar::new() })
    }

    /// Puts a request in line.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Stopped`].
    pub(crate) fn submit(&self, job: HearingJob) -> Result<(), Error> {
        let mut state = self.lock();
        if state.closed {
            return Err(Error::Stopped);
        }
        if state.requests >= REQUESTS {
            return Err(Error::Busy { commands: REQUESTS });
        }
        state.requests += 1;
        state.queue.push_back(Entry::Whole(Box::new(job)));
        self.arrived.notify_one();
        Ok(())
    }

    /// Makes place for the recordings of a context. Sound may come from now on; the thread takes it once there is progress.
    ///
    /// # Errors
    /// [`Error::Listening`].
    pub(crate) fn enter(
        self: &Arc<Self>,
        id: ContextId,
        (limits, recordings): (Limits, usize),
        progress: Option<Box<Progress>>,
        now: Duration,
    ) -> Result<Lease, Error> {
        let mut state = self.lock();
        let most = self.limits.recordings;
        let coming = state.live.values().flat_map(|live| &live.recordings);
        if coming.filter(|recording| !recording.ended).count() + recordings > most {
            return Err(Error::Listening { most });
        }
        let recordings = std::iter::repeat_with(Recording::default).take(recordings).collect();
        let live = Live { limits, recordings, since: now, is_queued: false, progress };
        state.live.insert(id, live);
        Ok(Lease { inbox: Arc::downgrade(self), id })
    }

    /// Takes more of a recording, at 24 kHz.
    ///
    /// # Errors
    /// [`Error::Silent`], [`Error::Sound`], [`Error::Unheard`]; nothing was taken then.
    pub(crate) fn push(
        &self,
        id: ContextId,
        recording: usize,
        samples: &[f32],
        now: Duration,
    ) -> Result<(), Error> {
        let mut state = self.lock();
        let State { live, unheard, queue, .. } = &mut *state;
        let (live, at) = find(live, id, recording)?;
        let one = &mut live.recordings[at];
        let refused = |e: HearingError| Error::Sound { recording, reason: e.to_string() };
        live.limits.check_more(one.count, samples).map_err(refused)?;
        let most = self.limits.unheard.as_secs_f64() * f64::from(RATE);
        // A piece that is longer than all that may wait comes alone.
        if *unheard > 0 && (*unheard + samples.len()) as f64 > most {
            return Err(Error::Unheard { most: self.limits.unheard });
        }
        one.samples.extend_from_slice(samples);
        one.count += samples.len();
        *unheard += samples.len();
        live.since = now;
        if live.enqueue(id, queue) {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// A recording has ended.
    ///
    /// # Errors
    /// [`Error::Silent`], [`Error::Sound`].
    pub(crate) fn end(&self, id: ContextId, recording: usize, now: Duration) -> Result<(), Error> {
        let mut state = self.lock();
        let State { live, queue, .. } = &mut *state;
        let (live, at) = find(live, id, recording)?;
        live.recordings[at].ended = true;
        live.since = now;
        if live.enqueue(id, queue) {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Keeps what the thread knows of a context whose recordings come in, until more comes.
    pub(crate) fn put_back(&self, id: ContextId, progress: Box<Progress>) {
        let mut state = self.lock();
        // Of one that is over it is dropped, and the rows with it that were heard.
        if let Some(live) = state.live.get_mut(&id) {
            live.progress = Some(progress);
        }
    }

    /// Drops whatever waits for a context.
    pub(crate) fn forget(&self, id: ContextId) {
        let mut state = self.lock();
        if let Some(live) = state.live.remove(&id) {
            state.unheard -= live.recordings.iter().map(|one| one.samples.len()).sum::<usize>();
            drop(state);
            // Rows that were heard are many, and go without the lock.
            drop(live);
        }
    }

    /// The next thing to do; waits for it. `None` when the inbox is closed and empty.
    pub(crate) fn next(&self, now: &dyn Fn() -> Duration) -> Option<Todo> {
        loop {
            // Before the lock: whose clock it is, is not known here.
            let now = now();
            let mut state = self.lock();
            while let Some(entry) = state.queue.pop_front() {
                match entry {
                    Entry::Whole(job) => {
                        state.requests -= 1;
                        return Some(Todo::Whole(job));
                    }
                    Entry::Sound(id) => {
                        if let Some(sound) = state.take(id) {
                            return Some(Todo::Live(sound));
                        }
                    }
                }
            }
            if state.closed {
                return None;
            }
            let coming = state.live.iter().filter(|(_, l)| l.progress.is_some() && l.is_coming());
            let first = coming.map(|(&id, live)| (live.since + self.limits.idle, id)).min();
            match first {
                None => drop(self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner)),
                Some((at, id)) if at <= now => {
                    drop(state);
                    self.forget(id);
                    return Some(Todo::Abandoned(id, self.limits.idle));
                }
                Some((at, _)) => {
                    let waited = self.arrived.wait_timeout(state, at - now);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }

    /// Takes nothing more; what waits is still given.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Contexts whose recordings come in, and samples that wait.
    #[cfg(test)]
    pub(crate) fn held(&self) -> (usize, usize) {
        let state = self.lock();
        (state.live.len(), state.unheard)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What has come of one recording of a context.
    fn take(&mut self, id: ContextId) -> Option<Sound> {
        let live = self.live.get_mut(&id)?;
        live.is_queued = false;
        let has_news = |one: &Recording| !one.samples.is_empty() || one.ended && !one.is_taken;
        let recording = live.recordings.iter().position(has_news)?;
        let progress = live.progress.take()?;
        let one = &mut live.recordings[recording];
        let (samples, ended) = (mem::take(&mut one.samples), one.ended);
        one.is_taken = ended;
        self.unheard -= samples.len();
        if live.recordings.iter().any(has_news) {
            live.enqueue(id, &mut self.queue);
        }
        Some(Sound { id, recording, samples, ended, progress })
    }
}

/// A recording that may still come.
fn find(
    live: &mut BTreeMap<ContextId, Live>,
    id: ContextId,
    recording: usize,
) -> Result<(&mut Live, usize), Error> {
    let refused = |reason: &str| Error::Sound { recording, reason: reason.to_owned() };
    let live = live.get_mut(&id).ok_or(Error::Silent)?;
    match live.recordings.get(recording) {
        None => Err(refused("the request has no such live recording")),
        Some(one) if one.ended => Err(refused("it has ended")),
        Some(_) => Ok((live, recording)),
    }
}
