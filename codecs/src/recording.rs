//! Anybody's recording to mono samples at the rate that a model hears: the format is told by the bytes, never by a name.
//!
//! ```text
//! "RIFF" WAV    "fLaC" FLAC    "OggS" Ogg Opus    frames or a tag before them: MP3
//! ```
//! What people also send and what is not read (M4A, WebM, AAC, ..) is known well enough to be refused by its name.
//!
//! Bytes are hostile: any input gives samples or an error, and what is longer than allowed is refused before, or as soon as,
//! it is known to be.

use crate::flac::{self, FlacError};
use crate::limited::{Mono, TooLong};
use crate::mp3::{self, Mp3Error};
use crate::ogg::{OggError, OggOpus};
use crate::opus;
use crate::resample::{RATES, RECORDING_RATES, Resampler};
use crate::wav::{Wav, WavError};

/// Rate of the samples of [`read`], in Hz.
pub const RATE: u32 = 24_000;

/// Samples beyond this are clipped: 36 dB above full scale, louder than the hottest mix of floats.
const LOUDEST: f32 = 64.0;

/// Samples that are converted to another rate at once.
const BLOCK_SAMPLES: usize = 1 << 16;

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// None of the formats that are read.
    #[error("not a WAV, FLAC, MP3 or Ogg Opus file")]
    Unknown,
    /// A format that is known and not read.
    #[error("{format} is not read; read are WAV, FLAC, MP3 and Ogg Opus")]
    Format {
        /// Its name.
        format: &'static str,
    },
    /// Of a known format, but damaged or of a kind that is not read.
    #[error("{0}")]
    Unreadable(String),
    /// More sound than the caller allows.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// A rate that is not converted.
    #[error("sound at {rate} Hz is not converted; rates are {}", rates())]
    Rate {
        /// The file's rate, in Hz.
        rate: u32,
    },
}

fn rates() -> String {
    let mut rates = [&RATES[..], &RECORDING_RATES].concat();
    rates.sort_unstable();
    rates.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Reads a file of at most `seconds_max` to mono samples at [`RATE`].
///
/// # Errors
/// See [`RecordingError`].
pub fn read(bytes: &[u8], seconds_max: f64) -> Result<Vec<f32>, RecordingError> {
    read_at(RATE, bytes, seconds_max)
}

/// As [`read`], at one of the [`RATES`], in Hz.
///
/// # Errors
/// See [`RecordingError`].
pub fn read_at(rate: u32, bytes: &[u8], seconds_max: f64) -> Result<Vec<f32>, RecordingError> {
    if let Some(format) = refused(bytes) {
        return Err(RecordingError::Format { format });
    }
    let mono = match bytes {
        [b'R', b'I', b'F', b'F', ..] => Wav::read_within(bytes, seconds_max)?,
        [b'f', b'L', b'a', b'C', ..] => flac::read(bytes, seconds_max)?,
        [b'O', b'g', b'g', b'S', ..] => ogg(rate, bytes, seconds_max)?,
        _ if mp3::detect(bytes) => mp3::read(bytes, seconds_max)?,
        _ => return Err(RecordingError::Unknown),
    };
    resample(mono, rate)
}

/// Name of a format that is known and not read.
fn refused(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        // ISO base media: M4A, MP4, MOV, 3GP, with AAC or ALAC inside.
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some("M4A or MP4"),
        // EBML.
        [0x1a, 0x45, 0xdf, 0xa3, ..] => Some("WebM or Matroska"),
        // Where MP3 has its layer, ADTS has zeros.
        [0xff, second, ..] if second & 0xf6 == 0xf0 => Some("AAC"),
        [b'F', b'O', b'R', b'M', _, _, _, _, b'A', b'I', b'F', ..] => Some("AIFF"),
        [b'#', b'!', b'A', b'M', b'R', ..] => Some("AMR"),
        [b'c', b'a', b'f', b'f', ..] => Some("CAF"),
        // ASF.
        [0x30, 0x26, 0xb2, 0x75, ..] => Some("WMA"),
        [b'R', b'F', b'6', b'4', ..] => Some("RF64"),
        _ => None,
    }
}

fn ogg(rate: u32, bytes: &[u8], seconds_max: f64) -> Result<Mono, RecordingError> {
    // Opus has most rates itself.
    let rate = if opus::RATES.contains(&rate) { rate } else { opus::CLOCK_RATE };
    let samples_max = (seconds_max * f64::from(rate)).round() as usize;
    let decoded =
        OggOpus::read_within(bytes, seconds_max).and_then(|file| file.decode(rate, samples_max));
    let decoded = decoded.map_err(|e| match e {
        OggError::TooLong { .. } | OggError::Longer(_) => TooLong { seconds_max }.into(),
        other => RecordingError::Unreadable(other.to_string()),
    })?;
    Ok(Mono::of(rate, decoded, seconds_max)?)
}

fn resample(mono: Mono, to: u32) -> Result<Vec<f32>, RecordingError> {
    let Mono { sample_rate: rate, mut samples, .. } = mono;
    clean(&mut samples);
    let mut resampler = resampler(rate, to)?;
    let mut ready = Vec::new();
    if to > rate {
        resampler.push(&samples, &mut ready);
        resampler.finish(&mut ready);
        return Ok(ready);
    }
    // An hour is hundreds of megabytes: what has been read makes room for what comes of it, which is never more.
    let mut written = 0;
    for start in (0..samples.len()).step_by(BLOCK_SAMPLES) {
        let end = samples.len().min(start + BLOCK_SAMPLES);
        resampler.push(&samples[start..end], &mut ready);
        samples[written..written + ready.len()].copy_from_slice(&ready);
        written += ready.len();
        ready.clear();
    }
    resampler.finish(&mut ready);
    samples.truncate(written);
    samples.append(&mut ready);
    samples.shrink_to_fit();
    Ok(samples)
}

/// Numbers that no recording has would overflow in the filters, whose library does not take that.
pub(crate) fn clean(samples: &mut [f32]) {
    for sample in samples {
        *sample = if sample.is_finite() { sample.clamp(-LOUDEST, LOUDEST) } else { 0.0 };
    }
}

pub(crate) fn resampler(from: u32, to: u32) -> Result<Resampler, RecordingError> {
    Resampler::of_recording(from, to).map_err(|e| RecordingError::Rate { rate: e.rate })
}

impl From<WavError> for RecordingError {
    fn from(error: WavError) -> Self {
        match error {
            WavError::TooLong(long) => long.into(),
            other => Self::Unreadable(other.to_string()),
        }
    }
}

impl From<FlacError> for RecordingError {
    fn from(error: FlacError) -> Self {
        match error {
            FlacError::TooLong(long) => long.into(),
            other => Self::Unreadable(other.to_string()),
        }
    }
}

impl From<Mp3Error> for RecordingError {
    fn from(error: Mp3Error) -> Self {
        match error {
            Mp3Error::TooLong(long) => long.into(),
            other => Self::Unreadable(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ogg::{OggHead, OggWriter};
    use crate::opus::{Encoder, EncoderConfig};
    use crate::wav::{SampleFormat, header};
    use proptest::prelude::*;

    fn tone(rate: u32) -> Vec<f32> {
        let step = std::f32::consts::TAU * 440.0 / rate as f32;
        (0..rate).map(|i| 0.3 * (i as f32 * step).sin()).collect()
    }

    fn wav(rate: u32, samples: &[f32]) -> Vec<u8> {
        let mut bytes = header(rate, SampleFormat::I16, &[], Some(samples.len() as u64));
        crate::pcm::extend_i16_le(&mut bytes, samples);
        bytes
    }

    /// A second of the tone, in every format.
    fn files() -> Vec<(&'static str, Vec<u8>)> {
        let sound = tone(RATE);
        let mut encoder = flac::Encoder::new(RATE, &[]).unwrap();
        let mut flac = encoder.push(&sound).unwrap();
        flac.extend(encoder.finish().unwrap());
        let mut encoder = Encoder::new(&EncoderConfig::default()).unwrap();
        let head = OggHead { pre_skip: encoder.pre_skip(), input_rate: RATE };
        let mut ogg = OggWriter::new(Vec::new(), 1, head, &[]).unwrap();
        for packet in encoder.push(&sound).unwrap() {
            ogg.packet(packet).unwrap();
        }
        #[cfg_attr(not(feature = "mp3"), expect(unused_mut, reason = "mp3 comes last"))]
        let mut files = vec![
            ("wav", wav(RATE, &sound)),
            ("wav at 44.1 kHz", wav(44_100, &tone(44_100))),
            ("wav at 96 kHz", wav(96_000, &tone(96_000))),
            ("flac", flac),
            ("ogg", ogg.finish(encoder.finish().unwrap()).unwrap()),
        ];
        #[cfg(feature = "mp3")]
        files.push(("mp3", {
            let mut encoder = mp3::Encoder::new(&mp3::EncoderConfig::default()).unwrap();
            let mut bytes = encoder.push(&sound).unwrap();
            bytes.extend(encoder.finish().unwrap());
            bytes
        }));
        files
    }

    #[test]
    fn every_format_gives_the_same_second() {
        for (format, bytes) in files() {
            let samples = read(&bytes, 2.0).unwrap();
            match format {
                "mp3" => assert!(samples.len() > 24_000 && samples.len() < 27_000),
                _ => assert_eq!(samples.len(), 24_000, "{format}"),
            }
            // What is counted at zero crossings is the pitch: 440 a second, whatever the file's rate was.
            let middle = &samples[6_000..18_000];
            let rises = middle.windows(2).filter(|w| w[0] < 0.0 && w[1] >= 0.0).count();
            assert!((219..=221).contains(&rises), "{format}: {rises} waves in half a second");
        }
    }

    #[test]
    fn a_long_recording_is_converted_as_a_whole_would_be() {
        // More than two blocks, and no whole number of them.
        let sound: Vec<f32> = (0..3).flat_map(|_| tone(48_000)).collect();
        let bytes = wav(48_000, &sound);
        let Mono { samples, .. } = Wav::read_within(&bytes, 4.0).unwrap();
        for to in [16_000, 24_000, 48_000] {
            let mut whole = Vec::new();
            let mut resampler = resampler(48_000, to).unwrap();
            resampler.push(&samples, &mut whole);
            resampler.finish(&mut whole);
            assert_eq!(read_at(to, &bytes, 4.0).unwrap(), whole, "to {to} Hz");
        }
    }

    #[test]
    fn numbers_that_are_no_sound_are_clipped() {
        for loud in [1e9, f32::MAX] {
            let samples = [loud, -loud, 0.5].repeat(8_000);
            let mut bytes = header(44_100, SampleFormat::F32, &[], Some(samples.len() as u64));
            bytes.extend(samples.iter().flat_map(|s| s.to_le_bytes()));
            let read = read(&bytes, 2.0).unwrap();
            assert!(read.iter().all(|s| s.abs() <= 2.0 * LOUDEST), "{loud}");
        }
    }

    #[test]
    fn what_is_too_long_is_told_in_every_format() {
        for (format, bytes) in files() {
            let refused = read(&bytes, 0.9).unwrap_err();
            assert!(matches!(refused, RecordingError::TooLong(_)), "{format}: {refused}");
            assert_eq!(refused.to_string(), "longer than 0.9 s");
        }
    }

    #[test]
    fn other_files_and_rates_are_told() {
        for bytes in [&b""[..], b"RIFF", b"fLaC", b"OggS", b"%PDF-1.7 and so on, and on, and on"] {
            assert!(read(bytes, 1.0).is_err());
        }
        let refused = read(&wav(11_025, &[0.1; 100]), 1.0).unwrap_err().to_string();
        assert!(refused.contains("11025 Hz") && refused.contains("88200"), "{refused}");
        let refused = read_at(7_000, &wav(8_000, &[0.1; 100]), 1.0).unwrap_err();
        assert!(matches!(refused, RecordingError::Rate { rate: 7_000 }), "{refused}");
    }

    #[test]
    fn every_rate_gives_the_same_second_of_every_format() {
        for rate in RATES {
            for (format, bytes) in files() {
                let samples = read_at(rate, &bytes, 2.0).unwrap();
                let second = rate as usize;
                match format {
                    "mp3" => assert!(samples.len() > second && samples.len() < second * 9 / 8),
                    _ => assert_eq!(samples.len(), second, "{format} at {rate} Hz"),
                }
                let middle = &samples[second / 4..second * 3 / 4];
                let rises = middle.windows(2).filter(|w| w[0] < 0.0 && w[1] >= 0.0).count();
                assert!((219..=221).contains(&rises), "{format} at {rate} Hz: {rises} waves");
            }
        }
    }

    #[test]
    fn formats_that_are_not_read_are_told_by_name() {
        for (bytes, name) in [
            (&b"\0\0\0\x20ftypM4A \0\0\0\0"[..], "M4A"),
            (b"\0\0\0\x18ftypisom", "MP4"),
            (b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01", "WebM"),
            (b"\xff\xf1\x50\x80\x02\x1f\xfc", "AAC"),
            (b"\xff\xf9\x50\x80\x02\x1f\xfc", "AAC"),
            (b"FORM\0\0\0\x40AIFFCOMM", "AIFF"),
            (b"#!AMR\n", "AMR"),
            (b"caff\0\x01\0\0", "CAF"),
            (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "WMA"),
            (b"RF64\xff\xff\xff\xffWAVE", "RF64"),
        ] {
            let refused = read(bytes, 1.0).unwrap_err().to_string();
            let read = "is not read; read are WAV, FLAC, MP3 and Ogg Opus";
            assert!(refused.contains(name) && refused.ends_with(read), "{refused}");
        }
        // The beginning of a frame of MP3, which differs in the layer alone.
        assert_eq!(refused(b"\xff\xfb\x90\x64"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn damage_gives_samples_or_an_error(which in 0_usize..5, at in any::<usize>(), with in any::<[u8; 4]>()) {
            let mut bytes = files().swap_remove(which).1;
            let at = at % (bytes.len() - 4);
            bytes[at..at + 4].copy_from_slice(&with);
            if let Ok(samples) = read(&bytes, 2.0) {
                prop_assert!(samples.len() <= 48_000);
            }
        }
    }
}
