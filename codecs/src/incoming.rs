//! Sound that comes in while it is made, to mono samples at the rate that a model hears.
//!
//! ```text
//! packets of Opus, samples or G.711 -> samples at their rate -> samples at the model's rate
//! ```
//! Samples may be cut anywhere, also within one; a packet of Opus comes whole. Bytes are hostile: any give samples or an
//! error, and no more sound than allowed.

use crate::g711;
use crate::limited::TooLong;
use crate::opus::{self, Decoder, OpusError};
use crate::pcm;
use crate::recording::{self, RecordingError};
use crate::resample::Resampler;

/// How incoming sound is coded, mono.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// 16-bit integers, little-endian.
    I16,
    /// 32-bit floats, little-endian.
    F32,
    /// G.711 mu-law.
    Mulaw,
    /// G.711 A-law.
    Alaw,
    /// Packets of Opus.
    Opus,
}

impl Coding {
    /// Bytes of a sample; of Opus none.
    fn width(self) -> Option<usize> {
        match self {
            Self::I16 => Some(2),
            Self::F32 => Some(4),
            Self::Mulaw | Self::Alaw => Some(1),
            Self::Opus => None,
        }
    }
}

/// Why incoming sound is refused.
#[derive(Debug, thiserror::Error)]
pub enum IncomingError {
    /// A rate that is not converted, or that Opus does not have.
    #[error(transparent)]
    Rate(#[from] RecordingError),
    /// Not a packet of Opus.
    #[error(transparent)]
    Opus(#[from] OpusError),
    /// More sound than the caller allows.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The sound ends within a sample.
    #[error("the sound ends {bytes} bytes into a sample")]
    Torn {
        /// Bytes of it that came.
        bytes: usize,
    },
}

/// One sound that comes in.
pub struct Incoming {
    coding: Coding,
    decoder: Option<Decoder>,
    resampler: Resampler,
    /// Bytes of a sample that is not whole yet.
    torn: Vec<u8>,
    rate: u32,
    /// Samples so far, at `rate`.
    heard: u64,
    seconds_max: f64,
}

impl Incoming {
    /// A sound at its beginning, at most `seconds_max` long, to samples at `to` Hz, one of [`crate::resample::RATES`].
    ///
    /// # Errors
    /// [`IncomingError::Rate`]; Opus has the rates [`opus::RATES`].
    pub fn new(
        coding: Coding,
        rate: u32,
        to: u32,
        seconds_max: f64,
    ) -> Result<Self, IncomingError> {
        let decoder = match coding {
            Coding::Opus => Some(Decoder::new(rate)?),
            _ => None,
        };
        let resampler = recording::resampler(rate, to)?;
        Ok(Self { coding, decoder, resampler, torn: Vec::new(), rate, heard: 0, seconds_max })
    }

    /// Length so far.
    pub fn seconds(&self) -> f64 {
        self.heard as f64 / f64::from(self.rate)
    }

    /// The next bytes, of Opus the next packet: the samples that are ready.
    ///
    /// # Errors
    /// [`IncomingError::Opus`], [`IncomingError::TooLong`]; what was refused counts as not sent.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<f32>, IncomingError> {
        let count = match self.coding.width() {
            Some(width) => ((self.torn.len() + bytes.len()) / width) as u64,
            None => {
                opus::packet_duration(bytes)? * u64::from(self.rate) / u64::from(opus::CLOCK_RATE)
            }
        };
        // A limit without end saturates.
        let most = (self.seconds_max * f64::from(self.rate)).round() as u64;
        if self.heard.saturating_add(count) > most {
            return Err(TooLong { seconds_max: self.seconds_max }.into());
        }
        let mut samples = match &mut self.decoder {
            Some(decoder) => decoder.decode(bytes)?.to_vec(),
            None => self.samples(bytes),
        };
        self.heard += samples.len() as u64;
        recording::clean(&mut samples);
        let mut out = Vec::new();
        self.resampler.push(&samples, &mut out);
        Ok(out)
    }

    /// Ends the sound: the rest of its samples.
    ///
    /// # Errors
    /// [`IncomingError::Torn`].
    pub fn finish(mut self) -> Result<Vec<f32>, IncomingError> {
        if !self.torn.is_empty() {
            return Err(IncomingError::Torn { bytes: self.torn.len() });
        }
        let mut out = Vec::new();
        self.resampler.finish(&mut out);
        Ok(out)
    }

    fn samples(&mut self, bytes: &[u8]) -> Vec<f32> {
        self.torn.extend_from_slice(bytes);
        let sample: fn(&[u8]) -> f32 = match self.coding {
            Coding::I16 => |b| pcm::from_i16(i16::from_le_bytes([b[0], b[1]])),
            Coding::F32 => |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            Coding::Alaw => |b| pcm::from_i16(g711::alaw_decode(b[0])),
            Coding::Mulaw | Coding::Opus => |b| pcm::from_i16(g711::mulaw_decode(b[0])),
        };
        let width = self.coding.width().unwrap_or(1);
        let samples = self.torn.chunks_exact(width).map(sample).collect();
        self.torn.drain(..self.torn.len() / width * width);
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opus::{Encoder, EncoderConfig};
    use proptest::prelude::*;

    fn tone(rate: u32) -> Vec<f32> {
        let step = std::f32::consts::TAU * 440.0 / rate as f32;
        (0..rate).map(|i| 0.3 * (i as f32 * step).sin()).collect()
    }

    fn bytes(coding: Coding, samples: &[f32]) -> Vec<u8> {
        let coded = |law: fn(i16) -> u8| samples.iter().map(|&s| law(pcm::to_i16(s))).collect();
        let mut bytes = Vec::new();
        match coding {
            Coding::I16 => pcm::extend_i16_le(&mut bytes, samples),
            Coding::F32 => pcm::extend_f32_le(&mut bytes, samples),
            Coding::Mulaw => bytes = coded(g711::mulaw_encode),
            Coding::Alaw => bytes = coded(g711::alaw_encode),
            Coding::Opus => {}
        }
        bytes
    }

    fn packets() -> Vec<Vec<u8>> {
        let mut encoder = Encoder::new(&EncoderConfig::default()).unwrap();
        encoder.push(&tone(24_000)).unwrap()
    }

    fn rises(samples: &[f32]) -> usize {
        samples.windows(2).filter(|w| w[0] < 0.0 && w[1] >= 0.0).count()
    }

    #[test]
    fn every_coding_gives_the_same_second_at_every_rate() {
        for coding in [Coding::I16, Coding::F32, Coding::Mulaw, Coding::Alaw] {
            for rate in [8_000, 16_000, 44_100, 96_000] {
                let mut incoming = Incoming::new(coding, rate, 16_000, 1.0).unwrap();
                let mut heard = incoming.push(&bytes(coding, &tone(rate))).unwrap();
                assert_eq!(incoming.seconds(), 1.0);
                heard.extend(incoming.finish().unwrap());
                assert_eq!(heard.len(), 16_000, "{coding:?} at {rate} Hz");
                let waves = rises(&heard[4_000..12_000]);
                assert!((219..=221).contains(&waves), "{coding:?} at {rate} Hz: {waves} waves");
            }
        }
    }

    #[test]
    fn packets_of_opus_are_decoded_as_they_come() {
        let mut incoming = Incoming::new(Coding::Opus, 48_000, 16_000, 1.1).unwrap();
        let mut heard = Vec::new();
        for packet in packets() {
            heard.extend(incoming.push(&packet).unwrap());
        }
        heard.extend(incoming.finish().unwrap());
        let waves = rises(&heard[4_000..12_000]);
        assert!((219..=221).contains(&waves), "{waves} waves");
    }

    #[test]
    fn what_is_too_long_is_refused_and_not_kept() {
        for (coding, piece) in [(Coding::I16, vec![0; 320]), (Coding::Opus, packets().remove(0))] {
            let mut incoming = Incoming::new(coding, 16_000, 16_000, 0.05).unwrap();
            let mut taken = 0;
            let refused = loop {
                match incoming.push(&piece) {
                    Ok(_) => taken += 1,
                    Err(refused) => break refused,
                }
            };
            assert_eq!(refused.to_string(), "longer than 0.05 s");
            assert_eq!(taken, if coding == Coding::Opus { 2 } else { 5 });
            assert!(incoming.seconds() <= 0.05);
        }
    }

    #[test]
    fn what_cannot_be_heard_is_told() {
        let refused =
            |coding, rate| Incoming::new(coding, rate, 16_000, 1.0).err().unwrap().to_string();
        assert!(refused(Coding::I16, 11_025).contains("11025 Hz"));
        assert!(refused(Coding::Opus, 44_100).contains("44100"));
        let mut incoming = Incoming::new(Coding::F32, 16_000, 16_000, 1.0).unwrap();
        assert_eq!(incoming.push(&f32::NAN.to_le_bytes()).unwrap(), [0.0]);
        incoming.push(&[0; 3]).unwrap();
        let torn = incoming.finish().unwrap_err().to_string();
        assert_eq!(torn, "the sound ends 3 bytes into a sample");
        let mut incoming = Incoming::new(Coding::Opus, 16_000, 16_000, 1.0).unwrap();
        assert!(matches!(incoming.push(&[]), Err(IncomingError::Opus(_))));
    }

    proptest! {
        #[test]
        fn pieces_equal_the_whole(cuts in prop::collection::vec(0_usize..900, 0..6)) {
            let sound = bytes(Coding::F32, &tone(24_000)[..2_000]);
            let whole = {
                let mut incoming = Incoming::new(Coding::F32, 24_000, 16_000, 1.0).unwrap();
                let mut heard = incoming.push(&sound).unwrap();
                heard.extend(incoming.finish().unwrap());
                heard
            };
            let mut incoming = Incoming::new(Coding::F32, 24_000, 16_000, 1.0).unwrap();
            let (mut heard, mut rest) = (Vec::new(), sound.as_slice());
            for cut in cuts {
                let (piece, more) = rest.split_at(cut.min(rest.len()));
                heard.extend(incoming.push(piece).unwrap());
                rest = more;
            }
            heard.extend(incoming.push(rest).unwrap());
            heard.extend(incoming.finish().unwrap());
            prop_assert_eq!(heard, whole);
        }

        #[test]
        fn any_packet_gives_samples_or_an_error(packet in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut incoming = Incoming::new(Coding::Opus, 16_000, 16_000, 0.2).unwrap();
            if let Ok(samples) = incoming.push(&packet) {
                prop_assert!(samples.len() <= 3_200);
                prop_assert!(samples.iter().all(|s| s.is_finite()));
            }
        }
    }
}
