//! Ogg Opus (RFC 7845): Opus packets in pages, for files and live streams.
//!
//! ```text
//! page 0  OpusHead: channels, pre-skip, rate of the input
//! page 1  OpusTags: vendor and comments
//! page 2+ packets; a page's granule position is the decoder's 48 kHz clock at the end of its last packet,
//!         and on the last page the end of the audio, which trims the padding
//! ```
//!
//! Of Opus it knows the duration of a packet; what is inside belongs to `opus`.

mod read;
mod write;

pub use read::OggOpus;
pub use write::OggWriter;

use crate::limited::TooLong;
use crate::opus::OpusError;

const HEAD_MAGIC: &[u8; 8] = b"OpusHead";
const TAGS_MAGIC: &[u8; 8] = b"OpusTags";

/// What an Ogg Opus stream says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OggHead {
    /// Decoder output to drop at the start, on the 48 kHz clock.
    pub pre_skip: u16,
    /// Rate of the audio before encoding, in Hz; a note only, the decoder may give any rate.
    pub input_rate: u32,
}

/// Why a stream could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum OggError {
    /// The sink refused the bytes.
    #[error("cannot write ogg: {0}")]
    Io(#[from] std::io::Error),
    /// A packet inside is not Opus.
    #[error(transparent)]
    Opus(#[from] OpusError),
    /// A comment that the format cannot hold.
    #[error("comment name {0:?} is empty or not printable ASCII without '='")]
    CommentName(String),
    /// Bytes that are not whole Ogg pages.
    #[error("not an ogg file: {0}")]
    Container(#[from] ::ogg::OggReadError),
    /// Ogg, but not a stream this module reads.
    #[error("not a mono or stereo ogg opus stream: {0}")]
    NotOpus(&'static str),
    /// More audio than the caller allows.
    #[error("more than {samples_max} samples")]
    TooLong {
        /// The limit.
        samples_max: usize,
    },
    /// A longer file than the caller allows.
    #[error(transparent)]
    Longer(#[from] TooLong),
}

#[cfg(test)]
mod tests;
