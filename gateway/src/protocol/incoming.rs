//! Recordings that a client sends in binary frames: the frames, and their packets to samples at 24 kHz as they come.
//!
//! ```text
//! audio.begin{ctx,id,codec,sample_rate}   02 flags count handle seq pos payload ..   audio.end{ctx,id}
//! ```
//!
//! The header is that of the frames that go out (see `context/frame`); `pos` is not looked at, the order is that of `seq`.

use codecs::opus::Decoder;
use codecs::resample::Resampler;
use codecs::{g711, pcm};

use super::{Codec, Handle};
use crate::audio::ENGINE_RATE;

/// First byte of a frame of the client.
const KIND: u8 = 0x02;
/// Flag of a frame with several packets, each behind its length.
const PACKED: u8 = 0x10;
const HEADER_BYTES: usize = 20;

/// A frame of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Incoming<'a> {
    pub(crate) handle: Handle,
    /// Number of its first packet.
    pub(crate) seq: u32,
    pub(crate) packets: Vec<&'a [u8]>,
}

impl<'a> Incoming<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    /// A sentence that says what it is not.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let Some((header, payload)) = bytes.split_at_checked(HEADER_BYTES) else {
            return Err(format!("a binary frame has a header of {HEADER_BYTES} bytes"));
        };
        if header[0] != KIND {
            return Err(format!("a binary frame of a client is of kind {KIND:#04x}"));
        }
        let number = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| header[at + i]));
        let count = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let packets = match header[1] & PACKED != 0 {
            true => unpack(payload, count)
                .ok_or("the lengths of its packets are not those of the frame")?,
            false => vec![payload],
        };
        Ok(Self { handle: number(4), seq: number(8), packets })
    }
}

/// `count` lengths of two bytes, then as many packets.
fn unpack(payload: &[u8], count: usize) -> Option<Vec<&[u8]>> {
    let (lengths, mut rest) = payload.split_at_checked(2 * count)?;
    let mut packets = Vec::with_capacity(count);
    for length in lengths.chunks_exact(2) {
        let (packet, behind) =
            rest.split_at_checked(usize::from(u16::from_be_bytes([length[0], length[1]])))?;
        packets.push(packet);
        rest = behind;
    }
    rest.is_empty().then_some(packets)
}

/// A recording that is being sent.
pub(crate) struct Recording {
    codec: Codec,
    decoder: Option<Decoder>,
    resampler: Option<Box<Resampler>>,
    /// Bytes of a sample whose others have not come.
    cut: Vec<u8>,
    /// What was not taken yet.
    samples: Vec<f32>,
    /// Samples that were.
    taken: usize,
    samples_max: usize,
}

/// Why packets are not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// There is more than is allowed.
    TooLong,
    /// They cannot be decoded, and why.
    Unreadable(String),
}

impl Recording {
    /// Of packets in this format, at most so many samples at 24 kHz.
    ///
    /// # Errors
    /// A sentence that names the field and what is allowed.
    pub(crate) fn new(codec: Codec, rate: u32, samples_max: usize) -> Result<Self, String> {
        let decoder = match codec {
            Codec::Opus => Some(Decoder::new(ENGINE_RATE).map_err(|e| e.to_string())?),
            _ => None,
        };
        let resampler = match rate {
            // Opus is decoded at the rate that is wanted.
            _ if codec == Codec::Opus => None,
            ENGINE_RATE => None,
            rate => {
                let resampler = Resampler::of_recording(rate, ENGINE_RATE);
                Some(Box::new(resampler.map_err(|e| format!("sample_rate: {e}"))?))
            }
        };
        let (cut, samples) = (Vec::new(), Vec::new());
        Ok(Self { codec, decoder, resampler, cut, samples, taken: 0, samples_max })
    }

    /// Takes a packet.
    ///
    /// # Errors
    /// See [`NotTaken`].
    pub(crate) fn push(&mut self, packet: &[u8]) -> Result<(), NotTaken> {
        let unreadable = |e: codecs::opus::OpusError| NotTaken::Unreadable(e.to_string());
        match self.codec {
            Codec::Opus => {
                if let Some(decoder) = &mut self.decoder {
                    self.samples.extend(decoder.decode(packet).map_err(unreadable)?);
                }
            }
            Codec::Mulaw => {
                self.extend(packet.iter().map(|&b| pcm::from_i16(g711::mulaw_decode(b))))
            }
            Codec::Alaw => self.extend(packet.iter().map(|&b| pcm::from_i16(g711::alaw_decode(b)))),
            Codec::PcmS16le => {
                let bytes = self.whole(packet, 2);
                let sample = |b: &[u8]| pcm::from_i16(i16::from_le_bytes([b[0], b[1]]));
                self.extend(bytes.chunks_exact(2).map(sample));
            }
            Codec::PcmF32le => {
                let bytes = self.whole(packet, 4);
                // What is no number would spoil all that is resampled with it.
                let sane = |s: f32| if s.is_finite() { s.clamp(-1.0, 1.0) } else { 0.0 };
                self.extend(pcm::f32_le(&bytes).map(sane));
            }
        }
        self.check()
    }

    /// The samples that are ready, at 24 kHz.
    pub(crate) fn take(&mut self) -> Vec<f32> {
        self.taken += self.samples.len();
        std::mem::take(&mut self.samples)
    }

    /// The last samples, and how many there were in all.
    ///
    /// # Errors
    /// [`NotTaken::TooLong`].
    pub(crate) fn finish(mut self) -> Result<(Vec<f32>, usize), NotTaken> {
        if let Some(resampler) = &mut self.resampler {
            resampler.finish(&mut self.samples);
        }
        self.check()?;
        let samples = self.take();
        Ok((samples, self.taken))
    }

    fn check(&self) -> Result<(), NotTaken> {
        match self.taken + self.samples.len() > self.samples_max {
            true => Err(NotTaken::TooLong),
            false => Ok(()),
        }
    }

    /// Bytes of whole samples; what is left over waits for the next packet.
    fn whole(&mut self, packet: &[u8], size: usize) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.cut);
        bytes.extend_from_slice(packet);
        self.cut = bytes.split_off(bytes.len() / size * size);
        bytes
    }

    fn extend(&mut self, samples: impl Iterator<Item = f32>) {
        match &mut self.resampler {
            None => self.samples.extend(samples),
            Some(resampler) => {
                let samples: Vec<f32> = samples.collect();
                resampler.push(&samples, &mut self.samples);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(flags: u8, count: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![KIND, flags];
        bytes.extend(count.to_be_bytes());
        bytes.extend(7_u32.to_be_bytes());
        bytes.extend(9_u32.to_be_bytes());
        bytes.extend([0; 8]);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn a_frame_is_a_packet_or_several_behind_their_lengths() {
        let one = frame(0, 1, b"abc");
        let read = Incoming::read(&one).unwrap();
        assert_eq!((read.handle, read.seq, read.packets), (7, 9, vec![&b"abc"[..]]));
        let two = frame(PACKED, 2, &[0, 2, 0, 1, b'a', b'b', b'c']);
        assert_eq!(Incoming::read(&two).unwrap().packets, [&b"ab"[..], b"c"]);
    }

    #[test]
    fn bytes_that_are_no_frame_are_told_so() {
        let mut sound = frame(0, 1, b"a");
        sound[0] = 0x01;
        for (bytes, says) in [
            (b"short".to_vec(), "20 bytes"),
            (sound, "0x02"),
            (frame(PACKED, 2, &[0, 1, 0]), "lengths"),
            (frame(PACKED, 1, &[0, 2, b'a']), "lengths"),
            (frame(PACKED, 1, &[0, 1, b'a', b'b']), "lengths"),
        ] {
            assert!(Incoming::read(&bytes).unwrap_err().contains(says), "{says}");
        }
    }

    fn sent(codec: Codec, rate: u32, bytes: &[u8], piece: usize) -> Vec<f32> {
        let mut recording = Recording::new(codec, rate, usize::MAX).unwrap();
        let mut samples = Vec::new();
        for packet in bytes.chunks(piece) {
            recording.push(packet).unwrap();
            samples.extend(recording.take());
        }
        let (rest, count) = recording.finish().unwrap();
        samples.extend(rest);
        assert_eq!(samples.len(), count);
        samples
    }

    #[test]
    fn packets_of_any_length_are_the_same_recording() {
        let samples: Vec<f32> = (0..1_600).map(|i| (i as f32 * 0.05).sin() * 0.5).collect();
        let mut wide = Vec::new();
        pcm::extend_f32_le(&mut wide, &samples);
        let mut narrow = Vec::new();
        pcm::extend_i16_le(&mut narrow, &samples);
        for (codec, rate, bytes) in [
            (Codec::PcmF32le, 24_000, &wide),
            (Codec::PcmS16le, 24_000, &narrow),
            (Codec::PcmS16le, 16_000, &narrow),
            (Codec::Mulaw, 8_000, &narrow),
            (Codec::Alaw, 8_000, &narrow),
        ] {
            let whole = sent(codec, rate, bytes, bytes.len());
            let count = bytes.len()
                / [4, 2, 1][match codec {
                    Codec::PcmF32le => 0,
                    Codec::PcmS16le => 1,
                    _ => 2,
                }];
            assert_eq!(whole.len(), count * 24_000 / rate as usize, "{codec:?}");
            assert_eq!(whole, sent(codec, rate, bytes, 7), "{codec:?}");
        }
        assert_eq!(sent(Codec::PcmF32le, 24_000, &wide, 7), samples);
    }

    #[test]
    fn opus_is_decoded_at_the_engines_rate() {
        let config = codecs::opus::EncoderConfig::default();
        let mut encoder = codecs::opus::Encoder::new(&config).unwrap();
        let packets = encoder.push(&vec![0.0; 24_000]).unwrap();
        let mut recording = Recording::new(Codec::Opus, 48_000, 24_000).unwrap();
        for packet in &packets {
            recording.push(packet).unwrap();
        }
        assert_eq!(recording.finish().unwrap().1, packets.len() * 480);
        let mut recording = Recording::new(Codec::Opus, 48_000, 24_000).unwrap();
        assert!(matches!(recording.push(b""), Err(NotTaken::Unreadable(_))));
    }

    #[test]
    fn no_more_is_taken_than_is_allowed_and_no_rate_that_is_not_read() {
        let mut recording = Recording::new(Codec::Mulaw, 24_000, 100).unwrap();
        assert_eq!(recording.push(&[0; 100]), Ok(()));
        assert_eq!(recording.take().len(), 100);
        assert_eq!(recording.push(&[0]), Err(NotTaken::TooLong));
        let refused = Recording::new(Codec::Mulaw, 12_345, 100).err().unwrap();
        assert!(refused.starts_with("sample_rate"), "{refused}");
    }
}
