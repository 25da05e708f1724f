//! Somebody who calls: takes turns on a line, listens, and does what the plan says.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::line::{Broken, Line, Protocol, Signal, TurnId};
use super::plan::{Deed, Plan, Script};
use super::tally::{End, Tally};
use super::turn::Turn;
use crate::chance::Chance;
use crate::client::Target;
use crate::driver::Clock;

/// How long a server may say nothing in a turn before it is given up.
const SILENCE: Duration = Duration::from_secs(30);
/// Least wait of a caller whose turn went wrong, so that a server in trouble is not run over.
const BACK_OFF: Duration = Duration::from_millis(500);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(5);

/// What all callers share.
pub(super) struct Town {
    pub(super) plan: Plan,
    pub(super) protocol: Protocol,
    /// The model that is asked; none: texts are spoken.
    pub(super) model: Option<String>,
    pub(super) target: Target,
    pub(super) start_buffer: Duration,
    pub(super) clock: Clock,
    tally: Mutex<Tally>,
}

impl Town {
    pub(super) fn new(
        plan: Plan,
        (protocol, model): (Protocol, Option<String>),
        target: Target,
        buffer: Duration,
    ) -> Self {
        let tally = Mutex::new(Tally::new());
        Self { plan, protocol, model, target, start_buffer: buffer, clock: Clock::start(), tally }
    }

    /// Adds to the sums, or reads them.
    pub(super) fn tally<T>(&self, with: impl FnOnce(&mut Tally) -> T) -> T {
        with(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Somebody who calls.
pub(super) struct Caller<'a> {
    town: &'a Town,
    chance: Chance,
    line: Option<Line>,
    turns: TurnId,
}

impl<'a> Caller<'a> {
    pub(super) fn new(town: &'a Town, chance: Chance) -> Self {
        Self { town, chance, line: None, turns: 0 }
    }

    /// Takes turn after turn until the time is over; the last one is finished.
    pub(super) async fn stay(mut self, until: Duration) {
        while self.town.clock.now() < until {
            let script = self.town.plan.script(&mut self.chance);
            let pause = self.turn(&script).await;
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        self.leave().await;
    }

    /// Calls for a single turn.
    pub(super) async fn visit(mut self) {
        let script = self.town.plan.script(&mut self.chance);
        self.turn(&script).await;
        self.leave().await;
    }

    /// Says something that counts nowhere.
    ///
    /// # Errors
    /// Why it was not spoken.
    pub(super) async fn warm_up(mut self) -> Result<(), Broken> {
        let script = self.town.plan.warm_up();
        let mut turn = Turn::new(self.town.start_buffer);
        let end = self.speak(&script, &mut turn).await?;
        self.leave().await;
        match end {
            Ended::Refused(why, _) => Err(Broken(why)),
            _ => Ok(()),
        }
    }

    async fn leave(self) {
        if let Some(line) = self.line {
            let _ = tokio::time::timeout(GOODBYE, line.hang_up()).await;
        }
    }

    /// A turn from its first word to its place in the sums. Returns how long to wait before the next.
    async fn turn(&mut self, script: &Script<'_>) -> Duration {
        let mut turn = Turn::new(self.town.start_buffer);
        let (end, pause) = match self.speak(script, &mut turn).await {
            Ok(Ended::As(end)) => (end, Duration::ZERO),
            Ok(Ended::Refused(why, retry_after)) => {
                if turn.has_begun() {
                    // More sound may come, and would be taken for a mistake of the server.
                    self.line = None;
                }
                (End::Failed(why), retry_after.max(BACK_OFF))
            }
            Err(Broken(why)) => {
                self.line = None;
                (End::Failed(why), BACK_OFF)
            }
        };
        if end == End::BrokenOff
            && let Some(line) = self.line.take()
        {
            line.reset();
        }
        self.town.tally(|tally| tally.add(&turn, end));
        pause
    }

    async fn speak(&mut self, script: &Script<'_>, turn: &mut Turn) -> Result<Ended, Broken> {
        let town = self.town;
        let is_eager = town.plan.pace.is_none();
        let line = match &mut self.line {
            Some(line) => line,
            None => {
                let connected =
                    Line::connect(town.protocol, town.model.as_deref(), &town.target, is_eager);
                self.line.insert(connected.await?)
            }
        };
        self.turns += 1;
        line.begin(self.turns).await?;
        let now = town.clock.now();
        let speaking = Speaking { town, line, script, turn, id: self.turns, is_eager };
        speaking.run(now).await
    }
}

/// How a turn came to its end.
enum Ended {
    As(End),
    Refused(String, Duration),
}

/// A turn under way.
struct Speaking<'a> {
    town: &'a Town,
    line: &'a mut Line,
    script: &'a Script<'a>,
    turn: &'a mut Turn,
    id: TurnId,
    /// Takes sound as it comes, and the next turn follows the last packet; else it is listened to in real time.
    is_eager: bool,
}

/// How far it has come.
struct State {
    began: Duration,
    said: usize,
    deed: Option<(Duration, Deed)>,
    slept: bool,
    interrupted: Option<Duration>,
    is_done: bool,
    /// When something last came or went.
    lively: Duration,
}

impl Speaking<'_> {
    async fn run(mut self, began: Duration) -> Result<Ended, Broken> {
        let deed = self.script.deed;
        let (slept, interrupted, is_done) = (false, None, false);
        let mut state = State { began, said: 0, deed, slept, interrupted, is_done, lively: began };
        let mut alarm = Alarm::new(&self.town.clock);
        loop {
            let now = self.town.clock.now();
            if let Some(end) = self.act(&mut state, now).await? {
                return Ok(end);
            }
            alarm.set(self.wake_at(&state));
            let signal = tokio::select! {
                biased;
                signal = self.line.next() => signal?,
                () = &mut alarm.sleep => continue,
            };
            let now = self.town.clock.now();
            state.lively = now;
            if let Some(end) = self.take(signal, &mut state, now) {
                return Ok(end);
            }
        }
    }

    /// Does what is due.
    async fn act(&mut self, state: &mut State, now: Duration) -> Result<Option<Ended>, Broken> {
        while let Some(piece) = self.script.pieces.get(state.said)
            && self.word_at(state) <= now
            && state.interrupted.is_none()
        {
            self.turn.text(now);
            self.line.say(self.id, piece).await?;
            state.said += 1;
            state.lively = now;
            if state.said == self.script.pieces.len() {
                self.line.end(self.id).await?;
            }
        }
        if let Some((at, deed)) = state.deed
            && self.turn.has_begun()
            && self.heard(now) >= at
        {
            state.deed = None;
            match deed {
                Deed::BreakOff => return Ok(Some(Ended::As(End::BrokenOff))),
                Deed::Sleep(time) => {
                    tokio::time::sleep(time).await;
                    state.slept = true;
                    state.lively = self.town.clock.now();
                }
                Deed::Interrupt => {
                    self.line.interrupt(self.id, self.turn.heard(now)).await?;
                    state.interrupted = Some(self.town.clock.now());
                }
            }
        }
        if state.is_done && state.interrupted.is_none() && self.heard(now) >= self.turn.received() {
            return Ok(Some(Ended::As(if state.slept { End::Slept } else { End::Whole })));
        }
        let is_answered = state.is_done && state.interrupted.is_none();
        if now >= state.lively + SILENCE && !is_answered {
            let why = format!("nothing came for {} s", SILENCE.as_secs());
            return Err(Broken(why));
        }
        Ok(None)
    }

    fn take(&mut self, signal: Signal, state: &mut State, now: Duration) -> Option<Ended> {
        match signal {
            Signal::Text(id) if id == self.id => self.turn.written(now),
            Signal::Sound(id, sound) if id == self.id => self.turn.sound(sound, now),
            // Of a turn that is over: nothing of it may come any more.
            Signal::Sound(..) => self.town.tally(|tally| tally.audio_after_cancel += 1),
            Signal::Done(id) if id == self.id => state.is_done = true,
            Signal::Stopped(id) if id == self.id => {
                let Some(asked) = state.interrupted else {
                    return Some(Ended::Refused("cancelled".to_owned(), Duration::ZERO));
                };
                return Some(Ended::As(End::Interrupted(now.saturating_sub(asked))));
            }
            Signal::Refused { turn, why, retry_after } if turn == self.id => {
                // What is said into a turn that was interrupted is refused, and that is well.
                if state.interrupted.is_none() {
                    return Some(Ended::Refused(why, retry_after));
                }
            }
            Signal::Text(_) | Signal::Done(_) | Signal::Stopped(_) | Signal::Refused { .. } => {}
        }
        None
    }

    fn heard(&self, now: Duration) -> Duration {
        if self.is_eager { self.turn.received() } else { self.turn.heard(now) }
    }

    fn word_at(&self, state: &State) -> Duration {
        let pace = self.town.plan.pace.unwrap_or_default();
        state.began + pace * u32::try_from(state.said).unwrap_or(u32::MAX)
    }

    /// When something is to be done even if nothing comes.
    fn wake_at(&self, state: &State) -> Duration {
        let silence = state.lively + SILENCE;
        let words_left = state.said < self.script.pieces.len() && state.interrupted.is_none();
        let word = words_left.then(|| self.word_at(state));
        let deed = state.deed.and_then(|(at, _)| self.turn.heard_at(at));
        let end = state.is_done.then(|| self.turn.heard_at(self.turn.received())).flatten();
        // A listener who has run dry is woken by the next packet, not by the clock.
        let now = self.town.clock.now();
        let deed = deed.filter(|&at| at > now);
        [word, deed, end].into_iter().flatten().fold(silence, Duration::min)
    }
}

/// A sleep that is moved only when its end is.
struct Alarm {
    sleep: Pin<Box<Sleep>>,
    zero: Instant,
    at: Duration,
}

impl Alarm {
    fn new(clock: &Clock) -> Self {
        let (at, sleep) = (clock.now(), tokio::time::sleep(Duration::ZERO));
        Self { zero: sleep.deadline() - at, sleep: Box::pin(sleep), at }
    }

    fn set(&mut self, at: Duration) {
        if at != self.at || self.sleep.is_elapsed() {
            self.at = at;
            self.sleep.as_mut().reset(self.zero + at);
        }
    }
}
