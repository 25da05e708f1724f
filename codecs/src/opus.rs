//! Opus (RFC 6716), mono: a stream of PCM pieces into whole packets, and packets back into PCM.
//!
//! The encoder carries what does not fill a packet, and pads only at the very end. Its decoder's output begins with
//! the encoder's delay, so the end of the audio lies that much later on the decoder's clock:
//!
//! ```text
//! decoder's 48 kHz clock  |pre-skip|---------- audio ----------|padding|
//! packets                 |  20 ms  |  20 ms  |  20 ms  |   20 ms      |
//!                         0        312                        Tail::end
//! ```
//!
//! It knows no container and no network; `ogg` writes the packets to files.

use ::opus as libopus;

/// Rate of the clock that pre-skip and ends are counted on, whatever the rate of the PCM, in Hz.
pub const CLOCK_RATE: u32 = 48_000;

/// Rates of PCM that Opus takes and gives, in Hz.
pub const RATES: [u32; 5] = [8_000, 12_000, 16_000, 24_000, 48_000];

/// Longest packet that the encoder is given room for, in bytes: the size libopus recommends.
const PACKET_BYTES_MAX: usize = 4_000;

/// Longest duration of one packet, in ms; the format's limit.
const PACKET_MS_MAX: usize = 120;

/// Why a stream could not be opened, encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum OpusError {
    /// A setting outside what the codec has.
    #[error("opus {setting} {value} is not supported; supported: {allowed}")]
    Unsupported {
        /// Which setting.
        setting: &'static str,
        /// The value asked for.
        value: u32,
        /// What is allowed, in words.
        allowed: &'static str,
    },
    /// Bytes that are not an Opus packet.
    #[error("not an opus packet ({bytes} bytes)")]
    BadPacket {
        /// Their number.
        bytes: usize,
    },
    /// What libopus answered.
    #[error(transparent)]
    Codec(#[from] libopus::Error),
}

/// Duration of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameDuration {
    /// 10 ms.
    Ms10,
    /// 20 ms.
    #[default]
    Ms20,
    /// 40 ms.
    Ms40,
    /// 60 ms.
    Ms60,
}

impl FrameDuration {
    /// The duration of so many milliseconds.
    ///
    /// # Errors
    /// [`OpusError::Unsupported`] for other than 10, 20, 40 and 60.
    pub fn from_ms(ms: u32) -> Result<Self, OpusError> {
        match ms {
            10 => Ok(Self::Ms10),
            20 => Ok(Self::Ms20),
            40 => Ok(Self::Ms40),
            60 => Ok(Self::Ms60),
            value => Err(unsupported("frame_ms", value, "10, 20, 40, 60")),
        }
    }

    /// In milliseconds.
    pub fn ms(self) -> u32 {
        match self {
            Self::Ms10 => 10,
            Self::Ms20 => 20,
            Self::Ms40 => 40,
            Self::Ms60 => 60,
        }
    }

    /// In samples at `rate` Hz, one of [`RATES`].
    pub fn samples(self, rate: u32) -> usize {
        (rate / 1_000 * self.ms()) as usize
    }
}

/// What the encoder optimises for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Application {
    /// Intelligible speech at low bitrates.
    #[default]
    Voip,
    /// Faithfulness to the input.
    Audio,
}

/// Settings of an [`Encoder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderConfig {
    /// Rate of the PCM that comes in, one of [`RATES`], in Hz.
    pub sample_rate: u32,
    /// Duration of every packet.
    pub frame: FrameDuration,
    /// Average bits a second, 6,000 to 510,000.
    pub bitrate: u32,
    /// Effort, 0 to 10.
    pub complexity: u32,
    /// Discontinuous transmission: silence becomes packets of at most two bytes, see [`is_dtx`].
    pub dtx: bool,
    /// What to optimise for.
    pub application: Application,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self {
            sample_rate: 24_000,
            frame: FrameDuration::default(),
            bitrate: 32_000,
            complexity: 5,
            dtx: false,
            application: Application::default(),
        }
    }
}

impl EncoderConfig {
    fn check(&self) -> Result<(), OpusError> {
        check_rate(self.sample_rate)?;
        if !(6_000..=510_000).contains(&self.bitrate) {
            return Err(unsupported("bitrate", self.bitrate, "6000 to 510000 bits a second"));
        }
        if self.complexity > 10 {
            return Err(unsupported("complexity", self.complexity, "0 to 10"));
        }
        Ok(())
    }
}

/// Whether a packet only says "still silent": it need not be sent.
pub fn is_dtx(packet: &[u8]) -> bool {
    packet.len() <= 2
}

/// One stream's encoder.
pub struct Encoder {
    inner: libopus::Encoder,
    /// Samples a packet.
    frame: usize,
    /// Output samples at 48 kHz for each input sample.
    clock_ratio: u64,
    /// The encoder's delay, in input samples.
    lookahead: usize,
    /// Input that does not fill a packet yet.
    carry: Vec<f32>,
    /// Input samples since the start of the stream.
    samples_in: u64,
}

/// The end of a stream.
#[derive(Debug, PartialEq, Eq)]
pub struct Tail {
    /// The last packets, one or two.
    pub packets: Vec<Vec<u8>>,
    /// End of the audio on the decoder's 48 kHz clock: pre-skip and all samples; what is decoded beyond is padding.
    pub end: u64,
}

impl Encoder {
    /// An encoder at the start of a stream.
    ///
    /// # Errors
    /// [`OpusError::Unsupported`] for a setting that Opus does not have.
    pub fn new(config: &EncoderConfig) -> Result<Self, OpusError> {
        config.check()?;
        let application = match config.application {
            Application::Voip => libopus::Application::Voip,
            Application::Audio => libopus::Application::Audio,
        };
        let mut inner =
            libopus::Encoder::new(config.sample_rate, libopus::Channels::Mono, application)?;
        inner.set_bitrate(libopus::Bitrate::Bits(config.bitrate as i32))?;
        inner.set_complexity(config.complexity as i32)?;
        inner.set_dtx(config.dtx)?;
        // Forward error correction spends bits on transports that lose packets; ours are ordered and whole.
        inner.set_inband_fec(false)?;
        let lookahead = inner.get_lookahead()? as usize;
        let frame = config.frame.samples(config.sample_rate);
        Ok(Self {
            inner,
            frame,
            clock_ratio: u64::from(CLOCK_RATE / config.sample_rate),
            lookahead,
            carry: Vec::with_capacity(frame),
            samples_in: 0,
        })
    }

    /// How many samples of the decoder's 48 kHz output precede the audio: the pre-skip of a container.
    pub fn pre_skip(&self) -> u16 {
        // 6.5 ms, far below the 1.3 s that fit.
        (self.lookahead as u64 * self.clock_ratio) as u16
    }

    /// Encodes the next piece of PCM and returns the packets that are full, none or many.
    ///
    /// # Errors
    /// What libopus says; not to be expected with samples of any value.
    pub fn push(&mut self, mut pcm: &[f32]) -> Result<Vec<Vec<u8>>, OpusError> {
        self.samples_in += pcm.len() as u64;
        let mut packets = Vec::new();
        while self.carry.len() + pcm.len() >= self.frame {
            let (head, rest) = pcm.split_at(self.frame - self.carry.len());
            pcm = rest;
            self.keep(head);
            packets.push(self.encode_carry()?);
        }
        self.keep(pcm);
        Ok(packets)
    }

    /// Ends the stream: pads with silence until the decoder has got all of the audio, and at least one packet.
    /// The encoder is then as new.
    ///
    /// # Errors
    /// As [`Encoder::push`].
    pub fn finish(&mut self) -> Result<Tail, OpusError> {
        // An encoder without delay and without carry would owe nothing, but a container needs a packet to end on.
        let missing = (self.carry.len() + self.lookahead).max(1);
        let mut packets = Vec::new();
        for _ in 0..missing.div_ceil(self.frame) {
            self.carry.resize(self.frame, 0.0);
            packets.push(self.encode_carry()?);
        }
        let end = u64::from(self.pre_skip()) + self.samples_in * self.clock_ratio;
        self.reset()?;
        Ok(Tail { packets, end })
    }

    /// Forgets the stream; what follows is encoded as by a new encoder.
    ///
    /// # Errors
    /// As [`Encoder::push`].
    pub fn reset(&mut self) -> Result<(), OpusError> {
        self.carry.clear();
        self.samples_in = 0;
        Ok(self.inner.reset_state()?)
    }

    /// libopus' filters would keep a number that is not finite for ever.
    fn keep(&mut self, pcm: &[f32]) {
        self.carry.extend(pcm.iter().map(|s| if s.is_finite() { *s } else { 0.0 }));
    }

    fn encode_carry(&mut self) -> Result<Vec<u8>, OpusError> {
        let packet = self.inner.encode_vec_float(&self.carry, PACKET_BYTES_MAX)?;
        self.carry.clear();
        Ok(packet)
    }
}

/// One stream's decoder.
pub struct Decoder {
    inner: libopus::Decoder,
    /// Room for the longest packet.
    room: Vec<f32>,
}

impl Decoder {
    /// A decoder that gives mono PCM at `sample_rate` Hz, one of [`RATES`]; stereo packets are mixed down.
    ///
    /// # Errors
    /// [`OpusError::Unsupported`] for another rate.
    pub fn new(sample_rate: u32) -> Result<Self, OpusError> {
        check_rate(sample_rate)?;
        let inner = libopus::Decoder::new(sample_rate, libopus::Channels::Mono)?;
        Ok(Self { inner, room: vec![0.0; sample_rate as usize / 1_000 * PACKET_MS_MAX] })
    }

    /// The samples of the next packet.
    ///
    /// # Errors
    /// [`OpusError::BadPacket`] when it is not one; the decoder can go on with the next.
    pub fn decode(&mut self, packet: &[u8]) -> Result<&[f32], OpusError> {
        let bad = |_| OpusError::BadPacket { bytes: packet.len() };
        // libopus takes an empty packet for a lost one, which is `conceal`.
        self.inner.get_nb_samples(packet).map_err(bad)?;
        let n = self.inner.decode_float(packet, &mut self.room, false).map_err(bad)?;
        Ok(&self.room[..n])
    }

    /// What most plausibly was in a lost packet of that duration.
    ///
    /// # Errors
    /// What libopus says.
    pub fn conceal(&mut self, lost: FrameDuration) -> Result<&[f32], OpusError> {
        let samples = self.room.len() / PACKET_MS_MAX * lost.ms() as usize;
        let n = self.inner.decode_float(&[], &mut self.room[..samples], false)?;
        Ok(&self.room[..n])
    }

    /// Forgets the stream.
    ///
    /// # Errors
    /// What libopus says.
    pub fn reset(&mut self) -> Result<(), OpusError> {
        Ok(self.inner.reset_state()?)
    }
}

/// Name and version of the codec library, for the vendor field of containers.
pub fn library_version() -> &'static str {
    libopus::version()
}

/// Duration of a packet on the 48 kHz clock, told by its first bytes.
///
/// # Errors
/// [`OpusError::BadPacket`] when it is not one.
pub fn packet_duration(packet: &[u8]) -> Result<u64, OpusError> {
    libopus::packet::get_nb_samples(packet, CLOCK_RATE)
        .map(|n| n as u64)
        .map_err(|_| OpusError::BadPacket { bytes: packet.len() })
}

fn check_rate(rate: u32) -> Result<(), OpusError> {
    if RATES.contains(&rate) {
        return Ok(());
    }
    Err(unsupported("sample rate", rate, "8000, 12000, 16000, 24000, 48000 Hz"))
}

fn unsupported(setting: &'static str, value: u32, allowed: &'static str) -> OpusError {
    OpusError::Unsupported { setting, value, allowed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::f32::consts::TAU;

    /// A lossy codec keeps a steady tone at least this well; measured 23.7 to 40.3 dB over the settings.
    const SNR_DB_MIN: f32 = 20.0;

    fn tone(rate: u32, n: usize) -> Vec<f32> {
        (0..n).map(|i| 0.4 * (TAU * 300.0 * i as f32 / rate as f32).sin()).collect()
    }

    fn encode_all(encoder: &mut Encoder, pcm: &[f32], piece: usize) -> (Vec<Vec<u8>>, u64) {
        let mut packets = Vec::new();
        for part in pcm.chunks(piece) {
            packets.extend(encoder.push(part).unwrap());
        }
        let tail = encoder.finish().unwrap();
        packets.extend(tail.packets);
        (packets, tail.end)
    }

    fn decode_all(rate: u32, packets: &[Vec<u8>]) -> Vec<f32> {
        let mut decoder = Decoder::new(rate).unwrap();
        packets.iter().flat_map(|p| decoder.decode(p).unwrap().to_vec()).collect()
    }

    #[test]
    fn a_tone_comes_back_at_its_place_and_length() {
        for rate in RATES {
            for ms in [10, 20, 40, 60] {
                let config = EncoderConfig {
                    sample_rate: rate,
                    frame: FrameDuration::from_ms(ms).unwrap(),
                    application: Application::Audio,
                    ..EncoderConfig::default()
                };
                let mut encoder = Encoder::new(&config).unwrap();
                let pcm = tone(rate, rate as usize + 37);
                let (packets, end) = encode_all(&mut encoder, &pcm, 1_000);
                let skip = encoder.pre_skip() as usize;
                let ratio = (CLOCK_RATE / rate) as usize;
                assert_eq!(end as usize, skip + ratio * pcm.len());

                let decoded = decode_all(rate, &packets);
                assert!(decoded.len() * ratio >= end as usize, "the audio is not all there");
                assert!((decoded.len() - config.frame.samples(rate)) * ratio < end as usize);
                let heard = &decoded[skip / ratio..];
                // The encoder needs some packets to lock on the tone.
                let settled = rate as usize / 4..rate as usize;
                let (mut signal, mut error) = (0.0, 0.0);
                for i in settled {
                    signal += pcm[i].powi(2);
                    error += (pcm[i] - heard[i]).powi(2);
                }
                let snr = 10.0 * (signal / error).log10();
                assert!(snr > SNR_DB_MIN, "{rate} Hz, {ms} ms: {snr:.1} dB");
            }
        }
    }

    #[test]
    fn pre_skip_is_six_and_a_half_ms_at_every_rate() {
        for sample_rate in RATES {
            let config = EncoderConfig { sample_rate, ..EncoderConfig::default() };
            assert_eq!(Encoder::new(&config).unwrap().pre_skip(), 312);
        }
    }

    #[test]
    fn the_end_is_told_on_the_decoders_clock() {
        let mut encoder = Encoder::new(&EncoderConfig::default()).unwrap();
        let (packets, end) = encode_all(&mut encoder, &tone(24_000, 24_037), 24_037);
        assert_eq!(end, 48_386); // 312 + 2 x 24,037
        assert_eq!(packets.len(), 51); // 48,386 / 960, rounded up
    }

    #[test]
    fn an_empty_stream_ends_on_one_packet() {
        let mut encoder = Encoder::new(&EncoderConfig::default()).unwrap();
        let tail = encoder.finish().unwrap();
        assert_eq!((tail.packets.len(), tail.end), (1, 312));
    }

    #[test]
    fn a_reset_encoder_equals_a_fresh_one() {
        let config = EncoderConfig::default();
        let pcm = tone(24_000, 9_000);
        let fresh = encode_all(&mut Encoder::new(&config).unwrap(), &pcm, 777);
        let mut encoder = Encoder::new(&config).unwrap();
        encoder.push(&tone(24_000, 3_333)).unwrap();
        encoder.reset().unwrap();
        assert_eq!(encode_all(&mut encoder, &pcm, 777), fresh);
        assert_eq!(encode_all(&mut encoder, &pcm, 777), fresh, "finish leaves it as new");
    }

    #[test]
    fn a_reset_decoder_equals_a_fresh_one() {
        let (packets, _) = encode_all(
            &mut Encoder::new(&EncoderConfig::default()).unwrap(),
            &tone(24_000, 9_000),
            777,
        );
        let mut decoder = Decoder::new(16_000).unwrap();
        decoder.decode(&packets[3]).unwrap();
        decoder.reset().unwrap();
        let again: Vec<f32> =
            packets.iter().flat_map(|p| decoder.decode(p).unwrap().to_vec()).collect();
        assert_eq!(again, decode_all(16_000, &packets));
    }

    #[test]
    fn silence_under_dtx_is_tiny_packets() {
        let config = EncoderConfig { dtx: true, ..EncoderConfig::default() };
        let (packets, _) = encode_all(&mut Encoder::new(&config).unwrap(), &[0.0; 48_000], 4_800);
        let silent = packets.iter().filter(|p| is_dtx(p)).count();
        assert!(silent > packets.len() / 2, "{silent} of {}", packets.len());
        assert_eq!(decode_all(24_000, &packets).len(), packets.len() * 480);
    }

    #[test]
    fn broken_numbers_do_not_spoil_what_follows() {
        let mut encoder = Encoder::new(&EncoderConfig::default()).unwrap();
        let mut packets = encoder.push(&[f32::NAN, f32::INFINITY, 1e30]).unwrap();
        packets.extend(encode_all(&mut encoder, &tone(24_000, 24_000), 480).0);
        let decoded = decode_all(24_000, &packets);
        assert!(decoded.iter().all(|s| s.is_finite()));
        let late = &decoded[12_000..23_000];
        assert!(late.iter().any(|s| s.abs() > 0.2), "the tone is not there");
    }

    #[test]
    fn a_lost_packet_is_concealed_at_full_length() {
        let mut decoder = Decoder::new(24_000).unwrap();
        assert_eq!(decoder.conceal(FrameDuration::Ms20).unwrap().len(), 480);
        assert!(matches!(decoder.decode(&[]), Err(OpusError::BadPacket { bytes: 0 })));
    }

    #[test]
    fn settings_beyond_the_codec_are_refused_by_name() {
        let refused = |config: EncoderConfig| Encoder::new(&config).err().unwrap().to_string();
        let good = EncoderConfig::default();
        assert!(refused(EncoderConfig { sample_rate: 44_100, ..good }).contains("44100"));
        assert!(refused(EncoderConfig { bitrate: 100, ..good }).contains("bitrate 100"));
        assert!(refused(EncoderConfig { complexity: 11, ..good }).contains("complexity 11"));
        assert!(FrameDuration::from_ms(30).unwrap_err().to_string().contains("30"));
        assert!(Decoder::new(22_050).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn pieces_equal_the_whole(piece in 1_usize..3_000, n in 0_usize..6_000) {
            let pcm = tone(24_000, n);
            let config = EncoderConfig::default();
            let whole = encode_all(&mut Encoder::new(&config).unwrap(), &pcm, usize::MAX);
            prop_assert_eq!(encode_all(&mut Encoder::new(&config).unwrap(), &pcm, piece), whole);
        }

        #[test]
        fn hostile_packets_are_errors_or_sound(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut decoder = Decoder::new(48_000).unwrap();
            if let Ok(samples) = decoder.decode(&bytes) {
                prop_assert!(samples.len() <= 5_760);
                prop_assert_eq!(packet_duration(&bytes).unwrap() as usize, samples.len());
            }
        }
    }
}
