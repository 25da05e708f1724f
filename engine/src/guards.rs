//! Whether the semantic codes of a chunk can be the speech of its text, as far as counting can tell.
//!
//! Pure judgement over codes and a character count. It must never know what was sent, nor decide what to do about it.
//!
//! ```text
//! before a chunk     budget      how many codes the text can need
//! at each code       running     the end turns in a circle, or has fallen silent
//! before sending     opening     too much silence so far
//! when it ended      judge       the published acceptance test, and a rank among attempts
//! ```

use std::cmp::Ordering;
use std::ops::RangeInclusive;

/// Semantic codes a second.
const CODES_PER_SECOND: f32 = 12.5;
/// Shorter texts are spoken at any pace: a single word may be drawn out.
const PACE_COUNTS_ABOVE: usize = 30;
/// The silence share is that of so many codes at the start ...
const OPENING: usize = 50;
/// ... and means nothing before there are so many: speech may begin with a breath.
const SILENCE_COUNTS_FROM: usize = 25;
/// Largest accepted share of silence in the opening.
const MAX_SILENCE: f32 = 0.4;
/// Three seconds of nothing but silence inside a chunk are no pause any more.
const SILENT_END: usize = 38;
/// A cycle is a loop when it fills 2.4 seconds; held sounds and pauses of real speech are shorter.
const LOOPING_END: usize = 30;
/// Longest cycle looked for: three rounds of it fill the end.
const MAX_PERIOD: usize = 10;

/// What a voice's speech is measured against.
#[derive(Debug, Clone, PartialEq)]
pub struct Guards {
    /// Fewest codes of a chunk.
    pub min_codes: usize,
    /// Most codes of a chunk.
    pub max_codes: usize,
    /// The pace of the voice, slowest to fastest.
    pub characters_per_second: RangeInclusive<f32>,
    /// Codes that are silence, in any order; none are known for some voices.
    pub silence: Vec<u16>,
}

/// A chunk that ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attempt<'a> {
    /// Its semantic codes.
    pub codes: &'a [u16],
    /// Whether a stop symbol ended it, not a limit.
    pub stopped: bool,
    /// Characters of its text.
    pub characters: usize,
}

/// Something wrong at the end of a running chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The codes repeat a cycle.
    Loops {
        /// Length of the cycle.
        period: usize,
        /// Index of the first code that belongs to it.
        from: usize,
    },
    /// Only silence is left.
    Silent {
        /// Index of the first silent code of the run.
        from: usize,
    },
}

/// One failed part of the acceptance test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// It ran into a limit.
    NotStopped,
    /// Fewer codes than a chunk has.
    TooShort {
        /// How many it has.
        codes: usize,
    },
    /// More text than can be spoken in this time, or much less.
    Pace {
        /// Characters of text for each second of codes.
        characters_per_second: f32,
    },
    /// Too much silence at the start.
    Silence {
        /// Share of silence in the opening.
        share: f32,
    },
}

/// What the acceptance test says of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What is wrong; accepted when nothing is.
    pub faults: Vec<Fault>,
    /// How far beyond its limits it lies, all faults together; 1 is about twice a limit.
    excess: f32,
    /// Nothing but silence, or nothing at all.
    mute: bool,
}

impl Verdict {
    /// Whether the attempt can be spoken without a second thought.
    pub fn accepted(&self) -> bool {
        self.faults.is_empty() && self.audible()
    }

    /// Whether there is anything in it to hear. A mute one is never worth speaking.
    pub fn audible(&self) -> bool {
        !self.mute
    }

    /// The better of two attempts is the greater: audible, then fewer faults, then smaller ones.
    pub fn rank(&self, other: &Self) -> Ordering {
        let audible = self.audible().cmp(&other.audible());
        let fewer = other.faults.len().cmp(&self.faults.len());
        audible.then(fewer).then(other.excess.total_cmp(&self.excess))
    }
}

impl Guards {
    /// How many codes a text of so many characters may take: as many as at the slowest pace. One that needs more would
    /// not be accepted anyway.
    pub fn budget(&self, characters: usize) -> usize {
        let seconds = characters.max(PACE_COUNTS_ABOVE) as f32 / self.characters_per_second.start();
        let codes = (seconds * CODES_PER_SECOND).ceil() as usize;
        codes.clamp(self.min_codes.min(self.max_codes), self.max_codes)
    }

    /// Looks at the end of a running chunk.
    pub fn running(&self, codes: &[u16]) -> Option<Trouble> {
        let silent = codes.iter().rev().take_while(|c| self.is_silence(**c)).count();
        if silent >= SILENT_END {
            return Some(Trouble::Silent { from: codes.len() - silent });
        }
        (1..=MAX_PERIOD).find_map(|period| {
            let from = loop_start(codes, period);
            (codes.len() - from >= LOOPING_END).then_some(Trouble::Loops { period, from })
        })
    }

    /// Whether the beginning of a chunk may be sent as far as it is known. Says yes while there is too little of it.
    pub fn opening(&self, codes: &[u16]) -> bool {
        codes.len() < SILENCE_COUNTS_FROM || self.silence_share(codes) <= MAX_SILENCE
    }

    /// The acceptance test of a chunk that ended.
    pub fn judge(&self, attempt: &Attempt<'_>) -> Verdict {
        let codes = attempt.codes;
        let mut faults = Vec::new();
        let mut excess = 0.0;
        if !attempt.stopped {
            faults.push(Fault::NotStopped);
        }
        if codes.len() < self.min_codes {
            faults.push(Fault::TooShort { codes: codes.len() });
            excess += 1.0 - codes.len() as f32 / self.min_codes as f32;
        }
        let pace = attempt.characters as f32 * CODES_PER_SECOND / codes.len().max(1) as f32;
        let (slowest, fastest) =
            (*self.characters_per_second.start(), *self.characters_per_second.end());
        if attempt.characters > PACE_COUNTS_ABOVE && !(slowest..=fastest).contains(&pace) {
            faults.push(Fault::Pace { characters_per_second: pace });
            excess += (slowest / pace).max(pace / fastest).log2();
        }
        if !self.opening(codes) {
            let share = self.silence_share(codes);
            faults.push(Fault::Silence { share });
            excess += share / MAX_SILENCE - 1.0;
        }
        Verdict { faults, excess, mute: codes.iter().all(|c| self.is_silence(*c)) }
    }

    /// Share of silence in the opening, as far as it is known.
    fn silence_share(&self, codes: &[u16]) -> f32 {
        let opening = &codes[..codes.len().min(OPENING)];
        let silent = opening.iter().filter(|c| self.is_silence(**c)).count();
        silent as f32 / opening.len().max(1) as f32
    }

    fn is_silence(&self, code: u16) -> bool {
        self.silence.contains(&code)
    }
}

/// Where the longest end begins in which every code equals the one a period before it.
fn loop_start(codes: &[u16], period: usize) -> usize {
    let equal = (period..codes.len()).rev().take_while(|&i| codes[i] == codes[i - period]).count();
    if equal == 0 { codes.len() } else { codes.len() - equal - period }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: u16 = 900;
    const STILL: u16 = 901;

    fn guards() -> Guards {
        Guards {
            min_codes: 13,
            max_codes: 400,
            characters_per_second: 6.0..=24.0,
            silence: vec![QUIET, STILL],
        }
    }

    /// Codes that neither repeat nor are silent.
    fn speech(codes: usize) -> Vec<u16> {
        (0..codes).map(|i| (i * i % 769) as u16).collect()
    }

    fn judge(codes: &[u16], stopped: bool, characters: usize) -> Verdict {
        guards().judge(&Attempt { codes, stopped, characters })
    }

    fn faults(codes: &[u16], stopped: bool, characters: usize) -> Vec<Fault> {
        judge(codes, stopped, characters).faults
    }

    #[test]
    fn budget_is_the_slowest_pace_within_the_limits() {
        let g = guards();
        assert_eq!(g.budget(60), 125); // 10 s
        assert_eq!(g.budget(350), 400);
        assert_eq!(g.budget(3), 63); // as for 30 characters: 5 s
        let slow = Guards { max_codes: 40, ..g };
        assert_eq!(slow.budget(3), 40);
    }

    #[test]
    fn chunk_that_uses_its_whole_budget_and_stops_is_accepted() {
        for characters in [31, 60, 100] {
            let codes = speech(guards().budget(characters));
            let pace = characters as f32 * 12.5 / codes.len() as f32;
            // Rounding the budget up may put the pace just below the slowest.
            assert!(judge(&codes[..codes.len() - 1], true, characters).accepted(), "{pace}");
        }
    }

    #[test]
    fn limit_instead_of_a_stop_symbol_is_a_fault() {
        assert!(judge(&speech(60), true, 50).accepted());
        assert_eq!(faults(&speech(60), false, 50), [Fault::NotStopped]);
    }

    #[test]
    fn fewer_codes_than_the_minimum_are_a_fault() {
        assert_eq!(faults(&speech(12), true, 5), [Fault::TooShort { codes: 12 }]);
        assert!(judge(&speech(13), true, 5).accepted());
    }

    #[test]
    fn pace_counts_for_texts_above_thirty_characters() {
        // 50 codes are 4 s: 96 characters are 24 a second.
        assert!(judge(&speech(50), true, 96).accepted());
        let fast = Fault::Pace { characters_per_second: 24.25 };
        assert_eq!(faults(&speech(50), true, 97), [fast]);
        // 100 codes are 8 s: 48 characters are 6 a second.
        assert!(judge(&speech(100), true, 48).accepted());
        let slow = Fault::Pace { characters_per_second: 5.875 };
        assert_eq!(faults(&speech(100), true, 47), [slow]);
        assert!(judge(&speech(100), true, 30).accepted());
        assert_eq!(faults(&speech(100), true, 31).len(), 1);
    }

    #[test]
    fn silence_is_judged_over_the_first_fifty_codes_and_from_twenty_five_on() {
        let with_silence = |silent: usize, codes: usize| {
            let mut c = vec![QUIET; silent];
            c.extend(speech(codes - silent));
            c
        };
        assert!(judge(&with_silence(20, 60), true, 50).accepted());
        assert_eq!(faults(&with_silence(21, 60), true, 50), [Fault::Silence { share: 0.42 }]);
        assert!(guards().opening(&with_silence(24, 24)));
        assert!(!guards().opening(&with_silence(11, 25)));
        assert!(guards().opening(&with_silence(10, 25)));
        // Silence behind the opening is not its business.
        let mut late = speech(50);
        late.extend([QUIET; 30]);
        assert!(judge(&late, true, 60).accepted());
        let deaf = Guards { silence: vec![], ..guards() };
        assert!(deaf.opening(&with_silence(60, 60)));
    }

    #[test]
    fn running_chunk_that_falls_silent_is_noticed_after_three_seconds() {
        let mut codes = speech(20);
        for i in 0..37usize {
            codes.push(if i * i % 769 % 2 == 0 { QUIET } else { STILL });
            assert_eq!(guards().running(&codes), None);
        }
        codes.push(STILL);
        assert_eq!(guards().running(&codes), Some(Trouble::Silent { from: 20 }));
    }

    #[test]
    fn running_chunk_that_turns_in_a_circle_is_noticed_with_its_start() {
        for period in [1, 3, 10] {
            let mut codes = speech(20);
            for i in 0..LOOPING_END {
                assert_eq!(guards().running(&codes), None, "period {period}, {i} codes");
                codes.push(800 + (i % period) as u16);
            }
            assert_eq!(guards().running(&codes), Some(Trouble::Loops { period, from: 20 }));
        }
        let mut long_cycle = speech(20);
        long_cycle.extend((0..60).map(|i| 800 + i % 11));
        assert_eq!(guards().running(&long_cycle), None);
    }

    #[test]
    fn best_attempt_is_audible_then_has_fewer_then_smaller_faults() {
        let good = judge(&speech(60), true, 50);
        let bit_fast = judge(&speech(50), true, 110);
        let very_fast = judge(&speech(20), true, 110);
        let two_faults = judge(&speech(20), false, 110);
        let mute = judge(&[QUIET; 60], true, 50);
        let empty = judge(&[], true, 50);
        let order = [&mute, &two_faults, &very_fast, &bit_fast, &good];
        for pair in order.windows(2) {
            assert_eq!(pair[1].rank(pair[0]), Ordering::Greater, "{pair:?}");
            assert_eq!(pair[0].rank(pair[1]), Ordering::Less);
        }
        assert!(!mute.audible() && !empty.audible() && two_faults.audible());
        assert!(!empty.accepted());
    }
}
