//! From what a client writes to what a voice reads: text in any split, chunks out.
//!
//! Pure: no IO, no clock, no thread. Everything keeps offsets, so that a word that was heard can be found again in the
//! client's own text. It must never know what a chunk costs or who listens; the engine says when it wants one.
//!
//! ```text
//! deltas -> clean -> compose -> guard -> verbalise -> sanitize -> cut -> Chunk { text, spans, raw, tail }
//!           control  NFC        markup   numbers      blanks      late
//! ```
//!
//! [`Passage`] takes text as it is written and cuts late, from all that has come; [`whole`] takes a text that is
//! complete and cuts it as the published server does.

mod boundary;
mod chunk;
mod chunker;
mod clean;
mod compose;
mod front;
mod guard;
pub mod ids;
mod passage;
mod rewrite;
mod sanitize;
mod split;
mod spoken;
mod utf8;
mod verbalise;

pub use chunk::{Chunk, Tail};
pub use chunker::{LiveSettings, Need};
pub use passage::{Passage, Stats};
pub use rewrite::{Rewriter, may_be_rewritten, whole_by};
pub use split::{CHUNK_CHARS, ChunkLimits, LOOKAHEAD_CHARS};
pub use spoken::{Notice, Spoken};
pub use utf8::Utf8Joiner;
pub use verbalise::lexicon;
pub use verbalise::{Acronyms, Conventions, Initialisms, Lexicon, Locale, LocaleError};

use front::FrontEnd;

/// What is done to a client's text before it is spoken; one set for each context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextOptions {
    /// Drop what cannot be heard (controls, escape sequences, zero-width and private-use characters), turn blanks of
    /// every width into spaces, compose to NFC.
    pub clean: bool,
    /// Read Markdown for what it means and drop its signs.
    pub markdown: bool,
    /// Drop tags and model control words, read character entities.
    pub tags: bool,
    /// Obey `say-as`, `sub`, `spell` and `break` instead of only dropping their tags, and tell which tags have no effect.
    pub ssml: bool,
    /// Read `{"word": "x", "pronounce": "..."}` as its word.
    pub inline_words: bool,
    /// Drop emoji; else they are named where text is put into words.
    pub emoji: bool,
    /// Put numbers, dates, money, addresses and short forms into words.
    pub verbalize: bool,
    /// How they are written and read. Default: as in the language of the request.
    pub locale: Option<Locale>,
    /// How the model wants letters and numbers to be written; set by the bundle.
    pub conventions: Conventions,
    /// Words with a form of their own; they win over the rules.
    pub lexicon: Lexicon,
    /// Unfinished markup, and what is not yet known to be a number or an address, is held for at most this many characters.
    pub hold_chars: usize,
    /// A code block, comment or link target that does not close is skipped for at most this many characters.
    pub skip_chars: usize,
}

impl TextOptions {
    /// Nothing but the published sanitizer.
    pub fn literal() -> Self {
        Self {
            clean: false,
            markdown: false,
            tags: false,
            ssml: false,
            inline_words: false,
            emoji: false,
            verbalize: false,
            ..Self::default()
        }
    }
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            clean: true,
            markdown: true,
            tags: true,
            ssml: true,
            inline_words: false,
            emoji: true,
            verbalize: true,
            locale: None,
            conventions: Conventions::DEFAULT,
            lexicon: Lexicon::default(),
            hold_chars: 200,
            skip_chars: 2_000,
        }
    }
}

/// The sanitized spoken text of a whole passage, with its final period.
pub fn sanitize(text: &str, options: &TextOptions) -> String {
    spoken(text, options).iter().map(|s| s.ch).collect()
}

/// The sanitized spoken characters of a whole passage, with the raw text each came from.
pub fn spoken(text: &str, options: &TextOptions) -> Vec<Spoken> {
    read(text, options).0
}

/// As [`spoken()`], with what of the text has no effect.
pub fn read(text: &str, options: &TextOptions) -> (Vec<Spoken>, Vec<Notice>) {
    let (mut front, mut out) = (FrontEnd::new(options.clone()), Vec::new());
    front.push(text, &mut out);
    front.release(&mut out);
    out.extend(sanitize::final_period(&out, front.raw_chars()));
    (out, front.take_notices())
}

/// Cuts a whole text by the published rules, within the limits of a bundle. A text with nothing to say (empty, blanks,
/// marks or markup only) has no chunks. Beside them stands what of the text has no effect.
pub fn whole(text: &str, options: &TextOptions, limits: ChunkLimits) -> (Vec<Chunk>, Vec<Notice>) {
    let (text_spoken, notices) = read(text, options);
    if !spoken::is_speakable(&text_spoken) {
        return (Vec::new(), notices);
    }
    (literal(&text_spoken, text.chars().count(), limits), notices)
}

/// Cuts sanitized characters by the published rules, whatever they say.
///
/// `raw_chars` is the length of the raw text, in code points.
pub fn literal(spoken: &[Spoken], raw_chars: usize, limits: ChunkLimits) -> Vec<Chunk> {
    let ranges = split::chunks(spoken, limits.chunk_chars);
    split::layout(spoken, &ranges, raw_chars, limits.lookahead_chars)
}

/// Lays out a text that the client has cut into chunks itself; each is sanitized on its own, and cut further where
/// it is too long. Raw offsets count over all pieces, joined.
pub fn given(pieces: &[&str], options: &TextOptions) -> Vec<Chunk> {
    let (mut text, mut ranges, mut raw_chars) = (Vec::new(), Vec::new(), 0);
    for piece in pieces {
        let start = text.len();
        let moved = |s: Spoken| Spoken { from: s.from + raw_chars, to: s.to + raw_chars, ..s };
        let piece_spoken = spoken(piece, options);
        if spoken::is_speakable(&piece_spoken) {
            text.extend(piece_spoken.into_iter().map(moved));
            let pieces = split::chunks(&text[start..], CHUNK_CHARS);
            ranges.extend(pieces.iter().map(|r| r.start + start..r.end + start));
        }
        raw_chars += u32::try_from(piece.chars().count()).unwrap_or(u32::MAX);
    }
    split::layout(&text, &ranges, raw_chars as usize, LOOKAHEAD_CHARS)
}
