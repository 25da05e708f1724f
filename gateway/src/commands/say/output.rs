//! Sound to a file or a pipe: resampled, coded, labelled as synthetic, written as it is made.
//!
//! A file that is cut off can still be played: until it is finished, its header is that of a stream of unknown length.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
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
const OGG_COMMENTS: [(&str, &str); 2] = [("COMMENT", LABEL), ("ENCODER", SOFTWARE)];
/// Tells streams of one file apart; ours has one, and equal input gives equal bytes.
const OGG_SERIAL: u32 = 1;

/// How sound is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// 16-bit PCM with a header
    Wav,
    /// Opus in Ogg
    Ogg,
    /// Bare 16-bit little-endian PCM
    Pcm,
}

impl Format {
    /// The ending of a file's name.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Wav => "wav",
            Self::Ogg => "ogg",
            Self::Pcm => "pcm",
        }
    }

    /// The format that a file's name asks for.
    fn of(file: &Path) -> Result<Self, CommandError> {
        if file == Path::new(STANDARD) {
            return Ok(Self::Wav);
        }
        let extension = file.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
        match extension.as_deref() {
            Some("wav") => Ok(Self::Wav),
            Some("ogg" | "opus") => Ok(Self::Ogg),
            Some("pcm" | "raw") => Ok(Self::Pcm),
            Some(other) => Err(CommandError::Usage(format!(
                "{}: format {other:?} is not written; write wav, ogg or pcm, or name one with --format",
                file.display()
            ))),
            None => Ok(Self::Wav),
        }
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
    /// A file name without a known format, or a rate that the format does not have.
    pub(super) fn new(
        file: &Path,
        format: Option<Format>,
        rate: u32,
    ) -> Result<Self, CommandError> {
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
    Pcm(File),
}

impl Recorder {
    /// Creates the file, or takes standard output for `-`, and writes what comes before the sound.
    ///
    /// # Errors
    /// A file that cannot be created; standard output that is a terminal.
    pub(super) fn create(file: &Path, target: &Target) -> Result<Self, CommandError> {
        let sink = open(file)?;
        let encode = |e: &dyn std::fmt::Display| CommandError::Encode(e.to_string());
        let resampler = Resampler::new(ENGINE_RATE, target.rate).map_err(|e| encode(&e))?;
        let sink = match target.format {
            Format::Wav => {
                let writer = WavWriter::new(sink, target.rate, SampleFormat::I16, &WAV_INFO);
                Sink::Wav(writer.map_err(CommandError::io(file))?)
            }
            Format::Ogg => {
                let config = EncoderConfig { sample_rate: target.rate, ..EncoderConfig::default() };
                let encoder = Box::new(Encoder::new(&config).map_err(|e| encode(&e))?);
                let head = OggHead { pre_skip: encoder.pre_skip(), input_rate: target.rate };
                let writer = OggWriter::new(sink, OGG_SERIAL, head, &OGG_COMMENTS);
                Sink::Ogg { encoder, writer: writer.map_err(|e| ogg_error(file, e))? }
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
            Sink::Pcm(_) => Ok(()),
        }
    }
}

fn open(file: &Path) -> Result<File, CommandError> {
    if file != Path::new(STANDARD) {
        return File::create(file).map_err(CommandError::io(file));
    }
    if io::stdout().is_terminal() {
        let reason = "sound is not written to a terminal: name a file with -o, or pipe it on";
        return Err(CommandError::Usage(reason.to_owned()));
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

fn ogg_error(file: &Path, error: OggError) -> CommandError {
    match error {
        OggError::Io(source) => CommandError::io(file)(source),
        other => CommandError::Encode(other.to_string()),
    }
}
