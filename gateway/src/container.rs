//! Sound to the bytes of a file, as it is made: MP3, Ogg Opus, FLAC, WAV, or bare samples. Knows no requests.
//!
//! ```text
//! wav   header of unknown length, then 16-bit samples      pcm   the samples alone, 24 kHz
//! opus  Ogg pages, each as soon as it holds something      mp3, flac   frames, as they fill
//! ```

use codecs::flac::{self, FlacError};
use codecs::ogg::{OggError, OggHead, OggWriter};
use codecs::opus::{self, OpusError};
use codecs::pcm;
use codecs::resample::UnsupportedRate;
use codecs::wav::{self, SampleFormat};

use crate::audio::ENGINE_RATE;

/// What every file says of itself that can say anything.
const LABEL: &str = "Synthetic speech, made by a machine";
const SOFTWARE: &str = concat!("Dovecote ", env!("CARGO_PKG_VERSION"));
const COMMENTS: [(&str, &str); 2] = [("COMMENT", LABEL), ("ENCODER", SOFTWARE)];
pub(crate) const INFO: [wav::Info<'static>; 2] = [(*b"ICMT", LABEL), (*b"ISFT", SOFTWARE)];
/// Tells the streams of one file apart; ours has one.
const OGG_SERIAL: u32 = 1;

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFormat {
    /// Only in a build with the feature `mp3`.
    #[cfg(feature = "mp3")]
    Mp3,
    /// Opus in Ogg.
    Opus,
    Flac,
    Wav,
    /// 16-bit little-endian samples, mono, 24 kHz.
    Pcm,
}

impl FileFormat {
    /// All that this build writes.
    pub(crate) const ALL: &[Self] = &[
        #[cfg(feature = "mp3")]
        Self::Mp3,
        Self::Opus,
        Self::Flac,
        Self::Wav,
        Self::Pcm,
    ];

    /// The one that is asked for by this name, if this build writes it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// What it is asked for by.
    pub(crate) fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "mp3")]
            Self::Mp3 => "mp3",
            Self::Opus => "opus",
            Self::Flac => "flac",
            Self::Wav => "wav",
            Self::Pcm => "pcm",
        }
    }

    /// What it goes out as.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            #[cfg(feature = "mp3")]
            Self::Mp3 => "audio/mpeg",
            Self::Opus => "audio/ogg",
            Self::Flac => "audio/flac",
            Self::Wav => "audio/wav",
            Self::Pcm => "audio/pcm",
        }
    }
}

/// Bytes that come as they are made, at a rate that the client chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Of samples at this rate, in Hz. Only in a build with the feature `mp3`.
    #[cfg(feature = "mp3")]
    Mp3 { sample_rate: u32, bitrate: u32 },
    /// Opus in Ogg, of samples at [`Encoding::OPUS_RATE`].
    Opus { bitrate: u32 },
    /// Of samples at this rate, in Hz.
    Flac { sample_rate: u32 },
}

impl Encoding {
    /// Rate of the samples that Opus is made of, in Hz.
    pub(crate) const OPUS_RATE: u32 = ENGINE_RATE;
}

/// A WAV of 16-bit samples that are all there, so that its header says how many.
pub(crate) fn complete_wav(samples: &[u8]) -> Vec<u8> {
    let count = samples.len() as u64 / 2;
    let mut bytes = wav::header(ENGINE_RATE, SampleFormat::I16, &INFO, Some(count));
    bytes.extend_from_slice(samples);
    bytes
}

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[cfg(feature = "mp3")]
    #[error(transparent)]
    Mp3(#[from] codecs::mp3::EncodeError),
    #[error(transparent)]
    Opus(#[from] OpusError),
    #[error(transparent)]
    Ogg(#[from] OggError),
    #[error(transparent)]
    Flac(#[from] FlacError),
    #[error(transparent)]
    Rate(#[from] UnsupportedRate),
}

/// Writes one file. What stands before the sound comes with the first of it.
pub(crate) enum FileWriter {
    #[cfg(feature = "mp3")]
    Mp3(Box<codecs::mp3::Encoder>),
    Ogg {
        encoder: Box<opus::Encoder>,
        pages: OggWriter<Vec<u8>>,
    },
    Flac(Box<flac::Encoder>),
    Plain {
        header: Vec<u8>,
    },
}

impl FileWriter {
    /// # Errors
    /// What the encoder says; not to be expected.
    pub(crate) fn new(format: FileFormat) -> Result<Self, FileError> {
        Ok(match format {
            #[cfg(feature = "mp3")]
            FileFormat::Mp3 => Self::mp3(&Default::default())?,
            FileFormat::Opus => Self::ogg(&opus::EncoderConfig::default())?,
            FileFormat::Flac => return Self::flac(ENGINE_RATE),
            FileFormat::Wav => {
                Self::Plain { header: wav::header(ENGINE_RATE, SampleFormat::I16, &INFO, None) }
            }
            FileFormat::Pcm => Self::Plain { header: Vec::new() },
        })
    }

    /// As [`FileWriter::new`], with the settings of the client.
    ///
    /// # Errors
    /// What the encoder says of them.
    pub(crate) fn of(encoding: Encoding) -> Result<Self, FileError> {
        match encoding {
            #[cfg(feature = "mp3")]
            Encoding::Mp3 { sample_rate, bitrate } => {
                Self::mp3(&codecs::mp3::EncoderConfig { sample_rate, bitrate })
            }
            Encoding::Opus { bitrate } => {
                Self::ogg(&opus::EncoderConfig { bitrate, ..opus::EncoderConfig::default() })
            }
            Encoding::Flac { sample_rate } => Self::flac(sample_rate),
        }
    }

    #[cfg(feature = "mp3")]
    fn mp3(config: &codecs::mp3::EncoderConfig) -> Result<Self, FileError> {
        Ok(Self::Mp3(Box::new(codecs::mp3::Encoder::new(config)?)))
    }

    fn flac(sample_rate: u32) -> Result<Self, FileError> {
        Ok(Self::Flac(Box::new(flac::Encoder::new(sample_rate, &COMMENTS)?)))
    }

    fn ogg(config: &opus::EncoderConfig) -> Result<Self, FileError> {
        let encoder = Box::new(opus::Encoder::new(config)?);
        let head = OggHead { pre_skip: encoder.pre_skip(), input_rate: ENGINE_RATE };
        let pages = OggWriter::new(Vec::new(), OGG_SERIAL, head, &COMMENTS)?;
        Ok(Self::Ogg { encoder, pages })
    }

    /// The bytes that the next samples complete, often none. Ogg pages hold what one call gives them, so that a listener
    /// waits for no more.
    ///
    /// # Errors
    /// As [`FileWriter::new`].
    pub(crate) fn write(&mut self, samples: &[f32]) -> Result<Vec<u8>, FileError> {
        match self {
            #[cfg(feature = "mp3")]
            Self::Mp3(encoder) => Ok(encoder.push(samples)?),
            Self::Ogg { encoder, pages } => {
                for packet in encoder.push(samples)? {
                    pages.packet(packet)?;
                }
                pages.flush()?;
                Ok(std::mem::take(pages.sink_mut()))
            }
            Self::Flac(encoder) => Ok(encoder.push(samples)?),
            Self::Plain { header } => {
                let mut bytes = std::mem::take(header);
                pcm::extend_i16_le(&mut bytes, samples);
                Ok(bytes)
            }
        }
    }

    /// The rest of the file.
    ///
    /// # Errors
    /// As [`FileWriter::new`].
    pub(crate) fn finish(self) -> Result<Vec<u8>, FileError> {
        match self {
            #[cfg(feature = "mp3")]
            Self::Mp3(encoder) => Ok(encoder.finish()?),
            Self::Ogg { mut encoder, pages } => Ok(pages.finish(encoder.finish()?)?),
            Self::Flac(encoder) => Ok(encoder.finish()?),
            Self::Plain { header } => Ok(header),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codecs::ogg::OggOpus;
    use codecs::wav::Wav;

    fn sound(n: usize) -> Vec<f32> {
        (0..n).map(|i| 0.3 * (i as f32 * 0.1).sin()).collect()
    }

    fn file(format: FileFormat, samples: &[f32], piece: usize) -> Vec<u8> {
        let mut writer = FileWriter::new(format).unwrap();
        let mut bytes = Vec::new();
        for piece in samples.chunks(piece) {
            bytes.extend(writer.write(piece).unwrap());
        }
        bytes.extend(writer.finish().unwrap());
        bytes
    }

    /// Samples at 24 kHz that a player hears of a file.
    fn heard(format: FileFormat, bytes: &[u8]) -> Vec<f32> {
        match format {
            #[cfg(feature = "mp3")]
            FileFormat::Mp3 => codecs::mp3::read(bytes, 60.0).unwrap().samples,
            FileFormat::Opus => {
                OggOpus::read(bytes).unwrap().decode(ENGINE_RATE, 1_000_000).unwrap()
            }
            FileFormat::Flac => flac::read(bytes, 60.0).unwrap().samples,
            FileFormat::Wav => Wav::read(bytes).unwrap().samples,
            FileFormat::Pcm => bytes
                .chunks_exact(2)
                .map(|b| pcm::from_i16(i16::from_le_bytes([b[0], b[1]])))
                .collect(),
        }
    }

    #[test]
    fn every_format_holds_every_sample() {
        for &format in FileFormat::ALL {
            for n in [0, 1, 24_037] {
                let heard = heard(format, &file(format, &sound(n), 2_400)).len();
                match format {
                    #[cfg(feature = "mp3")]
                    FileFormat::Mp3 => assert!(heard >= n + codecs::mp3::DELAY_SAMPLES),
                    _ => assert_eq!(heard, n, "{format:?}"),
                }
            }
        }
    }

    #[test]
    fn a_file_says_that_it_is_synthetic_where_it_can() {
        for &format in &[FileFormat::Opus, FileFormat::Flac, FileFormat::Wav] {
            let bytes = file(format, &sound(100), 100);
            assert!(bytes.windows(LABEL.len()).any(|w| w == LABEL.as_bytes()), "{format:?}");
        }
    }

    #[test]
    fn a_listener_waits_for_less_than_two_tenths_of_a_second_of_sound() {
        for &format in FileFormat::ALL {
            let mut writer = FileWriter::new(format).unwrap();
            let first = writer.write(&sound(2_400)).unwrap();
            let second = writer.write(&sound(2_400)).unwrap();
            assert!(!first.is_empty() && !second.is_empty(), "{format:?}");
        }
    }
}
