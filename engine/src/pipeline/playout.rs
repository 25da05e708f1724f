//! When a listener runs dry. Time is an argument, a duration since the engine's origin.

use std::time::Duration;

/// Samples of one second of engine audio.
pub const SAMPLE_RATE: u64 = 24_000;

/// How long a number of samples sounds.
pub fn sounding(samples: u64) -> Duration {
    Duration::from_nanos(samples.saturating_mul(1_000_000_000) / SAMPLE_RATE)
}

/// The listener of one context: hears what was released from the moment it was released, or says itself how far it is.
#[derive(Debug, Clone, Default)]
pub struct Playout {
    released: u64,
    dry_at: Option<Duration>,
}

impl Playout {
    /// More samples go out. A listener that had run dry starts again now.
    pub fn released(&mut self, samples: u64, now: Duration) {
        if samples == 0 {
            return;
        }
        self.released += samples;
        let from = self.dry_at.map_or(now, |at| at.max(now));
        self.dry_at = Some(from + sounding(samples));
    }

    /// The listener says that it has heard `position` samples; more than was released counts as all of it.
    pub fn played(&mut self, position: u64, now: Duration) {
        if self.dry_at.is_some() {
            self.dry_at = Some(now + sounding(self.released.saturating_sub(position)));
        }
    }

    /// When the listener will have heard everything that was released; `None` before the first release.
    pub fn dry_at(&self) -> Option<Duration> {
        self.dry_at
    }

    /// How much sound the listener still has in hand.
    pub fn ahead(&self, now: Duration) -> Duration {
        self.dry_at.unwrap_or_default().saturating_sub(now)
    }
}

/// A context's place among those that want to be served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    /// When the context was opened: the order of contexts without first audio.
    pub(crate) opened_at: Duration,
    /// 9 most urgent; orders contexts without first audio.
    pub(crate) priority: u8,
    /// How far it may run ahead of its listener; `None`: nobody listens in real time.
    pub(crate) max_ahead: Option<Duration>,
}

/// The order of work, smaller first.
pub(crate) type Urgency = (u8, u8, Duration);

impl Standing {
    /// Of a context that will be opened, for a listener that it may be so far ahead of.
    pub(crate) fn new(priority: u8, max_ahead: Option<Duration>) -> Self {
        Self { opened_at: Duration::ZERO, priority: priority.min(9), max_ahead }
    }

    /// Before everybody who has been served: by priority, then by age.
    pub(crate) fn unserved(&self) -> Urgency {
        (0, u8::MAX - self.priority, self.opened_at)
    }

    /// Behind everybody else, by age: nobody waits for a question that is still being put.
    pub(crate) fn listening(&self) -> Urgency {
        (2, 0, self.opened_at)
    }

    /// Among those that have been served, by when the next is due.
    pub(crate) fn due(at: Duration) -> Urgency {
        (1, 0, at)
    }

    /// The place in the order of work; `None` when the listener has enough in hand.
    pub(crate) fn urgency(&self, playout: &Playout, now: Duration) -> Option<Urgency> {
        match playout.dry_at() {
            None => Some(self.unserved()),
            Some(_) if self.parked(playout, now) => None,
            Some(dry_at) => Some(Self::due(dry_at)),
        }
    }

    /// Whether the listener has as much sound in hand as the context may run ahead.
    pub(crate) fn parked(&self, playout: &Playout, now: Duration) -> bool {
        self.max_ahead.is_some_and(|limit| playout.ahead(now) > limit)
    }

    /// When it is parked no longer, should nothing happen.
    pub(crate) fn unparked_at(&self, playout: &Playout) -> Option<Duration> {
        playout.dry_at().zip(self.max_ahead).map(|(dry, ahead)| dry.saturating_sub(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn releases_add_up_and_a_dry_listener_starts_again() {
        let mut p = Playout::default();
        assert_eq!((p.dry_at(), p.ahead(ms(5))), (None, ms(0)));
        p.released(24_000, ms(100));
        p.released(12_000, ms(300));
        assert_eq!(p.dry_at(), Some(ms(1600)));
        p.released(2_400, ms(2000));
        assert_eq!(p.dry_at(), Some(ms(2100)));
        assert_eq!(p.ahead(ms(2040)), ms(60));
    }

    #[test]
    fn a_report_replaces_the_clock() {
        let mut p = Playout::default();
        p.played(0, ms(0));
        p.released(48_000, ms(0));
        p.played(12_000, ms(1000));
        assert_eq!(p.dry_at(), Some(ms(2500)));
        p.played(1_000_000, ms(1100));
        assert_eq!(p.ahead(ms(1100)), ms(0));
    }
}
