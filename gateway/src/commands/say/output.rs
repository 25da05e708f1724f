//! Sound to a file or a pipe: resampled, coded, labelled as synthetic, written as it is made.
//!
//! A file that is cut off can still be played: until it is finished, its header is that of a stream of unknown length.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use codecs::flac;
use codecs::ogg::{OggError, OggHead, OggWriter};
use codecs::opus::{self, Encoder, EncoderConfig, OpusError};
use codecs::pcm;
use codecs::resample::{self, Resampler};
use codecs::wav::{Info, SampleFormat, WavWriter};

use super::STANDARD;
use crate::commands::{CommandError, ENGINE_RATE};

/// What every file says of itself.
const LABEL: &str = "Synthetic speech, made by a machine";
const SOFTWARE: &str = concat!("Dovecote ", env!("CARGO_PKG_VERSION"));
const WAV_INFO: [Info<'static>; 2] = [(*b"ICMT", LABEL), (*b"ISFT", SOFTWARE)];
const COMMENTS: [(&str, &str); 2] = [("COMMENT", LABEL), ("ENCODER", SOFTWARE)];
/// Tells streams of one file apart; ours has one, and equal input gives equal bytes.
const OGG_SERIAL: u32 = 1;
/// The format has no more at 8 kHz.
#[cfg(feature = "mp3")]
const MP3_BITRATE_8_KHZ: u32 = 64_000;

/// How sound is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// 16-bit PCM with a header
    Wav,
    /// Opus in Ogg
    Ogg,
    /// MP3, 96 kbit/s
    #[cfg(feature = "mp3")]
    Mp3,
    /// FLAC, 16 bits
    Flac,
    /// Bare 16-bit little-endian PCM
    Pcm,
}

impl Format {
    /// The ending of a file's name.
    pub(super) fn extension(self) -> &'static str {
        self.endings()[0]
    }

    /// The endings that ask for it, the usual one first.
    fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Wav => &["wav"],
            Self::Ogg => &["ogg", "opus"],
            #[cfg(feature = "mp3")]
            Self::Mp3 => &["mp3"],
            Self::Flac => &["flac"],
            Self::Pcm => &["pcm", "raw"],
        }
    }

    /// The format that a file's name asks for.
    fn of(file: &Path) -> Result<Self, CommandError> {
        if file == Path::new(STANDARD) {
            return Ok(Self::Wav);
        }
        let Some(ending) = file.extension() else { return Ok(Self::Wav) };
        let ending = ending.to_string_lossy().to_ascii_lowercase();
        let formats = Self::value_variants();
        let asked = formats.iter().find(|format| format.endings().contains(&ending.as_str()));
        asked.copied().ok_or_else(|| {
            let written: Vec<&str> = formats.iter().map(|format| format.extension()).collect();
            CommandError::Usage(format!(
                "{}: format {ending:?} is not written; write {}, or name one of these with --format",
                file.display(),
                written.join(", ")
            ))
        })
    }
}

/// A format and a rate that go together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) format: Format,
    rate: u32,
}

impl Target {
    /// # Errors
    /// A file name without a known format, a rate that the format does not have, or a terminal for the sound.
    pub(super) fn new(
        file: &Path,
        format: Option<Format>,
        rate: u32,
    ) -> Result<Self, CommandError> {
        if file == Path::new(STANDARD) && io::stdout().is_terminal() {
            let reason = "sound is not written to a terminal: name a file with -o, or pipe it on";
            return Err(CommandError::Usage(reason.to_owned()));
        }
        let format = match format {
            Some(format) => format,
            None => Format::of(file)?,
        };
        let rates: &[u32] = if format == Format::Ogg { &opus::RATES } else { &resample::RATES };
        let allowed = |r: &&u32| resample::RATES.contains(r);
        if rates.iter().filter(allowed).any(|r| *r == rate) {
            return Ok(Self { format, rate });
        }
        let rates: Vec<String> = rates.iter().filter(allowed).map(u32::to_string).collect();
        let (format, rates) = (format.extension(), rates.join(", "));
        Err(CommandError::Usage(format!("sample rate {rate}: {format} is written at {rates} Hz")))
    }
}

/// One stream of sound on its way out.
pub(super) struct Recorder {
    file: PathBuf,
    resampler: Resampler,
    resampled: Vec<f32>,
    sink: Sink,
}

enum Sink {
    Wav(WavWriter<File>),
    Ogg { encoder: Box<Encoder>, writer: OggWriter<File> },
    Frames { encoder: Frames, out: File },
    Pcm(File),
}

/// Encoders whose bytes are the file.
enum Frames {
    #[cfg(feature = "mp3")]
    Mp3(Box<codecs::mp3::Encoder>),
    Flac(Box<flac::Encoder>),
}

impl Frames {
    fn push(&mut self, samples: &[f32]) -> Result<Vec<u8>, CommandError> {
        match self {
            #[cfg(feature = "mp3")]
            Self::Mp3(encoder) => encoder.push(samples).map_err(|e| encode_error(&e)),
            Self::Flac(encoder) => encoder.push(samples).map_err(|e| encode_error(&e)),
        }
    }

    fn finish(self) -> Result<Vec<u8>, CommandError> {
        match self {
            #[cfg(feature = "mp3")]
            Self::Mp3(encoder) => encoder.finish().map_err(|e| encode_error(&e)),
            Self::Flac(encoder) => encoder.finish().map_err(|e| encode_error(&e)),
        }
    }
}

impl Recorder {
    /// Creates the file, or takes standard output for `-`, and writes what comes before the sound.
    ///
    /// # Errors
    /// A file that cannot be created.
    pub(super) fn create(file: &Path, target: &Target) -> Result<Self, CommandError> {
        let sink = open(file)?;
        let resampler = Resampler::new(ENGINE_RATE, target.rate).map_err(|e| encode_error(&e))?;
        let sink = match target.format {
            Format::Wav => {
                let writer = WavWriter::new(sink, target.rate, SampleFormat::I16, &WAV_INFO);
                Sink::Wav(writer.map_err(CommandError::io(file))?)
            }
            Format::Ogg => {
                let config = EncoderConfig { sample_rate: target.rate, ..EncoderConfig::default() };
                let encoder = Box::new(Encoder::new(&config).map_err(|e| encode_error(&e))?);
                let head = OggHead { pre_skip: encoder.pre_skip(), input_rate: target.rate };
                let writer = OggWriter::new(sink, OGG_SERIAL, head, &COMMENTS);
                Sink::Ogg { encoder, writer: writer.map_err(|e| ogg_error(file, e))? }
            }
            #[cfg(feature = "mp3")]
            Format::Mp3 => {
                let encoder = codecs::mp3::Encoder::new(&mp3_config(target.rate));
                let encoder = Box::new(encoder.map_err(|e| encode_error(&e))?);
                Sink::Frames { encoder: Frames::Mp3(encoder), out: sink }
            }
            Format::Flac => {
                let encoder = flac::Encoder::new(target.rate, &COMMENTS);
                let encoder = Box::new(encoder.map_err(|e| encode_error(&e))?);
                Sink::Frames { encoder: Frames::Flac(encoder), out: sink }
            }
            Format::Pcm => Sink::Pcm(sink),
        };
        Ok(Self { file: file.to_path_buf(), resampler, resampled: Vec::new(), sink })
    }

    /// Writes the next samples, 24 kHz.
    ///
    /// # Errors
    /// [`CommandError::ReaderGone`] when nobody reads a pipe any more, else what the system says.
    pub(super) fn write(&mut self, samples: &[f32]) -> Result<(), CommandError> {
        self.resampled.clear();
        self.resampler.push(samples, &mut self.resampled);
        self.write_resampled()
    }

    fn write_resampled(&mut self) -> Result<(), CommandError> {
        let Self { file, resampled, sink, .. } = self;
        match sink {
            Sink::Wav(writer) => writer.write(resampled).map_err(CommandError::io(file)),
            Sink::Ogg { encoder, writer } => {
                let packets = encoder.push(resampled).map_err(|e| ogg_error(file, e.into()))?;
                for packet in packets {
                    writer.packet(packet).map_err(|e| ogg_error(file, e))?;
                }
                // A listener at the other end of a pipe waits for this.
                writer.flush().map_err(|e| ogg_error(file, e))
            }
            Sink::Frames { encoder, out } => {
                let bytes = encoder.push(resampled)?;
                out.write_all(&bytes).map_err(CommandError::io(file))
            }
            Sink::Pcm(out) => {
                let mut bytes = Vec::with_capacity(2 * resampled.len());
                pcm::extend_i16_le(&mut bytes, resampled);
                out.write_all(&bytes).map_err(CommandError::io(file))
            }
        }
    }

    /// Writes what is still held back, and in a file the true length.
    ///
    /// # Errors
    /// As [`Recorder::write`].
    pub(super) fn finish(mut self) -> Result<(), CommandError> {
        self.resampled.clear();
        self.resampler.finish(&mut self.resampled);
        self.write_resampled()?;
        let Self { file, sink, .. } = self;
        match sink {
            Sink::Wav(writer) => {
                let done = if is_plain(&file) { writer.finish_file() } else { writer.finish() };
                done.map(drop).map_err(CommandError::io(&file))
            }
            Sink::Ogg { mut encoder, writer } => {
                let tail = encoder.finish().map_err(|e: OpusError| ogg_error(&file, e.into()))?;
                writer.finish(tail).map(drop).map_err(|e| ogg_error(&file, e))
            }
            Sink::Frames { encoder, mut out } => {
                let tail = encoder.finish()?;
                out.write_all(&tail).map_err(CommandError::io(&file))
            }
            Sink::Pcm(_) => Ok(()),
        }
    }
}

fn open(file: &Path) -> Result<File, CommandError> {
    if file != Path::new(STANDARD) {
        return File::create(file).map_err(CommandError::io(file));
    }
    // Without the line buffer of the standard library: every piece of sound goes out whole and at once.
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    stdout.map(File::from).map_err(CommandError::io(file))
}

/// Whether a length can be filled in at the start: not on a pipe or a device, nor on a standard output that may have been
/// opened for appending.
fn is_plain(file: &Path) -> bool {
    file != Path::new(STANDARD) && file.metadata().is_ok_and(|m| m.is_file())
}

/// The usual bitrate, or the highest that there is at a rate.
#[cfg(feature = "mp3")]
fn mp3_config(sample_rate: u32) -> codecs::mp3::EncoderConfig {
    let usual = codecs::mp3::EncoderConfig::default();
    let bitrate = if sample_rate == 8_000 { MP3_BITRATE_8_KHZ } else { usual.bitrate };
    codecs::mp3::EncoderConfig { sample_rate, bitrate }
}

fn encode_error(error: &dyn std::fmt::Display) -> CommandError {
    CommandError::Encode(error.to_string())
}

fn ogg_error(file: &Path, error: OggError) -> CommandError {
    match error {
        OggError::Io(source) => CommandError::io(file)(source),
        other => CommandError::Encode(other.to_string()),
    }
}
