//! Codes of a speech language model to sound, piece by piece: the one face of X-Codec, DAC and SEANet.
//!
//! A [`Codec`] holds weights and is shared by all contexts; a [`Stream`] holds what one context has behind it. A frame's
//! sound follows so many frames behind as the codec looks ahead, and any division into pieces gives the same samples. It must
//! never know ids, delays or who listens.
//!
//! ```text
//! push(codes, false) .. push(codes, true)     one sound; then the stream is as new
//!      v
//! [codebooks][frames] -> samples at the codec's rate -> 24 kHz, not clipped
//! ```

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::codes::{self, CodeError, Piece};
use crate::dac::{self, SynthesisState};
use crate::resample::{RATES, Resampler};
use crate::weights::{LoadError, Weights};
use crate::{seanet, xcodec};

/// Rate of what comes out, in Hz.
pub const OUTPUT_RATE: u32 = 24_000;

/// The codecs there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// X-Codec, Bagpiper's.
    XCodec,
    /// The Descript Audio Codec.
    Dac,
    /// The SEANet that ESPnet calls DAC, OpusLM's.
    Seanet,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::XCodec, Self::Dac, Self::Seanet];

    /// What a bundle calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::XCodec => "xcodec",
            Self::Dac => "dac",
            Self::Seanet => "seanet",
        }
    }

    /// Frames that its sound is behind its codes, while more are to come.
    pub fn look_ahead_frames(self) -> usize {
        match self {
            Self::XCodec | Self::Dac => 10,
            Self::Seanet => 7,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| format!("`{name}` is none of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// What is known of a codec without its weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Which one it is.
    pub kind: Kind,
    /// Codebooks: rows of codes.
    pub rows: usize,
    /// Entries of each.
    pub entries: usize,
    /// Its own rate, in Hz.
    pub sample_rate: u32,
    /// Samples of a frame at that rate.
    pub frame_samples: usize,
}

impl Shape {
    /// Reads the codec's `config.json`.
    ///
    /// # Errors
    /// A field that does not hold, or a rate that sound is not converted from.
    pub fn read(kind: Kind, file: &Path) -> Result<Self, LoadError> {
        let (field, rate, [rows, entries, frame_samples]) = match kind {
            Kind::XCodec => {
                let c = xcodec::Config::read(file)?;
                let sizes = [c.codebooks(), c.codebook_size, c.frame_samples()];
                ("sample_rate", c.sample_rate, sizes)
            }
            Kind::Dac => {
                let c = dac::Config::read(file)?;
                let sizes = [c.n_codebooks, c.codebook_size, c.frame_samples()];
                ("sampling_rate", c.sampling_rate, sizes)
            }
            Kind::Seanet => {
                let c = seanet::Config::read(file)?;
                let sizes = [c.quantizer_n_q, c.quantizer_bins, c.frame_samples()];
                ("codec_conf.sampling_rate", c.sampling_rate, sizes)
            }
        };
        let known = RATES.into_iter().find(|known| *known as usize == rate);
        let sample_rate = known.ok_or_else(|| {
            LoadError::field(file, field, format!("is {rate}, which is none of {RATES:?}"))
        })?;
        Ok(Self { kind, rows, entries, sample_rate, frame_samples })
    }

    /// Samples of a frame in what comes out.
    pub fn output_samples(&self) -> f64 {
        self.frame_samples as f64 * f64::from(OUTPUT_RATE) / f64::from(self.sample_rate)
    }

    /// Frames of a second of sound.
    pub fn frames_per_second(&self) -> f64 {
        f64::from(self.sample_rate) / self.frame_samples as f64
    }
}

/// Weights of a codec.
pub struct Codec {
    shape: Shape,
    network: Network,
}

enum Network {
    XCodec(Box<xcodec::Decoder>),
    Dac(Box<dac::Decoder>),
    Seanet(Box<seanet::Decoder>),
}

/// What one context has behind it; dropping it frees all there is.
pub struct Stream {
    state: State,
    resampler: Resampler,
}

enum State {
    Synthesis(SynthesisState),
    Seanet(Box<seanet::DecoderState>),
}

/// What comes next in a stream.
pub struct Push<'a> {
    /// It.
    pub stream: &'a mut Stream,
    /// `[codebooks][frames]`, perhaps no frames.
    pub codes: &'a [&'a [u16]],
    /// Whether they are its last ones.
    pub ended: bool,
}

impl Push<'_> {
    fn synthesis(&mut self) -> Piece<'_, SynthesisState> {
        match &mut self.stream.state {
            State::Synthesis(state) => Piece { state, codes: self.codes, ended: self.ended },
            State::Seanet(_) => panic!("the stream of another codec; this is a bug"),
        }
    }

    fn seanet(&mut self) -> Piece<'_, seanet::DecoderState> {
        match &mut self.stream.state {
            State::Seanet(state) => Piece { state, codes: self.codes, ended: self.ended },
            State::Synthesis(_) => panic!("the stream of another codec; this is a bug"),
        }
    }
}

impl Codec {
    /// Reads `config.json` and the weights of a folder.
    ///
    /// # Errors
    /// A file, a field or a tensor that is missing or malformed.
    pub fn open(kind: Kind, folder: &Path) -> Result<Self, LoadError> {
        let file = folder.join("config.json");
        let shape = Shape::read(kind, &file)?;
        let weights = Weights::open(folder)?;
        let network = match kind {
            Kind::XCodec => {
                let config = xcodec::Config::read(&file)?;
                Network::XCodec(Box::new(xcodec::Decoder::load(&weights, &config)?))
            }
            Kind::Dac => {
                let config = dac::Config::read(&file)?;
                Network::Dac(Box::new(dac::Decoder::load(&weights, &config)?))
            }
            Kind::Seanet => {
                let config = seanet::Config::read(&file)?;
                Network::Seanet(Box::new(seanet::Decoder::load(&weights, &config)?))
            }
        };
        Ok(Self { shape, network })
    }

    /// Rates and sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// A stream at its beginning.
    pub fn stream(&self) -> Stream {
        let resampler = Resampler::new(self.shape.sample_rate, OUTPUT_RATE)
            .expect("the rate was checked when the codec was read; this is a bug");
        Stream { state: self.state(), resampler }
    }

    /// Takes the next codes of a sound, `[codebooks][frames]`, perhaps none, the last ones where `ended`, and returns the
    /// samples that may now be heard, perhaps none.
    ///
    /// # Errors
    /// Codes that cannot be decoded; the stream is as it was.
    ///
    /// # Panics
    /// When `stream` belongs to another codec: a caller's bug.
    pub fn push(
        &self,
        stream: &mut Stream,
        new: &[&[u16]],
        ended: bool,
    ) -> Result<Vec<f32>, CodeError> {
        let mut pushes = [Push { stream, codes: new, ended }];
        self.push_each(&mut pushes).remove(0)
    }

    /// [`Codec::push`] of several streams, each of which gets what it would get alone, in less time: the weights are read once
    /// for all of them.
    ///
    /// # Panics
    /// When a stream belongs to another codec: a caller's bug.
    pub fn push_each(&self, pushes: &mut [Push<'_>]) -> Vec<Result<Vec<f32>, CodeError>> {
        let sizes = vec![self.shape.entries; self.shape.rows];
        let checked: Vec<_> = pushes.iter().map(|push| codes::check(push.codes, &sizes)).collect();
        let good = pushes.iter_mut().zip(&checked).filter(|(_, checked)| checked.is_ok());
        let good = good.map(|(push, _)| push);
        let made = match &self.network {
            Network::XCodec(codec) => codec.step_each(good.map(Push::synthesis).collect()),
            Network::Dac(codec) => codec.step_each(good.map(Push::synthesis).collect()),
            Network::Seanet(codec) => codec.step_each(good.map(Push::seanet).collect()),
        };
        let mut made = made.expect("all codes were checked; this is a bug").into_iter();
        let mut sound = |push: &mut Push<'_>| {
            let samples = made.next().expect("samples of each stream; this is a bug");
            let mut sound = Vec::new();
            push.stream.resampler.push(&samples, &mut sound);
            if push.ended {
                push.stream.resampler.finish(&mut sound);
                push.stream.state = self.state();
            }
            sound
        };
        pushes.iter_mut().zip(checked).map(|(push, checked)| checked.map(|_| sound(push))).collect()
    }

    fn state(&self) -> State {
        match &self.network {
            Network::XCodec(codec) => State::Synthesis(codec.state()),
            Network::Dac(codec) => State::Synthesis(codec.state()),
            Network::Seanet(codec) => State::Seanet(Box::new(codec.state())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// An FFT of another block length sums in another order.
    const TOLERANCE: f32 = 1e-5;
    const FRAMES: usize = 40;

    fn folder(kind: Kind) -> PathBuf {
        let name = match kind {
            Kind::XCodec => "xcodec_tiny",
            Kind::Dac => "dac_tiny",
            Kind::Seanet => "dac_tiny/espnet",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
    }

    fn codes(rows: usize) -> Vec<Vec<u16>> {
        let code = |row: usize, frame: usize| (row * 31 + frame * frame * 7) as u16 % 64;
        (0..rows).map(|row| (0..FRAMES).map(|frame| code(row, frame)).collect()).collect()
    }

    fn views(codes: &[Vec<u16>], range: std::ops::Range<usize>) -> Vec<&[u16]> {
        codes.iter().map(|row| &row[range.clone()]).collect()
    }

    #[test]
    fn every_codec_gives_the_whole_in_pieces_at_the_rate_of_the_engine() {
        for kind in Kind::ALL {
            let codec = Codec::open(kind, &folder(kind)).unwrap();
            assert_eq!((codec.shape().rows, codec.shape().output_samples()), (8, 480.0));
            let codes = codes(8);
            let mut stream = codec.stream();
            let whole = codec.push(&mut stream, &views(&codes, 0..FRAMES), true).unwrap();
            // DAC ends eight of its samples early.
            let short = if kind == Kind::Dac { 12 } else { 0 };
            assert_eq!(whole.len(), FRAMES * 480 - short, "{kind}");
            assert!(whole.iter().any(|s| s.abs() > 0.01), "{kind} is silent");
            // The same stream once more, now frame by frame.
            let (mut pieces, mut late) = (Vec::new(), 0);
            for at in 0..FRAMES {
                let ended = at + 1 == FRAMES;
                let piece = views(&codes, at..at + 1);
                pieces.extend(codec.push(&mut stream, &piece, ended).unwrap());
                if !ended {
                    late = late.max((at + 1) * 480 - pieces.len());
                }
            }
            let held = stream.resampler.held_samples_max();
            assert!(late <= kind.look_ahead_frames() * 480 + held, "{kind}: {late}");
            let off = pieces.iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(pieces.len() == whole.len() && off < TOLERANCE, "{kind}: {off}");
        }
    }

    #[test]
    fn streams_that_are_decoded_together_get_what_they_get_alone() {
        for kind in Kind::ALL {
            let codec = Codec::open(kind, &folder(kind)).unwrap();
            let (codes, mut bad) = (codes(8), codes(8));
            bad[2][21] = 64;
            // The first frame of each stream's next piece, of one frame or three; one stream ends, one says nothing, one is
            // refused.
            let (mut at, mut streams) = ([0, 9, 4, 20], [(); 4].map(|()| codec.stream()));
            let mut alone = [(); 4].map(|()| codec.stream());
            for (i, first) in at.iter().enumerate() {
                for stream in [&mut streams[i], &mut alone[i]] {
                    codec.push(stream, &views(&codes, 0..*first), false).unwrap();
                }
            }
            for round in 0..12 {
                let sizes = [1, 1 + 2 * (round % 2), 0, 1];
                let pieces: [Vec<&[u16]>; 4] = std::array::from_fn(|i| {
                    let codes = if i == 3 && round == 1 { &bad } else { &codes };
                    views(codes, at[i]..at[i] + sizes[i])
                });
                let ended = |i: usize| i == 1 && round == 7;
                let mut pushes: Vec<_> = streams
                    .iter_mut()
                    .enumerate()
                    .map(|(i, stream)| Push { stream, codes: &pieces[i], ended: ended(i) })
                    .collect();
                let together = codec.push_each(&mut pushes);
                for (i, got) in together.into_iter().enumerate() {
                    let expected = codec.push(&mut alone[i], &pieces[i], ended(i));
                    assert_eq!(got.is_err(), i == 3 && round == 1);
                    assert_eq!(got, expected, "{kind}: stream {i}, round {round}");
                    at[i] = if ended(i) { 0 } else { at[i] + sizes[i] };
                }
            }
        }
    }

    #[test]
    fn refused_codes_leave_the_stream_as_it_was() {
        let codec = Codec::open(Kind::Dac, &folder(Kind::Dac)).unwrap();
        let good = codes(8);
        let (mut stream, mut other) = (codec.stream(), codec.stream());
        for stream in [&mut stream, &mut other] {
            codec.push(stream, &views(&good, 0..20), false).unwrap();
        }
        let mut bad = good.clone();
        bad[2][21] = 64;
        let error = codec.push(&mut stream, &views(&bad, 20..24), false).unwrap_err();
        assert_eq!(error, CodeError::Code { row: 2, code: 64, entries: 64 });
        let rows = CodeError::Rows { found: 7, expected: 8 };
        assert_eq!(codec.push(&mut stream, &views(&good, 20..24)[..7], false), Err(rows));
        let next = codec.push(&mut stream, &views(&good, 20..FRAMES), true).unwrap();
        assert_eq!(next, codec.push(&mut other, &views(&good, 20..FRAMES), true).unwrap());
    }

    #[test]
    fn a_rate_that_is_not_converted_is_refused_by_its_field() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.json");
        let mut config: serde_json::Value =
            crate::weights::read_json(&folder(Kind::Dac).join("config.json")).unwrap();
        config["sampling_rate"] = 17_000.into();
        std::fs::write(&file, config.to_string()).unwrap();
        let text = Shape::read(Kind::Dac, &file).unwrap_err().to_string();
        assert!(text.contains("`sampling_rate`: is 17000"), "{text}");
        assert_eq!("xcodec".parse(), Ok(Kind::XCodec));
        assert!("opus".parse::<Kind>().unwrap_err().contains("xcodec, dac, seanet"));
    }
}
