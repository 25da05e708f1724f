//! Packets for an engine that cannot be heard: encoded beforehand, once for each format, and sent over and over. They cost
//! what packets cost on the way to a socket, and nothing to make.
//!
//! ```text
//! tone       | lead-in | round | ..      a whole number of its periods, so that a round joins itself
//! contexts             0 1 .. 11 0 1 ..  by reference; the last packet of PCM is cut to what is left
//! ```

use std::f32::consts::TAU;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use codecs::opus::OpusError;

use super::{ENGINE_RATE, PacketMaker};
use crate::protocol::{Clock, Codec, Format, Packet};

/// The tone that is heard, in Hz.
const TONE_HZ: f32 = 400.0;
/// Its loudness.
const AMPLITUDE: f32 = 0.25;
/// Whole packets of every length, and whole periods of the tone.
const ROUND_MS: usize = 240;
/// What an encoder and a resampler need until they give the same again.
const LEAD_MS: usize = 120;
/// Formats that are kept. Clients choose the bitrate, so there may be more; those are made anew for each context.
const FORMATS_MAX: usize = 32;

type Round = Arc<[Bytes]>;

/// The packets of all formats that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    rounds: Mutex<Vec<(Format, Round)>>,
}

impl Prepared {
    /// What makes the packets of one context.
    ///
    /// # Errors
    /// As [`PacketMaker::new`].
    pub(crate) fn maker(&self, format: &Format) -> Result<PacketMaker, OpusError> {
        let known = |rounds: &[(Format, Round)]| {
            rounds.iter().find(|(of, _)| of == format).map(|(_, round)| round.clone())
        };
        let mut rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        let round = match known(&rounds) {
            Some(round) => round,
            None => {
                let made = round(format)?;
                if rounds.len() < FORMATS_MAX {
                    rounds.push((*format, made.clone()));
                }
                made
            }
        };
        drop(rounds);
        Ok(PacketMaker::prepared(format, Sequence { round, clock: format.clock(), made: 0 }))
    }
}

/// Encodes the tone. What comes before the round settles the encoder, what comes behind lets go of the round's last packet.
fn round(format: &Format) -> Result<Round, OpusError> {
    let samples = (2 * LEAD_MS + ROUND_MS) * ENGINE_RATE as usize / 1_000;
    let step = TAU * TONE_HZ / ENGINE_RATE as f32;
    // Whole periods are counted apart: a sine of a large number is not exact.
    let period = (ENGINE_RATE as f32 / TONE_HZ) as usize;
    let tone: Vec<f32> =
        (0..samples).map(|i| AMPLITUDE * ((i % period) as f32 * step).sin()).collect();
    let packets = PacketMaker::new(format)?.push(&tone)?;
    let frame_ms = format.frame.ms() as usize;
    let round = packets.into_iter().skip(LEAD_MS / frame_ms).take(ROUND_MS / frame_ms);
    Ok(round.map(|packet| packet.bytes).collect())
}

/// The packets of one context, as they follow from how much sound there is.
pub(super) struct Sequence {
    round: Round,
    clock: Clock,
    /// Packets given.
    made: u64,
}

impl Sequence {
    /// The packets of `packet` samples that are full once there are so many samples, but never the last one.
    pub(super) fn full(&mut self, samples: u64, packet: usize) -> Vec<Packet> {
        let end = self.clock.position(samples);
        self.up_to(end.saturating_sub(1) / packet as u64, packet)
    }

    /// The packets that are left when there is no more than so many samples.
    pub(super) fn rest(&mut self, codec: Codec, samples: u64, packet: usize) -> Vec<Packet> {
        let end = self.clock.position(samples);
        let mut packets = self.up_to(end.div_ceil(packet as u64), packet);
        if codec != Codec::Opus
            && let Some(last) = packets.last_mut()
        {
            let sample_bytes = last.bytes.len() / packet;
            last.duration = end - (self.made - 1) * packet as u64;
            last.bytes.truncate(last.duration as usize * sample_bytes);
        }
        packets
    }

    fn up_to(&mut self, count: u64, packet: usize) -> Vec<Packet> {
        let round = &self.round;
        let bytes = |at: u64| round[(at % round.len() as u64) as usize].clone();
        let duration = packet as u64;
        let new = self.made..count.max(self.made);
        self.made = new.end;
        new.map(|at| Packet { bytes: bytes(at), duration, silent: false, last: false }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::tests::{FORMATS, format};

    #[test]
    fn packets_are_as_many_and_as_long_as_if_they_were_encoded() {
        let prepared = Prepared::default();
        for (codec, rate, _) in FORMATS {
            let format = format(codec, rate);
            for samples in [1, 480, 481, 24_000, 24_037] {
                let told = |mut maker: PacketMaker| {
                    let mut packets = Vec::new();
                    for start in (0..samples).step_by(1_000) {
                        packets.extend(maker.push_silence(1_000.min(samples - start)).unwrap());
                    }
                    assert_eq!(maker.samples_in(), samples as u64);
                    packets.extend(maker.finish().unwrap());
                    packets.iter().map(|p| (p.duration, p.last)).collect::<Vec<_>>()
                };
                let expected = told(PacketMaker::new(&format).unwrap());
                let found = told(prepared.maker(&format).unwrap());
                assert_eq!(found, expected, "{codec:?} {samples}");
            }
        }
    }

    #[test]
    fn a_round_joins_itself() {
        let format = format(Codec::PcmS16le, 24_000);
        let mut maker = Prepared::default().maker(&format).unwrap();
        let packets = maker.push(&[0.0; 24_000]).unwrap();
        let bytes: Vec<u8> = packets.iter().flat_map(|p| p.bytes.to_vec()).collect();
        let samples: Vec<i32> =
            bytes.chunks(2).map(|b| i16::from_le_bytes([b[0], b[1]]).into()).collect();
        let period = (24_000.0 / TONE_HZ) as usize;
        let slip = samples.windows(period + 1).map(|w| w[period].abs_diff(w[0])).max();
        assert!(slip <= Some(1), "{slip:?}");
    }

    #[test]
    fn formats_are_kept_up_to_a_limit_and_shared() {
        let prepared = Prepared::default();
        for bitrate in 0..FORMATS_MAX as u32 + 5 {
            let format = Format { bitrate: 20_000 + bitrate, ..format(Codec::Mulaw, 8_000) };
            prepared.maker(&format).unwrap();
            prepared.maker(&format).unwrap();
        }
        assert_eq!(prepared.rounds.lock().unwrap().len(), FORMATS_MAX);
        let format = Format { bitrate: 20_000, ..format(Codec::Mulaw, 8_000) };
        let packets = || prepared.maker(&format).unwrap().push_silence(24_000).unwrap();
        assert_eq!(packets()[0].bytes.as_ptr(), packets()[0].bytes.as_ptr());
    }

    #[test]
    fn a_context_without_sound_has_no_packets() {
        let maker = Prepared::default().maker(&format(Codec::Opus, 48_000)).unwrap();
        assert!(maker.finish().unwrap().is_empty());
    }
}
