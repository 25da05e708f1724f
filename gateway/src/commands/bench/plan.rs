//! What callers say, when they say it, and what they do to the server besides.

use std::str::FromStr;
use std::time::Duration;

use crate::chance::Chance;

/// What is said when no file of texts is given: replies of an agent, short and long.
const TEXTS: &[&str] = &[
    "Hello, thank you for calling. How can I help you today?",
    "Sure, let me have a look at that for you. It should only take a moment.",
    "The next train to Basel leaves at nine, and you arrive there a little before noon. You need to change once, in the \
     middle of the way, but you have plenty of time for it.",
    "I am sorry to hear that. I have sent a note to the people in charge, and they will call you back this afternoon.",
    "Your table is reserved for four people at seven in the evening. Please tell us if anybody is late, so that we can \
     keep it for you a little longer.",
    "That is a good question. There are two ways to do it. The first one is quick and costs a little more, the second \
     one is slow and costs nothing at all. Most of our guests choose the first one.",
    "No, that is all right. You do not have to do anything.",
    "The weather will be fine in the morning, with some clouds later in the day. In the evening there may be rain, so \
     take an umbrella with you if you want to go out.",
];
/// How much of a turn is heard before somebody interrupts it, leaves, or falls asleep.
const MISHAP: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(2_500));
/// How long somebody who falls asleep takes nothing from the wire.
const SLEEP: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(4));

/// When turns begin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Arrivals {
    /// Everybody's next turn follows the one before.
    Closed,
    /// So many a second, whoever is still speaking.
    Poisson(f64),
}

impl FromStr for Arrivals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate = match text {
            "closed" => return Ok(Self::Closed),
            _ => text.strip_prefix("poisson:").and_then(|rate| rate.parse().ok()),
        };
        match rate {
            Some(rate) if rate > 0.0 && f64::is_finite(rate) => Ok(Self::Poisson(rate)),
            _ => Err("neither `closed` nor `poisson:RATE`, RATE turns a second".to_owned()),
        }
    }
}

/// Shares of turns that something happens to; together at most 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Mishaps {
    pub(super) barge_in: f64,
    pub(super) disconnect: f64,
    pub(super) slow_reader: f64,
}

/// What a caller does when so much of a turn was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// Interrupts it.
    Interrupt,
    /// Breaks the connection off.
    BreakOff,
    /// Takes nothing from the wire for a while.
    Sleep(Duration),
}

/// What is said in a turn, and what happens to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script<'a> {
    /// What is sent, piece by piece.
    pub(super) pieces: Vec<&'a str>,
    /// The deed, and how much was heard by then.
    pub(super) deed: Option<(Duration, Deed)>,
}

/// All that can be said.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    texts: Vec<String>,
    /// Between two words; none: each text goes out whole.
    pub(super) pace: Option<Duration>,
    /// Texts go out whole, though somebody listens: a model is asked when its question is complete.
    whole: bool,
    mishaps: Mishaps,
}

impl Plan {
    /// `texts` has one text a line; none: those built in. `words_per_second` 0 sends whole texts.
    ///
    /// # Errors
    /// No text, or shares that are more than the whole.
    pub(super) fn new(
        texts: Option<&str>,
        words_per_second: f64,
        mishaps: Mishaps,
    ) -> Result<Self, String> {
        let texts: Vec<String> = match texts {
            Some(lines) => lines.lines().map(str::trim).map(str::to_owned).collect(),
            None => TEXTS.iter().map(|&text| text.to_owned()).collect(),
        };
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        if texts.is_empty() {
            return Err("no text to say: one a line is wanted".to_owned());
        }
        let Mishaps { barge_in, disconnect, slow_reader } = mishaps;
        if barge_in + disconnect + slow_reader > 1.0 {
            return Err("--barge-in, --disconnects and --slow-readers are more than 1".to_owned());
        }
        let pace =
            (words_per_second > 0.0).then(|| Duration::from_secs_f64(1.0 / words_per_second));
        Ok(Self { texts, pace, whole: false, mishaps })
    }

    /// The same with texts that go out whole.
    pub(super) fn of_questions(self) -> Self {
        Self { whole: true, ..self }
    }

    /// What happens in a turn.
    pub(super) fn script(&self, chance: &mut Chance) -> Script<'_> {
        let text = &self.texts[chance.below(self.texts.len())];
        let pieces = match self.pace {
            Some(_) if !self.whole => text.split_inclusive(' ').collect(),
            _ => vec![text.as_str()],
        };
        let Mishaps { barge_in, disconnect, slow_reader } = self.mishaps;
        let dice = chance.share();
        let deed = if dice < barge_in {
            Some(Deed::Interrupt)
        } else if dice < barge_in + disconnect {
            Some(Deed::BreakOff)
        } else if dice < barge_in + disconnect + slow_reader {
            Some(Deed::Sleep(chance.within(SLEEP.0, SLEEP.1)))
        } else {
            None
        };
        Script { pieces, deed: deed.map(|deed| (chance.within(MISHAP.0, MISHAP.1), deed)) }
    }

    /// A turn to warm up with: nothing happens to it.
    pub(super) fn warm_up(&self) -> Script<'_> {
        Script { pieces: vec![&self.texts[0]], deed: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_read() {
        assert_eq!("closed".parse(), Ok(Arrivals::Closed));
        assert_eq!("poisson:2.5".parse(), Ok(Arrivals::Poisson(2.5)));
        for wrong in ["", "open", "poisson", "poisson:", "poisson:0", "poisson:-1", "poisson:inf"] {
            assert!(wrong.parse::<Arrivals>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_make_up_the_text_and_a_pace_of_0_sends_it_whole() {
        let text = "One two  three.\n\n";
        let plan = |pace| Plan::new(Some(text), pace, Mishaps::default()).unwrap();
        let paced = plan(4.0);
        assert_eq!(paced.pace, Some(Duration::from_millis(250)));
        let script = paced.script(&mut Chance::new(0));
        assert_eq!(script.pieces, ["One ", "two ", " ", "three."]);
        assert_eq!(plan(0.0).script(&mut Chance::new(0)).pieces, ["One two  three."]);
        let asked = plan(4.0).of_questions();
        assert_eq!(asked.script(&mut Chance::new(0)).pieces, ["One two  three."]);
        assert!(asked.pace.is_some(), "it is listened to");
    }

    #[test]
    fn mishaps_are_as_frequent_as_asked_for() {
        const TOLERANCE: f64 = 0.03; // of 4,000 dice; one in five strays by 0.006
        let mishaps = Mishaps { barge_in: 0.5, disconnect: 0.2, slow_reader: 0.1 };
        let plan = Plan::new(None, 0.0, mishaps).unwrap();
        let mut chance = Chance::new(5);
        let mut seen = [0.0_f64; 4];
        for _ in 0..4_000 {
            let deed = plan.script(&mut chance).deed.map(|(_, deed)| deed);
            let kind = match deed {
                Some(Deed::Interrupt) => 0,
                Some(Deed::BreakOff) => 1,
                Some(Deed::Sleep(_)) => 2,
                None => 3,
            };
            seen[kind] += 1.0 / 4_000.0;
        }
        for (seen, asked) in seen.into_iter().zip([0.5, 0.2, 0.1, 0.2]) {
            assert!((seen - asked).abs() < TOLERANCE, "{seen} {asked}");
        }
    }

    #[test]
    fn what_cannot_be_said_is_told() {
        assert!(Plan::new(Some(" \n"), 0.0, Mishaps::default()).is_err());
        let much = Mishaps { barge_in: 0.8, disconnect: 0.3, slow_reader: 0.0 };
        assert!(Plan::new(None, 0.0, much).is_err());
    }
}
