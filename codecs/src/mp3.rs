//! MP3, mono: written frame by frame as the sound is made, and read back as anybody's recording.
//!
//! ```text
//! decoder's clock  |------ 1,105 samples ------|---------- audio ----------|padding|
//!                    encoder 576, decoder 529
//! ```
//!
//! The format cannot say where the audio begins and ends except in a tag before the first frame, which a stream that goes
//! out while it is made cannot have: a decoder's output begins with [`DELAY_SAMPLES`] of near silence and ends with padding.
//! The encoder is there with the feature `mp3`; the decoder always is. Reading takes hostile bytes: any input gives samples
//! or an error, and no more sound than the caller allows.

use nanomp3::SliceReader;

use crate::limited::{Mono, TooLong};

/// How far the audio lies behind on a decoder's clock, in samples at the stream's rate.
pub const DELAY_SAMPLES: usize = 1_105;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Mp3Error {
    /// Bytes without a frame of MP3.
    #[error("not an mp3 file")]
    NotMp3,
    /// The stream cannot be followed to its end.
    #[error("damaged mp3 file: {0}")]
    Damaged(String),
    /// More sound than the caller allows.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

/// Whether bytes look like the beginning of an MP3 file: a frame, or a tag before it.
pub fn detect(bytes: &[u8]) -> bool {
    nanomp3::detect(bytes)
}

/// Reads a file, without its encoder's delay where the file tells it; `seconds_max` is the most that is taken.
///
/// # Errors
/// See [`Mp3Error`].
pub fn read(bytes: &[u8], seconds_max: f64) -> Result<Mono, Mp3Error> {
    // Without the scan for its length, which the limit makes needless.
    let options = nanomp3::Options::default().skip_scan(true);
    let mut reader = SliceReader::<f32>::with_options(bytes, options);
    let channels = match reader.channels() {
        Some(channels) if reader.sample_rate() > 0 => channels as usize,
        _ => return Err(Mp3Error::NotMp3),
    };
    let mut mono = Mono::new(reader.sample_rate(), seconds_max);
    let scale = 1.0 / channels as f32;
    loop {
        match reader.read_frame() {
            Ok(None) => return Ok(mono),
            Ok(Some(frame)) => {
                mono.extend(frame.chunks(channels).map(|c| c.iter().sum::<f32>() * scale))?;
            }
            Err(error) => return Err(Mp3Error::Damaged(error.to_string())),
        }
    }
}

#[cfg(feature = "mp3")]
pub use encode::{EncodeError, Encoder, EncoderConfig};

#[cfg(feature = "mp3")]
mod encode {
    use std::num::NonZeroU32;

    use mp3lame_encoder::{Bitrate, Builder, FlushGap, Mode, MonoPcm, Quality};

    /// Rates of streams, in Hz, and the bitrates that the format has at them, in bits a second.
    const LADDERS: [(&[u32], &[u32]); 3] = [
        (&[8_000], &[8_000, 16_000, 24_000, 32_000, 40_000, 48_000, 64_000]),
        (
            &[16_000, 22_050, 24_000],
            &[
                8_000, 16_000, 24_000, 32_000, 40_000, 48_000, 64_000, 80_000, 96_000, 112_000,
                128_000, 160_000,
            ],
        ),
        (
            &[32_000, 44_100, 48_000],
            &[
                32_000, 40_000, 48_000, 64_000, 80_000, 96_000, 112_000, 128_000, 160_000, 192_000,
                224_000, 256_000, 320_000,
            ],
        ),
    ];
    /// Samples that are given to the encoder at once, which bounds the room that it is given.
    const PIECE_SAMPLES: usize = 4_096;
    /// Room that the encoder asks for: 5 bytes for 4 samples, and 7,200.
    const ROOM_BYTES: usize = PIECE_SAMPLES * 5 / 4 + 7_200;

    /// Why a stream could not be opened or encoded.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum EncodeError {
        /// A rate and a bitrate that do not go together.
        #[error("mp3 has no {bitrate} bits a second at {sample_rate} Hz; it has {allowed}")]
        Unsupported {
            /// Rate in Hz.
            sample_rate: u32,
            /// Bits a second.
            bitrate: u32,
            /// What there is at that rate, in words.
            allowed: String,
        },
        /// What the encoder answered.
        #[error("cannot encode mp3: {0}")]
        Codec(String),
    }

    /// Settings of an [`Encoder`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct EncoderConfig {
        /// Rate of the samples that come in, and of the stream, in Hz.
        pub sample_rate: u32,
        /// Constant bits a second.
        pub bitrate: u32,
    }

    impl Default for EncoderConfig {
        fn default() -> Self {
            // Where speech of this bandwidth cannot be told from the original.
            Self { sample_rate: 24_000, bitrate: 96_000 }
        }
    }

    impl EncoderConfig {
        fn check(self) -> Result<Bitrate, EncodeError> {
            let Self { sample_rate, bitrate } = self;
            let ladder = LADDERS.iter().find(|(rates, _)| rates.contains(&sample_rate));
            let bitrates = ladder.map_or(&[][..], |(_, bitrates)| bitrates);
            let found = bitrates.contains(&bitrate).then(|| named(bitrate)).flatten();
            found.ok_or_else(|| {
                let names: Vec<String> = bitrates.iter().map(u32::to_string).collect();
                let allowed = match names.is_empty() {
                    true => "no such rate".to_owned(),
                    false => names.join(", "),
                };
                EncodeError::Unsupported { sample_rate, bitrate, allowed }
            })
        }
    }

    fn named(bitrate: u32) -> Option<Bitrate> {
        Some(match bitrate {
            8_000 => Bitrate::Kbps8,
            16_000 => Bitrate::Kbps16,
            24_000 => Bitrate::Kbps24,
            32_000 => Bitrate::Kbps32,
            40_000 => Bitrate::Kbps40,
            48_000 => Bitrate::Kbps48,
            64_000 => Bitrate::Kbps64,
            80_000 => Bitrate::Kbps80,
            96_000 => Bitrate::Kbps96,
            112_000 => Bitrate::Kbps112,
            128_000 => Bitrate::Kbps128,
            160_000 => Bitrate::Kbps160,
            192_000 => Bitrate::Kbps192,
            224_000 => Bitrate::Kbps224,
            256_000 => Bitrate::Kbps256,
            320_000 => Bitrate::Kbps320,
            _ => return None,
        })
    }

    /// One stream's encoder. It keeps up to four frames back: at most 100 ms at 24 kHz.
    pub struct Encoder {
        inner: mp3lame_encoder::Encoder,
        clean: Vec<f32>,
    }

    impl Encoder {
        /// An encoder at the start of a stream.
        ///
        /// # Errors
        /// [`EncodeError::Unsupported`] for a rate or bitrate that MP3 does not have.
        pub fn new(config: &EncoderConfig) -> Result<Self, EncodeError> {
            let bitrate = config.check()?;
            let refused = |e: &dyn std::fmt::Display| EncodeError::Codec(e.to_string());
            let mut builder = Builder::new().ok_or_else(|| refused(&"no memory"))?;
            let build = |builder: &mut Builder| {
                builder.set_num_channels(1)?;
                builder.set_mode(Mode::Mono)?;
                builder.set_sample_rate(config.sample_rate)?;
                builder.set_output_sample_rate(NonZeroU32::new(config.sample_rate))?;
                builder.set_brate(bitrate)?;
                builder.set_quality(Quality::Good)?;
                // The tag stands before the sound and tells of its end: nothing for a stream.
                builder.set_to_write_vbr_tag(false)
            };
            build(&mut builder).map_err(|e| refused(&e))?;
            let inner = builder.build().map_err(|e| refused(&e))?;
            Ok(Self { inner, clean: Vec::new() })
        }

        /// Encodes the next samples; gives the bytes that are ready, often none.
        ///
        /// # Errors
        /// What the encoder says; not to be expected with samples of any value.
        pub fn push(&mut self, samples: &[f32]) -> Result<Vec<u8>, EncodeError> {
            let mut bytes = Vec::new();
            for piece in samples.chunks(PIECE_SAMPLES) {
                self.clean.clear();
                // Its filters would keep a number that is not finite for ever.
                self.clean.extend(piece.iter().map(|s| if s.is_finite() { *s } else { 0.0 }));
                bytes.reserve(ROOM_BYTES);
                let encoded = self.inner.encode_to_vec(MonoPcm(&self.clean[..]), &mut bytes);
                encoded.map_err(|e| EncodeError::Codec(e.to_string()))?;
            }
            Ok(bytes)
        }

        /// Ends the stream: pads with silence until a decoder has got all of the audio.
        ///
        /// # Errors
        /// As [`Encoder::push`].
        pub fn finish(mut self) -> Result<Vec<u8>, EncodeError> {
            let mut bytes = Vec::with_capacity(ROOM_BYTES);
            let flushed = self.inner.flush_to_vec::<FlushGap>(&mut bytes);
            flushed.map_err(|e| EncodeError::Codec(e.to_string()))?;
            Ok(bytes)
        }
    }
}

#[cfg(test)]
#[cfg(feature = "mp3")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::f32::consts::TAU;

    /// Power of what is not the tone, against the tone, at the lowest bitrates that clients ask for: what is left is the
    /// codec's noise. A shift by one sample, a wrong rate or a hole would be above -20 dB.
    const IMPURITY_DB_MAX: f32 = -24.0;

    fn tone(rate: u32, n: usize) -> Vec<f32> {
        (0..n).map(|i| 0.3 * (TAU * 440.0 * i as f32 / rate as f32).sin()).collect()
    }

    fn encode(config: EncoderConfig, pieces: &[&[f32]]) -> Vec<u8> {
        let mut encoder = Encoder::new(&config).unwrap();
        let mut bytes = Vec::new();
        for piece in pieces {
            bytes.extend(encoder.push(piece).unwrap());
        }
        bytes.extend(encoder.finish().unwrap());
        bytes
    }

    #[test]
    fn a_tone_comes_back_whole_and_at_the_stated_delay() {
        for (sample_rate, bitrate) in [
            (24_000, 96_000),
            (24_000, 48_000),
            (22_050, 32_000),
            (44_100, 128_000),
            (8_000, 32_000),
        ] {
            let sound = tone(sample_rate, sample_rate as usize);
            let bytes = encode(EncoderConfig { sample_rate, bitrate }, &[&sound]);
            let heard = read(&bytes, 2.0).unwrap();
            assert_eq!(heard.sample_rate, sample_rate);
            assert!(heard.samples.len() >= DELAY_SAMPLES + sound.len(), "the end is cut");
            let heard = &heard.samples[DELAY_SAMPLES..];
            // The filters ring where the tone begins and stops.
            let inner = sound.len() / 20..sound.len() * 19 / 20;
            let power = |s: &mut dyn Iterator<Item = f32>| s.map(|v| v * v).sum::<f32>();
            let noise = power(&mut inner.clone().map(|i| heard[i] - sound[i]));
            let db = 10.0 * (noise / power(&mut inner.map(|i| sound[i]))).log10();
            assert!(db < IMPURITY_DB_MAX, "{sample_rate} Hz, {bitrate}: {db:.1} dB");
        }
    }

    #[test]
    fn no_more_than_four_frames_are_kept_back() {
        let mut encoder = Encoder::new(&EncoderConfig::default()).unwrap();
        let sound = tone(24_000, 24_000);
        let (mut pushed, mut bytes) = (0, Vec::new());
        for piece in sound.chunks(480) {
            bytes.extend(encoder.push(piece).unwrap());
            pushed += piece.len();
            // 96,000 bits a second at 24 kHz are half a byte a sample.
            assert!(pushed <= 2 * bytes.len() + 4 * 576, "{pushed} in, {} bytes out", bytes.len());
        }
    }

    #[test]
    fn rates_and_bitrates_that_do_not_go_together_are_refused() {
        let refused = |sample_rate, bitrate| {
            Encoder::new(&EncoderConfig { sample_rate, bitrate }).err().unwrap().to_string()
        };
        assert!(refused(24_000, 192_000).contains("8000, 16000, 24000"));
        assert!(refused(12_345, 64_000).contains("no such rate"));
    }

    #[test]
    fn numbers_that_are_not_finite_do_no_harm() {
        let mut sound = tone(24_000, 24_000);
        sound[3_000] = f32::NAN;
        sound[4_000] = f32::INFINITY;
        let bytes = encode(EncoderConfig::default(), &[&sound]);
        assert!(read(&bytes, 2.0).unwrap().samples.iter().all(|s| s.abs() < 1.0));
    }

    #[test]
    fn more_sound_than_allowed_is_refused() {
        let bytes = encode(EncoderConfig::default(), &[&tone(24_000, 24_000)]);
        assert!(detect(&bytes));
        assert!(matches!(read(&bytes, 0.9), Err(Mp3Error::TooLong(_))));
        assert!(matches!(read(b"RIFF....WAVE", 1.0), Err(Mp3Error::NotMp3)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn pieces_equal_the_whole(cut in 0_usize..6_000) {
            let sound = tone(24_000, 6_000);
            let (a, b) = sound.split_at(cut);
            let config = EncoderConfig::default();
            prop_assert_eq!(encode(config, &[a, b]), encode(config, &[&sound]));
        }

        #[test]
        fn any_bytes_give_samples_or_an_error(at in any::<usize>(), byte in any::<u8>(), cut in any::<usize>()) {
            let mut bytes = encode(EncoderConfig::default(), &[&tone(24_000, 6_000)]);
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(cut % bytes.len());
            if let Ok(heard) = read(&bytes, 1.0) {
                prop_assert!(heard.seconds() <= 1.0);
            }
        }
    }
}
