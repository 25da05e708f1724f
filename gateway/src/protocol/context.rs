//! One context: its text, the packets that wait for the wire, the 2 s commits, and what its listener has heard.
//!
//! ```text
//! wire   P P P .. P(commit) commit 0   P P .. P(commit, last) commit 1   done
//!        0 1 2 .. 99                  100
//! ```
//!
//! It must never know of other contexts, nor of JSON.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use engine::Summary;

use super::alignment::{Alignment, Heard};
use super::event::{Cancelled, Commit, Done, Freed, ServerEvent, TextRange, Timing, Usage};
use super::format::Format;
use super::pacer::{Leave, Pacer};
use super::{Handle, Packet, millis};
use crate::auth::Place;

/// Length of a commit.
const COMMIT_SECONDS: u64 = 2;
const KIND_AUDIO: u8 = 1;
const FLAG_COMMIT: u8 = 0x01;
const FLAG_LAST: u8 = 0x02;
const HEADER_BYTES: usize = 20;

/// Where a context stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Phase {
    /// Takes text.
    Open,
    /// Takes no more text; its sound is still being made or sent.
    Ended,
    /// Everything was sent.
    Done,
    /// It was cancelled, and this is what was answered.
    Cancelled(Box<Cancelled>),
}

/// What waits for the wire.
#[derive(Debug)]
enum Item {
    Packet(Packet),
    Commit { to: u64, last: bool },
    Flushed { id: Option<String>, samples: u64, text_offset: usize },
    Done(Summary),
}

/// What a context has for the wire now.
#[derive(Debug)]
pub(crate) enum Next {
    Nothing,
    /// It is far ahead of its listener: not before this moment, or not before a report.
    Held(Option<Duration>),
    Audio(Bytes),
    Event(ServerEvent),
}

/// The state of one context.
pub(crate) struct Context {
    pub(crate) name: String,
    pub(crate) handle: Handle,
    pub(crate) phase: Phase,
    /// What the client has written, and its length in code points.
    pub(crate) text: String,
    pub(crate) text_chars: usize,
    pub(crate) next_seq: u64,
    /// Whether the client was told that its text piles up.
    pub(crate) pressed: bool,
    /// `context.opened` is on the wire, so sound may follow.
    pub(crate) announced: bool,
    /// The engine's last event has come.
    pub(crate) engine_over: bool,
    pub(crate) ignored: Vec<&'static str>,
    /// Its place among those of the key, while it is live.
    pub(crate) key_place: Option<Place>,
    pub(crate) pacer: Pacer,
    pub(crate) alignment: Alignment,
    format: Format,
    /// Samples that the engine has given.
    generated: u64,
    queue: VecDeque<Item>,
    queued_bytes: usize,
    /// Flushes under way: the client's name for each, and where in the text it stands.
    flushes: VecDeque<(Option<String>, usize)>,
    /// Number of the next packet.
    packets: u32,
    commits: u32,
    commit_from: u64,
    commit_text_from: usize,
    first_text_at: Option<Duration>,
    first_audio_at: Option<Duration>,
}

impl Context {
    pub(crate) fn new(name: String, handle: Handle, format: Format, max_ahead: Duration) -> Self {
        Self {
            name,
            handle,
            phase: Phase::Open,
            text: String::new(),
            text_chars: 0,
            next_seq: 0,
            pressed: false,
            announced: false,
            engine_over: false,
            ignored: Vec::new(),
            key_place: None,
            pacer: Pacer::new(format.clock(), max_ahead),
            alignment: Alignment::default(),
            format,
            generated: 0,
            queue: VecDeque::new(),
            queued_bytes: 0,
            flushes: VecDeque::new(),
            packets: 0,
            commits: 0,
            commit_from: 0,
            commit_text_from: 0,
            first_text_at: None,
            first_audio_at: None,
        }
    }

    /// Takes text that was accepted.
    pub(crate) fn push_text(&mut self, text: &str, now: Duration) {
        self.text.push_str(text);
        self.text_chars += text.chars().count();
        self.next_seq += 1;
        self.first_text_at.get_or_insert(now);
    }

    /// Characters that no chunk has taken.
    pub(crate) fn pending_chars(&self) -> usize {
        self.text_chars.saturating_sub(self.alignment.taken())
    }

    pub(crate) fn flush(&mut self, id: Option<String>) {
        self.flushes.push_back((id, self.text_chars));
    }

    /// Flushes that were not answered.
    pub(crate) fn flushes(&self) -> usize {
        self.flushes.len()
    }

    /// Sound that waits, in bytes.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Sound has come.
    pub(crate) fn push_packets(&mut self, packets: Vec<Packet>, generated: u64) {
        self.generated = generated;
        for packet in packets {
            self.queued_bytes += packet.bytes.len();
            self.queue.push_back(Item::Packet(packet));
        }
    }

    /// The engine has spoken everything before the oldest flush.
    pub(crate) fn flushed(&mut self, samples: u64) {
        if let Some((id, text_offset)) = self.flushes.pop_front() {
            self.queue.push_back(Item::Flushed { id, samples, text_offset });
        }
    }

    /// The engine has spoken everything.
    pub(crate) fn complete(&mut self, summary: Summary) {
        self.engine_over = true;
        self.queue.push_back(Item::Done(summary));
    }

    /// Whether something waits for the wire.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// What goes on the wire next. After the last it is [`Phase::Done`].
    pub(crate) fn next(&mut self, now: Duration) -> Next {
        if !self.announced || self.queue.is_empty() {
            return Next::Nothing;
        }
        if matches!(self.queue.front(), Some(Item::Packet(_))) {
            let (leave, news) = self.pacer.leave(now);
            if news {
                return Next::Event(self.parked(leave, now));
            }
            match leave {
                Leave::Go => {}
                Leave::At(at) => return Next::Held(Some(at)),
                Leave::Report => return Next::Held(None),
            }
        }
        match self.queue.pop_front() {
            None => Next::Nothing,
            Some(Item::Packet(packet)) => Next::Audio(self.send(&packet, now)),
            Some(Item::Commit { to, last }) => Next::Event(self.commit(to, last)),
            Some(Item::Flushed { id, samples, text_offset }) => {
                let pos = self.format.clock().position(samples);
                Next::Event(ServerEvent::Flushed { ctx: self.name.clone(), id, pos, text_offset })
            }
            Some(Item::Done(summary)) => Next::Event(self.done(&summary, now)),
        }
    }

    fn parked(&self, leave: Leave, now: Duration) -> ServerEvent {
        let (ctx, ahead_ms) = (self.name.clone(), millis(self.pacer.ahead(now)));
        match leave {
            Leave::Go => ServerEvent::Resumed { ctx, ahead_ms },
            Leave::At(_) | Leave::Report => ServerEvent::Parked { ctx, ahead_ms },
        }
    }

    /// Puts a packet behind its header. The first packet that reaches a boundary closes the commit.
    fn send(&mut self, packet: &Packet, now: Duration) -> Bytes {
        self.first_audio_at.get_or_insert(now);
        self.queued_bytes -= packet.bytes.len();
        let position = self.pacer.sent();
        let end = position + packet.duration;
        let rate = u64::from(self.format.sample_rate);
        let boundary = COMMIT_SECONDS * (u64::from(self.commits) + 1) * rate;
        let mut flags = 0;
        if packet.last {
            flags = FLAG_COMMIT | FLAG_LAST;
            let to = self.format.clock().position(self.generated);
            self.queue.push_front(Item::Commit { to, last: true });
        } else if end >= boundary {
            flags = FLAG_COMMIT;
            self.queue.push_front(Item::Commit { to: end, last: false });
        }
        let mut frame = Vec::with_capacity(HEADER_BYTES + packet.bytes.len());
        frame.extend([KIND_AUDIO, flags]);
        frame.extend(1_u16.to_be_bytes());
        frame.extend(self.handle.to_be_bytes());
        frame.extend(self.packets.to_be_bytes());
        frame.extend(position.to_be_bytes());
        frame.extend(&packet.bytes);
        self.packets += 1;
        self.pacer.send(packet.duration, now);
        frame.into()
    }

    fn commit(&mut self, to: u64, last: bool) -> ServerEvent {
        let text_to = if last {
            self.text_chars
        } else {
            self.alignment.complete_to(self.format.clock().samples(to))
        };
        let commit = Commit {
            ctx: self.name.clone(),
            index: self.commits,
            from: self.commit_from,
            to,
            text: TextRange { from: self.commit_text_from, to: text_to },
            // The engine does not tell when a word sounds, and a guess is not given for a measurement.
            words: Vec::new(),
            align: "estimated",
            r#final: last,
        };
        self.commits += 1;
        self.commit_from = to;
        self.commit_text_from = text_to;
        ServerEvent::Commit(commit)
    }

    fn done(&mut self, summary: &Summary, now: Duration) -> ServerEvent {
        self.phase = Phase::Done;
        let clock = self.format.clock();
        let audio_ms = summary.samples / 24;
        let took = self.first_text_at.map(|at| now - at);
        let rtf = took.filter(|_| audio_ms > 0).map(|t| t.as_secs_f64() * 1e3 / audio_ms as f64);
        ServerEvent::Done(Box::new(Done {
            ctx: self.name.clone(),
            samples: clock.position(summary.samples),
            seq_last: i64::from(self.packets) - 1,
            text_chars: self.text_chars,
            flags: if summary.guard_exhausted { vec!["guard_exhausted"] } else { Vec::new() },
            usage: Usage { audio_ms, chars: self.text_chars },
            timing: Timing {
                queue_ms: 0,
                first_audio_ms: self
                    .first_text_at
                    .and_then(|t| Some(millis(self.first_audio_at? - t))),
                // Thousandths: what is finer is noise.
                rtf: rtf.map(|r| (r * 1e3).round() / 1e3),
            },
        }))
    }

    /// Stops it: what waits is dropped, and what was heard is told. A context that is over is told about again.
    pub(crate) fn cancel(&mut self, reason: &'static str, now: Duration) -> &mut Cancelled {
        if let Phase::Cancelled(answer) = &mut self.phase {
            answer.late = true;
        } else {
            let answer = Box::new(self.account(reason, now));
            self.phase = Phase::Cancelled(answer);
        }
        self.queue.clear();
        self.queued_bytes = 0;
        self.flushes.clear();
        let Phase::Cancelled(answer) = &mut self.phase else { unreachable!("just set") };
        answer
    }

    /// What a cancelled context held, now that the engine has said it.
    pub(crate) fn freed(&mut self, freed: Freed) {
        if let Phase::Cancelled(answer) = &mut self.phase {
            answer.freed = freed;
        }
    }

    fn account(&self, reason: &'static str, now: Duration) -> Cancelled {
        let clock = self.format.clock();
        let late = self.phase == Phase::Done;
        let generated = clock.position(self.generated);
        // The padding of the last packet is no sound of the context.
        let sent = self.pacer.sent().min(generated);
        let played = self.pacer.heard(now).min(sent);
        let heard = self.alignment.heard(&self.text, clock.samples(played), self.generated);
        let dropped = if late { 0 } else { generated - sent };
        Cancelled {
            ctx: self.name.clone(),
            late,
            reason,
            generated,
            sent,
            played,
            // Inside a chunk the words' times are estimated; only the end of everything is sure.
            exact: late && self.pacer.reported().is_some() && played == sent,
            heard,
            dropped_ms: clock.millis(dropped),
            freed: Freed::default(),
        }
    }
}

/// The answer to a cancel of a context that nobody knows.
pub(crate) fn unknown(name: String) -> Cancelled {
    Cancelled {
        ctx: name,
        late: false,
        reason: "unknown",
        generated: 0,
        sent: 0,
        played: 0,
        exact: false,
        heard: Heard::nothing(),
        dropped_ms: 0,
        freed: Freed::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::Asked;
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn context(asked: &Asked) -> Context {
        let format = Format::choose(asked).unwrap();
        let mut context = Context::new("a".into(), 7, format, Duration::from_secs(60));
        context.announced = true;
        context
    }

    fn packets(n: usize, duration: u64) -> Vec<Packet> {
        vec![Packet { bytes: Bytes::from_static(&[9, 9]), duration, last: false }; n]
    }

    fn commits(context: &mut Context) -> Vec<(u64, u64, bool)> {
        let mut commits = Vec::new();
        loop {
            match context.next(NOW) {
                Next::Nothing => return commits,
                Next::Event(ServerEvent::Commit(c)) => commits.push((c.from, c.to, c.r#final)),
                _ => {}
            }
        }
    }

    #[test]
    fn a_packet_stands_behind_twenty_bytes_of_header() {
        let mut context = context(&Asked::default());
        context.push_packets(packets(2, 960), 960);
        let Next::Audio(first) = context.next(NOW) else { panic!() };
        assert_eq!(&first[..], &[1, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9]);
        let Next::Audio(second) = context.next(NOW) else { panic!() };
        assert_eq!(&second[8..20], &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, 192]);
    }

    #[test]
    fn a_commit_ends_with_the_first_packet_that_reaches_its_boundary() {
        let mut context = context(&Asked { frame_ms: Some(60), ..Asked::default() });
        context.push_packets(packets(68, 2_880), 98_000);
        let expected = [(0, 97_920, false), (97_920, 192_960, false)];
        assert_eq!(commits(&mut context), expected);
    }

    #[test]
    fn the_last_commit_ends_with_the_last_real_sample() {
        let mut context = context(&Asked::default());
        let mut all = packets(51, 960);
        all[50].last = true;
        context.push_packets(all, 24_037);
        assert_eq!(commits(&mut context), [(0, 48_386, true)]);
    }

    #[test]
    fn nothing_goes_before_the_context_was_announced() {
        let mut context = context(&Asked::default());
        context.announced = false;
        context.push_packets(packets(1, 960), 480);
        assert!(matches!(context.next(NOW), Next::Nothing));
    }
}
