//! The guarded chunker: how much of a live text the next chunk takes, if one may start.
//!
//! It sees the text that no chunk has taken yet and decides; it must never know time or who asks, only what
//! follows from them.
//!
//! ```text
//! 1. all text known, fits the cap      everything
//! 2. a sentence, lookahead in hand     as many sentences as fit; the first one for a first chunk
//! 3. cap and lookahead are there       the best place within the cap
//! 4. an early cut is wanted            the best place that leaves no stub of a sentence
//! ```

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::boundary::{Kind, is_inside_cluster, is_inside_reading, kind, words};
use super::split::{CHUNK_CHARS, LOOKAHEAD_CHARS};
use super::spoken::{Spoken, is_blank};

/// When and where live text is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSettings {
    /// Longest chunk, in characters.
    pub chunk_chars: usize,
    /// Text wanted behind a sentence before it is cut without need, in characters.
    pub lookahead_chars: usize,
    /// A sentence that opens the audio is cut early after this wait from its first visible character. A short wait
    /// costs prosody and gains latency.
    pub first_wait: Duration,
    /// Shortest early cut of such a sentence, in characters.
    pub first_chars: usize,
    /// Fewest words of an early cut inside a sentence, and fewest that it leaves.
    pub least_words: usize,
    /// A sentence mark at the end of the text counts once nothing has followed it for this long.
    pub mark_wait: Duration,
    /// Unfinished markup, bytes, numbers and words are held for at most this long.
    pub hold: Duration,
}

impl Default for LiveSettings {
    fn default() -> Self {
        Self {
            chunk_chars: CHUNK_CHARS,
            lookahead_chars: LOOKAHEAD_CHARS,
            first_wait: Duration::from_millis(80),
            first_chars: 12,
            least_words: 3,
            // Five times the usual gap between two tokens of a model.
            mark_wait: Duration::from_millis(150),
            hold: Duration::from_millis(400),
        }
    }
}

impl LiveSettings {
    /// How much of a text decides where its next chunk ends.
    pub(super) fn window_chars(&self) -> usize {
        self.chunk_chars + self.lookahead_chars + 1
    }
}

/// How urgently the engine wants a chunk. The first chunk of a passage is always wanted as soon as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The listener has audio in hand: only a good place will do.
    Relaxed,
    /// The listener runs dry unless a chunk starts now.
    Urgent,
}

/// The text that no chunk has taken, up to the next flush or as far as it is known, and what is known of it.
#[derive(Debug)]
pub(super) struct View<'a> {
    /// Its first [`LiveSettings::window_chars`]: no cut ever looks at more. Starts with a visible character.
    pub text: Cow<'a, [Spoken]>,
    /// Length of all of it.
    pub len: usize,
    /// So much of it may be taken; what is behind could still be read in another way.
    pub settled: usize,
    /// Index behind its last letter or digit, if it is closed.
    pub heard_to: usize,
    /// Nothing can be added to it.
    pub closed: bool,
    /// Its last word is complete.
    pub complete: bool,
    /// Its last character may be the end of a sentence.
    pub may_end: bool,
    /// Nothing has come for so long that all there is may be taken.
    pub stalled: bool,
    /// An early cut is wanted.
    pub pressing: bool,
    /// The passage's first chunk.
    pub first: bool,
    /// The text opens a sentence, or follows a flush.
    pub opening: bool,
    /// So much of the text has been shown as lookahead: the next chunk is not shorter.
    pub promised: usize,
}

/// A place to cut: the chunk would be the first `at` characters.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: usize,
    kind: Kind,
}

/// How many characters the next chunk takes, if one may be cut.
pub(super) fn choose(view: &View<'_>, live: &LiveSettings) -> Option<usize> {
    let len = view.len;
    let first_heard = view.text.iter().position(|s| s.ch.is_alphanumeric())?;
    if view.settled <= first_heard {
        return None;
    }
    if view.closed && len <= live.chunk_chars {
        return Some(len);
    }
    if !view.closed && !view.pressing && len <= live.lookahead_chars {
        return None;
    }
    let places = places(view);
    // What is left behind must have something to say: a mark alone is no chunk.
    let speaks_on = |at: usize| !view.closed || at < view.heard_to;
    let allowed = view.promised.max(first_heard + 1)..=live.chunk_chars.min(view.settled);
    let fits = |p: &&Place| allowed.contains(&p.at) && speaks_on(p.at);
    let candidates: Vec<Place> = places.iter().filter(fits).copied().collect();
    let with_lookahead = sentences_with_lookahead(view, &candidates, live);
    if with_lookahead.is_some() {
        return with_lookahead;
    }
    let tail_ok = |p: &Place| leaves_no_stub(view, &places, *p, live);
    if allowed.is_empty() {
        return None;
    }
    let overdue = view.stalled && view.pressing && len > live.chunk_chars;
    if view.closed || overdue || len >= live.chunk_chars + live.lookahead_chars {
        let good = best(candidates.iter().filter(|p| tail_ok(p)));
        let forced = || anywhere(&view.text, allowed.clone(), speaks_on);
        return good.or_else(|| best(candidates.iter())).or_else(|| Some(forced()));
    }
    let long_enough = |p: &Place| {
        view.stalled
            || if view.opening {
                p.at >= live.first_chars
            } else {
                p.kind == Kind::Sentence || words(&view.text[..p.at]) >= live.least_words
            }
    };
    let early = |p: &&Place| view.pressing && long_enough(p) && tail_ok(p);
    best(candidates.iter().filter(early))
}

fn places(view: &View<'_>) -> Vec<Place> {
    let text = &*view.text;
    let inside = |at: usize| {
        let blank = is_blank(text[at].ch) && !is_blank(text[at - 1].ch);
        blank || matches!(text[at - 1].ch, '.' | '!' | '?')
    };
    let place = |at| kind(text, at).map(|kind| Place { at, kind });
    let mut places: Vec<Place> =
        (1..text.len()).filter(|&at| inside(at)).filter_map(place).collect();
    if view.complete && text.len() == view.len {
        let kind = kind(text, text.len());
        let kind = kind.or((view.stalled || view.closed).then_some(Kind::Weak));
        places.extend(kind.map(|kind| Place { at: text.len(), kind }));
    }
    places
}

fn sentences_with_lookahead(
    view: &View<'_>,
    candidates: &[Place],
    live: &LiveSettings,
) -> Option<usize> {
    let in_hand = |p: &&Place| {
        let blanks = view.text[p.at..].iter().take_while(|s| is_blank(s.ch)).count();
        let behind = view.len - p.at - blanks;
        p.kind == Kind::Sentence && (view.closed || behind >= live.lookahead_chars)
    };
    let mut sentences = candidates.iter().filter(in_hand);
    let chosen = if view.first {
        sentences.find(|p| p.at >= live.first_chars)
    } else {
        sentences.next_back()
    };
    chosen.map(|p| p.at)
}

/// Whether the rest of the sentence that a cut leaves, as far as it is known, is worth a chunk of its own.
fn leaves_no_stub(view: &View<'_>, places: &[Place], place: Place, live: &LiveSettings) -> bool {
    let text = &*view.text;
    if place.kind == Kind::Sentence {
        return true;
    }
    if view.stalled && view.len <= live.chunk_chars {
        return place.at == view.len;
    }
    let end = places.iter().find(|p| p.at > place.at && p.kind == Kind::Sentence);
    let rest = &text[place.at..end.map_or(text.len(), |p| p.at)];
    let ends = end.is_some() || view.closed || view.may_end;
    let least = if ends || !view.opening { live.least_words } else { 0 };
    words(rest) >= least
}

/// The last of the best places. A clause is worth so many characters of speech, a word that does not lean on the next
/// some.
fn best<'a>(places: impl Iterator<Item = &'a Place>) -> Option<usize> {
    const CLAUSE_CHARS: usize = 80;
    const WORD_CHARS: usize = 20;
    let score = |p: &&Place| match p.kind {
        Kind::Weak => (false, p.at),
        Kind::Word => (false, p.at + WORD_CHARS),
        Kind::Clause => (false, p.at + CLAUSE_CHARS),
        Kind::Sentence => (true, p.at),
    };
    places.max_by_key(score).map(|p| p.at)
}

/// A cut where there is no place: at the last blank, else late between two characters.
fn anywhere(
    text: &[Spoken],
    allowed: RangeInclusive<usize>,
    speaks_on: impl Fn(usize) -> bool,
) -> usize {
    let (least, most) = (*allowed.start(), *allowed.end());
    let blank = |&at: &usize| text.get(at).is_some_and(|s| is_blank(s.ch)) && speaks_on(at);
    let whole = |&at: &usize| !is_inside_cluster(text, at) && speaks_on(at);
    let late = least.max(most / 2)..=most;
    let between = |at: &usize| blank(at) && !is_inside_reading(text, *at);
    let blanks = allowed.clone().rev().find(between).or_else(|| allowed.rev().find(blank));
    blanks.or_else(|| late.rev().find(whole)).unwrap_or(most)
}
