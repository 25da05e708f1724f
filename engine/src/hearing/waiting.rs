//! Answers that cannot begin yet, so that they can be cancelled meanwhile.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ContextId;
use crate::event::{Event, Outbox, Summary};

/// The answers that wait, with where their events go.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<BTreeMap<ContextId, Outbox>>);

impl Waiting {
    /// One more waits.
    pub(crate) fn add(&self, id: ContextId, outbox: Outbox) {
        self.lock().insert(id, outbox);
    }

    /// It waits no longer, and nobody is told.
    pub(crate) fn forget(&self, id: ContextId) {
        self.lock().remove(&id);
    }

    /// Stops one that waits. Returns whether it did.
    pub(crate) fn cancel(&self, id: ContextId) -> bool {
        let stopped = self.lock().remove(&id);
        stopped.is_some_and(|outbox| {
            outbox.cut_off(Event::Cancelled(Summary::default()));
            true
        })
    }

    /// Stops all.
    pub(crate) fn cancel_all(&self) {
        let stopped = std::mem::take(&mut *self.lock());
        stopped.values().for_each(|outbox| outbox.cut_off(Event::Cancelled(Summary::default())));
    }

    /// Whether somebody still waits for it.
    pub(crate) fn wants(&self, id: ContextId) -> bool {
        let mut waiting = self.lock();
        waiting.retain(|_, outbox| !outbox.reader_gone());
        waiting.contains_key(&id)
    }

    /// Ends the wait of one, if it was not cancelled. The lock is held meanwhile, so that a cancel comes before or after.
    pub(crate) fn end(&self, id: ContextId, then: impl FnOnce(Outbox)) {
        let mut waiting = self.lock();
        if let Some(outbox) = waiting.remove(&id) {
            then(outbox);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ContextId, Outbox>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
