//! The hearing thread.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use super::inbox::{Sound, Todo};
use super::{Ear, HearingError, Inbox, Lease, Progress, Waiting};
use crate::answer::{Part, Request, Settings, Speaker};
use crate::engine::Opening;
use crate::event::{Event, Failure};
use crate::meter::Queued;
use crate::voices::SharedEar;
use crate::worker::Command;
use crate::{ContextId, Error};

/// An answer whose recordings are still to be heard.
pub(crate) struct HearingJob {
    pub(crate) id: ContextId,
    pub(crate) speaker: Arc<Speaker>,
    /// Its place among the models that answer.
    pub(crate) model: usize,
    pub(crate) request: Request,
    /// Counted as long as it waits.
    pub(crate) _queued: Queued,
    /// The place of those that come in while they are made.
    pub(crate) lease: Option<Lease>,
}

/// The hearing thread: ears of all models that answer, in their order.
pub(crate) struct Side {
    pub(crate) ears: Vec<Option<SharedEar>>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) waiting: Arc<Waiting>,
    pub(crate) commands: SyncSender<Command>,
}

impl Side {
    /// Runs until nobody can ask any more.
    pub(crate) fn run(self, now: impl Fn() -> Duration) {
        while let Some(todo) = self.inbox.next(&now) {
            match todo {
                Todo::Whole(job) => self.whole(*job),
                Todo::Live(sound) => self.live(sound),
                Todo::Abandoned(id, idle) => {
                    let idle = idle.as_secs_f64();
                    self.tell(id, Err(format!("nothing came for {idle} s (hearing.idle_s)")));
                }
            }
        }
    }

    /// Hears the recordings of a request that are there.
    fn whole(&self, job: HearingJob) {
        let HearingJob { id, speaker, model, request, _queued, lease } = job;
        if !self.waiting.wants(id) {
            return;
        }
        match self.hear(&speaker, model, request) {
            Ok((mut settings, request)) => self.waiting.end(id, |outbox| {
                if settings.growing {
                    let progress = Progress::new(speaker, model, request);
                    self.inbox.put_back(id, Box::new(progress));
                }
                settings.lease = lease;
                let stream = settings.stream();
                let opening = Opening::Answer(Box::new(settings));
                // An engine that goes down has cut the outbox off, or the reader sees that it has no end.
                let _ = self.commands.send(Command::Open { id, opening, stream, outbox });
            }),
            Err(failure) => self.waiting.end(id, |outbox| {
                outbox.cut_off(Event::Failed(failure));
            }),
        }
    }

    /// Hears the recordings of a request, and checks it as one without them. Also gives it back with what was heard.
    fn hear(
        &self,
        speaker: &Arc<Speaker>,
        model: usize,
        mut request: Request,
    ) -> Result<(Settings, Request), Failure> {
        let mut ear = self.ear(model).map_err(Failure::Hearing)?;
        for part in request.messages.iter_mut().flat_map(|message| &mut message.parts) {
            if let Part::Audio(samples) = part {
                *part = ear.hear(samples).map_err(|error| match error {
                    HearingError::Load(_) => Failure::Model(error.to_string()),
                    error => Failure::Hearing(error.to_string()),
                })?;
            }
        }
        let settings = speaker.resolve(request.clone());
        let settings = settings.map_err(|error: Error| Failure::Hearing(error.to_string()))?;
        Ok((settings, request))
    }

    /// Goes on with a recording that comes in.
    fn live(&self, sound: Sound) {
        let Sound { id, recording, samples, ended, mut progress } = sound;
        let ear = self.ear(progress.model);
        let heard = ear.and_then(|mut ear| progress.hear(&mut ear, recording, &samples, ended));
        let failed = heard.is_err();
        if let Some(heard) = heard.transpose() {
            self.tell(id, heard);
        }
        match failed {
            true => self.inbox.forget(id),
            false => self.inbox.put_back(id, progress),
        }
    }

    fn ear(&self, model: usize) -> Result<MutexGuard<'_, Ear>, String> {
        let ear = self.ears.get(model).and_then(Option::as_ref);
        let ear = ear.ok_or_else(|| "this model does not hear".to_owned())?;
        // What an ear has loaded is whole, whoever panicked.
        Ok(ear.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells the step thread what is known of a context.
    fn tell(&self, id: ContextId, heard: Result<Settings, String>) {
        let heard = heard.map(Box::new).map_err(Failure::Hearing);
        // An engine that goes down cancels all that it has.
        let _ = self.commands.send(Command::Heard { id, heard });
    }
}
