//! One turn as its listener has it: when sound came, whether it would have run dry, and what was missing. No clock.
//!
//! ```text
//! text ......|                      first audio: from the first text to the first packet
//!            |packet packet    packet packet
//!  listener  |<-buffer->|========|   |======    dry: a packet comes after the one before was heard out
//! ```

use std::time::Duration;

/// A packet, or some that came together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sound {
    /// Number of the first packet in its turn.
    pub(super) seq: u64,
    /// How many there are.
    pub(super) count: u64,
    /// Where they begin in the turn.
    pub(super) from: Duration,
    /// Where they end.
    pub(super) to: Duration,
}

/// A turn under way. All times count from the same moment.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    buffer: Duration,
    first_text: Option<Duration>,
    /// When a model began to write.
    first_written: Option<Duration>,
    first_sound: Option<Duration>,
    last_sound: Duration,
    next_seq: u64,
    received: Duration,
    /// How long the listener has waited in all.
    dry: Duration,
    late: Vec<Duration>,
    gaps: u64,
}

impl Turn {
    /// A listener who begins to play so long after the first packet.
    pub(super) fn new(buffer: Duration) -> Self {
        Self {
            buffer,
            first_text: None,
            first_written: None,
            first_sound: None,
            last_sound: Duration::ZERO,
            next_seq: 0,
            received: Duration::ZERO,
            dry: Duration::ZERO,
            late: Vec::new(),
            gaps: 0,
        }
    }

    /// Text goes out.
    pub(super) fn text(&mut self, now: Duration) {
        self.first_text.get_or_insert(now);
    }

    /// Text of the answer comes in.
    pub(super) fn written(&mut self, now: Duration) {
        self.first_written.get_or_insert(now);
    }

    /// Sound comes in.
    pub(super) fn sound(&mut self, sound: Sound, now: Duration) {
        let first = *self.first_sound.get_or_insert(now);
        self.last_sound = now;
        self.late.push(now.saturating_sub(first + sound.from));
        let due = first + self.buffer + self.dry + sound.from;
        self.dry += now.saturating_sub(due);
        if sound.seq != self.next_seq || sound.from != self.received {
            self.gaps += 1;
        }
        self.next_seq = sound.seq + sound.count;
        self.received = sound.to;
    }

    /// How much sound has come.
    pub(super) fn received(&self) -> Duration {
        self.received
    }

    /// Whether any sound has come.
    pub(super) fn has_begun(&self) -> bool {
        self.first_sound.is_some()
    }

    /// How far the listener is.
    pub(super) fn heard(&self, now: Duration) -> Duration {
        let begins = self.first_sound.map(|first| first + self.buffer + self.dry);
        begins.map_or(Duration::ZERO, |begins| now.saturating_sub(begins).min(self.received))
    }

    /// When the listener is at a position, if all goes well from here on; none before the first packet.
    pub(super) fn heard_at(&self, position: Duration) -> Option<Duration> {
        self.first_sound.map(|first| first + self.buffer + self.dry + position)
    }

    /// From the first text to the first packet.
    pub(super) fn first_audio(&self) -> Option<Duration> {
        Some(self.first_sound?.saturating_sub(self.first_text?))
    }

    /// From the first text to the first text of the answer.
    pub(super) fn first_written(&self) -> Option<Duration> {
        Some(self.first_written?.saturating_sub(self.first_text?))
    }

    /// Time from the first text to the last packet, for each second of sound.
    pub(super) fn real_time_factor(&self) -> Option<f64> {
        let took = self.last_sound.checked_sub(self.first_text?)?;
        (!self.received.is_zero()).then(|| took.as_secs_f64() / self.received.as_secs_f64())
    }

    /// How long the listener had nothing to play.
    pub(super) fn dry(&self) -> Duration {
        self.dry
    }

    /// How long after its turn to be played each packet came, for a listener without a buffer.
    pub(super) fn late(&self) -> &[Duration] {
        &self.late
    }

    /// Times that sound did not go on where it had stopped.
    pub(super) fn gaps(&self) -> u64 {
        self.gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn packet(seq: u64) -> Sound {
        Sound { seq, count: 1, from: ms(20 * seq), to: ms(20 * seq + 20) }
    }

    fn turn(arrivals: &[(u64, u64)]) -> Turn {
        let mut turn = Turn::new(ms(40));
        turn.text(ms(1_000));
        turn.text(ms(1_030));
        for &(seq, at) in arrivals {
            turn.sound(packet(seq), ms(at));
        }
        turn
    }

    #[test]
    fn a_steady_stream_never_runs_dry() {
        let turn = turn(&[(0, 1_100), (1, 1_120), (2, 1_140), (3, 1_160)]);
        assert_eq!(turn.first_audio(), Some(ms(100)));
        assert_eq!((turn.dry(), turn.gaps()), (ms(0), 0));
        assert!(turn.late().iter().all(|late| late.is_zero()));
        assert_eq!(turn.real_time_factor(), Some(2.0));
    }

    #[test]
    fn the_first_text_of_an_answer_is_timed_as_its_first_sound_is() {
        let mut turn = turn(&[(0, 1_100)]);
        assert_eq!(turn.first_written(), None);
        turn.written(ms(1_050));
        turn.written(ms(1_080));
        assert_eq!((turn.first_written(), turn.first_audio()), (Some(ms(50)), Some(ms(100))));
    }

    #[test]
    fn the_buffer_hides_a_short_wait_but_not_a_long_one() {
        assert_eq!(turn(&[(0, 1_100), (1, 1_160)]).dry(), ms(0));
        let mut late = turn(&[(0, 1_100), (1, 1_175)]);
        assert_eq!(late.dry(), ms(15));
        assert_eq!(late.late(), [ms(0), ms(55)]);
        // The listener has lost 15 ms for good, so the next packet is no longer late for it.
        late.sound(packet(2), ms(1_195));
        assert_eq!(late.dry(), ms(15));
        assert_eq!(late.late()[2], ms(55));
    }

    #[test]
    fn the_listener_hears_what_has_come_and_no_more() {
        let turn = turn(&[(0, 1_100), (1, 1_100)]);
        assert_eq!(turn.heard(ms(1_130)), ms(0));
        assert_eq!(turn.heard(ms(1_150)), ms(10));
        assert_eq!(turn.heard(ms(9_000)), ms(40));
        assert_eq!(turn.heard_at(ms(30)), Some(ms(1_170)));
        assert_eq!(Turn::new(ms(40)).heard_at(ms(30)), None);
    }

    #[test]
    fn a_packet_that_is_missing_or_doubled_is_a_gap() {
        assert_eq!(turn(&[(0, 1_100), (2, 1_100), (3, 1_100)]).gaps(), 1);
        assert_eq!(turn(&[(0, 1_100), (0, 1_100)]).gaps(), 1);
        assert_eq!(turn(&[(1, 1_100)]).gaps(), 1);
        assert_eq!(turn(&[(0, 1_100), (1, 1_100)]).gaps(), 0);
    }
}
