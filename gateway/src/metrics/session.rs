//! What one session adds to the metrics, from its upgrade to its end. Whatever way it ends, nothing stays counted as open.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Metrics;
use super::wire::Held;
use crate::access::Access;
use crate::driver::Clock;
use crate::protocol::{Handle, Note, Sound};

/// The reason in the answer to a cancel that names no context.
const NO_CONTEXT: &str = "unknown";

/// Counts one session.
pub(crate) struct SessionMeter {
    metrics: Arc<Metrics>,
    access: Access,
    clock: Clock,
    _open: Held,
    contexts: Vec<Held>,
    flows: BTreeMap<Handle, Flow>,
    sound: Duration,
    outcome: &'static str,
}

/// Packets of one context on their way from the engine to the socket.
///
/// ```text
/// sent ...... held_to ...... given       numbers of packets; what stands before held_to has waited on purpose
/// ```
#[derive(Debug, Default)]
struct Flow {
    given: u64,
    sent: u64,
    held_to: u64,
    /// The first packet of a piece of sound, by its number, and when the engine let it go.
    watched: Option<(u64, Duration)>,
}

impl SessionMeter {
    /// A session begins.
    pub(crate) fn new(metrics: Arc<Metrics>, access: Access) -> Self {
        let open = Held::new(&metrics.wire.sessions.open);
        Self {
            metrics,
            access,
            clock: Clock::start(),
            _open: open,
            contexts: Vec::new(),
            flows: BTreeMap::new(),
            sound: Duration::ZERO,
            outcome: "gone",
        }
    }

    /// A context will speak with this voice.
    pub(crate) fn voice(&self, voice: Option<&str>) {
        self.access.voice(voice);
    }

    /// Sound was made into so many packets. `since`: when the engine let it go, if these are the first of it.
    pub(crate) fn packets(&mut self, context: Handle, packets: usize, since: Option<Duration>) {
        self.flows.entry(context).or_default().give(packets as u64, since);
    }

    /// The context has nothing more to send.
    pub(crate) fn forget(&mut self, context: Handle) {
        self.flows.remove(&context);
    }

    /// Counts something that happened.
    pub(crate) fn note(&mut self, note: &Note, now: Duration) {
        let wire = &self.metrics.wire;
        match note {
            Note::Opened => self.contexts.push(Held::new(&wire.contexts.open)),
            Note::Text { chars } => wire.contexts.text_characters.inc_by(*chars as u64),
            Note::Sound(sound) => self.sent(*sound, now),
            Note::Done { usage, sound } => {
                if let Some(usage) = usage {
                    wire.answers.count(usage, *sound);
                }
                wire.contexts.done.inc();
                self.contexts.pop();
            }
            Note::Cancelled { reason, late, answered_after } => {
                wire.contexts.cancel_seconds.observe(answered_after.as_secs_f64());
                if *late {
                    wire.contexts.late_cancels.inc();
                } else if *reason != NO_CONTEXT && self.contexts.pop().is_some() {
                    wire.contexts.cancelled.with_label_values(&[reason]).inc();
                }
            }
            Note::Parked => wire.contexts.parks.inc(),
            Note::Pressed => wire.contexts.pressure.inc(),
            Note::Error(code) => wire.sessions.errors.with_label_values(&[code.name()]).inc(),
            Note::Closed(code) => self.outcome = outcome(*code),
        }
    }

    fn sent(&mut self, sound: Sound, now: Duration) {
        let wire = &self.metrics.wire;
        wire.sound.packets.inc_by(sound.packets);
        wire.sound.bytes.inc_by(sound.bytes as u64);
        wire.sound.seconds.inc_by(sound.duration.as_secs_f64());
        self.sound += sound.duration;
        if let Some(after) = sound.first_after {
            wire.sound.first_seconds.observe(after.as_secs_f64());
        }
        if let Some(gap) = sound.gap {
            let cause = if gap.had_text { "server" } else { "text" };
            wire.sound.underruns.with_label_values(&[cause]).inc();
            if gap.had_text {
                wire.sound.underrun_seconds.observe(gap.length.as_secs_f64());
            }
        }
        let Some(flow) = self.flows.get_mut(&sound.context) else { return };
        if let Some(since) = flow.send(sound.packets, sound.was_held) {
            let took = now.saturating_sub(since);
            wire.sound.event_to_write_seconds.observe(took.as_secs_f64());
        }
        if sound.is_last {
            self.flows.remove(&sound.context);
        }
    }
}

impl Flow {
    /// Takes note of packets that were made; `since` is when the engine let their sound go, if they are the first of it.
    fn give(&mut self, packets: u64, since: Option<Duration>) {
        if self.watched.is_none() {
            self.watched = since.map(|since| (self.given, since));
        }
        self.given += packets;
    }

    /// Takes note of packets that were sent. Returns since when the sound they are the first of had been on its way.
    fn send(&mut self, packets: u64, was_held: bool) -> Option<Duration> {
        if was_held {
            // Whatever came meanwhile has waited behind them.
            self.held_to = self.given;
        }
        self.sent += packets;
        let (number, since) = self.watched.take_if(|(number, _)| *number < self.sent)?;
        (number >= self.held_to).then_some(since)
    }
}

impl Drop for SessionMeter {
    fn drop(&mut self) {
        let wire = &self.metrics.wire;
        wire.sessions.ended.with_label_values(&[self.outcome]).inc();
        wire.sessions.seconds.observe(self.clock.now().as_secs_f64());
        wire.contexts.cancelled.with_label_values(&["gone"]).inc_by(self.contexts.len() as u64);
        self.access.sound(self.sound);
        self.access.outcome(self.outcome);
    }
}

/// How a session ended, by the code of its close.
fn outcome(close: u16) -> &'static str {
    match close {
        1000 => "ended",
        1011 => "internal",
        1012 => "shutting_down",
        4401 => "unauthorized",
        4408 => "timeout",
        4409 => "replaced",
        4429 => "overloaded",
        _ => "misuse",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::wire::OUTCOMES;

    const fn ms(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    #[test]
    fn only_the_first_packet_of_a_piece_of_sound_is_timed() {
        let mut flow = Flow::default();
        flow.give(3, ms(10));
        flow.give(2, None);
        assert_eq!(flow.send(1, false), ms(10));
        assert_eq!(flow.send(1, false), None);
        flow.give(4, ms(20));
        assert_eq!((flow.send(3, false), flow.send(1, false)), (None, ms(20)));
    }

    #[test]
    fn every_outcome_has_a_series_from_the_start() {
        let closes = [1000, 1007, 1011, 1012, 4400, 4401, 4408, 4409, 4429];
        assert!(closes.iter().all(|&close| OUTCOMES.contains(&outcome(close))));
    }

    #[test]
    fn sound_that_waited_behind_what_was_held_is_not_timed() {
        let mut flow = Flow::default();
        flow.give(2, ms(10));
        assert_eq!(flow.send(1, false), ms(10));
        flow.give(2, ms(20));
        assert_eq!((flow.send(1, true), flow.send(1, false)), (None, None));
        flow.give(1, ms(30));
        assert_eq!((flow.send(1, false), flow.send(1, false)), (None, ms(30)));
    }
}
