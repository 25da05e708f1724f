//! FLAC, mono, 16 bits: written block by block as the sound is made, and read back as anybody's recording.
//!
//! ```text
//! "fLaC"  STREAMINFO  VORBIS_COMMENT  block  block  ..  last block, shorter
//! ```
//!
//! A stream does not know its length or digest beforehand, so its head says "unknown", as the format allows.
//! Reading takes hostile bytes: any input gives samples or an error, and no more sound than the caller allows.

use std::io::Cursor;

use claxon::{Block, FlacReader};
use flacenc::bitsink::ByteSink;
use flacenc::component::{BitRepr, StreamInfo};
use flacenc::config;
use flacenc::error::{Verified, Verify};
use flacenc::source::{Fill, FrameBuf};

use crate::limited::{Mono, TooLong};
use crate::pcm;

/// Samples of a block: 48 ms at 24 kHz, short enough for a listener who waits, and a size that headers name in half a byte.
const BLOCK_SAMPLES: usize = 1_152;
const BITS: usize = 16;
const STREAMINFO: u8 = 0;
const VORBIS_COMMENT: u8 = 4;
/// On the type of the last block of the head.
const LAST: u8 = 0x80;
const VENDOR: &str = "flacenc";

/// Why a stream could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FlacError {
    /// A rate that the format does not have.
    #[error("flac has no sample rate of {rate} Hz")]
    Rate {
        /// The rate asked for.
        rate: u32,
    },
    /// The encoder refuses.
    #[error("cannot encode flac: {0}")]
    Encode(String),
    /// Bytes that are not FLAC, or damaged.
    #[error("not a flac file: {0}")]
    NotFlac(#[from] claxon::Error),
    /// More sound than the caller allows.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

/// One stream's encoder.
pub struct Encoder {
    config: Verified<config::Encoder>,
    info: StreamInfo,
    block: FrameBuf,
    /// What stands before the first block, until it is out.
    head: Vec<u8>,
    /// Samples that do not fill a block yet.
    carry: Vec<i32>,
    blocks: usize,
}

impl Encoder {
    /// An encoder at the start of a stream; comments are pairs of name and value.
    ///
    /// # Errors
    /// [`FlacError::Rate`].
    pub fn new(sample_rate: u32, comments: &[(&str, &str)]) -> Result<Self, FlacError> {
        let info = stream_info(sample_rate).ok_or(FlacError::Rate { rate: sample_rate })?;
        let config = config::Encoder::default().into_verified();
        let config = config.map_err(|(_, e)| e).expect("the crate's defaults hold; this is a bug");
        let block = FrameBuf::with_size(1, BLOCK_SAMPLES);
        let mut head = b"fLaC".to_vec();
        push_block(&mut head, STREAMINFO, &bytes_of(&info)?);
        push_block(&mut head, VORBIS_COMMENT | LAST, &comment_block(comments));
        Ok(Self {
            config,
            info,
            block: block.expect("a block's size is within the format's; this is a bug"),
            head,
            carry: Vec::with_capacity(BLOCK_SAMPLES),
            blocks: 0,
        })
    }

    /// Encodes the next samples; gives the head and the blocks that are full.
    ///
    /// # Errors
    /// What the encoder says; not to be expected with samples of any value.
    pub fn push(&mut self, samples: &[f32]) -> Result<Vec<u8>, FlacError> {
        let mut bytes = std::mem::take(&mut self.head);
        for &sample in samples {
            self.carry.push(pcm::to_i16(sample).into());
            if self.carry.len() == BLOCK_SAMPLES {
                self.encode_carry(&mut bytes)?;
            }
        }
        Ok(bytes)
    }

    /// Ends the stream: the last, shorter block.
    ///
    /// # Errors
    /// As [`Encoder::push`].
    pub fn finish(mut self) -> Result<Vec<u8>, FlacError> {
        let mut bytes = std::mem::take(&mut self.head);
        if !self.carry.is_empty() {
            self.encode_carry(&mut bytes)?;
        }
        Ok(bytes)
    }

    fn encode_carry(&mut self, bytes: &mut Vec<u8>) -> Result<(), FlacError> {
        let refused = |e: String| FlacError::Encode(e);
        self.block.fill_interleaved(&self.carry).map_err(|e| refused(e.to_string()))?;
        let frame =
            flacenc::encode_fixed_size_frame(&self.config, &self.block, self.blocks, &self.info);
        bytes.extend(bytes_of(&frame.map_err(|e| refused(e.to_string()))?)?);
        self.carry.clear();
        self.blocks += 1;
        Ok(())
    }
}

fn stream_info(sample_rate: u32) -> Option<StreamInfo> {
    let mut info = StreamInfo::new(sample_rate as usize, 1, BITS).ok()?;
    info.set_block_sizes(BLOCK_SAMPLES, BLOCK_SAMPLES).ok()?;
    info.set_frame_sizes(0, 0).ok()?; // unknown
    Some(info)
}

fn bytes_of(part: &impl BitRepr) -> Result<Vec<u8>, FlacError> {
    let mut sink = ByteSink::new();
    part.write(&mut sink).map_err(|e| FlacError::Encode(e.to_string()))?;
    Ok(sink.into_inner())
}

fn push_block(head: &mut Vec<u8>, kind: u8, body: &[u8]) {
    head.push(kind);
    head.extend(&(body.len() as u32).to_be_bytes()[1..]); // 24 bits
    head.extend(body);
}

/// Vorbis's own form, little-endian unlike the rest of the format.
fn comment_block(comments: &[(&str, &str)]) -> Vec<u8> {
    let sized = |text: &str| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
    let entries = comments.iter().flat_map(|(name, value)| sized(&format!("{name}={value}")));
    let count = (comments.len() as u32).to_le_bytes();
    sized(VENDOR).into_iter().chain(count).chain(entries).collect()
}

/// Reads a file of any rate and depth and up to eight channels; `seconds_max` is the most that is taken.
///
/// # Errors
/// [`FlacError::NotFlac`], [`FlacError::TooLong`].
pub fn read(bytes: &[u8], seconds_max: f64) -> Result<Mono, FlacError> {
    let mut reader = FlacReader::new(Cursor::new(bytes))?;
    let info = reader.streaminfo();
    let mut mono = Mono::new(info.sample_rate, seconds_max);
    if let Some(samples) = info.samples {
        mono.expect(samples)?;
    }
    let scale = 1.0 / (1_u64 << (info.bits_per_sample.clamp(1, 32) - 1)) as f32;
    let mut blocks = reader.blocks();
    let mut room = Vec::new();
    while let Some(block) = blocks.read_next_or_eof(room)? {
        mix(&block, scale, &mut mono)?;
        room = block.into_buffer();
    }
    Ok(mono)
}

/// Appends the mean of a block's channels.
fn mix(block: &Block, scale: f32, mono: &mut Mono) -> Result<(), TooLong> {
    let channels = block.channels();
    let scale = scale / channels.max(1) as f32;
    let sample = |at| (0..channels).map(|c| block.sample(c, at) as f32).sum::<f32>() * scale;
    mono.extend((0..block.duration()).map(sample))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COMMENTS: [(&str, &str); 1] = [("COMMENT", "synthetic speech")];

    fn sound(n: usize) -> Vec<f32> {
        let noise = |i: usize| ((i * 7_919) % 101) as f32 / 3e5;
        (0..n).map(|i| 0.4 * (i as f32 * 0.11).sin() + noise(i)).collect()
    }

    fn encode(pieces: &[&[f32]]) -> Vec<u8> {
        let mut encoder = Encoder::new(24_000, &COMMENTS).unwrap();
        let mut bytes = Vec::new();
        for piece in pieces {
            bytes.extend(encoder.push(piece).unwrap());
        }
        bytes.extend(encoder.finish().unwrap());
        bytes
    }

    #[test]
    fn every_16_bit_sample_comes_back_at_any_length() {
        for n in [0, 1, 31, 1_151, 1_152, 1_153, 24_037] {
            let sound = sound(n);
            let bytes = encode(&[&sound]);
            let heard = read(&bytes, 10.0).unwrap();
            let expected: Vec<f32> = sound.iter().map(|&s| pcm::from_i16(pcm::to_i16(s))).collect();
            assert_eq!((heard.sample_rate, heard.samples.len()), (24_000, n));
            assert_eq!(heard.samples, expected);
        }
    }

    #[test]
    fn the_head_says_what_it_is_and_comes_with_the_first_samples() {
        let mut encoder = Encoder::new(24_000, &COMMENTS).unwrap();
        let first = encoder.push(&sound(1)).unwrap();
        let reader = FlacReader::new(Cursor::new(&first)).unwrap();
        assert_eq!(reader.get_tag("comment").next(), Some("synthetic speech"));
        assert_eq!((reader.streaminfo().samples, reader.streaminfo().channels), (None, 1));
        assert!(encoder.push(&sound(1)).unwrap().is_empty());
        assert!(!encoder.push(&sound(BLOCK_SAMPLES)).unwrap().is_empty());
    }

    #[test]
    fn speech_is_smaller_than_pcm() {
        let tone: Vec<f32> = (0..24_000).map(|i| 0.3 * (i as f32 * 0.05).sin()).collect();
        assert!(encode(&[&tone]).len() < 48_000 / 2);
    }

    #[test]
    fn a_longer_file_than_allowed_is_refused_before_it_is_decoded() {
        let bytes = encode(&[&sound(24_000)]);
        assert!(read(&bytes, 1.0).is_ok());
        let refused = read(&bytes, 0.999).unwrap_err();
        assert!(matches!(refused, FlacError::TooLong(TooLong { .. })), "{refused}");
    }

    #[test]
    fn impossible_rates_are_refused() {
        assert!(matches!(Encoder::new(1 << 20, &[]), Err(FlacError::Rate { rate: 1_048_576 })));
    }

    proptest! {
        #[test]
        fn pieces_equal_the_whole(cut in 0_usize..4_000) {
            let sound = sound(4_000);
            let (a, b) = sound.split_at(cut);
            prop_assert_eq!(encode(&[a, b]), encode(&[&sound]));
        }

        #[test]
        fn any_bytes_give_samples_or_an_error(
            at in 0_usize..4_000, byte in any::<u8>(), cut in 0_usize..4_000,
        ) {
            let mut bytes = encode(&[&sound(2_000)]);
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(bytes.len() - cut % bytes.len());
            if let Ok(heard) = read(&bytes, 1.0) {
                prop_assert!(heard.seconds() <= 1.0);
            }
        }
    }
}
