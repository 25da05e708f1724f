//! One turn of a multi-stream speech model: logits in, and the rows that follow in its group, its text and its frames out.
//!
//! It must never know who runs the group, on which blocks, or what becomes of what is said.
//!
//! ```text
//! group   main       prompt .. text .. marker | rows of the sound ..     what is said goes to every member
//!         companion  nothing  .. nothing  marker | the same rows ..      only while a sound is guided
//! ```
//! The companion joins when a sound begins, as long as the main sequence is and with nothing in all of its rows, so it depends on
//! that length alone: the blocks of one such chain serve every companion there is. It leaves with its sound.

use std::sync::Arc;

use crate::ContextId;
use crate::cfg::merge;
use crate::delay::{Aligner, Hole};
use crate::layout::{NOTHING, StreamIds};
use crate::phase::{Machine, Phase};
use crate::scheduler::Scheduler;
use crate::sequence::{GroupId, Sequence};
use crate::streams::{ChooseError, Manner, Outputs, choose};

/// What a model's turns have in common.
#[derive(Debug, Clone)]
pub struct Model {
    /// Its streams of codes.
    pub streams: Vec<StreamIds>,
    /// What its rows of logits hold.
    pub outputs: Outputs,
}

/// How much the condition counts in the sounds of a turn; 1 is no guidance.
#[derive(Debug, Clone, PartialEq)]
pub struct Guidance {
    /// Of the first sounds, in order.
    of_first: Arc<[f32]>,
    /// Of all others.
    of_others: f32,
}

impl Guidance {
    /// Weights of the first sounds, in order, and that of all others.
    pub fn new(of_first: &[f32], of_others: f32) -> Self {
        Self { of_first: of_first.into(), of_others }
    }

    /// The weight in a sound, counted from 0.
    pub fn weight(&self, sound: usize) -> f32 {
        self.of_first.get(sound).copied().unwrap_or(self.of_others)
    }

    /// Whether no sound is guided.
    pub fn is_none(&self) -> bool {
        self.of_first.iter().chain([&self.of_others]).all(|weight| *weight == 1.0)
    }
}

impl From<f32> for Guidance {
    fn from(weight: f32) -> Self {
        Self::new(&[], weight)
    }
}

/// What came of one step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The row, one id for each stream.
    pub ids: Vec<u32>,
    /// The frame that it completed, one code for each stream.
    pub frame: Option<Vec<u16>>,
    /// Frames that were begun and never finished, told when their sound ends.
    pub lost: usize,
    /// Whether a sound ended with it.
    pub sound_ends: bool,
    /// Whether nothing follows.
    pub done: bool,
}

/// Why a turn cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum TurnError {
    /// A row could not be chosen.
    #[error(transparent)]
    Choose(#[from] ChooseError),
    /// The model left a code out.
    #[error(transparent)]
    Hole(#[from] Hole),
}

/// One turn.
#[derive(Debug)]
pub struct Turn {
    model: Arc<Model>,
    machine: Machine,
    manner: Manner,
    guidance: Guidance,
    /// Sounds that are over: the place of the one under way, or of the next.
    sounds: usize,
    group: GroupId,
    /// Rows of the sound under way.
    aligner: Option<Aligner>,
    /// Counts the rows said: what each draws depends on it.
    step: u64,
}

impl Turn {
    /// Puts a prompt, `[rows, streams]`, into the scheduler, for the stage that runs the model.
    ///
    /// # Panics
    /// When the prompt is empty or not whole rows: that is a bug of the caller.
    pub fn open(
        scheduler: &mut Scheduler,
        (context, stage): (ContextId, usize),
        model: Arc<Model>,
        machine: Machine,
        prompt: &[u32],
        (manner, guidance): (Manner, Guidance),
    ) -> Self {
        let main = Sequence::of_rows(prompt, model.streams.len());
        let group = scheduler.add(context, stage, vec![main]);
        Self::begin(scheduler, group, model, machine, (manner, guidance))
    }

    /// A turn behind a prompt that is in the scheduler already, all of it.
    pub fn begin(
        scheduler: &mut Scheduler,
        group: GroupId,
        model: Arc<Model>,
        machine: Machine,
        (manner, guidance): (Manner, Guidance),
    ) -> Self {
        let streams = model.streams.len();
        let sounds = machine.guided();
        if let Some(group) = scheduler.group(group)
            && sounds
            && guidance.weight(0) != 1.0
        {
            // The prompt's last row is the marker that opens the sound.
            let main = &group.members[0];
            let marker = main.ids.len() - 1;
            let mut rows = vec![NOTHING; marker * streams];
            rows.push(main.ids[marker]);
            rows.extend_from_slice(&main.beside[marker * main.others()..]);
            let id = group.id;
            scheduler.join(id, Sequence::of_rows(&rows, streams));
        }
        scheduler.narrow(group, machine.is_narrow());
        let aligner = sounds.then(|| Aligner::new(streams));
        Self { model, machine, manner, guidance, sounds: 0, group, aligner, step: 0 }
    }

    /// The group that runs it.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// Goes on from the logits of the group's members, a row of outputs each, main first, as the last step left them. What is said
    /// is appended to the group; when nothing follows, the group has no more to run, and the caller removes it.
    ///
    /// # Errors
    /// The turn cannot go on; its group is as it was.
    ///
    /// # Panics
    /// When a member's logits are missing: that is a bug of the caller.
    pub fn advance(
        &mut self,
        scheduler: &mut Scheduler,
        logits: &mut [f32],
    ) -> Result<Said, TurnError> {
        let length = self.model.outputs.len(self.machine.is_narrow());
        let (main, companion) = logits.split_at_mut(length);
        if self.guides() {
            merge(main, companion, self.weight());
        }
        let mut said = Said::default();
        let outputs = &self.model.outputs;
        let needs = |stream| self.aligner.as_ref().is_some_and(|a| a.needs(stream));
        let (machine, ids) = (&mut self.machine, &mut said.ids);
        let row = choose(machine, main, outputs, &self.manner, self.step, needs, ids)?;
        self.step += 1;
        if row.grid {
            said.frame = self.align(&said.ids, &row.streams)?;
        }
        let sounds = self.machine.guided();
        if !sounds && let Some(aligner) = self.aligner.take() {
            (said.sound_ends, said.lost) = (true, aligner.unfinished());
            self.sounds += 1;
        }
        said.done = self.machine.phase() == Phase::Done;
        self.follow(scheduler, sounds);
        if sounds && self.aligner.is_none() {
            self.aligner = Some(Aligner::new(self.model.streams.len()));
        }
        if !said.done {
            scheduler.append_row(self.group, &said.ids);
            scheduler.narrow(self.group, self.machine.is_narrow());
        }
        Ok(said)
    }

    /// What the next row is said in.
    pub fn phase(&self) -> Phase {
        self.machine.phase()
    }

    /// Whether a limit has ended a segment.
    pub fn is_capped(&self) -> bool {
        self.machine.is_capped()
    }

    /// Frames that would be lost, were nothing more said.
    pub fn unfinished(&self) -> usize {
        self.aligner.as_ref().map_or(0, Aligner::unfinished)
    }

    fn guides(&self) -> bool {
        self.weight() != 1.0 && self.machine.guided()
    }

    fn weight(&self) -> f32 {
        self.guidance.weight(self.sounds)
    }

    /// The companion is there while a sound is guided, and at no other time.
    fn follow(&self, scheduler: &mut Scheduler, sounds: bool) {
        let Some(group) = scheduler.group(self.group) else { return };
        let (members, rows) = (group.members.len(), group.members[0].ids.len());
        if sounds && self.weight() != 1.0 && members == 1 {
            let streams = self.model.streams.len();
            scheduler.join(self.group, Sequence::of_rows(&vec![NOTHING; rows * streams], streams));
        } else if !sounds && members > 1 {
            scheduler.leave(self.group);
        }
    }

    fn align(
        &mut self,
        ids: &[u32],
        said: &std::ops::Range<usize>,
    ) -> Result<Option<Vec<u16>>, Hole> {
        let Some(aligner) = &mut self.aligner else { return Ok(None) };
        let cell = |(stream, ids): (usize, &StreamIds), id: u32| {
            (stream == 0 || said.contains(&stream)).then(|| ids.code(id)).flatten()
        };
        let streams = self.model.streams.iter().enumerate();
        let cells: Vec<_> = streams.zip(ids).map(|(stream, &id)| cell(stream, id)).collect();
        let mut frame = Vec::with_capacity(cells.len());
        Ok(aligner.push(&cells, &mut frame)?.then_some(frame))
    }
}

#[cfg(test)]
mod tests;
