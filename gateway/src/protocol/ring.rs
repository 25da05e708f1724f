//! What was sent lately, for a client that comes back: it says how far it got, and hears the rest again, in order.
//!
//! ```text
//! sent    5 text   6 frame a/0   7 frame a/1   8 text   9 frame b/0   10 frame a/2 ...
//! kept             (played)      7 frame a/1   8 text   9 frame b/0   10 frame a/2
//! ```
//!
//! Sound is kept from the start of the oldest commit that was not played, at most 30 s a context; messages as long as there is
//! room. It must never know what a message means.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::Handle;

/// Sound of one context that is kept, in seconds.
const KEPT_SECONDS: u64 = 30;

/// A frame of sound with its place in the context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sound {
    pub(crate) handle: Handle,
    /// Of the first packet.
    pub(crate) seq: u32,
    /// Packets in it.
    pub(crate) count: u32,
    /// Where it begins and ends on the media clock.
    pub(crate) position: u64,
    pub(crate) end: u64,
    /// It is the last frame of a commit.
    pub(crate) closes: bool,
    /// It is the last frame of its context.
    pub(crate) is_last: bool,
    /// Header and packets.
    pub(crate) bytes: Bytes,
}

/// Something that is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Again {
    Text(String),
    /// `gap`: frames before it are lost.
    Sound {
        sound: Sound,
        gap: bool,
    },
}

struct Message {
    order: u64,
    n: u64,
    json: String,
}

/// What was sent and may be asked for again.
pub(crate) struct Ring {
    bytes_max: usize,
    bytes: usize,
    /// Number of the next entry, of either kind.
    order: u64,
    messages: VecDeque<Message>,
    /// The latest message that is no longer here.
    forgotten: u64,
    sounds: BTreeMap<Handle, VecDeque<(u64, Sound)>>,
    /// The message that ended a context, behind all of its sound.
    ends: BTreeMap<Handle, u64>,
}

impl Ring {
    /// A ring that holds at most so many bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            bytes: 0,
            order: 0,
            messages: VecDeque::new(),
            forgotten: 0,
            sounds: BTreeMap::new(),
            ends: BTreeMap::new(),
        }
    }

    /// A message was sent.
    pub(crate) fn message(&mut self, n: u64, json: String) {
        self.bytes += json.len();
        let order = self.next_order();
        self.messages.push_back(Message { order, n, json });
        self.shrink();
    }

    /// A frame was sent; `rate` is that of its clock.
    pub(crate) fn sound(&mut self, sound: Sound, rate: u32) {
        let (handle, end) = (sound.handle, sound.end);
        self.bytes += sound.bytes.len();
        let order = self.next_order();
        self.sounds.entry(handle).or_default().push_back((order, sound));
        let oldest = end.saturating_sub(KEPT_SECONDS * u64::from(rate));
        self.drop_while(handle, |sound| sound.position < oldest);
        self.shrink();
    }

    /// A listener has heard a context up to here: what was played in whole commits is not asked for again.
    pub(crate) fn played(&mut self, handle: Handle, position: u64) {
        let Some(sounds) = self.sounds.get(&handle) else { return };
        let played = sounds.iter().rposition(|(_, sound)| sound.closes && sound.end <= position);
        let Some(played) = played else { return };
        let up_to = sounds[played].1.seq;
        self.drop_while(handle, |sound| sound.seq <= up_to);
    }

    /// Message `n` has ended a context: who got that got all of its sound.
    pub(crate) fn ended(&mut self, handle: Handle, n: u64) {
        self.ends.entry(handle).or_insert(n);
    }

    /// The sound of a context is of no use any more.
    pub(crate) fn forget(&mut self, handle: Handle) {
        self.ends.remove(&handle);
        self.drop_while(handle, |_| true);
    }

    /// What a client has missed that got messages up to `last_n` and of each context the packets up to `last`, in the order
    /// in which it was sent. `None` when messages among it are no longer here.
    pub(crate) fn since(
        &self,
        last_n: u64,
        last: impl Fn(Handle) -> Option<u32>,
    ) -> Option<Vec<Again>> {
        if last_n < self.forgotten {
            return None;
        }
        let missed = self.messages.iter().filter(|message| message.n > last_n);
        let mut again: Vec<(u64, Again)> =
            missed.map(|m| (m.order, Again::Text(m.json.clone()))).collect();
        for (&handle, sounds) in &self.sounds {
            if self.ends.get(&handle).is_some_and(|end| *end <= last_n) {
                continue;
            }
            let mut next = last(handle).map_or(0, |last| last.saturating_add(1));
            for (order, sound) in sounds {
                if sound.seq < next {
                    continue;
                }
                again.push((*order, Again::Sound { gap: sound.seq > next, sound: sound.clone() }));
                next = sound.seq + sound.count;
            }
        }
        again.sort_by_key(|(order, _)| *order);
        Some(again.into_iter().map(|(_, again)| again).collect())
    }

    /// Whether sound of a context is kept; if any, then the latest.
    pub(crate) fn keeps(&self, handle: Handle) -> bool {
        self.sounds.contains_key(&handle)
    }

    fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Keeps to the limit: the oldest goes first, whatever it is.
    fn shrink(&mut self) {
        while self.bytes > self.bytes_max {
            let message = self.messages.front().map(|message| message.order);
            let sounds = self.sounds.iter().filter_map(|(&h, s)| Some((s.front()?.0, h)));
            match (message, sounds.min()) {
                (Some(message), oldest) if oldest.is_none_or(|(order, _)| message < order) => {
                    if let Some(Message { n, json, .. }) = self.messages.pop_front() {
                        self.bytes -= json.len();
                        self.forgotten = n;
                    }
                }
                (_, Some((_, handle))) => {
                    let seq = self.sounds[&handle].front().map(|(_, sound)| sound.seq);
                    self.drop_while(handle, |sound| Some(sound.seq) == seq);
                }
                (_, None) => return,
            }
        }
    }

    fn drop_while(&mut self, handle: Handle, mut is_old: impl FnMut(&Sound) -> bool) {
        let Some(sounds) = self.sounds.get_mut(&handle) else { return };
        while let Some((_, sound)) = sounds.pop_front_if(|(_, sound)| is_old(sound)) {
            self.bytes -= sound.bytes.len();
        }
        if sounds.is_empty() {
            self.sounds.remove(&handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 24_000;

    /// A frame of a second.
    fn sound(handle: Handle, seq: u32) -> Sound {
        let position = u64::from(seq) * 24_000;
        let bytes = Bytes::from_static(&[0; 100]);
        let closes = seq % 2 == 1;
        let end = position + 24_000;
        Sound { handle, seq, count: 1, position, end, closes, is_last: false, bytes }
    }

    fn told(again: &[Again]) -> Vec<String> {
        let tell = |again: &Again| match again {
            Again::Text(json) => json.clone(),
            Again::Sound { sound, gap } => {
                format!("{}/{}{}", sound.handle, sound.seq, if *gap { " gap" } else { "" })
            }
        };
        again.iter().map(tell).collect()
    }

    fn ring() -> Ring {
        let mut ring = Ring::new(1_000_000);
        ring.message(1, "ready".into());
        ring.sound(sound(1, 0), RATE);
        ring.sound(sound(2, 0), RATE);
        ring.sound(sound(1, 1), RATE);
        ring.message(2, "commit".into());
        ring.sound(sound(1, 2), RATE);
        ring
    }

    #[test]
    fn what_was_missed_comes_again_in_its_order() {
        let ring = ring();
        let all = ring.since(0, |_| None).unwrap();
        assert_eq!(told(&all), ["ready", "1/0", "2/0", "1/1", "commit", "1/2"]);
        let some = ring.since(1, |handle| (handle == 1).then_some(1)).unwrap();
        assert_eq!(told(&some), ["2/0", "commit", "1/2"]);
        assert_eq!(told(&ring.since(2, |_| Some(9)).unwrap()), [""; 0]);
    }

    #[test]
    fn played_commits_go_and_leave_a_gap_for_who_did_not_get_them() {
        let mut ring = ring();
        ring.played(1, 47_999);
        assert_eq!(ring.since(2, |h| (h == 2).then_some(0)).unwrap().len(), 3);
        ring.played(1, 48_000);
        let missed = ring.since(2, |h| (h == 2).then_some(0)).unwrap();
        assert_eq!(told(&missed), ["1/2 gap"]);
        assert_eq!(told(&ring.since(2, |_| Some(1)).unwrap()), ["1/2"]);
        assert_eq!((ring.keeps(1), ring.keeps(3)), (true, false));
        ring.ended(2, 2);
        assert_eq!(told(&ring.since(1, |_| Some(1)).unwrap()), ["commit", "1/2"]);
        assert_eq!(told(&ring.since(2, |_| None).unwrap()), ["1/2 gap"], "2 is known to be over");
        ring.forget(1);
        ring.forget(2);
        assert!(ring.since(2, |_| None).unwrap().is_empty());
    }

    #[test]
    fn thirty_seconds_of_a_context_are_kept() {
        let mut ring = Ring::new(1_000_000);
        (0..40).for_each(|seq| ring.sound(sound(1, seq), RATE));
        let kept = ring.since(0, |_| None).unwrap();
        assert_eq!((kept.len(), &told(&kept)[0][..]), (30, "1/10 gap"));
    }

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let mut ring = Ring::new(400);
        ring.message(1, "x".repeat(150));
        ring.sound(sound(1, 0), RATE);
        ring.message(2, "x".repeat(150));
        assert!(ring.since(0, |_| None).is_some());
        ring.sound(sound(2, 0), RATE);
        assert!(ring.since(0, |_| None).is_none(), "a lost message cannot be passed over");
        ring.sound(sound(2, 1), RATE);
        let missed = ring.since(1, |_| None).unwrap();
        assert_eq!(told(&missed)[1..], ["2/0", "2/1"]);
    }
}
