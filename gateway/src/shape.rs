//! Sound to the bytes that a client has asked for, at the rate that it has asked for. Knows no requests.

use codecs::resample::Resampler;
use codecs::wav::{self, SampleFormat};

use crate::audio::{self, ENGINE_RATE};
use crate::container::{Encoding, FileError, FileFormat, FileWriter, INFO};
use crate::protocol::Codec;

/// What bytes a client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A file at the engine's rate.
    File(FileFormat),
    /// As the client has set it.
    Encoded(Encoding),
    /// Samples as they are, bare or in a WAV of unknown length.
    Samples(Samples),
}

/// Samples as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Samples {
    /// Any but Opus.
    pub(crate) codec: Codec,
    /// One of the resampler's, in Hz.
    pub(crate) sample_rate: u32,
    pub(crate) in_wav: bool,
}

impl Shape {
    /// What it goes out as.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::File(format) => format.content_type(),
            #[cfg(feature = "mp3")]
            Self::Encoded(Encoding::Mp3 { .. }) => "audio/mpeg",
            Self::Encoded(Encoding::Opus { .. }) => "audio/ogg",
            Self::Encoded(Encoding::Flac { .. }) => "audio/flac",
            Self::Samples(Samples { in_wav: true, .. }) => "audio/wav",
            Self::Samples(Samples { codec: Codec::Mulaw | Codec::Alaw, .. }) => "audio/basic",
            Self::Samples(_) => "audio/pcm",
        }
    }

    fn sample_rate(self) -> u32 {
        match self {
            #[cfg(feature = "mp3")]
            Self::Encoded(Encoding::Mp3 { sample_rate, .. }) => sample_rate,
            Self::Encoded(Encoding::Opus { .. }) => Encoding::OPUS_RATE,
            Self::Encoded(Encoding::Flac { sample_rate }) => sample_rate,
            Self::File(_) => ENGINE_RATE,
            Self::Samples(samples) => samples.sample_rate,
        }
    }
}

/// Writes one answer.
pub(crate) struct ShapeWriter {
    resampler: Option<Box<Resampler>>,
    /// Sound at the client's rate, before it is written.
    carry: Vec<f32>,
    inner: Inner,
}

enum Inner {
    File(FileWriter),
    Samples { codec: Codec, header: Vec<u8> },
}

impl ShapeWriter {
    /// # Errors
    /// A rate that nothing is resampled to, or what the encoder says of its settings.
    pub(crate) fn new(shape: Shape) -> Result<Self, FileError> {
        let rate = shape.sample_rate();
        let resampler = match rate {
            ENGINE_RATE => None,
            _ => Some(Box::new(Resampler::new(ENGINE_RATE, rate)?)),
        };
        let inner = match shape {
            Shape::File(format) => Inner::File(FileWriter::new(format)?),
            Shape::Encoded(encoding) => Inner::File(FileWriter::of(encoding)?),
            Shape::Samples(Samples { codec, in_wav, .. }) => {
                let format = match codec {
                    Codec::PcmF32le => SampleFormat::F32,
                    Codec::Mulaw => SampleFormat::Mulaw,
                    Codec::Alaw => SampleFormat::Alaw,
                    Codec::PcmS16le | Codec::Opus => SampleFormat::I16,
                };
                let header = in_wav.then(|| wav::header(rate, format, &INFO, None));
                Inner::Samples { codec, header: header.unwrap_or_default() }
            }
        };
        Ok(Self { resampler, carry: Vec::new(), inner })
    }

    /// The bytes that the next samples of the engine complete, often none.
    ///
    /// # Errors
    /// What the encoder says.
    pub(crate) fn write(&mut self, samples: &[f32]) -> Result<Vec<u8>, FileError> {
        let Some(resampler) = &mut self.resampler else { return self.inner.write(samples) };
        self.carry.clear();
        resampler.push(samples, &mut self.carry);
        self.inner.write(&self.carry)
    }

    /// The rest.
    ///
    /// # Errors
    /// As [`ShapeWriter::write`].
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, FileError> {
        self.carry.clear();
        if let Some(resampler) = &mut self.resampler {
            resampler.finish(&mut self.carry);
        }
        let mut bytes = self.inner.write(&self.carry)?;
        if let Inner::File(file) = self.inner {
            bytes.extend(file.finish()?);
        }
        Ok(bytes)
    }
}

impl Inner {
    fn write(&mut self, samples: &[f32]) -> Result<Vec<u8>, FileError> {
        match self {
            // Ogg would make a page of nothing.
            Self::File(_) if samples.is_empty() => Ok(Vec::new()),
            Self::File(file) => file.write(samples),
            Self::Samples { codec, header } => {
                let mut bytes = std::mem::take(header);
                audio::extend(*codec, &mut bytes, samples);
                Ok(bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codecs::wav::Wav;

    fn whole(shape: Shape, samples: usize, piece: usize) -> Vec<u8> {
        let sound: Vec<f32> = (0..samples).map(|i| (i as f32 * 0.05).sin() * 0.3).collect();
        let mut writer = ShapeWriter::new(shape).unwrap();
        let mut bytes = Vec::new();
        for piece in sound.chunks(piece) {
            bytes.extend(writer.write(piece).unwrap());
        }
        bytes.extend(writer.finish().unwrap());
        bytes
    }

    fn samples(codec: Codec, sample_rate: u32, in_wav: bool) -> Shape {
        Shape::Samples(Samples { codec, sample_rate, in_wav })
    }

    #[test]
    fn every_sample_arrives_at_the_rate_asked_for() {
        for (codec, rate, bytes) in [
            (Codec::PcmS16le, 24_000, 2),
            (Codec::PcmF32le, 44_100, 4),
            (Codec::Mulaw, 8_000, 1),
            (Codec::Alaw, 16_000, 1),
        ] {
            let shape = samples(codec, rate, false);
            let got = whole(shape, 24_000, 2_400);
            assert_eq!(got.len(), rate as usize * bytes, "{codec:?}");
            assert_eq!(got, whole(shape, 24_000, 777), "pieces equal the whole");
        }
    }

    #[test]
    fn a_wav_says_its_rate_and_holds_the_same_sound() {
        for codec in [Codec::PcmS16le, Codec::PcmF32le, Codec::Mulaw, Codec::Alaw] {
            let wav = Wav::read(&whole(samples(codec, 16_000, true), 24_000, 2_400)).unwrap();
            assert_eq!((wav.sample_rate, wav.samples.len()), (16_000, 16_000));
        }
        let empty = Wav::read(&whole(samples(Codec::PcmS16le, 8_000, true), 0, 1)).unwrap();
        assert_eq!((empty.sample_rate, empty.samples.len()), (8_000, 0));
    }

    #[test]
    fn a_flac_has_the_rate_asked_for() {
        let shape = Shape::Encoded(Encoding::Flac { sample_rate: 16_000 });
        let heard = codecs::flac::read(&whole(shape, 24_000, 2_400), 9.0).unwrap();
        assert_eq!((heard.sample_rate, heard.samples.len()), (16_000, 16_000));
    }

    #[cfg(feature = "mp3")]
    #[test]
    fn an_mp3_has_the_rate_asked_for() {
        let shape = Shape::Encoded(Encoding::Mp3 { sample_rate: 44_100, bitrate: 128_000 });
        let heard = codecs::mp3::read(&whole(shape, 24_000, 2_400), 9.0).unwrap();
        assert_eq!(heard.sample_rate, 44_100);
        assert!(heard.samples.len() >= 44_100);
        let shape = Shape::Encoded(Encoding::Mp3 { sample_rate: 44_100, bitrate: 1 });
        assert!(ShapeWriter::new(shape).is_err());
    }
}
