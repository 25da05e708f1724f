//! How far a context is ahead of its listener, and whether the next packet may go.
//!
//! ```text
//! 0 ........ heard ............... sent ........ heard + max_ahead
//!            (reported, or the clock since the packets went out)
//! ```

use std::time::Duration;

use super::format::Clock;

/// A context that was held goes on once it has fallen so far below its bound, so that it does not stop at every packet.
const SLACK: Duration = Duration::from_millis(500);

/// Play-out of one context. Positions are on its media clock.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    clock: Clock,
    max_ahead: Duration,
    sent: u64,
    reported: Option<u64>,
    /// When a listener who plays packets as they come runs dry.
    dry_at: Option<Duration>,
    held: bool,
}

/// Whether a packet may go now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Yes.
    Go,
    /// Not before this moment.
    At(Duration),
    /// Not before the listener reports more.
    Report,
}

impl Pacer {
    pub(crate) fn new(clock: Clock, max_ahead: Duration) -> Self {
        Self { clock, max_ahead, sent: 0, reported: None, dry_at: None, held: false }
    }

    /// The media clock that positions are on.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// A packet of this length goes out.
    pub(crate) fn send(&mut self, duration: u64, now: Duration) {
        self.sent += duration;
        let from = self.dry_at.map_or(now, |at| at.max(now));
        self.dry_at = Some(from + self.sounding(duration));
    }

    /// The listener says how far it is; more than was sent counts as all of it. Returns whether that was too much.
    pub(crate) fn report(&mut self, position: u64) -> bool {
        let known = self.reported.unwrap_or(0);
        self.reported = Some(known.max(position.min(self.sent)));
        position > self.sent
    }

    /// End of what was sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// What the listener has reported.
    pub(crate) fn reported(&self) -> Option<u64> {
        self.reported
    }

    /// How far the listener is: as reported, or else as the clock says.
    pub(crate) fn heard(&self, now: Duration) -> u64 {
        self.reported.unwrap_or_else(|| {
            let left = self.dry_at.unwrap_or_default().saturating_sub(now);
            self.sent.saturating_sub(self.ticks(left))
        })
    }

    /// Sound that was sent and not heard.
    pub(crate) fn ahead(&self, now: Duration) -> Duration {
        self.sounding(self.sent - self.heard(now))
    }

    /// Whether everything sent was heard, by the report or by the clock, whichever is earlier: a client that plays
    /// nothing and reports nothing must not keep a session alive for ever.
    pub(crate) fn played_out(&self, now: Duration) -> bool {
        self.reported == Some(self.sent) || self.dry_at.is_none_or(|at| at <= now)
    }

    /// When [`Pacer::played_out`] comes true by itself.
    pub(crate) fn dry_at(&self) -> Option<Duration> {
        self.dry_at
    }

    /// Whether the next packet may go. Also returns whether that is news.
    pub(crate) fn leave(&mut self, now: Duration) -> (Leave, bool) {
        let bound = if self.held { self.max_ahead.saturating_sub(SLACK) } else { self.max_ahead };
        let ahead = self.ahead(now);
        let held = ahead >= bound;
        let news = held != self.held;
        self.held = held;
        let leave = match (held, self.reported) {
            (false, _) => Leave::Go,
            (true, Some(_)) => Leave::Report,
            // Just behind the bound: the comparison above rounds to whole samples.
            (true, None) => Leave::At(
                now + ahead.saturating_sub(self.max_ahead.saturating_sub(SLACK))
                    + Duration::from_millis(1),
            ),
        };
        (leave, news)
    }

    /// How long so much sounds.
    pub(crate) fn sounding(&self, duration: u64) -> Duration {
        Duration::from_nanos(duration.saturating_mul(1_000_000_000) / u64::from(self.clock.rate))
    }

    fn ticks(&self, duration: Duration) -> u64 {
        (duration.as_nanos() * u128::from(self.clock.rate) / 1_000_000_000) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Clock = Clock { rate: 48_000, pre_skip: 312 };

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn pacer() -> Pacer {
        Pacer::new(CLOCK, ms(3_000))
    }

    #[test]
    fn without_reports_the_clock_plays() {
        let mut pacer = pacer();
        assert_eq!(pacer.heard(ms(100)), 0);
        pacer.send(48_000, ms(100));
        assert_eq!(pacer.heard(ms(350)), 12_000);
        assert_eq!(pacer.heard(ms(9_000)), 48_000);
        pacer.send(48_000, ms(9_000)); // it had run dry
        assert_eq!(pacer.heard(ms(9_000)), 48_000);
        assert!(!pacer.played_out(ms(9_999)) && pacer.played_out(ms(10_000)));
    }

    #[test]
    fn reports_replace_the_clock_and_never_go_back() {
        let mut pacer = pacer();
        pacer.send(48_000, ms(0));
        assert!(!pacer.report(24_000));
        assert!(!pacer.report(12_000));
        assert_eq!(pacer.heard(ms(9_000)), 24_000);
        assert!(pacer.report(48_001));
        assert_eq!(pacer.heard(ms(0)), 48_000);
    }

    #[test]
    fn a_context_far_ahead_waits_for_its_listener() {
        let mut pacer = pacer();
        let mut sent_at_once = 0;
        while pacer.leave(ms(0)).0 == Leave::Go {
            pacer.send(960, ms(0));
            sent_at_once += 1;
        }
        assert_eq!(sent_at_once, 150);
        assert_eq!(pacer.leave(ms(0)), (Leave::At(ms(501)), false));
        assert_eq!(pacer.leave(ms(501)), (Leave::Go, true));
        pacer.report(0);
        assert_eq!(pacer.leave(ms(700)), (Leave::Report, true));
        pacer.report(48_000);
        assert_eq!(pacer.leave(ms(700)), (Leave::Go, true));
    }
}
