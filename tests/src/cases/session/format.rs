//! The formats that cases name, and the sound in them.

use anyhow::bail;
use codecs::opus::Decoder;
use codecs::{g711, ogg::OggOpus, wav::Wav};
use serde_json::{Value, json};

/// More than any case makes: half an hour.
const SAMPLES_MAX: usize = 1_800 * 48_000;

/// How sound comes, and over which surface.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Format {
    /// Over the native surface, as `session.start` asks for it.
    Native {
        /// `session.start.audio`.
        audio: Value,
    },
    /// As a file over `/v1/audio/speech`.
    Speech {
        /// `response_format`.
        response_format: &'static str,
    },
}

impl Format {
    /// 24 kHz, 16 bits.
    pub(super) fn pcm() -> Self {
        Self::Native { audio: json!({"codec": "pcm_s16le", "sample_rate": 24_000}) }
    }

    /// A format by the name that cases give it.
    ///
    /// # Errors
    /// An unknown name.
    pub(super) fn named(name: &str, frame_ms: Option<u64>) -> anyhow::Result<Self> {
        let (kind, rate) = name.rsplit_once('_').unwrap_or((name, ""));
        let audio = match (kind, rate.parse::<u32>().ok()) {
            ("wav", _) => return Ok(Self::Speech { response_format: "wav" }),
            ("ogg", _) => return Ok(Self::Speech { response_format: "opus" }),
            ("pcm", Some(rate)) => json!({"codec": "pcm_s16le", "sample_rate": rate}),
            ("ulaw", Some(rate)) => json!({"codec": "mulaw", "sample_rate": rate}),
            ("opus", _) => json!({"codec": "opus"}),
            _ => bail!("unknown format {name}"),
        };
        let mut audio = audio;
        if let Some(frame_ms) = frame_ms {
            audio["frame_ms"] = frame_ms.into();
        }
        Ok(Self::Native { audio })
    }

    fn codec(&self) -> &str {
        match self {
            Self::Native { audio } => audio["codec"].as_str().unwrap_or_default(),
            Self::Speech { .. } => "",
        }
    }

    /// Whether packets are Opus.
    pub(super) fn is_opus(&self) -> bool {
        self.codec() == "opus"
    }

    /// Bytes of a sample; none for Opus.
    pub(super) fn sample_bytes(&self) -> Option<usize> {
        match self.codec() {
            "pcm_s16le" => Some(2),
            "mulaw" => Some(1),
            _ => None,
        }
    }

    /// Samples of a second of decoded sound.
    pub(super) fn rate(&self) -> u32 {
        match self {
            Self::Native { .. } if self.is_opus() => 48_000,
            Self::Native { audio } => audio["sample_rate"].as_u64().unwrap_or(24_000) as u32,
            Self::Speech { .. } => 24_000,
        }
    }

    /// The sound of packets, in order, with the delay of the encoder.
    ///
    /// # Errors
    /// Something that is not in this format.
    pub(super) fn decode(&self, packets: &[&[u8]]) -> anyhow::Result<Vec<f32>> {
        match self.codec() {
            "opus" => {
                let mut decoder = Decoder::new(48_000)?;
                let mut sound = Vec::new();
                for packet in packets {
                    sound.extend_from_slice(decoder.decode(packet)?);
                }
                Ok(sound)
            }
            "mulaw" => Ok(packets
                .concat()
                .into_iter()
                .map(|b| f32::from(g711::mulaw_decode(b)) / 32_768.0)
                .collect()),
            "pcm_s16le" => {
                let sample = |b: &[u8]| f32::from(i16::from_le_bytes([b[0], b[1]])) / 32_768.0;
                Ok(packets.concat().chunks_exact(2).map(sample).collect())
            }
            other => bail!("cannot decode {other}"),
        }
    }

    /// The sound of a file and its rate.
    ///
    /// # Errors
    /// Something that is not such a file.
    pub(super) fn decode_file(&self, file: &[u8]) -> anyhow::Result<(Vec<f32>, u32)> {
        match self {
            Self::Speech { response_format: "wav" } => {
                let wav = Wav::read(file)?;
                Ok((wav.samples, wav.sample_rate))
            }
            Self::Speech { .. } => {
                let ogg = OggOpus::read(file)?;
                Ok((ogg.decode(48_000, SAMPLES_MAX)?, 48_000))
            }
            Self::Native { .. } => bail!("not a file"),
        }
    }
}
