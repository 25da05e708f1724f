//! What a context has for the wire, and in which order.
//!
//! ```text
//! queue    [packet][packet][packet] [flushed] [packet] .. [done]
//!          `----- one frame ------' behind it, a mark may stand between any two frames
//! ```

use std::time::Duration;

use engine::{Finish, Summary};

use super::frame::{self, Head};
use super::{Context, Item, Phase, Release, Timestamps};
use crate::protocol::alignment::{Timed, Timings};
use crate::protocol::event::{Commit, Done, ServerEvent, TextRange, Timing, Tokens, Usage};
use crate::protocol::format::Clock;
use crate::protocol::note::{self, Gap};
use crate::protocol::pacer::{Leave, Pacer};
use crate::protocol::ring::Sound;
use crate::protocol::{Packet, millis};

/// Length of a commit.
const COMMIT_SECONDS: u64 = 2;
/// A frame that is not full goes out when no packet has come for so long: what the engine gives at once comes in pieces,
/// half a millisecond apart, and a listener must not wait for text that nobody has written.
const PACK_WAIT: Duration = Duration::from_millis(10);

/// What a listener has in hand before playing begins; a gap that this covers is not heard.
const START_BUFFER: Duration = Duration::from_millis(40);
/// Text that comes later than this before the listener runs dry cannot be spoken in time: the gap is the writer's.
const TEXT_LEAD: Duration = Duration::from_millis(500);

/// What a context has for the wire now.
#[derive(Debug)]
pub(crate) enum Next {
    Nothing,
    /// Not before this moment, or not before something comes.
    Held(Option<Duration>),
    Sound(Sound),
    Event(ServerEvent),
    /// A cancel has waited for all that is still to be heard, and that was sent.
    Stopped,
}

impl Context {
    /// What goes on the wire next. After the last it is [`Phase::Done`].
    pub(crate) fn next(&mut self, now: Duration) -> Next {
        if !self.announced {
            return Next::Nothing;
        }
        let is_done = matches!(self.queue.front(), Some(Item::Done(_)));
        if self.record.stop.is_some() && (is_done || self.record.has_stopped()) {
            return Next::Stopped;
        }
        if !matches!(self.queue.front(), Some(Item::Commit { .. }))
            && let Some(mark) = self.mark_passed()
        {
            return Next::Event(mark);
        }
        match self.queue.front() {
            None => return Next::Nothing,
            Some(Item::Packet(_)) => {
                let next = self.next_frame(now);
                self.was_held |= matches!(next, Next::Held(_));
                return next;
            }
            Some(_) => {}
        }
        match self.queue.pop_front() {
            None | Some(Item::Packet(_)) => Next::Nothing,
            Some(Item::Commit { to, last }) => Next::Event(self.commit(to, last)),
            Some(Item::Flushed { id, samples, text_offset }) => {
                self.queued_urgent -= 1;
                let pos = self.delivery.format.clock().position(samples);
                Next::Event(ServerEvent::Flushed {
                    ctx: self.record.name.clone(),
                    id,
                    pos,
                    text_offset,
                })
            }
            Some(Item::Wrote { seq, text }) => {
                self.queued_urgent -= 1;
                self.queued_bytes -= text.len();
                Next::Event(ServerEvent::TextDelta { ctx: self.record.name.clone(), seq, text })
            }
            Some(Item::Written(text)) => {
                self.queued_urgent -= 1;
                self.queued_bytes -= text.len();
                Next::Event(ServerEvent::TextDone { ctx: self.record.name.clone(), text })
            }
            Some(Item::Done(summary)) => Next::Event(self.done(&summary, now)),
        }
    }

    /// The oldest mark, if all sound before it was sent.
    fn mark_passed(&mut self) -> Option<ServerEvent> {
        let clock = self.delivery.format.clock();
        let sent = self.record.pacer.sent();
        let is_passed = |(samples, _): &mut (u64, super::Mark)| clock.position(*samples) <= sent;
        let (samples, mark) = self.marks_due.pop_front_if(is_passed)?;
        Some(ServerEvent::Mark {
            ctx: self.record.name.clone(),
            id: mark.id,
            pos: clock.position(samples),
            text_offset: mark.text_offset,
        })
    }

    fn next_frame(&mut self, now: Duration) -> Next {
        if self.record.stop.is_some() {
            // What is still to be heard is not much, and its listener may report no more.
            let (count, _) = self.gather();
            return Next::Sound(self.send(count, now));
        }
        if !self.is_released() {
            return Next::Held(None);
        }
        let (leave, news) = self.record.pacer.leave(now);
        if news {
            return Next::Event(self.parked(leave, now));
        }
        match leave {
            Leave::Go => {}
            Leave::At(at) => return Next::Held(Some(at)),
            Leave::Report => return Next::Held(None),
        }
        match self.gather() {
            (count, true) => Next::Sound(self.send(count, now)),
            (count, false) if now >= self.packets_at + PACK_WAIT => {
                Next::Sound(self.send(count, now))
            }
            (_, false) => Next::Held(Some(self.packets_at + PACK_WAIT)),
        }
    }

    /// Whether the packets in front may leave at all.
    fn is_released(&self) -> bool {
        match self.delivery.release {
            Release::Frame => true,
            Release::Commit => {
                let end = self.record.pacer.sent() + self.queued_duration;
                self.queued_urgent > 0 || end >= self.boundary()
            }
        }
    }

    /// Whether it waits for the rest of a commit, which it must be given whatever else waits.
    pub(crate) fn lacks_commit(&self) -> bool {
        !self.is_released()
    }

    /// Where the running commit is full.
    fn boundary(&self) -> u64 {
        let rate = u64::from(self.delivery.format.sample_rate);
        COMMIT_SECONDS * (u64::from(self.commits) + 1) * rate
    }

    /// How many packets go into the next frame, and whether it can take no more.
    fn gather(&self) -> (usize, bool) {
        let boundary = self.record.stop_position().unwrap_or(u64::MAX).min(self.boundary());
        let mut end = self.record.pacer.sent();
        for (count, item) in self.queue.iter().enumerate() {
            let Item::Packet(packet) = item else { return (count, true) };
            end += packet.duration;
            let is_full = count + 1 == usize::from(self.delivery.format.pack);
            if is_full || packet.last || end >= boundary {
                return (count + 1, true);
            }
        }
        (self.queue.len(), false)
    }

    fn parked(&self, leave: Leave, now: Duration) -> ServerEvent {
        let (ctx, ahead_ms) = (self.record.name.clone(), millis(self.record.pacer.ahead(now)));
        match leave {
            Leave::Go => ServerEvent::Resumed { ctx, ahead_ms },
            Leave::At(_) | Leave::Report => ServerEvent::Parked { ctx, ahead_ms },
        }
    }

    /// Makes a frame of the packets in front. The first packet that reaches a boundary closes the commit.
    fn send(&mut self, count: usize, now: Duration) -> Sound {
        self.first_audio_at.get_or_insert(now);
        let packets: Vec<Packet> = self
            .queue
            .drain(..count)
            .map(|item| match item {
                Item::Packet(packet) => packet,
                _ => unreachable!("only packets were gathered; this is a bug"),
            })
            .collect();
        let duration: u64 = packets.iter().map(|packet| packet.duration).sum();
        let is_last = packets.iter().any(|packet| packet.last);
        let (seq, position) = (self.packets, self.record.pacer.sent());
        let end = position + duration;
        let mut flags = if std::mem::take(&mut self.owes_gap) { frame::GAP } else { 0 };
        if is_last {
            flags |= frame::COMMIT | frame::LAST;
            let to = self.delivery.format.clock().position(self.record.generated);
            self.queue.push_front(Item::Commit { to, last: true });
        } else if end >= self.boundary() {
            flags |= frame::COMMIT;
            self.queue.push_front(Item::Commit { to: end, last: false });
        }
        self.queued_bytes -= packets.iter().map(|packet| packet.bytes.len()).sum::<usize>();
        self.queued_duration -= duration;
        self.queued_urgent -= usize::from(is_last);
        self.packets += count as u32;
        self.record.pacer.send(duration, now);
        let (handle, count) = (self.record.handle, count as u32);
        let bytes = frame::frame(Head { flags, handle, seq, position }, &packets);
        Sound {
            handle,
            seq,
            count,
            position,
            end,
            closes: flags & frame::COMMIT != 0,
            is_last,
            bytes,
        }
    }

    /// What is to be counted of the sound that was just sent; `before` is how far the listener was until then.
    pub(crate) fn sound_sent(
        &mut self,
        before: &Pacer,
        sound: &Sound,
        now: Duration,
    ) -> note::Sound {
        let was_held = std::mem::take(&mut self.was_held);
        let is_first = before.sent() == 0 && !was_held;
        let had_text = |dry| self.last_text_at.is_some_and(|at| at + TEXT_LEAD <= dry);
        let dry = before.dry_at().filter(|&dry| dry + START_BUFFER < now && !was_held);
        note::Sound {
            context: self.record.handle,
            packets: u64::from(sound.count),
            bytes: sound.bytes.len(),
            duration: self.record.pacer.sounding(sound.end - sound.position),
            is_last: sound.is_last,
            first_after: self.first_text_at.filter(|_| is_first).map(|at| now - at),
            gap: dry.map(|dry| Gap { length: now - dry - START_BUFFER, had_text: had_text(dry) }),
            was_held,
        }
    }

    fn commit(&mut self, to: u64, last: bool) -> ServerEvent {
        let clock = self.delivery.format.clock();
        let from_samples = clock.samples(self.record.commit_from);
        let to_samples = if last { self.record.generated } else { clock.samples(to) };
        self.record.alignment.freeze(to_samples);
        let words = self.record.alignment.words(&self.record.text, from_samples..to_samples);
        let text_to = match words.timed.last() {
            _ if last => self.text_chars,
            Some(word) => word.chars.end,
            None => self.commit_text_from,
        };
        let wanted = self.delivery.timestamps;
        let chars = (wanted == Timestamps::Char)
            .then(|| self.record.alignment.chars(&self.record.text, from_samples..to_samples));
        let align = chars.as_ref().unwrap_or(&words).align;
        let commit = Commit {
            ctx: self.record.name.clone(),
            index: self.commits,
            from: self.record.commit_from,
            to,
            text: TextRange { from: self.commit_text_from, to: text_to },
            words: (wanted == Timestamps::Word).then(|| on_clock(&words, clock)),
            chars: chars.map(|chars| on_clock(&chars, clock)),
            align: (wanted != Timestamps::None).then_some(align),
            r#final: last,
        };
        self.commits += 1;
        self.record.commit_from = to;
        self.commit_text_from = text_to;
        ServerEvent::Commit(commit)
    }

    fn done(&mut self, summary: &Summary, now: Duration) -> ServerEvent {
        self.record.phase = Phase::Done;
        let clock = self.delivery.format.clock();
        let audio_ms = summary.samples / 24;
        let took = self.first_text_at.map(|at| now - at);
        let rtf = took.filter(|_| audio_ms > 0).map(|t| t.as_secs_f64() * 1e3 / audio_ms as f64);
        ServerEvent::Done(Box::new(Done {
            ctx: self.record.name.clone(),
            samples: clock.position(summary.samples),
            seq_last: i64::from(self.packets) - 1,
            text_chars: self.text_chars,
            flags: flags(summary),
            finish: summary.usage.map(|usage| match usage.finish {
                Finish::Stop => "stop",
                Finish::Length => "length",
            }),
            counted: summary.usage,
            usage: Usage { audio_ms, chars: self.text_chars, tokens: summary.usage.map(tokens) },
            timing: Timing {
                queue_ms: millis(summary.queued),
                first_audio_ms: self
                    .first_text_at
                    .and_then(|t| Some(millis(self.first_audio_at?.saturating_sub(t)))),
                // Thousandths: what is finer is noise.
                rtf: rtf.map(|r| (r * 1e3).round() / 1e3),
            },
        }))
    }
}

fn tokens(usage: engine::Usage) -> Tokens {
    Tokens {
        prompt_tokens: usage.prompt_tokens,
        prompt_audio_tokens: usage.prompt_audio_tokens,
        text_tokens: usage.text_tokens,
        audio_frames: usage.audio_frames,
    }
}

/// Where words or characters stand in the text and on the media clock.
fn on_clock(timings: &Timings, clock: Clock) -> Vec<[u64; 4]> {
    let place = |timed: &Timed| {
        let (chars, samples) = (&timed.chars, &timed.samples);
        let position = |at| clock.position(at);
        [chars.start as u64, chars.end as u64, position(samples.start), position(samples.end)]
    };
    timings.timed.iter().map(place).collect()
}

/// What a listener's program may want to know of how a context was spoken.
fn flags(summary: &Summary) -> Vec<&'static str> {
    let flags = [
        ("guard_exhausted", summary.guard_exhausted),
        ("truncated_by_budget", summary.truncated_by_budget),
    ];
    flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
}
