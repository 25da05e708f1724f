//! One loop, three calls: schedule, run, apply. Owns the contexts, the scheduler and the networks; knows no thread, no clock
//! and no channel, so that a test can run it on invented time.
//!
//! Which bundle a stage belongs to is nothing to a step: contexts of all bundles share scheduler, order of work and budget.

mod context;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rayon::ThreadPool;

use crate::block_manager::BlockCounts;
use crate::event::{Failure, Summary};
use crate::load::Lane;
use crate::pipeline::{self, AudioJob, Env, Said};
use crate::runner::{self, ForwardError, StageModel};
use crate::scheduler::{Budget, Scheduled, Scheduler};
use crate::sequence::Sequence;
use crate::stats::Tally;
use crate::{ContextId, answer};
use context::Context;
pub(crate) use context::Opening;

/// What one step did.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Step {
    /// Tokens that ran, all stages together.
    pub(crate) tokens: usize,
    /// When there will be something to do though nothing arrives; `None`: only a command can make work.
    pub(crate) wake_at: Option<Duration>,
    /// What ran for the sake of sound: the share of the step's work, for each lane that had any.
    pub(crate) shares: BTreeMap<Lane, f64>,
}

/// The networks of all bundles, with the scheduler that feeds them and the contexts they speak for.
pub(crate) struct Engine {
    models: Vec<Box<dyn StageModel>>,
    scheduler: Scheduler,
    contexts: BTreeMap<ContextId, Context>,
    jobs: VecDeque<AudioJob>,
    logits: Vec<Vec<f32>>,
    pool: Option<Arc<ThreadPool>>,
    tally: Tally,
}

impl Engine {
    /// An engine with `blocks[i]` blocks for stage i.
    pub(crate) fn new(
        mut models: Vec<Box<dyn StageModel>>,
        blocks: &[usize],
        budget: Budget,
        pool: Option<Arc<ThreadPool>>,
    ) -> Self {
        for (model, &blocks) in models.iter_mut().zip(blocks) {
            model.reserve(blocks);
        }
        let (logits, tally) = (vec![Vec::new(); models.len()], Tally::new(models.len()));
        Self {
            models,
            scheduler: Scheduler::new(blocks, budget),
            contexts: BTreeMap::new(),
            jobs: VecDeque::new(),
            logits,
            pool,
            tally,
        }
    }

    /// Takes in a context.
    pub(crate) fn open(&mut self, id: ContextId, opening: Opening) {
        self.contexts.insert(id, Context::new(id, opening));
    }

    /// A context that speaks a text and has not made its last job yet, to do something to it.
    pub(crate) fn voice(&mut self, id: ContextId) -> Option<&mut pipeline::Context> {
        let context = self.contexts.get_mut(&id)?;
        context.rouse();
        context.voice()
    }

    /// The listener of a context has heard so many samples.
    pub(crate) fn played(&mut self, id: ContextId, position: u64, now: Duration) {
        if let Some(context) = self.contexts.get_mut(&id) {
            context.rouse();
            context.played(position, now);
        }
    }

    /// More is known of what a context is to answer.
    pub(crate) fn heard(&mut self, id: ContextId, settings: answer::Settings, now: Duration) {
        let Self { scheduler, jobs, contexts, tally, .. } = self;
        let Some(context) = contexts.get_mut(&id) else { return };
        context.rouse();
        let mut env = Env { now, scheduler, jobs, hits: &mut tally.guards };
        context.heard(settings, &mut env);
    }

    /// Key/value blocks that a context holds.
    pub(crate) fn held_blocks(&self, id: ContextId) -> usize {
        self.contexts.get(&id).map_or(0, |context| context.held_blocks(&self.scheduler))
    }

    /// Ends a context now: its blocks are free and its jobs are gone when this returns. `None`: it was over already.
    pub(crate) fn cancel(&mut self, id: ContextId) -> Option<Summary> {
        self.jobs.retain(|job| job.context != id);
        let mut context = self.contexts.remove(&id)?;
        Some(context.stop(&mut self.scheduler))
    }

    /// The next job for the codec.
    pub(crate) fn next_job(&mut self) -> Option<AudioJob> {
        self.jobs.pop_front()
    }

    /// Contexts that are not complete.
    #[cfg(test)]
    pub(crate) fn contexts(&self) -> usize {
        self.contexts.len()
    }

    /// What was counted and measured so far.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Contexts that are as far ahead of their listeners as they may be.
    pub(crate) fn parked(&self, now: Duration) -> usize {
        self.contexts.values().filter(|context| context.parked(now)).count()
    }

    /// Block counts of each stage.
    pub(crate) fn blocks(&self) -> Vec<BlockCounts> {
        (0..self.models.len()).map(|stage| self.scheduler.blocks(stage)).collect()
    }

    /// The scheduler, to read.
    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// The scheduler, for tests that disturb it.
    #[cfg(test)]
    pub(crate) fn scheduler_mut(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    /// Schedules, runs and applies one batch of each stage. `held_up` names contexts whose reader is too slow.
    pub(crate) fn step(&mut self, now: Duration, held_up: impl Fn(ContextId) -> bool) -> Step {
        self.advance(now, &held_up);
        let contexts = &self.contexts;
        let step = self.scheduler.schedule(|id| {
            contexts.get(&id).filter(|_| !held_up(id)).and_then(|context| context.urgency(now))
        });
        let sequences = |stage| step.iter().filter(move |s| s.stage == stage);
        let sequences = |stage| sequences(stage).map(|s| s.tokens.len()).sum();
        self.tally.ran((0..self.models.len()).map(sequences));
        let (tokens, shares) = self.measure(&step);
        let outcomes = self.run(&step);
        self.apply(now, &step, outcomes);
        self.advance(now, &held_up);
        let wake_at = self.contexts.values().filter_map(|context| context.wake_at(now)).min();
        Step { tokens, wake_at, shares }
    }

    /// Tokens of a step, and what share of its work was for the sound of each lane: what is only written makes none dearer.
    fn measure(&self, step: &[Scheduled]) -> (usize, BTreeMap<Lane, f64>) {
        let (mut tokens, mut all, mut shares) = (0, 0.0, BTreeMap::new());
        for scheduled in step {
            let ran = scheduled.tokens.iter().sum::<usize>();
            let work = ran as f64 * self.models[scheduled.stage].token_work();
            let context = self.scheduler.group(scheduled.group).map(|group| group.context);
            let context = context.and_then(|id| self.contexts.get(&id));
            (tokens, all) = (tokens + ran, all + work);
            if let Some(context) = context.filter(|context| context.sounds()) {
                *shares.entry(context.lane()).or_insert(0.0) += work;
            }
        }
        shares.values_mut().for_each(|work| *work /= all);
        (tokens, shares)
    }

    fn advance(&mut self, now: Duration, held_up: &impl Fn(ContextId) -> bool) {
        let Self { scheduler, jobs, contexts, tally, .. } = self;
        let mut env = Env { now, scheduler, jobs, hits: &mut tally.guards };
        for (&id, context) in contexts.iter_mut() {
            if context.rests(now) || held_up(id) {
                continue;
            }
            let before = (env.jobs.len(), env.scheduler.len());
            context.advance(&mut env);
            // Whatever a context does is a job or a group.
            if before == (env.jobs.len(), env.scheduler.len()) {
                context.rest(now);
            }
        }
        contexts.retain(|_, context| !context.finished());
    }

    /// Forwards of all stages; each fills its own logits.
    fn run(&mut self, step: &[Scheduled]) -> Vec<Result<(), ForwardError>> {
        let Self { models, logits, scheduler, pool, .. } = self;
        let batches = (0..models.len()).map(|stage| scheduler.batch(step, stage)).collect();
        runner::forward_all(models, batches, logits, pool.as_deref())
    }

    /// Gives every completed group its logits. A context that cannot go on fails alone.
    fn apply(
        &mut self,
        now: Duration,
        step: &[Scheduled],
        outcomes: Vec<Result<(), ForwardError>>,
    ) {
        let mut failed: Vec<(ContextId, Failure)> = Vec::new();
        let mut taken = vec![(0, 0); self.models.len()];
        for scheduled in step {
            let Some(group) = self.scheduler.group(scheduled.group) else { continue };
            let (id, stage) = (group.context, scheduled.stage);
            if let Err(error) = &outcomes[stage] {
                failed.push((id, Failure::Model(error.to_string())));
                continue;
            }
            let outputs = |member: &Sequence| self.models[stage].outputs(member.narrow);
            let (length, watched) =
                (group.members.iter().map(outputs).sum::<usize>(), group.watched());
            self.scheduler.ran(scheduled);
            let Self { scheduler, jobs, contexts, logits, models, tally, .. } = self;
            let context =
                contexts.get_mut(&id).expect("groups of a context go with it; this is a bug");
            context.rouse();
            if let Some(queued) = context.ran(now) {
                tally.queue_seconds.observe(queued.as_secs_f64());
            }
            if !scheduled.completes {
                continue;
            }
            let (row, seen) = taken[stage];
            taken[stage] = (row + length, seen + watched);
            let said = Said {
                logits: &mut logits[stage][row..row + length],
                attention: models[stage].attention().get(seen..seen + watched).unwrap_or(&[]),
            };
            let mut env = Env { now, scheduler, jobs, hits: &mut tally.guards };
            if let Err(failure) = context.on_logits(scheduled.group, said, &mut env) {
                failed.push((id, failure));
            }
        }
        failed.into_iter().for_each(|(id, failure)| self.fail(id, failure));
    }

    /// Ends a context that cannot go on: its blocks are free when this returns, and its last job tells why.
    pub(crate) fn fail(&mut self, id: ContextId, failure: Failure) {
        if let Some(mut context) = self.contexts.remove(&id) {
            context.stop(&mut self.scheduler);
            self.jobs.push_back(context.failed(failure));
        }
    }
}

#[cfg(test)]
mod tests;
