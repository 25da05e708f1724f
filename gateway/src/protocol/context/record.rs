//! What of a context is asked for while it speaks and when it is over, by late cancels and reports and by contexts that go on
//! from it: what was said, and what of that was heard. A session keeps many of these, so nothing else is in one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use engine::Speech;

use super::Phase;
use super::stopping::Stop;
use crate::protocol::Handle;
use crate::protocol::alignment::{Alignment, Heard};
use crate::protocol::event::{Cancelled, Freed};
use crate::protocol::pacer::Pacer;

/// What is kept of a context.
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) handle: Handle,
    pub(crate) phase: Phase,
    /// What the client has written.
    pub(crate) text: String,
    pub(crate) pacer: Pacer,
    pub(crate) alignment: Alignment,
    /// Samples that the engine has given.
    pub(super) generated: u64,
    /// Where the running commit begins.
    pub(super) commit_from: u64,
    /// A cancel that waits for the end of a word or a sentence.
    pub(super) stop: Option<Stop>,
    /// Chunks with their ends, from the last one that was heard.
    said: VecDeque<(u64, Arc<Speech>)>,
}

impl Record {
    pub(super) fn new(name: String, handle: Handle, pacer: Pacer) -> Self {
        Self {
            name,
            handle,
            phase: Phase::Open,
            text: String::new(),
            pacer,
            alignment: Alignment::default(),
            generated: 0,
            commit_from: 0,
            stop: None,
            said: VecDeque::new(),
        }
    }

    /// A chunk was said that ends at so many samples; another context may go on from it.
    pub(crate) fn remember(&mut self, said: Arc<Speech>, end: u64, now: Duration) {
        self.said.push_back((end, said));
        self.forget_heard(now);
    }

    /// Forgets what no context can go on from: even if this one was cancelled at that time, none before the last chunk heard
    /// is of use.
    pub(crate) fn forget_heard(&mut self, at: Duration) {
        let heard = self.pacer.clock().samples(self.pacer.heard(at));
        while self.said.get(1).is_some_and(|(end, _)| *end <= heard) {
            self.said.pop_front();
        }
    }

    /// The last chunk; of a context that was cancelled the last one that was heard whole.
    pub(crate) fn last_said(&self) -> Option<Arc<Speech>> {
        let heard = match &self.phase {
            Phase::Cancelled(answer) => self.pacer.clock().samples(answer.played),
            Phase::Open | Phase::Ended | Phase::Done => u64::MAX,
        };
        let (_, said) = self.said.iter().rev().find(|(end, _)| *end <= heard)?;
        Some(said.clone())
    }

    /// It is over: gives back what was reserved for more.
    pub(super) fn settle(&mut self) {
        if matches!(self.phase, Phase::Cancelled(_)) {
            // What was heard is in the answer.
            self.text = String::new();
            self.alignment = Alignment::default();
        }
        self.text.shrink_to_fit();
        self.said.shrink_to_fit();
        self.alignment.shrink_to_fit();
    }

    /// The answer to a cancel. A context that was cancelled before is told about again.
    pub(crate) fn cancel(&mut self, reason: &'static str, now: Duration) -> &Cancelled {
        if let Phase::Cancelled(answer) = &mut self.phase {
            answer.late = true;
        } else {
            let answer = Box::new(self.account(reason, now));
            self.phase = Phase::Cancelled(answer);
        }
        let Phase::Cancelled(answer) = &self.phase else { unreachable!("just set") };
        answer
    }

    /// What a cancelled context held, now that the engine has said it.
    pub(crate) fn freed(&mut self, freed: Freed) {
        if let Phase::Cancelled(answer) = &mut self.phase {
            answer.freed = freed;
        }
    }

    fn account(&self, reason: &'static str, now: Duration) -> Cancelled {
        let clock = self.pacer.clock();
        let late = self.phase == Phase::Done;
        let generated = clock.position(self.generated);
        // The padding of the last packet is no sound of the context.
        let sent = self.pacer.sent().min(generated);
        // A polite listener goes on to the place where the cancel stops.
        let played = self.stop_position().unwrap_or(0).max(self.pacer.heard(now)).min(sent);
        let heard = self.alignment.heard(&self.text, clock.samples(played), self.generated);
        let dropped = if late { 0 } else { generated - sent };
        Cancelled {
            ctx: self.name.clone(),
            late,
            reason,
            generated,
            sent,
            played,
            exact: self.pacer.reported().is_some() && played <= self.commit_from,
            heard,
            dropped_ms: clock.millis(dropped),
            freed: Freed::default(),
        }
    }
}

/// The answer to a cancel of a context that nobody knows.
pub(crate) fn unknown(name: String) -> Cancelled {
    Cancelled {
        ctx: name,
        late: false,
        reason: "unknown",
        generated: 0,
        sent: 0,
        played: 0,
        exact: false,
        heard: Heard::nothing(),
        dropped_ms: 0,
        freed: Freed::default(),
    }
}
