//! Reading: hostile bytes give packets or an error, and never more memory than a small multiple of the input.

use std::io::Cursor;

use ::ogg::{Packet, PacketReader};

use super::{HEAD_MAGIC, OggError, OggHead, TAGS_MAGIC};
use crate::limited::TooLong;
use crate::opus::{self, CLOCK_RATE, Decoder};

/// The most that a file's packets may hold beside its audio on the 48 kHz clock: the largest pre-skip, and the rest of a packet.
const PADDING_TICKS_MAX: u64 = u16::MAX as u64 + 5_760;

/// The first Opus stream of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct OggOpus {
    /// What the stream says about itself.
    pub head: OggHead,
    /// Pairs of name and value.
    pub comments: Vec<(String, String)>,
    /// The packets, in order.
    pub packets: Vec<Vec<u8>>,
    /// End of the audio on the 48 kHz clock that begins with the first packet.
    pub end: u64,
    /// Factor for the decoder's output.
    gain: f32,
}

impl OggOpus {
    /// Reads all packets of the first Opus stream; other streams beside or after it are passed over.
    ///
    /// # Errors
    /// Damaged pages, a stream that is not mono or stereo Opus, packets that are not Opus.
    pub fn read(bytes: &[u8]) -> Result<Self, OggError> {
        Self::read_within(bytes, f64::INFINITY)
    }

    /// As [`OggOpus::read`], but of no more packets than a file of `seconds_max` needs.
    ///
    /// # Errors
    /// [`OggError::Longer`] as soon as there are more.
    pub fn read_within(bytes: &[u8], seconds_max: f64) -> Result<Self, OggError> {
        // A limit without end saturates.
        let ticks_max = (seconds_max * f64::from(CLOCK_RATE)).round() as u64;
        let ticks_max = ticks_max.saturating_add(PADDING_TICKS_MAX);
        let mut reader = PacketReader::new(Cursor::new(bytes));
        let first = first_head(&mut reader)?;
        let (head, gain) = parse_head(&first.data)?;
        let mut packets = std::iter::from_fn(|| reader.read_packet().transpose())
            .filter(|p| p.as_ref().map_or(true, |p| p.stream_serial() == first.stream_serial()));
        let tags = packets.next().ok_or(OggError::NotOpus("no comments"))??;
        let comments = parse_tags(&tags.data).ok_or(OggError::NotOpus("damaged comments"))?;

        let mut stream = Self { head, comments, packets: Vec::new(), end: 0, gain };
        let mut clock = Clock::default();
        for packet in packets {
            let packet = packet?;
            clock.advance(&packet)?;
            if clock.total > ticks_max {
                return Err(TooLong { seconds_max }.into());
            }
            stream.packets.push(packet.data);
        }
        stream.end = clock.end;
        Ok(stream)
    }

    /// The audio: mono PCM at `sample_rate` Hz, one of [`opus::RATES`], without pre-skip and padding.
    ///
    /// # Errors
    /// [`OggError::TooLong`] above `samples_max`, before any work; a packet or rate that Opus refuses.
    pub fn decode(&self, sample_rate: u32, samples_max: usize) -> Result<Vec<f32>, OggError> {
        let mut decoder = Decoder::new(sample_rate)?;
        let ratio = u64::from(CLOCK_RATE / sample_rate);
        let (skip, end) = (u64::from(self.head.pre_skip) / ratio, self.end / ratio);
        if end.saturating_sub(skip) > samples_max as u64 {
            return Err(OggError::TooLong { samples_max });
        }
        let (skip, end) = (skip as usize, end as usize);
        let mut pcm = Vec::new();
        for packet in &self.packets {
            if pcm.len() >= end {
                break;
            }
            pcm.extend_from_slice(decoder.decode(packet)?);
        }
        pcm.truncate(end);
        pcm.drain(..skip.min(pcm.len()));
        pcm.iter_mut().for_each(|s| *s *= self.gain);
        Ok(pcm)
    }
}

/// The 48 kHz clock over the packets, and what the granule positions make of it.
#[derive(Default)]
struct Clock {
    /// Duration of all packets so far.
    total: u64,
    /// Granule position at the first packet: more than 0 when a live stream was joined midway.
    origin: Option<u64>,
    /// End of the audio.
    end: u64,
}

impl Clock {
    fn advance(&mut self, packet: &Packet) -> Result<(), OggError> {
        self.total += opus::packet_duration(&packet.data)?;
        self.end = self.total;
        if packet.last_in_page() {
            let granule = packet.absgp_page();
            let origin = *self.origin.get_or_insert(granule.saturating_sub(self.total));
            if packet.last_in_stream() {
                self.end = granule.saturating_sub(origin).min(self.total);
            }
        }
        Ok(())
    }
}

fn first_head(reader: &mut PacketReader<Cursor<&[u8]>>) -> Result<Packet, OggError> {
    while let Some(packet) = reader.read_packet()? {
        // All streams of a file begin before any of them goes on.
        if !packet.first_in_stream() {
            break;
        }
        if packet.data.starts_with(HEAD_MAGIC) {
            return Ok(packet);
        }
    }
    Err(OggError::NotOpus("no opus head"))
}

fn parse_head(packet: &[u8]) -> Result<(OggHead, f32), OggError> {
    let Some([version, channels, skip @ .., mapping]) =
        packet.get(8..19).and_then(|b| b.first_chunk::<11>())
    else {
        return Err(OggError::NotOpus("head cut short"));
    };
    // RFC 7845: the upper half of the version tells incompatible changes.
    if version >> 4 != 0 {
        return Err(OggError::NotOpus("version of the head"));
    }
    if !(1..=2).contains(channels) || *mapping != 0 {
        return Err(OggError::NotOpus("more than two channels"));
    }
    let [s0, s1, r0, r1, r2, r3, g0, g1] = *skip;
    let head = OggHead {
        pre_skip: u16::from_le_bytes([s0, s1]),
        input_rate: u32::from_le_bytes([r0, r1, r2, r3]),
    };
    // Gain is in 1/256 dB.
    let gain_db = f32::from(i16::from_le_bytes([g0, g1])) / 256.0;
    Ok((head, 10.0_f32.powf(gain_db / 20.0)))
}

fn parse_tags(packet: &[u8]) -> Option<Vec<(String, String)>> {
    let mut rest = packet.strip_prefix(TAGS_MAGIC)?;
    let _vendor = take_string(&mut rest)?;
    let count = take_u32(&mut rest)?;
    let mut comments = Vec::new();
    for _ in 0..count {
        let comment = take_string(&mut rest)?;
        let (name, value) = comment.split_once('=').unwrap_or((&comment, ""));
        comments.push((name.to_owned(), value.to_owned()));
    }
    Some(comments)
}

fn take_string(rest: &mut &[u8]) -> Option<String> {
    let len = take_u32(rest)? as usize;
    let text = rest.split_off(..len)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    let bytes = rest.split_off(..4)?;
    bytes.first_chunk().map(|b| u32::from_le_bytes(*b))
}
