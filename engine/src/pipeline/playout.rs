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
