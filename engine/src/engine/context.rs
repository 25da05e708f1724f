//! The kinds of contexts there are, behind what a step asks of any of them.

use std::time::Duration;

use crate::event::{Failure, Summary};
use crate::hearing::Lease;
use crate::load::Lane;
use crate::pipeline::{self, AudioJob, Env, Said, Settings, Source, Urgency};
use crate::scheduler::Scheduler;
use crate::sequence::GroupId;
use crate::{ContextId, answer, text};

/// What a context is to be, checked.
pub(crate) enum Opening {
    /// It speaks a text.
    Voice(Box<Settings>, Source),
    /// It answers a request.
    Answer(Box<answer::Settings>),
}

/// A context that is not over.
pub(super) struct Context {
    kind: Kind,
    /// How its sound is made.
    lane: Lane,
    /// Until when there is nothing to do, if that is known.
    rest: Option<Duration>,
}

enum Kind {
    Voice(Box<pipeline::Context>),
    Answer(Box<answer::Context>),
}

/// Calls the same method of whatever kind it is.
macro_rules! either {
    ($kind:expr, $context:ident => $call:expr) => {
        match $kind {
            Kind::Voice($context) => $call,
            Kind::Answer($context) => $call,
        }
    };
}

impl Opening {
    /// The context speaks these chunks of its text instead.
    pub(crate) fn say(&mut self, said: Vec<text::Chunk>) {
        if let Self::Voice(_, Source::Whole { chunks, .. }) = self {
            *chunks = said.into();
        }
    }

    /// Keeps the place of its recordings that come in.
    pub(crate) fn leases(&mut self, lease: Lease) {
        if let Self::Answer(settings) = self {
            settings.lease = Some(lease);
        }
    }

    /// Told when the context is opened.
    pub(crate) fn opened_at(&mut self, now: Duration) {
        let standing = match self {
            Self::Voice(settings, _) => &mut settings.standing,
            Self::Answer(settings) => &mut settings.standing,
        };
        standing.opened_at = now;
    }

    /// How its sound is made.
    pub(crate) fn lane(&self) -> Lane {
        match self {
            Self::Voice(settings, _) => settings.lane(),
            Self::Answer(settings) => settings.lane(),
        }
    }

    /// Whether somebody listens in real time.
    pub(crate) fn listens(&self) -> bool {
        let standing = match self {
            Self::Voice(settings, _) => settings.standing,
            // Nobody listens to what is only written.
            Self::Answer(settings) if !settings.sounds() => return false,
            Self::Answer(settings) => settings.standing,
        };
        standing.max_ahead.is_some()
    }
}

impl Context {
    pub(super) fn new(id: ContextId, opening: Opening) -> Self {
        let lane = opening.lane();
        let kind = match opening {
            Opening::Voice(settings, source) => {
                Kind::Voice(Box::new(pipeline::Context::new(id, *settings, source)))
            }
            Opening::Answer(settings) => {
                Kind::Answer(Box::new(answer::Context::new(id, *settings)))
            }
        };
        Self { kind, lane, rest: None }
    }

    /// The context, if it is one that speaks a text.
    pub(super) fn voice(&mut self) -> Option<&mut pipeline::Context> {
        match &mut self.kind {
            Kind::Voice(context) => Some(context),
            Kind::Answer(_) => None,
        }
    }

    /// How its sound is made.
    pub(super) fn lane(&self) -> Lane {
        self.lane
    }

    /// Whether sound is what its work is for.
    pub(super) fn sounds(&self) -> bool {
        match &self.kind {
            Kind::Voice(_) => true,
            Kind::Answer(context) => context.sounds(),
        }
    }

    /// More is known of what it is to answer.
    pub(super) fn heard(&mut self, settings: answer::Settings, env: &mut Env<'_>) {
        match &mut self.kind {
            Kind::Voice(_) => {}
            Kind::Answer(context) => context.heard(settings, env),
        }
    }

    pub(super) fn played(&mut self, position: u64, now: Duration) {
        either!(&mut self.kind, c => c.played(position, now));
    }

    pub(super) fn finished(&self) -> bool {
        either!(&self.kind, c => c.finished())
    }

    /// The place in the order of work, smaller first; `None` when it is far enough ahead of its listener.
    pub(super) fn urgency(&self, now: Duration) -> Option<Urgency> {
        either!(&self.kind, c => c.urgency(now))
    }

    pub(super) fn parked(&self, now: Duration) -> bool {
        either!(&self.kind, c => c.parked(now))
    }

    /// Told when tokens of the context have run. Returns how long it had waited for that, once.
    pub(super) fn ran(&mut self, now: Duration) -> Option<Duration> {
        either!(&mut self.kind, c => c.ran(now))
    }

    pub(super) fn held_blocks(&self, scheduler: &Scheduler) -> usize {
        either!(&self.kind, c => c.held_blocks(scheduler))
    }

    /// Ends the context: its groups are removed and their blocks are free when this returns.
    pub(super) fn stop(&mut self, scheduler: &mut Scheduler) -> Summary {
        either!(&mut self.kind, c => c.stop(scheduler))
    }

    /// The last job of a context that cannot go on.
    pub(super) fn failed(&self, failure: Failure) -> AudioJob {
        either!(&self.kind, c => c.failed(failure))
    }

    /// Starts whatever can start.
    pub(super) fn advance(&mut self, env: &mut Env<'_>) {
        either!(&mut self.kind, c => c.advance(env));
    }

    /// Takes what the networks said to a group that completed its step.
    ///
    /// # Errors
    /// The context cannot go on.
    pub(super) fn on_logits(
        &mut self,
        group: GroupId,
        said: Said<'_>,
        env: &mut Env<'_>,
    ) -> Result<(), Failure> {
        match &mut self.kind {
            Kind::Voice(context) => context.on_logits(group, said, env),
            Kind::Answer(context) => context.on_logits(said.logits, env),
        }
    }

    /// Whether there is nothing to do before a moment that has not come, unless something happens to the context.
    pub(super) fn rests(&self, now: Duration) -> bool {
        self.rest.is_some_and(|until| until > now)
    }

    /// Told when the context was advanced and found nothing to do: it need not be looked at before there will be.
    pub(super) fn rest(&mut self, now: Duration) {
        self.rest = Some(self.wake_at(now).unwrap_or(Duration::MAX));
    }

    /// Told when anything happens to the context.
    pub(super) fn rouse(&mut self) {
        self.rest = None;
    }

    /// When time alone gives the context something to do that it did not have now.
    pub(super) fn wake_at(&self, now: Duration) -> Option<Duration> {
        match self.rest {
            Some(until) if until > now => Some(until).filter(|&at| at < Duration::MAX),
            _ => either!(&self.kind, c => c.due_after(now)),
        }
    }
}
