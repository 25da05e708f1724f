//! How much a second of sound costs, measured, and whether one more listener can be kept supplied. Pure.

use std::time::Duration;

use crate::pipeline::sounding;

/// Sound that must have been made before the measure means something.
const LEAST_AUDIO: Duration = Duration::from_secs(10);
/// Work beyond which older work counts half: the measure follows the load within some seconds.
const WINDOW: Duration = Duration::from_secs(5);
/// Share of the step thread's time that listeners may need; the rest is for bursts of first chunks.
const FULL: f64 = 0.85;

/// Time spent in steps against sound made, lately.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Load {
    busy: Duration,
    audio: Duration,
}

impl Load {
    /// Takes note of time spent for the sake of sound, and of the samples that the codes made in it sound.
    pub(crate) fn ran(&mut self, busy: Duration, samples: u64) {
        self.busy += busy;
        self.audio += sounding(samples);
        if self.busy > WINDOW {
            self.busy /= 2;
            self.audio /= 2;
        }
    }

    /// Time that a second of sound costs; zero until it has been measured.
    pub(crate) fn cost(&self) -> Duration {
        if self.audio < LEAST_AUDIO {
            return Duration::ZERO;
        }
        self.busy.div_f64(self.audio.as_secs_f64())
    }
}

/// Whether so many listeners, each hearing a second a second, can be supplied at this cost.
pub(crate) fn holds(listeners: u64, cost: Duration) -> bool {
    listeners as f64 * cost.as_secs_f64() <= FULL
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::SAMPLE_RATE;

    #[test]
    fn cost_is_work_against_sound_and_follows_a_change() {
        let mut load = Load::default();
        load.ran(Duration::from_millis(10), 8 * SAMPLE_RATE);
        assert_eq!(load.cost(), Duration::ZERO, "8 s are not enough");
        let mut load = Load::default();
        (0..100).for_each(|_| load.ran(Duration::from_millis(20), 2 * SAMPLE_RATE));
        assert_eq!(load.cost().as_millis(), 10);
        (0..500).for_each(|_| load.ran(Duration::from_millis(200), 2 * SAMPLE_RATE));
        assert!((98..=100).contains(&load.cost().as_millis()));
    }

    #[test]
    fn as_many_listeners_are_held_as_the_time_allows() {
        let cost = Duration::from_millis(20);
        assert!(holds(42, cost) && !holds(43, cost));
        assert!(holds(10_000, Duration::ZERO), "nothing is known yet");
    }
}
