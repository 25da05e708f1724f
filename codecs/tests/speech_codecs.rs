//! The codecs of speech language models against golden tensors of the public implementations, and their streams against
//! their wholes.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use codecs::codes::CodeError;
use codecs::weights::Weights;
use codecs::{dac, seanet, xcodec};
use proptest::prelude::*;

/// Other summing orders than the reference's through some sixty layers; an independent implementation was off by 4e-5.
const TOLERANCE: f32 = 2e-4;
const CODEBOOKS: usize = 8;
const ENTRIES: u16 = 64;
const FRAME: usize = 320;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
}

fn open(name: &str) -> Weights {
    Weights::open(&fixture(name)).unwrap()
}

fn tensor(case: &Weights, name: &str) -> Vec<f32> {
    case.f32(name, case.shape(name).unwrap()).unwrap()
}

/// `[codebooks][frames]`.
fn codes(case: &Weights) -> Vec<Vec<u16>> {
    let all = case.ints("codes").unwrap();
    let rows = all.chunks_exact(all.len() / CODEBOOKS);
    rows.map(|row| row.iter().map(|&c| c as u16).collect()).collect()
}

fn views(codes: &[Vec<u16>], range: std::ops::Range<usize>) -> Vec<&[u16]> {
    codes.iter().map(|row| &row[range.clone()]).collect()
}

fn assert_close(what: &str, got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len(), "{what}: length");
    let worst = got.iter().zip(expected).map(|(g, e)| (g - e).abs()).fold(0.0, f32::max);
    assert!(worst < TOLERANCE, "{what}: {worst}");
}

/// A codec whose codes decode as a stream.
trait Decodes {
    type State: Clone;
    /// Frames that a stream is behind, as the module says.
    const LOOK_AHEAD: usize;

    fn fresh(&self) -> Self::State;
    fn values(state: &Self::State) -> usize;
    fn next(
        &self,
        state: &mut Self::State,
        codes: &[&[u16]],
        ended: bool,
    ) -> Result<Vec<f32>, CodeError>;
    fn whole(&self, codes: &[&[u16]]) -> Result<Vec<f32>, CodeError>;
}

macro_rules! decodes {
    ($codec:ty, $state:ty, $look_ahead:expr) => {
        impl Decodes for $codec {
            type State = $state;
            const LOOK_AHEAD: usize = $look_ahead;

            fn fresh(&self) -> $state {
                self.state()
            }

            fn values(state: &$state) -> usize {
                state.values()
            }

            fn next(
                &self,
                state: &mut $state,
                codes: &[&[u16]],
                ended: bool,
            ) -> Result<Vec<f32>, CodeError> {
                self.step(state, codes, ended)
            }

            fn whole(&self, codes: &[&[u16]]) -> Result<Vec<f32>, CodeError> {
                self.decode(codes)
            }
        }
    };
}

decodes!(dac::Decoder, dac::SynthesisState, 10);
decodes!(xcodec::Decoder, dac::SynthesisState, 10);
decodes!(seanet::Decoder, seanet::DecoderState, 7);

fn dac_config() -> dac::Config {
    dac::Config::read(&fixture("dac_tiny/config.json")).unwrap()
}

fn load_dac() -> dac::Decoder {
    dac::Decoder::load(&open("dac_tiny/model.safetensors"), &dac_config()).unwrap()
}

fn load_dac_encoder() -> dac::Encoder {
    dac::Encoder::load(&open("dac_tiny/model.safetensors"), &dac_config()).unwrap()
}

fn xcodec_config() -> xcodec::Config {
    xcodec::Config::read(&fixture("xcodec_tiny/config.json")).unwrap()
}

fn load_xcodec() -> xcodec::Decoder {
    xcodec::Decoder::load(&open("xcodec_tiny/model.safetensors"), &xcodec_config()).unwrap()
}

fn seanet_config() -> seanet::Config {
    seanet::Config::read(&fixture("dac_tiny/espnet/config.json")).unwrap()
}

fn load_seanet() -> seanet::Decoder {
    seanet::Decoder::load(&open("dac_tiny/espnet/model.safetensors"), &seanet_config()).unwrap()
}

fn check_golden(codec: &impl Decodes, folder: &str, cases: &[&str]) {
    for name in cases {
        let case = open(&format!("{folder}/{name}.safetensors"));
        let codes = codes(&case);
        let samples = codec.whole(&views(&codes, 0..codes[0].len())).unwrap();
        assert_close(&format!("{folder} {name}"), &samples, &tensor(&case, "waveform"));
    }
}

#[test]
fn decoded_sounds_match_the_references() {
    check_golden(&load_dac(), "dac_tiny", &["decode_t1", "decode_t12"]);
    check_golden(&load_xcodec(), "xcodec_tiny", &["decode_t1", "decode_t12"]);
    check_golden(&load_seanet(), "dac_tiny/espnet", &["decode_t1", "decode_t3", "decode_t12"]);
}

#[test]
fn encoded_sounds_have_the_codes_of_the_references() {
    let encoder = load_dac_encoder();
    for (name, raw) in [("encode_exact", "raw"), ("encode_padded", "raw")] {
        let case = open(&format!("dac_tiny/{name}.safetensors"));
        assert_eq!(encoder.encode(&tensor(&case, raw)), codes(&case), "{name}");
    }
    let weights = open("dac_tiny/espnet/model.safetensors");
    let encoder = seanet::Encoder::load(&weights, &seanet_config()).unwrap();
    for name in ["encode_exact", "encode_ragged"] {
        let case = open(&format!("dac_tiny/espnet/{name}.safetensors"));
        let samples = tensor(&case, "waveform");
        let latent = encoder.latent(&samples).to_channels_first();
        assert_close(name, &latent, &tensor(&case, "encoder_out"));
        assert_eq!(encoder.encode(&samples), codes(&case), "{name}");
    }
    let weights = open("xcodec_tiny/model.safetensors");
    let encoder = xcodec::Encoder::load(&weights, &xcodec_config()).unwrap();
    for name in ["encode_exact", "encode_padded", "encode_tail"] {
        let case = open(&format!("xcodec_tiny/{name}.safetensors"));
        let samples = tensor(&case, "waveform");
        assert_close(name, encoder.vectors(&samples).data(), &tensor(&case, "after_fc"));
        assert_eq!(encoder.encode(&samples), codes(&case), "{name}");
    }
}

#[test]
fn sounds_too_short_for_a_frame_give_no_code_or_one() {
    assert_eq!(load_dac_encoder().encode(&[]), vec![Vec::<u16>::new(); CODEBOOKS]);
    let weights = open("dac_tiny/espnet/model.safetensors");
    let encoder = seanet::Encoder::load(&weights, &seanet_config()).unwrap();
    assert_eq!(encoder.encode(&[]), vec![Vec::<u16>::new(); CODEBOOKS]);
    assert!(encoder.encode(&[0.5]).iter().all(|row| row.len() == 1));
    let weights = open("xcodec_tiny/model.safetensors");
    let encoder = xcodec::Encoder::load(&weights, &xcodec_config()).unwrap();
    assert_eq!(encoder.encode(&[0.1; 79]), vec![Vec::<u16>::new(); CODEBOOKS]);
    assert!(encoder.encode(&[0.1; 80]).iter().all(|row| row.len() == 1));
}

#[test]
fn codes_that_do_not_exist_are_told_and_leave_the_stream_as_it_was() {
    fn check(codec: &impl Decodes) {
        let good = vec![vec![1_u16; 12]; CODEBOOKS];
        let mut state = codec.fresh();
        codec.next(&mut state, &views(&good, 0..12), false).unwrap();
        let mut other = state.clone();
        let mut bad = good.clone();
        bad[3][5] = ENTRIES;
        let entries = usize::from(ENTRIES);
        let error = CodeError::Code { row: 3, code: ENTRIES, entries };
        assert_eq!(codec.next(&mut state, &views(&bad, 0..12), false), Err(error));
        let error = CodeError::Rows { found: 7, expected: 8 };
        assert_eq!(codec.next(&mut state, &views(&good, 0..12)[..7], false), Err(error));
        let next = codec.next(&mut state, &views(&good, 0..3), true).unwrap();
        assert_eq!(next, codec.next(&mut other, &views(&good, 0..3), true).unwrap());
    }
    check(&load_dac());
    check(&load_xcodec());
    check(&load_seanet());
}

/// Codes from a small generator; the same seed gives the same ones.
fn noise(frames: usize, seed: u32) -> Vec<Vec<u16>> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as u16 % ENTRIES
    };
    (0..CODEBOOKS).map(|_| (0..frames).map(|_| next()).collect()).collect()
}

/// Pieces of any sizes, the last one with what is left, give the bits of the whole, as early as promised.
fn check_pieces<C: Decodes>(codec: &C, frames: usize, sizes: &[usize], seed: u32) {
    let codes = noise(frames, seed);
    let whole = codec.whole(&views(&codes, 0..frames)).unwrap();
    let (mut state, mut samples, mut at, mut most) = (codec.fresh(), Vec::new(), 0, 0);
    for &size in sizes {
        let end = (at + size).min(frames);
        samples.extend(codec.next(&mut state, &views(&codes, at..end), false).unwrap());
        at = end;
        assert!(
            samples.len() >= at.saturating_sub(C::LOOK_AHEAD) * FRAME,
            "{at}: {}",
            samples.len()
        );
        most = most.max(C::values(&state));
    }
    samples.extend(codec.next(&mut state, &views(&codes, at..frames), true).unwrap());
    assert!(samples.len() == whole.len() && samples == whole, "pieces {sizes:?} of {frames}");
    // What the layers keep is what they look at, however long the sound.
    assert!(most <= 40 * FRAME, "{most} values");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn pieces_of_any_sizes_give_the_bits_of_the_whole(
        frames in 1..40usize,
        sizes in prop::collection::vec(0..9usize, 0..12),
        seed in any::<u32>(),
    ) {
        static DAC: LazyLock<dac::Decoder> = LazyLock::new(load_dac);
        static XCODEC: LazyLock<xcodec::Decoder> = LazyLock::new(load_xcodec);
        static SEANET: LazyLock<seanet::Decoder> = LazyLock::new(load_seanet);
        check_pieces(&*DAC, frames, &sizes, seed);
        check_pieces(&*XCODEC, frames, &sizes, seed);
        check_pieces(&*SEANET, frames, &sizes, seed);
    }
}

#[test]
fn the_stated_look_ahead_is_the_least() {
    fn behind<C: Decodes>(codec: &C) -> usize {
        let codes = noise(40, 3);
        let (mut state, mut samples, mut most) = (codec.fresh(), 0, 0);
        for at in 0..40 {
            samples += codec.next(&mut state, &views(&codes, at..at + 1), false).unwrap().len();
            most = most.max(((at + 1) * FRAME - samples).div_ceil(FRAME));
        }
        most
    }
    assert_eq!(behind(&load_dac()), <dac::Decoder as Decodes>::LOOK_AHEAD);
    assert_eq!(behind(&load_xcodec()), <xcodec::Decoder as Decodes>::LOOK_AHEAD);
    assert_eq!(behind(&load_seanet()), <seanet::Decoder as Decodes>::LOOK_AHEAD);
}

#[test]
fn files_of_other_sizes_are_refused_with_the_tensor_named() {
    let config = seanet_config();
    let error =
        seanet::Decoder::load(&open("xcodec_tiny/model.safetensors"), &config).err().unwrap();
    let text = error.to_string();
    assert!(text.contains("model.safetensors") && text.contains("codec.generator"), "{text}");
    let weights = open("dac_tiny/model.safetensors");
    let error = xcodec::Decoder::load(&weights, &xcodec_config()).err().unwrap().to_string();
    assert!(error.contains("quantizer.quantizers.0.codebook.embed"), "{error}");
}
