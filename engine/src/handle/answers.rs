//! Contexts that answer: recordings in what is asked, and those that come in while they are made.

use std::sync::Arc;

use super::Handle;
use crate::answer::{Request, Speaker};
use crate::engine::Opening;
use crate::event::Events;
use crate::hearing::{HearingJob, Inbox, Lease, Progress};
use crate::worker::Command;
use crate::{ContextId, Error};

impl Handle {
    /// Opens a context in which a speech language model answers; its events come through the second value. Recordings in the
    /// request are heard before it begins, on a thread of their own; live ones come by [`Handle::push_audio`], and the model
    /// reads what is known of the request meanwhile.
    ///
    /// # Errors
    /// As [`Handle::open`]; also [`Error::Busy`] when other answers wait for that thread, and [`Error::Listening`] when as many
    /// live recordings come in as may. What only shows when a recording is heard ends the context with
    /// [`Failure::Hearing`](crate::Failure::Hearing).
    pub fn answer(&self, request: Request) -> Result<(ContextId, Events), Error> {
        let speaker = self.models.speaker(request.model.as_deref())?;
        if request.recordings().next().is_some() {
            if request.max_ahead.is_some() {
                self.admit(speaker.lane(&request))?;
            }
            return self.answer_heard(speaker, request);
        }
        let live = request.live().len();
        let progress = (live > 0).then(|| request.clone());
        let settings = speaker.resolve(request)?;
        let stream = settings.stream();
        let mut opening = Opening::Answer(Box::new(settings));
        if opening.listens() {
            self.admit(opening.lane())?;
        }
        let id = self.next_id();
        if let Some(request) = progress {
            let progress = Progress::new(speaker.clone(), self.place(speaker), request);
            opening.leases(self.enter(id, speaker, live, Some(progress))?);
        }
        let (outbox, events) = self.outbox(id);
        outbox.watch(speaker.meter.begin());
        let begun = Command::Open { id, opening, stream, outbox: outbox.clone() };
        self.send(begun).inspect_err(|_| outbox.unwatch())?;
        Ok((id, events))
    }

    /// The place of a model among those that answer.
    fn place(&self, speaker: &Arc<Speaker>) -> usize {
        let place = self.models.speakers.iter().position(|known| Arc::ptr_eq(known, speaker));
        place.expect("it is one of them; this is a bug")
    }

    fn enter(
        &self,
        id: ContextId,
        speaker: &Speaker,
        recordings: usize,
        progress: Option<Progress>,
    ) -> Result<Lease, Error> {
        let inbox = self.inbox.as_ref().ok_or(Error::Stopped)?;
        let limits = speaker.hears.expect("a request with recordings is refused; this is a bug");
        inbox.enter(id, (limits, recordings), progress.map(Box::new), (self.now)())
    }

    /// More of a live recording, at 24 kHz, mono, full scale 1. `recording` is its place among the live ones of the request,
    /// from 0; they may come in any order.
    ///
    /// # Errors
    /// [`Error::Silent`] for a context that is over; [`Error::Sound`] for a recording that does not come or has ended, that
    /// becomes longer than the model hears, or samples that are no numbers; [`Error::Unheard`] when as much waits to be heard as
    /// may. Nothing was taken then.
    pub fn push_audio(
        &self,
        id: ContextId,
        recording: usize,
        samples: &[f32],
    ) -> Result<(), Error> {
        self.inbox()?.push(id, recording, samples, (self.now)())
    }

    /// A live recording has ended. The model answers when all have.
    ///
    /// # Errors
    /// [`Error::Silent`] for a context that is over; [`Error::Sound`] for a recording that does not come, or has ended.
    pub fn end_audio(&self, id: ContextId, recording: usize) -> Result<(), Error> {
        self.inbox()?.end(id, recording, (self.now)())
    }

    fn inbox(&self) -> Result<&Inbox, Error> {
        self.inbox.as_deref().ok_or(Error::Silent)
    }

    fn answer_heard(
        &self,
        speaker: &Arc<Speaker>,
        request: Request,
    ) -> Result<(ContextId, Events), Error> {
        speaker.check_unheard(&request)?;
        let model = self.place(speaker);
        let inbox = self.inbox.as_ref().ok_or(Error::Stopped)?;
        let id = self.next_id();
        let lease = match request.live().len() {
            0 => None,
            live => Some(self.enter(id, speaker, live, None)?),
        };
        let (outbox, events) = self.outbox(id);
        let (speaker, _queued) = (speaker.clone(), speaker.meter.hearing());
        outbox.watch(speaker.meter.begin());
        self.waiting.add(id, outbox.clone());
        let job = HearingJob { id, speaker, model, request, _queued, lease };
        inbox.submit(job).inspect_err(|_| {
            self.waiting.forget(id);
            outbox.unwatch();
        })?;
        Ok((id, events))
    }
}
