//! The sound of a session: codec, rate and packet length, and the media clock that positions are counted on.

use codecs::opus::{CLOCK_RATE, FrameDuration};
use codecs::{pcm, resample};
use serde::{Deserialize, Serialize};

/// Rate of the engine's sound, in Hz.
const ENGINE_RATE: u64 = 24_000;
/// Decoder output before the first real sample: the encoder's delay, the same at every rate, on the 48 kHz clock.
pub const OPUS_PRE_SKIP: u16 = 312;
/// Most packets in a frame: a second of the usual ones.
const PACK_MAX: u16 = 50;

/// How sound is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Codec {
    /// Bare Opus packets.
    #[default]
    Opus,
    /// 16-bit little-endian integers.
    PcmS16le,
    /// 32-bit little-endian floats.
    PcmF32le,
    /// G.711 mu-law.
    Mulaw,
    /// G.711 A-law.
    Alaw,
}

/// A codec with all its settings, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// How sound is written.
    pub codec: Codec,
    /// Rate of the media clock, in Hz: 48,000 for Opus.
    pub sample_rate: u32,
    /// Length of a packet.
    pub frame: FrameDuration,
    /// Bits a second; of meaning for Opus only.
    pub bitrate: u32,
    /// Most packets in one frame of the wire.
    pub pack: u16,
    /// Whether silence becomes packets of a byte or two; Opus only.
    pub dtx: bool,
}

/// What a client asks for; what it leaves out is the codec's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Asked {
    /// Name of a codec; default: `opus`.
    pub(crate) codec: Option<String>,
    /// In Hz; default: 24,000 for PCM, 8,000 for G.711.
    pub(crate) sample_rate: Option<u32>,
    /// Bits a second; default: 32,000.
    pub(crate) bitrate: Option<u32>,
    /// Default: 20.
    pub(crate) frame_ms: Option<u32>,
    /// Packets in a frame, 1 to 50; default: 1.
    pub(crate) pack: Option<u16>,
    /// Whether silence is told in a byte or two; default: no.
    pub(crate) dtx: Option<bool>,
}

impl Format {
    /// The format asked for.
    ///
    /// # Errors
    /// A sentence that names the field and what is allowed.
    pub(crate) fn choose(asked: &Asked) -> Result<Self, String> {
        let codec = match asked.codec.as_deref().unwrap_or("opus") {
            "opus" => Codec::Opus,
            "pcm_s16le" => Codec::PcmS16le,
            "pcm_f32le" => Codec::PcmF32le,
            "mulaw" => Codec::Mulaw,
            "alaw" => Codec::Alaw,
            other => {
                let known = "opus, pcm_s16le, pcm_f32le, mulaw, alaw";
                return Err(format!("audio.codec {other:?} is not one of {known}"));
            }
        };
        let frame_ms = asked.frame_ms.unwrap_or(20);
        let frame = FrameDuration::from_ms(frame_ms)
            .map_err(|_| format!("audio.frame_ms {frame_ms} is not one of 10, 20, 40, 60"))?;
        let bitrate = asked.bitrate.unwrap_or(32_000);
        if !(6_000..=510_000).contains(&bitrate) {
            return Err(format!("audio.bitrate {bitrate} is not within 6000 to 510000"));
        }
        let pack = asked.pack.unwrap_or(1);
        if !(1..=PACK_MAX).contains(&pack) {
            return Err(format!("audio.pack {pack} is not within 1 to {PACK_MAX}"));
        }
        let dtx = asked.dtx.unwrap_or(false);
        if dtx && codec != Codec::Opus {
            return Err("audio.dtx is for opus only".to_owned());
        }
        let sample_rate = asked_rate(codec, asked.sample_rate)?;
        let format = Self { codec, sample_rate, frame, bitrate, pack, dtx };
        if format.packet_samples().is_none() {
            let rate = format.sample_rate;
            return Err(format!(
                "audio.frame_ms {frame_ms} is no whole number of samples at {rate} Hz"
            ));
        }
        Ok(format)
    }

    /// The media clock.
    pub fn clock(&self) -> Clock {
        let pre_skip = if self.codec == Codec::Opus { OPUS_PRE_SKIP } else { 0 };
        Clock { rate: self.sample_rate, pre_skip }
    }

    /// Samples of a full packet on the media clock.
    pub(crate) fn packet_samples(&self) -> Option<usize> {
        pcm::packet_samples(self.sample_rate, self.frame.ms())
    }
}

fn asked_rate(codec: Codec, asked: Option<u32>) -> Result<u32, String> {
    let default = match codec {
        // The clock of Opus is what it is, whatever rate a client has in mind.
        Codec::Opus => return Ok(CLOCK_RATE),
        Codec::PcmS16le | Codec::PcmF32le => 24_000,
        Codec::Mulaw | Codec::Alaw => 8_000,
    };
    let rate = asked.unwrap_or(default);
    if resample::RATES.contains(&rate) {
        return Ok(rate);
    }
    let known: Vec<String> = resample::RATES.iter().map(u32::to_string).collect();
    Err(format!("audio.sample_rate {rate} is not one of {}", known.join(", ")))
}

/// Where the engine's samples lie on the clock of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// In Hz.
    pub rate: u32,
    /// What a decoder gives before the first real sample.
    pub pre_skip: u16,
}

impl Clock {
    /// The position just behind so many samples of the engine; 0 for none.
    pub fn position(self, samples: u64) -> u64 {
        if samples == 0 {
            return 0;
        }
        u64::from(self.pre_skip) + (samples * u64::from(self.rate)).div_ceil(ENGINE_RATE)
    }

    /// How many whole samples of the engine lie before a position.
    pub fn samples(self, position: u64) -> u64 {
        let real = position.saturating_sub(self.pre_skip.into());
        (u128::from(real) * u128::from(ENGINE_RATE) / u128::from(self.rate)) as u64
    }

    /// How long a stretch of the clock is.
    pub fn millis(self, duration: u64) -> u64 {
        (u128::from(duration) * 1_000 / u128::from(self.rate)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_the_codecs_default() {
        let opus = Format::choose(&Asked::default()).unwrap();
        assert_eq!((opus.codec, opus.sample_rate, opus.frame.ms()), (Codec::Opus, 48_000, 20));
        let of = |codec: &str| {
            Format::choose(&Asked { codec: Some(codec.into()), ..Asked::default() }).unwrap()
        };
        assert_eq!(of("pcm_s16le").sample_rate, 24_000);
        assert_eq!(of("mulaw").sample_rate, 8_000);
    }

    #[test]
    fn refusals_name_the_field_and_what_is_allowed() {
        let refused = |asked: Asked| Format::choose(&asked).unwrap_err();
        let pcm = || Some("pcm_s16le".to_owned());
        let cases = [
            (Asked { codec: Some("mp3".into()), ..Asked::default() }, "opus, pcm_s16le"),
            (Asked { frame_ms: Some(25), ..Asked::default() }, "10, 20, 40, 60"),
            (Asked { bitrate: Some(1), ..Asked::default() }, "6000 to 510000"),
            (Asked { pack: Some(51), ..Asked::default() }, "1 to 50"),
            (Asked { codec: pcm(), dtx: Some(true), ..Asked::default() }, "opus only"),
            (Asked { codec: pcm(), sample_rate: Some(11_025), ..Asked::default() }, "22050"),
            (
                Asked {
                    codec: pcm(),
                    sample_rate: Some(22_050),
                    frame_ms: Some(10),
                    ..Asked::default()
                },
                "whole number",
            ),
        ];
        for (asked, part) in cases {
            let message = refused(asked);
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn the_opus_clock_counts_the_encoders_delay() {
        let clock = Clock { rate: 48_000, pre_skip: OPUS_PRE_SKIP };
        assert_eq!(clock.position(24_037), 48_386);
        assert_eq!(clock.position(0), 0);
        assert_eq!(clock.samples(48_386), 24_037);
        assert_eq!(clock.samples(100), 0);
    }
}
