//! WAV files: written for files of known length and for streams whose length nobody knows yet, and read back.
//!
//! ```text
//! RIFF size "WAVE"
//!   "fmt "  PCM 16 bit, IEEE float or G.711, mono, rate
//!   "fact"  number of samples (not for PCM, where the format does not ask for it)
//!   "LIST"  "INFO" and pairs of identifier and text, if there are any
//!   "data"  samples
//! ```
//!
//! In a stream all sizes are 0xffff_ffff, which players read as "until the end". Reading takes hostile bytes:
//! any input gives samples or an error, and never more memory than a small multiple of the input.

use std::io::{self, Seek, SeekFrom, Write};

use crate::limited::{Mono, TooLong};
use crate::{g711, pcm};

const UNKNOWN_SIZE: u32 = u32::MAX;
/// Sizes from here on are taken for "until the end": encoders that stream write the largest signed or unsigned
/// number, some less a header.
const UNKNOWN_SIZE_MIN: u32 = 0x7fff_0000;

const FORMAT_PCM: u16 = 1;
const FORMAT_FLOAT: u16 = 3;
const FORMAT_ALAW: u16 = 6;
const FORMAT_MULAW: u16 = 7;
const FORMAT_EXTENSIBLE: u16 = 0xfffe;

/// How samples are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleFormat {
    /// 16-bit integers.
    #[default]
    I16,
    /// 32-bit floats.
    F32,
    /// 8 bits of G.711, mu-law.
    Mulaw,
    /// 8 bits of G.711, A-law.
    Alaw,
}

impl SampleFormat {
    fn bytes(self) -> u32 {
        match self {
            Self::I16 => 2,
            Self::F32 => 4,
            Self::Mulaw | Self::Alaw => 1,
        }
    }

    fn tag(self) -> u16 {
        match self {
            Self::I16 => FORMAT_PCM,
            Self::F32 => FORMAT_FLOAT,
            Self::Mulaw => FORMAT_MULAW,
            Self::Alaw => FORMAT_ALAW,
        }
    }
}

/// An entry of the INFO chunk: a four-letter identifier, such as `ICMT` for a comment, and its text.
pub type Info<'a> = ([u8; 4], &'a str);

/// The bytes before the samples of a mono file; a length of `None` makes the header of a stream.
///
/// A length beyond the 4 GiB of the format gives the header of a stream too.
pub fn header(
    sample_rate: u32,
    format: SampleFormat,
    info: &[Info<'_>],
    samples: Option<u64>,
) -> Vec<u8> {
    let mut chunks = fmt_chunk(sample_rate, format);
    let data_size = samples.and_then(|n| u32::try_from(n * u64::from(format.bytes())).ok());
    if format != SampleFormat::I16 {
        let samples = data_size.map_or(UNKNOWN_SIZE, |size| size / format.bytes());
        push_chunk(&mut chunks, b"fact", &samples.to_le_bytes());
    }
    if !info.is_empty() {
        push_chunk(&mut chunks, b"LIST", &info_list(info));
    }
    chunks.extend(b"data");
    // "WAVE" and the data's size field belong to what RIFF counts.
    let around = 8 + chunks.len() as u32;
    let sizes = data_size.and_then(|size| Some((size.checked_add(around)?, size)));
    let (riff_size, data_size) = sizes.unwrap_or((UNKNOWN_SIZE, UNKNOWN_SIZE));

    let mut header = b"RIFF".to_vec();
    header.extend(riff_size.to_le_bytes());
    header.extend(b"WAVE");
    header.extend(chunks);
    header.extend(data_size.to_le_bytes());
    header
}

fn fmt_chunk(sample_rate: u32, format: SampleFormat) -> Vec<u8> {
    let mut body = format.tag().to_le_bytes().to_vec();
    body.extend(1_u16.to_le_bytes()); // channels
    body.extend(sample_rate.to_le_bytes());
    body.extend((sample_rate * format.bytes()).to_le_bytes());
    body.extend((format.bytes() as u16).to_le_bytes());
    body.extend((8 * format.bytes() as u16).to_le_bytes());
    if format != SampleFormat::I16 {
        body.extend(0_u16.to_le_bytes()); // no extension: only plain PCM may leave this out
    }
    let mut chunk = Vec::new();
    push_chunk(&mut chunk, b"fmt ", &body);
    chunk
}

fn info_list(info: &[Info<'_>]) -> Vec<u8> {
    let mut list = b"INFO".to_vec();
    for (id, text) in info {
        let text = [text.as_bytes(), b"\0"].concat();
        push_chunk(&mut list, id, &text);
    }
    list
}

fn push_chunk(out: &mut Vec<u8>, id: &[u8; 4], body: &[u8]) {
    out.extend(id);
    out.extend((body.len() as u32).to_le_bytes());
    out.extend(body);
    // Chunks begin at even offsets; the padding is not counted.
    out.extend(std::iter::repeat_n(0, body.len() % 2));
}

/// Writes a mono file or stream.
pub struct WavWriter<W: Write> {
    sink: W,
    sample_rate: u32,
    format: SampleFormat,
    info: Vec<([u8; 4], String)>,
    samples: u64,
}

impl<W: Write> WavWriter<W> {
    /// Writes the header of a stream. [`WavWriter::finish_file`] puts the header of a file in its place.
    ///
    /// # Errors
    /// A sink that refuses.
    pub fn new(
        mut sink: W,
        sample_rate: u32,
        format: SampleFormat,
        info: &[Info<'_>],
    ) -> io::Result<Self> {
        sink.write_all(&header(sample_rate, format, info, None))?;
        let info = info.iter().map(|(id, text)| (*id, (*text).to_owned())).collect();
        Ok(Self { sink, sample_rate, format, info, samples: 0 })
    }

    /// Writes the next samples.
    ///
    /// # Errors
    /// A sink that refuses.
    pub fn write(&mut self, samples: &[f32]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(samples.len() * self.format.bytes() as usize);
        match self.format {
            SampleFormat::I16 => pcm::extend_i16_le(&mut bytes, samples),
            SampleFormat::F32 => pcm::extend_f32_le(&mut bytes, samples),
            SampleFormat::Mulaw => {
                bytes.extend(samples.iter().map(|&s| g711::mulaw_encode(pcm::to_i16(s))));
            }
            SampleFormat::Alaw => {
                bytes.extend(samples.iter().map(|&s| g711::alaw_encode(pcm::to_i16(s))));
            }
        }
        self.samples += samples.len() as u64;
        self.sink.write_all(&bytes)
    }

    /// Ends a stream and returns the sink.
    ///
    /// # Errors
    /// A sink that refuses.
    pub fn finish(mut self) -> io::Result<W> {
        self.sink.flush()?;
        Ok(self.sink)
    }
}

impl<W: Write + Seek> WavWriter<W> {
    /// Ends a file: writes the true length into the header at the sink's start, and returns the sink at its end.
    ///
    /// # Errors
    /// A sink that refuses.
    pub fn finish_file(mut self) -> io::Result<W> {
        let info: Vec<Info<'_>> = self.info.iter().map(|(id, text)| (*id, text.as_str())).collect();
        let header = header(self.sample_rate, self.format, &info, Some(self.samples));
        self.sink.seek(SeekFrom::Start(0))?;
        self.sink.write_all(&header)?;
        self.sink.seek(SeekFrom::End(0))?;
        self.finish()
    }
}

/// Why bytes are not a WAV file that this module reads.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WavError {
    /// Not RIFF, or not WAVE.
    #[error("not a wav file")]
    NotWav,
    /// The file ends within a chunk, or a needed chunk is not there.
    #[error("wav file cut short: {0}")]
    CutShort(&'static str),
    /// Coding, width, rate or number of channels that is not read.
    #[error(
        "wav format {tag} with {bits} bits, {channels} channels, {sample_rate} Hz is not supported"
    )]
    Unsupported {
        /// Format tag: 1 integers, 3 floats, 6 A-law, 7 mu-law.
        tag: u16,
        /// Bits a sample.
        bits: u16,
        /// Channels.
        channels: u16,
        /// Rate in Hz.
        sample_rate: u32,
    },
    /// A float sample is infinite or not a number.
    #[error("wav sample {index} is not a finite number")]
    NotFinite {
        /// Its place among the mono samples.
        index: usize,
    },
    /// More sound than the caller allows.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Wav {
    /// Rate in Hz, at least 1.
    pub sample_rate: u32,
    /// Mono samples: the mean of all channels.
    pub samples: Vec<f32>,
}

impl Wav {
    /// Reads integers of 8, 16, 24 or 32 bits, floats of 32 or 64, A-law or mu-law, any number of channels.
    ///
    /// # Errors
    /// See [`WavError`].
    pub fn read(bytes: &[u8]) -> Result<Self, WavError> {
        let Mono { sample_rate, samples, .. } = Self::read_within(bytes, f64::INFINITY)?;
        Ok(Self { sample_rate, samples })
    }

    /// As [`Wav::read`], but of at most `seconds_max`: a longer file is refused before a sample is read.
    ///
    /// # Errors
    /// See [`WavError`].
    pub fn read_within(bytes: &[u8], seconds_max: f64) -> Result<Mono, WavError> {
        let mut rest = bytes.strip_prefix(b"RIFF").ok_or(WavError::NotWav)?;
        // The size in the RIFF header says nothing that the chunks do not say better.
        rest = rest.get(4..).and_then(|r| r.strip_prefix(b"WAVE")).ok_or(WavError::NotWav)?;
        let mut format = None;
        loop {
            let (id, body) = next_chunk(&mut rest)?;
            match id {
                b"fmt " => format = Some(Format::parse(body)?),
                b"data" => {
                    let format =
                        format.ok_or(WavError::CutShort("no fmt chunk before the data"))?;
                    return format.read(body, seconds_max);
                }
                _ => {}
            }
        }
    }
}

fn next_chunk<'a>(rest: &mut &'a [u8]) -> Result<(&'a [u8], &'a [u8]), WavError> {
    let cut_short = WavError::CutShort("no data chunk");
    let head = rest.split_off(..8).ok_or(cut_short)?;
    let (id, size) = head.split_at(4);
    let size = u32::from_le_bytes(size.try_into().expect("8 bytes less 4; this is a bug"));
    if id == b"data" && size >= UNKNOWN_SIZE_MIN {
        return Ok((id, std::mem::take(rest)));
    }
    let body = rest.split_off(..size as usize).ok_or(WavError::CutShort("chunk ends too early"))?;
    if size % 2 == 1 {
        *rest = rest.get(1..).unwrap_or_default();
    }
    Ok((id, body))
}

struct Format {
    tag: u16,
    channels: u16,
    sample_rate: u32,
    bits: u16,
}

impl Format {
    fn parse(body: &[u8]) -> Result<Self, WavError> {
        let cut_short = WavError::CutShort("fmt chunk");
        let plain = body.first_chunk::<16>().ok_or(cut_short.clone())?;
        let u16_at = |at: usize| u16::from_le_bytes([plain[at], plain[at + 1]]);
        let mut format = Self {
            tag: u16_at(0),
            channels: u16_at(2),
            sample_rate: u32::from_le_bytes([plain[4], plain[5], plain[6], plain[7]]),
            bits: u16_at(14),
        };
        if format.tag == FORMAT_EXTENSIBLE {
            // The true tag is the beginning of a GUID, after size, valid bits and channel mask.
            let tag = body.get(24..26).ok_or(cut_short)?;
            format.tag = u16::from_le_bytes([tag[0], tag[1]]);
        }
        let known = match format.tag {
            FORMAT_PCM => matches!(format.bits, 8 | 16 | 24 | 32),
            FORMAT_FLOAT => matches!(format.bits, 32 | 64),
            FORMAT_ALAW | FORMAT_MULAW => format.bits == 8,
            _ => false,
        };
        let block_bytes = u32::from(format.channels) * u32::from(format.bits / 8);
        let block_fits = u32::from(u16_at(12)) == block_bytes;
        if !known || !block_fits || format.channels == 0 || format.sample_rate == 0 {
            let Self { tag, bits, channels, sample_rate } = format;
            return Err(WavError::Unsupported { tag, bits, channels, sample_rate });
        }
        Ok(format)
    }

    fn read(&self, data: &[u8], seconds_max: f64) -> Result<Mono, WavError> {
        let sample: fn(&[u8]) -> f32 = match (self.tag, self.bits) {
            (FORMAT_FLOAT, 64) => {
                |b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]) as f32
            }
            (FORMAT_FLOAT, _) => |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            (FORMAT_ALAW, _) => |b| pcm::from_i16(g711::alaw_decode(b[0])),
            (FORMAT_MULAW, _) => |b| pcm::from_i16(g711::mulaw_decode(b[0])),
            // 8-bit samples alone are unsigned.
            (_, 8) => |b| (f32::from(b[0]) - 128.0) / 128.0,
            (_, 16) => |b| pcm::from_i16(i16::from_le_bytes([b[0], b[1]])),
            (_, 24) => |b| i32::from_le_bytes([0, b[0], b[1], b[2]]) as f32 / -(i32::MIN as f32),
            _ => |b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]) as f32 / -(i32::MIN as f32),
        };
        let width = usize::from(self.bits / 8);
        let scale = 1.0 / f32::from(self.channels);
        let blocks = data.chunks_exact(width * usize::from(self.channels));
        let mut mono = Mono::new(self.sample_rate, seconds_max);
        mono.expect(blocks.len() as u64)?;
        mono.extend(blocks.map(|b| b.chunks_exact(width).map(sample).sum::<f32>() * scale))?;
        match mono.samples.iter().position(|s| !s.is_finite()) {
            Some(index) => Err(WavError::NotFinite { index }),
            None => Ok(mono),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    const LABEL: Info<'static> = (*b"ICMT", "synthetic speech");

    fn file(format: SampleFormat, samples: &[f32], info: &[Info<'_>]) -> Vec<u8> {
        let sink = Cursor::new(Vec::new());
        let mut writer = WavWriter::new(sink, 24_000, format, info).unwrap();
        for piece in samples.chunks(2) {
            writer.write(piece).unwrap();
        }
        writer.finish_file().unwrap().into_inner()
    }

    /// A file with the given fmt fields and data.
    fn hand_made(tag: u16, channels: u16, bits: u16, data: &[u8]) -> Vec<u8> {
        let block = channels * (bits / 8);
        let mut fmt = Vec::new();
        fmt.extend(tag.to_le_bytes());
        fmt.extend(channels.to_le_bytes());
        fmt.extend(8_000_u32.to_le_bytes());
        fmt.extend((8_000 * u32::from(block)).to_le_bytes());
        fmt.extend(block.to_le_bytes());
        fmt.extend(bits.to_le_bytes());
        let mut bytes = b"RIFF\0\0\0\0WAVE".to_vec();
        push_chunk(&mut bytes, b"fmt ", &fmt);
        push_chunk(&mut bytes, b"data", data);
        bytes
    }

    #[test]
    fn a_file_of_integers_has_the_canonical_bytes() {
        let mut expected = b"RIFF\x2a\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        expected.extend(24_000_u32.to_le_bytes());
        expected.extend(48_000_u32.to_le_bytes());
        expected.extend(b"\x02\0\x10\0data\x06\0\0\0\0\0\0\x40\0\x80");
        assert_eq!(file(SampleFormat::I16, &[0.0, 0.5, -1.0], &[]), expected);
    }

    #[test]
    fn a_file_of_floats_has_extension_and_fact() {
        let mut expected = b"RIFF\x36\0\0\0WAVEfmt \x12\0\0\0\x03\0\x01\0".to_vec();
        expected.extend(24_000_u32.to_le_bytes());
        expected.extend(96_000_u32.to_le_bytes());
        expected.extend(b"\x04\0\x20\0\0\0fact\x04\0\0\0\x01\0\0\0data\x04\0\0\0\0\0\x80\x3f");
        assert_eq!(file(SampleFormat::F32, &[1.0], &[]), expected);
    }

    #[test]
    fn a_file_of_telephone_sound_has_extension_and_fact() {
        let mut expected = b"RIFF\x34\0\0\0WAVEfmt \x12\0\0\0\x07\0\x01\0".to_vec();
        expected.extend(24_000_u32.to_le_bytes());
        expected.extend(24_000_u32.to_le_bytes());
        expected.extend(b"\x01\0\x08\0\0\0fact\x04\0\0\0\x02\0\0\0data\x02\0\0\0");
        expected.extend([0.0, 0.25].map(|sample| g711::mulaw_encode(pcm::to_i16(sample))));
        assert_eq!(file(SampleFormat::Mulaw, &[0.0, 0.25], &[]), expected);
        let alaw = Wav::read(&file(SampleFormat::Alaw, &[0.0, 0.25], &[LABEL])).unwrap();
        let heard =
            |sample| pcm::from_i16(g711::alaw_decode(g711::alaw_encode(pcm::to_i16(sample))));
        assert_eq!(alaw.samples, [heard(0.0), heard(0.25)]);
    }

    #[test]
    fn a_stream_has_unknown_sizes_and_reads_to_its_end() {
        for format in [SampleFormat::I16, SampleFormat::F32] {
            let mut writer = WavWriter::new(Vec::new(), 24_000, format, &[LABEL]).unwrap();
            writer.write(&[0.25, -0.5]).unwrap();
            let bytes = writer.finish().unwrap();
            assert_eq!(bytes[4..8], [0xff; 4]);
            let data = bytes.len() - 2 * format.bytes() as usize;
            assert_eq!(bytes[data - 8..data], *b"data\xff\xff\xff\xff");
            let expected = Wav { sample_rate: 24_000, samples: vec![0.25, -0.5] };
            assert_eq!(Wav::read(&bytes).unwrap(), expected);
        }
    }

    #[test]
    fn a_file_too_long_for_the_format_is_told_as_a_stream() {
        let header = header(24_000, SampleFormat::I16, &[], Some(1 << 31));
        assert_eq!(header[4..8], [0xff; 4]);
        assert_eq!(header[40..44], [0xff; 4]);
    }

    #[test]
    fn the_label_stands_in_an_even_info_chunk() {
        let bytes = file(SampleFormat::I16, &[0.5], &[LABEL, (*b"ISFT", "odd")]);
        let list = b"LIST\x2a\0\0\0INFOICMT\x11\0\0\0synthetic speech\0\0ISFT\x04\0\0\0odd\0";
        assert!(bytes.windows(list.len()).any(|w| w == list));
        assert_eq!(u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize, bytes.len() - 8);
        assert_eq!(Wav::read(&bytes).unwrap().samples, [0.5]);
    }

    #[test]
    fn every_width_reads_to_the_same_samples() {
        for (tag, bits, data) in [
            (1, 8, vec![0x80, 0xc0, 0x00]),
            (1, 16, vec![0, 0, 0, 0x40, 0, 0x80]),
            (1, 24, vec![0, 0, 0, 0, 0, 0x40, 0, 0, 0x80]),
            (1, 32, vec![0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0x80]),
            (3, 32, [0.0_f32, 0.5, -1.0].map(f32::to_le_bytes).concat()),
            (3, 64, [0.0_f64, 0.5, -1.0].map(f64::to_le_bytes).concat()),
        ] {
            let wav = Wav::read(&hand_made(tag, 1, bits, &data)).unwrap();
            assert_eq!(wav.samples, [0.0, 0.5, -1.0], "{bits} bits");
        }
    }

    #[test]
    fn telephone_codings_are_read() {
        let (quarter, tag_of) = (pcm::to_i16(0.25), |law| if law == "a" { 6 } else { 7 });
        for (law, byte) in [("a", g711::alaw_encode(quarter)), ("mu", g711::mulaw_encode(quarter))]
        {
            let wav = Wav::read(&hand_made(tag_of(law), 1, 8, &[byte])).unwrap();
            assert!((wav.samples[0] - 0.25).abs() < 0.01, "{law}-law: {}", wav.samples[0]);
        }
    }

    #[test]
    fn a_longer_file_than_allowed_is_refused() {
        let bytes = file(SampleFormat::I16, &[0.1; 2_400], &[]);
        assert_eq!(Wav::read_within(&bytes, 0.1).unwrap().samples.len(), 2_400);
        assert!(matches!(Wav::read_within(&bytes, 0.0999), Err(WavError::TooLong(_))));
    }

    #[test]
    fn channels_are_averaged() {
        let data = [0x4000_i16, 0, 0x2000, 0x2000].map(i16::to_le_bytes).concat();
        assert_eq!(Wav::read(&hand_made(1, 2, 16, &data)).unwrap().samples, [0.25, 0.25]);
    }

    #[test]
    fn extensible_and_odd_foreign_chunks_are_read() {
        let mut bytes = b"RIFF\0\0\0\0WAVE".to_vec();
        push_chunk(&mut bytes, b"junk", b"odd");
        let mut fmt =
            b"\xfe\xff\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0\x16\0\x10\0\x04\0\0\0".to_vec();
        fmt.extend(b"\x01\0\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71");
        push_chunk(&mut bytes, b"fmt ", &fmt);
        push_chunk(&mut bytes, b"data", &[0, 0x40]);
        assert_eq!(Wav::read(&bytes).unwrap().samples, [0.5]);
    }

    #[test]
    fn what_is_not_read_is_told() {
        let read = |bytes: &[u8]| Wav::read(bytes).unwrap_err();
        assert_eq!(read(b"OggS"), WavError::NotWav);
        assert_eq!(read(b"RIFF\0\0\0\0WAVE"), WavError::CutShort("no data chunk"));
        assert_eq!(
            read(b"RIFF\0\0\0\0WAVEdata\0\0\0\0"),
            WavError::CutShort("no fmt chunk before the data")
        );
        let whole = hand_made(1, 1, 16, &[0; 8]);
        assert_eq!(read(&whole[..whole.len() - 1]), WavError::CutShort("chunk ends too early"));
        for (tag, channels, bits) in [(1, 0, 16), (1, 1, 12), (3, 1, 16), (85, 1, 16)] {
            let text = read(&hand_made(tag, channels, bits, &[0; 8])).to_string();
            assert!(text.contains(&format!("format {tag} with {bits} bits")), "{text}");
        }
        let nan = f32::NAN.to_le_bytes();
        assert_eq!(read(&hand_made(3, 1, 32, &nan)), WavError::NotFinite { index: 0 });
    }

    proptest! {
        #[test]
        fn integers_survive_the_round_trip(values in prop::collection::vec(any::<i16>(), 0..200)) {
            let samples: Vec<f32> = values.iter().map(|&v| pcm::from_i16(v)).collect();
            let read = Wav::read(&file(SampleFormat::I16, &samples, &[LABEL])).unwrap();
            prop_assert_eq!(read.samples, samples);
        }

        #[test]
        fn damaged_files_are_errors_or_sound(
            at in any::<prop::sample::Index>(),
            with in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let mut bytes = file(SampleFormat::F32, &[0.1; 40], &[LABEL]);
            let at = at.index(bytes.len());
            let end = (at + with.len()).min(bytes.len());
            bytes.splice(at..end, with);
            if let Ok(wav) = Wav::read(&bytes) {
                prop_assert!(wav.samples.len() <= bytes.len());
                prop_assert!(wav.sample_rate > 0 && wav.samples.iter().all(|s| s.is_finite()));
            }
        }
    }
}
