//! Sound on its way to one listener: the engine's samples in, packets of the session's format out.
//!
//! ```text
//! 24 kHz f32 --resample--> media clock --cut--> packets of frame_ms; the last one says so
//! ```
//!
//! It knows no contexts and no queues. A context has its own, so that each begins as on a new line.

mod prepared;

use bytes::Bytes;
use codecs::opus::{Encoder, EncoderConfig, OpusError, Tail, is_dtx};
use codecs::resample::Resampler;
use codecs::{g711, pcm};

use crate::protocol::{Codec, Format, Packet};
pub(crate) use prepared::Prepared;
use prepared::Sequence;

/// Rate of the engine's sound, in Hz.
pub(crate) const ENGINE_RATE: u32 = 24_000;

/// Makes the packets of one context.
pub(crate) struct PacketMaker {
    /// Samples of a full packet on the media clock.
    packet: usize,
    codec: Codec,
    samples_in: u64,
    writer: Writer,
}

enum Writer {
    Opus(Box<Encoder>),
    Plain { resampler: Box<Resampler>, carry: Vec<f32> },
    Prepared(Sequence),
}

impl PacketMaker {
    /// At the start of a context.
    ///
    /// # Errors
    /// What the Opus encoder says, of settings that [`Format`] lets pass.
    pub(crate) fn new(format: &Format) -> Result<Self, OpusError> {
        let writer = match format.codec {
            Codec::Opus => {
                let config = EncoderConfig {
                    sample_rate: ENGINE_RATE,
                    frame: format.frame,
                    bitrate: format.bitrate,
                    dtx: format.dtx,
                    ..EncoderConfig::default()
                };
                Writer::Opus(Box::new(Encoder::new(&config)?))
            }
            _ => {
                let resampler = Resampler::new(ENGINE_RATE, format.sample_rate);
                let resampler =
                    Box::new(resampler.expect("a format's rate is one of the resampler's"));
                Writer::Plain { resampler, carry: Vec::new() }
            }
        };
        Ok(Self::with(format, writer))
    }

    fn prepared(format: &Format, sequence: Sequence) -> Self {
        Self::with(format, Writer::Prepared(sequence))
    }

    fn with(format: &Format, writer: Writer) -> Self {
        let packet = format.packet_samples().expect("a format's packets are whole samples");
        Self { packet, codec: format.codec, samples_in: 0, writer }
    }

    /// Whether the packets are there already, so that making some costs nothing.
    pub(crate) fn is_prepared(&self) -> bool {
        matches!(self.writer, Writer::Prepared(_))
    }

    /// Samples taken so far.
    pub(crate) fn samples_in(&self) -> u64 {
        self.samples_in
    }

    /// Takes more sound; gives the packets that are full. What may be the last packet is kept, for it must say so.
    ///
    /// # Errors
    /// What the Opus encoder says.
    pub(crate) fn push(&mut self, samples: &[f32]) -> Result<Vec<Packet>, OpusError> {
        self.samples_in += samples.len() as u64;
        let duration = self.packet as u64;
        match &mut self.writer {
            Writer::Opus(encoder) => {
                let full = encoder.push(samples)?.into_iter();
                Ok(full.map(|bytes| opus(bytes, duration)).collect())
            }
            Writer::Plain { resampler, carry } => {
                resampler.push(samples, carry);
                Ok(cut(self.codec, carry, self.packet))
            }
            Writer::Prepared(sequence) => Ok(sequence.full(self.samples_in, self.packet)),
        }
    }

    /// Takes so many samples of silence; as [`PacketMaker::push`].
    ///
    /// # Errors
    /// What the Opus encoder says.
    pub(crate) fn push_silence(&mut self, samples: usize) -> Result<Vec<Packet>, OpusError> {
        if let Writer::Prepared(sequence) = &mut self.writer {
            self.samples_in += samples as u64;
            return Ok(sequence.full(self.samples_in, self.packet));
        }
        self.push(&vec![0.0; samples])
    }

    /// The rest of a context, its last packet among it; nothing for a context without sound.
    ///
    /// # Errors
    /// What the Opus encoder says.
    pub(crate) fn finish(mut self) -> Result<Vec<Packet>, OpusError> {
        if self.samples_in == 0 {
            return Ok(Vec::new());
        }
        let mut packets = match &mut self.writer {
            Writer::Opus(encoder) => {
                let Tail { packets, .. } = encoder.finish()?;
                let duration = self.packet as u64;
                packets.into_iter().map(|bytes| opus(bytes, duration)).collect()
            }
            Writer::Plain { resampler, carry } => {
                resampler.finish(carry);
                let mut packets = cut(self.codec, carry, self.packet);
                packets.push(plain(self.codec, carry));
                packets
            }
            Writer::Prepared(sequence) => sequence.rest(self.codec, self.samples_in, self.packet),
        };
        if let Some(packet) = packets.last_mut() {
            packet.last = true;
        }
        Ok(packets)
    }
}

/// Cuts full packets off, but never takes the last sample.
fn cut(codec: Codec, carry: &mut Vec<f32>, packet: usize) -> Vec<Packet> {
    let full = carry.len().saturating_sub(1) / packet;
    let packets =
        carry.chunks_exact(packet).take(full).map(|samples| plain(codec, samples)).collect();
    carry.drain(..full * packet);
    packets
}

fn opus(bytes: Vec<u8>, duration: u64) -> Packet {
    Packet { silent: is_dtx(&bytes), bytes: bytes.into(), duration, last: false }
}

/// Samples as they are, behind what stands there. Of Opus, which is none, as 16-bit integers.
pub(crate) fn extend(codec: Codec, bytes: &mut Vec<u8>, samples: &[f32]) {
    match codec {
        Codec::PcmF32le => pcm::extend_f32_le(bytes, samples),
        Codec::Mulaw => bytes.extend(samples.iter().map(|&s| g711::mulaw_encode(pcm::to_i16(s)))),
        Codec::Alaw => bytes.extend(samples.iter().map(|&s| g711::alaw_encode(pcm::to_i16(s)))),
        Codec::PcmS16le | Codec::Opus => pcm::extend_i16_le(bytes, samples),
    }
}

fn plain(codec: Codec, samples: &[f32]) -> Packet {
    let mut bytes = Vec::new();
    extend(codec, &mut bytes, samples);
    let duration = samples.len() as u64;
    Packet { bytes: Bytes::from(bytes), duration, silent: false, last: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codecs::opus::FrameDuration;

    pub(super) const FORMATS: [(Codec, u32, usize); 5] = [
        (Codec::Opus, 48_000, 0),
        (Codec::PcmS16le, 24_000, 2),
        (Codec::PcmF32le, 44_100, 4),
        (Codec::Mulaw, 8_000, 1),
        (Codec::Alaw, 16_000, 1),
    ];

    fn packets(format: &Format, samples: usize, piece: usize) -> Vec<Packet> {
        let sound: Vec<f32> = (0..samples).map(|i| (i as f32 * 0.05).sin() * 0.3).collect();
        let mut maker = PacketMaker::new(format).unwrap();
        let mut packets = Vec::new();
        for part in sound.chunks(piece) {
            packets.extend(maker.push(part).unwrap());
        }
        assert_eq!(maker.samples_in(), samples as u64);
        packets.extend(maker.finish().unwrap());
        packets
    }

    pub(super) fn format(codec: Codec, sample_rate: u32) -> Format {
        let frame = FrameDuration::Ms20;
        Format { codec, sample_rate, frame, bitrate: 32_000, pack: 1, dtx: false }
    }

    #[test]
    fn silence_is_told_apart_when_dtx_was_asked_for() {
        let silent = |dtx| {
            let format = Format { dtx, ..format(Codec::Opus, 48_000) };
            let mut maker = PacketMaker::new(&format).unwrap();
            let packets = maker.push(&[0.0; 48_000]).unwrap();
            packets.iter().filter(|packet| packet.silent).count()
        };
        assert_eq!(silent(false), 0);
        assert!(silent(true) > 50, "{}", silent(true));
    }

    #[test]
    fn every_sample_arrives_and_the_last_packet_says_so() {
        for (codec, rate, bytes_a_sample) in FORMATS {
            let format = format(codec, rate);
            for samples in [1, 480, 24_000, 24_037] {
                let packets = packets(&format, samples, 1_000);
                let end = format.clock().position(samples as u64);
                let sent: u64 = packets.iter().map(|p| p.duration).sum();
                match codec {
                    Codec::Opus => assert!((sent - 960..=sent).contains(&end), "{samples}"),
                    _ => assert_eq!(sent, end, "{codec:?} {samples}"),
                }
                assert_eq!(packets.iter().filter(|p| p.last).count(), 1);
                assert!(packets.last().unwrap().last);
                for packet in packets.iter().filter(|_| bytes_a_sample > 0) {
                    assert_eq!(packet.bytes.len() as u64, packet.duration * bytes_a_sample as u64);
                }
            }
        }
    }

    #[test]
    fn pieces_equal_the_whole() {
        for (codec, rate, _) in FORMATS {
            let format = format(codec, rate);
            assert_eq!(packets(&format, 9_999, 77), packets(&format, 9_999, 9_999), "{codec:?}");
        }
    }

    #[test]
    fn a_context_without_sound_has_no_packets() {
        let maker = PacketMaker::new(&format(Codec::Opus, 48_000)).unwrap();
        assert!(maker.finish().unwrap().is_empty());
    }

    #[test]
    fn the_pre_skip_told_is_the_encoders() {
        let encoder = Encoder::new(&EncoderConfig::default()).unwrap();
        assert_eq!(encoder.pre_skip(), crate::protocol::OPUS_PRE_SKIP);
    }
}
