//! How much a second of sound costs, measured for each way of making it, and whether one more listener can be kept supplied. Pure.
//!
//! ```text
//! steps  --time, by what ran in it--> account of each lane --> cost of a second of its sound
//! listeners of all lanes, each at its lane's cost, and one more  <= what the step thread may be busy
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::pipeline::sounding;

/// Sound that must have been made before the measure means something ...
const LEAST_AUDIO: Duration = Duration::from_secs(10);
/// ... or work, where sound is so dear that there is little of it. Beyond it older work counts half: the measure follows the load
/// within some seconds.
const WINDOW: Duration = Duration::from_secs(5);
/// Sound that work is measured against at least: a frame.
const FRAME: Duration = Duration::from_millis(20);
/// Share of the step thread's time that listeners may need; the rest is for bursts of first chunks.
const FULL: f64 = 0.85;

/// A way of making sound that has a price of its own: a model, alone or with a companion beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    /// The first stage of the model in the engine.
    pub stage: usize,
    /// Whether guidance is on.
    pub guided: bool,
}

/// Who listens to what a lane makes, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// What is spoken of.
    pub lane: Lane,
    /// Contexts with somebody listening in real time.
    pub listeners: u64,
    /// Step time that a second of its sound costs, lately; `None` until it has been measured.
    pub per_second: Option<Duration>,
}

/// Time spent in steps against sound made, lately, of each lane.
#[derive(Debug, Clone, Default)]
pub(crate) struct Load {
    accounts: BTreeMap<Lane, Account>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Account {
    busy: Duration,
    audio: Duration,
    /// Whether there has been enough of it; what is forgotten later takes nothing from that.
    is_measured: bool,
}

impl Load {
    /// Takes note of time spent for the sake of a lane's sound, and of the samples that the codes made in it sound.
    pub(crate) fn ran(&mut self, lane: Lane, busy: Duration, samples: u64) {
        let account = self.accounts.entry(lane).or_default();
        account.busy += busy;
        account.audio += sounding(samples);
        account.is_measured |= account.audio >= LEAST_AUDIO || account.busy > WINDOW;
        if account.busy > WINDOW {
            account.busy /= 2;
            account.audio /= 2;
        }
    }

    /// Time that a second of sound costs, all lanes together; zero until it has been measured.
    pub(crate) fn mean(&self) -> Duration {
        let all = self.accounts.values().filter(|a| a.is_measured);
        all.copied().reduce(|a, b| a.and(b)).map_or(Duration::ZERO, |all| all.cost())
    }

    /// What each lane costs that has listeners or was measured.
    pub(crate) fn costs(&self, listeners: &BTreeMap<Lane, u64>) -> Vec<Cost> {
        let lanes: BTreeSet<&Lane> = self.accounts.keys().chain(listeners.keys()).collect();
        let cost = |&lane: &Lane| Cost {
            lane,
            listeners: listeners.get(&lane).copied().unwrap_or(0),
            per_second: self.accounts.get(&lane).filter(|a| a.is_measured).map(|a| a.cost()),
        };
        lanes.into_iter().map(cost).collect()
    }
}

impl Account {
    fn and(self, other: Self) -> Self {
        let (busy, audio) = (self.busy + other.busy, self.audio + other.audio);
        Self { busy, audio, is_measured: self.is_measured || other.is_measured }
    }

    fn cost(self) -> Duration {
        self.busy.div_f64(self.audio.max(FRAME).as_secs_f64())
    }
}

/// Whether one more listener of a lane, hearing a second a second as all others do, can be supplied. Somebody who would be alone
/// always is: nobody else suffers, and what is dear would never be measured again.
pub(crate) fn holds(costs: &[Cost], more: Lane) -> bool {
    let listeners: u64 = costs.iter().map(|cost| cost.listeners).sum();
    if listeners == 0 {
        return true;
    }
    let needed = |cost: &Cost| cost.listeners as f64 * price(costs, cost.lane);
    costs.iter().map(needed).sum::<f64>() + price(costs, more) <= FULL
}

/// Seconds of steps that a second of a lane's sound costs; of one that was not measured what is known of the same model, at worst:
/// a companion costs no more than what it accompanies. Nothing, where nothing is known.
fn price(costs: &[Cost], lane: Lane) -> f64 {
    let measured = |lane: Lane| costs.iter().find(|c| c.lane == lane)?.per_second;
    let own = measured(lane).map(|cost| cost.as_secs_f64());
    let other = || Some(measured(Lane { guided: !lane.guided, ..lane })?.as_secs_f64());
    own.or_else(|| other().map(|cost| if lane.guided { 2.0 * cost } else { cost })).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::SAMPLE_RATE;

    const VOICE: Lane = Lane { stage: 0, guided: false };
    const PAIR: Lane = Lane { stage: 4, guided: true };
    const SINGLE: Lane = Lane { stage: 4, guided: false };

    fn cost(lane: Lane, listeners: u64, ms: impl Into<Option<u64>>) -> Cost {
        Cost { lane, listeners, per_second: ms.into().map(Duration::from_millis) }
    }

    fn measured(load: &Load, lane: Lane) -> Option<Duration> {
        load.costs(&BTreeMap::new()).iter().find(|c| c.lane == lane)?.per_second
    }

    #[test]
    fn cost_is_work_against_sound_and_follows_a_change() {
        let mut load = Load::default();
        load.ran(VOICE, Duration::from_millis(10), 8 * SAMPLE_RATE);
        assert_eq!(measured(&load, VOICE), None, "8 s are not enough");
        let mut load = Load::default();
        (0..100).for_each(|_| load.ran(VOICE, Duration::from_millis(20), 2 * SAMPLE_RATE));
        assert_eq!(measured(&load, VOICE).unwrap().as_millis(), 10);
        (0..500).for_each(|_| load.ran(VOICE, Duration::from_millis(200), 2 * SAMPLE_RATE));
        assert!((98..=100).contains(&measured(&load, VOICE).unwrap().as_millis()));
    }

    #[test]
    fn lanes_are_measured_apart_and_together() {
        let mut load = Load::default();
        (0..10).for_each(|_| load.ran(VOICE, Duration::from_millis(20), 2 * SAMPLE_RATE));
        (0..10).for_each(|_| load.ran(PAIR, Duration::from_millis(400), 2 * SAMPLE_RATE));
        assert_eq!(measured(&load, VOICE), Some(Duration::from_millis(10)));
        assert_eq!(measured(&load, PAIR), Some(Duration::from_millis(200)));
        assert_eq!(load.mean(), Duration::from_millis(105));
    }

    /// Half a minute of an engine that needs so long for a second of sound, in steps of a tenth of a second.
    fn engine(seconds: f64) -> Load {
        let (mut load, step) = (Load::default(), Duration::from_millis(100));
        let samples = (step.as_secs_f64() / seconds * SAMPLE_RATE as f64) as u64;
        let (mut now, end) = (Duration::ZERO, Duration::from_secs(30));
        while now < end {
            load.ran(VOICE, step, samples);
            now += step;
        }
        load
    }

    #[test]
    fn an_engine_that_is_slower_than_twice_its_listeners_is_found_full() {
        for (seconds, most) in [(0.1, 8), (0.4, 2), (0.5, 1), (0.6, 1), (0.9, 1), (3.0, 1)] {
            let load = engine(seconds);
            let listened = |listeners| load.costs(&BTreeMap::from([(VOICE, listeners)]));
            let room = (0..99).find(|&listeners| !holds(&listened(listeners), VOICE));
            assert_eq!(room, Some(most), "{seconds} s for a second");
        }
        let mut mute = Load::default();
        mute.ran(VOICE, WINDOW * 2, 0);
        assert!(!holds(&mute.costs(&BTreeMap::from([(VOICE, 1)])), VOICE), "no sound at all");
    }

    #[test]
    fn as_many_listeners_are_held_as_the_time_allows() {
        let holds = |listeners| holds(&[cost(VOICE, listeners, 20)], VOICE);
        assert!(holds(41) && !holds(42));
        assert!(super::holds(&[cost(VOICE, 10_000, None)], VOICE), "nothing is known yet");
    }

    #[test]
    fn a_dear_lane_takes_the_room_of_many_cheap_ones_and_not_the_other_way() {
        let listening = |voices, pairs| [cost(VOICE, voices, 10), cost(PAIR, pairs, 400)];
        assert!(holds(&listening(0, 1), PAIR) && !holds(&listening(0, 2), PAIR));
        assert!(holds(&listening(3, 2), VOICE) && !holds(&listening(5, 2), VOICE));
        assert!(holds(&listening(44, 0), PAIR) && !holds(&listening(46, 0), PAIR));
    }

    #[test]
    fn what_was_not_measured_is_judged_by_the_same_model() {
        // A pair costs twice its single half, at worst.
        assert!(holds(&[cost(SINGLE, 1, 250)], PAIR));
        assert!(!holds(&[cost(SINGLE, 2, 250)], PAIR));
        // The single half costs what the pair does, at worst.
        assert!(holds(&[cost(PAIR, 1, 420)], SINGLE) && !holds(&[cost(PAIR, 1, 430)], SINGLE));
        // Another model tells nothing.
        assert!(holds(&[cost(VOICE, 1, 800)], PAIR));
    }
}
