//! What the address of a client's connection asks for: a voice, a format, and how its client behaves.

use std::time::Duration;

use super::super::{Format, Greeting, Unwelcome, parameter, pcm_format};
use crate::container::Encoding;
use crate::protocol::Asked as Native;
use crate::protocol::event::{Options, Start, TextRules};

/// Format of a request that names none.
pub(super) const DEFAULT_FORMAT: &str = "mp3_44100_128";
/// How long a context may go without a word, unless the address says otherwise, and at most.
const INACTIVITY: Duration = Duration::from_secs(20);
const INACTIVITY_MAX: Duration = Duration::from_secs(180);
/// Under this prefix the address says that LiveKit's plugin calls.
const LIVEKIT_PREFIX: &str = "/x/livekit/";

/// Everything that the address says.
#[derive(Debug)]
pub(super) struct Asked {
    /// The voice's name in the path.
    pub(super) voice: Option<String>,
    /// The model's name in the query.
    pub(super) model: Option<String>,
    pub(super) sound: Sound,
    pub(super) options: Options,
    /// Whether the client cuts its text into phrases by itself, each to be spoken at once.
    pub(super) is_auto: bool,
    pub(super) wants_alignment: bool,
    pub(super) inactivity: Duration,
    pub(super) profile: Profile,
}

/// What is known of the client, where clients of the same protocol contradict each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Profile {
    /// Times of characters are counted from the start of the context, not of the message.
    pub(super) absolute: bool,
    /// A context that is closed behind a phrase that was to be spoken is interrupted, not ended.
    pub(super) interrupts: bool,
}

/// A format: samples that the session makes, and what becomes of them here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sound {
    pub(super) samples: Format,
    /// None: the samples as they are.
    pub(super) file: Option<Encoding>,
}

impl Asked {
    /// # Errors
    /// A format that is not to be had.
    pub(super) fn of(greeting: &Greeting<'_>) -> Result<Self, Unwelcome> {
        let query = |name: &str| parameter(greeting.query, name);
        let is = |name: &str, value: &str| query(name).as_deref() == Some(value);
        let format = query("output_format");
        let sound = Sound::named(format.as_deref().unwrap_or(DEFAULT_FORMAT)).map_err(Unwelcome)?;
        let rules = TextRules {
            verbalize: is("apply_text_normalization", "off").then(|| "off".to_owned()),
            ssml: is("enable_ssml_parsing", "true").then_some(true),
            ..TextRules::default()
        };
        let options = Options {
            language: query("language_code"),
            seed: query("seed").and_then(|seed| seed.parse().ok()),
            text: rules,
            ..Options::default()
        };
        let inactivity = query("inactivity_timeout").and_then(|s| s.parse().ok());
        let inactivity = inactivity.map_or(INACTIVITY, Duration::from_secs).min(INACTIVITY_MAX);
        Ok(Self {
            voice: voice_in(greeting.path),
            model: query("model_id"),
            sound,
            options,
            is_auto: is("auto_mode", "true"),
            wants_alignment: !is("sync_alignment", "false"),
            inactivity: inactivity.max(Duration::from_secs(1)),
            profile: Profile::of(greeting),
        })
    }

    /// How the session begins.
    pub(super) fn start(&self) -> Start {
        let timestamps = if self.wants_alignment { "char" } else { "none" };
        Start {
            audio: Native { codec: Some("pcm_s16le".to_owned()), ..Native::default() },
            timestamps: Some(timestamps.to_owned()),
            context_idle_ms: u64::try_from(self.inactivity.as_millis()).ok(),
            ..Start::default()
        }
    }
}

impl Profile {
    /// LiveKit's plugin says who it is by the address that it was given, or by what it always asks for.
    fn of(greeting: &Greeting<'_>) -> Self {
        let query = |name: &str| parameter(greeting.query, name);
        let asks = query("sync_alignment").as_deref() == Some("true")
            && query("inactivity_timeout").as_deref() == Some("180");
        let is_livekit = greeting.path.starts_with(LIVEKIT_PREFIX)
            || (asks && greeting.agent.contains("aiohttp"));
        let absolute = is_livekit || query("alignment_base").as_deref() == Some("context");
        Self { absolute, interrupts: is_livekit }
    }
}

impl Sound {
    /// A format by its name, `codec_rate` or `codec_rate_kbps`.
    ///
    /// # Errors
    /// A sentence that names what there is.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        Self::find(name).ok_or_else(|| {
            let mut known = vec![
                "pcm_8000, pcm_16000, pcm_22050, pcm_24000, pcm_32000, pcm_44100, pcm_48000",
                "ulaw_8000, alaw_8000",
                "opus_48000_32, opus_48000_64, opus_48000_96, opus_48000_128, opus_48000_192",
            ];
            if cfg!(feature = "mp3") {
                known.push("mp3_22050_32, mp3_24000_48, mp3_44100_32, mp3_44100_64");
                known.push("mp3_44100_96, mp3_44100_128, mp3_44100_192");
            }
            format!("output_format {name:?} is not one of {}", known.join(", "))
        })
    }

    fn find(name: &str) -> Option<Self> {
        let mut parts = name.split('_');
        let (codec, rate) = (parts.next()?, parts.next()?.parse::<u32>().ok()?);
        let kbps = match parts.next() {
            Some(kbps) => Some(kbps.parse::<u32>().ok()?),
            None => None,
        };
        if parts.next().is_some() {
            return None;
        }
        // Files are made of samples that lost nothing yet.
        let file = |rate, encoding| {
            let samples = pcm_format(Some("pcm_f32le"), Some(rate)).ok()?;
            Some(Self { samples, file: Some(encoding) })
        };
        let plain = |codec| {
            let samples = pcm_format(Some(codec), Some(rate)).ok()?;
            Some(Self { samples, file: None })
        };
        match (codec, kbps) {
            ("pcm", None) => plain("pcm_s16le"),
            ("ulaw", None) if rate == 8_000 => plain("mulaw"),
            ("alaw", None) if rate == 8_000 => plain("alaw"),
            ("opus", Some(kbps @ (32 | 64 | 96 | 128 | 192))) if rate == 48_000 => {
                file(Encoding::OPUS_RATE, Encoding::Opus { bitrate: kbps * 1_000 })
            }
            #[cfg(feature = "mp3")]
            ("mp3", Some(kbps)) if is_mp3(rate, kbps) => {
                file(rate, Encoding::Mp3 { sample_rate: rate, bitrate: kbps * 1_000 })
            }
            _ => None,
        }
    }
}

#[cfg(feature = "mp3")]
fn is_mp3(rate: u32, kbps: u32) -> bool {
    matches!((rate, kbps), (22_050, 32) | (24_000, 48) | (44_100, 32 | 64 | 96 | 128 | 192))
}

/// The voice in a path, `/v1/text-to-speech/{voice}/...`, its escapes undone.
pub(super) fn voice_in(path: &str) -> Option<String> {
    let (_, behind) = path.split_once("/text-to-speech/")?;
    let voice = behind.split('/').next()?;
    // What a path escapes, the parameters of a query do too; a plus is a plus only here.
    parameter(&format!("voice={}", voice.replace('+', "%2B")), "voice")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Codec;

    #[test]
    fn every_format_is_what_its_name_says() {
        for (name, codec, rate, is_file) in [
            ("pcm_16000", Codec::PcmS16le, 16_000, false),
            ("pcm_44100", Codec::PcmS16le, 44_100, false),
            ("ulaw_8000", Codec::Mulaw, 8_000, false),
            ("alaw_8000", Codec::Alaw, 8_000, false),
            ("opus_48000_64", Codec::PcmF32le, 24_000, true),
            #[cfg(feature = "mp3")]
            ("mp3_22050_32", Codec::PcmF32le, 22_050, true),
        ] {
            let sound = Sound::named(name).unwrap();
            let got = (sound.samples.codec, sound.samples.sample_rate, sound.file.is_some());
            assert_eq!(got, (codec, rate, is_file), "{name}");
        }
    }

    #[test]
    fn what_there_is_not_is_refused_with_what_there_is() {
        for name in
            ["", "pcm", "pcm_11025", "ulaw_16000", "aac_44100", "mp3_44100_320", "pcm_1_2_3"]
        {
            let reason = Sound::named(name).unwrap_err();
            assert!(reason.contains("pcm_24000") && reason.contains("ulaw_8000"), "{reason}");
        }
    }

    #[test]
    fn a_voice_stands_in_the_path() {
        let voice = |path| voice_in(path).unwrap_or_default();
        assert_eq!(voice("/v1/text-to-speech/ann/multi-stream-input"), "ann");
        assert_eq!(voice("/x/livekit/v1/text-to-speech/a%20b+c/stream-input"), "a b+c");
        assert_eq!(voice_in("/v1/voices"), None);
    }
}
