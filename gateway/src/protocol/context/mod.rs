//! One context: its text, the packets that wait for the wire, the 2 s commits, and what its listener has heard.
//!
//! ```text
//! wire   P P P .. P(commit) commit 0   P P .. P(commit, last) commit 1   done
//!        0 1 2 .. 99                  100
//! ```
//!
//! It must never know of other contexts, nor of JSON.

mod answering;
mod frame;
mod outgoing;
mod record;
mod stopping;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use engine::{Manner, Summary};

use super::event::Cancelled;
use super::format::Format;
use super::pacer::Pacer;
use super::{Handle, Packet};
use crate::auth::Place;
pub(crate) use answering::{Answering, Upload, Waiting};
pub(crate) use frame::{behind_gap, packets, payload};
pub(crate) use outgoing::Next;
pub(crate) use record::{Record, unknown};
pub(crate) use stopping::At;

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

/// When sound may leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Release {
    /// As soon as it is made.
    #[default]
    Frame,
    /// With the commit that it belongs to, or when something that waits behind it must not be kept back.
    Commit,
}

/// Which times the commits tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Timestamps {
    None,
    #[default]
    Word,
    Char,
}

/// How the sound of a context is to reach its listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery {
    pub(crate) format: Format,
    pub(crate) max_ahead: Duration,
    pub(crate) release: Release,
    pub(crate) timestamps: Timestamps,
}

/// What waits for the wire.
#[derive(Debug)]
enum Item {
    Packet(Packet),
    Commit {
        to: u64,
        last: bool,
    },
    Flushed {
        id: Option<String>,
        samples: u64,
        text_offset: usize,
    },
    /// The next piece of the text that an answer is.
    Wrote {
        seq: u64,
        text: String,
    },
    /// All of a segment of it.
    Written(String),
    Done(Box<Summary>),
}

/// A place in the text that the client wants to know the position of.
#[derive(Debug)]
struct Mark {
    id: String,
    text_offset: usize,
}

/// The state of one context.
pub(crate) struct Context {
    /// What is kept of it when it is over.
    pub(crate) record: Record,
    /// Length of its text in code points.
    pub(crate) text_chars: usize,
    pub(crate) next_seq: u64,
    /// Whether the client was told that its text piles up.
    pub(crate) pressed: bool,
    /// `context.opened` is on the wire, so sound may follow.
    pub(crate) announced: bool,
    /// The client lacks the sound before the next frame.
    pub(crate) owes_gap: bool,
    /// The context whose end its sound waits for.
    pub(crate) after: Option<Handle>,
    /// The engine's last event has come.
    pub(crate) engine_over: bool,
    /// When it was asked for.
    pub(crate) asked_at: Duration,
    pub(crate) ignored: Vec<&'static str>,
    /// Its place among those of the key, while it is live.
    pub(crate) key_place: Option<Place>,
    pub(crate) manner: Manner,
    /// Of one that answers messages.
    pub(crate) answering: Option<Box<Answering>>,
    delivery: Delivery,
    queue: VecDeque<Item>,
    queued_bytes: usize,
    /// Length of the packets that wait, on the media clock.
    queued_duration: u64,
    /// Things that wait behind packets and must not wait for a full commit or pack.
    queued_urgent: usize,
    /// When packets came last.
    packets_at: Duration,
    /// Flushes under way: the client's name for each, and where in the text it stands.
    flushes: VecDeque<(Option<String>, usize)>,
    /// Marks whose position is not known.
    marks: VecDeque<Mark>,
    /// Marks with their samples, until the sound up to there was sent.
    marks_due: VecDeque<(u64, Mark)>,
    /// Number of the next packet.
    packets: u32,
    commits: u32,
    commit_text_from: usize,
    first_text_at: Option<Duration>,
    last_text_at: Option<Duration>,
    was_held: bool,
    first_audio_at: Option<Duration>,
}

impl Context {
    pub(crate) fn new(name: String, handle: Handle, delivery: Delivery) -> Self {
        let pacer = Pacer::new(delivery.format.clock(), delivery.max_ahead);
        Self {
            record: Record::new(name, handle, pacer),
            text_chars: 0,
            next_seq: 0,
            pressed: false,
            announced: false,
            owes_gap: false,
            after: None,
            engine_over: false,
            asked_at: Duration::ZERO,
            ignored: Vec::new(),
            key_place: None,
            manner: Manner::default(),
            answering: None,
            delivery,
            queue: VecDeque::new(),
            queued_bytes: 0,
            queued_duration: 0,
            queued_urgent: 0,
            packets_at: Duration::ZERO,
            flushes: VecDeque::new(),
            marks: VecDeque::new(),
            marks_due: VecDeque::new(),
            packets: 0,
            commits: 0,
            commit_text_from: 0,
            first_text_at: None,
            last_text_at: None,
            was_held: false,
            first_audio_at: None,
        }
    }

    /// What its packets are.
    pub(crate) fn format(&self) -> Format {
        self.delivery.format
    }

    /// Takes text that was accepted.
    pub(crate) fn push_text(&mut self, text: &str, now: Duration) {
        self.record.text.push_str(text);
        self.text_chars += text.chars().count();
        self.next_seq += 1;
        self.first_text_at.get_or_insert(now);
        self.last_text_at = Some(now);
    }

    /// What it has for the wire waits on purpose.
    pub(crate) fn hold(&mut self) {
        self.was_held = true;
    }

    /// Characters that no chunk has taken.
    pub(crate) fn pending_chars(&self) -> usize {
        self.text_chars.saturating_sub(self.record.alignment.taken())
    }

    pub(crate) fn flush(&mut self, id: Option<String>) {
        self.flushes.push_back((id, self.text_chars));
    }

    /// Flushes that were not answered.
    pub(crate) fn flushes(&self) -> usize {
        self.flushes.len()
    }

    /// The position of the end of the text so far is wanted.
    pub(crate) fn mark(&mut self, id: String) {
        self.marks.push_back(Mark { id, text_offset: self.text_chars });
        self.settle_marks();
    }

    /// Marks that were not answered.
    pub(crate) fn marks(&self) -> usize {
        self.marks.len() + self.marks_due.len()
    }

    /// Packets that were sent.
    pub(crate) fn packets(&self) -> u32 {
        self.packets
    }

    /// Sound that waits, in bytes.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Sound has come.
    pub(crate) fn push_packets(&mut self, packets: Vec<Packet>, generated: u64, now: Duration) {
        self.record.generated = generated;
        self.packets_at = now;
        for packet in packets {
            self.queued_bytes += packet.bytes.len();
            self.queued_duration += packet.duration;
            self.queued_urgent += usize::from(packet.last);
            self.queue.push_back(Item::Packet(packet));
        }
    }

    /// A chunk has begun or ended: some marks may have a position.
    pub(crate) fn settle_marks(&mut self) {
        while let Some(mark) = self.marks.front()
            && let Some(samples) = self.record.alignment.settled(mark.text_offset)
        {
            self.marks_due.extend(self.marks.pop_front().map(|mark| (samples, mark)));
        }
    }

    /// All marks up to a place in the text have sounded by `samples`.
    fn pass_marks(&mut self, text_offset: usize, samples: u64) {
        while let Some(mark) = self.marks.pop_front_if(|mark| mark.text_offset <= text_offset) {
            self.marks_due.push_back((samples, mark));
        }
    }

    /// The engine has spoken everything before the oldest flush.
    pub(crate) fn flushed(&mut self, samples: u64) {
        if let Some((id, text_offset)) = self.flushes.pop_front() {
            self.pass_marks(text_offset, samples);
            self.queue.push_back(Item::Flushed { id, samples, text_offset });
            self.queued_urgent += 1;
        }
    }

    /// The engine has spoken everything.
    pub(crate) fn complete(&mut self, summary: Summary) {
        self.engine_over = true;
        self.pass_marks(self.text_chars, summary.samples);
        self.queue.push_back(Item::Done(Box::new(summary)));
    }

    /// Whether something waits for the wire.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Stops it: what waits is dropped, and what was heard is told.
    pub(crate) fn cancel(&mut self, reason: &'static str, now: Duration) -> &Cancelled {
        self.queue.clear();
        (self.queued_bytes, self.queued_duration, self.queued_urgent) = (0, 0, 0);
        self.flushes.clear();
        self.marks.clear();
        self.marks_due.clear();
        self.record.cancel(reason, now)
    }

    /// It is over, and from now on only asked about: what it needed to speak goes.
    pub(crate) fn into_record(self) -> Record {
        let mut record = self.record;
        record.settle();
        record
    }
}
