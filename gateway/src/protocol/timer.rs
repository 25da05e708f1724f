//! Every deadline of a session, by name.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Handle;

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The first message must have come.
    Start,
    /// No message for so long, and nothing going on.
    Idle,
    /// The next ping goes out.
    Ping,
    /// The answer to it must have come.
    Pong,
    /// The client must have taken something.
    Stall,
    /// The client must have come back.
    Resume,
    /// A drain is over, finished or not.
    Drain,
    /// The client must have answered the close.
    Close,
    /// A context must have got more text.
    ContextIdle(Handle),
    /// A context that was far ahead may send again.
    Pace(Handle),
    /// A context that is over is forgotten.
    Forget(Handle),
}

/// The deadlines that are set; each name at most once.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    at: BTreeMap<Timer, Duration>,
}

impl Timers {
    /// Sets or moves a deadline.
    pub(crate) fn set(&mut self, timer: Timer, at: Duration) {
        self.at.insert(timer, at);
    }

    pub(crate) fn clear(&mut self, timer: Timer) {
        self.at.remove(&timer);
    }

    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.at.contains_key(&timer)
    }

    /// Only these deadlines stay.
    pub(crate) fn keep_only(&mut self, timers: &[Timer]) {
        self.at.retain(|timer, _| timers.contains(timer));
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.at.values().min().copied()
    }

    /// Takes a deadline that has come, the earliest first.
    pub(crate) fn take_due(&mut self, now: Duration) -> Option<Timer> {
        let (&timer, &at) = self.at.iter().min_by_key(|&(timer, at)| (*at, *timer))?;
        (at <= now).then(|| {
            self.at.remove(&timer);
            timer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_come_in_their_order_and_once() {
        let s = Duration::from_secs;
        let mut timers = Timers::default();
        timers.set(Timer::Idle, s(9));
        timers.set(Timer::Pace(7), s(2));
        timers.set(Timer::Idle, s(3));
        timers.set(Timer::Ping, s(5));
        timers.clear(Timer::Ping);
        assert_eq!(timers.next(), Some(s(2)));
        assert_eq!(timers.take_due(s(1)), None);
        assert_eq!(timers.take_due(s(4)), Some(Timer::Pace(7)));
        assert_eq!(timers.take_due(s(4)), Some(Timer::Idle));
        assert_eq!((timers.take_due(s(99)), timers.next()), (None, None));
    }
}
