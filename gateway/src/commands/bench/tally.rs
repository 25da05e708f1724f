//! What all turns came to. Knows no clock and no connection.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::turn::Turn;

/// Longest time that is told from a longer one.
const MOST: Duration = Duration::from_secs(3_600);
/// Digits to which times are told apart.
const DIGITS: u8 = 3;

/// Times, of which shares below a limit are wanted.
#[derive(Debug, Clone)]
pub(super) struct Times(Histogram<u64>);

impl Times {
    fn new() -> Self {
        let most = MOST.as_micros() as u64;
        let times = Histogram::new_with_max(most, DIGITS);
        Self(
            times.expect("an hour of microseconds to three digits is within bounds; this is a bug"),
        )
    }

    fn add(&mut self, time: Duration) {
        self.0.saturating_record(time.as_micros().min(MOST.as_micros()) as u64);
    }

    /// The time in milliseconds that so many of a hundred keep below; none of none.
    pub(super) fn percentile_ms(&self, percent: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_percentile(percent) as f64 / 1e3)
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// All of it was said, and heard.
    Whole,
    /// It was interrupted, and the server took so long to say that it had stopped.
    Interrupted(Duration),
    /// The caller broke the connection off.
    BrokenOff,
    /// The caller slept through a part of it, so its times say nothing of the server.
    Slept,
    /// It went wrong.
    Failed(String),
}

/// Sums over all turns that have ended.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    pub(super) turns: u64,
    pub(super) interrupted: u64,
    pub(super) broken_off: u64,
    pub(super) slept: u64,
    pub(super) failed: u64,
    /// Why turns failed, and how many.
    pub(super) failures: BTreeMap<String, u64>,
    /// Of turns that a model answered.
    pub(super) first_text: Times,
    pub(super) first_audio: Times,
    pub(super) late: Times,
    pub(super) cancel: Times,
    pub(super) real_time_factors: Times,
    pub(super) underruns: u64,
    pub(super) dry: Duration,
    pub(super) continuity_errors: u64,
    pub(super) audio_after_cancel: u64,
    pub(super) audio: Duration,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            turns: 0,
            interrupted: 0,
            broken_off: 0,
            slept: 0,
            failed: 0,
            failures: BTreeMap::new(),
            first_text: Times::new(),
            first_audio: Times::new(),
            late: Times::new(),
            cancel: Times::new(),
            real_time_factors: Times::new(),
            underruns: 0,
            dry: Duration::ZERO,
            continuity_errors: 0,
            audio_after_cancel: 0,
            audio: Duration::ZERO,
        }
    }

    /// A turn has ended.
    pub(super) fn add(&mut self, turn: &Turn, end: End) {
        self.turns += 1;
        self.continuity_errors += turn.gaps();
        self.audio += turn.received();
        match end {
            End::Whole => {
                if let Some(factor) = turn.real_time_factor() {
                    self.real_time_factors.add(Duration::from_secs_f64(factor));
                }
            }
            End::Interrupted(took) => {
                self.interrupted += 1;
                self.cancel.add(took);
            }
            End::BrokenOff => self.broken_off += 1,
            End::Slept => {
                self.slept += 1;
                return;
            }
            End::Failed(why) => {
                self.failed += 1;
                *self.failures.entry(why).or_default() += 1;
                return;
            }
        }
        if let Some(first) = turn.first_written() {
            self.first_text.add(first);
        }
        if let Some(first) = turn.first_audio() {
            self.first_audio.add(first);
        }
        for &late in turn.late() {
            self.late.add(late);
        }
        self.underruns += u64::from(!turn.dry().is_zero());
        self.dry += turn.dry();
    }

    /// Share of real time that a turn took, typically.
    pub(super) fn real_time_factor(&self) -> Option<f64> {
        self.real_time_factors.percentile_ms(50.0).map(|ms| ms / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::super::turn::Sound;
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A second of sound whose second half comes late.
    fn turn(late: Duration) -> Turn {
        let mut turn = Turn::new(ms(40));
        turn.text(ms(0));
        turn.sound(Sound { seq: 0, count: 25, from: ms(0), to: ms(500) }, ms(100));
        turn.sound(Sound { seq: 25, count: 25, from: ms(500), to: ms(1_000) }, ms(600) + late);
        turn
    }

    /// Times are kept to three digits, and the upper end of what cannot be told apart is given.
    fn is_close(times: &Times, ms: f64) -> bool {
        let all = times.percentile_ms(100.0);
        all.is_some_and(|all| (ms..ms * 1.001).contains(&all))
    }

    #[test]
    fn turns_that_ran_dry_are_counted_once_each() {
        let mut tally = Tally::new();
        tally.add(&turn(ms(0)), End::Whole);
        tally.add(&turn(ms(240)), End::Whole);
        assert_eq!((tally.turns, tally.underruns, tally.dry), (2, 1, ms(200)));
        assert_eq!(tally.audio, ms(2_000));
        assert!(is_close(&tally.first_audio, 100.0));
    }

    #[test]
    fn turns_that_say_nothing_of_the_server_leave_no_times() {
        let mut tally = Tally::new();
        tally.add(&turn(ms(900)), End::Slept);
        tally.add(&turn(ms(900)), End::Failed("closed".into()));
        assert_eq!((tally.turns, tally.slept, tally.failed, tally.underruns), (2, 1, 1, 0));
        assert_eq!(tally.first_audio.percentile_ms(50.0), None);
        assert_eq!(tally.failures["closed"], 1);
    }

    #[test]
    fn the_answer_to_an_interruption_is_timed() {
        let mut tally = Tally::new();
        tally.add(&turn(ms(0)), End::Interrupted(ms(3)));
        assert!(tally.interrupted == 1 && is_close(&tally.cancel, 3.0));
        assert_eq!(tally.real_time_factor(), None);
    }
}
